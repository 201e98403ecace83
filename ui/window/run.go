package window

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/app"
	"fyne.io/fyne/v2/dialog"

	"firesteel/ui/window/logfile"
	"firesteel/ui/window/look"
	"firesteel/ui/window/settings"
)

// ID is the name that systems know the app by.
const ID = "dev.firesteel.Firesteel"

// Run opens the window and returns when it has closed, everything has ended and what must be
// remembered is written; at the latest four seconds after a person, or a signal, asked for it.
// It must be called on the main goroutine. A *DisplayError says that there is no screen.
func Run(o Options) (err error) {
	display, err := openDisplay()
	if err != nil {
		return err
	}
	defer display.Close()
	var begun atomic.Bool
	defer func() {
		// Fyne panics where the screen has no OpenGL, or is gone by now.
		if r := recover(); r != nil {
			if begun.Load() {
				panic(r)
			}
			slog.Error("opening the window", "panic", r)
			err = &DisplayError{os.Getenv("DISPLAY")}
		}
	}()
	if o.SettingsPath == "" {
		path, err := settings.Place()
		if err != nil {
			slog.Warn("nothing will be remembered", "error", err)
		}
		o.SettingsPath = path
	}
	// What Fyne and others report by the older package is to be seen on the terminal too.
	slog.SetLogLoggerLevel(slog.LevelWarn)
	slog.SetDefault(newLogger(logfile.File(keepIn(o)), os.Stderr))
	kept, err := settings.Load(o.SettingsPath)
	if err != nil && o.SettingsPath != "" {
		slog.Warn("settings could not be read", "error", err)
	}
	// Fyne complains where the system's folder for caches has yet to be made.
	if dir, err := os.UserCacheDir(); err == nil {
		os.MkdirAll(filepath.Join(dir, "fyne"), 0o700)
	}
	dropCutOff(preferences())
	a := app.NewWithID(ID)
	if len(o.Icon) > 0 {
		a.SetIcon(fyne.NewStaticResource("Icon.png", o.Icon))
	}
	var over atomic.Bool
	w := newWindow(a, o, kept, func(f func()) {
		if !over.Load() {
			fyne.Do(f)
		}
	})

	defer w.heed()()
	a.Lifecycle().SetOnStarted(func() {
		begun.Store(true)
		display.Close()
		w.start()
	})
	w.win.ShowAndRun()
	over.Store(true)
	w.shutDown()
	return nil
}

// heed has each way to end the app lead to shutDown: closing the window, quitting, signals. The function
// that it returns stops heeding signals.
func (w *Window) heed() (stop func()) {
	w.win.SetCloseIntercept(w.quit)
	w.app.Lifecycle().SetOnStopped(w.shutDown)
	signals, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-over:
			return
		case <-signals:
		}
		// Fyne catches signals too, but waits for the screen; this also ends a window that hangs.
		fyne.Do(w.app.Quit)
		select {
		case <-over:
		case <-time.After(4 * time.Second):
			os.Exit(0)
		}
	}()
	return func() {
		signal.Stop(signals)
		close(over)
	}
}

// preferences is the file that Fyne remembers things of its own in, such as the folder browsed last;
// "" where there is none.
func preferences() string {
	dir, err := os.UserConfigDir()
	if runtime.GOOS == "darwin" {
		if dir, err = os.UserHomeDir(); err == nil {
			dir = filepath.Join(dir, "Library", "Preferences")
		}
	}
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "fyne", ID, "preferences.json")
}

// dropCutOff removes a JSON file that is not whole. Fyne empties its preferences before it writes
// them anew, each time the app ends, and complains at the next start where it got no further.
func dropCutOff(path string) {
	if data, err := os.ReadFile(path); err == nil && !json.Valid(data) {
		os.Remove(path)
	}
}

// quit ends the app from the window or the menu; it asks while something is at work.
func (w *Window) quit() {
	at := ""
	switch {
	case w.writing.turn != nil && w.jobs.running():
		at = "An answer is being written and a job is at work (" + w.jobs.name + "). What is written is kept. About the job: " + w.jobs.after
	case w.writing.turn != nil:
		at = "An answer is being written. What is there so far is kept and offered at the next start."
	case w.jobs.running():
		at = w.jobs.name + " is not done. " + w.jobs.after
	default:
		w.leave()
		return
	}
	text := look.Sentences(at)
	w.showDialog(dialog.NewCustomConfirm("Quit now?", "Quit", "Keep going", look.Fixed(400, 0, text), func(yes bool) {
		if yes {
			w.leave()
		}
	}, w.win))
}

// leave ends the app: what is written is kept, a job is cancelled.
func (w *Window) leave() {
	w.save()
	if w.writing.turn != nil {
		w.writing.kept = time.Time{} // to the last word
		w.keep()
	}
	w.stop()
	w.app.Quit()
}

// DisplayError says that there is no screen to open a window on.
type DisplayError struct {
	Display string // the value of DISPLAY
}

func (e *DisplayError) Error() string {
	const instead = "start it where there is one, or write without a window: firesteel generate --prompt TEXT"
	if e.Display == "" {
		return "there is no screen to open a window on, DISPLAY is not set; " + instead
	}
	return fmt.Sprintf("the screen DISPLAY=%s can't be opened; %s", e.Display, instead)
}
