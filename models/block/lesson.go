package block

import (
	"math"

	"firesteel/mlxbind"
	"firesteel/models"
)

// How much each term of the loss counts, and over how many slots their weight falls to 1/e.
const (
	shareCrossEntropy = 0.1
	shareL1           = 0.9
	shareConfidence   = 1.0
	decay             = 4.0
)

// margin keeps probabilities away from 0 and 1 before a logarithm is taken.
const margin = 1e-6

// Batch is what one step of training learns from: b anchors in q texts, b = q·a, those of the
// first text first. What an anchor sees of its text lies strictly before it.
type Batch struct {
	Taps         mlxbind.Array // [q, n, taps·hidden]: the texts' rows
	Padding      mlxbind.Array // [b, n], 1 where a row is not before the anchor, or is only padding; the zero Array: none is
	Positions    mlxbind.Array // [b] int32: the row where the anchor stands; the zero Array: n
	Anchors      mlxbind.Array // [b] int32
	Labels       mlxbind.Array // [b, gamma] int32: the tokens after the anchor
	TargetHidden mlxbind.Array // [b, gamma, hidden]: the target's rows after its final norm, from the anchor's on
	Supervised   mlxbind.Array // [b, gamma], 1 where a slot counts; the zero Array: all do
}

// Arrays are all arrays of a batch, what was left out made up; BatchOf turns them back.
func (b Batch) Arrays(s *mlxbind.Scope) []mlxbind.Array {
	n := b.Labels.Dim(0)
	if !b.Padding.Valid() {
		b.Padding = s.Zeros(mlxbind.Float32, n, b.Taps.Dim(1))
	}
	if !b.Positions.Valid() {
		b.Positions = s.Broadcast(s.Scalar(float64(b.Taps.Dim(1)), mlxbind.Int32), n)
	}
	if !b.Supervised.Valid() {
		b.Supervised = s.Broadcast(s.Scalar(1, mlxbind.Float32), b.Labels.Shape()...)
	}
	return []mlxbind.Array{b.Taps, b.Padding, b.Positions, b.Anchors, b.Labels, b.TargetHidden, b.Supervised}
}

// BatchOf is the batch of these Arrays.
func BatchOf(in []mlxbind.Array) Batch {
	return Batch{in[0], in[1], in[2], in[3], in[4], in[5], in[6]}
}

// Before are the tokens before each slot [b, gamma] int32: the anchor, then the true ones.
func (b Batch) Before(s *mlxbind.Scope) mlxbind.Array {
	n, gamma := b.Labels.Dim(0), b.Labels.Dim(1)
	before := s.Reshape(s.AsType(b.Anchors, mlxbind.Int32), n, 1)
	if gamma > 1 {
		before = s.Concatenate(1, before, s.Slice(s.AsType(b.Labels, mlxbind.Int32), 1, 0, gamma-1))
	}
	return before
}

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

// Arrays are the terms in the order of the fields.
func (t Terms) Arrays() []mlxbind.Array {
	return []mlxbind.Array{t.Loss, t.CrossEntropy, t.L1, t.AcceptRate, t.Confidence, t.ConfidenceLogits, t.DraftLogits}
}

// TermsOf are the terms of these Arrays.
func TermsOf(out []mlxbind.Array) Terms {
	return Terms{out[0], out[1], out[2], out[3], out[4], out[5], out[6]}
}

// TargetLogits hands rows [n, hidden] to target's head in the type that the target works in, and
// gives the logits [n, vocabulary], float32, the drafter's width.
func TargetLogits(s *mlxbind.Scope, target models.Target, rows mlxbind.Array, vocabulary int) mlxbind.Array {
	dtype := target.Embed(s, s.Zeros(mlxbind.Int32, 1)).DType()
	logits := target.Logits(s, s.AsType(rows, dtype))
	return Widen(s, s.AsType(logits, mlxbind.Float32), vocabulary)
}

