//go:build pictures

package window

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"fyne.io/fyne/v2/test"

	"firesteel/core/engine"
	"firesteel/core/job"
	"firesteel/core/quantize"
	"firesteel/core/train"
	"firesteel/ui/window/journal"
	"firesteel/ui/window/look"
)

const story = `# Mia and the brave dog

Once upon a time, in a small village at the edge of a deep forest, there lived a girl named **Mia**. She had a dog called Bruno, who was small, brown and brave.

What they took along that morning:

- bread and a piece of cheese
- a lantern, in case it got dark
- a long rope, which Bruno carried without complaint although it was nearly as heavy as he was and dragged behind him in the grass

1. First they crossed the stream.
2. Then they climbed the hill.

| Who | What they found | How many |
|---|---|---|
| Mia | blueberries | 212 |
| Bruno | a very old bone under the third oak | 1 |

> “You are the bravest dog in the world,” said Mia.

`

const recipe = "```go\nfunc courage(dog Dog) int {\n\tif dog.Name == \"Bruno\" {\n\t\treturn 11 // of ten\n\t}\n\treturn dog.Size / 2\n}\n```\n\nAnd they were home before the lantern was needed.\n"

// told writes text in pieces with a check for each, then ends as end says.
func told(text string, end func(ctx context.Context) error) func(context.Context, engine.Request, func(engine.Event)) (engine.Result, error) {
	return func(ctx context.Context, r engine.Request, emit func(engine.Event)) (engine.Result, error) {
		pieces := strings.SplitAfter(text, " ")
		for i := 0; i < len(pieces); {
			accepted := []int{3, 5, 7, 2, 6, 0, 4, 7, 1}[i%9]
			n := min(accepted+1, len(pieces)-i)
			emit(engine.Text{Delta: strings.Join(pieces[i:i+n], "")})
			i += n
			emit(engine.Round{Drafted: 7, Accepted: n - 1, Tokens: i, Elapsed: time.Duration(i) * 9 * time.Millisecond})
		}
		if err := end(ctx); err != nil {
			stop := engine.StopFailed
			if errors.Is(err, context.Canceled) {
				stop = engine.StopCancelled
			}
			return engine.Result{Stop: stop}, err
		}
		return engine.Result{Text: text, Stop: engine.StopToken, TokensPerSecond: 112.4, Tau: 4.2, TimeToFirstToken: 140 * time.Millisecond}, nil
	}
}

func atOnce(context.Context) error { return nil }

