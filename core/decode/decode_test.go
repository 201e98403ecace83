package decode

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"firesteel/core/internal/chisquare"
	"firesteel/core/internal/threadtest"
	"firesteel/core/sample"
	"firesteel/mlxbind"
	"firesteel/models"
)

func TestMain(m *testing.M) { threadtest.Main(m) }

// A chain is a model whose next token depends on the last one alone: its distribution is
// known, so what the loop writes can be held against it. It serves as target and as drafter.
type chain struct {
	table   [][]float32 // logits of the next token by the last
	context int
	failAt  string // the call that fails
	kept    int
}

type position struct{ n int }

func (p *position) Position() int            { return p.n }
func (p *position) Drop(n int) error         { p.n -= n; return nil }
func (p *position) Bytes() int64             { return int64(p.n) }
func (p *position) Close()                   {}
func (p *position) Buffers() []mlxbind.Array { return nil }

func (c *chain) Geometry() models.Geometry {
	return models.Geometry{Layers: 1, Hidden: 1, Vocabulary: len(c.table), Context: c.context}
}
func (c *chain) NewState() models.State     { return &position{} }
func (c *chain) NewContext() models.Context { return &position{} }
func (c *chain) Bytes() int64               { return 0 }
func (c *chain) Close()                     {}
func (c *chain) Block() int                 { return 5 }
func (c *chain) Taps() []int                { return []int{0} }
func (c *chain) HasConfidence() bool        { return true }
func (c *chain) Fit(int)                    {}
func (c *chain) Thresholds() []float64      { return nil }
func (c *chain) Kept() int                  { return c.kept }

func (c *chain) Forward(s *mlxbind.Scope, state models.State, tokens mlxbind.Array, taps []int) (mlxbind.Array, []mlxbind.Array) {
	state.(*position).n += tokens.Dim(0)
	if c.failAt == "forward" {
		s.Matmul(s.Zeros(mlxbind.Float32, 3, 4), s.Zeros(mlxbind.Float32, 3, 4))
	}
	hidden := s.Reshape(s.AsType(tokens, mlxbind.Float32), -1, 1)
	tapped := make([]mlxbind.Array, len(taps))
	for i := range tapped {
		tapped[i] = hidden
	}
	return hidden, tapped
}

func (c *chain) rows(s *mlxbind.Scope, tokens mlxbind.Array) mlxbind.Array {
	var flat []float32
	for _, r := range c.table {
		flat = append(flat, r...)
	}
	return s.Take(s.Floats(flat, len(c.table), len(c.table)), tokens, 0)
}

func (c *chain) Logits(s *mlxbind.Scope, hidden mlxbind.Array) mlxbind.Array {
	return c.rows(s, s.AsType(s.Reshape(hidden, -1), mlxbind.Int32))
}

func (c *chain) Embed(s *mlxbind.Scope, tokens mlxbind.Array) mlxbind.Array { return c.rows(s, tokens) }

func (c *chain) Extend(s *mlxbind.Scope, context models.Context, tapped []mlxbind.Array) {
	context.(*position).n += tapped[0].Dim(0)
}

func (c *chain) Draft(s *mlxbind.Scope, context models.Context, from models.Anchor, n int, choose models.Chooser, confidence bool) models.Draft {
	if c.failAt == "draft" {
		s.Matmul(s.Zeros(mlxbind.Float32, 3, 4), s.Zeros(mlxbind.Float32, 3, 4))
	}
	var tokens, distributions, sure []mlxbind.Array
	previous := s.AsType(from.Token, mlxbind.Int32)
	for k := range n {
		logits := c.rows(s, previous)
		// A confidence may know the token before, never its own.
		low := s.Equal(previous, s.Scalar(0, mlxbind.Int32))
		sure = append(sure, s.Where(low, s.Scalar(-1, mlxbind.Float32), s.Scalar(1, mlxbind.Float32)))
		if choose == nil {
			previous = s.AsType(s.ArgMax(logits, -1, false), mlxbind.Int32)
		} else {
			var q mlxbind.Array
			previous, q = choose(s, k, logits)
			previous = s.AsType(previous, mlxbind.Int32)
			distributions = append(distributions, q)
		}
		tokens = append(tokens, previous)
	}
	d := models.Draft{Tokens: s.Concatenate(0, tokens...)}
	if choose != nil {
		d.LogDistributions = s.Concatenate(0, distributions...)
	}
	if confidence {
		d.ConfidenceLogits = s.Concatenate(0, sure...)
	}
	return d
}

var target = &chain{context: 1 << 30, table: [][]float32{
	{0.5, 1, -1, 2, 0}, {1, 0, 1.5, -1, 0.3}, {2, 0, 1, -0.5, 1}, {0, 1, 1, 0.2, -1}, {-1, 2, 0.5, 0.5, 0},
}}
var drafter = &chain{table: [][]float32{
	{1, 1, 0, 1, 0}, {0, 1, 1, 0, 0.5}, {1, 0.5, 0, 0, 1}, {0.3, 0, 1.5, 1, -1}, {0, 1, 0, 1.2, 0.4},
}}

