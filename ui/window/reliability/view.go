package reliability

import (
	"fmt"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"firesteel/core/confidence"
	"firesteel/ui/window/look"
)

// View shows what calibrating found: for one guessed word at a time the two diagrams, before and
// after, with their figures, and below them what each caution would bring.
type View struct {
	Content fyne.CanvasObject

	m             *confidence.Measured
	word          *widget.Select
	before, after *side
	verdict       *widget.Label
}

// side is one diagram and its figures.
type side struct {
	diagram *Diagram
	figures *look.Text
	content fyne.CanvasObject
}

func newSide(name string) *side {
	s := &side{diagram: NewDiagram(), figures: look.Caption("")}
	axis := look.Caption("right: how sure, up: came true")
	s.content = look.Rows(look.Unit/2, look.Heading(name), look.Fixed(square, square, s.diagram), axis, s.figures)
	return s
}

func (s *side) show(score confidence.Score) {
	s.diagram.Set(score.Bins)
	s.figures.Set(fmt.Sprintf("off by %.1f %% (ECE) · AUC %.2f", 100*score.Error, score.AUC))
}

// NewView shows m.
func NewView(m *confidence.Measured) *View {
	v := &View{m: m, before: newSide("Before"), after: newSide("After"), verdict: widget.NewLabel("")}
	v.verdict.Wrapping = fyne.TextWrapWord
	v.verdict.SetText(verdict(m))
	var words []string
	for k := range m.Before {
		words = append(words, fmt.Sprintf("Word %d", k+1))
	}
	v.word = widget.NewSelect(words, func(string) { v.show(v.word.SelectedIndex()) })
	caption := look.Caption("guessed ahead, all words up to it together")
	caption.Shrink = true
	v.Content = look.Rows(look.Unit,
		look.Line(look.Unit, 1, v.word, caption),
		look.Line(3*look.Unit, -1, v.before.content, v.after.content),
		look.Heading("Caution and speed"), speeds(m),
		look.Tight(v.verdict))
	if len(words) > 0 {
		v.word.SetSelectedIndex(0)
	}
	return v
}

func (v *View) show(word int) {
	v.before.show(v.m.Before[word])
	v.after.show(v.m.After[word])
}

// speeds is a table: every second caution, each word its own, and no drafter.
func speeds(m *confidence.Measured) fyne.CanvasObject {
	grid := container.NewGridWithColumns(4)
	cell := func(text string, strong bool) {
		t := look.Caption(text)
		t.Align = fyne.TextAlignTrailing
		t.Bold = strong
		if strong {
			t.Paint(theme.ColorNameForeground)
		}
		grid.Add(t)
	}
	for _, title := range []string{"caution", "words checked", "words per check", "words per second"} {
		cell(title, false)
	}
	best := fastest(m)
	for i, s := range m.Speeds {
		if !s.Slots && i%2 == 1 && i != best {
			continue
		}
		name := fmt.Sprintf("%.1f", s.Threshold)
		if s.Slots {
			name = "each word its own"
		}
		for _, text := range []string{name, fmt.Sprintf("%.1f", s.Checked), fmt.Sprintf("%.2f", s.Tau), fmt.Sprintf("%.0f", s.PerSecond)} {
			cell(text, i == best)
		}
	}
	if m.Costs.Plain > 0 {
		for _, text := range []string{"no drafter", "0.0", "1.00", fmt.Sprintf("%.0f", 1/m.Costs.Plain)} {
			cell(text, false)
		}
	}
	return grid
}

// fastest is the place of the fastest speed, the first among equals.
func fastest(m *confidence.Measured) int {
	best := 0
	for i, s := range m.Speeds {
		if s.PerSecond > m.Speeds[best].PerSecond {
			best = i
		}
	}
	return best
}

// few checks are those that leave an error of some percent to chance.
const few = 1500

// verdict says in words what using it would change.
func verdict(m *confidence.Measured) string {
	var before, after float64
	for k := range m.Before {
		before += m.Before[k].Error / float64(len(m.Before))
		after += m.After[k].Error / float64(len(m.After))
	}
	words := fmt.Sprintf("The drafter's confidence was off by %.1f %% on average and is off by %.1f %% once calibrated, on %d checks it was not fitted to.",
		100*before, 100*after, m.HeldOut)
	if m.HeldOut < few {
		words += " With so few checks much of that is chance."
	}
	if m.Pays {
		return words + " Used, each word gets a caution of its own unless you set one. The words stay the target's."
	}
	return words + " No caution of each word's own makes it faster, so nothing is left out unless you set one. The words stay the target's."
}
