package window

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fyne.io/fyne/v2"

	"firesteel/core/library"
	"firesteel/core/library/found"
	"firesteel/ui/window/look"
	"firesteel/ui/window/settings"
)

const fixtures = "../../models/testdata/goldens"

func labels(items []*fyne.MenuItem) []string {
	var list []string
	for _, i := range items {
		list = append(list, i.Label)
	}
	return list
}

// after returns the entries that follow the heading of found models, up to the next group.
func after(items []*fyne.MenuItem) []string {
	list := labels(items)
	at := slices.Index(list, "Found on "+look.Machine())
	if at < 0 {
		return nil
	}
	list = list[at+1:]
	return list[:slices.Index(list, "")]
}

func TestFoundModels(t *testing.T) {
	home := t.TempDir()
	hub := filepath.Join(home, ".cache/huggingface/hub")
	repo := filepath.Join(hub, "models--google--gemma-4-12b-it")
	snapshot := filepath.Join(repo, "snapshots/0a1b2c3d")
	copyFolder(t, filepath.Join(fixtures, "gemma4-12b-like"), snapshot)
	copyFolder(t, filepath.Join(fixtures, "deepspec-gemma4"), filepath.Join(hub, "models--deepseek--spec-gemma/snapshots/0a1b2c3d"))
	// Recent through a link, found without it.
	copyFolder(t, filepath.Join(fixtures, "qwen3-tied-like"), filepath.Join(home, "models/recent"))
	linked := filepath.Join(t.TempDir(), "linked")
	if err := os.Symlink(filepath.Join(home, "models/recent"), linked); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "settings.json")
	if err := (settings.Settings{RecentTargets: []string{linked}}).Save(path); err != nil {
		t.Fatal(err)
	}
	s := openWith(t, &scripted{}, path, func(o *Options) {
		o.Found = found.New(home, func(string) string { return "" })
	})
	s.until("the pair is loaded", func() bool { return s.models.loaded.Target != nil })
	s.until("models are found", func() bool { return s.models.found[target] != nil && s.models.real[linked] != "" })
	const gemma, spec = "google/gemma-4-12b-it · bf16 · 520 kB", "deepseek/spec-gemma · bf16 · 304 kB"
	if got := after(s.pickerItems(target)); !slices.Equal(got, []string{gemma}) {
		t.Errorf("targets: %q", got)
	}
	if got := after(s.pickerItems(drafter)); !slices.Equal(got, []string{spec}) {
		t.Errorf("drafters: %q", got)
	}
	// A model that comes while the list is open shows in it.
	s.openPicker(target)
	copyFolder(t, filepath.Join(fixtures, "qwen3-like"), filepath.Join(home, "models/Qwen3"))
	s.until("the new one is found", func() bool {
		s.inFront(true)
		return len(s.models.found[target]) == 3
	})
	if !s.models.list.menu.Visible() || len(s.models.list.menu.Items) != len(s.pickerItems(target)) {
		t.Error("the open list does not show what has come")
	}
	s.models.list.menu.Hide()
	// Choosing one takes the drafter beside it along; once it has been loaded it is among the recent
	// ones, under its name, and not said twice.
	items := s.pickerItems(target)
	items[slices.Index(labels(items), gemma)].Action()
	s.until("looked at", func() bool { return !s.choosing() && s.usable() })
	if s.models.cards[target].Shown().Name != "google/gemma-4-12b-it" || s.models.cards[drafter].Shown().Name != "deepseek/spec-gemma" {
		t.Errorf("the cards say %+v and %+v", s.models.cards[target].Shown(), s.models.cards[drafter].Shown())
	}
	s.askLoad()
	s.until("loaded", s.asLoaded)
	items = s.pickerItems(target)
	if got := labels(items); !slices.Contains(got, "google/gemma-4-12b-it") || strings.Contains(strings.Join(got, " "), "0a1b2c3d") {
		t.Errorf("the list is %q", got)
	}
	if got := after(items); len(got) != 1 || !strings.HasPrefix(got[0], "Qwen3 · ") {
		t.Errorf("found are %q", got)
	}
	// The folder of a repository can be typed.
	s.choose(target, repo)
	s.until("looked at", func() bool { return !s.choosing() })
	if s.models.choices[target].what == nil || s.models.choices[target].what.Dir != snapshot {
		t.Errorf("%+v", s.models.choices[target])
	}
}

func TestNothingFound(t *testing.T) {
	s := open(t, &scripted{})
	if got := after(s.pickerItems(target)); got != nil {
		t.Errorf("%q", got)
	}
	s.openPicker(target)
	s.showFound(nil)
}

// Many found models leave room for the ways to choose another folder.
func TestManyFound(t *testing.T) {
	s := open(t, &scripted{})
	var all []found.Model
	for i := range 30 {
		what := library.Description{Kind: library.Target, Dir: fmt.Sprintf("/models/%d", i), Precision: "bf16", FileBytes: 12e9}
		all = append(all, found.Model{Name: fmt.Sprintf("org/model %02d", i), Real: what.Dir, What: what})
		if i == 4 { // one name in two places
			what.Dir = "/elsewhere/4"
			all = append(all, found.Model{Name: "org/model 04", Real: what.Dir, What: what})
		}
	}
	s.showFound(all)
	items := s.pickerItems(target)
	listed := after(items)
	if len(listed) != foundLimit+1 || listed[4] != "org/model 04 · bf16 · 12.0 GB" || listed[5] != "org/model 04 · bf16 · 12.0 GB · /elsewhere/4" || listed[foundLimit] != "23 more" {
		t.Fatalf("%q", listed)
	}
	more := items[slices.Index(labels(items), "23 more")].ChildMenu.Items
	more[len(more)-1].Action()
	if dir := s.models.choices[target].dir; dir != "/models/29" {
		t.Errorf("the last one chose %s", dir)
	}
}
