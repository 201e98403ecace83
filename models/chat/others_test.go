package chat

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// engineTemplates is the folder of real models' templates that come with the template engine.
func engineTemplates(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ardanlabs/jinja").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "testdata", "templates")
}

func fromFile(t testing.TB, dir, name string) *Template {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	template, err := New(name, string(source), map[string]string{"bos_token": "<bos>", "eos_token": "<eos>"})
	if err != nil {
		t.Fatal(err)
	}
	return template
}

// The templates of further real models, Gemma 4 among them, render every conversation as the
// reference does.
func TestOtherTemplates(t *testing.T) {
	path := "testdata/others.json"
	if full := os.Getenv("FIRESTEEL_OTHERS"); full != "" {
		path = full // made with the texts, to see what differs
	}
	var golden struct {
		Conversations [][]Message `json:"conversations"`
		Templates     map[string][]struct {
			SHA   string `json:"sha"`
			Error string `json:"error"`
			Text  string `json:"text"`
		} `json:"templates"`
	}
	readGolden(t, path, &golden)
	if len(golden.Templates) < 17 || len(golden.Conversations) < 30 {
		t.Fatalf("%d templates, %d conversations", len(golden.Templates), len(golden.Conversations))
	}
	dir := engineTemplates(t)
	agree, total := 0, 0
	for name, cases := range golden.Templates {
		template := fromFile(t, dir, name)
		template.now = func() time.Time { return time.Date(2026, 3, 5, 7, 8, 9, 0, time.UTC) }
		for i, want := range cases {
			messages := golden.Conversations[i/2]
			got, err := template.WithThinking(i%2 == 1).renderOnce(messages, true)
			total++
			if want.Error != "" {
				var refused *TemplateError
				if !errors.As(err, &refused) || !refused.Refused || "TemplateError: "+refused.Message != want.Error {
					t.Errorf("%s: %v: error %v, want %q", name, messages, err, want.Error)
					continue
				}
			} else if sum := sha256.Sum256([]byte(got)); err != nil || hex.EncodeToString(sum[:8]) != want.SHA {
				t.Errorf("%s: %v: %v\n got %q\nwant %q", name, messages, err, got, want.Text)
				continue
			}
			agree++
		}
	}
	t.Logf("%d of %d renderings of %d templates agree", agree, total, len(golden.Templates))
}
