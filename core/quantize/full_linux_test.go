package quantize

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"firesteel/core/job"
)

// small mounts a disk of so many bytes, which only root may.
func small(t *testing.T, bytes string) string {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+bytes); err != nil {
		t.Skipf("a small disk can't be made here (%v): what happens when a disk is full was not tried", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

func TestAFullDisk(t *testing.T) {
	w := worker(t)
	o := options(t, demoDrafter)
	o.Destination = filepath.Join(small(t, "2m"), "smaller")
	p, err := NewPlan(o)
	if err != nil {
		t.Fatal(err)
	}
	var room *job.RoomError
	if _, err := Run(context.Background(), w, p, nil); !errors.As(err, &room) || room.Need != p.ResultBytes {
		t.Errorf("before: %v", err)
	}

	// And one that fills up meanwhile.
	place := small(t, "8m")
	o.Destination = filepath.Join(place, "smaller")
	if p, err = NewPlan(o); err != nil {
		t.Fatal(err)
	}
	_, err = Run(context.Background(), w, p, at(0.1, func() {
		f, _ := os.Create(filepath.Join(place, "filler"))
		block := make([]byte, 1<<16)
		for {
			if _, err := f.Write(block); err != nil {
				break
			}
		}
		f.Close()
	}))
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("meanwhile: %v", err)
	}
	if left, _ := os.ReadDir(place); len(left) != 1 {
		t.Errorf("%v is left", left)
	}
}
