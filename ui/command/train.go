package command

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"firesteel/core/job"
	"firesteel/core/library"
	"firesteel/core/prompts"
	"firesteel/core/train"
	"firesteel/models/checkpoint"
)

// lesson is what the flags of train and tune have in common.
type lesson struct {
	plan
	prompts, out, cache string
	resume, force       bool
	chats               bool
	gigabytes, minutes  float64
	settings            train.Settings
}

func (t *terminal) lessonFlags(f *flag.FlagSet, l *lesson) {
	f.StringVar(&l.target, "target", "", "the model's `DIR`; without it, the one that comes with Firesteel")
	f.StringVar(&l.prompts, "prompts", "", "a `FILE` of prompts, a line each: text, or JSON with \"prompt\", \"p\" (and its answer \"r\") or \"messages\"")
	f.BoolVar(&l.chats, "chats", false, chatsHelp)
	f.StringVar(&l.out, "out", "", "the `DIR` to make")
	f.BoolVar(&l.resume, "resume", false, "go on with a training of the same DIR that was stopped; without prompts, with the prompts and settings it was begun with")
	f.BoolVar(&l.force, "force", false, "replace a drafter, or a stopped training, of the same DIR")
	f.IntVar(&l.settings.Steps, "steps", 0, "learn for `N` steps")
	f.IntVar(&l.settings.Texts, "batch", 0, "learn from `N` texts in a step")
	f.IntVar(&l.settings.Anchors, "anchors", 0, "learn from `N` places in each text of a step")
	f.IntVar(&l.settings.Context, "context", 0, "let each place see `N` tokens before it at most")
	f.Float64Var(&l.settings.Rate, "learning-rate", 0, "change the weights by about `R` a step at most")
	f.Uint64Var(&l.settings.Seed, "seed", 1, "the same `S` gives the same training")
	f.IntVar(&l.settings.Measure, "measure", 0, "measure, and save what is needed to go on, every `N` steps")
	f.IntVar(&l.settings.AnswerTokens, "max-tokens", 0, "answers of at most `N` tokens")
	f.Float64Var(&l.settings.Sampling.Temperature, "temperature", 0, "creativity `T` of answers that are not given; 0 takes the likeliest word")
	f.Float64Var(&l.minutes, "max-minutes", 0, "end after `M` minutes of learning, with the best so far")
	f.StringVar(&l.cache, "cache", "", "keep what the model computed for each text in `DIR`, for another training; without it, it is removed at the end")
	f.Float64Var(&l.gigabytes, "cache-limit", 4, "take at most `G` gigabytes for that, and fewer texts if need be")
	f.BoolVar(&l.json, "json", false, "print the JSON object alone")
}

// check refuses, in words, what no training could follow.
func (l *lesson) check(f *flag.FlagSet) error {
	l.set = map[string]bool{}
	f.Visit(func(x *flag.Flag) { l.set[x.Name] = true })
	if rest := f.Args(); len(rest) > 0 {
		return usageError(fmt.Sprintf("%q is not a flag.", rest[0]))
	}
	switch {
	case l.prompts != "" && l.chats:
		return errBoth
	case l.prompts == "" && !l.chats && !l.resume:
		return usageError("--prompts is missing; --chats takes your own chats instead.")
	case l.out == "":
		return usageError("--out is missing.")
	}
	for _, name := range []string{"target", "cache"} {
		if l.set[name] && f.Lookup(name).Value.String() == "" {
			return usageError(fmt.Sprintf("--%s is empty; give a folder.", name))
		}
	}
	for name := range l.set {
		text := f.Lookup(name).Value.String()
		if value, err := strconv.ParseFloat(text, 64); err == nil && name != "seed" && name != "temperature" && !(value > 0 && !math.IsInf(value, 0)) {
			return usageError(fmt.Sprintf("--%s must be above 0, not %s.", name, text))
		}
	}
	if x := l.settings.Sampling.Temperature; !(x >= 0 && x <= 100) {
		return usageError(fmt.Sprintf("--temperature must be a number from 0 to 100, not %g.", x))
	}
	if l.resume && l.force {
		return usageError("--resume and --force contradict each other.")
	}
	l.settings.DataLimit = int64(l.gigabytes * (1 << 30))
	l.settings.MaxTime = time.Duration(l.minutes * float64(time.Minute))
	return nil
}

// job fills in what both commands need.
func (t *terminal) job(l *lesson) (train.Job, library.Description, error) {
	var target library.Description
	var list []prompts.Prompt
	var err error
	switch {
	case l.resume && !train.Begun(l.out):
		return train.Job{}, target, train.ErrNothingBegun
	case l.prompts != "":
		if list, err = prompts.Load(l.prompts); err != nil {
			return train.Job{}, target, err
		}
	}
	l.noDraft = true
	dir, _, err := t.folders(l.plan)
	if err != nil {
		return train.Job{}, target, err
	}
	if target, err = library.DescribeAs(library.Target, dir); err != nil {
		return train.Job{}, target, err
	}
	if l.chats && !l.resume {
		if list, err = ownChats(dir); err != nil {
			return train.Job{}, target, err
		}
	}
	return train.Job{TargetDir: dir, Prompts: list, Out: l.out, Work: l.cache, KeepWork: l.cache != "", Resume: l.resume, Replace: l.force, Settings: l.settings}, target, nil
}

