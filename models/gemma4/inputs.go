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
	layers        []*Layer
	depth, width  int
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
		depth: g.Layers, width: width, tokens: g.Vocabulary, known: known, eps: eps,
		scale:         EmbeddingScale(folder, prefix+"embed_tokens_per_layer", width),
		fromEmbedding: 1 / math.Sqrt(float64(g.Hidden)),
		table:         l.Lookup(prefix+"embed_tokens_per_layer", known, all),
		project:       l.Linear(g.Hidden, nn.Module{Name: prefix + "per_layer_model_projection", Out: all}),
		norm:          l.Tensor(prefix+"per_layer_projection_norm.weight", width),
	}
}

// All implements decoder.Inputs: [1, n, layers, width].
func (p *tokenInputs) All(s *mlxbind.Scope, tokens, h mlxbind.Array) mlxbind.Array {
	scalar := func(v float64) mlxbind.Array { return s.Scalar(v, h.DType()) }
	n := tokens.Dim(1)
	if p.known < p.tokens {
		within := s.Less(tokens, s.Scalar(float64(p.known), tokens.DType()))
		tokens = s.Where(within, tokens, s.Scalar(0, tokens.DType()))
	}
	projected := s.Reshape(s.Multiply(p.project.Apply(s, h), scalar(p.fromEmbedding)), 1, n, p.depth, p.width)
	projected = nn.RMSNorm(s, projected, p.norm, p.eps)
	rows := s.Reshape(s.Multiply(p.table.Rows(s, tokens), scalar(p.scale)), 1, n, p.depth, p.width)
	return s.Multiply(s.Add(projected, rows), scalar(math.Sqrt2/2))
}

// Finish implements decoder.Inputs.
func (p *tokenInputs) Finish(s *mlxbind.Scope, i int, h, attended, all mlxbind.Array) mlxbind.Array {
	return p.layers[i].FinishWith(s, h, attended, s.Reshape(s.Slice(all, 2, i, i+1), 1, -1, p.width))
}
