package quantize

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"firesteel/models/nobody"
)

// A source that is only to be read is enough; the copy must go where one may write.
func TestReadOnlyPlaces(t *testing.T) {
	base := t.TempDir()
	shared, source := filepath.Join(base, "shared"), filepath.Join(base, "shared", "drafter")
	open := filepath.Join(base, "open")
	err := errors.Join(os.MkdirAll(source, 0o755), os.Mkdir(open, 0o700), os.Chmod(open, 0o777))
	for _, file := range []string{"config.json", "model.safetensors"} {
		raw, readErr := os.ReadFile(filepath.Join(goldens, "deepspec-gemma4", file))
		err = errors.Join(err, readErr, os.WriteFile(filepath.Join(source, file), raw, 0o444))
	}
	if err = errors.Join(err, os.Chmod(source, 0o555), os.Chmod(shared, 0o555)); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(shared, 0o755)
	defer os.Chmod(source, 0o755)
	nobody.Run(t, base, func() {
		var refused *RefusedError
		_, err := NewPlan(Options{Source: source, Destination: filepath.Join(shared, "smaller"), Notes: base})
		if !errors.As(err, &refused) || refused.Reason != NotWritable || refused.Path != shared {
			t.Errorf("beside it: %v", err)
		}
		if _, err := NewPlan(Options{Source: source, Destination: filepath.Join(open, "smaller"), Notes: base}); err != nil {
			t.Errorf("elsewhere: %v", err)
		}
	})
}
