package command

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"firesteel/core/engine"
	"firesteel/core/library"
	"firesteel/models/chat"
)

// plan is what the flags of generate ask for.
type plan struct {
	target, drafter, prompt, system  string
	raw, noDraft, ignoreStop         bool
	json, rounds                     bool
	maxTokens, topK, gamma           int
	temperature, topP, minP, caution float64
	seed                             uint64
	set                              map[string]bool // flags that were given
	shared                           bool            // tables, between the models that were loaded
}

func (t *terminal) generate(ctx context.Context, c *command, args []string) error {
	p := plan{set: map[string]bool{}}
	f := t.flags(c)
	f.StringVar(&p.target, "target", "", "the model's `DIR`; without it, the pair that comes with Firesteel")
	f.StringVar(&p.drafter, "drafter", "", "the drafter's `DIR`, or none; without it, the one beside the target that goes with it")
	f.StringVar(&p.prompt, "prompt", "", "the `TEXT` to answer; - reads it from standard input")
	f.StringVar(&p.system, "system", "", "a system `TEXT`: how to answer")
	f.BoolVar(&p.raw, "raw", false, "go on from the prompt as it stands, without the model's chat form")
	f.IntVar(&p.maxTokens, "max-tokens", 0, "stop after `N` tokens; without it, where the context ends")
	f.Float64Var(&p.temperature, "temperature", 0, "creativity `T`: 0 takes the likeliest word; default the model's own, else 0.7")
	f.Float64Var(&p.topP, "top-p", 0, "choose among the likeliest words that make up `P` together")
	f.IntVar(&p.topK, "top-k", 0, "choose among the `K` likeliest words; 0 is off")
	f.Float64Var(&p.minP, "min-p", 0, "leave out words less than `M` times as likely as the likeliest; 0 is off")
	f.Uint64Var(&p.seed, "seed", 0, "the same `S` gives the same text; without it, a fresh one")
	f.IntVar(&p.gamma, "gamma", 0, "words to guess ahead, `G` from 1 to the drafter's block")
	f.Float64Var(&p.caution, "threshold", 0, "drop guesses from the first that is less sure than `C`; 0 is off; without it, the drafter's own")
	f.BoolVar(&p.noDraft, "no-draft", false, "write without guessing ahead")
	f.BoolVar(&p.ignoreStop, "ignore-stop", false, "go on where the model says it is done")
	f.BoolVar(&p.json, "json", false, "print one JSON object, on one line, last")
	f.BoolVar(&p.rounds, "rounds", false, "add each round to the JSON, as \"trace\": start, draft, confidence_logits, proposed, accepted, emitted (implies --json)")
	if err := t.parse(c, f, args); err != nil {
		return err
	}
	f.Visit(func(x *flag.Flag) { p.set[x.Name] = true })
	if err := p.check(f.Args()); err != nil {
		return err
	}
	p.json = p.json || p.rounds
	if p.prompt == "-" {
		text, err := io.ReadAll(t.in)
		if err != nil {
			return fmt.Errorf("reading the prompt from standard input: %w", err)
		}
		p.prompt = string(text)
		if p.prompt == "" {
			return usageError("the prompt on standard input is empty.")
		}
	}
	target, drafter, err := t.folders(p)
	if err != nil {
		return err
	}
	place, err := t.calibrations()
	if err != nil {
		return err
	}
	core, loaded, err := t.load(ctx, engine.LoadRequest{TargetDir: target, DrafterDir: drafter, Calibrations: place})
	if err != nil {
		return err
	}
	defer core.Close()
	request, err := p.request(loaded)
	if err != nil {
		return err
	}
	p.shared = loaded.Drafter != nil && loaded.Drafter.SharesTables
	return t.write(ctx, core, p, request)
}

// load starts the core with these models. Close it when done.
func (t *terminal) load(ctx context.Context, r engine.LoadRequest) (Core, engine.Loaded, error) {
	core, err := t.Open()
	if err != nil {
		return nil, engine.Loaded{}, err
	}
	loaded, err := core.Load(ctx, r)
	if err != nil {
		core.Close()
		return nil, loaded, err
	}
	return core, loaded, nil
}

