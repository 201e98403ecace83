package mishap

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"firesteel/core/internal/smalldisk"
	"firesteel/core/job"
)

// FullDisk runs it on a disk of so many bytes, as in "16m", which something else fills near the
// beginning, half way and near the end. What is begun on a full disk is refused or fails in the same way.
func (j *Job) FullDisk(t *testing.T, bytes string) {
	j.know(t)
	failed := 0
	shares := []float64{-1, 0.01, 0.5, 0.99}
	if j.sampled() {
		shares = shares[2:3]
	}
	for _, share := range shares {
		place := j.prepare(t, smalldisk.New(t, bytes))
		other := filepath.Join(place, "other")
		fill := func() {
			f, err := os.Create(other)
			for block := make([]byte, 1<<16); err == nil; {
				_, err = f.Write(block)
			}
			f.Close()
		}
		tell := once(share, fill)
		if share < 0 {
			fill()
			tell = func(float64) {}
		}
		err := j.Run(context.Background(), j.Sources, place, tell)
		var room *job.RoomError
		switch {
		case err == nil && share > 0:
			// All that it needed was written by then.
			j.stopped(t, place, true)
			continue
		case !errors.Is(err, syscall.ENOSPC) && !errors.As(err, &room):
			t.Errorf("full at %g: %v", share, err)
		case !strings.Contains(err.Error(), place):
			t.Errorf("full at %g, %v names no file", share, err)
		}
		failed++
		j.stopped(t, place, false)
		if err := os.Remove(other); err != nil {
			t.Fatal(err)
		}
		j.ends(t, j.Sources, place)
	}
	t.Logf("%d of %d full disks were noticed", failed, len(shares))
}
