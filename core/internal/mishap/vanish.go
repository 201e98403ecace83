package mishap

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Vanishing has each source vanish when a fifth is done: as a whole, as when a drive is pulled out, or
// the files in it that end with suffix, which are removed or cut short. A job that has read what
// it needs by then may go on; otherwise its error names the source.
func (j *Job) Vanishing(t *testing.T, suffix string) {
	if j.sampled() {
		t.Skip("FIRESTEEL_LONG is not set")
	}
	j.know(t)
	failed, tried := 0, 0
	remove := func(path string) error { return os.Remove(path) }
	cut := func(path string) error { return os.Truncate(path, 1000) }
	for i := range j.Sources {
		for what, harm := range map[string]func(source string) error{
			"all of it":       os.RemoveAll,
			suffix + " gone":  func(source string) error { return each(source, suffix, remove) },
			suffix + " short": func(source string) error { return each(source, suffix, cut) },
		} {
			dir := t.TempDir()
			sources := copied(t, j.Sources, dir)
			place := j.prepare(t, t.TempDir())
			err := j.Run(context.Background(), sources, place, once(0.2, func() {
				if err := harm(sources[i]); err != nil {
					t.Error(err)
				}
			}))
			if err != nil && !strings.Contains(err.Error(), sources[i]) {
				t.Errorf("%s of %s: the error does not name it: %v", what, filepath.Base(sources[i]), err)
			}
			j.stopped(t, place, err == nil)
			if tried++; err == nil {
				continue
			}
			failed++
			// It is there again.
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			j.ends(t, copied(t, j.Sources, dir), place)
		}
	}
	t.Logf("%d of %d losses were noticed", failed, tried)
}

// each does something to every file in a folder, or to the file, whose name ends with suffix.
func each(source, suffix string, do func(path string) error) error {
	var list []string
	err := filepath.WalkDir(source, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() && (path == source || strings.HasSuffix(path, suffix)) {
			list = append(list, path)
		}
		return err
	})
	for _, path := range list {
		if err == nil {
			err = do(path)
		}
	}
	return err
}

// copied makes copies of the sources in dir.
func copied(t *testing.T, sources []string, dir string) (list []string) {
	t.Helper()
	for _, source := range sources {
		to := filepath.Join(dir, filepath.Base(source))
		info, err := os.Stat(source)
		switch {
		case err != nil:
		case info.IsDir():
			err = os.CopyFS(to, os.DirFS(source))
		default:
			var content []byte
			if content, err = os.ReadFile(source); err == nil {
				err = os.WriteFile(to, content, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, to)
	}
	return list
}
