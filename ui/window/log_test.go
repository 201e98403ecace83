package window

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"firesteel/core/engine"
	"firesteel/core/job"
	"firesteel/core/quantize"
	"firesteel/core/thread"
	"firesteel/models/chat"
	"firesteel/ui/window/logfile"
)

// recording has what happens during a test recorded in a folder's log.
func recording(t *testing.T, dir string) logfile.File {
	f := logfile.File(dir)
	before, flags := slog.Default(), log.Flags()
	slog.SetDefault(newLogger(f, io.Discard))
	t.Cleanup(func() {
		slog.SetDefault(before)
		log.SetOutput(os.Stderr)
		log.SetFlags(flags)
	})
	return f
}

func TestLogHoldsNoChat(t *testing.T) {
	const marker = "xylophone"
	var failure error
	core := &scripted{generate: func(_ context.Context, _ engine.Request, emit func(engine.Event)) (engine.Result, error) {
		emit(engine.Text{Delta: "An answer about the " + marker + "."})
		return engine.Result{Text: "An answer about the " + marker + ".", Stop: engine.StopToken}, failure
	}}
	dir := t.TempDir()
	f := recording(t, dir)
	s := openWith(t, core, filepath.Join(dir, "settings.json"))
	s.settings.KeepChats = true
	s.until("the pair is loaded", func() bool { return s.models.loaded.Target != nil })
	for _, failure = range []error{
		nil,
		errors.New("mlx: matmul: shapes differ"),
		&chat.TemplateError{File: "template.jinja", Line: 7, Refused: true, Message: "what is a " + marker + "?"},
		&chat.TemplateError{File: "other.jinja", Message: "can't add " + marker},
		&thread.PanicError{Value: "index out of range", Stack: "goroutine 7"},
	} {
		s.prompt.SetText("")
		s.typeAndSend("Tell me of the " + marker + ".")
		s.until("it has ended", s.idle)
	}
	s.shutDown()
	text, err := f.Last(1 << 20)
	if err != nil || strings.Contains(text, marker) {
		t.Errorf("the log, %v:\n%s", err, text)
	}
	for _, part := range []string{"msg=started ", "on_gpu=false", "msg=loading target=", `msg=loaded size="39.`, "took=", `error="mlx: matmul: shapes differ"`,
		"template.jinja: line 7: the chat template refuses this conversation", "other.jinja: the chat template fails", "index out of range", "msg=ended"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in the log:\n%s", part, text)
		}
	}
	kept, err := os.ReadFile(filepath.Join(dir, "chats.jsonl"))
	if err != nil || !strings.Contains(string(kept), marker) {
		t.Errorf("the test does not see what is written: %s, %v", kept, err)
	}
}

func TestLogTellsOfJobsAndFaults(t *testing.T) {
	broken := errors.New("mlx: quantize: no such group")
	core := &scripted{}
	s, _ := quantizing(t, core)
	f := recording(t, s.keepIn())
	s.quantize()
	s.until("the copy is there", func() bool { return !s.jobs.running() })
	core.quantize = func(context.Context, *quantize.Plan, func(job.Progress)) (quantize.Result, error) {
		return quantize.Result{}, broken
	}
	s.quantize()
	s.until("it has failed", func() bool { return !s.jobs.running() })
	s.choose(target, t.TempDir())
	s.until("the folder is refused", func() bool { return s.models.choices[target].err != nil })
	text, err := f.Last(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`msg="a job has begun" job="Quantizing Demo drafter"`, `msg="a job is done"`, `msg="a job has failed"`, `error="` + broken.Error(),
		`msg="what was chosen can't be used" error=`} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in the log:\n%s", part, text)
		}
	}
	found := false
	for _, item := range s.pickerItems(target) {
		found = found || item.Label == "Show the log"
	}
	if !found {
		t.Error("a folder that can't be used does not lead to the log")
	}
}

func TestShowLog(t *testing.T) {
	core := &scripted{}
	dir := t.TempDir()
	recording(t, dir)
	s := openWith(t, core, filepath.Join(dir, "settings.json"))
	s.until("the pair is loaded", func() bool { return s.models.loaded.Target != nil })
	for range 5000 {
		slog.Info("another line", "that", strings.Repeat("is long ", 8))
	}
	begun := time.Now()
	s.showLog()
	opened := time.Since(begun)
	s.slowest = 0
	s.until("the lines are there", func() bool { return strings.Contains(s.dialogText(), "another line") })
	t.Logf("opened in %v, lines laid out in %v", opened, s.slowest)
	if n := len(s.dialogText()); n > shownOfLog+1000 {
		t.Errorf("%d bytes are shown", n)
	}
	if !strings.Contains(s.dialogText(), filepath.Join(dir, "log.txt")) {
		t.Errorf("the file's name is missing: %.300s", s.dialogText())
	}
	s.log = logfile.File(filepath.Join(dir, "log.txt", "no folder"))
	s.showLog()
	s.until("it says so", func() bool { return strings.Contains(s.dialogText(), "can't write there") })
}

func TestReadable(t *testing.T) {
	for line, want := range map[string]string{
		`time="2026-12-04 14:00:36" level=INFO msg=loaded size="39.3 MB"`:                `2026-12-04 14:00:36  loaded  size="39.3 MB"`,
		`time="2026-12-04 14:00:36" level=ERROR msg="a \"job\" has failed" error="a\nb"`: `2026-12-04 14:00:36  ERROR a "job" has failed  error="a\nb"`,
		"something else": "something else",
	} {
		if got := record.ReplaceAllStringFunc(line, readable); got != want {
			t.Errorf("%s\nreads %s", line, got)
		}
	}
}
