// Package threadtest gives a package's tests the one inference thread.
package threadtest

import (
	"context"
	"fmt"
	"os"
	"testing"

	"firesteel/core/thread"
	"firesteel/mlxbind"
)

// Thread is there while Main runs the tests.
var Thread *thread.Thread

// Main is what a package's TestMain calls.
func Main(m *testing.M) {
	var err error
	if Thread, err = thread.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	Thread.Close()
	os.Exit(code)
}

// On runs f on the inference thread in a scope of its own, which must end without an error.
func On(t *testing.T, f func(s *mlxbind.Scope)) {
	t.Helper()
	err := Thread.Do(context.Background(), func() error {
		s := mlxbind.NewScope()
		defer s.Close()
		f(s)
		return s.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
}
