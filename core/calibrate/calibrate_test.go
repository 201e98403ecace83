package calibrate

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"firesteel/core/confidence"
	"firesteel/core/engine"
	"firesteel/core/job"
	"firesteel/core/prompts"
	"firesteel/core/sample"
	"firesteel/models/checkpoint"
)

const block = 4

// scripted stands in for the engine. Its drafter takes itself to be surer than it is: what it says
// with logit z is accepted with chance σ(z/2). A round lasts 10 ms and 1 ms more for each draft
// that is checked.
type scripted struct {
	loaded   engine.Loaded
	rounds   int // of a text
	failAt   int // the text that fails
	requests []engine.Request
	knobs    []engine.Knobs // of each round
	cancel   func()         // called in the tenth round
}

func newScripted() *scripted {
	top := 0.95
	dir := filepath.Join("..", "..", "models", "demo", "pair")
	return &scripted{rounds: 20, failAt: -1, loaded: engine.Loaded{
		Target:  &engine.ModelInfo{Name: "T", Dir: filepath.Join(dir, "target"), TopP: &top},
		Drafter: &engine.ModelInfo{Name: "D", Dir: filepath.Join(dir, "drafter"), Block: block, HasThreshold: true},
	}}
}

func (c *scripted) Loaded() engine.Loaded { return c.loaded }
func (c *scripted) Device() string        { return "nothing" }

func (c *scripted) Generate(ctx context.Context, r engine.Request, emit func(engine.Event)) (engine.Result, error) {
	c.requests = append(c.requests, r)
	if len(c.requests)-1 == c.failAt {
		return engine.Result{}, engine.ErrNotFinite
	}
	random := rand.New(rand.NewPCG(*r.Seed, uint64(len(r.Messages[0].Content))))
	var result engine.Result
	var elapsed time.Duration
	for i := range c.rounds {
		if ctx.Err() != nil {
			return result, ctx.Err()
		}
		k := r.Controls.Get()
		c.knobs = append(c.knobs, k)
		if c.cancel != nil && len(c.knobs) == 10 {
			c.cancel()
		}
		round := engine.RoundTrace{Proposed: min(k.Gamma, block)}
		fallen := false
		for j := range round.Proposed {
			z := random.NormFloat64() * 2
			round.Draft = append(round.Draft, j)
			round.ConfidenceLogits = append(round.ConfidenceLogits, float32(z))
			if fallen = fallen || random.Float64() >= confidence.Sigmoid(z/2); !fallen {
				round.Accepted++
			}
		}
		if t := k.Threshold; t != nil {
			for j, z := range round.ConfidenceLogits {
				if confidence.Sigmoid(float64(z)) < *t {
					round.Proposed, round.Accepted = j, min(j, round.Accepted)
					break
				}
			}
		}
		round.Emitted = append(slices.Clone(round.Draft[:round.Accepted]), 9)
		if i == c.rounds-1 && len(round.Emitted) > 2 {
			// The second token ends the text.
			round.Emitted, result.Stop = round.Emitted[:2], engine.StopToken
		}
		if r.Trace {
			result.Trace = append(result.Trace, round)
		}
		elapsed += time.Duration(10+round.Proposed) * time.Millisecond
		emit(engine.Round{Drafted: round.Proposed, Accepted: round.Accepted, Elapsed: elapsed})
	}
	return result, nil
}

func list(n int) []prompts.Prompt {
	return slices.Repeat(prompts.Builtin()[:1], n)
}

