package window

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/storage"
	"fyne.io/fyne/v2/test"
	"fyne.io/fyne/v2/widget"

	"firesteel/core/confidence"
	"firesteel/core/engine"
	"firesteel/core/library"
	"firesteel/ui/window/look"
	"firesteel/ui/window/settings"
)

// untilCancelled writes a word each millisecond until it is told to stop.
func untilCancelled(ctx context.Context, r engine.Request, emit func(engine.Event)) (engine.Result, error) {
	emit(engine.Prefill{Done: 3, Total: 3})
	for i := 1; ; i++ {
		emit(engine.Text{Delta: "word "})
		emit(engine.Round{Drafted: r.Controls.Get().Gamma, Accepted: 2, Tokens: i, Elapsed: time.Duration(i) * time.Millisecond})
		select {
		case <-ctx.Done():
			return engine.Result{Stop: engine.StopCancelled}, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// beneath fails where an object of the column stands on the one before it.
func (s *stage) beneath() {
	s.t.Helper()
	y := float32(0)
	for _, o := range s.column.content.Objects {
		if o.Position().Y < y {
			s.t.Errorf("%T begins at %v, but what is above it ends at %v", o, o.Position().Y, y)
		}
		y = o.Position().Y + o.MinSize().Height
	}
}

func TestNothingOverlapsInTheColumn(t *testing.T) {
	s := open(t, &scripted{memory: engine.Memory{MachineTotal: 24 << 30, Available: 1 << 20, Process: 1 << 28}})
	s.pass(0)
	s.beneath()
	s.choose(target, filepath.Join(pairFolder, "drafter"))
	s.until("a drafter is refused as a target", func() bool { return s.models.choices[target].err != nil })
	s.beneath()
	s.choose(target, filepath.Join(pairFolder, "target"))
	s.choose(drafter, "")
	s.until("the drafter is left out", func() bool { return s.usable() && !s.asLoaded() })
	s.until("it does not fit", func() bool { return s.load.hints.Visible() })
	s.beneath()
}

func TestFirstStart(t *testing.T) {
	core := &scripted{}
	s := open(t, core)
	if s.win.Canvas().Focused() != s.prompt.Focusable() {
		t.Error("the keyboard is not in the prompt at the start")
	}
	card := s.models.cards[target].Shown()
	if card.Name != "Firesteel Demo" || card.Detail != "14 M" || card.About != "Gemma 4 · bf16 · 28 MB" || !card.Loaded {
		t.Errorf("the target's card says %+v", card)
	}
	card = s.models.cards[drafter].Shown()
	if card.Name != "Demo drafter" || card.Detail != "γ 7" || card.About != "DeepSpec · bf16 · 11 MB" {
		t.Errorf("the drafter's card says %+v", card)
	}
	s.until("memory is read", func() bool { return s.models.reading.MachineTotal > 0 })
	if s.load.button.Text != "Loaded" || !s.load.button.Disabled() || !strings.HasPrefix(s.load.bill.Text(), "fits · 0.") {
		t.Errorf("the button says %q beside %q", s.load.button.Text, s.load.bill.Text())
	}
	if got := s.controls.Get(); got != (engine.Knobs{Gamma: 7, Temperature: 0.7}) {
		t.Errorf("the sliders begin at %+v", got)
	}
}

func TestReturnSends(t *testing.T) {
	core := &scripted{}
	s := open(t, core)
	s.typeAndSend("Tell me a story.")
	s.until("the answer is there", s.idle)
	if len(core.requests) != 1 || len(core.requests[0].Messages) != 1 || core.requests[0].Messages[0].Content != "Tell me a story." {
		t.Fatalf("asked %+v", core.requests)
	}
	if s.prompt.Text() != "" || s.lastAnswer() != "An answer." {
		t.Errorf("prompt %q, answer %q", s.prompt.Text(), s.lastAnswer())
	}
	// The second prompt carries the first exchange.
	s.typeAndSend("And now?")
	s.until("the second answer is there", s.idle)
	if got := core.requests[1].Messages; len(got) != 3 || got[1].Role != "assistant" || got[1].Content != "An answer." {
		t.Errorf("the second request holds %+v", got)
	}
	// Shift+Return starts a line and sends nothing.
	e := s.prompt.Focusable().(interface {
		KeyDown(*fyne.KeyEvent)
		KeyUp(*fyne.KeyEvent)
	})
	test.Type(s.prompt.Focusable(), "one")
	e.KeyDown(&fyne.KeyEvent{Name: "LeftShift"})
	s.prompt.Focusable().TypedKey(&fyne.KeyEvent{Name: fyne.KeyReturn})
	e.KeyUp(&fyne.KeyEvent{Name: "LeftShift"})
	test.Type(s.prompt.Focusable(), "two")
	if s.prompt.Text() != "one\ntwo" || len(core.requests) != 2 {
		t.Errorf("Shift+Return made %q of it", s.prompt.Text())
	}
}

func TestSendWhileLoading(t *testing.T) {
	gate := make(chan struct{})
	core := &scripted{load: func(ctx context.Context, r engine.LoadRequest) error { <-gate; return nil }}
	s := openWith(t, core, filepath.Join(t.TempDir(), "settings.json"))
	s.until("loading has begun", func() bool { return s.load.cancel != nil })
	s.typeAndSend("Hello")
	if len(s.talk.Turns()) != 1 || s.idle() {
		t.Fatal("the prompt was not taken while loading")
	}
	close(gate)
	s.until("the answer is there", s.idle)
	if s.lastAnswer() != "An answer." {
		t.Errorf("answered %q", s.lastAnswer())
	}
}

// A prompt sent while the folders are still being looked at waits until they are loaded.
func TestSendWhileStarting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.json")
	dir := filepath.Join(t.TempDir(), "my own")
	copyFolder(t, filepath.Join(pairFolder, "target"), dir)
	if err := (settings.Settings{Target: dir, NoDrafter: true}).Save(path); err != nil {
		t.Fatal(err)
	}
	core := &scripted{}
	s := openWith(t, core, path)
	s.typeAndSend("Hello")
	s.until("the folders are looked at", s.choosing)
	if s.idle() {
		t.Fatal("the prompt was not taken")
	}
	s.until("it has ended", s.idle)
	if s.lastAnswer() != "An answer." || s.talk.Turns()[0].Writer() != "my own" {
		t.Errorf("%q answered %q", s.talk.Turns()[0].Writer(), s.lastAnswer())
	}
}

func TestCancelledLoadGivesThePromptBack(t *testing.T) {
	core := &scripted{load: func(ctx context.Context, r engine.LoadRequest) error { <-ctx.Done(); return ctx.Err() }}
	s := openWith(t, core, filepath.Join(t.TempDir(), "settings.json"))
	s.until("loading has begun", func() bool { return s.load.cancel != nil })
	s.typeAndSend("Hello")
	s.load.cancel()
	s.until("cancelled", func() bool { return s.load.cancel == nil })
	if !s.idle() || len(s.talk.Turns()) != 0 || s.prompt.Text() != "Hello" {
		t.Errorf("%d exchanges, prompt %q", len(s.talk.Turns()), s.prompt.Text())
	}
}

func TestStopKeepsText(t *testing.T) {
	s := open(t, &scripted{generate: untilCancelled})
	s.typeAndSend("Go on for ever.")
	s.until("words arrive", func() bool { return len(s.lastAnswer()) > 50 })
	s.prompt.Press()
	s.until("it has stopped", s.idle)
	turn := s.talk.Turns()[0]
	if len(turn.Answer()) <= 50 || !strings.Contains(turn.Line(), "stopped") {
		t.Errorf("after Stop: %d characters, %q", len(turn.Answer()), turn.Line())
	}
	// Stop by key, then answer again in its place.
	s.retryLast()
	s.until("words arrive again", func() bool { return len(s.lastAnswer()) > 50 })
	s.prompt.Focusable().TypedKey(&fyne.KeyEvent{Name: fyne.KeyEscape})
	s.until("it has stopped again", s.idle)
	if len(s.talk.Turns()) != 1 {
		t.Errorf("%d exchanges after Retry", len(s.talk.Turns()))
	}
}

func TestSlidersReachARunningRequest(t *testing.T) {
	seen := make(chan int, 1000)
	core := &scripted{generate: func(ctx context.Context, r engine.Request, emit func(engine.Event)) (engine.Result, error) {
		for ctx.Err() == nil {
			k := r.Controls.Get()
			if k.Gamma == 3 && k.Temperature == 0 && k.Threshold != nil && *k.Threshold == 0.5 {
				seen <- k.Gamma
				return engine.Result{Stop: engine.StopToken}, nil
			}
			time.Sleep(time.Millisecond)
		}
		return engine.Result{Stop: engine.StopCancelled}, ctx.Err()
	}}
	path := filepath.Join(t.TempDir(), "settings.json")
	s := openWith(t, core, path)
	s.until("the pair is loaded", func() bool { return s.models.loaded.Target != nil })
	s.typeAndSend("Go")
	s.pass(50 * time.Millisecond)
	s.knobs.gamma.Type("3")
	for range 40 {
		s.knobs.temperature.Slider().TypedKey(&fyne.KeyEvent{Name: fyne.KeyLeft})
	}
	s.knobs.threshold.Type("0,5")
	s.until("the request has seen them", s.idle)
	if len(seen) != 1 {
		t.Fatal("the request ended without having seen the sliders move")
	}
	if got := s.knobs.temperature.Meaning(); got != "always the likeliest word" {
		t.Errorf("creativity 0 reads %q", got)
	}
	s.knobs.gamma.Type("99")
	if got := s.controls.Get().Gamma; got != 7 {
		t.Errorf("γ can be %d", got)
	}
	s.knobs.gamma.Type("nonsense")
	if got := s.controls.Get().Gamma; got != 7 {
		t.Errorf("nonsense made γ %d", got)
	}
	s.shutDown()
	kept, err := settings.Load(path)
	if err != nil || kept.Gamma == nil || *kept.Gamma != 7 || *kept.Threshold != 0.5 || *kept.Temperature != 0 {
		t.Errorf("remembered %+v, %v", kept, err)
	}
}

func TestCautionFollowsWhatWasCalibrated(t *testing.T) {
	s := open(t, &scripted{})
	if got := s.knobs.threshold.Meaning(); got != "every guess is checked" {
		t.Errorf("without a calibration it reads %q", got)
	}
	s.models.loaded.Calibration = &confidence.Calibration{Bands: map[string]*confidence.Measured{
		"greedy": {Thresholds: []float64{0, 0.4, 0.6}, Pays: true}, "high": {Thresholds: []float64{0.9}},
	}}
	s.showKnobs()
	for _, c := range []struct {
		creativity, words string
		at                float64
	}{{"0", "as calibrated, word by word", 0.6}, {"1", "every guess is checked", 0}, {"0.3", "every guess is checked", 0}} {
		s.knobs.temperature.Type(c.creativity)
		if got, at := s.knobs.threshold.Meaning(), s.knobs.threshold.Value(); got != c.words || at != c.at {
			t.Errorf("at creativity %s it reads %q at %g", c.creativity, got, at)
		}
		if s.controls.Get().Threshold != nil || s.settings.Threshold != nil {
			t.Error("moving the creativity sets a caution")
		}
	}
	s.knobs.temperature.Type("0")
	s.knobs.threshold.Type("0.2")
	if got := s.knobs.threshold.Meaning(); got != "guesses stop below 20 % sure" || *s.controls.Get().Threshold != 0.2 {
		t.Errorf("set by hand it reads %q", got)
	}
}

func TestReset(t *testing.T) {
	s := open(t, &scripted{})
	s.knobs.gamma.Type("2")
	s.knobs.threshold.Type("0.9")
	s.resetKnobs()
	if got := s.controls.Get(); got != (engine.Knobs{Gamma: 7, Temperature: 0.7}) {
		t.Errorf("after Reset: %+v", got)
	}
}

func TestErrorKeepsTextAndPrompt(t *testing.T) {
	broken := engine.ErrNotFinite
	core := &scripted{generate: func(ctx context.Context, r engine.Request, emit func(engine.Event)) (engine.Result, error) {
		if r.Messages[len(r.Messages)-1].Content == "fail at once" {
			return engine.Result{Stop: engine.StopFailed}, broken
		}
		emit(engine.Text{Delta: "Half an answer"})
		return engine.Result{Stop: engine.StopFailed}, broken
	}}
	s := open(t, core)
	s.typeAndSend("write")
	s.until("it has failed", s.idle)
	if s.lastAnswer() != "Half an answer" {
		t.Errorf("the text became %q", s.lastAnswer())
	}
	s.typeAndSend("fail at once")
	s.until("it has failed again", s.idle)
	if s.prompt.Text() != "fail at once" {
		t.Errorf("the prompt became %q", s.prompt.Text())
	}
}

func TestTooLongDropsTheOldest(t *testing.T) {
	core := &scripted{generate: func(ctx context.Context, r engine.Request, emit func(engine.Event)) (engine.Result, error) {
		if len(r.Messages) > 3 {
			return engine.Result{Stop: engine.StopFailed}, &engine.PromptTooLongError{Tokens: 5000, Context: 4096}
		}
		emit(engine.Text{Delta: "Yes."})
		return engine.Result{Stop: engine.StopToken}, nil
	}}
	s := open(t, core)
	for _, p := range []string{"one", "two", "three"} {
		s.typeAndSend(p)
		s.until("answered", s.idle)
	}
	turn := s.talk.Turns()[2]
	if turn.Answer() != "Yes." || !strings.Contains(turn.Line(), "left out") {
		t.Errorf("answer %q, %q", turn.Answer(), turn.Line())
	}
}

func TestLoadingCanBeCancelledAndFails(t *testing.T) {
	var fail error
	core := &scripted{}
	s := open(t, core)
	core.load = func(ctx context.Context, r engine.LoadRequest) error {
		r.Progress(5_000_000, 39_000_000)
		if fail != nil {
			return fail
		}
		<-ctx.Done()
		return ctx.Err()
	}
	s.choose(drafter, "")
	s.until("the choice is known", func() bool { return s.usable() && !s.asLoaded() })
	s.askLoad()
	s.until("progress shows", func() bool { return s.load.bytes.Text() == "5 of 39 MB" })
	if !s.load.busy.Visible() || s.load.idle.Visible() {
		t.Error("progress must take the button's place")
	}
	s.load.cancel()
	s.until("cancelled", func() bool { return s.load.cancel == nil })
	if s.models.loaded.Drafter == nil || !strings.Contains(s.status.Text(), "stays loaded") {
		t.Errorf("after Cancel: %q", s.status.Text())
	}
	fail = &fs.PathError{Op: "read", Path: "model.safetensors", Err: errors.New("input/output error")}
	s.askLoad()
	s.until("failed", func() bool { return s.load.cancel == nil })
	if card := s.models.cards[target].Shown(); !card.Bad || !strings.Contains(card.Note, "model.safetensors") {
		t.Errorf("the card says %+v", card)
	}
	if s.models.loaded.Target == nil {
		t.Error("what was loaded is gone")
	}
}

func TestWrongFolders(t *testing.T) {
	s := open(t, &scripted{})
	for _, c := range []struct {
		r   role
		dir string
	}{
		{target, t.TempDir()},
		{target, filepath.Join(pairFolder, "drafter")},
		{drafter, filepath.Join(pairFolder, "target")},
		{target, filepath.Join(t.TempDir(), "not there")},
	} {
		s.choose(c.r, c.dir)
		s.until("the folder was looked at", func() bool { return !s.choosing() })
		card := s.models.cards[c.r].Shown()
		if !card.Bad || card.Note == "" || s.usable() {
			t.Errorf("%s: %+v", c.dir, card)
		}
		for _, never := range []string{"tensor", "shard", "token", "OOM", "logits", "KV"} {
			if strings.Contains(card.Note, never) {
				t.Errorf("%q says %q", card.Note, never)
			}
		}
		s.choose(c.r, s.models.builtin[c.r])
		s.until("back to the pair", func() bool { return s.usable() })
	}
}

// Any name that a drive allows works and is shown as it is written.
func TestFolderNames(t *testing.T) {
	s := open(t, &scripted{})
	for _, name := range []string{"Modèle", "Mode\u0300le", "a  b", "100% #1", "dot.", "модель 😀", "it's"} {
		dir := filepath.Join(t.TempDir(), name)
		copyFolder(t, filepath.Join(pairFolder, "target"), dir)
		s.choose(target, dir)
		s.until("the folder was looked at", func() bool { return !s.choosing() })
		if c := s.models.choices[target]; c.err != nil || s.models.cards[target].Shown().Name != name {
			t.Errorf("%q: %v, shown as %q", name, c.err, s.models.cards[target].Shown().Name)
		}
	}
}

func TestMemoryWarningHasRoom(t *testing.T) {
	s := open(t, &scripted{})
	before := s.memory.Size().Height
	full := engine.Memory{Process: 20 << 30, MachineTotal: 24 << 30, Available: 1 << 30}
	s.showMemory(full)
	if h := s.memory.Size().Height; h < s.memory.MinSize().Height || h <= before {
		t.Errorf("the memory card has %v of %v", h, s.memory.MinSize().Height)
	}
	bottom := s.app.Driver().AbsolutePositionForObject(s.memory).Y + s.memory.Size().Height
	if status := s.app.Driver().AbsolutePositionForObject(s.status).Y; bottom > status {
		t.Errorf("the memory card ends at %v, the status line begins at %v", bottom, status)
	}
}

func TestFolderComesAndGoes(t *testing.T) {
	s := open(t, &scripted{})
	dir := filepath.Join(t.TempDir(), "copied")
	copyFolder(t, filepath.Join(pairFolder, "target"), dir)
	s.choose(target, dir)
	s.until("looked at", func() bool { return !s.choosing() && s.usable() })
	if err := os.Rename(dir, dir+" elsewhere"); err != nil {
		t.Fatal(err)
	}
	s.until("the card is red", func() bool { return s.models.cards[target].Shown().Bad })
	// A weight file that is still being copied is not offered as ready.
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir(dir + " elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range names {
		data, err := os.ReadFile(filepath.Join(dir+" elsewhere", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(e.Name(), "model-00002") {
			data = data[:len(data)/2]
		}
		if err := os.WriteFile(filepath.Join(dir, e.Name()), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.pass(5 * s.lookAgain)
	if !s.models.cards[target].Shown().Bad {
		t.Error("half a copy looks ready")
	}
	if err := os.Rename(filepath.Join(dir+" elsewhere", "model-00002-of-00002.safetensors"), filepath.Join(dir, "model-00002-of-00002.safetensors")); err != nil {
		t.Fatal(err)
	}
	s.until("the card is well again", func() bool { return s.usable() && !s.models.cards[target].Shown().Bad })
}

func TestDrop(t *testing.T) {
	s := open(t, &scripted{})
	abs, err := filepath.Abs(filepath.Join(pairFolder, "drafter"))
	if err != nil {
		t.Fatal(err)
	}
	s.choose(drafter, "")
	s.until("looked at", func() bool { return !s.choosing() && s.usable() })
	s.dropped(fyne.NewPos(900, 300), []fyne.URI{storage.NewFileURI(abs)})
	s.until("the drafter is chosen", func() bool { d := s.models.choices[drafter].what; return d != nil && d.Kind == library.Drafter })
}

func TestManyWords(t *testing.T) {
	const words = 20000
	core := &scripted{generate: func(ctx context.Context, r engine.Request, emit func(engine.Event)) (engine.Result, error) {
		for i := range words {
			delta := "word "
			if i%80 == 79 {
				delta = "end.\n\n"
			}
			emit(engine.Text{Delta: delta})
			emit(engine.Round{Drafted: 7, Accepted: i % 8, Tokens: i + 1, Elapsed: time.Duration(i+1) * time.Millisecond})
			if i%100 == 0 {
				time.Sleep(5 * time.Millisecond)
			}
		}
		return engine.Result{Stop: engine.StopToken}, nil
	}}
	s := open(t, core)
	s.typeAndSend("Write a book.")
	s.slowest = 0
	s.until("the book is written", s.idle)
	if got := len(strings.Fields(s.lastAnswer())); got != words {
		t.Errorf("%d of %d words arrived", got, words)
	}
	if !s.talk.Following() {
		t.Error("the view lost the end")
	}
	t.Logf("the slowest change took %v", s.slowest)
	if s.slowest > 100*time.Millisecond {
		t.Errorf("one change of the screen took %v", s.slowest)
	}
}

func TestOneLongLine(t *testing.T) {
	line := strings.Repeat("x", 50000)
	core := &scripted{generate: func(ctx context.Context, r engine.Request, emit func(engine.Event)) (engine.Result, error) {
		for i := 0; i < len(line); i += 50 {
			emit(engine.Text{Delta: line[i : i+50]})
		}
		return engine.Result{Stop: engine.StopToken}, nil
	}}
	s := open(t, core)
	s.typeAndSend("Write a line.")
	s.until("the line is written", s.idle)
	if s.lastAnswer() != line {
		t.Error("the line was damaged")
	}
}

func TestLongPaste(t *testing.T) {
	core := &scripted{}
	s := open(t, core)
	text := strings.Repeat("Some words to paste, again and again. ", 200_000/38)
	s.app.Clipboard().SetContent(text)
	begun := time.Now()
	s.prompt.Focusable().(fyne.Shortcutable).TypedShortcut(&fyne.ShortcutPaste{Clipboard: s.app.Clipboard()})
	test.Type(s.prompt.Focusable(), "Sum this up:")
	if d := time.Since(begun); d > 2*time.Second {
		t.Errorf("pasting took %v", d)
	}
	s.prompt.Focusable().TypedKey(&fyne.KeyEvent{Name: fyne.KeyReturn})
	s.until("answered", s.idle)
	if got := core.requests[0].Messages[0].Content; !strings.HasPrefix(got, "Sum this up:") || !strings.Contains(got, strings.TrimSpace(text)) {
		t.Errorf("%d of %d bytes were sent", len(got), len(text))
	}
}

func TestScrolledUpStaysThere(t *testing.T) {
	s := open(t, &scripted{generate: func(ctx context.Context, r engine.Request, emit func(engine.Event)) (engine.Result, error) {
		for ctx.Err() == nil {
			emit(engine.Text{Delta: "A paragraph.\n\n"})
			time.Sleep(time.Millisecond)
		}
		return engine.Result{Stop: engine.StopCancelled}, ctx.Err()
	}})
	s.typeAndSend("Go on.")
	s.until("there is more than fits", func() bool { return s.talk.Height() > 2000 })
	s.talk.ScrollTo(100)
	s.pass(200 * time.Millisecond)
	if s.talk.Following() {
		t.Error("new words took the view away")
	}
	s.talk.ScrollTo(1e9)
	s.pass(100 * time.Millisecond)
	if !s.talk.Following() {
		t.Error("back at the end, the view must follow again")
	}
	s.stop()
	s.until("stopped", s.idle)
}

func TestCloseDuringARun(t *testing.T) {
	core := &scripted{generate: untilCancelled}
	s := open(t, core)
	s.typeAndSend("Go on for ever.")
	s.until("words arrive", func() bool { return s.lastAnswer() != "" })
	begun := time.Now()
	s.leave()
	s.shutDown()
	s.shutDown()
	if d := time.Since(begun); d > time.Second {
		t.Errorf("closing took %v", d)
	}
	if core.closed != 1 {
		t.Errorf("the core was closed %d times", core.closed)
	}
}

func TestOffersWhatWasCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.json")
	s := openWith(t, &scripted{generate: untilCancelled}, path)
	s.until("the pair is loaded", func() bool { return s.models.loaded.Target != nil })
	s.typeAndSend("Go on for ever.")
	s.until("words arrive", func() bool { return len(s.lastAnswer()) > 50 })
	s.leave()
	wrote := s.lastAnswer()
	s.shutDown()

	again := openWith(t, &scripted{}, path)
	again.until("it is offered", func() bool { return again.left.Visible() })
	test.Tap(findButton(t, again.left, "Show it"))
	if again.lastAnswer() != wrote || again.talk.Turns()[0].Prompt != "Go on for ever." {
		t.Errorf("offered %q, written was %q", again.lastAnswer(), wrote)
	}
	again.shutDown()
	third := openWith(t, &scripted{}, path)
	third.until("the pair is loaded", func() bool { return third.models.loaded.Target != nil })
	third.pass(100 * time.Millisecond)
	if third.left.Visible() {
		t.Error("it is offered a second time")
	}
}

// findButton returns the button with this label inside o.
func findButton(t testing.TB, o fyne.CanvasObject, label string) *widget.Button {
	t.Helper()
	for _, c := range test.LaidOutObjects(o) {
		if b, ok := c.(*widget.Button); ok && b.Text == label {
			return b
		}
	}
	t.Fatalf("no button %q", label)
	return nil
}

func TestCloseWithoutAnEnd(t *testing.T) {
	// A core that hears nothing must not keep the app alive.
	core := &scripted{generate: func(context.Context, engine.Request, func(engine.Event)) (engine.Result, error) {
		time.Sleep(8 * time.Second)
		return engine.Result{}, nil
	}}
	s := open(t, core)
	s.typeAndSend("Hang.")
	begun := time.Now()
	s.shutDown()
	if d := time.Since(begun); d > 4*time.Second {
		t.Errorf("closing took %v", d)
	}
}

func TestRemembersTheDrafterLeftOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.json")
	s := openWith(t, &scripted{}, path)
	s.until("the pair is loaded", func() bool { return s.models.loaded.Target != nil })
	s.choose(drafter, "")
	s.until("looked at", func() bool { return !s.choosing() && s.usable() })
	s.askLoad()
	s.until("loaded without a drafter", func() bool { return s.asLoaded() && s.models.loaded.Drafter == nil })
	if s.knobs.gamma.On() || s.controls.Get().Gamma != 0 {
		t.Error("without a drafter nothing is guessed ahead")
	}
	s.shutDown()
	core := &scripted{}
	again := openWith(t, core, path)
	again.until("loaded", func() bool { return again.models.loaded.Target != nil })
	if core.loads[0].DrafterDir != "" {
		t.Errorf("the next start loads %+v", core.loads[0])
	}
}

func TestThemeAndTextSize(t *testing.T) {
	s := open(t, &scripted{})
	s.typeAndSend("Tell me.")
	s.until("answered", s.idle)
	for _, percent := range settings.TextSizes {
		s.setTextSize(percent)
		for _, mode := range []look.Mode{look.Light, look.Dark, look.System} {
			s.setTheme(mode)
		}
	}
	s.showSettings()
	s.showShortcuts()
	s.showAbout()
	s.openPicker(target)
	s.openPicker(drafter)
}

func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}
