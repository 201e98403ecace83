package window

import (
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"firesteel/ui/window/licences"
	"firesteel/ui/window/look"
	"firesteel/ui/window/sheet"
)

func (w *Window) showAbout() {
	version := w.options.Version
	if version != "" {
		version = "Version " + version + ". "
	}
	text := look.Sentences(version + "A large model decides every word; a small drafter guesses several ahead, and the large one checks the guesses at once. " +
		"The text is the large model's, only sooner. Everything happens on " + look.Machine() + ".\n\n" +
		"Firesteel and the models that come with it are under the Apache License 2.0. " +
		"It computes with MLX (MIT) and is drawn with Fyne (BSD). The demo was trained on text written by SmolLM2-135M-Instruct (Apache 2.0).")
	s := sheet.New("Firesteel")
	var d dialog.Dialog
	s.Show(look.Tight(text),
		sheet.Button{Label: "Licences", Pressed: w.showLicences},
		sheet.Button{Label: "Close", Pressed: func() { d.Hide() }})
	d = w.openSheet(s)
}

// Least and largest size of the sheet of licences, in Fyne's pixels; the window decides between them.
// The height is that of the texts alone.
var leastLicences, mostLicences = fyne.NewSize(560, 180), fyne.NewSize(900, 380)

// showLicences opens the sheet with the licences of all that ships in the program, one at a time.
func (w *Window) showLicences() {
	all := licences.All()
	size := w.win.Canvas().Size().SubtractWidthHeight(80, 200).Min(mostLicences).Max(leastLicences)
	s := sheet.NewWide("Licences", size.Width)
	caption := func() *widget.Label {
		l := widget.NewLabel("")
		l.SizeName = theme.SizeNameCaptionText
		return l
	}
	title, text := caption(), caption()
	title.TextStyle.Bold, title.Selectable, title.Truncation = true, true, fyne.TextTruncateEllipsis
	text.Selectable, text.Wrapping = true, fyne.TextWrapWord
	scroll := container.NewVScroll(text)
	var d dialog.Dialog
	names := &names{}
	names.Length = func() int { return len(all) }
	names.CreateItem = func() fyne.CanvasObject {
		l := caption()
		l.Truncation = fyne.TextTruncateEllipsis
		return l
	}
	names.UpdateItem = func(i widget.ListItemID, o fyne.CanvasObject) { o.(*widget.Label).SetText(all[i].Name) }
	names.OnSelected = func(i widget.ListItemID) {
		title.SetText(strings.TrimSpace(all[i].Name + "  " + all[i].Version))
		text.SetText(all[i].Text)
		scroll.ScrollToTop()
	}
	names.OnHighlighted = func(i widget.ListItemID) { names.Select(i) } // the arrow keys read on
	names.escaped = func() { d.Hide() }
	names.HideSeparators = true
	names.ExtendBaseWidget(names)
	names.Select(0)

	reading := container.NewStack(look.NewPanel(look.ColorCode, look.ColorEdge, 6), look.Frame(title, nil, nil, scroll))
	s.Show(look.Fixed(0, size.Height, look.Frame(nil, nil, look.Fixed(260, 0, look.Pad(0, 0, 0, 12, names)), reading)),
		sheet.Button{Label: "Copy", Pressed: func() {
			w.app.Clipboard().SetContent(title.Text + "\n\n" + text.Text)
			s.Note("Copied.", false)
		}},
		sheet.Button{Label: "Close", Pressed: func() { d.Hide() }})
	d = w.openSheet(s)
	w.win.Canvas().Focus(names)
}

// names is a list that leaves Escape to the sheet it is in.
type names struct {
	widget.List
	escaped func()
}

// TypedKey is called by Fyne.
func (n *names) TypedKey(k *fyne.KeyEvent) {
	if k.Name == fyne.KeyEscape {
		n.escaped()
		return
	}
	n.List.TypedKey(k)
}
