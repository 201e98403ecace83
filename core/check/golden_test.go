package check

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// goldens is every fixture folder.
func goldens(t *testing.T) []string {
	root := filepath.Join("..", "..", "models", "testdata", "goldens")
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(root, e.Name()))
		}
	}
	if len(dirs) == 0 {
		t.Fatal("no fixtures")
	}
	return dirs
}

func TestGoldens(t *testing.T) {
	for _, dir := range goldens(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			compared, agreed, err := Golden(context.Background(), dir, func(d Difference) {
				if !d.Agrees() {
					t.Errorf("%s: off by %g", d.Tensor, d.Max)
				} else {
					t.Logf("%s: %.1e", d.Tensor, d.Max)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if compared < 1 || agreed != compared {
				t.Errorf("%d of %d tensors agree", agreed, compared)
			}
		})
	}
}
