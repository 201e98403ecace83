package train

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"firesteel/core/internal/threadtest"
	"firesteel/mlxbind"
	"firesteel/models/checkpoint"
	"firesteel/models/deepspec"
)

// tuning is a school whose student is the fixture name, with another file beside its weights.
func tuning(t *testing.T, name string, part deepspec.Part) (*school, string) {
	x := open(t, "gemma4-12b-like", checkpoint.HeadMarkov, 8)
	dir := t.TempDir()
	for _, file := range []string{"config.json", "model.safetensors"} {
		raw, err := os.ReadFile(filepath.Join(golden(name), file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "LICENSE"), []byte("free"), 0o644); err != nil {
		t.Fatal(err)
	}
	var pupil student
	var err error
	threadtest.On(t, func(*mlxbind.Scope) { pupil, err = newTuned(context.Background(), dir, x.target, part) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { threadtest.On(t, func(*mlxbind.Scope) { pupil.Close() }) })
	own := x.pupil
	x.pupil = pupil
	t.Cleanup(func() { x.pupil = own })
	x.settings.AnswerTokens, x.settings.Rate = 24, 2e-3
	return x, dir
}

func TestTuningChangesWhatLearnsAlone(t *testing.T) {
	for part, changed := range map[deepspec.Part]string{deepspec.Heads: "markov_head. confidence_head.", deepspec.HeadsAndTaps: "markov_head. confidence_head. fc. hidden_norm. norm."} {
		x, dir := tuning(t, "deepspec-gemma4", part)
		x.settings.Steps, x.settings.Measure = 40, 40
		r, err := x.run(t, context.Background(), false)
		if err != nil {
			t.Fatal(err)
		}
		if r.Best.Tau < r.Live[0].Tau {
			t.Errorf("%s: it fell from %v to %v", part, r.Live[0], r.Best)
		}
		first, last := 0.0, 0.0
		for k := range 8 {
			first, last = first+r.Losses[k]/8, last+r.Losses[32+k]/8
		}
		if !(last < first-0.005) {
			t.Errorf("%s: the loss went from %g to %g", part, first, last)
		}
		for _, file := range []string{"config.json", "LICENSE"} {
			a, err1 := os.ReadFile(filepath.Join(dir, file))
			b, err2 := os.ReadFile(filepath.Join(x.out, file))
			if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
				t.Errorf("%s differs: %v, %v", file, err1, err2)
			}
		}
		before, err1 := checkpoint.Open(dir)
		after, err2 := checkpoint.Open(x.out)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		for _, name := range before.Names() {
			a, _ := before.Tensor(name)
			b, ok := after.Tensor(name)
			if !ok || a.DType != b.DType || a.Size != b.Size {
				t.Errorf("%s: %+v became %+v", name, a, b)
				continue
			}
			one, two := make([]byte, a.Size), make([]byte, b.Size)
			if err := before.Read(context.Background(), a, one); err != nil {
				t.Fatal(err)
			}
			if err := after.Read(context.Background(), b, two); err != nil {
				t.Fatal(err)
			}
			learns := false
			for _, prefix := range strings.Fields(changed) {
				learns = learns || strings.HasPrefix(name, prefix)
			}
			// Where nothing was better than before, nothing changes at all.
			if learns = learns && r.Best.Step > 0; bytes.Equal(one, two) == learns {
				t.Errorf("%s, %s: learns %v, changed %v", part, name, learns, !bytes.Equal(one, two))
			}
		}
		before.Close()
		after.Close()
	}
}
