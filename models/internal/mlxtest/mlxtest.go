// Package mlxtest gives tests the inference thread that MLX needs.
package mlxtest

import (
	"math"
	"path/filepath"
	"sync"
	"testing"

	"firesteel/mlxbind"
	"firesteel/models/checkpoint"
)

var (
	once sync.Once
	work = make(chan func())
)

// serve runs work on a thread of its own. A Fatal inside a piece of work ends the goroutine,
// and another takes over.
func serve(ready chan<- error) {
	defer func() { go serve(nil) }()
	err := mlxbind.Init()
	if ready != nil {
		ready <- err
	}
	for f := range work {
		f()
	}
}

// On runs f in a scope on the test program's one inference thread and waits for it. f may
// call Fatal as a test does.
func On(t testing.TB, f func(s *mlxbind.Scope)) {
	t.Helper()
	once.Do(func() {
		ready := make(chan error)
		go serve(ready)
		if err := <-ready; err != nil {
			t.Fatal(err)
		}
	})
	done := make(chan any)
	ended := false
	work <- func() {
		defer func() { done <- recover() }()
		s := mlxbind.NewScope()
		defer s.Close()
		f(s)
		ended = true
	}
	if r := <-done; r != nil {
		t.Fatal(r)
	}
	if !ended {
		t.FailNow()
	}
}

// Golden opens a fixture's folder, for packages that lie directly in models.
func Golden(t testing.TB, name string) *checkpoint.Folder {
	t.Helper()
	folder, err := checkpoint.Open(filepath.Join("..", "testdata", "goldens", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	return folder
}

// Floats reads an array.
func Floats(t testing.TB, s *mlxbind.Scope, a mlxbind.Array) []float32 {
	t.Helper()
	values, err := s.ReadFloats(a)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// Far is the largest absolute difference; infinite for lists of different lengths.
func Far(a, b []float32) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	worst := 0.0
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		if d < 0 {
			d = -d
		}
		if d > worst || d != d {
			worst = d
		}
	}
	return worst
}
