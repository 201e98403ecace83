package reliability

import (
	"image/color"
	"testing"

	"fyne.io/fyne/v2/test"
	"fyne.io/fyne/v2/theme"

	"firesteel/core/confidence"
	"firesteel/ui/window/look"
)

// strip is a colour without how strong it is.
func strip(c color.Color) color.NRGBA {
	n := color.NRGBAModel.Convert(c).(color.NRGBA)
	n.A = 255
	return n
}

func TestColumnsReachWhatCameTrue(t *testing.T) {
	test.NewTempApp(t).Settings().SetTheme(&look.Theme{Mode: look.Light})
	d := NewDiagram()
	bins := make([]confidence.Bin, confidence.BinCount)
	bins[15] = confidence.Bin{Rounds: 100, Predicted: 0.775, Observed: 0.5}
	bins[2] = confidence.Bin{Rounds: 4, Predicted: 0.125, Observed: 0.4}
	d.Set(bins)
	img := d.draw(200, 200)
	bar, gap := strip(look.Color(theme.ColorNamePrimary)), strip(look.Color(theme.ColorNameError))
	for _, c := range []struct {
		x, y int
		want color.NRGBA
	}{{154, 150, bar}, {154, 105, bar}, {154, 60, gap}, {24, 190, bar}, {24, 140, gap}} {
		if got := strip(img.At(c.x, c.y)); got != c.want {
			t.Errorf("at %d, %d: %v, want %v", c.x, c.y, got, c.want)
		}
	}
	for _, free := range [][2]int{{154, 30}, {24, 100}, {90, 190}} {
		if got := strip(img.At(free[0], free[1])); got == bar || got == gap {
			t.Errorf("something is drawn at %v", free)
		}
	}
	if d.MinSize().Width != square || NewDiagram().draw(200, 200).Bounds().Dx() != 200 || d.draw(2, 2).Bounds().Dx() != 2 {
		t.Error("sizes")
	}
}
