package library

import (
	"path/filepath"
	"strings"

	"firesteel/models/checkpoint"
)

// targets maps architectures and model types to families.
var targets = map[string]string{
	"Gemma4ForCausalLM":                     Gemma4,
	"Gemma4ForConditionalGeneration":        Gemma4,
	"Gemma4UnifiedForConditionalGeneration": Gemma4,
	"gemma4":                                Gemma4,
	"gemma4_text":                           Gemma4,
	"gemma4_unified":                        Gemma4,
	"gemma4_unified_text":                   Gemma4,
	"Qwen3ForCausalLM":                      Qwen3,
	"qwen3":                                 Qwen3,
}

// drafterTarget returns the target family of one of DeepSpec's architectures.
func drafterTarget(architecture string) (family string, ok bool) {
	for prefix, family := range map[string]string{"Gemma4": Gemma4, "Qwen3": Qwen3} {
		for _, suffix := range []string{"DSparkModel", "DFlashModel"} {
			if architecture == prefix+suffix {
				return family, true
			}
		}
	}
	return "", false
}

// readConfig fills in what config.json says.
func (d *Description) readConfig() error {
	c, err := checkpoint.ReadConfig(filepath.Join(d.Dir, "config.json"))
	if err != nil {
		return err
	}
	text, err := c.Text()
	if err != nil {
		return err
	}
	if d.ModelType, err = text.StringOr("model_type", ""); err != nil {
		return err
	}
	if c.Has("architectures") {
		names, err := c.Strings("architectures")
		if err != nil {
			return err
		}
		if len(names) > 0 {
			d.Architecture = names[0]
		}
	}
	if family, ok := drafterTarget(d.Architecture); ok {
		d.Kind, d.Family, d.TargetFamily = Drafter, DeepSpec, family
		return d.readDeepSpec(text)
	}
	// The architecture decides where it is given: gemma4_text is also the model type of parts that
	// write no text.
	name := d.Architecture
	if name == "" {
		if name, err = c.StringOr("model_type", d.ModelType); err != nil {
			return err
		}
	}
	family, ok := targets[name]
	if !ok {
		if name == "" {
			return c.Fail("architectures", "missing, and model_type too")
		}
		return &checkpoint.Error{Kind: checkpoint.KindArchitecture, Path: d.Dir, Detail: name}
	}
	d.Kind, d.Family = Target, family
	if err := d.readSizes(text); err != nil {
		return err
	}
	if d.tied, err = text.BoolOr("tie_word_embeddings", family == Gemma4); err != nil {
		return err
	}
	if family == Gemma4 {
		return d.readGemma4(text)
	}
	return d.readPlainCache(text)
}

func (d *Description) readSizes(c *checkpoint.Config) error {
	for _, field := range []struct {
		key string
		to  *int
	}{{"num_hidden_layers", &d.Layers}, {"hidden_size", &d.Hidden}, {"vocab_size", &d.Vocabulary}} {
		n, err := c.PositiveInt(field.key)
		if err != nil {
			return err
		}
		*field.to = n
	}
	if c.Has("max_position_embeddings") {
		n, err := c.PositiveInt("max_position_embeddings")
		if err != nil {
			return err
		}
		d.Context = n
	}
	return nil
}

// positiveOr is PositiveInt with a value for an absent key.
func positiveOr(c *checkpoint.Config, key string, absent int) (int, error) {
	if !c.Has(key) {
		return absent, nil
	}
	return c.PositiveInt(key)
}

// heads reads the width of one token's keys in a layer: heads × size of each.
func heads(c *checkpoint.Config, countKey, countElse, sizeKey, sizeElse string) (int, error) {
	if !c.Has(countKey) {
		countKey = countElse
	}
	count, err := c.PositiveInt(countKey)
	if err != nil {
		return 0, err
	}
	if !c.Has(sizeKey) {
		sizeKey = sizeElse
	}
	size, err := c.PositiveInt(sizeKey)
	return count * size, err
}

