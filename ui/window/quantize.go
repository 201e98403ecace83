package window

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"fyne.io/fyne/v2/widget"

	"firesteel/core/job"
	"firesteel/core/library"
	"firesteel/core/quantize"
	"firesteel/models/checkpoint"
	"firesteel/ui/window/look"
	"firesteel/ui/window/sheet"
)

// trialTokens is how long the answers are that a drafter is tried out on.
const trialTokens = 60

// quantizeForm is what is asked before quantizing.
type quantizeForm struct {
	role    role // of what is quantized
	source  library.Description
	builtin bool
	from    *look.Text
	about   *look.Text
	to      *widget.Entry
	typed   bool // the person has named the destination
	bits    *widget.RadioGroup
	sizes   *widget.Label
	plan    *quantize.Plan
	turn    int // counts looks, so that a slow one at earlier choices is dropped
}

// precision is one of those that the sheet offers.
type precision struct {
	label, name string
	packing     checkpoint.Quantization
	recommended bool
}

var precisions = []precision{
	{"4-bit, recommended", "4-bit", checkpoint.Quantization{Bits: 4}, false},
	{"4 to 8-bit, where it matters more", "mixed", checkpoint.Quantization{Bits: 4}, true},
	{"8-bit, closest to the original", "8-bit", checkpoint.Quantization{Bits: 8}, false},
	{"3-bit, smallest", "3-bit", checkpoint.Quantization{Bits: 3}, false},
}

// ofQuantizing are the sheet's words for a target and for a drafter.
var ofQuantizing = [2]struct{ title, none, choose, cancelled, done string }{
	target: {"Quantize Target", "No target is chosen", "Choose the folder of a target",
		"Cancelled. Nothing was left behind, and the target is as it was.", "The target is quantized"},
	drafter: {"Quantize Drafter", "No drafter is chosen", "Choose the folder of a drafter",
		"Cancelled. Nothing was left behind, and the drafter is as it was.", "The drafter is quantized"},
}

// quantizeDrafter and quantizeTarget open the sheet: the running job's, or a new one about the model
// that is chosen.
func (w *Window) quantizeDrafter() { w.openQuantize(drafter) }
func (w *Window) quantizeTarget()  { w.openQuantize(target) }

func (w *Window) openQuantize(r role) {
	if w.jobs.running() {
		w.showSheet()
		return
	}
	words := ofQuantizing[r]
	w.jobs.sheet = sheet.New(words.title)
	f := &quantizeForm{role: r, from: look.NewText(""), about: look.Caption(""), to: widget.NewEntry(), sizes: look.Sentences("")}
	w.jobs.form = f
	f.from.Bold, f.from.Shrink, f.about.Shrink = true, true, true
	f.to.OnChanged = func(string) { f.typed = true; w.planQuantizing() }
	var labels []string
	for _, p := range precisions {
		labels = append(labels, p.label)
	}
	f.bits = radio(labels, 0)
	f.bits.OnChanged = func(string) { w.nameDestination(); w.planQuantizing() }
	other := look.NewTextButton("Choose another…", func() {
		w.browseFor(words.choose, w.startFolder(r), func(dir string) {
			w.showSheet()
			w.quantizeFrom(dir)
		})
	})
	w.jobs.sheet.Show(look.Rows(16,
		sheet.Field("From", look.Line(8, 0, look.Rows(2, f.from, f.about), other)),
		sheet.Field("How small", look.Tight(f.bits)),
		sheet.Field("To", f.to),
		look.Tight(f.sizes)), w.formButtons()...)
	w.showSheet()
	if dir := w.models.choices[r].dir; dir != "" {
		w.quantizeFrom(dir)
		return
	}
	f.from.Set(words.none)
	f.about.Set(words.choose + ".")
}

func (w *Window) formButtons() []sheet.Button {
	f := w.jobs.form
	return []sheet.Button{w.closing("Close"), {Label: "Quantize", Pressed: w.quantize, Main: true, Off: f == nil || f.plan == nil || w.core == nil}}
}

// quantizeFrom takes another source into the form.
func (w *Window) quantizeFrom(dir string) {
	f := w.jobs.form
	f.turn++
	turn := f.turn
	builtin := w.models.builtin
	w.spawn(func() {
		c := describe(f.role, dir, builtin)
		w.later(func() {
			if w.jobs.form != f || f.turn != turn {
				return
			}
			if c.err != nil {
				f.plan = nil
				f.from.Set(filepath.Base(dir))
				f.about.Set("")
				f.sizes.SetText("")
				w.jobs.sheet.Note(oneLine(c.err), true)
				w.jobs.sheet.Buttons(w.formButtons()...)
				return
			}
			f.source, f.builtin = *c.what, same(c.what.Dir, builtin[f.role])
			f.from.Set(f.source.Name)
			f.about.Set(about(f.source))
			f.typed = false
			w.nameDestination()
			w.planQuantizing()
		})
	})
}

