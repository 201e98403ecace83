package chat

import (
	"strings"

	"firesteel/models/tokenizer"
)

// thoughtMarkers are the control tokens that an assistant's own text may hold and that
// templates look for there, to leave earlier thoughts out.
var thoughtMarkers = []string{"<think>", "</think>", "<|channel>", "<channel|>"}

// Encode gives the ids of a conversation, up to where the answer begins. Control tokens come
// from the template only: where a message spells one, its ids are those of the characters.
// (An assistant's message is the exception for the marks around a thought, if the template
// itself speaks of them.) If the model wants BOS there is exactly one that the template or,
// failing it, Encode has put there.
func (t *Template) Encode(tok *tokenizer.Tokenizer, messages []Message) ([]int, error) {
	texts := []string{t.source}
	for _, token := range t.tokens {
		texts = append(texts, token)
	}
	hidden := make([]Message, len(messages))
	for i, m := range messages {
		hidden[i] = Message{Role: m.Role, Content: Clean(m.Content)}
		texts = append(texts, hidden[i].Content, m.Role)
	}
	mask, err := tok.NewMask(texts...)
	if err != nil {
		return nil, err
	}
	var known []string
	for _, marker := range thoughtMarkers {
		if strings.Contains(t.source, marker) {
			known = append(known, marker)
		}
	}
	for i := range hidden {
		if hidden[i].Role == "assistant" {
			hidden[i].Content = mask.Hide(hidden[i].Content, known...)
		} else {
			hidden[i].Content = mask.Hide(hidden[i].Content)
		}
	}
	text, err := t.render(hidden, true)
	if err != nil {
		if refused, ok := err.(*TemplateError); ok {
			refused.Message = mask.Restore(refused.Message) // it may quote a message
		}
		return nil, err
	}
	ids, err := tok.EncodeMasked(text, mask)
	if err != nil {
		return nil, err
	}
	return withBOS(tok, ids, tok.AddsBOS()), nil
}

// EncodeRaw gives the ids of a prompt that goes to the model as it is, without a template. What
// it spells is text, control tokens too; BOS is put before it if the model wants one: if the
// tokenizer says so, or if the template, which may be nil, begins conversations with it.
func (t *Template) EncodeRaw(tok *tokenizer.Tokenizer, prompt string) ([]int, error) {
	ids, err := tok.EncodePlain(Clean(prompt))
	if err != nil {
		return nil, err
	}
	return withBOS(tok, ids, tok.AddsBOS() || t.startsWithBOS()), nil
}

// withBOS puts BOS first if it is wanted and not there. Text can't have brought it.
func withBOS(tok *tokenizer.Tokenizer, ids []int, wanted bool) []int {
	bos, ok := tok.BOS()
	if !wanted || !ok {
		return ids
	}
	for _, id := range ids {
		if id == bos {
			return ids
		}
	}
	return append([]int{bos}, ids...)
}

func (t *Template) startsWithBOS() bool {
	if t == nil || t.tokens["bos_token"] == "" {
		return false
	}
	text, err := t.render([]Message{{Role: "user", Content: "?"}}, true)
	return err == nil && strings.HasPrefix(text, t.tokens["bos_token"])
}
