package checkpoint

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// asNobody runs f on a thread of its own that has lost root's right to read everything. The thread
// ends with f: it is never unlocked.
func asNobody(t *testing.T, dir string, f func()) {
	t.Helper()
	// The temporary folder and its parent are closed to others.
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if info, err := os.Stat(d); err == nil && info.Mode().Perm() == 0o700 {
			os.Chmod(d, 0o755)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if os.Geteuid() == 0 {
			syscall.Setfsgid(65534)
			syscall.Setfsuid(65534)
		}
		f()
	}()
	<-done
}

func TestPermission(t *testing.T) {
	base := t.TempDir()
	files := map[string]string{"config.json": "{}", weightsName: string(pack(t, item{"a", U8, []int{1}, nil}))}
	for name, c := range map[string]struct {
		closed string
		mode   os.FileMode
	}{
		"folder":  {".", 0},
		"weights": {weightsName, 0},
		"config":  {"config.json", 0},
	} {
		dir := filepath.Join(base, name)
		write(t, dir, files)
		path := filepath.Join(dir, c.closed)
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		asNobody(t, base, func() {
			_, err := Open(dir)
			refused(t, err, KindNotReadable, path, "permission denied")
		})
		os.Chmod(path, 0o755)
	}
}

func TestReadOnlyFolderOpens(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "m")
	write(t, dir, map[string]string{"config.json": "{}", weightsName: string(pack(t, item{"a", U8, []int{1}, nil}))})
	os.Chmod(filepath.Join(dir, weightsName), 0o444)
	os.Chmod(filepath.Join(dir, "config.json"), 0o444)
	os.Chmod(dir, 0o555)
	defer os.Chmod(dir, 0o755)
	asNobody(t, base, func() {
		f, err := Open(dir)
		if err != nil {
			t.Error(err)
			return
		}
		f.Close()
	})
}

func TestPipeIsNotOpened(t *testing.T) {
	dir := folderOf(t, map[string]string{"config.json": "{}"})
	if err := syscall.Mkfifo(filepath.Join(dir, weightsName), 0o644); err != nil {
		t.Skip(err)
	}
	_, err := Open(dir)
	refused(t, err, KindNotReadable, weightsName, "ordinary file")
}
