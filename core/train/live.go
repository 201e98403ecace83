package train

import (
	"context"

	"firesteel/core/decode"
	"firesteel/core/sample"
	"firesteel/models"
)

// liveTokens is how much of each answer is written to measure, at most.
const liveTokens = 64

// Live is how drafts fare in the loop that writes text.
type Live struct {
	Step     int     `json:"step"`
	Rounds   int     `json:"rounds"`
	Accepted int     `json:"accepted"`
	Tau      float64 `json:"tau"` // tokens a check: Σ(accepted + 1) ÷ rounds
}

// measure has target answer the questions, the likeliest token each time, with drafter's whole
// block checked in every round.
func measure(ctx context.Context, target models.Target, drafter models.Drafter, questions []question, stops func(int) bool, tokens int) (Live, error) {
	var l Live
	knobs := decode.Knobs{Gamma: drafter.Block(), Sampling: sample.Settings{TopP: 1}}
	for _, q := range questions {
		_, err := decode.Run(ctx, q.ids, decode.Config{
			Target: target, Drafter: drafter, Knobs: func() decode.Knobs { return knobs }, MaxTokens: min(tokens, liveTokens), Stop: stops,
			Round: func(r decode.Round) bool {
				if !r.First {
					l.Rounds++
					l.Accepted += r.Accepted
				}
				return true
			},
		})
		if err != nil {
			return l, err
		}
	}
	if l.Rounds > 0 {
		l.Tau = float64(l.Accepted+l.Rounds) / float64(l.Rounds)
	}
	return l, nil
}