// Judge holds a drafter's logits [b, gamma, vocabulary] and confidence logits [b, gamma] against
// what target says, which no slope goes through. Without confidence logits (the zero Array) they
// stand at 0, where nothing can be learned.
func Judge(s *mlxbind.Scope, batch Batch, logits, sure mlxbind.Array, target models.Target) Terms {
	b, gamma, vocabulary := batch.Labels.Dim(0), batch.Labels.Dim(1), logits.Dim(-1)
	truth := TargetLogits(s, target, s.Reshape(batch.TargetHidden, b*gamma, -1), vocabulary)
	c := func(v float64) mlxbind.Array { return s.Scalar(v, mlxbind.Float32) }
	wide := func(a mlxbind.Array) mlxbind.Array { return s.AsType(a, mlxbind.Float32) }
	if !sure.Valid() {
		sure = s.Zeros(mlxbind.Float32, b, gamma)
	}
	t := Terms{DraftLogits: wide(logits), ConfidenceLogits: wide(sure)}
	logQ := s.Subtract(t.DraftLogits, s.LogSumExp(t.DraftLogits, -1, true))
	p := s.StopGradient(s.Softmax(s.Reshape(truth, b, gamma, vocabulary), -1))
	labels := s.Reshape(s.AsType(batch.Labels, mlxbind.Int32), b, gamma, 1)
	t.CrossEntropy = s.Negative(s.Reshape(s.TakeAlong(logQ, labels, -1), b, gamma))
	t.L1 = s.Sum(s.Abs(s.Subtract(s.Exp(logQ), p)), -1, false)
	t.AcceptRate = s.StopGradient(s.Subtract(c(1), s.Multiply(c(0.5), t.L1)))
	chance := s.Minimum(s.Maximum(s.Sigmoid(t.ConfidenceLogits), c(margin)), c(1-margin))
	t.Confidence = s.Negative(s.Add(s.Multiply(t.AcceptRate, s.Log(chance)),
		s.Multiply(s.Subtract(c(1), t.AcceptRate), s.Log(s.Subtract(c(1), chance)))))

	weights := make([]float32, gamma)
	for k := range weights {
		weights[k] = float32(math.Exp(-float64(k) / decay))
	}
	w := s.Multiply(s.Floats(weights), wide(batch.Supervised))
	each := s.Add(s.Add(s.Multiply(c(shareCrossEntropy), t.CrossEntropy), s.Multiply(c(shareL1), t.L1)),
		s.Multiply(c(shareConfidence), t.Confidence))
	all := func(a mlxbind.Array) mlxbind.Array { return s.Sum(s.Reshape(a, -1), 0, false) }
	t.Loss = s.Divide(all(s.Multiply(w, each)), all(w))
	return t
}

// Student is a drafter that can be trained: its parameters are arrays, and its arithmetic can be
// done with others in their place.
type Student interface {
	// Weights are the parameters, float32.
	Weights() []mlxbind.Array
	// SetWeights takes others of the same shapes, which it computes first, in their place.
	SetWeights(s *mlxbind.Scope, weights []mlxbind.Array) error
	// Lesson works a batch out with these weights, each slot given the tokens that really came
	// before it.
	Lesson(s *mlxbind.Scope, weights []mlxbind.Array, batch Batch) Terms
}

// Learner takes gradients of a student's loss. Close frees it.
type Learner struct{ gradient *mlxbind.Gradient }

// NewLearner prepares to train student, which must outlive it.
func NewLearner(student Student) (*Learner, error) {
	count := len(student.Weights())
	gradient, err := mlxbind.ValueAndGrad(func(s *mlxbind.Scope, in []mlxbind.Array) []mlxbind.Array {
		return student.Lesson(s, in[:count], BatchOf(in[count:])).Arrays()
	}, count)
	if err != nil {
		return nil, err
	}
	return &Learner{gradient}, nil
}

// Close frees what the learner made.
func (l *Learner) Close() { l.gradient.Close() }

// Gradients works a batch out and returns, besides its terms, the gradient of its loss for each of
// weights. Both are graphs: nothing is computed yet.
func (l *Learner) Gradients(s *mlxbind.Scope, weights []mlxbind.Array, batch Batch) (Terms, []mlxbind.Array) {
	in := append(append([]mlxbind.Array{}, weights...), batch.Arrays(s)...)
	out, gradients := s.Differentiate(l.gradient, in...)
	if s.Err() != nil {
		return Terms{}, nil
	}
	return TermsOf(out), gradients
}
