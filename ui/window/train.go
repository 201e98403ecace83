package window

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"
	"github.com/dustin/go-humanize"

	"firesteel/core/job"
	"firesteel/core/library"
	"firesteel/core/prompts"
	"firesteel/core/train"
	"firesteel/models/checkpoint"
	"firesteel/models/deepspec"
	"firesteel/ui/window/curve"
	"firesteel/ui/window/look"
	"firesteel/ui/window/sheet"
)

// teachers do the trainings: train.Run begins a drafter, train.Tune goes on with one.
type teachers struct {
	train func(ctx context.Context, runner job.Runner, j train.Job, progress func(train.Progress)) (train.Result, error)
	tune  func(ctx context.Context, runner job.Runner, j train.TuneJob, progress func(train.Progress)) (train.Result, error)
}

// trainForm is what is asked before a drafter is trained, or tuned.
type trainForm struct {
	prompts *source
	out     *widget.Entry
	length  *widget.RadioGroup
	target  library.Description
	discard bool // the running job is to leave nothing behind

	// Of tuning alone.
	drafter *library.Description // nil: a new one is begun
	part    *widget.RadioGroup
}

// lengths are how long a new drafter can be trained, and one that is there be tuned.
var (
	lengths = amounts{
		{"a try: 300 steps", 300},
		{"usual: 3,000 steps", 3000},
		{"thorough: 12,000 steps", 12000},
	}
	tuningLengths = amounts{
		{"a try: 100 steps", 100},
		{"usual: 1,000 steps", 1000},
		{"thorough: 4,000 steps", 4000},
	}
)

// parts of a drafter that can be tuned, as the sheet names them.
var (
	partNames = []string{"how it joins words and how sure it is of them", "also how it listens to the target"}
	parts     = []deepspec.Part{deepspec.Heads, deepspec.HeadsAndTaps}
)

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
	f := &trainForm{target: *what, length: lengths.radio()}
	w.askToTrain(f, "Train a Drafter", fmt.Sprintf("Makes a new drafter for %[1]s: %[1]s answers the prompts, and the drafter learns to guess such answers. "+
		"The more prompts of the kind you use, the better; a thousand is a beginning.", what.Name),
		proposed(*what, true, "drafter"))
}

// tuneDrafter does the same for tuning the drafter that is loaded.
func (w *Window) tuneDrafter() {
	if w.jobs.running() {
		w.showSheet()
		return
	}
	if w.core == nil || !w.tunable() {
		return
	}
	what, d := w.models.loadedWhat[target], w.models.loadedWhat[drafter]
	f := &trainForm{target: *what, length: tuningLengths.radio(), drafter: d, part: radio(partNames, 0)}
	w.askToTrain(f, "Tune the Drafter", fmt.Sprintf("Teaches a copy of %s what %s writes: it answers the prompts, and part of the copy learns to guess such answers. "+
		"%s itself stays as it is.", d.Name, what.Name, d.Name),
		proposed(*d, same(d.Dir, w.models.builtin[drafter]), "tuned"), sheet.Field("What learns", look.Tight(f.part)))
}

// tunable says whether the drafter that is loaded is of a kind that can be tuned.
func (w *Window) tunable() bool {
	d := w.models.loadedWhat[drafter]
	return d != nil && d.Family == library.DeepSpec && w.models.loadedWhat[target] != nil
}

// askToTrain opens a new sheet about f, with fields of its own.
func (w *Window) askToTrain(f *trainForm, title, about, out string, fields ...fyne.CanvasObject) {
	w.closeSheet()
	w.jobs.sheet = sheet.New(title)
	w.jobs.training = f
	f.prompts, f.out = w.newSource(), widget.NewEntry()
	f.out.SetText(out)
	f.out.OnChanged = func(string) { w.trainButtons() }
	rows := append([]fyne.CanvasObject{look.Tight(look.Sentences(about)), sheet.Field("Prompts", f.prompts.content)}, fields...)
	w.jobs.sheet.Show(look.Rows(16, append(rows, sheet.Field("How long", look.Tight(f.length)), sheet.Field("To", f.out))...))
	w.trainButtons()
	w.showSheet()
}

// trainButtons puts those under the form that go with its folder: a training that was begun for it
// can go on.
func (w *Window) trainButtons() {
	if f := w.jobs.training; !train.Begun(f.folder()) {
		w.jobs.sheet.Note("", false)
		w.jobs.sheet.Buttons(w.closing("Close"), sheet.Button{Label: f.choose("Train", "Tune"), Pressed: func() { w.beginTraining(false) }, Main: true})
		return
	}
	w.jobs.sheet.Note("For this folder a training was begun and stopped. It can go on, with the prompts and the length it was begun with.", false)
	w.jobs.sheet.Buttons(w.onward()...)
}

// onward are the buttons of a training that can go on.
func (w *Window) onward() []sheet.Button {
	return []sheet.Button{{Label: "Begin Anew", Pressed: func() { w.beginTraining(true) }}, w.closing("Close"),
		{Label: "Go On", Main: true, Pressed: func() { w.beginTraining(false) }}}
}

// folder is where the drafter goes to.
func (f *trainForm) folder() string { return home(strings.TrimSpace(f.out.Text)) }

// choose is what is said of training a new drafter, or of tuning one.
func (f *trainForm) choose(training, tuning string) string {
	if f.drafter != nil {
		return tuning
	}
	return training
}

