package dflash

import (
	"math"

	"firesteel/mlxbind"
	"firesteel/models/block"
	"firesteel/models/checkpoint"
)

// How much each term of the loss counts, and over how many slots their weight falls to 1/e.
const (
	shareCrossEntropy = 0.1
	shareL1           = 0.9
	shareConfidence   = 1.0
	decay             = 4.0
)

// Probabilities are kept this far from 0 and 1 before a logarithm is taken.
const margin = 1e-6

// Batch is what one step of training learns from: b anchors, each with context rows strictly
// before it and the tokens that really followed.
type Batch struct {
	Taps         mlxbind.Array // [b, n, taps·hidden]: rows of the context, the last one right before the anchor
	Padding      mlxbind.Array // [b, n], 1 where a row is only padding; the zero Array: none is
	Anchors      mlxbind.Array // [b] int32
	Labels       mlxbind.Array // [b, gamma] int32: the tokens after the anchor
	TargetHidden mlxbind.Array // [b, gamma, hidden]: the target's rows after its final norm, from the anchor's on
	Supervised   mlxbind.Array // [b, gamma], 1 where a slot counts; the zero Array: all do
}

// arrays are a batch's arrays in the order of Terms' arguments; the optional ones are made up.
func (b Batch) arrays(s *mlxbind.Scope) []mlxbind.Array {
	if !b.Padding.Valid() {
		b.Padding = s.Zeros(mlxbind.Float32, b.Taps.Dim(0), b.Taps.Dim(1))
	}
	if !b.Supervised.Valid() {
		b.Supervised = s.Broadcast(s.Scalar(1, mlxbind.Float32), b.Labels.Shape()...)
	}
	return []mlxbind.Array{b.Taps, b.Padding, b.Anchors, b.Labels, b.TargetHidden, b.Supervised}
}

func batchOf(in []mlxbind.Array) Batch { return Batch{in[0], in[1], in[2], in[3], in[4], in[5]} }

// Terms is how a batch went, float32. All but Loss and the logits are [b, gamma].
type Terms struct {
	Loss         mlxbind.Array // []: Σ w(0.1·CrossEntropy + 0.9·L1 + Confidence) ÷ Σ w, w = e^(−slot/4)
	CrossEntropy mlxbind.Array // −log of the probability that the drafter gave the label
	L1           mlxbind.Array // Σ |drafter's − target's probability|
	AcceptRate   mlxbind.Array // 1 − ½·L1: the chance that a draft is accepted if all before it are
	Confidence   mlxbind.Array // binary cross entropy of the confidence against AcceptRate
	// Logits before the sigmoid, and what drafts would be drawn from [b, gamma, vocabulary].
	ConfidenceLogits, DraftLogits mlxbind.Array
}

func (t Terms) arrays() []mlxbind.Array {
	return []mlxbind.Array{t.Loss, t.CrossEntropy, t.L1, t.AcceptRate, t.Confidence, t.ConfidenceLogits, t.DraftLogits}
}

func termsOf(out []mlxbind.Array) Terms {
	return Terms{out[0], out[1], out[2], out[3], out[4], out[5], out[6]}
}

// terms works a batch out: each slot is given the tokens that really came before it.
func (n *network) terms(s *mlxbind.Scope, batch Batch) Terms {
	b, gamma := batch.Labels.Dim(0), n.config.Gamma
	labels := s.AsType(batch.Labels, mlxbind.Int32)
	anchors := s.AsType(batch.Anchors, mlxbind.Int32)
	sight := block.SeeRows(s, n.scale(), n.contextRows(s, batch.Taps), batch.Padding)
	hidden := n.hidden(s, sight, anchors)
	before := s.Reshape(anchors, b, 1)
	if gamma > 1 {
		before = s.Concatenate(1, before, s.Slice(labels, 1, 0, gamma-1))
	}
	rows := n.Rows(s, before) // [b, gamma, rank]

	logits := s.Add(n.BaseLogits(s, hidden), n.biases(s, rows, hidden))
	logQ := s.Subtract(logits, s.LogSumExp(logits, -1, true))
	truth := n.targetLogits(s, s.Reshape(batch.TargetHidden, b*gamma, n.config.Hidden))
	truth = s.Reshape(block.Widen(s, truth, n.config.Vocabulary), b, gamma, n.config.Vocabulary)
	p := s.StopGradient(s.Softmax(truth, -1))

	t := Terms{DraftLogits: logits, ConfidenceLogits: n.confidenceLogits(s, hidden, rows)}
	t.CrossEntropy = s.Negative(s.Reshape(s.TakeAlong(logQ, s.Reshape(labels, b, gamma, 1), -1), b, gamma))
	t.L1 = s.Sum(s.Abs(s.Subtract(s.Exp(logQ), p)), -1, false)
	c := func(v float64) mlxbind.Array { return s.Scalar(v, mlxbind.Float32) }
	t.AcceptRate = s.StopGradient(s.Subtract(c(1), s.Multiply(c(0.5), t.L1)))
	sure := s.Minimum(s.Maximum(s.Sigmoid(t.ConfidenceLogits), c(margin)), c(1-margin))
	t.Confidence = s.Negative(s.Add(s.Multiply(t.AcceptRate, s.Log(sure)),
		s.Multiply(s.Subtract(c(1), t.AcceptRate), s.Log(s.Subtract(c(1), sure)))))

	weights := make([]float32, gamma)
	for k := range weights {
		weights[k] = float32(math.Exp(-float64(k) / decay))
	}
	w := s.Multiply(s.Floats(weights), wide(s, batch.Supervised))
	each := s.Add(s.Add(s.Multiply(c(shareCrossEntropy), t.CrossEntropy), s.Multiply(c(shareL1), t.L1)),
		s.Multiply(c(shareConfidence), t.Confidence))
	all := func(a mlxbind.Array) mlxbind.Array { return s.Sum(s.Reshape(a, -1), 0, false) }
	t.Loss = s.Divide(all(s.Multiply(w, each)), all(w))
	return t
}