func (d *Description) readGemma4(c *checkpoint.Config) error {
	var err error
	if d.Moe, err = c.BoolOr("enable_moe_block", false); err != nil {
		return err
	}
	kinds, err := c.Strings("layer_types")
	if err != nil {
		return err
	}
	if len(kinds) != d.Layers {
		return c.Fail("layer_types", "%d entries for %d layers", len(kinds), d.Layers)
	}
	if d.borrowers, err = c.IntOr("num_kv_shared_layers", 0); err != nil {
		return err
	}
	if d.borrowers < 0 || d.borrowers >= d.Layers {
		return c.Fail("num_kv_shared_layers", "%d of %d layers", d.borrowers, d.Layers)
	}
	for i, kind := range kinds {
		switch kind {
		case "full_attention", "sliding_attention":
		default:
			return c.Fail("layer_types", "%q is not a kind of layer that is known", kind)
		}
		if i >= d.Layers-d.borrowers {
			continue // it uses an earlier layer's keys and values
		}
		if kind == "full_attention" {
			d.Cache.FullLayers++
		} else {
			d.Cache.WindowLayers++
		}
	}
	// K=V layers keep both: keys are rotated and scaled, values are not. Only they have a head count of
	// their own.
	sharedValues, err := c.BoolOr("attention_k_eq_v", false)
	if err != nil {
		return err
	}
	headCount := "num_key_value_heads"
	if sharedValues {
		headCount = "num_global_key_value_heads"
	}
	full, err := heads(c, headCount, "num_key_value_heads", "global_head_dim", "head_dim")
	if err != nil {
		return err
	}
	d.Cache.FullRow = 2 * full
	if d.Cache.WindowLayers > 0 {
		row, err := heads(c, "num_key_value_heads", "num_key_value_heads", "head_dim", "head_dim")
		if err != nil {
			return err
		}
		d.Cache.WindowRow = 2 * row
		if d.Cache.Window, err = c.PositiveInt("sliding_window"); err != nil {
			return err
		}
	}
	return nil
}

// readPlainCache is for models whose layers are all alike.
func (d *Description) readPlainCache(c *checkpoint.Config) error {
	attention, err := c.PositiveInt("num_attention_heads")
	if err != nil {
		return err
	}
	count, err := positiveOr(c, "num_key_value_heads", attention)
	if err != nil {
		return err
	}
	size, err := positiveOr(c, "head_dim", d.Hidden/attention)
	if err != nil {
		return err
	}
	d.Cache = CacheLayout{FullLayers: d.Layers, FullRow: 2 * count * size}
	return nil
}

func (d *Description) readDeepSpec(c *checkpoint.Config) error {
	if err := d.readSizes(c); err != nil {
		return err
	}
	d.TargetHidden = d.Hidden
	var err error
	if d.Block, err = c.PositiveInt("block_size"); err != nil {
		return err
	}
	if d.TargetLayers, err = c.PositiveInt("num_target_layers"); err != nil {
		return err
	}
	if d.MaskToken, err = c.Int("mask_token_id"); err != nil {
		return err
	}
	if d.Taps, err = c.Ints("target_layer_ids"); err != nil {
		return err
	}
	if len(d.Taps) == 0 {
		return c.Fail("target_layer_ids", "no layer is listed")
	}
	for i := 1; i < len(d.Taps); i++ {
		if d.Taps[i] <= d.Taps[i-1] {
			return c.Fail("target_layer_ids", "%v does not rise from layer to layer", d.Taps)
		}
	}
	if d.MarkovRank, err = c.IntOr("markov_rank", 0); err != nil {
		return err
	}
	if d.MarkovRank < 0 {
		return c.Fail("markov_rank", "%d is out of range", d.MarkovRank)
	}
	if d.MarkovRank > 0 {
		if d.MarkovHead, err = c.StringOr("markov_head_type", "vanilla"); err != nil {
			return err
		}
	}
	if d.HasConfidence, err = c.BoolOr("enable_confidence_head", false); err != nil {
		return err
	}
	if d.TargetFamily == Gemma4 {
		row, err := heads(c, "num_global_key_value_heads", "num_key_value_heads", "global_head_dim", "head_dim")
		if err != nil {
			return err
		}
		d.Cache = CacheLayout{FullLayers: d.Layers, FullRow: 2 * row}
		return nil
	}
	return d.readPlainCache(c)
}

// readDSpark fills in what dspark.json says. It goes with any family: it takes the target's embedding
// and head as they are.
func (d *Description) readDSpark() error {
	c, err := checkpoint.ReadDSpark(d.Dir)
	if err != nil {
		return err
	}
	d.Kind, d.Family = Drafter, DFlash
	d.Architecture, d.ModelType = "DsparkDrafter", "dspark_assistant"
	d.TargetID, d.TargetHidden, d.Vocabulary = c.TargetID, c.Hidden, c.Vocabulary
	d.Block, d.Hidden, d.Layers, d.Taps = c.Gamma, c.Width, c.Layers, c.Taps
	d.MarkovRank, d.MarkovHead, d.HasConfidence = c.Rank, c.Head, true
	d.Cache = CacheLayout{FullLayers: d.Layers, FullRow: 2 * d.Hidden}
	return nil
}

// targetName returns the name part of a target_id, before the '@'.
func (d Description) targetName() string {
	name, _, _ := strings.Cut(d.TargetID, "@")
	return name
}