func TestRunFitsAndJudges(t *testing.T) {
	c := newScripted()
	var told []job.Progress
	m, err := Run(context.Background(), c, Job{Prompts: prompts.Builtin(), Temperature: 1, Rounds: 8000}, func(p job.Progress) { told = append(told, p) })
	if err != nil {
		t.Fatal(err)
	}
	if n := m.Fitted + m.HeldOut; n != 8000 || m.Fitted < 3000 || m.HeldOut < 3000 {
		t.Errorf("%d and %d rounds", m.Fitted, m.HeldOut)
	}
	for k := range block {
		if c := m.Curves[k]; k < 2 && math.Abs(c.Of(2)-confidence.Sigmoid(1)) > 0.06 {
			t.Errorf("slot %d: %+v", k, m.Curves[k])
		}
		if b, a := m.Before[k], m.After[k]; a.Error > max(0.02, b.Error/2) || k == 0 && b.Error < 0.05 {
			t.Errorf("slot %d: %.3f before, %.3f after", k, b.Error, a.Error)
		}
	}
	for l, seconds := range m.Costs.Round {
		if math.Abs(seconds-(0.010+0.001*float64(l))) > 1e-9 {
			t.Errorf("%d checked: %g s", l, seconds)
		}
	}
	if math.Abs(m.Costs.Plain-0.010) > 1e-9 || m.TopP != 0.95 || m.Device != "nothing" || len(m.Speeds) != 11 {
		t.Errorf("%+v", m)
	}
	for i, k := range c.knobs[:8000] {
		if k.Threshold == nil || *k.Threshold != 0 || k.Gamma != block || k.Temperature != 1 {
			t.Fatalf("round %d was asked for with %+v", i, k)
		}
	}
	seeds := map[uint64]bool{}
	for _, r := range c.requests {
		if r.TopP != 0.95 || r.MaxTokens == 0 {
			t.Fatalf("%+v", r)
		}
		if r.Trace {
			seeds[*r.Seed] = true
		}
	}
	if len(seeds) != 8000/c.rounds {
		t.Errorf("%d seeds", len(seeds))
	}
	last := told[len(told)-1]
	if last.Done != last.Total || last.Left != 0 || last.Stage != timing || told[100].Total != last.Total || told[100].Done != 101 || told[100].Stage != looking {
		t.Errorf("%+v, then %+v", told[100], last)
	}
}

