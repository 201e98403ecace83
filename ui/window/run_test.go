package window

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"firesteel/core/job"
	"firesteel/core/quantize"
	"firesteel/core/thread"
	"firesteel/ui/window/settings"
)

func TestDropCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "preferences.json")
	dropCutOff(path) // not there yet
	for content, stays := range map[string]bool{"": false, `{"fyne:`: false, "{}\n": true} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		dropCutOff(path)
		if _, err := os.Stat(path); (err == nil) != stays {
			t.Errorf("%q: stays %v", content, err == nil)
		}
	}
}

// quitting is an app that notes when it is asked to quit. Fyne's own for tests has no loop to end.
type quitting struct {
	fyne.App
	quit chan struct{}
}

func (q quitting) Quit() { close(q.quit) }

// Whichever way the app ends in the middle of a job, nothing is left where its result was to be, what
// it was made from is as it was, and the settings are kept.
func TestEndingDuringAJobLeavesNothingHalfMade(t *testing.T) {
	inference, err := thread.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer inference.Close()
	for name, end := range map[string]func(s *stage){
		"the window or the menu": func(s *stage) {
			s.quit()
			test.Tap(findButton(s.t, s.win.Canvas().Overlays().Top(), "Quit"))
		},
		"the system's Quit": func(s *stage) { s.app.Quit() },
		"a signal": func(s *stage) {
			if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("HOME", home)
			place, source := filepath.Join(home, "copies"), filepath.Join(home, "drafter")
			if err := os.Mkdir(place, 0o700); err != nil {
				t.Fatal(err)
			}
			copyFolder(t, filepath.Join(pairFolder, "drafter"), source)
			path := filepath.Join(home, "settings", "settings.json")
			if err := (settings.Settings{Drafter: source}).Save(path); err != nil {
				t.Fatal(err)
			}
			at := make(chan struct{})
			ended := make(chan error, 1)
			core := &scripted{}
			core.quantize = func(ctx context.Context, p *quantize.Plan, tell func(job.Progress)) (quantize.Result, error) {
				var once sync.Once
				r, err := quantize.Run(ctx, inference, p, func(how job.Progress) {
					tell(how)
					if how.Done > how.Total/2 {
						once.Do(func() { close(at) })
						<-ctx.Done() // it is slow from here on
					}
				})
				ended <- err
				return r, err
			}
			s := openWith(t, core, path)
			app := quitting{s.app, make(chan struct{})}
			s.app = app
			defer s.heed()()
			s.until("the pair is loaded", s.asLoaded)
			list := sealed(t, source)
			before := list()
			s.knobs.temperature.Type("0.4")
			s.quantizeDrafter()
			s.until("the sizes are there", func() bool { return s.jobs.form.plan != nil })
			s.jobs.form.plan = nil
			s.jobs.form.to.SetText(filepath.Join(place, "smaller"))
			s.until("the sizes are there again", func() bool { return s.jobs.form.plan != nil })
			s.press("Quantize")
			reached := func() bool {
				select {
				case <-at:
					return true
				default:
					return false
				}
			}
			s.until("half of it is done", reached)
			if half, err := os.ReadDir(place); err != nil || len(half) != 1 {
				t.Fatalf("nothing is being made: %v, %v", half, err)
			}

			end(s)
			select {
			case <-app.quit:
			case <-time.After(10 * time.Second):
				t.Fatal("the app does not quit")
			}
			s.app.Lifecycle().(interface{ OnStopped() func() }).OnStopped()() // as Fyne's loop does on its way out
			select {
			case err := <-ended:
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			default:
				t.Error("the job goes on")
			}
			if left, err := os.ReadDir(place); err != nil || len(left) != 0 {
				t.Errorf("%v is left, %v", left, err)
			}
			if after := list(); after != before {
				t.Errorf("before\n%safter\n%s", before, after)
			}
			if kept, err := settings.Load(path); err != nil || kept.Temperature == nil || *kept.Temperature != 0.4 || kept.Drafter != source {
				t.Errorf("kept is %+v, %v", kept, err)
			}
		})
	}
}
