//go:build pictures

package window

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/app"
	"fyne.io/fyne/v2/dialog"

	"firesteel/ui/window/look"
	"firesteel/ui/window/settings"
)

// picturesIn names the folder that pictures go to; picturesOf, a part of the scenes' names, leaves
// out the others. scripts/pictures.sh sets them.
const (
	picturesIn = "FIRESTEEL_PICTURES"
	picturesOf = "FIRESTEEL_PICTURES_OF"
)

// TestMain leaves the main goroutine to Fyne's real driver while the tests run, if there is
// anything to take pictures of.
func TestMain(m *testing.M) {
	if os.Getenv(picturesIn) == "" {
		os.Exit(m.Run())
	}
	status := 1
	a := app.NewWithID(ID + ".pictures")
	a.Lifecycle().SetOnStarted(func() {
		go func() {
			status = m.Run()
			fyne.Do(a.Quit)
		}()
	})
	a.Run()
	os.Exit(status)
}

// guest is the app as a window sees it that is one of several: closing it must not end the app.
type guest struct{ fyne.App }

func (g guest) NewWindow(title string) fyne.Window { return guestWindow{g.App.NewWindow(title)} }

type guestWindow struct{ fyne.Window }

func (guestWindow) SetMaster() {}

// loud is a test whose fatal errors also end a scene that is played on another goroutine.
type loud struct{ *testing.T }

func (l loud) Fatalf(format string, values ...any) {
	panic(l.Name() + ": " + fmt.Sprintf(format, values...))
}

// scene is a state of the window that is worth a picture.
type scene struct {
	name string
	core func() *scripted // nil: one that answers at once
	// play brings the window there, on Fyne's thread; the pair that comes with the app is loaded.
	play func(s *stage)
}

// shapes are the sizes that each scene is looked at in: windows in pixels, text in percent.
var shapes = []struct {
	name          string
	width, height float32
	text          int
}{{"1280x800", 1280, 800, 100}, {"1000x700", 1000, 700, 100}, {"1280x800-large", 1280, 800, 130}}

func TestPictures(t *testing.T) {
	folder := os.Getenv(picturesIn)
	if folder == "" {
		t.Skip(picturesIn + " names no folder")
	}
	var before *stage
	for _, c := range scenes {
		if !strings.Contains(c.name, os.Getenv(picturesOf)) {
			continue
		}
		for _, shape := range shapes {
			home, err := os.MkdirTemp("", "mia")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(home) })
			t.Setenv("HOME", home)
			path := filepath.Join(home, "settings.json")
			if err := (settings.Settings{Width: shape.width, Height: shape.height, Theme: string(look.Light), TextSize: shape.text}).Save(path); err != nil {
				t.Fatal(err)
			}
			core := &scripted{}
			if c.core != nil {
				core = c.core()
			}
			var s *stage
			fyne.DoAndWait(func() {
				s = openOn(loud{t}, guest{fyne.CurrentApp()}, core, path)
				if before != nil {
					before.win.Close()
				}
			})
			before = s
			settle()
			fyne.DoAndWait(func() {
				s.until("the pair is loaded", func() bool { return s.models.loaded.Target != nil })
				s.until("what the models take is read", func() bool { return s.models.reading.Target > 0 })
				c.play(s)
			})
			for _, mode := range []look.Mode{look.Light, look.Dark} {
				var size fyne.Size
				fyne.DoAndWait(func() {
					if s.theme.Mode != mode {
						s.setTheme(mode)
					}
					size = s.win.Canvas().Size()
				})
				settle()
				if size.Width != shape.width || size.Height != shape.height {
					t.Errorf("%s: the window is %v×%v and not %s", c.name, size.Width, size.Height, shape.name)
				}
				fyne.DoAndWait(func() { s.fits(c.name + " at " + shape.name) })
				name := filepath.Join(folder, fmt.Sprintf("%s-%s-%s.png", c.name, shape.name, mode))
				if out, err := exec.Command("import", "-window", "Firesteel", name).CombinedOutput(); err != nil {
					t.Fatalf("import: %v, %s", err, out)
				}
			}
			fyne.DoAndWait(s.shutDown)
		}
	}
}

// settle waits until what has changed is on the screen.
func settle() { time.Sleep(400 * time.Millisecond) }

// fits says of a dialog on the screen when the window is too small for it.
func (s *stage) fits(where string) {
	if d, ok := s.dialog.(dialog.Dialog); ok && d != nil {
		if m, size := d.MinSize(), s.win.Canvas().Size(); m.Width > size.Width || m.Height > size.Height {
			s.t.Errorf("%s: the dialog needs %v of %v", where, m, size)
		}
	}
}
