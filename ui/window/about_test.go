package window

import (
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"firesteel/ui/window/licences"
)

func TestShowLicences(t *testing.T) {
	s := open(t, &scripted{})
	s.showAbout()
	begun := time.Now()
	test.Tap(findButton(t, s.win.Canvas().Overlays().Top(), "Licences"))
	opened := time.Since(begun)
	all := licences.All()

	title := func(l licences.Licence) string { return strings.TrimSpace(l.Name + "  " + l.Version) }
	reads := func(l licences.Licence) {
		t.Helper()
		shown := s.dialogText()
		if !strings.Contains(shown, title(l)+"\n") || !strings.Contains(shown, l.Text) {
			t.Errorf("%s is not shown: %.200q", l.Name, shown)
		}
		if len(shown) > len(l.Text)+4000 {
			t.Errorf("%d bytes are laid out for a text of %d", len(shown), len(l.Text))
		}
	}
	reads(all[0])
	list, ok := s.win.Canvas().Focused().(*names)
	if !ok {
		t.Fatalf("the keyboard is in %T", s.win.Canvas().Focused())
	}
	list.TypedKey(&fyne.KeyEvent{Name: fyne.KeyDown})
	reads(all[1])
	last := all[len(all)-1]
	list.Select(len(all) - 1)
	reads(last)
	t.Logf("opened in %v", opened)

	test.Tap(findButton(t, s.win.Canvas().Overlays().Top(), "Copy"))
	if got, want := s.app.Clipboard().Content(), title(last)+"\n\n"+last.Text; got != want {
		t.Errorf("copied: %.200q", got)
	}
	list.TypedKey(&fyne.KeyEvent{Name: fyne.KeyEscape})
	if s.dialog != nil || s.win.Canvas().Focused() != s.prompt.Focusable() {
		t.Error("Escape does not lead back to the prompt")
	}
}
