package deepspec

import (
	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/checkpoint"
	"firesteel/models/nn"
)

// markov is the head that adds, to a slot's logits, a bias that depends on the token before it.
type markov struct {
	kind       string // "vanilla", "gated" or "rnn"
	rank       int
	first      *nn.Embedding // W1 [vocabulary, rank]
	second     *nn.Linear    // W2, rank → vocabulary
	gate       *nn.Linear    // gated: [hidden ; W1 row] → rank
	transition *nn.Linear    // rnn: [state ; W1 row ; hidden] → 3·rank
}

func loadMarkov(l *nn.Loader, config *checkpoint.Config, kind string, vocabulary, hidden, rank int) *markov {
	m := &markov{
		kind: kind, rank: rank,
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

// bias is what a slot's logits gain [b, vocabulary], from the row of the token before it
// [b, rank], the slot's hidden row [b, hidden] and, for rnn, the state, of which it returns
// the next.
func (m *markov) bias(s *mlxbind.Scope, row, hidden, state mlxbind.Array) (bias, next mlxbind.Array) {
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

// confidence is the head that estimates, for each slot, the chance that its token is accepted
// if all before it are.
type confidence struct {
	project    *nn.Linear
	withMarkov bool
}

func loadConfidence(l *nn.Loader, hidden, rank int, withMarkov bool) *confidence {
	in := hidden
	if withMarkov {
		in += rank
	}
	return &confidence{project: l.LinearWithBias(in, nn.Module{Name: "confidence_head.proj", Out: 1}), withMarkov: withMarkov}
}

type chainKey struct {
	n          int
	confidence bool
}

// greedy is the compiled chain that takes the likeliest token in each of n slots.
func (d *Drafter) greedy(n int, confidence bool) *nn.Segment {
	key := chainKey{n, confidence}
	if d.chains[key] == nil {
		d.chains[key] = nn.NewSegment(func(s *mlxbind.Scope, in []mlxbind.Array) []mlxbind.Array {
			out := d.chain(s, in[0], in[1], nil, confidence)
			if !confidence {
				return out[:1]
			}
			return out[:2]
		})
	}
	return d.chains[key]
}

// chain fills the slots of hidden [b, n, hidden] one after the other, each given the token
// before it, the anchors [b] first. It returns the tokens [b, n], the confidence logits [b, n]
// if asked for, and what choose says the tokens were drawn from [b, n, vocabulary].
func (d *Drafter) chain(s *mlxbind.Scope, hidden, anchors mlxbind.Array, choose models.Chooser, confident bool) []mlxbind.Array {
	steps := d.Slots(s, hidden, anchors, choose)
	out := []mlxbind.Array{s.Stack(1, steps.Tokens...)}
	if confident {
		out = append(out, d.confidences(s, hidden, steps.rows))
	}
	if choose != nil {
		if steps.Distributions[0].Valid() {
			out = append(out, s.Stack(1, steps.Distributions...))
		} else {
			out = append(out, mlxbind.Array{})
		}
	}
	return out
}

// Steps is a chain, slot by slot.
type Steps struct {
	Base          mlxbind.Array   // [b, n, vocabulary]: before the Markov head
	Logits        []mlxbind.Array // [b, vocabulary] each: what the token was chosen from
	Tokens        []mlxbind.Array // [b] each, uint32
	Distributions []mlxbind.Array // [b, vocabulary] each, or no array
	rows          []mlxbind.Array // [b, rank] each: the Markov row of the token before
}

// Slots works out a chain; choose nil takes the likeliest.
func (d *Drafter) Slots(s *mlxbind.Scope, hidden, anchors mlxbind.Array, choose models.Chooser) Steps {
	b, n := hidden.Dim(0), hidden.Dim(1)
	steps := Steps{Base: d.BaseLogits(s, hidden)}
	previous := anchors
	var state mlxbind.Array
	if d.markov != nil && d.markov.kind == "rnn" {
		state = s.Zeros(hidden.DType(), b, d.markov.rank)
	}
	for k := range n {
		logits := s.Reshape(s.Slice(steps.Base, 1, k, k+1), b, d.vocabulary)
		if d.markov != nil {
			row := d.markov.first.Rows(s, d.known(s, previous))
			var bias mlxbind.Array
			bias, state = d.markov.bias(s, row, s.Reshape(s.Slice(hidden, 1, k, k+1), b, d.hidden), state)
			logits = s.Add(logits, bias)
			steps.rows = append(steps.rows, row)
		}
		logits = d.fit(s, logits)
		var distribution mlxbind.Array
		if choose == nil {
			// In the model's own type: a wider sum would order near ties differently.
			previous = s.ArgMax(logits, -1, false)
		} else {
			previous, distribution = choose(s, k, s.AsType(logits, mlxbind.Float32))
		}
		steps.Logits = append(steps.Logits, logits)
		steps.Tokens = append(steps.Tokens, previous)
		steps.Distributions = append(steps.Distributions, distribution)
	}
	return steps
}

// confidences are the logits of the confidence head [b, n], float32, worked out in the
// model's own type.
func (d *Drafter) confidences(s *mlxbind.Scope, hidden mlxbind.Array, rows []mlxbind.Array) mlxbind.Array {
	features := hidden
	if d.confidence.withMarkov {
		features = s.Concatenate(-1, hidden, s.Stack(1, rows...))
	}
	z := d.confidence.project.Apply(s, features)
	return s.AsType(s.Reshape(z, hidden.Dim(0), hidden.Dim(1)), mlxbind.Float32)
}

// Confidences are the confidence logits of a chain [b, n], float32.
func (d *Drafter) Confidences(s *mlxbind.Scope, hidden mlxbind.Array, steps Steps) mlxbind.Array {
	return d.confidences(s, hidden, steps.rows)
}
