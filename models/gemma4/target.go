// Package gemma4 is the Gemma 4 family: the text model of the dense checkpoints, and the
// decoder layer that its drafters are built from.
package gemma4

import (
	"context"
	"fmt"
	"math"
	"strings"

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
	p := decoder.Parts{
		Geometry: decoder.Geometry(c), Eps: float32(c.Number("rms_norm_eps", 1e-6)),
		Cap: c.Number("final_logit_softcapping", 0), Scale: Scale,
	}
	kinds := c.Words("layer_types")
	heads, headDim := c.Count("num_attention_heads"), c.Count("head_dim")
	keyHeads, intermediate := c.Count("num_key_value_heads"), c.Count("intermediate_size")
	shared := c.Flag("attention_k_eq_v", false)
	fullDim := c.Whole("global_head_dim", headDim)
	fullKeys := keyHeads
	if shared {
		fullKeys = c.Whole("num_global_key_value_heads", keyHeads)
	}
	window := c.Whole("sliding_window", 0)
	tied := c.Flag("tie_word_embeddings", true)
	inputWidth := c.Whole("hidden_size_per_layer_input", 0)
	borrowers := c.Whole("num_kv_shared_layers", 0)
	doubled := c.Flag("use_double_wide_mlp", false)
	for key, unsupported := range map[string]bool{
		"enable_moe_block":            c.Flag("enable_moe_block", false),
		"attention_bias":              c.Flag("attention_bias", false),
		"use_bidirectional_attention": c.Text("use_bidirectional_attention", "") == "all",
	} {
		if unsupported && c.Err == nil {
			c.Err = &checkpoint.Error{Kind: checkpoint.KindUnsupported, Path: text.Path(), Key: key, Detail: "this form of Gemma 4 is not supported"}
		}
	}
	if act := c.Text("hidden_activation", "gelu_pytorch_tanh"); act != "gelu_pytorch_tanh" && c.Err == nil {
		c.Err = text.Fail("hidden_activation", "is %q; only gelu_pytorch_tanh is supported", act)
	}
	if c.Err == nil && len(kinds) != p.Geometry.Layers {
		c.Err = text.Fail("layer_types", "lists %d layers of %d", len(kinds), p.Geometry.Layers)
	}
	if c.Err == nil && (borrowers < 0 || borrowers >= p.Geometry.Layers) {
		c.Err = text.Fail("num_kv_shared_layers", "is %d of %d layers", borrowers, p.Geometry.Layers)
	}
	if c.Err != nil {
		return nil, c.Err
	}
	fullTheta, fullShare, err := Rope(text, "full_attention", 1e6)
	if err != nil {
		return nil, err
	}
	if !text.Has("rope_parameters") && !text.Has("partial_rotary_factor") {
		fullShare = 0.25 // what the family has where a configuration is silent
	}
	slidingTheta, slidingShare, err := Rope(text, "sliding_attention", 1e4)
	if err != nil {
		return nil, err
	}

	l := nn.NewLoader(ctx, folder, progress)
	p.Weights = l.Weights
	prefix := p.Frame(l, folder, tied)
	p.Embedding = EmbeddingScale(folder, prefix+"embed_tokens", p.Geometry.Hidden)
	var inputs *tokenInputs
	if inputWidth > 0 {
		inputs = loadTokenInputs(l, folder, prefix, p.Geometry, c.Whole("vocab_size_per_layer_input", p.Geometry.Vocabulary), inputWidth, p.Eps)
		l.Fail(c.Err)
		p.Inputs = inputs
	}
	full, sliding := l.Rotary(fullDim, fullTheta, fullShare), l.Rotary(headDim, slidingTheta, slidingShare)
	own := p.Geometry.Layers - borrowers
	var layers []*Layer
	source := map[string]int{} // the last layer of each kind that has keys and values of its own
	for i, kind := range kinds {
		shape := Shape{Hidden: p.Geometry.Hidden, Intermediate: intermediate, Heads: heads, KeyHeads: keyHeads, HeadDim: headDim,
			Borrows: i >= own, TokenInput: inputWidth, Eps: p.Eps}
		if shape.Borrows && doubled {
			shape.Intermediate *= 2
		}
		place := decoder.Place{Rotary: sliding, Window: window}
		switch kind {
		case "sliding_attention":
		case "full_attention":
			shape.KeyHeads, shape.HeadDim, shape.SharedValues = fullKeys, fullDim, shared
			place.Rotary, place.Window = full, 0
		default:
			l.Fail(text.Fail("layer_types", "layer %d is %q", i, kind))
		}
		if !shape.Borrows {
			source[kind] = i
		} else if _, ok := source[kind]; !ok {
			l.Fail(text.Fail("num_kv_shared_layers", "layer %d finds no earlier %s layer to share keys and values with", i, kind))
		}
		y := LoadLayer(l, fmt.Sprintf("%slayers.%d.", prefix, i), shape)
		place.Layer, place.Source = y, source[kind]
		layers, p.Layers = append(layers, y), append(p.Layers, place)
	}
	if inputs != nil {
		inputs.layers = layers
	}
	l.NothingElse(func(bare string) bool { return mayLie(layers, bare) })
	if err := l.Err(); err != nil {
		l.Weights.Close()
		return nil, err
	}
	return decoder.New(p), nil
}

