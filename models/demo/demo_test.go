//go:build !headless

package demo

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestUnpacksOnceAndMendsDamage(t *testing.T) {
	dir := t.TempDir()
	target, drafter, err := Unpack(dir)
	if err != nil {
		t.Fatal(err)
	}
	weights := filepath.Join(drafter, "model.safetensors")
	info, err := os.Stat(weights)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Unpack(dir); err != nil {
		t.Fatal(err)
	}
	if again, err := os.Stat(weights); err != nil || !again.ModTime().Equal(info.ModTime()) {
		t.Error("a whole copy was written again")
	}
	if err := os.Truncate(weights, 100); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(target, "config.json")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Unpack(dir); err != nil {
		t.Fatal(err)
	}
	if again, err := os.Stat(weights); err != nil || again.Size() != info.Size() {
		t.Error("a damaged copy was left")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v (%v)", entries, err)
	}
}

func TestUnpacksFromSeveralAtOnce(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			target, _, err := Unpack(dir)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := os.Stat(filepath.Join(target, "config.json")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
