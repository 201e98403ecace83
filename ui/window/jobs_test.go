package window

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/test"
	"fyne.io/fyne/v2/widget"

	"firesteel/core/engine"
	"firesteel/core/job"
	"firesteel/core/quantize"
)

// quantizing opens the sheet with a place of its own for the copy, and waits for the sizes.
func quantizing(t *testing.T, core *scripted) (s *stage, place string) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	s = open(t, core)
	s.quantizeDrafter()
	s.until("the sizes are there", func() bool { return s.jobs.form.plan != nil })
	if made := filepath.Dir(s.jobs.form.plan.Destination); filepath.Base(made) != ownFolder || exists(made) {
		t.Errorf("%s is there before any job", made)
	}
	place = t.TempDir()
	s.jobs.form.plan = nil
	s.jobs.form.to.SetText(filepath.Join(place, "smaller"))
	s.until("the sizes are there again", func() bool { return s.jobs.form.plan != nil })
	return s, place
}

// texts is every sentence that can be read in o.
func texts(o fyne.CanvasObject) string {
	var all []string
	var walk func(o fyne.CanvasObject)
	walk = func(o fyne.CanvasObject) {
		if !o.Visible() {
			return
		}
		switch o := o.(type) {
		case *fyne.Container:
			for _, c := range o.Objects {
				walk(c)
			}
		case *container.Scroll:
			walk(o.Content)
		case *widget.Label:
			all = append(all, o.Text)
		case interface{ Text() string }:
			all = append(all, o.Text())
		}
	}
	walk(o)
	return strings.Join(all, "\n")
}

func (s *stage) press(label string) {
	s.t.Helper()
	test.Tap(findButton(s.t, s.jobs.sheet.Content, label))
}

// starts presses a button that has a job read its prompts and begin.
func (s *stage) starts(label string) {
	s.t.Helper()
	s.press(label)
	s.until("the job begins", s.jobs.running)
}

func (s *stage) reads(part string) {
	s.t.Helper()
	if all := texts(s.jobs.sheet.Content); !strings.Contains(all, part) {
		s.t.Errorf("the sheet does not say %q but\n%s", part, all)
	}
}

func TestQuantizeAndUse(t *testing.T) {
	core := &scripted{}
	s, place := quantizing(t, core)
	if s.jobs.form.from.Text() != "Demo drafter" {
		t.Errorf("from %q", s.jobs.form.from.Text())
	}
	s.reads("3.2 MB on disk instead of 11.2 MB")
	// What the job would make, since the scripted core makes nothing.
	if err := os.CopyFS(filepath.Join(place, "smaller"), os.DirFS(filepath.Join(pairFolder, "drafter"))); err != nil {
		t.Fatal(err)
	}
	s.press("Quantize")
	s.until("it is done", func() bool { return !s.jobs.running() })
	s.reads("3.2 MB instead of 11.2 MB, 3.0 words per check instead of 3.2. Use it now?")
	s.press("Use It Now")
	s.until("it is loaded", func() bool { return strings.HasSuffix(core.Loaded().Drafter.Dir, "smaller") })
	if s.dialog != nil {
		t.Error("the sheet is still open")
	}
}

func TestQuantizeTargetAndUse(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	core := &scripted{}
	s := open(t, core)
	s.quantizeTarget()
	s.until("the sizes are there", func() bool { return s.jobs.form.plan != nil })
	s.reads("8.0 MB on disk instead of 28.1 MB")
	made := s.jobs.form.plan.Destination
	if err := os.CopyFS(made, os.DirFS(filepath.Join(pairFolder, "target"))); err != nil {
		t.Fatal(err)
	}
	s.press("Quantize")
	s.until("it is done", func() bool { return !s.jobs.running() })
	s.press("Use It Now")
	s.until("it is loaded", func() bool { return core.Loaded().Target.Dir == made })
	if d := core.Loaded().Drafter; d == nil || filepath.Base(d.Dir) != "drafter" {
		t.Errorf("its drafter is %+v", d)
	}
}

