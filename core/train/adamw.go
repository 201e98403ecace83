package train

import (
	"math"

	"firesteel/mlxbind"
)

// AdamW's constants. Nothing decays: the matrices are small beside what they learn from.
const (
	firstDecay  = 0.9
	secondDecay = 0.999
	adamEps     = 1e-8
	clipNorm    = 1.0
)

// moments are what AdamW remembers of each weight: running means of its slope and of the square.
type moments struct{ first, second []mlxbind.Array }

// newMoments are zeros of the shapes of weights.
func newMoments(s *mlxbind.Scope, weights []mlxbind.Array) moments {
	var m moments
	for _, w := range weights {
		m.first = append(m.first, s.Zeros(mlxbind.Float32, w.Shape()...))
		m.second = append(m.second, s.Zeros(mlxbind.Float32, w.Shape()...))
	}
	return m
}

// corrections undo, at step t (from 1), that the moments began at 0: [1−β₁ᵗ, 1−β₂ᵗ].
func corrections(t int) (first, second float64) {
	return 1 - math.Pow(firstDecay, float64(t)), 1 - math.Pow(secondDecay, float64(t))
}

// adamW is one step of Adam with a slope clipped to norm 1 over all weights together:
// w − rate · m̂ ÷ (√v̂ + ε). rate and the corrections are scalars on the device, so that one
// compiled function serves every step. Returns new weights, new moments and the norm before
// clipping.
func adamW(s *mlxbind.Scope, weights, slopes []mlxbind.Array, m moments, rate, first, second mlxbind.Array) ([]mlxbind.Array, moments, mlxbind.Array) {
	c := func(v float64) mlxbind.Array { return s.Scalar(v, mlxbind.Float32) }
	total := c(0)
	for _, g := range slopes {
		total = s.Add(total, s.Sum(s.Reshape(s.Square(g), -1), 0, false))
	}
	norm := s.Sqrt(total)
	shrink := s.Minimum(c(1), s.Divide(c(clipNorm), s.Add(norm, c(1e-6))))
	var next []mlxbind.Array
	var after moments
	for i, w := range weights {
		g := s.Multiply(slopes[i], shrink)
		m1 := s.Add(s.Multiply(c(firstDecay), m.first[i]), s.Multiply(c(1-firstDecay), g))
		m2 := s.Add(s.Multiply(c(secondDecay), m.second[i]), s.Multiply(c(1-secondDecay), s.Square(g)))
		size := s.Add(s.Sqrt(s.Divide(m2, second)), c(adamEps))
		next = append(next, s.Subtract(w, s.Multiply(rate, s.Divide(s.Divide(m1, first), size))))
		after.first, after.second = append(after.first, m1), append(after.second, m2)
	}
	return next, after, norm
}

// schedule is the learning rate at a step from 0: it rises evenly over the warm-up, then falls
// along a cosine to a tenth of peak at the last step.
func schedule(step, warmUp, steps int, peak float64) float64 {
	if step < warmUp {
		return peak * float64(step+1) / float64(warmUp)
	}
	done := float64(step-warmUp) / float64(max(1, steps-warmUp))
	return peak * (0.1 + 0.9*0.5*(1+math.Cos(math.Pi*min(done, 1))))
}
