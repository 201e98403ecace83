package chat

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The template engine differs from Python's jinja in where tags trim the text around them, in
// string escapes, in scopes, and it knows no line while it renders. So a template is first
// rewritten into one that leaves the engine no choice: text becomes string expressions, trimmed
// as jinja trims it with trim_blocks and lstrip_blocks on; strings are respelled; markers note
// the line; what the engine does differently calls functions of ours.

const (
	lineName  = "firesteel_line"  // called with a line before each tag
	depthName = "firesteel_depth" // called whenever a macro is
	// filterPrefix begins the names of our filters.
	filterPrefix = "firesteel_"
)

// ourFilters and ourMethods are what the engine's own versions do differently.
var (
	ourFilters = map[string]string{"tojson": "tojson", "trim": "strip"}
	ourMethods = map[string]string{
		"strip": "strip", "lstrip": "lstrip", "rstrip": "rstrip", "split": "split", "rsplit": "rsplit",
		"removeprefix": "removeprefix", "removesuffix": "removesuffix",
	}
)

const (
	maxSource  = 4 << 20 // bytes
	maxNesting = 200     // brackets in one tag, and blocks
)

type pieceKind int

const (
	textPiece pieceKind = iota
	outputPiece
	statementPiece
)

// piece is a part of a template: text, or a tag with its tokens.
type piece struct {
	kind   pieceKind
	text   string
	tokens []token
	line   int
}

type tokenKind int

const (
	spaceToken tokenKind = iota
	nameToken
	stringToken // its text is the value
	otherToken
)

type token struct {
	kind tokenKind
	text string
}

// syntaxError is a mistake in a template at a line.
type syntaxError struct {
	line   int
	detail string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.detail) }

// rewrite gives the template that the engine is to compile.
func rewrite(source string) (string, error) {
	if len(source) > maxSource {
		return "", &syntaxError{1, "the template is too large"}
	}
	source = strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\r", "\n")
	source = strings.TrimSuffix(source, "\n")
	s := scanner{source: source, line: 1, lineStart: true}
	if err := s.run(); err != nil {
		return "", err
	}
	return write(s.pieces)
}

// scanner cuts a template into pieces by jinja's rules.
type scanner struct {
	source    string
	pos       int
	line      int
	lineStart bool // the last thing read ended a line
	pieces    []piece
}

