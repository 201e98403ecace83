// Package decoder is what targets have in common that are a stack of decoder layers: the way from
// tokens through the layers, over caches, taps and masks, to logits. A family brings its layers.
package decoder

import (
	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/nn"
)

// Layer is what a family brings. h is [1, n, hidden].
type Layer interface {
	// NewCache is an empty cache for the layer; window 0 means unlimited.
	NewCache(window int) *nn.Cache
	// Project maps h to queries [1, heads, n, d] and cache rows [1, 2·key heads, n, d], both turned
	// to their positions; no rows (the zero Array) for a layer that borrows an earlier one's.
	Project(s *mlxbind.Scope, h mlxbind.Array, turn nn.Turn) (queries, rows mlxbind.Array)
	// Finish adds what attention found [1, n, heads·d] to h and runs the rest of the layer.
	Finish(s *mlxbind.Scope, h, attended mlxbind.Array) mlxbind.Array
}

// Place is a layer where it stands.
type Place struct {
	Layer
	Rotary *nn.Rotary
	Window int // how many positions a query sees, its own included; 0: all
	Source int // the layer whose keys and values it attends to: itself, unless it borrows
}

// Inputs are what some families give to every layer besides the residual stream.
type Inputs interface {
	// All is every layer's input, in one array, for tokens [1, n] whose scaled embedding is h.
	All(s *mlxbind.Scope, tokens, h mlxbind.Array) mlxbind.Array
	// Finish is layer i's Finish, given what All made.
	Finish(s *mlxbind.Scope, i int, h, attended, all mlxbind.Array) mlxbind.Array
}

// Parts is what a Target is made of.
type Parts struct {
	Geometry models.Geometry
	Weights  *nn.Weights // owns every array

	Table     *nn.Embedding
	Embedding float64 // what embedded rows are multiplied by
	Layers    []Place // those that borrow come last
	Inputs    Inputs  // nil without
	Scale     float32 // what attention scores are multiplied by
	Norm      mlxbind.Array
	Eps       float32
	Head      *nn.Linear // nil when the table serves as head
	Cap       float64    // of the logits; 0: none
}

// Target implements models.Target.
type Target struct {
	parts Parts
	// between[i] finishes layer i−1 and projects for layer i; the last one ends with the norm.
	between []*nn.Segment
	logits  *nn.Segment
}

// New puts parts together. Close frees them.
func New(parts Parts) *Target {
	t := &Target{parts: parts}
	for i := 0; i <= len(parts.Layers); i++ {
		t.between = append(t.between, nn.NewSegment(t.step(i)))
	}
	t.logits = nn.NewSegment(func(s *mlxbind.Scope, in []mlxbind.Array) []mlxbind.Array {
		var y mlxbind.Array
		if parts.Head != nil {
			y = parts.Head.Apply(s, in[0])
		} else {
			y = parts.Table.Head(s, in[0])
		}
		return []mlxbind.Array{s.AsType(nn.SoftCap(s, y, parts.Cap), mlxbind.Float32)}
	})
	return t
}

// step builds segment i: from (h, attended, the turn's arrays), or (tokens, …) at the front, to
// (h, queries, rows), or (h, final) at the end. Layers that borrow make no rows. With inputs of
// their own, the front's results end with them, and so does what later segments are given.
func (t *Target) step(i int) mlxbind.Graph {
	p := &t.parts
	return func(s *mlxbind.Scope, in []mlxbind.Array) []mlxbind.Array {
		var h, inputs mlxbind.Array
		switch {
		case i == 0:
			tokens := s.Reshape(in[0], 1, -1)
			h = p.Table.Rows(s, tokens)
			if p.Embedding != 1 {
				h = s.Multiply(h, s.Scalar(p.Embedding, h.DType()))
			}
			if p.Inputs != nil {
				inputs = p.Inputs.All(s, tokens, h)
			}
			in = in[1:]
		case p.Inputs != nil:
			last := len(in) - 1
			h = p.Inputs.Finish(s, i-1, in[0], in[1], in[last])
			in = in[2:last]
		default:
			h = p.Layers[i-1].Finish(s, in[0], in[1])
			in = in[2:]
		}
		if i == len(p.Layers) {
			return []mlxbind.Array{h, nn.RMSNorm(s, h, p.Norm, p.Eps)}
		}
		queries, rows := p.Layers[i].Project(s, h, p.Layers[i].Rotary.Over(in))
		out := []mlxbind.Array{h, queries}
		if rows.Valid() {
			out = append(out, rows)
		}
		if i == 0 && p.Inputs != nil {
			out = append(out, inputs)
		}
		return out
	}
}

