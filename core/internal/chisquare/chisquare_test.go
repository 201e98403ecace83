package chisquare

import (
	"math"
	"testing"
)

func TestTailAgreesWithTables(t *testing.T) {
	// Critical values of χ² from the usual tables: 0.05 and 0.001.
	for _, c := range []struct {
		degrees int
		x, p    float64
	}{{1, 3.841, 0.05}, {5, 11.070, 0.05}, {10, 18.307, 0.05}, {5, 20.515, 0.001}, {30, 59.703, 0.001}} {
		if got := upperGamma(float64(c.degrees)/2, c.x/2); math.Abs(got-c.p) > 2e-4*c.p+1e-6 && math.Abs(got-c.p) > 5e-5 {
			t.Errorf("%d degrees, %g: %g, want %g", c.degrees, c.x, got, c.p)
		}
	}
}
