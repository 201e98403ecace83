package curve

import (
	"image/color"
	"testing"

	"fyne.io/fyne/v2/test"
	"fyne.io/fyne/v2/theme"

	"firesteel/ui/window/look"
)

func TestTheLossFallsAndWhatIsMeasuredRises(t *testing.T) {
	test.NewTempApp(t).Settings().SetTheme(&look.Theme{Mode: look.Light})
	p := New(100)
	for k := range 50 {
		p.Add(Point{k + 1, 3 - float64(k)/50}, Point{k / 25 * 25, 1 + float64(k/25)})
	}
	p.Add(Point{50, 99}, Point{25, 99}) // known already
	if len(p.losses) != 50 || len(p.measured) != 2 {
		t.Fatalf("%d losses, %d measured", len(p.losses), len(p.measured))
	}
	const w, h = 200, 80
	img := p.draw(w, h)
	at := func(x int, ink color.Color) (top int) {
		for y := range h {
			if color.NRGBAModel.Convert(img.At(x, y)) == color.NRGBAModel.Convert(ink) {
				return y
			}
		}
		return -1
	}
	muted, strong := look.Color(look.ColorMuted), look.Color(theme.ColorNamePrimary)
	if a, b := at(4, muted), at(90, muted); a < 0 || b <= a {
		t.Errorf("the loss goes from %d down to %d", a, b)
	}
	if a, b := at(1, strong), at(49, strong); b < 0 || a <= b {
		t.Errorf("what is measured goes from %d up to %d", a, b)
	}
	if x := at(150, muted); x >= 0 {
		t.Error("it is ahead of time")
	}
	New(0).draw(4, 4)
}
