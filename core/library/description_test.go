package library

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"firesteel/models/checkpoint"
)

func TestDescribeFixtures(t *testing.T) {
	target := describe(t, filepath.Join(fixtures, "gemma4-12b-like"))
	if target.Kind != Target || target.Family != Gemma4 || target.Layers != 6 || target.Hidden != 64 || target.Vocabulary != 320 || target.Context != 512 ||
		target.Precision != "bf16" || target.DType != checkpoint.BF16 || target.Parameters != 255814 || target.TensorBytes != 511628 || !slices.Equal(target.EOS, []int{1}) ||
		target.WeightBytes(true) != 2*511628 || target.Name != "gemma4-12b-like" || target.StatesQuantization {
		t.Errorf("%+v", target)
	}
	// K=V layers: 1 head of 32, kept twice; sliding layers: 2 heads of 16, kept twice.
	if want := (CacheLayout{FullLayers: 2, FullRow: 64, WindowLayers: 4, WindowRow: 64, Window: 8}); target.Cache != want {
		t.Errorf("cache %+v, want %+v", target.Cache, want)
	}
	packed := describe(t, filepath.Join(fixtures, "gemma4-12b-like-q4"))
	if packed.Parameters != target.Parameters || packed.Precision != "4-bit" || packed.TensorBytes >= target.TensorBytes/3 {
		t.Errorf("%+v", packed)
	}
	if packed.WeightBytes(true)-packed.WeightBytes(false) != packed.HalfBytes || packed.HalfBytes == 0 {
		t.Errorf("widening: %+v", packed)
	}
	drafter := describe(t, filepath.Join(fixtures, "deepspec-gemma4"))
	if drafter.Kind != Drafter || drafter.Family != DeepSpec || drafter.TargetFamily != Gemma4 || drafter.Block != 7 || !slices.Equal(drafter.Taps, []int{0, 2, 4}) ||
		drafter.MaskToken != 4 || drafter.TargetLayers != 6 || drafter.TargetHidden != 64 || drafter.MarkovRank != 16 || drafter.MarkovHead != "vanilla" || !drafter.HasConfidence ||
		drafter.Cache != (CacheLayout{FullLayers: 2, FullRow: 64}) {
		t.Errorf("%+v", drafter)
	}
	mixed := describe(t, filepath.Join(fixtures, "deepspec-gemma4-mixed"))
	if mixed.Precision != "4–8-bit mixed" || mixed.Parameters != drafter.Parameters ||
		!slices.Equal(mixed.ModulesByPrecision, []ModuleCount{{"4-bit g64", 12}, {"bf16", 4}, {"6-bit g64", 1}, {"8-bit g64", 1}}) {
		t.Errorf("%+v", mixed)
	}
	for _, d := range []Description{target, packed, drafter, mixed} {
		if err := d.Loadable(); err != nil {
			t.Error(err)
		}
	}
}

// The small Gemma 4 models: layers that borrow keys and values keep none, their redundant tensors are
// not read, and the table of token inputs is never widened.
func TestDescribeSmallModels(t *testing.T) {
	bare := describe(t, filepath.Join(fixtures, "gemma4-e4b-like"))
	// 2 heads of 16 on sliding layers and of 32 on full ones; of eight layers the last four borrow.
	if want := (CacheLayout{FullLayers: 1, FullRow: 128, WindowLayers: 3, WindowRow: 64, Window: 8}); bare.Cache != want {
		t.Errorf("cache %+v, want %+v", bare.Cache, want)
	}
	const table = 320 * 8 * 16 * 2
	if bare.HalfBytes != bare.TensorBytes-table || bare.WeightBytes(true) != 2*bare.TensorBytes-table || bare.SkippedBytes != 0 || bare.Loadable() != nil {
		t.Errorf("%+v", bare)
	}
	dir := copyOf(t, "gemma4-e4b-like", t.TempDir(), nil)
	if err := os.Rename(filepath.Join(dir, "model.safetensors"), filepath.Join(dir, "model-00001-of-00002.safetensors")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{"model-00002-of-00002.safetensors": weights(t, map[string][]int{"model.layers.4.self_attn.k_proj.weight": {32, 64},
		"model.layers.7.self_attn.v_proj.weight": {64, 64}, "model.layers.5.self_attn.k_norm.weight": {16}, "lm_head.weight": {320, 64}, "model.audio_tower.x.weight": {3, 3}})})
	full := describe(t, dir)
	if full.TensorBytes != bare.TensorBytes || full.Parameters != bare.Parameters || full.SkippedBytes != 4*(32*64+64*64+16+320*64+9) {
		t.Errorf("%+v", full)
	}
	// A head count of their own is only for full layers whose values are their keys.
	d := describe(t, copyOf(t, "gemma4-e4b-like", t.TempDir(), func(c map[string]any) { c["num_global_key_value_heads"] = 1 }))
	if d.Cache != bare.Cache {
		t.Errorf("%+v", d.Cache)
	}
}

