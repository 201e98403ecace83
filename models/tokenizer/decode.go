package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A decodeStep makes one stream's share of a decoder.
type decodeStep func() decoding

// decoding turns tokens into text as they come. push appends what is settled to out; flush
// appends what was held back and is called once, at the end.
type decoding interface {
	push(token string, out []string) []string
	flush(out []string) []string
}

// readDecoder reads a decoder into steps. fused says that the steps before it have made one
// text of the tokens.
func readDecoder(field string, raw json.RawMessage, depth int, steps []decodeStep, fused *bool) ([]decodeStep, error) {
	kind, err := stepType(field, raw, depth)
	if err != nil {
		return nil, err
	}
	add := func(step decodeStep) ([]decodeStep, error) { return append(steps, step), nil }
	switch kind {
	case "Sequence":
		var s struct {
			Decoders []json.RawMessage `json:"decoders"`
		}
		if err := unmarshalStep(field, raw, &s); err != nil {
			return nil, err
		}
		for i, item := range s.Decoders {
			if steps, err = readDecoder(fmt.Sprintf("%s.decoders[%d]", field, i), item, depth+1, steps, fused); err != nil {
				return nil, err
			}
		}
		return steps, nil
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
		if *fused && (pattern.regex != nil || utf8.RuneCountInString(pattern.text) > 1) {
			return nil, badField(field, "a pattern of more than one character after the tokens are joined is not supported")
		}
		content := *s.Content
		return add(func() decoding {
			return eachToken(func(token string, _ bool) string {
				replaced, err := pattern.replace(token, content)
				if err != nil {
					return token // a pattern that runs too long on a token of its own file
				}
				return replaced
			})
		})
	case "ByteFallback":
		if *fused {
			return nil, badField(field, "after the tokens are joined is not supported")
		}
		return add(func() decoding { return &byteDecoding{bytesOf: fallbackByte} })
	case "ByteLevel":
		if *fused {
			return nil, badField(field, "after the tokens are joined is not supported")
		}
		*fused = true
		return add(func() decoding { return &byteDecoding{bytesOf: levelBytes} })
	case "Fuse":
		*fused = true
		return steps, nil
	case "Strip":
		var s struct {
			Content string `json:"content"`
			Start   int    `json:"start"`
			Stop    int    `json:"stop"`
		}
		if err := unmarshalStep(field, raw, &s); err != nil {
			return nil, err
		}
		r, size := utf8.DecodeRuneInString(s.Content)
		if size == 0 || size != len(s.Content) {
			return nil, badField(field+".content", "want one character, found %q", s.Content)
		}
		if s.Start < 0 || s.Stop < 0 {
			return nil, badField(field, "want counts that are not negative")
		}
		if *fused {
			return add(func() decoding { return &stripDecoding{content: s.Content, start: s.Start, stop: s.Stop} })
		}
		return add(func() decoding {
			return eachToken(func(token string, _ bool) string {
				for i := 0; i < s.Start && strings.HasPrefix(token, string(r)); i++ {
					token = token[size:]
				}
				for i := 0; i < s.Stop && strings.HasSuffix(token, string(r)); i++ {
					token = token[:len(token)-size]
				}
				return token
			})
		})
	case "Metaspace":
		mark, scheme, _, err := readMetaspaceOptions(field, raw)
		if err != nil {
			return nil, err
		}
		return add(func() decoding {
			return eachToken(func(token string, first bool) string {
				if first && scheme != "never" {
					return strings.ReplaceAll(token, string(mark), "")
				}
				return strings.ReplaceAll(token, string(mark), " ")
			})
		})
	}
	return nil, badField(field+".type", "decoder %q is not supported", kind)
}

// eachToken is a step that looks at one token at a time.
func eachToken(change func(token string, first bool) string) decoding {
	return &tokenDecoding{change: change, first: true}
}

type tokenDecoding struct {
	change func(token string, first bool) string
	first  bool
}

