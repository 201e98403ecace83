package window

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"firesteel/core/engine"
	"firesteel/ui/window/settings"
)

// openReal shows a window whose models are real; change, which may be nil, is put between the two.
func openReal(t *testing.T, path string, change func(Core) Core) *stage {
	t.Helper()
	return openWith(t, nil, path, func(o *Options) {
		o.Open = func() (Core, error) {
			e, err := engine.Start()
			if err != nil || change == nil {
				return e, err
			}
			return change(e), nil
		}
	})
}

// writes has the models that are loaded write a few words.
func (s *stage) writes() {
	s.t.Helper()
	s.typeAndSend("Tell me a story.")
	s.until("words arrive", func() bool { return s.lastAnswer() != "" })
	s.stop()
	s.until("stopped", s.idle)
}

// sealed closes a folder to writing until the test ends and returns what lists all that is in it, with
// sizes and times.
func sealed(t *testing.T, dir string) (list func() string) {
	t.Helper()
	each := func(do func(path string, info fs.FileInfo)) {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err == nil {
				do(path, info)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	mode := func(folder, file os.FileMode) {
		each(func(path string, info fs.FileInfo) {
			to := file
			if info.IsDir() {
				to = folder
			}
			if err := os.Chmod(path, to); err != nil {
				t.Error(err)
			}
		})
	}
	mode(0o555, 0o444)
	t.Cleanup(func() { mode(0o755, 0o644) })
	return func() string {
		var all strings.Builder
		each(func(path string, info fs.FileInfo) {
			fmt.Fprintln(&all, path, info.Mode(), info.Size(), info.ModTime())
		})
		return all.String()
	}
}

// The settings name models under the home folder, whose folders have the names that people give, and
// which may only be read. They load and write all the same, and nothing is written beside them.
func TestModelsWithDifficultNamesInAFolderThatMayOnlyBeRead(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	inHome := filepath.Join("Modèle", "Mode\u0300le", "two  spaces", "100% #1", "dot.", "blank ", "🦊 модель 模型", "a", "~b", `it's "so"\`, strings.Repeat("n", 250))
	dirs := [2]string{filepath.Join(home, inHome, "~"), filepath.Join(home, inHome, strings.Repeat("ü", 125))}
	copyFolder(t, filepath.Join(pairFolder, "target"), dirs[target])
	copyFolder(t, filepath.Join(pairFolder, "drafter"), dirs[drafter])
	list := sealed(t, filepath.Join(home, inHome))
	before := list()

	path := filepath.Join(t.TempDir(), "settings.json")
	tilde := [2]string{"~/" + inHome + "/~", "~/" + inHome + "/" + strings.Repeat("ü", 125)}
	if err := (settings.Settings{Target: tilde[target], Drafter: tilde[drafter], RecentTargets: []string{tilde[target], "~/none"}}).Save(path); err != nil {
		t.Fatal(err)
	}
	s := openReal(t, path, nil)
	s.until("recent folders are looked for", func() bool { return len(s.models.real) > 0 })
	if a, b := s.recentItem(target, tilde[target]), s.recentItem(target, "~/none"); a.Disabled || !b.Disabled {
		t.Errorf("%q, %q", a.Label, b.Label)
	}
	s.until("the pair is loaded", s.asLoaded)
	for r, dir := range dirs {
		if s.models.loadedWhat[r].Dir != dir || s.models.cards[r].Shown().Name != filepath.Base(dir) {
			t.Errorf("loaded is %s, shown as %q", s.models.loadedWhat[r].Dir, s.models.cards[r].Shown().Name)
		}
	}
	s.writes()
	s.shutDown()
	if after := list(); after != before {
		t.Errorf("before\n%safter\n%s", before, after)
	}
	if kept, err := settings.Load(path); err != nil || kept.Target != dirs[target] || kept.Drafter != dirs[drafter] {
		t.Errorf("kept is %q, %q, %v", kept.Target, kept.Drafter, err)
	}
}

// cutting is a core whose next load finds a file cut short when it has begun to read.
type cutting struct {
	Core
	cut func()
}

func (c *cutting) Load(ctx context.Context, r engine.LoadRequest) (engine.Loaded, error) {
	told := r.Progress
	var once sync.Once
	r.Progress = func(done, total int64) {
		if c.cut != nil {
			once.Do(c.cut)
		}
		told(done, total)
	}
	return c.Core.Load(ctx, r)
}

func TestAFileThatIsCutShortWhileItIsLoaded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "on a drive")
	copyFolder(t, filepath.Join(pairFolder, "target"), dir)
	var core *cutting
	s := openReal(t, filepath.Join(t.TempDir(), "settings.json"), func(c Core) Core {
		core = &cutting{Core: c}
		return core
	})
	s.until("the pair is loaded", s.asLoaded)
	s.choose(target, dir)
	s.until("looked at", func() bool { return !s.choosing() && s.usable() })
	core.cut = func() {
		if err := os.Truncate(filepath.Join(dir, "model-00002-of-00002.safetensors"), 1000); err != nil {
			t.Error(err)
		}
	}
	s.askLoad()
	s.until("it has failed", func() bool { return s.load.cancel == nil })
	if said := s.status.Text(); !strings.Contains(said, "is incomplete") || !strings.Contains(said, "model-00002-of-00002.safetensors") || !strings.Contains(said, "Firesteel Demo stays loaded") {
		t.Errorf("it says %q", said)
	}
	if card := s.models.cards[target].Shown(); !card.Bad {
		t.Errorf("the card says %+v", card)
	}
	s.writes()
}

// A model that was on a drive that is gone is marked and remembered, and the others are as usable as ever.
func TestALostModelLeavesTheOthersUsable(t *testing.T) {
	place, drive := t.TempDir(), filepath.Join(t.TempDir(), "drive")
	lost, good := filepath.Join(place, "lost"), filepath.Join(place, "good")
	if err := os.Symlink(drive, lost); err != nil {
		t.Fatal(err)
	}
	copyFolder(t, filepath.Join(pairFolder, "target"), good)
	path := filepath.Join(t.TempDir(), "settings.json")
	if err := (settings.Settings{Target: lost, NoDrafter: true, RecentTargets: []string{lost, good}}).Save(path); err != nil {
		t.Fatal(err)
	}
	s := openWith(t, &scripted{}, path)
	s.until("it is marked", func() bool { return s.models.cards[target].Shown().Bad && len(s.models.real) > 0 })
	if card := s.models.cards[target].Shown(); card.Name != "lost" || !strings.Contains(card.Note, "is a link") || !strings.Contains(card.Note, "connect that drive") {
		t.Errorf("the card says %+v", card)
	}
	for dir, disabled := range map[string]bool{lost: true, good: false} {
		if item := s.recentItem(target, dir); item.Disabled != disabled || strings.HasSuffix(item.Label, "(not there now)") != disabled {
			t.Errorf("%+v", item)
		}
	}
	s.save()
	s.saver.finish()
	if kept, err := settings.Load(path); err != nil || kept.Target != lost {
		t.Errorf("kept is %q, %v", kept.Target, err)
	}

	s.choose(target, good)
	s.until("looked at", func() bool { return !s.choosing() && s.usable() })
	s.askLoad()
	s.until("the good one is loaded", s.asLoaded)
	s.writes()
	// The drive comes back.
	copyFolder(t, filepath.Join(fixtures, "gemma4-12b-like"), drive)
	s.until("the lost one is there again", func() bool { return s.models.real[lost] != "" })
	s.choose(target, lost)
	s.until("looked at", func() bool { return !s.choosing() && s.usable() })
	s.shutDown()
	if kept, err := settings.Load(path); err != nil || kept.Target != good || !slices.Contains(kept.RecentTargets, lost) {
		t.Errorf("kept is %+v, %v", kept, err)
	}
}
