//go:build !headless

// Package demo holds the pair that opens by itself: a small Gemma 4 and its drafter.
package demo

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// Names of the two models, for people.
const (
	TargetName  = "Firesteel Demo"
	DrafterName = "Demo drafter"
)

//go:embed pair
var pair embed.FS

// version names the content, so that another version unpacks beside this one.
var version = sync.OnceValue(func() string {
	h := sha256.New()
	fs.WalkDir(pair, "pair", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		// Sizes and small files tell versions apart; hashing the weights would delay every start.
		info, err := entry.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(h, path, info.Size())
		if info.Size() < 1<<20 {
			data, err := pair.ReadFile(path)
			if err != nil {
				return err
			}
			h.Write(data)
		}
		return nil
	})
	return hex.EncodeToString(h.Sum(nil))[:12]
})

// Unpack writes the pair below dir, once, and returns the two folders. A damaged copy is
// replaced. Several programs may do this at once: each writes aside and renames.
func Unpack(dir string) (target, drafter string, err error) {
	home := filepath.Join(dir, "demo-"+version())
	target, drafter = filepath.Join(home, TargetName), filepath.Join(home, DrafterName)
	if whole(home) {
		return target, drafter, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", "", err
	}
	fresh, err := os.MkdirTemp(dir, ".demo-")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(fresh)
	if err := unpack(fresh); err != nil {
		return "", "", err
	}
	if err := os.Rename(fresh, home); err != nil {
		if whole(home) {
			return target, drafter, nil
		}
		// Something damaged is in the way.
		aside := fresh + ".old"
		if moved := os.Rename(home, aside); moved != nil {
			return "", "", errors.Join(err, moved)
		}
		defer os.RemoveAll(aside)
		if err := os.Rename(fresh, home); err != nil && !whole(home) {
			return "", "", err
		}
	}
	return target, drafter, nil
}

// place is where an embedded file goes.
func place(home, path string) string {
	rest := path[len("pair/"):]
	for name, folder := range map[string]string{"target": TargetName, "drafter": DrafterName} {
		if len(rest) > len(name) && rest[:len(name)+1] == name+"/" {
			return filepath.Join(home, folder, filepath.FromSlash(rest[len(name)+1:]))
		}
	}
	return filepath.Join(home, filepath.FromSlash(rest))
}

func each(visit func(path string, size int64) error) error {
	return fs.WalkDir(pair, "pair", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return visit(path, info.Size())
	})
}

// whole tells whether every file is there at full length.
func whole(home string) bool {
	return each(func(path string, size int64) error {
		info, err := os.Stat(place(home, path))
		if err == nil && info.Size() != size {
			err = fs.ErrInvalid
		}
		return err
	}) == nil
}

func unpack(home string) error {
	return each(func(path string, _ int64) error {
		data, err := pair.ReadFile(path)
		if err != nil {
			return err
		}
		to := place(home, path)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o644)
	})
}
