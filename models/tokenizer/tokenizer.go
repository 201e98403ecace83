// Package tokenizer turns text into token ids and back, as the tokenizer.json of a checkpoint
// says. It reads byte-pair tokenizers: those of the Gemma, Qwen and Llama families.
package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Tokenizer is one checkpoint's tokenizer. It never changes after Load and may be used from
// several goroutines.
type Tokenizer struct {
	model   *bpe
	texts   []string         // by id; "" in gaps
	known   []bool           // by id
	special []bool           // by id
	extra   map[string]int32 // ids of added tokens that the model's vocabulary lacks

	added []addedToken
	// Added tokens that are looked for in the text as it is, and those that are looked for once
	// it is normalized; plain ones leave control tokens out.
	raw, normalized           trie
	plainRaw, plainNormalized trie
	control                   map[int32]bool
	controls                  []string

	normalize   normalizer
	preTokenize preTokenizer
	prefix      []int // what the post-processor puts before and after a text
	suffix      []int
	decoder     []decodeStep

	bos, eos int // -1 where there is none
	addBOS   bool
}

// Load reads dir/tokenizer.json and, if it is there, dir/tokenizer_config.json. Errors are
// *Error and name the file and the field.
func Load(dir string) (*Tokenizer, error) {
	path := filepath.Join(dir, "tokenizer.json")
	data, err := os.ReadFile(path)
	if err != nil {
		detail := "not readable"
		if errors.Is(err, fs.ErrNotExist) {
			detail = "not found"
			if _, other := os.Stat(filepath.Join(dir, "tokenizer.model")); other == nil {
				detail = "not found; the tokenizer.model beside it is a SentencePiece file, which is not supported"
			}
		}
		return nil, &Error{File: path, Detail: detail, Err: err}
	}
	t, err := parse(data)
	if err != nil {
		return nil, inFile(path, err)
	}
	path = filepath.Join(dir, "tokenizer_config.json")
	data, err = os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &Error{File: path, Detail: "not readable", Err: err}
	}
	if err := t.configure(data); err != nil {
		return nil, inFile(path, err)
	}
	return t, nil
}

func inFile(path string, err error) error {
	var field *fieldError
	if errors.As(err, &field) {
		return &Error{File: path, Field: field.field, Detail: field.detail, Err: field.err}
	}
	return &Error{File: path, Detail: "not readable", Err: err}
}

