// Package train teaches a drafter to guess what a target writes: it has the target answer prompts,
// keeps what the target computed on the way, and fits the drafter to that, measuring in the real
// loop how many tokens a check brings.
package train

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"firesteel/core/engine"
	"firesteel/core/job"
	"firesteel/core/library"
	"firesteel/core/prompts"
	"firesteel/core/sample"
	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/block"
	"firesteel/models/checkpoint"
)

// Settings are how to learn. Zero values are filled in by the target's size.
type Settings struct {
	Steps   int     `json:"steps"`
	Texts   int     `json:"texts"`   // in a step
	Anchors int     `json:"anchors"` // in each of them
	Context int     `json:"context"` // rows that an anchor sees at most
	Rate    float64 `json:"rate"`    // of learning, at its peak
	Seed    uint64  `json:"seed"`
	Measure int     `json:"measure"` // steps from one measurement, and one saved state, to the next

	AnswerTokens int             `json:"answer_tokens"` // of an answer at most
	Sampling     sample.Settings `json:"sampling"`      // how the target writes answers that are not given

	DataLimit int64         `json:"-"` // bytes that prepared texts may take on the disk
	MaxTime   time.Duration `json:"-"` // ends learning early; 0: no limit
}

// Job is a training.
type Job struct {
	TargetDir string
	Prompts   []prompts.Prompt // none with Resume: those it was begun with, and its settings and shape
	Out       string           // the folder to be made
	Work      string           // where prepared texts lie
	KeepWork  bool             // leave them there at the end
	Resume    bool             // go on with what was begun
	Replace   bool             // a drafter, or a training, that is there may go

	Settings Settings
	// Shape is the drafter to begin; see Defaults. Not for tuning.
	Shape checkpoint.DSpark
}

// What a training does, as Progress.Stage.
const (
	Opening  = "opening"
	Reading  = "reading"  // answers are written and read; texts are counted
	Learning = "learning" // steps are counted
	Saving   = "saving"
)

// Progress is how far a training is.
type Progress struct {
	job.Progress
	// Reading: what prepared texts take and may take, and what all of them would take at most.
	Bytes, Limit, Most int64
	// Learning: of the last step, and what was measured last and best.
	Loss, Accept float64
	Live, Best   Live
}

// Result is a finished training.
type Result struct {
	Out     string  `json:"out"`
	Texts   int     `json:"texts"`
	Tokens  int     `json:"tokens"`
	HeldOut int     `json:"held_out"` // questions measured on; 0: those learned from
	Seconds float64 `json:"seconds"`
	History
}

// ErrNoTexts means that there is nothing to learn from.
var ErrNoTexts = errors.New("no answer is long enough to learn from")

// ErrDiverged means that the loss is not finite any more.
var ErrDiverged = errors.New("the loss is not finite")

// student is a drafter that learns.
type student interface {
	models.Drafter
	block.Student
	// Save writes it as the folder dir, which is this job's own.
	Save(ctx context.Context, dir string) error
}

// Run trains a DFlash drafter and makes the folder job.Out. Whatever ends it early leaves that
// folder alone and keeps what is needed to go on, until Discard. runner does a text or a step at a
// time, so that other work on its thread goes on between. progress may be nil.
func Run(ctx context.Context, runner job.Runner, j Job, progress func(Progress)) (Result, error) {
	if err := j.resume(); err != nil {
		return Result{}, err
	}
	return run(ctx, runner, j, progress, fmt.Sprintf("begin %+v", j.Shape), func(_ context.Context, target models.Target) (student, error) {
		return begin(j.Shape, j.Settings.Seed, target)
	})
}

// lender is a runner that may hold a target already; *engine.Engine is one.
type lender interface {
	Borrow(dir string) *engine.Target
}

