package window

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/storage"
	"fyne.io/fyne/v2/widget"

	"firesteel/ui/window/look"
)

// browse lets a person pick a folder: in the system's own panel on macOS, in Fyne's elsewhere
// and where that fails.
func (w *Window) browse(r role) {
	w.browseFor("Choose the folder of a "+r.word(), w.startFolder(r), func(dir string) { w.choose(r, dir) })
}

// browseFor lets a person choose a folder, beginning at start.
func (w *Window) browseFor(title, start string, take func(dir string)) {
	if runtime.GOOS != "darwin" {
		w.browseHere(start, take)
		return
	}
	w.spawn(func() {
		dir, ok := systemPanel(title)
		w.later(func() {
			switch {
			case !ok:
				w.browseHere(start, take)
			case dir != "":
				take(dir)
			}
		})
	})
}

// systemPanel asks for a folder in macOS's panel, shown by a process of its own. ok is false
// when it can't be shown; dir is "" when the person cancelled.
func systemPanel(title string) (dir string, ok bool) {
	script := `POSIX path of (choose folder with prompt "` + title + `")`
	out, err := exec.Command("/usr/bin/osascript", "-e", script).CombinedOutput()
	if err != nil {
		return "", strings.Contains(string(out), "-128") // "User canceled"
	}
	return strings.TrimRight(string(out), "\n"), true
}

func (w *Window) browseHere(start string, take func(dir string)) {
	d := dialog.NewFolderOpen(func(chosen fyne.ListableURI, err error) {
		switch {
		case err != nil:
			w.explain("browsing", err)
		case chosen != nil:
			take(chosen.Path())
		}
	}, w.win)
	if at, err := storage.ListerForURI(storage.NewFileURI(start)); err == nil {
		d.SetLocation(at)
	}
	w.showDialog(d)
	size := w.win.Canvas().Size()
	d.Resize(fyne.NewSize(size.Width*0.8, size.Height*0.8))
}

// startFolder is the folder that holds what is chosen now, or the home folder where that one is gone or
// closed.
func (w *Window) startFolder(r role) string {
	for _, dir := range []string{w.models.choices[r].dir, w.models.choices[target].dir} {
		if dir == "" || dir == w.models.builtin[target] || dir == w.models.builtin[drafter] {
			continue
		}
		if parent := filepath.Dir(home(dir)); listable(parent) {
			return parent
		}
	}
	if dir, err := os.UserHomeDir(); err == nil {
		return dir
	}
	return string(filepath.Separator)
}

// listable tells whether dir is a folder that may be looked into.
func listable(dir string) bool {
	at, err := storage.CanList(storage.NewFileURI(dir))
	return at && err == nil
}

// typePath lets a person type or paste a path.
func (w *Window) typePath(r role) {
	path := widget.NewEntry()
	path.SetPlaceHolder("~/Models/…")
	var d *dialog.ConfirmDialog
	take := func(text string) {
		if text = strings.Trim(text, "\r\n"); !exists(home(text)) {
			text = strings.TrimSpace(text) // blanks that pasting brought along; a name that ends in one is rare
		}
		if text != "" {
			w.choose(r, text)
		}
	}
	path.OnSubmitted = func(text string) {
		d.Hide()
		take(text)
	}
	d = dialog.NewCustomConfirm("Folder of the "+r.word(), "Choose", "Cancel", look.Fixed(520, 0, path), func(yes bool) {
		if yes {
			take(path.Text)
		}
	}, w.win)
	w.showDialog(d)
	w.win.Canvas().Focus(path)
}
