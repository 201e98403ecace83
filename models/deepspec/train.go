package deepspec

import (
	"context"
	"errors"
	"slices"

	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/block"
	"firesteel/models/checkpoint"
	"firesteel/models/nn"
)

// Part says which weights learn.
type Part string

const (
	Heads        Part = "heads"    // the Markov and confidence heads
	HeadsAndTaps Part = "heads+fc" // also the matrix that reads the taps, and the norms before and after the layers
)

// Errors of a drafter that can't learn.
var (
	ErrPacked  = errors.New("the weights that are to learn are packed")
	ErrNoHeads = errors.New("the drafter has neither a Markov nor a confidence head")
)

// Student is a drafter some of whose weights learn, in float32. It drafts with them rounded to the
// type that they are stored in. Its target must outlive it.
type Student struct {
	*Drafter
	target  models.Target
	names   []string // of the tensors that learn
	stored  []mlxbind.DType
	weights []mlxbind.Array // [out, in], as stored
	placed  []mlxbind.Array // what the drafter computes with
}

// NewStudent loads the drafter in folder, to learn part from target. The folder is only read.
func NewStudent(ctx context.Context, folder *checkpoint.Folder, target models.Target, part Part) (*Student, error) {
	d, err := Load(ctx, folder, nil, nil)
	if err != nil {
		return nil, err
	}
	t := &Student{Drafter: d, target: target, names: d.learning(part)}
	if err := t.begin(ctx, folder); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// learning lists the tensors of a part.
func (d *Drafter) learning(part Part) []string {
	var names []string
	if d.markov != nil {
		names = append(names, "markov_head.markov_w1.weight", "markov_head.markov_w2.weight")
		switch d.markov.kind {
		case "gated":
			names = append(names, "markov_head.gate_proj.weight", "markov_head.gate_proj.bias")
		case "rnn":
			names = append(names, "markov_head.joint_proj.weight", "markov_head.joint_proj.bias")
		}
	}
	if d.sure != nil {
		names = append(names, "confidence_head.proj.weight", "confidence_head.proj.bias")
	}
	if part == HeadsAndTaps {
		names = append(names, "fc.weight", "hidden_norm.weight", "norm.weight")
	}
	return names
}

func (t *Student) begin(ctx context.Context, folder *checkpoint.Folder) error {
	if len(t.names) == 0 {
		return ErrNoHeads
	}
	s := mlxbind.NewScope()
	defer s.Close()
	var weights []mlxbind.Array
	for _, name := range t.names {
		tensor, ok := folder.Tensor(name)
		dtype, plain := nn.PlainDType(tensor.DType)
		if !ok || !plain {
			return &checkpoint.Error{Kind: checkpoint.KindUnsupported, Path: folder.Dir(), Tensor: name, Err: ErrPacked}
		}
		raw := make([]byte, tensor.Size)
		if err := folder.Read(ctx, tensor, raw); err != nil {
			return err
		}
		t.stored = append(t.stored, dtype)
		weights = append(weights, s.AsType(s.Data(raw, dtype, tensor.Shape...), mlxbind.Float32))
	}
	return t.SetWeights(s, weights)
}

// Names are the tensors that learn, in the order of Weights.
func (t *Student) Names() []string { return t.names }

// Weights implements block.Student.
func (t *Student) Weights() []mlxbind.Array { return t.weights }

// Rounded are the weights in the types they are stored in.
func (t *Student) Rounded(s *mlxbind.Scope) []mlxbind.Array {
	out := make([]mlxbind.Array, len(t.weights))
	for i, w := range t.weights {
		out[i] = s.AsType(w, t.stored[i])
	}
	return out
}

// SetWeights implements block.Student.
func (t *Student) SetWeights(s *mlxbind.Scope, weights []mlxbind.Array) error {
	if err := s.Eval(weights...); err != nil {
		return err
	}
	dtype := t.inputNorm.DType()
	var held, placed []mlxbind.Array
	for i, w := range weights {
		held = append(held, s.Hold(w))
		placed = append(placed, s.Hold(s.AsType(s.AsType(w, t.stored[i]), dtype)))
	}
	err := s.Eval(placed...)
	t.forget()
	t.free()
	t.weights, t.placed = held, placed
	if err == nil {
		// The views that it makes of them must last as long as they do.
		views := mlxbind.NewScope()
		defer views.Close()
		t.place(views, placed, func(a mlxbind.Array) mlxbind.Array {
			h := views.Hold(a)
			t.placed = append(t.placed, h)
			return h
		})
		err = views.Err()
	}
	return err
}

func (t *Student) free() {
	for _, list := range [][]mlxbind.Array{t.weights, t.placed} {
		for i := range list {
			list[i].Free()
		}
	}
	t.weights, t.placed = nil, nil
}

// Close frees the drafter and what it learned.
func (t *Student) Close() {
	t.Drafter.Close()
	t.free()
}

// place puts weights where d computes with them; keep makes what place builds of them last.
func (t *Student) place(s *mlxbind.Scope, weights []mlxbind.Array, keep func(mlxbind.Array) mlxbind.Array) {
	d := t.Drafter
	at := func(name string) mlxbind.Array {
		if i := slices.Index(t.names, name); i >= 0 {
			return weights[i]
		}
		return mlxbind.Array{}
	}
	linear := func(to **nn.Linear, module string) {
		if w := at(module + ".weight"); w.Valid() {
			*to = nn.LinearOf(keep(s.Transpose(w)), at(module+".bias"))
		}
	}
	if m := d.markov; m != nil {
		m.first = nn.EmbeddingOf(at("markov_head.markov_w1.weight"))
		linear(&m.second, "markov_head.markov_w2")
		linear(&m.gate, "markov_head.gate_proj")
		linear(&m.transition, "markov_head.joint_proj")
	}
	if d.sure != nil {
		linear(&d.sure.project, "confidence_head.proj")
	}
	linear(&d.project, "fc")
	if w := at("hidden_norm.weight"); w.Valid() {
		d.inputNorm, d.outputNorm = w, at("norm.weight")
	}
}

// Lesson implements block.Student.
func (t *Student) Lesson(s *mlxbind.Scope, weights []mlxbind.Array, batch block.Batch) block.Terms {
	// A drafter like this one that computes with these weights.
	d := *t.Drafter
	if d.markov != nil {
		m := *d.markov
		d.markov = &m
	}
	if d.sure != nil {
		c := *d.sure
		d.sure = &c
	}
	other := Student{Drafter: &d, names: t.names}
	other.place(s, weights, func(a mlxbind.Array) mlxbind.Array { return a })

	dtype := t.inputNorm.DType()
	taps := s.AsType(batch.Taps, dtype)
	q, n := taps.Dim(0), taps.Dim(1)
	// Only how far rows lie apart matters, so the first one may stand at 0.
	context := d.contextRows(s, taps, d.rotary.At(s, s.Zeros(mlxbind.Int32, q), n))
	sight := block.SeeRows(s, d.Scale(), context, batch.Padding)
	hidden := d.through(s, sight, batch.Anchors, batch.Positions, func(i int, in []mlxbind.Array) []mlxbind.Array {
		return d.step(i)(s, in)
	})
	if s.Err() != nil {
		return block.Terms{}
	}
	batch.Labels = d.Known(s, batch.Labels)
	logits := d.BaseLogits(s, hidden)
	var rows, sure mlxbind.Array
	if d.markov != nil {
		rows = d.markov.Rows(s, d.Known(s, batch.Before(s)))
		logits = s.Add(logits, d.markov.biases(s, rows, hidden))
	}
	if d.sure != nil {
		sure = d.sure.logits(s, hidden, rows)
	}
	return block.Judge(s, batch, logits, sure, t.target)
}

// biases are the biases of all slots at once [b, n, vocabulary], from rows [b, n, rank] of the
// tokens before them.
func (m *markov) biases(s *mlxbind.Scope, rows, hidden mlxbind.Array) mlxbind.Array {
	if m.kind != "rnn" {
		bias, _ := m.Bias(s, rows, hidden, mlxbind.Array{})
		return bias
	}
	b, n := rows.Dim(0), rows.Dim(1)
	slot := func(a mlxbind.Array, k int) mlxbind.Array { return s.Reshape(s.Slice(a, 1, k, k+1), b, -1) }
	list := make([]mlxbind.Array, n)
	state := m.Start(s, b)
	for k := range list {
		list[k], state = m.Bias(s, slot(rows, k), slot(hidden, k), state)
	}
	return s.Stack(1, list...)
}