func (d *tokenDecoding) push(token string, out []string) []string {
	first := d.first
	d.first = false
	return append(out, d.change(token, first))
}

func (d *tokenDecoding) flush(out []string) []string { return out }

// byteDecoding joins tokens that stand for bytes; bytesOf appends a token's bytes, or says that
// the token is text.
type byteDecoding struct {
	bytesOf func(token string, out []byte) ([]byte, bool)
	held    []byte // the start of a character, at most three bytes
}

// fallbackByte reads <0xNN>.
func fallbackByte(token string, out []byte) ([]byte, bool) {
	if len(token) != 6 || !strings.HasPrefix(token, "<0x") || token[5] != '>' {
		return out, false
	}
	var b byte
	for _, d := range []byte(token[3:5]) {
		switch {
		case d >= '0' && d <= '9':
			d -= '0'
		case d >= 'a' && d <= 'f':
			d -= 'a' - 10
		case d >= 'A' && d <= 'F':
			d -= 'A' - 10
		default:
			return out, false
		}
		b = b<<4 | d
	}
	return append(out, b), true
}

// levelBytes reads the stand-ins of a byte-level vocabulary; a token that has others, as an
// added one may, is its own UTF-8.
func levelBytes(token string, out []byte) ([]byte, bool) {
	start := len(out)
	for _, r := range token {
		if int(r) >= len(runeBytes) || runeBytes[r] < 0 {
			return append(out[:start], token...), true
		}
		out = append(out, byte(runeBytes[r]))
	}
	return out, true
}

func (d *byteDecoding) push(token string, out []string) []string {
	bytes, ok := d.bytesOf(token, d.held)
	if !ok {
		return append(d.flush(out), token)
	}
	text, rest := lossy(bytes)
	d.held = append(d.held[:0], rest...)
	if text == "" {
		return out
	}
	return append(out, text)
}

func (d *byteDecoding) flush(out []string) []string {
	if len(d.held) == 0 {
		return out
	}
	d.held = d.held[:0]
	return append(out, string(utf8.RuneError)) // an unfinished character is one replacement
}

// lossy decodes UTF-8; every stretch that can't be part of a character becomes one U+FFFD, as
// Unicode recommends. rest is an unfinished character at the end.
func lossy(b []byte) (text string, rest []byte) {
	if utf8.Valid(b) {
		return string(b), nil
	}
	var out strings.Builder
	for len(b) > 0 {
		if r, size := utf8.DecodeRune(b); r != utf8.RuneError || size == 3 {
			out.Write(b[:size])
			b = b[size:]
			continue
		}
		bad, unfinished := invalidPrefix(b)
		if unfinished {
			return out.String(), b
		}
		out.WriteRune(utf8.RuneError)
		b = b[bad:]
	}
	return out.String(), nil
}

// invalidPrefix gives the length of the longest start of a character at b, at least 1, and
// whether b ends inside it. b does not begin with a whole character.
func invalidPrefix(b []byte) (length int, unfinished bool) {
	low, high, need := byte(0x80), byte(0xBF), 0
	switch c := b[0]; {
	case c >= 0xC2 && c <= 0xDF:
		need = 1
	case c >= 0xE0 && c <= 0xEF:
		need = 2
		if c == 0xE0 {
			low = 0xA0
		} else if c == 0xED {
			high = 0x9F
		}
	case c >= 0xF0 && c <= 0xF4:
		need = 3
		if c == 0xF0 {
			low = 0x90
		} else if c == 0xF4 {
			high = 0x8F
		}
	default:
		return 1, false
	}
	for i := 1; i <= need; i++ {
		if i == len(b) {
			return i, true
		}
		if b[i] < low || b[i] > high {
			return i, false
		}
		low, high = 0x80, 0xBF
	}
	return need + 1, false
}

// stripDecoding takes characters from the two ends of the whole text.
type stripDecoding struct {
	content     string
	start, stop int
	begun       bool
	held        int // contents at the end that may turn out to be the last
}

