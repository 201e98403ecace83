package command

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"firesteel/core/job"
	"firesteel/core/memory"
	"firesteel/core/quantize"
	"firesteel/core/thread"
	"firesteel/models/checkpoint"
)

func (t *terminal) quantize(ctx context.Context, c *command, args []string) error {
	var o quantize.Options
	var recipe string
	f := t.flags(c)
	f.IntVar(&o.Packing.Bits, "bits", 0, "`B` bits a value: 2, 3, 4, 5, 6 or 8; default 4")
	f.IntVar(&o.Packing.GroupSize, "group-size", 0, "`G` values share a scale: 32, 64 or 128; default 64")
	f.StringVar(&o.Packing.Mode, "mode", "affine", "number format `M`: affine, or mxfp4, mxfp8, nvfp4, which fix bits and group")
	f.StringVar(&recipe, "recipe", "uniform", "`R`: uniform, or recommended, which gives what suffers most more bits")
	f.Bool("json", false, "the last line is one JSON object in any case")
	var folders []string
	for rest := args; ; {
		if err := t.parse(c, f, rest); err != nil {
			return err
		}
		if f.NArg() == 0 {
			break
		}
		folders, rest = append(folders, f.Arg(0)), f.Args()[1:]
	}
	switch {
	case len(folders) != 2:
		return usageError(fmt.Sprintf("quantize needs two folders, the model and where the smaller copy goes, not %d.", len(folders)))
	case folders[0] == "" || folders[1] == "":
		return usageError("a folder's name is empty.")
	case recipe != "uniform" && recipe != "recommended":
		return usageError(fmt.Sprintf("--recipe must be uniform or recommended, not %s.", recipe))
	case o.Packing.Mode != "affine" && (given(f, "bits") || given(f, "group-size")):
		return usageError(fmt.Sprintf("--mode %s fixes bits and group; leave --bits and --group-size out.", o.Packing.Mode))
	case given(f, "bits") && !slices.Contains(checkpoint.Bits, o.Packing.Bits):
		return usageError(fmt.Sprintf("--bits must be 2, 3, 4, 5, 6 or 8, not %d.", o.Packing.Bits))
	case given(f, "group-size") && !slices.Contains(checkpoint.GroupSizes, o.Packing.GroupSize):
		return usageError(fmt.Sprintf("--group-size must be 32, 64 or 128, not %d.", o.Packing.GroupSize))
	case !slices.Contains(checkpoint.Modes, o.Packing.Mode):
		return usageError(fmt.Sprintf("--mode must be %s, not %s.", strings.Join(checkpoint.Modes, ", "), o.Packing.Mode))
	}
	o.Source, o.Destination, o.Recommended = folders[0], folders[1], recipe == "recommended"
	removeLeftovers()
	plan, err := quantize.NewPlan(o)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.err, "%s will become %s (%d matrices, %.2f bits a weight).\n", humanize.Bytes(uint64(plan.SourceBytes)), humanize.Bytes(uint64(plan.ResultBytes)), len(plan.Modules), plan.BitsPerWeight)
	for _, k := range plan.Kept {
		fmt.Fprintf(t.err, "  %s stays as it is: %s.\n", k.Name, k.Why)
	}
	worker, err := thread.Start()
	if err != nil {
		return err
	}
	defer worker.Close()
	result, err := quantize.Run(ctx, worker, plan, t.jobProgress(func(n int64) string { return humanize.Bytes(uint64(n)) }))
	fmt.Fprint(t.err, "\r\x1b[K")
	if err != nil {
		return err
	}
	fmt.Fprintf(t.out, "%s: %s instead of %s, %.1f s.\n", result.Dir, humanize.Bytes(uint64(result.ResultBytes)), humanize.Bytes(uint64(plan.SourceBytes)), result.Seconds)
	kept := []string{}
	for _, k := range plan.Kept {
		kept = append(kept, k.Name)
	}
	line, err := json.Marshal(map[string]any{
		"destination": result.Dir, "source_bytes": plan.SourceBytes, "announced_bytes": plan.ResultBytes, "result_bytes": result.ResultBytes,
		"memory_before_bytes": plan.MemoryBefore, "memory_after_bytes": plan.MemoryAfter, "modules": len(plan.Modules), "kept": kept,
		"bits": plan.Packing.Bits, "group_size": plan.Packing.GroupSize, "mode": plan.Packing.Mode, "recipe": recipe,
		"bits_per_weight": plan.BitsPerWeight, "seconds": result.Seconds, "process_peak_bytes": memory.Read().ProcessPeak,
	})
	if err == nil {
		fmt.Fprintf(t.out, "%s\n", line)
	}
	return err
}

// given tells whether a flag was set.
func given(f *flag.FlagSet, name string) (set bool) {
	f.Visit(func(x *flag.Flag) { set = set || x.Name == name })
	return set
}

// jobProgress shows how far a job is on standard error, a line that is written over; say puts what
// it counts into words.
func (t *terminal) jobProgress(say func(n int64) string) func(job.Progress) {
	var shown time.Time
	return func(p job.Progress) {
		if time.Since(shown) < time.Second/4 {
			return
		}
		shown = time.Now()
		left := ""
		if p.Left > 0 {
			left = ", " + p.Left.Round(time.Second).String() + " left"
		}
		fmt.Fprintf(t.err, "\r%s: %s of %s%s\x1b[K", p.Stage, say(p.Done), say(p.Total), left)
	}
}
