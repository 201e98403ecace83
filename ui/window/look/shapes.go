package look

import (
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"
)

// Text is one line of text that follows the theme and ends in … where it doesn't fit.
type Text struct {
	widget.BaseWidget
	content string
	Sizing  fyne.ThemeSizeName
	Color   fyne.ThemeColorName
	Bold    bool
	Align   fyne.TextAlign
	Shrink  bool // may become narrower than its text
}

// NewText returns a line in the theme's text size and colour.
func NewText(content string) *Text {
	t := &Text{content: content, Sizing: theme.SizeNameText, Color: theme.ColorNameForeground}
	t.ExtendBaseWidget(t)
	return t
}

// Caption returns a small line in the colour that stands back.
func Caption(content string) *Text {
	t := NewText(content)
	t.Sizing, t.Color = theme.SizeNameCaptionText, ColorMuted
	return t
}

// Heading returns a small bold line above a group.
func Heading(content string) *Text {
	t := Caption(content)
	t.Bold = true
	return t
}

// Set replaces the text.
func (t *Text) Set(content string) {
	if t.content != content {
		t.content = content
		t.Refresh()
	}
}

// Paint replaces the colour.
func (t *Text) Paint(name fyne.ThemeColorName) {
	if t.Color != name {
		t.Color = name
		t.Refresh()
	}
}

// Text returns the whole text, also where it is shown shortened.
func (t *Text) Text() string { return t.content }

// CreateRenderer is Fyne's way to draw the widget.
func (t *Text) CreateRenderer() fyne.WidgetRenderer {
	r := &textRenderer{t: t, text: canvas.NewText("", color.Black)}
	r.update()
	return r
}

type textRenderer struct {
	t    *Text
	text *canvas.Text
}

func (r *textRenderer) style() (float32, fyne.TextStyle) {
	return Size(r.t.Sizing), fyne.TextStyle{Bold: r.t.Bold}
}

func (r *textRenderer) update() {
	size, style := r.style()
	r.text.TextSize, r.text.TextStyle = size, style
	r.text.Color = Color(r.t.Color)
	r.text.Alignment = r.t.Align
	r.text.Text = fit(r.t.content, r.t.BaseWidget.Size().Width, size, style)
}

