// Package command is Firesteel without its window: for scripts, tests, and people on another
// machine. Results go to standard output, everything else to standard error.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"firesteel/core/confidence"
	"firesteel/core/engine"
	"firesteel/core/job"
	"firesteel/ui/words"
)

// Core is what the commands ask of what runs models; *engine.Engine is one.
type Core interface {
	Load(ctx context.Context, r engine.LoadRequest) (engine.Loaded, error)
	Generate(ctx context.Context, r engine.Request, emit func(engine.Event)) (engine.Result, error)
	Loaded() engine.Loaded
	Device() string
	OnGPU() bool
	// Do runs a job's work on the inference thread.
	Do(ctx context.Context, f func() error) error
	Memory() engine.Memory
	Close() error
}

// Options is what the commands need from outside.
type Options struct {
	Version string
	// Open starts what runs models.
	Open func() (Core, error)
	// DemoPair returns the folders of the embedded pair; nil where there is none.
	DemoPair func() (target, drafter string, err error)
	// Calibrations is the folder that calibrations are kept in; "" is the usual one.
	Calibrations string
	// Window tells whether this build has one, for the help.
	Window bool
}

// Exit statuses.
const (
	done      = 0
	failed    = 1
	misused   = 2
	cancelled = 130
)

// usageError is a command line that cannot be followed, in words.
type usageError string

func (e usageError) Error() string { return string(e) }

type terminal struct {
	Options
	in       io.Reader
	out, err io.Writer
}

type command struct {
	name, summary, usage string
	run                  func(t *terminal, ctx context.Context, c *command, args []string) error
}

var commands = []*command{
	{"generate", "write text", "firesteel generate --prompt TEXT|- [flags]", (*terminal).generate},
	{"calibrate", "learn how far a drafter's confidence can be trusted, and what each caution brings", "firesteel calibrate [flags]", (*terminal).calibrate},
	{"check", "compare what is computed here with recorded reference values", "firesteel check DIR…\n       firesteel check --pair TARGET DRAFTER FILE.json", (*terminal).check},
	{"quantize", "make a smaller copy of a model", "firesteel quantize SOURCE DESTINATION [flags]", (*terminal).quantize},
	{"train", "make a drafter for a model: teach it to guess what the model writes", "firesteel train --prompts FILE --out DIR [flags]", (*terminal).train},
	{"tune", "teach part of a DeepSpec drafter what a model of yours writes", "firesteel tune --prompts FILE --out DIR [flags]", (*terminal).tune},
	{"inspect", "say what a folder holds and what it needs", "firesteel inspect DIR", (*terminal).inspect},
	{"doctor", "say what this machine is and whether everything works", "firesteel doctor", (*terminal).doctor},
}

// Run follows args (without the program's name) and returns the exit status.
func Run(args []string, in io.Reader, out, errs io.Writer, o Options) int {
	t := &terminal{o, in, out, errs}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := t.follow(ctx, args)
	var wrong usageError
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return done
	case errors.As(err, &wrong):
		fmt.Fprintf(errs, "firesteel: %s\n", wrong)
		return misused
	case errors.Is(err, errDisagrees):
		return failed
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(errs, "firesteel: stopped; what was written is above.")
		return cancelled
	}
	explained := words.Explain(err)
	fmt.Fprintf(errs, "firesteel: %s\n", explained)
	if explained.Open() || os.Getenv("FIRESTEEL_DETAILS") != "" {
		fmt.Fprintln(errs, explained.Details)
	}
	return failed
}

func (t *terminal) follow(ctx context.Context, args []string) error {
	if len(args) == 0 {
		t.help(t.out)
		return nil
	}
	switch args[0] {
	case "--help", "-h", "-help", "help":
		if len(args) > 1 {
			return t.follow(ctx, []string{args[1], "--help"})
		}
		t.help(t.out)
		return nil
	case "--version", "-version", "version":
		fmt.Fprintln(t.out, "firesteel", t.Version)
		return nil
	}
	for _, c := range commands {
		if c.name == args[0] {
			return c.run(t, ctx, c, args[1:])
		}
	}
	var names []string
	for _, c := range commands {
		names = append(names, c.name)
	}
	return usageError(fmt.Sprintf("there is no command %q; there are %s. firesteel --help says more.", args[0], strings.Join(names, ", ")))
}

func (t *terminal) help(w io.Writer) {
	fmt.Fprintln(w, "Firesteel writes text on this computer with a model of yours. Nothing leaves it.")
	fmt.Fprintln(w)
	if t.Window {
		fmt.Fprintln(w, "  firesteel            open the window")
	}
	for _, c := range commands {
		fmt.Fprintf(w, "  firesteel %-10s %s\n", c.name, c.summary)
	}
	fmt.Fprintln(w, "  firesteel --version  the version")
	fmt.Fprintln(w, "\nfiresteel COMMAND --help says what a command understands.")
}

// flags is a flag set that says what is wrong in words and prints its help on request.
func (t *terminal) flags(c *command) *flag.FlagSet {
	f := flag.NewFlagSet(c.name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	return f
}

func (t *terminal) parse(c *command, f *flag.FlagSet, args []string) error {
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(t.out, "Usage: %s\n\n%s.\n", c.usage, strings.ToUpper(c.summary[:1])+c.summary[1:])
		first := true
		f.VisitAll(func(x *flag.Flag) {
			if first {
				fmt.Fprintln(t.out)
				first = false
			}
			kind, text := flag.UnquoteUsage(x)
			fmt.Fprintf(t.out, "  --%-22s %s\n", strings.TrimSpace(x.Name+" "+kind), text)
		})
		return err
	}
	if err != nil {
		text := strings.ReplaceAll(err.Error(), "flag provided but not defined: -", "there is no flag --")
		text = strings.ReplaceAll(text, "flag needs an argument: -", "a value is missing after --")
		return usageError(fmt.Sprintf("%s. firesteel %s --help lists the flags.", text, c.name))
	}
	return nil
}

// calibrations is the folder that calibrations are kept in.
func (t *terminal) calibrations() (string, error) {
	if t.Calibrations != "" {
		return t.Calibrations, nil
	}
	return confidence.Place()
}

// removeLeftovers removes what jobs left that were killed. Whatever comes of that, the next one is done.
func removeLeftovers() {
	if notes, err := job.Notes(); err == nil {
		job.RemoveLeftovers(notes)
	}
}
