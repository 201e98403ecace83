package window

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fyne.io/fyne/v2/test"

	"firesteel/core/job"
	"firesteel/core/prompts"
	"firesteel/core/train"
	"firesteel/models/deepspec"
)

// taught are trainings that tell a few steps and end as end says.
func taught(jobs chan<- train.TuneJob, end func(ctx context.Context, j train.Job) error) teachers {
	tune := func(ctx context.Context, _ job.Runner, j train.TuneJob, tell func(train.Progress)) (train.Result, error) {
		jobs <- j
		r := train.Result{Out: j.Out, HeldOut: 5}
		r.Live = []train.Live{{Tau: 1}, {Step: 30, Tau: 2.2}}
		r.Best, r.Step = r.Live[1], 30
		for k := range 30 {
			p := train.Progress{Loss: 3 - float64(k)/30, Live: r.Live[0], Best: r.Live[0]}
			p.Progress = job.Progress{Stage: train.Learning, Done: int64(k + 1), Total: 300}
			tell(p)
		}
		return r, end(ctx, j.Job)
	}
	return teachers{tune: tune, train: func(ctx context.Context, runner job.Runner, j train.Job, tell func(train.Progress)) (train.Result, error) {
		return tune(ctx, runner, train.TuneJob{Job: j}, tell)
	}}
}

func waits(ctx context.Context, _ train.Job) error {
	<-ctx.Done()
	return ctx.Err()
}

// begins leaves what a real training leaves as it begins, and waits.
func begins(ctx context.Context, j train.Job) error {
	if err := os.MkdirAll(hidden(j.Out), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(hidden(j.Out), "assignment.json"), []byte("{}"), 0o600); err != nil {
		return err
	}
	return waits(ctx, j)
}

func hidden(out string) string {
	return filepath.Join(filepath.Dir(out), "."+filepath.Base(out)+".training")
}

