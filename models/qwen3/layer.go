package qwen3

import (
	"math"

	"firesteel/mlxbind"
	"firesteel/models/nn"
)

// Shape is what every decoder layer of a model is built from.
type Shape struct {
	Hidden, Intermediate int
	Heads, KeyHeads      int
	HeadDim              int
	Eps                  float32
}

// Scale is what attention scores are multiplied by: 1/√head dim.
func (p Shape) Scale() float32 { return float32(1 / math.Sqrt(float64(p.HeadDim))) }

// Layer is one decoder layer of Qwen3, in the target and in its drafters:
//
//	h += o(attention(norm(h)))
//	h += down(silu(gate f)·up f), f = postAttention(h)
//
// Queries and keys are normalized per head with a weight, values not at all.
type Layer struct {
	Shape
	inputNorm, postAttention mlxbind.Array // [hidden]
	headNorm                 mlxbind.Array // [heads + key heads, head dim]: queries, then keys
	projection               *nn.Linear    // queries, keys, values, stacked
	keys                     *nn.Linear    // the part of projection after the queries
	output, gate, up, down   *nn.Linear
}

// LoadLayer reads the layer whose tensors begin with prefix ("model.layers.3.").
func LoadLayer(l *nn.Loader, prefix string, shape Shape) *Layer {
	norm := func(name string, n int) mlxbind.Array { return l.Tensor(prefix+name+".weight", n) }
	query, key := shape.Heads*shape.HeadDim, shape.KeyHeads*shape.HeadDim
	layer := &Layer{
		Shape:         shape,
		inputNorm:     norm("input_layernorm", shape.Hidden),
		postAttention: norm("post_attention_layernorm", shape.Hidden),
		projection: l.Linear(shape.Hidden, nn.Module{Name: prefix + "self_attn.q_proj", Out: query},
			nn.Module{Name: prefix + "self_attn.k_proj", Out: key}, nn.Module{Name: prefix + "self_attn.v_proj", Out: key}),
		output: l.Linear(query, nn.Module{Name: prefix + "self_attn.o_proj", Out: shape.Hidden}),
		// Not stacked: their results are multiplied at once, and halves of rows are slow to read.
		gate: l.Linear(shape.Hidden, nn.Module{Name: prefix + "mlp.gate_proj", Out: shape.Intermediate}),
		up:   l.Linear(shape.Hidden, nn.Module{Name: prefix + "mlp.up_proj", Out: shape.Intermediate}),
		down: l.Linear(shape.Intermediate, nn.Module{Name: prefix + "mlp.down_proj", Out: shape.Hidden}),
	}
	layer.keys = l.Rows(layer.projection, query, query+2*key)
	queryNorm, keyNorm := norm("self_attn.q_norm", shape.HeadDim), norm("self_attn.k_norm", shape.HeadDim)
	layer.headNorm = l.Own(func(s *mlxbind.Scope) mlxbind.Array {
		return s.Contiguous(s.Concatenate(0, s.Broadcast(queryNorm, shape.Heads, shape.HeadDim), s.Broadcast(keyNorm, shape.KeyHeads, shape.HeadDim)))
	})
	return layer
}

// NewCache is an empty cache for the layer; window 0 means unlimited.
func (y *Layer) NewCache(window int) *nn.Cache { return nn.NewCache(y.KeyHeads, y.KeyHeads, window) }

// Project maps h [batch, n, hidden] to queries [batch, heads, n, d] and cache rows
// [batch, 2·key heads, n, d], both turned to their positions.
func (y *Layer) Project(s *mlxbind.Scope, h mlxbind.Array, turn nn.Turn) (queries, rows mlxbind.Array) {
	x := y.projection.Apply(s, nn.RMSNorm(s, h, y.inputNorm, y.Eps))
	turned, values := y.turn(s, x, y.headNorm, turn)
	queries = s.Slice(turned, 1, 0, y.Heads)
	return queries, s.Concatenate(1, s.Slice(turned, 1, y.Heads, y.Heads+y.KeyHeads), values)
}

// Rows maps context rows [batch, n, hidden], which no layer norm touches, to cache rows.
func (y *Layer) Rows(s *mlxbind.Scope, context mlxbind.Array, turn nn.Turn) mlxbind.Array {
	keys, values := y.turn(s, y.keys.Apply(s, context), s.Slice(y.headNorm, 0, y.Heads, y.Heads+y.KeyHeads), turn)
	return s.Concatenate(1, keys, values)
}

// turn splits projected heads [batch, n, heads·d], normalizes with weight [heads but values', d]
// and turns all but the values.
func (y *Layer) turn(s *mlxbind.Scope, x, weight mlxbind.Array, turn nn.Turn) (turned, values mlxbind.Array) {
	first := weight.Dim(0)
	x = s.Reshape(x, x.Dim(0), x.Dim(1), first+y.KeyHeads, y.HeadDim)
	turned = turn.Apply(s, nn.RMSNorm(s, s.Slice(x, 2, 0, first), weight, y.Eps))
	return turned, s.Transpose(s.Slice(x, 2, first, first+y.KeyHeads), 0, 2, 1, 3)
}

// Finish adds what attention found [batch, n, heads·d] to h and runs the feedforward half.
func (y *Layer) Finish(s *mlxbind.Scope, h, attended mlxbind.Array) mlxbind.Array {
	h = s.Add(h, y.output.Apply(s, attended))
	f := nn.RMSNorm(s, h, y.postAttention, y.Eps)
	return s.Add(h, y.down.Apply(s, s.Multiply(nn.SiLU(s, y.gate.Apply(s, f)), y.up.Apply(s, f))))
}