func TestDescribeOthers(t *testing.T) {
	one := weights(t, map[string][]int{"a.weight": {2, 3}})
	d := describe(t, write(t, t.TempDir(), map[string]string{"config.json": qwen3, "model.safetensors": one}))
	if d.Kind != Target || d.Family != Qwen3 || d.Cache != (CacheLayout{FullLayers: 5, FullRow: 64}) {
		t.Errorf("%+v", d)
	}
	if err := d.Loadable(); err != nil {
		t.Error(err)
	}

	d = describe(t, write(t, t.TempDir(), map[string]string{"config.json": qwen3Drafter, "model.safetensors": one}))
	if d.Kind != Drafter || d.TargetFamily != Qwen3 || d.MarkovHead != "rnn" || d.HasConfidence || d.Taps[0] != -1 {
		t.Errorf("%+v", d)
	}
	if err := d.Loadable(); err != nil {
		t.Error(err)
	}

	// dspark.json goes before the config.json that newer versions put beside it.
	d = describe(t, write(t, t.TempDir(), map[string]string{"dspark.json": dspark, "model.safetensors": one,
		"config.json": `{"model_type":"dspark_assistant","architectures":["DsparkDrafter"],"hidden_size":32}`}))
	if d.Kind != Drafter || d.Family != DFlash || d.Block != 5 || d.Hidden != 32 || d.TargetHidden != 64 || d.Vocabulary != 320 || d.MaskToken != -1 ||
		!slices.Equal(d.Taps, []int{1, 3, 6}) || d.TargetID != "gemma4-12b-like@64x320" || !d.HasConfidence {
		t.Errorf("%+v", d)
	}

	// A multimodal folder: sizes nested, towers not counted.
	nested := `{"architectures":["Gemma4UnifiedForConditionalGeneration"],"model_type":"gemma4_unified","eos_token_id":[1,106],"text_config":{
		"model_type":"gemma4_unified_text","num_hidden_layers":2,"hidden_size":8,"vocab_size":16,"max_position_embeddings":100,"num_key_value_heads":1,"head_dim":4,
		"global_head_dim":8,"num_global_key_value_heads":null,"sliding_window":16,"layer_types":["sliding_attention","full_attention"],"attention_k_eq_v":true}}`
	d = describe(t, write(t, t.TempDir(), map[string]string{"config.json": nested,
		"model.safetensors": weights(t, map[string][]int{"model.language_model.embed_tokens.weight": {16, 8}, "model.vision_tower.x.weight": {100, 10}, "model.embed_vision.y": {5}})}))
	if d.Family != Gemma4 || d.Layers != 2 || d.Context != 100 || d.Parameters != 128 || d.TensorBytes != 512 || d.SkippedBytes != 4020 || !slices.Equal(d.EOS, []int{1, 106}) ||
		d.Cache != (CacheLayout{FullLayers: 1, FullRow: 16, WindowLayers: 1, WindowRow: 8, Window: 16}) {
		t.Errorf("%+v", d)
	}
}

// Weights in full precision under a quantization block load as they are; the description says so.
func TestDescribeQuantizationInWordsOnly(t *testing.T) {
	d := describe(t, copyOf(t, "gemma4-12b-like", t.TempDir(), func(c map[string]any) {
		c["quantization"] = map[string]any{"bits": 4, "group_size": 64}
	}))
	if d.Precision != "bf16" || !d.StatesQuantization {
		t.Errorf("%+v", d)
	}
	_, err := Describe(copyOf(t, "gemma4-12b-like-q4", t.TempDir(), func(c map[string]any) {
		delete(c, "quantization")
		delete(c, "quantization_config")
	}))
	refused(t, err, checkpoint.KindMismatch, "model.embed_tokens", "has no quantization")
}

