package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"firesteel/core/internal/mishap"
	"firesteel/core/internal/threadtest"
	"firesteel/core/job"
	"firesteel/core/library"
	"firesteel/core/prompts"
	"firesteel/core/thread"
	"firesteel/models/checkpoint"
	"firesteel/models/deepspec"
)

const pair = "../../models/demo/pair"

// training is a job that teaches the drafter made in the folder "made" in place, or goes on with that.
func training(name string, tokens int, sources []string, do func(ctx context.Context, w job.Runner, sources []string, j Job, tell func(Progress)) (Result, error)) *mishap.Job {
	out := func(place string) string { return filepath.Join(place, "made") }
	return &mishap.Job{
		Name:    name,
		Sources: sources,
		Run: func(ctx context.Context, sources []string, place string, tell func(float64)) error {
			w := threadtest.Thread
			if w == nil { // in a process of its own
				var err error
				if w, err = thread.Start(); err != nil {
					return err
				}
				defer w.Close()
			}
			j := Job{TargetDir: sources[0], Out: out(place), Resume: Begun(out(place)), Settings: Settings{
				Steps: 4, Texts: 1, Anchors: 1, Context: 8, Rate: 1e-3, Seed: 5, Measure: 2, AnswerTokens: tokens, DataLimit: 1 << 20,
			}}
			if !j.Resume {
				var err error
				if j.Prompts, err = prompts.Load(sources[1]); err != nil {
					return err
				}
			}
			r, err := do(ctx, w, sources, j, func(p Progress) {
				switch share := float64(p.Done) / float64(max(1, p.Total)); p.Stage {
				case Opening:
					tell(0)
				case Reading:
					tell(share / 2)
				case Learning:
					tell(0.5 + share/2)
				}
			})
			if err != nil {
				return err
			}
			return checkpoint.WriteJSON(filepath.Join(place, "history.json"), r.History)
		},
		Result: func(place string) (string, error) {
			dir := out(place)
			if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
				return "", nil
			}
			if d, err := library.Describe(dir); err != nil || d.Kind != library.Drafter {
				return "", fmt.Errorf("%+v, %w", d, err)
			}
			return mishap.Digest(dir)
		},
		Discard: func(place string) error { return Discard(out(place)) },
		Curve: func(place string) ([]float64, error) {
			raw, err := os.ReadFile(filepath.Join(place, "history.json"))
			if err != nil {
				return nil, err
			}
			var h History
			if err := json.Unmarshal(raw, &h); err != nil {
				return nil, err
			}
			values := append(h.Losses, h.Accept...)
			for _, l := range h.Live {
				values = append(values, l.Tau)
			}
			return values, nil
		},
		Slow: true,
	}
}

var (
	taught = training("train", 4, []string{pair + "/target", "testdata/prompts.jsonl"}, func(ctx context.Context, w job.Runner, _ []string, j Job, tell func(Progress)) (Result, error) {
		target, err := library.Describe(j.TargetDir)
		if err != nil {
			return Result{}, err
		}
		j.Shape = Shape(target, checkpoint.DSpark{Gamma: 2, Width: 32, Layers: 1, Heads: 2, Rank: 8})
		j.Settings = j.Settings.Fill(target, j.Shape.Gamma)
		return Run(ctx, w, j, tell)
	})
	retuned = training("tune", 9, []string{pair + "/target", "testdata/prompts.jsonl", pair + "/drafter"}, func(ctx context.Context, w job.Runner, sources []string, j Job, tell func(Progress)) (Result, error) {
		target, err := library.Describe(j.TargetDir)
		if err != nil {
			return Result{}, err
		}
		j.Settings = j.Settings.FillForTuning(target, 7)
		return Tune(ctx, w, TuneJob{Job: j, DrafterDir: sources[2], Part: deepspec.Heads}, tell)
	})
)

func TestTrainCancelled(t *testing.T) { taught.Cancelled(t) }
func TestTrainFullDisk(t *testing.T)  { taught.FullDisk(t, "16m") }
func TestTrainVanishing(t *testing.T) { taught.Vanishing(t, ".safetensors") }
func TestTrainKilled(t *testing.T)    { taught.Killed(t) }
func TestTuneCancelled(t *testing.T)  { retuned.Cancelled(t) }

// Tuning differs from training in what it reads and how it saves alone.

func TestTuneFullDisk(t *testing.T) {
	mishap.OnlyLong(t)
	retuned.FullDisk(t, "256m")
}

func TestTuneVanishing(t *testing.T) {
	mishap.OnlyLong(t)
	retuned.Vanishing(t, ".safetensors")
}

func TestTuneKilled(t *testing.T) {
	mishap.OnlyLong(t)
	retuned.Killed(t)
}
