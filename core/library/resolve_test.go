package library

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"firesteel/models/checkpoint"
)

func TestResolve(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	base := t.TempDir()
	make := func(dir string) string {
		return write(t, dir, map[string]string{"config.json": "{}", "model.safetensors": "x"})
	}
	spaced := make(filepath.Join(base, "my models", "two  spaces"))
	composed := make(filepath.Join(base, "Modèle"))
	decomposed := make(filepath.Join(base, "De\u0301mo", "e\u0301"))
	odd := make(filepath.Join(base, "100% #1 (ü) “q” 🦊"))
	quoted := make(filepath.Join(base, `a"b'c`))
	blank := make(filepath.Join(base, "ends in blank "))
	twin := make(filepath.Join(base, "twin"))
	twinBlank := make(filepath.Join(base, "twin "))
	inHome := make(filepath.Join(home, "m"))
	inHomeBlank := make(filepath.Join(home, "ends "))
	inHomeTwin, inHomeTwinBlank := make(filepath.Join(home, "twin")), make(filepath.Join(home, "twin "))
	dot := make(filepath.Join(base, "dot."))
	tilde := make(filepath.Join(base, "a", "~b"))
	long, longer := make(filepath.Join(base, strings.Repeat("n", 250))), make(filepath.Join(base, strings.Repeat("ü", 127)))

	for input, want := range map[string]string{
		spaced:                                spaced,
		"  " + spaced + " \n":                 spaced,
		`"` + spaced + `"`:                    spaced,
		`'` + spaced + `' `:                   spaced,
		"“" + spaced + "”":                    spaced,
		spaced + "/":                          spaced,
		spaced + "/config.json":               spaced,
		spaced + "/model.safetensors":         spaced,
		strings.ReplaceAll(spaced, " ", `\ `): spaced,
		"file://" + (&url.URL{Path: spaced}).EscapedPath(): spaced,
		"file://" + (&url.URL{Path: odd}).EscapedPath():    odd,
		"file://" + odd:                     odd,
		composed:                            composed,
		filepath.Join(base, "Mode\u0300le"): composed,
		filepath.Join(base, "Démo", "é"):    decomposed,
		odd:                                 odd,
		quoted:                              quoted,
		blank:                               blank,
		twin:                                twin,
		twinBlank:                           twinBlank,
		twin + "\n":                         twin,
		"~/m":                               inHome,
		`"~/m"`:                             inHome,
		" ~/m \n":                           inHome,
		"~/ends ":                           inHomeBlank,
		"~/twin":                            inHomeTwin,
		"~/twin ":                           inHomeTwinBlank,
		dot:                                 dot,
		tilde:                               tilde,
		long:                                long,
		longer:                              longer,
	} {
		got, err := Resolve(input)
		if err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", input, got, err, want)
		}
	}
	// The home folder itself.
	if got, err := Resolve("~"); err != nil || got != home {
		t.Error(got, err)
	}
	t.Chdir(base)
	if got, err := Resolve("a/~b"); err != nil || got != tilde {
		t.Error(got, err)
	}
	for _, missing := range []string{filepath.Join(base, "none"), "~/none", "~nobody", "x\x00y", "", `""`} {
		_, err := Resolve(missing)
		refused(t, err, checkpoint.KindNotFound)
	}
	if _, err := os.Stat(filepath.Join(base, "~")); err == nil {
		t.Error("a folder called tilde was made")
	}
}

func TestResolveHub(t *testing.T) {
	hub := t.TempDir()
	repo := filepath.Join(hub, "models--google--gemma-4-12b-it")
	older, newer := filepath.Join(repo, "snapshots", "aaa"), filepath.Join(repo, "snapshots", "bbb")
	for _, dir := range []string{older, newer} {
		write(t, dir, map[string]string{"config.json": qwen3, "model.safetensors": weights(t, map[string][]int{"a": {1}})})
	}
	write(t, repo, map[string]string{"refs/main": "aaa\n"})
	for _, input := range []string{repo, filepath.Join(repo, "snapshots"), older, filepath.Join(older, "config.json")} {
		if got, err := Resolve(input); err != nil || got != older {
			t.Errorf("%s: %s, %v", input, got, err)
		}
	}
	if got, err := Resolve(newer); err != nil || got != newer {
		t.Error(got, err)
	}
	if d := describe(t, repo); d.Name != "google/gemma-4-12b-it" {
		t.Error(d.Name)
	}
	// The hub reached through a link.
	linked := filepath.Join(t.TempDir(), "hub")
	if err := os.Symlink(hub, linked); err != nil {
		t.Fatal(err)
	}
	if d := describe(t, filepath.Join(linked, filepath.Base(repo))); d.Layers != 5 {
		t.Errorf("%+v", d)
	}
	// refs/main names what is not there, or tries to lead out: the newest snapshot counts.
	info, _ := os.Stat(older)
	later := info.ModTime().Add(1e9)
	if err := os.Chtimes(newer, later, later); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"ccc", "../../..", "", ".."} {
		write(t, repo, map[string]string{"refs/main": ref})
		if got, err := Resolve(repo); err != nil || got != newer {
			t.Errorf("ref %q: %s, %v", ref, got, err)
		}
	}
	none := filepath.Join(hub, "models--a--b")
	if err := os.MkdirAll(filepath.Join(none, "snapshots"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Resolve(none)
	refused(t, err, checkpoint.KindIncomplete, "snapshot")
}

// In the hub's cache, what lies beside a model are the other repositories.
func TestPairInHub(t *testing.T) {
	hub := t.TempDir()
	in := func(repo string) string { return filepath.Join(hub, repo, "snapshots", "aaa") }
	target := copyOf(t, "gemma4-12b-like", in("models--google--gemma"), nil)
	drafter := copyOf(t, "deepspec-gemma4", in("models--deepseek--spec"), nil)
	if got, ok := FindDrafter(filepath.Join(hub, "models--google--gemma")); !ok || got != drafter {
		t.Error(got, ok)
	}
	if got, ok := FindTarget(filepath.Join(hub, "models--deepseek--spec")); !ok || got != target {
		t.Error(got, ok)
	}
}

func TestSignature(t *testing.T) {
	hub := t.TempDir()
	repo := filepath.Join(hub, "models--a--b")
	first := Signature(repo)
	changed := func(what string) {
		t.Helper()
		now := Signature(repo)
		if now == first {
			t.Errorf("%s does not show", what)
		}
		if Signature(repo) != now {
			t.Errorf("after %s it changes by itself", what)
		}
		first = now
	}
	in := filepath.Join(repo, "snapshots", "aaa")
	write(t, in, map[string]string{"config.json": "{}"})
	changed("a folder that comes")
	write(t, in, map[string]string{"model.safetensors": "1"})
	changed("a file that comes")
	write(t, in, map[string]string{"model.safetensors": "12"})
	changed("a file that grows")
	write(t, in, map[string]string{"notes.txt": "1"})
	if Signature(repo) != first {
		t.Error("notes change it")
	}
	write(t, repo, map[string]string{"snapshots/bbb/config.json": "{}", "refs/main": "bbb"})
	changed("another snapshot")
}
