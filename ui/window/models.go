package window

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"fyne.io/fyne/v2"

	"firesteel/core/engine"
	"firesteel/core/library"
	"firesteel/core/library/found"
	"firesteel/ui/window/look"
	"firesteel/ui/window/picker"
	"firesteel/ui/window/settings"
)

// role numbers the two pickers.
type role int

const (
	target role = iota
	drafter
)

func (r role) library() library.Role {
	if r == drafter {
		return library.Drafter
	}
	return library.Target
}

func (r role) word() string { return [2]string{"target", "drafter"}[r] }

// choice is the folder that one picker shows.
type choice struct {
	dir     string               // as chosen; "" for none
	what    *library.Description // nil until it has been looked at, and when it can't be used
	err     error                // why it can't be used
	looking bool
	sign    string // the folder's signature when it was looked at
	turn    int    // counts choices, so that a slow look at an earlier one is dropped
}

// models is what has been chosen and what is loaded.
type models struct {
	cards   [2]*picker.Card
	choices [2]choice
	builtin [2]string // folders of the pair that comes with the app; "" when there is none
	loaded  engine.Loaded
	// loadedWhat describes what is loaded, for defaults and comparison.
	loadedWhat [2]*library.Description
	pairErr    error                // why the two chosen don't go together
	faults     [3]string            // of target, drafter and pair, as they were recorded last
	held       *library.Description // the drafter chosen, as it will be in memory beside the target
	note       string               // under the drafter, about how it was chosen
	reading    engine.Memory        // the newest one
	real       map[string]string    // recent folders without any link in them; "" for those that aren't there now
	found      [2][]found.Model     // on this computer, by name
	list       pickerList
}

const (
	demoTarget  = "Firesteel Demo"
	demoDrafter = "Demo drafter"
)

func (w *Window) makeModels() fyne.CanvasObject {
	var parts []fyne.CanvasObject
	for r, title := range []string{"TARGET", "DRAFTER"} {
		card := picker.NewCard()
		card.OnTapped = func() { w.openPicker(role(r)) }
		w.models.cards[r] = card
		parts = append(parts, look.Rows(4, look.Heading(title), card))
	}
	parts = append(parts, w.makeLoad())
	return look.Rows(look.Unit, parts...)
}

// firstChoice picks the models to begin with: those of the last time, else the pair that
// comes with the app; and loads them.
func (w *Window) firstChoice(pairErr error) {
	s := w.settings
	dirs := [2]string{s.Target, s.Drafter}
	for r := range dirs {
		if dirs[r] == "" {
			dirs[r] = w.models.builtin[r]
		}
	}
	if dirs[target] == "" {
		if pairErr != nil {
			w.say(oneLine(pairErr))
		}
		return
	}
	if s.NoDrafter {
		dirs[drafter] = ""
	}
	w.look(dirs, "", w.core != nil)
}

// choose takes a folder for one picker; what goes with the other is found out in the
// background.
func (w *Window) choose(r role, dir string) {
	dirs := [2]string{w.models.choices[target].dir, w.models.choices[drafter].dir}
	dirs[r] = dir
	find := ""
	if r == target {
		find = dir
	}
	w.look(dirs, find, false)
}

// look describes the folders in the background, shows them, and loads them if asked to and if
// they fit. With find not empty, a drafter that doesn't go with the new target is replaced by
// one that is found there.
func (w *Window) look(dirs [2]string, find string, load bool) {
	m := &w.models
	m.note = ""
	var turns [2]int
	for r := range dirs {
		c := &m.choices[r]
		c.turn++
		turns[r] = c.turn
		if c.dir != dirs[r] || c.err != nil {
			c.dir, c.what, c.err = dirs[r], nil, nil
		}
		c.looking = dirs[r] != "" && c.what == nil
	}
	m.pairErr = nil
	w.showAll()
	builtin := m.builtin
	w.spawn(func() {
		var found [2]choice
		for r := range dirs {
			found[r] = describe(role(r), dirs[r], builtin)
		}
		note := ""
		if find != "" && found[target].err == nil {
			found[drafter], note = partner(found, builtin)
		}
		var pairErr error
		if t, d := found[target].what, found[drafter].what; t != nil && d != nil {
			pairErr = library.CheckPair(*t, *d)
		}
		weight := held(found[target].what, found[drafter].what)
		w.later(func() {
			for r := range found {
				if m.choices[r].turn != turns[r] {
					return // another folder has been chosen meanwhile
				}
			}
			for r := range found {
				found[r].turn = turns[r]
				m.choices[r] = found[r]
			}
			m.pairErr, m.note, m.held = pairErr, note, weight
			w.recordFaults()
			w.showAll()
			if load && w.usable() && !w.tooLarge() {
				w.loadChosen()
			}
		})
	})
}

