// Package prompt is the box that a person writes in. Return sends, Shift+Return begins a
// line; a long paste is kept beside the box instead of in it.
package prompt

import (
	"fmt"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"firesteel/ui/window/look"
)

// pasteLimit is how many bytes are pasted into the box itself. Fyne lays out the whole text
// at every key, so that a longer one would make typing slow.
const pasteLimit = 4000

// Box is the prompt with its button. All methods belong to the UI thread.
type Box struct {
	widget.BaseWidget
	OnSend     func(text string) // called with the text that isn't blank
	OnStop     func()
	OnShortcut func(fyne.Shortcut) // shortcuts that aren't about editing

	entry   *entry
	send    *widget.Button
	running bool
	ready   bool
	pasted  string
	chip    *fyne.Container
	chipRow *look.Text
	content *fyne.Container
}

// New returns an empty box.
func New() *Box {
	b := &Box{ready: true}
	b.ExtendBaseWidget(b)
	b.entry = newEntry(b)
	b.entry.OnChanged = func(string) { b.fitRows(); b.showButton() }
	b.send = widget.NewButtonWithIcon("", theme.MailSendIcon(), b.press)
	b.send.Importance = widget.HighImportance
	b.chipRow = look.Caption("")
	drop := look.NewTextButton("Remove", func() { b.keepPasted("") })
	b.chip = look.Pad(0, 4, 12, 8, look.Line(look.Unit, -1, b.chipRow, drop))
	b.chip.Hide()
	b.content = look.Rows(0, b.chip,
		container.New(withButton{}, b.entry, b.send))
	b.showButton()
	return b
}

// withButton lays the entry at the left and the button at its lower right.
type withButton struct{}

const buttonSize float32 = 40

func (withButton) Layout(o []fyne.CanvasObject, size fyne.Size) {
	o[0].Resize(fyne.NewSize(size.Width-buttonSize-look.Unit, size.Height))
	o[1].Resize(fyne.NewSize(buttonSize, buttonSize))
	o[1].Move(fyne.NewPos(size.Width-buttonSize, size.Height-buttonSize))
}

func (withButton) MinSize(o []fyne.CanvasObject) fyne.Size {
	m := o[0].MinSize()
	return fyne.NewSize(m.Width+buttonSize+look.Unit, max(m.Height, buttonSize))
}

// Text returns everything that would be sent.
func (b *Box) Text() string {
	switch {
	case b.pasted == "":
		return b.entry.Text
	case strings.TrimSpace(b.entry.Text) == "":
		return b.pasted
	}
	return b.entry.Text + "\n\n" + b.pasted
}

// SetText replaces the text; a long one is kept beside the box.
func (b *Box) SetText(text string) {
	b.keepPasted("")
	if len(text) > pasteLimit {
		b.keepPasted(text)
		text = ""
	}
	b.entry.SetText(text)
	b.entry.CursorRow = strings.Count(text, "\n")
	b.entry.CursorColumn = len([]rune(text[strings.LastIndex(text, "\n")+1:]))
	b.entry.Refresh()
	b.fitRows()
	b.showButton()
}

// Focusable returns what the keyboard should go to.
func (b *Box) Focusable() fyne.Focusable { return b.entry }

// Pasted returns the text kept beside the box.
func (b *Box) Pasted() string { return b.pasted }

// Running turns the button into Stop, or back into send.
func (b *Box) Running(yes bool) {
	b.running = yes
	b.showButton()
}

// Ready says whether sending is possible; while it isn't, text can still be written.
func (b *Box) Ready(yes bool) {
	b.ready = yes
	b.showButton()
}

// Placeholder says what to do here, while the box is empty.
func (b *Box) Placeholder(text string) {
	b.entry.SetPlaceHolder(text)
}

func (b *Box) showButton() {
	if b.send == nil {
		return
	}
	icon, importance, off := theme.MailSendIcon(), widget.HighImportance, !b.ready || strings.TrimSpace(b.Text()) == ""
	if b.running {
		icon, off = theme.MediaStopIcon(), false
	}
	if b.send.Icon != icon || b.send.Importance != importance {
		b.send.Icon, b.send.Importance = icon, importance
		b.send.Refresh()
	}
	if off != b.send.Disabled() {
		if off {
			b.send.Disable()
		} else {
			b.send.Enable()
		}
	}
}

