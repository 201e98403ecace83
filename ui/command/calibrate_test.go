package command

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"firesteel/core/confidence"
	"firesteel/core/engine"
	"firesteel/core/job"
	"firesteel/core/prompts"
	"firesteel/models/chat"
	"firesteel/models/checkpoint"
)

// bold stands in for an engine whose drafter is surer than it should be.
type bold struct {
	*scripted
	texts int
}

func (c *bold) Generate(ctx context.Context, r engine.Request, emit func(engine.Event)) (engine.Result, error) {
	c.texts++
	c.request = r
	random := rand.New(rand.NewPCG(*r.Seed, 3))
	var result engine.Result
	for i := range 40 {
		if ctx.Err() != nil {
			return result, ctx.Err()
		}
		round := engine.RoundTrace{Proposed: min(3, r.Controls.Get().Gamma), ConfidenceLogits: []float32{2, 2, 2}, Emitted: []int{1}}
		for round.Accepted < round.Proposed && random.Float64() < 0.5 {
			round.Accepted++
		}
		result.Trace = append(result.Trace, round)
		emit(engine.Round{Drafted: round.Proposed, Elapsed: time.Duration(i+1) * time.Millisecond})
	}
	return result, nil
}

// calibrating runs a command line with such an engine and the real demo folders, or another for the
// drafter, and returns the folder for what is kept as well.
func calibrating(t *testing.T, drafter string, args ...string) (c *bold, kept string, status int, out, errs string) {
	t.Helper()
	demo, err := filepath.Abs(filepath.Join("..", "..", "models", "demo", "pair"))
	if err != nil {
		t.Fatal(err)
	}
	if drafter == "" {
		drafter = filepath.Join(demo, "drafter")
	}
	c = &bold{scripted: newScripted()}
	c.loaded.Target.Dir, c.loaded.Drafter.Dir = filepath.Join(demo, "target"), filepath.Join(demo, "drafter")
	c.loaded.Drafter.Block, c.loaded.Drafter.HasThreshold = 3, true
	kept = filepath.Join(t.TempDir(), "kept")
	var o, e strings.Builder
	status = Run(append([]string{"calibrate"}, args...), strings.NewReader(""), &o, &e, Options{
		Open: func() (Core, error) { return c, nil }, Calibrations: kept,
		DemoPair: func() (string, string, error) { return c.loaded.Target.Dir, drafter, nil },
	})
	return c, kept, status, o.String(), e.String()
}

func TestCalibrateReportsAndKeeps(t *testing.T) {
	c, kept, status, out, errs := calibrating(t, "", "--rounds", "4000", "--temperature", "1")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var got calibration
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil || status != done {
		t.Fatalf("status %d, %v, %q, %q", status, err, out, errs)
	}
	if got.Band != "high" || got.Fitted+got.HeldOut != 4000 || len(got.After) != 3 || got.Before[0].Error < 0.3 || got.After[0].Error > 0.03 {
		t.Errorf("%+v", got.Measured)
	}
	for _, part := range []string{"temperature 1 (high)", "threshold", "each its own", "no drafter"} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is missing in %s", part, out)
		}
	}
	if !strings.Contains(errs, "checks") || c.request.Controls.Get().Temperature != 1 {
		t.Errorf("%q", errs)
	}
	pair, err := confidence.Read(kept, got.Target.Identity, got.Drafter.Identity)
	if err != nil || pair.For(1).Fitted != got.Fitted {
		t.Errorf("%+v, %v", pair, err)
	}
}

