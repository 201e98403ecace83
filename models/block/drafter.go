// Package block is what drafters have in common that fill a whole block of slots in one pass:
// the keys and values of the target's rows so far, how a block's queries see them, and the chain
// that turns the block's rows into tokens, one slot after the other.
package block

import (
	"math"

	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/nn"
)

// Model is what a kind of drafter brings of its own.
type Model interface {
	// Hidden runs the whole block for anchors [b] at positions [b], each looking through sight,
	// and returns its final rows [b, block, hidden]. The block is always full: rows see each other.
	Hidden(s *mlxbind.Scope, sight Sight, anchors, positions mlxbind.Array) mlxbind.Array
	// BaseLogits maps hidden rows [b, n, hidden] to logits before the Markov head, [b, n,
	// vocabulary]: what the block alone would say. Drafts are never drawn from them, so they are
	// no distribution to accept by.
	BaseLogits(s *mlxbind.Scope, hidden mlxbind.Array) mlxbind.Array
}

// Markov is a head that adds, to a slot's logits, a bias that depends on the tokens before it.
type Markov interface {
	// Rows are the head's rows of tokens [..] → [.., rank].
	Rows(s *mlxbind.Scope, tokens mlxbind.Array) mlxbind.Array
	// Start is the state before the first slots of b chains; the zero Array for a head without.
	Start(s *mlxbind.Scope, b int) mlxbind.Array
	// Bias is what a slot's logits gain [b, vocabulary], from the row of the token before it
	// [b, rank], the slot's hidden row [b, hidden] and the state, of which it returns the next.
	Bias(s *mlxbind.Scope, row, hidden, state mlxbind.Array) (bias, next mlxbind.Array)
}

// Confidence estimates, for each slot, the chance that its token is accepted if all before it
// are. From hidden rows [b, n, hidden] and the Markov rows of the tokens before each slot
// [b, n, rank] (the zero Array without a Markov head) it works out logits [b, n], float32.
type Confidence func(s *mlxbind.Scope, hidden, rows mlxbind.Array) mlxbind.Array

// Parts is what a Drafter is made of.
type Parts struct {
	Model      Model
	Markov     Markov     // nil without one
	Confidence Confidence // nil without one

	Size       int // slots in a block
	Vocabulary int
	Thresholds []float64     // what the checkpoint asks for; see models.Drafter
	Kept       int           // see models.Drafter
	Scale      float32       // what attention scores are multiplied by
	DType      mlxbind.DType // of keys and values
}

// Drafter drafts with a Model.
type Drafter struct {
	parts  Parts
	fitted int // the target's vocabulary
	chains map[chainKey]*nn.Segment
}

type chainKey struct {
	n          int
	confidence bool
}

// New puts parts together; Close frees what it compiles.
func New(parts Parts) *Drafter {
	return &Drafter{parts: parts, fitted: parts.Vocabulary, chains: map[chainKey]*nn.Segment{}}
}

// Block implements models.Drafter.
func (d *Drafter) Block() int { return d.parts.Size }

// Vocabulary is how many tokens its tables hold.
func (d *Drafter) Vocabulary() int { return d.parts.Vocabulary }

// Scale is what attention scores are multiplied by.
func (d *Drafter) Scale() float32 { return d.parts.Scale }

// HasConfidence implements models.Drafter.
func (d *Drafter) HasConfidence() bool { return d.parts.Confidence != nil }

// Thresholds implements models.Drafter.
func (d *Drafter) Thresholds() []float64 { return d.parts.Thresholds }

// Kept implements models.Drafter.
func (d *Drafter) Kept() int { return d.parts.Kept }

// Fit implements models.Drafter.
func (d *Drafter) Fit(vocabulary int) { d.fitted = vocabulary }

// Close frees what was compiled; drafting again compiles it anew.
func (d *Drafter) Close() {
	for _, g := range d.chains {
		g.Close()
	}
	clear(d.chains)
}

