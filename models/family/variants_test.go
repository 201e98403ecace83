package family

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"firesteel/models/checkpoint"
	"firesteel/models/internal/mlxtest"
)

// variant is a fixture published another way. Without a kind it is to compute what the fixture
// does, from as many bytes; with one it is to be refused with an error that mentions parts.
type variant struct {
	name    string
	fixture string
	change  func(*draft)
	kind    checkpoint.Kind
	parts   []string
}

const (
	dense  = "gemma4-12b-like"       // shared values on full layers
	packed = "gemma4-12b-like-q4"    // the same at 4 bits
	small  = "gemma4-e4b-like"       // token inputs, borrowed keys and values
	double = "gemma4-e2b-like"       // and wider layers where they are borrowed
	mixed  = "gemma4-e4b-like-mixed" // small, quantized module by module

	qwen       = "qwen3-like" // with a head of its own
	qwenTied   = "qwen3-tied-like"
	qwenPacked = "qwen3-tied-like-q3"
	qwenMicro  = "qwen3-like-mxfp4"
)

// under puts everything behind a prefix in place of "model.", the output layer behind head.
func under(prefix, head string) func(*draft) {
	return func(d *draft) {
		d.rename(func(name string) string {
			if rest, ok := strings.CutPrefix(name, "model."); ok {
				return prefix + rest
			}
			return head + name
		})
	}
}

// nest makes the configuration that of a multimodal model around the language model's.
func nest(kind string) func(*draft) {
	return func(d *draft) {
		text := maps.Clone(d.config)
		text["model_type"] = kind + "_text"
		outer := object{"model_type": kind, "architectures": []string{"Gemma4ForConditionalGeneration"}, "text_config": text,
			"vision_config": object{"model_type": kind + "_vision", "hidden_size": 9}, "audio_config": nil}
		for _, key := range []string{"quantization", "quantization_config", "tie_word_embeddings", "eos_token_id"} {
			if v, ok := text[key]; ok {
				outer[key] = v
				delete(text, key)
			}
		}
		d.config = outer
	}
}

func towers(prefix string) func(*draft) {
	return func(d *draft) {
		for _, name := range []string{"vision_tower.encoder.layers.0.self_attn.q_proj.weight", "audio_tower.layers.0.feed_forward1.ffw_layer_1.linear.weight",
			"embed_vision.embedding_projection.weight", "embed_audio.embedding_projection.weight", "vision_tower.encoder.layers.0.self_attn.q_proj.input_max"} {
			d.noise(prefix+name, 5, 3)
		}
	}
}

func set(key string, value any) func(*draft) {
	return func(d *draft) { d.text()[key] = value }
}

func unset(keys ...string) func(*draft) {
	return func(d *draft) {
		for _, key := range keys {
			delete(d.config, key)
		}
	}
}

func all(changes ...func(*draft)) func(*draft) {
	return func(d *draft) {
		for _, change := range changes {
			change(d)
		}
	}
}

// packings gives one module other values in the quantization block.
func packings(module string, value any) func(*draft) {
	return func(d *draft) {
		for _, key := range []string{"quantization", "quantization_config"} {
			d.config[key].(object)[module] = value
		}
	}
}

// apart puts a module's scales into another file than its weight.
func apart(d *draft) {
	d.deal(func(name string) string {
		if strings.HasSuffix(name, ".scales") {
			return "model-00002-of-00002.safetensors"
		}
		return "model-00001-of-00002.safetensors"
	})
}

func copied(from, to string) func(*draft) {
	return func(d *draft) {
		for _, part := range []string{".weight", ".scales", ".biases"} {
			if x, ok := d.tensors[from+part]; ok {
				d.tensors[to+part] = x
			}
		}
	}
}

func without(names ...string) func(*draft) {
	return func(d *draft) {
		d.rename(func(name string) string {
			if slices.Contains(names, name) {
				return ""
			}
			return name
		})
	}
}

func noise(name string, shape ...int) func(*draft) {
	return func(d *draft) { d.noise(name, shape...) }
}

