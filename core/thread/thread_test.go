package thread_test

import (
	"context"
	"errors"
	"testing"

	"firesteel/core/thread"
)

func start(t *testing.T) *thread.Thread {
	t.Helper()
	inference, err := thread.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(inference.Close)
	return inference
}

func TestWorkThatFailsAfterItsContextEndedIsCancelled(t *testing.T) {
	inference := start(t)
	broken := errors.New("the compiler was interrupted")

	ctx, cancel := context.WithCancel(context.Background())
	err := inference.Do(ctx, func() error { cancel(); return broken })
	if !errors.Is(err, context.Canceled) || !errors.Is(err, broken) {
		t.Errorf("%v is not both the cancellation and its consequence", err)
	}
	if err := inference.Do(context.Background(), func() error { return broken }); err != broken {
		t.Errorf("an error of living work became %v", err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	if err := inference.Do(ctx, func() error { cancel(); return nil }); err != nil {
		t.Errorf("work that finished in spite of a cancellation reports %v", err)
	}
	// Many times: the thread is free, so that both sides of the choice are ready.
	for range 200 {
		ran := false
		if err := inference.Do(ctx, func() error { ran = true; return nil }); !errors.Is(err, context.Canceled) || ran {
			t.Fatalf("work of an ended context: ran %v, error %v", ran, err)
		}
	}
}

func TestThePanicOfOnePieceOfWorkLeavesTheThreadAlive(t *testing.T) {
	inference := start(t)
	var panicked *thread.PanicError
	if err := inference.Do(context.Background(), func() error { panic("broken") }); !errors.As(err, &panicked) || panicked.Value != "broken" {
		t.Fatalf("a panic arrived as %v", err)
	}
	if err := inference.Do(context.Background(), func() error { return nil }); err != nil {
		t.Errorf("the next piece of work failed: %v", err)
	}
	inference.Close()
	if err := inference.Do(context.Background(), func() error { return nil }); !errors.Is(err, thread.ErrClosed) {
		t.Errorf("work for a closed thread: %v", err)
	}
}
