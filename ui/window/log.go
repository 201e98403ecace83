package window

import (
	"errors"
	"io"
	"log/slog"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"firesteel/models/chat"
	"firesteel/ui/window/logfile"
	"firesteel/ui/window/look"
	"firesteel/ui/window/sheet"
)

// newLogger records everything in f, and on terminal what a person there should know. Records hold
// folders, figures and errors, never what a person or a model has written.
func newLogger(f logfile.File, terminal io.Writer) *slog.Logger {
	return slog.New(slog.NewMultiHandler(
		slog.NewTextHandler(f, &slog.HandlerOptions{ReplaceAttr: forLog}),
		slog.NewTextHandler(terminal, &slog.HandlerOptions{ReplaceAttr: forLog, Level: slog.LevelWarn})))
}

// forLog writes times in short, and leaves out what a model's template says of a chat: it may quote it.
func forLog(groups []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey && len(groups) == 0 {
		return slog.String(a.Key, a.Value.Time().Format(time.DateTime))
	}
	var template *chat.TemplateError
	if err, ok := a.Value.Any().(error); ok && errors.As(err, &template) {
		quiet := *template
		quiet.Message = "the chat template fails"
		if template.Refused {
			quiet.Message = "the chat template refuses this conversation"
		}
		return slog.Any(a.Key, &quiet)
	}
	return a
}

// record is the beginning of a line in the log: when, how grave, and what.
var record = regexp.MustCompile(`(?m)^time="([^"]+)" level=(\w+) msg=("(?:[^"\\]|\\.)*"|\S+)`)

// readable writes the beginning of a line without the names of its parts.
func readable(beginning string) string {
	part := record.FindStringSubmatch(beginning)
	what := part[3]
	if plain, err := strconv.Unquote(what); err == nil {
		what = plain
	}
	if part[2] != slog.LevelInfo.String() {
		what = part[2] + " " + what
	}
	return part[1] + "  " + what + " "
}

// shownOfLog is how many bytes of the log its sheet shows, at most: laying more out would take a
// while.
const shownOfLog = 12 << 10

// showLog opens the sheet with the newest lines of the log.
func (w *Window) showLog() {
	s := sheet.NewWide("Log", 640)
	lines := widget.NewLabel("")
	lines.SizeName, lines.Selectable, lines.Wrapping = theme.SizeNameCaptionText, true, fyne.TextWrapWord
	lines.TextStyle.Monospace = true
	scroll := container.NewVScroll(lines)
	about := look.Sentences("What Firesteel did, the newest last. What you and the models write is never in it.")
	path := widget.NewLabel(w.log.Path())
	path.SizeName, path.Selectable, path.Wrapping = theme.SizeNameCaptionText, true, fyne.TextWrapBreak
	var d dialog.Dialog
	s.Show(look.Rows(12, look.Tight(about),
		container.NewStack(look.NewPanel(look.ColorCode, look.ColorEdge, 6), look.Fixed(0, 280, scroll)), look.Tight(path)),
		sheet.Button{Label: "Copy", Pressed: func() {
			w.app.Clipboard().SetContent(lines.Text)
			s.Note("Copied.", false)
		}},
		sheet.Button{Label: "Show in Folder", Pressed: func() { w.reveal(s) }},
		sheet.Button{Label: "Close", Pressed: func() { d.Hide() }})
	d = w.openSheet(s)
	w.spawn(func() {
		closed := w.log.Writable()
		text, err := w.log.Last(shownOfLog)
		w.later(func() {
			switch {
			case closed != nil:
				s.Note("Nothing is recorded, for Firesteel can't write there. Everything else works.", true)
			case err != nil:
				s.Note(oneLine(err), true)
			}
			lines.SetText(record.ReplaceAllStringFunc(text, readable))
			scroll.ScrollToBottom()
		})
	})
}

// reveal shows the log in the system's file manager.
func (w *Window) reveal(s *sheet.Sheet) {
	show := exec.Command("xdg-open", filepath.Dir(w.log.Path()))
	if runtime.GOOS == "darwin" {
		show = exec.Command("/usr/bin/open", "-R", w.log.Path())
	}
	// Not through spawn: a file manager may be open for longer than the window.
	go func() {
		if err := show.Run(); err != nil {
			slog.Warn("showing the log's folder", "error", err)
			w.later(func() { s.Note("The folder can't be opened from here. Its name is above.", true) })
		}
	}()
}
