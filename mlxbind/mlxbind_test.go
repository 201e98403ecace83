package mlxbind

import (
	"math"
	"os"
	"strings"
	"testing"
)

var work = make(chan func())

func TestMain(m *testing.M) {
	go func() {
		if err := Init(); err != nil {
			panic(err)
		}
		for f := range work {
			f()
		}
	}()
	os.Exit(m.Run())
}

// on runs f on the inference thread, in a scope.
func on(t *testing.T, f func(s *Scope)) {
	t.Helper()
	done := make(chan any)
	work <- func() {
		defer func() { done <- recover() }()
		s := NewScope()
		defer s.Close()
		f(s)
	}
	if r := <-done; r != nil {
		t.Fatal(r)
	}
}

func read(t *testing.T, s *Scope, a Array) []float32 {
	t.Helper()
	v, err := s.ReadFloats(a)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestFirstErrorStays(t *testing.T) {
	on(t, func(s *Scope) {
		bad := s.Matmul(s.Zeros(Float32, 3, 4), s.Zeros(Float32, 3, 4))
		if bad.Valid() || s.Err() == nil {
			t.Fatal("a product of shapes that do not match went through")
		}
		first := s.Err()
		if s.Exp(bad).Valid() || s.Zeros(Float32, 2).Valid() {
			t.Error("operations go on after an error")
		}
		if _, err := s.ReadFloats(bad); err != first {
			t.Errorf("reading says %v, the first error was %v", err, first)
		}
		if !strings.Contains(first.Error(), "matmul") {
			t.Errorf("%q does not name the operation", first)
		}
	})
	on(t, func(s *Scope) {
		if got := read(t, s, s.Add(s.Floats([]float32{1}), s.Floats([]float32{2}))); got[0] != 3 {
			t.Errorf("after an error 1 + 2 is %g", got[0])
		}
	})
}

func TestErrorsOfEveryKind(t *testing.T) {
	for name, f := range map[string]func(s *Scope) Array{
		"group size": func(s *Scope) Array {
			return s.Quantize(s.Zeros(Float32, 4, 96), Packing{Bits: 4, GroupSize: 48, Mode: "affine"}).Weight
		},
		"reshape":        func(s *Scope) Array { return s.Reshape(s.Zeros(Float32, 6), 4, 2) },
		"data too short": func(s *Scope) Array { return s.Data([]byte{1, 2, 3}, Float32, 1) },
		"no array":       func(s *Scope) Array { return s.Add(Array{}, s.Zeros(Float32, 1)) },
	} {
		on(t, func(s *Scope) {
			if a := f(s); a.Valid() || s.Err() == nil {
				t.Errorf("%s: no error", name)
			}
		})
	}
}

func TestOtherThreadsAreRefused(t *testing.T) {
	on(t, func(*Scope) {})
	defer func() {
		if recover() == nil {
			t.Error("a scope opened outside the inference thread")
		}
	}()
	NewScope()
}

func TestScopesFreeTheirArrays(t *testing.T) {
	var before int64
	on(t, func(s *Scope) { before = ActiveMemory() })
	var held Array
	on(t, func(s *Scope) {
		a := s.Exp(s.Zeros(Float32, 1000, 100))
		held = s.Hold(s.Exp(a))
		if err := s.Eval(held); err != nil {
			t.Fatal(err)
		}
	})
	if now := ActiveMemory() - before; now < 400_000 || now > 500_000 {
		t.Errorf("one held array of 400,000 bytes: %d in use", now)
	}
	on(t, func(s *Scope) { held.Free() })
	if now := ActiveMemory(); now != before {
		t.Errorf("%d bytes stay", now-before)
	}
}

func TestHostReadsAreCounted(t *testing.T) {
	on(t, func(s *Scope) {
		before := HostReads()
		a := s.Floats([]float32{1, 2, 3})
		s.Eval(a)
		read(t, s, a)
		read(t, s, s.Square(a))
		if n := HostReads() - before; n != 2 {
			t.Errorf("%d reads counted of 2", n)
		}
	})
}

func TestCompiledFunctionsComputeTheSame(t *testing.T) {
	on(t, func(s *Scope) {
		weight := s.Hold(s.Normal(s.Key(1), 8, 8))
		defer weight.Free()
		s.Eval(weight)
		build := func(s *Scope, in []Array) []Array {
			y := s.Tanh(s.Add(s.Matmul(in[0], weight), in[1]))
			return []Array{y, s.Sum(s.Square(y), -1, true)}
		}
		f, err := Compile(build)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, n := range []int{1, 5, 1, 3} {
			in := []Array{s.Normal(s.Key(2), n, 8), s.Normal(s.Key(3), n, 8)}
			plain, compiled := build(s, in), s.Call(f, in...)
			for i := range plain {
				a, b := read(t, s, plain[i]), read(t, s, compiled[i])
				for j := range a {
					if math.Abs(float64(a[j]-b[j])) > 1e-5 {
						t.Fatalf("%d rows, result %d: %g and %g", n, i, a[j], b[j])
					}
				}
			}
		}
	})
}

func TestErrorsInsideCompiledFunctions(t *testing.T) {
	for name, build := range map[string]Graph{
		"error": func(s *Scope, in []Array) []Array { return []Array{s.Matmul(in[0], s.Zeros(Float32, 3, 3))} },
		"panic": func(s *Scope, in []Array) []Array { panic("lost") },
	} {
		on(t, func(s *Scope) {
			f, err := Compile(build)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			out := s.Call(f, s.Zeros(Float32, 2, 2))
			if out != nil || s.Err() == nil {
				t.Errorf("%s went unnoticed", name)
			}
			if name == "panic" && !strings.Contains(s.Err().Error(), "lost") {
				t.Errorf("%v does not say why", s.Err())
			}
		})
	}
}

// Products of every shape, shared out over threads or not, agree with plain code.
func TestProducts(t *testing.T) {
	on(t, func(s *Scope) {
		for _, c := range [][3]int{{1, 256, 700}, {8, 300, 1500}, {7, 768, 256}, {16, 64, 4096}, {33, 129, 515}, {3, 5, 7}, {2, 1000, 129}} {
			n, k, m := c[0], c[1], c[2]
			a, b := s.Normal(s.Key(uint64(n)), n, k), s.Normal(s.Key(uint64(m)), k, m)
			x, y := read(t, s, a), read(t, s, b)
			for name, got := range map[string]Array{
				"plain":      s.Matmul(a, b),
				"transposed": s.Matmul(a, s.Transpose(s.Contiguous(s.Transpose(b)))),
				"a slice":    s.Slice(s.Matmul(a, s.Slice(s.Concatenate(1, b, b), 1, 0, m)), 1, 0, m),
			} {
				z := read(t, s, got)
				for i := range n {
					for j := range m {
						sum := 0.0
						for l := range k {
							sum += float64(x[i*k+l]) * float64(y[l*m+j])
						}
						if math.Abs(sum-float64(z[i*m+j])) > 1e-3 {
							t.Fatalf("%v, %s: [%d, %d] is %g, not %g", c, name, i, j, z[i*m+j], sum)
						}
					}
				}
			}
		}
	})
}

func TestSlices(t *testing.T) {
	on(t, func(s *Scope) {
		a := s.Reshape(s.Arange(0, 12, 1, Float32), 3, 4)
		for name, c := range map[string]struct {
			got  Array
			want []float32
		}{
			"rows":      {s.Slice(a, 0, 1, 3), []float32{4, 5, 6, 7, 8, 9, 10, 11}},
			"columns":   {s.Slice(a, -1, 1, 2), []float32{1, 5, 9}},
			"backwards": {s.SliceStep(a, 0, 2, -1, -1), []float32{8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3}},
			"every 2nd": {s.SliceStep(a, 1, 0, 4, 2), []float32{0, 2, 4, 6, 8, 10}},
			"update":    {s.Update(a, s.Zeros(Float32, 1, 4), 0, 1), []float32{0, 1, 2, 3, 0, 0, 0, 0, 8, 9, 10, 11}},
		} {
			got := read(t, s, c.got)
			if len(got) != len(c.want) {
				t.Fatalf("%s: %v", name, got)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("%s: %v, not %v", name, got, c.want)
					break
				}
			}
		}
	})
}
