package look

import (
	"image"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/widget"
)

// Raster is the renderer of a widget that draws its own picture. draw returns the picture at w×h
// pixels of the screen; the widget is at least as large as least, in Fyne's pixels.
func Raster(draw func(w, h int) image.Image, least fyne.Size) fyne.WidgetRenderer {
	r := canvas.NewRaster(draw)
	r.SetMinSize(least)
	return widget.NewSimpleRenderer(r)
}
