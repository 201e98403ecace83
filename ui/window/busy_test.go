package window

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"firesteel/core/engine"
	"firesteel/core/job"
	"firesteel/core/quantize"
)

// slow is a core that takes its time over everything, from slowly on.
type slow struct {
	*scripted
	slowly atomic.Bool
	goOn   chan struct{} // lets one call go on
	begun  chan struct{} // a call has begun
}

// long is how long a call takes at most. On the window's thread it would hold everything up.
const long = 5 * time.Second

func (s *slow) wait() {
	if !s.slowly.Load() {
		return
	}
	s.begun <- struct{}{}
	select {
	case <-s.goOn:
	case <-time.After(long):
	}
}

func (s *slow) Load(ctx context.Context, r engine.LoadRequest) (engine.Loaded, error) {
	s.wait()
	return s.scripted.Load(ctx, r)
}

func (s *slow) Unload(ctx context.Context) error {
	s.wait()
	return s.scripted.Unload(ctx)
}

func (s *slow) Generate(ctx context.Context, r engine.Request, emit func(engine.Event)) (engine.Result, error) {
	s.wait()
	return s.scripted.Generate(ctx, r, emit)
}

func (s *slow) Quantize(ctx context.Context, p *quantize.Plan, tell func(job.Progress)) (quantize.Result, error) {
	s.wait()
	return s.scripted.Quantize(ctx, p, tell)
}

// However long the models take, the window goes on hearing: what is to happen on its thread each
// 100 ms happens.
func TestTheWindowHearsWhileModelsAreSlow(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	core := &slow{scripted: &scripted{}, goOn: make(chan struct{}), begun: make(chan struct{}, 1)}
	core.slowly.Store(true) // opening is slow too
	s := openWith(t, core.scripted, t.TempDir()+"/settings.json", func(o *Options) {
		o.Open = func() (Core, error) {
			core.wait()
			return core, nil
		}
	})
	var latest atomic.Int64
	ticks := 0
	stop := make(chan struct{})
	var ticking sync.WaitGroup
	defer ticking.Wait()
	defer close(stop)
	ticking.Go(func() {
		each := time.NewTicker(100 * time.Millisecond)
		defer each.Stop()
		for {
			select {
			case <-stop:
				return
			case at := <-each.C:
				s.post(func() {
					ticks++
					latest.Store(max(latest.Load(), int64(time.Since(at))))
				})
			}
		}
	})
	// hears waits for some ticks in the middle of a call and then for the end of it.
	hears := func(doing string, over func() bool) {
		t.Helper()
		s.until(doing+" begins", func() bool { return len(core.begun) > 0 })
		<-core.begun
		from := ticks
		s.until("time passes while "+doing, func() bool { return ticks >= from+3 })
		select {
		case core.goOn <- struct{}{}:
		case <-time.After(2 * long):
			t.Errorf("%s has held the window up", doing)
		}
		s.until(doing+" ends", over)
	}
	hears("starting", func() bool { return s.core != nil })
	hears("loading", s.asLoaded)
	s.typeAndSend("Hello")
	hears("writing", s.idle)
	s.quantizeDrafter()
	s.until("the sizes are there", func() bool { return s.jobs.form.plan != nil })
	s.press("Quantize")
	hears("quantizing", func() bool { return !s.jobs.running() })
	s.closeSheet()
	s.unload()
	hears("unloading", func() bool { return s.models.loaded.Target == nil })
	core.slowly.Store(false)
	if late := time.Duration(latest.Load()); late > long/2 {
		t.Errorf("what was to happen happened %v late", late)
	}
}

