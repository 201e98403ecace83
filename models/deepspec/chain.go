package deepspec

import (
	"firesteel/mlxbind"
	"firesteel/models/checkpoint"
	"firesteel/models/nn"
)

// markov is the head that adds, to a slot's logits, a bias that depends on the token before it.
type markov struct {
	kind       string // "vanilla", "gated" or "rnn"
	rank       int
	dtype      mlxbind.DType // of activations
	first      *nn.Embedding // W1 [vocabulary, rank]
	second     *nn.Linear    // W2, rank → vocabulary
	gate       *nn.Linear    // gated: [hidden ; W1 row] → rank
	transition *nn.Linear    // rnn: [state ; W1 row ; hidden] → 3·rank
}

func loadMarkov(l *nn.Loader, config *checkpoint.Config, kind string, vocabulary, hidden, rank int, dtype mlxbind.DType) *markov {
	m := &markov{
		kind: kind, rank: rank, dtype: dtype,
		first:  l.Embedding("markov_head.markov_w1", vocabulary, rank),
		second: l.Linear(rank, nn.Module{Name: "markov_head.markov_w2", Out: vocabulary}),
	}
	switch kind {
	case "vanilla":
	case "gated":
		m.gate = l.LinearWithBias(hidden+rank, nn.Module{Name: "markov_head.gate_proj", Out: rank})
	case "rnn":
		m.transition = l.LinearWithBias(2*rank+hidden, nn.Module{Name: "markov_head.joint_proj", Out: 3 * rank})
	default:
		l.Fail(config.Fail("markov_head_type", "is %q; vanilla, gated and rnn are known", kind))
	}
	return m
}

// Rows implements block.Markov.
func (m *markov) Rows(s *mlxbind.Scope, tokens mlxbind.Array) mlxbind.Array {
	return m.first.Rows(s, tokens)
}

// Start implements block.Markov: only rnn has a state, [b, rank], zero at first.
func (m *markov) Start(s *mlxbind.Scope, b int) mlxbind.Array {
	if m.kind != "rnn" {
		return mlxbind.Array{}
	}
	return s.Zeros(m.dtype, b, m.rank)
}

// Bias implements block.Markov.
func (m *markov) Bias(s *mlxbind.Scope, row, hidden, state mlxbind.Array) (bias, next mlxbind.Array) {
	switch m.kind {
	case "gated":
		row = s.Multiply(s.Sigmoid(m.gate.Apply(s, s.Concatenate(-1, hidden, row))), row)
	case "rnn":
		parts := m.transition.Apply(s, s.Concatenate(-1, state, row, hidden))
		keep := s.Sigmoid(s.Slice(parts, -1, 0, m.rank))
		candidate := s.Tanh(s.Slice(parts, -1, m.rank, 2*m.rank))
		one := s.Scalar(1, keep.DType())
		next = s.Add(s.Multiply(keep, state), s.Multiply(s.Subtract(one, keep), candidate))
		row = s.Tanh(s.Slice(parts, -1, 2*m.rank, 3*m.rank))
	}
	return m.second.Apply(s, row), next
}

// sure is the head that says how sure each slot is.
type sure struct {
	project    *nn.Linear // [hidden ; W1 row], or hidden alone → 1
	withMarkov bool
}

func loadConfidence(l *nn.Loader, hidden, rank int, withMarkov bool) *sure {
	in := hidden
	if withMarkov {
		in += rank
	}
	return &sure{l.LinearWithBias(in, nn.Module{Name: "confidence_head.proj", Out: 1}), withMarkov}
}

// logits is the block.Confidence.
func (c *sure) logits(s *mlxbind.Scope, hidden, rows mlxbind.Array) mlxbind.Array {
	features := hidden
	if c.withMarkov {
		features = s.Concatenate(-1, hidden, rows)
	}
	// In the model's own type: a wider product would move borderline confidences.
	z := c.project.Apply(s, features)
	return s.AsType(s.Reshape(z, hidden.Dim(0), hidden.Dim(1)), mlxbind.Float32)
}
