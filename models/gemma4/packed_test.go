package gemma4

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"firesteel/mlxbind"
	"firesteel/models/checkpoint"
	"firesteel/models/internal/mlxtest"
)

// enlarged writes the packed fixture's form at another size, with random weights, and returns
// its folder and how many bytes its matrices take in float32.
func enlarged(t *testing.T) (dir string, wide int64) {
	t.Helper()
	raw, err := os.ReadFile("../testdata/goldens/gemma4-12b-like-q4/config.json")
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(raw, &config); err != nil {
		t.Fatal(err)
	}
	const hidden, inter, vocabulary, group = 512, 2048, 16384, 64
	config["hidden_size"], config["intermediate_size"], config["vocab_size"] = hidden, inter, vocabulary
	config["num_attention_heads"], config["head_dim"], config["global_head_dim"] = 8, 64, 128
	config["quantization"] = map[string]any{"bits": 4, "group_size": group, "mode": "affine"}
	delete(config, "quantization_config")

	random := rand.New(rand.NewPCG(1, 2))
	header := map[string]any{}
	var data []byte
	put := func(name, dtype string, size int, shape ...int) {
		n := size
		for _, d := range shape {
			n *= d
		}
		from := len(data)
		for i := 0; i < n; i += 2 {
			v := uint16(random.Uint32())
			if dtype == "BF16" {
				v = 0x3c00 // 1/128: scales and norms small and harmless
			}
			data = binary.LittleEndian.AppendUint16(data, v)
		}
		header[name] = map[string]any{"dtype": dtype, "shape": shape, "data_offsets": []int{from, len(data)}}
	}
	packed := func(module string, out, in int) {
		put(module+".weight", "U32", 4, out, in/8)
		put(module+".scales", "BF16", 2, out, in/group)
		put(module+".biases", "BF16", 2, out, in/group)
		wide += int64(out) * int64(in) * 4
	}
	packed("model.embed_tokens", vocabulary, hidden)
	put("model.norm.weight", "BF16", 2, hidden)
	for i, kind := range config["layer_types"].([]any) {
		p := fmt.Sprintf("model.layers.%d.", i)
		for _, name := range []string{"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"} {
			put(p+name+".weight", "BF16", 2, hidden)
		}
		put(p+"layer_scalar", "BF16", 2, 1)
		dim, keys := 64, 2
		if kind == "full_attention" {
			dim, keys = 128, 1
		} else {
			packed(p+"self_attn.v_proj", keys*dim, hidden)
		}
		packed(p+"self_attn.q_proj", 8*dim, hidden)
		packed(p+"self_attn.k_proj", keys*dim, hidden)
		packed(p+"self_attn.o_proj", hidden, 8*dim)
		put(p+"self_attn.q_norm.weight", "BF16", 2, dim)
		put(p+"self_attn.k_norm.weight", "BF16", 2, dim)
		packed(p+"mlp.gate_proj", inter, hidden)
		packed(p+"mlp.up_proj", inter, hidden)
		packed(p+"mlp.down_proj", hidden, inter)
	}
	dir = t.TempDir()
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	if err := os.WriteFile(filepath.Join(dir, "model.safetensors"), append(file, data...), 0o600); err != nil {
		t.Fatal(err)
	}
	if raw, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, wide
}

// Packed weights stay packed: loading and running takes less than they would take in float32.
func TestPackedWeightsAreNeverUnpackedWhole(t *testing.T) {
	dir, wide := enlarged(t)
	folder, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	mlxtest.On(t, func(s *mlxbind.Scope) {
		mlxbind.ClearCache()
		base := mlxbind.ActiveMemory()
		mlxbind.ResetPeakMemory()
		target, err := Load(context.Background(), folder, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer target.Close()
		state := target.NewState()
		defer state.Close()
		for _, n := range []int{40, 8, 1} {
			if _, err := feed(target, state, make([]int32, n)); err != nil {
				t.Fatal(err)
			}
		}
		peak := mlxbind.PeakMemory() - base
		t.Logf("peak %d MB, in float32 %d MB", peak>>20, wide>>20)
		if peak >= wide {
			t.Errorf("peak %d, the matrices in float32 %d", peak, wide)
		}
	})
}
