package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"firesteel/models/tokenizer"

	"github.com/ardanlabs/jinja"
)

// ErrNoTemplate is what Load's error wraps when a folder has no chat template: the model can
// then only continue raw text.
var ErrNoTemplate = errors.New("no chat template")

// TemplateError is a template that can't be used, or that refuses a conversation.
type TemplateError struct {
	File    string // the file that holds the template, as it was given
	Line    int    // in the template, from 1; 0 when it is not known
	Message string // the template's own words when Refused, else what is wrong
	Refused bool   // the template called raise_exception
}

func (e *TemplateError) Error() string {
	message := e.Message
	if message == "" && e.Refused {
		message = "the chat template refuses this conversation"
	}
	if e.Line > 0 {
		return fmt.Sprintf("%s: line %d: %s", e.File, e.Line, message)
	}
	return e.File + ": " + message
}

// Template is a model's chat template. It never changes after Load and may be used from several
// goroutines.
type Template struct {
	file     string
	source   string
	compiled *jinja.Template
	tokens   map[string]string // bos_token and the like, by the name templates know them under
	thinking bool
	now      func() time.Time
	extra    map[string]jinja.Value // further variables, for tests
}

// Load reads a folder's chat template: chat_template.jinja, else the chat_template of
// tokenizer_config.json (of several named ones, "default"), else chat_template.json.
func Load(dir string) (*Template, error) {
	configPath := filepath.Join(dir, "tokenizer_config.json")
	config := map[string]json.RawMessage{}
	if err := readObject(configPath, &config); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	tokens := map[string]string{}
	for key, raw := range config {
		if strings.HasSuffix(key, "_token") && string(raw) != "null" {
			// Others end so too, such as add_bos_token, and name no token.
			if text, err := tokenizer.TokenName(raw); err == nil {
				tokens[key] = text
			}
		}
	}

	path := filepath.Join(dir, "chat_template.jinja")
	data, err := os.ReadFile(path)
	if err == nil {
		return New(path, string(data), tokens)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if raw := config["chat_template"]; len(raw) > 0 && string(raw) != "null" {
		source, err := pickTemplate(raw)
		if err != nil {
			return nil, &TemplateError{File: configPath, Message: "chat_template: " + err.Error()}
		}
		return New(configPath, source, tokens)
	}
	path = filepath.Join(dir, "chat_template.json")
	var holder map[string]json.RawMessage
	if err := readObject(path, &holder); err == nil {
		source, err := pickTemplate(holder["chat_template"])
		if err != nil {
			return nil, &TemplateError{File: path, Message: "chat_template: " + err.Error()}
		}
		return New(path, source, tokens)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return nil, fmt.Errorf("%s: %w", dir, ErrNoTemplate)
}

func readObject(path string, into *map[string]json.RawMessage) error {
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// pickTemplate reads a template, or the default one of a list of named templates.
func pickTemplate(raw json.RawMessage) (string, error) {
	var source string
	if json.Unmarshal(raw, &source) == nil {
		return source, nil
	}
	var named []struct {
		Name     *string `json:"name"`
		Template *string `json:"template"`
	}
	if err := json.Unmarshal(raw, &named); err != nil {
		return "", errors.New("want a template or a list of named templates")
	}
	var names []string
	for i, entry := range named {
		if entry.Name == nil || entry.Template == nil {
			return "", fmt.Errorf("entry %d: name or template is missing", i)
		}
		if *entry.Name == "default" || len(named) == 1 {
			return *entry.Template, nil
		}
		names = append(names, *entry.Name)
	}
	return "", fmt.Errorf("none of the named templates %q is the default", names)
}

// New makes a template from its source. file is named in errors; tokens are the texts templates
// know as bos_token, eos_token and so on.
func New(file, source string, tokens map[string]string) (_ *Template, err error) {
	t := &Template{file: file, source: source, tokens: tokens, now: time.Now}
	defer func() { // the engine is another's code
		if p := recover(); p != nil {
			err = &TemplateError{File: file, Message: fmt.Sprint("the template can't be read: ", p)}
		}
	}()
	rewritten, err := rewrite(source)
	if err != nil {
		var syntax *syntaxError
		errors.As(err, &syntax)
		return nil, &TemplateError{File: file, Line: syntax.line, Message: syntax.detail}
	}
	if t.compiled, err = jinja.Compile(rewritten); err != nil {
		return nil, t.located(err)
	}
	return t, nil
}

var lineOf = regexp.MustCompile(`(?:at )?line (\d+)(?:, col \d+)?:? ?`)

// located turns an engine's complaint about a template's text into an error with its line.
func (t *Template) located(err error) *TemplateError {
	message, line := err.Error(), 0
	message = strings.TrimPrefix(strings.TrimPrefix(message, "jinja parse: "), "jinja scan: ")
	if m := lineOf.FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1])
		message = strings.TrimSpace(strings.Replace(message, m[0], "", 1))
	}
	return &TemplateError{File: t.file, Line: line, Message: message}
}

