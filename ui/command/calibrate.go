package command

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/dustin/go-humanize"

	"firesteel/core/calibrate"
	"firesteel/core/confidence"
	"firesteel/core/engine"
	"firesteel/core/job"
	"firesteel/core/prompts"
)

// calibration is the JSON form of what calibrate found.
type calibration struct {
	Target  confidence.Model `json:"target"`
	Drafter confidence.Model `json:"drafter"`
	Band    string           `json:"band"`
	*confidence.Measured
	Written string `json:"sts_written,omitempty"` // the drafter's folder
}

func (t *terminal) calibrate(ctx context.Context, c *command, args []string) error {
	f := t.flags(c)
	p := plan{set: map[string]bool{}}
	f.StringVar(&p.target, "target", "", "the model's `DIR`; without it, the pair that comes with Firesteel")
	f.StringVar(&p.drafter, "drafter", "", "the drafter's `DIR`; without it, the one beside the target that goes with it")
	file := f.String("prompts", "", "a `FILE` of prompts, a line each: text, or JSON with \"prompt\", \"p\" or \"messages\"; without it, a few that come with Firesteel")
	chats := f.Bool("chats", false, chatsHelp)
	rounds := f.Int("rounds", calibrate.DefaultRounds, "look at `N` checks")
	f.Float64Var(&p.temperature, "temperature", 0, "calibrate for creativity about `T`, 0 apart; default the model's own, else 0.7")
	writeSTS := f.Bool("write-sts", false, "write the thresholds into the drafter's dspark.json as well")
	force := f.Bool("force", false, "with --write-sts, in place of thresholds that are there")
	f.BoolVar(&p.json, "json", false, "print the JSON object alone")
	if err := t.parse(c, f, args); err != nil {
		return err
	}
	f.Visit(func(x *flag.Flag) { p.set[x.Name] = true })
	switch rest := f.Args(); {
	case len(rest) > 0:
		return usageError(fmt.Sprintf("%q is not a flag.", rest[0]))
	case p.set["target"] && p.target == "":
		return usageError("--target is empty; give a folder.")
	case p.set["drafter"] && p.drafter == "":
		return usageError("--drafter is empty; give a folder.")
	case p.drafter == "none":
		return usageError("there is nothing to calibrate without a drafter.")
	case *rounds < 2*confidence.FewForThreshold:
		return usageError(fmt.Sprintf("--rounds must be %d or more, not %d.", 2*confidence.FewForThreshold, *rounds))
	case !(p.temperature >= 0 && p.temperature <= 100):
		return usageError(fmt.Sprintf("--temperature must be a number from 0 to 100, not %g.", p.temperature))
	case p.set["prompts"] && *chats:
		return errBoth
	case *force && !*writeSTS:
		return usageError("--force goes with --write-sts.")
	}
	list := prompts.Builtin()
	if p.set["prompts"] {
		var err error
		if list, err = prompts.Load(*file); err != nil {
			return err
		}
	}
	target, drafter, err := t.folders(p)
	if err != nil {
		return err
	}
	if drafter == "" {
		return usageError("no drafter was found beside the target; name one with --drafter.")
	}
	if *chats {
		if list, err = ownChats(target); err != nil {
			return err
		}
	}
	if *writeSTS {
		// Before the work, not after it.
		if err := calibrate.CanWrite(drafter, *force); err != nil {
			return err
		}
	}
	place, err := t.calibrations()
	if err != nil {
		return err
	}
	removeLeftovers()
	core, loaded, err := t.load(ctx, engine.LoadRequest{TargetDir: target, DrafterDir: drafter})
	if err != nil {
		return err
	}
	defer core.Close()
	pair, err := calibrate.Pair(loaded)
	if err != nil {
		return err
	}
	if !p.set["temperature"] {
		p.temperature = ownTemperature(loaded.Target)
	}
	m, err := calibrate.Run(ctx, core, calibrate.Job{Prompts: list, Rounds: *rounds, Temperature: p.temperature}, t.jobProgress(func(n int64) string { return humanize.Comma(n) }))
	fmt.Fprint(t.err, "\r\x1b[K")
	if err != nil {
		return err
	}
	if _, err := pair.Keep(place, m); err != nil {
		return err
	}
	result := calibration{Target: pair.Target, Drafter: pair.Drafter, Band: confidence.BandOf(m.Temperature).Name, Measured: m}
	if *writeSTS {
		notes, err := job.Notes()
		if err != nil {
			return err
		}
		if err := calibrate.WriteSTS(drafter, notes, m, *force); err != nil {
			return err
		}
		result.Written = drafter
	}
	if !p.json {
		report(t.out, result)
	}
	line, err := json.Marshal(result)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.out, "%s\n", line)
	return nil
}

// report is a calibration as people read it.
func report(w io.Writer, c calibration) {
	fmt.Fprintf(w, "%s (%s) for %s (%s), temperature %g (%s)\n", c.Drafter.Name, c.Drafter.Precision, c.Target.Name, c.Target.Precision, c.Temperature, c.Band)
	fmt.Fprintf(w, "%d checks to fit, %d others to judge by\n\n", c.Fitted, c.HeldOut)
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(columns, "word\taccepted\tforetold\terror\tafter\tAUC\tafter\tsure\tunsure\tshift\tthreshold\t")
	for k, b := range c.Before {
		a, curve := c.After[k], c.Curves.At(k)
		fmt.Fprintf(columns, "%d\t%.1f %%\t%.1f %%\t%.1f %%\t%.1f %%\t%.3f\t%.3f\t%.2f\t%.2f\t%+.2f\t%.2f\t\n", k+1, 100*b.Observed, 100*b.Predicted,
			100*b.Error, 100*a.Error, b.AUC, a.AUC, curve.Sure, curve.Unsure, curve.Shift, c.Thresholds[k])
	}
	columns.Flush()
	fmt.Fprintln(w)
	columns = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(columns, "caution\tchecked\twords a check\twords a second\t")
	for _, s := range c.Speeds {
		name := fmt.Sprintf("%.1f", s.Threshold)
		if s.Slots {
			name = "each its own"
		}
		fmt.Fprintf(columns, "%s\t%.1f\t%.2f\t%.0f\t\n", name, s.Checked, s.Tau, s.PerSecond)
	}
	if c.Costs.Plain > 0 {
		fmt.Fprintf(columns, "no drafter\t0.0\t1.00\t%.0f\t\n", 1/c.Costs.Plain)
	}
	columns.Flush()
	fmt.Fprintln(w)
	if c.Pays {
		fmt.Fprintln(w, "From now on drafts below their thresholds are left out, unless you set a caution.")
	} else {
		fmt.Fprintln(w, "No thresholds of each word's own make it faster, so nothing is left out unless you set a caution.")
	}
	if c.Written != "" {
		fmt.Fprintf(w, "The thresholds are in %s too.\n", c.Written)
	}
}
