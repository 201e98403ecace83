package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// patternTime bounds one pattern's work on one text: a pattern from a stranger's file may
// backtrack without end.
var patternTime = 20 * time.Second

// pattern is a fixed text or a regular expression that a step looks for.
type pattern struct {
	text  string
	regex *regexp2.Regexp // nil when text is what is looked for
}

func readPattern(field string, raw json.RawMessage) (*pattern, error) {
	if absent(raw) {
		return nil, badField(field, "is missing")
	}
	var p struct {
		String *string `json:"String"`
		Regex  *string `json:"Regex"`
	}
	if err := unmarshalStep(field, raw, &p); err != nil {
		return nil, err
	}
	switch {
	case p.String != nil && p.Regex == nil:
		return &pattern{text: *p.String}, nil
	case p.Regex != nil && p.String == nil:
		return newRegex(field+".Regex", *p.Regex)
	}
	return nil, badField(field, "want either String or Regex")
}

func newRegex(field, source string) (*pattern, error) {
	// In the reference's dialect ^ and $ match at every line.
	regex, err := regexp2.Compile(source, regexp2.Multiline)
	if err != nil {
		return nil, &fieldError{field: field, detail: fmt.Sprintf("pattern %q can't be used", source), err: err}
	}
	regex.MatchTimeout = patternTime
	return &pattern{regex: regex}, nil
}

// part is a stretch of text that the pattern matched, or one between matches.
type part struct {
	start, end int // bytes
	match      bool
}

// parts cuts text into matches and what lies between them, in order and without gaps.
func (p *pattern) parts(text string, out []part) ([]part, error) {
	out = out[:0]
	done := 0
	add := func(start, end int) {
		if start > done {
			out = append(out, part{done, start, false})
		}
		out = append(out, part{start, end, true})
		done = end
	}
	switch {
	case p.regex != nil:
		runes := []rune(text)
		rune, at := 0, 0 // a rune index and the byte it is at
		last := -1       // where the last match ended, in runes
		seek := func(target int) int {
			for ; rune < target; rune++ {
				at += utf8.RuneLen(runes[rune])
			}
			return at
		}
		err := p.regex.FindRunesMatches(runes, 0, func(m regexp2.MatchView) bool {
			index, length, ok := m.GroupRange(0)
			if ok && (length > 0 || index != last) { // no empty match right after another
				start := seek(index)
				add(start, seek(index+length))
			}
			last = index + length
			return true
		})
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", p.regex.String(), err)
		}
	case p.text != "":
		for {
			i := strings.Index(text[done:], p.text)
			if i < 0 {
				break
			}
			add(done+i, done+i+len(p.text))
		}
	}
	if done < len(text) {
		out = append(out, part{done, len(text), false})
	}
	return out, nil
}

// replace puts content, taken as it is, in place of every match.
func (p *pattern) replace(text, content string) (string, error) {
	if p.regex == nil {
		if p.text == "" {
			return text, nil
		}
		return strings.ReplaceAll(text, p.text, content), nil
	}
	parts, err := p.parts(text, nil)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, part := range parts {
		if part.match {
			b.WriteString(content)
		} else {
			b.WriteString(text[part.start:part.end])
		}
	}
	return b.String(), nil
}
