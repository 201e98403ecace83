package engine

import (
	"context"

	"firesteel/core/library"
	"firesteel/models/chat"
)

// Tau measures how many tokens a check commits on average, drafter against target: it answers
// prompts, up to so many tokens each, at temperature 0 with full blocks. It tries the drafter in
// drafterDir beside the loaded target without loading it for good; "" is the loaded one.
func (e *Engine) Tau(ctx context.Context, drafterDir string, prompts []string, tokens int) (float64, error) {
	ctx, cancel := e.both(ctx)
	defer cancel()
	var trial *pair
	owned := drafterDir != ""
	err := e.thread.Do(ctx, func() (err error) {
		trial, err = e.trial(ctx, drafterDir)
		return err
	})
	if err != nil {
		return 0, err
	}
	if owned {
		defer e.thread.Do(context.WithoutCancel(ctx), func() error {
			trial.drafter.Close()
			return nil
		})
	}
	committed, rounds := 0, 0
	for _, prompt := range prompts {
		w := &writer{emit: func(Event) {}, request: Request{
			Messages: []chat.Message{{Role: "user", Content: prompt}}, MaxTokens: tokens, Controls: NewControls(Knobs{Gamma: trial.drafter.Block(), Threshold: new(float64)}),
		}}
		err := e.thread.Do(ctx, func() error {
			if e.held == nil || e.held.target != trial.target {
				return ErrNothingLoaded // it left since the last prompt
			}
			return w.write(ctx, trial, func(int64) {})
		})
		if err != nil {
			return 0, err
		}
		committed, rounds = committed+w.result.Accepted+w.result.Rounds, rounds+w.result.Rounds
	}
	if rounds == 0 {
		return 0, nil
	}
	return float64(committed) / float64(rounds), nil
}

// trial is the loaded pair, or the loaded target with the drafter in dir, which the caller closes.
func (e *Engine) trial(ctx context.Context, dir string) (*pair, error) {
	if e.held == nil || dir == "" && e.held.drafter == nil {
		return nil, ErrNothingLoaded
	}
	trial := *e.held
	if dir == "" {
		return &trial, nil
	}
	target, err := library.DescribeAs(library.Target, e.held.info.Target.Dir)
	if err != nil {
		return nil, err
	}
	drafter, err := library.DescribeAs(library.Drafter, dir)
	if err != nil {
		return nil, err
	}
	if err := library.CheckPair(target, drafter); err != nil {
		return nil, err
	}
	trial.drafter, _, err = openDrafter(ctx, drafter.Dir, target.Dir, e.held.target, nil)
	return &trial, err
}
