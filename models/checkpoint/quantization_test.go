package checkpoint

import (
	"path/filepath"
	"testing"
)

func TestQuantizationOfFixtures(t *testing.T) {
	mixed := open(t, filepath.Join(fixtures, "deepspec-gemma4-mixed"))
	for module, want := range map[string]*Quantization{
		"embed_tokens":              {6, 64, "affine"},
		"lm_head":                   {8, 64, "affine"},
		"layers.0.self_attn.q_proj": {4, 64, "affine"},
		"layers.1.mlp.down_proj":    {4, 64, "affine"},
		"fc":                        nil,
		"markov_head.markov_w1":     nil,
		"norm":                      nil,
		"no.such.module":            nil,
	} {
		got, err := mixed.Quantization(module)
		if err != nil || (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%s: got %v, %v, want %v", module, got, err, want)
		}
	}
	for name, group := range map[string]int{"gemma4-12b-like-q4": 64, "deepspec-gemma4-q4": 32} {
		f := open(t, filepath.Join(fixtures, name))
		modules := f.QuantizedModules()
		if len(modules) < 10 {
			t.Errorf("%s: only %v", name, modules)
		}
		for _, module := range modules {
			if q, err := f.Quantization(module); err != nil || *q != (Quantization{4, group, "affine"}) {
				t.Errorf("%s %s: %v, %v", name, module, q, err)
			}
		}
	}
}

// affine returns a module packed from [out, in] at bits in groups.
func affine(module string, out, in, bits, group int) []item {
	return []item{
		{module + ".weight", U32, []int{out, in * bits / 32}, nil},
		{module + ".scales", BF16, []int{out, in / group}, nil},
		{module + ".biases", BF16, []int{out, in / group}, nil},
	}
}

