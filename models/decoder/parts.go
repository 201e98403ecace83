package decoder

import (
	"strings"

	"firesteel/models"
	"firesteel/models/checkpoint"
	"firesteel/models/nn"
)

// Geometry reads a target's shape from its configuration.
func Geometry(c *checkpoint.Fields) models.Geometry {
	return models.Geometry{
		Layers: c.Count("num_hidden_layers"), Hidden: c.Count("hidden_size"),
		Vocabulary: c.Count("vocab_size"), Context: c.Count("max_position_embeddings"),
	}
}

// Frame reads what stands around the layers: the table, the last norm and, unless the table serves
// as head (tied), the head. It returns what the layers' names begin with ("model.").
func (p *Parts) Frame(l *nn.Loader, folder *checkpoint.Folder, tied bool) string {
	table, ok := folder.Find("embed_tokens.weight")
	if !ok {
		table = "model.embed_tokens.weight" // to be missed by this name
	}
	prefix := strings.TrimSuffix(table, "embed_tokens.weight")
	p.Table = l.Embedding(prefix+"embed_tokens", p.Geometry.Vocabulary, p.Geometry.Hidden)
	p.Norm = l.Tensor(prefix+"norm.weight", p.Geometry.Hidden)
	if !tied {
		head, ok := folder.Find("lm_head.weight")
		if !ok {
			head = "lm_head.weight"
		}
		p.Head = l.Linear(p.Geometry.Hidden, nn.Module{Name: strings.TrimSuffix(head, ".weight"), Out: p.Geometry.Vocabulary})
	}
	return prefix
}
