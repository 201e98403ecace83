package quantize

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"firesteel/core/internal/smalldisk"
	"firesteel/core/job"
)

func TestAFullDisk(t *testing.T) {
	w := worker(t)
	o := options(t, demoDrafter)
	o.Destination = filepath.Join(smalldisk.New(t, "2m"), "smaller")
	p, err := NewPlan(o)
	if err != nil {
		t.Fatal(err)
	}
	var room *job.RoomError
	if _, err := Run(context.Background(), w, p, nil); !errors.As(err, &room) || room.Need != p.ResultBytes {
		t.Errorf("before: %v", err)
	}

	// And one that fills up meanwhile.
	place := smalldisk.New(t, "8m")
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
