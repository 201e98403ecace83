package window

import (
	"context"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/theme"

	"firesteel/core/confidence"
	"firesteel/core/engine"
	"firesteel/core/job"
	"firesteel/core/memory"
	"firesteel/core/train"
	"firesteel/ui/window/answer"
	"firesteel/ui/window/journal"
	"firesteel/ui/window/knob"
	"firesteel/ui/window/logfile"
	"firesteel/ui/window/look"
	"firesteel/ui/window/meter"
	"firesteel/ui/window/prompt"
	"firesteel/ui/window/settings"
)

// sideWidth is the left column's width at a text size of 100 %.
const sideWidth float32 = 280

// Window is the whole window. Its fields and methods belong to Fyne's thread unless they say
// otherwise.
type Window struct {
	options  Options
	app      fyne.App
	win      fyne.Window
	post     func(func()) // runs a function on Fyne's thread; must not be called on it
	settings settings.Settings
	saver    *saver
	theme    *look.Theme

	// life ends when the window closes; work counts the goroutines that must end then.
	life context.Context
	end  context.CancelFunc
	work sync.WaitGroup
	shut sync.Once

	lookAgain time.Duration

	core     Core
	startErr error // why there is no core
	controls *engine.Controls
	models   models
	load     load
	writing  writing
	jobs     jobs
	teachers teachers
	journal  *journal.Journal
	log      logfile.File
	changes  int             // of the journal, counted
	left     *fyne.Container // what an earlier run left unfinished

	hints   *look.Hints
	talk    *answer.View
	prompt  *prompt.Box
	knobs   struct{ gamma, temperature, threshold *knob.Knob }
	memory  *meter.Card
	status  *look.Text
	place   *look.Text // at the right of the status line: where the work is done
	side    *fyne.Container
	column  fitted // of models and sliders, in the side
	menu    menu
	dialog  dialog.Dialog // the one that is open, or nil
	content fyne.CanvasObject
}

// newWindow builds the window without showing it. post runs a function on Fyne's thread.
func newWindow(a fyne.App, o Options, s settings.Settings, post func(func())) *Window {
	w := &Window{options: o, app: a, settings: s, post: post, lookAgain: lookAgain}
	w.life, w.end = context.WithCancel(context.Background())
	w.teachers = teachers{train.Run, train.Tune}
	w.saver = newSaver(o.SettingsPath)
	w.journal = journal.In(w.keepIn())
	w.log = logfile.File(w.keepIn())
	w.theme = &look.Theme{Mode: look.Mode(s.Theme), Scale: float32(s.TextSize) / 100}
	a.Settings().SetTheme(w.theme)
	w.controls = engine.NewControls(engine.Knobs{})
	w.hints = look.NewHints()

	w.win = a.NewWindow("Firesteel")
	w.win.SetMaster()
	w.win.SetPadded(false)
	w.content = container.NewStack(w.makeFrame(), w.hints.Layer)
	w.win.SetContent(w.content)
	w.makeMenu()
	w.catchKeys()
	w.win.Resize(fyne.NewSize(s.Width, s.Height))
	w.win.SetOnDropped(w.dropped)
	w.win.Canvas().Focus(w.prompt.Focusable())
	w.applyKnobs()
	w.showAll()
	return w
}

func (w *Window) makeFrame() fyne.CanvasObject {
	w.side = look.Fixed(w.sideWidth(), 0, w.makeSide())
	return look.Frame(nil, w.makeStatus(), w.side, w.makeConversation())
}

func (w *Window) sideWidth() float32 {
	return sideWidth * max(1, (1+w.theme.Scale)/2)
}

func (w *Window) makeSide() fyne.CanvasObject {
	w.memory = meter.New("Free memory", w.freeMemory)
	upper := look.Rows(20, w.makeModels(), w.makeKnobs())
	lower := look.Pad(12, 12, 16, 16, w.memory)
	rule := look.Fixed(0, 1, look.NewPanel(look.ColorEdge, "", 0))
	frame := look.Frame(nil, look.Rows(0, rule, lower), nil, container.NewVScroll(look.Pad(12, 8, 16, 16, upper)))
	w.memory.OnResized = frame.Refresh
	w.column = fitted{content: upper, around: frame}
	return container.NewStack(look.NewPanel(look.ColorSide, "", 0), frame)
}

