// Package chisquare tells, in tests, whether counts could have come from a distribution.
package chisquare

import (
	"math"
	"testing"
)

// Check fails unless counts fit probabilities with p > 1e-3 (Pearson's test). What has no
// probability must have no count; cells that expect fewer than 5 are pooled.
func Check(t testing.TB, what string, counts []int, probabilities []float64) {
	t.Helper()
	n := 0
	for _, c := range counts {
		n += c
	}
	statistic, cells := 0.0, 0
	pooledExpected, pooledSeen := 0.0, 0
	add := func(seen int, expected float64) {
		statistic += (float64(seen) - expected) * (float64(seen) - expected) / expected
		cells++
	}
	for i, p := range probabilities {
		expected := p * float64(n)
		switch {
		case p == 0:
			if counts[i] > 0 {
				t.Errorf("%s: value %d came %d times and never should", what, i, counts[i])
			}
		case expected < 5:
			pooledExpected += expected
			pooledSeen += counts[i]
		default:
			add(counts[i], expected)
		}
	}
	if pooledExpected >= 1 {
		add(pooledSeen, pooledExpected)
	}
	if cells < 2 {
		return
	}
	p := upperGamma(float64(cells-1)/2, statistic/2)
	t.Logf("%s: χ² = %.2f over %d cells, %d counts, p = %.4f", what, statistic, cells, n, p)
	if !(p > 1e-3) {
		t.Errorf("%s: counts %v do not follow %v (p = %g)", what, counts, probabilities, p)
	}
}

// upperGamma is the regularized upper incomplete gamma function Q(a, x), by the series of its
// complement below a+1 and by the continued fraction of Legendre above.
func upperGamma(a, x float64) float64 {
	if x <= 0 {
		return 1
	}
	logGamma, _ := math.Lgamma(a)
	scale := math.Exp(a*math.Log(x) - x - logGamma)
	if x < a+1 {
		term := 1 / a
		sum := term
		for n := a + 1; math.Abs(term) > 1e-15*math.Abs(sum); n++ {
			term *= x / n
			sum += term
		}
		return 1 - scale*sum
	}
	// Modified Lentz.
	const tiny = 1e-300
	b := x + 1 - a
	c, d := 1/tiny, 1/b
	h := d
	for i := 1; i < 1000; i++ {
		an := -float64(i) * (float64(i) - a)
		b += 2
		d = 1 / nonzero(an*d+b, tiny)
		c = nonzero(b+an/c, tiny)
		h *= d * c
		if math.Abs(d*c-1) < 1e-15 {
			break
		}
	}
	return scale * h
}

func nonzero(x, tiny float64) float64 {
	if math.Abs(x) < tiny {
		return tiny
	}
	return x
}
