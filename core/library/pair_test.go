package library

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckPair(t *testing.T) {
	target := describe(t, filepath.Join(fixtures, "gemma4-12b-like"))
	for _, name := range []string{"deepspec-gemma4", "deepspec-gemma4-q4", "deepspec-gemma4-mixed"} {
		if err := CheckPair(target, describe(t, filepath.Join(fixtures, name))); err != nil {
			t.Error(err)
		}
	}
	// A quantized target changes nothing about it.
	if err := CheckPair(describe(t, filepath.Join(fixtures, "gemma4-12b-like-q4")), describe(t, filepath.Join(fixtures, "deepspec-gemma4"))); err != nil {
		t.Error(err)
	}
	one := weights(t, map[string][]int{"a": {1}})
	spark := describe(t, write(t, t.TempDir(), map[string]string{"dspark.json": dspark, "model.safetensors": one}))
	if err := CheckPair(target, spark); err != nil {
		t.Error(err)
	}
	qwen := describe(t, write(t, t.TempDir(), map[string]string{"config.json": qwen3, "model.safetensors": one}))
	if err := CheckPair(qwen, describe(t, write(t, t.TempDir(), map[string]string{"config.json": qwen3Drafter, "model.safetensors": one}))); err != nil {
		t.Error(err)
	}

	drafter := describe(t, filepath.Join(fixtures, "deepspec-gemma4"))
	for name, c := range map[string]struct {
		change    func(target, drafter *Description)
		field     string
		want, got string
	}{
		"roles swapped":       {func(a, b *Description) { *a, *b = *b, *a }, "role", "target", "drafter"},
		"two targets":         {func(a, b *Description) { *b = *a }, "role", "drafter", "target"},
		"family":              {func(a, b *Description) { *a = qwen }, "family", "Gemma 4", "Qwen 3"},
		"layers":              {func(a, b *Description) { a.Layers = 7 }, "layers", "6", "7"},
		"hidden":              {func(a, b *Description) { b.TargetHidden += 32 }, "hidden size", "96", "64"},
		"vocabulary":          {func(a, b *Description) { b.Vocabulary += 8 }, "vocabulary", "328", "320"},
		"tap past the end":    {func(a, b *Description) { b.Taps = []int{0, 6} }, "taps", "layer 6", "layers -1 to 5"},
		"tap below":           {func(a, b *Description) { b.Taps = []int{-2} }, "taps", "layer -2", "layers -1 to 5"},
		"mask token":          {func(a, b *Description) { b.MaskToken = 320 }, "mask token", "320", "320 tokens"},
		"mask token negative": {func(a, b *Description) { b.MaskToken = -1 }, "mask token", "-1", "320 tokens"},
		"dspark: hidden":      {func(a, b *Description) { *b = spark; a.Hidden = 96 }, "hidden size", "64", "96"},
		"dspark: tap":         {func(a, b *Description) { *b = spark; b.Taps = []int{7} }, "taps", "layer 7", "layers 0 to 6"},
		"dspark: tap -1":      {func(a, b *Description) { *b = spark; b.Taps = []int{-1} }, "taps", "layer -1", "layers 0 to 6"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := target, drafter
			c.change(&a, &b)
			var e *PairError
			if err := CheckPair(a, b); !errors.As(err, &e) {
				t.Fatalf("got %v, want a *PairError", err)
			}
			if e.Field != c.field || e.Want != c.want || e.Got != c.got {
				t.Errorf("got %+v", e)
			}
			if !strings.Contains(e.Error(), c.field) && c.field != "role" {
				t.Error(e)
			}
		})
	}
	renamed := spark
	for id, doubt := range map[string]string{
		"gemma4-12b-like@64x320": "", "": "", "gemma4-12b-like": "",
		"a name of before@64x320":     "it was trained for a name of before@64x320",
		"gemma4-12b-like@2560x262144": "it was trained for gemma4-12b-like@2560x262144",
	} {
		renamed.TargetID = id
		if err := CheckPair(target, renamed); err != nil {
			t.Error(err)
		}
		if got := DoubtPair(target, renamed); got != doubt {
			t.Errorf("%q: %q", id, got)
		}
	}
	if err := CheckPair(target, drafter); err != nil || DoubtPair(target, drafter) != "" {
		t.Error("a pair was doubted")
	}
	// A DFlash drafter goes with any family whose sizes are right.
	plain := describe(t, write(t, t.TempDir(), map[string]string{"config.json": strings.Replace(qwen3, `"num_hidden_layers":5`, `"num_hidden_layers":6`, 1), "model.safetensors": one}))
	if err := CheckPair(plain, spark); err != nil {
		t.Error(err)
	}
}