// WithThinking returns the template with enable_thinking set; it is off otherwise.
func (t *Template) WithThinking(on bool) *Template {
	changed := *t
	changed.thinking = on
	return &changed
}

// Source is the template's text.
func (t *Template) Source() string { return t.source }

// Render writes a conversation as the model was trained to read it; addGenerationPrompt ends it
// where the answer begins. Messages are cleaned first (see Clean).
//
// A template may refuse a system message, or two turns of one role in a row. Then the system
// text is put before the text of the user's turn that follows it, with an empty line between,
// and turns of one role are joined in the same way; one is tried, then the other, then both.
// What the template still refuses is a *TemplateError with the template's own words.
func (t *Template) Render(messages []Message, addGenerationPrompt bool) (string, error) {
	clean := make([]Message, len(messages))
	for i, m := range messages {
		clean[i] = Message{Role: m.Role, Content: Clean(m.Content)}
	}
	return t.render(clean, addGenerationPrompt)
}

func (t *Template) render(messages []Message, addGenerationPrompt bool) (string, error) {
	text, first := t.renderOnce(messages, addGenerationPrompt)
	var refusal *TemplateError
	if !errors.As(first, &refusal) || !refusal.Refused {
		return text, first
	}
	folded := foldSystem(messages)
	for _, attempt := range [][]Message{folded, mergeTurns(messages), mergeTurns(folded)} {
		text, err := t.renderOnce(attempt, addGenerationPrompt)
		if err == nil {
			return text, nil
		}
	}
	return "", first
}

// foldSystem puts every system message into the user's turn after it, or before it if none
// follows; a conversation without one gets a user's turn of it.
func foldSystem(messages []Message) []Message {
	var out []Message
	pending := ""
	last := -1 // the last user's turn in out
	for _, m := range messages {
		switch m.Role {
		case "system":
			pending = joinTexts(pending, m.Content)
			continue
		case "user":
			m.Content = joinTexts(pending, m.Content)
			pending = ""
			last = len(out)
		}
		out = append(out, m)
	}
	switch {
	case pending == "":
	case last >= 0:
		out[last].Content = joinTexts(out[last].Content, pending)
	default:
		out = append([]Message{{Role: "user", Content: pending}}, out...)
	}
	return out
}

// mergeTurns joins neighbours of one role.
func mergeTurns(messages []Message) []Message {
	var out []Message
	for _, m := range messages {
		if n := len(out); n > 0 && out[n-1].Role == m.Role {
			out[n-1].Content = joinTexts(out[n-1].Content, m.Content)
			continue
		}
		out = append(out, m)
	}
	return out
}

