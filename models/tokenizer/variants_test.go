package tokenizer

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

type variantCase struct {
	Tokenizer json.RawMessage   `json:"tokenizer"`
	Rows      []json.RawMessage `json:"rows"`
}

// Small made-up tokenizers of every kind that is read, with what the reference does with them.
func TestVariants(t *testing.T) {
	path := "testdata/variants.json"
	if other := os.Getenv("FIRESTEEL_VARIANTS"); other != "" {
		path = other // a larger set from testdata/make_goldens.py
	}
	var cases []variantCase
	readJSON(t, path, &cases)
	if len(cases) < 60 {
		t.Fatalf("only %d tokenizers", len(cases))
	}
	checked, failed := 0, 0
	for i, c := range cases {
		tok, err := parse(c.Tokenizer)
		if err != nil {
			t.Errorf("tokenizer %d: %v", i, err)
			continue
		}
		for _, raw := range c.Rows {
			var text, decoded string
			var special, skip bool
			var ids []int
			if err := json.Unmarshal(raw, &[]any{&text, &special, &ids, &skip, &decoded}); err != nil {
				t.Fatal(err)
			}
			checked++
			got, err := tok.Encode(text, special)
			if err != nil || !slices.Equal(got, ids) {
				failed++
				if failed <= 12 {
					c.Tokenizer = trimVocabulary(c.Tokenizer)
					t.Errorf("tokenizer %d: %q (special %v)\n got %v %v\nwant %v\n%s", i, text, special, spelled(tok, got), err, spelled(tok, ids), c.Tokenizer)
				}
				continue
			}
			if back := tok.Decode(ids, skip); back != decoded {
				failed++
				if failed <= 12 {
					t.Errorf("tokenizer %d: decode %v (skip %v)\n got %q\nwant %q\n%s", i, spelled(tok, ids), skip, back, decoded, trimVocabulary(c.Tokenizer))
				}
			}
		}
	}
	t.Logf("%d of %d texts over %d tokenizers agree", checked-failed, checked, len(cases))
	if failed > 0 {
		t.Fail()
	}
}

func spelled(tok *Tokenizer, ids []int) []string {
	var out []string
	for _, id := range ids {
		text, _ := tok.Token(id)
		out = append(out, text)
	}
	return out
}

// trimVocabulary leaves the long lists out of a tokenizer that a failure prints.
func trimVocabulary(raw json.RawMessage) json.RawMessage {
	var fields map[string]any
	json.Unmarshal(raw, &fields)
	model, _ := fields["model"].(map[string]any)
	delete(model, "vocab")
	delete(model, "merges")
	out, _ := json.Marshal(fields)
	return out
}