// fitted is content whose height changes, and what is laid out around it.
type fitted struct {
	content, around *fyne.Container
	size            fyne.Size
}

// fit lays everything out anew if the content needs another height now. Fyne does so by itself only
// for the last of several parts that change between two frames.
func (f *fitted) fit() {
	if size := f.content.MinSize(); size != f.size {
		f.size = size
		f.around.Refresh()
	}
}

func (w *Window) makeConversation() fyne.CanvasObject {
	w.talk = answer.New(w.hints, w.makeEmpty())
	w.talk.OnCopy = func(text string) {
		w.app.Clipboard().SetContent(text)
		w.say("Copied.")
	}
	w.talk.OnRetry = w.retry
	w.talk.OnLog = w.showLog
	w.prompt = prompt.New()
	w.prompt.Placeholder("Write here. Return sends, Shift-Return starts a line.")
	w.prompt.OnSend = w.send
	w.prompt.OnStop = w.stop
	w.prompt.OnShortcut = func(s fyne.Shortcut) {
		if t, ok := w.win.Canvas().(fyne.Shortcutable); ok {
			t.TypedShortcut(s)
		}
	}
	return look.Frame(nil, container.New(inColumn{}, look.Pad(8, 16, 0, 0, w.prompt)), nil, w.talk)
}

// inColumn keeps its object in the column that the conversation is in.
type inColumn struct{}

func (inColumn) Layout(o []fyne.CanvasObject, size fyne.Size) {
	x, width := answer.Column(size.Width)
	o[0].Move(fyne.NewPos(x, 0))
	o[0].Resize(fyne.NewSize(width, size.Height))
}

func (inColumn) MinSize(o []fyne.CanvasObject) fyne.Size {
	return fyne.NewSize(320, o[0].MinSize().Height)
}

// examples are prompts that the pair that comes with the app answers well.
var examples = []string{
	"Tell me a story about Mia and a brave dog.",
	"Write a short bedtime story about patience.",
	"Give me three tips for staying healthy.",
}

func (w *Window) makeEmpty() fyne.CanvasObject {
	title := look.NewText("What shall it be about?")
	title.Sizing, title.Bold, title.Align = theme.SizeNameHeadingText, true, fyne.TextAlignCenter
	hint := look.Caption("Write below and press Return, or begin with one of these.")
	hint.Align = fyne.TextAlignCenter
	rows := []fyne.CanvasObject{title, hint, look.Fixed(0, 8, look.NewPanel("", "", 0))}
	for _, e := range examples {
		b := look.NewTextButton(e, func() {
			w.prompt.SetText(e)
			w.focusPrompt()
		})
		rows = append(rows, container.NewCenter(b))
	}
	w.left = look.Rows(0)
	w.left.Hide()
	return container.NewCenter(look.Rows(look.Unit, append([]fyne.CanvasObject{w.left}, rows...)...))
}

// keepIn is the folder that the window keeps things in; "" when there is none.
func (w *Window) keepIn() string { return keepIn(w.options) }

func keepIn(o Options) string {
	if o.SettingsPath == "" {
		return ""
	}
	return filepath.Dir(o.SettingsPath)
}

// calibrations is the folder that calibrations of pairs are kept in; "" for none.
func (w *Window) calibrations() string {
	if dir := w.keepIn(); dir != "" {
		return confidence.Under(dir)
	}
	return ""
}

func (w *Window) makeStatus() fyne.CanvasObject {
	w.status, w.place = look.Caption("Starting…"), look.Caption("")
	w.status.Shrink = true
	rule := look.Fixed(0, 1, look.NewPanel(look.ColorEdge, "", 0))
	return container.NewStack(look.NewPanel(look.ColorSide, "", 0),
		look.Rows(0, rule, look.Pad(5, 5, 16, 16, look.Line(2*look.Unit, 0, w.status, w.place))))
}

// say shows a sentence in the status line until something else happens.
func (w *Window) say(sentence string) { w.status.Set(sentence) }

func (w *Window) focusPrompt() { w.win.Canvas().Focus(w.prompt.Focusable()) }

