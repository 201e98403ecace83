package window

import (
	"os"
	"path/filepath"
	"testing"

	"firesteel/core/library"
	"firesteel/models/nobody"
)

// Beside a model in a folder that may only be read nothing is proposed.
func TestAFolderThatMayOnlyBeReadIsNotProposed(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	base := t.TempDir()
	open, shared := filepath.Join(base, "open"), filepath.Join(base, "shared")
	for dir, mode := range map[string]os.FileMode{open: 0o777, shared: 0o555} {
		if err := os.MkdirAll(filepath.Join(dir, "m"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	defer os.Chmod(shared, 0o755)
	nobody.Run(t, base, func() {
		for dir, want := range map[string]string{open: open, shared: filepath.Join(home, ownFolder)} {
			from := library.Description{Dir: filepath.Join(dir, "m"), Name: "m"}
			if got := proposed(from, false, "4-bit"); got != filepath.Join(want, "m 4-bit") {
				t.Errorf("in %s: %q", dir, got)
			}
		}
	})
}

// Folders that may not be looked into keep neither the panel from opening nor a path from being typed.
func TestPanelOpensWhereFoldersAreClosed(t *testing.T) {
	base := t.TempDir()
	home := filepath.Join(base, "home")
	t.Setenv("HOME", home)
	closed := filepath.Join(home, "Documents")
	for _, dir := range []string{filepath.Join(home, "Desktop"), filepath.Join(closed, "m")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	copyFolder(t, filepath.Join(fixtures, "gemma4-12b-like"), filepath.Join(home, "m"))
	s := openWith(t, &scripted{}, filepath.Join(t.TempDir(), "settings.json"))
	s.until("the pair is loaded", func() bool { return s.models.loaded.Target != nil })
	s.choose(target, filepath.Join(closed, "m"))
	s.until("looked at", func() bool { return !s.choosing() })
	for _, dir := range []string{filepath.Join(home, "Desktop"), closed} {
		if err := os.Chmod(dir, 0); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(dir, 0o755)
	}
	nobody.Run(t, base, func() {
		if got := s.startFolder(target); got != home {
			t.Errorf("it begins in %q", got)
		}
		for _, start := range []string{home, closed} {
			if got := s.browsed(start); got != home {
				t.Errorf("asked to begin in %q it begins in %q", start, got)
			}
		}
	})
	s.typed(target, "~/m", true)
	if c := s.models.choices[target]; c.err != nil {
		t.Error(c.err)
	}
}
