// Package deepspec is DeepSpec's drafter: a few decoder layers that look at rows tapped from
// the target and fill a whole block of guesses at once, a Markov head that makes each guess
// depend on the one before it, and a head that says how sure it is.
package deepspec

import (
	"context"
	"fmt"
	"slices"

	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/block"
	"firesteel/models/checkpoint"
	"firesteel/models/nn"
)

// Drafter is a DeepSpec drafter.
type Drafter struct {
	*block.Drafter

	hidden    int
	taps      []int
	mask      int32
	eps       float32
	embedding float64 // what embedded rows are multiplied by

	weights    *nn.Weights
	embed      func(s *mlxbind.Scope, tokens mlxbind.Array) mlxbind.Array // [..] → [.., hidden], not scaled
	logits     func(s *mlxbind.Scope, rows mlxbind.Array) mlxbind.Array   // [n, hidden] → [n, vocabulary]
	project    *nn.Linear                                                 // taps side by side → hidden
	inputNorm  mlxbind.Array
	outputNorm mlxbind.Array
	layers     []decoder
	rotary     *nn.Rotary
	markov     *markov // nil without one
	sure       *sure   // nil without one

	between []*nn.Segment
	extend  *nn.Segment
}

// Load reads a drafter. tables, unless it is nil, is a target whose embedding and head are used
// instead of the drafter's own, which must be the same and are not read; it must outlive the
// drafter. progress, which may be nil, is told the bytes read.
func Load(ctx context.Context, folder *checkpoint.Folder, tables models.Target, progress func(done int64)) (*Drafter, error) {
	config := folder.Config()
	c := &checkpoint.Fields{Config: config}
	parts := block.Parts{Size: c.Count("block_size"), Vocabulary: c.Count("vocab_size")}
	d := &Drafter{
		hidden: c.Count("hidden_size"),
		taps:   c.Wholes("target_layer_ids"), mask: int32(c.Whole("mask_token_id", -1)),
		eps: float32(c.Number("rms_norm_eps", 1e-6)),
	}
	limit := c.Number("final_logit_softcapping", 0)
	depth, rank := c.Count("num_hidden_layers"), c.Whole("markov_rank", 0)
	kind := c.Text("markov_head_type", "vanilla")
	confident, sureMarkov := c.Flag("enable_confidence_head", false), c.Flag("confidence_head_with_markov", false)
	if c.Err == nil && len(d.taps) == 0 {
		c.Err = config.Fail("target_layer_ids", "is empty")
	}
	if c.Err == nil && (d.mask < 0 || int(d.mask) >= parts.Vocabulary) {
		c.Err = config.Fail("mask_token_id", "is outside the vocabulary of %d", parts.Vocabulary)
	}
	if c.Err == nil && confident && sureMarkov && rank == 0 {
		c.Err = config.Fail("confidence_head_with_markov", "needs a markov_rank above 0")
	}
	own := readFamily(c)
	if threshold := c.Number("confidence_threshold", 0); threshold > 0 {
		parts.Thresholds = slices.Repeat([]float64{threshold}, parts.Size)
	}
	if c.Err != nil {
		return nil, c.Err
	}
	parts.Scale = own.scale

	l := nn.NewLoader(ctx, folder, progress)
	d.weights = l.Weights
	d.embedding = own.embedding(folder)
	if tables != nil {
		d.embed, d.logits = tables.Embed, func(s *mlxbind.Scope, rows mlxbind.Array) mlxbind.Array {
			return s.AsType(tables.Logits(s, rows), parts.DType)
		}
	} else {
		d.embed = l.Embedding("embed_tokens", parts.Vocabulary, d.hidden).Rows
		head := l.Linear(d.hidden, nn.Module{Name: "lm_head", Out: parts.Vocabulary})
		d.logits = func(s *mlxbind.Scope, rows mlxbind.Array) mlxbind.Array {
			return nn.SoftCap(s, head.Apply(s, rows), limit)
		}
	}
	d.project = l.Linear(d.hidden*len(d.taps), nn.Module{Name: "fc", Out: d.hidden})
	d.inputNorm = l.Tensor("hidden_norm.weight", d.hidden)
	d.outputNorm = l.Tensor("norm.weight", d.hidden)
	parts.DType = d.inputNorm.DType()
	d.rotary = l.Rotary(own.headDim, own.theta, own.share)
	for i := range depth {
		d.layers = append(d.layers, own.layer(l, fmt.Sprintf("layers.%d.", i)))
	}
	if rank > 0 {
		d.markov = loadMarkov(l, config, kind, parts.Vocabulary, d.hidden, rank, parts.DType)
		parts.Markov = d.markov
	}
	if confident {
		d.sure = loadConfidence(l, d.hidden, rank, sureMarkov)
		parts.Confidence = d.sure.logits
	}
	if err := l.Err(); err != nil {
		l.Weights.Close()
		return nil, err
	}
	parts.Model = d
	d.Drafter = block.New(parts)
	d.compile()
	return d, nil
}

// Taps implements models.Drafter.
func (d *Drafter) Taps() []int { return d.taps }

// Bytes implements models.Drafter.
func (d *Drafter) Bytes() int64 { return d.weights.Bytes() }

