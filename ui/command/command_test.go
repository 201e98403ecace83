package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"firesteel/core/engine"
	"firesteel/core/memory"
)

// scripted stands in for the engine: it records what it is asked and writes a fixed text.
type scripted struct {
	loaded  engine.Loaded
	load    engine.LoadRequest
	request engine.Request
	err     error
	onGPU   bool
	closed  bool
}

func (c *scripted) Load(_ context.Context, r engine.LoadRequest) (engine.Loaded, error) {
	c.load = r
	return c.loaded, nil
}

func (c *scripted) Generate(_ context.Context, r engine.Request, emit func(engine.Event)) (engine.Result, error) {
	c.request = r
	emit(engine.Text{Delta: "Hello "})
	emit(engine.Text{Delta: "there."})
	return engine.Result{Text: "Hello there.", TokenIDs: []int{5, 6}, PromptTokens: 3, Rounds: 1, Drafted: 4, Accepted: 1, Tau: 2,
		Stop: engine.StopToken, Seed: 7, Trace: []engine.RoundTrace{{Start: 3, Draft: []int{6, 8}, Proposed: 2, Accepted: 1, Emitted: []int{6, 1}}}}, c.err
}
func (c *scripted) Loaded() engine.Loaded                      { return c.loaded }
func (c *scripted) Device() string                             { return "nothing" }
func (c *scripted) OnGPU() bool                                { return c.onGPU }
func (c *scripted) Memory() engine.Memory                      { return engine.Memory{ProcessPeak: 99} }
func (c *scripted) Close() error                               { c.closed = true; return nil }
func (c *scripted) Do(_ context.Context, f func() error) error { return f() }

func newScripted() *scripted {
	return &scripted{loaded: engine.Loaded{Target: &engine.ModelInfo{Name: "T"}, Drafter: &engine.ModelInfo{Name: "D", Block: 7}}}
}

// follow runs a command line.
func follow(c *scripted, in string, args ...string) (status int, out, errs string) {
	var o, e bytes.Buffer
	status = Run(args, strings.NewReader(in), &o, &e, Options{
		Version: "1.2.3", Window: true,
		Open:     func() (Core, error) { return c, nil },
		DemoPair: func() (string, string, error) { return "demo/target", "demo/drafter", nil },
	})
	return status, o.String(), e.String()
}

func TestRefusalsAreWords(t *testing.T) {
	for _, c := range []struct {
		args []string
		say  string
	}{
		{[]string{"paint"}, `no command "paint"`},
		{[]string{"generate"}, "--prompt is missing"},
		{[]string{"generate", "--prompt", ""}, "the prompt is empty"},
		{[]string{"generate", "--prompt"}, "a value is missing after --prompt"},
		{[]string{"generate", "--color", "red"}, "there is no flag --color"},
		{[]string{"generate", "--prompt", "a", "b"}, `"b" is not a flag`},
		{[]string{"generate", "--prompt", "a", "--temperature", "-1"}, "--temperature must be a number from 0 to 100"},
		{[]string{"generate", "--prompt", "a", "--temperature", "NaN"}, "--temperature must be"},
		{[]string{"generate", "--prompt", "a", "--temperature", "warm"}, "temperature"},
		{[]string{"generate", "--prompt", "a", "--top-p", "1.5"}, "--top-p must be"},
		{[]string{"generate", "--prompt", "a", "--min-p", "2"}, "--min-p must be"},
		{[]string{"generate", "--prompt", "a", "--threshold", "1.1"}, "--threshold must be"},
		{[]string{"generate", "--prompt", "a", "--top-k", "-3"}, "--top-k must be"},
		{[]string{"generate", "--prompt", "a", "--max-tokens", "0"}, "--max-tokens must be 1 or more"},
		{[]string{"generate", "--prompt", "a", "--gamma", "0"}, "--no-draft"},
		{[]string{"generate", "--prompt", "a", "--gamma", "8"}, "from 1 to 7"},
		{[]string{"generate", "--prompt", "a", "--gamma", "3", "--no-draft"}, "contradict"},
		{[]string{"generate", "--prompt", "a", "--seed", "-1"}, "seed"},
		{[]string{"generate", "--prompt", "a", "--raw", "--system", "b"}, "--system has no place"},
		{[]string{"generate", "--prompt", "-"}, "standard input is empty"},
		{[]string{"generate", "--prompt", "a", "--target", ""}, "--target is empty"},
		{[]string{"check"}, "needs a folder"},
		{[]string{"check", "--pair", "a"}, "a target, a drafter and a file"},
		{[]string{"inspect"}, "one folder"},
		{[]string{"doctor", "now"}, "no names"},
	} {
		status, out, errs := follow(newScripted(), "", c.args...)
		if status != misused || !strings.Contains(errs, c.say) || out != "" || strings.Count(strings.TrimSpace(errs), "\n") > 0 {
			t.Errorf("%q: status %d, %q, %q", c.args, status, out, errs)
		}
	}
}

