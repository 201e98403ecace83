package window

import (
	"fmt"
	"runtime"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/widget"

	"firesteel/ui/window/look"
	"firesteel/ui/window/settings"
)

// menu keeps the entries that change.
type menu struct {
	main                      *fyne.MainMenu
	stop, retry, load, unload *fyne.MenuItem
	recent                    *fyne.MenuItem
	quantize                  [2]*fyne.MenuItem
	calibrate                 *fyne.MenuItem
	train, tune               *fyne.MenuItem
	themes, sizes             []*fyne.MenuItem
	shown                     string // state that the bar was last drawn for
}

func keys(k fyne.KeyName) fyne.Shortcut {
	return &desktop.CustomShortcut{KeyName: k, Modifier: fyne.KeyModifierShortcutDefault}
}

func entry(label string, key fyne.KeyName, action func()) *fyne.MenuItem {
	i := fyne.NewMenuItem(label, action)
	if key != "" {
		i.Shortcut = keys(key)
	}
	return i
}

func (w *Window) makeMenu() {
	m := &w.menu
	m.stop = entry("Stop", fyne.KeyPeriod, w.stop)
	m.retry = entry("Retry", fyne.KeyR, w.retryLast)
	m.load = entry("Load", "", w.askLoad)
	m.unload = entry("Unload", "", w.unload)
	m.recent = entry("Recent", "", nil)
	m.recent.ChildMenu = fyne.NewMenu("")
	quit := entry("Quit", fyne.KeyQ, w.quit)
	quit.IsQuit = true
	model := fyne.NewMenu("Model",
		entry("New Chat", fyne.KeyN, w.newChat), m.stop, m.retry,
		fyne.NewMenuItemSeparator(),
		entry("Choose Target…", fyne.KeyO, func() { w.browse(target) }),
		entry("Choose Drafter…", "", func() { w.browse(drafter) }),
		m.recent, m.load, m.unload,
		fyne.NewMenuItemSeparator(), quit)

	for _, o := range []struct {
		label string
		mode  look.Mode
	}{{"As the System", look.System}, {"Light", look.Light}, {"Dark", look.Dark}} {
		m.themes = append(m.themes, entry(o.label, "", func() { w.setTheme(o.mode) }))
	}
	for _, percent := range settings.TextSizes {
		m.sizes = append(m.sizes, entry(fmt.Sprintf("%d %%", percent), "", func() { w.setTextSize(percent) }))
	}
	themes, sizes := entry("Theme", "", nil), entry("Text Size", "", nil)
	themes.ChildMenu, sizes.ChildMenu = fyne.NewMenu("", m.themes...), fyne.NewMenu("", m.sizes...)
	view := fyne.NewMenu("View", themes, sizes,
		entry("Larger Text", fyne.KeyEqual, func() { w.stepTextSize(1) }),
		entry("Smaller Text", fyne.KeyMinus, func() { w.stepTextSize(-1) }),
		fyne.NewMenuItemSeparator(),
		entry("Go to Prompt", fyne.KeyL, w.focusPrompt),
		entry("Settings…", fyne.KeyComma, w.showSettings))

	help := fyne.NewMenu("Help",
		entry("Keyboard Shortcuts", "", w.showShortcuts),
		entry("Show Log", "", w.showLog),
		entry("About Firesteel", "", w.showAbout))
	m.quantize = [2]*fyne.MenuItem{target: entry("Quantize Target…", "", w.quantizeTarget), drafter: entry("Quantize Drafter…", "", w.quantizeDrafter)}
	m.calibrate = entry("Calibrate…", "", w.calibrate)
	m.train = entry("Train Drafter…", "", w.trainDrafter)
	m.tune = entry("Tune Drafter…", "", w.tuneDrafter)
	work := fyne.NewMenu("Jobs", m.quantize[drafter], m.quantize[target], m.calibrate, m.train, m.tune)
	m.main = fyne.NewMainMenu(model, work, view, help)
	w.win.SetMainMenu(m.main)
}

// showMenu greys out what can't be done now and marks what is set.
func (w *Window) showMenu() {
	m := &w.menu
	if m.main == nil {
		return
	}
	m.stop.Disabled = w.writing.turn == nil
	m.retry.Disabled = w.writing.turn != nil || len(w.talk.Turns()) == 0
	m.load.Disabled = w.core == nil || w.load.cancel != nil || !w.usable() || w.asLoaded()
	m.unload.Disabled = w.load.cancel != nil || w.models.loaded.Target == nil
	var recent []*fyne.MenuItem
	if dir := w.models.builtin[target]; dir != "" {
		recent = append(recent, entry(demoTarget, "", func() { w.choose(target, dir) }))
	}
	for _, dir := range w.settings.RecentTargets {
		recent = append(recent, w.recentItem(target, dir))
	}
	m.recent.ChildMenu.Items = recent
	m.recent.Disabled = len(recent) == 0
	for i, mode := range []look.Mode{look.System, look.Light, look.Dark} {
		m.themes[i].Checked = w.theme.Mode == mode
	}
	for i, percent := range settings.TextSizes {
		m.sizes[i].Checked = w.settings.TextSize == percent
	}
	for _, q := range m.quantize {
		q.Disabled = w.core == nil
	}
	m.calibrate.Disabled = w.core == nil || !w.jobs.running() && (w.models.loaded.Drafter == nil || !w.models.loaded.Drafter.HasThreshold)
	m.train.Disabled = w.core == nil || !w.jobs.running() && w.models.loaded.Target == nil
	m.tune.Disabled = w.core == nil || !w.jobs.running() && !w.tunable()
	shown := fmt.Sprint(w.core == nil, m.calibrate.Disabled, m.train.Disabled, m.tune.Disabled, m.stop.Disabled, m.retry.Disabled, m.load.Disabled, m.unload.Disabled,
		w.settings.RecentTargets, w.models.real, w.models.builtin, w.theme.Mode, w.settings.TextSize)
	if shown != m.shown {
		m.shown = shown
		m.main.Refresh()
	}
}

