package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// addedToken is a token that is found in the text itself, before the model sees it.
type addedToken struct {
	id      int32
	content string
	special bool
	control bool // steers the model, so text that merely spells it is not it

	singleWord, lstrip, rstrip, normalized bool
}

func readAdded(raw json.RawMessage) ([]addedToken, error) {
	if raw == nil || string(raw) == "null" {
		return nil, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, &fieldError{field: "added_tokens", detail: "want a list", err: err}
	}
	var out []addedToken
	byID, byText := map[int32]string{}, map[string]int32{}
	for i, item := range list {
		field := fmt.Sprintf("added_tokens[%d]", i)
		var t struct {
			ID         *int    `json:"id"`
			Content    *string `json:"content"`
			Special    bool    `json:"special"`
			SingleWord bool    `json:"single_word"`
			LStrip     bool    `json:"lstrip"`
			RStrip     bool    `json:"rstrip"`
			Normalized *bool   `json:"normalized"`
		}
		if err := json.Unmarshal(item, &t); err != nil {
			return nil, &fieldError{field: field, detail: "has the wrong type", err: err}
		}
		switch {
		case t.ID == nil:
			return nil, badField(field+".id", "is missing")
		case *t.ID < 0 || *t.ID >= maxID:
			return nil, badField(field+".id", "%d is out of range", *t.ID)
		case t.Content == nil:
			return nil, badField(field+".content", "is missing")
		}
		id, text := int32(*t.ID), *t.Content
		if text == "" {
			continue
		}
		if old, taken := byID[id]; taken {
			return nil, badField(field+".id", "%d is already that of %q", id, old)
		}
		if old, taken := byText[text]; taken {
			return nil, badField(field+".content", "%q is already there with id %d", text, old)
		}
		byID[id], byText[text] = text, id
		normalized := !t.Special
		if t.Normalized != nil {
			normalized = *t.Normalized
		}
		out = append(out, addedToken{
			id: id, content: text, special: t.Special,
			singleWord: t.SingleWord, lstrip: t.LStrip, rstrip: t.RStrip, normalized: normalized,
		})
	}
	return out, nil
}

// controlName reports whether a token that its file does not call special steers the model all
// the same: Qwen 3's <think> and <tool_call> are declared as ordinary tokens.
func controlName(text string) bool {
	if strings.Contains(text, "<|") || strings.Contains(text, "|>") {
		return true
	}
	name, ok := strings.CutPrefix(text, "<")
	if !ok {
		return false
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "/"), ">")
	switch name {
	case "think", "tool_call", "tool_calls", "tool_response", "tools":
		return true
	}
	return strings.HasPrefix(name, "unused") || strings.HasPrefix(name, "reserved")
}

// trie finds the longest of a set of texts at a position.
type trie struct {
	nodes []trieNode
	first [256]bool // which bytes a text can start with
}

type trieNode struct {
	children map[byte]int32
	token    int32 // index of the text that ends here, or -1
}

func (t *trie) add(text string, token int) {
	if len(t.nodes) == 0 {
		t.nodes = append(t.nodes, trieNode{token: -1})
	}
	at := int32(0)
	for i := range len(text) {
		b := text[i]
		child, ok := t.nodes[at].children[b]
		if !ok {
			child = int32(len(t.nodes))
			t.nodes = append(t.nodes, trieNode{token: -1})
			if t.nodes[at].children == nil {
				t.nodes[at].children = map[byte]int32{}
			}
			t.nodes[at].children[b] = child
		}
		at = child
	}
	if t.nodes[at].token < 0 {
		t.nodes[at].token = int32(token)
	}
	t.first[text[0]] = true
}

// longest returns the longest text that starts at text[at:] and its length, or -1.
func (t *trie) longest(text string, at int) (token, length int) {
	token = -1
	node := int32(0)
	for i := at; i < len(text); i++ {
		child, ok := t.nodes[node].children[text[i]]
		if !ok {
			break
		}
		node = child
		if t.nodes[node].token >= 0 {
			token, length = int(t.nodes[node].token), i+1-at
		}
	}
	return token, length
}

// span is a stretch of text: an added token, or text for the model (token -1).
type span struct {
	text  string
	token int
}

// split cuts text into added tokens and what lies between, leftmost-longest.
func (t *trie) split(tokens []addedToken, text string, out []span) []span {
	if len(t.nodes) == 0 {
		if text == "" {
			return out
		}
		return append(out, span{text, -1})
	}
	done := 0 // text before this is in out
	for at := 0; at < len(text); {
		if !t.first[text[at]] {
			at++
			continue
		}
		token, length := t.longest(text, at)
		if token < 0 {
			at++
			continue
		}
		start, stop := at, at+length
		at = stop
		added := tokens[token]
		if added.singleWord && (wordBefore(text, start) || wordAfter(text, stop)) {
			continue
		}
		// The token before may have taken this with its white space; both count, as they do in
		// the reference.
		if added.lstrip {
			for start > done {
				r, size := utf8.DecodeLastRuneInString(text[:start])
				if !unicode.IsSpace(r) {
					break
				}
				start -= size
			}
		}
		if added.rstrip {
			stop = len(text) - len(strings.TrimLeftFunc(text[stop:], unicode.IsSpace))
		}
		if start > done {
			out = append(out, span{text[done:start], -1})
		}
		out = append(out, span{text[start:stop], token})
		done = stop
	}
	if done < len(text) {
		out = append(out, span{text[done:], -1})
	}
	return out
}

func wordBefore(text string, at int) bool {
	r, size := utf8.DecodeLastRuneInString(text[:at])
	return size > 0 && isWord(r)
}

func wordAfter(text string, at int) bool {
	r, size := utf8.DecodeRuneInString(text[at:])
	return size > 0 && isWord(r)
}

func isWord(r rune) bool {
	return unicode.In(r, unicode.Letter, unicode.Mark, unicode.Nd, unicode.Nl, unicode.Pc) ||
		unicode.Is(unicode.Other_Alphabetic, r) || unicode.Is(unicode.Join_Control, r)
}