func TestFailuresAreOneSentenceAndStatusOne(t *testing.T) {
	empty := t.TempDir()
	for _, args := range [][]string{
		{"inspect", empty}, {"inspect", filepath.Join(empty, "nothing")}, {"check", empty},
		{"generate", "--prompt", "a", "--target", filepath.Join(empty, "nothing")},
		{"check", "--pair", empty, empty, filepath.Join(empty, "x.json")},
	} {
		status, _, errs := follow(newScripted(), "", args...)
		if status != failed || !strings.Contains(errs, empty) {
			t.Errorf("%q: status %d, %q", args, status, errs)
		}
	}
}

func TestTextStreamsAndJSONIsTheLastLine(t *testing.T) {
	c := newScripted()
	status, out, _ := follow(c, "", "generate", "--prompt", "hi")
	if status != done || out != "Hello there.\n" || !c.closed {
		t.Errorf("status %d, %q", status, out)
	}
	status, out, _ = follow(newScripted(), "", "generate", "--prompt", "hi", "--json", "--rounds")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var got map[string]any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil || status != done {
		t.Fatalf("%v in %q", err, out)
	}
	for _, key := range []string{"text", "token_ids", "generated_tokens", "prompt_tokens", "rounds", "drafted", "accepted", "tau",
		"drafted_by_position", "accepted_by_position", "tokens_per_second", "prefill_tokens_per_second", "time_to_first_token_ms",
		"peak_memory_bytes", "process_peak_bytes", "host_reads", "seed", "stop_reason", "trace"} {
		if _, ok := got[key]; !ok {
			t.Errorf("%s is missing", key)
		}
	}
	if got["generated_tokens"] != 2.0 || got["process_peak_bytes"] != 99.0 || got["stop_reason"] != "stop" {
		t.Errorf("%v", got)
	}
	round := got["trace"].([]any)[0].(map[string]any)
	for _, key := range []string{"start", "draft", "confidence_logits", "proposed", "accepted", "emitted"} {
		if _, ok := round[key]; !ok {
			t.Errorf("a round lacks %s", key)
		}
	}
}

func TestFlagsReachTheEngine(t *testing.T) {
	c := newScripted()
	warm, top := 0.9, 0.95
	c.loaded.Target.Temperature, c.loaded.Target.TopP = &warm, &top
	follow(c, "", "generate", "--prompt", "hi", "--system", "be short")
	k := c.request.Controls.Get()
	if k.Temperature != 0.9 || k.Gamma != 7 || k.Threshold != nil || c.request.TopP != 0.95 || len(c.request.Messages) != 2 || c.request.Messages[0].Role != "system" {
		t.Errorf("%+v, %+v", k, c.request)
	}
	if c.load.TargetDir != "demo/target" || c.load.DrafterDir != "demo/drafter" {
		t.Errorf("%+v", c.load)
	}
	follow(c, "", "generate", "--prompt", "hi", "--temperature", "0", "--top-p", "0.5", "--top-k", "9", "--min-p", "0.1", "--seed", "3",
		"--gamma", "2", "--threshold", "0.4", "--max-tokens", "12", "--ignore-stop", "--raw")
	k, r := c.request.Controls.Get(), c.request
	if k.Temperature != 0 || k.Gamma != 2 || *k.Threshold != 0.4 || r.TopP != 0.5 || r.TopK != 9 || r.MinP != 0.1 || *r.Seed != 3 ||
		r.MaxTokens != 12 || !r.IgnoreStop || r.Raw != "hi" || len(r.Messages) != 0 {
		t.Errorf("%+v, %+v", k, r)
	}
	follow(c, "", "generate", "--prompt", "hi", "--no-draft")
	if c.load.DrafterDir != "" || c.request.Controls.Get().Gamma != 0 {
		t.Errorf("--no-draft: %+v", c.load)
	}
	packed := newScripted()
	packed.loaded.Target.Quantized = true
	follow(packed, "", "generate", "--prompt", "hi")
	if packed.request.Controls.Get().Gamma != quantizedGamma || packed.request.Controls.Get().Temperature != 0.7 {
		t.Errorf("defaults with a packed target: %+v", packed.request.Controls.Get())
	}
	follow(c, "from\nstandard input", "generate", "--prompt", "-", "--raw")
	if c.request.Raw != "from\nstandard input" {
		t.Errorf("%q", c.request.Raw)
	}
}

