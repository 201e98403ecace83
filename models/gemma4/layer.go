package gemma4

import (
	"firesteel/mlxbind"
	"firesteel/models/nn"
)

// Shape is what one decoder layer is built from.
type Shape struct {
	Hidden, Intermediate int
	Heads, KeyHeads      int
	HeadDim              int
	SharedValues         bool // values are the normalized key projection, before its weight and rotation
	Borrows              bool // attends to the keys and values of an earlier layer and has none of its own
	TokenInput           int  // width of the token's own input to the layer; 0: there is none
	Eps                  float32
}

// Layer is one decoder layer of Gemma 4, in the target and in its drafters:
//
//	h += postAttention(o(attention(norm(h))))
//	h += postFeedforward(down(gelu(gate f)·up f)), f = preFeedforward(h)
//	h += postInput(inputProjection(gelu(inputGate h)·input)), in the small models
//	h *= scalar
//
// Queries and keys are normalized per head with a weight, values without, and scores are not
// scaled.
type Layer struct {
	Shape
	inputNorm, postAttention, preFeedforward, postFeedforward mlxbind.Array // [hidden]
	scalar                                                    mlxbind.Array // [hidden], the same value throughout
	headNorm                                                  mlxbind.Array // [heads, head dim]: queries, keys, then ones for values of their own
	projection                                                *nn.Linear    // queries, keys, values, stacked
	keys                                                      *nn.Linear    // the part of projection after the queries
	output, gate, up, down                                    *nn.Linear

	// With a token input only.
	inputGate, inputProjection *nn.Linear
	postInput                  mlxbind.Array // [hidden]
}

// Scale is what attention scores are multiplied by.
const Scale = 1

// LoadLayer reads the layer whose tensors begin with prefix ("model.layers.3.").
func LoadLayer(l *nn.Loader, prefix string, shape Shape) *Layer {
	norm := func(name string, n int) mlxbind.Array { return l.Tensor(prefix+name+".weight", n) }
	width := shape.HeadDim
	query, key := shape.Heads*width, shape.KeyHeads*width
	modules := []nn.Module{{Name: prefix + "self_attn.q_proj", Out: query}}
	if !shape.Borrows {
		modules = append(modules, nn.Module{Name: prefix + "self_attn.k_proj", Out: key})
	}
	if !shape.Borrows && !shape.SharedValues {
		modules = append(modules, nn.Module{Name: prefix + "self_attn.v_proj", Out: key})
	}
	layer := &Layer{
		Shape:           shape,
		inputNorm:       norm("input_layernorm", shape.Hidden),
		postAttention:   norm("post_attention_layernorm", shape.Hidden),
		preFeedforward:  norm("pre_feedforward_layernorm", shape.Hidden),
		postFeedforward: norm("post_feedforward_layernorm", shape.Hidden),
		projection:      l.Linear(shape.Hidden, modules...),
		output:          l.Linear(query, nn.Module{Name: prefix + "self_attn.o_proj", Out: shape.Hidden}),
		// Not stacked: their results are multiplied at once, and halves of rows are slow to read.
		gate: l.Linear(shape.Hidden, nn.Module{Name: prefix + "mlp.gate_proj", Out: shape.Intermediate}),
		up:   l.Linear(shape.Hidden, nn.Module{Name: prefix + "mlp.up_proj", Out: shape.Intermediate}),
		down: l.Linear(shape.Intermediate, nn.Module{Name: prefix + "mlp.down_proj", Out: shape.Hidden}),
	}
	// One value would become part of a compiled kernel, and every layer would need its own.
	scalar := l.Tensor(prefix+"layer_scalar", 1)
	layer.scalar = l.Own(func(s *mlxbind.Scope) mlxbind.Array { return s.Contiguous(s.Broadcast(scalar, shape.Hidden)) })
	if shape.TokenInput > 0 {
		layer.inputGate = l.Linear(shape.Hidden, nn.Module{Name: prefix + "per_layer_input_gate", Out: shape.TokenInput})
		layer.inputProjection = l.Linear(shape.TokenInput, nn.Module{Name: prefix + "per_layer_projection", Out: shape.Hidden})
		layer.postInput = norm("post_per_layer_input_norm", shape.Hidden)
	}
	queryNorm := norm("self_attn.q_norm", width)
	if shape.Borrows {
		layer.headNorm = queryNorm
		return layer
	}
	layer.keys = l.Rows(layer.projection, query, query+len(modules[1:])*key)
	keyNorm := norm("self_attn.k_norm", width)
	layer.headNorm = l.Own(func(s *mlxbind.Scope) mlxbind.Array {
		rows := []mlxbind.Array{s.Broadcast(queryNorm, shape.Heads, width), s.Broadcast(keyNorm, shape.KeyHeads, width)}
		if !shape.SharedValues {
			rows = append(rows, s.AsType(s.Broadcast(s.Scalar(1, mlxbind.Float32), shape.KeyHeads, width), queryNorm.DType()))
		}
		return s.Contiguous(s.Concatenate(0, rows...))
	})
	return layer
}

