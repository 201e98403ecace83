// Package dflash is the trainable drafter of dspark.json: a small decoder over rows tapped from
// the target, which borrows the target's embedding and head, and learns where in the block each
// slot stands. It drafts, it can be begun afresh, trained and saved.
package dflash

import (
	"context"
	"fmt"

	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/block"
	"firesteel/models/checkpoint"
	"firesteel/models/nn"
)

// kept is how many drafts are checked however unsure they are: the first always, since no
// confidence was trained to leave it out.
const kept = 1

// Drafter is a DFlash drafter. Its target must outlive it.
type Drafter struct {
	*block.Drafter
	network

	weights []mlxbind.Array // in the order of the file
	between []*nn.Segment
	extend  *nn.Segment
}

// Load reads the drafter in folder, to draft for target. progress, which may be nil, is told the
// bytes read so far.
func Load(ctx context.Context, folder *checkpoint.Folder, target models.Target, progress func(done int64)) (*Drafter, error) {
	config, err := checkpoint.ReadDSpark(folder.Dir())
	if err != nil {
		return nil, err
	}
	l := nn.NewLoader(ctx, folder, progress)
	defer l.Weights.Close()
	s := mlxbind.NewScope()
	defer s.Close()
	var weights []mlxbind.Array
	for _, t := range config.Tensors() {
		weights = append(weights, wide(s, l.Tensor(t.Name, t.Shape...)))
		if l.Err() != nil {
			return nil, l.Err()
		}
	}
	if err := s.Eval(weights...); err != nil {
		return nil, err
	}
	d, err := hold(s, config, target, weights)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", folder.Dir(), err)
	}
	return d, nil
}

// hold makes a drafter of arrays in the order of the file, which it takes handles to.
func hold(s *mlxbind.Scope, config *checkpoint.DSpark, target models.Target, weights []mlxbind.Array) (*Drafter, error) {
	if err := fits(config, target); err != nil {
		return nil, err
	}
	d := &Drafter{}
	for _, w := range weights {
		d.weights = append(d.weights, s.Hold(w))
	}
	if err := s.Err(); err != nil {
		d.free()
		return nil, err
	}
	d.network = network{config, target, arrange(config, d.weights)}
	parts := block.Parts{
		Model: d, Markov: &d.network, Confidence: d.confidenceLogits, Kept: kept,
		Size: config.Gamma, Vocabulary: config.Vocabulary, Scale: d.scale(), DType: mlxbind.Float32,
	}
	if config.Calibration != nil {
		parts.Thresholds = config.Calibration.Thresholds
	}
	d.Drafter = block.New(parts)
	for i := 0; i <= config.Layers; i++ {
		d.between = append(d.between, nn.NewSegment(d.step(i)))
	}
	d.extend = nn.NewSegment(func(s *mlxbind.Scope, in []mlxbind.Array) []mlxbind.Array {
		taps := s.Concatenate(-1, in...)
		return d.contextRows(s, s.Reshape(taps, 1, taps.Dim(0), taps.Dim(1)))
	})
	return d, nil
}

// fits refuses a target that the drafter cannot borrow from.
func fits(config *checkpoint.DSpark, target models.Target) error {
	if target == nil {
		return fmt.Errorf("a drafter of this kind needs its target: it has no embedding and no head of its own")
	}
	g := target.Geometry()
	if g.Hidden != config.Hidden {
		return fmt.Errorf("made for a target of width %d, not %d", config.Hidden, g.Hidden)
	}
	for _, tap := range config.Taps {
		if tap > g.Layers {
			return fmt.Errorf("reads layer %d of a target of %d layers", tap, g.Layers)
		}
	}
	return nil
}

// Config is what the drafter's dspark.json says. It must not be changed.
func (d *Drafter) Config() *checkpoint.DSpark { return d.config }

// Taps implements models.Drafter.
func (d *Drafter) Taps() []int { return d.config.Taps }

// Bytes implements models.Drafter.
func (d *Drafter) Bytes() (total int64) {
	for _, w := range d.weights {
		total += w.Bytes()
	}
	return total
}

// Close implements models.Drafter.
func (d *Drafter) Close() {
	d.forget()
	d.free()
}

// forget drops what was compiled with the weights of now.
func (d *Drafter) forget() {
	d.Drafter.Close()
	for _, g := range d.between {
		g.Close()
	}
	d.extend.Close()
}

func (d *Drafter) free() {
	for i := range d.weights {
		d.weights[i].Free()
	}
}

// NewContext implements models.Drafter.
func (d *Drafter) NewContext() models.Context {
	c := &block.Context{}
	for range d.config.Layers {
		c.Caches = append(c.Caches, nn.NewCache(d.config.Heads, d.config.Heads, 0))
	}
	return c
}

// Extend implements models.Drafter.
func (d *Drafter) Extend(s *mlxbind.Scope, context models.Context, tapped []mlxbind.Array) {
	s.Within(func(s *mlxbind.Scope) []mlxbind.Array {
		rows := d.extend.Call(s, tapped[0].Dim(0), tapped...)
		if s.Err() == nil {
			for i, c := range context.(*block.Context).Caches {
				c.Append(s, rows[i])
			}
		}
		return nil
	})
}

// step builds segment i of the block's way through the layers: from the anchors, or (h, what layer
// i−1 found), to (h, queries, rows), or the final rows.
func (d *Drafter) step(i int) mlxbind.Graph {
	return func(s *mlxbind.Scope, in []mlxbind.Array) []mlxbind.Array {
		var h mlxbind.Array
		if i == 0 {
			h = d.start(s, in[0])
		} else {
			h = d.finish(s, i-1, in[0], in[1])
		}
		if i == d.config.Layers {
			return []mlxbind.Array{d.norm(s, h, d.outputNorm)}
		}
		queries, rows := d.project(s, i, h)
		return []mlxbind.Array{h, queries, rows}
	}
}

// Hidden implements block.Model; the positions only matter to the sight.
func (d *Drafter) Hidden(s *mlxbind.Scope, sight block.Sight, anchors, _ mlxbind.Array) mlxbind.Array {
	n := anchors.Dim(0) * d.config.Gamma
	// A token that only the target knows has a row in the target's embedding.
	out := d.between[0].Call(s, n, s.AsType(anchors, mlxbind.Int32))
	for i := range d.config.Layers {
		if s.Err() != nil {
			return mlxbind.Array{}
		}
		out = d.between[i+1].Call(s, n, out[0], sight.Attend(s, i, out[1], out[2]))
	}
	if s.Err() != nil {
		return mlxbind.Array{}
	}
	return out[0]
}
