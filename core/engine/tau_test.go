package engine

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"firesteel/core/quantize"
	"firesteel/models"
	"firesteel/models/checkpoint"
	"firesteel/models/family"
)

// smaller quantizes a folder for a test.
func smaller(t testing.TB, e *Engine, source string, q checkpoint.Quantization, recommended bool) *quantize.Plan {
	t.Helper()
	p, err := quantize.NewPlan(quantize.Options{Source: source, Destination: filepath.Join(t.TempDir(), "smaller"), Packing: q, Recommended: recommended, Notes: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := quantize.Run(context.Background(), e, p, nil); err != nil {
		t.Fatal(err)
	}
	return p
}

// A drafter made small drafts nearly as well, and holds less.
func TestSmallDraftersDraftNearlyAsWell(t *testing.T) {
	e := loaded(t)
	list, tokens := prompts(t)[4:8], 40
	if long() {
		list, tokens = prompts(t)[8:20], 100
	}
	tau := func(dir string) float64 {
		v, err := e.Tau(context.Background(), dir, list, tokens)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	full := tau("")
	for _, c := range []struct {
		bits  int
		least float64
	}{{4, 0.92}, {8, 0.98}} {
		p := smaller(t, e, demoDrafter, checkpoint.Quantization{Bits: c.bits}, false)
		got := tau(p.Destination)
		t.Logf("%d bits: %.3f words a check, in full %.3f (%.3f)", c.bits, got, full, got/full)
		if got < c.least*full {
			t.Errorf("%d bits: %.3f words a check, in full %.3f", c.bits, got, full)
		}
		if _, err := e.Load(context.Background(), LoadRequest{TargetDir: demoTarget, DrafterDir: p.Destination}); err != nil {
			t.Fatal(err)
		}
		small := e.Loaded().Drafter.MemoryBytes
		if _, err := e.Load(context.Background(), demoRequest); err != nil {
			t.Fatal(err)
		}
		if full := e.Loaded().Drafter.MemoryBytes; small >= full*int64(c.bits+1)/16 {
			t.Errorf("%d bits: %d bytes in memory, in full %d", c.bits, small, full)
		}
	}
	if _, err := e.Tau(context.Background(), demoTarget, list, tokens); checkpoint.KindOf(err) != checkpoint.KindWrongRole {
		t.Errorf("a target as drafter: %v", err)
	}
	if err := e.Unload(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Tau(context.Background(), demoDrafter, list, tokens); !errors.Is(err, ErrNothingLoaded) {
		t.Errorf("nothing loaded: %v", err)
	}
}

// A drafter whose tables are the target's drafts the same with them, and holds less.
func TestSharedTablesChangeNothing(t *testing.T) {
	e := loaded(t)
	info := e.Loaded().Drafter
	if !info.SharesTables {
		t.Fatal("the demo drafter does not share its target's tables")
	}
	var own models.Drafter
	err := e.Do(context.Background(), func() error {
		folder, err := checkpoint.Open(demoDrafter)
		if err != nil {
			return err
		}
		defer folder.Close()
		own, err = family.OpenDrafter(context.Background(), folder, e.held.target, false, nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// Both in float32: two tables of 4096 by 256.
	if saved := own.Bytes() - info.MemoryBytes; saved != 2*4096*256*4 {
		t.Errorf("%d bytes are saved", saved)
	}
	list := prompts(t)[8:10]
	tau := func() float64 {
		v, err := e.Tau(context.Background(), "", list, 60)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	with := tau()
	lent := e.held.drafter
	e.held.drafter = own
	without := tau()
	e.held.drafter = lent
	t.Logf("%.4f words a check with the target's tables, %.4f with its own", with, without)
	if with != without {
		t.Error("drafts differ")
	}
	if err := e.Do(context.Background(), func() error { own.Close(); return nil }); err != nil {
		t.Fatal(err)
	}
}

// TestRecipes prints how well drafters guess that are packed in different ways: what the
// recommended recipe rests on.
func TestRecipes(t *testing.T) {
	if !long() {
		t.Skip("a table for people; FIRESTEEL_LONG prints it")
	}
	e := loaded(t)
	list := prompts(t)[8:14]
	row := func(name, dir string, bytes int64) {
		tau, err := e.Tau(context.Background(), dir, list, 100)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-12s %5.1f MB  %.3f words a check", name, float64(bytes)/1e6, tau)
	}
	row("full", "", 11_220_776)
	for _, c := range []struct {
		name        string
		bits        int
		recommended bool
	}{{"3-bit", 3, false}, {"4-bit", 4, false}, {"recommended", 4, true}, {"6-bit", 6, false}, {"8-bit", 8, false}} {
		p := smaller(t, e, demoDrafter, checkpoint.Quantization{Bits: c.bits}, c.recommended)
		row(c.name, p.Destination, p.ResultBytes)
	}
}
