package window

import (
	"context"
	"errors"
	"log/slog"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/dialog"

	"firesteel/core/job"
	"firesteel/ui/window/sheet"
)

// jobs is the one job that runs, if any, and its sheet.
type jobs struct {
	cancel context.CancelFunc // not nil while one runs
	name   string             // what it does, for the status line and the question when quitting
	after  string             // what becomes of it when the app is quit
	sheet  *sheet.Sheet
	open   dialog.Dialog // the sheet's dialog while it is on the screen
	form   *quantizeForm
	// training is what is asked before training.
	training *trainForm
	// calibrating is what is asked before calibrating.
	calibrating *calibrateForm
	unseen      *sheet.Sheet // of a calibration that ended while it was closed
}

// running says whether a job is at work.
func (j *jobs) running() bool { return j.cancel != nil }

// showSheet puts the sheet on the screen; a job goes on when it is closed.
func (w *Window) showSheet() {
	if w.jobs.open != nil {
		return
	}
	d := w.openSheet(w.jobs.sheet)
	w.jobs.open = d
	d.SetOnClosed(func() {
		if w.dialog == d {
			w.dialog = nil
		}
		if w.jobs.open == d {
			w.jobs.open = nil
		}
		w.focusPrompt()
	})
}

// openSheet shows a sheet as a dialog that keeps to its height.
func (w *Window) openSheet(s *sheet.Sheet) dialog.Dialog {
	const around = 96 // the dialog's title and edges, and some of the window
	s.Room = func() float32 { return w.win.Canvas().Size().Height - around*w.theme.Scale }
	s.Widen(max(1, w.theme.Scale))
	d := dialog.NewCustomWithoutButtons(s.Title, s.Content, w.win)
	w.showDialog(d)
	s.OnChanged = func() { d.Resize(d.MinSize()) }
	return d
}

func (w *Window) closeSheet() {
	if d := w.jobs.open; d != nil {
		d.Hide()
	}
}

// task is a job at work.
type task struct {
	w      *Window
	ctx    context.Context // ends with the job, with cancel, and with the window
	cancel context.CancelFunc
	stage  string
	newest latest
}

// begin makes a job the one that runs and shows its progress on the sheet. name is what it does.
// buttons, which may be nil, are given what cancels it; one that closes the sheet follows them.
func (w *Window) begin(name string, buttons func(cancel func()) []sheet.Button) *task {
	t := &task{w: w, stage: name + " …", newest: latest{post: w.later}}
	t.ctx, t.cancel = context.WithCancel(w.life)
	slog.Info("a job has begun", "job", name)
	w.jobs.cancel, w.jobs.name, w.jobs.after = t.cancel, name, "It leaves nothing behind and has to be started again."
	if buttons == nil {
		buttons = func(cancel func()) []sheet.Button { return []sheet.Button{{Label: "Cancel", Pressed: cancel}} }
	}
	t.working(t.stage, buttons(t.cancel)...)
	w.showMenu()
	return t
}

// working shows a stage of its own on the sheet, with buttons before the one that closes it.
func (t *task) working(stage string, buttons ...sheet.Button) {
	behind := func() {
		t.w.closeSheet()
		t.w.say(stage)
	}
	t.w.jobs.sheet.Working(stage, append(buttons, sheet.Button{Label: "Go On in the Background", Pressed: behind})...)
}

// tell shows how far the job is: on the sheet, or in the status line while that is closed. detail
// puts it into words, on Fyne's thread. tell may be called from any goroutine and never waits; of
// what is told quickly the newest is shown.
func (t *task) tell(p job.Progress, detail func() string) {
	w := t.w
	t.newest.set(func() {
		if t.ctx.Err() != nil || !w.jobs.running() {
			return
		}
		words := detail()
		if left := sheet.Left(p.Left); left != "" {
			words += " · " + left
		}
		w.jobs.sheet.Progress(t.stage, float64(p.Done)/float64(max(1, p.Total)), words)
		if w.jobs.open == nil {
			w.say(w.jobs.name + ": " + words)
		}
	})
}

// ending is what is said of a job that did not come to its end.
type ending struct {
	doing         string // the kind of job, as sentences begin with it: "Quantizing"
	stopped, more string // on the sheet, where a person stopped it
	said          string // in the status line then; "" says that it was cancelled
}

// over is called when the job has ended. Where it was stopped or failed, it says so on the sheet,
// with these buttons, and in the status line, and returns false.
func (w *Window) over(err error, e ending, buttons ...sheet.Button) (done bool) {
	w.jobs.cancel = nil
	w.showMenu()
	switch {
	case errors.Is(err, context.Canceled):
		slog.Info("a job was stopped", "job", w.jobs.name)
		if e.said == "" {
			e.said = e.doing + " was cancelled."
		}
		w.jobs.sheet.Ended(e.stopped, e.more, buttons...)
		w.say(e.said)
	case err != nil:
		slog.Error("a job has failed", "job", w.jobs.name, "error", err)
		w.jobs.sheet.Ended(oneLine(err), err.Error(), append([]sheet.Button{{Label: "Show Log", Pressed: w.showLog}}, buttons...)...)
		w.say(e.doing + " failed: " + oneLine(err))
	default:
		slog.Info("a job is done", "job", w.jobs.name)
	}
	return err == nil
}

// closing is the button that closes the sheet.
func (w *Window) closing(label string) sheet.Button {
	return sheet.Button{Label: label, Pressed: w.closeSheet}
}

// again is the button that opens a new sheet in place of one whose job has ended.
func (w *Window) again(open func()) sheet.Button {
	return sheet.Button{Label: "Start Again", Pressed: func() {
		w.closeSheet()
		open()
	}}
}

// offerMade shows what a job has made, a model in folder dir, and offers to use it. title is the
// notification's.
func (w *Window) offerMade(r role, dir, title, sentence, more string) {
	w.jobs.sheet.Ended(sentence+". Use it now?", more, w.closing("Not Now"), sheet.Button{Label: "Use It Now", Main: true, Pressed: func() {
		w.closeSheet()
		w.use(r, dir)
	}})
	w.say("Done: " + sentence + ".")
	w.app.SendNotification(fyne.NewNotification(title, sentence+"."))
}

// use chooses a model and loads it with the other one that is chosen.
func (w *Window) use(r role, dir string) {
	dirs := [2]string{w.models.choices[target].dir, w.models.choices[drafter].dir}
	dirs[r] = dir
	w.look(dirs, "", true)
}