func (w *Window) setTheme(mode look.Mode) {
	w.settings.Theme = string(mode)
	w.applyLook()
}

func (w *Window) setTextSize(percent int) {
	w.settings.TextSize = percent
	w.applyLook()
}

func (w *Window) stepTextSize(step int) {
	at := 0
	for i, percent := range settings.TextSizes {
		if percent <= w.settings.TextSize {
			at = i
		}
	}
	w.setTextSize(settings.TextSizes[max(0, min(len(settings.TextSizes)-1, at+step))])
}

// applyLook draws the window anew in the theme and text size that are set.
func (w *Window) applyLook() {
	w.theme = &look.Theme{Mode: look.Mode(w.settings.Theme), Scale: float32(w.settings.TextSize) / 100}
	w.app.Settings().SetTheme(w.theme)
	w.side.Layout = look.FixedLayout(w.sideWidth(), 0)
	w.talk.Remeasure()
	w.content.Refresh()
	w.save()
	w.showMenu()
}

func (w *Window) showSettings() {
	names := []string{"As the system", "Light", "Dark"}
	modes := []look.Mode{look.System, look.Light, look.Dark}
	themes := widget.NewSelect(names, nil)
	for i, m := range modes {
		if m == w.theme.Mode {
			themes.SetSelectedIndex(i)
		}
	}
	themes.OnChanged = func(string) { w.setTheme(modes[themes.SelectedIndex()]) }
	var percents []string
	for _, p := range settings.TextSizes {
		percents = append(percents, fmt.Sprintf("%d %%", p))
	}
	sizes := widget.NewSelect(percents, nil)
	for i, p := range settings.TextSizes {
		if p == w.settings.TextSize {
			sizes.SetSelectedIndex(i)
		}
	}
	sizes.OnChanged = func(string) { w.setTextSize(settings.TextSizes[sizes.SelectedIndex()]) }
	form := widget.NewForm(widget.NewFormItem("Theme", themes), widget.NewFormItem("Text size", sizes))
	w.showDialog(dialog.NewCustom("Settings", "Done", look.Fixed(420, 0, look.Rows(2*look.Unit, form, w.chatSettings())), w.win))
}

// showDialog shows a dialog in place of any other; the keyboard returns to the prompt when it
// closes, also by Escape.
func (w *Window) showDialog(d dialog.Dialog) {
	if before := w.dialog; before != nil {
		before.Hide()
	}
	w.dialog = d
	d.SetOnClosed(func() {
		if w.dialog == d {
			w.dialog = nil
		}
		w.focusPrompt()
	})
	d.Show()
}

// catchKeys takes keys that nothing else has: Escape closes what is open or stops, and what is
// typed goes to the prompt.
func (w *Window) catchKeys() {
	w.win.Canvas().SetOnTypedKey(func(k *fyne.KeyEvent) {
		if k.Name != fyne.KeyEscape {
			return
		}
		if d := w.dialog; d != nil {
			d.Hide()
			return
		}
		w.stop()
	})
	w.win.Canvas().SetOnTypedRune(func(r rune) {
		if w.dialog == nil && w.win.Canvas().Overlays().Top() == nil {
			w.focusPrompt()
			w.prompt.Focusable().TypedRune(r)
		}
	})
}

func (w *Window) showShortcuts() {
	mod := "Ctrl+"
	if runtime.GOOS == "darwin" {
		mod = "⌘"
	}
	rows := [][2]string{
		{"Return", "Send"}, {"Shift+Return", "Start a line"}, {"Esc or " + mod + ".", "Stop"},
		{mod + "N", "New chat"}, {mod + "R", "Retry"}, {mod + "L", "Go to the prompt"},
		{mod + "O", "Choose a target"}, {mod + ",", "Settings"}, {mod + "= or " + mod + "-", "Larger or smaller text"},
		{"Tab", "Next thing"}, {"Left, Right", "Move a slider"}, {mod + "Q", "Quit"},
	}
	grid := container.NewGridWithColumns(2)
	for _, r := range rows {
		key := look.NewText(r[0])
		key.Bold = true
		grid.Add(key)
		grid.Add(look.NewText(r[1]))
	}
	w.showDialog(dialog.NewCustom("Keyboard shortcuts", "Close", look.Fixed(400, 0, grid), w.win))
}
