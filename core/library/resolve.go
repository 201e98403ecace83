package library

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/text/unicode/norm"

	"firesteel/models/checkpoint"
)

// Resolve turns what a person typed, pasted or dropped into the folder that holds the checkpoint:
// quotes and blanks around it are dropped, a leading tilde and a file:// address are understood, a
// file inside the folder stands for the folder, and a folder of the hub's cache for its current
// snapshot. Accents match however they are composed. The result is absolute; links in it are kept,
// so that names stay those the person knows.
func Resolve(input string) (string, error) {
	path, err := find(input)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", checkpoint.FileError(path, err)
	}
	if !info.IsDir() {
		folder := filepath.Dir(path)
		if !partOfCheckpoint(filepath.Base(path)) {
			return "", &checkpoint.Error{Kind: checkpoint.KindNotAFolder, Path: path, Detail: "not a folder"}
		}
		path = folder
	}
	return snapshot(path)
}

func partOfCheckpoint(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".safetensors", ".json", ".jinja":
		return !checkpoint.IsCompanion(name)
	}
	return false
}

// find returns the first reading of input that exists.
func find(input string) (string, error) {
	// What is there as it stands is meant, also beside a folder whose name lacks the blank at its end.
	if path := expandHome(input); filepath.IsAbs(path) {
		if _, err := os.Stat(path); err == nil {
			return filepath.Clean(path), nil
		}
	}
	first := ""
	var firstErr error
	for _, reading := range readings(input) {
		path, err := filepath.Abs(reading)
		if err != nil {
			return "", &checkpoint.Error{Kind: checkpoint.KindNotReadable, Path: reading, Err: err}
		}
		if _, err = os.Stat(path); err == nil {
			return path, nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			if other, ok := respell(path); ok {
				return other, nil
			}
		}
		if first == "" || errors.Is(firstErr, fs.ErrNotExist) && !errors.Is(err, fs.ErrNotExist) {
			first, firstErr = path, err
		}
	}
	if first == "" {
		return "", &checkpoint.Error{Kind: checkpoint.KindNotFound, Path: input, Detail: "no folder was named"}
	}
	return "", checkpoint.FileError(first, firstErr)
}

// readings lists what input may mean, the plainest first.
func readings(input string) []string {
	var list []string
	add := func(path string) {
		if path == "" || strings.ContainsRune(path, 0) {
			return
		}
		for _, known := range list {
			if known == path {
				return
			}
		}
		list = append(list, path)
	}
	trimmed := strings.TrimSpace(input)
	bare := unquote(trimmed)
	if strings.HasPrefix(bare, "file://") {
		if u, err := url.Parse(bare); err == nil {
			add(u.Path)
		}
		// Some programs put the path there as it stands, with # or % in it.
		add(strings.TrimPrefix(strings.TrimPrefix(bare, "file://"), "localhost"))
	}
	add(expandHome(bare))
	if bare != "" {
		add(expandHome(strings.TrimLeft(input, " \t"))) // a name that really ends in a blank
		add(input)
	}
	if strings.Contains(bare, `\`) {
		add(expandHome(unescape(bare))) // as a terminal writes a dropped path
	}
	return list
}

func unquote(s string) string {
	for _, pair := range [][2]string{{`"`, `"`}, {`'`, `'`}, {"“", "”"}, {"‘", "’"}, {"«", "»"}} {
		if len(s) >= len(pair[0])+len(pair[1]) && strings.HasPrefix(s, pair[0]) && strings.HasSuffix(s, pair[1]) {
			return strings.TrimSpace(s[len(pair[0]) : len(s)-len(pair[1])])
		}
	}
	return s
}

func unescape(s string) string {
	var b strings.Builder
	escaped := false
	for _, r := range s {
		if r == '\\' && !escaped {
			escaped = true
			continue
		}
		escaped = false
		b.WriteRune(r)
	}
	return b.String()
}

// expandHome replaces a leading tilde, once; "a/~b" and "~b" stay as they are.
func expandHome(path string) string {
	if path != "~" && !strings.HasPrefix(path, "~/") {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	return filepath.Join(home, path[1:])
}

// respell finds a path whose names differ from the wanted ones only in how accents are composed.
func respell(path string) (string, bool) {
	found := string(filepath.Separator)
	for _, name := range strings.Split(filepath.ToSlash(path), "/") {
		if name == "" {
			continue
		}
		next := filepath.Join(found, name)
		if _, err := os.Lstat(next); err != nil {
			entries, err := os.ReadDir(found)
			if err != nil {
				return "", false
			}
			next = ""
			for _, e := range entries {
				if norm.NFC.String(e.Name()) == norm.NFC.String(name) {
					next = filepath.Join(found, e.Name())
					break
				}
			}
			if next == "" {
				return "", false
			}
		}
		found = next
	}
	_, err := os.Stat(found)
	return found, err == nil
}

// HubPrefix begins the name of each repository of models in the hub's cache: "models--org--name".
const HubPrefix = "models--"

// snapshot follows a folder of the hub's cache (models--org--name, or its "snapshots") to the
// snapshot that refs/main names, or to the newest where nothing is named. Other folders stay.
func snapshot(dir string) (string, error) {
	repo := dir
	if filepath.Base(dir) == "snapshots" && strings.HasPrefix(filepath.Base(filepath.Dir(dir)), HubPrefix) {
		repo = filepath.Dir(dir)
	}
	snapshots := filepath.Join(repo, "snapshots")
	if info, err := os.Stat(snapshots); err != nil || !info.IsDir() {
		return dir, nil
	}
	if _, err := os.Stat(filepath.Join(repo, "config.json")); err == nil {
		return dir, nil
	}
	if ref, err := os.ReadFile(filepath.Join(repo, "refs", "main")); err == nil {
		hash := strings.TrimSpace(string(ref))
		if hash != "" && filepath.Base(hash) == hash && hash != ".." && hash != "." {
			named := filepath.Join(snapshots, hash)
			if info, err := os.Stat(named); err == nil && info.IsDir() {
				return named, nil
			}
		}
	}
	entries, err := os.ReadDir(snapshots)
	if err != nil {
		return "", checkpoint.FileError(snapshots, err)
	}
	type dated struct {
		path string
		time int64
	}
	var all []dated
	for _, e := range entries {
		path := filepath.Join(snapshots, e.Name())
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			all = append(all, dated{path, info.ModTime().UnixNano()})
		}
	}
	if len(all) == 0 {
		return "", &checkpoint.Error{Kind: checkpoint.KindIncomplete, Path: repo, Detail: "it holds no snapshot; the download may be unfinished"}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].time > all[j].time })
	return all[0].path, nil
}

// Name is what a person calls the folder dir: its own name, or the hub's "org/name" for a
// repository of the hub's cache and for its snapshots. A link is called by the link's name.
func Name(dir string) string {
	if repo, ok := repository(dir); ok {
		dir = repo
	}
	if name, ok := strings.CutPrefix(filepath.Base(dir), HubPrefix); ok {
		return strings.ReplaceAll(name, "--", "/")
	}
	return filepath.Base(dir)
}

// repository returns the folder of the hub's cache that dir is a snapshot of.
func repository(dir string) (repo string, ok bool) {
	snapshots := filepath.Dir(dir)
	if filepath.Base(snapshots) != "snapshots" {
		return "", false
	}
	repo = filepath.Dir(snapshots)
	if strings.HasPrefix(filepath.Base(repo), HubPrefix) {
		return repo, true
	}
	// Reached through a link of another name.
	info, err := os.Stat(filepath.Join(repo, "blobs"))
	return repo, err == nil && info.IsDir()
}