func never(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func telling(text string, end func(context.Context) error) func() *scripted {
	return func() *scripted { return &scripted{generate: told(text, end)} }
}

const question = "Tell me a story about Mia and a brave dog."

func (s *stage) answered() {
	s.send(question)
	s.until("answered", s.idle)
	s.pass(0)
}

func (s *stage) streaming() {
	s.send(question)
	s.until("words come", func() bool { return strings.Contains(s.lastAnswer(), "blueberries") })
	s.pass(300 * time.Millisecond)
}

// loading begins to load the target without a drafter, with a core that tells 5 of 39 MB.
func (s *stage) loading(end func(context.Context) error) {
	s.core.load = func(ctx context.Context, r engine.LoadRequest) error {
		r.Progress(5_000_000, 39_000_000)
		return end(ctx)
	}
	s.choose(drafter, "")
	s.until("the choice is known", func() bool { return s.usable() && !s.asLoaded() })
	s.askLoad()
}

// remembers fills the graph of the memory card.
func (s *stage) remembers(m engine.Memory) {
	full := m.Process
	for i := range 90 {
		m.Process = full * int64(60+min(i, 40)) / 100
		s.memory.Set(m)
	}
	m.Process = full
	s.showMemory(m)
}

// huge shows a model as chosen that no usual computer has room for.
func (s *stage) huge() {
	what := *s.models.choices[target].what
	what.Dir, what.Name = "/Volumes/Models/gemma-4-31b-it", "gemma-4-31b-it"
	what.Parameters, what.FileBytes, what.TensorBytes, what.HalfBytes = 31e9, 62.3e9, 62.3e9, 0
	s.models.choices[target].what = &what
	s.showAll()
}

var scenes = append([]scene{
	{name: "first-start", play: func(s *stage) {}},
	{name: "answer-streaming", core: telling(story, never), play: (*stage).streaming},
	{name: "answer-done", core: telling(story, atOnce), play: (*stage).answered},
	{name: "answer-code", core: telling(story+recipe, atOnce), play: (*stage).answered},
	{name: "answer-stopped", core: telling(story, never), play: func(s *stage) {
		s.streaming()
		s.stop()
		s.until("stopped", s.idle)
	}},
	{name: "answer-error", core: telling("Once upon a time there was a girl named Mia. ", func(context.Context) error {
		return fmt.Errorf("layer 12 of 30: %w", engine.ErrNotFinite)
	}), play: func(s *stage) {
		s.answered()
		for _, o := range test.LaidOutObjects(s.talk) {
			if b, ok := o.(*look.TextButton); ok && b.Label() == "Details" && b.Visible() {
				b.Tapped(nil)
			}
		}
	}},
	{name: "long-prompt", play: func(s *stage) {
		s.app.Clipboard().SetContent(strings.Repeat("Some words that were copied elsewhere. ", 200))
		s.prompt.SetText(strings.Repeat("Some words that were copied elsewhere. ", 200))
	}},
	{name: "sliders-moved", play: func(s *stage) {
		s.knobs.gamma.Type("3")
		s.knobs.temperature.Type("0")
		s.knobs.threshold.Type("0.55")
	}},
	{name: "slider-help", play: func(s *stage) { s.knobs.threshold.MouseIn(nil) }},
	{name: "no-drafter", play: func(s *stage) {
		s.choose(drafter, "")
		s.until("the choice is known", func() bool { return s.usable() && !s.asLoaded() })
		s.loadChosen()
		s.until("it is loaded", func() bool { return s.load.cancel == nil })
	}},
	{name: "picker-menu", play: func(s *stage) {
		s.settings.RecentTargets = []string{"/Volumes/Models/gemma-4-12b-it", "/Volumes/Models/mlx-community/Qwen3-14B-4bit", "/Volumes/Old drive/gemma-4-E4B-it-8bit"}
		s.models.real = map[string]string{"/Volumes/Models/gemma-4-12b-it": "/Volumes/Models/gemma-4-12b-it", "/Volumes/Models/mlx-community/Qwen3-14B-4bit": "/Volumes/Models/mlx-community/Qwen3-14B-4bit", "/Volumes/Old drive/gemma-4-E4B-it-8bit": ""}
		s.showAll()
		s.openPicker(target)
	}},
	{name: "wrong-folder", play: func(s *stage) {
		s.choose(target, filepath.Join(pairFolder, "drafter"))
		s.until("it is looked at", func() bool { return !s.choosing() })
	}},
	{name: "wrong-pair", play: func(s *stage) {
		dir := filepath.Join(os.Getenv("HOME"), "Models", "DeepSpec drafter for Gemma 4 12B, 4-bit, second try")
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(pairFolder, "drafter"))); err != nil {
			s.t.Fatalf("%v", err)
		}
		config := filepath.Join(dir, "config.json")
		data, _ := os.ReadFile(config)
		os.WriteFile(config, []byte(strings.Replace(string(data), `"num_target_layers"`, `"num_target_layers_then"`, 1)), 0o600)
		s.choose(drafter, dir)
		s.until("it is looked at", func() bool { return !s.choosing() })
	}},
	{name: "does-not-fit", play: func(s *stage) { s.huge() }},
	{name: "does-not-fit-asked", play: func(s *stage) { s.huge(); s.askLoad() }},
	{name: "loading", play: func(s *stage) {
		s.loading(never)
		s.until("progress shows", func() bool { return s.load.bytes.Text() == "5 of 39 MB" })
	}},
	{name: "load-failed", play: func(s *stage) {
		s.loading(func(context.Context) error {
			return &fs.PathError{Op: "read", Path: "/Volumes/Models/gemma-4-12b-it/model-00002-of-00005.safetensors", Err: errors.New("input/output error")}
		})
		s.until("it has failed", func() bool { return s.load.cancel == nil })
	}},
	{name: "memory-amber", play: func(s *stage) {
		s.remembers(engine.Memory{Process: 10 << 30, MachineTotal: 24 << 30, Available: 4 << 30, Target: 8 << 30, Drafter: 1900 << 20, Context: 310 << 20, Peak: 10<<30 + 1<<29})
	}},
	{name: "memory-red", play: func(s *stage) {
		s.remembers(engine.Memory{Process: 19 << 30, MachineTotal: 24 << 30, Available: 1 << 30, Target: 14 << 30, Drafter: 3 << 30, Context: 1200 << 20, Peak: 19 << 30})
	}},
	{name: "offered", play: func(s *stage) {
		s.offer(journal.Page{Prompt: question + " It should be long, with a happy end, and the dog is called Bruno.", Answer: story, Model: demoTarget}, func() {})
	}},
	{name: "quit", core: telling(story, never), play: func(s *stage) { s.streaming(); s.quit() }},
	{name: "settings", play: func(s *stage) { s.showSettings(); s.pass(100 * time.Millisecond) }},
	{name: "delete-chats", play: func(s *stage) { s.askDeleteChats() }},
	{name: "shortcuts", play: func(s *stage) { s.showShortcuts() }},
	{name: "about", play: func(s *stage) { s.showAbout() }},
	{name: "type-path", play: func(s *stage) { s.typePath(target) }},
	{name: "browse", play: func(s *stage) { s.browse(target) }},
}, jobScenes()...)

