package confidence

import "math"

// Curve turns one slot's logit into a chance: σ(Scale·z + Shift). It never falls with z, so the
// order of rounds within a slot stays.
type Curve struct {
	Scale float64 `json:"scale"` // 1 / temperature
	Shift float64 `json:"shift"`
}

// Plain is the curve of a head that is taken at its word.
var Plain = Curve{Scale: 1}

// Of is the chance that the curve makes of a logit.
func (c Curve) Of(z float64) float64 { return Sigmoid(c.Scale*z + c.Shift) }

// Temperature is what logits are divided by.
func (c Curve) Temperature() float64 { return 1 / c.Scale }

// Curves holds one curve a slot.
type Curves []Curve

// At is slot k's curve; Plain where there is none.
func (c Curves) At(k int) Curve {
	if k < len(c) {
		return c[k]
	}
	return Plain
}

// Few is how many rounds a slot needs for its own curve, and Enough how many for it to be
// trusted wholly: in between it is drawn towards Plain.
const (
	Few    = 200
	Enough = 2000
)

// Fit finds the curves for a block.
func Fit(samples []Sample, block int) Curves {
	return fit(samples, block, temperatureOnly)
}

func fit(samples []Sample, block int, search func(z, before []float64, accepted []bool) Curve) Curves {
	curves := make(Curves, block)
	product := ones(len(samples))
	for k := range curves {
		var z, before []float64
		var accepted []bool
		for i, s := range samples {
			if k < len(s.Logits) {
				z, before = append(z, float64(s.Logits[k])), append(before, product[i])
				accepted = append(accepted, s.Accepted > k)
			}
		}
		curves[k] = Plain
		if len(z) >= Few {
			curves[k] = shrink(search(z, before, accepted), len(z))
		}
		column(samples, k, curves[k], product)
	}
	return curves
}

// shrink draws a curve towards Plain where it rests on few rounds.
func shrink(c Curve, rounds int) Curve {
	w := min(1, float64(rounds)/Enough)
	return Curve{math.Exp(w * math.Log(c.Scale)), w * c.Shift}
}

// Temperatures tried: from a quarter to four, each 2.8 % above the one before.
const (
	temperatureSpan  = 4.0
	temperatureSteps = 101
)

func temperatureAt(i int) float64 {
	return math.Pow(temperatureSpan, 2*float64(i)/(temperatureSteps-1)-1)
}

// temperatureOnly takes the temperature with the least expected calibration error; among equals
// the one with the least squared error.
func temperatureOnly(z, before []float64, accepted []bool) Curve {
	best, bestError, bestBrier := Plain, math.Inf(1), math.Inf(1)
	for i := range temperatureSteps {
		c := Curve{Scale: 1 / temperatureAt(i)}
		e, b := misfit(z, before, accepted, c)
		if e < bestError || e == bestError && b < bestBrier {
			best, bestError, bestBrier = c, e, b
		}
	}
	return best
}

// misfit is the expected calibration error of before·c(z) and the mean squared error.
func misfit(z, before []float64, accepted []bool, c Curve) (calibration, brier float64) {
	var sum [BinCount]float64
	for i := range z {
		p := before[i] * c.Of(z[i])
		d := p
		if accepted[i] {
			d--
		}
		sum[binOf(p)] += d
		brier += d * d
	}
	for _, d := range sum {
		calibration += math.Abs(d)
	}
	n := float64(len(z))
	return calibration / n, brier / n
}
