package found

import (
	"os"
	"path/filepath"
	"strings"
)

// place is a folder that models usually lie in.
type place struct {
	dir string
	hub bool // a hub's cache: it holds models--org--name
}

// places lists where models usually lie, whether these folders exist or not. Hugging Face's variables
// count as its own tools read them.
func places(home string, getenv func(string) string) []place {
	under := func(parts ...string) string {
		if home == "" {
			return ""
		}
		return filepath.Join(append([]string{home}, parts...)...)
	}
	variable := func(name string, parts ...string) string {
		dir := getenv(name)
		if dir == "" {
			return ""
		}
		if dir == "~" || strings.HasPrefix(dir, "~/") {
			dir = under(dir[1:])
		}
		return filepath.Join(append([]string{dir}, parts...)...)
	}
	var list []place
	for _, hub := range []string{
		variable("HF_HUB_CACHE"),
		variable("HF_HOME", "hub"),
		variable("XDG_CACHE_HOME", "huggingface", "hub"),
		under(".cache", "huggingface", "hub"),
	} {
		if hub != "" {
			list = append(list, place{hub, true})
			break
		}
	}
	for _, dir := range []string{
		under(".lmstudio", "models"),
		under(".cache", "lm-studio", "models"),
		under("models"),
		under("Models"),
		under("Firesteel"),
	} {
		if dir != "" {
			list = append(list, place{dir, false})
		}
	}
	return list
}

// root is a place that exists.
type root struct {
	place
	info os.FileInfo
}

// roots returns the places that exist, each folder once, however many names it has.
func roots(list []place) []root {
	var there []root
next:
	for _, p := range list {
		info, err := os.Stat(p.dir)
		if err != nil || !info.IsDir() {
			continue
		}
		for _, other := range there {
			if os.SameFile(info, other.info) {
				continue next
			}
		}
		there = append(there, root{p, info})
	}
	return there
}
