package calibrate

import (
	"context"
	"errors"
	"os"
	"testing"

	"firesteel/core/engine"
	"firesteel/core/job"
	"firesteel/core/prompts"
)

// loaded is an engine with the built-in pair.
func loaded(t *testing.T) *engine.Engine {
	t.Helper()
	e, err := engine.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	pair := newScripted().loaded
	if _, err := e.Load(context.Background(), engine.LoadRequest{TargetDir: pair.Target.Dir, DrafterDir: pair.Drafter.Dir}); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestRealRoundsAreCounted(t *testing.T) {
	e := loaded(t)
	j := Job{Prompts: prompts.Builtin()[:6], Temperature: 1, Rounds: 120, Tokens: 24}
	m, err := Run(context.Background(), e, j, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := m.Fitted + m.HeldOut; n != 120 || len(m.Curves) != 7 || len(m.Costs.Round) != 8 || m.Costs.Round[0] <= 0 || m.Costs.Plain <= 0 {
		t.Errorf("%+v", m)
	}
	if s := m.Before[0]; s.Observed < 0.3 || s.Observed > 0.95 || s.AUC < 0.5 {
		t.Errorf("the first word is kept in %.2f, AUC %.2f", s.Observed, s.AUC)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if m, err := Run(ctx, e, j, func(p job.Progress) {
		if p.Done == 20 {
			cancel()
		}
	}); m != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", m, err)
	}
}

// A few thousand rounds bring the built-in drafter's error down, and in no slot up beyond what
// chance leaves. So few, of prompts of which only half are fitted to, leave some 3 % in a slot; twenty
// thousand leave 1 to 2 %.
func TestCalibratingTheBuiltInPairHelps(t *testing.T) {
	if os.Getenv("FIRESTEEL_LONG") == "" {
		t.Skip("thousands of rounds")
	}
	m, err := Run(context.Background(), loaded(t), Job{Prompts: prompts.Builtin(), Rounds: 6000}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var before, after float64
	for k := range m.Before {
		t.Logf("slot %d: error %.3f before, %.3f after, AUC %.3f and %.3f", k, m.Before[k].Error, m.After[k].Error, m.Before[k].AUC, m.After[k].AUC)
		before, after = before+m.Before[k].Error/7, after+m.After[k].Error/7
		if m.After[k].Error > max(m.Before[k].Error, 0.04) { // what chance leaves of so few rounds
			t.Errorf("slot %d: error %.3f before, %.3f after", k, m.Before[k].Error, m.After[k].Error)
		}
	}
	if after > 0.75*before {
		t.Errorf("error %.3f before, %.3f after", before, after)
	}
}
