package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// BenchmarkGenerate writes one text over and over, with and without drafts.
func BenchmarkGenerate(b *testing.B) {
	e := loaded(b)
	for _, k := range []Knobs{{}, {Gamma: 3}, {Gamma: 5}, {Gamma: 7}} {
		b.Run(fmt.Sprintf("gamma=%d", k.Gamma), func(b *testing.B) {
			tokens, seconds := 0.0, 0.0
			for range b.N {
				r := ask("Tell me a story about Mia and a brave dog.", k)
				r.IgnoreStop, r.MaxTokens = true, 160
				got := generate(b, e, r)
				tokens += float64(len(got.TokenIDs) - 1)
				seconds += float64(len(got.TokenIDs)-1) / got.TokensPerSecond
			}
			b.ReportMetric(tokens/seconds, "tok/s")
		})
	}
}

// TestServe is no test: scripts/bench.py has it answer prompts, a line each, in one process as
// its peers do.
func TestServe(t *testing.T) {
	if os.Getenv("FIRESTEEL_SERVE") == "" {
		t.Skip("for scripts/bench.py only")
	}
	e := loaded(t)
	lines := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	for lines.Scan() {
		var line struct {
			Prompt       string
			Gamma, Limit int
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		r := ask(line.Prompt, Knobs{Gamma: line.Gamma})
		r.MaxTokens = line.Limit
		got, err := e.Generate(context.Background(), r, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := json.Marshal([]any{got.TokensPerSecond, got.TokenIDs})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(string(answer))
	}
}