func joinTexts(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

const (
	maxRange = 100_000 // as the reference's sandbox has it
	maxCalls = 20_000  // of macros in one rendering: more only comes from one that calls itself
	maxTags  = 2_000_000
)

var errRefused = errors.New("refused")

// renderOnce renders the messages as they are.
func (t *Template) renderOnce(messages []Message, addGenerationPrompt bool) (text string, err error) {
	line, tags, calls, refusal := 0, 0, 0, ""
	fail := func(err error) error {
		if errors.Is(err, errRefused) {
			return &TemplateError{File: t.file, Line: line, Message: refusal, Refused: true}
		}
		return &TemplateError{File: t.file, Line: line, Message: err.Error()}
	}
	defer func() { // the engine is another's code
		if p := recover(); p != nil {
			text, err = "", fail(fmt.Errorf("the template can't be run: %v", p))
		}
	}()

	values := map[string]jinja.Value{
		"add_generation_prompt": jinja.NewBool(addGenerationPrompt),
		"enable_thinking":       jinja.NewBool(t.thinking),
		"tools":                 jinja.None(),
		"documents":             jinja.None(),
	}
	for name, token := range t.tokens {
		values[name] = jinja.NewString(token)
	}
	for name, value := range t.extra {
		values[name] = value
	}
	turns := make([]jinja.Value, len(messages))
	for i, m := range messages {
		turns[i] = jinja.NewDict()
		turns[i].AsDict().Set("role", jinja.NewString(m.Role))
		turns[i].AsDict().Set("content", jinja.NewString(m.Content))
	}
	values["messages"] = jinja.NewList(turns)

	define := func(name string, f function) { values[name] = jinja.NewCallable(name, f) }
	for name, filter := range filters {
		define(filterPrefix+name, filter)
	}
	define("raise_exception", func(args []jinja.Value, named map[string]jinja.Value) (jinja.Value, error) {
		if v, ok := given(args, named, 0, "message"); ok {
			refusal = textOf(v)
		}
		return jinja.Undefined(), errRefused
	})
	define("strftime_now", func(args []jinja.Value, named map[string]jinja.Value) (jinja.Value, error) {
		v, ok := given(args, named, 0, "format")
		if !ok {
			return jinja.Undefined(), errors.New("strftime_now: the format is missing")
		}
		return jinja.NewString(strftime(textOf(v), t.now())), nil
	})
	define("range", func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
		return numberRange(args)
	})
	define(lineName, func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
		line = int(args[0].AsInt())
		if tags++; tags > maxTags {
			return jinja.Undefined(), errors.New("the template goes on without end")
		}
		return jinja.Undefined(), nil
	})
	define(depthName, func([]jinja.Value, map[string]jinja.Value) (jinja.Value, error) {
		if calls++; calls > maxCalls {
			return jinja.Undefined(), errors.New("a macro calls itself without end")
		}
		return jinja.None(), nil
	})
	text, err = t.compiled.RenderValues(values)
	if err != nil {
		return "", fail(err)
	}
	return text, nil
}

func numberRange(args []jinja.Value) (jinja.Value, error) {
	bounds := make([]int64, len(args))
	for i, arg := range args {
		if !arg.IsInt() {
			return jinja.Undefined(), errors.New("range: want whole numbers")
		}
		bounds[i] = arg.AsInt()
	}
	var start, stop int64
	step := int64(1)
	switch len(bounds) {
	case 1:
		stop = bounds[0]
	case 2:
		start, stop = bounds[0], bounds[1]
	case 3:
		start, stop, step = bounds[0], bounds[1], bounds[2]
	default:
		return jinja.Undefined(), errors.New("range: want one to three numbers")
	}
	if step == 0 {
		return jinja.Undefined(), errors.New("range: the step is zero")
	}
	var items []jinja.Value
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if len(items) == maxRange {
			return jinja.Undefined(), errors.New("range: more than 100,000 numbers")
		}
		items = append(items, jinja.NewInt(i))
	}
	return jinja.NewList(items), nil
}
