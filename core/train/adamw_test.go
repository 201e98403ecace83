package train

import (
	"math"
	"testing"

	"firesteel/core/internal/threadtest"
	"firesteel/mlxbind"
)

// Two steps of two weights, against the same worked out by hand.
func TestAdamWByHand(t *testing.T) {
	threadtest.On(t, func(s *mlxbind.Scope) {
		weights := []mlxbind.Array{s.Floats([]float32{1, -2}), s.Floats([]float32{0.5}, 1, 1)}
		m := newMoments(s, weights)
		const rate = 0.1
		c := func(v float64) mlxbind.Array { return s.Scalar(v, mlxbind.Float32) }
		step := func(k int, a, b, d float32) float32 {
			first, second := corrections(k)
			slopes := []mlxbind.Array{s.Floats([]float32{a, b}), s.Floats([]float32{d}, 1, 1)}
			var norm mlxbind.Array
			weights, m, norm = adamW(s, weights, slopes, m, c(rate), c(first), c(second))
			return floats(t, s, norm)[0]
		}
		// Norm 13 is clipped to 1: slopes 3/13, -4/13, 12/13. A first step goes by the rate.
		if n := step(1, 3, -4, 12); n != 13 {
			t.Errorf("norm %g", n)
		}
		near(t, "after one step", floats(t, s, weights[0]), []float64{0.9, -1.9})
		near(t, "after one step", floats(t, s, weights[1]), []float64{0.4})
		near(t, "means", floats(t, s, m.first[0]), []float64{0.3 / 13, -0.4 / 13})
		near(t, "squares", floats(t, s, m.second[0]), []float64{0.001 * 9 / 169, 0.001 * 16 / 169})
		// Norm 0.5 stays: the third weight's slope is 0 now, and it still moves.
		step(2, 0.3, 0.4, 0)
		second := func(g1, g2 float64) float64 {
			mean := (0.9*0.1*g1 + 0.1*g2) / (1 - 0.9*0.9)
			square := (0.999*0.001*g1*g1 + 0.001*g2*g2) / (1 - 0.999*0.999)
			return rate * mean / (math.Sqrt(square) + 1e-8)
		}
		near(t, "after two steps", floats(t, s, weights[0]), []float64{0.9 - second(3./13, 0.3), -1.9 - second(-4./13, 0.4)})
		near(t, "after two steps", floats(t, s, weights[1]), []float64{0.4 - second(12./13, 0)})
	})
}

func TestTheRateRisesAndFalls(t *testing.T) {
	rates := make([]float64, 100)
	for k := range rates {
		rates[k] = schedule(k, 4, 100, 2)
	}
	if rates[0] != 0.5 || rates[3] != 2 || rates[4] != 2 {
		t.Errorf("it begins with %v", rates[:5])
	}
	if middle := rates[52]; math.Abs(middle-1.1) > 1e-9 {
		t.Errorf("half way down it is %g", middle)
	}
	if last := schedule(100, 4, 100, 2); math.Abs(last-0.2) > 1e-9 {
		t.Errorf("it ends with %g", last)
	}
}