// Press does what the button does: Stop while running, else send.
func (b *Box) Press() { b.press() }

func (b *Box) press() {
	if b.running {
		if b.OnStop != nil {
			b.OnStop()
		}
		return
	}
	b.submit()
}

func (b *Box) submit() {
	if text := b.Text(); !b.running && b.ready && strings.TrimSpace(text) != "" && b.OnSend != nil {
		b.OnSend(text)
	}
}

func (b *Box) keepPasted(text string) {
	b.pasted = text
	if text == "" {
		b.chip.Hide()
	} else {
		b.chipRow.Set(fmt.Sprintf("Pasted text, %s words: “%s”", grouped(len(strings.Fields(text))), opening(text)))
		b.chip.Show()
	}
	b.showButton()
	b.content.Refresh()
	b.Refresh()
}

// opening returns the first few words of a text, on one line.
func opening(text string) string {
	head := text[:min(len(text), 400)]
	words := strings.Join(strings.Fields(strings.ToValidUTF8(head, "")), " ")
	if r := []rune(words); len(r) > 48 {
		words = string(r[:48]) + "…"
	}
	return words
}

func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// fitRows lets the box grow from two lines to eight with its text.
func (b *Box) fitRows() {
	rows := 0
	for _, l := range strings.Split(b.entry.Text, "\n") {
		rows++
		if w := b.entry.Size().Width - 4*look.Inset; w > 0 {
			rows += int(fyne.MeasureText(l, theme.TextSize(), fyne.TextStyle{}).Width / w)
		}
		if rows > 8 {
			break
		}
	}
	rows = max(2, min(8, rows))
	if rows != b.entry.rows {
		b.entry.rows = rows
		b.entry.SetMinRowsVisible(rows)
		b.content.Refresh()
		b.Refresh()
	}
}

// CreateRenderer is Fyne's way to draw the widget.
func (b *Box) CreateRenderer() fyne.WidgetRenderer { return widget.NewSimpleRenderer(b.content) }

// entry is Fyne's with Return and Shift+Return the other way round.
type entry struct {
	widget.Entry
	box   *Box
	rows  int
	shift bool
}

func newEntry(b *Box) *entry {
	e := &entry{box: b, rows: 2}
	e.MultiLine = true
	e.Wrapping = fyne.TextWrapWord
	e.ExtendBaseWidget(e)
	e.SetMinRowsVisible(2)
	return e
}

// The methods below are called by Fyne.

func (e *entry) KeyDown(k *fyne.KeyEvent) {
	if k.Name == desktop.KeyShiftLeft || k.Name == desktop.KeyShiftRight {
		e.shift = true
	}
	e.Entry.KeyDown(k)
}

func (e *entry) KeyUp(k *fyne.KeyEvent) {
	if k.Name == desktop.KeyShiftLeft || k.Name == desktop.KeyShiftRight {
		e.shift = false
	}
	e.Entry.KeyUp(k)
}

func (e *entry) FocusLost() {
	e.shift = false
	e.Entry.FocusLost()
}

// AcceptsTab is false: Tab goes to the next thing in the window.
func (e *entry) AcceptsTab() bool { return false }

func (e *entry) TypedKey(k *fyne.KeyEvent) {
	if (k.Name == fyne.KeyReturn || k.Name == fyne.KeyEnter) && !e.shift {
		e.box.submit()
		return
	}
	if k.Name == fyne.KeyEscape && e.box.running {
		e.box.press()
		return
	}
	e.Entry.TypedKey(k)
}

func (e *entry) TypedShortcut(s fyne.Shortcut) {
	switch s := s.(type) {
	case *fyne.ShortcutPaste:
		if text := s.Clipboard.Content(); len(text)+len(e.Text) > pasteLimit {
			e.box.keepPasted(joined(e.box.pasted, text))
			return
		}
	case *desktop.CustomShortcut:
		// Fyne's entry swallows what it doesn't know; its own custom ones are about words.
		if e.box.OnShortcut != nil && s.KeyName != fyne.KeyBackspace && s.KeyName != fyne.KeyDelete &&
			s.KeyName != fyne.KeyLeft && s.KeyName != fyne.KeyRight {
			e.box.OnShortcut(s)
			return
		}
	}
	e.Entry.TypedShortcut(s)
}

func joined(before, text string) string {
	if before == "" {
		return text
	}
	return before + "\n\n" + text
}
