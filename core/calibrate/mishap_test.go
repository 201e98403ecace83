package calibrate

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"testing"
	"time"

	"firesteel/core/confidence"
	"firesteel/core/internal/mishap"
	"firesteel/core/job"
	"firesteel/core/prompts"
)

func TestMain(m *testing.M) {
	mishap.Child(calibrated)
	os.Exit(m.Run())
}

// pairIn is a stand-in for the engine that has models loaded from these folders, with their names in
// calibrations.
func pairIn(sources []string) (*scripted, *confidence.Calibration, error) {
	c := newScripted()
	c.loaded.Target.Dir, c.loaded.Drafter.Dir = sources[0], sources[1]
	pair, err := Pair(c.loaded)
	return c, pair, err
}

func keptIn(place string) string { return confidence.Under(mishap.NotesIn(place)) }

var sources = []string{newScripted().loaded.Target.Dir, newScripted().loaded.Drafter.Dir}

// calibrated calibrates a pair at temperature 0. An older calibration, at 1, is there and must stay.
var calibrated = &mishap.Job{
	Name:    "calibrate",
	Sources: sources,
	Prepare: func(place string) error {
		_, pair, err := pairIn(sources)
		if err != nil {
			return err
		}
		_, err = pair.Keep(keptIn(place), &confidence.Measured{Temperature: 1})
		return err
	},
	Run: func(ctx context.Context, sources []string, place string, tell func(float64)) error {
		tell(0)
		core, pair, err := pairIn(sources)
		if err != nil {
			return err
		}
		m, err := Run(ctx, core, Job{Prompts: prompts.Builtin()[:40], Rounds: 800}, func(p job.Progress) { tell(float64(p.Done) / float64(p.Total)) })
		if err != nil {
			return err
		}
		_, err = pair.Keep(keptIn(place), m)
		return err
	},
	Result: func(place string) (string, error) {
		_, pair, err := pairIn(sources)
		if err != nil {
			return "", err
		}
		c, err := confidence.Read(keptIn(place), pair.Target.Identity, pair.Drafter.Identity)
		if err != nil || c == nil {
			return "", err
		}
		for _, m := range c.Bands {
			m.Time = time.Time{}
		}
		raw, err := json.Marshal(c)
		return fmt.Sprintf("%d calibrations, %x", len(c.Bands), crc32.ChecksumIEEE(raw)), err
	},
}

func TestCancelled(t *testing.T) { calibrated.Cancelled(t) }
func TestFullDisk(t *testing.T)  { calibrated.FullDisk(t, "256k") }
func TestVanishing(t *testing.T) { calibrated.Vanishing(t, ".safetensors") }
func TestKilled(t *testing.T)    { calibrated.Killed(t) }
