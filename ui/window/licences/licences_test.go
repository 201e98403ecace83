package licences

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

const renew = "run `make licences`"

func TestAll(t *testing.T) {
	all := All()
	if all[0].Name != "Firesteel" {
		t.Errorf("the first is %q", all[0].Name)
	}
	own, err := os.ReadFile("../../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(own)) != strings.TrimSpace(all[0].Text) {
		t.Errorf("Firesteel's own licence is not that of the project; %s", renew)
	}
	seen := map[string]bool{}
	for i, l := range all {
		if seen[l.Name] {
			t.Errorf("%s is listed twice", l.Name)
		}
		seen[l.Name] = true
		if len(l.Text) < 200 {
			t.Errorf("%s has no licence but %q", l.Name, l.Text)
		}
		if i > 1 && strings.ToLower(l.Name) < strings.ToLower(all[i-1].Name) {
			t.Errorf("%s comes after %s", l.Name, all[i-1].Name)
		}
	}
}

// TestModules compares the modules that are named with those that the program is compiled from.
func TestModules(t *testing.T) {
	named := map[string]string{}
	for _, l := range All() {
		named[l.Name] = l.Version
	}
	used := map[string]bool{}
	complete := true
	// Opened so that go test does not repeat a result from before it changed.
	if _, err := os.ReadFile("../../../go.mod"); err != nil {
		t.Fatal(err)
	}
	for _, system := range []struct{ os, arch, tags string }{{"linux", "amd64", "x11"}, {"darwin", "arm64", ""}} {
		list := exec.Command("go", "list", "-deps", "-tags", system.tags, "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "firesteel")
		list.Env = append(os.Environ(), "CGO_ENABLED=1", "GOOS="+system.os, "GOARCH="+system.arch, "GOPROXY=off")
		var trouble bytes.Buffer
		list.Stderr = &trouble
		out, err := list.Output()
		if err != nil {
			if system.os != runtime.GOOS {
				// A module that only the other system needs has not been downloaded here.
				t.Logf("not compared for %s: %s", system.os, trouble.String())
				complete = false
				continue
			}
			t.Fatalf("go list: %v\n%s", err, trouble.String())
		}
		for line := range strings.Lines(string(out)) {
			path, version, isModule := strings.Cut(strings.TrimSpace(line), " ")
			if !isModule || used[path] {
				continue
			}
			used[path] = true
			if named[path] != version {
				t.Errorf("%s %s is compiled in, but the licence here is for version %q; %s", path, version, named[path], renew)
			}
		}
	}
	if len(used) < 20 {
		t.Errorf("only %d modules seen", len(used))
	}
	if !complete {
		return
	}
	for name := range named {
		host, _, isPath := strings.Cut(name, "/")
		if isPath && strings.Contains(host, ".") && !partOf(name, used) {
			t.Errorf("%s is named, but not compiled in; %s", name, renew)
		}
	}
}

// partOf tells whether a module, or a folder above name in one, is among modules.
func partOf(name string, modules map[string]bool) bool {
	for module := range modules {
		if name == module || strings.HasPrefix(name, module+"/") {
			return true
		}
	}
	return false
}

// TestNative compares the versions of what is not Go with those that set-up fetches.
func TestNative(t *testing.T) {
	setup, err := os.ReadFile("../../../scripts/setup.sh")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]string{}
	for _, l := range All() {
		named[l.Name] = l.Version
	}
	for name, variable := range map[string]string{"MLX": "mlx_version", "mlx-c": "crate_version"} {
		pinned := regexp.MustCompile(`(?m)^` + variable + `=(.+)$`).FindSubmatch(setup)
		if pinned == nil {
			t.Fatalf("set-up has no %s", variable)
		}
		if named[name] != string(pinned[1]) {
			t.Errorf("set-up fetches %s %s, the licence here is for version %q; %s", name, pinned[1], named[name], renew)
		}
	}
	for _, name := range []string{"JSON for Modern C++", "fmt", "gguflib", "metal-cpp", "MLX/3rdparty/pocketfft.h", "GLFW", "Noto Sans (in Fyne)", "Go", "Firesteel Demo and its drafter"} {
		if _, ok := named[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
}
