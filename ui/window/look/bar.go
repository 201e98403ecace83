package look

import (
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"
)

// Bar is a thin line that fills as something proceeds.
type Bar struct {
	widget.BaseWidget
	value float64
}

// NewBar returns an empty bar.
func NewBar() *Bar {
	b := &Bar{}
	b.ExtendBaseWidget(b)
	return b
}

// Set fills the bar from 0 to 1.
func (b *Bar) Set(value float64) {
	if value = max(0, min(1, value)); value != b.value {
		b.value = value
		b.Refresh()
	}
}

// Value returns how full it is, from 0 to 1.
func (b *Bar) Value() float64 { return b.value }

// CreateRenderer is Fyne's way to draw the widget.
func (b *Bar) CreateRenderer() fyne.WidgetRenderer {
	r := &barRenderer{b: b, track: canvas.NewRectangle(color.Black), run: canvas.NewRectangle(color.Black)}
	r.track.CornerRadius, r.run.CornerRadius = 2, 2
	r.update()
	return r
}

type barRenderer struct {
	b          *Bar
	track, run *canvas.Rectangle
}

func (r *barRenderer) update() {
	r.track.FillColor, r.run.FillColor = Color(ColorTrack), Color(theme.ColorNamePrimary)
	size := r.b.Size()
	r.track.Resize(size)
	r.run.Resize(fyne.NewSize(size.Width*float32(r.b.value), size.Height))
}

func (r *barRenderer) MinSize() fyne.Size { return fyne.NewSize(40, 4) }
func (r *barRenderer) Layout(fyne.Size)   { r.update() }
func (r *barRenderer) Refresh() {
	r.update()
	canvas.Refresh(r.track)
	canvas.Refresh(r.run)
}
func (r *barRenderer) Objects() []fyne.CanvasObject { return []fyne.CanvasObject{r.track, r.run} }
func (r *barRenderer) Destroy()                     {}
