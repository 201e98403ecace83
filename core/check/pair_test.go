package check

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// recorded is the file of reference runs: three prompts of it, or all in the long run.
func recorded(t *testing.T, root string) (file string, prompts int) {
	file = filepath.Join(root, "models", "testdata", "demo", "demo-pair.json")
	if os.Getenv("FIRESTEEL_LONG") != "" {
		return file, 12
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	part, err := json.Marshal(all[:3])
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "part.json")
	if err := os.WriteFile(file, part, 0o600); err != nil {
		t.Fatal(err)
	}
	return file, 3
}

func TestDemoPairReplaysTheReference(t *testing.T) {
	root := filepath.Join("..", "..")
	file, prompts := recorded(t, root)
	pair := filepath.Join(root, "models", "demo", "pair")
	v, err := Pair(context.Background(), filepath.Join(pair, "target"), filepath.Join(pair, "drafter"),
		file, func(d Disagreement) {
			t.Logf("%s, round %d: %s (tie: %v)", d.Prompt, d.Round, d.What, d.Tie)
		})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", v)
	if !v.Agrees() || v.Prompts != prompts || v.Rounds < 60*prompts {
		t.Errorf("%+v", v)
	}
}