// Embed implements models.Target.
func (t *Target) Embed(s *mlxbind.Scope, tokens mlxbind.Array) mlxbind.Array {
	return t.parts.Table.Rows(s, tokens)
}

// Geometry implements models.Target.
func (t *Target) Geometry() models.Geometry { return t.parts.Geometry }

// Bytes implements models.Target.
func (t *Target) Bytes() int64 { return t.parts.Weights.Bytes() }

// Close implements models.Target.
func (t *Target) Close() {
	for _, g := range t.between {
		g.Close()
	}
	t.logits.Close()
	t.parts.Weights.Close()
}

// NewState implements models.Target.
func (t *Target) NewState() models.State {
	st := &nn.State{}
	for i, y := range t.parts.Layers {
		// Those that borrow come last, so that cache i is layer i's.
		if y.Source == i {
			st.Caches = append(st.Caches, y.NewCache(y.Window))
		}
	}
	return st
}

// Forward implements models.Target.
func (t *Target) Forward(s *mlxbind.Scope, state models.State, tokens mlxbind.Array, taps []int) (mlxbind.Array, []mlxbind.Array) {
	out := s.Within(func(s *mlxbind.Scope) []mlxbind.Array {
		hidden, tapped := t.forward(s, state, tokens, taps)
		return append([]mlxbind.Array{hidden}, tapped...)
	})
	if s.Err() != nil {
		return mlxbind.Array{}, make([]mlxbind.Array, len(taps))
	}
	return out[0], out[1:]
}

func (t *Target) forward(s *mlxbind.Scope, state models.State, tokens mlxbind.Array, taps []int) (mlxbind.Array, []mlxbind.Array) {
	caches := state.(*nn.State).Caches
	n := tokens.Dim(0)
	offset := s.Ints([]int32{int32(state.Position())}, 1)
	layers := t.parts.Layers
	turns := map[*nn.Rotary]nn.Turn{}
	for _, y := range layers {
		if _, ok := turns[y.Rotary]; !ok {
			turns[y.Rotary] = y.Rotary.At(s, offset, n)
		}
	}
	masks := map[int]mlxbind.Array{}
	tapped := make([]mlxbind.Array, len(taps))
	tap := func(layer int, h mlxbind.Array) {
		for i, id := range taps {
			if id == layer {
				tapped[i] = s.Reshape(h, n, t.parts.Geometry.Hidden)
			}
		}
	}
	keys, values := make([]mlxbind.Array, len(caches)), make([]mlxbind.Array, len(caches))
	var inputs []mlxbind.Array // of the tokens: one array, or none
	out := t.between[0].Call(s, n, append([]mlxbind.Array{tokens}, turns[layers[0].Rotary].Arrays()...)...)
	if last := len(out) - 1; t.parts.Inputs != nil && last > 0 {
		inputs, out = out[last:], out[:last]
	}
	for i, y := range layers {
		if s.Err() != nil {
			return mlxbind.Array{}, tapped
		}
		h, queries := out[0], out[1]
		tap(i-1, h)
		if y.Source == i {
			keys[i], values[i] = caches[i].Append(s, out[2])
		}
		k, v := keys[y.Source], values[y.Source]
		mask, ok := masks[y.Window]
		if !ok {
			mask = nn.Mask(s, n, k.Dim(2), caches[y.Source].Window(), queries.DType())
			masks[y.Window] = mask
		}
		attended := nn.Attend(s, queries, k, v, t.parts.Scale, mask)
		in := []mlxbind.Array{h, attended}
		if i+1 < len(layers) {
			in = append(in, turns[layers[i+1].Rotary].Arrays()...)
		}
		out = t.between[i+1].Call(s, n, append(in, inputs...)...)
	}
	if s.Err() != nil {
		return mlxbind.Array{}, tapped
	}
	tap(t.parts.Geometry.Layers-1, out[0])
	tap(t.parts.Geometry.Layers, out[1])
	return s.Reshape(out[1], n, t.parts.Geometry.Hidden), tapped
}

// Logits implements models.Target.
func (t *Target) Logits(s *mlxbind.Scope, hidden mlxbind.Array) mlxbind.Array {
	out := t.logits.Call(s, hidden.Dim(0), hidden)
	if s.Err() != nil {
		return mlxbind.Array{}
	}
	return out[0]
}