func TestWhatFollowsAStopDoesNotCount(t *testing.T) {
	trace := []engine.RoundTrace{
		{ConfidenceLogits: []float32{1, 2, 3}, Proposed: 3, Accepted: 2, Emitted: []int{5, 6, 7}},
		{ConfidenceLogits: []float32{1, 2, 3}, Proposed: 3, Accepted: 3, Emitted: []int{5, 1}},
	}
	got := samples(engine.Result{Trace: trace, Stop: engine.StopToken})
	if len(got) != 2 || len(got[0].Logits) != 3 || got[0].Accepted != 2 || len(got[1].Logits) != 2 || got[1].Accepted != 2 {
		t.Errorf("%+v", got)
	}
	// Cut short by the limit alone, everything was checked against the target all the same.
	if got = samples(engine.Result{Trace: trace, Stop: engine.StopLimit}); len(got[1].Logits) != 3 || got[1].Accepted != 3 {
		t.Errorf("%+v", got)
	}
	trace[0].ConfidenceLogits = []float32{float32(math.NaN()), 0, 0}
	trace[1].Proposed = 0
	if got = samples(engine.Result{Trace: trace}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestGreedyUsesEachPromptOnce(t *testing.T) {
	c := newScripted()
	var last job.Progress
	m, err := Run(context.Background(), c, Job{Prompts: list(10), Rounds: 8000}, func(p job.Progress) { last = p })
	if last.Done != last.Total {
		t.Errorf("%+v", last)
	}
	if err != nil || m.Fitted+m.HeldOut < 198 || m.Fitted+m.HeldOut > 200 {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestRefusals(t *testing.T) {
	failure := func(change func(c *scripted, ctx context.CancelFunc)) error {
		c := newScripted()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		change(c, cancel)
		m, err := Run(ctx, c, Job{Prompts: list(4)}, nil)
		if m != nil {
			t.Errorf("%+v", m)
		}
		return err
	}
	var few *TooFewError
	for want, change := range map[error]func(c *scripted, cancel context.CancelFunc){
		engine.ErrNothingLoaded: func(c *scripted, _ context.CancelFunc) { c.loaded = engine.Loaded{} },
		ErrNoDrafter:            func(c *scripted, _ context.CancelFunc) { c.loaded.Drafter = nil },
		ErrNoConfidence:         func(c *scripted, _ context.CancelFunc) { c.loaded.Drafter.HasThreshold = false },
		engine.ErrNotFinite:     func(c *scripted, _ context.CancelFunc) { c.failAt = 2 },
		ErrChanged: func(c *scripted, _ context.CancelFunc) {
			c.cancel = func() { c.loaded.Drafter = &engine.ModelInfo{Name: "another"} }
		},
		context.Canceled: func(c *scripted, cancel context.CancelFunc) { c.cancel = cancel },
	} {
		if err := failure(change); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if err := failure(func(*scripted, context.CancelFunc) {}); !errors.As(err, &few) || few.Rounds != 80 {
		t.Errorf("%v", err)
	}
	if err := failure(func(c *scripted, _ context.CancelFunc) { c.rounds = 0 }); !errors.As(err, &few) {
		t.Errorf("%v", err)
	}
}

func TestGreedyIsTheSamplersGreedy(t *testing.T) {
	for _, temperature := range []float64{0, sample.Greedy / 2, sample.Greedy, 0.1} {
		if got := confidence.BandOf(temperature) == confidence.Bands[0]; got != (sample.Settings{Temperature: temperature}).IsGreedy() {
			t.Errorf("%g: %v", temperature, got)
		}
	}
}

func TestPairIsKnownByItsWeights(t *testing.T) {
	c := newScripted()
	p, err := Pair(c.loaded)
	if err != nil || p.Target.Identity == "" || p.Target.Identity == p.Drafter.Identity || p.Block != block || p.Drafter.Name != "D" {
		t.Errorf("%+v, %v", p, err)
	}
	c.loaded.Target.Dir = t.TempDir()
	if _, err := Pair(c.loaded); err == nil {
		t.Error("an empty folder has an identity")
	}
}

func TestThresholdsGoIntoDSparkFilesOnly(t *testing.T) {
	m := &confidence.Measured{Thresholds: []float64{0, 0.25}, Fitted: 77}
	if err := WriteSTS(newScripted().loaded.Drafter.Dir, t.TempDir(), m, true); !errors.Is(err, ErrNoPlace) {
		t.Errorf("%v", err)
	}
	dir, notes := t.TempDir(), t.TempDir()
	d := &checkpoint.DSpark{Gamma: 2, Width: 8, Layers: 1, Heads: 2, Rank: 4, FeedForward: 2, Taps: []int{1}, Head: checkpoint.HeadMarkov, Hidden: 8, Vocabulary: 9, Eps: 1e-6}
	if err := d.Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := WriteSTS(dir, notes, m, false); err != nil {
		t.Fatal(err)
	}
	read, err := checkpoint.ReadDSpark(dir)
	if err != nil || !slices.Equal(read.Calibration.Thresholds, m.Thresholds) || read.Calibration.Target != 0.5 || read.Calibration.Samples != 77 {
		t.Errorf("%+v, %v", read.Calibration, err)
	}
	before, err := os.ReadFile(filepath.Join(dir, "dspark.json"))
	if err != nil {
		t.Fatal(err)
	}
	m.Thresholds = []float64{0, 0.75}
	if err := WriteSTS(dir, notes, m, false); !errors.Is(err, ErrCalibrated) {
		t.Errorf("%v", err)
	}
	if after, _ := os.ReadFile(filepath.Join(dir, "dspark.json")); string(after) != string(before) {
		t.Error("a refusal changed the file")
	}
	if err := WriteSTS(dir, notes, m, true); err != nil {
		t.Fatal(err)
	}
	if read, _ = checkpoint.ReadDSpark(dir); read.Calibration.Thresholds[1] != 0.75 {
		t.Errorf("%+v", read.Calibration)
	}
	// What a process leaves that is killed meanwhile goes at a next start.
	left, old := filepath.Join(dir, ".dspark.json.unfinished-1"), time.Now().Add(-time.Hour)
	if err := errors.Join(os.WriteFile(left, nil, 0o600), os.Chtimes(left, old, old)); err != nil {
		t.Fatal(err)
	}
	if n, err := job.RemoveLeftovers(notes); n != 1 || err != nil {
		t.Errorf("%d removed, %v", n, err)
	}
}
