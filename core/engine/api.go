// Package engine runs models: it owns the one thread that MLX work happens on, loads a
// target and a drafter, and writes text with them. It knows nothing of windows or flags.
//
// Every method may be called from any goroutine; the work itself is queued to the inference
// thread and runs one call at a time.
package engine

import (
	"sync/atomic"
	"time"

	"firesteel/core/confidence"
	"firesteel/models/chat"
)

// Knobs are the three values a person may change while text is being written. A change
// applies from the next round.
type Knobs struct {
	Gamma       int     // tokens drafted ahead each round, 0 (plain decoding) to the drafter's block
	Temperature float64 // below 1e-5 the likeliest token is always taken
	// Drafts from the first confidence below this are not proposed; 0 turns it off. Where the pair
	// is calibrated at this temperature, confidences count as that tells them. Nil leaves it to the
	// calibration, or else to the drafter: see Loaded.Calibration and ModelInfo.Thresholds.
	Threshold *float64
}

// Controls carries Knobs from whoever moves them to the running request. Safe for concurrent use.
type Controls struct{ current atomic.Pointer[Knobs] }

// NewControls returns controls set to k.
func NewControls(k Knobs) *Controls {
	c := &Controls{}
	c.Set(k)
	return c
}

// Set replaces the knobs; a running request sees them at its next round.
func (c *Controls) Set(k Knobs) { c.current.Store(&k) }

// Get returns the knobs set last.
func (c *Controls) Get() Knobs { return *c.current.Load() }

// Request asks for one text.
type Request struct {
	Messages  []chat.Message // the conversation, the newest message last; rendered with the target's template
	Raw       string         // used as it stands, without a template, when Messages is empty
	MaxTokens int            // 0: as many as the context allows
	Controls  *Controls      // required

	TopP float64 // keep the smallest set of tokens whose probability reaches this; 0 or ≥ 1: off
	TopK int     // keep this many tokens; 0: off
	MinP float64 // keep tokens at least this fraction as likely as the likeliest; 0: off
	Seed *uint64 // nil: a fresh one, reported in Result.Seed

	IgnoreStop bool // go on past stop tokens
	Trace      bool // keep every round in Result.Trace
}

// Event is one thing that happened while a request ran: Prefill, Text or Round.
// Events arrive on the inference thread and must be handled quickly.
type Event interface{ event() }

// Prefill reports how much of the prompt has been read.
type Prefill struct{ Done, Total int } // tokens

// Text carries newly finished text; pieces joined give the whole answer.
type Text struct{ Delta string }

// Round reports one check: Drafted tokens proposed, Accepted of them kept.
// The round committed Accepted+1 tokens unless a stop or the limit cut it.
type Round struct {
	Drafted, Accepted int
	Tokens            int           // tokens generated so far
	Elapsed           time.Duration // since the first token
}

func (Prefill) event() {}
func (Text) event()    {}
func (Round) event()   {}

// StopReason says why a text ended.
type StopReason string

const (
	StopToken     StopReason = "stop"      // the target said it was done
	StopLimit     StopReason = "length"    // MaxTokens reached
	StopContext   StopReason = "context"   // the model's context is full
	StopCancelled StopReason = "cancelled" // the caller's context ended
	StopFailed    StopReason = "error"     // an error ended it; the text so far is kept
)

// RoundTrace is one round in full; field names are those of the reference runs.
type RoundTrace struct {
	Start            int       `json:"start"` // anchor position
	Draft            []int     `json:"draft"`
	ConfidenceLogits []float32 `json:"confidence_logits"`
	Proposed         int       `json:"proposed"`
	Accepted         int       `json:"accepted"`
	Emitted          []int     `json:"emitted"`
}

// Result is a finished text with its figures. It is filled also when Generate returns an
// error or was cancelled: what was written is never lost.
type Result struct {
	Text               string
	TokenIDs           []int // without the stop token
	PromptTokens       int
	Rounds             int
	Drafted, Accepted  int
	Tau                float64 // committed tokens ÷ rounds, the prefill's token not counted
	DraftedByPosition  []int
	AcceptedByPosition []int
	TokensPerSecond    float64 // (tokens − 1) ÷ (last − first token time)
	PrefillPerSecond   float64 // prompt tokens ÷ prefill time
	TimeToFirstToken   time.Duration
	PeakMemory         int64 // bytes, MLX's own peak during the request
	HostReads          int   // device-to-host reads during the request
	Seed               uint64
	Stop               StopReason
	Trace              []RoundTrace
}

// ModelInfo describes a loaded model.
type ModelInfo struct {
	Name         string // the folder's name, or the demo's
	Dir          string
	Family       string // for people: "Gemma 4", "DeepSpec"
	Precision    string // "bf16", "4-bit", "4–8-bit mixed"
	Quantized    bool   // some of its matrices are packed
	Parameters   int64
	FileBytes    int64
	MemoryBytes  int64 // what it holds on the device
	Layers       int
	Hidden       int
	Vocabulary   int
	Context      int  // tokens; targets only
	Block        int  // trained γ; drafters only
	HasThreshold bool // has a confidence head; drafters only
	SharesTables bool // uses the target's embedding and output layer, which are its own; drafters only
	Kept         int  // drafts that are checked however unsure; drafters only
	// Thresholds are the drafter's own, one a slot, which hold while Knobs.Threshold is nil; empty
	// means none. Drafters only.
	Thresholds []float64
	// Defaults from generation_config.json; nil where the file is silent. Targets only.
	Temperature, TopP, MinP *float64
	TopK                    *int
}

// Loaded is what the engine holds now; nil fields hold nothing.
type Loaded struct {
	Target  *ModelInfo
	Drafter *ModelInfo
	// Calibration is what was measured of this pair and is gone by; nil without. Not to be changed.
	Calibration *confidence.Calibration
}

// LoadRequest names the folders to load. DrafterDir "" loads the target alone.
type LoadRequest struct {
	TargetDir  string
	DrafterDir string
	// Calibrations is the folder to look for this pair's calibration in; "" looks nowhere.
	Calibrations string
	Progress     func(done, total int64) // bytes; called on the inference thread; may be nil
}

// Memory is one reading. Byte counts; zero where the system does not tell.
type Memory struct {
	Target, Drafter, Context int64 // what each part holds on the device
	Active, Cache, Peak      int64 // MLX's allocator: in use, kept for reuse, highest since load
	Process, ProcessPeak     int64 // resident (Linux) or physical footprint (macOS)
	MachineTotal, Available  int64
}
