package window

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"firesteel/core/engine"
	"firesteel/core/library"
	"firesteel/core/memory"
	"firesteel/core/tables"
	"firesteel/ui/window/look"
)

// load is the row under the pickers: Load with the bill, or the progress with Cancel.
type load struct {
	button *widget.Button
	bill   *look.Text
	hint   *widget.Label
	hints  *fyne.Container
	idle   *fyne.Container
	bar    *look.Bar
	bytes  *look.Text
	busy   *fyne.Container
	whole  *fyne.Container
	cancel context.CancelFunc // not nil while loading
	names  string             // what is being loaded
}

// contextBilled is how many tokens of context the bill counts, where the target has more.
const contextBilled = 8192

func (w *Window) makeLoad() fyne.CanvasObject {
	l := &w.load
	l.button = widget.NewButton("Load", w.askLoad)
	l.bill = look.Caption("")
	l.bill.Shrink = true
	l.idle = look.Line(12, 1, look.Fixed(88, 36, l.button), l.bill)
	l.bar, l.bytes = look.NewBar(), look.Caption("")
	cancel := widget.NewButton("Cancel", func() {
		if l.cancel != nil {
			l.cancel()
			l.bytes.Set("Cancelling …")
		}
	})
	l.bytes.Shrink = true
	l.busy = look.Line(12, 1, look.Fixed(88, 36, cancel), look.Rows(4, l.bytes, l.bar))
	l.hint = widget.NewLabel("")
	l.hint.Wrapping = fyne.TextWrapWord
	l.hint.SizeName = theme.SizeNameCaptionText
	l.hints = look.Tight(l.hint)
	l.whole = look.Rows(4, l.idle, l.busy, l.hints)
	return l.whole
}

func (w *Window) showLoad() {
	l := &w.load
	set := func(o fyne.CanvasObject, yes bool) {
		if yes != o.Visible() {
			if yes {
				o.Show()
			} else {
				o.Hide()
			}
		}
	}
	set(l.idle, l.cancel == nil)
	set(l.busy, l.cancel != nil)
	text, on, importance := "Load", w.core != nil && w.usable() && !w.asLoaded(), widget.MediumImportance
	if w.asLoaded() {
		text = "Loaded"
	}
	if on {
		importance = widget.HighImportance
	}
	if l.button.Text != text || l.button.Importance != importance || l.button.Disabled() == on {
		l.button.Text, l.button.Importance = text, importance
		if on {
			l.button.Enable()
		} else {
			l.button.Disable()
		}
		l.button.Refresh()
	}
	w.showBill()
}

// verdict judges what is chosen against the memory that would be free for it.
func (w *Window) verdict() (v memory.Verdict, b memory.Bill, ok bool) {
	t, d := w.models.choices[target].what, w.models.choices[drafter].what
	if t == nil || !w.usable() {
		return v, b, false
	}
	tokens := contextBilled
	if t.Context > 0 {
		tokens = min(tokens, t.Context)
	}
	if d != nil && w.models.held != nil {
		d = w.models.held
	}
	b = memory.BillFor(*t, d, tokens, w.core == nil || !w.core.OnGPU())
	m := w.models.reading
	// What is loaded stays until the new pair is complete, so it frees nothing; the pair that
	// is loaded already needs nothing more.
	free := m.Available
	if w.asLoaded() {
		free += m.Active + m.Cache
	}
	return memory.Judge(b, memory.Machine{Total: m.MachineTotal, Available: free}), b, true
}

// held describes what a drafter will take beside a target, as far as that is known before loading;
// nil without both.
func held(t, d *library.Description) *library.Description {
	place, err := tables.Place()
	if t == nil || d == nil || err != nil {
		return d
	}
	less := tables.Held(*t, *d, place)
	return &less
}

func (w *Window) tooLarge() bool {
	v, _, ok := w.verdict()
	return ok && w.models.reading.MachineTotal > 0 && v.Level == memory.DoesNotFit
}

