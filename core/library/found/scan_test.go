package found

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"firesteel/core/library"
	"firesteel/models/checkpoint"
)

func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		variables map[string]string
		hub       string
	}{
		{nil, "/home/mia/.cache/huggingface/hub"},
		{map[string]string{"XDG_CACHE_HOME": "/cache"}, "/cache/huggingface/hub"},
		{map[string]string{"XDG_CACHE_HOME": "/cache", "HF_HOME": "~/hf"}, "/home/mia/hf/hub"},
		{map[string]string{"HF_HOME": "/hf", "HF_HUB_CACHE": "/hub"}, "/hub"},
	} {
		list := places("/home/mia", func(name string) string { return c.variables[name] })
		if list[0] != (place{c.hub, true}) {
			t.Errorf("%v: %+v", c.variables, list[0])
		}
		for _, want := range []string{".lmstudio/models", ".cache/lm-studio/models", "models", "Firesteel"} {
			if !slices.Contains(list, place{filepath.Join("/home/mia", want), false}) {
				t.Errorf("%s is not among %+v", want, list)
			}
		}
	}
	if list := places("", noVariables); len(list) != 0 {
		t.Errorf("without a home folder: %+v", list)
	}
}

func TestScan(t *testing.T) {
	home := t.TempDir()
	expect(t, home)
	hub := filepath.Join(home, ".cache/huggingface/hub")
	snapshot(t, hub, "models--google--gemma-4-12b-it", "0a1b2c", "gemma4-12b-like")
	snapshot(t, hub, "models--deepseek--spec-gemma", "9f8e7d", "deepspec-gemma4")
	snapshot(t, hub, "datasets--some--texts", "11", "qwen3-like")
	plain(t, "qwen3-like-mxfp4", filepath.Join(home, ".lmstudio/models/mlx-community/Qwen3-mxfp4"))
	plain(t, "gemma4-e2b-like", filepath.Join(home, ".cache/lm-studio/models/lmstudio-community/gemma-4-E2B"))
	plain(t, "qwen3-like", filepath.Join(home, "models/Qwen3"))
	plain(t, "dflash", filepath.Join(home, "Firesteel/my drafter"))
	// None of these is offered: too deep, hidden, of a superseded kind, no model.
	plain(t, "qwen3-like", filepath.Join(home, "models/a/b/c"))
	plain(t, "qwen3-like", filepath.Join(home, "models/.staged"))
	plain(t, "dspark-v1", filepath.Join(home, "models/old"))
	write(t, filepath.Join(home, "models/pictures/config.json"), []byte(`{"architectures":["Painter"]}`))
	write(t, filepath.Join(home, "models/words/tokenizer.json"), []byte(`{}`))
	models := expect(t, home, "drafter deepseek/spec-gemma", "target google/gemma-4-12b-it", "target lmstudio-community/gemma-4-E2B",
		"target mlx-community/Qwen3-mxfp4", "drafter my drafter", "target Qwen3")
	for _, m := range models {
		if _, err := library.DescribeAs(m.What.Kind, m.What.Dir); err != nil {
			t.Error(err)
		}
	}
}

// Each way to name a model of the hub's cache leads to the snapshot that counts.
func TestHubCache(t *testing.T) {
	home := t.TempDir()
	hub := filepath.Join(home, ".cache/huggingface/hub")
	const repo = "models--google--gemma-4-12b-it"
	older := snapshot(t, hub, repo, "aaa", "gemma4-12b-like")
	newer := snapshot(t, hub, repo, "bbb", "gemma4-12b-like-q4")
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(newer, later, later); err != nil {
		t.Fatal(err)
	}
	is := func(dir, precision string) {
		t.Helper()
		models := expect(t, home, "target google/gemma-4-12b-it")
		for _, m := range models {
			if m.What.Dir != dir || m.What.Precision != precision {
				t.Errorf("%s in %s, want %s in %s", m.What.Precision, m.What.Dir, precision, dir)
			}
		}
	}
	is(newer, "4-bit") // the newest where no reference is
	write(t, filepath.Join(hub, repo, "refs/main"), []byte("aaa"))
	is(older, "bf16")
	for _, dir := range []string{filepath.Join(hub, repo), filepath.Join(hub, repo, "snapshots"), older, filepath.Join(older, "model.safetensors")} {
		d, err := library.Describe(dir)
		if err != nil || d.Dir != older || d.Name != "google/gemma-4-12b-it" {
			t.Errorf("%s: %q in %s, %v", dir, d.Name, d.Dir, err)
		}
	}
	copied := plain(t, "gemma4-12b-like", filepath.Join(t.TempDir(), "gemma"))
	if d, err := library.Describe(copied); err != nil || d.Dir != copied || d.Name != "gemma" {
		t.Error(d.Name, d.Dir, err)
	}
	// The hub is a link; a repository is linked to by another name, which then is its name.
	elsewhere := filepath.Join(t.TempDir(), "hub on a drive")
	if err := os.Rename(hub, elsewhere); err != nil {
		t.Fatal(err)
	}
	link(t, elsewhere, hub)
	is(older, "bf16")
	named := filepath.Join(t.TempDir(), "Gemma")
	link(t, filepath.Join(elsewhere, repo), named)
	if d, err := library.Describe(named); err != nil || d.Name != "Gemma" {
		t.Error(d.Name, err)
	}
	// The same folder by another way is listed once.
	link(t, filepath.Join(hub, repo), filepath.Join(home, "models/gemma"))
	link(t, hub, filepath.Join(home, "Firesteel/hub"))
	link(t, filepath.Join(home, "models"), filepath.Join(home, "Models"))
	is(older, "bf16")
	// Files in place of links.
	snapshot(t, hub, "models--a--b", "ccc", "qwen3-like")
	plain(t, "qwen3-like", filepath.Join(t.TempDir(), "x"))
	in := filepath.Join(hub, "models--a--b/snapshots/ccc")
	for _, name := range []string{"config.json", "model.safetensors"} {
		content := read(t, filepath.Join(in, name))
		if err := os.Remove(filepath.Join(in, name)); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(in, name), content)
	}
	if err := os.RemoveAll(filepath.Join(hub, "models--a--b/blobs")); err != nil {
		t.Fatal(err)
	}
	expect(t, home, "target a/b", "target google/gemma-4-12b-it")
}

