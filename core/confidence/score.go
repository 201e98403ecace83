package confidence

import (
	"math"
	"slices"
)

// BinCount is how many bins of equal width, from 0 to 1, reliability is told in.
const BinCount = 20

// Bin is what happened where the prediction fell between two values.
type Bin struct {
	Rounds    int     `json:"rounds"`
	Predicted float64 `json:"predicted"` // mean; 0 without rounds
	Observed  float64 `json:"observed"`  // share in which the prefix was accepted
}

// Score says how good the predictions for one slot are.
type Score struct {
	Rounds    int     `json:"rounds"`
	Error     float64 `json:"ece"`   // expected calibration error: mean distance of Predicted and Observed over Bins, by Rounds
	AUC       float64 `json:"auc"`   // the chance that an accepted prefix was predicted above a rejected one; 0.5 where all went one way
	Brier     float64 `json:"brier"` // mean squared distance from what happened
	Predicted float64 `json:"predicted"`
	Observed  float64 `json:"observed"`
	Bins      []Bin   `json:"bins,omitempty"` // BinCount of them
}

// Judge scores the running products that curves make of the samples, one Score a slot. Without
// curves the logits count as they stand.
func Judge(samples []Sample, curves Curves, block int) []Score {
	scores := make([]Score, block)
	product := ones(len(samples))
	for k := range scores {
		predicted, accepted := column(samples, k, curves.At(k), product)
		scores[k] = score(predicted, accepted)
	}
	return scores
}

// column multiplies product, a number a sample, by what curve makes of slot k, and returns the
// products of the samples that have the slot and whether each was accepted up to there.
func column(samples []Sample, k int, curve Curve, product []float64) (predicted []float64, accepted []bool) {
	for i, s := range samples {
		if k >= len(s.Logits) {
			continue
		}
		product[i] *= curve.Of(float64(s.Logits[k]))
		predicted, accepted = append(predicted, product[i]), append(accepted, s.Accepted > k)
	}
	return predicted, accepted
}

func ones(n int) []float64 { return slices.Repeat([]float64{1}, n) }

func score(predicted []float64, accepted []bool) Score {
	s := Score{Rounds: len(predicted), AUC: auc(predicted, accepted), Bins: bins(predicted, accepted)}
	if s.Rounds == 0 {
		return s
	}
	for i, p := range predicted {
		y := 0.0
		if accepted[i] {
			y = 1
		}
		s.Brier += (p - y) * (p - y)
		s.Predicted += p
		s.Observed += y
	}
	n := float64(s.Rounds)
	s.Brier, s.Predicted, s.Observed = s.Brier/n, s.Predicted/n, s.Observed/n
	for _, b := range s.Bins {
		s.Error += float64(b.Rounds) / n * math.Abs(b.Predicted-b.Observed)
	}
	return s
}

func bins(predicted []float64, accepted []bool) []Bin {
	list := make([]Bin, BinCount)
	for i, p := range predicted {
		b := &list[binOf(p)]
		b.Rounds++
		b.Predicted += p
		if accepted[i] {
			b.Observed++
		}
	}
	for i := range list {
		if n := float64(list[i].Rounds); n > 0 {
			list[i].Predicted /= n
			list[i].Observed /= n
		}
	}
	return list
}

func binOf(p float64) int { return max(0, min(BinCount-1, int(p*BinCount))) }

// auc is the area under the curve of true against false acceptances, equal predictions counted
// half (the Mann-Whitney statistic).
func auc(predicted []float64, accepted []bool) float64 {
	order := make([]int, len(predicted))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case predicted[a] < predicted[b]:
			return -1
		case predicted[a] > predicted[b]:
			return 1
		}
		return 0
	})
	var yes, no, wins float64 // wins: rejected predictions below accepted ones
	for i := 0; i < len(order); {
		j, y, n := i, 0.0, 0.0
		for ; j < len(order) && predicted[order[j]] == predicted[order[i]]; j++ {
			if accepted[order[j]] {
				y++
			} else {
				n++
			}
		}
		wins += y * (no + n/2)
		yes, no, i = yes+y, no+n, j
	}
	if yes == 0 || no == 0 {
		return 0.5
	}
	return wins / (yes * no)
}