// recordFaults records why what is chosen can't be used. Folders are looked at again and again while
// files are copied into them, so a fault is recorded once.
func (w *Window) recordFaults() {
	m := &w.models
	for r, err := range []error{m.choices[target].err, m.choices[drafter].err, m.pairErr} {
		fault := ""
		if err != nil {
			fault = err.Error()
		}
		if fault != "" && fault != m.faults[r] {
			slog.Error("what was chosen can't be used", "error", err)
		}
		m.faults[r] = fault
	}
}

func describe(r role, dir string, builtin [2]string) choice {
	c := choice{dir: dir}
	if dir == "" {
		return c
	}
	c.sign = library.Signature(dir) // before the look, so that a later change is noticed
	d, err := library.DescribeAs(r.library(), dir)
	if err != nil {
		c.err = err
		return c
	}
	if builtin[r] != "" && same(d.Dir, builtin[r]) {
		d.Name = [2]string{demoTarget, demoDrafter}[r]
	}
	c.what = &d
	return c
}

// partner keeps the drafter if it goes with the target, else finds one beside the target.
func partner(found [2]choice, builtin [2]string) (choice, string) {
	t := *found[target].what
	if d := found[drafter].what; d != nil && library.CheckPair(t, *d) == nil {
		return found[drafter], ""
	}
	if dir, ok := library.FindDrafter(t.Dir); ok {
		if c := describe(drafter, dir, builtin); c.err == nil {
			return c, "Found beside the target."
		}
	}
	if same(t.Dir, builtin[target]) {
		return describe(drafter, builtin[drafter], builtin), ""
	}
	return choice{}, "No drafter for this target was found beside it."
}