// done waits until the job at work has ended.
func (s *stage) done() {
	s.until("the job has ended", func() bool { return !s.jobs.running() })
	s.pass(0)
}

// says waits until the sheet says so.
func (s *stage) says(part string) {
	s.until("the sheet says "+part, func() bool { return strings.Contains(texts(s.jobs.sheet.Content), part) })
}

func jobScenes() []scene {
	packed := func(end func(context.Context) error) func() *scripted {
		return func() *scripted {
			return &scripted{quantize: func(ctx context.Context, p *quantize.Plan, tell func(job.Progress)) (quantize.Result, error) {
				tell(job.Progress{Stage: "packing", Done: 3_410_000_000, Total: 6_860_000_000, Left: 17 * time.Second})
				return quantize.Result{Dir: p.Destination, ResultBytes: p.ResultBytes}, end(ctx)
			}}
		}
	}
	full := func(context.Context) error {
		return &job.RoomError{Folder: "/Volumes/Models", Need: 4e9, Free: 1e9}
	}
	quantizing := func(s *stage) {
		s.quantizeDrafter()
		s.until("the sizes are there", func() bool { return s.jobs.form.plan != nil })
	}
	quantized := func(s *stage) { quantizing(s); s.press("Quantize"); s.says("17 s left") }
	cancelled := func(play func(*stage)) func(*stage) {
		return func(s *stage) { play(s); s.press("Cancel"); s.done() }
	}
	ended := func(play func(*stage)) func(*stage) { return func(s *stage) { play(s); s.done() } }

	checked := func(end func(context.Context) error) func() *scripted {
		return func() *scripted {
			return &scripted{generate: func(ctx context.Context, r engine.Request, emit func(engine.Event)) (engine.Result, error) {
				for i := range 40 {
					emit(engine.Round{Drafted: 7, Accepted: 3, Elapsed: time.Duration(i+1) * time.Millisecond})
				}
				return engine.Result{}, end(ctx)
			}}
		}
	}
	calibrating := func(s *stage) { s.calibrate(); s.pass(100 * time.Millisecond) }
	calibrated := func(s *stage) { calibrating(s); s.starts("Calibrate"); s.pass(200 * time.Millisecond) }

	list := []scene{
		{"quantize-start", nil, quantizing},
		{"quantize-working", packed(never), quantized},
		{"quantize-done", packed(atOnce), func(s *stage) { quantizing(s); s.press("Quantize"); s.done() }},
		{"quantize-failed", packed(full), func(s *stage) { quantizing(s); s.press("Quantize"); s.done() }},
		{"quantize-cancelled", packed(never), cancelled(quantized)},
		{"quantize-target", nil, func(s *stage) {
			s.quantizeTarget()
			s.until("the sizes are there", func() bool { return s.jobs.form.plan != nil })
		}},
		{"calibrate-start", nil, calibrating},
		{"calibrate-working", checked(never), calibrated},
		{"calibrate-done", func() *scripted { return &scripted{generate: timid} }, ended(calibrated)},
		{"calibrate-failed", checked(func(context.Context) error { return engine.ErrNotFinite }), ended(calibrated)},
		{"calibrate-cancelled", checked(never), cancelled(calibrated)},
		{"job-behind", packed(never), func(s *stage) {
			quantized(s)
			s.press("Go On in the Background")
			s.pass(300 * time.Millisecond)
		}},
	}
	for _, kind := range []struct {
		name, label string
		open        func(*stage)
	}{{"train", "Train", func(s *stage) { s.trainDrafter() }}, {"tune", "Tune", func(s *stage) { s.tuneDrafter() }}} {
		opened := func(s *stage) { kind.open(s); s.pass(100 * time.Millisecond) }
		begun := func(end func(context.Context, train.Job) error) func(*stage) {
			return func(s *stage) {
				opened(s)
				s.teachers = taught(make(chan train.TuneJob, 8), end)
				s.starts(kind.label)
			}
		}
		paused := begun(begins)
		working := func(s *stage) { paused(s); s.says("step 30 of") }
		list = append(list, []scene{
			{kind.name + "-start", nil, opened},
			{kind.name + "-file", nil, func(s *stage) {
				opened(s)
				s.jobs.training.prompts.take("")
				s.press(kind.label)
			}},
			{kind.name + "-working", nil, working},
			{kind.name + "-paused", nil, func(s *stage) { working(s); s.press("Pause"); s.done() }},
			{kind.name + "-again", nil, func(s *stage) { working(s); s.press("Pause"); s.done(); s.press("Close"); opened(s) }},
			{kind.name + "-done", nil, ended(begun(func(context.Context, train.Job) error { return nil }))},
			{kind.name + "-failed", nil, ended(begun(func(context.Context, train.Job) error { return train.ErrNoTexts }))},
			{kind.name + "-cancelled", nil, cancelled(working)},
		}...)
	}
	return list
}
