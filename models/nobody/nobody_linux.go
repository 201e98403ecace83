// Package nobody lets tests be refused access to files, also where they run as root.
package nobody

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// Run runs f on a thread of its own that may do to files what anybody may, and waits for it. dir, a
// temporary folder, is opened to everybody, and so are the ones it lies in. Goroutines that f starts
// keep root's rights.
func Run(t testing.TB, dir string, f func()) {
	t.Helper()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if info, err := os.Stat(d); err == nil && info.Mode().Perm() == 0o700 {
			os.Chmod(d, 0o755)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread that lost root's rights ends here
		if os.Geteuid() == 0 {
			syscall.Setfsgid(65534)
			syscall.Setfsuid(65534)
		}
		f()
	}()
	<-done
}
