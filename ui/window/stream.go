package window

import (
	"strings"
	"sync"
	"time"

	"firesteel/core/engine"
	"firesteel/ui/window/answer"
)

// interval is the least time between two changes of the screen while text comes; where
// drawing is slow it grows up to slowest, so that the window still answers to a person.
const (
	interval = 50 * time.Millisecond
	slowest  = 200 * time.Millisecond
)

// batch is what happened since the last change of the screen.
type batch struct {
	delta       string
	rounds      []answer.Round
	tokens      int           // so far; 0: no new figure
	elapsed     time.Duration // with tokens
	done, total int           // of the prompt read; total 0: no new figure
}

// feed takes events on the inference thread and hands them, joined, to apply through post,
// at most once an interval. push never waits.
type feed struct {
	post  func(func())
	apply func(batch)

	mutex     sync.Mutex
	text      strings.Builder
	waiting   batch
	any       bool
	scheduled bool
	last      time.Time     // when the screen was changed
	wait      time.Duration // from then to the next change
}

func (f *feed) push(e engine.Event) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.any = true
	switch e := e.(type) {
	case engine.Text:
		f.text.WriteString(e.Delta)
	case engine.Round:
		f.waiting.rounds = append(f.waiting.rounds, answer.Round{Drafted: e.Drafted, Accepted: e.Accepted})
		f.waiting.tokens, f.waiting.elapsed = e.Tokens, e.Elapsed
	case engine.Prefill:
		f.waiting.done, f.waiting.total = e.Done, e.Total
	}
	if !f.scheduled {
		f.scheduled = true
		// Not straight through post: this may be any thread, and post must not be called on
		// Fyne's.
		time.AfterFunc(max(0, f.wait-time.Since(f.last)), func() {
			posted := time.Now()
			f.post(func() {
				f.pace(time.Since(posted))
				f.flush()
			})
		})
	}
}

// pace sets the time to the next change from how long the thread let this one wait.
func (f *feed) pace(delay time.Duration) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.wait = (f.wait + max(interval, min(slowest, 5*delay))) / 2
}

// flush applies what waits. It belongs to Fyne's thread.
func (f *feed) flush() {
	f.mutex.Lock()
	b, any := f.waiting, f.any
	b.delta = f.text.String()
	f.text.Reset()
	f.waiting, f.any, f.scheduled, f.last = batch{}, false, false, time.Now()
	f.mutex.Unlock()
	if any {
		f.apply(b)
	}
}

// latest runs the newest of many changes on Fyne's thread, at most once an interval.
type latest struct {
	post func(func())

	mutex     sync.Mutex
	next      func()
	scheduled bool
}

// set replaces the change to come. It may be called from any thread and never waits.
func (l *latest) set(f func()) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.next = f
	if l.scheduled {
		return
	}
	l.scheduled = true
	time.AfterFunc(interval, func() {
		l.post(func() {
			l.mutex.Lock()
			f := l.next
			l.scheduled = false
			l.mutex.Unlock()
			f()
		})
	})
}
