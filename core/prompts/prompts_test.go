package prompts

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"firesteel/models/chat"
)

func user(text string) []chat.Message { return []chat.Message{{Role: "user", Content: text}} }

func TestEveryFormOfALine(t *testing.T) {
	got, err := Read(strings.NewReader("\ufeffWhy?\r\n\n"+
		`{"prompt": "Who?"}`+"\n"+
		`{"p": "What?", "r": "That."}`+"\n"+
		`{"prompt": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "When?"}]}`+"\n"+
		`{"messages": [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "There."}]}`), "x")
	want := []Prompt{{Messages: user("Why?")}, {Messages: user("Who?")}, {Messages: user("What?"), Answer: "That."},
		{Messages: append([]chat.Message{{Role: "system", Content: "Be short."}}, user("When?")...)}, {Messages: user("Where?"), Answer: "There."}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestUnusableLinesAreNamed(t *testing.T) {
	for text, line := range map[string]int{
		"":                                0,
		"\n \n":                           0,
		"a\n{\"p\": ":                     2,
		"{}":                              1,
		"a\nb\n{\"prompt\": 7}":           3,
		`{"prompt": ""}`:                  1,
		`{"messages": [{"content":"a"}]}`: 1,
		"\xff\xfe":                        1,
	} {
		list, err := Read(strings.NewReader(text), "my prompts.jsonl")
		var e *Error
		if !errors.As(err, &e) || e.Line != line || e.Path != "my prompts.jsonl" || list != nil {
			t.Errorf("%q: %v, %v", text, list, err)
		}
	}
	if _, err := Read(strings.NewReader("a\n"+strings.Repeat("b", lineLimit+1)), "x"); err == nil {
		t.Error("an endless line")
	}
}

func TestLoadReadsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.txt")
	if _, err := Load(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(path, []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := Load(path); err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestBuiltinPromptsAreThere(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Builtin() {
		seen[p.Messages[0].Content] = true
	}
	if len(seen) < 250 || len(seen) != len(Builtin()) {
		t.Errorf("%d different prompts of %d", len(seen), len(Builtin()))
	}
}
