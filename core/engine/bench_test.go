package engine

import (
	"context"
	"fmt"
	"testing"

	"firesteel/models/chat"
)

func BenchmarkGenerate(b *testing.B) {
	e := loaded(b)
	for _, k := range []Knobs{{}, {Gamma: 3}, {Gamma: 5}, {Gamma: 7}, {Gamma: 7, Threshold: 0.3}, {Gamma: 7, Threshold: 0.5}, {Gamma: 7, Threshold: 0.6}, {Gamma: 7, Threshold: 0.7}} {
		b.Run(fmt.Sprintf("gamma=%d,threshold=%g", k.Gamma, k.Threshold), func(b *testing.B) {
			tokens, seconds := 0.0, 0.0
			for range b.N {
				r, err := e.Generate(context.Background(), Request{
					Messages:  []chat.Message{{Role: "user", Content: "Tell me a story about Mia and a brave dog."}},
					MaxTokens: 160, IgnoreStop: true, Controls: NewControls(k),
				}, nil)
				if err != nil {
					b.Fatal(err)
				}
				tokens += float64(len(r.TokenIDs) - 1)
				seconds += float64(len(r.TokenIDs)-1) / r.TokensPerSecond
			}
			b.ReportMetric(tokens/seconds, "tok/s")
		})
	}
}
