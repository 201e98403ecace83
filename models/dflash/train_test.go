package dflash

import (
	"math"
	"testing"

	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/block"
	"firesteel/models/checkpoint"
	"firesteel/models/internal/mlxtest"
)

// lesson is a made-up batch of 3 anchors with n context rows each.
func lesson(s *mlxbind.Scope, d *Drafter, n int) block.Batch {
	c := d.config
	labels := make([]int32, 3*c.Gamma)
	for i := range labels {
		labels[i] = int32(i * 37 % c.Vocabulary)
	}
	return block.Batch{
		Taps: s.Normal(s.Key(1), 3, n, len(c.Taps)*c.Hidden), Anchors: s.Ints([]int32{5, 90, 200}),
		Labels: s.Ints(labels, 3, c.Gamma), TargetHidden: s.Normal(s.Key(2), 3, c.Gamma, c.Hidden),
	}
}

// moved gives every weight its own little push, so that heads that begin at 0 take part.
func moved(t *testing.T, s *mlxbind.Scope, d *Drafter) {
	var weights []mlxbind.Array
	for i, w := range d.Weights() {
		weights = append(weights, s.Add(w, s.Multiply(s.Scalar(0.05, mlxbind.Float32), s.Normal(s.Key(uint64(100+i)), w.Shape()...))))
	}
	if err := d.SetWeights(s, weights); err != nil {
		t.Fatal(err)
	}
}

func gradients(t *testing.T, s *mlxbind.Scope, d *Drafter, batch block.Batch) []mlxbind.Array {
	learner, err := block.NewLearner(d)
	if err != nil {
		t.Fatal(err)
	}
	defer learner.Close()
	_, gradients := learner.Gradients(s, d.Weights(), batch)
	if err := s.Eval(gradients...); err != nil {
		t.Fatal(err)
	}
	return gradients
}

// The slopes of both heads, over a target in full precision and a packed one, are what moving the
// weights along them shows.
func TestGradientsAreSlopes(t *testing.T) {
	for _, c := range []struct{ head, on string }{{checkpoint.HeadMarkov, "gemma4-12b-like-q4"}, {checkpoint.HeadRNN, "gemma4-12b-like"}} {
		mlxtest.On(t, func(s *mlxbind.Scope) {
			on := target(t, c.on)
			defer on.Close()
			d := fresh(t, c.head, on)
			defer d.Close()
			moved(t, s, d)
			batch := lesson(s, d, 6)
			slopes := gradients(t, s, d, batch)
			// What the confidence is held against stands still.
			rates := mlxtest.Floats(t, s, d.Terms(s, batch).AcceptRate)
			loss := func(weights []mlxbind.Array) float64 {
				n := network{d.config, d.target, arrange(d.config, weights)}
				terms := n.terms(s, block.BatchOf(batch.Arrays(s)))
				entropy, l1 := mlxtest.Floats(t, s, terms.CrossEntropy), mlxtest.Floats(t, s, terms.L1)
				sum, all := 0.0, 0.0
				for j, z := range mlxtest.Floats(t, s, terms.ConfidenceLogits) {
					w, rate := math.Exp(-float64(j%5)/4), float64(rates[j])
					sure := 1 / (1 + math.Exp(-float64(z)))
					bce := -rate*math.Log(sure) - (1-rate)*math.Log(1-sure)
					sum += w * (0.1*float64(entropy[j]) + 0.9*float64(l1[j]) + bce)
					all += w
				}
				return sum / all
			}
			for i, tensor := range d.config.Tensors() {
				g := mlxtest.Floats(t, s, slopes[i])
				norm := 0.0
				for _, v := range g {
					norm += float64(v) * float64(v)
				}
				norm = math.Sqrt(norm)
				if norm == 0 {
					if tensor.Name != "markov.w2" || c.head != checkpoint.HeadRNN {
						t.Errorf("%s: %s has no slope", c.head, tensor.Name)
					}
					continue
				}
				along := func(step float64) float64 {
					weights := append([]mlxbind.Array{}, d.Weights()...)
					weights[i] = s.Add(weights[i], s.Multiply(s.Scalar(step/norm, mlxbind.Float32), slopes[i]))
					return loss(weights)
				}
				const step = 1e-2
				if slope := (along(step) - along(-step)) / (2 * step); math.Abs(slope-norm) > 0.05*norm+2e-4 {
					t.Errorf("%s: along %s the loss rises by %g, the gradient says %g", c.head, tensor.Name, slope, norm)
				}
			}
		})
	}
}

