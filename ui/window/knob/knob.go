// Package knob is a named slider with a number that can be typed, and one sentence that says
// what it does.
package knob

import (
	"math"
	"strconv"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"firesteel/ui/window/look"
)

// Kind says what a knob is for.
type Kind struct {
	Name, Symbol   string // "Creativity", "temperature"
	Help           string // one sentence
	Min, Max, Step float64
	Decimals       int
	Say            func(v float64) string // what this value means in words; may be nil
}

// Knob is the widget. All methods belong to the UI thread.
type Knob struct {
	widget.BaseWidget
	OnChanged func(float64) // a person moved it or typed a number

	kind    Kind
	hints   *look.Hints
	slider  *look.Slider
	number  *Number
	title   *look.Text
	symbol  *look.Text
	meaning *look.Text
	content *fyne.Container
}

// New returns a knob at the smallest value. hints shows the help.
func New(kind Kind, hints *look.Hints) *Knob {
	k := &Knob{kind: kind, hints: hints}
	k.ExtendBaseWidget(k)
	k.title = look.NewText(kind.Name)
	k.symbol = look.Caption("(" + kind.Symbol + ")")
	k.meaning = look.Caption("")
	k.meaning.Shrink = true
	help := look.NewTextButton("?", func() { k.toggleHelp() })
	help.Quiet = true
	help.OnHover = k.hover
	k.slider = look.NewSlider(kind.Min, kind.Max, kind.Step)
	k.slider.OnChanged = k.changed
	k.slider.OnHover = k.hover
	k.number = newNumber(k)
	top := look.Line(4, 2, k.title, k.symbol, look.Fixed(0, 0, container.NewHBox(help)), look.Fixed(48, 0, container.NewThemeOverride(k.number, &look.Compact{})))
	k.content = look.Rows(0, top, k.slider, k.meaning)
	k.Set(kind.Min)
	return k
}

func (k *Knob) changed(v float64) {
	// First, because the words may depend on whether a person set it.
	if k.OnChanged != nil {
		k.OnChanged(v)
	}
	k.show(v)
}

func (k *Knob) show(v float64) {
	k.number.write(strconv.FormatFloat(v, 'f', k.kind.Decimals, 64))
	k.say(v)
}

func (k *Knob) say(v float64) {
	words := ""
	if k.kind.Say != nil {
		words = k.kind.Say(v)
	}
	k.meaning.Set(words)
}

// Set moves the knob without calling OnChanged.
func (k *Knob) Set(v float64) {
	k.slider.SetValue(v)
	k.show(k.slider.Value())
}

// Value returns where it stands.
func (k *Knob) Value() float64 { return k.slider.Value() }

// SetMax changes the largest value that can be chosen.
func (k *Knob) SetMax(max float64) {
	k.slider.SetRange(k.kind.Min, max)
	k.show(k.slider.Value())
}

// Turn switches the knob on, or off with the reason in words.
func (k *Knob) Turn(on bool, reason string) {
	if on {
		k.slider.Enable()
		k.number.Enable()
		k.title.Paint(theme.ColorNameForeground)
		k.show(k.slider.Value())
		return
	}
	k.slider.Disable()
	k.number.Disable()
	k.title.Paint(look.ColorMuted)
	k.number.write("–")
	k.meaning.Set(reason)
}

// On says whether it can be moved.
func (k *Knob) On() bool { return !k.slider.Disabled() }

// Meaning returns the words under the slider.
func (k *Knob) Meaning() string { return k.meaning.Text() }

// Type behaves as if a person had typed text into the number and pressed Return.
func (k *Knob) Type(text string) {
	k.number.SetText(text)
	k.number.take()
}

// Slider returns the slider, for focus and tests.
func (k *Knob) Slider() *look.Slider { return k.slider }

// Number returns the numeric entry, for focus and tests.
func (k *Knob) Number() *Number { return k.number }

func (k *Knob) toggleHelp() {
	if k.hints.Shown() == k.kind.Help {
		k.hints.Hide()
		return
	}
	k.hints.Show(k, k.kind.Help)
}

// MouseIn shows the help while the pointer is on the knob. Called by Fyne.
func (k *Knob) MouseIn(*desktop.MouseEvent) { k.hover(true) }

// MouseMoved is called by Fyne.
func (k *Knob) MouseMoved(*desktop.MouseEvent) {}

// MouseOut is called by Fyne.
func (k *Knob) MouseOut() { k.hover(false) }

func (k *Knob) hover(inside bool) {
	if inside {
		k.hints.Show(k, k.kind.Help)
	} else {
		k.hints.Hide()
	}
}

// CreateRenderer is Fyne's way to draw the widget.
func (k *Knob) CreateRenderer() fyne.WidgetRenderer { return widget.NewSimpleRenderer(k.content) }

// Number is the small entry beside the name. It accepts a number in the knob's range and
// goes back to the last good one otherwise.
type Number struct {
	widget.Entry
	knob *Knob
}

func newNumber(k *Knob) *Number {
	n := &Number{knob: k}
	n.ExtendBaseWidget(n)
	n.Wrapping = fyne.TextWrapOff
	n.Scroll = fyne.ScrollNone
	n.OnSubmitted = func(string) { n.take() }
	return n
}

func (n *Number) write(text string) {
	if n.Text != text {
		n.SetText(text)
	}
}

// take reads what was typed: a number out of range becomes the nearest in it, anything else
// is undone.
func (n *Number) take() {
	v, err := strconv.ParseFloat(strings.TrimSpace(strings.Replace(n.Text, ",", ".", 1)), 64)
	s := n.knob.slider
	if err != nil || math.IsNaN(v) || s.Disabled() {
		if !s.Disabled() {
			n.knob.show(s.Value())
		}
		return
	}
	before := s.Value()
	s.SetValue(v)
	if s.Value() == before {
		n.knob.show(before)
		return
	}
	n.knob.changed(s.Value())
}

// FocusLost takes the number as Return does. Called by Fyne.
func (n *Number) FocusLost() {
	n.Entry.FocusLost()
	n.take()
}