// run does a job with the student that open makes; kind tells it from others.
func run(ctx context.Context, runner job.Runner, j Job, progress func(Progress), kind string, open func(context.Context, models.Target) (student, error)) (Result, error) {
	if progress == nil {
		progress = func(Progress) {}
	}
	var result Result
	description, err := library.DescribeAs(library.Target, j.TargetDir)
	if err != nil {
		return result, err
	}
	identity, err := library.Identity(j.TargetDir)
	if err != nil {
		return result, err
	}
	place, err := newPlace(j)
	if err != nil {
		return result, err
	}
	do := func(f func() error) error { return runner.Do(ctx, f) }
	// What has begun is closed on the inference thread also when the job was cancelled.
	last := func(f func()) {
		runner.Do(context.WithoutCancel(ctx), func() error {
			f()
			mlxbind.ClearCache()
			return nil
		})
	}
	progress(doing(Opening, 0, 0))
	var target *engine.Target
	if err := do(func() (err error) {
		if l, ok := runner.(lender); ok {
			if target = l.Borrow(description.Dir); target != nil {
				return nil
			}
		}
		target, err = engine.OpenTarget(ctx, description, nil)
		return err
	}); err != nil {
		return result, err
	}
	defer last(target.Close)
	var pupil student
	if err := do(func() (err error) {
		pupil, err = open(ctx, target)
		return err
	}); err != nil {
		return result, err
	}
	defer last(func() { pupil.Close() })
	pupil.Fit(target.Geometry().Vocabulary)
	all, err := read(target, j.Prompts, j.Settings.AnswerTokens, pupil.Block())
	if err != nil {
		return result, err
	}
	c := class{do: do, last: last, target: target, stops: target.Stops, pupil: pupil, kind: kind, settings: j.Settings, tell: progress, begun: assignment{j.Prompts, j.Settings, j.Shape}}
	if j.Work == "" {
		j.Work = place.bench.texts()
	}
	result, err = c.teach(ctx, all, identity, j.Work, place)
	if err == nil && !j.KeepWork {
		os.RemoveAll(c.work)
	}
	result.Out = j.Out
	return result, err
}

func doing(stage string, done, total int) Progress {
	return Progress{Progress: job.Progress{Stage: stage, Done: int64(done), Total: int64(total)}}
}

// place is where a job writes.
type place struct {
	out    string
	bench  bench
	resume bool
	swap   bool // out may be there
}

// newPlace refuses, before any work, what could not be written in the end.
func newPlace(j Job) (place, error) {
	b, err := benchFor(j.Out)
	if err != nil {
		return place{}, err
	}
	p := place{out: j.Out, bench: b, resume: j.Resume, swap: j.Replace}
	if _, err := os.Lstat(j.Out); err == nil {
		if !j.Replace {
			return p, &checkpoint.Error{Kind: checkpoint.KindNotWritable, Path: j.Out, Detail: "it exists", Err: os.ErrExist}
		}
		if err := replaceable(j.Out); err != nil {
			return p, err
		}
	}
	switch begun := b.begun(); {
	case j.Resume && !begun:
		return p, ErrNothingBegun
	case !j.Resume && begun && !j.Replace:
		return p, ErrBegun
	case !j.Resume:
		return p, b.remove()
	}
	return p, nil
}

// replaceable refuses a folder that is no drafter.
func replaceable(dir string) error {
	d, err := library.Describe(dir)
	if err == nil && d.Kind != library.Drafter || checkpoint.KindOf(err) != checkpoint.KindNotFound && err != nil {
		return &checkpoint.Error{Kind: checkpoint.KindNotWritable, Path: dir, Detail: "it exists and is no drafter", Err: os.ErrExist}
	}
	return nil
}

// commit makes the best drafter the folder that was asked for.
func (p place) commit() error {
	stage, err := checkpoint.StageOf(p.bench.best(), p.out)
	if err != nil {
		return err
	}
	if err := stage.Commit(p.swap); err != nil {
		return err
	}
	return p.bench.remove()
}

