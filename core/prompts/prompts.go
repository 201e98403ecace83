// Package prompts reads the texts that a job gives a model to answer: a person's own file, their
// own chats where they have them kept, or a few that come with the app.
package prompts

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"firesteel/models/chat"
)

// Prompt is one conversation for a model to go on with.
type Prompt struct {
	Messages []chat.Message
	Answer   string // what was answered, where the file says; "" otherwise
	Target   string // identity of the target that answered, where kept chats say; "" otherwise
}

// lineLimit bounds a line of a file.
const lineLimit = 16 << 20

// Error says which line of a file can't be used.
type Error struct {
	Path   string
	Line   int // from 1; 0: the file as a whole
	Detail string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.Path, e.Detail)
	}
	return fmt.Sprintf("%s: line %d: %s", e.Path, e.Line, e.Detail)
}

// Load reads the prompts in a file. See Read.
func Load(path string) ([]Prompt, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f, path)
}

// Read takes one prompt a line: a JSON object with "prompt" (text, or a list of messages with
// role and content), "p" (text; "r" is its answer) or "messages", or else plain text. Empty
// lines don't count. Messages lose the answer at their end, which becomes Prompt.Answer. The
// path is for messages; a line that can't be used, or a file without prompts, is an *Error.
func Read(r io.Reader, path string) ([]Prompt, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, lineLimit)
	var list []Prompt
	n := 0
	for lines.Scan() {
		n++
		line := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if line == "" {
			continue
		}
		p, detail := parse(line)
		if detail != "" {
			return nil, &Error{path, n, detail}
		}
		list = append(list, p)
	}
	if err := lines.Err(); err != nil {
		if err == bufio.ErrTooLong {
			return nil, &Error{path, n + 1, "it is too long"}
		}
		return nil, err
	}
	if len(list) == 0 {
		return nil, &Error{path, 0, "there is no prompt in it"}
	}
	return list, nil
}

// parse reads one line; detail says what is wrong with it, "" when nothing is.
func parse(line string) (p Prompt, detail string) {
	if !utf8.ValidString(line) {
		return p, "it is not text"
	}
	if line[0] != '{' {
		return said(line), ""
	}
	var fields struct {
		Prompt   json.RawMessage
		P, R     string
		Messages []chat.Message
		Target   json.RawMessage // of kept chats; in other files it may be anything
	}
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		return p, "it begins like JSON but is not: " + err.Error()
	}
	p.Answer = fields.R
	json.Unmarshal(fields.Target, &p.Target)
	switch {
	case fields.P != "":
		p.Messages = said(fields.P).Messages
	case len(fields.Messages) > 0:
		p.Messages = fields.Messages
	case len(fields.Prompt) > 0:
		var text string
		if json.Unmarshal(fields.Prompt, &text) == nil {
			p.Messages = said(text).Messages
		} else if err := json.Unmarshal(fields.Prompt, &p.Messages); err != nil {
			return p, `its "prompt" is neither text nor messages`
		}
	}
	if last := len(p.Messages) - 1; last > 0 && p.Messages[last].Role == "assistant" {
		p.Answer, p.Messages = p.Messages[last].Content, p.Messages[:last]
	}
	for _, m := range p.Messages {
		if m.Role == "" {
			return p, "a message has no role"
		}
	}
	if len(p.Messages) == 0 || strings.TrimSpace(p.Messages[len(p.Messages)-1].Content) == "" {
		return p, `it has neither "prompt", "p" nor "messages"`
	}
	return p, ""
}

func said(text string) Prompt {
	return Prompt{Messages: []chat.Message{{Role: "user", Content: text}}}
}

//go:embed builtin.txt
var builtin string

// Forms and things make more prompts than anyone would care to read one by one.
var (
	forms = []string{"Tell me a story about %s.", "Describe %s.", "Write a short poem about %s.", "Tell me something I may not know about %s.",
		"What would a child ask about %s?", "Write a letter about %s to a friend.", "Give me five ideas that have to do with %s.", "Explain the use of %s."}
	things = []string{"a bridge", "an old garden", "the wind", "a lighthouse", "a wooden box", "a small island", "the night sky", "a village school",
		"a river in spring", "a shoemaker", "an apple tree", "a broken umbrella", "a long winter", "a mountain path", "a blue door", "a family dinner",
		"a travelling musician", "a stone wall", "a forgotten song", "a beehive", "a fishing boat", "a birthday cake", "a snowy owl", "an empty theatre",
		"a busy kitchen", "a secret map", "a kind stranger", "a loud parrot", "a warm coat", "a harvest"}
)

// Builtin returns the prompts that come with the app: short, about nothing in particular, and as
// various at the beginning as at the end.
func Builtin() []Prompt {
	list, err := Read(strings.NewReader(builtin), "builtin.txt")
	if err != nil {
		panic(err) // it is part of the program
	}
	for round := range forms {
		for i, thing := range things {
			list = append(list, said(fmt.Sprintf(forms[(round+i)%len(forms)], thing)))
		}
	}
	return list
}