// What is broken or unfinished is not offered, is named when it is pointed at, and hides nothing else.
func TestUnfinished(t *testing.T) {
	home := t.TempDir()
	hub := filepath.Join(home, ".cache/huggingface/hub")
	snapshot(t, hub, "models--a--whole", "aaa", "qwen3-like")
	refused := func(dir string, kind checkpoint.Kind, parts ...string) {
		t.Helper()
		_, err := library.Describe(dir)
		if checkpoint.KindOf(err) != kind {
			t.Errorf("%s: %v", dir, err)
			return
		}
		for _, part := range parts {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not mention %q", err, part)
			}
		}
	}
	remove := func(path string) {
		t.Helper()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	weights := snapshot(t, hub, "models--b--no-weights", "aaa", "qwen3-like")
	remove(filepath.Join(weights, "..", "..", "blobs", "aaa-blob-mo"))
	refused(filepath.Join(hub, "models--b--no-weights"), checkpoint.KindIncomplete, "model.safetensors", "blobs/aaa-blob-mo")
	config := snapshot(t, hub, "models--c--no-config", "aaa", "qwen3-like")
	remove(filepath.Join(config, "..", "..", "blobs", "aaa-blob-co"))
	refused(config, checkpoint.KindDangling, "config.json", "blobs/aaa-blob-co")
	link(t, filepath.Join(home, "an ejected drive"), filepath.Join(home, "models/lost"))
	refused(filepath.Join(home, "models/lost"), checkpoint.KindDangling, "models/lost", "an ejected drive")
	// A shard is missing.
	sharded := plain(t, "qwen3-like", filepath.Join(home, "models/sharded"))
	if err := os.Rename(filepath.Join(sharded, "model.safetensors"), filepath.Join(sharded, "model-00001-of-00002.safetensors")); err != nil {
		t.Fatal(err)
	}
	refused(sharded, checkpoint.KindIncomplete, "model-00002-of-00002.safetensors")
	// Links in circles, as folders and as files.
	link(t, "circle", filepath.Join(home, "models/circle"))
	link(t, "..", filepath.Join(home, "models/up"))
	link(t, filepath.Join(home, "models"), filepath.Join(home, "models/org/again"))
	circular := snapshot(t, hub, "models--d--circular", "aaa", "qwen3-like")
	remove(filepath.Join(circular, "model.safetensors"))
	link(t, "model.safetensors", filepath.Join(circular, "model.safetensors"))
	refused(circular, checkpoint.KindNotReadable, "model.safetensors")
	link(t, filepath.Join(hub, "models--e--self"), filepath.Join(hub, "models--e--self/snapshots/aaa"))
	if err := os.MkdirAll(filepath.Join(hub, "models--f--nothing/snapshots"), 0o755); err != nil {
		t.Fatal(err)
	}
	refused(filepath.Join(hub, "models--f--nothing"), checkpoint.KindIncomplete)
	expect(t, home, "target a/whole")

	// A download going on beside whole files may yet replace them; one given up says nothing.
	partial := filepath.Join(hub, "models--a--whole/blobs/bbb.incomplete")
	write(t, partial, []byte("half"))
	expect(t, home)
	long := time.Now().Add(-2 * stalled)
	if err := os.Chtimes(partial, long, long); err != nil {
		t.Fatal(err)
	}
	expect(t, home, "target a/whole")
	inPlain := plain(t, "qwen3-like", filepath.Join(home, "models/plain"))
	expect(t, home, "target a/whole", "target plain")
	write(t, filepath.Join(inPlain, "tokenizer.json.part"), []byte("half"))
	expect(t, home, "target a/whole")
}

// A second scan sees what has changed in a folder that it knows.
func TestScanAgain(t *testing.T) {
	home := t.TempDir()
	dir := plain(t, "qwen3-like", filepath.Join(home, "models/m"))
	f := New(home, noVariables)
	first := f.Scan(t.Context())
	if again := f.Scan(t.Context()); !slices.EqualFunc(first, again, same) {
		t.Errorf("%v, then %v", names(first), names(again))
	}
	plain(t, "deepspec-gemma4", dir)
	if got := names(f.Scan(t.Context())); !slices.Equal(got, []string{"drafter m"}) {
		t.Error(got)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if got := f.Scan(t.Context()); len(got) != 0 || len(f.known) != 0 {
		t.Error(names(got), f.known)
	}
}
