package answer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sample = "# A story\n\nOnce, in a **small** village,\nthere was a dog.\n\n- one `x`\n- two\n  goes on\n\n1. first\n2. second\n\n```go\nfunc main() {\n\n\t**x**\n}\n```\nAfter.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> said\n> twice\n\nThe end"

func all(pieces []string) []block {
	s := splitter{}
	var out []block
	for _, p := range pieces {
		done, _, _ := s.feed(p)
		out = append(out, done...)
	}
	return append(out, s.finish()...)
}

func TestSplitter(t *testing.T) {
	want := []block{
		{kind: heading, level: 1, text: "A story"},
		{kind: paragraph, text: "Once, in a small village,\nthere was a dog."},
		{kind: item, mark: "•", text: "one x"},
		{kind: item, mark: "•", text: "two\ngoes on"},
		{kind: item, mark: "1.", text: "first"},
		{kind: item, mark: "2.", text: "second"},
		{kind: code, text: "func main() {\n\n\t**x**\n}"},
		{kind: paragraph, text: "After."},
		{kind: table, rows: [][]string{{"a", "b"}, {"1", "2"}}},
		{kind: quote, text: "said\ntwice"},
		{kind: paragraph, text: "The end"},
	}
	opt := cmp.AllowUnexported(block{})
	if d := cmp.Diff(want, all([]string{sample}), opt); d != "" {
		t.Error(d)
	}
	// However the text is cut, the same blocks result.
	for size := 1; size < 12; size++ {
		var pieces []string
		for rest := sample; rest != ""; {
			n := min(size, len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if d := cmp.Diff(want, all(pieces), opt); d != "" {
			t.Fatalf("in pieces of %d: %s", size, d)
		}
	}
}

func TestSplitterBoundsItsTail(t *testing.T) {
	s := splitter{}
	total := 0
	for range 20000 {
		done, open, _ := s.feed("word ")
		for _, b := range done {
			total += len(strings.ReplaceAll(b.text, " ", ""))
		}
		if len(open.text) > longest {
			t.Fatalf("the open block has %d bytes", len(open.text))
		}
	}
	for _, b := range s.finish() {
		total += len(strings.ReplaceAll(b.text, " ", ""))
	}
	if total != 20000*4 {
		t.Errorf("%d of %d letters arrived", total, 20000*4)
	}
	long := strings.Repeat("é", 50000)
	got := ""
	for _, b := range all([]string{long}) {
		got += b.text
	}
	if got != long {
		t.Error("one long word was damaged")
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"a **bold** word":   "a bold word",
		"2 * 3 * 4":         "2 * 3 * 4",
		"snake_case_name":   "snake_case_name",
		"an *italic* one":   "an italic one",
		"call `f(x)` now":   "call f(x) now",
		"open ** only":      "open ** only",
		"***both*** of it":  "both of it",
		"a __strong__ word": "a strong word",
	} {
		if got := plain(in); got != want {
			t.Errorf("plain(%q) = %q", in, got)
		}
	}
}
