package answer

import (
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"firesteel/ui/window/look"
)

// piece shows one block. Its object stays while the block's text grows.
type piece struct {
	block  block
	object fyne.CanvasObject
	set    func(b block)
}

// newPiece returns a piece for a block of this kind. copied is called with code to copy.
func newPiece(b block, copied func(string)) *piece {
	p := &piece{}
	switch b.kind {
	case code:
		p.makeCode(copied)
	case table:
		p.makeTable()
	case item:
		label := text()
		mark := look.NewText(b.mark)
		mark.Color = look.ColorMuted
		p.object = container.New(bulleted{}, mark, look.Tight(label))
		p.set = func(b block) { label.SetText(b.text) }
	case quote:
		label := text()
		bar := look.NewPanel(look.ColorTrack, "", 2)
		p.object = container.New(quoted{}, bar, look.Tight(label))
		p.set = func(b block) { label.SetText(b.text) }
	default:
		label := text()
		if b.kind == heading {
			label.TextStyle = fyne.TextStyle{Bold: true}
			label.SizeName = theme.SizeNameSubHeadingText
			if b.level == 1 {
				label.SizeName = theme.SizeNameHeadingText
			}
		}
		p.object = look.Tight(label)
		p.set = func(b block) { label.SetText(b.text) }
	}
	p.update(b)
	return p
}

func (p *piece) update(b block) {
	p.set(b)
	p.block = b
}

// fits says whether the piece can go on showing b.
func (p *piece) fits(b block) bool {
	return p.block.kind == b.kind && p.block.level == b.level && p.block.mark == b.mark
}

// gap is the space above a block that follows another.
func gap(b block, first bool) float32 {
	switch {
	case first, b.joint:
		return 0
	case b.kind == item:
		return look.Unit / 2
	case b.kind == heading:
		return 2 * look.Unit
	}
	return look.Unit + 2
}

func text() *widget.Label {
	l := widget.NewLabel("")
	l.Wrapping = fyne.TextWrapWord
	l.Selectable = true
	return l
}

// bulleted puts a list item's mark in a margin of its own.
type bulleted struct{}

func bulletMargin() float32 { return 1.7 * theme.TextSize() }

func (bulleted) Layout(o []fyne.CanvasObject, size fyne.Size) {
	o[0].Resize(o[0].MinSize())
	o[0].Move(fyne.NewPos(2, 0))
	o[1].Resize(fyne.NewSize(size.Width-bulletMargin(), size.Height))
	o[1].Move(fyne.NewPos(bulletMargin(), 0))
}

func (bulleted) MinSize(o []fyne.CanvasObject) fyne.Size {
	m := o[1].MinSize()
	return fyne.NewSize(m.Width+bulletMargin(), m.Height)
}

// quoted puts a bar at the left of a quotation.
type quoted struct{}

func (quoted) Layout(o []fyne.CanvasObject, size fyne.Size) {
	o[0].Resize(fyne.NewSize(3, size.Height))
	o[1].Resize(fyne.NewSize(size.Width-16, size.Height))
	o[1].Move(fyne.NewPos(16, 0))
}

func (quoted) MinSize(o []fyne.CanvasObject) fyne.Size {
	m := o[1].MinSize()
	return fyne.NewSize(m.Width+16, m.Height)
}

// linesEach is how many lines of code share a label: only the last one is laid out again
// while code is being written.
const linesEach = 60

func (p *piece) makeCode(copied func(string)) {
	var labels []*widget.Label
	body := look.Rows(0)
	whole := ""
	copyButton := look.NewTextButton("Copy", func() { copied(whole) })
	copyButton.Quiet = true
	top := look.Pad(0, 0, 12, 4, look.Line(0, 0, look.Caption("Code"), copyButton))
	p.object = container.NewStack(look.NewPanel(look.ColorCode, look.ColorEdge, 8),
		look.Pad(4, 12, 0, 0, look.Rows(0, top, look.Pad(0, 0, 12, 12, body))))
	p.set = func(b block) {
		whole = b.text
		lines := strings.Split(b.text, "\n")
		for i := 0; i*linesEach < len(lines); i++ {
			part := strings.Join(lines[i*linesEach:min(len(lines), (i+1)*linesEach)], "\n")
			// Fyne's text doesn't know tabs' stops.
			part = strings.ReplaceAll(part, "\t", "    ")
			if i == len(labels) {
				l := text()
				l.Wrapping = fyne.TextWrapBreak
				l.TextStyle = fyne.TextStyle{Monospace: true}
				labels = append(labels, l)
				body.Objects = append(body.Objects, look.Tight(l))
			}
			if labels[i].Text != part {
				labels[i].SetText(part)
			}
		}
	}
}

func (p *piece) makeTable() {
	grid := container.New(&columns{})
	p.object = container.NewStack(look.NewPanel(look.ColorCard, look.ColorEdge, 8), look.Pad(8, 8, 12, 12, grid))
	p.set = func(b block) {
		l := &columns{}
		for _, r := range b.rows {
			l.count = max(l.count, len(r))
		}
		grid.Layout = l
		grid.Objects = nil
		for i, r := range b.rows {
			for j := range l.count {
				cell := text()
				cell.TextStyle = fyne.TextStyle{Bold: i == 0}
				if j < len(r) {
					cell.SetText(r[j])
					l.natural(j, r[j])
				}
				grid.Objects = append(grid.Objects, look.Tight(cell))
			}
		}
	}
}

// columns lays cells out row by row, each column as wide as its longest cell where there is
// room, else in proportion.
type columns struct {
	count  int
	widths []float32
}

const cellGap = 2 * look.Unit

func (c *columns) natural(column int, s string) {
	for len(c.widths) <= column {
		c.widths = append(c.widths, 0)
	}
	w := fyne.MeasureText(s, theme.TextSize(), fyne.TextStyle{Bold: true}).Width + 4
	c.widths[column] = max(c.widths[column], w)
}

func (c *columns) shares(width float32) []float32 {
	out := make([]float32, c.count)
	sum := float32(0)
	for i := range out {
		if i < len(c.widths) {
			out[i] = c.widths[i]
		}
		out[i] = max(out[i], 24)
		sum += out[i]
	}
	room := width - cellGap*float32(c.count-1)
	if sum > room && sum > 0 {
		for i := range out {
			out[i] *= room / sum
		}
	}
	return out
}

func (c *columns) Layout(o []fyne.CanvasObject, size fyne.Size) { c.place(o, size.Width, true) }

func (c *columns) place(o []fyne.CanvasObject, width float32, move bool) float32 {
	if c.count == 0 {
		return 0
	}
	widths := c.shares(width)
	y := float32(0)
	for i := 0; i < len(o); i += c.count {
		x, tallest := float32(0), float32(0)
		for j := 0; j < c.count && i+j < len(o); j++ {
			if move {
				tallest = max(tallest, look.HeightAt(o[i+j], widths[j]))
				o[i+j].Move(fyne.NewPos(x, y))
			} else {
				tallest = max(tallest, o[i+j].MinSize().Height)
			}
			x += widths[j] + cellGap
		}
		y += tallest + 4
	}
	return y - 4
}

func (c *columns) MinSize(o []fyne.CanvasObject) fyne.Size {
	return fyne.NewSize(48*float32(c.count), c.place(o, 0, false))
}
