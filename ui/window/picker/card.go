// Package picker is the card that shows which folder has been chosen, and takes another.
package picker

import (
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"firesteel/ui/window/look"
)

// Show is what a card says.
type Show struct {
	Name   string // "Firesteel Demo"
	Detail string // right of the name: "14 M", "γ 7"
	About  string // "Gemma 4 · bf16 · 28 MB"
	Note   string // one sentence, under the rest
	Bad    bool   // the folder can't be used; Note says why and what to do
	Loaded bool   // it is in memory now
}

// Card is the widget. All methods belong to the UI thread.
type Card struct {
	widget.BaseWidget
	OnTapped func()

	show             Show
	hovered, focused bool
	name             *look.Text
	detail           *look.Text
	about            *look.Text
	arrow            *look.Text
	note             *widget.Label
	noteBox          *fyne.Container
	content          *fyne.Container
}

// NewCard returns an empty card.
func NewCard() *Card {
	c := &Card{name: look.NewText(""), detail: look.Caption(""), about: look.Caption(""), arrow: look.Caption("▾"), note: widget.NewLabel("")}
	c.ExtendBaseWidget(c)
	c.name.Bold, c.name.Shrink, c.about.Shrink = true, true, true
	c.note.Wrapping = fyne.TextWrapWord
	c.note.SizeName = theme.SizeNameCaptionText
	c.noteBox = look.Pad(-4, -look.Inset, -look.Inset, -look.Inset, c.note)
	c.content = look.Pad(10, 10, 12, 12, look.Rows(2, look.Line(look.Unit, 0, c.name, c.detail, c.arrow), c.about, c.noteBox))
	c.Set(Show{})
	return c
}

// Set replaces what the card says.
func (c *Card) Set(s Show) {
	c.show = s
	c.name.Set(s.Name)
	c.detail.Set(s.Detail)
	c.about.Set(s.About)
	show(c.about, s.About != "")
	c.name.Paint(theme.ColorNameForeground)
	if s.Name == "" {
		c.name.Set("Choose a folder")
		c.name.Paint(look.ColorMuted)
	}
	c.note.Importance = widget.LowImportance
	if s.Bad {
		c.note.Importance = widget.DangerImportance
		c.name.Paint(theme.ColorNameError)
	}
	c.note.SetText(s.Note)
	show(c.noteBox, s.Note != "")
	c.content.Refresh()
	c.Refresh()
}

func show(o fyne.CanvasObject, yes bool) {
	if yes {
		o.Show()
	} else {
		o.Hide()
	}
}

// Shown returns what the card says.
func (c *Card) Shown() Show { return c.show }

// The methods below are called by Fyne.

func (c *Card) Tapped(*fyne.PointEvent) {
	if c.OnTapped != nil {
		c.OnTapped()
	}
}
func (c *Card) MouseIn(*desktop.MouseEvent)    { c.hovered = true; c.Refresh() }
func (c *Card) MouseMoved(*desktop.MouseEvent) {}
func (c *Card) MouseOut()                      { c.hovered = false; c.Refresh() }
func (c *Card) Cursor() desktop.Cursor         { return desktop.PointerCursor }
func (c *Card) FocusGained()                   { c.focused = true; c.Refresh() }
func (c *Card) FocusLost()                     { c.focused = false; c.Refresh() }
func (c *Card) TypedRune(rune)                 {}
func (c *Card) TypedKey(k *fyne.KeyEvent) {
	if k.Name == fyne.KeySpace || k.Name == fyne.KeyReturn || k.Name == fyne.KeyEnter {
		c.Tapped(nil)
	}
}

// CreateRenderer is Fyne's way to draw the widget.
func (c *Card) CreateRenderer() fyne.WidgetRenderer {
	r := &renderer{c: c, box: canvas.NewRectangle(color.Transparent), mark: canvas.NewRectangle(color.Transparent)}
	r.box.CornerRadius = 8
	r.mark.CornerRadius = 2
	r.update()
	return r
}

type renderer struct {
	c    *Card
	box  *canvas.Rectangle
	mark *canvas.Rectangle // at the left edge while the folder is in memory
}

func (r *renderer) update() {
	r.box.FillColor = look.Color(look.ColorCard)
	r.box.StrokeColor, r.box.StrokeWidth = look.Color(look.ColorEdge), 1
	r.mark.FillColor = color.Transparent
	switch {
	case r.c.show.Bad:
		r.box.FillColor = look.Color(look.ColorNotice)
		r.box.StrokeColor = look.Color(theme.ColorNameError)
	case r.c.show.Loaded:
		r.mark.FillColor = look.Color(theme.ColorNameSuccess)
	}
	if r.c.focused || r.c.hovered {
		r.box.StrokeColor = look.Color(theme.ColorNamePrimary)
	}
}

func (r *renderer) MinSize() fyne.Size { return r.c.content.MinSize() }
func (r *renderer) Layout(size fyne.Size) {
	r.box.Resize(size)
	r.mark.Move(fyne.NewPos(4, 10))
	r.mark.Resize(fyne.NewSize(3, max(0, size.Height-20)))
	r.c.content.Resize(size)
}
func (r *renderer) Refresh() {
	r.update()
	canvas.Refresh(r.box)
	canvas.Refresh(r.mark)
}
func (r *renderer) Objects() []fyne.CanvasObject {
	return []fyne.CanvasObject{r.box, r.mark, r.c.content}
}
func (r *renderer) Destroy() {}
