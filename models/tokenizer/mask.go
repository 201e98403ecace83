package tokenizer

import (
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Mask keeps control tokens that a text merely spells from being taken for real ones, while
// the text passes through something that adds real ones. Hide puts a stand-in, a character
// that appears nowhere else, in place of one character of every spelling; lengths, white space
// and all other text stay, so whoever trims or compares the text finds what was there.
type Mask struct {
	t    *Tokenizer
	to   map[rune]rune // a character to its stand-in
	from map[rune]rune
	find trie
	at   []int // by control token: the byte of the character to hide, or -1
}

// NewMask makes a mask whose stand-ins appear in none of the given texts, which must be all
// the texts that will meet: the ones to hide and the ones around them.
func (t *Tokenizer) NewMask(texts ...string) (*Mask, error) {
	m := &Mask{t: t, to: map[rune]rune{}, from: map[rune]rune{}}
	used := map[rune]bool{}
	for _, text := range texts {
		for _, r := range text {
			if r >= firstStandIn {
				used[r] = true
			}
		}
	}
	next := rune(firstStandIn)
	for i, token := range t.controls {
		at := strings.IndexFunc(token, func(r rune) bool { return !unicode.IsSpace(r) })
		m.at = append(m.at, at)
		if at < 0 {
			continue // white space steers nothing
		}
		r, _ := utf8.DecodeRuneInString(token[at:])
		if _, have := m.to[r]; !have {
			for used[next] || next&0xFFFE == 0xFFFE {
				next++
			}
			if next > unicode.MaxRune {
				return nil, errors.New("the text holds every private character there is")
			}
			m.to[r], m.from[next] = next, r
			next++
		}
		m.find.add(token, i)
	}
	return m, nil
}

// firstStandIn begins the two private planes, which no text has a meaning for.
const firstStandIn = 0xF0000

// Hide puts stand-ins into every control token that text spells, and into one that text only
// begins at its end, since what follows might complete it. Those in except stay as they are.
func (m *Mask) Hide(text string, except ...string) string {
	if len(m.find.nodes) == 0 || text == "" {
		return text
	}
	hidden := map[int]bool{}
	for at := range len(text) {
		if !m.find.first[text[at]] {
			continue
		}
		node := int32(0)
		for i := at; i < len(text); i++ {
			child, ok := m.find.nodes[node].children[text[i]]
			if !ok {
				break
			}
			node = child
			if token := m.find.nodes[node].token; token >= 0 && !slices.Contains(except, text[at:i+1]) {
				hidden[at+m.at[token]] = true
			}
		}
	}
	m.hideEnd(text, hidden)
	if len(hidden) == 0 {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		if stand, ok := m.to[r]; ok && hidden[i] {
			r = stand
		}
		b.WriteRune(r)
	}
	return b.String()
}

// hideEnd marks characters at the end of text, white space aside, where a control token begins
// that the text does not finish.
func (m *Mask) hideEnd(text string, hidden map[int]bool) {
	body := strings.TrimRightFunc(text, unicode.IsSpace)
	for i, token := range m.t.controls {
		at := m.at[i]
		if at < 0 {
			continue
		}
		for n := min(len(token)-1, len(body)); n > at; n-- {
			if strings.HasSuffix(body, token[:n]) {
				hidden[len(body)-n+at] = true
			}
		}
	}
}

// Restore puts the hidden characters back.
func (m *Mask) Restore(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r >= firstStandIn }) < 0 {
		return text
	}
	return strings.Map(func(r rune) rune {
		if was, ok := m.from[r]; ok {
			return was
		}
		return r
	}, text)
}

// EncodeMasked is Encode, without special tokens around it, for a text in which some control
// tokens are hidden: those are text.
func (t *Tokenizer) EncodeMasked(text string, mask *Mask) ([]int, error) {
	return t.encode(text, nil, &t.raw, &t.normalized, t.control, mask)
}