func TestPaddingAndSlotsThatDoNotCountChangeNothing(t *testing.T) {
	mlxtest.On(t, func(s *mlxbind.Scope) {
		on := target(t, "gemma4-12b-like")
		defer on.Close()
		d := fresh(t, checkpoint.HeadRNN, on)
		defer d.Close()
		moved(t, s, d)
		batch := lesson(s, d, 6)
		want := d.Terms(s, batch)
		padded := batch
		padded.Taps = s.Concatenate(1, s.Normal(s.Key(9), 3, 2, batch.Taps.Dim(2)), batch.Taps)
		padded.Padding = s.Ints([]int32{1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0}, 3, 8)
		got := d.Terms(s, padded)
		for i, a := range got.Arrays() {
			if x := mlxtest.Far(mlxtest.Floats(t, s, a), mlxtest.Floats(t, s, want.Arrays()[i])); !(x < 1e-4) {
				t.Errorf("padded, term %d is off by %g", i, x)
			}
		}
		// The last anchor's slots left out: the loss is that of the others alone.
		partly := batch
		counts := make([]float32, 15)
		for i := range 10 {
			counts[i] = 1
		}
		partly.Supervised = s.Floats(counts, 3, 5)
		two := block.Batch{Taps: s.Slice(batch.Taps, 0, 0, 2), Anchors: s.Slice(batch.Anchors, 0, 0, 2), Labels: s.Slice(batch.Labels, 0, 0, 2),
			TargetHidden: s.Slice(batch.TargetHidden, 0, 0, 2)}
		if x := mlxtest.Far(mlxtest.Floats(t, s, d.Terms(s, partly).Loss), mlxtest.Floats(t, s, d.Terms(s, two).Loss)); !(x < 1e-5) {
			t.Errorf("slots that do not count change the loss by %g", x)
		}
	})
}

// Given its own drafts as labels, training sees what drafting computes.
func TestTrainingSeesWhatDraftingComputes(t *testing.T) {
	for _, head := range []string{checkpoint.HeadMarkov, checkpoint.HeadRNN} {
		mlxtest.On(t, func(s *mlxbind.Scope) {
			on := target(t, "gemma4-12b-like")
			defer on.Close()
			d := fresh(t, head, on)
			defer d.Close()
			moved(t, s, d)
			tapped := rows(s, d, 11, 4)
			c := d.NewContext()
			d.Extend(s, c, tapped)
			likeliest := func(s *mlxbind.Scope, _ int, logits mlxbind.Array) (mlxbind.Array, mlxbind.Array) {
				return s.ArgMax(logits, -1, false), logits
			}
			drafts := d.Draft(s, c, models.Anchor{Token: s.Ints([]int32{9}), Position: s.Ints([]int32{11})}, 5, likeliest, true)
			joined := s.Concatenate(-1, tapped...)
			terms := d.Terms(s, block.Batch{Taps: s.Reshape(joined, 1, 11, -1), Anchors: s.Ints([]int32{9}), Labels: s.Reshape(drafts.Tokens, 1, 5),
				TargetHidden: s.Normal(s.Key(2), 1, 5, 64)})
			if x := mlxtest.Far(mlxtest.Floats(t, s, terms.ConfidenceLogits), mlxtest.Floats(t, s, drafts.ConfidenceLogits)); !(x < 1e-4) {
				t.Errorf("%s: confidences differ by %g", head, x)
			}
			if x := mlxtest.Far(mlxtest.Floats(t, s, terms.DraftLogits), mlxtest.Floats(t, s, drafts.LogDistributions)); !(x < 1e-3) {
				t.Errorf("%s: logits differ by %g", head, x)
			}
		})
	}
}

// A few steps downhill make drafts of what they were taught.
func TestStepsDownhillLowerTheLoss(t *testing.T) {
	mlxtest.On(t, func(s *mlxbind.Scope) {
		on := target(t, "gemma4-12b-like")
		defer on.Close()
		d := fresh(t, checkpoint.HeadMarkov, on)
		defer d.Close()
		batch := lesson(s, d, 6)
		learner, err := block.NewLearner(d)
		if err != nil {
			t.Fatal(err)
		}
		defer learner.Close()
		first := mlxtest.Floats(t, s, d.Terms(s, batch).Loss)[0]
		for range 20 {
			terms, gradients := learner.Gradients(s, d.Weights(), batch)
			_ = terms
			var weights []mlxbind.Array
			for i, w := range d.Weights() {
				weights = append(weights, s.Subtract(w, s.Multiply(s.Scalar(0.3, mlxbind.Float32), gradients[i])))
			}
			if err := d.SetWeights(s, weights); err != nil {
				t.Fatal(err)
			}
		}
		if last := mlxtest.Floats(t, s, d.Terms(s, batch).Loss)[0]; !(last < first-0.05) {
			t.Errorf("the loss went from %g to %g", first, last)
		}
	})
}

// Nothing stays on the device once a drafter that drafted and learned is closed.
func TestClosingFreesEverything(t *testing.T) {
	mlxtest.On(t, func(s *mlxbind.Scope) {
		on := target(t, "gemma4-12b-like")
		defer on.Close()
		use := func() {
			s := mlxbind.NewScope()
			defer s.Close()
			d := fresh(t, checkpoint.HeadRNN, on)
			defer d.Close()
			gradients(t, s, d, lesson(s, d, 6))
			moved(t, s, d)
			c := filled(s, d, 9, 1)
			defer c.Close()
			mlxtest.Floats(t, s, draft(s, d, c, 3, 5, 0).Tokens)
		}
		use() // what the target compiles stays with the target
		before := mlxbind.ActiveMemory()
		use()
		if after := mlxbind.ActiveMemory(); after != before {
			t.Errorf("%d bytes in use, before %d", after, before)
		}
	})
}
