package library

import (
	"os"
	"path/filepath"
	"testing"

	"firesteel/models/checkpoint"
	"firesteel/models/nobody"
)

// A folder that may not be looked into is said to be unreadable, not absent; its neighbours still work.
func TestUnreadableFolder(t *testing.T) {
	base := t.TempDir()
	target := copyOf(t, "gemma4-12b-like", filepath.Join(base, "target"), nil)
	drafter := copyOf(t, "deepspec-gemma4", filepath.Join(base, "drafter"), nil)
	closed := copyOf(t, "gemma4-12b-like", filepath.Join(base, "closed"), nil)
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(closed, 0o755)
	nobody.Run(t, base, func() {
		_, err := Describe(closed)
		refused(t, err, checkpoint.KindNotReadable, closed, "permission denied")
		_, err = Describe(filepath.Join(closed, "config.json"))
		refused(t, err, checkpoint.KindNotReadable, "permission denied")
		if got, ok := FindDrafter(target); !ok || got != drafter {
			t.Error(got, ok)
		}
	})
}
