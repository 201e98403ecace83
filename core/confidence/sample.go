// Package confidence is about how sure a drafter says it is: how well that matches what a target
// accepts, how to bring the two together, and which threshold on it pays. It is arithmetic on
// recorded rounds and files of its results; it knows no model.
//
// A round of a full block gives, for each slot k, the confidence logit z_k and whether the whole
// prefix up to k was accepted, y_k. The chance that the head stands for is conditional: that k is
// accepted if everything before it was. So predictions are compared as running products,
// A_k = c_1·…·c_k against y_k.
//
// Calibration is sequential: slot after slot, c_k = σ(z_k/T_k + b_k) is chosen given the product
// before it. That is DSpark's sequential temperature scaling with a shift b_k beside the
// temperature (Platt 1999), and with the log loss in place of the calibration error itself, which
// is no smooth function and follows the chance in each bin. The shift is needed: heads are trained
// on the overlap of two distributions at temperature 1, and where nothing is left to chance what
// counts is that the likeliest tokens agree, so heads are not just too bold or too timid there but
// off to one side, which no temperature mends. With the built-in pair's greedy texts temperatures alone leave
// an error of 4 to 6 % in the slots from the third on, with the shift it is about 2 %.
package confidence

import "math"

// Sample is one round in which the whole block was checked.
type Sample struct {
	// Logits are the confidence logits of the slots that count, the first first: those past an
	// accepted stop token say nothing.
	Logits   []float32 `json:"z"`
	Accepted int       `json:"k"` // leading drafts that the target kept; at most len(Logits)
}

// Usable tells whether every number in it is finite.
func (s Sample) Usable() bool {
	for _, z := range s.Logits {
		if math.IsNaN(float64(z)) || math.IsInf(float64(z), 0) {
			return false
		}
	}
	return true
}

// Sigmoid is the logistic function.
func Sigmoid(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
