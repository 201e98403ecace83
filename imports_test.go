package main

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// rooms in the order in which they may know each other: each may import those after it, and
// other packages of its own.
var rooms = []string{"", "ui", "core", "models", "mlxbind"}

const module = "firesteel"

// roomOf tells a package's place in rooms from its folder below the module, -1 when it is in none.
func roomOf(folder string) int {
	first, _, _ := strings.Cut(folder, "/")
	for i, room := range rooms {
		if first == room {
			return i
		}
	}
	return -1
}

// importFault says what is wrong with a file in folder importing imported, "" when nothing is.
func importFault(folder, imported string) string {
	room := roomOf(folder)
	switch {
	case imported == "C":
		if folder != "mlxbind" {
			return "only mlxbind talks to C"
		}
	case strings.HasPrefix(imported, "fyne.io/"):
		if room > roomOf("ui") {
			return "only the window knows Fyne"
		}
	case imported == module:
		return "nothing imports the main program"
	case strings.HasPrefix(imported, module+"/"):
		target := roomOf(strings.TrimPrefix(imported, module+"/"))
		switch {
		case target < 0:
			return "it is in no room"
		case target < room:
			return "imports go from main to ui to core to models to mlxbind"
		case rooms[room] == "ui" && rooms[target] == "mlxbind":
			return "the window reaches MLX only through core"
		}
	}
	return ""
}

// TestImportsGoOneWay reads the import lines of every Go file, whatever system or build tag it
// is for, tests included.
func TestImportsGoOneWay(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		base := path.Base(name)
		if entry.IsDir() {
			if base == "testdata" || name != "." && strings.HasPrefix(base, ".") {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		folder := path.Dir(name)
		if folder == "." {
			folder = ""
		}
		if roomOf(folder) < 0 && !strings.HasPrefix(folder, "scripts") {
			t.Errorf("%s is in none of the rooms", name)
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		seen++
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if fault := importFault(folder, imported); fault != "" {
				t.Errorf("%s imports %q: %s", name, imported, fault)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 10 {
		t.Errorf("only %d Go files seen: the walk looks in the wrong place", seen)
	}
}

// TestNoWindowBelow asks go for everything that core, and the program without its window, are
// built from: neither may bring in Fyne through some other module either.
func TestNoWindowBelow(t *testing.T) {
	for name, arguments := range map[string][]string{
		"core":     {"list", "-deps", "./core/..."},
		"headless": {"list", "-deps", "-tags", "headless", "."},
	} {
		var trouble bytes.Buffer
		command := exec.Command("go", arguments...)
		command.Stderr = &trouble
		out, err := command.Output()
		if err != nil {
			t.Errorf("%s: go %s: %v\n%s", name, strings.Join(arguments, " "), err, trouble.String())
			continue
		}
		for line := range strings.Lines(string(out)) {
			imported := strings.TrimSpace(line)
			if strings.HasPrefix(imported, "fyne.io/") || strings.HasPrefix(imported, "github.com/go-gl/") || imported == module+"/ui/window" {
				t.Errorf("%s is built from %s", name, imported)
				break // what it brings along in turn would bury this line
			}
		}
	}
}

func TestImportFault(t *testing.T) {
	for _, c := range []struct {
		folder, imported string
		wrong            bool
	}{
		{"", "firesteel/ui/window", false},
		{"ui/window", "firesteel/core/engine", false},
		{"ui/window/look", "fyne.io/fyne/v2", false},
		{"core/engine", "firesteel/core/memory", false},
		{"models/nn", "firesteel/mlxbind", false},
		{"mlxbind", "C", false},
		{"core/engine", "firesteel/ui/words", true},
		{"models/chat", "firesteel/core/engine", true},
		{"mlxbind", "firesteel/models/nn", true},
		{"ui/window", "firesteel/mlxbind", true},
		{"core/memory", "fyne.io/fyne/v2", true},
		{"ui/window", "C", true},
		{"core/engine", "firesteel/utilities", true},
	} {
		if fault := importFault(c.folder, c.imported); (fault != "") != c.wrong {
			t.Errorf("%s importing %s: fault %q, want a fault: %v", c.folder, c.imported, fault, c.wrong)
		}
	}
}
