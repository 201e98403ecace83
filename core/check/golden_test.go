package check

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"firesteel/models/checkpoint"
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
		if filepath.Base(dir) == "dspark-v1" {
			continue
		}
		t.Run(filepath.Base(dir), func(t *testing.T) {
			compared, agreed, err := Golden(context.Background(), dir, "", func(d Difference) {
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

func TestASupersededDrafterIsRefused(t *testing.T) {
	dir := filepath.Join("..", "..", "models", "testdata", "goldens", "dspark-v1")
	_, _, err := Golden(context.Background(), dir, "", func(Difference) { t.Error("something was compared") })
	if checkpoint.KindOf(err) != checkpoint.KindSuperseded {
		t.Errorf("%v", err)
	}
}

func TestABorrowedTargetCanLieElsewhere(t *testing.T) {
	root := filepath.Join("..", "..", "models", "testdata", "goldens")
	dir := filepath.Join(t.TempDir(), "alone")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "dflash"))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Golden(context.Background(), dir, "", func(Difference) {}); err == nil || !strings.Contains(err.Error(), "gemma4-12b-like@64x320") {
		t.Errorf("without a target: %v", err)
	}
	compared, agreed, err := Golden(context.Background(), dir, filepath.Join(root, "gemma4-12b-like"), func(Difference) {})
	if err != nil || compared != 19 || agreed != compared {
		t.Errorf("%d of %d agree: %v", agreed, compared, err)
	}
	compared, agreed, err = Golden(context.Background(), dir, filepath.Join(root, "gemma4-e2b-like"), func(Difference) {})
	if err != nil || agreed == compared {
		t.Errorf("with another target's embedding and head %d of %d agree: %v", agreed, compared, err)
	}
}
