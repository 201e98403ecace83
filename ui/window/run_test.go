package window

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDropCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "preferences.json")
	dropCutOff(path) // not there yet
	for content, stays := range map[string]bool{"": false, `{"fyne:`: false, "{}\n": true} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		dropCutOff(path)
		if _, err := os.Stat(path); (err == nil) != stays {
			t.Errorf("%q: stays %v", content, err == nil)
		}
	}
}
