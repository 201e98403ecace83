package look

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"
)

// Hints shows one sentence at a time above everything else, without taking the pointer.
// Layer must lie on top of the window's content.
type Hints struct {
	Layer *fyne.Container
	box   *fyne.Container
	label *widget.Label
}

// NewHints returns a layer with nothing on it.
func NewHints() *Hints {
	h := &Hints{label: widget.NewLabel("")}
	h.label.Wrapping = fyne.TextWrapWord
	h.label.SizeName = theme.SizeNameCaptionText
	h.box = container.NewStack(NewPanel(ColorCard, ColorEdge, 8), h.label)
	h.box.Hide()
	h.Layer = container.NewWithoutLayout(h.box)
	return h
}

// Show writes the sentence beside the object: to its right, 264 pixels wide at most.
func (h *Hints) Show(beside fyne.CanvasObject, sentence string) {
	const width = 264
	driver := fyne.CurrentApp().Driver()
	pos := driver.AbsolutePositionForObject(beside).Subtract(driver.AbsolutePositionForObject(h.Layer))
	h.label.SetText(sentence)
	h.box.Resize(fyne.NewSize(width, 20))
	h.box.Resize(fyne.NewSize(width, h.label.MinSize().Height))
	x := pos.X + beside.Size().Width + Unit
	if right := h.Layer.Size().Width - width; x > right {
		x = right
	}
	h.box.Move(fyne.NewPos(x, max(0, pos.Y-Unit)))
	h.box.Show()
	h.Layer.Refresh()
}

// Hide takes the sentence away.
func (h *Hints) Hide() {
	if h.box.Visible() {
		h.box.Hide()
		h.Layer.Refresh()
	}
}

// Shown returns the sentence on the screen, "" if there is none.
func (h *Hints) Shown() string {
	if !h.box.Visible() {
		return ""
	}
	return h.label.Text
}
