// Package found lists the models that a person already has: in the caches of Hugging Face and LM
// Studio, and in the folders that models are usually kept in. It reads configuration and file
// headers, never weights, and writes nothing.
package found

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"firesteel/core/library"
	"firesteel/models/checkpoint"
)

const (
	// entryLimit bounds how many folders are looked into within one.
	entryLimit = 500
	// stalled is how long an unfinished file must have rested to be one that was given up, which
	// says nothing about a model that is whole without it.
	stalled = 10 * time.Minute
)

// Model is a folder that can be loaded.
type Model struct {
	Name string // "org/name", or the folder's own where there is no organisation
	Real string // What.Dir without any link in it, to tell whether two are the same
	What library.Description

	signature string
}

// Finder finds models. Scan and Follow belong to one goroutine; Front may be called from any.
type Finder struct {
	places []place
	known  map[string]look

	front chan bool // holds at most what Front was told last
	pace  pace
}

// look is what a look into a folder gave.
type look struct {
	signature string
	model     *Model // nil when there is nothing to load
}

// New returns a Finder of the models of the person whose home folder is home; getenv reads that
// person's environment, as os.Getenv does.
func New(home string, getenv func(string) string) *Finder {
	return &Finder{places: places(home, getenv), known: map[string]look{}, front: make(chan bool, 1), pace: usual}
}

// Scan returns the models that are there now and whole, by name. What can't be read, is still being
// downloaded or is no model of a known family is passed over. Folders that have not changed since
// the scan before cost a few system calls each. A ctx that ends gives a part of the list.
func (f *Finder) Scan(ctx context.Context) []Model {
	return f.scan(ctx, roots(f.places))
}

func (f *Finder) scan(ctx context.Context, in []root) []Model {
	s := scan{before: f.known, now: map[string]look{}, seen: map[string]bool{}}
	for _, root := range in {
		for _, dir := range folders(root.dir) {
			if ctx.Err() != nil {
				return s.models
			}
			if root.hub {
				if strings.HasPrefix(filepath.Base(dir), library.HubPrefix) {
					s.look(dir, "")
				}
				continue
			}
			s.look(dir, "")
			for _, inner := range folders(dir) {
				s.look(inner, filepath.Base(dir))
			}
		}
	}
	f.known = s.now
	slices.SortFunc(s.models, func(a, b Model) int {
		if c := strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)); c != 0 {
			return c
		}
		return strings.Compare(a.What.Dir, b.What.Dir)
	})
	return s.models
}

// scan is one scan under way.
type scan struct {
	before, now map[string]look
	seen        map[string]bool // real folders
	models      []Model
}

// look looks at one folder, which lies in the folder of an organisation or, with organisation empty,
// in none.
func (s *scan) look(path, organisation string) {
	dir, err := library.Resolve(path)
	if err != nil || !configured(dir) {
		return
	}
	signature := library.Signature(dir)
	l, ok := s.before[dir]
	if !ok || l.signature != signature {
		l = look{signature: signature, model: describe(dir, organisation)}
	}
	s.now[dir] = l
	if l.model == nil || s.seen[l.model.Real] || downloading(dir) {
		return
	}
	l.model.signature = signature
	s.seen[l.model.Real] = true
	s.models = append(s.models, *l.model)
}

// configured spares a closer look at folders that are no models.
func configured(dir string) bool {
	for _, name := range []string{"config.json", "dspark.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

func describe(dir, organisation string) *Model {
	d, err := library.Describe(dir)
	if err != nil || d.Loadable() != nil {
		return nil
	}
	real, err := filepath.EvalSymlinks(d.Dir)
	if err != nil {
		return nil
	}
	m := Model{Name: d.Name, Real: real, What: d}
	if organisation != "" && !strings.Contains(m.Name, "/") {
		m.Name = organisation + "/" + m.Name
	}
	return &m
}

// downloading tells whether files of the folder are being downloaded now.
func downloading(dir string) bool {
	listing, err := checkpoint.List(dir)
	if err != nil {
		return true
	}
	for _, partial := range listing.Partials() {
		info, err := os.Stat(filepath.Join(dir, partial))
		if err == nil && time.Since(info.ModTime()) < stalled {
			return true
		}
	}
	return false
}

// folders lists the folders directly inside dir, links to folders included and hidden ones left out.
func folders(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var list []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || len(list) == entryLimit {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if e.Type()&os.ModeSymlink != 0 {
			if info, err := os.Stat(path); err != nil || !info.IsDir() {
				continue
			}
		} else if !e.IsDir() {
			continue
		}
		list = append(list, path)
	}
	return list
}