// class is a target that teaches and a drafter that learns.
type class struct {
	do       func(f func() error) error // runs f on the inference thread
	last     func(f func())             // the same, also after the job was cancelled
	target   models.Target
	stops    func(int) bool
	pupil    student
	kind     string // what the pupil began as
	settings Settings
	tell     func(Progress)
	work     string // of this class's texts
	begun    assignment
}

// teach does everything from questions to the finished folder.
func (c *class) teach(ctx context.Context, all []question, identity, work string, p place) (Result, error) {
	begun := time.Now()
	key, err := json.Marshal(sources(all))
	if err != nil {
		return Result{}, err
	}
	data := fmt.Sprintf("%s %v %d %d %+v %x", identity, c.pupil.Taps(), c.settings.Seed, c.settings.AnswerTokens, c.settings.Sampling, sha256.Sum256(key))
	sum := sha256.Sum256([]byte(data))
	c.work = filepath.Join(work, hex.EncodeToString(sum[:8]))
	if err := p.bench.begin(c.begun); err != nil {
		return Result{}, err
	}
	learned, held, apart := deal(all, c.settings.Seed)
	t, err := c.prepare(ctx, learned)
	if err != nil {
		return Result{}, err
	}
	defer t.close()
	plan, err := json.Marshal(c.settings)
	if err != nil {
		return Result{}, err
	}
	h, err := c.learn(ctx, t, held, fmt.Sprintf("%s %s %s", c.kind, data, plan), p)
	r := Result{Texts: t.count, Seconds: time.Since(begun).Seconds(), History: h}
	for i := range t.count {
		_, e := t.place(i)
		r.Tokens += e.Rows
	}
	if apart {
		r.HeldOut = len(held)
	}
	if err != nil {
		return r, err
	}
	c.tell(Progress{Progress: job.Progress{Stage: Saving}, Live: h.Live[len(h.Live)-1], Best: h.Best})
	return r, p.commit()
}

// sources are what of questions decides what texts come of them.
func sources(all []question) [][2][]int {
	list := make([][2][]int, len(all))
	for i, q := range all {
		list[i] = [2][]int{q.ids, q.answer}
	}
	return list
}

// prepare has the questions answered and read, as far as the limit on the disk allows, and goes
// on where an earlier attempt broke off.
func (c *class) prepare(ctx context.Context, questions []question) (*texts, error) {
	g := c.target.Geometry()
	taps := c.pupil.Taps()
	t, err := openTexts(c.work, len(taps)*g.Hidden, g.Hidden)
	if err != nil {
		return nil, err
	}
	perRow := int64(2*(t.width+t.hidden) + 4)
	p := doing(Reading, 0, len(questions))
	p.Limit = c.settings.DataLimit
	for _, q := range questions {
		p.Most += perRow * int64(len(q.ids)+expected(q, c.settings.AnswerTokens))
	}
	begun, from := time.Now(), t.count
	used := t.bytes
	if err := job.CheckRoom(c.work, min(p.Most, p.Limit)-used); err != nil {
		t.close()
		return nil, err
	}
	for i := from; i < len(questions); i++ {
		p.Done, p.Bytes = int64(i), used
		if done := i - from; done > 0 {
			p.Left = time.Duration(float64(time.Since(begun)) / float64(done) * float64(len(questions)-i))
		}
		c.tell(p)
		q := questions[i]
		if p.Limit > 0 && used+perRow*int64(len(q.ids)+expected(q, c.settings.AnswerTokens)) > p.Limit {
			break
		}
		var x text
		var r rows
		err := c.do(func() (err error) {
			if x, err = write(ctx, c.target, c.stops, q, c.settings.Sampling, c.settings.AnswerTokens, c.settings.Seed+uint64(i)); err == nil {
				r, err = tap(ctx, c.target, taps, x)
			}
			return err
		})
		if err == nil {
			used += perRow * int64(len(x.ids))
			err = t.add(x, r)
		}
		if err != nil {
			// What is done stays for the next attempt, if it can be written.
			err = errors.Join(err, t.flush())
			t.close()
			return nil, err
		}
	}
	if err := t.flush(); err != nil {
		t.close()
		return nil, err
	}
	p.Done, p.Bytes, p.Left = int64(t.count), t.bytes, 0
	c.tell(p)
	return t, nil
}