// biases are the Markov biases of all slots at once [b, gamma, vocabulary].
func (n *network) biases(s *mlxbind.Scope, rows, hidden mlxbind.Array) mlxbind.Array {
	if n.config.Head != checkpoint.HeadRNN {
		bias, _ := n.Bias(s, rows, hidden, mlxbind.Array{})
		return bias
	}
	b := rows.Dim(0)
	slot := func(a mlxbind.Array, k int) mlxbind.Array { return s.Reshape(s.Slice(a, 1, k, k+1), b, -1) }
	list := make([]mlxbind.Array, n.config.Gamma)
	carried := n.Start(s, b)
	for k := range list {
		list[k], carried = n.Bias(s, slot(rows, k), slot(hidden, k), carried)
	}
	return s.Stack(1, list...)
}

// Terms works a batch out with the weights of now.
func (d *Drafter) Terms(s *mlxbind.Scope, batch Batch) Terms {
	out := s.Within(func(s *mlxbind.Scope) []mlxbind.Array {
		return d.terms(s, batchOf(batch.arrays(s))).arrays()
	})
	if s.Err() != nil {
		return Terms{}
	}
	return termsOf(out)
}

// Learner takes gradients of a drafter's loss. Close frees it.
type Learner struct {
	drafter  *Drafter
	gradient *mlxbind.Gradient
}

// NewLearner prepares to train d, which must outlive it.
func NewLearner(d *Drafter) (*Learner, error) {
	count := len(d.weights)
	gradient, err := mlxbind.ValueAndGrad(func(s *mlxbind.Scope, in []mlxbind.Array) []mlxbind.Array {
		n := network{d.config, d.target, arrange(d.config, in[:count])}
		return n.terms(s, batchOf(in[count:])).arrays()
	}, count)
	if err != nil {
		return nil, err
	}
	return &Learner{d, gradient}, nil
}

// Close frees what the learner made.
func (l *Learner) Close() { l.gradient.Close() }

// Gradients works a batch out and returns, besides its terms, the gradient of its loss for each of
// weights, in the order of Weights. Both are graphs: nothing is computed yet.
func (l *Learner) Gradients(s *mlxbind.Scope, weights []mlxbind.Array, batch Batch) (Terms, []mlxbind.Array) {
	in := append(append([]mlxbind.Array{}, weights...), batch.arrays(s)...)
	out, gradients := s.Differentiate(l.gradient, in...)
	if s.Err() != nil {
		return Terms{}, nil
	}
	return termsOf(out), gradients
}

// Weights are the drafter's own arrays, in the order of Config().Tensors(), float32.
func (d *Drafter) Weights() []mlxbind.Array { return d.weights }

// SetWeights takes other arrays of the same shapes in the place of its own; what was compiled with
// the old ones is made anew when next drafting.
func (d *Drafter) SetWeights(s *mlxbind.Scope, weights []mlxbind.Array) error {
	if err := s.Eval(weights...); err != nil {
		return err
	}
	held := make([]mlxbind.Array, len(weights))
	for i, w := range weights {
		held[i] = s.Hold(w)
	}
	d.forget()
	d.free()
	d.weights = held
	d.parameters = arrange(d.config, held)
	return s.Err()
}
