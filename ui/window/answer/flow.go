package answer

import (
	"fyne.io/fyne/v2"

	"firesteel/ui/window/look"
)

// widest is how wide a column of text gets at 100 % text size; longer lines read badly.
const widest float32 = 760

// sideMargin is the least space at either side of the column.
const sideMargin = 3 * look.Unit

// entry is one object in the flow, with its height kept so that only what changed is
// measured again.
type entry struct {
	object fyne.CanvasObject
	gap    float32 // above it
	indent float32
	y      float32
	height float32
	dirty  bool
}

// flow stacks entries in a centred column. Those far from what can be seen are hidden, so
// that a long conversation costs no more than a short one.
type flow struct {
	entries []*entry
	width   float32 // of the whole, at the last arrangement
	total   float32
	top     float32 // what of it can be seen
	seen    float32
}

// Column returns where a column of text begins in a pane of this width, and its width.
func Column(pane float32) (x, width float32) {
	limit := widest * look.Size("text") / 14
	width = min(limit, pane-2*sideMargin)
	return (pane - width) / 2, width
}

func (f *flow) add(e *entry, before *entry) {
	e.dirty = true
	at := len(f.entries)
	if before != nil {
		for i, o := range f.entries {
			if o == before {
				at = i
				break
			}
		}
	}
	f.entries = append(f.entries, nil)
	copy(f.entries[at+1:], f.entries[at:])
	f.entries[at] = e
}

func (f *flow) remove(e *entry) {
	for i, o := range f.entries {
		if o == e {
			f.entries = append(f.entries[:i], f.entries[i+1:]...)
			return
		}
	}
}

func (f *flow) objects() []fyne.CanvasObject {
	out := make([]fyne.CanvasObject, len(f.entries))
	for i, e := range f.entries {
		out[i] = e.object
	}
	return out
}

// arrange measures what changed and places everything.
func (f *flow) arrange(width float32) {
	if width <= 0 {
		return
	}
	x, w := Column(width)
	y := 2 * look.Unit
	for _, e := range f.entries {
		if e.dirty || f.width != width {
			e.height = look.HeightAt(e.object, w-e.indent)
			e.dirty = false
		}
		y += e.gap
		e.y = y
		e.object.Move(fyne.NewPos(x+e.indent, y))
		y += e.height
	}
	f.width = width
	f.total = y + 3*look.Unit
	f.cull()
}

// view says which part of the flow can be seen.
func (f *flow) view(top, seen float32) {
	f.top, f.seen = top, seen
	f.cull()
}

func (f *flow) cull() {
	if f.seen <= 0 {
		return
	}
	from, to := f.top-f.seen, f.top+2*f.seen
	for _, e := range f.entries {
		near := e.y+e.height >= from && e.y <= to
		if near != e.object.Visible() {
			if near {
				e.object.Show()
			} else {
				e.object.Hide()
			}
		}
	}
}

// Layout and MinSize make the flow a Fyne layout.
func (f *flow) Layout(_ []fyne.CanvasObject, size fyne.Size) { f.arrange(size.Width) }
func (f *flow) MinSize([]fyne.CanvasObject) fyne.Size        { return fyne.NewSize(320, f.total) }
