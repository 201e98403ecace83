package window

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/widget"
	"github.com/dustin/go-humanize"

	"firesteel/core/job"
	"firesteel/core/library"
	"firesteel/core/prompts"
	"firesteel/core/train"
	"firesteel/models/checkpoint"
	"firesteel/ui/window/curve"
	"firesteel/ui/window/look"
	"firesteel/ui/window/sheet"
)

// trainer does a training; train.Run is one.
type trainer func(ctx context.Context, runner job.Runner, j train.Job, progress func(train.Progress)) (train.Result, error)

// trainForm is what is asked before training.
type trainForm struct {
	prompts *widget.Entry
	out     *widget.Entry
	length  *widget.RadioGroup
	target  library.Description
	discard bool // the running job is to leave nothing behind
}

// lengths are how long can be trained.
var lengths = []struct {
	label string
	steps int
}{
	{"a try: 300 steps", 300},
	{"usual: 3,000 steps", 3000},
	{"thorough: 12,000 steps", 12000},
}

// trainDrafter opens the sheet: the running job's, or a new one about the target that is loaded.
func (w *Window) trainDrafter() {
	if w.jobs.running() {
		w.showSheet()
		return
	}
	what := w.models.loadedWhat[target]
	if w.core == nil || what == nil {
		return
	}
	w.closeSheet()
	w.jobs.sheet = sheet.New("Train a Drafter")
	f := &trainForm{prompts: widget.NewEntry(), out: widget.NewEntry(), target: *what}
	w.jobs.training = f
	f.prompts.SetPlaceHolder("a file: text, or JSON lines with \"prompt\", \"p\" or \"messages\"")
	choose := look.NewTextButton("Choose a file…", func() {
		w.showDialog(dialog.NewFileOpen(func(file fyne.URIReadCloser, err error) {
			w.showSheet()
			if file != nil {
				f.prompts.SetText(file.URI().Path())
				file.Close()
			}
		}, w.win))
	})
	f.out.SetText(filepath.Join("~", ownFolder, what.Name+" drafter"))
	var labels []string
	for _, l := range lengths {
		labels = append(labels, l.label)
	}
	f.length = widget.NewRadioGroup(labels, nil)
	f.length.Required = true
	f.length.SetSelected(labels[1])
	about := widget.NewLabel(fmt.Sprintf("Makes a drafter for %s: it answers your prompts, unless the file has answers, and the drafter learns to guess them. "+
		"The more prompts of the kind you use, the better; a thousand is a beginning.", what.Name))
	about.Wrapping = fyne.TextWrapWord
	w.jobs.sheet.Show(look.Rows(16,
		look.Tight(about),
		sheet.Field("Prompts, one a line", look.Line(8, 0, f.prompts, choose)),
		sheet.Field("To", f.out),
		sheet.Field("How long", look.Tight(f.length))),
		sheet.Button{Label: "Close", Pressed: w.closeSheet}, sheet.Button{Label: "Train", Pressed: func() { w.beginTraining(false) }, Main: true})
	w.showSheet()
}

// beginTraining begins what the form asks for, or goes on with it; anew throws away what was begun.
func (w *Window) beginTraining(anew bool) {
	f := w.jobs.training
	if f == nil || w.core == nil || w.jobs.running() {
		return
	}
	wrong := func(sentence string) { w.jobs.sheet.Note(sentence, true) }
	file, out := home(strings.TrimSpace(f.prompts.Text)), home(strings.TrimSpace(f.out.Text))
	switch {
	case file == "":
		wrong("Choose a file of prompts first.")
		return
	case out == "":
		wrong("Name the folder that the drafter goes to.")
		return
	}
	list, err := prompts.Load(file)
	if err != nil {
		wrong(oneLine(err))
		return
	}
	j := train.Job{TargetDir: f.target.Dir, Prompts: list, Out: out, Work: filepath.Join(w.keepIn(), "training"), Shape: train.Shape(f.target, checkpoint.DSpark{})}
	for _, l := range lengths {
		if l.label == f.length.Selected {
			j.Settings.Steps = l.steps
		}
	}
	j.Settings.Seed = 1
	j.Settings = j.Settings.Fill(f.target, j.Shape.Gamma)
	if anew {
		if err := train.Discard(out); err != nil {
			wrong(oneLine(err))
			return
		}
	}
	j.Resume = train.Begun(out)
	w.runTraining(f, j)
}

