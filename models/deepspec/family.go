package deepspec

import (
	"strings"

	"firesteel/mlxbind"
	"firesteel/models/checkpoint"
	"firesteel/models/gemma4"
	"firesteel/models/nn"
	"firesteel/models/qwen3"
)

// decoder is what a drafter needs of its family's layer.
type decoder interface {
	NewCache(window int) *nn.Cache
	Project(s *mlxbind.Scope, h mlxbind.Array, turn nn.Turn) (queries, rows mlxbind.Array)
	Rows(s *mlxbind.Scope, context mlxbind.Array, turn nn.Turn) mlxbind.Array
	Finish(s *mlxbind.Scope, h, attended mlxbind.Array) mlxbind.Array
}

// family is what drafters for one family of targets have of their own.
type family struct {
	layer        func(l *nn.Loader, prefix string) decoder
	embedding    func(folder *checkpoint.Folder) float64 // what embedded rows are multiplied by
	scale        float32                                 // of attention scores
	headDim      int
	theta, share float64 // of the rotation
}

// readFamily reads what the architecture's family needs.
func readFamily(c *checkpoint.Fields) family {
	if names := c.Words("architectures"); len(names) > 0 && strings.HasPrefix(names[0], "Qwen3") {
		return readQwen3(c)
	}
	return readGemma4(c)
}

func readQwen3(c *checkpoint.Fields) family {
	shape := qwen3.ReadShape(c)
	return family{
		layer:     func(l *nn.Loader, prefix string) decoder { return qwen3.LoadLayer(l, prefix, shape) },
		embedding: func(*checkpoint.Folder) float64 { return 1 },
		scale:     shape.Scale(), headDim: shape.HeadDim, theta: qwen3.Rope(c), share: 1,
	}
}

func readGemma4(c *checkpoint.Fields) family {
	shape := gemma4.Shape{
		Hidden: c.Count("hidden_size"), Intermediate: c.Count("intermediate_size"), Heads: c.Count("num_attention_heads"),
		HeadDim: c.Count("global_head_dim"), SharedValues: c.Flag("attention_k_eq_v", false), Eps: float32(c.Number("rms_norm_eps", 1e-6)),
	}
	keyHeads := "num_key_value_heads"
	if shape.SharedValues {
		keyHeads = "num_global_key_value_heads"
	}
	shape.KeyHeads = c.Count(keyHeads)
	if act := c.Text("hidden_activation", "gelu_pytorch_tanh"); act != "gelu_pytorch_tanh" && c.Err == nil {
		c.Err = c.Fail("hidden_activation", "is %q; only gelu_pytorch_tanh is supported", act)
	}
	theta, share, err := gemma4.Rope(c.Config, "full_attention", 1e6)
	if c.Err == nil {
		c.Err = err
	}
	return family{
		layer:     func(l *nn.Loader, prefix string) decoder { return gemma4.LoadLayer(l, prefix, shape) },
		embedding: func(f *checkpoint.Folder) float64 { return gemma4.EmbeddingScale(f, "embed_tokens", shape.Hidden) },
		scale:     gemma4.Scale, headDim: shape.HeadDim, theta: theta, share: share,
	}
}
