package chat

import (
	"strings"
)

// marks are how a family of models sets its thought apart from its answer.
type marks struct {
	open, close string
	name        string // what follows the opening mark and is no part of the thought
	anywhere    bool   // thoughts may follow answer text; else one comes first or not at all
}

var (
	channelMarks = marks{open: "<|channel>", close: "<channel|>", name: "thought", anywhere: true}
	thinkMarks   = marks{open: "<think>", close: "</think>"}
)

// Splitter sets a model's thought apart from its answer while the text comes. It holds back what
// may turn out to be a mark, and leaves out the marks and the line ends beside them. It belongs
// to one goroutine.
type Splitter struct {
	marks  marks
	state  splitState
	given  bool // the prompt, not the model, opened the thought
	closed bool // a thought has ended
	begun  bool // the answer has begun
	held   string
	lead   string // white space that is the answer's unless a thought follows
	thought,
	answer strings.Builder
	// skip says that line ends at the start of what comes are the mark's.
	skip bool
	// lines are line ends of the thought that belong to it if more of it follows.
	lines string
}

type splitState int

const (
	inAnswer splitState = iota
	inName              // after an opening mark, where the name of the channel is
	inThought
)

// Splitter returns a splitter for one answer: Gemma's channel marks or <think>, whichever the
// template speaks of, begun inside a thought if the template's prompt opens one. Without either
// all text is answer. The text must have its special tokens spelled out, as
// tokenizer.NewStreamWithSpecial gives it, without the stop token.
func (t *Template) Splitter() *Splitter {
	s := &Splitter{}
	switch {
	case strings.Contains(t.source, channelMarks.open):
		s.marks = channelMarks
	case strings.Contains(t.source, thinkMarks.open):
		s.marks = thinkMarks
	default:
		return s
	}
	prompt, err := t.render([]Message{{Role: "user", Content: "?"}}, true)
	if err == nil && strings.HasSuffix(strings.TrimRightFunc(prompt, isSpace), s.marks.open) {
		s.state, s.given, s.skip = inThought, true, true
	}
	return s
}

// Push takes more text and returns what of it is known to be thought and what answer.
func (s *Splitter) Push(text string) (thought, answer string) {
	if s.marks.open == "" {
		s.answer.WriteString(text)
		return "", text
	}
	var t, a strings.Builder
	s.held += text
	for s.step(&t, &a) {
	}
	s.thought.WriteString(t.String())
	s.answer.WriteString(a.String())
	return t.String(), a.String()
}

// step takes what it can from held, and reports whether there may be more to take.
func (s *Splitter) step(thought, answer *strings.Builder) bool {
	switch s.state {
	case inAnswer:
		if !s.marks.anywhere && (s.closed || s.begun) {
			s.write(answer, s.held)
			s.held = ""
			return false
		}
		before, found := s.take(s.marks.open)
		if !s.marks.anywhere {
			before, s.lead = s.lead+before, ""
			switch {
			case strings.TrimFunc(before, isSpace) != "":
				s.begun = true // a mark that comes now is part of the answer
				if found {
					before += s.marks.open
				}
				s.write(answer, before)
				return true
			case !found:
				s.lead = before
				return false
			}
			before = ""
		}
		s.write(answer, before)
		if found {
			s.state = inName
		}
		return found
	case inName:
		if s.marks.name != "" && len(s.held) < len(s.marks.name) && strings.HasPrefix(s.marks.name, s.held) {
			return false
		}
		s.held = strings.TrimPrefix(s.held, s.marks.name)
		s.state, s.skip, s.lines = inThought, true, ""
		return true
	default:
		before, found := s.take(s.marks.close)
		if before != "" {
			before = s.lines + before
			body := strings.TrimRight(before, "\n")
			s.lines = before[len(body):]
			s.write(thought, body)
		}
		if found {
			s.state, s.closed, s.skip, s.lines = inAnswer, true, true, ""
		}
		return found
	}
}

// take removes and returns the held text before a mark, and the mark if it is there; the start
// of a mark stays held.
func (s *Splitter) take(mark string) (before string, found bool) {
	if before, after, found := strings.Cut(s.held, mark); found {
		s.held = after
		return before, true
	}
	keep := 0
	for n := min(len(mark)-1, len(s.held)); n > 0; n-- {
		if strings.HasSuffix(s.held, mark[:n]) {
			keep = n
			break
		}
	}
	before = s.held[:len(s.held)-keep]
	s.held = s.held[len(before):]
	return before, false
}

// write appends text, without the line ends that a mark before it has.
func (s *Splitter) write(to *strings.Builder, text string) {
	if s.skip {
		if text = strings.TrimLeft(text, "\n"); text == "" {
			return
		}
		s.skip = false
	}
	to.WriteString(text)
}

// Flush returns what was held back: it is no mark, since nothing follows.
func (s *Splitter) Flush() (thought, answer string) {
	rest := s.lead + s.held
	s.held, s.lead = "", ""
	var b strings.Builder
	switch s.state {
	case inAnswer:
		s.write(&b, rest)
		s.answer.WriteString(b.String())
		return "", b.String()
	case inThought:
		if rest != "" {
			rest = s.lines + rest
		}
		s.write(&b, rest)
		s.thought.WriteString(b.String())
		return b.String(), ""
	}
	return "", "" // part of a channel's name
}

// Split is an answer with its thought apart.
type Split struct {
	Thought string
	Answer  string
	// Unclosed says that the text ended inside the thought.
	Unclosed bool
}

// Split gives both texts as a whole, after Flush. ended says that the model ended the text
// itself, rather than a limit or a person. A thought that the prompt opened and the model
// ended without ever closing it was the answer.
func (s *Splitter) Split(ended bool) Split {
	out := Split{Thought: s.thought.String(), Answer: s.answer.String(), Unclosed: s.state != inAnswer}
	if out.Unclosed && ended && s.given && !s.closed {
		return Split{Answer: out.Thought}
	}
	return out
}
