package engine

import (
	"context"
	"errors"
	"fmt"

	"firesteel/core/library"
	"firesteel/models"
	"firesteel/models/chat"
	"firesteel/models/checkpoint"
	"firesteel/models/family"
	"firesteel/models/tokenizer"
)

// Target is a target with what turns texts into its tokens. It lives on the inference thread.
type Target struct {
	models.Target
	tokens   *tokenizer.Tokenizer
	template *chat.Template // nil when the folder has none
	stop     map[int]bool
	others   int // who uses it besides the first
}

// OpenTarget loads the target that d describes; to be called on the inference thread. Close the
// target when done. progress, which may be nil, is told the bytes read.
func OpenTarget(ctx context.Context, d library.Description, progress func(done int64)) (*Target, error) {
	folder, err := checkpoint.Open(d.Dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	t := &Target{stop: map[int]bool{}}
	if t.tokens, err = tokenizer.Load(d.Dir); err != nil {
		return nil, err
	}
	if t.template, err = chat.Load(d.Dir); err != nil {
		if !errors.Is(err, chat.ErrNoTemplate) {
			return nil, err
		}
		t.template = nil
	}
	for _, id := range d.EOS {
		t.stop[id] = true
	}
	if id, ok := t.tokens.EOS(); ok {
		t.stop[id] = true
	}
	t.Target, err = family.OpenTarget(ctx, folder, progress)
	return t, err
}

// Close frees the weights, as far as they were loaded, once everyone who uses them has closed.
func (t *Target) Close() {
	switch {
	case t == nil || t.Target == nil:
	case t.others > 0:
		t.others--
	default:
		t.Target.Close()
	}
}

// Stops tells whether a token ends an answer.
func (t *Target) Stops(token int) bool { return t.stop[token] }

// Encode gives the tokens of a conversation up to where the answer begins; without messages, or
// without a template, those of a text that goes to the model as it stands.
func (t *Target) Encode(messages []chat.Message, raw string) ([]int, error) {
	var ids []int
	var err error
	if len(messages) > 0 && t.template != nil {
		ids, err = t.template.Encode(t.tokens, messages)
	} else {
		for _, m := range messages {
			raw += m.Content
		}
		ids, err = t.template.EncodeRaw(t.tokens, raw)
	}
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, ErrEmptyPrompt
	}
	return ids, t.known(ids)
}

// EncodeAnswer gives the tokens of an answer as the model would write it, with the token that
// ends it, where the model has one.
func (t *Target) EncodeAnswer(answer string) ([]int, error) {
	ids, err := t.tokens.EncodePlain(chat.Clean(answer))
	if err != nil {
		return nil, err
	}
	if end, ok := t.endOfTurn(); ok {
		ids = append(ids, end)
	}
	return ids, t.known(ids)
}

// endOfTurn is the stop token that the template puts after an answer, else the tokenizer's own.
func (t *Target) endOfTurn() (int, bool) {
	if t.template != nil {
		ids, err := t.template.Encode(t.tokens, []chat.Message{{Role: "user", Content: "a"}, {Role: "assistant", Content: "b"}, {Role: "user", Content: "c"}})
		for _, id := range ids {
			if err == nil && t.stop[id] {
				return id, true
			}
		}
	}
	return t.tokens.EOS()
}

func (t *Target) known(ids []int) error {
	vocabulary := t.Geometry().Vocabulary
	for _, id := range ids {
		if id < 0 || id >= vocabulary {
			return fmt.Errorf("token %d is outside the model's vocabulary of %d", id, vocabulary)
		}
	}
	return nil
}
