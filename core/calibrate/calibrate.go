// Package calibrate learns from real rounds how far a drafter's confidence can be trusted with
// the target it is loaded with, and what each threshold would bring.
//
// It asks whatever runs models for ordinary texts in which every draft is checked, so it works
// with any pair that can be loaded; the arithmetic is in package confidence.
package calibrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"firesteel/core/confidence"
	"firesteel/core/engine"
	"firesteel/core/job"
	"firesteel/core/library"
	"firesteel/core/prompts"
)

// Core is what the job asks of what runs models; *engine.Engine is one.
type Core interface {
	Loaded() engine.Loaded
	Device() string
	Generate(ctx context.Context, r engine.Request, emit func(engine.Event)) (engine.Result, error)
}

// Job says what to measure, with the pair that is loaded.
type Job struct {
	Prompts     []prompts.Prompt
	Temperature float64
	Rounds      int // checks to look at; 0: DefaultRounds
	Tokens      int // of each answer at most; 0: defaultTokens
}

// DefaultRounds is enough for ten slots to be told apart from chance.
const DefaultRounds = 4000

// Short answers to many prompts show more than long ones to few.
const defaultTokens = 128

// Errors of a pair that can't be calibrated.
var (
	ErrNoDrafter    = errors.New("no drafter is loaded")
	ErrNoConfidence = errors.New("the drafter does not say how sure it is")
	ErrChanged      = errors.New("another pair was loaded meanwhile")
)

// TooFewError is returned when the prompts gave too few rounds to fit anything.
type TooFewError struct{ Rounds, Needed int }

func (e *TooFewError) Error() string {
	return fmt.Sprintf("the prompts gave %d rounds; at least %d are needed", e.Rounds, e.Needed)
}

// Pair names what is loaded as calibrations are kept by.
func Pair(loaded engine.Loaded) (*confidence.Calibration, error) {
	if loaded.Target == nil {
		return nil, engine.ErrNothingLoaded
	}
	if loaded.Drafter == nil {
		return nil, ErrNoDrafter
	}
	if !loaded.Drafter.HasThreshold {
		return nil, ErrNoConfidence
	}
	c := &confidence.Calibration{Block: loaded.Drafter.Block}
	for _, part := range []struct {
		model *confidence.Model
		info  *engine.ModelInfo
	}{{&c.Target, loaded.Target}, {&c.Drafter, loaded.Drafter}} {
		id, err := library.Identity(part.info.Dir)
		if err != nil {
			return nil, err
		}
		*part.model = confidence.Model{Identity: id, Name: part.info.Name, Precision: part.info.Precision}
	}
	return c, nil
}

// Run measures. It writes nothing: Calibration.Keep does. progress, which may be nil, is told how
// far it is, on the inference thread. Prompts are taken in turn, each either to fit or to judge by,
// so that both get half of the rounds. Where nothing is left to chance each is used once, otherwise as often as
// it takes, with another seed each time.
func Run(ctx context.Context, core Core, j Job, progress func(job.Progress)) (*confidence.Measured, error) {
	loaded := core.Loaded()
	if _, err := Pair(loaded); err != nil {
		return nil, err
	}
	if j.Rounds <= 0 {
		j.Rounds = DefaultRounds
	}
	if j.Tokens <= 0 {
		j.Tokens = defaultTokens
	}
	block := loaded.Drafter.Block
	c := &collector{core: core, Job: j, loaded: loaded, meter: job.NewMeter(int64(j.Rounds+timedRounds(block, j.Rounds)), progress)}
	fitted, held, err := c.collect(ctx)
	if err != nil {
		return nil, err
	}
	if n := min(len(fitted), len(held)); n < confidence.FewForThreshold {
		return nil, &TooFewError{2 * n, 2 * confidence.FewForThreshold}
	}
	costs, err := c.time(ctx)
	if err != nil {
		return nil, err
	}
	m := &confidence.Measured{
		Temperature: j.Temperature, Device: core.Device(), Time: time.Now().UTC().Truncate(time.Second),
		Fitted: len(fitted), HeldOut: len(held), Costs: costs,
	}
	sampled := c.request(0, nil)
	m.TopP, m.TopK, m.MinP = sampled.TopP, sampled.TopK, sampled.MinP
	m.Fit(fitted, held, block, loaded.Drafter.Kept)
	return m, nil
}

type collector struct {
	Job
	core   Core
	loaded engine.Loaded
	done   int // rounds
	meter  *job.Meter
}

// Stages, as progress tells them.
const (
	looking = "looking at checks"
	timing  = "timing checks"
)

// round counts one round.
func (c *collector) round(stage string) {
	c.done++
	c.meter.Add(stage, 1)
}

// request asks for the answer to prompt i with what the target recommends.
func (c *collector) request(i int, controls *engine.Controls) engine.Request {
	seed := uint64(i)
	r := engine.Request{Messages: c.Prompts[i%len(c.Prompts)].Messages, MaxTokens: c.Tokens, Seed: &seed, Controls: controls}
	t := c.loaded.Target
	if t.TopP != nil {
		r.TopP = *t.TopP
	}
	if t.TopK != nil {
		r.TopK = *t.TopK
	}
	if t.MinP != nil {
		r.MinP = *t.MinP
	}
	return r
}