// start begins what happens in the background: the core, the pair that comes with the app,
// and a memory reading each second.
func (w *Window) start() {
	w.say("Starting…")
	w.spawn(func() {
		var target, drafter string
		var pairErr error
		var both sync.WaitGroup
		if w.options.DemoPair != nil {
			both.Go(func() { target, drafter, pairErr = w.options.DemoPair() })
		}
		core, err := w.options.Open()
		both.Wait()
		w.later(func() { w.started(core, err, target, drafter, pairErr) })
		if w.life.Err() != nil && core != nil {
			core.Close()
		}
	})
	w.spawn(func() {
		if n, err := job.RemoveLeftovers(w.keepIn()); n > 0 || err != nil {
			slog.Info("removed what an earlier run left unfinished", "count", n, "error", err)
		}
	})
	w.spawn(w.watchMemory)
	w.spawn(w.follow)
	if w.options.Found != nil {
		w.app.Lifecycle().SetOnEnteredForeground(func() { w.inFront(true) })
		w.app.Lifecycle().SetOnExitedForeground(func() { w.inFront(false) })
		w.spawn(w.followFound)
	}
	w.spawn(func() {
		page, forget := journal.Left(w.keepIn())
		if forget != nil {
			w.later(func() { w.offer(page, forget) })
		}
	})
}

func (w *Window) started(core Core, err error, target, drafter string, pairErr error) {
	w.core, w.startErr = core, err
	if pairErr != nil {
		slog.Error("the pair that comes with the app is not there", "error", pairErr)
	}
	if err != nil {
		slog.Error("nothing can be computed here", "error", err)
		w.say("Firesteel can't compute on " + look.Machine() + ". " + oneLine(err))
	} else {
		slog.Info("started", "version", w.options.Version, "system", runtime.GOOS+"/"+runtime.GOARCH,
			"device", core.Device(), "on_gpu", core.OnGPU(), "memory", look.MemoryGB(core.Memory().MachineTotal))
		w.place.Set(deviceWords(core.Device()) + " · nothing leaves " + look.Machine())
		w.say("Ready.")
	}
	w.models.builtin = [2]string{target, drafter}
	w.firstChoice(pairErr)
	w.showAll()
}

// deviceWords writes the chip's name without its makers' marks.
func deviceWords(name string) string {
	if strings.EqualFold(name, "cpu") {
		return "Works on the processor"
	}
	return strings.NewReplacer("(R)", "", "(TM)", "", " CPU", "").Replace(name)
}

// spawn runs f on a goroutine of its own that closing the window waits for.
func (w *Window) spawn(f func()) { w.work.Go(f) }

// later runs f on Fyne's thread, unless the window has closed by then. It may be called from
// any goroutine but Fyne's.
func (w *Window) later(f func()) {
	if w.life.Err() != nil {
		return
	}
	w.post(func() {
		if w.life.Err() == nil {
			f()
		}
	})
}

func (w *Window) watchMemory() {
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	var core Core
	for {
		reading := engine.Memory{}
		if core != nil {
			reading = core.Memory()
		} else {
			r := memory.Read()
			reading.Process, reading.ProcessPeak = r.Process, r.ProcessPeak
			reading.MachineTotal, reading.Available = r.MachineTotal, r.Available
		}
		next := make(chan Core, 1)
		w.later(func() {
			w.showMemory(reading)
			next <- w.core
		})
		select {
		case <-w.life.Done():
			return
		case core = <-next:
		}
		select {
		case <-w.life.Done():
			return
		case <-ticks.C:
		}
	}
}

func (w *Window) showMemory(m engine.Memory) {
	w.memory.Set(m)
	if w.models.reading.MachineTotal == 0 || w.load.cancel == nil {
		w.models.reading = m
		w.showBill()
	}
}

// freeMemory is the button that helps when memory is nearly full.
func (w *Window) freeMemory() {
	if w.writing.turn != nil {
		w.stop()
		w.say("Stopped, so that memory becomes free.")
		return
	}
	w.unload()
}

// showAll brings everything that depends on the state up to date.
func (w *Window) showAll() {
	w.showCards()
	w.showLoad()
	w.showKnobs()
	w.showMenu()
	w.column.fit()
}

// shutDown ends everything that runs and keeps the settings. It waits three seconds at most
// and may be called after Fyne has ended; a second call does nothing.
func (w *Window) shutDown() {
	w.shut.Do(w.endAll)
}

func (w *Window) endAll() {
	w.end()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.saver.finish()
		if w.core != nil {
			w.core.Close()
		}
		w.work.Wait()
	}()
	select {
	case <-ended:
		slog.Info("ended")
	case <-time.After(3 * time.Second):
		slog.Info("ended before everything in the background had")
	}
}