func TestQuantizingGoesOnBehindAClosedSheet(t *testing.T) {
	gate := make(chan struct{})
	core := &scripted{quantize: func(ctx context.Context, p *quantize.Plan, tell func(job.Progress)) (quantize.Result, error) {
		tell(job.Progress{Stage: "packing", Done: 3_000_000, Total: 11_000_000, Left: 5e9})
		select {
		case <-gate:
			return quantize.Result{Dir: p.Destination, ResultBytes: p.ResultBytes}, nil
		case <-ctx.Done():
			return quantize.Result{}, ctx.Err()
		}
	}}
	s, _ := quantizing(t, core)
	s.press("Quantize")
	s.until("progress is told", func() bool { return strings.Contains(texts(s.jobs.sheet.Content), "5 s left") })
	s.press("Go On in the Background")
	if s.dialog != nil || !s.jobs.running() {
		t.Error("the sheet must close and the job go on")
	}
	s.typeAndSend("Meanwhile.")
	s.until("an answer is written meanwhile", s.idle)
	s.quantizeDrafter()
	s.reads("Quantizing Demo drafter")
	close(gate)
	s.until("it is done", func() bool { return !s.jobs.running() })
	s.reads("Use it now?")
}

func TestQuantizingCancelledAndFailed(t *testing.T) {
	waits := func(ctx context.Context, p *quantize.Plan, tell func(job.Progress)) (quantize.Result, error) {
		<-ctx.Done()
		return quantize.Result{}, ctx.Err()
	}
	core := &scripted{quantize: waits}
	s, _ := quantizing(t, core)
	s.press("Quantize")
	s.press("Cancel")
	s.until("it is over", func() bool { return !s.jobs.running() })
	s.reads("Cancelled. Nothing was left behind")
	core.quantize = func(context.Context, *quantize.Plan, func(job.Progress)) (quantize.Result, error) {
		return quantize.Result{}, &job.RoomError{Folder: "/somewhere", Need: 4e9, Free: 1e9}
	}
	s.press("Start Again")
	s.until("the sizes are there", func() bool { return s.jobs.form.plan != nil })
	s.press("Quantize")
	s.until("it is over", func() bool { return !s.jobs.running() })
	s.reads("There is not enough room in /somewhere: 4.0 GB is needed, 1.0 GB is free. Make room, or choose another place.")
}

func TestQuantizeRefusesInWords(t *testing.T) {
	s, place := quantizing(t, &scripted{})
	if err := os.WriteFile(filepath.Join(place, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.jobs.form.to.SetText(place)
	s.until("it is refused", func() bool { return strings.Contains(texts(s.jobs.sheet.Content), "There is something in") })
	if !findButton(t, s.jobs.sheet.Content, "Quantize").Disabled() {
		t.Error("it can be begun all the same")
	}
	s.quantizeFrom(filepath.Join(pairFolder, "target"))
	s.until("a target is refused", func() bool { return strings.Contains(texts(s.jobs.sheet.Content), "not a drafter") })
}

func TestQuitAsks(t *testing.T) {
	core := &scripted{generate: untilCancelled}
	s := open(t, core)
	s.typeAndSend("Go on for ever.")
	s.until("words arrive", func() bool { return s.lastAnswer() != "" })
	s.quit()
	if s.dialog == nil || s.idle() {
		t.Fatal("it did not ask")
	}
	s.dialog.Hide()
	if s.idle() {
		t.Error("declining stopped the answer")
	}
	s.stop()
	s.until("stopped", s.idle)

	s.jobs.cancel, s.jobs.name = func() {}, "Quantizing a drafter"
	s.quit()
	if s.dialog == nil {
		t.Error("it did not ask about the job")
	}
	s.dialog.Hide()
	s.jobs.cancel = nil
}

func TestClosingCancelsAJob(t *testing.T) {
	ended := make(chan error, 1)
	core := &scripted{quantize: func(ctx context.Context, p *quantize.Plan, tell func(job.Progress)) (quantize.Result, error) {
		<-ctx.Done()
		ended <- ctx.Err()
		return quantize.Result{}, ctx.Err()
	}}
	s, _ := quantizing(t, core)
	s.press("Quantize")
	s.shutDown()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	default:
		t.Error("the job goes on")
	}
}

var _ Core = (*engine.Engine)(nil)
