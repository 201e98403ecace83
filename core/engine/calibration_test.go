package engine

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"firesteel/core/confidence"
	"firesteel/core/library"
)

// measured keeps what was measured of the demo pair, a band each, in a new folder, and has e go
// by it.
func measured(t *testing.T, e *Engine, list ...*confidence.Measured) {
	t.Helper()
	dir := t.TempDir()
	pair := &confidence.Calibration{Block: 7}
	for id, folder := range map[*string]string{&pair.Target.Identity: demoTarget, &pair.Drafter.Identity: demoDrafter} {
		var err error
		if *id, err = library.Identity(folder); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range list {
		if _, err := pair.Keep(dir, m); err != nil {
			t.Fatal(err)
		}
	}
	got, err := e.Recalibrate(context.Background(), dir)
	if err != nil || got.Calibration == nil || len(got.Calibration.Bands) != len(list) {
		t.Fatalf("%+v, %v", got, err)
	}
}

func curves(c confidence.Curve) confidence.Curves { return slices.Repeat(confidence.Curves{c}, 7) }

// proposed is how many drafts the rounds of a short text checked at most.
func proposed(t *testing.T, e *Engine, k Knobs) int {
	t.Helper()
	r := ask("Tell me about the sea.", k)
	r.MaxTokens, r.Trace, r.Seed = 12, true, new(uint64(1))
	most := 0
	for _, round := range generate(t, e, r).Trace {
		most = max(most, round.Proposed)
	}
	return most
}

func TestThresholdsComeFromThePersonThenTheCalibrationThenTheDrafter(t *testing.T) {
	e := loaded(t)
	all := slices.Repeat([]float64{1}, 7)
	cold := Knobs{Gamma: 7}
	if got := proposed(t, e, cold); got != 7 {
		t.Fatalf("%d checked without any threshold", got)
	}
	measured(t, e, &confidence.Measured{Thresholds: all, Pays: true}, &confidence.Measured{Temperature: 1, Thresholds: all})
	for _, c := range []struct {
		name  string
		knobs Knobs
		want  int
	}{
		{"the calibration's own", cold, 0},
		{"set to none", Knobs{Gamma: 7, Threshold: new(0.0)}, 7},
		{"one that does not pay", Knobs{Gamma: 7, Temperature: 1}, 7},
		{"a temperature that was not measured", Knobs{Gamma: 7, Temperature: 0.3}, 7},
	} {
		if got := proposed(t, e, c.knobs); got != c.want {
			t.Errorf("%s: %d checked, want %d", c.name, got, c.want)
		}
	}
	// A person's threshold is about chances as the calibration tells them.
	for shift, want := range map[float64]int{-30: 0, 30: 7} {
		measured(t, e, &confidence.Measured{Thresholds: all, Curves: curves(confidence.Curve{Sure: 1, Unsure: 1, Shift: shift})})
		if got := proposed(t, e, Knobs{Gamma: 7, Threshold: new(0.5)}); got != want {
			t.Errorf("with confidences moved by %g, %d are checked at a threshold of a half, want %d", shift, got, want)
		}
	}
	if _, err := e.Recalibrate(context.Background(), t.TempDir()); err != nil || e.Loaded().Calibration != nil {
		t.Errorf("%v, %v", e.Loaded().Calibration, err)
	}
	if got := proposed(t, e, cold); got != 7 {
		t.Errorf("%d checked once the calibration is gone", got)
	}
}

// Whatever a calibration says, greedy text is the plain one.
func TestGreedyTextOutlivesAnyCalibration(t *testing.T) {
	e := loaded(t)
	list, trials, limit := prompts(t)[:1], 2, 60
	if long() {
		list, trials, limit = prompts(t)[:4], 4, 150
	}
	random := rand.New(rand.NewPCG(7, 7))
	for _, prompt := range list {
		base := ask(prompt, Knobs{})
		base.MaxTokens = limit
		plain := generate(t, e, base)
		lengths := map[int]bool{}
		for range trials {
			m := &confidence.Measured{Pays: true}
			for range 7 {
				m.Curves = append(m.Curves, confidence.Curve{Sure: 0.2 + 3*random.Float64(), Unsure: 0.2 + 3*random.Float64(), Shift: 2 * random.NormFloat64()})
				m.Thresholds = append(m.Thresholds, random.Float64())
			}
			measured(t, e, m)
			for _, threshold := range []*float64{nil, new(random.Float64())} {
				r := ask(prompt, Knobs{Gamma: 7, Threshold: threshold})
				r.MaxTokens, r.Trace = limit, true
				got := generate(t, e, r)
				for _, round := range got.Trace {
					lengths[round.Proposed] = true
				}
				if slices.Equal(got.TokenIDs, plain.TokenIDs) {
					continue
				}
				n := 0
				for n < min(len(got.TokenIDs), len(plain.TokenIDs)) && got.TokenIDs[n] == plain.TokenIDs[n] {
					n++
				}
				if lead := gap(t, e, base, plain.TokenIDs[:n]); lead > 1e-4 {
					t.Errorf("%q: another token %d, %g apart, with %+v", prompt, n, lead, m)
				}
			}
		}
		if len(lengths) < 4 {
			t.Errorf("drafts of lengths %v only", lengths)
		}
	}
}

func TestLoadingFindsTheCalibration(t *testing.T) {
	e := loaded(t)
	measured(t, e, &confidence.Measured{Temperature: 1})
	kept := *e.Loaded().Calibration
	dir := t.TempDir()
	if err := kept.Write(dir); err != nil {
		t.Fatal(err)
	}
	request := demoRequest
	request.Calibrations = dir
	got, err := e.Load(context.Background(), request)
	if err != nil || got.Calibration.For(1) == nil || got.Calibration.For(0) != nil {
		t.Errorf("%+v, %v", got, err)
	}
	// One that is damaged is done without.
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	if err := os.WriteFile(filepath.Join(dir, entries[0].Name()), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err = e.Load(context.Background(), request); err != nil || got.Calibration != nil {
		t.Errorf("%+v, %v", got, err)
	}
	request.DrafterDir = ""
	if got, err = e.Load(context.Background(), request); err != nil || got.Calibration != nil {
		t.Errorf("%+v, %v", got, err)
	}
}