func TestQuantizationPolicy(t *testing.T) {
	const m = "model.layers.0.fc"
	plain := []item{{m + ".weight", BF16, []int{4, 128}, nil}}
	fp := func(bits, group int) []item {
		return []item{{m + ".weight", U32, []int{4, 128 * bits / 32}, nil}, {m + ".scales", U8, []int{4, 128 / group}, nil}}
	}
	q := func(bits, group int, mode string) *Quantization { return &Quantization{bits, group, mode} }
	for name, c := range map[string]struct {
		config string
		items  []item
		want   *Quantization
		kind   Kind // of the refusal, when there is one
		named  string
	}{
		"stated, but in full precision":     {config: `{"quantization":{"bits":4,"group_size":64}}`, items: plain},
		"own entry, but in full precision":  {config: `{"quantization":{"bits":4,"` + m + `":{"bits":8}}}`, items: plain},
		"bits null":                         {config: `{"quantization":{"bits":null}}`, items: plain},
		"bits null, packed":                 {config: `{"quantization":{"bits":null}}`, items: affine(m, 4, 128, 4, 64), kind: KindMismatch, named: m},
		"nothing stated, packed":            {config: `{}`, items: affine(m, 4, 128, 4, 64), kind: KindMismatch, named: m},
		"empty block, packed":               {config: `{"quantization":{}}`, items: affine(m, 4, 128, 4, 64), kind: KindMismatch, named: m},
		"entry false, packed":               {config: `{"quantization":{"bits":4,"` + m + `":false}}`, items: affine(m, 4, 128, 4, 64), kind: KindMismatch, named: m},
		"entry null, packed":                {config: `{"quantization":{"bits":4,"group_size":64,"` + m + `":null}}`, items: affine(m, 4, 128, 4, 64), want: q(4, 64, "affine")},
		"entry true, packed":                {config: `{"quantization":{"bits":4,"group_size":64,"` + m + `":true}}`, items: affine(m, 4, 128, 4, 64), want: q(4, 64, "affine")},
		"top level":                         {config: `{"quantization":{"bits":4,"group_size":32}}`, items: affine(m, 4, 128, 4, 32), want: q(4, 32, "affine")},
		"group by default":                  {config: `{"quantization":{"bits":4}}`, items: affine(m, 4, 128, 4, 64), want: q(4, 64, "affine")},
		"quantization_config":               {config: `{"quantization_config":{"bits":8,"group_size":64}}`, items: affine(m, 4, 128, 8, 64), want: q(8, 64, "affine")},
		"nested in text_config":             {config: `{"text_config":{"quantization":{"bits":8,"group_size":64}}}`, items: affine(m, 4, 128, 8, 64), want: q(8, 64, "affine")},
		"quantization goes first":           {config: `{"quantization":{"bits":8},"quantization_config":{"quant_method":"gptq","bits":4}}`, items: affine(m, 4, 128, 8, 64), want: q(8, 64, "affine")},
		"entry inherits group":              {config: `{"quantization":{"bits":4,"group_size":32,"` + m + `":{"bits":8}}}`, items: affine(m, 4, 128, 8, 32), want: q(8, 32, "affine")},
		"entry inherits bits":               {config: `{"quantization":{"bits":4,"group_size":32,"` + m + `":{"group_size":128}}}`, items: affine(m, 4, 128, 4, 128), want: q(4, 128, "affine")},
		"entry without model.":              {config: `{"quantization":{"bits":4,"layers.0.fc":{"bits":8}}}`, items: affine(m, 4, 128, 8, 64), want: q(8, 64, "affine")},
		"entry with language_model.":        {config: `{"quantization":{"bits":4,"language_model.model.layers.0.fc":{"bits":8}}}`, items: affine(m, 4, 128, 8, 64), want: q(8, 64, "affine")},
		"entry with model.language_model.":  {config: `{"quantization":{"bits":4,"model.language_model.layers.0.fc":{"bits":8}}}`, items: affine(m, 4, 128, 8, 64), want: q(8, 64, "affine")},
		"exact entry before a stripped one": {config: `{"quantization":{"bits":4,"layers.0.fc":{"bits":2},"` + m + `":{"bits":8}}}`, items: affine(m, 4, 128, 8, 64), want: q(8, 64, "affine")},
		"3 bits":                            {config: `{"quantization":{"bits":3}}`, items: affine(m, 4, 128, 3, 64), want: q(3, 64, "affine")},
		"5 bits":                            {config: `{"quantization":{"bits":5}}`, items: affine(m, 4, 128, 5, 64), want: q(5, 64, "affine")},
		"7 bits":                            {config: `{"quantization":{"bits":7}}`, items: affine(m, 4, 128, 7, 64), kind: KindUnsupported, named: m},
		"group of 48":                       {config: `{"quantization":{"bits":4,"group_size":48}}`, items: affine(m, 4, 96, 4, 48), kind: KindUnsupported, named: m},
		"bits of another file":              {config: `{"quantization":{"bits":8,"group_size":64}}`, items: affine(m, 4, 128, 4, 64), kind: KindMismatch, named: m + ".weight"},
		"group of another file":             {config: `{"quantization":{"bits":4,"group_size":32}}`, items: affine(m, 4, 128, 4, 64), kind: KindMismatch, named: m + ".weight"},
		"mxfp4":                             {config: `{"quantization":{"bits":4,"group_size":32,"mode":"mxfp4"}}`, items: fp(4, 32), want: q(4, 32, "mxfp4")},
		"mxfp8, mode alone":                 {config: `{"quantization":{"mode":"mxfp8"}}`, items: fp(8, 32), want: q(8, 32, "mxfp8")},
		"nvfp4":                             {config: `{"quantization":{"bits":4,"group_size":16,"mode":"nvfp4"}}`, items: fp(4, 16), want: q(4, 16, "nvfp4")},
		"mxfp4 in the wrong groups":         {config: `{"quantization":{"bits":4,"group_size":64,"mode":"mxfp4"}}`, items: fp(4, 32), kind: KindMismatch, named: m},
		"mxfp4 with biases":                 {config: `{"quantization":{"mode":"mxfp4"}}`, items: append(fp(4, 32), item{m + ".biases", BF16, []int{4, 4}, nil}), kind: KindMismatch, named: m + ".biases"},
		"mxfp4 with float scales":           {config: `{"quantization":{"mode":"mxfp4"}}`, items: affine(m, 4, 128, 4, 32), kind: KindMismatch, named: m + ".scales"},
		"affine entry among mxfp4":          {config: `{"quantization":{"bits":4,"group_size":32,"mode":"mxfp4","` + m + `":{"bits":8,"group_size":64}}}`, items: affine(m, 4, 128, 8, 64), want: q(8, 64, "affine")},
		"mxfp4 entry among affine":          {config: `{"quantization":{"bits":8,"group_size":64,"` + m + `":{"mode":"mxfp4"}}}`, items: fp(4, 32), want: q(4, 32, "mxfp4")},
		"a mode nobody knows":               {config: `{"quantization":{"bits":4,"mode":"fancy"}}`, items: affine(m, 4, 128, 4, 64), kind: KindUnsupported, named: "fancy"},
		"affine with byte scales":           {config: `{"quantization":{"bits":4,"group_size":32}}`, items: fp(4, 32), kind: KindMismatch, named: m + ".scales"},
		"scales without weight":             {config: `{"quantization":{"bits":4}}`, items: affine(m, 4, 128, 4, 64)[1:], kind: KindIncomplete, named: m + ".weight"},
		"packed weight without scales":      {config: `{"quantization":{"bits":4}}`, items: affine(m, 4, 128, 4, 64)[:1], kind: KindIncomplete, named: m + ".scales"},
		"biases missing":                    {config: `{"quantization":{"bits":4}}`, items: affine(m, 4, 128, 4, 64)[:2], kind: KindIncomplete, named: m + ".biases"},
		"weight not packed":                 {config: `{"quantization":{"bits":4}}`, items: append(affine(m, 4, 128, 4, 64)[1:], item{m + ".weight", BF16, []int{4, 128}, nil}), kind: KindMismatch, named: m + ".weight"},
		"rows differ":                       {config: `{"quantization":{"bits":4}}`, items: []item{{m + ".weight", U32, []int{4, 16}, nil}, {m + ".scales", BF16, []int{3, 2}, nil}, {m + ".biases", BF16, []int{3, 2}, nil}}, kind: KindMismatch, named: m + ".scales"},
		"biases of another shape":           {config: `{"quantization":{"bits":4}}`, items: []item{{m + ".weight", U32, []int{4, 16}, nil}, {m + ".scales", BF16, []int{4, 2}, nil}, {m + ".biases", BF16, []int{4, 1}, nil}}, kind: KindMismatch, named: m + ".biases"},
		"one-dimensional":                   {config: `{"quantization":{"bits":4}}`, items: []item{{m + ".weight", U32, []int{16}, nil}, {m + ".scales", BF16, []int{2}, nil}, {m + ".biases", BF16, []int{2}, nil}}, kind: KindMismatch, named: m + ".scales"},
		"experts, three-dimensional":        {config: `{"quantization":{"bits":4}}`, items: []item{{m + ".weight", U32, []int{3, 4, 16}, nil}, {m + ".scales", F16, []int{3, 4, 2}, nil}, {m + ".biases", F16, []int{3, 4, 2}, nil}}, want: q(4, 64, "affine")},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, folderOf(t, map[string]string{"config.json": c.config, weightsName: string(pack(t, c.items...))}))
			got, err := f.Quantization(m)
			if c.kind != KindUnknown {
				refused(t, err, c.kind, c.named)
				return
			}
			if err != nil || (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
				t.Errorf("got %v, %v, want %v", got, err, c.want)
			}
		})
	}
}

