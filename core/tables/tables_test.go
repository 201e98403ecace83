package tables

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"firesteel/core/library"
	"firesteel/core/quantize"
	"firesteel/core/thread"
	"firesteel/models/checkpoint"
)

const (
	demoTarget  = "../../models/demo/pair/target"
	demoDrafter = "../../models/demo/pair/drafter"
)

func shared(t *testing.T, w *thread.Thread, target, drafter, place string) (shared bool) {
	t.Helper()
	a, err := checkpoint.Open(target)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := checkpoint.Open(drafter)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := w.Do(context.Background(), func() (err error) {
		shared, err = Shared(context.Background(), a, b, place)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return shared
}

func smaller(t *testing.T, w *thread.Thread, source string, q checkpoint.Quantization) string {
	p, err := quantize.NewPlan(quantize.Options{Source: source, Destination: filepath.Join(t.TempDir(), "smaller"), Packing: q, Notes: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := quantize.Run(context.Background(), w, p, nil); err != nil {
		t.Fatal(err)
	}
	return p.Destination
}

// copied is a folder that may be changed.
func copied(t *testing.T, dir string) string {
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestShared(t *testing.T) {
	w, err := thread.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if !shared(t, w, demoTarget, demoDrafter, "") {
		t.Error("equal tables are not found to be")
	}
	four := checkpoint.Quantization{Bits: 4, GroupSize: 64}
	packed := smaller(t, w, demoTarget, four)
	if !shared(t, w, packed, demoDrafter, "") {
		t.Error("tables that are equal once packed are not found to be")
	}
	small := smaller(t, w, demoDrafter, four)
	if !shared(t, w, packed, small, "") {
		t.Error("tables that are packed alike are not found to be")
	}
	if shared(t, w, packed, smaller(t, w, demoDrafter, checkpoint.Quantization{Bits: 8, GroupSize: 64}), "") || shared(t, w, demoTarget, small, "") {
		t.Error("tables that are packed differently are taken for one another")
	}

	// One value of one row, in either table.
	for _, name := range []string{"embed_tokens.weight", "lm_head.weight"} {
		dir := copied(t, demoDrafter)
		f, err := checkpoint.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		tensor, _ := f.Tensor(name)
		f.Close()
		path := filepath.Join(dir, tensor.File)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		raw[tensor.Offset+tensor.Size-5] ^= 0x40
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if shared(t, w, demoTarget, dir, "") {
			t.Errorf("a value of %s differs and nobody noticed", name)
		}
	}
	// Another cap on the logits.
	dir := copied(t, demoDrafter)
	config := filepath.Join(dir, "config.json")
	raw, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(strings.Replace(string(raw), `"final_logit_softcapping": 30.0`, `"final_logit_softcapping": 29.0`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if shared(t, w, demoTarget, dir, "") {
		t.Error("another cap went unnoticed")
	}
}

func TestHeldIsLessOnceTheTablesAreKnown(t *testing.T) {
	w, err := thread.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	describe := func(dir string) library.Description {
		d, err := library.Describe(dir)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	target, drafter, place := describe(demoTarget), describe(demoDrafter), t.TempDir()
	if d := Held(target, drafter, place); d.TensorBytes != drafter.TensorBytes {
		t.Error("it is less before anyone has looked")
	}
	shared(t, w, demoTarget, demoDrafter, place)
	d := Held(target, drafter, place)
	// Two tables of 4096 rows of 256 bf16 values.
	const numbers = 2 * 4096 * 256
	if drafter.TensorBytes-d.TensorBytes != 2*numbers || drafter.HalfBytes-d.HalfBytes != 2*numbers || drafter.Parameters-d.Parameters != numbers {
		t.Errorf("%d of %d bytes, %d of %d parameters", d.TensorBytes, drafter.TensorBytes, d.Parameters, drafter.Parameters)
	}
	four := smaller(t, w, demoDrafter, checkpoint.Quantization{Bits: 4, GroupSize: 64})
	shared(t, w, demoTarget, four, place)
	if d := describe(four); Held(target, d, place).TensorBytes != d.TensorBytes {
		t.Error("tables of its own are left out")
	}
}

func TestRemembersForTheseVeryFiles(t *testing.T) {
	w, err := thread.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	place, dir := t.TempDir(), copied(t, demoDrafter)
	if !shared(t, w, demoTarget, dir, place) {
		t.Fatal("not shared")
	}
	// What is remembered is not looked at again: the answer is turned round to see that.
	path := filepath.Join(place, fileName)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(raw), "true", "false", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if shared(t, w, demoTarget, dir, place) {
		t.Error("it was looked at again")
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "model.safetensors"), later, later); err != nil {
		t.Fatal(err)
	}
	if !shared(t, w, demoTarget, dir, place) {
		t.Error("other files got the answer of earlier ones")
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !shared(t, w, demoTarget, dir, place) {
		t.Error("a damaged memory harms")
	}
}
