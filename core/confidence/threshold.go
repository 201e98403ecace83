package confidence

import "slices"

// Worth is the chance of acceptance, of the prefix up to a draft, from which that draft is worth
// checking.
const Worth = 0.5

// FewForThreshold is how many rounds a slot needs for a threshold of its own.
const FewForThreshold = 50

// Thresholds gives each slot the least confidence seen, as the drafter tells it, such that of the
// drafts at least that sure the share accepted, (accepted+1)/(all+2), reaches worth. Slots that
// are checked anyhow, the first kept, and those with few rounds get 0: nothing is held back. Where
// no confidence will do it is 1. Rounds count whatever became of the slots before, so the share is
// that of the whole prefix.
func Thresholds(samples []Sample, block, kept int, worth float64) []float64 {
	list := make([]float64, block)
	for k := kept; k < block; k++ {
		type draft struct {
			z        float32
			accepted bool
		}
		var drafts []draft
		for _, s := range samples {
			if k < len(s.Logits) {
				if z := s.Logits[k]; z == z { // not NaN
					drafts = append(drafts, draft{z, s.Accepted > k})
				}
			}
		}
		if len(drafts) < FewForThreshold {
			continue
		}
		// From the surest down, so that each is judged with all those surer.
		slices.SortFunc(drafts, func(a, b draft) int {
			switch {
			case a.z > b.z:
				return -1
			case a.z < b.z:
				return 1
			}
			return 0
		})
		list[k] = 1
		accepted := 0.0
		for i, d := range drafts {
			if d.accepted {
				accepted++
			}
			if i+1 < len(drafts) && drafts[i+1].z == d.z {
				continue
			}
			if (accepted+1)/float64(i+3) >= worth {
				list[k] = Sigmoid(float64(d.z))
			}
		}
	}
	return list
}

// Proposed is how many of a round's drafts are checked: those before the first whose confidence,
// as the drafter tells it, is below its slot's threshold, and the first kept in any case. The
// decoding loop follows the same rule.
func (s Sample) Proposed(thresholds []float64, kept int) int {
	for k := kept; k < min(len(s.Logits), len(thresholds)); k++ {
		if float32(Sigmoid(float64(s.Logits[k]))) < float32(thresholds[k]) {
			return k
		}
	}
	return len(s.Logits)
}
