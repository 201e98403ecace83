package found

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// pace is how quickly Follow goes about.
type pace struct {
	quiet time.Duration // a burst of changes is over once nothing happened for this long
	most  time.Duration // a burst is looked at after this long, over or not
	again time.Duration // how often a window in front has the folders looked at
}

var usual = pace{quiet: 300 * time.Millisecond, most: 2 * time.Second, again: 5 * time.Second}

// watchLimit is how many entries a place may have to be watched: on macOS watching takes an open file
// for each of them.
const watchLimit = 128

// Follow calls tell with the models that are there, at once and whenever the list changes, until ctx
// ends. The system tells of changes directly inside the places; what happens deeper, and on drives
// that tell nothing, is found by looking again every few seconds while the window is in front, which it
// is until Front says otherwise. tell must not keep Follow waiting.
func (f *Finder) Follow(ctx context.Context, tell func([]Model)) {
	w := newWatch()
	defer w.close()
	ticks := time.NewTicker(f.pace.again)
	defer ticks.Stop()
	var last []Model
	for first, front := true, true; ; first = false {
		there := roots(f.places)
		w.keep(there)
		models := f.scan(ctx, there)
		if ctx.Err() != nil {
			return
		}
		if first || !slices.EqualFunc(models, last, same) {
			tell(slices.Clone(models))
			last = models
		}
		for look := false; !look; {
			select {
			case <-ctx.Done():
				return
			case front = <-f.front:
				look = front
			case <-ticks.C:
				look = front
			case <-w.changes:
				w.settle(ctx, f.pace)
				look = true
			}
		}
	}
}

func same(a, b Model) bool {
	return a.Name == b.Name && a.What.Dir == b.What.Dir && a.signature == b.signature
}

// Front says whether the window is in front now. One that comes to the front has the folders looked
// at without delay.
func (f *Finder) Front(yes bool) {
	for {
		select {
		case f.front <- yes:
			return
		default:
		}
		select {
		case <-f.front:
		default:
		}
	}
}

// watch is told by the system of changes in folders. Where the system can't do that, it is told nothing.
type watch struct {
	watcher *fsnotify.Watcher
	watched map[string]os.FileInfo
	changes chan struct{} // holds a word when something has changed
}

func newWatch() *watch {
	w := &watch{watched: map[string]os.FileInfo{}, changes: make(chan struct{}, 1)}
	var err error
	if w.watcher, err = fsnotify.NewWatcher(); err != nil {
		w.watcher = nil
		return w
	}
	go w.listen(w.watcher)
	return w
}

// listen empties the watcher, whose events say no more than that it is time to look; errors too, of
// which the likeliest is that there were too many events.
func (w *watch) listen(watcher *fsnotify.Watcher) {
	for {
		select {
		case _, ok := <-watcher.Events:
			if !ok {
				return
			}
		case _, ok := <-watcher.Errors:
			if !ok {
				return
			}
		}
		select {
		case w.changes <- struct{}{}:
		default:
		}
	}
}

// keep watches these folders and no others. A folder that was replaced by another of its name is watched
// anew.
func (w *watch) keep(there []root) {
	if w.watcher == nil {
		return
	}
	wanted := map[string]os.FileInfo{}
	for _, root := range there {
		if few(root.dir) {
			wanted[root.dir] = root.info
		}
	}
	for dir, info := range w.watched {
		if now, ok := wanted[dir]; !ok || !os.SameFile(now, info) {
			w.watcher.Remove(dir) // fails where the system has forgotten it by itself
			delete(w.watched, dir)
		}
	}
	listed := w.watcher.WatchList()
	for dir, info := range wanted {
		if w.watched[dir] != nil && slices.Contains(listed, dir) {
			continue
		}
		if w.watcher.Add(dir) == nil {
			w.watched[dir] = info
		}
	}
}

// few tells whether a folder is small enough to be watched.
func few(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	names, _ := f.Readdirnames(watchLimit + 1)
	return len(names) <= watchLimit
}

// settle waits until changes have ceased for a moment.
func (w *watch) settle(ctx context.Context, p pace) {
	most := time.NewTimer(p.most)
	defer most.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-most.C:
			return
		case <-time.After(p.quiet):
			return
		case <-w.changes:
		}
	}
}

func (w *watch) close() {
	if w.watcher != nil {
		w.watcher.Close()
	}
}
