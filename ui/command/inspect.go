package command

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/dustin/go-humanize"

	"firesteel/core/library"
	"firesteel/core/memory"
	"firesteel/core/tables"
)

// gigabytes shows memory the way the system does: units of 2³⁰ bytes, called GB.
func gigabytes(bytes int64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%.0f MB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.1f GB", float64(bytes)/(1<<30))
}

func (t *terminal) inspect(_ context.Context, c *command, args []string) error {
	f := t.flags(c)
	asJSON := f.Bool("json", false, "print one JSON object")
	if err := t.parse(c, f, args); err != nil {
		return err
	}
	if f.NArg() != 1 {
		return usageError(fmt.Sprintf("inspect needs one folder, not %d.", f.NArg()))
	}
	d, err := library.Describe(f.Arg(0))
	if err != nil {
		return err
	}
	target, drafter, partner := partners(d)
	if place, err := tables.Place(); err == nil && drafter != nil && target.Kind == library.Target {
		held := tables.Held(target, *drafter, place)
		drafter = &held
	}
	bill := memory.BillFor(target, drafter, billedContext(target), !t.onGPU())
	reading := memory.Read()
	verdict := memory.Judge(bill, memory.Machine{Total: reading.MachineTotal, Available: reading.Available})
	if *asJSON {
		line, err := json.Marshal(struct {
			library.Description
			PairsWith string
			Bill      memory.Bill
			Verdict   string
		}{d, partner, bill, verdict.Level.String()})
		if err == nil {
			fmt.Fprintf(t.out, "%s\n", line)
		}
		return err
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t"+format+"\n", append([]any{name}, args...)...)
	}
	row("folder", "%s", shown(d.Dir))
	row("kind", "%s, %s (%s)", d.Kind, d.FamilyName(), d.ModelType)
	row("size", "%s parameters, %s on disk", humanize.SIWithDigits(float64(d.Parameters), 1, ""), humanize.Bytes(uint64(d.FileBytes)))
	row("precision", "%s", d.Precision)
	for _, m := range d.ModulesByPrecision {
		row("", "%d modules in %s", m.Modules, m.Precision)
	}
	row("shape", "%d layers, width %d, vocabulary %d", d.Layers, d.Hidden, d.Vocabulary)
	if d.Context > 0 && d.Kind == library.Target {
		row("context", "%s tokens", humanize.Comma(int64(d.Context)))
	}
	if d.Kind == library.Drafter {
		made := fmt.Sprintf("of %d layers", d.TargetLayers)
		if d.TargetLayers == 0 {
			made = fmt.Sprintf("of width %d", d.TargetHidden)
		}
		row("drafts", "up to %d ahead, for a target %s", d.Block, made)
		row("taps", "%s", strings.Trim(fmt.Sprint(d.Taps), "[]"))
		row("heads", "%s", heads(d))
	}
	if err := d.Loadable(); err != nil {
		row("opens", "no: %s", err)
	}
	if partner == "" {
		partner = "nothing found beside it"
	}
	row("pairs with", "%s", partner)
	if drafter != nil {
		if doubt := library.DoubtPair(target, *drafter); doubt != "" {
			row("", "but %s", doubt)
		}
	}
	row("memory", "%s: weights %s + %s, context of %d %s, working set %s", gigabytes(bill.Needs()), gigabytes(bill.Target), gigabytes(bill.Drafter),
		bill.Tokens, gigabytes(bill.Context), gigabytes(bill.Working))
	row("", "%s; %s free of %s", verdict.Level, gigabytes(reading.Available), gigabytes(reading.MachineTotal))
	return w.Flush()
}

// onGPU tells whether models would run on a GPU here; where nothing can run them, that they would not.
func (t *terminal) onGPU() bool {
	core, err := t.Open()
	if err != nil {
		return false
	}
	defer core.Close()
	return core.OnGPU()
}

func heads(d library.Description) string {
	var list []string
	if d.MarkovRank > 0 {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s Markov, rank %d", strings.TrimSuffix(d.MarkovHead, "markov"), d.MarkovRank)))
	}
	if d.HasConfidence {
		list = append(list, "confidence")
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, "; ")
}

// partners finds the other half of a pair, for the bill: a drafter alone is billed alone.
func partners(d library.Description) (target library.Description, drafter *library.Description, partner string) {
	if d.Kind == library.Target {
		if dir, ok := library.FindDrafter(d.Dir); ok {
			if other, err := library.Describe(dir); err == nil {
				return d, &other, dir
			}
		}
		return d, nil, ""
	}
	if dir, ok := library.FindTarget(d.Dir); ok {
		if other, err := library.Describe(dir); err == nil {
			return other, &d, dir
		}
	}
	return d, nil, ""
}

// billedContext is the length that a bill is made for: what the model can hold, up to 8,192.
func billedContext(d library.Description) int {
	if d.Context == 0 {
		return 8192
	}
	return min(d.Context, 8192)
}
