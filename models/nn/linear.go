package nn

import (
	"firesteel/mlxbind"
	"firesteel/models/checkpoint"
)

// Linear is x·Wᵀ (+ b), W [out, in] as checkpoints store it. Several matrices with the same
// input may be stacked into one, so that one product serves them all.
type Linear struct {
	parts []matrix
	bias  mlxbind.Array // [out], or none
}

// matrix is one stored matrix: plain, seen transposed [in, out] without a copy, or packed.
type matrix struct {
	out    int
	plain  mlxbind.Array
	packed mlxbind.Packed
}

func (m matrix) apply(s *mlxbind.Scope, x mlxbind.Array) mlxbind.Array {
	if m.plain.Valid() {
		return s.Matmul(x, m.plain)
	}
	return s.QuantizedMatmul(x, m.packed)
}

// Linear loads module (without ".weight") with its bias if it has one, for out rows of in
// columns. More modules are stacked below it, all with the same in.
func (l *Loader) Linear(in int, modules ...Module) *Linear {
	linear := &Linear{}
	for len(modules) > 0 && l.err == nil {
		n, spec := l.alike(modules)
		linear.parts = append(linear.parts, l.matrix(in, modules[:n], spec))
		modules = modules[n:]
	}
	return linear
}

// LinearOf is a module of a weight at hand, turned to [in, out], and a bias or none.
func LinearOf(weight, bias mlxbind.Array) *Linear {
	return &Linear{parts: []matrix{{out: weight.Dim(1), plain: weight}}, bias: bias}
}

// EmbeddingOf is a table at hand, without a Head.
func EmbeddingOf(table mlxbind.Array) *Embedding { return &Embedding{table: table} }

// Rows is the part of linear that makes outputs from to to (excluded).
func (l *Loader) Rows(linear *Linear, from, to int) *Linear {
	part := &Linear{}
	if l.err != nil {
		return part
	}
	s := mlxbind.NewScope()
	defer s.Close()
	view := func(a mlxbind.Array, axis, lo, hi int) mlxbind.Array {
		if !a.Valid() {
			return a
		}
		part := s.Slice(a, axis, lo, hi)
		if !mlxbind.OnGPU() {
			// A product with a slice of columns would copy it every time.
			part = s.Contiguous(part)
		}
		return l.Weights.own(s, part)
	}
	for _, m := range linear.parts {
		lo, hi := max(from, 0), min(to, m.out)
		if lo < hi {
			piece := matrix{out: hi - lo}
			if m.plain.Valid() {
				piece.plain = view(m.plain, 1, lo, hi)
			} else {
				piece.packed.Packing = m.packed.Packing
				piece.packed.Weight = view(m.packed.Weight, 0, lo, hi)
				piece.packed.Scales = view(m.packed.Scales, 0, lo, hi)
				piece.packed.Biases = view(m.packed.Biases, 0, lo, hi)
			}
			part.parts = append(part.parts, piece)
		}
		from, to = from-m.out, to-m.out
	}
	for _, m := range part.parts {
		for _, a := range []mlxbind.Array{m.plain, m.packed.Weight, m.packed.Scales, m.packed.Biases} {
			if a.Valid() {
				s.Eval(a)
			}
		}
	}
	l.Fail(s.Err())
	return part
}

// LinearWithBias is Linear for one module that also has module.bias.
func (l *Loader) LinearWithBias(in int, module Module) *Linear {
	linear := l.Linear(in, module)
	linear.bias = l.Tensor(module.Name+".bias", module.Out)
	return linear
}

// Module names a stored matrix and says how many rows it must have.
type Module struct {
	Name string
	Out  int
}

// alike counts how many leading modules are stored the same way, and how.
func (l *Loader) alike(modules []Module) (int, *checkpoint.Quantization) {
	first := l.quantization(modules[0].Name)
	n := 1
	for n < len(modules) {
		next := l.quantization(modules[n].Name)
		if (first == nil) != (next == nil) || first != nil && *first != *next {
			break
		}
		n++
	}
	return n, first
}

func (l *Loader) quantization(module string) *checkpoint.Quantization {
	q, err := l.folder.Quantization(module)
	if err != nil {
		l.Fail(err)
	}
	return q
}

func (l *Loader) matrix(in int, modules []Module, spec *checkpoint.Quantization) matrix {
	names := func(suffix string) (list []string) {
		for _, m := range modules {
			list = append(list, m.Name+suffix)
		}
		return list
	}
	out := 0
	for _, m := range modules {
		out += m.Out
		if t, ok := l.folder.Tensor(m.Name + ".weight"); ok && len(t.Shape) == 2 && t.Shape[0] != m.Out {
			l.Fail(&checkpoint.Error{Kind: checkpoint.KindMismatch, Path: t.File, Tensor: t.Name, Detail: wrongRows(t.Shape, m.Out)})
		}
	}
	if spec == nil {
		return matrix{out: out, plain: l.plain(names(".weight"), out, in)}
	}
	return matrix{out: out, packed: l.packed(in, out, names, *spec)}
}