func (d *stripDecoding) push(token string, out []string) []string {
	if !d.begun {
		for d.start > 0 && strings.HasPrefix(token, d.content) {
			token = token[len(d.content):]
			d.start--
		}
		if token == "" {
			return out
		}
		d.begun = true
	}
	if d.stop == 0 || token == "" {
		return append(out, token)
	}
	body := token
	for strings.HasSuffix(body, d.content) {
		body = body[:len(body)-len(d.content)]
	}
	tail := (len(token) - len(body)) / len(d.content)
	settled := 0 // how many of the held ones are now known to stay
	if body != "" {
		settled, d.held = d.held, 0
	}
	d.held += tail
	over := max(d.held-d.stop, 0)
	d.held -= over
	return append(out, strings.Repeat(d.content, settled)+body+strings.Repeat(d.content, over))
}

func (d *stripDecoding) flush(out []string) []string { return out }

// spacedDecoding is what a tokenizer without a decoder does: tokens with spaces between them.
type spacedDecoding struct{ begun bool }

func (d *spacedDecoding) push(token string, out []string) []string {
	if d.begun {
		token = " " + token
	}
	d.begun = true
	return append(out, token)
}

func (d *spacedDecoding) flush(out []string) []string { return out }

// Stream decodes tokens as they are chosen. What it has returned so far, joined, is the start
// of what Decode gives for the same ids, and all of it after Flush. A Stream belongs to one
// goroutine.
type Stream struct {
	t           *Tokenizer
	skipSpecial bool
	steps       []decoding
	a, b        []string // scratch
}

// NewStream returns a decoder for one answer. Special tokens give no text.
func (t *Tokenizer) NewStream() *Stream { return t.newStream(true) }

// NewStreamWithSpecial is NewStream with special tokens spelled out, for whoever has to see the
// markers between parts of an answer.
func (t *Tokenizer) NewStreamWithSpecial() *Stream { return t.newStream(false) }

func (t *Tokenizer) newStream(skipSpecial bool) *Stream {
	s := &Stream{t: t, skipSpecial: skipSpecial, steps: make([]decoding, len(t.decoder))}
	for i, step := range t.decoder {
		s.steps[i] = step()
	}
	return s
}

// Push takes the next id and returns the text that is now certain: "" while a character is
// unfinished. Ids that are not in the vocabulary give no text.
func (s *Stream) Push(id int) string {
	text, ok := s.t.Token(id)
	if !ok || s.skipSpecial && s.t.IsSpecial(id) {
		return ""
	}
	return s.run(0, append(s.a[:0], text))
}

// run sends tokens through the steps from the given one on.
func (s *Stream) run(from int, tokens []string) string {
	other := s.b
	for _, step := range s.steps[from:] {
		out := other[:0]
		for _, token := range tokens {
			out = step.push(token, out)
		}
		tokens, other = out, tokens
	}
	s.a, s.b = tokens, other
	if len(tokens) == 1 {
		return tokens[0]
	}
	return strings.Join(tokens, "")
}

// Flush returns what was held back, an unfinished character as one U+FFFD. It is for the end of
// an answer, whole or cut short; the Stream starts over after it.
func (s *Stream) Flush() string {
	var b strings.Builder
	for i, step := range s.steps {
		b.WriteString(s.run(i+1, step.flush(s.a[:0])))
	}
	for i, step := range s.t.decoder {
		s.steps[i] = step()
	}
	return b.String()
}

// Decode gives the text of ids; skipSpecial leaves special tokens out. Ids that are not in the
// vocabulary give no text. Bytes that are not UTF-8 become one U+FFFD for each stretch that
// can't be part of a character.
//
// One difference from the reference: where byte tokens that are not UTF-8 stand in a row with
// others that are, it replaces every byte of the row, and Decode only the wrong ones, because a
// stream has already shown the right ones.
func (t *Tokenizer) Decode(ids []int, skipSpecial bool) string {
	s := t.newStream(skipSpecial)
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(s.Push(id))
	}
	b.WriteString(s.Flush())
	return b.String()
}
