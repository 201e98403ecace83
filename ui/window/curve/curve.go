// Package curve draws how a training goes.
package curve

import (
	"image"
	"image/color"
	"math"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"firesteel/ui/window/look"
)

// Point is a value at a step.
type Point struct {
	Step  int
	Value float64
}

// Plot is a field in which time goes to the right: the loss as a thin pale line that falls, and
// what was measured now and then as a strong line with dots that rises. Each has its own scale.
type Plot struct {
	widget.BaseWidget
	steps    int
	losses   []Point
	measured []Point
}

// New returns an empty plot of so many steps.
func New(steps int) *Plot {
	p := &Plot{steps: max(1, steps)}
	p.ExtendBaseWidget(p)
	return p
}

// Add takes in the loss of a step, and what was measured last; a step that is known already is
// left as it was.
func (p *Plot) Add(loss, measured Point) {
	if n := len(p.losses); loss.Step > 0 && (n == 0 || p.losses[n-1].Step < loss.Step) {
		p.losses = append(p.losses, loss)
	}
	if n := len(p.measured); n == 0 || p.measured[n-1].Step < measured.Step {
		p.measured = append(p.measured, measured)
	}
	p.Refresh()
}

// The least size.
const width, height = 60 * look.Unit, 16 * look.Unit

// draw returns the plot at w×h pixels of the screen.
func (p *Plot) draw(w, h int) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	if w < 16 || h < 16 {
		return img
	}
	ground := look.Fade(look.Color(look.ColorTrack), 0.5)
	for i := 0; i < len(img.Pix); i += 4 {
		img.Pix[i], img.Pix[i+1], img.Pix[i+2], img.Pix[i+3] = ground.R, ground.G, ground.B, ground.A
	}
	p.line(img, p.losses, look.Color(look.ColorMuted), 1, false)
	p.line(img, p.measured, look.Color(theme.ColorNamePrimary), 2, true)
	return img
}

// line joins points, the lowest near the bottom and the highest near the top.
func (p *Plot) line(img *image.NRGBA, points []Point, ink color.Color, thick int, dots bool) {
	if len(points) == 0 {
		return
	}
	w, h := img.Rect.Dx(), img.Rect.Dy()
	low, high := math.Inf(1), math.Inf(-1)
	for _, at := range points {
		low, high = math.Min(low, at.Value), math.Max(high, at.Value)
	}
	span := math.Max(high-low, 1e-9)
	margin := float64(h) / 8
	place := func(at Point) (x, y float64) {
		return float64(at.Step) / float64(p.steps) * float64(w-1), float64(h) - margin - (at.Value-low)/span*(float64(h)-2*margin)
	}
	spot := func(x, y float64, r int) {
		for dy := -r; dy <= r; dy++ {
			for dx := -r; dx <= r; dx++ {
				if at := image.Pt(int(x)+dx, int(y)+dy); dx*dx+dy*dy <= r*r && at.In(img.Rect) {
					img.Set(at.X, at.Y, ink)
				}
			}
		}
	}
	lastX, lastY := place(points[0])
	for _, at := range points {
		x, y := place(at)
		n := int(math.Max(math.Abs(x-lastX), math.Abs(y-lastY))) + 1
		for i := range n + 1 {
			share := float64(i) / float64(n)
			spot(lastX+(x-lastX)*share, lastY+(y-lastY)*share, thick-1)
		}
		if dots {
			spot(x, y, 2*thick)
		}
		lastX, lastY = x, y
	}
}

// CreateRenderer is Fyne's way to draw the widget.
func (p *Plot) CreateRenderer() fyne.WidgetRenderer {
	return look.Raster(p.draw, fyne.NewSize(width, height))
}
