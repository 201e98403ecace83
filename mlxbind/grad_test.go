package mlxbind

import (
	"math"
	"strings"
	"testing"
)

func TestGradients(t *testing.T) {
	// Σ tanh(a·w)² + Σ b, with a constant held back from b's slope.
	build := func(s *Scope, in []Array) []Array {
		y := s.Tanh(s.Matmul(in[2], in[0]))
		still := s.StopGradient(s.Multiply(in[1], in[1]))
		value := s.Add(s.Sum(s.Reshape(s.Square(y), -1), 0, false), s.Sum(s.Add(in[1], still), 0, false))
		return []Array{value, y}
	}
	on(t, func(s *Scope) {
		g, err := ValueAndGrad(build, 2)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		w := []float32{0.3, -0.2, 0.5, 0.7, -0.4, 0.1}
		b, a := s.Floats([]float32{1, 2}), s.Normal(s.Key(3), 4, 3)
		values, gradients := s.Differentiate(g, s.Floats(w, 3, 2), b, a)
		if len(values) != 2 || len(gradients) != 2 {
			t.Fatalf("%d values, %d gradients: %v", len(values), len(gradients), s.Err())
		}
		got := read(t, s, gradients[0])
		at := func(i int, step float32) float64 {
			moved := append([]float32{}, w...)
			moved[i] += step
			return float64(read(t, s, build(s, []Array{s.Floats(moved, 3, 2), b, a})[0])[0])
		}
		for i := range w {
			if slope := (at(i, 1e-2) - at(i, -1e-2)) / 2e-2; math.Abs(slope-float64(got[i])) > 2e-3 {
				t.Errorf("slope %d is %g, not %g", i, got[i], slope)
			}
		}
		for i, v := range read(t, s, gradients[1]) {
			if v != 1 {
				t.Errorf("slope of b[%d] is %g, not 1", i, v)
			}
		}
		compiled, err := Compile(func(s *Scope, in []Array) []Array {
			_, gradients := s.Differentiate(g, in...)
			return gradients
		})
		if err != nil {
			t.Fatal(err)
		}
		defer compiled.Close()
		again := read(t, s, s.Call(compiled, s.Floats(w, 3, 2), b, a)[0])
		for i := range again {
			if math.Abs(float64(again[i]-got[i])) > 1e-5 {
				t.Errorf("compiled, slope %d is %g, not %g", i, again[i], got[i])
			}
		}
	})
}

func TestErrorsInsideGradients(t *testing.T) {
	for name, build := range map[string]Graph{
		"error":        func(s *Scope, in []Array) []Array { return []Array{s.Matmul(in[0], s.Zeros(Float32, 3, 3))} },
		"panic":        func(s *Scope, in []Array) []Array { panic("lost") },
		"not a scalar": func(s *Scope, in []Array) []Array { return in },
	} {
		on(t, func(s *Scope) {
			g, err := ValueAndGrad(build, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			values, gradients := s.Differentiate(g, s.Zeros(Float32, 2, 2))
			if values != nil || gradients != nil || s.Err() == nil {
				t.Errorf("%s went unnoticed", name)
			}
			if name == "panic" && !strings.Contains(s.Err().Error(), "lost") {
				t.Errorf("%v does not say why", s.Err())
			}
		})
	}
}