// fit shortens s until it is at most width wide, with … at its end.
func fit(s string, width, size float32, style fyne.TextStyle) string {
	if width <= 0 || fyne.MeasureText(s, size, style).Width <= width+0.5 {
		return s
	}
	runes := []rune(s)
	low, high := 0, len(runes)
	for low < high {
		mid := (low + high + 1) / 2
		if fyne.MeasureText(string(runes[:mid])+"…", size, style).Width <= width {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return string(runes[:low]) + "…"
}

func (r *textRenderer) MinSize() fyne.Size {
	size, style := r.style()
	m := fyne.MeasureText(r.t.content, size, style)
	if r.t.Shrink {
		m.Width = min(m.Width, 24)
	}
	return m
}

func (r *textRenderer) Layout(size fyne.Size) {
	r.update()
	r.text.Resize(size)
}
func (r *textRenderer) Refresh()                     { r.update(); canvas.Refresh(r.text) }
func (r *textRenderer) Objects() []fyne.CanvasObject { return []fyne.CanvasObject{r.text} }
func (r *textRenderer) Destroy()                     {}

// Panel is a filled, rounded rectangle that follows the theme.
type Panel struct {
	widget.BaseWidget
	Fill, Edge fyne.ThemeColorName // "" draws nothing
	Radius     float32
}

// NewPanel returns a panel; edge "" leaves the outline away.
func NewPanel(fill, edge fyne.ThemeColorName, radius float32) *Panel {
	p := &Panel{Fill: fill, Edge: edge, Radius: radius}
	p.ExtendBaseWidget(p)
	return p
}

// CreateRenderer is Fyne's way to draw the widget.
func (p *Panel) CreateRenderer() fyne.WidgetRenderer {
	r := &panelRenderer{p: p, box: canvas.NewRectangle(color.Transparent)}
	r.update()
	return r
}

type panelRenderer struct {
	p   *Panel
	box *canvas.Rectangle
}

func (r *panelRenderer) update() {
	r.box.FillColor, r.box.StrokeColor, r.box.StrokeWidth = color.Transparent, color.Transparent, 0
	if r.p.Fill != "" {
		r.box.FillColor = Color(r.p.Fill)
	}
	if r.p.Edge != "" {
		r.box.StrokeColor, r.box.StrokeWidth = Color(r.p.Edge), 1
	}
	r.box.CornerRadius = r.p.Radius
}

func (r *panelRenderer) MinSize() fyne.Size           { return fyne.NewSize(0, 0) }
func (r *panelRenderer) Layout(size fyne.Size)        { r.box.Resize(size) }
func (r *panelRenderer) Refresh()                     { r.update(); canvas.Refresh(r.box) }
func (r *panelRenderer) Objects() []fyne.CanvasObject { return []fyne.CanvasObject{r.box} }
func (r *panelRenderer) Destroy()                     {}

// Card puts content on a raised panel with one and a half units around it.
func Card(content fyne.CanvasObject) *fyne.Container {
	return container.NewStack(NewPanel(ColorCard, ColorEdge, 8), Pad(12, 12, 12, 12, content))
}

// TextButton is a small word that can be pressed, without a box around it.
type TextButton struct {
	widget.BaseWidget
	label    string
	OnTapped func()
	OnHover  func(inside bool) // may be nil
	hovered  bool
	focused  bool
	Quiet    bool // in the colour that stands back until the pointer is on it
}

// NewTextButton returns a pressable word.
func NewTextButton(label string, tapped func()) *TextButton {
	b := &TextButton{label: label, OnTapped: tapped}
	b.ExtendBaseWidget(b)
	return b
}

// Set replaces the word.
func (b *TextButton) Set(label string) {
	if b.label != label {
		b.label = label
		b.Refresh()
	}
}

// Label returns the word.
func (b *TextButton) Label() string { return b.label }

// Tapped is called by Fyne.
func (b *TextButton) Tapped(*fyne.PointEvent) {
	if b.OnTapped != nil {
		b.OnTapped()
	}
}

// MouseIn, MouseMoved, MouseOut and Cursor are called by Fyne.
func (b *TextButton) MouseIn(*desktop.MouseEvent)    { b.hover(true) }
func (b *TextButton) MouseMoved(*desktop.MouseEvent) {}
func (b *TextButton) MouseOut()                      { b.hover(false) }
func (b *TextButton) Cursor() desktop.Cursor         { return desktop.PointerCursor }

func (b *TextButton) hover(inside bool) {
	b.hovered = inside
	b.Refresh()
	if b.OnHover != nil {
		b.OnHover(inside)
	}
}

// FocusGained, FocusLost, TypedRune and TypedKey are called by Fyne.
func (b *TextButton) FocusGained()   { b.focused = true; b.Refresh() }
func (b *TextButton) FocusLost()     { b.focused = false; b.Refresh() }
func (b *TextButton) TypedRune(rune) {}
func (b *TextButton) TypedKey(k *fyne.KeyEvent) {
	if k.Name == fyne.KeySpace || k.Name == fyne.KeyReturn || k.Name == fyne.KeyEnter {
		b.Tapped(nil)
	}
}

// CreateRenderer is Fyne's way to draw the widget.
func (b *TextButton) CreateRenderer() fyne.WidgetRenderer {
	r := &textButtonRenderer{b: b, box: canvas.NewRectangle(color.Transparent), text: canvas.NewText("", color.Black)}
	r.text.Alignment = fyne.TextAlignCenter
	r.box.CornerRadius = 6
	r.update()
	return r
}

type textButtonRenderer struct {
	b    *TextButton
	box  *canvas.Rectangle
	text *canvas.Text
}

func (r *textButtonRenderer) update() {
	r.text.Text = r.b.label
	r.text.TextSize = Size(theme.SizeNameCaptionText)
	r.text.Color = Color(theme.ColorNamePrimary)
	if r.b.Quiet && !r.b.hovered {
		r.text.Color = Color(ColorMuted)
	}
	r.box.FillColor = color.Transparent
	if r.b.focused {
		r.box.FillColor = Color(theme.ColorNameFocus)
	} else if r.b.hovered {
		r.box.FillColor = Color(theme.ColorNameHover)
	}
}

func (r *textButtonRenderer) MinSize() fyne.Size {
	return fyne.MeasureText(r.b.label, Size(theme.SizeNameCaptionText), fyne.TextStyle{}).AddWidthHeight(16, 8)
}

func (r *textButtonRenderer) Layout(size fyne.Size) {
	r.box.Resize(size)
	r.text.Resize(fyne.NewSize(size.Width, r.text.MinSize().Height))
	r.text.Move(fyne.NewPos(0, (size.Height-r.text.MinSize().Height)/2))
}
func (r *textButtonRenderer) Refresh() {
	r.update()
	r.Layout(r.b.Size())
	canvas.Refresh(r.box)
	canvas.Refresh(r.text)
}
func (r *textButtonRenderer) Objects() []fyne.CanvasObject {
	return []fyne.CanvasObject{r.box, r.text}
}
func (r *textButtonRenderer) Destroy() {}
