// Package job is what long pieces of work have in common that leave a folder behind: they write
// into a hidden folder beside the one asked for and give it its name last, they tell how far they
// are, they can be cancelled at any point, and what a killed one left is found and removed.
package job

import (
	"context"
	"time"
)

// Runner does work on the inference thread; *thread.Thread is one, and *engine.Engine.
type Runner interface {
	Do(ctx context.Context, f func() error) error
}

// Progress is how far a job is.
type Progress struct {
	Stage       string        // what it does now, in a word or two
	Done, Total int64         // bytes, or whatever the job counts
	Left        time.Duration // 0 while it can't be told
}

// Meter tells how far a job is and how long it will take.
type Meter struct {
	total int64
	begun time.Time
	tell  func(Progress)
	done  int64
}

// NewMeter begins to count to total; tell may be nil.
func NewMeter(total int64, tell func(Progress)) *Meter {
	return &Meter{total: total, begun: time.Now(), tell: tell}
}

// Add tells that n more are done, in the given stage.
func (m *Meter) Add(stage string, n int64) {
	m.done = min(m.done+n, m.total)
	if m.tell == nil {
		return
	}
	p := Progress{Stage: stage, Done: m.done, Total: m.total}
	// The first moments say little about the rest.
	if spent := time.Since(m.begun); spent > time.Second/2 && m.done > 0 {
		p.Left = time.Duration(float64(spent) / float64(m.done) * float64(m.total-m.done))
	}
	m.tell(p)
}