func (l *Loader) packed(in, out int, names func(string) []string, spec checkpoint.Quantization) mlxbind.Packed {
	p := mlxbind.Packed{Packing: Packing(spec)}
	p.Weight = l.load(names(".weight"), asStored, []int{out, in * spec.Bits / 32})
	p.Scales = l.load(names(".scales"), activation, []int{out, in / spec.GroupSize})
	if l.Has(names(".biases")[0]) {
		p.Biases = l.load(names(".biases"), activation, []int{out, in / spec.GroupSize})
	}
	return p
}

// plain is a matrix seen as [in, out]. On a GPU it is a view of the stored one. On a
// processor, where loading widens it anyway, it is laid out that way: OpenBLAS then need not
// rearrange it at every product.
func (l *Loader) plain(names []string, out, in int) mlxbind.Array {
	if mlxbind.OnGPU() {
		a := l.load(names, activation, []int{out, in})
		return l.Own(func(s *mlxbind.Scope) mlxbind.Array { return s.Transpose(a) })
	}
	return l.load(names, func(s *mlxbind.Scope, a mlxbind.Array) mlxbind.Array {
		return s.Contiguous(s.Transpose(activation(s, a)))
	}, []int{out, in})
}

// Apply maps x [.., in] to [.., out].
func (l *Linear) Apply(s *mlxbind.Scope, x mlxbind.Array) mlxbind.Array {
	parts := make([]mlxbind.Array, len(l.parts))
	for i, m := range l.parts {
		parts[i] = m.apply(s, x)
	}
	y := s.Concatenate(-1, parts...)
	if l.bias.Valid() {
		y = s.Add(y, l.bias)
	}
	return y
}

// Embedding is a table of rows [vocabulary, width], gathered by token; packed rows are
// unpacked after they are gathered, never the whole table.
type Embedding struct {
	table  mlxbind.Array
	packed mlxbind.Packed
	head   matrix
}

// Embedding loads module's table.
func (l *Loader) Embedding(module string, rows, width int) *Embedding {
	e := l.embedding(module, rows, width, activation)
	if e.table.Valid() {
		e.head.plain = l.Own(func(s *mlxbind.Scope) mlxbind.Array { return s.Transpose(e.table) })
	}
	e.head.packed = e.packed
	return e
}

// Lookup loads a table that serves only to look rows up, and has no Head. It stays as it is
// stored: floats are widened row by row as they are gathered.
func (l *Loader) Lookup(module string, rows, width int) *Embedding {
	return l.embedding(module, rows, width, asStored)
}

func (l *Loader) embedding(module string, rows, width int, convert converter) *Embedding {
	spec := l.quantization(module)
	if spec == nil {
		return &Embedding{table: l.pieces(module+".weight", convert, rows, width)}
	}
	p := mlxbind.Packed{Packing: Packing(*spec)}
	p.Weight = l.pieces(module+".weight", asStored, rows, width*spec.Bits/32)
	p.Scales = l.pieces(module+".scales", convert, rows, width/spec.GroupSize)
	if l.Has(module + ".biases") {
		p.Biases = l.pieces(module+".biases", convert, rows, width/spec.GroupSize)
	}
	return &Embedding{packed: p}
}

// Rows gathers tokens [..] → [.., width].
func (e *Embedding) Rows(s *mlxbind.Scope, tokens mlxbind.Array) mlxbind.Array {
	if e.table.Valid() {
		return activation(s, s.Take(e.table, tokens, 0))
	}
	p := e.packed
	dtype := mlxbind.Float32
	if mlxbind.OnGPU() && p.Scales.DType() != mlxbind.Uint8 {
		dtype = p.Scales.DType()
	} else if mlxbind.OnGPU() {
		dtype = mlxbind.BFloat16
	}
	p.Weight = s.Take(p.Weight, tokens, 0)
	p.Scales = activation(s, s.Take(p.Scales, tokens, 0))
	if p.Biases.Valid() {
		p.Biases = activation(s, s.Take(p.Biases, tokens, 0))
	}
	return s.Dequantize(p, dtype)
}

// Head is the table used as an output layer: x [.., width] → [.., vocabulary].
func (e *Embedding) Head(s *mlxbind.Scope, x mlxbind.Array) mlxbind.Array { return e.head.apply(s, x) }
