// Package check compares what the models compute here with recorded reference values.
package check

import (
	"context"
	"fmt"
	"math"
	"path/filepath"

	"firesteel/core/library"
	"firesteel/core/thread"
	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/block"
	"firesteel/models/checkpoint"
	"firesteel/models/dflash"
	"firesteel/models/family"
)

// Limit is the largest absolute difference that counts as agreement, for float32 on a
// processor; values reach about 5.
const Limit = 1e-3

// Difference is one compared tensor.
type Difference struct {
	Tensor string
	Max    float64 // the largest absolute difference; NaN when either side is not finite
}

// Agrees tells whether the difference is within Limit.
func (d Difference) Agrees() bool { return d.Max <= Limit }

// Golden computes what dir/golden.safetensors holds from the checkpoint in dir and reports
// each tensor's difference. A drafter that borrows from its target finds it in targetDir, or, if
// that is empty, beside itself. It uses a thread of its own.
func Golden(ctx context.Context, dir, targetDir string, report func(Difference)) (compared, agreed int, err error) {
	count := func(d Difference) {
		compared++
		if d.Agrees() {
			agreed++
		}
		report(d)
	}
	t, err := thread.Start()
	if err != nil {
		return 0, 0, err
	}
	defer t.Close()
	err = t.Do(ctx, func() error { return golden(ctx, dir, targetDir, count) })
	return compared, agreed, err
}

