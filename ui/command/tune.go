package command

import (
	"context"
	"fmt"

	"firesteel/core/job"
	"firesteel/core/library"
	"firesteel/core/train"
	"firesteel/models/deepspec"
)

func (t *terminal) tune(ctx context.Context, c *command, args []string) error {
	var l lesson
	f := t.flags(c)
	t.lessonFlags(f, &l)
	f.StringVar(&l.drafter, "drafter", "", "the DeepSpec drafter's `DIR`; without it, the one beside the target, or the one that comes with Firesteel")
	what := f.String("what", string(deepspec.Heads), "`PART` that learns: heads, or heads+fc, which is also what reads the model's layers")
	if err := t.parse(c, f, args); err != nil {
		return err
	}
	if err := l.check(f); err != nil {
		return err
	}
	part := deepspec.Part(*what)
	if part != deepspec.Heads && part != deepspec.HeadsAndTaps {
		return usageError(fmt.Sprintf("--what must be heads or heads+fc, not %s.", *what))
	}
	_, drafter, err := t.folders(l.plan)
	if err != nil {
		return err
	}
	if drafter == "" {
		return usageError("no drafter was found beside the target; name one with --drafter.")
	}
	description, err := library.DescribeAs(library.Drafter, drafter)
	if err != nil {
		return err
	}
	l.drafter = ""
	lesson, target, err := t.job(&l)
	if err != nil {
		return err
	}
	lesson.Settings = lesson.Settings.FillForTuning(target, description.Block)
	return t.teach(ctx, l, func(core job.Runner, progress func(train.Progress)) (train.Result, error) {
		return train.Tune(ctx, core, train.TuneJob{Job: lesson, DrafterDir: drafter, Part: part}, progress)
	})
}
