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
	inputs  *tokenInputs // nil in the larger models
	head    *nn.Linear   // nil when the table serves as head
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
	source  int // the layer whose keys and values it attends to: itself, unless it borrows
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
	if c.Err == nil && len(kinds) != t.geometry.Layers {
		c.Err = text.Fail("layer_types", "lists %d layers of %d", len(kinds), t.geometry.Layers)
	}
	if c.Err == nil && (borrowers < 0 || borrowers >= t.geometry.Layers) {
		c.Err = text.Fail("num_kv_shared_layers", "is %d of %d layers", borrowers, t.geometry.Layers)
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
	t.weights = l.Weights
	first, ok := folder.Find("embed_tokens.weight")
	if !ok {
		return nil, &checkpoint.Error{Kind: checkpoint.KindIncomplete, Path: folder.Dir(), Tensor: "model.embed_tokens.weight", Detail: "missing from the checkpoint"}
	}
	prefix := strings.TrimSuffix(first, "embed_tokens.weight")
	t.table = l.Embedding(prefix+"embed_tokens", t.geometry.Vocabulary, t.geometry.Hidden)
	t.scale = EmbeddingScale(folder, prefix+"embed_tokens", t.geometry.Hidden)
	t.norm = l.Tensor(prefix+"norm.weight", t.geometry.Hidden)
	if inputWidth > 0 {
		t.inputs = loadTokenInputs(l, folder, prefix, t.geometry, c.Whole("vocab_size_per_layer_input", t.geometry.Vocabulary), inputWidth, t.eps)
		l.Fail(c.Err)
	}
	if !tied {
		head, ok := folder.Find("lm_head.weight")
		if !ok {
			head = "lm_head.weight"
		}
		t.head = l.Linear(t.geometry.Hidden, nn.Module{Name: strings.TrimSuffix(head, ".weight"), Out: t.geometry.Vocabulary})
	}
	t.full, t.sliding = l.Rotary(fullDim, fullTheta, fullShare), l.Rotary(headDim, slidingTheta, slidingShare)
	own := t.geometry.Layers - borrowers
	source := map[string]int{} // the last layer of each kind that has keys and values of its own
	for i, kind := range kinds {
		shape := Shape{Hidden: t.geometry.Hidden, Intermediate: intermediate, Heads: heads, KeyHeads: keyHeads, HeadDim: headDim,
			Borrows: i >= own, TokenInput: inputWidth, Eps: t.eps}
		if shape.Borrows && doubled {
			shape.Intermediate *= 2
		}
		switch kind {
		case "sliding_attention":
		case "full_attention":
			shape.KeyHeads, shape.HeadDim, shape.SharedValues = fullKeys, fullDim, shared
		default:
			l.Fail(text.Fail("layer_types", "layer %d is %q", i, kind))
		}
		if !shape.Borrows {
			source[kind] = i
		} else if _, ok := source[kind]; !ok {
			l.Fail(text.Fail("num_kv_shared_layers", "layer %d finds no earlier %s layer to share keys and values with", i, kind))
		}
		t.layers = append(t.layers, layer{LoadLayer(l, fmt.Sprintf("%slayers.%d.", prefix, i), shape), kind == "sliding_attention", source[kind]})
	}
	l.NothingElse(t.mayLie)
	if err := l.Err(); err != nil {
		l.Weights.Close()
		return nil, err
	}
	t.compile()
	return t, nil
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

// mayLie tells which tensors of the language model need not be read: keys and values of layers that
// borrow theirs or make both from one projection, and an output layer beside a table that serves as
// one.
func (t *Target) mayLie(bare string) bool {
	if t.head == nil && strings.HasPrefix(bare, "lm_head.") {
		return true
	}
	for i, y := range t.layers {
		rest, ok := strings.CutPrefix(bare, fmt.Sprintf("layers.%d.self_attn.", i))
		if !ok {
			continue
		}
		module, _, _ := strings.Cut(rest, ".")
		return module == "v_norm" || module == "v_proj" && y.SharedValues || y.Borrows && (module == "k_proj" || module == "v_proj" || module == "k_norm")
	}
	return false
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
// (h, queries, rows), or (h, final) at the end. Layers that borrow make no rows. With token inputs,
// the front's results end with them, and so does what later segments are given.
func (t *Target) step(i int) mlxbind.Graph {
	return func(s *mlxbind.Scope, in []mlxbind.Array) []mlxbind.Array {
		var h, inputs mlxbind.Array
		if i == 0 {
			tokens := s.Reshape(in[0], 1, -1)
			h = t.table.Rows(s, tokens)
			h = s.Multiply(h, s.Scalar(t.scale, h.DType()))
			if t.inputs != nil {
				inputs = t.inputs.all(s, tokens, h)
			}
			in = in[1:]
		} else {
			if t.inputs != nil {
				last := len(in) - 1
				inputs, in = t.inputs.layer(s, in[last], i-1), in[:last]
			}
			h = t.layers[i-1].FinishWith(s, in[0], in[1], inputs)
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
		out := []mlxbind.Array{h, queries}
		if rows.Valid() {
			out = append(out, rows)
		}
		if i == 0 && t.inputs != nil {
			out = append(out, inputs)
		}
		return out
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
	for i, y := range t.layers {
		window := 0
		if y.sliding {
			window = t.window
		}
		// Those that borrow come last, so that cache i is layer i's.
		if y.source == i {
			st.Caches = append(st.Caches, y.NewCache(window))
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
	keys, values := make([]mlxbind.Array, len(caches)), make([]mlxbind.Array, len(caches))
	var inputs []mlxbind.Array // of the tokens: one array, or none
	out := t.between[0].Call(s, n, append([]mlxbind.Array{tokens}, turns[t.layers[0].sliding].Arrays()...)...)
	if last := len(out) - 1; t.inputs != nil && last > 0 {
		inputs, out = out[last:], out[:last]
	}
	for i, y := range t.layers {
		if s.Err() != nil {
			return mlxbind.Array{}, tapped
		}
		h, queries := out[0], out[1]
		tap(i-1, h)
		if y.source == i {
			keys[i], values[i] = caches[i].Append(s, out[2])
		}
		k, v := keys[y.source], values[y.source]
		mask, ok := masks[y.sliding]
		if !ok {
			mask = nn.Mask(s, n, k.Dim(2), caches[y.source].Window(), queries.DType())
			masks[y.sliding] = mask
		}
		attended := nn.Attend(s, queries, k, v, Scale, mask)
		in := []mlxbind.Array{h, attended}
		if i+1 < len(t.layers) {
			in = append(in, turns[t.layers[i+1].sliding].Arrays()...)
		}
		out = t.between[i+1].Call(s, n, append(in, inputs...)...)
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
