package mishap

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Vanishing has each source vanish: as a whole, as when a drive is pulled out, or the files in it that
// end with suffix, which are removed or cut short. That happens at the beginning, when a fifth is done
// and, where a job can go on, just as it goes on with what was cancelled near the end. One that has read
// what it needs by then may go on; otherwise its error names the source, and when that is back it is
// done again or gone on with.
func (j *Job) Vanishing(t *testing.T, suffix string) {
	j.know(t)
	remove := func(path string) error { return os.Remove(path) }
	cut := func(path string) error { return os.Truncate(path, 1000) }
	losses := []func(source string) error{
		os.RemoveAll,
		func(source string) error { return each(source, suffix, remove) },
		func(source string) error { return each(source, suffix, cut) },
	}
	moments := []struct{ cancelled, share float64 }{{0, 0}, {0, 0.2}, {nearEnd, 0}}
	sources := len(j.Sources)
	switch {
	case j.sampled():
		sources, losses, moments = 1, losses[:1], moments[len(moments)-1:]
	case j.Discard == nil:
		moments = moments[:2]
	}
	failed, tried := 0, 0
	for i := range sources {
		for k, harm := range losses {
			for _, m := range moments {
				tried++
				if j.vanishes(t, i, harm, m.cancelled, m.share) {
					failed++
				}
				if t.Failed() {
					t.Fatalf("loss %d of %s: %+v", k, j.Sources[i], m)
				}
			}
		}
	}
	t.Logf("%d of %d losses were noticed", failed, tried)
}

// vanishes does harm to source number i when so much of a share is done, and tells whether the job
// noticed. If cancelled is not 0 the job was cancelled before, when that much was done.
func (j *Job) vanishes(t *testing.T, i int, harm func(source string) error, cancelled, share float64) bool {
	t.Helper()
	dir := t.TempDir()
	sources := copied(t, j.Sources, dir)
	place := j.prepare(t, t.TempDir())
	if cancelled > 0 {
		j.cancelled(t, sources, place, cancelled)
	}
	err := j.Run(context.Background(), sources, place, once(share, func() {
		if err := harm(sources[i]); err != nil {
			t.Error(err)
		}
	}))
	if err != nil && !strings.Contains(err.Error(), sources[i]) {
		t.Errorf("the error does not name it: %v", err)
	}
	j.stopped(t, place, err == nil)
	if err == nil {
		return false
	}
	// It is there again.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	j.ends(t, copied(t, j.Sources, dir), place)
	return true
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
