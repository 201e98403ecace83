// Package models says what a target and a drafter are, so that whoever decodes with them
// never asks which kind it has.
//
// Everything here runs on the inference thread.
package models

import "firesteel/mlxbind"

// Target is a language model that decides every token.
type Target interface {
	// Geometry is the model's shape.
	Geometry() Geometry
	// NewState is an empty context.
	NewState() State
	// Forward reads tokens [n] (int32 or uint32) at the end of state and returns the final
	// hidden rows [n, hidden], after the last norm, and the taps asked for, [n, hidden] each,
	// in the order given: the residual stream after that layer (−1: the scaled embedding;
	// the number of layers: the final hidden). No taps cost nothing.
	Forward(s *mlxbind.Scope, state State, tokens mlxbind.Array, taps []int) (hidden mlxbind.Array, tapped []mlxbind.Array)
	// Logits maps hidden rows [n, hidden] to [n, vocabulary], float32.
	Logits(s *mlxbind.Scope, hidden mlxbind.Array) mlxbind.Array
	// Embed gathers the embedding's own rows of tokens [..] → [.., hidden], not scaled.
	Embed(s *mlxbind.Scope, tokens mlxbind.Array) mlxbind.Array
	// Bytes is what the weights hold on the device.
	Bytes() int64
	Close()
}

// Geometry is what a drafter and the loop need to know of a target.
type Geometry struct {
	Layers, Hidden, Vocabulary int
	Context                    int // positions the model was trained for
}

// State is a target's memory of the tokens so far.
type State interface {
	// Position is the number of tokens so far.
	Position() int
	// Drop forgets the last n tokens, also past a sliding window.
	Drop(n int) error
	// Bytes is what it holds on the device.
	Bytes() int64
	Close()
}

// Chooser picks one token for each row from logits [b, vocabulary], float32. step counts the
// choices within a block. It returns the tokens [b] and, when they were drawn at random, the
// logarithm of the distribution they were drawn from [b, vocabulary]; the zero Array stands
// for certainty.
type Chooser func(s *mlxbind.Scope, step int, logits mlxbind.Array) (tokens, logDistribution mlxbind.Array)

// Drafter guesses the tokens that come next.
type Drafter interface {
	// Block is the most tokens one draft can hold.
	Block() int
	// Taps lists the layers of the target whose rows Extend needs.
	Taps() []int
	// HasConfidence tells whether drafts come with confidences.
	HasConfidence() bool
	// Thresholds are what the checkpoint asks for: a draft that is less sure than its slot's
	// threshold is not worth checking, nor are those after it. Slots without one, as all are when
	// it is silent, have none.
	Thresholds() []float64
	// Kept is how many drafts are worth checking whatever a threshold says.
	Kept() int
	// Fit makes the drafter speak the target's vocabulary where the two differ by padding:
	// it never drafts a token that the target lacks, and its distributions have the target's
	// width. To be called before anything is drafted.
	Fit(vocabulary int)
	// NewContext is an empty context.
	NewContext() Context
	// Extend adds rows of the target, one [n, hidden] array a tap, for the next n positions.
	Extend(s *mlxbind.Scope, context Context, tapped []mlxbind.Array)
	// Draft guesses up to n tokens after the anchor.
	Draft(s *mlxbind.Scope, context Context, from Anchor, n int, choose Chooser, confidence bool) Draft
	Bytes() int64
	Close()
}

// Anchor is the newest token, which the drafter's context does not hold yet. Token and
// Position are int32 or uint32 of shape [1]. Position is where the anchor stands; rows of the
// context from there on are as if they were not there, and Spare says how many there may be:
// the count of accepted drafts can stay on the device.
type Anchor struct {
	Token, Position mlxbind.Array
	Spare           int
}

// Context is a drafter's memory of the target's rows.
type Context interface {
	Position() int
	// Buffers are the arrays behind it, which one can evaluate to settle what was added.
	Buffers() []mlxbind.Array
	Drop(n int) error
	Bytes() int64
	Close()
}

// Draft is a chain of guesses.
type Draft struct {
	Tokens           mlxbind.Array // [n] uint32
	LogDistributions mlxbind.Array // [n, vocabulary] float32; the zero Array when certain
	ConfidenceLogits mlxbind.Array // [n] float32; the zero Array when not asked for
}
