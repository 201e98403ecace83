package window

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"firesteel/core/job"
	"firesteel/core/train"
)

// taught is a training that tells a few steps and ends as end says.
func taught(jobs chan<- train.Job, end func(ctx context.Context, j train.Job) error) trainer {
	return func(ctx context.Context, _ job.Runner, j train.Job, tell func(train.Progress)) (train.Result, error) {
		jobs <- j
		r := train.Result{Out: j.Out, HeldOut: 5}
		r.Live = []train.Live{{Tau: 1}, {Step: 30, Tau: 2.2}}
		r.Best, r.Step = r.Live[1], 30
		for k := range 30 {
			p := train.Progress{Loss: 3 - float64(k)/30, Live: r.Live[0], Best: r.Live[0]}
			p.Progress = job.Progress{Stage: train.Learning, Done: int64(k + 1), Total: 300}
			tell(p)
		}
		return r, end(ctx, j)
	}
}

func waits(ctx context.Context, _ train.Job) error {
	<-ctx.Done()
	return ctx.Err()
}

func (s *stage) asksToTrain(t *testing.T) (out string) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.jsonl")
	if err := os.WriteFile(file, []byte("{\"p\": \"Why?\", \"r\": \"So.\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out = filepath.Join(dir, "made")
	s.trainDrafter()
	s.reads("Makes a drafter for")
	s.jobs.training.prompts.SetText(file)
	s.jobs.training.out.SetText(out)
	s.jobs.training.length.SetSelected(lengths[0].label)
	return out
}

func TestTrainPauseGoOnAndUse(t *testing.T) {
	s := open(t, &scripted{})
	jobs := make(chan train.Job, 8)
	s.trainer = taught(jobs, waits)
	s.trainDrafter()
	s.press("Train")
	s.reads("Choose a file of prompts first.")
	out := s.asksToTrain(t)
	s.press("Train")
	s.until("steps are shown", func() bool { return s.jobs.running() && len(jobs) == 1 })
	s.press("Pause")
	s.until("it is paused", func() bool { return !s.jobs.running() })
	s.reads("Paused after step 30.")
	if j := <-jobs; j.Out != out || j.Settings.Steps != 300 || len(j.Prompts) != 1 || j.Prompts[0].Answer != "So." || j.Shape.Gamma != 5 || j.Resume {
		t.Errorf("%+v", j)
	}
	s.trainer = taught(jobs, func(context.Context, train.Job) error { return nil })
	s.press("Go On")
	s.until("it is done", func() bool { return !s.jobs.running() })
	s.reads("The drafter brings 2.20 words a check, 1.00 at first. Use it now?")
	s.press("Not Now")
	if s.dialog != nil {
		t.Error("the sheet is still open")
	}
}

func TestTrainingCancelledAndFailed(t *testing.T) {
	s := open(t, &scripted{})
	jobs := make(chan train.Job, 8)
	out := s.asksToTrain(t)
	// What a training keeps while it runs.
	kept := filepath.Join(filepath.Dir(out), ".made.training", "state")
	s.trainer = taught(jobs, func(ctx context.Context, j train.Job) error {
		if err := os.MkdirAll(kept, 0o755); err != nil {
			return err
		}
		return waits(ctx, j)
	})
	s.press("Train")
	s.press("Cancel")
	s.until("it is over", func() bool { return !s.jobs.running() })
	s.reads("Cancelled. Nothing was left behind.")
	if _, err := os.Stat(kept); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was left: %v", err)
	}
	s.press("Close")
	s.trainer = taught(jobs, func(context.Context, train.Job) error { return train.ErrNoTexts })
	s.asksToTrain(t)
	s.press("Train")
	s.until("it is over", func() bool { return !s.jobs.running() })
	s.reads("None of the answers is long enough")
}