// check refuses, in words, what no model could do.
func (p *plan) check(rest []string) error {
	if len(rest) > 0 {
		return usageError(fmt.Sprintf("%q is not a flag; a prompt of several words goes in quotes after --prompt.", rest[0]))
	}
	if !p.set["prompt"] {
		return usageError("--prompt is missing: give the text to answer, or - to read it.")
	}
	if p.prompt == "" {
		return usageError("the prompt is empty.")
	}
	for name, value := range map[string]float64{"temperature": p.temperature, "top-p": p.topP, "min-p": p.minP, "threshold": p.caution} {
		limit := 1.0
		if name == "temperature" {
			limit = 100
		}
		if !(value >= 0 && value <= limit) || math.IsNaN(value) {
			return usageError(fmt.Sprintf("--%s must be a number from 0 to %g, not %g.", name, limit, value))
		}
	}
	switch {
	case p.set["max-tokens"] && p.maxTokens < 1:
		return usageError(fmt.Sprintf("--max-tokens must be 1 or more, not %d.", p.maxTokens))
	case p.topK < 0:
		return usageError(fmt.Sprintf("--top-k must be 0 or more, not %d.", p.topK))
	case p.set["gamma"] && p.gamma < 1:
		return usageError(fmt.Sprintf("--gamma must be 1 or more, not %d; --no-draft writes without guessing ahead.", p.gamma))
	case p.set["gamma"] && p.noDraft:
		return usageError("--gamma and --no-draft contradict each other.")
	case p.set["drafter"] && p.drafter == "":
		return usageError("--drafter is empty; give a folder, or none.")
	case p.set["target"] && p.target == "":
		return usageError("--target is empty; give a folder.")
	case p.raw && p.system != "":
		return usageError("--system has no place in a --raw prompt.")
	}
	return nil
}

// folders decides which models to load.
func (t *terminal) folders(p plan) (target, drafter string, err error) {
	if p.target == "" {
		if t.DemoPair == nil {
			return "", "", usageError("this build carries no models; name one with --target.")
		}
		if target, drafter, err = t.DemoPair(); err != nil {
			return "", "", err
		}
	} else {
		if target, err = library.Resolve(p.target); err != nil {
			return "", "", err
		}
		if beside, ok := library.FindDrafter(target); ok && p.drafter == "" && !p.noDraft {
			drafter = beside
		}
	}
	switch {
	case p.drafter == "none" || p.noDraft && p.drafter == "":
		drafter = ""
	case p.drafter != "":
		if drafter, err = library.Resolve(p.drafter); err != nil {
			return "", "", err
		}
	}
	return target, drafter, nil
}

// quantizedGamma is how far to guess ahead by default when checking a row costs nearly a pass.
const quantizedGamma = 4

// ownTemperature is what a model is used at unless a person says otherwise.
func ownTemperature(model *engine.ModelInfo) float64 {
	if model.Temperature != nil {
		return *model.Temperature
	}
	return 0.7
}

// request fills in what the flags leave open.
func (p plan) request(loaded engine.Loaded) (engine.Request, error) {
	model := loaded.Target
	k := engine.Knobs{Temperature: ownTemperature(model)}
	if p.set["threshold"] {
		k.Threshold = &p.caution
	}
	r := engine.Request{MaxTokens: p.maxTokens, IgnoreStop: p.ignoreStop, Trace: p.rounds}
	if model.TopP != nil {
		r.TopP = *model.TopP
	}
	if model.TopK != nil {
		r.TopK = *model.TopK
	}
	if model.MinP != nil {
		r.MinP = *model.MinP
	}
	if p.set["temperature"] {
		k.Temperature = p.temperature
	}
	if p.set["top-p"] {
		// 0 means the likeliest alone; the request's zero means off.
		r.TopP = max(p.topP, math.SmallestNonzeroFloat32)
	}
	if p.set["top-k"] {
		r.TopK = p.topK
	}
	if p.set["min-p"] {
		r.MinP = p.minP
	}
	if p.set["seed"] {
		r.Seed = &p.seed
	}
	if d := loaded.Drafter; d != nil && !p.noDraft {
		k.Gamma = d.Block
		if model.Quantized {
			k.Gamma = min(k.Gamma, quantizedGamma)
		}
		if p.set["gamma"] {
			k.Gamma = p.gamma
		}
		if k.Gamma > d.Block {
			return r, usageError(fmt.Sprintf("--gamma must be from 1 to %d for the drafter %s, not %d.", d.Block, d.Name, k.Gamma))
		}
	} else if p.set["gamma"] {
		return r, usageError("--gamma needs a drafter, and none is loaded; name one with --drafter.")
	}
	r.Controls = engine.NewControls(k)
	if p.raw {
		r.Raw = p.prompt
		return r, nil
	}
	if p.system != "" {
		r.Messages = append(r.Messages, chat.Message{Role: "system", Content: p.system})
	}
	r.Messages = append(r.Messages, chat.Message{Role: "user", Content: p.prompt})
	return r, nil
}

