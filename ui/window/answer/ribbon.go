package answer

import (
	"image"
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"firesteel/ui/window/look"
)

// Round is one check: Accepted of the words guessed ahead were kept, and the target added
// one of its own.
type Round struct{ Drafted, Accepted int }

// bars is how many checks the ribbon shows at once.
const bars = 28

// ribbon draws a bar for each check: the grey foot is the target's own word, the accent
// above it the guesses that were kept. While an answer is written it shows the newest
// checks; afterwards the whole answer, neighbours averaged.
type ribbon struct {
	widget.BaseWidget
	onHover func(inside bool)
	rounds  []Round
	whole   bool
	tallest int // most words in a check so far
}

func newRibbon() *ribbon {
	r := &ribbon{}
	r.ExtendBaseWidget(r)
	return r
}

func (r *ribbon) add(rounds []Round) {
	for _, x := range rounds {
		r.tallest = max(r.tallest, x.Drafted+1)
	}
	r.rounds = append(r.rounds, rounds...)
	r.Refresh()
}

func (r *ribbon) finish() {
	r.whole = true
	r.Refresh()
}

// heights returns the accepted words of each bar, on average.
func (r *ribbon) heights() []float64 {
	shown := r.rounds
	if len(shown) > bars && !r.whole {
		shown = shown[len(shown)-bars:]
	}
	n := min(bars, len(shown))
	out := make([]float64, n)
	for i := range out {
		from, to := i*len(shown)/n, (i+1)*len(shown)/n
		for _, x := range shown[from:to] {
			out[i] += float64(x.Accepted) / float64(to-from)
		}
	}
	return out
}

func (r *ribbon) draw(w, h int) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	heights := r.heights()
	if len(heights) == 0 || r.tallest == 0 {
		return img
	}
	own := color.NRGBAModel.Convert(look.Color(look.ColorOwn)).(color.NRGBA)
	accepted := color.NRGBAModel.Convert(look.Color(theme.ColorNamePrimary)).(color.NRGBA)
	unit := float64(h) / float64(max(r.tallest, 4))
	for i, a := range heights {
		left, right := i*w/bars, (i+1)*w/bars
		if right-left > 2 {
			right -= max(1, w/bars/4)
		}
		foot, top := h-max(1, int(unit)), h-max(1, int(unit*(1+a)))
		for y := max(0, top); y < h; y++ {
			ink := accepted
			if y >= foot {
				ink = own
			}
			for x := left; x < right; x++ {
				img.SetNRGBA(x, y, ink)
			}
		}
	}
	return img
}

func (r *ribbon) hover(inside bool) {
	if r.onHover != nil {
		r.onHover(inside)
	}
}

// MouseIn, MouseMoved and MouseOut are called by Fyne.
func (r *ribbon) MouseIn(*desktop.MouseEvent)    { r.hover(true) }
func (r *ribbon) MouseMoved(*desktop.MouseEvent) {}
func (r *ribbon) MouseOut()                      { r.hover(false) }

// CreateRenderer is Fyne's way to draw the widget.
func (r *ribbon) CreateRenderer() fyne.WidgetRenderer {
	return look.Raster(r.draw, fyne.NewSize(4*bars, 20))
}
