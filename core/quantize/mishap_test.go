package quantize

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"firesteel/core/internal/mishap"
	"firesteel/core/internal/smalldisk"
	"firesteel/core/job"
	"firesteel/core/library"
	"firesteel/core/thread"
)

// smaller makes a smaller copy of the built-in drafter.
var smaller = &mishap.Job{
	Name:    "quantize",
	Sources: []string{demoDrafter},
	Run: func(ctx context.Context, sources []string, place string, tell func(float64)) error {
		w, err := thread.Start()
		if err != nil {
			return err
		}
		defer w.Close()
		p, err := NewPlan(Options{Source: sources[0], Destination: filepath.Join(place, "smaller"), Notes: mishap.NotesIn(place)})
		if err != nil {
			return err
		}
		_, err = Run(ctx, w, p, func(p job.Progress) { tell(float64(p.Done) / float64(p.Total)) })
		return err
	},
	Result: func(place string) (string, error) {
		dir := filepath.Join(place, "smaller")
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		if d, err := library.Describe(dir); err != nil || !d.Quantized() {
			return "", fmt.Errorf("%+v, %w", d, err)
		}
		return mishap.Digest(dir)
	},
}

func TestCancelled(t *testing.T) { smaller.Cancelled(t) }
func TestFullDisk(t *testing.T)  { smaller.FullDisk(t, "16m") }
func TestVanishing(t *testing.T) { smaller.Vanishing(t, ".safetensors") }
func TestKilled(t *testing.T)    { smaller.Killed(t) }

func TestADiskThatIsTooSmallIsKnownBefore(t *testing.T) {
	o := options(t, demoDrafter)
	o.Destination = filepath.Join(smalldisk.New(t, "2m"), "smaller")
	p, err := NewPlan(o)
	if err != nil {
		t.Fatal(err)
	}
	var room *job.RoomError
	if _, err := Run(context.Background(), worker(t), p, nil); !errors.As(err, &room) || room.Need != p.ResultBytes {
		t.Error(err)
	}
}
