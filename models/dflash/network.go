package dflash

import (
	"math"

	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/block"
	"firesteel/models/checkpoint"
	"firesteel/models/nn"
)

// network is the drafter's arithmetic over whatever parameters are at hand: loaded ones, or those
// that a gradient is taken of. All of it is float32, the borrowed head apart.
type network struct {
	config *checkpoint.DSpark
	target models.Target
	parameters
}

// parameters are the arrays of checkpoint.DSpark.Tensors by use; matrices are [in, out].
type parameters struct {
	layers                   []layer
	context, contextNorm     mlxbind.Array
	token, mask, position    mlxbind.Array
	outputNorm, output       mlxbind.Array
	markov1, markov2         mlxbind.Array
	confidence, confidence0  mlxbind.Array
	carry, carry0, carryHead mlxbind.Array // rnn only
}

type layer struct {
	attentionNorm, queries, keys, values, attended mlxbind.Array
	forwardNorm, gate, up, down                    mlxbind.Array
}

// arrange finds the use of each array of a list in the order of the file.
func arrange(config *checkpoint.DSpark, list []mlxbind.Array) parameters {
	next := func(to ...*mlxbind.Array) {
		for i, a := range to {
			*a = list[i]
		}
		list = list[len(to):]
	}
	p := parameters{layers: make([]layer, config.Layers)}
	for i := range p.layers {
		y := &p.layers[i]
		next(&y.attentionNorm, &y.queries, &y.keys, &y.values, &y.attended, &y.forwardNorm, &y.gate, &y.up, &y.down)
	}
	next(&p.context, &p.contextNorm, &p.token, &p.mask, &p.position, &p.outputNorm, &p.output,
		&p.markov1, &p.markov2, &p.confidence, &p.confidence0)
	if config.Head == checkpoint.HeadRNN {
		next(&p.carry, &p.carry0, &p.carryHead)
	}
	return p
}

func (n *network) scale() float32 {
	return float32(1 / math.Sqrt(float64(n.config.Width/n.config.Heads)))
}

func (n *network) norm(s *mlxbind.Scope, x, weight mlxbind.Array) mlxbind.Array {
	return nn.RMSNorm(s, x, weight, float32(n.config.Eps))
}

func wide(s *mlxbind.Scope, a mlxbind.Array) mlxbind.Array { return s.AsType(a, mlxbind.Float32) }

// contextRows are the context's keys and values for each layer [b, 2·heads, n, head width], keys'
// heads first, from taps side by side [b, n, taps·hidden]. Rows stand for themselves: they know
// neither each other nor where they stand.
func (n *network) contextRows(s *mlxbind.Scope, taps mlxbind.Array) []mlxbind.Array {
	c := n.norm(s, s.Matmul(wide(s, taps), n.context), n.contextNorm)
	rows := make([]mlxbind.Array, len(n.layers))
	for i, y := range n.layers {
		// Under the same norm as the block's own rows.
		rows[i] = n.keysAndValues(s, y, n.norm(s, c, y.attentionNorm))
	}
	return rows
}

func (n *network) keysAndValues(s *mlxbind.Scope, y layer, x mlxbind.Array) mlxbind.Array {
	return s.Concatenate(1, n.heads(s, s.Matmul(x, y.keys)), n.heads(s, s.Matmul(x, y.values)))
}

// heads turns [b, n, width] into [b, heads, n, head width].
func (n *network) heads(s *mlxbind.Scope, x mlxbind.Array) mlxbind.Array {
	return s.Transpose(s.Reshape(x, x.Dim(0), x.Dim(1), n.config.Heads, -1), 0, 2, 1, 3)
}

// start is the block's input [b, gamma, width]: the anchors [b] as the target embeds them, without
// its scale, then the masks.
func (n *network) start(s *mlxbind.Scope, anchors mlxbind.Array) mlxbind.Array {
	b, gamma := anchors.Dim(0), n.config.Gamma
	h := s.Reshape(s.Matmul(wide(s, n.target.Embed(s, anchors)), n.token), b, 1, n.config.Width)
	if gamma > 1 {
		h = s.Concatenate(1, h, s.Broadcast(n.mask, b, gamma-1, n.config.Width))
	}
	return s.Add(h, n.position)
}

// project makes layer i's queries and its rows of the block from h; see block.Sight.
func (n *network) project(s *mlxbind.Scope, i int, h mlxbind.Array) (queries, rows mlxbind.Array) {
	y := n.layers[i]
	x := n.norm(s, h, y.attentionNorm)
	return n.heads(s, s.Matmul(x, y.queries)), n.keysAndValues(s, y, x)
}

// finish ends layer i with what its queries found [b, gamma, width].
func (n *network) finish(s *mlxbind.Scope, i int, h, found mlxbind.Array) mlxbind.Array {
	y := n.layers[i]
	h = s.Add(h, s.Matmul(found, y.attended))
	x := n.norm(s, h, y.forwardNorm)
	return s.Add(h, s.Matmul(s.Multiply(nn.GELU(s, s.Matmul(x, y.gate)), s.Matmul(x, y.up)), y.down))
}

// hidden runs the whole block, [b, gamma, width].
func (n *network) hidden(s *mlxbind.Scope, sight block.Sight, anchors mlxbind.Array) mlxbind.Array {
	h := n.start(s, anchors)
	for i := range n.layers {
		queries, rows := n.project(s, i, h)
		h = n.finish(s, i, h, sight.Attend(s, i, queries, rows))
	}
	return n.norm(s, h, n.outputNorm)
}

// BaseLogits implements block.Model with the target's own head.
func (n *network) BaseLogits(s *mlxbind.Scope, hidden mlxbind.Array) mlxbind.Array {
	b, slots := hidden.Dim(0), hidden.Dim(1)
	rows := s.Reshape(s.Matmul(hidden, n.output), b*slots, n.config.Hidden)
	return s.Reshape(block.TargetLogits(s, n.target, rows, n.config.Vocabulary), b, slots, n.config.Vocabulary)
}

// Rows implements block.Markov.
func (n *network) Rows(s *mlxbind.Scope, tokens mlxbind.Array) mlxbind.Array {
	return s.Take(n.markov1, tokens, 0)
}

// Start implements block.Markov: rnn carries [b, rank] from slot to slot, zero at first.
func (n *network) Start(s *mlxbind.Scope, b int) mlxbind.Array {
	if n.config.Head != checkpoint.HeadRNN {
		return mlxbind.Array{}
	}
	return s.Zeros(mlxbind.Float32, b, n.config.Rank)
}

// Bias implements block.Markov. rnn: tanh(carried·wH + row + bH), and that times wO.
func (n *network) Bias(s *mlxbind.Scope, row, _, carried mlxbind.Array) (bias, next mlxbind.Array) {
	if n.config.Head != checkpoint.HeadRNN {
		return s.Matmul(row, n.markov2), mlxbind.Array{}
	}
	next = s.Tanh(s.Add(s.Add(s.Matmul(carried, n.carry), row), n.carry0))
	return s.Matmul(next, n.carryHead), next
}

// confidenceLogits is the block.Confidence.
func (n *network) confidenceLogits(s *mlxbind.Scope, hidden, rows mlxbind.Array) mlxbind.Array {
	z := s.Add(s.Matmul(s.Concatenate(-1, hidden, rows), n.confidence), n.confidence0)
	return s.Reshape(z, hidden.Dim(0), hidden.Dim(1))
}
