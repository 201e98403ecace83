package quantize

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"firesteel/core/internal/mishap"
	"firesteel/core/job"
	"firesteel/core/library"
	"firesteel/core/thread"
	"firesteel/models/checkpoint"
)

const (
	goldens     = "../../models/testdata/goldens"
	demoDrafter = "../../models/demo/pair/drafter"
	demoTarget  = "../../models/demo/pair/target"
)

func TestMain(m *testing.M) {
	mishap.Child(smaller)
	os.Exit(m.Run())
}

func worker(t testing.TB) *thread.Thread {
	w, err := thread.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// options makes a copy of source in a fresh place.
func options(t testing.TB, source string) Options {
	return Options{Source: source, Destination: filepath.Join(t.TempDir(), "smaller"), Notes: t.TempDir()}
}

func run(t testing.TB, w job.Runner, o Options) (*Plan, Result) {
	t.Helper()
	p, err := NewPlan(o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), w, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p, r
}

func open(t testing.TB, dir string) *checkpoint.Folder {
	f, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func content(t testing.TB, f *checkpoint.Folder, name string) []byte {
	tensor, ok := f.Tensor(name)
	if !ok {
		t.Fatalf("%s has no %s", f.Dir(), name)
	}
	raw := make([]byte, tensor.Size)
	if err := f.Read(context.Background(), tensor, raw); err != nil {
		t.Fatal(err)
	}
	return raw
}

// The fixtures' packed siblings were packed by MLX itself, whole matrices at a time.
func TestPacksWhatMLXPacks(t *testing.T) {
	w := worker(t)
	for _, c := range []struct {
		source, packed string
		packing        checkpoint.Quantization
		only           string // compared modules begin so; what the sibling has otherwise is not
	}{
		{"gemma4-12b-like", "gemma4-12b-like-q4", checkpoint.Quantization{Bits: 4, GroupSize: 64}, ""},
		{"deepspec-gemma4", "deepspec-gemma4-q4", checkpoint.Quantization{Bits: 4, GroupSize: 32}, ""},
		{"deepspec-gemma4", "deepspec-gemma4-mixed", checkpoint.Quantization{Bits: 8, GroupSize: 64}, "lm_head"},
		{"deepspec-gemma4", "deepspec-gemma4-mixed", checkpoint.Quantization{Bits: 6, GroupSize: 64}, "embed_tokens"},
		{"qwen3-like", "qwen3-like-mxfp4", checkpoint.Quantization{Mode: "mxfp4"}, "model.layers."},
		{"qwen3-tied-like", "qwen3-tied-like-q3", checkpoint.Quantization{Bits: 3, GroupSize: 32}, ""},
	} {
		o := options(t, filepath.Join(goldens, c.source))
		o.Packing = c.packing
		p, _ := run(t, w, o)
		ours, theirs := open(t, p.Destination), open(t, filepath.Join(goldens, c.packed))
		compared := 0
		for _, module := range theirs.QuantizedModules() {
			if !strings.HasPrefix(module, c.only) {
				continue
			}
			for _, part := range []string{".weight", ".scales", ".biases"} {
				if _, ok := theirs.Tensor(module + part); !ok {
					continue
				}
				compared++
				if !bytes.Equal(content(t, ours, module+part), content(t, theirs, module+part)) {
					t.Errorf("%s: %s%s differs", c.packed, module, part)
				}
			}
		}
		if compared == 0 {
			t.Errorf("%s: nothing was compared", c.packed)
		}
	}
}

func TestSizesAreAsAnnounced(t *testing.T) {
	w := worker(t)
	for _, source := range []string{demoDrafter, filepath.Join(goldens, "deepspec-gemma4-gated"), filepath.Join(goldens, "gemma4-e2b-like"), demoTarget} {
		for _, q := range []checkpoint.Quantization{{}, {Bits: 8, GroupSize: 32}, {Mode: "nvfp4"}} {
			before, err := mishap.Digest(source)
			if err != nil {
				t.Fatal(err)
			}
			o := options(t, source)
			o.Packing = q
			if q.Mode != "" && source == demoTarget {
				continue // slow on a processor, and no different
			}
			p, r := run(t, w, o)
			if r.ResultBytes != p.ResultBytes {
				t.Errorf("%s, %+v: %d bytes, %d announced", source, q, r.ResultBytes, p.ResultBytes)
			}
			d, err := library.Describe(p.Destination)
			if err != nil {
				t.Fatal(err)
			}
			if d.TensorBytes != p.MemoryAfter || !d.Quantized() {
				t.Errorf("%s, %+v: %d bytes in memory, %d announced, %s", source, q, d.TensorBytes, p.MemoryAfter, d.Precision)
			}
			if after, err := mishap.Digest(source); after != before {
				t.Errorf("%s was changed: %v", source, err)
			}
		}
	}
}

func TestRecommendedMixes(t *testing.T) {
	o := options(t, demoDrafter)
	o.Recommended = true
	p, _ := run(t, worker(t), o)
	made := open(t, p.Destination)
	for module, bits := range map[string]int{"markov_head.markov_w1": 8, "fc": 6, "layers.0.mlp.up_proj": 4} {
		q, err := made.Quantization(module)
		if err != nil || q == nil || q.Bits != bits {
			t.Errorf("%s: %+v, %v", module, q, err)
		}
	}
}

func TestNarrowRowsGetASmallerGroup(t *testing.T) {
	o := options(t, filepath.Join(goldens, "deepspec-gemma4"))
	o.Packing = checkpoint.Quantization{Bits: 4, GroupSize: 128}
	p, _ := run(t, worker(t), o)
	kept := map[string]bool{}
	for _, k := range p.Kept {
		kept[k.Name] = true
	}
	if !kept["markov_head.markov_w1"] || !kept["confidence_head.proj"] {
		t.Errorf("kept: %v", p.Kept)
	}
	made := open(t, p.Destination)
	if q, err := made.Quantization("fc"); err != nil || q.GroupSize != 64 {
		t.Errorf("rows of 192 values: %+v, %v", q, err)
	}
}

func TestRefusals(t *testing.T) {
	place := t.TempDir()
	taken := filepath.Join(place, "taken")
	link := filepath.Join(place, "link")
	if err := errors.Join(os.Mkdir(taken, 0o700), os.WriteFile(filepath.Join(taken, "x"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	source, err := filepath.Abs(demoDrafter)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(source, link); err != nil {
		t.Fatal(err)
	}
	free := filepath.Join(place, "free")
	for name, c := range map[string]struct {
		o    Options
		want Reason
	}{
		"quantized already":       {Options{Source: filepath.Join(goldens, "deepspec-gemma4-q4"), Destination: free}, AlreadyQuantized},
		"onto itself":             {Options{Source: source, Destination: source}, SourceItself},
		"onto itself by a link":   {Options{Source: source, Destination: link}, SourceItself},
		"inside":                  {Options{Source: source, Destination: filepath.Join(source, "smaller")}, InsideSource},
		"inside by a link":        {Options{Source: link, Destination: filepath.Join(source, "smaller")}, InsideSource},
		"inside by another link":  {Options{Source: source, Destination: filepath.Join(link, "smaller")}, InsideSource},
		"taken":                   {Options{Source: source, Destination: taken}, DestinationTaken},
		"no such place":           {Options{Source: source, Destination: filepath.Join(place, "no", "where")}, NotWritable},
		"bits that there are not": {Options{Source: source, Destination: free, Packing: checkpoint.Quantization{Bits: 7}}, UnsuitablePacking},
		"bits of a fixed mode":    {Options{Source: source, Destination: free, Packing: checkpoint.Quantization{Mode: "mxfp4", Bits: 8}}, UnsuitablePacking},
		"recommended, fixed mode": {Options{Source: source, Destination: free, Recommended: true, Packing: checkpoint.Quantization{Mode: "mxfp4"}}, RecommendedIsMixed},
		"a trained drafter":       {Options{Source: filepath.Join(goldens, "dflash"), Destination: free}, SmallDrafter},
	} {
		_, err := NewPlan(c.o)
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Reason != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewPlan(Options{Source: place, Destination: free}); checkpoint.KindOf(err) != checkpoint.KindNotACheckpoint {
		t.Errorf("a folder of other things: %v", err)
	}
	if entries, _ := os.ReadDir(place); len(entries) != 2 {
		t.Errorf("planning left %v", entries)
	}
}

func TestTheFolderAroundItIsMadeByTheJobAlone(t *testing.T) {
	w := worker(t)
	o := options(t, demoDrafter)
	parent := filepath.Join(t.TempDir(), "new")
	o.Destination, o.MakeParent = filepath.Join(parent, "smaller"), true
	plan := func() *Plan {
		t.Helper()
		p, err := NewPlan(o)
		if err != nil {
			t.Fatal(err)
		}
		if exists(parent) {
			t.Fatal("it is there without a job")
		}
		return p
	}
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := Run(ctx, w, plan(), at(0.5, cancel)); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), w, plan(), nil); err != nil || !exists(o.Destination) {
		t.Errorf("%v", err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// at runs until so much is done, then calls f.
func at(share float64, f func()) func(job.Progress) {
	fired := false
	return func(p job.Progress) {
		if !fired && float64(p.Done) >= share*float64(p.Total) {
			fired = true
			f()
		}
	}
}

func TestADestinationThatAppears(t *testing.T) {
	o := options(t, demoDrafter)
	p, err := NewPlan(o)
	if err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(o.Destination, "mine")
	_, err = Run(context.Background(), worker(t), p, at(0.5, func() { os.Mkdir(o.Destination, 0o700); os.WriteFile(mine, []byte("x"), 0o600) }))
	if err == nil {
		t.Error("it was replaced")
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(filepath.Dir(o.Destination)); len(left) != 1 {
		t.Errorf("%v is left", left)
	}
}