// Rope reads theta and the share of pairs that turn for one kind of layer. The values stand in
// rope_parameters under the kind's name; full attention also takes them without it, in
// rope_parameters or at the top, where sliding attention has only a rope_local_base_freq.
func Rope(config *checkpoint.Config, kind string, theta float64) (float64, float64, error) {
	all, err := config.ObjectOr("rope_parameters")
	if err != nil {
		return 0, 0, err
	}
	own, err := all.ObjectOr(kind)
	if err != nil {
		return 0, 0, err
	}
	sources := []*checkpoint.Config{config, all, own} // the last to speak is right
	if kind != "full_attention" {
		c := &checkpoint.Fields{Config: config}
		if theta = c.Number("rope_local_base_freq", theta); c.Err != nil {
			return 0, 0, c.Err
		}
		sources = sources[2:]
	}
	share, form := 1.0, "proportional"
	for _, source := range sources {
		c := &checkpoint.Fields{Config: source}
		theta = c.Number("rope_theta", theta)
		share = c.Number("partial_rotary_factor", share)
		form = c.Text("rope_type", form)
		if factor := c.Number("factor", 1); factor != 1 && c.Err == nil {
			c.Err = source.Fail("factor", "is %v; positions that are stretched are not supported", factor)
		}
		if c.Err != nil {
			return 0, 0, c.Err
		}
	}
	switch form {
	case "proportional":
		return theta, share, nil
	case "default":
		return theta, 1, nil // which turns every pair, whatever else is stated
	}
	return 0, 0, config.Fail("rope_type", "is %q for %s; only default and proportional are supported", form, kind)
}

// EmbeddingScale is √hidden, rounded as the checkpoint's own type rounds it: bfloat16 unless
// the table is stored wider.
func EmbeddingScale(folder *checkpoint.Folder, module string, hidden int) float64 {
	scale := math.Sqrt(float64(hidden))
	// A packed table has the type of its scales.
	for _, part := range []string{".weight", ".scales"} {
		if t, ok := folder.Tensor(module + part); ok && t.DType == checkpoint.F32 {
			return float64(float32(scale))
		}
	}
	bits := math.Float32bits(float32(scale))
	bits += 0x7fff + bits>>16&1
	return float64(math.Float32frombits(bits &^ 0xffff))
}

// mayLie tells which tensors of the layers need not be read: keys and values of those that borrow
// theirs or make both from one projection.
func mayLie(layers []*Layer, bare string) bool {
	for i, y := range layers {
		rest, ok := strings.CutPrefix(bare, fmt.Sprintf("layers.%d.self_attn.", i))
		if !ok {
			continue
		}
		module, _, _ := strings.Cut(rest, ".")
		return module == "v_norm" || module == "v_proj" && y.SharedValues || y.Borrows && (module == "k_proj" || module == "v_proj" || module == "k_norm")
	}
	return false
}
