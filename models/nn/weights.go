package nn

import (
	"context"
	"fmt"
	"strings"

	"firesteel/mlxbind"
	"firesteel/models/checkpoint"
)

// Weights owns a model's arrays on the device.
type Weights struct {
	held  []mlxbind.Array
	bytes int64
}

// Bytes is what the arrays hold on the device.
func (w *Weights) Bytes() int64 { return w.bytes }

// Close frees every array.
func (w *Weights) Close() {
	for i := range w.held {
		w.held[i].Free()
	}
	*w = Weights{}
}

func (w *Weights) own(s *mlxbind.Scope, a mlxbind.Array) mlxbind.Array {
	held := s.Hold(a)
	w.held = append(w.held, held)
	return held
}

// Loader reads modules of one checkpoint into Weights, a tensor at a time: a checkpoint is
// never held twice. The first error is kept; later calls do nothing and return empty modules.
type Loader struct {
	Weights *Weights

	ctx      context.Context
	folder   *checkpoint.Folder
	progress func(done int64)
	done     int64
	read     map[string]bool // names of the tensors read so far
	err      error
}

// NewLoader prepares to read folder. progress, which may be nil, is told the bytes read so far.
func NewLoader(ctx context.Context, folder *checkpoint.Folder, progress func(done int64)) *Loader {
	return &Loader{Weights: &Weights{}, ctx: ctx, folder: folder, progress: progress, read: map[string]bool{}}
}

// Err is the first error.
func (l *Loader) Err() error { return l.err }

// Fail keeps err if it is the first.
func (l *Loader) Fail(err error) {
	if l.err == nil && err != nil {
		l.err = err
	}
}

// Has tells whether the checkpoint has a tensor of this name.
func (l *Loader) Has(name string) bool {
	_, ok := l.folder.Tensor(name)
	return ok
}

// Tensor reads one tensor, of any shape if none is given (−1 matches any length). Floats
// become float32 on a processor.
func (l *Loader) Tensor(name string, shape ...int) mlxbind.Array {
	return l.load([]string{name}, activation, shape)
}

// converter turns an array as stored into the one that is kept.
type converter func(*mlxbind.Scope, mlxbind.Array) mlxbind.Array

func asStored(_ *mlxbind.Scope, a mlxbind.Array) mlxbind.Array { return a }

// activation converts floats to the type that activations have on this device.
func activation(s *mlxbind.Scope, a mlxbind.Array) mlxbind.Array {
	switch a.DType() {
	case mlxbind.BFloat16, mlxbind.Float16:
		if !mlxbind.OnGPU() {
			return s.AsType(a, mlxbind.Float32)
		}
	}
	return a
}

// Own keeps an array that was worked out from loaded ones, evaluated, as long as the weights.
func (l *Loader) Own(work func(s *mlxbind.Scope) mlxbind.Array) mlxbind.Array {
	if l.err != nil {
		return mlxbind.Array{}
	}
	s := mlxbind.NewScope()
	defer s.Close()
	a := work(s)
	if err := s.Eval(a); err != nil {
		l.err = err
		return mlxbind.Array{}
	}
	return l.Weights.own(s, a)
}

// load reads tensors, stacks them along their first axis, converts and keeps the result.
func (l *Loader) load(names []string, convert converter, shape []int) mlxbind.Array {
	if l.err != nil {
		return mlxbind.Array{}
	}
	var raw []byte
	var first checkpoint.Tensor
	dims := []int(nil)
	for i, name := range names {
		t, ok := l.find(name)
		if !ok {
			return mlxbind.Array{}
		}
		if i == 0 {
			first, dims = t, append([]int(nil), t.Shape...)
		} else if t.DType != first.DType || len(t.Shape) != len(dims) {
			l.err = &checkpoint.Error{Kind: checkpoint.KindMismatch, Path: t.File, Tensor: name, Detail: fmt.Sprintf("%v %v does not go with %s, %v %v", t.DType, t.Shape, first.Name, first.DType, first.Shape)}
			return mlxbind.Array{}
		} else {
			dims[0] += t.Shape[0]
		}
		part := make([]byte, t.Size)
		if !l.fill(t, part) {
			return mlxbind.Array{}
		}
		if raw == nil {
			raw = part
		} else {
			raw = append(raw, part...)
		}
	}
	dtype, ok := l.agrees(first, strings.Join(names, " + "), dims, shape)
	if !ok {
		return mlxbind.Array{}
	}
	s := mlxbind.NewScope()
	defer s.Close()
	a := convert(s, s.Data(raw, dtype, dims...))
	if err := s.Eval(a); err != nil {
		l.err = fmt.Errorf("%s: tensor %s: %w", first.File, first.Name, err)
		return mlxbind.Array{}
	}
	l.Weights.bytes += a.Bytes()
	return l.Weights.own(s, a)
}

