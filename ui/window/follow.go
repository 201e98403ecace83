package window

import (
	"path/filepath"
	"time"

	"firesteel/core/library"
)

// lookAgain is how often the folders are looked at, unless a test says otherwise. Looking costs a few system calls; being
// told by the system would cost an open file for each file there on macOS, and network drives
// tell nothing.
const lookAgain = 2 * time.Second

// follow keeps the cards and the lists of recent folders true to what is on the disk: folders
// come and go with their drives, and files are still being copied. It runs until the window
// closes, on a goroutine of its own, where a drive that hangs harms nobody.
func (w *Window) follow() {
	ticks := time.NewTicker(w.lookAgain)
	defer ticks.Stop()
	for {
		type folders struct {
			chosen [2]choice
			recent []string
		}
		asked := make(chan folders, 1)
		w.later(func() {
			f := folders{recent: append(append([]string{}, w.settings.RecentTargets...), w.settings.RecentDrafters...)}
			f.chosen = w.models.choices
			asked <- f
		})
		var f folders
		select {
		case <-w.life.Done():
			return
		case f = <-asked:
		}
		changed := false
		for _, c := range f.chosen {
			changed = changed || c.dir != "" && !c.looking && library.Signature(c.dir) != c.sign
		}
		real := map[string]string{}
		for _, dir := range f.recent {
			if path, err := library.Resolve(dir); err == nil {
				real[dir], _ = filepath.EvalSymlinks(path)
			} else {
				real[dir] = ""
			}
		}
		w.later(func() {
			w.models.real = real
			now := w.models.choices
			same := now[target].turn == f.chosen[target].turn && now[drafter].turn == f.chosen[drafter].turn
			if changed && same && w.load.cancel == nil {
				w.look([2]string{now[target].dir, now[drafter].dir}, "", false)
			}
		})
		select {
		case <-w.life.Done():
			return
		case <-ticks.C:
		}
	}
}
