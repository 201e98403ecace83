// Package confidence is about how sure a drafter says it is: how well that matches what a target
// accepts, how to bring the two together, and which threshold on it pays. It is arithmetic on
// recorded rounds and files of its results; it knows no model.
//
// A round of a full block gives, for each slot k, the confidence logit z_k and whether the whole
// prefix up to k was accepted, y_k. The chance that the head stands for is conditional: that k is
// accepted if everything before it was. So predictions are compared as running products,
// A_k = c_1·…·c_k against y_k (Guo et al. 2017 for the error and for the temperature; sequential
// temperature scaling as in DSpark).
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
