package library

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"firesteel/models/checkpoint"
)

const fixtures = "../../models/testdata/goldens"

// weights is a safetensors file of zeros: a name and F32 shape each.
func weights(t testing.TB, tensors map[string][]int) string {
	t.Helper()
	header := map[string]any{}
	size := 0
	for name, shape := range tensors {
		n := 4
		for _, d := range shape {
			n *= d
		}
		header[name] = map[string]any{"dtype": "F32", "shape": shape, "data_offsets": []int{size, size + n}}
		size += n
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	return string(append(append(b, text...), make([]byte, size)...))
}

func write(t testing.TB, dir string, files map[string]string) string {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// copyOf copies a fixture to dir, its reference values left out, after changing config.json.
func copyOf(t testing.TB, fixture, dir string, change func(config map[string]any)) string {
	t.Helper()
	for _, name := range []string{"config.json", "model.safetensors"} {
		b, err := os.ReadFile(filepath.Join(fixtures, fixture, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "config.json" && change != nil {
			var config map[string]any
			if err := json.Unmarshal(b, &config); err != nil {
				t.Fatal(err)
			}
			change(config)
			if b, err = json.Marshal(config); err != nil {
				t.Fatal(err)
			}
		}
		write(t, dir, map[string]string{name: string(b)})
	}
	return dir
}

func describe(t testing.TB, dir string) Description {
	t.Helper()
	d, err := Describe(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func refused(t testing.TB, err error, kind checkpoint.Kind, parts ...string) {
	t.Helper()
	var e *checkpoint.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *checkpoint.Error", err)
	}
	if e.Kind != kind {
		t.Errorf("got kind %q, want %q: %v", e.Kind, kind, err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not mention %q", err, part)
		}
	}
}

// dspark is the dspark.json of a small trainable drafter for gemma4-12b-like.
const dspark = `{"kind":"dspark-drafter","variant":"dspark","version":1,"target_id":"gemma4-12b-like@64x320",
	"config":{"gamma":5,"dDraft":32,"nLayers":2,"nHeads":4,"markovRank":16,"ffMult":2,"tapLayers":[1,3,6]},
	"dims":{"hiddenSize":64,"vocabSize":320,"eps":1e-06}}`

const qwen3 = `{"architectures":["Qwen3ForCausalLM"],"model_type":"qwen3","hidden_size":64,"num_hidden_layers":5,"vocab_size":320,
	"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"max_position_embeddings":512,"eos_token_id":1}`

const qwen3Drafter = `{"architectures":["Qwen3DSparkModel"],"model_type":"qwen3","hidden_size":64,"num_hidden_layers":2,"vocab_size":320,
	"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"block_size":7,"num_target_layers":5,"mask_token_id":300,
	"target_layer_ids":[-1,0,2,4],"markov_rank":16,"markov_head_type":"rnn"}`
