package look

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/layout"
	"fyne.io/fyne/v2/widget"
)

// rows stacks objects at the full width, gap apart. Unlike Fyne's box it asks each object
// for its height at the width it will have, which is what wrapped text needs.
type rows struct{ gap float32 }

// Rows returns a container that stacks objects with gap pixels between them.
func Rows(gap float32, objects ...fyne.CanvasObject) *fyne.Container {
	return container.New(rows{gap}, objects...)
}

func (r rows) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	y := float32(0)
	for _, o := range objects {
		if !o.Visible() {
			continue
		}
		h := HeightAt(o, size.Width)
		o.Move(fyne.NewPos(0, y))
		y += h + r.gap
	}
}

func (r rows) MinSize(objects []fyne.CanvasObject) fyne.Size {
	var min fyne.Size
	first := true
	for _, o := range objects {
		if !o.Visible() {
			continue
		}
		m := o.MinSize()
		min.Width = max(min.Width, m.Width)
		min.Height += m.Height
		if !first {
			min.Height += r.gap
		}
		first = false
	}
	return min
}

// HeightAt gives o the width and the height it needs at that width, and returns the height.
func HeightAt(o fyne.CanvasObject, width float32) float32 {
	if o.Size().Width != width {
		o.Resize(fyne.NewSize(width, o.MinSize().Height))
	}
	h := o.MinSize().Height
	if o.Size().Height != h {
		o.Resize(fyne.NewSize(width, h))
	}
	return h
}

// line lays objects on one line, gap apart, centred in height; the one at grow takes the
// space that is left (−1: none does).
type line struct {
	gap  float32
	grow int
}

// Line returns a container that lays objects side by side; the one with index grow gets
// the rest of the width, −1 leaves it empty at the end.
func Line(gap float32, grow int, objects ...fyne.CanvasObject) *fyne.Container {
	return container.New(line{gap, grow}, objects...)
}

func (l line) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	rest := size.Width - l.MinSize(objects).Width
	x := float32(0)
	for i, o := range objects {
		if !o.Visible() {
			continue
		}
		m := o.MinSize()
		if i == l.grow {
			m.Width += rest
		}
		o.Resize(m)
		o.Move(fyne.NewPos(x, (size.Height-m.Height)/2))
		x += m.Width + l.gap
	}
}

func (l line) MinSize(objects []fyne.CanvasObject) fyne.Size {
	var min fyne.Size
	first := true
	for _, o := range objects {
		if !o.Visible() {
			continue
		}
		m := o.MinSize()
		min.Height = max(min.Height, m.Height)
		min.Width += m.Width
		if !first {
			min.Width += l.gap
		}
		first = false
	}
	return min
}

// Pad puts space around o; negative values take space away.
func Pad(top, bottom, left, right float32, o fyne.CanvasObject) *fyne.Container {
	return container.New(layout.NewCustomPaddedLayout(top, bottom, left, right), o)
}

// Tight takes away the space that Fyne's labels keep around their text.
func Tight(o fyne.CanvasObject) *fyne.Container { return Pad(-Inset, -Inset, -Inset, -Inset, o) }

// Sentences returns text that is wrapped to the width it gets.
func Sentences(text string) *widget.Label {
	l := widget.NewLabel(text)
	l.Wrapping = fyne.TextWrapWord
	return l
}

// fixed gives its only object a width, or a height, of its own choosing (0: as it needs).
type fixed struct{ width, height float32 }

// Fixed keeps o at least that wide and high; 0 leaves that side to o.
func Fixed(width, height float32, o fyne.CanvasObject) *fyne.Container {
	return container.New(fixed{width, height}, o)
}

func (f fixed) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	for _, o := range objects {
		o.Resize(size)
		o.Move(fyne.NewPos(0, 0))
	}
}

func (f fixed) MinSize(objects []fyne.CanvasObject) fyne.Size {
	var min fyne.Size
	for _, o := range objects {
		min = min.Max(o.MinSize())
	}
	if f.width > 0 {
		min.Width = f.width
	}
	if f.height > 0 {
		min.Height = f.height
	}
	return min
}

// FixedLayout is the layout of Fixed, to change the size of a container made by it.
func FixedLayout(width, height float32) fyne.Layout { return fixed{width, height} }

// upTo lets its only object, which scrolls, be as high as what is in it, up to a limit.
type upTo struct{ limit func() float32 }

// UpTo shows o whole where limit allows that height, else lets it scroll.
func UpTo(limit func() float32, o fyne.CanvasObject) *fyne.Container {
	return container.New(upTo{limit}, container.NewVScroll(Fixed(1, 0, o))) // no wider than it is given
}

func (u upTo) Layout(objects []fyne.CanvasObject, size fyne.Size) { objects[0].Resize(size) }

func (u upTo) MinSize(objects []fyne.CanvasObject) fyne.Size {
	whole := objects[0].(*container.Scroll).Content.MinSize()
	return fyne.NewSize(whole.Width, min(whole.Height, u.limit()))
}

// frame lays out a whole pane: top and bottom at their own heights, side at its own width
// between them, and main in what is left; without gaps. Any but main may be nil.
type frame struct{ top, bottom, side, main fyne.CanvasObject }

// Frame returns a container with main in the middle and what isn't nil around it.
func Frame(top, bottom, side, main fyne.CanvasObject) *fyne.Container {
	var objects []fyne.CanvasObject
	for _, o := range []fyne.CanvasObject{top, bottom, side, main} {
		if o != nil {
			objects = append(objects, o)
		}
	}
	return container.New(&frame{top, bottom, side, main}, objects...)
}

func (f *frame) Layout(_ []fyne.CanvasObject, size fyne.Size) {
	from, to, left := float32(0), size.Height, float32(0)
	if f.top != nil {
		from = HeightAt(f.top, size.Width)
		f.top.Move(fyne.NewPos(0, 0))
	}
	if f.bottom != nil {
		to -= HeightAt(f.bottom, size.Width)
		f.bottom.Move(fyne.NewPos(0, to))
	}
	if f.side != nil {
		left = f.side.MinSize().Width
		f.side.Move(fyne.NewPos(0, from))
		f.side.Resize(fyne.NewSize(left, to-from))
	}
	f.main.Move(fyne.NewPos(left, from))
	f.main.Resize(fyne.NewSize(size.Width-left, to-from))
}

func (f *frame) MinSize([]fyne.CanvasObject) fyne.Size {
	min := f.main.MinSize()
	if f.side != nil {
		m := f.side.MinSize()
		min.Width += m.Width
		min.Height = max(min.Height, m.Height)
	}
	for _, o := range []fyne.CanvasObject{f.top, f.bottom} {
		if o != nil {
			m := o.MinSize()
			min.Width = max(min.Width, m.Width)
			min.Height += m.Height
		}
	}
	return min
}
