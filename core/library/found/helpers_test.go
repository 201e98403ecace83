package found

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const fixtures = "../../../models/testdata/goldens"

func noVariables(string) string { return "" }

// write writes a file and the folders above it.
func write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func link(t testing.TB, to, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

// plain copies a fixture's model to dir.
func plain(t testing.TB, fixture, dir string) string {
	t.Helper()
	for _, name := range []string{"config.json", "dspark.json", "model.safetensors"} {
		if _, err := os.Stat(filepath.Join(fixtures, fixture, name)); err == nil {
			write(t, filepath.Join(dir, name), read(t, filepath.Join(fixtures, fixture, name)))
		}
	}
	return dir
}

// snapshot adds a fixture's model to a hub's cache the way that Hugging Face's tools do: files called by
// their hashes, and links to them. It returns the snapshot.
func snapshot(t testing.TB, hub, repo, hash, fixture string) string {
	t.Helper()
	dir := filepath.Join(hub, repo, "snapshots", hash)
	files, err := filepath.Glob(filepath.Join(plain(t, fixture, t.TempDir()), "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		blob := hash + "-blob-" + filepath.Base(file)[:2]
		write(t, filepath.Join(hub, repo, "blobs", blob), read(t, file))
		link(t, filepath.Join("..", "..", "blobs", blob), filepath.Join(dir, filepath.Base(file)))
	}
	return dir
}

func names(models []Model) []string {
	var list []string
	for _, m := range models {
		list = append(list, string(m.What.Kind)+" "+m.Name)
	}
	return list
}

// expect scans afresh.
func expect(t testing.TB, home string, want ...string) []Model {
	t.Helper()
	models := New(home, noVariables).Scan(t.Context())
	if got := names(models); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	return models
}

// descriptors counts the files that this process has open.
func descriptors(t testing.TB) int {
	t.Helper()
	var open []fs.DirEntry
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(open)
}