func (w *Window) runTraining(f *trainForm, j train.Job) {
	ctx, cancel := context.WithCancel(w.life)
	w.jobs.cancel, w.jobs.name = cancel, "Training a drafter for "+f.target.Name
	stage := w.jobs.name + " …"
	f.discard = false
	plot := curve.New(j.Settings.Steps)
	w.jobs.sheet.Working(stage,
		sheet.Button{Label: "Cancel", Pressed: func() { f.discard = true; cancel() }},
		sheet.Button{Label: "Pause", Pressed: cancel},
		sheet.Button{Label: "Go On in the Background", Pressed: w.closeSheet})
	w.showMenu()
	progress := &latest{post: w.later}
	shown := false
	tell := func(p train.Progress) {
		progress.set(func() {
			if ctx.Err() != nil || !w.jobs.running() {
				return
			}
			detail := trainingDetail(p)
			if p.Stage == train.Learning {
				if !shown {
					shown = true
					w.jobs.sheet.Below(look.Rows(4, plot, look.Caption("thick: words a check, on prompts held back · thin: the loss")))
				}
				plot.Add(curve.Point{Step: int(p.Done), Value: p.Loss}, curve.Point{Step: p.Live.Step, Value: p.Live.Tau})
			}
			w.jobs.sheet.Progress(stage, float64(p.Done)/float64(max(1, p.Total)), detail)
			if w.jobs.open == nil {
				w.say(w.jobs.name + ": " + detail)
			}
		})
	}
	core, run := w.core, w.trainer
	w.spawn(func() {
		defer cancel()
		r, err := run(ctx, core, j, tell)
		w.later(func() { w.trained(f, r, err) })
	})
}

// trainingDetail says how far a training is.
func trainingDetail(p train.Progress) string {
	detail := ""
	switch p.Stage {
	case train.Reading:
		detail = fmt.Sprintf("%s of %s texts read · %s of %s at most on the disk", humanize.Comma(p.Done), humanize.Comma(p.Total), look.Memory(p.Bytes), look.Memory(min(p.Limit, max(p.Most, p.Bytes))))
	case train.Learning:
		detail = fmt.Sprintf("step %s of %s · %.2f words a check", humanize.Comma(p.Done), humanize.Comma(p.Total), p.Live.Tau)
	default:
		return p.Stage
	}
	if left := sheet.Left(p.Left); left != "" {
		detail += " · " + left
	}
	return detail
}

func (w *Window) trained(f *trainForm, r train.Result, err error) {
	w.jobs.cancel = nil
	w.showMenu()
	s := w.jobs.sheet
	shut := sheet.Button{Label: "Close", Pressed: w.closeSheet}
	onward := sheet.Button{Label: "Go On", Main: true, Pressed: func() { w.beginTraining(false) }}
	anew := sheet.Button{Label: "Begin Anew", Pressed: func() { w.beginTraining(true) }}
	switch out := home(strings.TrimSpace(f.out.Text)); {
	case errors.Is(err, context.Canceled) && f.discard:
		if err := train.Discard(out); err != nil {
			slog.Error("discarding a training", "error", err)
		}
		s.Ended("Cancelled. Nothing was left behind.", "", shut)
		w.say("Training was cancelled.")
		return
	case errors.Is(err, context.Canceled):
		s.Ended(fmt.Sprintf("Paused after step %s.", humanize.Comma(int64(r.Step))), "What was learned is kept. Going on from here, now or another day, with the same prompts and the same folder, comes to the same as not pausing.", anew, shut, onward)
		w.say("Training is paused; Jobs, Train Drafter… goes on.")
		return
	case err != nil:
		slog.Error("training", "error", err)
		buttons := []sheet.Button{shut}
		if train.Begun(out) {
			buttons = []sheet.Button{anew, shut, onward}
		}
		s.Ended(oneLine(err), err.Error(), buttons...)
		w.say("Training failed: " + oneLine(err))
		return
	}
	sentence := fmt.Sprintf("The drafter brings %.2f words a check, %.2f at first", r.Best.Tau, r.Live[0].Tau)
	more := "It is in " + shortPath(r.Out) + "."
	if r.HeldOut == 0 {
		more += " There were too few prompts to hold some back, so it was measured on those it learned."
	}
	s.Ended(sentence+". Use it now?", more, sheet.Button{Label: "Not Now", Pressed: w.closeSheet},
		sheet.Button{Label: "Use It Now", Main: true, Pressed: func() {
			w.closeSheet()
			w.use(r.Out)
		}})
	w.say("Done: " + sentence + ".")
	w.app.SendNotification(fyne.NewNotification("The drafter is trained", sentence+"."))
}