func golden(ctx context.Context, dir, targetDir string, report func(Difference)) error {
	folder, err := checkpoint.Open(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	g := &reference{ctx: ctx, report: report}
	if family.IsDrafter(folder) {
		target, err := borrowed(ctx, dir, targetDir)
		if err != nil {
			return err
		}
		if target != nil {
			defer target.Close()
		}
		drafter, err := family.OpenDrafter(ctx, folder, target, false, nil)
		if err != nil {
			return err
		}
		defer drafter.Close()
		if err := g.open(dir); err != nil {
			return err
		}
		defer g.folder.Close()
		switch d := drafter.(type) {
		case *dflash.Drafter:
			return g.dflash(d)
		case blockDrafter:
			return g.drafter(d)
		}
		return fmt.Errorf("%s: no reference values are known for this kind of drafter", dir)
	}
	target, err := family.OpenTarget(ctx, folder, nil)
	if err != nil {
		return err
	}
	defer target.Close()
	if err := g.open(dir); err != nil {
		return err
	}
	defer g.folder.Close()
	return g.target(target)
}

// borrowed opens the target of a drafter that cannot be opened without it; nil for others.
func borrowed(ctx context.Context, dir, targetDir string) (models.Target, error) {
	if !checkpoint.HasDSpark(dir) {
		return nil, nil
	}
	config, err := checkpoint.ReadDSpark(dir)
	if err != nil {
		return nil, err
	}
	if targetDir == "" {
		found, ok := library.FindTarget(dir)
		if !ok {
			return nil, fmt.Errorf("%s: its target (%s) is not beside it; --target names another place", dir, config.TargetID)
		}
		targetDir = found
	}
	folder, err := checkpoint.Open(targetDir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return family.OpenTarget(ctx, folder, nil)
}

// blockDrafter is a drafter whose inner values were recorded too.
type blockDrafter interface {
	models.Drafter
	block.Model
	Vocabulary() int
	See(s *mlxbind.Scope, context *block.Context, positions mlxbind.Array, spare int) block.Sight
	Slots(s *mlxbind.Scope, hidden, anchors mlxbind.Array, choose models.Chooser) block.Steps
	Confidences(s *mlxbind.Scope, hidden mlxbind.Array, steps block.Steps) mlxbind.Array
}

// reference is an open golden file; its first error is kept.
type reference struct {
	ctx    context.Context
	folder *checkpoint.Folder
	report func(Difference)
	err    error
}

func (g *reference) open(dir string) (err error) {
	g.folder, err = checkpoint.OpenFile(filepath.Join(dir, "golden.safetensors"))
	return err
}

func (g *reference) has(name string) bool { _, ok := g.folder.Tensor(name); return ok }

// bytes reads a recorded tensor.
func (g *reference) bytes(name string) (checkpoint.Tensor, []byte) {
	t, ok := g.folder.Tensor(name)
	if !ok {
		if g.err == nil {
			g.err = fmt.Errorf("%s: tensor %s is missing", g.folder.Dir(), name)
		}
		return checkpoint.Tensor{}, nil
	}
	raw := make([]byte, t.Size)
	if err := g.folder.Read(g.ctx, t, raw); err != nil && g.err == nil {
		g.err = err
	}
	return t, raw
}

// array brings a recorded tensor to the device, whole numbers as int32.
func (g *reference) array(s *mlxbind.Scope, name string) mlxbind.Array {
	t, raw := g.bytes(name)
	if g.err != nil {
		return mlxbind.Array{}
	}
	switch t.DType {
	case checkpoint.F32:
		return s.Data(raw, mlxbind.Float32, t.Shape...)
	case checkpoint.I32:
		return s.Data(raw, mlxbind.Int32, t.Shape...)
	case checkpoint.U8:
		return s.AsType(s.Data(raw, mlxbind.Uint8, t.Shape...), mlxbind.Int32)
	case checkpoint.I64:
		return s.AsType(s.Data(raw, mlxbind.Int64, t.Shape...), mlxbind.Int32)
	}
	g.err = fmt.Errorf("%s: tensor %s: element type %s", t.File, name, t.DType)
	return mlxbind.Array{}
}

// ids brings recorded tokens to the device. They are looked at first: a gather does not check.
func (g *reference) ids(s *mlxbind.Scope, name string, vocabulary int) mlxbind.Array {
	a := g.array(s, name)
	if g.err != nil {
		return a
	}
	values, err := s.ReadInts(a)
	if err != nil {
		g.err = err
		return a
	}
	for _, id := range values {
		if id < 0 || int(id) >= vocabulary {
			g.err = &checkpoint.Error{Kind: checkpoint.KindCorrupt, Path: filepath.Join(g.folder.Dir(), "golden.safetensors"), Tensor: name,
				Detail: fmt.Sprintf("holds token %d of a vocabulary of %d", id, vocabulary)}
		}
	}
	return a
}

// compare reports how far got is from the recorded tensor, if there is one.
func (g *reference) compare(s *mlxbind.Scope, name string, got mlxbind.Array) {
	if g.err != nil || !g.has(name) {
		return
	}
	want := s.AsType(g.array(s, name), mlxbind.Float32)
	if g.err != nil {
		return
	}
	got = s.Reshape(s.AsType(got, mlxbind.Float32), want.Shape()...)
	values, err := s.ReadFloats(s.Abs(s.Subtract(got, want)))
	if err != nil {
		g.err = fmt.Errorf("tensor %s: %w", name, err)
		return
	}
	largest := 0.0
	for _, v := range values {
		if v := float64(v); v > largest || math.IsNaN(v) {
			largest = v
			if math.IsNaN(v) {
				break
			}
		}
	}
	g.report(Difference{name, largest})
}

func (g *reference) target(t models.Target) error {
	s := mlxbind.NewScope()
	defer s.Close()
	geometry := t.Geometry()
	ids := g.ids(s, "input_ids", geometry.Vocabulary)
	if g.err != nil {
		return g.err
	}
	taps := []int{-1}
	for i := range geometry.Layers + 1 {
		taps = append(taps, i)
	}
	state := t.NewState()
	defer state.Close()
	hidden, tapped := t.Forward(s, state, ids, taps)
	g.compare(s, "embedding", tapped[0])
	for i := range geometry.Layers {
		g.compare(s, fmt.Sprintf("layer.%d", i), tapped[i+1])
	}
	g.compare(s, "final_norm", tapped[geometry.Layers+1])
	logits := t.Logits(s, hidden)
	g.compare(s, "logits", logits)
	if g.err != nil || s.Err() != nil || !g.has("greedy_24") {
		return first(g.err, s.Err())
	}
	want, _ := s.ReadInts(g.array(s, "greedy_24"))
	got, err := continueGreedily(t, state, s.Slice(logits, 0, logits.Dim(0)-1, logits.Dim(0)), len(want))
	if err != nil {
		return err
	}
	wrong := 0
	for i := range want {
		if got[i] != want[i] {
			wrong++
		}
	}
	g.report(Difference{"greedy_24", float64(wrong)})
	return first(g.err, s.Err())
}

// continueGreedily takes n tokens, one at a time, from state on.
func continueGreedily(t models.Target, state models.State, last mlxbind.Array, n int) ([]int32, error) {
	var out []int32
	for len(out) < n {
		s := mlxbind.NewScope()
		token, err := s.ReadInts(s.ArgMax(last, -1, false))
		if err != nil {
			s.Close()
			return nil, err
		}
		out = append(out, token[0])
		hidden, _ := t.Forward(s, state, s.Ints(token), nil)
		next := s.Hold(t.Logits(s, hidden))
		err = s.Eval(next)
		s.Close()
		if len(out) > 1 {
			last.Free()
		}
		last = next
		if err != nil {
			return nil, err
		}
	}
	last.Free()
	return out, nil
}

func (g *reference) drafter(d blockDrafter) error {
	context := d.NewContext().(*block.Context)
	defer context.Close()
	for r := 0; g.has(fmt.Sprintf("round%d.anchor", r)); r++ {
		if err := g.round(d, context, fmt.Sprintf("round%d.", r)); err != nil {
			return err
		}
	}
	return g.err
}

func (g *reference) round(d blockDrafter, context *block.Context, prefix string) error {
	s := mlxbind.NewScope()
	defer s.Close()
	rows := g.array(s, prefix+"context_taps")
	anchor := g.ids(s, prefix+"anchor", d.Vocabulary())
	position := g.array(s, prefix+"anchor_position")
	if g.err != nil {
		return g.err
	}
	g.extend(s, d, context, rows)
	g.draft(s, d, context, prefix, s.Reshape(anchor, 1), s.Reshape(position, 1))
	return first(g.err, s.Err())
}

// extend gives a drafter recorded taps [n, taps·hidden].
func (g *reference) extend(s *mlxbind.Scope, d blockDrafter, context *block.Context, rows mlxbind.Array) {
	tapped := make([]mlxbind.Array, len(d.Taps()))
	width := rows.Dim(1) / len(tapped)
	for i := range tapped {
		tapped[i] = s.Slice(rows, 1, i*width, (i+1)*width)
	}
	d.Extend(s, context, tapped)
}

// draft compares one draft, from the block's rows to the tokens.
func (g *reference) draft(s *mlxbind.Scope, d blockDrafter, context *block.Context, prefix string, anchor, position mlxbind.Array) {
	hidden := d.Hidden(s, d.See(s, context, position, 0), anchor, position)
	g.compare(s, prefix+"hidden", hidden)
	steps := d.Slots(s, hidden, anchor, nil)
	g.compare(s, prefix+"base_logits", steps.Base)
	g.compare(s, prefix+"corrected_logits", s.Stack(1, steps.Logits...))
	g.compare(s, prefix+"tokens", s.Stack(1, steps.Tokens...))
	if d.HasConfidence() {
		g.compare(s, prefix+"confidence_logits", d.Confidences(s, hidden, steps))
	}
}

// dflash compares a draft over recorded context rows, and a step of training.
func (g *reference) dflash(d *dflash.Drafter) error {
	s := mlxbind.NewScope()
	defer s.Close()
	context := d.NewContext().(*block.Context)
	defer context.Close()
	if g.has("infer.anchor") {
		rows := g.array(s, "infer.context_taps")
		anchor := g.ids(s, "infer.anchor", d.Vocabulary())
		if g.err != nil {
			return g.err
		}
		g.extend(s, d, context, rows)
		g.draft(s, d, context, "infer.", s.Reshape(anchor, 1), s.Ints([]int32{int32(context.Position())}))
	}
	if g.err == nil && s.Err() == nil && g.has("train.anchors") {
		g.training(s, d)
	}
	return first(g.err, s.Err())
}

func (g *reference) training(s *mlxbind.Scope, d *dflash.Drafter) {
	batch := block.Batch{
		Taps: g.array(s, "train.context_taps"), Anchors: g.ids(s, "train.anchors", d.Vocabulary()),
		Labels: g.ids(s, "train.labels", d.Vocabulary()), TargetHidden: g.array(s, "train.target_hidden"),
	}
	if g.has("train.context_padding") {
		batch.Padding = g.array(s, "train.context_padding")
	}
	if g.err != nil {
		return
	}
	learner, err := block.NewLearner(d)
	if err != nil {
		g.err = err
		return
	}
	defer learner.Close()
	terms, gradients := learner.Gradients(s, d.Weights(), batch)
	for _, c := range []struct {
		name string
		got  mlxbind.Array
	}{
		{"draft_logits", terms.DraftLogits}, {"confidence_logits", terms.ConfidenceLogits}, {"cross_entropy", terms.CrossEntropy},
		{"l1", terms.L1}, {"accept_rate", terms.AcceptRate}, {"bce", terms.Confidence}, {"loss", terms.Loss},
	} {
		g.compare(s, "train."+c.name, c.got)
	}
	for i, t := range d.Config().Tensors() {
		if g.err == nil && s.Err() == nil {
			g.compare(s, "train.grad."+t.Name, gradients[i])
		}
	}
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