// Rows that stand for no token may differ; tokens may not.
func TestPadding(t *testing.T) {
	dir := copyOf(t, "gemma4-12b-like", t.TempDir(), nil)
	tokenizer := func(highest, added int) {
		write(t, dir, map[string]string{"tokenizer.json": fmt.Sprintf(`{"added_tokens":[{"id":%d,"content":"<e>"}],"model":{"type":"BPE","vocab":{"a":0,"b":%d}}}`, added, highest)})
	}
	drafter := describe(t, filepath.Join(fixtures, "deepspec-gemma4"))
	for _, c := range []struct {
		highest, added, rows int
		fine                 bool
	}{
		{310, 5, 328, true}, // the drafter has 8 rows of padding more
		{310, 5, 312, true}, // 8 fewer, but all tokens
		{310, 312, 312, false},
		{312, 5, 312, false},
		{400, 5, 328, false},
	} {
		tokenizer(c.highest, c.added)
		target := describe(t, dir)
		drafter.Vocabulary = c.rows
		err := CheckPair(target, drafter)
		if (err == nil) != c.fine {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil && SharedVocabulary(target, drafter) != min(320, c.rows) {
			t.Error(SharedVocabulary(target, drafter))
		}
	}
}

// A drafter that brings a tokenizer must mean the same tokens.
func TestSwappedToken(t *testing.T) {
	target := describe(t, copyOf(t, "gemma4-12b-like", t.TempDir(), nil))
	drafter := describe(t, copyOf(t, "deepspec-gemma4", t.TempDir(), nil))
	table := func(vocab string) string {
		return `{"added_tokens":[{"id":3,"content":"<e>"}],"model":{"vocab":` + vocab + `}}`
	}
	write(t, target.Dir, map[string]string{"tokenizer.json": table(`{"a":0,"b":1,"c":2}`)})
	for vocab, field := range map[string]string{
		`{"a":0,"b":1,"c":2}`:         "",
		`{"c":2,"b":1,"a":0}`:         "",
		`{"a":0,"b":1,"c":2,"pad":9}`: "",
		`{"a":0,"c":1,"b":2}`:         "vocabulary",
	} {
		write(t, drafter.Dir, map[string]string{"tokenizer.json": table(vocab)})
		err := CheckPair(target, drafter)
		var e *PairError
		if errors.As(err, &e) != (field != "") || e != nil && (e.Field != field || e.Want != `token 1 = "c"` || e.Got != `"b"`) {
			t.Errorf("%s: %v", vocab, err)
		}
	}
}

func TestFindDrafter(t *testing.T) {
	one := weights(t, map[string][]int{"a": {1}})
	base := t.TempDir()
	target := copyOf(t, "gemma4-12b-like", filepath.Join(base, "gemma4-12b-like"), nil)
	expect := func(want string) {
		t.Helper()
		got, ok := FindDrafter(target)
		if got != want || ok != (want != "") {
			t.Errorf("got %q, %v, want %q", got, ok, want)
		}
	}
	expect("")
	// Neighbours that don't fit, or are no models at all.
	copyOf(t, "deepspec-gemma4", filepath.Join(base, "a-other-hidden"), func(c map[string]any) { c["num_target_layers"] = 48 })
	copyOf(t, "gemma4-12b-like", filepath.Join(base, "b-target"), nil)
	write(t, filepath.Join(base, "c-qwen-drafter"), map[string]string{"config.json": qwen3Drafter, "model.safetensors": one})
	write(t, filepath.Join(base, "d-broken"), map[string]string{"config.json": "{"})
	write(t, filepath.Join(base, "e-cut"), map[string]string{"config.json": `{"architectures":["Gemma4DSparkModel"]}`})
	write(t, base, map[string]string{"notes.txt": "x"})
	if err := os.Symlink("loop", filepath.Join(base, "loop")); err != nil {
		t.Fatal(err)
	}
	expect("")
	// By the alphabet, then by likeness of name, then called "drafter", then inside.
	expect(func() string { return copyOf(t, "deepspec-gemma4", filepath.Join(base, "z-drafter"), nil) }())
	expect(func() string {
		return copyOf(t, "deepspec-gemma4-q4", filepath.Join(base, "gemma4-12b-like-draft"), nil)
	}())
	expect(func() string { return copyOf(t, "deepspec-gemma4", filepath.Join(base, "drafter"), nil) }())
	expect(func() string { return copyOf(t, "deepspec-gemma4-q4", filepath.Join(target, "drafter"), nil) }())

	if dir, ok := FindDrafter(filepath.Join(base, "drafter")); ok {
		t.Errorf("a drafter got a drafter: %s", dir)
	}
	if _, ok := FindDrafter(filepath.Join(base, "none")); ok {
		t.Error("a folder that is not there got a drafter")
	}
}

func TestFindDrafterInHub(t *testing.T) {
	hub := t.TempDir()
	target := filepath.Join(hub, "models--google--gemma")
	copyOf(t, "gemma4-12b-like", filepath.Join(target, "snapshots", "aaa"), nil)
	drafter := copyOf(t, "deepspec-gemma4", filepath.Join(hub, "models--deepseek--draft", "snapshots", "bbb"), nil)
	if got, ok := FindDrafter(target); !ok || got != drafter {
		t.Error(got, ok)
	}
}

func TestFindTarget(t *testing.T) {
	base := t.TempDir()
	drafter := write(t, filepath.Join(base, "mine"), map[string]string{"dspark.json": dspark, "model.safetensors": weights(t, map[string][]int{"a": {1}})})
	if _, ok := FindTarget(drafter); ok {
		t.Error("found a target where none is")
	}
	only := copyOf(t, "gemma4-12b-like", filepath.Join(base, "a"), nil)
	if got, ok := FindTarget(drafter); !ok || got != only {
		t.Error(got, ok)
	}
	named := copyOf(t, "gemma4-12b-like", filepath.Join(base, "gemma4-12b-like"), nil)
	if got, ok := FindTarget(drafter); !ok || got != named {
		t.Error(got, ok)
	}
}
