package look

import (
	"image/color"
	"math"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"
)

// Slider is a thin track with a knob in the accent. It can be dragged, tapped, scrolled by
// the arrow keys and turned off.
type Slider struct {
	widget.BaseWidget
	Min, Max, Step float64
	OnChanged      func(float64)
	OnHover        func(inside bool) // may be nil

	value    float64
	disabled bool
	focused  bool
	hovered  bool
}

const knobSize float32 = 14

// NewSlider returns a slider at min.
func NewSlider(min, max, step float64) *Slider {
	s := &Slider{Min: min, Max: max, Step: step, value: min}
	s.ExtendBaseWidget(s)
	return s
}

// Value returns where the knob stands.
func (s *Slider) Value() float64 { return s.value }

// SetValue moves the knob without calling OnChanged.
func (s *Slider) SetValue(v float64) {
	s.value = s.clamp(v)
	s.Refresh()
}

// SetRange changes what can be chosen and keeps the knob inside it.
func (s *Slider) SetRange(min, max float64) {
	s.Min, s.Max = min, max
	s.SetValue(s.value)
}

// Disable, Enable and Disabled are Fyne's words for turning a widget off and on.
func (s *Slider) Disable()       { s.disabled = true; s.Refresh() }
func (s *Slider) Enable()        { s.disabled = false; s.Refresh() }
func (s *Slider) Disabled() bool { return s.disabled }

func (s *Slider) clamp(v float64) float64 {
	if math.IsNaN(v) {
		v = s.Min
	}
	v = s.Min + math.Round((v-s.Min)/s.Step)*s.Step
	v = math.Round(v*1e6) / 1e6
	return math.Max(s.Min, math.Min(s.Max, v))
}

func (s *Slider) move(v float64) {
	if s.disabled {
		return
	}
	if v = s.clamp(v); v == s.value {
		return
	}
	s.value = v
	s.Refresh()
	if s.OnChanged != nil {
		s.OnChanged(v)
	}
}

func (s *Slider) moveTo(x float32) {
	run := s.Size().Width - knobSize
	if run > 0 {
		s.move(s.Min + (s.Max-s.Min)*float64((x-knobSize/2)/run))
	}
}

// The methods below are called by Fyne.

func (s *Slider) Tapped(e *fyne.PointEvent)      { s.moveTo(e.Position.X) }
func (s *Slider) Dragged(e *fyne.DragEvent)      { s.moveTo(e.Position.X) }
func (s *Slider) DragEnd()                       {}
func (s *Slider) FocusGained()                   { s.focused = true; s.Refresh() }
func (s *Slider) FocusLost()                     { s.focused = false; s.Refresh() }
func (s *Slider) TypedRune(rune)                 {}
func (s *Slider) MouseIn(*desktop.MouseEvent)    { s.hover(true) }
func (s *Slider) MouseMoved(*desktop.MouseEvent) {}
func (s *Slider) MouseOut()                      { s.hover(false) }
func (s *Slider) hover(inside bool) {
	s.hovered = inside
	s.Refresh()
	if s.OnHover != nil {
		s.OnHover(inside)
	}
}
func (s *Slider) Cursor() desktop.Cursor {
	if s.disabled {
		return desktop.DefaultCursor
	}
	return desktop.PointerCursor
}

func (s *Slider) TypedKey(k *fyne.KeyEvent) {
	switch k.Name {
	case fyne.KeyLeft, fyne.KeyDown:
		s.move(s.value - s.Step)
	case fyne.KeyRight, fyne.KeyUp:
		s.move(s.value + s.Step)
	case fyne.KeyHome:
		s.move(s.Min)
	case fyne.KeyEnd:
		s.move(s.Max)
	}
}

// CreateRenderer is Fyne's way to draw the widget.
func (s *Slider) CreateRenderer() fyne.WidgetRenderer {
	r := &sliderRenderer{s: s, track: canvas.NewRectangle(color.Black), run: canvas.NewRectangle(color.Black),
		halo: canvas.NewCircle(color.Black), knob: canvas.NewCircle(color.Black)}
	r.track.CornerRadius, r.run.CornerRadius = 2, 2
	r.update()
	return r
}

type sliderRenderer struct {
	s          *Slider
	track, run *canvas.Rectangle
	halo, knob *canvas.Circle
}

func (r *sliderRenderer) update() {
	r.track.FillColor = Color(ColorTrack)
	main := Color(theme.ColorNamePrimary)
	if r.s.disabled {
		main = Color(theme.ColorNameDisabled)
	}
	r.run.FillColor, r.knob.FillColor = main, main
	r.halo.FillColor = color.Transparent
	if !r.s.disabled && (r.s.focused || r.s.hovered) {
		r.halo.FillColor = Color(theme.ColorNameFocus)
		if !r.s.focused {
			r.halo.FillColor = Color(theme.ColorNameHover)
		}
	}
	size := r.s.Size()
	mid := size.Height / 2
	at := float32(0)
	if r.s.Max > r.s.Min {
		at = float32((r.s.value - r.s.Min) / (r.s.Max - r.s.Min))
	}
	x := at * max(0, size.Width-knobSize)
	r.track.Move(fyne.NewPos(0, mid-2))
	r.track.Resize(fyne.NewSize(size.Width, 4))
	r.run.Move(fyne.NewPos(0, mid-2))
	r.run.Resize(fyne.NewSize(x+knobSize/2, 4))
	r.knob.Move(fyne.NewPos(x, mid-knobSize/2))
	r.knob.Resize(fyne.NewSize(knobSize, knobSize))
	r.halo.Move(fyne.NewPos(x-4, mid-knobSize/2-4))
	r.halo.Resize(fyne.NewSize(knobSize+8, knobSize+8))
}

func (r *sliderRenderer) MinSize() fyne.Size { return fyne.NewSize(80, 24) }
func (r *sliderRenderer) Layout(fyne.Size)   { r.update() }
func (r *sliderRenderer) Destroy()           {}
func (r *sliderRenderer) Refresh()           { r.update(); canvas.Refresh(r.s) }
func (r *sliderRenderer) Objects() []fyne.CanvasObject {
	return []fyne.CanvasObject{r.halo, r.track, r.run, r.knob}
}
