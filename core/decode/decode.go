// Package decode is the one loop that writes text: draft, verify, accept, roll back, emit.
// Plain decoding is the same loop with no drafts.
//
// Invariant: the anchor's position = rows of the drafter's context = tokens in the target's
// state. A round of d drafts with k kept drops d−k from both.
package decode

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"firesteel/core/sample"
	"firesteel/mlxbind"
	"firesteel/models"
)

// Chunk is how many tokens of a prompt are read at once: what a cancel waits for.
const Chunk = 512

// ErrNotFinite means the target computed infinities or NaN; there is no likeliest token.
var ErrNotFinite = errors.New("the model computed values that are not finite")

// Knobs hold for one round.
type Knobs struct {
	Gamma int // tokens to draft ahead
	// Thresholds are for each slot: drafts from the first that is less sure are not proposed, as
	// far as the drafter leaves that open. Slots beyond them have none.
	Thresholds []float64
	Sampling   sample.Settings
}

// Uniform is the same threshold for every slot of a drafter; 0 is none.
func Uniform(drafter models.Drafter, threshold float64) []float64 {
	if drafter == nil || threshold <= 0 {
		return nil
	}
	return slices.Repeat([]float64{threshold}, drafter.Block())
}

// Config is one text to write.
type Config struct {
	Target  models.Target
	Drafter models.Drafter // nil: plain decoding
	Knobs   func() Knobs   // asked before each round
	Seed    uint64
	// MaxTokens bounds the tokens generated, which the context bounds too.
	MaxTokens int
	// Stop tells which tokens end the text.
	Stop func(token int) bool
	// Trace asks for confidences even where no threshold needs them.
	Trace bool

	// Prefilled is told how much of the prompt has been read. May be nil.
	Prefilled func(done int)
	// Round is told each round as it ends, the tokens that it emitted among them; the first
	// call brings the first token and no drafts. Returning false ends the text.
	Round func(Round) bool
	// Held is told what the request's caches hold, in bytes. May be nil.
	Held func(bytes int64)
}

// Round is one pass of the loop.
type Round struct {
	Start            int   // position of the anchor
	Draft            []int // all tokens drafted
	ConfidenceLogits []float32
	Proposed         int   // of them, how many were checked
	Accepted         int   // of those, how many were kept
	Emitted          []int // tokens that the round added to the text; a stop token is the last
	First            bool  // the token that the prompt itself gave
	At               time.Time
}

// End says why a text ended.
type End int

const (
	EndStop    End = iota // a stop token
	EndLimit              // MaxTokens
	EndContext            // no position left
	EndCaller             // Round returned false
)

