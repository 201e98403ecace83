// Package demo gives out the folders of the embedded pair.
package demo

import (
	"os"
	"path/filepath"

	"firesteel/models/demo"
)

// Folders unpacks the embedded pair into the user's cache, once, and returns its folders.
func Folders() (target, drafter string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", "", err
	}
	return demo.Unpack(filepath.Join(cache, "Firesteel"))
}