func expected(q question, limit int) int {
	if q.answer != nil {
		return len(q.answer)
	}
	return limit
}

// learn takes the steps. It returns the history also with an error.
func (c *class) learn(ctx context.Context, t *texts, held []question, plan string, p place) (History, error) {
	set := c.settings
	b := newBatcher(t, set.Seed, c.pupil.Block(), set.Texts, set.Anchors, set.Context)
	if len(b.usable) == 0 {
		// There is nothing to go on with.
		return History{}, errors.Join(ErrNoTexts, p.bench.remove())
	}
	var l learning
	var h History
	var err error
	if left, err := checkpoint.Unfinished(string(p.bench)); err == nil {
		for _, path := range left {
			os.RemoveAll(path)
		}
	}
	// The best drafter, and the state twice while one takes the other's place.
	if err := job.CheckRoom(filepath.Dir(string(p.bench)), 7*c.pupil.Bytes()); err != nil {
		return h, err
	}
	var steps *stepper
	err = c.do(func() (err error) {
		if p.resume && p.bench.learned() {
			h, err = p.bench.load(ctx, &l, plan)
		} else {
			err = l.begin(c.pupil)
		}
		if err == nil {
			// On a processor the system's compiler takes a second for each of a hundred kernels, so that
			// only a long training gains by it.
			steps, err = newStepper(c.pupil, len(l.weights), mlxbind.OnGPU() || set.Steps >= compiledSteps)
		}
		return err
	})
	defer c.last(func() {
		l.free()
		if steps != nil {
			steps.close()
		}
	})
	if err != nil {
		return h, err
	}
	begun, from := time.Now(), h.Step
	told := func() {
		x := doing(Learning, h.Step, set.Steps)
		x.Best = h.Best
		if n := len(h.Losses); n > 0 {
			x.Loss, x.Accept = h.Losses[n-1], h.Accept[n-1]
		}
		if n := len(h.Live); n > 0 {
			x.Live = h.Live[n-1]
		}
		if done := h.Step - from; done > 0 {
			x.Left = time.Duration(float64(time.Since(begun)) / float64(done) * float64(set.Steps-h.Step))
			if set.MaxTime > 0 {
				x.Left = min(x.Left, max(0, set.MaxTime-time.Since(begun)))
			}
		}
		c.tell(x)
	}
	checked := -1
	if n := len(h.Live); n > 0 {
		checked = h.Live[n-1].Step
	}
	for {
		late := set.MaxTime > 0 && time.Since(begun) > set.MaxTime
		last := late || h.Step >= set.Steps
		if (last || h.Step%set.Measure == 0) && h.Step > checked {
			if err := c.do(func() error { return c.check(ctx, &l, &h, held, plan, p.bench) }); err != nil {
				return h, err
			}
			checked = h.Step
			told()
		}
		if last {
			return h, nil
		}
		if err := ctx.Err(); err != nil {
			return h, err
		}
		var loss, accept float64
		err := c.do(func() (err error) {
			loss, accept, err = steps.step(ctx, &l, b, h.Step, set)
			return err
		})
		if err != nil {
			return h, err
		}
		h.Step++
		h.Losses, h.Accept = append(h.Losses, loss), append(h.Accept, accept)
		told()
	}
}