func variants() []variant {
	list := []variant{
		{name: "weight and scales apart, with an index", fixture: packed, change: all(apart, (*draft).index)},
		{name: "weight and scales apart, without", fixture: mixed, change: apart},

		{name: "no prefix", fixture: small, change: under("", "")},
		{name: "as converters write it", fixture: mixed, change: all(under("language_model.model.", "language_model."), nest("gemma4"))},
		{name: "as it is published", fixture: small, change: all(under("model.language_model.", ""), nest("gemma4"), towers("model."))},
		{name: "unified, as converters write it", fixture: packed, change: all(under("language_model.model.", "language_model."), nest("gemma4_unified"), towers(""))},
		{name: "unified, as it is published", fixture: dense, change: all(under("model.language_model.", ""), nest("gemma4_unified"), towers("model."))},
		{name: "the language model of a unified one", fixture: dense, change: set("model_type", "gemma4_unified_text")},
		{name: "towers beside the layers", fixture: dense, change: towers("model.")},
		{name: "modules quantized under other names", fixture: mixed, change: all(under("language_model.model.", ""), func(d *draft) {
			for _, key := range []string{"quantization", "quantization_config"} {
				block := d.config[key].(object)
				for module, value := range maps.Clone(block) {
					if rest, ok := strings.CutPrefix(module, "model."); ok {
						delete(block, module)
						block["model.language_model."+rest] = value
					}
				}
			}
		})},

		{name: "tied, with another head beside it", fixture: dense, change: noise("lm_head.weight", 320, 64)},
		{name: "untied, with a head", fixture: dense, change: all(set("tie_word_embeddings", false), copied("model.embed_tokens", "lm_head"))},
		{name: "untied, with a packed head", fixture: packed, change: all(set("tie_word_embeddings", false), copied("model.embed_tokens", "lm_head"))},
		{name: "untied, as it is published", fixture: small, change: all(copied("model.embed_tokens", "lm_head"), under("model.language_model.", ""), nest("gemma4"),
			func(d *draft) { d.config["tie_word_embeddings"] = false })},
		{name: "untied, as converters write it", fixture: small, change: all(copied("model.embed_tokens", "lm_head"), under("language_model.model.", "language_model."), nest("gemma4"),
			func(d *draft) { d.config["tie_word_embeddings"] = false })},
		{name: "untied, without a head", fixture: dense, change: set("tie_word_embeddings", false), kind: checkpoint.KindIncomplete, parts: []string{"lm_head.weight"}},
		{name: "tied, said nowhere", fixture: dense, change: unset("tie_word_embeddings")},

		{name: "keys and values of layers that borrow them", fixture: small, change: func(d *draft) {
			for i := 4; i < 8; i++ {
				p := fmt.Sprintf("model.layers.%d.self_attn.", i)
				d.noise(p+"k_proj.weight", 32, 64)
				d.noise(p+"v_proj.weight", 32, 64)
				d.noise(p+"k_norm.weight", 16)
			}
		}},
		{name: "packed ones, of layers that borrow them", fixture: mixed, change: all(copied("model.layers.0.self_attn.k_proj", "model.layers.5.self_attn.k_proj"),
			copied("model.layers.0.self_attn.v_proj", "model.layers.5.self_attn.v_proj"))},
		{name: "values beside keys that serve as both", fixture: dense, change: func(d *draft) {
			for name := range maps.Clone(d.tensors) {
				if strings.HasSuffix(name, "self_attn.q_proj.weight") {
					v := strings.Replace(name, "q_proj", "v_proj", 1)
					if _, ok := d.tensors[v]; !ok {
						d.noise(v, 32, 64)
					}
				}
			}
		}},

		{name: "rotary settings at the top", fixture: dense, change: all(unset("rope_parameters"), set("rope_theta", 1e6), set("partial_rotary_factor", 0.25), set("rope_local_base_freq", 1e4))},
		{name: "rotary settings in one object", fixture: small, change: set("rope_parameters", object{"rope_theta": 1e6, "partial_rotary_factor": 0.25, "rope_type": "proportional"})},
		{name: "rotary settings nowhere", fixture: dense, change: unset("rope_parameters")},
		{name: "rotary settings of another sort", fixture: dense, change: set("rope_parameters", object{"full_attention": object{"rope_theta": 1e6, "rope_type": "yarn", "factor": 4}}),
			kind: checkpoint.KindBadConfig, parts: []string{"rope_parameters.full_attention.factor"}},

		{name: "quantized in words only", fixture: small, change: set("quantization", object{"bits": 4, "group_size": 64})},
		{name: "quantized, but not in words", fixture: packed, change: unset("quantization", "quantization_config"), kind: checkpoint.KindMismatch, parts: []string{"model.embed_tokens", "has no quantization"}},
		{name: "packed at other bits than stated", fixture: mixed, change: packings("model.layers.3.self_attn.q_proj", object{"bits": 8, "group_size": 32}),
			kind: checkpoint.KindMismatch, parts: []string{"model.layers.3.self_attn.q_proj.weight"}},
		{name: "packed in other groups than stated", fixture: mixed, change: packings("model.embed_tokens_per_layer", object{"bits": 4, "group_size": 64}),
			kind: checkpoint.KindMismatch, parts: []string{"model.embed_tokens_per_layer.weight"}},
		{name: "packed where full precision is stated", fixture: mixed, change: packings("model.per_layer_model_projection", false),
			kind: checkpoint.KindMismatch, parts: []string{"model.per_layer_model_projection"}},
		{name: "packed without biases", fixture: mixed, change: without("model.layers.2.mlp.up_proj.biases"),
			kind: checkpoint.KindIncomplete, parts: []string{"model.layers.2.mlp.up_proj.biases"}},

		{name: "stale index: of files that are gone", fixture: small, change: func(d *draft) {
			d.indexOf(map[string]string{"model.norm.weight": "model-00001-of-00002.safetensors", "model.embed_tokens.weight": "model-00002-of-00002.safetensors"})
		}},
		{name: "stale index: tensors in each other's files", fixture: packed, change: func(d *draft) {
			apart(d)
			places := map[string]string{}
			for name, x := range d.tensors {
				places[name] = map[string]string{"model-00001-of-00002.safetensors": "model-00002-of-00002.safetensors", "model-00002-of-00002.safetensors": "model-00001-of-00002.safetensors"}[x.file]
			}
			d.indexOf(places)
		}},
		{name: "stale index: a tensor that is nowhere", fixture: small, change: func(d *draft) {
			apart(d)
			d.deal(func(string) string { return "model-00001-of-00001.safetensors" })
			d.index()
			without("model.layers.1.mlp.up_proj.weight")(d)
		}, kind: checkpoint.KindIncomplete, parts: []string{"model.layers.1.mlp.up_proj.weight"}},
		{name: "companions of another file system", fixture: packed, change: func(d *draft) {
			apart(d)
			d.index()
			junk := "\x00\x05\x16\x07\x00\x02\x00\x00" + strings.Repeat("\x00", 4088)
			for _, name := range []string{"config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors", "model.safetensors.index.json", "tokenizer.json"} {
				d.files["._"+name] = junk
			}
			d.files[".DS_Store"] = junk
		}},

		{name: "token inputs that the configuration denies", fixture: small, change: set("hidden_size_per_layer_input", 0),
			kind: checkpoint.KindMismatch, parts: []string{"model.layers.0.per_layer_input_gate.weight"}},
		{name: "token inputs that are not there", fixture: dense, change: set("hidden_size_per_layer_input", 16),
			kind: checkpoint.KindIncomplete, parts: []string{"model.embed_tokens_per_layer.weight"}},
		{name: "borrowers that the configuration denies", fixture: small, change: set("num_kv_shared_layers", 0),
			kind: checkpoint.KindIncomplete, parts: []string{"model.layers.4.self_attn.k_proj.weight"}},
		{name: "borrowers without a layer of their kind", fixture: small, change: set("num_kv_shared_layers", 6),
			kind: checkpoint.KindBadConfig, parts: []string{"num_kv_shared_layers"}},
		{name: "wider layers that the configuration denies", fixture: double, change: set("use_double_wide_mlp", false),
			kind: checkpoint.KindMismatch, parts: []string{"model.layers.4.mlp.gate_proj.weight"}},
		{name: "more layers than the configuration knows", fixture: dense, change: all(set("num_hidden_layers", 5), func(d *draft) {
			d.config["layer_types"] = d.config["layer_types"].([]any)[:5]
		}), kind: checkpoint.KindMismatch, parts: []string{"model.layers.5."}},
		{name: "a tensor missing", fixture: small, change: without("model.layers.6.post_per_layer_input_norm.weight"),
			kind: checkpoint.KindIncomplete, parts: []string{"model.layers.6.post_per_layer_input_norm.weight"}},
	}
	// What every family shares, once more where Qwen3's own reading of the configuration matters.
	return append(list, []variant{
		{name: "Qwen3: weight and scales apart", fixture: qwenPacked, change: all(apart, (*draft).index)},
		{name: "Qwen3: no prefix", fixture: qwen, change: under("", "")},
		{name: "Qwen3: as some converters write it", fixture: qwenMicro, change: under("language_model.model.", "language_model.")},
		{name: "Qwen3: towers beside it", fixture: qwen, change: towers("model.")},
		{name: "Qwen3: tied, with another head beside it", fixture: qwenTied, change: noise("lm_head.weight", 320, 64)},
		{name: "Qwen3: untied, with a head", fixture: qwenTied, change: all(set("tie_word_embeddings", false), copied("model.embed_tokens", "lm_head"))},
		{name: "Qwen3: untied, said nowhere", fixture: qwen, change: unset("tie_word_embeddings")},
		{name: "Qwen3: untied, without a head", fixture: qwen, change: without("lm_head.weight"), kind: checkpoint.KindIncomplete, parts: []string{"lm_head.weight"}},
		{name: "Qwen3: theta at the top", fixture: qwen, change: func(d *draft) {
			d.config["rope_theta"] = d.config["rope_parameters"].(object)["rope_theta"]
			delete(d.config, "rope_parameters")
		}},
		{name: "Qwen3: theta in both places", fixture: qwenTied, change: all(set("rope_theta", 1e6), set("rope_scaling", nil))},
		{name: "Qwen3: stretched positions", fixture: qwen, change: set("rope_scaling", object{"rope_type": "yarn", "factor": 4}),
			kind: checkpoint.KindBadConfig, parts: []string{"rope_scaling.rope_type"}},
		{name: "Qwen3: quantized in words only", fixture: qwen, change: set("quantization_config", object{"bits": 4, "group_size": 64})},
		{name: "Qwen3: quantized, but not in words", fixture: qwenMicro, change: unset("quantization", "quantization_config"),
			kind: checkpoint.KindMismatch, parts: []string{"has no quantization"}},
		{name: "Qwen3: packed in another mode than stated", fixture: qwenMicro, change: packings("model.layers.0.self_attn.q_proj", object{"bits": 4, "group_size": 32, "mode": "affine"}),
			kind: checkpoint.KindMismatch, parts: []string{"model.layers.0.self_attn.q_proj.scales"}},
		{name: "Qwen3: stale index", fixture: qwenTied, change: func(d *draft) { d.indexOf(map[string]string{"model.norm.weight": "model-00001-of-00003.safetensors"}) }},
		{name: "Qwen3: biases that the configuration denies", fixture: qwen, change: noise("model.layers.0.self_attn.q_proj.bias", 64),
			kind: checkpoint.KindMismatch, parts: []string{"model.layers.0.self_attn.q_proj.bias"}},
	}...)
}

