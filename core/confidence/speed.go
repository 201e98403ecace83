package confidence

import "slices"

// Costs are the times of rounds, in seconds.
type Costs struct {
	// Round[l] is a round that drafts the whole block and checks l of it.
	Round []float64 `json:"round_seconds"`
	// Plain is a token written without a drafter.
	Plain float64 `json:"plain_seconds"`
}

// Timing gathers how long rounds of each length took.
type Timing struct{ seconds [][]float64 }

// Add takes one round in that checked l drafts.
func (t *Timing) Add(l int, seconds float64) {
	for len(t.seconds) <= l {
		t.seconds = append(t.seconds, nil)
	}
	t.seconds[l] = append(t.seconds[l], seconds)
}

// Rounds is how many rounds checked l drafts.
func (t *Timing) Rounds(l int) int {
	if l >= len(t.seconds) {
		return 0
	}
	return len(t.seconds[l])
}

// Curve is the time of a round for each length from 0 to block: medians, made not to fall with
// the length, lengths that were not seen in between or beside those that were. nil without rounds.
func (t *Timing) Curve(block int) []float64 {
	var at []int
	var value, weight []float64
	for l := 0; l <= block; l++ {
		if n := t.Rounds(l); n > 0 {
			at, value, weight = append(at, l), append(value, median(t.seconds[l])), append(weight, float64(n))
		}
	}
	if len(at) == 0 {
		return nil
	}
	rising(value, weight)
	curve := make([]float64, block+1)
	next := 0
	for l := range curve {
		for next < len(at) && at[next] < l {
			next++
		}
		switch {
		case next == len(at):
			curve[l] = value[next-1]
		case at[next] == l || next == 0:
			curve[l] = value[next]
		default:
			share := float64(l-at[next-1]) / float64(at[next]-at[next-1])
			curve[l] = value[next-1] + share*(value[next]-value[next-1])
		}
	}
	return curve
}

// rising replaces values by the nearest that do not fall (pool adjacent violators).
func rising(value, weight []float64) {
	type pool struct {
		sum, weight float64
		n           int
	}
	var pools []pool
	for i, v := range value {
		p := pool{v * weight[i], weight[i], 1}
		for len(pools) > 0 {
			last := pools[len(pools)-1]
			if last.sum/last.weight <= p.sum/p.weight {
				break
			}
			p = pool{last.sum + p.sum, last.weight + p.weight, last.n + p.n}
			pools = pools[:len(pools)-1]
		}
		pools = append(pools, p)
	}
	i := 0
	for _, p := range pools {
		for range p.n {
			value[i] = p.sum / p.weight
			i++
		}
	}
}

func median(list []float64) float64 {
	sorted := slices.Clone(list)
	slices.Sort(sorted)
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Speed is what a threshold would bring, worked out from rounds in which everything was checked.
type Speed struct {
	Threshold float64 `json:"threshold"`       // one for all slots; 0 where Slots is set
	Slots     bool    `json:"slots,omitempty"` // each slot its own
	Checked   float64 `json:"checked"`         // drafts checked a round
	Tau       float64 `json:"tau"`             // tokens a round
	PerSecond float64 `json:"tokens_per_second"`
}

// Predict tells what speed thresholds, for confidences as the drafter tells them, give: had a round checked its first l drafts only, it would
// have kept as many as lie before the first rejected one, and the target's own token. Which rounds
// come is taken as given.
func Predict(samples []Sample, thresholds []float64, kept int, costs Costs) Speed {
	var s Speed
	var tokens, checked, seconds float64
	for _, sample := range samples {
		l := sample.Proposed(thresholds, kept)
		checked += float64(l)
		tokens += float64(min(sample.Accepted, l) + 1)
		if l < len(costs.Round) {
			seconds += costs.Round[l]
		}
	}
	if n := float64(len(samples)); n > 0 {
		s.Checked, s.Tau = checked/n, tokens/n
	}
	if seconds > 0 {
		s.PerSecond = tokens / seconds
	}
	return s
}
