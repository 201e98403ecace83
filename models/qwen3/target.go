// Package qwen3 is the dense Qwen3 family: the target, and the decoder layer that its drafters are
// built from.
package qwen3

import (
	"context"
	"fmt"

	"firesteel/models/checkpoint"
	"firesteel/models/decoder"
	"firesteel/models/nn"
)

// Load reads the text model of folder. progress, which may be nil, is told the bytes read.
func Load(ctx context.Context, folder *checkpoint.Folder, progress func(done int64)) (*decoder.Target, error) {
	text, err := folder.Config().Text()
	if err != nil {
		return nil, err
	}
	c := &checkpoint.Fields{Config: text}
	shape := ReadShape(c)
	p := decoder.Parts{Geometry: decoder.Geometry(c), Embedding: 1, Scale: shape.Scale(), Eps: shape.Eps}
	tied := c.Flag("tie_word_embeddings", false)
	windows := windows(c, p.Geometry.Layers)
	theta := Rope(c)
	if c.Err != nil {
		return nil, c.Err
	}
	l := nn.NewLoader(ctx, folder, progress)
	p.Weights = l.Weights
	prefix := p.Frame(l, folder, tied)
	rotary := l.Rotary(shape.HeadDim, theta, 1)
	for i, window := range windows {
		y := LoadLayer(l, fmt.Sprintf("%slayers.%d.", prefix, i), shape)
		p.Layers = append(p.Layers, decoder.Place{Layer: y, Rotary: rotary, Window: window, Source: i})
	}
	l.NothingElse(nil)
	if err := l.Err(); err != nil {
		l.Weights.Close()
		return nil, err
	}
	return decoder.New(p), nil
}

// ReadShape reads what the layers of a target or a drafter are built from.
func ReadShape(c *checkpoint.Fields) Shape {
	s := Shape{
		Hidden: c.Count("hidden_size"), Intermediate: c.Count("intermediate_size"), Heads: c.Count("num_attention_heads"),
		Eps: float32(c.Number("rms_norm_eps", 1e-6)),
	}
	s.KeyHeads = c.Whole("num_key_value_heads", s.Heads)
	if s.HeadDim = c.Whole("head_dim", 0); s.HeadDim == 0 && s.Heads > 0 {
		s.HeadDim = s.Hidden / s.Heads
	}
	switch act := c.Text("hidden_act", "silu"); {
	case c.Err != nil:
	case act != "silu":
		c.Err = c.Fail("hidden_act", "is %q; only silu is supported", act)
	case c.Flag("attention_bias", false):
		c.Err = c.Fail("attention_bias", "is true; only projections without a bias are supported")
	case s.HeadDim <= 0 || s.HeadDim%2 != 0:
		c.Err = c.Fail("head_dim", "is %d; it has to be even and above 0", s.HeadDim)
	case s.KeyHeads <= 0 || s.Heads%s.KeyHeads != 0:
		c.Err = c.Fail("num_key_value_heads", "is %d for %d heads", s.KeyHeads, s.Heads)
	}
	return s
}

// Rope reads theta, from rope_parameters, rope_scaling's neighbour or the top; positions that are
// stretched are refused.
func Rope(c *checkpoint.Fields) float64 {
	theta := 1e6
	sources := []*checkpoint.Config{c.Config}
	for _, key := range []string{"rope_scaling", "rope_parameters"} {
		nested, err := c.ObjectOr(key)
		if err != nil && c.Err == nil {
			c.Err = err
		}
		if err == nil {
			sources = append(sources, nested)
		}
	}
	for _, source := range sources {
		f := &checkpoint.Fields{Config: source}
		theta = f.Number("rope_theta", theta)
		share := f.Number("partial_rotary_factor", 1)
		form := f.Text("rope_type", f.Text("type", "default"))
		switch {
		case f.Err != nil:
		case form != "default":
			f.Err = source.Fail("rope_type", "is %q; only default is supported", form)
		case share != 1:
			f.Err = source.Fail("partial_rotary_factor", "is %v; only 1 is supported", share)
		}
		if c.Err == nil {
			c.Err = f.Err
		}
	}
	return theta
}

// windows is how far each layer looks back; 0 means all the way.
func windows(c *checkpoint.Fields, layers int) []int {
	list := make([]int, layers)
	if !c.Flag("use_sliding_window", false) {
		return list
	}
	window, full := c.Whole("sliding_window", 0), c.Whole("max_window_layers", layers)
	if window <= 0 && c.Err == nil {
		c.Err = c.Fail("sliding_window", "is %d; use_sliding_window needs one above 0", window)
	}
	for i := range list {
		if i >= full {
			list[i] = window
		}
	}
	if !c.Has("layer_types") {
		return list
	}
	kinds := c.Words("layer_types")
	if len(kinds) != layers && c.Err == nil {
		c.Err = c.Fail("layer_types", "lists %d layers of %d", len(kinds), layers)
	}
	for i := range min(len(kinds), layers) {
		list[i] = 0
		if kinds[i] == "sliding_attention" {
			list[i] = window
		}
	}
	return list
}
