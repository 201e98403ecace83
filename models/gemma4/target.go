// Package gemma4 is the Gemma 4 family: the text model of the dense checkpoints, and the
// decoder layer that its drafters are built from.
package gemma4

import (
	"context"
	"fmt"
	"math"
	"strings"

	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/checkpoint"
	"firesteel/models/nn"
)

// Target is a Gemma 4 text model.
type Target struct {
	geometry models.Geometry
	eps      float32
	cap      float64
	scale    float64 // of the embedding
	window   int

	weights *nn.Weights
	table   *nn.Embedding
	head    *nn.Linear // nil when the table serves as head
	norm    mlxbind.Array
	layers  []layer
	full    *nn.Rotary
	sliding *nn.Rotary

	// between[i] finishes layer i−1 and projects for layer i; the last one ends with the norm.
	between []*nn.Segment
	logits  *nn.Segment
}

type layer struct {
	*Layer
	sliding bool
}

// Load reads the text model of folder. progress, which may be nil, is told the bytes read.
func Load(ctx context.Context, folder *checkpoint.Folder, progress func(done int64)) (*Target, error) {
	text, err := folder.Config().Text()
	if err != nil {
		return nil, err
	}
	c := &checkpoint.Fields{Config: text}
	t := &Target{
		geometry: models.Geometry{
			Layers: c.Count("num_hidden_layers"), Hidden: c.Count("hidden_size"),
			Vocabulary: c.Count("vocab_size"), Context: c.Count("max_position_embeddings"),
		},
		eps: float32(c.Number("rms_norm_eps", 1e-6)),
		cap: c.Number("final_logit_softcapping", 0),
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
	t.window = c.Whole("sliding_window", 0)
	tied := c.Flag("tie_word_embeddings", true)
	for key, unsupported := range map[string]bool{
		"enable_moe_block":            c.Flag("enable_moe_block", false),
		"hidden_size_per_layer_input": c.Whole("hidden_size_per_layer_input", 0) != 0,
		"num_kv_shared_layers":        c.Whole("num_kv_shared_layers", 0) != 0,
		"use_double_wide_mlp":         c.Flag("use_double_wide_mlp", false),
	} {
		if unsupported && c.Err == nil {
			c.Err = &checkpoint.Error{Kind: checkpoint.KindUnsupported, Path: text.Path(), Key: key, Detail: "this form of Gemma 4 is not supported"}
		}
	}
	if act := c.Text("hidden_activation", "gelu_pytorch_tanh"); act != "gelu_pytorch_tanh" {
		c.Err = text.Fail("hidden_activation", "is %q; only gelu_pytorch_tanh is supported", act)
	}
	if c.Err == nil && len(kinds) != t.geometry.Layers {
		c.Err = text.Fail("layer_types", "lists %d layers of %d", len(kinds), t.geometry.Layers)
	}
	if c.Err != nil {
		return nil, c.Err
	}
	fullTheta, fullShare, err := Rope(text, "full_attention", 1e6)
	if err != nil {
		return nil, err
	}
	slidingTheta, slidingShare, err := Rope(text, "sliding_attention", 1e4)
	if err != nil {
		return nil, err
	}

	l := nn.NewLoader(ctx, folder, progress)
	t.weights = l.Weights
	prefix, err := prefixOf(folder)
	if err != nil {
		return nil, err
	}
	t.table = l.Embedding(prefix+"embed_tokens", t.geometry.Vocabulary, t.geometry.Hidden)
	t.scale = EmbeddingScale(folder, prefix+"embed_tokens", t.geometry.Hidden)
	t.norm = l.Tensor(prefix+"norm.weight", t.geometry.Hidden)
	if head := strings.TrimSuffix(prefix, "model.") + "lm_head"; !tied && l.Has(head+".weight") {
		t.head = l.Linear(t.geometry.Hidden, nn.Module{Name: head, Out: t.geometry.Vocabulary})
	}
	t.full, t.sliding = l.Rotary(fullDim, fullTheta, fullShare), l.Rotary(headDim, slidingTheta, slidingShare)
	for i, kind := range kinds {
		shape := Shape{Hidden: t.geometry.Hidden, Intermediate: intermediate, Heads: heads, KeyHeads: keyHeads, HeadDim: headDim, Eps: t.eps}
		switch kind {
		case "sliding_attention":
		case "full_attention":
			shape.KeyHeads, shape.HeadDim, shape.SharedValues = fullKeys, fullDim, shared
		default:
			l.Fail(text.Fail("layer_types", "layer %d is %q", i, kind))
		}
		t.layers = append(t.layers, layer{LoadLayer(l, fmt.Sprintf("%slayers.%d.", prefix, i), shape), kind == "sliding_attention"})
	}
	if err := l.Err(); err != nil {
		l.Weights.Close()
		return nil, err
	}
	t.compile()
	return t, nil
}

// Rope reads theta and the share of pairs that turn for one kind of layer. The values stand in
// rope_parameters, by kind or for all, or at the top.
func Rope(config *checkpoint.Config, kind string, theta float64) (float64, float64, error) {
	share := 1.0
	sources := []*checkpoint.Config{config}
	if config.Has("rope_parameters") {
		all, err := config.Object("rope_parameters")
		if err != nil {
			return 0, 0, err
		}
		sources = append(sources, all)
		if all.Has(kind) {
			own, err := all.Object(kind)
			if err != nil {
				return 0, 0, err
			}
			sources = append(sources, own)
		}
	}
	for _, source := range sources {
		c := &checkpoint.Fields{Config: source}
		theta = c.Number("rope_theta", theta)
		share = c.Number("partial_rotary_factor", share)
		if c.Err != nil {
			return 0, 0, c.Err
		}
	}
	return theta, share, nil
}

// EmbeddingScale is √hidden, rounded as the checkpoint's own type rounds it: bfloat16 unless
// the table is stored wider.
func EmbeddingScale(folder *checkpoint.Folder, module string, hidden int) float64 {
	scale := math.Sqrt(float64(hidden))
	if t, ok := folder.Tensor(module + ".weight"); ok && t.DType == checkpoint.F32 {
		return float64(float32(scale))
	}
	bits := math.Float32bits(float32(scale))
	bits += 0x7fff + bits>>16&1
	return float64(math.Float32frombits(bits &^ 0xffff))
}

func prefixOf(folder *checkpoint.Folder) (string, error) {
	for _, prefix := range []string{"model.", "language_model.model.", "model.language_model.", ""} {
		if _, ok := folder.Tensor(prefix + "embed_tokens.weight"); ok {
			return prefix, nil
		}
	}
	return "", &checkpoint.Error{Kind: checkpoint.KindIncomplete, Path: folder.Dir(), Tensor: "model.embed_tokens.weight", Detail: "missing from the checkpoint"}
}

func (t *Target) compile() {
	for i := 0; i <= len(t.layers); i++ {
		t.between = append(t.between, nn.NewSegment(t.step(i)))
	}
	t.logits = nn.NewSegment(func(s *mlxbind.Scope, in []mlxbind.Array) []mlxbind.Array {
		var y mlxbind.Array
		if t.head != nil {
			y = t.head.Apply(s, in[0])
		} else {
			y = t.table.Head(s, in[0])
		}
		return []mlxbind.Array{s.AsType(nn.SoftCap(s, y, t.cap), mlxbind.Float32)}
	})
}

// step builds segment i: from (h, attended, the turn's arrays), or (tokens, …) at the front, to
// (h, queries, rows), or (h, final) at the end.
func (t *Target) step(i int) mlxbind.Graph {
	return func(s *mlxbind.Scope, in []mlxbind.Array) []mlxbind.Array {
		var h mlxbind.Array
		if i == 0 {
			h = t.table.Rows(s, s.Reshape(in[0], 1, -1))
			h = s.Multiply(h, s.Scalar(t.scale, h.DType()))
			in = in[1:]
		} else {
			h = t.layers[i-1].Finish(s, in[0], in[1])
			in = in[2:]
		}
		if i == len(t.layers) {
			return []mlxbind.Array{h, nn.RMSNorm(s, h, t.norm, t.eps)}
		}
		rotary := t.full
		if t.layers[i].sliding {
			rotary = t.sliding
		}
		queries, rows := t.layers[i].Project(s, h, rotary.Over(in))
		return []mlxbind.Array{h, queries, rows}
	}
}

// Embed implements models.Target.
func (t *Target) Embed(s *mlxbind.Scope, tokens mlxbind.Array) mlxbind.Array {
	return t.table.Rows(s, tokens)
}

// Geometry implements models.Target.
func (t *Target) Geometry() models.Geometry { return t.geometry }

// Bytes implements models.Target.
func (t *Target) Bytes() int64 { return t.weights.Bytes() }

// Close implements models.Target.
func (t *Target) Close() {
	for _, g := range t.between {
		g.Close()
	}
	t.logits.Close()
	t.weights.Close()
}

// NewState implements models.Target.
func (t *Target) NewState() models.State {
	st := &nn.State{}
	for _, y := range t.layers {
		window := 0
		if y.sliding {
			window = t.window
		}
		st.Caches = append(st.Caches, y.NewCache(window))
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
	turns := map[bool]nn.Turn{false: t.full.At(s, offset, n), true: t.sliding.At(s, offset, n)}
	masks := map[bool]mlxbind.Array{}
	tapped := make([]mlxbind.Array, len(taps))
	tap := func(layer int, h mlxbind.Array) {
		for i, id := range taps {
			if id == layer {
				tapped[i] = s.Reshape(h, n, t.geometry.Hidden)
			}
		}
	}
	out := t.between[0].Call(s, n, append([]mlxbind.Array{tokens}, turns[t.layers[0].sliding].Arrays()...)...)
	for i, y := range t.layers {
		if s.Err() != nil {
			return mlxbind.Array{}, tapped
		}
		h, queries, rows := out[0], out[1], out[2]
		tap(i-1, h)
		keys, values := caches[i].Append(s, rows)
		mask, ok := masks[y.sliding]
		if !ok {
			mask = nn.Mask(s, n, keys.Dim(2), caches[i].Window(), queries.DType())
			masks[y.sliding] = mask
		}
		attended := nn.Attend(s, queries, keys, values, Scale, mask)
		in := []mlxbind.Array{h, attended}
		if i+1 < len(t.layers) {
			in = append(in, turns[t.layers[i+1].sliding].Arrays()...)
		}
		out = t.between[i+1].Call(s, n, in...)
	}
	if s.Err() != nil {
		return mlxbind.Array{}, tapped
	}
	tap(t.geometry.Layers-1, out[0])
	tap(t.geometry.Layers, out[1])
	return s.Reshape(out[1], n, t.geometry.Hidden), tapped
}

// Logits implements models.Target.
func (t *Target) Logits(s *mlxbind.Scope, hidden mlxbind.Array) mlxbind.Array {
	out := t.logits.Call(s, hidden.Dim(0), hidden)
	if s.Err() != nil {
		return mlxbind.Array{}
	}
	return out[0]
}
