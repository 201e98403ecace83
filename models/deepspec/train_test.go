package deepspec

import (
	"context"
	"errors"
	"math"
	"testing"

	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/block"
	"firesteel/models/internal/mlxtest"
)

// teacher is a target that says what its hidden rows say, through a made-up head.
type teacher struct {
	models.Target
	head mlxbind.Array // [hidden, vocabulary]
}

func (t teacher) Logits(s *mlxbind.Scope, hidden mlxbind.Array) mlxbind.Array {
	return s.Matmul(hidden, t.head)
}

func (t teacher) Embed(s *mlxbind.Scope, tokens mlxbind.Array) mlxbind.Array {
	return s.Take(s.Transpose(t.head), tokens, 0)
}

// student opens a fixture to learn part of it.
func student(t *testing.T, s *mlxbind.Scope, name string, part Part) *Student {
	folder := mlxtest.Golden(t, name)
	vocabulary, err := folder.Config().Int("vocab_size")
	if err != nil {
		t.Fatal(err)
	}
	d, err := NewStudent(context.Background(), folder, teacher{head: s.Normal(s.Key(77), 24, vocabulary)}, part)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var kinds = []string{"deepspec-gemma4", "deepspec-gemma4-gated", "deepspec-qwen3", "deepspec-qwen3-rnn"}

// Given its own drafts as labels, training sees what drafting computes, several anchors to a text.
func TestTrainingSeesWhatDraftingComputes(t *testing.T) {
	for _, name := range kinds {
		mlxtest.On(t, func(s *mlxbind.Scope) {
			d := student(t, s, name, HeadsAndTaps)
			defer d.Close()
			// The weights as they are drafted with: moved, and rounded.
			var weights []mlxbind.Array
			for i, w := range d.Weights() {
				moved := s.Add(w, s.Multiply(s.Scalar(0.01, mlxbind.Float32), s.Normal(s.Key(uint64(i)), w.Shape()...)))
				weights = append(weights, s.AsType(s.AsType(moved, mlxbind.BFloat16), mlxbind.Float32))
			}
			if err := d.SetWeights(s, weights); err != nil {
				t.Fatal(err)
			}
			const rows = 11
			var tapped []mlxbind.Array
			for i := range d.Taps() {
				tapped = append(tapped, s.Normal(s.Key(uint64(50+i)), rows, d.hidden))
			}
			var drafts []models.Draft
			var padding []float32
			var labels []mlxbind.Array
			positions := []int32{rows, 7}
			for _, at := range positions {
				c := d.NewContext()
				var part []mlxbind.Array
				for _, a := range tapped {
					part = append(part, s.Slice(a, 0, 0, int(at)))
				}
				d.Extend(s, c, part)
				likeliest := func(s *mlxbind.Scope, _ int, logits mlxbind.Array) (mlxbind.Array, mlxbind.Array) {
					return s.ArgMax(logits, -1, false), logits
				}
				draft := d.Draft(s, c, models.Anchor{Token: s.Ints([]int32{9}), Position: s.Ints([]int32{at})}, d.Block(), likeliest, true)
				drafts = append(drafts, draft)
				labels = append(labels, s.Reshape(draft.Tokens, 1, d.Block()))
				for row := range rows {
					if row < int(at) {
						padding = append(padding, 0)
					} else {
						padding = append(padding, 1)
					}
				}
			}
			terms := d.Lesson(s, d.Weights(), block.BatchOf(block.Batch{
				Taps: s.Reshape(s.Concatenate(-1, tapped...), 1, rows, -1), Anchors: s.Ints([]int32{9, 9}), Labels: s.Concatenate(0, labels...),
				Padding: s.Floats(padding, 2, rows), Positions: s.Ints(positions), TargetHidden: s.Normal(s.Key(2), 2, d.Block(), 24),
			}.Arrays(s)))
			for k, draft := range drafts {
				logits := s.Slice(terms.DraftLogits, 0, k, k+1)
				if x := mlxtest.Far(mlxtest.Floats(t, s, logits), mlxtest.Floats(t, s, draft.LogDistributions)); !(x < 1e-3) {
					t.Errorf("%s: logits of anchor %d differ by %g", name, k, x)
				}
				if d.HasConfidence() {
					sure := s.Slice(terms.ConfidenceLogits, 0, k, k+1)
					if x := mlxtest.Far(mlxtest.Floats(t, s, sure), mlxtest.Floats(t, s, draft.ConfidenceLogits)); !(x < 1e-3) {
						t.Errorf("%s: confidences of anchor %d differ by %g", name, k, x)
					}
				}
			}
		})
	}
}

// The slopes of all that learns are what moving it along them shows.
func TestGradientsAreSlopes(t *testing.T) {
	for _, name := range kinds {
		mlxtest.On(t, func(s *mlxbind.Scope) {
			d := student(t, s, name, HeadsAndTaps)
			defer d.Close()
			labels := make([]int32, 2*d.Block())
			for i := range labels {
				labels[i] = int32(i * 37 % d.Vocabulary())
			}
			batch := block.Batch{Taps: s.Normal(s.Key(1), 2, 6, len(d.Taps())*d.hidden), Anchors: s.Ints([]int32{5, 90}),
				Labels: s.Ints(labels, 2, d.Block()), TargetHidden: s.Normal(s.Key(2), 2, d.Block(), 24)}
			learner, err := block.NewLearner(d)
			if err != nil {
				t.Fatal(err)
			}
			defer learner.Close()
			_, slopes := learner.Gradients(s, d.Weights(), batch)
			if s.Err() != nil {
				t.Fatal(s.Err())
			}
			for i, tensor := range d.Names() {
				norm := 0.0
				for _, v := range mlxtest.Floats(t, s, slopes[i]) {
					norm += float64(v) * float64(v)
				}
				if norm = math.Sqrt(norm); norm == 0 {
					t.Errorf("%s: %s has no slope", name, tensor)
					continue
				}
				step := min(2e-2, 2e-2/norm)
				along := func(step float64) float64 {
					weights := append([]mlxbind.Array{}, d.Weights()...)
					weights[i] = s.Add(weights[i], s.Multiply(s.Scalar(step/norm, mlxbind.Float32), slopes[i]))
					return float64(mlxtest.Floats(t, s, d.Lesson(s, weights, block.BatchOf(batch.Arrays(s))).Loss)[0])
				}
				if slope := (along(step) - along(-step)) / (2 * step); math.Abs(slope-norm) > 0.05*norm+5e-4 {
					t.Errorf("%s: along %s the loss rises by %g, the gradient says %g", name, tensor, slope, norm)
				}
			}
		})
	}
}

func TestWhatCantLearnIsRefused(t *testing.T) {
	mlxtest.On(t, func(s *mlxbind.Scope) {
		for name, want := range map[string]error{"deepspec-gemma4-q4": ErrPacked, "deepspec-qwen3-dflash": ErrNoHeads} {
			part := map[bool]Part{true: HeadsAndTaps, false: Heads}[want == ErrPacked]
			if _, err := NewStudent(context.Background(), mlxtest.Golden(t, name), teacher{}, part); !errors.Is(err, want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		before := mlxbind.ActiveMemory()
		d := student(t, s, "deepspec-gemma4", Heads)
		if got := d.Names(); len(got) != 4 {
			t.Errorf("%v", got)
		}
		d.Close()
		mlxbind.ClearCache()
		if now := mlxbind.ActiveMemory(); now > before+100_000 {
			t.Errorf("%d bytes stay", now-before)
		}
	})
}