// write runs the loop and returns its tokens and rounds.
func write(t testing.TB, c Config) (tokens []int, rounds []Round, end End, err error) {
	t.Helper()
	c.Round = func(r Round) bool {
		tokens = append(tokens, r.Emitted...)
		rounds = append(rounds, r)
		return true
	}
	if c.Stop == nil {
		c.Stop = func(int) bool { return false }
	}
	err = threadtest.Thread.Do(context.Background(), func() error {
		end, err = Run(context.Background(), []int{1, 2}, c)
		return err
	})
	return tokens, rounds, end, err
}

func fixed(k Knobs) func() Knobs { return func() Knobs { return k } }

func TestWholeRoundsFollowTheTarget(t *testing.T) {
	tokens, enough := 1500, 450
	if os.Getenv("FIRESTEEL_LONG") != "" {
		tokens, enough = 16_000, 5000
	}
	for _, c := range []struct {
		sampling  sample.Settings
		threshold float64
	}{
		{sample.Settings{Temperature: 0.3, TopP: 1}, 0}, {sample.Settings{Temperature: 1, TopP: 1}, 0},
		{sample.Settings{Temperature: 2, TopP: 1}, 0}, {sample.Settings{Temperature: 1, TopP: 0.8}, 0},
		{sample.Settings{Temperature: 1, TopP: 1}, 0.5},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			t.Parallel()
			got, rounds, _, err := write(t, Config{Target: target, Drafter: drafter, Seed: 11, MaxTokens: tokens,
				Knobs: fixed(Knobs{Gamma: 3, Thresholds: Uniform(drafter, c.threshold), Sampling: c.sampling})})
			if err != nil {
				t.Fatal(err)
			}
			if len(rounds) < enough {
				t.Fatalf("only %d rounds", len(rounds))
			}
			v := len(target.table)
			counts := make([][]int, v)
			for i := range counts {
				counts[i] = make([]int, v)
			}
			for i := 1; i < len(got); i++ {
				counts[got[i-1]][got[i]]++
			}
			for last, row := range target.table {
				var want []float64
				err := threadtest.Thread.Do(context.Background(), func() error {
					s := mlxbind.NewScope()
					defer s.Close()
					p, err := s.ReadFloats(s.Exp(sample.LogDistribution(s, s.Floats(row, 1, v), c.sampling)))
					for _, x := range p {
						if x < 1e-12 {
							x = 0
						}
						want = append(want, float64(x))
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				chisquare.Check(t, fmt.Sprintf("after %d", last), counts[last], want)
			}
		})
	}
}

func TestSameSeedSameText(t *testing.T) {
	knobs := fixed(Knobs{Gamma: 3, Sampling: sample.Settings{Temperature: 1, TopP: 1}})
	run := func(seed uint64) []int {
		got, _, _, err := write(t, Config{Target: target, Drafter: drafter, Seed: seed, MaxTokens: 64, Knobs: knobs})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := run(1)
	if other := run(2); slices.Equal(first, other) {
		t.Error("two seeds wrote the same text")
	}
	if again := run(1); !slices.Equal(first, again) {
		t.Error("one seed wrote two texts")
	}
}

func TestOneReadARound(t *testing.T) {
	for _, k := range []Knobs{{}, {Gamma: 5}, {Gamma: 5, Thresholds: Uniform(drafter, 0.5)}, {Gamma: 4, Sampling: sample.Settings{Temperature: 1, TopP: 1}}} {
		before := mlxbind.HostReads()
		_, rounds, _, err := write(t, Config{Target: target, Drafter: drafter, MaxTokens: 50, Knobs: fixed(k)})
		if err != nil {
			t.Fatal(err)
		}
		if reads := mlxbind.HostReads() - before; reads > int64(len(rounds)) {
			t.Errorf("%+v: %d reads in %d rounds, the first token's among them", k, reads, len(rounds))
		}
	}
}

func TestThresholdKeepsWhatComesBeforeTheFirstDoubt(t *testing.T) {
	_, rounds, _, err := write(t, Config{Target: target, Drafter: drafter, MaxTokens: 200, Trace: true,
		Knobs: fixed(Knobs{Gamma: 5, Thresholds: Uniform(drafter, 0.5)})})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rounds[1:] {
		want := len(r.Draft)
		for j, z := range r.ConfidenceLogits {
			if z < 0 {
				want = j
				break
			}
		}
		if r.Proposed != want {
			t.Errorf("%d proposed of %v with %v", r.Proposed, r.Draft, r.ConfidenceLogits)
		}
	}
}

func TestThresholdsHoldForTheirOwnSlotAndLeaveWhatIsKept(t *testing.T) {
	careful := *drafter
	careful.kept = 1
	thresholds := []float64{0.9, 0.5, 0, 0.5} // the fifth slot has none
	_, rounds, _, err := write(t, Config{Target: target, Drafter: &careful, MaxTokens: 200,
		Knobs: fixed(Knobs{Gamma: 5, Thresholds: thresholds})})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, r := range rounds[1:] {
		want := len(r.Draft)
		for j, z := range r.ConfidenceLogits {
			if j >= 1 && j < len(thresholds) && 1/(1+math.Exp(-float64(z))) < thresholds[j] {
				want = j
				break
			}
		}
		if r.Proposed != want {
			t.Errorf("%d proposed of %v with %v", r.Proposed, r.Draft, r.ConfidenceLogits)
		}
		seen[r.Proposed] = true
	}
	if seen[0] || !seen[1] || !seen[3] {
		t.Errorf("drafts of lengths %v", seen)
	}
}

func TestGreedyIsPlainForEveryGammaAndThreshold(t *testing.T) {
	plain, _, _, err := write(t, Config{Target: target, MaxTokens: 100, Knobs: fixed(Knobs{})})
	if err != nil {
		t.Fatal(err)
	}
	for gamma := 0; gamma <= 5; gamma++ {
		for _, threshold := range []float64{0, 0.5, 0.9} {
			got, _, _, err := write(t, Config{Target: target, Drafter: drafter, MaxTokens: 100, Knobs: fixed(Knobs{Gamma: gamma, Thresholds: Uniform(drafter, threshold)})})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, plain) {
				t.Errorf("gamma %d, threshold %g: another text", gamma, threshold)
			}
		}
	}
}

func TestEnds(t *testing.T) {
	short := *target
	short.context = 12
	for _, c := range []struct {
		name   string
		target *chain
		max    int
		stop   func(int) bool
		end    End
		tokens int // 0: any
	}{
		{"limit", target, 7, nil, EndLimit, 7},
		{"limit of one", target, 1, nil, EndLimit, 1},
		{"context", &short, 100, nil, EndContext, 11},
		{"stop", target, 100, func(token int) bool { return token == 3 }, EndStop, 0},
	} {
		for _, gamma := range []int{0, 1, 5} {
			got, _, end, err := write(t, Config{Target: c.target, Drafter: drafter, MaxTokens: c.max, Stop: c.stop,
				Knobs: fixed(Knobs{Gamma: gamma, Sampling: sample.Settings{Temperature: 1, TopP: 1}})})
			if err != nil {
				t.Fatal(err)
			}
			if end != c.end || c.tokens > 0 && len(got) != c.tokens {
				t.Errorf("%s, gamma %d: end %d after %d tokens", c.name, gamma, end, len(got))
			}
			if c.end == EndStop && (got[len(got)-1] != 3 || slices.Contains(got[:len(got)-1], 3)) {
				t.Errorf("%s, gamma %d: %v does not end at the first stop token", c.name, gamma, got)
			}
		}
	}
}

func TestErrorsLeaveTheThreadUsable(t *testing.T) {
	broken := *target
	broken.failAt = "forward"
	if _, _, _, err := write(t, Config{Target: &broken, MaxTokens: 5, Knobs: fixed(Knobs{})}); err == nil {
		t.Error("a failing forward pass went unnoticed")
	}
	unable := *drafter
	unable.failAt = "draft"
	if _, _, _, err := write(t, Config{Target: target, Drafter: &unable, MaxTokens: 5, Knobs: fixed(Knobs{Gamma: 2})}); err == nil {
		t.Error("a failing draft went unnoticed")
	}
	for _, wild := range []float32{float32(math.Inf(1)), float32(math.NaN())} {
		sick := &chain{context: 100, table: [][]float32{{0, 1, 0}, {0, 0, wild}, {wild, wild, wild}}}
		if _, _, _, err := write(t, Config{Target: sick, MaxTokens: 20, Knobs: fixed(Knobs{})}); err != ErrNotFinite {
			t.Errorf("%g among the logits: %v", wild, err)
		}
	}
	if got, _, _, err := write(t, Config{Target: target, MaxTokens: 5, Knobs: fixed(Knobs{})}); err != nil || len(got) != 5 {
		t.Errorf("afterwards: %v, %v", got, err)
	}
}

func TestCancelEndsWithinARound(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	rounds := 0
	err := threadtest.Thread.Do(context.Background(), func() error {
		_, err := Run(ctx, []int{1}, Config{Target: target, Drafter: drafter, MaxTokens: 1 << 20, Knobs: fixed(Knobs{Gamma: 2}),
			Stop: func(int) bool { return false },
			Round: func(Round) bool {
				if rounds++; rounds == 3 {
					cancel()
				}
				return true
			}})
		return err
	})
	if err != context.Canceled || rounds != 3 {
		t.Errorf("%v after %d rounds", err, rounds)
	}
}

func TestKnobsChangeFromRoundToRound(t *testing.T) {
	gamma := 0
	_, rounds, _, err := write(t, Config{Target: target, Drafter: drafter, MaxTokens: 60, Knobs: func() Knobs {
		gamma = (gamma + 1) % 6
		temperature := 0.0
		if gamma%2 == 0 {
			temperature = 1
		}
		return Knobs{Gamma: gamma, Sampling: sample.Settings{Temperature: temperature, TopP: 1}}
	}})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, r := range rounds {
		seen[r.Proposed] = true
	}
	if len(seen) < 3 {
		t.Errorf("drafts of lengths %v only", seen)
	}
}