func TestQuantizationAcrossShards(t *testing.T) {
	parts := affine("fc", 4, 128, 4, 64)
	f := open(t, folderOf(t, map[string]string{"config.json": `{"quantization":{"bits":4}}`,
		"model-00001-of-00002.safetensors": string(pack(t, parts[0])), "model-00002-of-00002.safetensors": string(pack(t, parts[1:]...)),
		indexName: `{"weight_map":{"fc.weight":"model-00001-of-00002.safetensors","fc.scales":"model-00002-of-00002.safetensors","fc.biases":"model-00002-of-00002.safetensors"}}`}))
	if q, err := f.Quantization("fc"); err != nil || *q != (Quantization{4, 64, "affine"}) {
		t.Error(q, err)
	}
}

func TestForeignQuantizationRefused(t *testing.T) {
	weights := string(pack(t, item{"a", U8, []int{1}, nil}))
	for config, parts := range map[string][]string{
		`{"quantization_config":{"quant_method":"compressed-tensors","config_groups":{"group_0":{}}}}`: {"compressed-tensors"},
		`{"quantization_config":{"quant_method":"gptq","bits":4,"group_size":128}}`:                    {"gptq"},
		`{"text_config":{"quantization_config":{"quant_method":"awq"}}}`:                               {"awq"},
		`{"quantization_config":{"config_groups":{"group_0":{}}}}`:                                     {"config_groups"},
	} {
		_, err := Open(folderOf(t, map[string]string{"config.json": config, weightsName: weights}))
		refused(t, err, KindUnsupported, append(parts, "config.json")...)
	}
	_, err := Open(folderOf(t, map[string]string{"config.json": `{"quantization":{"bits":"four"}}`, weightsName: weights}))
	refused(t, err, KindBadConfig, "quantization.bits")
}