// check measures the drafter of now, keeps it if it is the best, and saves the state.
func (c *class) check(ctx context.Context, l *learning, h *History, held []question, plan string, b bench) error {
	s := mlxbind.NewScope()
	defer s.Close()
	if err := c.pupil.SetWeights(s, l.weights); err != nil {
		return err
	}
	live, err := measure(ctx, c.target, c.pupil, held, c.stops, c.settings.AnswerTokens)
	if err != nil {
		return err
	}
	live.Step = h.Step
	h.Live = append(h.Live, live)
	if len(h.Live) == 1 || live.Tau > h.Best.Tau {
		if err := c.pupil.Save(ctx, b.best()); err != nil {
			return err
		}
		h.Best = live
	}
	return b.save(ctx, l, plan, *h)
}

// compiledSteps is how long a training is compiled for on a processor.
const compiledSteps = 1000

// stepper takes steps.
type stepper struct {
	learner  *block.Learner
	build    mlxbind.Graph
	function *mlxbind.Function // build compiled, or nil
}

func newStepper(pupil block.Student, n int, compile bool) (*stepper, error) {
	learner, err := block.NewLearner(pupil)
	if err != nil {
		return nil, err
	}
	x := &stepper{learner: learner}
	x.build = func(s *mlxbind.Scope, in []mlxbind.Array) []mlxbind.Array {
		weights, m := in[:n], moments{in[n : 2*n], in[2*n : 3*n]}
		rate, first, second := in[3*n], in[3*n+1], in[3*n+2]
		batch := block.BatchOf(in[3*n+3:])
		terms, slopes := learner.Gradients(s, weights, batch)
		if s.Err() != nil {
			return nil
		}
		next, after, norm := adamW(s, weights, slopes, m, rate, first, second)
		accept := s.Reshape(terms.AcceptRate, -1)
		mean := s.Multiply(s.Sum(accept, 0, false), s.Scalar(1/float64(accept.Dim(0)), mlxbind.Float32))
		out := []mlxbind.Array{s.Stack(0, terms.Loss, mean, norm)}
		out = append(out, next...)
		return append(append(out, after.first...), after.second...)
	}
	if compile {
		if x.function, err = mlxbind.Compile(x.build); err != nil {
			learner.Close()
			return nil, err
		}
	}
	return x, nil
}

func (x *stepper) close() {
	if x.function != nil {
		x.function.Close()
	}
	x.learner.Close()
}

// call works a step out.
func (x *stepper) call(s *mlxbind.Scope, in []mlxbind.Array) []mlxbind.Array {
	if x.function != nil {
		return s.Call(x.function, in...)
	}
	return s.Within(func(s *mlxbind.Scope) []mlxbind.Array { return x.build(s, in) })
}

// step takes step number k, from 0.
func (x *stepper) step(ctx context.Context, l *learning, b *batcher, k int, set Settings) (loss, accept float64, err error) {
	s := mlxbind.NewScope()
	defer s.Close()
	batch, err := b.at(ctx, s, k)
	if err != nil {
		return 0, 0, err
	}
	first, second := corrections(k + 1)
	in := l.all()
	for _, v := range []float64{schedule(k, warmUp(set.Steps), set.Steps, set.Rate), first, second} {
		in = append(in, s.Scalar(v, mlxbind.Float32))
	}
	out := x.call(s, append(in, batch.Arrays(s)...))
	if s.Err() != nil {
		return 0, 0, s.Err()
	}
	if err := s.Eval(out...); err != nil {
		return 0, 0, err
	}
	values, err := s.ReadFloats(out[0])
	if err != nil {
		return 0, 0, err
	}
	loss, accept = float64(values[0]), float64(values[1])
	if norm := float64(values[2]); math.IsNaN(loss+norm) || math.IsInf(loss+norm, 0) {
		return 0, 0, fmt.Errorf("step %d: %w", k, ErrDiverged)
	}
	l.hold(s, out[1:])
	return loss, accept, s.Err()
}

// warmUp is how many steps the rate rises: 4 % of them.
func warmUp(steps int) int { return max(1, steps*4/100) }
