package window

import (
	"os"
	"path/filepath"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"
	"fyne.io/fyne/v2/widget"
)

// typed gives the picker a path the way a person does, by keys or pasted.
func (s *stage) typed(r role, text string, pasted bool) {
	s.t.Helper()
	s.typePath(r)
	path, ok := s.win.Canvas().Focused().(*widget.Entry)
	if !ok {
		s.t.Fatalf("the keyboard is in %T", s.win.Canvas().Focused())
	}
	if pasted {
		s.app.Clipboard().SetContent(text)
		path.TypedShortcut(&fyne.ShortcutPaste{Clipboard: s.app.Clipboard()})
	} else {
		path.SetText(text)
	}
	path.TypedKey(&fyne.KeyEvent{Name: fyne.KeyReturn})
	s.until("the folder was looked at", func() bool { return !s.choosing() })
}

// What is typed or pasted is taken as it stands where there is such a folder, else without what
// pasting brings along.
func TestPathsAreTyped(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	s := open(t, &scripted{})
	place := t.TempDir()
	model := func(dir string) string {
		copyFolder(t, filepath.Join(fixtures, "gemma4-12b-like"), dir)
		return dir
	}
	plain, blank, twin, inHome := model(filepath.Join(place, "plain")), model(filepath.Join(place, "blank ")), model(filepath.Join(place, "plain  ")), model(filepath.Join(home, "m"))
	for text, want := range map[string]string{
		plain:                                    plain,
		plain + "\n":                             plain,
		plain + "\r\n":                           plain,
		"\n " + plain + " \n":                    plain,
		"'" + plain + "'":                        plain,
		plain + "/model.safetensors":             plain,
		blank:                                    blank,
		twin:                                     twin,
		"~/m":                                    inHome,
		" ~/m \n":                                inHome,
		filepath.Join(place, "a", "..", "plain"): plain,
	} {
		for _, pasted := range []bool{false, true} {
			s.typed(target, text, pasted)
			if c := s.models.choices[target]; c.err != nil || c.what.Dir != want {
				t.Errorf("%q, pasted %v: %+v", text, pasted, c)
			}
		}
	}
	before := s.models.choices[target].dir
	s.typed(target, " \n", false)
	if s.models.choices[target].dir != before {
		t.Error("nothing was typed, and something chosen")
	}
	s.typed(target, "~/none\n", true)
	if card := s.models.cards[target].Shown(); !card.Bad || card.Name != "none" {
		t.Errorf("what is not there is shown as %+v", card)
	}
}

func TestBrowsingBeginsWhereThePersonWas(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	s := open(t, &scripted{})
	if got := s.startFolder(target); got != home {
		t.Errorf("at first it begins in %s", got)
	}
	place := filepath.Join(t.TempDir(), "Modèle  1")
	if err := os.MkdirAll(filepath.Join(place, "m"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.choose(target, filepath.Join(place, "m"))
	if got := s.startFolder(drafter); got != place {
		t.Errorf("beside the last it begins in %s", got)
	}
	s.choose(target, "~/models/m")
	if got := s.startFolder(target); got != home {
		t.Errorf("where that folder is not there, in %s", got)
	}
	s.choose(target, filepath.Join(place, "m"))
	if err := os.RemoveAll(place); err != nil {
		t.Fatal(err)
	}
	if got := s.startFolder(target); got != home {
		t.Errorf("where that folder is gone, in %s", got)
	}
	if err := os.WriteFile(place, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.startFolder(target); got != home {
		t.Errorf("where that folder is a file now, in %s", got)
	}
}

// browsed opens the panel for folders and gives what it chooses at once: the folder that it begins in.
func (s *stage) browsed(start string) (chosen string) {
	s.t.Helper()
	s.browseHere(start, func(dir string) { chosen = dir })
	test.Tap(findButton(s.t, s.win.Canvas().Overlays().Top(), "Open"))
	return chosen
}

func TestPanelOpensWhateverHasBecomeOfTheFolders(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	s := open(t, &scripted{})
	// Of the folders that it offers, one is a link to nowhere, one a file and the others are not there.
	if err := os.Symlink("nowhere", filepath.Join(home, "Desktop")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "Documents"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	used := filepath.Join(t.TempDir(), "used before")
	if err := os.Mkdir(used, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := s.browsed(used); got != used {
		t.Errorf("it begins in %q", got)
	}
	if err := os.Remove(used); err != nil {
		t.Fatal(err)
	}
	if got := s.browsed(used); got != home {
		t.Errorf("where that folder is gone it begins in %q", got)
	}
}
