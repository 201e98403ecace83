package look

import (
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"
	"fyne.io/fyne/v2/theme"
)

func TestMemoryUnits(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0 MB", 56 << 20: "56 MB", 1<<30 - 1: "1024 MB", 24 << 30: "24.0 GB", 3 << 29: "1.5 GB"} {
		if got := Memory(bytes); got != want {
			t.Errorf("Memory(%d) = %q, want %q", bytes, got, want)
		}
	}
}

func TestFiguresHaveOneWidth(t *testing.T) {
	test.NewTempApp(t)
	zero := fyne.MeasureText("0", 14, fyne.TextStyle{}).Width
	for _, d := range "123456789" {
		if w := fyne.MeasureText(string(d), 14, fyne.TextStyle{}).Width; w != zero {
			t.Errorf("%c is %v wide, 0 is %v", d, w, zero)
		}
	}
}

func TestModesAndScale(t *testing.T) {
	light, dark := &Theme{Mode: Light}, &Theme{Mode: Dark, Scale: 1.3}
	if light.Color(theme.ColorNameBackground, theme.VariantDark) == dark.Color(theme.ColorNameBackground, theme.VariantLight) {
		t.Error("a chosen mode must not follow the system")
	}
	if got := dark.Size(theme.SizeNameText); got < 18.1 || got > 18.3 {
		t.Errorf("text at 130 %% is %v", got)
	}
	for name := range palette {
		if light.Color(name, 0) == nil || dark.Color(name, 0) == nil {
			t.Error(name)
		}
	}
}

func TestSlider(t *testing.T) {
	test.NewTempApp(t)
	s := NewSlider(0, 2, 0.05)
	s.Resize(fyne.NewSize(214, 24))
	var moved []float64
	s.OnChanged = func(v float64) { moved = append(moved, v) }
	s.Tapped(&fyne.PointEvent{Position: fyne.NewPos(107, 12)})
	s.TypedKey(&fyne.KeyEvent{Name: fyne.KeyRight})
	s.Dragged(&fyne.DragEvent{PointEvent: fyne.PointEvent{Position: fyne.NewPos(900, 12)}})
	s.SetValue(0.7)
	s.Disable()
	s.TypedKey(&fyne.KeyEvent{Name: fyne.KeyLeft})
	if len(moved) != 3 || moved[0] != 1 || moved[1] != 1.05 || moved[2] != 2 || s.Value() != 0.7 {
		t.Errorf("moved %v, stands at %v", moved, s.Value())
	}
}

func TestTextShortens(t *testing.T) {
	test.NewTempApp(t)
	style := fyne.TextStyle{}
	long := "a folder with a very long name indeed"
	got := fit(long, 80, 14, style)
	if got == long || fyne.MeasureText(got, 14, style).Width > 80 {
		t.Errorf("%q is too wide", got)
	}
	if fit("short", 80, 14, style) != "short" {
		t.Error("short text must stay")
	}
}
