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
		w.closing("Close"), sheet.Button{Label: "Train", Pressed: func() { w.beginTraining(false) }, Main: true})
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
	f.discard = false
	t := w.begin("Training a drafter for "+f.target.Name, func(cancel func()) []sheet.Button {
		return []sheet.Button{{Label: "Cancel", Pressed: func() { f.discard = true; cancel() }}, {Label: "Pause", Pressed: cancel}}
	})
	plot := curve.New(j.Settings.Steps)
	shown := false
	tell := func(p train.Progress) {
		t.tell(p.Progress, func() string {
			if p.Stage == train.Learning {
				if !shown {
					shown = true
					w.jobs.sheet.Below(look.Rows(4, plot, look.Caption("thick: words a check, on prompts held back · thin: the loss")))
				}
				plot.Add(curve.Point{Step: int(p.Done), Value: p.Loss}, curve.Point{Step: p.Live.Step, Value: p.Live.Tau})
			}
			return trainingDetail(p)
		})
	}
	core, run := w.core, w.trainer
	w.spawn(func() {
		defer t.cancel()
		r, err := run(t.ctx, core, j, tell)
		w.later(func() { w.trained(f, r, err) })
	})
}

// trainingDetail says how far a training is.
func trainingDetail(p train.Progress) string {
	switch p.Stage {
	case train.Reading:
		return fmt.Sprintf("%s of %s texts read · %s of %s at most on the disk", humanize.Comma(p.Done), humanize.Comma(p.Total), look.Memory(p.Bytes), look.Memory(min(p.Limit, max(p.Most, p.Bytes))))
	case train.Learning:
		return fmt.Sprintf("step %s of %s · %.2f words a check", humanize.Comma(p.Done), humanize.Comma(p.Total), p.Live.Tau)
	}
	return p.Stage
}

func (w *Window) trained(f *trainForm, r train.Result, err error) {
	out := home(strings.TrimSpace(f.out.Text))
	onward := sheet.Button{Label: "Go On", Main: true, Pressed: func() { w.beginTraining(false) }}
	anew := sheet.Button{Label: "Begin Anew", Pressed: func() { w.beginTraining(true) }}
	e := ending{doing: "Training", stopped: fmt.Sprintf("Paused after step %s.", humanize.Comma(int64(r.Step))),
		more: "What was learned is kept. Going on from here, now or another day, with the same prompts and the same folder, comes to the same as not pausing.",
		said: "Training is paused; Jobs, Train Drafter… goes on."}
	if f.discard {
		e = ending{doing: "Training", stopped: "Cancelled. Nothing was left behind."}
		if err := train.Discard(out); err != nil {
			slog.Error("discarding a training", "error", err)
		}
	}
	buttons := []sheet.Button{w.closing("Close")}
	if train.Begun(out) || !f.discard && errors.Is(err, context.Canceled) {
		buttons = []sheet.Button{anew, w.closing("Close"), onward}
	}
	if !w.over(err, e, buttons...) {
		return
	}
	sentence := fmt.Sprintf("The drafter brings %.2f words a check, %.2f at first", r.Best.Tau, r.Live[0].Tau)
	more := "It is in " + shortPath(r.Out) + "."
	if r.HeldOut == 0 {
		more += " There were too few prompts to hold some back, so it was measured on those it learned."
	}
	w.offerDrafter(r.Out, "The drafter is trained", sentence, more)
}
