package chat

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func splitterFor(t testing.TB, source string, thinking bool) *Splitter {
	t.Helper()
	template, err := New("t", source, nil)
	if err != nil {
		t.Fatal(err)
	}
	return template.WithThinking(thinking).Splitter()
}

const (
	channelTemplate = "{% for m in messages %}{{ m.content.split('<channel|>')[-1] }}{% endfor %}{% if add_generation_prompt %}<|turn>model\n{% if not enable_thinking %}<|channel>thought\n<channel|>{% endif %}{% endif %}"
	thinkTemplate   = "{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}{% if add_generation_prompt %}assistant\n{% if not enable_thinking %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
	openTemplate    = "{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}{% if add_generation_prompt %}assistant\n<think>\n{% endif %}"
	markless        = "{% for m in messages %}{{ m.content }}{% endfor %}"
)

func TestSplitter(t *testing.T) {
	for _, c := range []struct {
		name, source, text string
		ended              bool
		want               Split
	}{
		{"channel", channelTemplate, "<|channel>thought\nHm.\nSo.\n<channel|>Yes.", true, Split{"Hm.\nSo.", "Yes.", false}},
		{"empty channel", channelTemplate, "<|channel>thought\n<channel|>Yes.", true, Split{"", "Yes.", false}},
		{"channel without name", channelTemplate, "<|channel>Hm.<channel|>\nYes.", true, Split{"Hm.", "Yes.", false}},
		{"no channel", channelTemplate, "Yes.\n\nNo.\n", true, Split{"", "Yes.\n\nNo.\n", false}},
		{"two channels", channelTemplate, "<|channel>thought\nA\n<channel|>B <|channel>thought\nC<channel|>D", true, Split{"AC", "B D", false}},
		{"nearly a mark", channelTemplate, "a <|chan nel> <| <channel| > b", true, Split{"", "a <|chan nel> <| <channel| > b", false}},
		{"half a mark at the end", channelTemplate, "a <|chan", true, Split{"", "a <|chan", false}},
		{"unclosed", channelTemplate, "<|channel>thought\nHm. I", false, Split{"Hm. I", "", true}},
		{"unclosed in the closing mark", channelTemplate, "<|channel>thought\nHm.\n<chan", false, Split{"Hm.\n<chan", "", true}},
		{"unclosed in the name", channelTemplate, "<|channel>tho", false, Split{"", "", true}},
		{"unclosed and ended", channelTemplate, "<|channel>thought\nHm.", true, Split{"Hm.", "", true}},
		{"think", thinkTemplate, "<think>\nHm.\n\nSo.\n</think>\n\nYes.\n", true, Split{"Hm.\n\nSo.", "Yes.\n", false}},
		{"empty think", thinkTemplate, "<think>\n\n</think>\n\nYes.", true, Split{"", "Yes.", false}},
		{"white space before think", thinkTemplate, "\n <think>Hm.</think>Yes.", true, Split{"Hm.", "Yes.", false}},
		{"no think", thinkTemplate, "Yes: <think> is a tag, </think> too.", true, Split{"", "Yes: <think> is a tag, </think> too.", false}},
		{"think once", thinkTemplate, "<think>a</think><think>b</think>", true, Split{"a", "<think>b</think>", false}},
		{"unclosed think", thinkTemplate, "<think>\nHm.\n", false, Split{"Hm.", "", true}},
		{"opened by the prompt", openTemplate, "Hm.\n</think>\n\nYes.", true, Split{"Hm.", "Yes.", false}},
		{"opened by the prompt, cut", openTemplate, "Hm.", false, Split{"Hm.", "", true}},
		{"opened by the prompt, never a thought", openTemplate, "Yes.", true, Split{"", "Yes.", false}},
		{"no marks known", markless, "<think>a</think><|channel>b", true, Split{"", "<think>a</think><|channel>b", false}},
		{"nothing", channelTemplate, "", true, Split{"", "", false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for first := 0; first <= len(c.text); first++ {
				for second := first; second <= len(c.text); second++ {
					for _, thinking := range []bool{true, false} {
						s := splitterFor(t, c.source, thinking)
						checkSplit(t, s, []string{c.text[:first], c.text[first:second], c.text[second:]}, c.ended, c.want)
					}
				}
			}
		})
	}
}

func checkSplit(t testing.TB, s *Splitter, pieces []string, ended bool, want Split) {
	t.Helper()
	var thought, answer strings.Builder
	add := func(th, an string) {
		thought.WriteString(th)
		answer.WriteString(an)
	}
	for _, piece := range pieces {
		add(s.Push(piece))
	}
	add(s.Flush())
	got := s.Split(ended)
	if got != want {
		t.Fatalf("%q: %+v, want %+v", pieces, got, want)
	}
	if got.Thought+got.Answer != thought.String()+answer.String() {
		t.Fatalf("%q: streamed %q and %q, in the end %+v", pieces, thought.String(), answer.String(), got)
	}
}

// However the stream is cut, the outcome is the same, and no text of the answer is lost.
func TestSplitterAtRandom(t *testing.T) {
	words := rapid.SampledFrom([]string{"<|channel>", "<channel|>", "thought", "\n", "<think>", "</think>", "<", "a", "|>", "é", " "})
	for _, source := range []string{channelTemplate, thinkTemplate, openTemplate, markless} {
		rapid.Check(t, func(t *rapid.T) {
			text := strings.Join(rapid.SliceOfN(words, 0, 14).Draw(t, "words"), "")
			template, _ := New("t", source, nil)
			whole := template.Splitter()
			whole.Push(text)
			whole.Flush()
			want := whole.Split(false)
			var pieces []string
			for rest := text; rest != ""; {
				n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
				pieces = append(pieces, rest[:n])
				rest = rest[n:]
			}
			pieced := template.Splitter()
			for _, piece := range pieces {
				pieced.Push(piece)
			}
			pieced.Flush()
			if got := pieced.Split(false); got != want {
				t.Fatalf("%q: %+v, want %+v", pieces, got, want)
			}
			if source == markless && want.Answer != text {
				t.Fatalf("%q became %q", text, want.Answer)
			}
		})
	}
}

// What is said of the two families holds for their real templates.
func TestRealSplitters(t *testing.T) {
	dir := engineTemplates(t)
	for _, c := range []struct {
		file     string
		thinking bool
		text     string
		want     Split
	}{
		{"gemma-4-26B-A4B-it-UD-Q8_K_XL.jinja", true, "<|channel>thought\nHm.\n<channel|>Yes.", Split{"Hm.", "Yes.", false}},
		{"gemma-4-26B-A4B-it-UD-Q8_K_XL.jinja", false, "Yes.", Split{"", "Yes.", false}},
		{"Qwen3-8B-Q8_0.jinja", true, "<think>\nHm.\n</think>\n\nYes.", Split{"Hm.", "Yes.", false}},
		{"Qwen3-8B-Q8_0.jinja", false, "Yes.", Split{"", "Yes.", false}},
		{"Qwen3.5-35B-A3B-Q8_0.jinja", true, "Hm.\n</think>\n\nYes.", Split{"Hm.", "Yes.", false}},
		{"Qwen3.5-35B-A3B-Q8_0.jinja", false, "Yes.", Split{"", "Yes.", false}},
	} {
		template := fromFile(t, dir, c.file).WithThinking(c.thinking)
		checkSplit(t, template.Splitter(), []string{c.text}, true, c.want)
	}
}
