package confidence

import "math"

// Curve turns one slot's logit into a chance,
//
//	σ(Sure·ln(1+eᶻ) − Unsure·ln(1+e⁻ᶻ) + Shift),
//
// which for equal slopes is σ(slope·z + Shift): Sure is the slope where the drafter is sure, Unsure
// where it is not (beta calibration: Kull, Silva Filho and Flach 2017). It never falls with z, so
// the order of rounds within a slot stays.
type Curve struct {
	Sure   float64 `json:"sure"`
	Unsure float64 `json:"unsure"`
	Shift  float64 `json:"shift"`
}

// Plain is the curve of a head that is taken at its word.
var Plain = Curve{Sure: 1, Unsure: 1}

// Of is the chance that the curve makes of a logit.
func (c Curve) Of(z float64) float64 {
	rest := math.Log1p(math.Exp(-math.Abs(z)))
	return Sigmoid(c.Sure*(max(z, 0)+rest) - c.Unsure*(max(-z, 0)+rest) + c.Shift)
}

// farthest is a logit beyond which float32 knows no chance but 0 and 1.
const farthest = 110

// Back is the confidence, as the drafter tells it, that the curve makes chance of: to ask whether
// one is below the other is to ask whether what they become is. 0 and 1 stay.
func (c Curve) Back(chance float64) float64 {
	if chance <= 0 || chance >= 1 {
		return chance
	}
	low, high := -float64(farthest), float64(farthest)
	for range 60 {
		if z := (low + high) / 2; c.Of(z) < chance {
			low = z
		} else {
			high = z
		}
	}
	return Sigmoid(high)
}

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

// Few is how many rounds a slot needs for its own curve.
const Few = 200

// prior is how strongly a curve is drawn to Plain, an inverse variance: it decides where rounds are few or
// say nothing, and gives way where they are many.
const prior = 10

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
			curves[k] = search(z, before, accepted)
		}
		column(samples, k, curves[k], product)
	}
	return curves
}

// evidence is what a slot's curve is found from: for each round the logit as the curve's slopes
// meet it, the calibrated product before the slot, and whether the prefix was accepted.
type evidence struct {
	sure, unsure, before []float64 // ln(1+eᶻ), ln(1+e⁻ᶻ), A
	accepted             []bool
}

// search finds the curve that best explains what was accepted by before·c(z), by log loss: steps
// of Fisher's scoring in the logarithms of the slopes and in the shift, each as bold as still helps.
func search(z, before []float64, accepted []bool) Curve {
	e := evidence{make([]float64, len(z)), make([]float64, len(z)), before, accepted}
	for i, z := range z {
		rest := math.Log1p(math.Exp(-math.Abs(z)))
		e.sure[i], e.unsure[i] = max(z, 0)+rest, max(-z, 0)+rest
	}
	const (
		steps   = 100
		settled = 1e-9 // of the loss
	)
	var at [3]float64 // ln Sure, ln Unsure, Shift
	least := e.loss(at)
	for timid, i := 1e-3, 0; i < steps && timid < 1e9; i++ {
		down, curvature := e.slope(at)
		for j := range 3 {
			curvature[j][j] *= 1 + timid
		}
		next := at
		for j, d := range solve(curvature, down) {
			next[j] += d
		}
		l := e.loss(next)
		if !(l < least) {
			timid *= 10
			continue
		}
		gain := least - l
		at, least, timid = next, l, timid/10
		if gain < settled*least {
			break
		}
	}
	return curveOf(at)
}

func curveOf(at [3]float64) Curve { return Curve{math.Exp(at[0]), math.Exp(at[1]), at[2]} }

// surprise is the least chance that what happened can have had, so that a single round can't
// outweigh all others.
const surprise = 1e-9

// loss is the sum of −ln of the chance given to what happened, and the pull of prior.
func (e evidence) loss(at [3]float64) float64 {
	c := curveOf(at)
	sum := 0.0
	for i, y := range e.accepted {
		p := e.before[i] * Sigmoid(c.Sure*e.sure[i]-c.Unsure*e.unsure[i]+c.Shift)
		if !y {
			p = 1 - p
		}
		sum -= math.Log(max(p, surprise))
	}
	for _, v := range at {
		sum += prior / 2 * v * v
	}
	return sum
}

// slope is the direction in which loss falls, and how fast that changes: Fisher's information.
func (e evidence) slope(at [3]float64) (down [3]float64, curvature [3][3]float64) {
	c := curveOf(at)
	for i, y := range e.accepted {
		by := [3]float64{c.Sure * e.sure[i], -c.Unsure * e.unsure[i], 1}
		chance := Sigmoid(by[0] + by[1] + c.Shift)
		p := min(max(e.before[i]*chance, surprise), 1-surprise)
		grow := p * (1 - chance) // how p changes with what is in σ
		pull := -grow / (1 - p)
		if y {
			pull = grow / p
		}
		weight := grow * grow / (p * (1 - p))
		for j := range 3 {
			down[j] += pull * by[j]
			for k := range 3 {
				curvature[j][k] += weight * by[j] * by[k]
			}
		}
	}
	for j, v := range at {
		down[j] -= prior * v
		curvature[j][j] += prior
	}
	return down, curvature
}

// solve returns x with a·x = b, a being symmetric and positive.
func solve(a [3][3]float64, b [3]float64) (x [3]float64) {
	for i := range 3 {
		for r := i + 1; r < 3; r++ {
			f := a[r][i] / a[i][i]
			for c := i; c < 3; c++ {
				a[r][c] -= f * a[i][c]
			}
			b[r] -= f * b[i]
		}
	}
	for i := 2; i >= 0; i-- {
		x[i] = b[i]
		for c := i + 1; c < 3; c++ {
			x[i] -= a[i][c] * x[c]
		}
		x[i] /= a[i][i]
	}
	return x
}
