package window

import (
	"errors"
	"fmt"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/widget"

	"firesteel/core/library"
	"firesteel/core/prompts"
	"firesteel/ui/window/look"
)

// Where prompts come from.
const (
	fromApp   = "Firesteel's own"
	fromChats = "my own chats"
	fromFile  = "a file"
)

// source is the part of a job's form that asks where its prompts come from.
type source struct {
	content fyne.CanvasObject

	w       *Window
	kind    *widget.RadioGroup
	file    *widget.Entry
	row     fyne.CanvasObject // of file
	about   *look.Text        // what the choice amounts to
	chats   string            // how many are kept, in words
	reading bool
}

// newSource asks for prompts; those that come with the app to begin with.
func (w *Window) newSource() *source {
	s := &source{w: w, file: widget.NewEntry(), about: look.Caption(""), kind: widget.NewRadioGroup([]string{fromApp, fromChats, fromFile}, nil)}
	s.kind.Horizontal, s.kind.Required = true, true
	s.about.Shrink = true
	s.file.SetPlaceHolder("one prompt a line")
	choose := look.NewTextButton("Choose…", func() {
		w.showDialog(dialog.NewFileOpen(func(file fyne.URIReadCloser, err error) {
			w.showSheet()
			if file != nil {
				s.take(file.URI().Path())
				file.Close()
			}
		}, w.win))
	})
	s.row = look.Line(8, 0, s.file, choose)
	s.content = look.Rows(4, look.Tight(s.kind), s.row, s.about)
	s.kind.OnChanged = func(string) { s.show() }
	s.kind.SetSelected(fromApp)
	w.keptWords(func(words string) {
		if s.chats = words; words == "" {
			s.chats = "None are kept yet; Settings… can have them kept from now on."
		}
		s.show()
	})
	return s
}

// take chooses a file.
func (s *source) take(path string) {
	s.kind.SetSelected(fromFile)
	s.file.SetText(path)
}

// show shows what belongs to the choice.
func (s *source) show() {
	s.row.Hide()
	switch s.kind.Selected {
	case fromApp:
		s.about.Set(fmt.Sprintf("%d short ones, about nothing in particular.", len(prompts.Builtin())))
	case fromChats:
		s.about.Set(s.chats)
	default:
		s.row.Show()
		s.about.Set(`Text, or JSON with "prompt", "p" and "r", or "messages".`)
	}
	if s.w.jobs.sheet != nil {
		s.w.jobs.sheet.Note("", false)
	}
}

// read reads the prompts in the background, for the target in folder dir, and gives them to take,
// or notes on the sheet what is wrong.
func (s *source) read(dir string, take func([]prompts.Prompt)) {
	w, kind, file := s.w, s.kind.Selected, home(strings.TrimSpace(s.file.Text))
	if kind == fromFile && file == "" {
		w.jobs.sheet.Note("Choose a file of prompts first.", true)
		return
	}
	if s.reading {
		return
	}
	s.reading = true
	sheet := w.jobs.sheet
	w.spawn(func() {
		var list []prompts.Prompt
		var err error
		switch kind {
		case fromApp:
			list = prompts.Builtin()
		case fromChats:
			var identity string
			if identity, err = library.Identity(dir); err == nil {
				list, err = w.chats().Load(identity)
			}
		default:
			list, err = prompts.Load(file)
		}
		w.later(func() {
			s.reading = false
			switch {
			case w.jobs.sheet != sheet || w.jobs.running():
				// Something else has been begun meanwhile.
			case errors.Is(err, prompts.ErrNoChats):
				w.jobs.sheet.Note("No chats are kept yet. Turn that on in Settings…, chat for a while, then come back; or choose other prompts.", true)
			case err != nil:
				w.jobs.sheet.Note(oneLine(err), true)
			default:
				take(list)
			}
		})
	})
}