// fills in the form of a training that open opens.
func (s *stage) fills(t *testing.T, open func()) (out string) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.jsonl")
	if err := os.WriteFile(file, []byte("{\"p\": \"Why?\", \"r\": \"So.\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out = filepath.Join(dir, "made")
	open()
	s.jobs.training.prompts.take(file)
	s.jobs.training.out.SetText(out)
	s.jobs.training.length.SetSelected(s.jobs.training.length.Options[0])
	return out
}

func TestTrainPauseGoOnAndUse(t *testing.T) {
	s := open(t, &scripted{})
	jobs := make(chan train.TuneJob, 8)
	s.teachers = taught(jobs, begins)
	out := s.fills(t, s.trainDrafter)
	s.reads("Makes a new drafter for Firesteel Demo")
	s.press("Train")
	s.until("steps are shown", func() bool { return strings.Contains(texts(s.jobs.sheet.Content), "step 30 of 300") })
	if s.quit(); s.dialog == nil || !strings.Contains(s.jobs.after, "is kept") {
		t.Errorf("quitting says %q", s.jobs.after)
	}
	s.trainDrafter()
	s.press("Pause")
	s.until("it is paused", func() bool { return !s.jobs.running() })
	s.reads("Paused after step 30.")
	if j := <-jobs; j.Out != out || j.Settings.Steps != 300 || len(j.Prompts) != 1 || j.Prompts[0].Answer != "So." || j.Shape.Gamma != 5 || j.Resume {
		t.Errorf("%+v", j)
	}
	// Another day, the folder alone tells that it can go on.
	s.press("Close")
	s.trainDrafter()
	s.jobs.training.out.SetText(out)
	s.reads("It can go on")
	s.teachers = taught(jobs, func(context.Context, train.Job) error { return nil })
	s.starts("Go On")
	s.until("it is over", func() bool { return !s.jobs.running() })
	if j := <-jobs; !j.Resume || j.Prompts != nil {
		t.Errorf("%+v", j)
	}
	s.reads("The drafter brings 2.20 words per check, 1.00 at first. Use it now?")
	s.press("Not Now")
	if s.dialog != nil {
		t.Error("the sheet is still open")
	}
}

func TestTune(t *testing.T) {
	s := open(t, &scripted{})
	jobs := make(chan train.TuneJob, 8)
	s.teachers = taught(jobs, func(context.Context, train.Job) error { return nil })
	out := s.fills(t, s.tuneDrafter)
	s.reads("Teaches a copy of Demo drafter what Firesteel Demo writes")
	s.jobs.training.part.SetSelected(partNames[1])
	s.starts("Tune")
	s.until("it is over", func() bool { return !s.jobs.running() })
	s.reads("2.20 words per check, 1.00 at first")
	if j := <-jobs; j.Out != out || j.Part != deepspec.HeadsAndTaps || filepath.Base(j.DrafterDir) != "drafter" || j.Settings.Steps != 100 || j.Settings.Rate != 2e-4 {
		t.Errorf("%+v", j)
	}
	s.teachers.tune = func(context.Context, job.Runner, train.TuneJob, func(train.Progress)) (train.Result, error) {
		r := train.Result{HeldOut: 5}
		r.Live = []train.Live{{Tau: 3}}
		r.Best = r.Live[0]
		return r, nil
	}
	s.fills(t, s.tuneDrafter)
	s.starts("Tune")
	s.until("it is over", func() bool { return !s.jobs.running() })
	s.reads("Tuning brought no more than the 3.00 words per check there were.")
	s.models.loadedWhat[drafter].Family = "another"
	s.showMenu()
	if !s.menu.tune.Disabled || s.menu.train.Disabled {
		t.Error("a drafter that can't be tuned")
	}
}

func TestTrainingCancelledAndFailed(t *testing.T) {
	s := open(t, &scripted{})
	jobs := make(chan train.TuneJob, 8)
	out := s.fills(t, s.trainDrafter)
	s.teachers = taught(jobs, begins)
	s.press("Train")
	s.until("it has begun", func() bool { return exists(filepath.Join(hidden(out), "assignment.json")) })
	s.press("Cancel")
	s.until("it is over", func() bool { return !s.jobs.running() })
	s.reads("Cancelled. Nothing was left behind.")
	if exists(hidden(out)) {
		t.Error("something was left")
	}
	s.press("Start Again")
	s.teachers = taught(jobs, func(context.Context, train.Job) error { return train.ErrNoTexts })
	s.fills(t, s.trainDrafter)
	s.starts("Train")
	s.until("it is over", func() bool { return !s.jobs.running() })
	s.reads("None of the answers is long enough")
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	s := open(t, &scripted{})
	s.fills(t, s.trainDrafter)
	s.jobs.training.prompts.take("")
	s.press("Train")
	s.reads("Choose a file of prompts first.")
	s.jobs.training.prompts.kind.SetSelected(fromChats)
	s.press("Train")
	s.until("no chats are kept", func() bool { return strings.Contains(texts(s.jobs.sheet.Content), "No chats are kept yet.") })
	s.jobs.training.prompts.kind.SetSelected(fromApp)
	s.jobs.training.out.SetText(" ")
	s.press("Train")
	s.reads("Name the folder")
	if s.jobs.running() {
		t.Error("it has begun all the same")
	}
}

func TestChatsAreKeptOnRequestTrainedOnAndDeleted(t *testing.T) {
	s := open(t, &scripted{})
	say := func(text string) {
		s.typeAndSend(text)
		s.until("answered", s.idle)
	}
	say("Between us.")
	if s.pass(0); exists(string(s.chats())) {
		t.Fatal("it is kept without being asked for")
	}
	s.settings.KeepChats = true
	say("For training.")
	var list []prompts.Prompt
	s.until("it is kept", func() bool {
		s.pass(0)
		list, _ = s.chats().Load("somebody else's")
		return len(list) == 1
	})
	if last := list[0].Messages[len(list[0].Messages)-1]; last.Content != "For training." || list[0].Answer != "" || list[0].Target == "" {
		t.Errorf("%+v", list)
	}
	jobs := make(chan train.TuneJob, 1)
	s.teachers = taught(jobs, func(context.Context, train.Job) error { return nil })
	s.fills(t, s.trainDrafter)
	s.jobs.training.prompts.kind.SetSelected(fromChats)
	s.until("they are counted", func() bool { return strings.Contains(texts(s.jobs.sheet.Content), "1 answer is kept") })
	s.starts("Train")
	s.until("it is over", func() bool { return !s.jobs.running() })
	if j := <-jobs; len(j.Prompts) != 1 || j.Prompts[0].Answer != "An answer." {
		t.Errorf("%+v", j.Prompts)
	}
	s.askDeleteChats()
	test.Tap(findButton(t, s.win.Canvas().Overlays().Top(), "Delete"))
	s.until("they are deleted", func() bool { return strings.Contains(s.status.Text(), "deleted") })
	if exists(string(s.chats())) {
		t.Error("they are still there")
	}
	if _, err := s.chats().Load(""); !errors.Is(err, prompts.ErrNoChats) {
		t.Error(err)
	}
}
