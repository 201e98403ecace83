package window

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"
	"fyne.io/fyne/v2/widget"

	"firesteel/core/calibrate"
	"firesteel/core/confidence"
	"firesteel/core/engine"
	"firesteel/core/job"
	"firesteel/core/quantize"
	"firesteel/ui/window/settings"
)

// pairFolder holds the pair that comes with the app.
const pairFolder = "../../models/demo/pair"

// scripted is a core that does what a test says.
type scripted struct {
	generate func(ctx context.Context, r engine.Request, emit func(engine.Event)) (engine.Result, error)
	load     func(ctx context.Context, r engine.LoadRequest) error
	quantize func(ctx context.Context, p *quantize.Plan, tell func(job.Progress)) (quantize.Result, error)
	memory   engine.Memory // the zero one: there is enough

	mutex    sync.Mutex
	loaded   engine.Loaded
	requests []engine.Request
	loads    []engine.LoadRequest
	closed   int
}

func (s *scripted) Load(ctx context.Context, r engine.LoadRequest) (engine.Loaded, error) {
	s.mutex.Lock()
	s.loads = append(s.loads, r)
	s.mutex.Unlock()
	if s.load != nil {
		if err := s.load(ctx, r); err != nil {
			return s.Loaded(), err
		}
	}
	loaded := engine.Loaded{Target: &engine.ModelInfo{Name: "target", Dir: r.TargetDir, Precision: "bf16"}}
	if r.DrafterDir != "" {
		loaded.Drafter = &engine.ModelInfo{Name: "drafter", Dir: r.DrafterDir, Block: 7, HasThreshold: true}
	}
	s.mutex.Lock()
	s.loaded = loaded
	s.mutex.Unlock()
	return loaded, nil
}

func (s *scripted) Unload(context.Context) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.loaded = engine.Loaded{}
	return nil
}

func (s *scripted) Loaded() engine.Loaded {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.loaded
}

func (s *scripted) Generate(ctx context.Context, r engine.Request, emit func(engine.Event)) (engine.Result, error) {
	s.mutex.Lock()
	s.requests = append(s.requests, r)
	s.mutex.Unlock()
	if s.generate == nil {
		emit(engine.Text{Delta: "An answer."})
		return engine.Result{Text: "An answer.", Stop: engine.StopToken}, nil
	}
	return s.generate(ctx, r, emit)
}

func (s *scripted) Memory() engine.Memory {
	if s.memory.MachineTotal > 0 {
		return s.memory
	}
	return engine.Memory{Process: 1 << 28, MachineTotal: 24 << 30, Available: 12 << 30, Target: 54 << 20, Drafter: 21 << 20, Peak: 89 << 20}
}

func (s *scripted) Quantize(ctx context.Context, p *quantize.Plan, tell func(job.Progress)) (quantize.Result, error) {
	if s.quantize == nil {
		tell(job.Progress{Stage: "packing", Done: p.SourceBytes, Total: p.SourceBytes})
		return quantize.Result{Dir: p.Destination, ResultBytes: p.ResultBytes}, nil
	}
	return s.quantize(ctx, p, tell)
}

func (s *scripted) Tau(_ context.Context, dir string, _ []string, _ int) (float64, error) {
	if strings.HasSuffix(dir, "drafter") {
		return 3.21, nil
	}
	return 3.04, nil
}

func (s *scripted) Recalibrate(_ context.Context, dir string) (engine.Loaded, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	pair, err := calibrate.Pair(s.loaded)
	if err == nil {
		s.loaded.Calibration, err = confidence.Read(dir, pair.Target.Identity, pair.Drafter.Identity)
	}
	return s.loaded, err
}

func (s *scripted) Do(_ context.Context, f func() error) error { return f() }

func (s *scripted) Device() string { return "CPU" }
func (s *scripted) OnGPU() bool    { return false }
func (s *scripted) Close() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.closed++
	return nil
}

// stage is a window whose thread is the test's goroutine.
type stage struct {
	*Window
	t     testing.TB
	core  *scripted
	queue chan func()
	// slowest is the longest that one function took on the window's thread.
	slowest time.Duration
}

// open shows a window with the pair loaded.
func open(t *testing.T, core *scripted) *stage {
	t.Helper()
	s := openWith(t, core, filepath.Join(t.TempDir(), "settings.json"))
	s.until("the pair is loaded", func() bool { return s.models.loaded.Target != nil })
	return s
}

// openWith shows a window, on Fyne's test driver, that remembers things in the file path.
func openWith(t *testing.T, core *scripted, path string, more ...func(*Options)) *stage {
	t.Helper()
	s := openOn(t, test.NewTempApp(t), core, path, more...)
	t.Cleanup(s.shutDown)
	return s
}

// openOn is openWith on an app of any driver. The window's thread is the goroutine that calls it;
// shutDown is left to the caller.
func openOn(t testing.TB, a fyne.App, core *scripted, path string, more ...func(*Options)) *stage {
	t.Helper()
	s := &stage{t: t, core: core, queue: make(chan func(), 4096)}
	kept, err := settings.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	options := Options{
		Open: func() (Core, error) { return core, nil },
		DemoPair: func() (string, string, error) {
			return filepath.Join(pairFolder, "target"), filepath.Join(pairFolder, "drafter"), nil
		},
		SettingsPath: path,
	}
	for _, change := range more {
		change(&options)
	}
	s.Window = newWindow(a, options, kept, func(f func()) { s.queue <- f })
	s.lookAgain = 100 * time.Millisecond
	s.win.Show()
	s.start()
	return s
}

// until runs what is queued for the window's thread until the condition holds.
func (s *stage) until(what string, condition func() bool) {
	s.t.Helper()
	limit := time.After(20 * time.Second)
	for !condition() {
		select {
		case f := <-s.queue:
			begun := time.Now()
			f()
			s.slowest = max(s.slowest, time.Since(begun))
		case <-limit:
			s.t.Fatalf("waited for too long: %s", what)
		}
	}
}

// pass lets the window run for a while.
func (s *stage) pass(d time.Duration) {
	over := time.Now().Add(d)
	time.AfterFunc(d, func() { s.queue <- func() {} })
	s.until("time passes", func() bool { return !time.Now().Before(over) })
}

// dialogText is what the labels of the dialog in front say.
func (s *stage) dialogText() string {
	var all []string
	for _, o := range test.LaidOutObjects(s.win.Canvas().Overlays().Top()) {
		if l, ok := o.(*widget.Label); ok && l.Visible() {
			all = append(all, l.Text)
		}
	}
	return strings.Join(all, "\n")
}

// typeAndSend writes a prompt the way a person does.
func (s *stage) typeAndSend(text string) {
	s.t.Helper()
	focused := s.win.Canvas().Focused()
	if focused != s.prompt.Focusable() {
		s.t.Fatalf("the keyboard is not in the prompt but in %T", focused)
	}
	test.Type(focused, text)
	focused.TypedKey(&fyne.KeyEvent{Name: fyne.KeyReturn})
}

func (s *stage) idle() bool { return s.writing.turn == nil }

// lastAnswer returns the text of the newest answer.
func (s *stage) lastAnswer() string {
	turns := s.talk.Turns()
	if len(turns) == 0 {
		return ""
	}
	return turns[len(turns)-1].Answer()
}
