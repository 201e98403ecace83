package window

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"firesteel/core/library"
)

func TestProposedPlaces(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	place := t.TempDir()
	own := filepath.Join(home, ownFolder)
	in := func(name string) library.Description {
		dir := filepath.Join(place, name)
		return library.Description{Dir: dir, Name: library.Name(dir)}
	}
	for _, c := range []struct {
		name    string
		from    library.Description
		builtin bool
		want    string
	}{
		{"beside the model", in("Modèle 1.5"), false, filepath.Join(place, "Modèle 1.5 4-bit")},
		{"of the pair that comes with the app", in("drafter"), true, filepath.Join(own, "drafter 4-bit")},
		{"in a hub's cache", in("models--org--spec/snapshots/0a1b"), false, filepath.Join(own, "spec 4-bit")},
		{"in a folder that is gone", in("gone/drafter"), false, filepath.Join(own, "drafter 4-bit")},
	} {
		if got := proposed(c.from, c.builtin, "4-bit"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}

	// What is there already keeps its name, be it no more than a link to nowhere.
	if err := os.Mkdir(filepath.Join(place, "m 4-bit"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(place, "m 4-bit (2)")); err != nil {
		t.Fatal(err)
	}
	if got := proposed(in("m"), false, "4-bit"); got != filepath.Join(place, "m 4-bit (3)") {
		t.Errorf("where names are taken: %q", got)
	}

	// However long the model's name is, the proposed one can be made, and so can a hidden one beside it.
	for _, letter := range []string{"n", "ü", "模", "🦊"} {
		got := proposed(in(strings.Repeat(letter, 250/len(letter))), false, "mixed")
		if err := os.Mkdir(got, 0o700); err != nil || !utf8.ValidString(got) || len(filepath.Base(got)) < 190 {
			t.Errorf("%q: %v", got, err)
		}
	}
}
