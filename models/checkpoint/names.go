package checkpoint

import "strings"

// Bare strips the prefixes under which checkpoints wrap a language model from the name of a tensor
// or module: "model.layers.0.mlp", "language_model.model.layers.0.mlp" and
// "model.language_model.layers.0.mlp" all become "layers.0.mlp".
func Bare(name string) string {
	for {
		switch {
		case strings.HasPrefix(name, "model."):
			name = name[len("model."):]
		case strings.HasPrefix(name, "language_model."):
			name = name[len("language_model."):]
		default:
			return name
		}
	}
}

// Find returns the name of the tensor that is bare once its wrapper prefixes are stripped; of
// several, the first in alphabetical order.
func (f *Folder) Find(bare string) (name string, ok bool) {
	for _, name := range f.names {
		if strings.HasSuffix(name, bare) && Bare(name) == bare {
			return name, true
		}
	}
	return "", false
}

// Beside tells whether a tensor or module belongs to a part that writing text never needs: a vision
// or audio tower, or what joins it to the language model.
func Beside(name string) bool {
	name = Bare(name)
	for _, part := range []string{"vision_tower.", "audio_tower.", "embed_vision.", "embed_audio.", "vision_embedder.",
		"vision_model.", "audio_model.", "multi_modal_projector."} {
		if strings.HasPrefix(name, part) {
			return true
		}
	}
	return false
}

// Part is the rows from to to (excluded) of a tensor, along its first axis, for Read.
func (t Tensor) Part(from, to int) Tensor {
	row := t.Size / int64(t.Shape[0])
	t.Offset, t.Size = t.Offset+int64(from)*row, int64(to-from)*row
	t.Shape = append([]int{to - from}, t.Shape[1:]...)
	return t
}
