package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"firesteel/core/engine"
	"firesteel/core/prompts"
	"firesteel/core/train"
	"firesteel/mlxbind"
	"firesteel/models/chat"
	"firesteel/models/checkpoint"
)

// A training uses the target that is loaded, beside the texts that are written with it, and keeps
// it until its end whatever is unloaded meanwhile.
func TestATrainingUsesTheLoadedTarget(t *testing.T) {
	e, err := engine.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const target = "../../models/demo/pair/target"
	if _, err := e.Load(context.Background(), engine.LoadRequest{TargetDir: target}); err != nil {
		t.Fatal(err)
	}
	story := []chat.Message{{Role: "user", Content: "Tell me a story."}}
	write := func() string {
		r, err := e.Generate(context.Background(), engine.Request{Messages: story, MaxTokens: 12, Controls: engine.NewControls(engine.Knobs{})}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r.Text
	}
	text := write()
	held := mlxbind.ActiveMemory()
	weights := e.Memory().Target
	dir := t.TempDir()
	j := train.Job{TargetDir: target, Out: filepath.Join(dir, "made"),
		Settings: train.Settings{Steps: 2, Texts: 2, Anchors: 2, Context: 16, Rate: 1e-3, Seed: 1, Measure: 2, AnswerTokens: 8, DataLimit: 1 << 28},
		Shape: checkpoint.DSpark{TargetID: "demo", Gamma: 3, Width: 64, Layers: 1, Heads: 4, Rank: 16, FeedForward: 2, Taps: []int{1}, Head: checkpoint.HeadMarkov,
			Hidden: 256, Vocabulary: 4096, Eps: 1e-6}}
	for _, answer := range []string{"Once there was a dog who was brave.", "The wind blew over the hill all night.", "She baked a cake and gave it away."} {
		j.Prompts = append(j.Prompts, prompts.Prompt{Messages: story, Answer: answer})
	}
	ctx, stop := context.WithCancel(context.Background())
	_, err = train.Run(ctx, e, j, func(p train.Progress) {
		switch {
		case p.Stage == train.Reading && p.Done == 0:
			if taken := mlxbind.ActiveMemory() - held; taken > weights/4 {
				t.Errorf("it takes %d bytes beside the target's %d", taken, weights)
			}
			if again := write(); again != text {
				t.Errorf("meanwhile the text is %q, before it was %q", again, text)
			}
		case p.Stage == train.Learning && p.Done == 1:
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if again := write(); again != text {
		t.Errorf("afterwards the text is %q, before it was %q", again, text)
	}
	// It goes on with what it was begun with, which need not be told again.
	j.Resume, j.Prompts, j.Settings.Steps = true, nil, 77
	r, err := train.Run(context.Background(), e, j, func(p train.Progress) {
		if p.Stage == train.Learning && p.Done == 1 {
			if err := e.Unload(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil || r.Step != 2 || len(r.Losses) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := os.Stat(filepath.Join(j.Out, "dspark.json")); err != nil {
		t.Error(err)
	}
	if left := mlxbind.ActiveMemory(); left > weights/10 {
		t.Errorf("%d bytes are held after the end", left)
	}
}
