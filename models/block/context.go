package block

import (
	"firesteel/mlxbind"
	"firesteel/models/nn"
)

// Context is the keys and values of the target's rows so far, one cache a layer: rows are
// projected once, when they arrive, and only read afterwards.
type Context struct{ nn.State }

// Sight is how a block of queries sees what came before it: the only thing that differs
// between one context, one context for several anchors, and one for each.
type Sight interface {
	// Attend lets queries [b, heads, g, d] look at layer's context and at their own block,
	// whose keys and values are block [b, 2·key heads, g, d]; result [b, g, heads·d].
	Attend(s *mlxbind.Scope, layer int, queries, block mlxbind.Array) mlxbind.Array
}

// one is a single context, seen by every anchor of the batch up to each one's position.
type one struct {
	d       *Drafter
	context *Context
	mask    mlxbind.Array // [b, 1, 1, rows + g], or none
}

// See is the sight of anchors at positions [b], all over one context; spare is how many of its
// last rows may lie at or beyond a position.
func (d *Drafter) See(s *mlxbind.Scope, context *Context, positions mlxbind.Array, spare int) Sight {
	sight := &one{d: d, context: context}
	if rows := context.Position(); spare > 0 && rows > 0 {
		columns := s.Arange(0, float64(rows+d.Block()), 1, mlxbind.Int32)
		past := s.Less(columns, s.Reshape(s.AsType(positions, mlxbind.Int32), -1, 1, 1, 1))
		own := s.GreaterEqual(columns, s.Scalar(float64(rows), mlxbind.Int32))
		sight.mask = nn.Additive(s, s.Or(past, own), d.parts.DType)
	}
	return sight
}

func (o *one) Attend(s *mlxbind.Scope, layer int, queries, block mlxbind.Array) mlxbind.Array {
	if o.context.Position() == 0 {
		return attend(s, o.d.parts.Scale, queries, block, mlxbind.Array{}, mlxbind.Array{}, o.mask)
	}
	keys, values := o.context.Caches[layer].Kept(s)
	return attend(s, o.d.parts.Scale, queries, block, keys, values, o.mask)
}

// each is a context of its own for every anchor, padded to the longest.
type each struct {
	d        *Drafter
	contexts []*Context
	longest  int
	mask     mlxbind.Array // [b, 1, 1, longest + g]
}

// SeeEach is the sight of anchors with a context each, every anchor standing right after its
// context's rows.
func (d *Drafter) SeeEach(s *mlxbind.Scope, contexts []*Context) Sight {
	sight := &each{d: d, contexts: contexts}
	lengths := make([]int32, len(contexts))
	for i, c := range contexts {
		lengths[i] = int32(c.Position())
		sight.longest = max(sight.longest, c.Position())
	}
	columns := s.Arange(0, float64(sight.longest+d.Block()), 1, mlxbind.Int32)
	past := s.Less(columns, s.Ints(lengths, len(contexts), 1, 1, 1))
	own := s.GreaterEqual(columns, s.Scalar(float64(sight.longest), mlxbind.Int32))
	sight.mask = nn.Additive(s, s.Or(past, own), d.parts.DType)
	return sight
}

func (e *each) Attend(s *mlxbind.Scope, layer int, queries, block mlxbind.Array) mlxbind.Array {
	var keys, values []mlxbind.Array
	for _, c := range e.contexts {
		shape := block.Shape()
		pad := func(rows mlxbind.Array, n int) mlxbind.Array {
			if missing := e.longest - n; missing > 0 {
				filler := s.Zeros(block.DType(), 1, shape[1]/2, missing, shape[3])
				if n == 0 {
					return filler
				}
				return s.Concatenate(2, rows, filler)
			}
			return rows
		}
		var k, v mlxbind.Array
		if c.Position() > 0 {
			k, v = c.Caches[layer].Kept(s)
		}
		keys, values = append(keys, pad(k, c.Position())), append(values, pad(v, c.Position()))
	}
	if e.longest == 0 {
		return attend(s, e.d.parts.Scale, queries, block, mlxbind.Array{}, mlxbind.Array{}, mlxbind.Array{})
	}
	return attend(s, e.d.parts.Scale, queries, block, s.Concatenate(0, keys...), s.Concatenate(0, values...), e.mask)
}

// rows is the sight of anchors with a context's rows at hand for each.
type rows struct {
	scale  float32
	layers []mlxbind.Array
	mask   mlxbind.Array
}

// SeeRows is the sight of b anchors each with n rows of context, one array [b, 2·key heads, n, d] a
// layer; padding [b, n] is 1 where a row stands for nothing.
func SeeRows(s *mlxbind.Scope, scale float32, layers []mlxbind.Array, padding mlxbind.Array) Sight {
	past := s.Equal(padding, s.Scalar(0, padding.DType()))
	past = s.Reshape(past, past.Dim(0), 1, 1, past.Dim(1))
	return &rows{scale: scale, layers: layers, mask: nn.Additive(s, past, mlxbind.Float32)}
}

func (r *rows) Attend(s *mlxbind.Scope, layer int, queries, block mlxbind.Array) mlxbind.Array {
	half := block.Dim(1) / 2
	all := r.layers[layer]
	own := s.Zeros(mlxbind.Float32, block.Dim(0), 1, 1, block.Dim(2))
	return attend(s, r.scale, queries, block, s.Slice(all, 1, 0, half), s.Slice(all, 1, half, 2*half), s.Concatenate(3, r.mask, own))
}

// attend joins context rows [1 or b, ..] and block rows, and lets every query see all of them
// that the mask leaves.
func attend(s *mlxbind.Scope, scale float32, queries, block, keys, values, mask mlxbind.Array) mlxbind.Array {
	half := block.Dim(1) / 2
	k, v := s.Slice(block, 1, 0, half), s.Slice(block, 1, half, 2*half)
	if keys.Valid() {
		if b := block.Dim(0); keys.Dim(0) != b {
			shape := keys.Shape()
			keys = s.Broadcast(keys, b, shape[1], shape[2], shape[3])
			values = s.Broadcast(values, b, shape[1], shape[2], shape[3])
		}
		k, v = s.Concatenate(2, keys, k), s.Concatenate(2, values, v)
	}
	return nn.Attend(s, queries, k, v, scale, mask)
}
