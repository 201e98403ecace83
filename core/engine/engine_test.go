package engine

import (
	"context"
	"path/filepath"
	"testing"
)

const pairDir = "../../models/demo/pair"

// loaded is an engine with the demo pair.
func loaded(t testing.TB) *Engine {
	t.Helper()
	e, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	_, err = e.Load(context.Background(), LoadRequest{TargetDir: filepath.Join(pairDir, "target"), DrafterDir: filepath.Join(pairDir, "drafter")})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestWrites(t *testing.T) {
	e := loaded(t)
	for _, gamma := range []int{0, 3, 7} {
		r, err := e.Generate(context.Background(), Request{
			Raw: "Tell me a story", MaxTokens: 100, Controls: NewControls(Knobs{Gamma: gamma}), Seed: new(uint64),
		}, nil)
		t.Logf("%+v %v", r, err)
	}
}