func (w *Window) showBill() {
	l := &w.load
	words, ink, hint := "", look.ColorMuted, ""
	v, _, ok := w.verdict()
	switch {
	case ok && w.models.reading.MachineTotal > 0:
		words = levelWords(v.Level) + " · " + look.MemoryGB(v.Needs)
		ink = map[memory.Level]fyne.ThemeColorName{memory.Fits: theme.ColorNameSuccess, memory.Tight: theme.ColorNameWarning,
			memory.DoesNotFit: theme.ColorNameError}[v.Level]
		hint = w.hintWords(v, w.asLoaded())
	case ok:
		words = "needs " + look.MemoryGB(v.Needs)
	case w.models.choices[target].dir == "" && w.core != nil:
		words = "Choose a target first"
	}
	l.bill.Set(words)
	l.bill.Paint(ink)
	if l.hint.Text != hint {
		l.hint.SetText(hint)
	}
	if show := hint != "" && l.cancel == nil; show != l.hints.Visible() {
		if show {
			l.hints.Show()
		} else {
			l.hints.Hide()
		}
		l.whole.Refresh()
		w.column.fit()
	}
}

func levelWords(l memory.Level) string {
	return map[memory.Level]string{memory.Fits: "fits", memory.Tight: "tight", memory.DoesNotFit: "does not fit"}[l]
}

// hintWords says beside the bill how much is free and what would help, "" when it fits.
func (w *Window) hintWords(v memory.Verdict, loaded bool) string {
	if v.Level == memory.Fits || loaded {
		return ""
	}
	return strings.TrimSpace(look.MemoryGB(v.Free) + " free for it. " + w.remedyWords(v))
}

// remedyWords says what would help, "" where nothing is known to.
func (w *Window) remedyWords(v memory.Verdict) string {
	// How long the context may become is not for the person to say.
	hints := slices.DeleteFunc(slices.Clone(v.Hints), func(h memory.Hint) bool { return h.Remedy == memory.ShortenContext })
	if len(hints) == 0 {
		return ""
	}
	h := hints[0]
	if last := hints[len(hints)-1]; last.Remedy == memory.SmallerTarget {
		h = last // nothing milder is enough
	}
	if i := slices.IndexFunc(hints, func(h memory.Hint) bool { return h.Enough }); i >= 0 {
		h = hints[i]
	}
	switch h.Remedy {
	case memory.QuantizeDrafter:
		return fmt.Sprintf("A 4-bit drafter would save %s.", look.MemoryGB(h.Saves))
	case memory.LeaveDrafter:
		return fmt.Sprintf("Without the drafter it needs %s less.", look.MemoryGB(h.Saves))
	case memory.CloseOthers:
		return "Quit other programs first."
	case memory.SmallerTarget:
		if t := w.models.choices[target].what; t != nil && !quantized(t.Precision) {
			return "Choose a smaller target, or make this one smaller: Jobs, Quantize Target."
		}
		return "Choose a smaller target."
	}
	return ""
}

// askLoad is the Load button: it asks first when the models don't fit.
func (w *Window) askLoad() {
	if w.core == nil || !w.usable() || w.load.cancel != nil {
		return
	}
	if !w.tooLarge() {
		w.loadChosen()
		return
	}
	v, _, _ := w.verdict()
	text := look.Sentences(fmt.Sprintf("These models need %s and %s is free. %s may become very slow and other programs may be ended. %s",
		look.MemoryGB(v.Needs), look.MemoryGB(v.Free), strings.ToUpper(look.Machine()[:1])+look.Machine()[1:], w.remedyWords(v)))
	ask := dialog.NewCustomConfirm("Does not fit", "Load anyway", "Don't load", look.Fixed(420, 0, text), func(yes bool) {
		if yes {
			w.loadChosen()
		}
	}, w.win)
	w.showDialog(ask)
}

