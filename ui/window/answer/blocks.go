// Package answer is the conversation: what a person wrote, what the model answered as it
// comes, and under each answer how it went.
package answer

import (
	"strings"
	"unicode/utf8"
)

// kind of a block of an answer.
type kind int

const (
	paragraph kind = iota
	heading
	item // of a list
	code
	table
	quote
)

// block is a piece of an answer that is laid out by itself.
type block struct {
	kind  kind
	text  string // as shown: Markdown's marks are gone, except in code
	mark  string // "•" or "2." before a list item
	level int    // of a heading, 1 is the largest; of a list item, 0 is the outermost
	rows  [][]string
	joint bool // continues the block before it without a gap
}

// longest is how many bytes a paragraph may have before it is cut at a sentence or a space,
// so that the cost of laying out the newest words stays bounded.
const longest = 1600

// splitter turns Markdown that arrives in pieces into blocks. What is done is never looked
// at again; only the tail is.
type splitter struct {
	tail  string // from the start of the block still being written
	joint bool   // the tail continues a paragraph that was cut
}

// feed adds text and returns the blocks that are finished now, and the one being written
// (ok false: there is none yet).
func (s *splitter) feed(delta string) (done []block, open block, ok bool) {
	s.tail += delta
	for {
		b, rest, finished := s.first()
		if !finished {
			break
		}
		if b.text != "" || len(b.rows) > 0 {
			done = append(done, b)
		}
		s.tail = rest
	}
	open, _, _ = s.first()
	return done, open, open.text != "" || len(open.rows) > 0
}

// finish returns the blocks of the text that is left.
func (s *splitter) finish() []block {
	done, open, ok := s.feed("\n\n")
	if ok {
		done = append(done, open)
	}
	s.tail = ""
	return done
}

// first parses the block at the start of the tail. finished says that no text to come can
// change it; rest is what follows it then.
func (s *splitter) first() (b block, rest string, finished bool) {
	tail := s.tail
	// Blank lines between blocks.
	for {
		i := strings.IndexByte(tail, '\n')
		if i < 0 || strings.TrimSpace(tail[:i]) != "" {
			break
		}
		tail = tail[i+1:]
		s.tail, s.joint = tail, false
	}
	line, more, ended := cutLine(tail)
	trimmed := strings.TrimLeft(line, " \t")
	indent := len(line) - len(trimmed)
	switch {
	case strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~"):
		return s.fenced(trimmed[:3], more, ended)
	case isHeading(trimmed):
		level := strings.IndexByte(trimmed, ' ')
		return block{kind: heading, level: level, text: plain(strings.TrimSpace(strings.TrimRight(trimmed[level:], "# ")))}, more, ended
	case strings.HasPrefix(trimmed, "|"):
		return s.tableAt(tail)
	case strings.HasPrefix(trimmed, ">"):
		body, r, fin := s.gather(tail, func(l string) bool { return !strings.HasPrefix(strings.TrimSpace(l), ">") })
		lines := strings.Split(body, "\n")
		for i, l := range lines {
			lines[i] = strings.TrimPrefix(strings.TrimPrefix(strings.TrimLeft(l, " \t"), ">"), " ")
		}
		return block{kind: quote, text: plain(strings.Join(lines, "\n"))}, r, fin
	}
	if mark, after, ok := listMark(trimmed); ok {
		body, r, fin := s.gather(tail, startsBlock)
		body = strings.TrimLeft(body, " \t")
		body = body[min(len(body), len(trimmed)-len(after)):]
		lines := strings.Split(body, "\n")
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		return block{kind: item, mark: mark, level: min(indent/2, 3), text: plain(strings.Join(lines, "\n"))}, r, fin
	}
	if !ended && maybeMark(trimmed) {
		return block{}, "", false
	}
	body, r, fin := s.gather(tail, startsBlock)
	joint := s.joint
	if fin {
		s.joint = false
	}
	if len(body) > longest {
		cut := cutAt(body)
		s.joint = true
		return block{kind: paragraph, joint: joint, text: plain(body[:cut])}, strings.TrimLeft(tail[cut:], " "), true
	}
	return block{kind: paragraph, joint: joint, text: plain(body)}, r, fin
}

// gather takes lines up to a blank one or one for which stop says so (the first never is
// asked). finished is false while the last line taken may still grow.
func (s *splitter) gather(tail string, stop func(string) bool) (body, rest string, finished bool) {
	at := 0
	for at < len(tail) {
		line, _, ended := cutLine(tail[at:])
		if at > 0 {
			if strings.TrimSpace(line) == "" && ended {
				return strings.TrimRight(tail[:at], "\n"), tail[at:], true
			}
			if stop(line) && ended {
				return strings.TrimRight(tail[:at], "\n"), tail[at:], true
			}
		}
		if !ended {
			if at > 0 && strings.TrimSpace(line) != "" {
				if stop(line) {
					return strings.TrimRight(tail[:at], "\n"), tail[at:], true
				}
				// What may turn out to begin another block isn't shown as part of this one.
				if maybeMark(strings.TrimLeft(line, " \t")) {
					return strings.TrimRight(tail[:at], "\n"), "", false
				}
			}
			return strings.TrimRight(tail, " \n"), "", false
		}
		at += len(line) + 1
	}
	return strings.TrimRight(tail, " \n"), "", false
}

