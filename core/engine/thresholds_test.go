package engine

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"firesteel/models/checkpoint"
	"firesteel/models/dflash"
)

// A drafter's own thresholds hold until one is set, and any that is set goes before them.
func TestThresholdsOfTheDrafterHoldUntilOneIsSet(t *testing.T) {
	e := started(t)
	ctx := context.Background()
	if _, err := e.Load(ctx, LoadRequest{TargetDir: demoTarget}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "drafter")
	err := e.thread.Do(ctx, func() error {
		g := e.held.target.Geometry()
		// Untrained, so every confidence is a half.
		d, err := dflash.New(1, checkpoint.DSpark{Gamma: 4, Width: 16, Layers: 1, Heads: 2, Rank: 8, FeedForward: 2, Taps: []int{1, g.Layers},
			Head: checkpoint.HeadMarkov, Hidden: g.Hidden, Vocabulary: g.Vocabulary, Eps: 1e-6,
			Calibration: &checkpoint.Calibration{Thresholds: []float64{0.9, 0.4, 0.6}}}, e.held.target)
		if err != nil {
			return err
		}
		defer d.Close()
		return d.Save(ctx, dir, 0)
	})
	if err != nil {
		t.Fatal(err)
	}
	info, err := e.Load(ctx, LoadRequest{TargetDir: demoTarget, DrafterDir: dir})
	if err != nil || !slices.Equal(info.Drafter.Thresholds, []float64{0.9, 0.4, 0.6}) || info.Drafter.Block != 4 {
		t.Fatalf("%+v, %v", info.Drafter, err)
	}
	plain := ask("Why is the sky blue?", Knobs{})
	plain.MaxTokens = 24
	want := generate(t, e, plain).TokenIDs
	for name, c := range map[string]struct {
		set  *float64
		kept int
	}{"its own": {nil, 2}, "off": {new(0.0), 4}, "low": {new(0.4), 4}, "high": {new(0.6), 1}} {
		r := ask("Why is the sky blue?", Knobs{Gamma: 4, Threshold: c.set})
		r.MaxTokens, r.Trace = 24, true
		got := generate(t, e, r)
		if !slices.Equal(got.TokenIDs, want) {
			t.Errorf("%s: another text", name)
		}
		for _, round := range got.Trace {
			if len(round.Draft) == 4 && round.Proposed != c.kept {
				t.Errorf("%s: %d of %d drafts checked, not %d", name, round.Proposed, len(round.Draft), c.kept)
			}
		}
	}
}
