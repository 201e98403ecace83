package quantize

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"firesteel/core/job"
	"firesteel/core/memory"
	"firesteel/mlxbind"
	"firesteel/models/checkpoint"
	"firesteel/models/nn"
)

// written makes a folder of random bfloat16 weights near zero, in files of at most shardLimit bytes
// of tensors each; see checkpoint.Layout.
func written(t *testing.T, dir string, config map[string]any, shapes map[string][]int, shardLimit int64) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := checkpoint.WriteJSON(filepath.Join(dir, "config.json"), config); err != nil {
		t.Fatal(err)
	}
	layout := checkpoint.Layout{ShardLimit: shardLimit}
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		layout.Tensors = append(layout.Tensors, checkpoint.Tensor{Name: name, DType: checkpoint.BF16, Shape: shapes[name]})
	}
	w, err := checkpoint.CreateWeights(dir, layout)
	if err != nil {
		t.Fatal(err)
	}
	// Random enough: a block of 4 MiB with sign and mantissa at random, an exponent around 2⁻⁶,
	// begun at another place each time.
	random := rand.New(rand.NewPCG(3, 4))
	block := make([]byte, 4<<20)
	for i := 0; i < len(block); i += 2 {
		v := random.Uint32()
		block[i], block[i+1] = byte(v), byte(0x3c|v>>8&0x80|v>>16&1)
	}
	for _, tensor := range layout.Tensors {
		left := tensor.Elements() * 2
		for left > 0 {
			from := 2 * random.IntN(len(block)/4)
			n := min(left, int64(len(block)-from))
			if err := w.Append(tensor.Name, block[from:from+int(n)]); err != nil {
				t.Fatal(err)
			}
			left -= n
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// drafter12B is the published drafter for Gemma 4 12B: 74 tensors, 6.86 GB.
func drafter12B(t *testing.T, dir string) {
	const hidden, inter, vocabulary, rank, heads, width = 3840, 15360, 262144, 256, 16, 512
	shapes := map[string][]int{
		"embed_tokens.weight": {vocabulary, hidden}, "lm_head.weight": {vocabulary, hidden}, "fc.weight": {hidden, 5 * hidden},
		"hidden_norm.weight": {hidden}, "norm.weight": {hidden},
		"markov_head.markov_w1.weight": {vocabulary, rank}, "markov_head.markov_w2.weight": {vocabulary, rank},
		"confidence_head.proj.weight": {1, hidden + rank}, "confidence_head.proj.bias": {1},
	}
	for i := range 5 {
		p := fmt.Sprintf("layers.%d.", i)
		for _, norm := range []string{"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"} {
			shapes[p+norm+".weight"] = []int{hidden}
		}
		shapes[p+"layer_scalar"] = []int{1}
		shapes[p+"self_attn.q_proj.weight"] = []int{heads * width, hidden}
		shapes[p+"self_attn.k_proj.weight"] = []int{width, hidden}
		shapes[p+"self_attn.o_proj.weight"] = []int{hidden, heads * width}
		shapes[p+"self_attn.q_norm.weight"] = []int{width}
		shapes[p+"self_attn.k_norm.weight"] = []int{width}
		shapes[p+"mlp.gate_proj.weight"] = []int{inter, hidden}
		shapes[p+"mlp.up_proj.weight"] = []int{inter, hidden}
		shapes[p+"mlp.down_proj.weight"] = []int{hidden, inter}
	}
	if len(shapes) != 74 {
		t.Fatalf("%d tensors", len(shapes))
	}
	written(t, dir, map[string]any{
		"architectures": []string{"Gemma4DSparkModel"}, "model_type": "gemma4_text", "hidden_size": hidden, "num_hidden_layers": 5,
		"num_attention_heads": heads, "global_head_dim": width, "num_global_key_value_heads": 1, "num_key_value_heads": 8, "head_dim": 256,
		"intermediate_size": inter, "vocab_size": vocabulary, "block_size": 7, "mask_token_id": 4, "num_target_layers": 48,
		"target_layer_ids": []int{5, 17, 29, 41, 46}, "attention_k_eq_v": true, "markov_rank": rank, "enable_confidence_head": true,
		"confidence_head_with_markov": true, "final_logit_softcapping": 30.0,
	}, shapes, 0)
}

// target4B is the published Qwen3-4B: 398 tensors in three files, 8.045 GB. So that it can write, it
// has the built-in target's list of words, which is shorter than its own.
func target4B(t *testing.T, dir string) {
	const hidden, inter, vocabulary, heads, keyHeads, width, layers = 2560, 9728, 151936, 32, 8, 128, 36
	shapes := map[string][]int{"model.embed_tokens.weight": {vocabulary, hidden}, "model.norm.weight": {hidden}}
	for i := range layers {
		p := fmt.Sprintf("model.layers.%d.", i)
		shapes[p+"input_layernorm.weight"] = []int{hidden}
		shapes[p+"post_attention_layernorm.weight"] = []int{hidden}
		shapes[p+"self_attn.q_proj.weight"] = []int{heads * width, hidden}
		shapes[p+"self_attn.k_proj.weight"] = []int{keyHeads * width, hidden}
		shapes[p+"self_attn.v_proj.weight"] = []int{keyHeads * width, hidden}
		shapes[p+"self_attn.o_proj.weight"] = []int{hidden, heads * width}
		shapes[p+"self_attn.q_norm.weight"] = []int{width}
		shapes[p+"self_attn.k_norm.weight"] = []int{width}
		shapes[p+"mlp.gate_proj.weight"] = []int{inter, hidden}
		shapes[p+"mlp.up_proj.weight"] = []int{inter, hidden}
		shapes[p+"mlp.down_proj.weight"] = []int{hidden, inter}
	}
	if len(shapes) != 398 {
		t.Fatalf("%d tensors", len(shapes))
	}
	written(t, dir, map[string]any{
		"architectures": []string{"Qwen3ForCausalLM"}, "model_type": "qwen3", "hidden_size": hidden, "num_hidden_layers": layers,
		"num_attention_heads": heads, "num_key_value_heads": keyHeads, "head_dim": width, "intermediate_size": inter, "vocab_size": vocabulary,
		"max_position_embeddings": 40960, "tie_word_embeddings": true, "rms_norm_eps": 1e-6, "rope_theta": 1e6, "hidden_act": "silu",
		"attention_bias": false, "torch_dtype": "bfloat16",
	}, shapes, 4e9)
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"} {
		text, err := os.ReadFile(filepath.Join(demoTarget, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestLarge quantizes models of real size and prints what scripts/bench-quantize.sh reports. It
// runs only when that names a model and a folder with room for it.
func TestLarge(t *testing.T) {
	kind, place := os.Getenv("FIRESTEEL_LARGE"), os.Getenv("FIRESTEEL_LARGE_IN")
	if kind == "" || place == "" {
		t.Skip("for scripts/bench-quantize.sh only: it takes 21 GB of disk")
	}
	source := filepath.Join(place, kind)
	if _, err := os.Stat(source); err != nil {
		map[string]func(*testing.T, string){"drafter": drafter12B, "target": target4B}[kind](t, source)
	}
	w := worker(t)
	p, err := NewPlan(Options{Source: source, Destination: filepath.Join(place, kind+"-smaller"), Notes: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), w, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	peak := memory.Read().ProcessPeak

	// What copying source and result takes on this disk, and the arithmetic alone, a piece at a time.
	begun := time.Now()
	for _, dir := range []string{source, p.Destination} {
		copyFolder(t, dir, filepath.Join(place, kind+"-copy"))
	}
	copying := time.Since(begun).Seconds()
	arithmetic := arithmetic(t, w, p)
	line, err := json.Marshal(map[string]any{
		"model": kind, "source_gb": float64(p.SourceBytes) / 1e9, "result_gb": float64(r.ResultBytes) / 1e9, "announced_gb": float64(p.ResultBytes) / 1e9,
		"seconds": r.Seconds, "copying_seconds": copying, "arithmetic_seconds": arithmetic, "ratio": r.Seconds / (1.5*copying + arithmetic),
		"process_peak_mb": float64(peak) / 1e6, "bits_per_weight": p.BitsPerWeight,
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(line))
	if peak > 700_000_000 {
		t.Errorf("the process held %d bytes at its peak", peak)
	}
}

// copyFolder copies a folder, brings it to the disk and removes it again.
func copyFolder(t *testing.T, from, to string) {
	defer os.RemoveAll(to)
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(to)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		f, err := os.Open(filepath.Join(to, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Error(err)
		}
		f.Close()
	}
}

// arithmetic is how long packing takes with nothing read or written: every piece's size once, on
// the same values.
func arithmetic(t *testing.T, w job.Runner, p *Plan) float64 {
	raw := make([]byte, pieceBytes+1<<20)
	for at, sum := 0, sha256.Sum256(nil); at+len(sum) <= len(raw); at += len(sum) {
		copy(raw[at:], sum[:])
		sum = sha256.Sum256(sum[:])
		for i := at + 1; i < at+len(sum); i += 2 {
			raw[i] = raw[i]&0x81 | 0x3c
		}
	}
	begun := time.Now()
	for at := range p.pieces() {
		if at.module == nil {
			continue
		}
		err := w.Do(context.Background(), func() error {
			s := mlxbind.NewScope()
			defer s.Close()
			packed := s.Quantize(s.Data(raw[:at.part.Size], mlxbind.BFloat16, at.part.Shape...), nn.Packing(at.module.Packing))
			return s.Eval(packed.Weight, packed.Scales, packed.Biases)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(begun).Seconds()
}
