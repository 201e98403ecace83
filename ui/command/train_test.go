package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTrainingsThatCantBeAreRefusedInWords(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "prompts.jsonl")
	if err := os.WriteFile(file, []byte("Why?\n{\"p\": 3}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := []string{"train", "--prompts", file, "--out", filepath.Join(dir, "out")}
	for want, args := range map[string][]string{
		"--out is missing":                      {"train", "--prompts", file},
		"--prompts is missing":                  {"train", "--out", dir},
		"--head must be markov or rnn, not gru": append(asked, "--head", "gru"),
		"--taps must be whole numbers":          append(asked, "--taps", "1,x"),
		"--steps must be above 0, not -3":       append(asked, "--steps", "-3"),
		"--resume and --force contradict":       append(asked, "--resume", "--force"),
		"--prompts and --chats exclude":         append(asked, "--chats"),
		"--out is missing.":                     {"train", "--chats"},
		"There is no stopped training":          {"train", "--resume", "--out", dir},
		`"rest" is not a flag`:                  append(asked, "rest"),
		"Line 2 of":                             asked,
		"There is nothing at " + file + "2":     {"train", "--prompts", file + "2", "--out", dir},
	} {
		c := newScripted()
		status, _, errs := follow(c, "", args...)
		if status == 0 || !strings.Contains(errs, strings.TrimSuffix(want, ".")) {
			t.Errorf("%v: %d, %q", args, status, errs)
		}
	}
}
