// Package confidence is about how sure a drafter says it is: how well that matches what a target
// accepts, how to bring the two together, and which threshold on it pays. It is arithmetic on
// recorded rounds and files of its results; it knows no model.
//
// A round of a full block gives, for each slot k, the confidence logit z_k and whether the whole
// prefix up to k was accepted, y_k. The chance that the head stands for is conditional: that k is
// accepted if everything before it was. So predictions are compared as running products,
// A_k = c_1·…·c_k against y_k.
//
// Calibration is sequential: slot after slot a curve is chosen for c_k given the calibrated product
// before it. DSpark's sequential temperature scaling does that with one number, a temperature,
// and minimises the calibration error itself; here a curve has three, found by the log loss, which
// is smooth and does not follow the chance in each bin. One is not enough: heads are trained on the
// overlap of two distributions at temperature 1, and where nothing is left to chance what counts
// is that the likeliest tokens agree, so a head is not just too bold or too timid there but off to
// one side. On the built-in pair's greedy texts temperatures alone leave an error of 4 to 6 % in
// the slots from the third on; a shift beside them 2 %, and a slope each for sure and for unsure
// brings the first slot, which a straight line misses at both ends, below that.
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
