package tokenizer

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// demoDir is the target of the embedded demo pair.
const demoDir = "../demo/pair/target"

func loadDemo(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := Load(demoDir)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// The prompts and answers of the reference runs that come with the demo pair.
func TestDemoPair(t *testing.T) {
	tok := loadDemo(t)
	var runs []struct {
		Prompt     string `json:"prompt"`
		PromptIDs  []int  `json:"prompt_ids"`
		GreedyIDs  []int  `json:"greedy_ids"`
		GreedyText string `json:"greedy_text"`
	}
	readJSON(t, "testdata/demo.json", &runs)
	if len(runs) < 12 {
		t.Fatalf("%d runs, want 12", len(runs))
	}
	for _, run := range runs {
		text := "<bos><|turn>user\n" + run.Prompt + "<turn|>\n<|turn>model\n"
		ids, err := tok.Encode(text, false)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(run.PromptIDs, ids); diff != "" {
			t.Errorf("%q: ids (-want +got):\n%s", run.Prompt, diff)
		}
		if got := tok.Decode(run.GreedyIDs, true); got != run.GreedyText {
			t.Errorf("%q: text\n%q, want\n%q", run.Prompt, got, run.GreedyText)
		}
		stream, streamed := tok.NewStream(), strings.Builder{}
		for _, id := range run.GreedyIDs {
			streamed.WriteString(stream.Push(id))
		}
		streamed.WriteString(stream.Flush())
		if streamed.String() != run.GreedyText {
			t.Errorf("%q: streamed\n%q, want\n%q", run.Prompt, streamed.String(), run.GreedyText)
		}
	}
}
