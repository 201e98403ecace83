package window

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"firesteel/core/engine"
)

// timid writes texts whose drafter is less sure than it might be: every draft is kept with chance
// 0.9, and it says 0.5.
func timid(ctx context.Context, r engine.Request, emit func(engine.Event)) (engine.Result, error) {
	random := rand.New(rand.NewPCG(1, uint64(len(r.Messages[0].Content))))
	if r.Seed != nil {
		random = rand.New(rand.NewPCG(*r.Seed, 2))
	}
	var result engine.Result
	for i := range 100 {
		if ctx.Err() != nil {
			return result, ctx.Err()
		}
		round := engine.RoundTrace{Proposed: min(7, r.Controls.Get().Gamma), ConfidenceLogits: make([]float32, 7), Emitted: []int{1}}
		for round.Accepted < round.Proposed && random.Float64() < 0.9 {
			round.Accepted++
		}
		result.Trace = append(result.Trace, round)
		emit(engine.Round{Drafted: round.Proposed, Elapsed: time.Duration(i+1) * time.Millisecond})
	}
	return result, nil
}

func TestCalibrateAndUse(t *testing.T) {
	core := &scripted{generate: timid}
	s := open(t, core)
	s.knobs.temperature.Type("0")
	s.calibrate()
	s.reads("Finds out how far Demo drafter can be trusted")
	s.starts("Calibrate")
	s.until("it is done", func() bool { return !s.jobs.running() })
	s.reads("on 2000 checks it was not fitted to")
	s.reads("words per second")
	place := s.calibrations()
	if _, err := os.Stat(place); err == nil {
		t.Error("something is kept before it is used")
	}
	s.press("Use It")
	s.until("it is used", func() bool { return s.models.loaded.Calibration != nil })
	if m := s.models.loaded.Calibration.For(0); m == nil || m.Fitted != 2000 || m.After[0].Error > 0.03 || m.Before[0].Error < 0.3 {
		t.Errorf("%+v", m)
	}
	if files, err := os.ReadDir(place); err != nil || len(files) != 1 || s.dialog != nil {
		t.Errorf("%v, %v, %v", files, err, s.dialog)
	}
	// The next load finds it.
	s.loadChosen()
	s.until("it is loaded again", func() bool { return s.load.cancel == nil })
	if got := core.loads[len(core.loads)-1].Calibrations; got != place {
		t.Errorf("looked for in %q, kept in %q", got, place)
	}
}

func TestCalibratingWithAFileAtTheSlidersCreativity(t *testing.T) {
	core := &scripted{generate: timid}
	s := open(t, core)
	s.knobs.temperature.Type("1")
	s.calibrate()
	s.jobs.calibrating.prompts.take(filepath.Join(t.TempDir(), "none.txt"))
	s.press("Calibrate")
	s.until("it is refused", func() bool { return strings.Contains(texts(s.jobs.sheet.Content), "There is nothing at") })
	if s.jobs.running() {
		t.Fatal("it runs without prompts")
	}
	file := filepath.Join(t.TempDir(), "mine.txt")
	if err := os.WriteFile(file, []byte("one\ntwo words\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.jobs.calibrating.prompts.take(file)
	s.jobs.calibrating.rounds.SetSelected(efforts[0].label)
	s.starts("Calibrate")
	s.until("it is done", func() bool { return !s.jobs.running() })
	s.reads("on 500 checks")
	for _, r := range core.requests {
		if k := r.Controls.Get(); k.Temperature != 1 || r.Messages[0].Content != "one" && r.Messages[0].Content != "two words" {
			t.Fatalf("%+v, %v", k, r.Messages)
		}
	}
	s.press("Not Now")
	if s.models.loaded.Calibration != nil || s.dialog != nil {
		t.Error("it is used all the same")
	}
}

func TestCalibratingCancelledFailedAndInTheBackground(t *testing.T) {
	core := &scripted{generate: untilCancelled}
	s := open(t, core)
	s.calibrate()
	s.starts("Calibrate")
	s.press("Cancel")
	s.until("it is over", func() bool { return !s.jobs.running() })
	s.reads("Cancelled. Nothing has changed.")
	core.generate = func(context.Context, engine.Request, func(engine.Event)) (engine.Result, error) {
		return engine.Result{}, engine.ErrNotFinite
	}
	s.press("Start Again")
	s.starts("Calibrate")
	s.until("it is over", func() bool { return !s.jobs.running() })
	s.reads("make no sense")
	core.generate = timid
	s.press("Start Again")
	s.starts("Calibrate")
	s.press("Go On in the Background")
	if s.dialog != nil {
		t.Error("the sheet is still open")
	}
	s.until("it is done", func() bool { return !s.jobs.running() })
	if !strings.Contains(s.status.Text(), "calibrated") {
		t.Errorf("the status line says %q", s.status.Text())
	}
	s.calibrate()
	s.reads("words per second")
	s.press("Not Now")
	s.calibrate()
	s.reads("HOW LONG")
}

func TestCalibratingNeedsADrafterThatSaysHowSureItIs(t *testing.T) {
	s := open(t, &scripted{})
	s.showMenu()
	if s.menu.calibrate.Disabled {
		t.Error("it can't be chosen")
	}
	s.models.loaded.Drafter.HasThreshold = false
	s.showMenu()
	if !s.menu.calibrate.Disabled {
		t.Error("it can be chosen")
	}
	s.models.loaded.Drafter = nil
	s.calibrate()
	if s.dialog != nil {
		t.Error("a sheet without a drafter")
	}
}