// nameDestination proposes a folder, unless the person has named one.
func (w *Window) nameDestination() {
	f := w.jobs.form
	if f.typed || f.source.Dir == "" {
		return
	}
	changed := f.to.OnChanged
	f.to.OnChanged = nil
	f.to.SetText(proposed(f.source, f.builtin, precisions[f.selected()].name))
	f.to.OnChanged = changed
}

func (f *quantizeForm) selected() int {
	return max(0, slices.IndexFunc(precisions, func(p precision) bool { return p.label == f.bits.Selected }))
}

// planQuantizing works out, in the background, what would come of the form as it is.
func (w *Window) planQuantizing() {
	f := w.jobs.form
	if f.source.Dir == "" {
		return
	}
	f.turn++
	turn := f.turn
	p := precisions[f.selected()]
	o := quantize.Options{Source: f.source.Dir, Destination: home(strings.TrimSpace(f.to.Text)), Packing: p.packing, Recommended: p.recommended, Notes: w.keepIn()}
	o.MakeParent = filepath.Base(filepath.Dir(o.Destination)) == ownFolder
	w.spawn(func() {
		plan, err := quantize.NewPlan(o)
		w.later(func() {
			if w.jobs.form != f || f.turn != turn || w.jobs.running() {
				return
			}
			f.plan = plan
			if err != nil {
				f.sizes.SetText("")
				w.jobs.sheet.Note(oneLine(err), true)
			} else {
				f.sizes.SetText(fmt.Sprintf("%s on disk instead of %s, and %s less memory once it is used.", look.FilesFinely(plan.ResultBytes), look.FilesFinely(plan.SourceBytes),
					look.Memory(plan.MemoryBefore-plan.MemoryAfter)))
				w.jobs.sheet.Note("", false)
			}
			w.jobs.sheet.Buttons(w.formButtons()...)
		})
	})
}

// trial is how a drafter did on a few prompts; 0 where it was not tried.
type trial struct{ before, after float64 }

// quantize begins the job that the form asks for.
func (w *Window) quantize() {
	f := w.jobs.form
	if f == nil || f.plan == nil || w.core == nil || w.jobs.running() {
		return
	}
	plan, core := f.plan, w.core
	t := w.begin("Quantizing "+f.source.Name, nil)
	// A drafter can be compared with the copy where its target is loaded.
	compare := f.role == drafter && w.models.loaded.Target != nil && w.models.loadedWhat[target] != nil && library.CheckPair(*w.models.loadedWhat[target], plan.Model) == nil
	tell := func(p job.Progress) {
		t.tell(p, func() string { return look.FilesOf(p.Done, p.Total) })
	}
	w.spawn(func() {
		defer t.cancel()
		result, err := core.Quantize(t.ctx, plan, tell)
		var tried trial
		if err == nil && compare {
			w.later(func() { t.working("Trying it out …", sheet.Button{Label: "Skip", Pressed: t.cancel}) })
			tried.before, tried.after = tryOut(t.ctx, core, plan.Source, result.Dir)
		}
		w.later(func() { w.quantized(f.role, plan, result, tried, err) })
	})
}

// tryOut measures words per check of two drafters on a few prompts; zeros where that fails: the copy
// is made either way.
func tryOut(ctx context.Context, core Core, before, after string) (a, b float64) {
	a, err := core.Tau(ctx, before, examples, trialTokens)
	if err == nil {
		b, err = core.Tau(ctx, after, examples, trialTokens)
	}
	if err != nil {
		slog.Warn("trying a quantized drafter out", "error", err)
		return 0, 0
	}
	return a, b
}

func (w *Window) quantized(r role, plan *quantize.Plan, result quantize.Result, t trial, err error) {
	words := ofQuantizing[r]
	if !w.over(err, ending{doing: "Quantizing", stopped: words.cancelled}, w.again(func() { w.openQuantize(r) }), w.closing("Close")) {
		return
	}
	sentence := fmt.Sprintf("%s instead of %s", look.FilesFinely(result.ResultBytes), look.FilesFinely(plan.SourceBytes))
	if t.before > 0 {
		sentence += fmt.Sprintf(", %.1f words per check instead of %.1f", t.after, t.before)
	}
	saved := fmt.Sprintf("Uses %s less memory. It is in %s.", look.Memory(plan.MemoryBefore-plan.MemoryAfter), shortPath(result.Dir))
	w.offerMade(r, result.Dir, words.done, sentence, saved)
}