func (t *terminal) train(ctx context.Context, c *command, args []string) error {
	var l lesson
	var shape checkpoint.DSpark
	f := t.flags(c)
	t.lessonFlags(f, &l)
	f.IntVar(&shape.Gamma, "gamma", 0, "a drafter that guesses `G` words ahead")
	f.IntVar(&shape.Layers, "layers", 0, "of `N` layers")
	f.IntVar(&shape.Width, "width", 0, "`N` wide")
	f.IntVar(&shape.Heads, "heads", 0, "with `N` attention heads")
	f.IntVar(&shape.Rank, "rank", 0, "with a Markov head of rank `N`")
	f.IntVar(&shape.FeedForward, "ff", 0, "with feed-forward blocks `N` times as wide as it is")
	f.StringVar(&shape.Head, "head", "", "with a head of this `KIND`: markov or rnn")
	taps := f.String("taps", "", "reading these layers of the model, as `A,B,…`; the number of layers stands for the last norm")
	if err := t.parse(c, f, args); err != nil {
		return err
	}
	if err := l.check(f); err != nil {
		return err
	}
	if shape.Head != "" && shape.Head != checkpoint.HeadMarkov && shape.Head != checkpoint.HeadRNN {
		return usageError(fmt.Sprintf("--head must be markov or rnn, not %s.", shape.Head))
	}
	for _, text := range strings.FieldsFunc(*taps, func(r rune) bool { return r == ',' }) {
		tap, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || tap < 0 {
			return usageError(fmt.Sprintf("--taps must be whole numbers with commas between, not %s.", *taps))
		}
		shape.Taps = append(shape.Taps, tap)
	}
	lesson, target, err := t.job(&l)
	if err != nil {
		return err
	}
	lesson.Shape = train.Shape(target, shape)
	lesson.Settings = lesson.Settings.Fill(target, lesson.Shape.Gamma)
	if err := lesson.Shape.Check(); err != nil {
		return err
	}
	return t.teach(ctx, l, func(core job.Runner, progress func(train.Progress)) (train.Result, error) {
		return train.Run(ctx, core, lesson, progress)
	})
}

// teach runs a job and tells how it goes.
func (t *terminal) teach(ctx context.Context, l lesson, run func(job.Runner, func(train.Progress)) (train.Result, error)) error {
	removeLeftovers()
	core, err := t.Open()
	if err != nil {
		return err
	}
	defer core.Close()
	r, err := run(core, t.lessons())
	if err != nil {
		if train.Begun(l.out) {
			fmt.Fprintln(t.err, "What was learned is kept: the same command with --resume goes on, with --force begins anew.")
		}
		return err
	}
	if !l.json {
		fmt.Fprintf(t.out, "%s\n%d texts, %d steps, %.2f tokens a check at first, %.2f in the end, %.2f at step %d, which is the one kept.\n",
			shown(r.Out), r.Texts, r.Step, r.Live[0].Tau, r.Live[len(r.Live)-1].Tau, r.Best.Tau, r.Best.Step)
		if r.HeldOut == 0 {
			fmt.Fprintln(t.out, "There were too few prompts to hold some back, so this was measured on those learned from.")
		}
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.out, "%s\n", line)
	return nil
}

// lessons prints a line every few seconds, and whenever something was measured.
func (t *terminal) lessons() func(train.Progress) {
	var last time.Time
	var stage string
	measured := -1
	return func(p train.Progress) {
		news := p.Stage != stage || p.Stage == train.Learning && p.Live.Step != measured
		if !news && time.Since(last) < 5*time.Second && p.Done < p.Total {
			return
		}
		stage, last = p.Stage, time.Now()
		left := ""
		if p.Left > 0 {
			left = ", " + p.Left.Round(time.Second).String() + " left"
		}
		switch p.Stage {
		case train.Reading:
			fmt.Fprintf(t.err, "reading texts: %d of %d, %s on the disk of %s at most (all would take up to %s)%s\n", p.Done, p.Total,
				gigabytes(p.Bytes), gigabytes(p.Limit), gigabytes(p.Most), left)
		case train.Learning:
			measured = p.Live.Step
			fmt.Fprintf(t.err, "step %d of %d: loss %.4f, accept rate %.3f; %.3f tokens a check at step %d, best %.3f%s\n", p.Done, p.Total, p.Loss, p.Accept,
				p.Live.Tau, p.Live.Step, p.Best.Tau, left)
		default:
			fmt.Fprintf(t.err, "%s\n", p.Stage)
		}
	}
}
