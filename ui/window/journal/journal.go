// Package journal keeps the answer being written on disk, so that a program that is ended by
// force loses at most a second of it.
package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Page is an exchange that has not ended.
type Page struct {
	Prompt string    `json:"prompt"`
	Answer string    `json:"answer"`
	Model  string    `json:"model"` // who writes
	When   time.Time `json:"when"`
}

// Journal holds this process's page. Its methods may be called from any goroutine.
type Journal struct {
	path  string
	mutex sync.Mutex
	last  int // order of the newest change
}

// In returns the journal of this process in folder dir; "" keeps nothing.
func In(dir string) *Journal {
	if dir == "" {
		return &Journal{}
	}
	return &Journal{path: name(dir, os.Getpid())}
}

func name(dir string, process int) string {
	return filepath.Join(dir, fmt.Sprintf("unfinished-%d.json", process))
}

// Keep writes the page in place of the one before. order tells changes apart that are made
// from several goroutines: one that is older than the newest is left out.
func (j *Journal) Keep(order int, p Page) error {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.path == "" || order <= j.last {
		return nil
	}
	j.last = order
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(j.path), 0o700); err != nil {
		return err
	}
	aside := j.path + ".new"
	if err := os.WriteFile(aside, data, 0o600); err != nil {
		os.Remove(aside)
		return err
	}
	return os.Rename(aside, j.path)
}

// Clear takes the page away: the answer has ended and is on the screen.
func (j *Journal) Clear(order int) error {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.path == "" || order <= j.last {
		return nil
	}
	j.last = order
	if err := os.Remove(j.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Left returns the newest page in dir that a process left behind which is no longer there,
// and forget, which removes every such page. forget is nil when there is none.
func Left(dir string) (p Page, forget func()) {
	if dir == "" {
		return p, nil
	}
	files, _ := filepath.Glob(filepath.Join(dir, "unfinished-*.json*"))
	var old []string
	found := false
	for _, f := range files {
		var process int
		if n, _ := fmt.Sscanf(filepath.Base(f), "unfinished-%d.json", &process); n != 1 || alive(process) {
			continue
		}
		old = append(old, f)
		if filepath.Ext(f) != ".json" {
			continue
		}
		var page Page
		data, err := os.ReadFile(f)
		if err != nil || json.Unmarshal(data, &page) != nil {
			continue
		}
		if !found || page.When.After(p.When) {
			p, found = page, true
		}
	}
	if !found {
		return Page{}, nil
	}
	return p, func() {
		for _, f := range old {
			os.Remove(f)
		}
	}
}

// alive says whether another process has that number.
func alive(process int) bool {
	if process == os.Getpid() {
		return false // a number used again: this process has left nothing yet
	}
	err := syscall.Kill(process, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