func TestVariants(t *testing.T) {
	known := map[string]outcome{}
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			want, ok := known[v.fixture]
			if !ok {
				want = try(t, filepath.Join(goldens, v.fixture))
				if want.err != nil {
					t.Fatal(want.err)
				}
				known[v.fixture] = want
			}
			d := draftOf(t, v.fixture)
			v.change(d)
			got := try(t, d.write())
			if v.kind != checkpoint.KindUnknown {
				refused(t, got.err, v.kind, v.parts...)
				return
			}
			if got.err != nil {
				t.Fatal(got.err)
			}
			if off := mlxtest.Far(got.logits, want.logits); off > 1e-5 {
				t.Errorf("logits differ by %g", off)
			}
			read := want.read + d.head() - draftOf(t, v.fixture).head()
			if got.read != read {
				t.Errorf("%d bytes were read, not %d", got.read, read)
			}
		})
	}
}

// A snapshot of the hub holds links to files that are named after what is in them.
func TestSnapshotOfTheHub(t *testing.T) {
	d := draftOf(t, mixed)
	apart(d)
	d.index()
	from := d.write()
	root := t.TempDir()
	snapshot := filepath.Join(root, "models--one--small", "snapshots", "0123abc")
	blobs := filepath.Join(root, "models--one--small", "blobs")
	for _, dir := range []string{snapshot, blobs} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for i, entry := range entries {
		blob := fmt.Sprintf("%064x", i)
		if err := os.Rename(filepath.Join(from, entry.Name()), filepath.Join(blobs, blob)); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("..", "..", "blobs", blob), filepath.Join(snapshot, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	got, want := try(t, snapshot), try(t, filepath.Join(goldens, mixed))
	if got.err != nil || want.err != nil {
		t.Fatal(got.err, want.err)
	}
	if off := mlxtest.Far(got.logits, want.logits); off > 1e-5 {
		t.Errorf("logits differ by %g", off)
	}
}