// beginTraining begins what the form asks for, or goes on with it; anew throws away what was begun.
func (w *Window) beginTraining(anew bool) {
	f := w.jobs.training
	if f == nil || w.core == nil || w.jobs.running() {
		return
	}
	wrong := func(sentence string) { w.jobs.sheet.Note(sentence, true) }
	j := train.Job{TargetDir: f.target.Dir, Out: f.folder()}
	if j.Out == "" {
		wrong("Name the folder that the drafter goes to.")
		return
	}
	if j.Resume = !anew && train.Begun(j.Out); j.Resume {
		w.runTraining(f, j)
		return
	}
	j.Settings.Seed = 1
	if f.drafter != nil {
		j.Settings.Steps = tuningLengths.of(f.length)
		j.Settings = j.Settings.FillForTuning(f.target, f.drafter.Block)
	} else {
		j.Settings.Steps = lengths.of(f.length)
		j.Shape = train.Shape(f.target, checkpoint.DSpark{})
		j.Settings = j.Settings.Fill(f.target, j.Shape.Gamma)
	}
	f.prompts.read(f.target.Dir, func(list []prompts.Prompt) {
		if anew {
			if err := train.Discard(j.Out); err != nil {
				wrong(oneLine(err))
				return
			}
		}
		j.Prompts = list
		w.runTraining(f, j)
	})
}

func (w *Window) runTraining(f *trainForm, j train.Job) {
	f.discard = false
	name := "Training a drafter for " + f.target.Name
	if f.drafter != nil {
		name = "Tuning " + f.drafter.Name
	}
	t := w.begin(name, func(cancel func()) []sheet.Button {
		return []sheet.Button{{Label: "Cancel", Pressed: func() { f.discard = true; cancel() }}, {Label: "Pause", Pressed: cancel}}
	})
	w.jobs.after = "What it has learned is kept, and it can go on another day."
	var plot *curve.Plot
	tell := func(p train.Progress) {
		t.tell(p.Progress, func() string {
			if p.Stage == train.Learning {
				if plot == nil {
					plot = curve.New(int(p.Total))
					w.jobs.sheet.Below(look.Rows(4, plot, look.Caption("thick: words per check, on prompts held back · thin: what is still guessed wrong")))
				}
				plot.Add(curve.Point{Step: int(p.Done), Value: p.Loss}, curve.Point{Step: p.Live.Step, Value: p.Live.Tau})
			}
			return trainingDetail(p)
		})
	}
	core, do := w.core, w.teachers
	teach := func() (train.Result, error) { return do.train(t.ctx, core, j, tell) }
	if f.drafter != nil {
		tuning := train.TuneJob{Job: j, DrafterDir: f.drafter.Dir, Part: parts[slices.Index(partNames, f.part.Selected)]}
		teach = func() (train.Result, error) { return do.tune(t.ctx, core, tuning, tell) }
	}
	w.spawn(func() {
		defer t.cancel()
		r, err := teach()
		w.later(func() { w.trained(f, r, err) })
	})
}

// trainingDetail says how far a training is.
func trainingDetail(p train.Progress) string {
	switch p.Stage {
	case train.Opening:
		return "Opening the models"
	case train.Reading:
		return fmt.Sprintf("%s of %s texts read · %s of %s at most on the disk", humanize.Comma(p.Done), humanize.Comma(p.Total), look.Files(p.Bytes), look.Files(min(p.Limit, max(p.Most, p.Bytes))))
	case train.Learning:
		return fmt.Sprintf("step %s of %s · %.2f words per check", humanize.Comma(p.Done), humanize.Comma(p.Total), p.Live.Tau)
	}
	return "Writing the drafter"
}

func (w *Window) trained(f *trainForm, r train.Result, err error) {
	e := ending{doing: f.choose("Training", "Tuning"), stopped: "Paused before the first step."}
	if r.Step > 0 {
		e.stopped = fmt.Sprintf("Paused after step %s.", humanize.Comma(int64(r.Step)))
	}
	e.more = "What was learned is kept. Going on from here, now or another day, comes to the same as not pausing."
	e.said = fmt.Sprintf("%s is paused; Jobs, %s goes on.", e.doing, f.choose("Train Drafter…", "Tune Drafter…"))
	if f.discard {
		e = ending{doing: e.doing, stopped: "Cancelled. Nothing was left behind."}
		if err := train.Discard(f.folder()); err != nil {
			slog.Error("discarding a training", "error", err)
		}
	}
	open := w.trainDrafter
	if f.drafter != nil {
		open = w.tuneDrafter
	}
	buttons := []sheet.Button{w.again(open), w.closing("Close")}
	if train.Begun(f.folder()) || !f.discard && errors.Is(err, context.Canceled) {
		buttons = w.onward()
	}
	if !w.over(err, e, buttons...) {
		return
	}
	more := "It is in " + shortPath(r.Out) + "."
	if r.HeldOut == 0 {
		more += " There were too few prompts to hold some back, so it was measured on those it learned."
	}
	if f.drafter != nil && r.Best.Step == 0 {
		w.jobs.sheet.Ended(fmt.Sprintf("Tuning brought no more than the %.2f words per check there were.", r.Best.Tau),
			"More prompts, or a longer tuning, may. The copy is the drafter as it was. "+more, w.closing("Close"))
		w.say("Tuning is done; it brought nothing more.")
		return
	}
	sentence := fmt.Sprintf("The drafter brings %.2f words per check, %.2f at first", r.Best.Tau, r.Live[0].Tau)
	w.offerMade(drafter, r.Out, f.choose("The drafter is trained", "The drafter is tuned"), sentence, more)
}