func (s *scanner) run() error {
	for s.pos < len(s.source) {
		at := s.opener()
		if at < 0 {
			s.addText(s.source[s.pos:])
			return nil
		}
		text, kind := s.source[s.pos:at], s.source[at+1]
		body := at + 2
		sign := byte(0)
		if body < len(s.source) && (s.source[body] == '-' || s.source[body] == '+') {
			sign = s.source[body]
			body++
		}
		s.addText(s.trimmed(text, sign, kind != '{'))
		s.line += strings.Count(text, "\n")
		s.pos = body
		var err error
		switch {
		case kind == '#':
			err = s.comment()
		case kind == '%' && s.raw():
			err = s.rawText()
		default:
			err = s.tag(kind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// opener finds the next tag.
func (s *scanner) opener() int {
	for i := s.pos; ; i++ {
		next := strings.IndexByte(s.source[i:], '{')
		if next < 0 || i+next+1 >= len(s.source) {
			return -1
		}
		i += next
		switch s.source[i+1] {
		case '{', '%', '#':
			return i
		}
	}
}

// trimmed is the text before a tag once the tag's sign and lstrip_blocks have had their way.
func (s *scanner) trimmed(text string, sign byte, block bool) string {
	switch {
	case sign == '-':
		return strings.TrimRightFunc(text, isSpace)
	case sign != '+' && block:
		start := strings.LastIndexByte(text, '\n') + 1
		if start > 0 || s.lineStart {
			if strings.TrimLeftFunc(text[start:], isSpace) == "" {
				return text[:start]
			}
		}
	}
	return text
}

func (s *scanner) addText(text string) {
	if text != "" {
		s.pieces = append(s.pieces, piece{kind: textPiece, text: text, line: s.line})
	}
}

// skip moves past n bytes that closed a tag, and past the white space that the closing takes.
func (s *scanner) skip(n int, all, newline bool) {
	end := s.pos + n
	if all {
		end = len(s.source) - len(strings.TrimLeftFunc(s.source[end:], isSpace))
	} else if newline && end < len(s.source) && s.source[end] == '\n' {
		end++
	}
	s.line += strings.Count(s.source[s.pos:end], "\n")
	s.lineStart = end > 0 && s.source[end-1] == '\n'
	s.pos = end
}

func (s *scanner) comment() error {
	i := strings.Index(s.source[s.pos:], "#}")
	if i < 0 {
		return &syntaxError{s.line, "a comment is not closed"}
	}
	sign := byte(0)
	if i > 0 {
		sign = s.source[s.pos+i-1]
	}
	s.line += strings.Count(s.source[s.pos:s.pos+i], "\n")
	s.pos += i
	s.skip(2, sign == '-', sign != '+')
	return nil
}

// raw reports whether a raw block begins at pos, and moves past its tag.
func (s *scanner) raw() bool {
	rest := strings.TrimLeftFunc(s.source[s.pos:], isSpace)
	rest, ok := strings.CutPrefix(rest, "raw")
	if !ok {
		return false
	}
	rest = strings.TrimLeftFunc(rest, isSpace)
	all := strings.HasPrefix(rest, "-%}")
	if !all && !strings.HasPrefix(rest, "%}") {
		return false
	}
	length := len(s.source) - s.pos - len(rest) + 2
	if all {
		length++
	}
	s.skip(length, all, false)
	return true
}

// rawText reads to the end of a raw block.
func (s *scanner) rawText() error {
	for from := s.pos; ; {
		i := strings.Index(s.source[from:], "{%")
		if i < 0 {
			return &syntaxError{s.line, "a raw block is not closed"}
		}
		at := from + i
		rest, sign := s.source[at+2:], byte(0)
		if rest != "" && (rest[0] == '-' || rest[0] == '+') {
			sign, rest = rest[0], rest[1:]
		}
		rest, ok := strings.CutPrefix(strings.TrimLeftFunc(rest, isSpace), "endraw")
		rest = strings.TrimLeftFunc(rest, isSpace)
		end := byte(0)
		if rest != "" && (rest[0] == '-' || rest[0] == '+') {
			end, rest = rest[0], rest[1:]
		}
		if !ok || !strings.HasPrefix(rest, "%}") {
			from = at + 2
			continue
		}
		text := s.source[s.pos:at]
		s.addText(s.trimmed(text, sign, true))
		s.line += strings.Count(text, "\n")
		s.pos = at
		s.skip(len(s.source)-at-len(rest)+2, end == '-', end != '+')
		return nil
	}
}

// tag reads the tokens of an output ('{') or a statement ('%').
func (s *scanner) tag(kind byte) error {
	p := piece{kind: outputPiece, line: s.line}
	closer := "}}"
	if kind == '%' {
		p.kind, closer = statementPiece, "%}"
	}
	var open []byte
	for s.pos < len(s.source) {
		rest := s.source[s.pos:]
		if len(open) == 0 {
			sign := byte(0)
			if rest[0] == '-' || rest[0] == '+' && kind == '%' {
				sign = rest[0]
			}
			if sign != 0 && strings.HasPrefix(rest[1:], closer) {
				s.pieces = append(s.pieces, p)
				s.skip(3, sign == '-', false)
				return nil
			}
			if strings.HasPrefix(rest, closer) {
				s.pieces = append(s.pieces, p)
				s.skip(2, false, kind == '%')
				return nil
			}
		}
		t, length, err := readToken(rest)
		if err != nil {
			return &syntaxError{s.line, err.Error()}
		}
		if t.kind == otherToken {
			switch t.text {
			case "(", "[", "{":
				open = append(open, t.text[0])
				if len(open) > maxNesting {
					return &syntaxError{s.line, "brackets are nested too deeply"}
				}
			case ")", "]", "}":
				if len(open) == 0 || closes[open[len(open)-1]] != t.text[0] {
					return &syntaxError{s.line, fmt.Sprintf("unexpected %q", t.text)}
				}
				open = open[:len(open)-1]
			}
		}
		p.tokens = append(p.tokens, t)
		s.line += strings.Count(rest[:length], "\n")
		s.pos += length
	}
	return &syntaxError{p.line, "a tag is not closed"}
}

var closes = map[byte]byte{'(': ')', '[': ']', '{': '}'}

// isSpace is what Python's strip and the \s of its patterns call white space.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1C && r <= 0x1F }

func readToken(text string) (token, int, error) {
	r, size := utf8.DecodeRuneInString(text)
	switch {
	case isSpace(r):
		n := len(text) - len(strings.TrimLeftFunc(text, isSpace))
		return token{spaceToken, text[:n]}, n, nil
	case r == '"' || r == '\'':
		for i := 1; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case text[0]:
				return token{stringToken, unescape(text[1:i])}, i + 1, nil
			}
		}
		return token{}, 0, fmt.Errorf("a string is not closed")
	case r == '_' || unicode.IsLetter(r):
		n := len(text) - len(strings.TrimLeftFunc(text, isNameRune))
		return token{nameToken, text[:n]}, n, nil
	case r >= '0' && r <= '9':
		n := len(text) - len(strings.TrimLeftFunc(text, func(r rune) bool { return r >= '0' && r <= '9' || r == '_' }))
		return token{otherToken, strings.ReplaceAll(text[:n], "_", "")}, n, nil
	case strings.ContainsRune("+-*/%~[](){}<>=!.:|,;", r):
		return token{otherToken, text[:size]}, size, nil
	}
	return token{}, 0, fmt.Errorf("unexpected character %q", r)
}

func isNameRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// unescape reads a string literal as Python would.
func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		digits := 0
		switch c := text[i]; c {
		case '\n': // a line that goes on
		case '\\', '\'', '"':
			b.WriteByte(c)
		case 'a':
			b.WriteByte('\a')
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'v':
			b.WriteByte('\v')
		case 'x':
			digits = 2
		case 'u':
			digits = 4
		case 'U':
			digits = 8
		case '0', '1', '2', '3', '4', '5', '6', '7':
			end := i + 1
			for end < len(text) && end < i+3 && text[end] >= '0' && text[end] <= '7' {
				end++
			}
			n, _ := strconv.ParseUint(text[i:end], 8, 32)
			b.WriteRune(rune(n))
			i = end - 1
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
		if digits > 0 {
			n, err := strconv.ParseUint(text[i+1:min(i+1+digits, len(text))], 16, 32)
			if err != nil || i+digits >= len(text) || n > unicode.MaxRune {
				b.WriteByte('\\')
				b.WriteByte(text[i])
				continue
			}
			b.WriteRune(rune(n))
			i += digits
		}
	}
	return b.String()
}

// quote spells a string for the engine, on one line.
func quote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(text) + "'"
}

