package checkpoint

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"firesteel/models/nobody"
)

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
		nobody.Run(t, base, func() {
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
	nobody.Run(t, base, func() {
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
