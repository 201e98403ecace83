// Package mishap does to jobs what happens to them on people's computers: they are cancelled, the disk
// is full, a source vanishes, the process is killed. After each it looks for what must hold of every
// job: what can be seen is whole, the sources are untouched, nothing is left over, and starting again
// comes to the same end.
package mishap

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"firesteel/core/job"
	"firesteel/core/library/found"
)

// Job is a job whose mishaps are tried.
type Job struct {
	Name string // tells it from other jobs of the test program

	// Sources are the files and folders that it reads.
	Sources []string
	// Prepare puts into place what is there before the job; nil: nothing.
	Prepare func(place string) error
	// Run does the job, or goes on with what an earlier Run began: it reads sources, which stand for
	// Sources, and writes into the folder place, with its notes in NotesIn(place). tell hears how far
	// it is, from 0 to 1.
	Run func(ctx context.Context, sources []string, place string, tell func(share float64)) error
	// Result describes what can be seen of the job in place, "" being nothing; the same description is
	// the same result. What is there but is not whole is an error.
	Result func(place string) (string, error)
	// Discard throws away what a job that can go on keeps for that; nil: it keeps nothing.
	Discard func(place string) error
	// Curve is how a finished job went, step by step; nil: nothing of that kind. Whatever happened on
	// the way, no value may differ by more than a hundred-thousandth.
	Curve func(place string) ([]float64, error)
	// Slow has all but the long grids try a sample of what can happen.
	Slow bool

	// What is known once it was done and nothing happened.
	before, after string // results
	curve         []float64
	took          time.Duration
}

// tolerance is how far curves of the same job may lie apart.
const tolerance = 1e-5

// sampled says that a sample is enough.
func (j *Job) sampled() bool { return j.Slow && !long() }

// NotesIn is the folder for a job's notes.
func NotesIn(place string) string { return filepath.Join(place, "notes") }

// long says that the long grids are asked for.
func long() bool { return os.Getenv("FIRESTEEL_LONG") != "" }

// OnlyLong leaves the test to the long grids.
func OnlyLong(t *testing.T) {
	t.Helper()
	if !long() {
		t.Skip("FIRESTEEL_LONG is not set")
	}
}

// prepare makes dir ready for the job.
func (j *Job) prepare(t *testing.T, dir string) string {
	t.Helper()
	if err := os.MkdirAll(NotesIn(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if j.Prepare != nil {
		if err := j.Prepare(dir); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// know finds out what the job makes when nothing happens.
func (j *Job) know(t *testing.T) {
	t.Helper()
	if j.after != "" {
		return
	}
	place := j.prepare(t, t.TempDir())
	j.before = j.result(t, place)
	begun := time.Now()
	if err := j.Run(context.Background(), j.Sources, place, func(float64) {}); err != nil {
		t.Fatal(err)
	}
	j.took = time.Since(begun)
	j.after = j.result(t, place)
	if j.after == j.before {
		t.Fatal("it makes nothing")
	}
	j.curve = j.way(t, place)
	j.tidied(t, place)
}

func (j *Job) result(t *testing.T, place string) string {
	t.Helper()
	r, err := j.Result(place)
	if err != nil {
		t.Fatalf("half of it can be seen: %v", err)
	}
	if models := listed(t, place); r == "" && len(models) > 0 {
		t.Fatalf("pickers list %v", models)
	}
	return r
}

// listed are the models that pickers would list, were place a folder that they look in.
func listed(t *testing.T, place string) (names []string) {
	t.Helper()
	home := t.TempDir()
	if err := os.Symlink(place, filepath.Join(home, "models")); err != nil {
		t.Fatal(err)
	}
	for _, m := range found.New(home, func(string) string { return "" }).Scan(t.Context()) {
		names = append(names, m.Name)
	}
	return names
}

// ends says that a job with these sources comes to its end in place.
func (j *Job) ends(t *testing.T, sources []string, place string) {
	t.Helper()
	if err := j.Run(context.Background(), sources, place, func(float64) {}); err != nil {
		t.Fatalf("started again: %v", err)
	}
	if r := j.result(t, place); r != j.after {
		t.Errorf("started again it made %s, not %s", r, j.after)
	}
	j.sameWay(t, place, j.curve)
	j.tidied(t, place)
}

// way is how the finished job in place went; nil where there is no telling.
func (j *Job) way(t *testing.T, place string) []float64 {
	t.Helper()
	if j.Curve == nil {
		return nil
	}
	curve, err := j.Curve(place)
	if err != nil {
		t.Fatal(err)
	}
	return curve
}

// sameWay says that the job in place went the way that want shows.
func (j *Job) sameWay(t *testing.T, place string, want []float64) {
	t.Helper()
	got := j.way(t, place)
	if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) <= tolerance }) {
		t.Errorf("it went %v, not %v", got, want)
	}
}

// stopped says that a job that ended early has left things as they were; whole: or has come to its
// end all the same.
func (j *Job) stopped(t *testing.T, place string, whole bool) {
	t.Helper()
	if r := j.result(t, place); r != j.before && !(whole && r == j.after) {
		t.Errorf("%s can be seen", r)
	}
	if j.Discard == nil {
		j.tidied(t, place)
	}
}

// tidied says that nothing hidden is in place.
func (j *Job) tidied(t *testing.T, place string) {
	t.Helper()
	for _, path := range hidden(t, place) {
		t.Errorf("%s is left", path)
	}
}

// hidden lists what in place does not show.
func hidden(t *testing.T, place string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(place, func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(e.Name(), ".") {
			list = append(list, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// nextStart does in place what every start does, an hour later: younger files may be another's.
func nextStart(t *testing.T, place string) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	for _, path := range hidden(t, place) {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := job.RemoveLeftovers(NotesIn(place)); err != nil {
		t.Fatal(err)
	}
}

// once calls f when so much is done, and never again.
func once(share float64, f func()) func(float64) {
	fired := false
	return func(done float64) {
		if done >= share && !fired {
			fired = true
			f()
		}
	}
}

// Cancelled cancels it near the beginning, half way and near the end.
func (j *Job) Cancelled(t *testing.T) {
	j.know(t)
	before := digests(t, j.Sources)
	shares := []float64{0.01, 0.5, 0.99}
	if j.sampled() {
		shares = []float64{nearEnd}
	}
	for _, share := range shares {
		place := j.prepare(t, t.TempDir())
		j.cancelled(t, j.Sources, place, share)
		if share == 0.5 && j.Discard != nil {
			if err := j.Discard(place); err != nil {
				t.Error(err)
			}
			j.tidied(t, place)
		}
		j.ends(t, j.Sources, place)
	}
	unchanged(t, j.Sources, before)
}

// nearEnd is when there is much to go on with.
const nearEnd = 0.8

// cancelled runs the job until so much is done.
func (j *Job) cancelled(t *testing.T, sources []string, place string, share float64) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := j.Run(ctx, sources, place, once(share, cancel)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled at %g: %v", share, err)
	}
	j.stopped(t, place, false)
}

// Digest is one of the names and bytes of every file in dir.
func Digest(dir string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(h, "%q %d\n", strings.TrimPrefix(path, dir), len(content))
		h.Write(content)
		return err
	})
	return fmt.Sprintf("%x", h.Sum(nil)[:8]), err
}

func digests(t *testing.T, dirs []string) string {
	t.Helper()
	var list []string
	for _, dir := range dirs {
		d, err := Digest(dir)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, d)
	}
	return strings.Join(list, " ")
}

func unchanged(t *testing.T, sources []string, before string) {
	t.Helper()
	if digests(t, sources) != before {
		t.Error("a source was changed")
	}
}