// Run writes one text after prompt, which must not be empty. An error or a cancelled ctx ends
// it; what was emitted stands.
func Run(ctx context.Context, prompt []int, c Config) (End, error) {
	r := &run{Config: c, random: sample.NewStream(c.Seed), state: c.Target.NewState()}
	defer r.close()
	if c.Drafter != nil {
		r.context = c.Drafter.NewContext()
	}
	if err := r.prefill(ctx, prompt); err != nil {
		return 0, err
	}
	for {
		if end, done := r.emit(); done {
			return end, nil
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := r.round(); err != nil {
			return 0, err
		}
	}
}

type run struct {
	Config
	state   models.State
	context models.Context
	random  *sample.Stream
	written int // tokens emitted

	// What the last read brought.
	last   Round
	anchor int
	draft  []int
	logits []float32 // confidence logits of draft
	// The distribution that draft was drawn from, held from the round that drew it.
	distribution mlxbind.Array
}

func (r *run) close() {
	r.distribution.Free()
	r.state.Close()
	if r.context != nil {
		r.context.Close()
	}
}

func (r *run) taps() []int {
	if r.Drafter == nil {
		return nil
	}
	return r.Drafter.Taps()
}

// prefill reads the prompt a chunk at a time and finds the first token.
func (r *run) prefill(ctx context.Context, prompt []int) error {
	for done := 0; done < len(prompt); {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := min(done+Chunk, len(prompt))
		if err := r.chunk(prompt[done:end], end == len(prompt)); err != nil {
			return err
		}
		done = end
		if r.Prefilled != nil {
			r.Prefilled(done)
		}
	}
	return nil
}

func (r *run) chunk(tokens []int, last bool) error {
	s := mlxbind.NewScope()
	defer s.Close()
	hidden, tapped := r.Target.Forward(s, r.state, array(s, tokens), r.taps())
	if r.context != nil {
		r.Drafter.Extend(s, r.context, tapped)
	}
	if !last {
		settled := []mlxbind.Array{hidden}
		if r.context != nil {
			// The drafter's rows are worked out now, so that the chunk's taps can go.
			settled = append(settled, r.context.Buffers()...)
		}
		err := s.Eval(settled...)
		mlxbind.ClearCache()
		return err
	}
	knobs := r.Knobs()
	logits := r.Target.Logits(s, s.Slice(hidden, 0, len(tokens)-1, len(tokens)))
	verdict := sample.Judge(s, s.Reshape(logits, 1, 1, -1), mlxbind.Array{}, mlxbind.Array{}, knobs.Sampling, r.random)
	return r.finish(s, knobs, logits, verdict, Round{Start: r.state.Position() - 1, First: true})
}

// round verifies the drafts at hand and drafts the next ones, with one read from the device.
func (r *run) round() error {
	s := mlxbind.NewScope()
	defer s.Close()
	knobs := r.Knobs()
	d := r.propose(knobs)
	tokens := append([]int{r.anchor}, r.draft[:d]...)
	hidden, tapped := r.Target.Forward(s, r.state, array(s, tokens), r.taps())
	logits := r.Target.Logits(s, hidden)
	var drafts, q mlxbind.Array
	if d > 0 {
		drafts = s.Reshape(array(s, r.draft[:d]), 1, d)
		if r.distribution.Valid() {
			q = s.Reshape(s.Slice(r.distribution, 0, 0, d), 1, d, -1)
		}
	}
	verdict := sample.Judge(s, s.Reshape(logits, 1, d+1, -1), drafts, q, knobs.Sampling, r.random)
	if r.context != nil {
		r.Drafter.Extend(s, r.context, tapped)
	}
	before := Round{Start: r.state.Position() - d - 1, Draft: r.draft, ConfidenceLogits: r.logits, Proposed: d}
	return r.finish(s, knobs, logits, verdict, before)
}

// propose chooses how many of the drafts at hand to check: those before the first that is too
// unsure, as far as γ and the context reach. What it looks at was known before those drafts
// were drawn, so the choice cannot favour any token.
func (r *run) propose(knobs Knobs) int {
	d := min(len(r.draft), knobs.Gamma, r.Target.Geometry().Context-r.state.Position()-1)
	if len(r.logits) > 0 {
		for j := r.Drafter.Kept(); j < min(d, len(knobs.Thresholds)); j++ {
			if float32(1/(1+math.Exp(-float64(r.logits[j])))) < float32(knobs.Thresholds[j]) {
				d = j
			}
		}
	}
	return max(d, 0)
}

// doubts tells whether any of n drafts may be left out.
func (r *run) doubts(knobs Knobs, n int) bool {
	for j := r.Drafter.Kept(); j < min(n, len(knobs.Thresholds)); j++ {
		if knobs.Thresholds[j] > 0 {
			return true
		}
	}
	return false
}

// finish drafts from the token that verdict ends with, reads everything at once, and rolls
// back what was not kept.
func (r *run) finish(s *mlxbind.Scope, knobs Knobs, logits mlxbind.Array, verdict sample.Verdict, round Round) error {
	d := round.Proposed
	finite := s.IsFinite(s.MaxAll(s.Abs(s.Max(logits, -1, false))))
	parts := []mlxbind.Array{s.Reshape(s.AsType(finite, mlxbind.Int32), 1), verdict.Accepted, verdict.Next}
	n, sure := 0, false
	var draft models.Draft
	if r.context != nil && r.written+1 < r.MaxTokens {
		n = min(knobs.Gamma, r.Drafter.Block(), r.Target.Geometry().Context-r.state.Position()-1)
	}
	if n > 0 {
		sure = r.Drafter.HasConfidence() && (r.Trace || r.doubts(knobs, n))
		base := s.Ints([]int32{int32(r.state.Position() - d)})
		anchor := models.Anchor{Token: verdict.Next, Position: s.Add(base, verdict.Accepted), Spare: d}
		draft = r.Drafter.Draft(s, r.context, anchor, n, r.chooser(knobs.Sampling), sure)
		parts = append(parts, s.AsType(draft.Tokens, mlxbind.Int32))
		if sure {
			parts = append(parts, s.View(draft.ConfidenceLogits, mlxbind.Int32))
		}
	}
	values, err := s.ReadInts(s.Concatenate(0, parts...))
	if err != nil {
		return err
	}
	if values[0] == 0 {
		return ErrNotFinite
	}
	k := int(values[1])
	if err := r.state.Drop(d - k); err != nil {
		return fmt.Errorf("target: %w", err)
	}
	if r.context != nil {
		if err := r.context.Drop(d - k); err != nil {
			return fmt.Errorf("drafter: %w", err)
		}
	}
	round.Accepted = k
	round.At = time.Now()
	round.Emitted = append(append([]int{}, round.Draft[:k]...), int(values[2]))
	r.last, r.anchor = round, int(values[2])

	r.draft, r.logits = nil, nil
	r.distribution.Free()
	for j := range n {
		r.draft = append(r.draft, int(values[3+j]))
		if sure {
			r.logits = append(r.logits, mlxbind.Bits(values[3+n+j]))
		}
	}
	r.distribution = s.Hold(draft.LogDistributions)
	if r.Held != nil {
		held := r.state.Bytes()
		if r.context != nil {
			held += r.context.Bytes()
		}
		r.Held(held)
	}
	return s.Err()
}

// chooser draws drafts from the same kind of distribution that the target is held to; nil
// takes the likeliest.
func (r *run) chooser(c sample.Settings) models.Chooser {
	if c.IsGreedy() {
		return nil
	}
	return func(s *mlxbind.Scope, _ int, logits mlxbind.Array) (tokens, distribution mlxbind.Array) {
		q := sample.LogDistribution(s, logits, c)
		return s.Categorical(r.random.Next(s), q), q
	}
}

// emit hands over what the last round brought and tells whether the text is at its end.
func (r *run) emit() (End, bool) {
	round := r.last
	end, done := EndStop, false
	for i, token := range round.Emitted {
		r.written++
		switch {
		case r.Stop(token):
			end, done = EndStop, true
		case r.written >= r.MaxTokens:
			end, done = EndLimit, true
		}
		if done {
			round.Emitted = round.Emitted[:i+1]
			break
		}
	}
	if !r.Round(round) && !done {
		return EndCaller, true
	}
	if !done && r.state.Position() >= r.Target.Geometry().Context {
		return EndContext, true
	}
	return end, done
}

func array(s *mlxbind.Scope, tokens []int) mlxbind.Array {
	values := make([]int32, len(tokens))
	for i, t := range tokens {
		values[i] = int32(t)
	}
	return s.Ints(values)
}