// words are a tag's tokens without white space.
func (p *piece) words() []token {
	var out []token
	for _, t := range p.tokens {
		if t.kind != spaceToken {
			out = append(out, t)
		}
	}
	return out
}

// keyword is a statement's first word.
func (p *piece) keyword() string {
	for _, t := range p.tokens {
		if t.kind != spaceToken {
			return t.text
		}
	}
	return ""
}

// has reports whether a tag has an operator.
func (p *piece) has(operator string) bool {
	for _, t := range p.tokens {
		if t.kind == otherToken && t.text == operator {
			return true
		}
	}
	return false
}

// loop is what a for statement's body sets, apart from the loop's own variables.
type loop struct {
	own  map[string]bool
	sets []string
}

// loops finds, for every for statement by its index, what its body sets.
func loops(pieces []piece) map[int]*loop {
	found := map[int]*loop{}
	var open []*loop // nil for blocks with a scope of their own
	for i := range pieces {
		p := &pieces[i]
		if p.kind != statementPiece {
			continue
		}
		words := p.words()
		switch p.keyword() {
		case "for":
			l := &loop{own: map[string]bool{}}
			for _, w := range words[1:] {
				if w.text == "in" {
					break
				}
				l.own[w.text] = true
			}
			found[i] = l
			open = append(open, l)
		case "macro", "call":
			open = append(open, nil)
		case "endfor", "endmacro", "endcall":
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
		case "set":
			if len(open) == 0 || open[len(open)-1] == nil || len(words) < 2 {
				continue
			}
			if len(words) > 2 && words[2].text == "." {
				continue // an attribute of a namespace, which is meant to last
			}
			l := open[len(open)-1]
			if name := words[1].text; words[1].kind == nameToken && !l.own[name] {
				l.own[name] = true
				l.sets = append(l.sets, name)
			}
		}
	}
	return found
}