// Draft implements models.Drafter.
func (d *Drafter) Draft(s *mlxbind.Scope, context models.Context, from models.Anchor, n int, choose models.Chooser, confidence bool) models.Draft {
	confidence = confidence && d.HasConfidence()
	out := s.Within(func(s *mlxbind.Scope) []mlxbind.Array {
		sight := d.See(s, context.(*Context), from.Position, from.Spare)
		hidden := d.parts.Model.Hidden(s, sight, from.Token, from.Position)
		if s.Err() != nil {
			return nil
		}
		if n < d.Block() {
			hidden = s.Slice(hidden, 1, 0, n)
		}
		var out []mlxbind.Array
		if choose == nil {
			out = d.greedy(n, confidence).Call(s, n, hidden, from.Token)
		} else {
			out = d.chain(s, hidden, from.Token, choose, confidence)
		}
		for i, a := range out {
			// Off with the batch axis.
			if a.Valid() {
				out[i] = s.Reshape(a, a.Shape()[1:]...)
			}
		}
		return out
	})
	if s.Err() != nil {
		return models.Draft{}
	}
	draft := models.Draft{Tokens: out[0]}
	out = out[1:]
	if confidence {
		draft.ConfidenceLogits = out[0]
		out = out[1:]
	}
	if choose != nil {
		draft.LogDistributions = out[0]
	}
	return draft
}

// greedy is the compiled chain that takes the likeliest token in each of n slots.
func (d *Drafter) greedy(n int, confidence bool) *nn.Segment {
	key := chainKey{n, confidence}
	if d.chains[key] == nil {
		d.chains[key] = nn.NewSegment(func(s *mlxbind.Scope, in []mlxbind.Array) []mlxbind.Array {
			return d.chain(s, in[0], in[1], nil, confidence)
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
		out = append(out, d.Confidences(s, hidden, steps))
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
	b, n, markov := hidden.Dim(0), hidden.Dim(1), d.parts.Markov
	steps := Steps{Base: d.parts.Model.BaseLogits(s, hidden)}
	previous := anchors
	var state mlxbind.Array
	if markov != nil {
		state = markov.Start(s, b)
	}
	for k := range n {
		logits := s.Reshape(s.Slice(steps.Base, 1, k, k+1), b, d.Vocabulary())
		if markov != nil {
			row := markov.Rows(s, d.Known(s, previous))
			var bias mlxbind.Array
			bias, state = markov.Bias(s, row, s.Reshape(s.Slice(hidden, 1, k, k+1), b, -1), state)
			logits = s.Add(logits, bias)
			steps.rows = append(steps.rows, row)
		}
		logits = Widen(s, logits, d.fitted)
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

// Confidences are the confidence logits of a chain [b, n], float32.
func (d *Drafter) Confidences(s *mlxbind.Scope, hidden mlxbind.Array, steps Steps) mlxbind.Array {
	var rows mlxbind.Array
	if len(steps.rows) > 0 {
		rows = s.Stack(1, steps.rows...)
	}
	return d.parts.Confidence(s, hidden, rows)
}

// Known brings tokens into the range of the tables: a padding token of a larger target stands
// for the last row, which drafts badly and harms nothing.
func (d *Drafter) Known(s *mlxbind.Scope, tokens mlxbind.Array) mlxbind.Array {
	tokens = s.AsType(tokens, mlxbind.Int32)
	if d.fitted <= d.Vocabulary() {
		return tokens
	}
	return s.Minimum(tokens, s.Scalar(float64(d.Vocabulary()-1), mlxbind.Int32))
}

// Widen gives logits [n, vocabulary] another width: tokens too many are left out, and those that
// are missing never come.
func Widen(s *mlxbind.Scope, logits mlxbind.Array, vocabulary int) mlxbind.Array {
	switch missing := vocabulary - logits.Dim(-1); {
	case missing < 0:
		return s.Slice(logits, -1, 0, vocabulary)
	case missing > 0:
		never := s.Broadcast(s.Scalar(math.Inf(-1), logits.DType()), logits.Dim(0), missing)
		return s.Concatenate(-1, logits, never)
	}
	return logits
}
