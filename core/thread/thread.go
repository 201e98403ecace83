// Package thread is the one inference thread: a goroutine locked to its OS thread for life,
// on which all MLX work happens, one piece at a time.
package thread

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"firesteel/mlxbind"
)

// ErrClosed is returned for work after Close.
var ErrClosed = errors.New("the inference thread has ended")

// PanicError is a panic on the inference thread, with its stack. The thread lives on.
type PanicError struct {
	Value any
	Stack string
}

func (e *PanicError) Error() string { return fmt.Sprintf("internal error: %v\n%s", e.Value, e.Stack) }

// Thread runs work in the order it was asked for.
type Thread struct {
	work   chan func()
	closed chan struct{}
	ended  chan struct{}
	once   sync.Once
}

// Start begins the thread and prepares MLX on it.
func Start() (*Thread, error) {
	t := &Thread{work: make(chan func()), closed: make(chan struct{}), ended: make(chan struct{})}
	ready := make(chan error)
	go func() {
		defer close(t.ended)
		err := mlxbind.Init()
		ready <- err
		if err != nil {
			return
		}
		for {
			select {
			case f := <-t.work:
				f()
			case <-t.closed:
				return
			}
		}
	}()
	return t, <-ready
}

// Do runs f on the thread and waits for it. If ctx ends before f has begun, f never runs; an
// error of an f whose ctx ended meanwhile is also ctx's: whatever else it says may come of that, as
// when one interrupt ends both this program and a compiler that MLX had started.
func (t *Thread) Do(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	job := func() {
		defer func() {
			if r := recover(); r != nil {
				done <- &PanicError{r, string(debug.Stack())}
			}
		}()
		// Asked for here as well, since select takes any of its cases that are ready.
		if err := ctx.Err(); err != nil {
			done <- err
			return
		}
		done <- f()
	}
	select {
	case t.work <- job:
		err := <-done
		if end := ctx.Err(); err != nil && end != nil && !errors.Is(err, end) {
			err = fmt.Errorf("%w: %w", end, err)
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-t.closed:
		return ErrClosed
	}
}

// Close ends the thread once the running piece of work is done.
func (t *Thread) Close() {
	t.once.Do(func() { close(t.closed) })
	<-t.ended
}