// write spells the pieces for the engine, each tag on its own line of the template.
func write(pieces []piece) (string, error) {
	loops := loops(pieces)
	var b strings.Builder
	line := 1
	var open []*piece // blocks
	for i := range pieces {
		p := &pieces[i]
		if p.kind == textPiece {
			b.WriteString("{{ " + quote(p.text) + " }}")
			continue
		}
		if p.line > line {
			b.WriteString("{#" + strings.Repeat("\n", p.line-line) + "#}")
			line = p.line
		}
		for _, t := range p.tokens {
			if t.kind == spaceToken {
				line += strings.Count(t.text, "\n")
			}
		}
		mark := fmt.Sprintf("{{ %s(%d) }}", lineName, p.line)
		if p.kind == outputPiece && len(p.words()) == 0 {
			return "", &syntaxError{p.line, "there is nothing to output"}
		}
		if p.kind == outputPiece {
			b.WriteString(mark + "{{ (" + spell(p.tokens) + ")|" + filterPrefix + "print }}")
			continue
		}
		keyword := p.keyword()
		switch keyword {
		case "if", "for", "macro", "call", "filter", "generation", "set":
			b.WriteString(mark)
			if keyword != "set" || !p.has("=") {
				open = append(open, p)
			}
		case "endif", "endfor", "endmacro", "endcall", "endfilter", "endgeneration", "endset":
			last := len(open) - 1
			if last < 0 || "end"+open[last].keyword() != keyword {
				return "", &syntaxError{p.line, fmt.Sprintf("unexpected %s", keyword)}
			}
			open = open[:last]
		}
		if len(open) > maxNesting {
			return "", &syntaxError{p.line, "blocks are nested too deeply"}
		}
		loop := loops[i]
		if loop != nil {
			for _, name := range loop.sets {
				fmt.Fprintf(&b, "{%% set %s = %s %%}", outerName(name, i), name)
			}
		}
		tokens := p.tokens
		if keyword == "macro" {
			tokens = withDepth(tokens)
		}
		b.WriteString("{% " + strings.TrimSpace(spell(tokens)) + " %}")
		if loop != nil {
			for _, name := range loop.sets {
				fmt.Fprintf(&b, "{%% set %s = %s %%}", name, outerName(name, i))
			}
			b.WriteString(mark) // so that every turn counts
		}
	}
	if last := len(open) - 1; last >= 0 {
		return "", &syntaxError{open[last].line, fmt.Sprintf("the %s block is not closed", open[last].keyword())}
	}
	return b.String(), nil
}

// outerName holds what a name meant before a loop, so that each turn starts with that.
func outerName(name string, loop int) string {
	return fmt.Sprintf("%souter%d_%s", filterPrefix, loop, name)
}

// withDepth gives a macro a parameter whose default counts its calls.
func withDepth(tokens []token) []token {
	last := -1
	empty := false
	for i, t := range tokens {
		if t.kind == otherToken && t.text == ")" {
			last = i
		}
	}
	if last < 0 {
		return tokens
	}
	for i := last - 1; i >= 0; i-- {
		if tokens[i].kind != spaceToken {
			empty = tokens[i].text == "(" || tokens[i].text == ","
			break
		}
	}
	extra := depthName + "_=" + depthName + "()"
	if !empty {
		extra = ", " + extra
	}
	out := append([]token{}, tokens[:last]...)
	out = append(out, token{otherToken, extra})
	return append(out, tokens[last:]...)
}

// spell writes a tag's tokens, calling ours where the engine's would differ.
func spell(tokens []token) string {
	var b strings.Builder
	next := func(i int) int {
		for i++; i < len(tokens) && tokens[i].kind == spaceToken; i++ {
		}
		return i
	}
	is := func(i int, text string) bool {
		return i < len(tokens) && tokens[i].kind == otherToken && tokens[i].text == text
	}
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		switch {
		case t.kind == stringToken:
			b.WriteString(quote(t.text))
		case t.kind == spaceToken:
			b.WriteString(strings.Repeat("\n", strings.Count(t.text, "\n")))
			b.WriteByte(' ')
		case t.kind == otherToken && t.text == "|" && next(i) < len(tokens) && ourFilters[tokens[next(i)].text] != "":
			i = next(i)
			b.WriteString("|" + filterPrefix + ourFilters[tokens[i].text])
		case t.kind == otherToken && t.text == "." && next(i) < len(tokens) && ourMethods[tokens[next(i)].text] != "" && is(next(next(i)), "("):
			i = next(i)
			b.WriteString("|" + filterPrefix + ourMethods[tokens[i].text])
		default:
			b.WriteString(t.text)
			if t.text == "}" {
				b.WriteByte(' ') // two in a row would close the tag
			}
		}
	}
	return b.String()
}
