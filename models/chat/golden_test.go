package chat

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"firesteel/models/tokenizer/realfiles"

	"github.com/ardanlabs/jinja"
)

const demoDir = "../demo/pair/target"

// conversation is a reference rendering: its text, or the error that was raised.
type conversation struct {
	Template   string    `json:"template"`
	Messages   []Message `json:"messages"`
	Generation bool      `json:"generation"`
	Thinking   bool      `json:"thinking"`
	Text       *string   `json:"text"`
	Error      string    `json:"error"`
}

func readGolden(t testing.TB, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func checkConversations(t *testing.T, template *Template, path string) {
	t.Helper()
	var cases []conversation
	readGolden(t, path, &cases)
	if len(cases) < 30 {
		t.Fatalf("%s: only %d cases", path, len(cases))
	}
	for i, c := range cases {
		got, err := template.WithThinking(c.Thinking).renderOnce(c.Messages, c.Generation)
		var refused *TemplateError
		switch {
		case c.Text == nil:
			if !errors.As(err, &refused) || !refused.Refused || "TemplateError: "+refused.Message != c.Error {
				t.Errorf("case %d: error %v, want %q", i, err, c.Error)
			}
		case err != nil:
			t.Errorf("case %d: %v", i, err)
		case got != *c.Text:
			t.Errorf("case %d: %v\n got %q\nwant %q", i, c.Messages, got, *c.Text)
		}
	}
	t.Logf("%s: %d renderings", path, len(cases))
}

func TestDemoTemplate(t *testing.T) {
	template, err := Load(demoDir)
	if err != nil {
		t.Fatal(err)
	}
	checkConversations(t, template, "testdata/demo.json")
}

func TestRealTemplates(t *testing.T) {
	for _, name := range []string{"gemma3", "qwen3"} {
		t.Run(name, func(t *testing.T) {
			template, err := Load(realfiles.Dir(t, name))
			if err != nil {
				t.Fatal(err)
			}
			checkConversations(t, template, "testdata/"+name+".json")
		})
	}
}

// The real Gemma 3 template refuses two user turns in a row: they are sent as one.
func TestRealTurnsAreMerged(t *testing.T) {
	template, err := Load(realfiles.Dir(t, "gemma3"))
	if err != nil {
		t.Fatal(err)
	}
	system, reply := Message{"system", "Be brief."}, Message{"assistant", "Yes."}
	apart := []Message{system, {"user", "One."}, reply, {"user", "Two."}, {"user", "Three."}}
	var refused *TemplateError
	if _, err := template.renderOnce(apart, true); !errors.As(err, &refused) || !refused.Refused {
		t.Fatal("not refused:", err)
	}
	got, err := template.Render(apart, true)
	want, err2 := template.Render([]Message{system, {"user", "One."}, reply, {"user", "Two.\n\nThree."}}, true)
	if err != nil || err2 != nil || got != want {
		t.Errorf("%q, %v, want %q, %v", got, err, want, err2)
	}
}

func fromJSON(t testing.TB, d *json.Decoder) jinja.Value {
	t.Helper()
	tok, err := d.Token()
	if err != nil {
		t.Fatal(err)
	}
	switch v := tok.(type) {
	case json.Delim:
		if v == '[' {
			var items []jinja.Value
			for d.More() {
				items = append(items, fromJSON(t, d))
			}
			d.Token()
			return jinja.NewList(items)
		}
		dict := jinja.NewDict()
		for d.More() {
			key, _ := d.Token()
			dict.AsDict().Set(key.(string), fromJSON(t, d))
		}
		d.Token()
		return dict
	case json.Number:
		return jinja.FromGoValue(v)
	default:
		return jinja.FromGoValue(v)
	}
}

// Small templates, each after one feature of the language.
func TestMiniTemplates(t *testing.T) {
	var golden struct {
		Item  string         `json:"item"`
		Cases []conversation `json:"cases"`
	}
	readGolden(t, "testdata/mini.json", &golden)
	if len(golden.Cases) < 55 {
		t.Fatalf("only %d cases", len(golden.Cases))
	}
	d := json.NewDecoder(strings.NewReader(golden.Item))
	d.UseNumber()
	item := fromJSON(t, d)
	for _, c := range golden.Cases {
		template, err := New("mini", c.Template, map[string]string{"bos_token": "<s>", "eos_token": "</s>"})
		if err != nil {
			t.Errorf("%q: %v", c.Template, err)
			continue
		}
		template.now = func() time.Time { return time.Date(2026, 3, 5, 7, 8, 9, 0, time.UTC) }
		template.extra = map[string]jinja.Value{"item": item}
		got, err := template.renderOnce(c.Messages, true)
		switch {
		case c.Text == nil:
			var refused *TemplateError
			if !errors.As(err, &refused) || !refused.Refused || "TemplateError: "+refused.Message != c.Error {
				t.Errorf("%q: error %v, want %q", c.Template, err, c.Error)
			}
		case err != nil:
			t.Errorf("%q: %v", c.Template, err)
		case got != *c.Text:
			t.Errorf("%q:\n got %q\nwant %q", c.Template, got, *c.Text)
		}
	}
}