// result is the JSON form of what was written.
type result struct {
	Text               string              `json:"text"`
	TokenIDs           []int               `json:"token_ids"`
	GeneratedTokens    int                 `json:"generated_tokens"`
	PromptTokens       int                 `json:"prompt_tokens"`
	Rounds             int                 `json:"rounds"`
	Drafted            int                 `json:"drafted"`
	Accepted           int                 `json:"accepted"`
	Tau                float64             `json:"tau"`
	DraftedByPosition  []int               `json:"drafted_by_position"`
	AcceptedByPosition []int               `json:"accepted_by_position"`
	TokensPerSecond    float64             `json:"tokens_per_second"`
	PrefillPerSecond   float64             `json:"prefill_tokens_per_second"`
	TimeToFirstTokenMS float64             `json:"time_to_first_token_ms"`
	PeakMemoryBytes    int64               `json:"peak_memory_bytes"`
	ProcessPeakBytes   int64               `json:"process_peak_bytes"`
	HostReads          int                 `json:"host_reads"`
	SharedTables       bool                `json:"shared_tables"` // the drafter uses the target's embedding and output layer
	Seed               uint64              `json:"seed"`
	StopReason         engine.StopReason   `json:"stop_reason"`
	Trace              []engine.RoundTrace `json:"trace,omitempty"`
}

func (t *terminal) write(ctx context.Context, core Core, p plan, request engine.Request) error {
	r, err := core.Generate(ctx, request, func(e engine.Event) {
		if text, ok := e.(engine.Text); ok && !p.json {
			io.WriteString(t.out, text.Delta)
		}
	})
	if !p.json {
		if r.Text != "" {
			fmt.Fprintln(t.out)
		}
		if err == nil {
			fmt.Fprintf(t.err, "%d tokens, %.0f a second, %.2f a check; %s\n", len(r.TokenIDs), r.TokensPerSecond, r.Tau, r.Stop)
		}
		return err
	}
	line, jsonErr := json.Marshal(result{
		Text: r.Text, TokenIDs: orEmpty(r.TokenIDs), GeneratedTokens: len(r.TokenIDs), PromptTokens: r.PromptTokens,
		Rounds: r.Rounds, Drafted: r.Drafted, Accepted: r.Accepted, Tau: r.Tau,
		DraftedByPosition: orEmpty(r.DraftedByPosition), AcceptedByPosition: orEmpty(r.AcceptedByPosition),
		TokensPerSecond: r.TokensPerSecond, PrefillPerSecond: r.PrefillPerSecond,
		TimeToFirstTokenMS: float64(r.TimeToFirstToken.Microseconds()) / 1000,
		PeakMemoryBytes:    r.PeakMemory, ProcessPeakBytes: core.Memory().ProcessPeak, HostReads: r.HostReads,
		SharedTables: p.shared, Seed: r.Seed, StopReason: r.Stop, Trace: r.Trace,
	})
	if jsonErr != nil {
		return jsonErr
	}
	fmt.Fprintf(t.out, "%s\n", line)
	return err
}

func orEmpty(list []int) []int {
	if list == nil {
		return []int{}
	}
	return list
}

// shown is a folder as a person reads it.
func shown(dir string) string {
	if absolute, err := filepath.Abs(dir); err == nil {
		return absolute
	}
	return dir
}
