// Package sheet is the frame of a job's sheet: what is asked first, how far it is, and how it
// ended. It knows no job; the window fills it. Everything belongs to Fyne's thread.
package sheet

import (
	"fmt"
	"math"
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/layout"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"firesteel/ui/window/look"
)

// width of every sheet at a text size of 100 %.
const width = 480

// gap is what lies between body, note and buttons.
const gap = 16

// Sheet shows one face at a time: the form, the progress, or the end.
type Sheet struct {
	Content *fyne.Container // to be put into a dialog without buttons of its own

	Title string
	// Room is how high the sheet may be, in Fyne's pixels; what is higher scrolls. nil: any height.
	Room func() float32
	// OnChanged, which may be nil, hears that the sheet may need another height.
	OnChanged func()

	width    float32 // at a text size of 100 %
	body     *fyne.Container
	note     *widget.Label // what is wrong, under the body
	buttons  *fyne.Container
	bar      *look.Bar
	stage    *look.Text
	left     *look.Text
	progress fyne.CanvasObject
}

// New is a sheet of that title, empty yet.
func New(title string) *Sheet { return NewWide(title, width) }

// NewWide is a sheet of a width of its own, in Fyne's pixels.
func NewWide(title string, width float32) *Sheet {
	s := &Sheet{Title: title, width: width, body: look.Rows(12), note: look.Sentences(""), bar: look.NewBar(), stage: look.NewText(""), left: look.Caption("")}
	s.stage.Shrink = true
	s.buttons = container.NewHBox()
	s.progress = look.Rows(8, s.stage, s.bar, s.left)
	// What scrolls reaches into the edges, so that it doesn't cut off what stands out of the column.
	const edge = 8
	scrolls := look.Pad(0, 0, -edge, -edge, look.UpTo(s.roomForBody, look.Pad(0, 0, edge, edge, s.body)))
	s.Content = look.Fixed(width, 0, look.Pad(4, 4, edge, edge, look.Rows(gap, scrolls, s.note, s.buttons)))
	s.note.Hide()
	return s
}

func (s *Sheet) roomForBody() float32 {
	if s.Room == nil {
		return math.MaxFloat32
	}
	rest := s.buttons.MinSize().Height + gap
	if s.note.Visible() {
		rest += s.note.MinSize().Height + gap
	}
	return s.Room() - rest
}

// Widen makes the sheet as wide as text needs that is larger by a factor.
func (s *Sheet) Widen(factor float32) {
	s.Content.Layout = look.FixedLayout(s.width*factor, 0)
	s.Content.Refresh()
}

// Button is something that can be pressed at the foot of a sheet.
type Button struct {
	Label   string
	Pressed func()
	Main    bool // the one that stands out
	Off     bool
}

// Show puts content and buttons into the sheet; the last button stands at the right.
func (s *Sheet) Show(content fyne.CanvasObject, buttons ...Button) {
	s.body.Objects = []fyne.CanvasObject{content}
	s.Note("", false)
	s.Buttons(buttons...)
}

// Buttons replaces the buttons alone.
func (s *Sheet) Buttons(buttons ...Button) {
	s.buttons.Objects = []fyne.CanvasObject{layout.NewSpacer()}
	for _, b := range buttons {
		w := widget.NewButton(b.Label, b.Pressed)
		if b.Main {
			w.Importance = widget.HighImportance
		}
		if b.Off {
			w.Disable()
		}
		s.buttons.Add(w)
	}
	s.changed()
}

func (s *Sheet) changed() {
	s.Content.Refresh()
	if s.OnChanged != nil {
		s.OnChanged()
	}
}

// Note shows a sentence under the body, in red where it is about something wrong; "" hides it.
func (s *Sheet) Note(sentence string, wrong bool) {
	s.note.Importance = widget.MediumImportance
	if wrong {
		s.note.Importance = widget.DangerImportance
	}
	s.note.SetText(sentence)
	if sentence == "" {
		s.note.Hide()
	} else {
		s.note.Show()
	}
	s.changed()
}

// Working shows the progress with its buttons.
func (s *Sheet) Working(stage string, buttons ...Button) {
	s.stage.Set(stage)
	s.bar.Set(0)
	s.left.Set("")
	s.Show(s.progress, buttons...)
}

// Below puts o under what the sheet shows, until it shows something else.
func (s *Sheet) Below(o fyne.CanvasObject) {
	s.body.Add(o)
	s.changed()
}

// Progress tells how far it is: a share from 0 to 1 and, in words, what that is.
func (s *Sheet) Progress(stage string, share float64, detail string) {
	s.stage.Set(stage)
	s.bar.Set(share)
	s.left.Set(detail)
}

// Ended shows how it ended, in one sentence, with a second that is smaller.
func (s *Sheet) Ended(sentence, more string, buttons ...Button) {
	rows := []fyne.CanvasObject{look.Tight(look.Sentences(sentence))}
	if more != "" {
		second := look.Sentences(more)
		second.SizeName = theme.SizeNameCaptionText
		rows = append(rows, look.Tight(second))
	}
	s.Show(look.Rows(8, rows...), buttons...)
}

// Field is a named line of a form.
func Field(name string, o fyne.CanvasObject) fyne.CanvasObject {
	return look.Rows(4, look.Heading(strings.ToUpper(name)), o)
}

// Left writes a time that is left for people: "12 s left", "3 min left".
func Left(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d < 90*time.Second:
		return fmt.Sprintf("%.0f s left", max(1, d.Seconds()))
	case d < 90*time.Minute:
		return fmt.Sprintf("%.0f min left", d.Minutes())
	}
	return fmt.Sprintf("%.1f h left", d.Hours())
}
