package window

import (
	"fmt"
	"slices"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"

	"firesteel/core/library"
	"firesteel/core/library/found"
	"firesteel/ui/window/look"
)

// pickerList is the list under a picker that was opened last.
type pickerList struct {
	menu *widget.PopUpMenu // nil before the first
	role role
}

// followFound keeps the lists of found models true until the window closes.
func (w *Window) followFound() {
	w.options.Found.Follow(w.life, func(all []found.Model) {
		w.later(func() { w.showFound(all) })
	})
}

// showFound takes a new list of found models, also for a picker that is open.
func (w *Window) showFound(all []found.Model) {
	w.models.found = [2][]found.Model{}
	for _, m := range all {
		r := target
		if m.What.Kind == library.Drafter {
			r = drafter
		}
		w.models.found[r] = append(w.models.found[r], m)
	}
	if open := w.models.list.menu; open != nil && open.Visible() {
		open.Hide()
		w.openPicker(w.models.list.role)
	}
}

// inFront tells the finder whether the window is in front.
func (w *Window) inFront(yes bool) {
	if w.options.Found != nil {
		w.options.Found.Front(yes)
	}
}

// foundLimit is how many found models a picker lists; the others are one step further, so that the
// list stays below its card.
const foundLimit = 8

// foundItems are a picker's entries for found models, under a heading; those among the recent
// folders are not said again.
func (w *Window) foundItems(r role) []*fyne.MenuItem {
	m := &w.models
	var items []*fyne.MenuItem
	labels := map[string]bool{}
	for _, f := range m.found[r] {
		if slices.ContainsFunc(w.recent(r), func(dir string) bool { return dir == f.What.Dir || m.real[dir] == f.Real }) {
			continue
		}
		label := f.Name + " · " + f.What.Precision + " · " + look.Files(f.What.FileBytes)
		if labels[label] { // the same model in another place
			label += " · " + shortPath(f.What.Dir)
		}
		labels[label] = true
		items = append(items, fyne.NewMenuItem(label, func() { w.choose(r, f.What.Dir) }))
	}
	if len(items) == 0 {
		return nil
	}
	if len(items) > foundLimit+1 {
		more := fyne.NewMenuItem(fmt.Sprintf("%d more", len(items)-foundLimit), nil)
		more.ChildMenu = fyne.NewMenu("", items[foundLimit:]...)
		items = append(slices.Clone(items[:foundLimit]), more)
	}
	heading := fyne.NewMenuItem("Found on "+look.Machine(), nil)
	heading.Disabled = true
	return append([]*fyne.MenuItem{heading}, items...)
}

// openPicker shows the ways to choose a folder, under the card.
func (w *Window) openPicker(r role) {
	w.inFront(true) // it is, and a look now makes the list that of this moment
	menu := widget.NewPopUpMenu(fyne.NewMenu("", w.pickerItems(r)...), w.win.Canvas())
	w.models.list = pickerList{menu, r}
	card := w.models.cards[r]
	pos := w.app.Driver().AbsolutePositionForObject(card).AddXY(0, card.Size().Height+4)
	menu.ShowAtPosition(pos)
	menu.Resize(fyne.NewSize(max(menu.MinSize().Width, card.Size().Width), menu.MinSize().Height))
}
