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

// shared is the sight of anchors over rows that are at hand, several anchors to a text.
type shared struct {
	scale  float32
	layers []mlxbind.Array // [q, 2·key heads, n, d]
	mask   mlxbind.Array   // [q, 1, a, 1, n]
}

// SeeRows is the sight of b anchors over the rows of q texts, one array [q, 2·key heads, n, d] a
// layer; b is a multiple of q, the anchors of the first text come first. padding [b, n] is 1 where
// an anchor does not see a row.
func SeeRows(s *mlxbind.Scope, scale float32, layers []mlxbind.Array, padding mlxbind.Array) Sight {
	q, b, n := layers[0].Dim(0), padding.Dim(0), padding.Dim(1)
	past := s.Equal(padding, s.Scalar(0, padding.DType()))
	return &shared{scale: scale, layers: layers, mask: nn.Additive(s, s.Reshape(past, q, 1, b/q, 1, n), mlxbind.Float32)}
}

// Attend reads each text's rows once for all its anchors.
func (r *shared) Attend(s *mlxbind.Scope, layer int, queries, block mlxbind.Array) mlxbind.Array {
	all := r.layers[layer]
	q, kv, n := all.Dim(0), all.Dim(1)/2, all.Dim(2)
	b, heads, g, d := queries.Dim(0), queries.Dim(1), queries.Dim(2), queries.Dim(3)
	a, own := b/q, heads/kv*g // own: queries of an anchor that share a key head
	half := func(x mlxbind.Array, second int) mlxbind.Array { return s.Slice(x, 1, second*kv, (second+1)*kv) }
	// From [b, kv, own, ..] to [q, kv, a, own, ..] and back.
	gather := func(x mlxbind.Array) mlxbind.Array {
		return s.Transpose(s.Reshape(x, q, a, kv, own, -1), 0, 2, 1, 3, 4)
	}
	spread := func(x mlxbind.Array) mlxbind.Array {
		return s.Reshape(s.Transpose(x, 0, 2, 1, 3, 4), b, kv, own, -1)
	}
	queries = s.Reshape(s.Multiply(queries, s.Scalar(float64(r.scale), queries.DType())), b, kv, own, d)
	before := s.Matmul(s.Reshape(gather(queries), q, kv, a*own, d), s.Transpose(half(all, 0), 0, 1, 3, 2))
	before = s.Add(s.Reshape(before, q, kv, a, own, n), r.mask)
	within := gather(s.Matmul(queries, s.Transpose(half(block, 0), 0, 1, 3, 2)))
	weights := s.Softmax(s.Concatenate(-1, before, within), -1)
	before = s.Matmul(s.Reshape(s.Slice(weights, -1, 0, n), q, kv, a*own, n), half(all, 1))
	within = s.Matmul(spread(s.Slice(weights, -1, n, n+g)), half(block, 1))
	found := s.Add(spread(s.Reshape(before, q, kv, a, own, d)), within)
	return s.Reshape(s.Transpose(s.Reshape(found, b, heads, g, d), 0, 2, 1, 3), b, g, heads*d)
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
