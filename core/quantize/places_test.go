package quantize

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"firesteel/core/library"
)

// Source and copy may lie wherever a person can put a folder, and the copy gets the name asked for.
func TestNamesOfAllSorts(t *testing.T) {
	w := worker(t)
	for _, name := range []string{"Modèle", "Mode\u0300le", "two  spaces", "100% #1", "dot.", "blank ", "🦊 модель", "~", "a/~b", `it's "so"\`,
		strings.Repeat("n", 250), strings.Repeat("ü", 125)} {
		place := t.TempDir()
		o := Options{Source: filepath.Join(place, "from", name), Destination: filepath.Join(place, "to", name), Notes: t.TempDir()}
		for _, dir := range []string{o.Source, filepath.Dir(o.Destination)} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, file := range []string{"config.json", "model.safetensors"} {
			raw, err := os.ReadFile(filepath.Join(goldens, "deepspec-gemma4", file))
			if err == nil {
				err = os.WriteFile(filepath.Join(o.Source, file), raw, 0o444)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		p, err := NewPlan(o)
		if err == nil {
			_, err = Run(t.Context(), w, p, nil)
		}
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		d, err := library.Describe(o.Destination)
		if err != nil || !d.Quantized() || d.Dir != o.Destination || d.Name != filepath.Base(o.Destination) {
			t.Errorf("%q: %q, %s, %v", name, d.Dir, d.Precision, err)
		}
		if left, err := os.ReadDir(filepath.Dir(o.Destination)); err != nil || len(left) != 1 {
			t.Errorf("%q: %v is left, %v", name, left, err)
		}
	}
}

// A place that can't take the copy is known before anything begins.
func TestPlacesThatCannotBeWritten(t *testing.T) {
	place := t.TempDir()
	file := filepath.Join(place, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, parent := range map[string]string{"missing": filepath.Join(place, "none"), "a file": file, "in a file": filepath.Join(file, "x")} {
		var refused *RefusedError
		_, err := NewPlan(Options{Source: demoDrafter, Destination: filepath.Join(parent, "smaller"), Notes: place})
		if !errors.As(err, &refused) || refused.Reason != NotWritable || !strings.Contains(refused.Path, filepath.Base(parent)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
