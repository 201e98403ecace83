package meter

import (
	"image"
	"image/color"
	"math"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"firesteel/ui/window/look"
)

// points is how many readings the line keeps: two minutes at one a second.
const points = 120

// sideBySide lays two cells side by side at equal width, two units apart.
func sideBySide(a, b fyne.CanvasObject) *fyne.Container { return container.New(halves{}, a, b) }

type halves struct{}

const halfGap = 2 * look.Unit

func (halves) Layout(o []fyne.CanvasObject, size fyne.Size) {
	w := (size.Width - halfGap) / 2
	o[0].Resize(fyne.NewSize(w, size.Height))
	o[1].Resize(fyne.NewSize(w, size.Height))
	o[1].Move(fyne.NewPos(w+halfGap, 0))
}

func (halves) MinSize(o []fyne.CanvasObject) fyne.Size {
	a, b := o[0].MinSize(), o[1].MinSize()
	return fyne.NewSize(2*max(a.Width, b.Width)+halfGap, max(a.Height, b.Height))
}

// graph is a filled line of the newest readings, the newest at the right.
type graph struct {
	widget.BaseWidget
	values []int64
	level  Level
}

func newGraph() *graph {
	g := &graph{}
	g.ExtendBaseWidget(g)
	return g
}

func (g *graph) add(v int64) {
	g.values = append(g.values, v)
	if len(g.values) > points {
		g.values = append(g.values[:0], g.values[len(g.values)-points:]...)
	}
	g.Refresh()
}

func (g *graph) paint(l Level) { g.level = l }

// draw returns the line at w×h pixels of the screen.
func (g *graph) draw(w, h int) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	n := len(g.values)
	if n < 2 || w < 2 || h < 4 {
		return img
	}
	ink := look.Color(look.ColorMuted)
	switch g.level {
	case Amber:
		ink = look.Color(theme.ColorNameWarning)
	case Red:
		ink = look.Color(theme.ColorNameError)
	}
	low, high := g.values[0], g.values[0]
	for _, v := range g.values {
		low, high = min(low, v), max(high, v)
	}
	// The floor is half the lowest reading, so that a steady amount draws a steady line and
	// small changes don't look like large ones.
	floor := float64(low) / 2
	span := math.Max(float64(high)-floor, 1)
	line, fill := look.Fade(ink, 1), look.Fade(ink, 0.18)
	step := float64(w) / float64(points-1)
	start := float64(w) - step*float64(n-1)
	height := func(x int) float64 {
		at := (float64(x) - start) / step
		i := int(math.Max(0, math.Min(float64(n-2), math.Floor(at))))
		part := math.Max(0, math.Min(1, at-float64(i)))
		v := float64(g.values[i])*(1-part) + float64(g.values[i+1])*part
		return float64(h-2) * (1 - 0.9*(v-floor)/span)
	}
	from := int(math.Max(0, start))
	before := height(from)
	for x := from; x < w; x++ {
		here := height(x)
		// The line reaches from the height before to this one, so that a jump has no gaps.
		top, low := math.Min(here, before), math.Max(here, before)
		before = here
		for y := 0; y < h; y++ {
			d := math.Max(top-float64(y), float64(y)-low)
			switch {
			case d < 1.5:
				img.SetNRGBA(x, y, blend(fill, line, 1.5-math.Max(0, d)))
			case float64(y) > low:
				img.SetNRGBA(x, y, fill)
			}
		}
	}
	return img
}

func blend(under, over color.NRGBA, a float64) color.NRGBA {
	a = math.Max(0, math.Min(1, a))
	over.A = uint8(float64(under.A) + (float64(over.A)-float64(under.A))*a)
	return over
}

// CreateRenderer is Fyne's way to draw the widget.
func (g *graph) CreateRenderer() fyne.WidgetRenderer {
	return look.Raster(g.draw, fyne.NewSize(60, 24))
}