func TestCalibrateTakesItsPromptsAndPrintsJSONAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.jsonl")
	if err := os.WriteFile(file, []byte("one\n{\"p\": \"two\"}\n{\"prompt\": \"three\"}\nfour\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, status, out, errs := calibrating(t, "", "--prompts", file, "--temperature", "0", "--json")
	if status != done || strings.Count(out, "\n") != 1 || !json.Valid([]byte(out)) || !strings.Contains(out, `"rounds_fitted":80`) {
		t.Errorf("status %d, %q, %q", status, out, errs)
	}
	if err := os.WriteFile(file, []byte("one\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, _, status, _, errs := calibrating(t, "", "--prompts", file); status != failed || !strings.Contains(errs, "Line 2 of "+file) || c.texts > 0 {
		t.Errorf("status %d, %q", status, errs)
	}
}

// ownHome gives a test a home folder of its own.
func ownHome(t *testing.T) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
}

func TestCalibrateTakesOnesOwnChats(t *testing.T) {
	ownHome(t)
	if c, _, status, _, errs := calibrating(t, "", "--chats"); status != failed || !strings.Contains(errs, "No chats are kept yet.") || c.texts > 0 {
		t.Errorf("status %d, %q", status, errs)
	}
	place, err := job.Notes()
	if err != nil {
		t.Fatal(err)
	}
	for _, prompt := range []string{"one of mine", "another of mine", "three", "four"} {
		if err := prompts.ChatsIn(place).Add([]chat.Message{{Role: "user", Content: prompt}, {Role: "assistant", Content: "Yes."}}, "someone"); err != nil {
			t.Fatal(err)
		}
	}
	c, _, status, out, errs := calibrating(t, "", "--chats", "--temperature", "0", "--json")
	if status != done || !strings.Contains(out, `"rounds_fitted":80`) || c.request.Messages[len(c.request.Messages)-1].Content == "Yes." {
		t.Errorf("status %d, %q, %q", status, out, errs)
	}
}

func TestCalibrateRefusals(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		say    string
	}{
		{[]string{"now"}, misused, `"now" is not a flag`},
		{[]string{"--rounds", "10"}, misused, "--rounds must be"},
		{[]string{"--temperature", "-1"}, misused, "--temperature must be"},
		{[]string{"--temperature", "NaN"}, misused, "--temperature must be"},
		{[]string{"--drafter", "none"}, misused, "without a drafter"},
		{[]string{"--target", ""}, misused, "--target is empty"},
		{[]string{"--force"}, misused, "--write-sts"},
		{[]string{"--chats", "--prompts", "x"}, misused, "exclude each other"},
		{[]string{"--prompts", filepath.Join(t.TempDir(), "none")}, failed, "There is nothing at"},
		{[]string{"--write-sts"}, failed, "Only a DFlash drafter"},
	} {
		core, kept, status, out, errs := calibrating(t, "", c.args...)
		if status != c.status || !strings.Contains(errs, c.say) || out != "" || core.texts > 0 {
			t.Errorf("%q: status %d, %q", c.args, status, errs)
		}
		if _, err := os.Stat(kept); err == nil {
			t.Errorf("%q: something was kept", c.args)
		}
	}
}

func TestCalibrateWritesIntoTheDrafterWhenAsked(t *testing.T) {
	ownHome(t)
	drafter := t.TempDir()
	d := &checkpoint.DSpark{Gamma: 3, Width: 8, Layers: 1, Heads: 2, Rank: 4, FeedForward: 2, Taps: []int{1}, Head: checkpoint.HeadMarkov, Hidden: 8, Vocabulary: 9, Eps: 1e-6}
	if err := d.Write(drafter); err != nil {
		t.Fatal(err)
	}
	if _, _, status, _, errs := calibrating(t, drafter, "--temperature", "0"); status != done {
		t.Fatalf("status %d, %q", status, errs)
	}
	if read, err := checkpoint.ReadDSpark(drafter); err != nil || read.Calibration != nil {
		t.Errorf("it was written without being asked for: %+v, %v", read, err)
	}
	if _, _, status, out, errs := calibrating(t, drafter, "--temperature", "0", "--write-sts"); status != done || !strings.Contains(out, drafter) {
		t.Fatalf("status %d, %q", status, errs)
	}
	read, err := checkpoint.ReadDSpark(drafter)
	if err != nil || len(read.Calibration.Thresholds) != 3 || read.Calibration.Target != 0.5 {
		t.Errorf("%+v, %v", read, err)
	}
	if c, _, status, _, errs := calibrating(t, drafter, "--write-sts"); status != failed || !strings.Contains(errs, "--force") || c.texts > 0 {
		t.Errorf("status %d, %q", status, errs)
	}
	if _, _, status, _, errs := calibrating(t, drafter, "--write-sts", "--force"); status != done {
		t.Errorf("status %d, %q", status, errs)
	}
}
