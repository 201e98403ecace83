package engine

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A text ends at every id that is declared for it: in config.json, in generation_config.json, one or
// a list, and by the tokenizer's own name for it. No place hides another.
func TestTextsEndAtEveryDeclaredToken(t *testing.T) {
	type object = map[string]any
	for name, c := range map[string]struct {
		config, generation, tokenizer any
		want                          []int
	}{
		"one each":           {7, 8, "<pad>", []int{0, 7, 8}},
		"lists":              {[]int{7, 1}, []int{8, 9}, object{"content": "<eos>"}, []int{1, 7, 8, 9}},
		"only the tokenizer": {nil, nil, "<eos>", []int{1}},
		"only generation":    {nil, []int{6}, nil, []int{6}},
		"only the model":     {[]int{1, 6}, nil, nil, []int{1, 6}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			entries, err := os.ReadDir(demoTarget)
			if err != nil {
				t.Fatal(err)
			}
			from, err := filepath.Abs(demoTarget)
			if err != nil {
				t.Fatal(err)
			}
			changes := map[string]struct {
				key   string
				value any
			}{"config.json": {"eos_token_id", c.config}, "generation_config.json": {"eos_token_id", c.generation}, "tokenizer_config.json": {"eos_token", c.tokenizer}}
			for _, entry := range entries {
				file := entry.Name()
				change, ok := changes[file]
				if !ok {
					if err := os.Symlink(filepath.Join(from, file), filepath.Join(dir, file)); err != nil {
						t.Fatal(err)
					}
					continue
				}
				raw, err := os.ReadFile(filepath.Join(from, file))
				if err != nil {
					t.Fatal(err)
				}
				values := object{}
				if err := json.Unmarshal(raw, &values); err != nil {
					t.Fatal(err)
				}
				values[change.key] = change.value
				if raw, err = json.Marshal(values); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, file), raw, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			e := started(t)
			if _, err := e.Load(context.Background(), LoadRequest{TargetDir: dir}); err != nil {
				t.Fatal(err)
			}
			var got []int
			err = e.thread.Do(context.Background(), func() error {
				got = slices.Sorted(maps.Keys(e.held.target.stop))
				return nil
			})
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("a text ends at %v, want %v (%v)", got, c.want, err)
			}
		})
	}
}