// However many reports of progress come from however many threads, and whenever the window closes
// meanwhile, nothing waits for the window and nothing touches it afterwards.
func TestClosingAmongManyReports(t *testing.T) {
	const threads, each = 4, 250
	for name, begin := range map[string]func(s *stage, core *scripted, report func(func(n int64))){
		"loading": func(s *stage, core *scripted, report func(func(n int64))) {
			core.load = func(ctx context.Context, r engine.LoadRequest) error {
				report(func(n int64) { r.Progress(n, each) })
				return ctx.Err()
			}
			s.choose(drafter, "")
			s.until("looked at", func() bool { return !s.choosing() && s.usable() })
			s.askLoad()
		},
		"quantizing": func(s *stage, core *scripted, report func(func(n int64))) {
			core.quantize = func(ctx context.Context, p *quantize.Plan, tell func(job.Progress)) (quantize.Result, error) {
				report(func(n int64) { tell(job.Progress{Stage: "packing", Done: n, Total: each, Left: time.Second}) })
				return quantize.Result{}, ctx.Err()
			}
			s.quantizeDrafter()
			s.until("the sizes are there", func() bool { return s.jobs.form.plan != nil })
			s.press("Quantize")
		},
		"writing": func(s *stage, core *scripted, report func(func(n int64))) {
			core.generate = func(ctx context.Context, r engine.Request, emit func(engine.Event)) (engine.Result, error) {
				report(func(n int64) { emit(engine.Text{Delta: "word "}) })
				return engine.Result{}, ctx.Err()
			}
			s.typeAndSend("Go on.")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HOME", t.TempDir())
			core := &scripted{}
			s := open(t, core)
			var reported atomic.Int64
			closed := make(chan struct{})
			begin(s, core, func(report func(n int64)) {
				var all sync.WaitGroup
				for range threads {
					all.Go(func() {
						for n := range int64(each) {
							report(n)
							if reported.Add(1) == threads*each/2 {
								<-closed // the others race with the closing
							}
						}
					})
				}
				all.Wait()
			})
			s.until("half of it is reported", func() bool { return reported.Load() >= threads*each/2 })
			close(closed)
			s.leave()
			s.shutDown()
			if n := reported.Load(); n != threads*each {
				t.Errorf("%d of %d reports came through", n, threads*each)
			}
			for len(s.queue) > 0 {
				(<-s.queue)()
			}
			before := texts(s.content)
			s.later(func() { s.say("too late") })
			if len(s.queue) > 0 || texts(s.content) != before {
				t.Error("the window is touched after it has closed")
			}
		})
	}
}

// A job that fails on its own thread says so without getting into the way of what the person does then.
func TestAJobFailsBehindAQuestion(t *testing.T) {
	gate := make(chan struct{})
	core := &scripted{quantize: func(context.Context, *quantize.Plan, func(job.Progress)) (quantize.Result, error) {
		<-gate
		return quantize.Result{}, &job.RoomError{Folder: "/somewhere", Need: 4e9, Free: 1e9}
	}}
	s, _ := quantizing(t, core)
	s.press("Quantize")
	s.press("Go On in the Background")
	s.quit()
	asked := s.dialog
	if asked == nil {
		t.Fatal("it did not ask")
	}
	close(gate)
	s.until("it has failed", func() bool { return !s.jobs.running() })
	if s.dialog != asked || s.jobs.open != nil {
		t.Error("something else is on the screen now")
	}
	if said := s.status.Text(); !strings.HasPrefix(said, "Quantizing failed: There is not enough room in /somewhere") {
		t.Errorf("it says %q", said)
	}
	asked.Hide()

	// And one that fails while its sheet is open says so there.
	core.quantize = func(context.Context, *quantize.Plan, func(job.Progress)) (quantize.Result, error) {
		return quantize.Result{}, errors.New("something that nobody foresaw")
	}
	s.quantizeDrafter()
	s.until("the sizes are there", func() bool { return s.jobs.form.plan != nil })
	s.press("Quantize")
	s.until("it has failed", func() bool { return !s.jobs.running() })
	if s.jobs.open == nil {
		t.Error("the sheet is not open")
	}
	s.reads("The details say more")
	s.closeSheet()
	s.typeAndSend("Hello")
	s.until("it writes all the same", s.idle)
}
