// Package reliability draws how well a drafter's confidence matches what happens.
package reliability

import (
	"image"
	"image/color"
	"math"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"firesteel/core/confidence"
	"firesteel/ui/window/look"
)

// Diagram is a square: to the right what was foretold, upwards what came true. Each bin is a
// column up to what came true; what is missing to the diagonal, or beyond it, is shaded. Columns
// of few rounds are paler.
type Diagram struct {
	widget.BaseWidget
	bins []confidence.Bin
}

// NewDiagram returns a diagram without columns.
func NewDiagram() *Diagram {
	d := &Diagram{}
	d.ExtendBaseWidget(d)
	return d
}

// Set draws these bins, which span 0 to 1 in equal parts.
func (d *Diagram) Set(bins []confidence.Bin) {
	d.bins = bins
	d.Refresh()
}

// square is the least width and height.
const square = 20 * look.Unit

// draw returns the diagram at w×h pixels of the screen.
func (d *Diagram) draw(w, h int) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	if w < 8 || h < 8 {
		return img
	}
	fill(img, img.Rect, look.Fade(look.Color(look.ColorTrack), 0.5))
	most := 0
	for _, b := range d.bins {
		most = max(most, b.Rounds)
	}
	bar, gap := look.Color(theme.ColorNamePrimary), look.Color(theme.ColorNameError)
	n := len(d.bins)
	y := func(v float64) int { return h - int(math.Round(v*float64(h))) }
	for i, b := range d.bins {
		if b.Rounds == 0 {
			continue
		}
		left, right := i*w/n, (i+1)*w/n-1
		strength := 0.25 + 0.75*math.Sqrt(float64(b.Rounds)/float64(most))
		fill(img, image.Rect(left, y(b.Observed), right, h), look.Fade(bar, strength*0.9))
		low, high := math.Min(b.Observed, b.Predicted), math.Max(b.Observed, b.Predicted)
		fill(img, image.Rect(left, y(high), right, y(low)), look.Fade(gap, strength*0.55))
	}
	line := look.Fade(look.Color(theme.ColorNameForeground), 0.6)
	for x := range w {
		at := h - 1 - x*h/w
		img.SetNRGBA(x, at, line)
		if at > 0 {
			img.SetNRGBA(x, at-1, line)
		}
	}
	return img
}

func fill(img *image.NRGBA, r image.Rectangle, c color.NRGBA) {
	r = r.Intersect(img.Rect)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			img.SetNRGBA(x, y, c)
		}
	}
}

// CreateRenderer is Fyne's way to draw the widget.
func (d *Diagram) CreateRenderer() fyne.WidgetRenderer {
	return look.Raster(d.draw, fyne.NewSize(square, square))
}