// loadChosen loads what is chosen, in the background.
func (w *Window) loadChosen() {
	if w.core == nil || !w.usable() || w.load.cancel != nil {
		return
	}
	if !w.writing.waiting { // a prompt that waits for a model waits for this one
		w.stop()
	}
	ctx, cancel := context.WithCancel(w.life)
	l, core := &w.load, w.core
	chosen := [2]*library.Description{w.models.choices[target].what, w.models.choices[drafter].what}
	request := engine.LoadRequest{TargetDir: chosen[target].Dir, Calibrations: w.calibrations()}
	l.names = chosen[target].Name
	if chosen[drafter] != nil {
		request.DrafterDir = chosen[drafter].Dir
	}
	l.cancel = cancel
	l.bar.Set(0)
	l.bytes.Set("Opening …")
	progress := &latest{post: w.later}
	request.Progress = func(done, total int64) {
		progress.set(func() {
			if l.cancel == nil {
				return
			}
			l.bar.Set(float64(done) / float64(max(1, total)))
			if ctx.Err() == nil {
				l.bytes.Set(look.FilesOf(done, total))
			}
		})
	}
	slog.Info("loading", "target", request.TargetDir, "drafter", request.DrafterDir)
	begun := time.Now()
	w.say("Loading " + l.names + " …")
	w.showAll()
	w.spawn(func() {
		defer cancel()
		loaded, err := core.Load(ctx, request)
		recordLoad(chosen, time.Since(begun), err)
		weight := held(chosen[target], chosen[drafter]) // known better now
		w.later(func() {
			if chosen == [2]*library.Description{w.models.choices[target].what, w.models.choices[drafter].what} {
				w.models.held = weight
			}
			w.loadEnded(loaded, chosen, err)
		})
	})
}

// recordLoad records how loading has ended.
func recordLoad(chosen [2]*library.Description, took time.Duration, err error) {
	took = took.Round(time.Millisecond)
	switch {
	case err == nil:
		size := chosen[target].FileBytes
		if chosen[drafter] != nil {
			size += chosen[drafter].FileBytes
		}
		slog.Info("loaded", "size", look.FilesFinely(size), "took", took)
	case errors.Is(err, context.Canceled):
		slog.Info("loading was cancelled", "took", took)
	default:
		slog.Error("loading failed", "took", took, "error", err)
	}
}

func (w *Window) loadEnded(loaded engine.Loaded, chosen [2]*library.Description, err error) {
	w.load.cancel = nil
	w.models.loaded = loaded
	switch {
	case err == nil:
		w.models.loadedWhat = chosen
		w.say("Ready.")
		w.remember()
	case errors.Is(err, context.Canceled):
		w.say(w.keeps("Loading was cancelled."))
	default:
		w.say(w.keeps(oneLine(err)))
		w.blame(err)
	}
	w.showAll()
	w.sendWaiting(err)
}

// blame shows a failure to load on the card that it concerns.
func (w *Window) blame(err error) {
	var pair *library.PairError
	if errors.As(err, &pair) {
		w.models.pairErr = err
		return
	}
	r := target
	if d := w.models.choices[drafter].what; d != nil && strings.Contains(err.Error(), d.Dir) {
		r = drafter
	}
	w.models.choices[r].err, w.models.choices[r].what = err, nil
}

// keeps adds what stays loaded.
func (w *Window) keeps(sentence string) string {
	if t := w.models.loadedWhat[target]; t != nil && w.models.loaded.Target != nil {
		return sentence + " " + t.Name + " stays loaded."
	}
	return sentence
}

// unload frees what is loaded.
func (w *Window) unload() {
	if w.core == nil || w.load.cancel != nil || w.models.loaded.Target == nil {
		return
	}
	w.stop()
	core := w.core
	w.spawn(func() {
		err := core.Unload(w.life)
		loaded := core.Loaded()
		w.later(func() {
			w.models.loaded = loaded
			if err != nil {
				w.explain("unloading", err)
			} else {
				slog.Info("unloaded")
				w.models.loadedWhat = [2]*library.Description{}
				w.say("Unloaded. Its memory is free again.")
			}
			w.showAll()
		})
	})
}
