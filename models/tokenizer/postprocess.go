package tokenizer

import (
	"encoding/json"
	"fmt"
)

// readPostProcessor gives the ids that go before and after a single text.
func (t *Tokenizer) readPostProcessor(field string, raw json.RawMessage, depth int) (prefix, suffix []int, err error) {
	if absent(raw) {
		return nil, nil, nil
	}
	kind, err := stepType(field, raw, depth)
	if err != nil {
		return nil, nil, err
	}
	switch kind {
	case "ByteLevel": // it only trims the offsets of tokens
		return nil, nil, nil
	case "Sequence":
		var s struct {
			Processors []json.RawMessage `json:"processors"`
		}
		if err := unmarshalStep(field, raw, &s); err != nil {
			return nil, nil, err
		}
		for i, item := range s.Processors {
			before, after, err := t.readPostProcessor(fmt.Sprintf("%s.processors[%d]", field, i), item, depth+1)
			if err != nil {
				return nil, nil, err
			}
			prefix = append(before, prefix...)
			suffix = append(suffix, after...)
		}
		return prefix, suffix, nil
	case "TemplateProcessing":
		return t.readTemplate(field, raw)
	}
	return nil, nil, badField(field+".type", "post-processor %q is not supported", kind)
}

func (t *Tokenizer) readTemplate(field string, raw json.RawMessage) (prefix, suffix []int, err error) {
	var s struct {
		Single []struct {
			Special *struct {
				ID string `json:"id"`
			} `json:"SpecialToken"`
			Sequence *struct {
				ID string `json:"id"`
			} `json:"Sequence"`
		} `json:"single"`
		Tokens map[string]struct {
			IDs []int `json:"ids"`
		} `json:"special_tokens"`
	}
	if err := unmarshalStep(field, raw, &s); err != nil {
		return nil, nil, err
	}
	texts := 0
	for i, piece := range s.Single {
		at := fmt.Sprintf("%s.single[%d]", field, i)
		switch {
		case piece.Sequence != nil && piece.Special == nil:
			if texts++; texts > 1 || piece.Sequence.ID != "A" {
				return nil, nil, badField(at, "want the text once, as A")
			}
		case piece.Special != nil && piece.Sequence == nil:
			token, ok := s.Tokens[piece.Special.ID]
			if !ok {
				return nil, nil, badField(at, "names %q, which is not in special_tokens", piece.Special.ID)
			}
			for _, id := range token.IDs {
				if _, known := t.Token(id); !known {
					return nil, nil, badField(at, "%q has id %d, which is not in the vocabulary", piece.Special.ID, id)
				}
			}
			if texts == 0 {
				prefix = append(prefix, token.IDs...)
			} else {
				suffix = append(suffix, token.IDs...)
			}
		default:
			return nil, nil, badField(at, "want either SpecialToken or Sequence")
		}
	}
	if texts == 0 {
		return nil, nil, badField(field+".single", "leaves the text out")
	}
	return prefix, suffix, nil
}
