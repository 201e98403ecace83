package gemma4

import (
	"math"

	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/checkpoint"
	"firesteel/models/nn"
)

// tokenInputs makes what the small models add to every layer besides the residual stream: for each
// token and layer a short row, half from a table of its own, half projected from the embedding.
//
//	input = (norm(project(embedding)/√hidden) + table[token]·√width)/√2
type tokenInputs struct {
	layers, width int
	tokens, known int // tokens of the model, and of the table: those beyond it take row 0, the padding's
	scale         float64
	fromEmbedding float64
	eps           float32

	table   *nn.Embedding // [known, layers·width], by far the largest tensor of such a checkpoint
	project *nn.Linear    // hidden → layers·width
	norm    mlxbind.Array // [width]
}

func loadTokenInputs(l *nn.Loader, folder *checkpoint.Folder, prefix string, g models.Geometry, known, width int, eps float32) *tokenInputs {
	all := g.Layers * width
	return &tokenInputs{
		layers: g.Layers, width: width, tokens: g.Vocabulary, known: known, eps: eps,
		scale:         EmbeddingScale(folder, prefix+"embed_tokens_per_layer", width),
		fromEmbedding: 1 / math.Sqrt(float64(g.Hidden)),
		table:         l.Lookup(prefix+"embed_tokens_per_layer", known, all),
		project:       l.Linear(g.Hidden, nn.Module{Name: prefix + "per_layer_model_projection", Out: all}),
		norm:          l.Tensor(prefix+"per_layer_projection_norm.weight", width),
	}
}

// all is every layer's input [1, n, layers, width] for tokens [1, n] whose scaled embedding is
// h [1, n, hidden].
func (p *tokenInputs) all(s *mlxbind.Scope, tokens, h mlxbind.Array) mlxbind.Array {
	scalar := func(v float64) mlxbind.Array { return s.Scalar(v, h.DType()) }
	n := tokens.Dim(1)
	if p.known < p.tokens {
		within := s.Less(tokens, s.Scalar(float64(p.known), tokens.DType()))
		tokens = s.Where(within, tokens, s.Scalar(0, tokens.DType()))
	}
	projected := s.Reshape(s.Multiply(p.project.Apply(s, h), scalar(p.fromEmbedding)), 1, n, p.layers, p.width)
	projected = nn.RMSNorm(s, projected, p.norm, p.eps)
	rows := s.Reshape(s.Multiply(p.table.Rows(s, tokens), scalar(p.scale)), 1, n, p.layers, p.width)
	return s.Multiply(s.Add(projected, rows), scalar(math.Sqrt2/2))
}

// layer is one layer's part [1, n, width] of all.
func (p *tokenInputs) layer(s *mlxbind.Scope, all mlxbind.Array, i int) mlxbind.Array {
	return s.Reshape(s.Slice(all, 2, i, i+1), 1, -1, p.width)
}
