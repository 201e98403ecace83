package train

import (
	"context"
	"fmt"

	"firesteel/core/job"
	"firesteel/core/library"
	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/checkpoint"
	"firesteel/models/deepspec"
)

// TuneJob is a training of a part of a DeepSpec drafter.
type TuneJob struct {
	Job
	DrafterDir string
	Part       deepspec.Part
}

// Why a drafter can't be tuned.
var (
	ErrPacked  = deepspec.ErrPacked
	ErrNoHeads = deepspec.ErrNoHeads
)

// Tune trains part of the drafter in j.DrafterDir and makes the folder j.Out: a copy that differs
// only in the tensors that learned, or not at all where none of it brought more than before. See
// Run for what happens when it ends early.
func Tune(ctx context.Context, runner job.Runner, j TuneJob, progress func(Progress)) (Result, error) {
	if err := j.resume(); err != nil {
		return Result{}, err
	}
	target, err := library.DescribeAs(library.Target, j.TargetDir)
	if err != nil {
		return Result{}, err
	}
	drafter, err := library.DescribeAs(library.Drafter, j.DrafterDir)
	if err != nil {
		return Result{}, err
	}
	if drafter.Family != library.DeepSpec {
		return Result{}, &checkpoint.Error{Kind: checkpoint.KindWrongRole, Path: j.DrafterDir, Detail: "not a DeepSpec drafter"}
	}
	if err := library.CheckPair(target, drafter); err != nil {
		return Result{}, err
	}
	identity, err := library.Identity(j.DrafterDir)
	if err != nil {
		return Result{}, err
	}
	kind := fmt.Sprintf("tune %s %s", identity, j.Part)
	return run(ctx, runner, j.Job, progress, kind, func(ctx context.Context, target models.Target) (student, error) {
		return newTuned(ctx, j.DrafterDir, target, j.Part)
	})
}

// FillForTuning completes settings for a target and a drafter of gamma slots that can draft already:
// it learns for less long, and changes less in a step.
func (c Settings) FillForTuning(target library.Description, gamma int) Settings {
	if c.Rate <= 0 {
		c.Rate = 2e-4
	}
	if c.Steps <= 0 {
		c.Steps = 1000
	}
	return c.Fill(target, gamma)
}

// tuned is a DeepSpec drafter some of whose weights learn.
type tuned struct {
	*deepspec.Student
	source *checkpoint.Folder
}

func newTuned(ctx context.Context, dir string, target models.Target, part deepspec.Part) (student, error) {
	source, err := checkpoint.Open(dir)
	if err != nil {
		return nil, err
	}
	d, err := deepspec.NewStudent(ctx, source, target, part)
	if err != nil {
		source.Close()
		return nil, err
	}
	return &tuned{d, source}, nil
}

func (t *tuned) Close() {
	t.Student.Close()
	t.source.Close()
}

// copyPiece is how much of a tensor is copied at a time.
const copyPiece = 8 << 20

// Save writes the source with what was learned in its place.
func (t *tuned) Save(ctx context.Context, dir string) error {
	stage, err := checkpoint.NewStage(dir)
	if err != nil {
		return err
	}
	defer stage.Discard()
	var layout checkpoint.Layout
	for _, name := range t.source.Names() {
		tensor, _ := t.source.Tensor(name)
		layout.Tensors = append(layout.Tensors, tensor)
	}
	w, err := checkpoint.CreateWeights(stage.Dir, layout)
	if err != nil {
		return err
	}
	defer w.Abandon()
	s := mlxbind.NewScope()
	defer s.Close()
	learned := map[string]bool{}
	for i, a := range t.Rounded(s) {
		name := t.Names()[i]
		learned[name] = true
		if err := writeArray(w, name, a); err != nil {
			return err
		}
	}
	for _, tensor := range layout.Tensors {
		if learned[tensor.Name] {
			continue
		}
		for at := int64(0); at < tensor.Size; at += copyPiece {
			part := tensor
			part.Offset, part.Size = tensor.Offset+at, min(copyPiece, tensor.Size-at)
			raw := make([]byte, part.Size)
			if err := t.source.Read(ctx, part, raw); err != nil {
				return err
			}
			if err := w.Append(tensor.Name, raw); err != nil {
				return err
			}
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := job.CopyBeside(ctx, t.source.Dir(), stage.Dir); err != nil {
		return err
	}
	return stage.Commit(true)
}
