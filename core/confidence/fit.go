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

// Back is the confidence, as the drafter tells it, that the curve makes chance of: to ask whether
// one is below the other is to ask whether what they become is. 0 and 1 stay.
func (c Curve) Back(chance float64) float64 {
	return Sigmoid((math.Log(chance/(1-chance)) - c.Shift) / c.Scale)
}

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

// Back is, for each slot of a block, the confidence as the drafter tells it that chance stands for.
func (c Curves) Back(chance float64, block int) []float64 {
	list := make([]float64, block)
	for k := range list {
		list[k] = c.At(k).Back(chance)
	}
	return list
}

// Few is how many rounds a slot needs for its own curve, and Enough how many for it to be
// trusted wholly: in between it is drawn towards Plain.
const (
	Few    = 200
	Enough = 2000
)

// Fit finds the curves for a block, slot after slot: each is the one under which the running
// product, calibrated up to the slot before, best explains what was accepted.
func Fit(samples []Sample, block int) Curves {
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

// The search begins with steps of firstStep, in the logarithm of the scale and in the shift, and
// ends when steps of lastStep no longer help. A scale stays within widest and its inverse.
const (
	firstStep = 0.5
	lastStep  = 0.01
	widest    = 8.0
)

// search finds the curve with the least log loss of before·c(z): a pattern search, which is
// enough for two numbers and gives the same for any order of rounds but for rounding.
func search(z, before []float64, accepted []bool) Curve {
	best, least := Plain, loss(z, before, accepted, Plain)
	for step := firstStep; step >= lastStep; {
		moved := false
		for _, d := range [][2]float64{{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, 1}, {-1, -1}, {1, -1}, {-1, 1}} {
			c := Curve{best.Scale * math.Exp(step*d[0]), best.Shift + step*d[1]}
			if c.Scale > widest || c.Scale < 1/widest {
				continue
			}
			if l := loss(z, before, accepted, c); l < least {
				best, least, moved = c, l, true
				break
			}
		}
		if !moved {
			step /= 2
		}
	}
	return best
}

// loss is the mean of −ln of the chance given to what happened. No chance counts as less than
// surprise, so that a single round can't outweigh all others.
func loss(z, before []float64, accepted []bool, c Curve) float64 {
	const surprise = 1e-9
	sum := 0.0
	for i := range z {
		p := before[i] * c.Of(z[i])
		if !accepted[i] {
			p = 1 - p
		}
		sum -= math.Log(max(p, surprise))
	}
	return sum / float64(len(z))
}