// Close implements models.Drafter.
func (d *Drafter) Close() {
	d.forget()
	d.weights.Close()
}

// forget drops what was compiled with the weights of now.
func (d *Drafter) forget() {
	for _, g := range d.between {
		g.Close()
	}
	d.extend.Close()
	d.Drafter.Close()
}

// NewContext implements models.Drafter.
func (d *Drafter) NewContext() models.Context {
	c := &block.Context{}
	for _, y := range d.layers {
		c.Caches = append(c.Caches, y.NewCache(0))
	}
	return c
}

func (d *Drafter) compile() {
	for i := 0; i <= len(d.layers); i++ {
		d.between = append(d.between, nn.NewSegment(d.step(i)))
	}
	d.extend = nn.NewSegment(func(s *mlxbind.Scope, in []mlxbind.Array) []mlxbind.Array {
		n := len(d.taps)
		joined := s.Concatenate(-1, in[:n]...)
		return d.contextRows(s, s.Reshape(joined, 1, joined.Dim(0), joined.Dim(1)), d.rotary.Over(in[n:]))
	})
}

// contextRows are each layer's keys and values of the context [b, 2·key heads, n, d], from taps
// side by side [b, n, taps·hidden].
func (d *Drafter) contextRows(s *mlxbind.Scope, taps mlxbind.Array, turn nn.Turn) []mlxbind.Array {
	c := nn.RMSNorm(s, d.project.Apply(s, taps), d.inputNorm, d.eps)
	rows := make([]mlxbind.Array, len(d.layers))
	for i, y := range d.layers {
		rows[i] = y.Rows(s, c, turn)
	}
	return rows
}

// step builds segment i of the block's way through the layers; see decoder.Target.step.
func (d *Drafter) step(i int) mlxbind.Graph {
	return func(s *mlxbind.Scope, in []mlxbind.Array) []mlxbind.Array {
		var h mlxbind.Array
		if i == 0 {
			h = d.embed(s, in[0])
			if d.embedding != 1 {
				h = s.Multiply(h, s.Scalar(d.embedding, h.DType()))
			}
			in = in[1:]
		} else {
			h = d.layers[i-1].Finish(s, in[0], in[1])
			in = in[2:]
		}
		if i == len(d.layers) {
			return []mlxbind.Array{nn.RMSNorm(s, h, d.outputNorm, d.eps)}
		}
		queries, rows := d.layers[i].Project(s, h, d.rotary.Over(in))
		return []mlxbind.Array{h, queries, rows}
	}
}

// Extend implements models.Drafter.
func (d *Drafter) Extend(s *mlxbind.Scope, context models.Context, tapped []mlxbind.Array) {
	s.Within(func(s *mlxbind.Scope) []mlxbind.Array {
		d.extendBy(s, context.(*block.Context), tapped)
		return nil
	})
}

func (d *Drafter) extendBy(s *mlxbind.Scope, c *block.Context, tapped []mlxbind.Array) {
	n := tapped[0].Dim(0)
	turn := d.rotary.At(s, s.Ints([]int32{int32(c.Position())}, 1), n)
	rows := d.extend.Call(s, n, append(append([]mlxbind.Array{}, tapped...), turn.Arrays()...)...)
	if s.Err() != nil {
		return
	}
	for i, y := range rows {
		c.Caches[i].Append(s, y)
	}
}

// Hidden implements block.Model.
func (d *Drafter) Hidden(s *mlxbind.Scope, sight block.Sight, anchors, positions mlxbind.Array) mlxbind.Array {
	n := anchors.Dim(0) * d.Block()
	return d.through(s, sight, anchors, positions, func(i int, in []mlxbind.Array) []mlxbind.Array {
		return d.between[i].Call(s, n, in...)
	})
}

// through takes the block through all layers, segment by segment.
func (d *Drafter) through(s *mlxbind.Scope, sight block.Sight, anchors, positions mlxbind.Array, segment func(i int, in []mlxbind.Array) []mlxbind.Array) mlxbind.Array {
	b := anchors.Dim(0)
	masks := s.Broadcast(s.Scalar(float64(d.mask), mlxbind.Int32), b, d.Block()-1)
	ids := s.Concatenate(1, s.Reshape(d.Known(s, anchors), b, 1), masks)
	if positions.Dim(0) != b {
		positions = s.Broadcast(positions, b)
	}
	turn := d.rotary.At(s, s.AsType(positions, mlxbind.Int32), d.Block())
	out := segment(0, append([]mlxbind.Array{ids}, turn.Arrays()...))
	for i := range d.layers {
		if s.Err() != nil {
			return mlxbind.Array{}
		}
		attended := sight.Attend(s, i, out[1], out[2])
		in := []mlxbind.Array{out[0], attended}
		if i+1 < len(d.layers) {
			in = append(in, turn.Arrays()...)
		}
		out = segment(i+1, in)
	}
	if s.Err() != nil {
		return mlxbind.Array{}
	}
	return out[0]
}

// BaseLogits implements block.Model.
func (d *Drafter) BaseLogits(s *mlxbind.Scope, hidden mlxbind.Array) mlxbind.Array {
	b, n := hidden.Dim(0), hidden.Dim(1)
	return s.Reshape(d.logits(s, s.Reshape(hidden, b*n, d.hidden)), b, n, -1)
}