// parse reads a tokenizer.json.
func parse(data []byte) (_ *Tokenizer, err error) {
	defer func() { // patterns are compiled by another's code
		if p := recover(); p != nil {
			err = fmt.Errorf("can't be read: %v", p)
		}
	}()
	if !utf8.Valid(data) {
		return nil, errors.New("is not UTF-8 text")
	}
	fields := map[string]json.RawMessage{}
	c := cursor{data: data}
	if c.peek() != '{' {
		return nil, errors.New("is not a JSON object")
	}
	err = c.object(func(key string) error {
		value, err := c.skip()
		if err != nil {
			return &fieldError{field: key, detail: "not readable", err: err}
		}
		fields[key] = value
		return nil
	})
	if err != nil {
		return nil, err
	}
	if c.peek() != 0 {
		return nil, errors.New("goes on after its end")
	}
	if absent(fields["model"]) {
		return nil, badField("model", "is missing")
	}

	t := &Tokenizer{bos: -1, eos: -1}
	if t.model, t.texts, err = readBPE(fields["model"]); err != nil {
		return nil, err
	}
	t.known = make([]bool, len(t.texts))
	for _, id := range t.model.vocab {
		t.known[id] = true
	}
	if t.normalize, err = readNormalizer("normalizer", fields["normalizer"], 0); err != nil {
		return nil, err
	}
	if t.added, err = readAdded(fields["added_tokens"]); err != nil {
		return nil, err
	}
	if err := t.indexAdded(); err != nil {
		return nil, err
	}
	if t.preTokenize, err = readPreTokenizer("pre_tokenizer", fields["pre_tokenizer"], 0); err != nil {
		return nil, err
	}
	if t.prefix, t.suffix, err = t.readPostProcessor("post_processor", fields["post_processor"], 0); err != nil {
		return nil, err
	}
	if absent(fields["decoder"]) {
		t.decoder = []decodeStep{func() decoding { return &spacedDecoding{} }}
	} else {
		fused := false
		if t.decoder, err = readDecoder("decoder", fields["decoder"], 0, nil, &fused); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// indexAdded enters the added tokens into the vocabulary and the tries.
func (t *Tokenizer) indexAdded() error {
	top := len(t.texts) - 1
	for _, a := range t.added {
		top = max(top, int(a.id))
	}
	grow := top + 1 - len(t.texts)
	t.texts = append(t.texts, make([]string, grow)...)
	t.known = append(t.known, make([]bool, grow)...)
	t.special = make([]bool, top+1)
	t.control = map[int32]bool{}
	t.extra = map[string]int32{}
	for i := range t.added {
		a := &t.added[i]
		field := fmt.Sprintf("added_tokens[%q]", a.content)
		inVocab, known := t.model.vocab[a.content]
		switch {
		case known && inVocab != a.id:
			return badField(field, "has id %d there and %d in model.vocab", a.id, inVocab)
		case !known && t.known[a.id]:
			return badField(field, "id %d is that of %q in model.vocab", a.id, t.texts[a.id])
		case !known:
			t.extra[a.content] = a.id
			t.texts[a.id], t.known[a.id] = a.content, true
		}
		t.special[a.id] = a.special
		// A token that was added beside the vocabulary is a marker; one that is in it may be
		// a piece of ordinary text, such as Gemma's <table>.
		a.control = a.special || !known || controlName(a.content)

		content, full, plain := a.content, &t.raw, &t.plainRaw
		if a.normalized {
			full, plain = &t.normalized, &t.plainNormalized
			if t.normalize != nil {
				var err error
				if content, err = t.normalize(content); err != nil {
					return &fieldError{field: field, detail: "can't be normalized", err: err}
				}
			}
		}
		if a.control {
			t.control[a.id] = true
			t.controls = append(t.controls, a.content)
			if content != a.content && content != "" {
				t.controls = append(t.controls, content)
			}
		}
		if content == "" {
			continue
		}
		full.add(content, i)
		if !a.control {
			plain.add(content, i)
		}
	}
	return nil
}

// configure reads a tokenizer_config.json; data is nil when there is none.
func (t *Tokenizer) configure(data []byte) error {
	var config struct {
		BOS    json.RawMessage `json:"bos_token"`
		EOS    json.RawMessage `json:"eos_token"`
		AddBOS *bool           `json:"add_bos_token"`
		Class  string          `json:"tokenizer_class"`
	}
	if data != nil {
		if err := json.Unmarshal(data, &config); err != nil {
			var wrong *json.UnmarshalTypeError
			if errors.As(err, &wrong) {
				return &fieldError{field: wrong.Field, detail: "has the wrong type", err: err}
			}
			return err
		}
	}
	var err error
	if t.bos, err = t.named("bos_token", config.BOS); err != nil {
		return err
	}
	if t.eos, err = t.named("eos_token", config.EOS); err != nil {
		return err
	}
	if t.bos < 0 && len(t.prefix) > 0 {
		t.bos = t.prefix[0]
	}
	starts := len(t.prefix) > 0 && t.prefix[0] == t.bos
	switch {
	case t.bos < 0:
	case config.AddBOS != nil:
		t.addBOS = *config.AddBOS
	default:
		// These classes begin every text with it unless told otherwise, whatever the
		// post-processor says.
		class := strings.TrimSuffix(config.Class, "Fast")
		t.addBOS = starts || class == "GemmaTokenizer" || class == "LlamaTokenizer"
	}
	if t.addBOS && !starts {
		t.prefix = append([]int{t.bos}, t.prefix...)
	} else if !t.addBOS && starts {
		t.prefix = t.prefix[1:]
	}
	return nil
}

// named finds the id of a token that a config names, as text or as an object with its content.
func (t *Tokenizer) named(field string, raw json.RawMessage) (int, error) {
	if absent(raw) {
		return -1, nil
	}
	text, err := TokenName(raw)
	if err != nil {
		return -1, &fieldError{field: field, detail: "want a token's text", err: err}
	}
	if id, ok := t.ID(text); ok {
		return id, nil
	}
	return -1, nil // named for a vocabulary that does without it: nothing can produce it
}

// TokenName reads how tokenizer_config.json names a token: its text, an object with its
// content, or null for none, which gives "".
func TokenName(raw json.RawMessage) (string, error) {
	if absent(raw) {
		return "", nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var object struct {
		Content *string `json:"content"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return "", err
	}
	if object.Content == nil {
		return "", errors.New("content is missing")
	}
	return *object.Content, nil
}

// Size is one more than the highest id. A model's table may be larger.
func (t *Tokenizer) Size() int { return len(t.texts) }

// ID finds a token by the text the vocabulary has it under.
func (t *Tokenizer) ID(token string) (int, bool) {
	id, ok := t.extra[token]
	if !ok {
		id, ok = t.model.vocab[token]
	}
	return int(id), ok
}

// Token is the text the vocabulary has an id under; false for ids it does not have.
func (t *Tokenizer) Token(id int) (string, bool) {
	if id < 0 || id >= len(t.texts) || !t.known[id] {
		return "", false
	}
	return t.texts[id], true
}

// IsSpecial reports whether an id is a special token, one that is no part of a text.
func (t *Tokenizer) IsSpecial(id int) bool {
	return id >= 0 && id < len(t.special) && t.special[id]
}

// BOS is the token that begins a text, if the tokenizer names one.
func (t *Tokenizer) BOS() (int, bool) { return t.bos, t.bos >= 0 }

// EOS is the token that ends a text, if the tokenizer names one. A model may declare others.
func (t *Tokenizer) EOS() (int, bool) { return t.eos, t.eos >= 0 }

// AddsBOS reports whether the model wants every text to begin with BOS: tokenizer_config.json's
// add_bos_token, else the post-processor, else what the tokenizer's class does.
func (t *Tokenizer) AddsBOS() bool { return t.addBOS }

// Encode gives the ids of a text in which added tokens, control tokens among them, are
// recognised wherever they are spelled; addSpecial puts BOS and whatever else the model wants
// around it. Bytes that are not UTF-8 are read as U+FFFD. The only error is a pattern of the
// tokenizer that takes too long.
func (t *Tokenizer) Encode(text string, addSpecial bool) ([]int, error) {
	var out []int
	if addSpecial {
		out = append(out, t.prefix...)
	}
	out, err := t.encode(text, out, &t.raw, &t.normalized, nil, nil)
	if err != nil {
		return nil, err
	}
	if addSpecial {
		out = append(out, t.suffix...)
	}
	return out, nil
}

// EncodePlain gives the ids of a text that steers nothing: where it spells a control token, the
// ids are those of the characters.
func (t *Tokenizer) EncodePlain(text string) ([]int, error) {
	return t.encode(text, nil, &t.plainRaw, &t.plainNormalized, t.control, nil)
}

// encode appends a text's ids to out. restore, if there is one, undoes a Mask in text that is
// no added token.
func (t *Tokenizer) encode(text string, out []int, raw, normalized *trie, blocked map[int32]bool, restore *Mask) ([]int, error) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	w := worker{m: t.model, blocked: blocked}
	var inner []span
	for i, outer := range raw.split(t.added, text, nil) {
		if outer.token >= 0 {
			out = append(out, int(t.added[outer.token].id))
			continue
		}
		piece := outer.text
		if t.normalize != nil {
			var err error
			if piece, err = t.normalize(piece); err != nil {
				return nil, err
			}
		}
		inner = normalized.split(t.added, piece, inner[:0])
		for j, s := range inner {
			if s.token >= 0 {
				out = append(out, int(t.added[s.token].id))
				continue
			}
			var err error
			if out, err = t.words(&w, s.text, i == 0 && j == 0, out, restore); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// words encodes normalized text without added tokens.
func (t *Tokenizer) words(w *worker, text string, first bool, out []int, restore *Mask) ([]int, error) {
	if restore != nil {
		text = restore.Restore(text)
	}
	words := []string{text}
	if t.preTokenize != nil {
		var err error
		if words, _, err = t.preTokenize(words, first); err != nil {
			return nil, err
		}
	}
	for _, word := range words {
		out = w.encode(out, word)
	}
	return out, nil
}

// ControlTokens are the added tokens that steer the model: special ones, and markers such as
// those around a thought.
func (t *Tokenizer) ControlTokens() []string {
	var out []string
	for _, a := range t.added {
		if a.control {
			out = append(out, a.content)
		}
	}
	return out
}
