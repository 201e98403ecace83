package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// maxSteps bounds how deep sequences of steps may hold sequences.
const maxSteps = 16

// A normalizer rewrites text before it is cut into words.
type normalizer func(text string) (string, error)

// step is what every part of the pipeline starts with: its type.
func stepType(field string, raw json.RawMessage, depth int) (string, error) {
	if depth > maxSteps {
		return "", badField(field, "is nested too deeply")
	}
	var head struct {
		Type *string `json:"type"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return "", &fieldError{field: field, detail: "has the wrong type", err: err}
	}
	if head.Type == nil {
		return "", badField(field+".type", "is missing")
	}
	return *head.Type, nil
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

func unmarshalStep(field string, raw json.RawMessage, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return &fieldError{field: field, detail: "has the wrong type", err: err}
	}
	return nil
}

func readNormalizer(field string, raw json.RawMessage, depth int) (normalizer, error) {
	if absent(raw) {
		return nil, nil
	}
	kind, err := stepType(field, raw, depth)
	if err != nil {
		return nil, err
	}
	form := func(f norm.Form) normalizer {
		return func(text string) (string, error) { return f.String(text), nil }
	}
	switch kind {
	case "Sequence":
		var s struct {
			Normalizers []json.RawMessage `json:"normalizers"`
		}
		if err := unmarshalStep(field, raw, &s); err != nil {
			return nil, err
		}
		var steps []normalizer
		for i, item := range s.Normalizers {
			step, err := readNormalizer(fmt.Sprintf("%s.normalizers[%d]", field, i), item, depth+1)
			if err != nil {
				return nil, err
			}
			if step != nil {
				steps = append(steps, step)
			}
		}
		return func(text string) (string, error) {
			for _, step := range steps {
				var err error
				if text, err = step(text); err != nil {
					return "", err
				}
			}
			return text, nil
		}, nil
	case "Replace":
		var s struct {
			Pattern json.RawMessage `json:"pattern"`
			Content *string         `json:"content"`
		}
		if err := unmarshalStep(field, raw, &s); err != nil {
			return nil, err
		}
		if s.Content == nil {
			return nil, badField(field+".content", "is missing")
		}
		pattern, err := readPattern(field+".pattern", s.Pattern)
		if err != nil {
			return nil, err
		}
		content := *s.Content
		return func(text string) (string, error) { return pattern.replace(text, content) }, nil
	case "Prepend":
		var s struct {
			Prepend *string `json:"prepend"`
		}
		if err := unmarshalStep(field, raw, &s); err != nil {
			return nil, err
		}
		if s.Prepend == nil {
			return nil, badField(field+".prepend", "is missing")
		}
		prefix := *s.Prepend
		return func(text string) (string, error) {
			if text == "" {
				return text, nil
			}
			return prefix + text, nil
		}, nil
	case "Strip":
		s := struct {
			Left  bool `json:"strip_left"`
			Right bool `json:"strip_right"`
		}{true, true}
		if err := unmarshalStep(field, raw, &s); err != nil {
			return nil, err
		}
		return func(text string) (string, error) {
			if s.Left {
				text = strings.TrimLeftFunc(text, unicode.IsSpace)
			}
			if s.Right {
				text = strings.TrimRightFunc(text, unicode.IsSpace)
			}
			return text, nil
		}, nil
	case "Lowercase":
		return func(text string) (string, error) { return strings.ToLower(text), nil }, nil
	case "NFC":
		return form(norm.NFC), nil
	case "NFD":
		return form(norm.NFD), nil
	case "NFKC":
		return form(norm.NFKC), nil
	case "NFKD":
		return form(norm.NFKD), nil
	}
	return nil, badField(field+".type", "normalizer %q is not supported", kind)
}