// NewCache is an empty cache for the layer; window 0 means unlimited.
func (y *Layer) NewCache(window int) *nn.Cache { return nn.NewCache(y.KeyHeads, y.KeyHeads, window) }

// Project maps h [batch, n, hidden] to queries [batch, heads, n, d] and cache rows
// [batch, 2·key heads, n, d], both turned to their positions; a layer that borrows has no rows
// (the zero Array).
func (y *Layer) Project(s *mlxbind.Scope, h mlxbind.Array, turn nn.Turn) (queries, rows mlxbind.Array) {
	x := y.projection.Apply(s, nn.RMSNorm(s, h, y.inputNorm, y.Eps))
	if y.Borrows {
		x = s.Reshape(x, x.Dim(0), x.Dim(1), y.Heads, y.HeadDim)
		return turn.Apply(s, nn.RMSNorm(s, x, y.headNorm, y.Eps)), mlxbind.Array{}
	}
	turned, values := y.turn(s, x, y.headNorm, turn)
	queries = s.Slice(turned, 1, 0, y.Heads)
	keys := s.Slice(turned, 1, y.Heads, y.Heads+y.KeyHeads)
	return queries, s.Concatenate(1, keys, values)
}

// Rows maps context rows [batch, n, hidden], which no layer norm touches, to cache rows.
func (y *Layer) Rows(s *mlxbind.Scope, context mlxbind.Array, turn nn.Turn) mlxbind.Array {
	keys, values := y.turn(s, y.keys.Apply(s, context), s.Slice(y.headNorm, 0, y.Heads, y.headNorm.Dim(0)), turn)
	return s.Concatenate(1, keys, values)
}

// turn normalizes projected heads [batch, n, heads·d] and turns all but the values.
func (y *Layer) turn(s *mlxbind.Scope, x, weight mlxbind.Array, turn nn.Turn) (turned, values mlxbind.Array) {
	all := weight.Dim(0)
	x = s.Reshape(x, x.Dim(0), x.Dim(1), all, y.HeadDim)
	if y.SharedValues {
		plain := nn.RMSNorm(s, x, mlxbind.Array{}, y.Eps)
		values = s.Slice(plain, 2, all-y.KeyHeads, all)
		turned = turn.Apply(s, nn.RMSNorm(s, x, weight, y.Eps))
	} else {
		x = nn.RMSNorm(s, x, weight, y.Eps)
		values = s.Slice(x, 2, all-y.KeyHeads, all)
		turned = turn.Apply(s, s.Slice(x, 2, 0, all-y.KeyHeads))
	}
	return turned, s.Transpose(values, 0, 2, 1, 3)
}

// Finish adds what attention found [batch, n, heads·d] to h and runs the feedforward half.
func (y *Layer) Finish(s *mlxbind.Scope, h, attended mlxbind.Array) mlxbind.Array {
	return y.FinishWith(s, h, attended, mlxbind.Array{})
}

// FinishWith is Finish for a layer that may take the tokens' own input [batch, n, token input]
// too; the zero Array for one that does not.
func (y *Layer) FinishWith(s *mlxbind.Scope, h, attended, input mlxbind.Array) mlxbind.Array {
	h = s.Add(h, nn.RMSNorm(s, y.output.Apply(s, attended), y.postAttention, y.Eps))
	f := nn.RMSNorm(s, h, y.preFeedforward, y.Eps)
	fed := y.down.Apply(s, s.Multiply(nn.GELU(s, y.gate.Apply(s, f)), y.up.Apply(s, f)))
	h = s.Add(h, nn.RMSNorm(s, fed, y.postFeedforward, y.Eps))
	if y.TokenInput > 0 {
		own := s.Multiply(nn.GELU(s, y.inputGate.Apply(s, h)), input)
		h = s.Add(h, nn.RMSNorm(s, y.inputProjection.Apply(s, own), y.postInput, y.Eps))
	}
	return s.Multiply(h, y.scalar)
}