// same says whether two paths name one folder.
func same(a, b string) bool {
	if a == b {
		return true
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// usable says whether what is chosen can be loaded.
func (w *Window) usable() bool {
	t, d := w.models.choices[target], w.models.choices[drafter]
	return t.what != nil && !t.looking && !d.looking && d.err == nil && w.models.pairErr == nil
}

// asLoaded says whether what is chosen is what is loaded.
func (w *Window) asLoaded() bool {
	for r := range w.models.choices {
		chosen, loaded := w.models.choices[r].what, w.models.loadedWhat[r]
		if (chosen == nil) != (loaded == nil) || chosen != nil && chosen.Dir != loaded.Dir {
			return false
		}
	}
	return w.models.loaded.Target != nil
}

// recommended is what the loaded target's folder recommends.
func (w *Window) recommended() (g generation) {
	if d := w.models.loadedWhat[target]; d != nil {
		g.Temperature, g.TopP, g.MinP, g.TopK = d.Generation.Temperature, d.Generation.TopP, d.Generation.MinP, d.Generation.TopK
	}
	return g
}

// generation is what a target's folder recommends; nil where it is silent.
type generation struct {
	Temperature, TopP, MinP *float64
	TopK                    *int
}

func (w *Window) showCards() {
	for r, card := range w.models.cards {
		card.Set(w.cardWords(role(r)))
	}
}

func (w *Window) cardWords(r role) picker.Show {
	c := w.models.choices[r]
	s := picker.Show{}
	if loaded := w.models.loadedWhat[r]; loaded != nil && c.what != nil && loaded.Dir == c.what.Dir {
		s.Loaded = true
	}
	switch {
	case c.dir == "":
		if r == drafter {
			if w.models.choices[target].what != nil {
				s.Name, s.About = "None", "Writes without guessing ahead"
			}
			s.Note = w.models.note
		}
	case c.err != nil:
		s.Name, s.Bad = library.Name(c.dir), true
		s.Note = oneLine(c.err)
	case c.what == nil:
		s.Name, s.About = library.Name(c.dir), "Looking …"
	default:
		s.Name, s.About = c.what.Name, about(*c.what)
		s.Detail = parameters(c.what.Parameters)
		if r == drafter {
			s.Detail = fmt.Sprintf("γ %d", c.what.Block)
			s.Note = w.models.note
			if w.models.pairErr != nil {
				s.Note, s.Bad = oneLine(w.models.pairErr), true
			}
		}
	}
	return s
}

// about says what a folder holds: "Gemma 4 · bf16 · 28 MB".
func about(d library.Description) string {
	return d.FamilyName() + " · " + d.Precision + " · " + look.Files(d.FileBytes)
}

// parameters writes a count the way models are called: "14 M", "12 B".
func parameters(n int64) string {
	switch {
	case n >= 100e9:
		return fmt.Sprintf("%.0f B", float64(n)/1e9)
	case n >= 1e9:
		return strings.Replace(fmt.Sprintf("%.1f B", float64(n)/1e9), ".0 B", " B", 1)
	case n >= 1e6:
		return fmt.Sprintf("%.0f M", float64(n)/1e6)
	case n > 0:
		return fmt.Sprintf("%.1f M", float64(n)/1e6)
	}
	return ""
}

func (w *Window) pickerItems(r role) []*fyne.MenuItem {
	var items []*fyne.MenuItem
	m := &w.models
	if m.builtin[r] != "" {
		items = append(items, fyne.NewMenuItem([2]string{demoTarget, demoDrafter}[r], func() { w.choose(r, m.builtin[r]) }))
	}
	for _, dir := range w.recent(r) {
		if dir == m.builtin[r] {
			continue
		}
		items = append(items, w.recentItem(r, dir))
	}
	if r == drafter && m.choices[target].what != nil {
		items = append(items, fyne.NewMenuItem("None, no guessing ahead", func() { w.choose(r, "") }))
	}
	choose := []*fyne.MenuItem{
		fyne.NewMenuItem("Choose a folder…", func() { w.browse(r) }),
		fyne.NewMenuItem("Type a path…", func() { w.typePath(r) }),
	}
	if m.cards[r].Shown().Bad {
		choose = append(choose, fyne.NewMenuItem("Show the log", w.showLog))
	}
	for _, group := range [][]*fyne.MenuItem{w.foundItems(r), choose} {
		if len(items) > 0 && len(group) > 0 {
			items = append(items, fyne.NewMenuItemSeparator())
		}
		items = append(items, group...)
	}
	return items
}

// recentItem is the entry of a recent folder, grey while the folder isn't there.
func (w *Window) recentItem(r role, dir string) *fyne.MenuItem {
	item := fyne.NewMenuItem(shortPath(dir), func() { w.choose(r, dir) })
	if name := library.Name(dir); strings.Contains(name, "/") {
		item.Label = name // the path in a hub's cache ends in a hash
	}
	if real, looked := w.models.real[dir]; looked && real == "" {
		item.Label += " (not there now)"
		item.Disabled = true
	}
	return item
}

func (w *Window) recent(r role) []string {
	if r == drafter {
		return w.settings.RecentDrafters
	}
	return w.settings.RecentTargets
}

// remember keeps what has been loaded for the next start.
func (w *Window) remember() {
	s, m := &w.settings, &w.models
	dirs := [2]string{}
	for r := range dirs {
		if d := m.loadedWhat[r]; d != nil && d.Dir != m.builtin[r] {
			dirs[r] = d.Dir
		}
	}
	s.Target, s.Drafter = dirs[target], dirs[drafter]
	s.NoDrafter = m.loadedWhat[drafter] == nil
	if s.Target != "" {
		s.RecentTargets = settings.Remember(s.RecentTargets, s.Target)
	}
	if s.Drafter != "" {
		s.RecentDrafters = settings.Remember(s.RecentDrafters, s.Drafter)
	}
	w.save()
}

// save keeps the settings as they are now.
func (w *Window) save() {
	if size := w.win.Canvas().Size(); size.Width >= 640 && size.Height >= 480 {
		w.settings.Width, w.settings.Height = size.Width, size.Height
	}
	w.saver.save(w.settings)
}

// shortPath writes a path for a menu: the home folder as ~, the middle left out when long.
func shortPath(dir string) string {
	if home, err := os.UserHomeDir(); err == nil && home != "/" {
		if rest, ok := strings.CutPrefix(dir, home+string(filepath.Separator)); ok {
			dir = "~" + string(filepath.Separator) + rest
		}
	}
	const most = 48
	if r := []rune(dir); len(r) > most {
		tail := string(r[len(r)-most+8:])
		if i := strings.IndexRune(tail, filepath.Separator); i > 0 && i < most-12 {
			tail = tail[i:]
		}
		return string(r[:6]) + "…" + tail
	}
	return dir
}

// dropped takes folders that were dropped on the window: on a card, or else wherever the
// folder belongs.
func (w *Window) dropped(at fyne.Position, uris []fyne.URI) {
	if len(uris) == 0 {
		return
	}
	dir := uris[0].Path()
	for r, card := range w.models.cards {
		pos := w.app.Driver().AbsolutePositionForObject(card)
		if at.X >= pos.X && at.Y >= pos.Y && at.X <= pos.X+card.Size().Width && at.Y <= pos.Y+card.Size().Height {
			w.choose(role(r), dir)
			return
		}
	}
	w.spawn(func() {
		d, err := library.Describe(dir)
		w.later(func() {
			switch {
			case err != nil:
				w.explain("looking at a folder", err)
			case d.Kind == library.Drafter:
				w.choose(drafter, dir)
			default:
				w.choose(target, dir)
			}
		})
	})
}
