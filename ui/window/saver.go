package window

import (
	"log/slog"
	"sync"
	"time"

	"firesteel/ui/window/settings"
)

// saver writes settings in the background, at most twice a second, the newest last.
type saver struct {
	path    string
	mutex   sync.Mutex
	newest  *settings.Settings // not written yet
	writing sync.Mutex
	timer   *time.Timer
}

func newSaver(path string) *saver { return &saver{path: path} }

// save remembers to write s.
func (s *saver) save(what settings.Settings) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.newest = &what
	if s.timer == nil {
		s.timer = time.AfterFunc(500*time.Millisecond, s.finish)
	}
}

// finish writes what has not been written yet.
func (s *saver) finish() {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mutex.Lock()
	what := s.newest
	s.newest, s.timer = nil, nil
	s.mutex.Unlock()
	if what == nil || s.path == "" {
		return
	}
	if err := what.Save(s.path); err != nil {
		slog.Warn("settings were not kept", "error", err)
	}
}
