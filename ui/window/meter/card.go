// Package meter is the memory card: what each part holds, what the machine has left, and a
// line of the last two minutes.
package meter

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"firesteel/core/engine"
	"firesteel/ui/window/look"
)

// Level says how close the machine is to trouble.
type Level int

const (
	Calm  Level = iota
	Amber       // from 80 % of what is safe
	Red         // from 90 %
)

// LevelOf judges a reading: what Firesteel holds against what it could hold before the
// machine has to swap, keeping a reserve of an eighth of the machine (2 GB at most).
func LevelOf(m engine.Memory) Level {
	if m.MachineTotal <= 0 || m.Process <= 0 {
		return Calm
	}
	reserve := min(m.MachineTotal/8, 2<<30)
	safe := m.Process + m.Available - reserve
	if safe <= 0 {
		return Red
	}
	switch share := float64(m.Process) / float64(safe); {
	case share >= 0.9:
		return Red
	case share >= 0.8:
		return Amber
	}
	return Calm
}

// Card is the widget. All methods belong to the UI thread.
type Card struct {
	widget.BaseWidget
	OnResized func() // it needs another height now; may be nil

	level   Level
	graph   *graph
	parts   [4]*look.Text // values: target, drafter, context, peak
	holds   *look.Text
	machine *look.Text
	advice  *widget.Label
	help    *look.TextButton
	warning *fyne.Container
	content fyne.CanvasObject
}

// New returns a card without readings. help is called by the button that shows in red.
func New(helpLabel string, help func()) *Card {
	c := &Card{graph: newGraph(), advice: widget.NewLabel(""), help: look.NewTextButton(helpLabel, help)}
	c.ExtendBaseWidget(c)
	names := [4]string{"Target", "Drafter", "Context", "Peak"}
	var cells [4]fyne.CanvasObject
	for i := range names {
		c.parts[i] = value("–")
		cells[i] = look.Line(4, 0, look.Caption(names[i]), c.parts[i])
	}
	c.holds, c.machine = value("–"), value("–")
	c.advice.Wrapping = fyne.TextWrapWord
	c.advice.SizeName = theme.SizeNameCaptionText
	c.warning = look.Rows(0, look.Tight(c.advice), look.Pad(0, 0, -look.Unit, 0, look.Line(0, -1, c.help)))
	c.warning.Hide()
	c.content = look.Rows(look.Unit,
		look.Line(look.Unit, 1, look.Heading("MEMORY"), c.graph),
		look.Rows(4,
			sideBySide(cells[0], cells[1]), sideBySide(cells[2], cells[3]),
			look.Line(4, 0, look.Caption("Firesteel holds"), c.holds),
			look.Line(4, 0, look.Caption("Free on "+look.Machine()), c.machine)),
		c.warning)
	return c
}

func value(text string) *look.Text {
	t := look.Caption(text)
	t.Color = theme.ColorNameForeground
	t.Align = fyne.TextAlignTrailing
	return t
}

// Set shows a reading and adds it to the line. Every part that holds nothing shows –.
func (c *Card) Set(m engine.Memory) {
	for i, v := range [4]int64{m.Target, m.Drafter, m.Context, max(m.Peak, m.Active)} {
		text := "–"
		if v > 0 {
			text = look.Memory(v)
		}
		c.parts[i].Set(text)
	}
	if m.Process > 0 {
		c.holds.Set(look.MemoryGB(m.Process))
		c.graph.add(m.Process)
	}
	if m.MachineTotal > 0 {
		c.machine.Set(look.Gigabytes(m.Available) + " of " + look.MemoryGB(m.MachineTotal))
	}
	level := LevelOf(m)
	ink := map[Level]fyne.ThemeColorName{Calm: theme.ColorNameForeground, Amber: theme.ColorNameWarning, Red: theme.ColorNameError}[level]
	c.holds.Paint(ink)
	c.machine.Paint(ink)
	c.graph.paint(level)
	if level == c.level {
		return
	}
	c.level = level
	switch level {
	case Amber:
		c.advice.Importance = widget.WarningImportance
		c.advice.SetText("Memory is getting short.")
	case Red:
		c.advice.Importance = widget.DangerImportance
		c.advice.SetText("Memory is nearly full; " + look.Machine() + " may become slow.")
	}
	if level == Calm {
		c.warning.Hide()
	} else {
		c.warning.Show()
	}
	if level == Red {
		c.help.Show()
	} else {
		c.help.Hide()
	}
	c.Refresh()
	if c.OnResized != nil {
		c.OnResized()
	}
}

// Level returns what the card warns of.
func (c *Card) Level() Level { return c.level }

// Words returns what the card says, for tests: parts, what Firesteel holds, the machine.
func (c *Card) Words() []string {
	out := []string{}
	for _, p := range c.parts {
		out = append(out, p.Text())
	}
	return append(out, c.holds.Text(), c.machine.Text())
}

// CreateRenderer is Fyne's way to draw the widget.
func (c *Card) CreateRenderer() fyne.WidgetRenderer { return widget.NewSimpleRenderer(c.content) }