func TestDescribeRefuses(t *testing.T) {
	one := weights(t, map[string][]int{"a.weight": {2, 3}})
	set := func(key string, value any) func(map[string]any) {
		return func(c map[string]any) { c[key] = value }
	}
	gemma := func(change func(map[string]any)) string { return copyOf(t, "gemma4-12b-like", t.TempDir(), change) }
	spec := func(change func(map[string]any)) string { return copyOf(t, "deepspec-gemma4", t.TempDir(), change) }
	folder := func(files map[string]string) string { return write(t, t.TempDir(), files) }
	for name, c := range map[string]struct {
		dir   string
		kind  checkpoint.Kind
		parts []string
	}{
		"nothing there":         {filepath.Join(t.TempDir(), "none"), checkpoint.KindNotFound, []string{"none"}},
		"no name":               {"  ", checkpoint.KindNotFound, nil},
		"a text file":           {filepath.Join(folder(map[string]string{"notes.txt": "x"}), "notes.txt"), checkpoint.KindNotAFolder, []string{"notes.txt"}},
		"empty":                 {t.TempDir(), checkpoint.KindEmpty, nil},
		"only companions":       {folder(map[string]string{"._config.json": "x", ".DS_Store": "x"}), checkpoint.KindEmpty, nil},
		"photographs":           {folder(map[string]string{"a.jpg": "x"}), checkpoint.KindNotACheckpoint, nil},
		"weights alone":         {folder(map[string]string{"model.safetensors": one}), checkpoint.KindNoConfig, nil},
		"gguf":                  {folder(map[string]string{"model.gguf": "x"}), checkpoint.KindUnsupported, []string{"model.gguf"}},
		"download at its start": {folder(map[string]string{"model.safetensors.part": "x"}), checkpoint.KindIncomplete, []string{".part"}},
		"config alone":          {folder(map[string]string{"config.json": qwen3}), checkpoint.KindNoWeights, nil},
		"weights cut":           {folder(map[string]string{"config.json": qwen3, "model.safetensors": one[:len(one)-1]}), checkpoint.KindIncomplete, []string{"a.weight"}},
		"llama":                 {folder(map[string]string{"config.json": `{"architectures":["LlamaForCausalLM"],"model_type":"llama"}`}), checkpoint.KindArchitecture, []string{"LlamaForCausalLM"}},
		"by model type alone":   {folder(map[string]string{"config.json": `{"model_type":"mystery"}`}), checkpoint.KindArchitecture, []string{"mystery"}},
		"an assistant":          {folder(map[string]string{"config.json": `{"architectures":["Gemma4AssistantForCausalLM"],"text_config":{"model_type":"gemma4_text"}}`}), checkpoint.KindArchitecture, []string{"Gemma4AssistantForCausalLM"}},
		"names nothing":         {folder(map[string]string{"config.json": `{}`}), checkpoint.KindBadConfig, []string{"architectures"}},
		"config not JSON":       {folder(map[string]string{"config.json": `{`}), checkpoint.KindCorrupt, []string{"config.json"}},
		"no layers":             {gemma(set("num_hidden_layers", nil)), checkpoint.KindBadConfig, []string{"num_hidden_layers"}},
		"hidden of text":        {gemma(set("hidden_size", "64")), checkpoint.KindBadConfig, []string{"hidden_size"}},
		"layer list too short":  {gemma(set("layer_types", []string{"full_attention"})), checkpoint.KindBadConfig, []string{"layer_types"}},
		"odd layer":             {gemma(set("layer_types", slices.Repeat([]string{"mamba"}, 6))), checkpoint.KindBadConfig, []string{"mamba"}},
		"no taps":               {spec(set("target_layer_ids", []int{})), checkpoint.KindBadConfig, []string{"target_layer_ids"}},
		"taps unordered":        {spec(set("target_layer_ids", []int{2, 0})), checkpoint.KindBadConfig, []string{"target_layer_ids"}},
		"no block":              {spec(set("block_size", nil)), checkpoint.KindBadConfig, []string{"block_size"}},
		"v1": {folder(map[string]string{"dspark.json": `{"kind":"dspark-drafter","version":1,"config":{"gamma":5,"dDraft":32,"nLayers":2}}`, "model.safetensors": one}),
			checkpoint.KindSuperseded, []string{"superseded v1", "variant=none", "trained again"}},
		"variant of another time": {folder(map[string]string{"dspark.json": `{"variant":"x9"}`, "model.safetensors": one}), checkpoint.KindSuperseded, []string{"variant=x9"}},
		"dspark of another kind":  {folder(map[string]string{"dspark.json": `{"kind":"recipe"}`}), checkpoint.KindUnsupported, []string{"recipe"}},
		"dspark without sizes":    {folder(map[string]string{"dspark.json": `{"variant":"dspark"}`}), checkpoint.KindBadConfig, []string{"dspark.json", "dims"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Describe(c.dir)
			refused(t, err, c.kind, c.parts...)
		})
	}
}

func TestDescribeAs(t *testing.T) {
	target, drafter := filepath.Join(fixtures, "gemma4-12b-like"), filepath.Join(fixtures, "deepspec-gemma4")
	if _, err := DescribeAs(Target, target); err != nil {
		t.Error(err)
	}
	if _, err := DescribeAs(Drafter, drafter); err != nil {
		t.Error(err)
	}
	_, err := DescribeAs(Target, drafter)
	refused(t, err, checkpoint.KindWrongRole, "a drafter, not a target")
	_, err = DescribeAs(Drafter, target)
	refused(t, err, checkpoint.KindWrongRole, "a target, not a drafter")
	_, err = DescribeAs(Target, copyOf(t, "gemma4-12b-like", t.TempDir(), func(c map[string]any) { c["enable_moe_block"] = true }))
	refused(t, err, checkpoint.KindArchitecture, "mixture of experts")
}
