package gemma4

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"pgregory.net/rapid"

	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/decoder"
	"firesteel/models/internal/mlxtest"
	"firesteel/models/nn"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("FIRESTEEL_LONG") == "" {
		flag.Set("rapid.checks", "30")
	}
	os.Exit(m.Run())
}

func open(t testing.TB, fixture string) *decoder.Target {
	target, err := Load(context.Background(), mlxtest.Golden(t, fixture), nil)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// feed reads tokens and returns the logits of the last.
func feed(target *decoder.Target, state models.State, tokens []int32) ([]float32, error) {
	s := mlxbind.NewScope()
	defer s.Close()
	hidden, _ := target.Forward(s, state, s.Ints(tokens), nil)
	n := hidden.Dim(0)
	return s.ReadFloats(target.Logits(s, s.Slice(hidden, 0, n-1, n)))
}

// lastRows reads, for each layer, the rows that the next query could see.
func lastRows(target *decoder.Target, state *nn.State) ([][]float32, error) {
	s := mlxbind.NewScope()
	defer s.Close()
	var all [][]float32
	for _, c := range state.Caches {
		n := c.Seen(1) - 1
		if n == 0 {
			all = append(all, nil)
			continue
		}
		rows, err := s.ReadFloats(c.Last(s, n))
		if err != nil {
			return nil, err
		}
		all = append(all, rows)
	}
	return all, s.Err()
}

// However tokens come in and go again, the caches end as a fresh reading of what is left
// would leave them, also past the sliding window.
func TestRollbackLeavesTheCachesOfAFreshReading(t *testing.T) {
	for _, fixture := range []string{"gemma4-12b-like", "gemma4-e4b-like"} {
		t.Run(fixture, func(t *testing.T) { rollBack(t, fixture) })
	}
}

func rollBack(t *testing.T, fixture string) {
	var target *decoder.Target
	mlxtest.On(t, func(*mlxbind.Scope) { target = open(t, fixture) })
	defer mlxtest.On(t, func(*mlxbind.Scope) { target.Close() })
	rapid.Check(t, func(r *rapid.T) {
		steps := rapid.IntRange(1, 14).Draw(r, "steps")
		var failure string
		mlxtest.On(t, func(*mlxbind.Scope) {
			state := target.NewState().(*nn.State)
			defer state.Close()
			var text []int32
			for i := range steps {
				n := rapid.IntRange(1, 9).Draw(r, "rows")
				if i == 0 {
					n = rapid.IntRange(1, 40).Draw(r, "prompt")
				}
				fresh := make([]int32, n)
				for j := range fresh {
					fresh[j] = int32(rapid.IntRange(0, 319).Draw(r, "token"))
				}
				if _, err := feed(target, state, fresh); err != nil {
					failure = err.Error()
					return
				}
				text = append(text, fresh...)
				k := rapid.IntRange(0, n-1).Draw(r, "dropped")
				if err := state.Drop(k); err != nil {
					failure = err.Error()
					return
				}
				text = text[:len(text)-k]
			}
			again := target.NewState().(*nn.State)
			defer again.Close()
			if _, err := feed(target, again, text); err != nil {
				failure = err.Error()
				return
			}
			if state.Position() != len(text) || again.Position() != len(text) {
				failure = fmt.Sprintf("position %d after %d tokens", state.Position(), len(text))
				return
			}
			got, err := lastRows(target, state)
			want, err2 := lastRows(target, again)
			if err != nil || err2 != nil {
				failure = fmt.Sprint(err, err2)
				return
			}
			for i := range want {
				if d := mlxtest.Far(got[i], want[i]); !(d < 1e-4) {
					failure = fmt.Sprintf("layer %d: rows differ by %g", i, d)
					return
				}
			}
			a, err := feed(target, state, []int32{7})
			b, err2 := feed(target, again, []int32{7})
			if d := mlxtest.Far(a, b); err != nil || err2 != nil || !(d < 1e-4) {
				failure = fmt.Sprintf("logits differ by %g (%v, %v)", d, err, err2)
			}
		})
		if failure != "" {
			r.Fatal(failure)
		}
	})
}

func TestSlidingCachesStayFlat(t *testing.T) {
	mlxtest.On(t, func(*mlxbind.Scope) {
		target := open(t, "gemma4-12b-like")
		defer target.Close()
		state := target.NewState().(*nn.State)
		defer state.Close()
		sliding := func() (bytes int64) {
			for _, c := range state.Caches {
				if c.Window() > 0 {
					bytes += c.Bytes()
				}
			}
			return bytes
		}
		var early int64
		for i := range 400 {
			if _, err := feed(target, state, []int32{1, 2, 3, 4, 5}); err != nil {
				t.Fatal(err)
			}
			if err := state.Drop(3); err != nil {
				t.Fatal(err)
			}
			if i == 100 {
				early = sliding()
			}
		}
		if late := sliding(); late > early {
			t.Errorf("sliding caches grew from %d to %d bytes", early, late)
		}
		if err := state.Drop(330); err == nil {
			t.Error("rows that are gone were dropped again")
		}
	})
}

func TestTapsChangeNothing(t *testing.T) {
	mlxtest.On(t, func(*mlxbind.Scope) {
		target := open(t, "gemma4-12b-like")
		defer target.Close()
		tokens := []int32{5, 9, 200, 3, 17, 42, 8, 8, 1, 100}
		run := func(taps []int) []float32 {
			state := target.NewState()
			defer state.Close()
			s := mlxbind.NewScope()
			defer s.Close()
			hidden, tapped := target.Forward(s, state, s.Ints(tokens), taps)
			if len(tapped) != len(taps) {
				t.Fatalf("%d taps of %d", len(tapped), len(taps))
			}
			values, err := s.ReadFloats(hidden)
			if err != nil {
				t.Fatal(err)
			}
			return values
		}
		if d := mlxtest.Far(run(nil), run([]int{-1, 0, 3, 6})); d != 0 {
			t.Errorf("tapping moves the result by %g", d)
		}
	})
}
