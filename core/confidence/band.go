package confidence

import "math"

// Band is a range of temperatures that share one calibration: what is accepted changes with it.
type Band struct {
	Name  string  // as files and reports call it
	Above float64 // temperatures above this
	UpTo  float64 // and up to this
}

// greedy is the temperature below which the likeliest token is always taken.
const greedy = 1e-5

// Bands are all of them, from cold to hot. The first is apart: nothing is left to chance there.
var Bands = []Band{
	{"greedy", math.Inf(-1), math.Nextafter(greedy, 0)},
	{"low", math.Nextafter(greedy, 0), 0.5},
	{"medium", 0.5, 0.9},
	{"high", 0.9, 1.25},
	{"very high", 1.25, math.Inf(1)},
}

// BandOf is the band that a temperature lies in.
func BandOf(temperature float64) Band {
	for _, b := range Bands {
		if temperature > b.Above && temperature <= b.UpTo {
			return b
		}
	}
	return Bands[len(Bands)-1]
}
