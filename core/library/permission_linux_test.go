package library

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"firesteel/models/checkpoint"
)

// A folder that may not be looked into is said to be unreadable, not absent; its neighbours still work.
func TestUnreadableFolder(t *testing.T) {
	base := t.TempDir()
	for d := base; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if info, err := os.Stat(d); err == nil && info.Mode().Perm() == 0o700 {
			os.Chmod(d, 0o755)
		}
	}
	target := copyOf(t, "gemma4-12b-like", filepath.Join(base, "target"), nil)
	drafter := copyOf(t, "deepspec-gemma4", filepath.Join(base, "drafter"), nil)
	closed := copyOf(t, "gemma4-12b-like", filepath.Join(base, "closed"), nil)
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(closed, 0o755)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread that lost root's rights ends here
		if os.Geteuid() == 0 {
			syscall.Setfsgid(65534)
			syscall.Setfsuid(65534)
		}
		_, err := Describe(closed)
		refused(t, err, checkpoint.KindNotReadable, closed, "permission denied")
		_, err = Describe(filepath.Join(closed, "config.json"))
		refused(t, err, checkpoint.KindNotReadable, "permission denied")
		if got, ok := FindDrafter(target); !ok || got != drafter {
			t.Error(got, ok)
		}
	}()
	<-done
}
