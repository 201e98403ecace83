package library

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"firesteel/models/checkpoint"
)

// Signature says in short what a folder holds: it changes when a file that Describe reads comes, goes,
// grows or is replaced. dir may be anything that Resolve takes; one that can't be read has a
// signature too. It costs a few system calls and opens no file.
func Signature(dir string) string {
	resolved, err := Resolve(dir)
	if err != nil {
		return err.Error()
	}
	listing, err := checkpoint.List(resolved)
	if err != nil {
		return err.Error()
	}
	var sign strings.Builder
	fmt.Fprintln(&sign, resolved)
	for _, name := range listing.Names {
		if !partOfCheckpoint(name) {
			continue
		}
		// Stat follows the links of a hub's cache.
		if info, err := os.Stat(filepath.Join(resolved, name)); err == nil {
			fmt.Fprintln(&sign, name, info.Size(), info.ModTime().UnixNano())
		}
	}
	return sign.String()
}