func (s *splitter) fenced(fence, more string, ended bool) (block, string, bool) {
	if !ended {
		return block{}, "", false
	}
	at := 0
	for at < len(more) {
		line, _, lineEnded := cutLine(more[at:])
		if strings.HasPrefix(strings.TrimLeft(line, " "), fence) && strings.Trim(line, " `~") == "" {
			rest := ""
			if lineEnded {
				rest = more[at+len(line)+1:]
			}
			return block{kind: code, text: strings.TrimRight(more[:at], "\n")}, rest, lineEnded
		}
		if !lineEnded {
			break
		}
		at += len(line) + 1
	}
	return block{kind: code, text: strings.TrimRight(more, "\n")}, "", false
}

func (s *splitter) tableAt(tail string) (block, string, bool) {
	body, rest, fin := s.gather(tail, func(l string) bool { return !strings.HasPrefix(strings.TrimSpace(l), "|") })
	lines := strings.Split(body, "\n")
	if !fin && len(lines) > 0 && !strings.HasSuffix(tail, "\n") {
		lines = lines[:len(lines)-1] // a row still being written
	}
	var rows [][]string
	for i, l := range lines {
		cells := strings.Split(strings.Trim(strings.TrimSpace(l), "|"), "|")
		rule := true
		for j, c := range cells {
			cells[j] = plain(strings.TrimSpace(c))
			rule = rule && strings.Trim(cells[j], "-: ") == "" && strings.Contains(cells[j], "-")
		}
		if rule && i == 1 {
			continue
		}
		rows = append(rows, cells)
	}
	if fin && len(lines) < 2 { // one line with a bar is only text
		return block{kind: paragraph, text: plain(body)}, rest, true
	}
	return block{kind: table, rows: rows}, rest, fin
}

func cutLine(s string) (line, rest string, ended bool) {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

func isHeading(l string) bool {
	n := len(l) - len(strings.TrimLeft(l, "#"))
	return n >= 1 && n <= 6 && len(l) > n && l[n] == ' '
}

func listMark(l string) (mark, after string, ok bool) {
	for _, m := range []string{"- ", "* ", "+ ", "• "} {
		if a, found := strings.CutPrefix(l, m); found {
			return "•", a, true
		}
	}
	digits := len(l) - len(strings.TrimLeft(l, "0123456789"))
	if digits >= 1 && digits <= 3 && len(l) > digits+1 && (l[digits] == '.' || l[digits] == ')') && l[digits+1] == ' ' {
		return l[:digits] + ".", l[digits+2:], true
	}
	return "", "", false
}

func startsBlock(l string) bool {
	l = strings.TrimLeft(l, " \t")
	_, _, list := listMark(l)
	return list || isHeading(l) || strings.HasPrefix(l, "```") || strings.HasPrefix(l, "~~~") || strings.HasPrefix(l, "|") || strings.HasPrefix(l, ">")
}

// maybeMark says that l is only the beginning of what could mark another kind of block.
func maybeMark(l string) bool {
	if l == "" || len(l) > 6 {
		return false
	}
	return strings.Trim(l, "#") == "" || strings.Trim(l, "`") == "" || strings.Trim(l, "~") == "" ||
		l == "-" || l == "*" || l == "+" || l == "•" || (len(l) <= 4 && strings.Trim(l, "0123456789.)") == "")
}

// cutAt returns where to cut a paragraph that is too long: after a sentence, else after a
// word, else anywhere between two characters.
func cutAt(body string) int {
	head := body[:longest]
	for _, end := range []string{". ", "! ", "? ", ".\n", "\n", " "} {
		if i := strings.LastIndex(head, end); i > longest/2 {
			return i + len(end)
		}
	}
	cut := longest
	for cut > 0 && !utf8.RuneStart(body[cut]) {
		cut--
	}
	return cut
}

// plain takes Markdown's marks for bold, italic and code out of running text. The marks
// stay where they don't come in pairs around words.
func plain(s string) string {
	if !strings.ContainsAny(s, "*_`\\") {
		return s
	}
	for _, m := range []string{"***", "**", "__", "`", "*"} {
		s = unmark(s, m)
	}
	return s
}

func unmark(s, mark string) string {
	var out strings.Builder
	for {
		i := strings.Index(s, mark)
		if i < 0 {
			break
		}
		j := strings.Index(s[i+len(mark):], mark)
		if j <= 0 {
			break
		}
		inner := s[i+len(mark) : i+len(mark)+j]
		before, after := i == 0 || !isWord(s[i-1]), i+2*len(mark)+j >= len(s) || !isWord(s[i+2*len(mark)+j])
		if strings.TrimSpace(inner) != inner || strings.Contains(inner, "\n\n") || !(before || mark == "`") || !(after || mark == "`") {
			out.WriteString(s[:i+len(mark)])
			s = s[i+len(mark):]
			continue
		}
		out.WriteString(s[:i])
		out.WriteString(inner)
		s = s[i+2*len(mark)+j:]
	}
	out.WriteString(s)
	return out.String()
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