// generate has one text written, if the pair is still the same afterwards.
func (c *collector) generate(ctx context.Context, r engine.Request, emit func(engine.Event)) (engine.Result, error) {
	result, err := c.core.Generate(ctx, r, emit)
	if now := c.core.Loaded(); now.Target != c.loaded.Target || now.Drafter != c.loaded.Drafter {
		err = ErrChanged
	}
	return result, err
}

// collect has answers written until there are as many rounds as are wanted, each with the whole
// block checked, and deals them out by prompt.
func (c *collector) collect(ctx context.Context) (fitted, held []confidence.Sample, err error) {
	controls := engine.NewControls(engine.Knobs{Gamma: c.loaded.Drafter.Block, Temperature: c.Temperature, Threshold: new(float64)})
	greedy := confidence.BandOf(c.Temperature) == confidence.Bands[0]
	var fits []bool // whether a prompt's rounds are fitted to: always or never
	for i, stale := 0, 0; c.done < c.Rounds && stale < len(c.Prompts); i++ {
		if greedy && i >= len(c.Prompts) {
			break // the same again
		}
		request := c.request(i, controls)
		request.Trace = true
		before := c.done
		enough, stop := context.WithCancel(ctx)
		result, err := c.generate(enough, request, func(e engine.Event) {
			if _, ok := e.(engine.Round); ok {
				if c.round(looking); c.done >= c.Rounds {
					stop()
				}
			}
		})
		stop()
		if err != nil && !(errors.Is(err, context.Canceled) && ctx.Err() == nil && c.done >= c.Rounds) {
			return nil, nil, err
		}
		stale++
		if c.done > before {
			stale = 0
		}
		prompt := i % len(c.Prompts)
		if prompt == len(fits) {
			fits = append(fits, len(fitted) <= len(held))
		}
		if fits[prompt] {
			fitted = append(fitted, samples(result)...)
		} else {
			held = append(held, samples(result)...)
		}
	}
	// Prompts may have run out.
	c.meter.Add(looking, int64(max(0, c.Rounds-c.done)))
	return fitted, held, nil
}

// samples takes the rounds of one text. Slots past a stop token that ended it don't count.
func samples(r engine.Result) []confidence.Sample {
	var list []confidence.Sample
	for i, round := range r.Trace {
		slots := min(round.Proposed, len(round.ConfidenceLogits))
		if i == len(r.Trace)-1 && r.Stop == engine.StopToken {
			slots = min(slots, len(round.Emitted))
		}
		s := confidence.Sample{Logits: round.ConfidenceLogits[:slots], Accepted: min(round.Accepted, slots)}
		if slots > 0 && s.Usable() {
			list = append(list, s)
		}
	}
	return list
}

// timedRounds is how many rounds the times of rounds are taken from.
func timedRounds(block, rounds int) int {
	return max(6*(block+1), min(rounds/8, 30*(block+1)))
}

// tried are thresholds that, taken in turn, make rounds of every length: none, all, and between.
var tried = []float64{0, 1, 0.5, 0.8, 0.3, 0.95, 0.65, 0.9}

// time measures rounds by how many drafts they check, and plain decoding in between, so that
// whatever else the machine does falls on all alike.
func (c *collector) time(ctx context.Context) (confidence.Costs, error) {
	const plainTokens = 16
	knobs := engine.Knobs{Gamma: c.loaded.Drafter.Block, Temperature: c.Temperature, Threshold: new(float64)}
	var checks, plain confidence.Timing
	end := c.done + timedRounds(c.loaded.Drafter.Block, c.Rounds)
	for i := 0; c.done < end && i < 4*len(c.Prompts)+64; i++ {
		controls := engine.NewControls(knobs)
		var last time.Duration
		turn := i
		request := c.request(i, controls)
		request.MaxTokens = min(request.MaxTokens, 64)
		_, err := c.generate(ctx, request, func(e engine.Event) {
			r, ok := e.(engine.Round)
			if !ok {
				return
			}
			checks.Add(r.Drafted, (r.Elapsed - last).Seconds())
			last = r.Elapsed
			next := knobs
			next.Threshold = &tried[turn%len(tried)]
			turn++
			controls.Set(next)
			c.round(timing)
		})
		if err != nil {
			return confidence.Costs{}, err
		}
		alone := knobs
		alone.Gamma = 0
		request = c.request(i, engine.NewControls(alone))
		request.MaxTokens = plainTokens
		last = 0
		if _, err = c.generate(ctx, request, func(e engine.Event) {
			if r, ok := e.(engine.Round); ok {
				plain.Add(0, (r.Elapsed - last).Seconds())
				last = r.Elapsed
			}
		}); err != nil {
			return confidence.Costs{}, err
		}
	}
	costs := confidence.Costs{Round: checks.Curve(c.loaded.Drafter.Block)}
	if alone := plain.Curve(0); alone != nil {
		costs.Plain = alone[0]
	}
	return costs, nil
}