// tablePiece is how much of a table is read at once.
const tablePiece = 32 << 20

// pieces is load for one tensor that may be huge, such as a table of all tokens: it is read and
// converted a few rows at a time, so that nothing but the result is ever held whole.
func (l *Loader) pieces(name string, convert converter, shape ...int) mlxbind.Array {
	t, ok := l.find(name)
	if !ok || t.Size <= tablePiece || len(t.Shape) != 2 {
		return l.load([]string{name}, convert, shape)
	}
	dtype, ok := l.agrees(t, name, t.Shape, shape)
	if !ok {
		return mlxbind.Array{}
	}
	rows := t.Shape[0]
	step := max(1, int(tablePiece/(t.Size/int64(rows))))
	raw := make([]byte, t.Part(0, step).Size)
	var table mlxbind.Array
	for at := 0; at < rows; at += step {
		part := t.Part(at, min(at+step, rows))
		if !l.fill(part, raw[:part.Size]) {
			break
		}
		s := mlxbind.NewScope()
		piece := convert(s, s.Data(raw[:part.Size], dtype, part.Shape...))
		if at == 0 {
			empty := mlxbind.NewScope()
			table = empty.Hold(empty.Zeros(piece.DType(), t.Shape...))
			empty.Close()
		}
		next := s.Update(table, piece, 0, at)
		// Our handle goes before the update is evaluated, so that it happens in place.
		table.Free()
		table = s.Hold(next)
		if err := s.Eval(table); err != nil {
			l.Fail(fmt.Errorf("%s: tensor %s: %w", t.File, name, err))
		}
		s.Close()
	}
	if l.err != nil {
		table.Free()
		return mlxbind.Array{}
	}
	l.Weights.bytes += table.Bytes()
	l.Weights.held = append(l.Weights.held, table)
	return table
}

// find looks a tensor up that must be there.
func (l *Loader) find(name string) (checkpoint.Tensor, bool) {
	if l.err != nil {
		return checkpoint.Tensor{}, false
	}
	t, ok := l.folder.Tensor(name)
	if !ok {
		l.err = &checkpoint.Error{Kind: checkpoint.KindIncomplete, Path: l.folder.Dir(), Tensor: name, Detail: "missing from the checkpoint"}
	}
	l.read[name] = true
	return t, ok
}

// fill reads a tensor, or a part of one.
func (l *Loader) fill(t checkpoint.Tensor, raw []byte) bool {
	if err := l.folder.Read(l.ctx, t, raw); err != nil {
		l.Fail(err)
		return false
	}
	l.done += t.Size
	if l.progress != nil {
		l.progress(l.done)
	}
	return true
}

// agrees compares a stored shape with the one that the configuration needs, and looks the element
// type up.
func (l *Loader) agrees(t checkpoint.Tensor, names string, have, want []int) (mlxbind.DType, bool) {
	dtype, ok := DType(t.DType)
	switch {
	case !fits(have, want):
		l.err = &checkpoint.Error{Kind: checkpoint.KindMismatch, Path: t.File, Tensor: names,
			Detail: fmt.Sprintf("has shape %v where the configuration needs %v", have, want)}
	case !ok:
		l.err = &checkpoint.Error{Kind: checkpoint.KindUnsupported, Path: t.File, Tensor: t.Name, Detail: fmt.Sprintf("element type %v", t.DType)}
	}
	return dtype, l.err == nil
}

// NothingElse fails if a layer has a tensor that was not read, unless spare (nil: never) says that it
// may lie there: then configuration and weights describe different models, and the text would be wrong
// without a sign. What stands outside the layers is no part of the language model.
func (l *Loader) NothingElse(spare func(bare string) bool) {
	for _, name := range l.folder.Names() {
		bare := checkpoint.Bare(name)
		if l.err == nil && !l.read[name] && strings.HasPrefix(bare, "layers.") && !strings.Contains(name, "rotary_emb.") && (spare == nil || !spare(bare)) {
			t, _ := l.folder.Tensor(name)
			l.err = &checkpoint.Error{Kind: checkpoint.KindMismatch, Path: t.File, Tensor: name, Detail: "the model that config.json describes has no such part"}
		}
	}
}

func fits(have, want []int) bool {
	if len(want) == 0 {
		return true
	}
	if len(have) != len(want) {
		return false
	}
	for i := range want {
		if want[i] != -1 && want[i] != have[i] {
			return false
		}
	}
	return true
}