func TestErrorsKeepTheText(t *testing.T) {
	c := newScripted()
	c.err = errors.New("mlx: trouble")
	status, out, errs := follow(c, "", "generate", "--prompt", "hi")
	if status != failed || out != "Hello there.\n" || errs == "" {
		t.Errorf("%d, %q, %q", status, out, errs)
	}
	c.err = context.Canceled
	if status, out, _ := follow(c, "", "generate", "--prompt", "hi", "--json"); status != cancelled || !strings.Contains(out, "Hello there.") {
		t.Errorf("%d, %q", status, out)
	}
}

func TestHelpNamesEveryFlag(t *testing.T) {
	_, out, _ := follow(newScripted(), "", "generate", "--help")
	for _, flag := range strings.Fields("target drafter prompt system raw max-tokens temperature top-p top-k min-p seed gamma threshold no-draft ignore-stop json rounds") {
		if !strings.Contains(out, "--"+flag+" ") {
			t.Errorf("the help of generate lacks --%s", flag)
		}
	}
	for _, args := range [][]string{{"--help"}, {"-h"}, {"help", "check"}, {"inspect", "--help"}, {"doctor", "--help"}, {"--version"}, {}} {
		if status, out, errs := follow(newScripted(), "", args...); status != done || out == "" || errs != "" {
			t.Errorf("%q: %d, %q, %q", args, status, out, errs)
		}
	}
}

func TestInspect(t *testing.T) {
	for _, name := range []string{"gemma4-12b-like-q4", "deepspec-gemma4-mixed"} {
		dir := filepath.Join("../../models/testdata/goldens", name)
		status, out, errs := follow(newScripted(), "", "inspect", dir)
		if status != done || !strings.Contains(out, "precision") || !strings.Contains(out, "memory") {
			t.Errorf("%s: %d, %q, %q", name, status, out, errs)
		}
		_, out, _ = follow(newScripted(), "", "inspect", "--json", dir)
		if !json.Valid([]byte(out)) {
			t.Errorf("%q is not JSON", out)
		}
	}
}

// On a processor weights of 16 bits are widened, so that a model takes twice the memory.
func TestInspectBillsForTheDevice(t *testing.T) {
	var weights [2]int64
	for i, onGPU := range []bool{true, false} {
		c := newScripted()
		c.onGPU = onGPU
		var told struct{ Bill memory.Bill }
		_, out, errs := follow(c, "", "inspect", "--json", "../../models/demo/pair/target")
		if err := json.Unmarshal([]byte(out), &told); err != nil {
			t.Fatal(err, errs)
		}
		weights[i] = told.Bill.Target
		if !c.closed {
			t.Error("what was opened to ask was not closed")
		}
	}
	if weights[0] == 0 || weights[1] != 2*weights[0] {
		t.Errorf("weights on a GPU and on a processor: %d", weights)
	}
}

func TestCheckAndDoctor(t *testing.T) {
	good := "../../models/testdata/goldens/deepspec-gemma4-q4"
	if status, out, errs := follow(newScripted(), "", "check", good); status != done || !strings.Contains(out, "agrees with the reference") {
		t.Errorf("%d, %q, %q", status, out, errs)
	}
	bad := t.TempDir()
	for _, name := range []string{"config.json", "model.safetensors", "golden.safetensors"} {
		raw, err := os.ReadFile(filepath.Join(good, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "golden.safetensors" {
			for i := len(raw) / 2; i < len(raw)/2+4000; i += 4 {
				raw[i+3] ^= 0x40
			}
		}
		if err := os.WriteFile(filepath.Join(bad, name), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if status, out, _ := follow(newScripted(), "", "check", bad); status != failed || !strings.Contains(out, "DISAGREES") {
		t.Errorf("%d, %q", status, out)
	}
	if status, out, errs := follow(newScripted(), "", "doctor"); status != done || !strings.Contains(out, "agrees with plain code") {
		t.Errorf("%d, %q, %q", status, out, errs)
	}
}
