package engine

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"firesteel/core/confidence"
	"firesteel/core/decode"
	"firesteel/core/job"
	"firesteel/core/library"
	"firesteel/core/memory"
	"firesteel/core/quantize"
	"firesteel/core/sample"
	"firesteel/core/tables"
	"firesteel/core/thread"
	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/checkpoint"
	"firesteel/models/family"
	"firesteel/models/tokenizer"
)

// ErrNothingLoaded is returned when text is asked for before a target is loaded.
var ErrNothingLoaded = errors.New("no model is loaded")

// ErrNotFinite is returned when a model computes infinities or NaN.
var ErrNotFinite = decode.ErrNotFinite

// PromptTooLongError is returned when a prompt leaves no room for an answer.
type PromptTooLongError struct{ Tokens, Context int }

func (e *PromptTooLongError) Error() string {
	return fmt.Sprintf("the prompt has %d tokens, the context %d", e.Tokens, e.Context)
}

// GammaError is returned when γ lies outside what the drafter was trained for.
type GammaError struct{ Gamma, Block int }

func (e *GammaError) Error() string {
	return fmt.Sprintf("gamma %d is outside 1..%d", e.Gamma, e.Block)
}

// The allocator keeps at most this share of the machine for reuse.
const cacheShare = 16

// Engine holds the inference thread and what is loaded on it.
type Engine struct {
	thread *thread.Thread
	device string
	onGPU  bool
	// Ends every piece of work when the engine closes.
	life context.Context
	end  context.CancelFunc

	// Only the inference thread touches these.
	held *pair

	mutex  sync.Mutex
	loaded Loaded

	target, drafter, contexts atomic.Int64 // bytes, for Memory
}

// pair is what is loaded.
type pair struct {
	target  *Target
	drafter models.Drafter
	info    Loaded
}

func (p *pair) close() {
	if p == nil {
		return
	}
	if p.drafter != nil {
		p.drafter.Close()
	}
	p.target.Close()
}

// Start begins the inference thread. Close the engine when done.
func Start() (*Engine, error) {
	t, err := thread.Start()
	if err != nil {
		return nil, err
	}
	e := &Engine{thread: t}
	e.life, e.end = context.WithCancel(context.Background())
	err = t.Do(e.life, func() error {
		e.device, e.onGPU = mlxbind.DeviceName(), mlxbind.OnGPU()
		if total := memory.Read().MachineTotal; total > 0 {
			mlxbind.SetCacheLimit(total / cacheShare)
		}
		if !e.onGPU {
			// On a processor MLX builds fused kernels with the system's compiler.
			if _, err := exec.LookPath("g++"); err != nil && runtime.GOOS == "linux" {
				slog.Warn("no C++ compiler: kernels are not fused")
				mlxbind.DisableFusion()
			}
		}
		return nil
	})
	if err != nil {
		t.Close()
		return nil, err
	}
	return e, nil
}

// Device names the chip that does the work.
func (e *Engine) Device() string { return e.device }

// OnGPU tells whether that chip is a GPU rather than the processor, which works in float32: there
// weights of 16 bits take twice the memory.
func (e *Engine) OnGPU() bool { return e.onGPU }

// Close cancels what runs, waits for the step at hand, frees everything and ends the thread.
func (e *Engine) Close() error {
	e.end()
	err := e.thread.Do(context.Background(), func() error {
		e.drop()
		return nil
	})
	e.thread.Close()
	if errors.Is(err, thread.ErrClosed) {
		return nil
	}
	return err
}

// both ends with ctx or with the engine.
func (e *Engine) both(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(e.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// Loaded tells what is loaded.
func (e *Engine) Loaded() Loaded {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.loaded
}

// Load opens a target and a drafter, or a target alone, in place of what is loaded. Both
// folders are looked at before any weight is read; whatever fails then, what was loaded stays.
// The old pair leaves only once the new one is complete.
func (e *Engine) Load(ctx context.Context, r LoadRequest) (Loaded, error) {
	ctx, cancel := e.both(ctx)
	defer cancel()
	target, drafter, err := e.describe(r)
	if err != nil {
		return e.Loaded(), err
	}
	err = e.thread.Do(ctx, func() error {
		fresh, err := open(ctx, target, drafter, r.Progress)
		if err == nil {
			fresh.info.Calibration = calibration(fresh.info, r.Calibrations)
			err = fresh.warm(ctx)
		}
		if err != nil {
			fresh.close()
			mlxbind.ClearCache()
			return err
		}
		e.drop()
		e.hold(fresh)
		mlxbind.ClearCache()
		mlxbind.ResetPeakMemory()
		return nil
	})
	return e.Loaded(), err
}

// Recalibrate looks anew for what was measured of the loaded pair, in the folder dir; texts go by
// it from then on. It waits for a text that is being written.
func (e *Engine) Recalibrate(ctx context.Context, dir string) (Loaded, error) {
	ctx, cancel := e.both(ctx)
	defer cancel()
	err := e.thread.Do(ctx, func() error {
		if e.held == nil {
			return ErrNothingLoaded
		}
		e.held.info.Calibration = calibration(e.held.info, dir)
		e.hold(e.held)
		return nil
	})
	return e.Loaded(), err
}

// calibration is what dir holds of a pair; nil where that is nothing, or can't be read: then one
// does without.
func calibration(pair Loaded, dir string) *confidence.Calibration {
	if dir == "" || pair.Drafter == nil || !pair.Drafter.HasThreshold {
		return nil
	}
	var ids [2]string
	for i, m := range []*ModelInfo{pair.Target, pair.Drafter} {
		id, err := library.Identity(m.Dir)
		if err != nil {
			slog.Warn("no calibration is looked for", "error", err)
			return nil
		}
		ids[i] = id
	}
	c, err := confidence.Read(dir, ids[0], ids[1])
	if err != nil {
		slog.Warn("a calibration is passed over", "error", err)
	}
	return c
}

func (e *Engine) describe(r LoadRequest) (target library.Description, drafter *library.Description, err error) {
	target, err = library.DescribeAs(library.Target, r.TargetDir)
	if err != nil || r.DrafterDir == "" {
		return target, nil, err
	}
	d, err := library.DescribeAs(library.Drafter, r.DrafterDir)
	if err != nil {
		return target, nil, err
	}
	if err := library.CheckPair(target, d); err != nil {
		return target, nil, err
	}
	return target, &d, nil
}

// hold makes p what is loaded; nil for nothing.
func (e *Engine) hold(p *pair) {
	e.held = p
	var loaded Loaded
	e.target.Store(0)
	e.drafter.Store(0)
	if p != nil {
		loaded = p.info
		e.target.Store(p.target.Bytes())
		if p.drafter != nil {
			e.drafter.Store(p.drafter.Bytes())
		}
	}
	e.mutex.Lock()
	e.loaded = loaded
	e.mutex.Unlock()
}

// drop frees what is loaded.
func (e *Engine) drop() {
	e.held.close()
	e.hold(nil)
	mlxbind.ClearCache()
}

// Do runs f on the inference thread: a job's next step. Texts and jobs take turns.
func (e *Engine) Do(ctx context.Context, f func() error) error { return e.thread.Do(ctx, f) }

// Borrow returns the loaded target where it is that of the folder dir, or nil. To be called on the
// inference thread. Close it when done; until then its weights stay, whatever is loaded or unloaded.
func (e *Engine) Borrow(dir string) *Target {
	if e.held == nil {
		return nil
	}
	asked, err := os.Stat(dir)
	if err != nil {
		return nil
	}
	loaded, err := os.Stat(e.held.info.Target.Dir)
	if err != nil || !os.SameFile(asked, loaded) {
		return nil
	}
	e.held.target.others++
	return e.held.target
}

// Quantize makes the smaller copy that p plans; see quantize.Run.
func (e *Engine) Quantize(ctx context.Context, p *quantize.Plan, tell func(job.Progress)) (quantize.Result, error) {
	ctx, cancel := e.both(ctx)
	defer cancel()
	return quantize.Run(ctx, e, p, tell)
}

// Unload frees what is loaded.
func (e *Engine) Unload(ctx context.Context) error {
	return e.thread.Do(ctx, func() error {
		e.drop()
		return nil
	})
}

// open loads a pair. It returns what it has of it also with an error, to be closed.
func open(ctx context.Context, target library.Description, drafter *library.Description, progress func(done, total int64)) (*pair, error) {
	p := &pair{}
	total := target.TensorBytes
	if drafter != nil {
		total += drafter.TensorBytes
	}
	before := int64(0)
	told := func(done int64) {
		if progress != nil {
			progress(before+done, total)
		}
	}
	var err error
	if p.target, err = OpenTarget(ctx, target, told); err != nil {
		return p, err
	}
	p.info.Target = info(target, p.target.Bytes())
	p.info.Target.Temperature = target.Generation.Temperature
	p.info.Target.TopP, p.info.Target.MinP = target.Generation.TopP, target.Generation.MinP
	p.info.Target.TopK = target.Generation.TopK
	if drafter == nil {
		return p, nil
	}
	before = target.TensorBytes
	var shared bool
	if p.drafter, shared, err = openDrafter(ctx, drafter.Dir, target.Dir, p.target, told); err != nil {
		return p, err
	}
	p.info.Drafter = info(*drafter, p.drafter.Bytes())
	p.info.Drafter.SharesTables = shared
	p.info.Drafter.Thresholds = slices.Clone(p.drafter.Thresholds())
	p.info.Drafter.Kept = p.drafter.Kept()
	return p, nil
}

// openDrafter opens the drafter in dir for target, which is the one in targetDir, or returns nil
// and why not. shared tells that it uses the target's embedding and head in place of its own.
func openDrafter(ctx context.Context, dir, targetDir string, target models.Target, told func(int64)) (drafter models.Drafter, shared bool, err error) {
	folder, err := checkpoint.Open(dir)
	if err != nil {
		return nil, false, err
	}
	defer folder.Close()
	beside, err := checkpoint.Open(targetDir)
	if err != nil {
		return nil, false, err
	}
	defer beside.Close()
	place, err := tables.Place()
	if err != nil {
		place = "" // nothing will be remembered
	}
	if shared, err = tables.Shared(ctx, beside, folder, place); err != nil {
		return nil, false, err
	}
	drafter, err = family.OpenDrafter(ctx, folder, target, shared, told)
	if err != nil {
		return nil, false, err
	}
	drafter.Fit(target.Geometry().Vocabulary)
	return drafter, shared, nil
}

// warm writes a few tokens that nobody sees, so that what is compiled at first use, for a
// single row and for a full block, does not hold up the first answer.
func (p *pair) warm(ctx context.Context) error {
	knobs := decode.Knobs{Sampling: sample.Settings{TopP: 1}}
	if p.drafter != nil {
		knobs.Gamma = p.drafter.Block()
	}
	for _, drafter := range []models.Drafter{p.drafter, nil} {
		_, err := decode.Run(ctx, []int{0, 0}, decode.Config{
			Target: p.target, Drafter: drafter, Knobs: func() decode.Knobs { return knobs }, MaxTokens: 3,
			Stop: func(int) bool { return false }, Round: func(decode.Round) bool { return true },
		})
		if err != nil {
			return err
		}
		knobs.Gamma = 0
	}
	return nil
}

func info(d library.Description, bytes int64) *ModelInfo {
	return &ModelInfo{
		Name: d.Name, Dir: d.Dir, Family: d.FamilyName(), Precision: d.Precision, Quantized: d.Quantized(), Parameters: d.Parameters,
		FileBytes: d.FileBytes, MemoryBytes: bytes, Layers: d.Layers, Hidden: d.Hidden, Vocabulary: d.Vocabulary,
		Context: d.Context, Block: d.Block, HasThreshold: d.HasConfidence,
	}
}

// Memory reads the counters; it never waits for a running request.
func (e *Engine) Memory() Memory {
	r := memory.Read()
	return Memory{
		Target: e.target.Load(), Drafter: e.drafter.Load(), Context: e.contexts.Load(),
		Active: mlxbind.ActiveMemory(), Cache: mlxbind.CacheMemory(), Peak: mlxbind.PeakMemory(),
		Process: r.Process, ProcessPeak: r.ProcessPeak, MachineTotal: r.MachineTotal, Available: r.Available,
	}
}

// Generate writes one text. emit, which may be nil, is told what happens, on the inference
// thread. Whatever ends the text, the result holds what was written.
func (e *Engine) Generate(ctx context.Context, r Request, emit func(Event)) (Result, error) {
	ctx, cancel := e.both(ctx)
	defer cancel()
	if emit == nil {
		emit = func(Event) {}
	}
	w := &writer{request: r, emit: emit}
	err := e.thread.Do(ctx, func() error {
		if e.held == nil {
			return ErrNothingLoaded
		}
		defer e.contexts.Store(0)
		return w.write(ctx, e.held, func(bytes int64) { e.contexts.Store(bytes) })
	})
	var broken *thread.PanicError
	switch {
	case err == nil:
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		w.result.Stop = StopCancelled
	default:
		w.result.Stop = StopFailed
		if errors.As(err, &broken) {
			slog.Error("inference thread", "panic", broken.Value, "stack", broken.Stack)
		}
	}
	w.flush()
	return w.result, err
}

// writer turns the tokens of one request into events and a result.
type writer struct {
	request Request
	emit    func(Event)
	result  Result
	stream  *tokenizer.Stream
	stop    map[int]bool
	text    strings.Builder
	begun   time.Time
	first   time.Time
	last    time.Time
}

func (w *writer) write(ctx context.Context, p *pair, held func(bytes int64)) error {
	w.begun = time.Now()
	w.stream, w.stop = p.target.tokens.NewStream(), p.target.stop
	prompt, err := p.target.Encode(w.request.Messages, w.request.Raw)
	if err != nil {
		return err
	}
	w.result.PromptTokens = len(prompt)
	room := p.target.Geometry().Context - len(prompt)
	if room < 1 {
		return &PromptTooLongError{len(prompt), p.target.Geometry().Context}
	}
	limit := room
	if w.request.MaxTokens > 0 {
		limit = min(limit, w.request.MaxTokens)
	}
	knobs := w.request.Controls.Get()
	drafter := p.drafter
	if knobs.Gamma == 0 {
		drafter = nil
	}
	if drafter != nil && (knobs.Gamma < 0 || knobs.Gamma > drafter.Block()) {
		return &GammaError{knobs.Gamma, drafter.Block()}
	}
	w.result.Seed = seed(w.request.Seed)
	reads := mlxbind.HostReads()
	mlxbind.ResetPeakMemory()
	end, err := decode.Run(ctx, prompt, decode.Config{
		Target: p.target, Drafter: drafter, Knobs: func() decode.Knobs { return w.knobs(drafter, p.info.Calibration) }, Seed: w.result.Seed, MaxTokens: limit,
		Stop:      func(token int) bool { return !w.request.IgnoreStop && p.target.Stops(token) },
		Trace:     w.request.Trace,
		Prefilled: func(done int) { w.emit(Prefill{done, len(prompt)}) },
		Round:     w.round,
		Held:      held,
	})
	w.result.HostReads = int(mlxbind.HostReads() - reads)
	w.result.PeakMemory = mlxbind.PeakMemory()
	w.measure()
	if err != nil {
		return err
	}
	switch {
	case end == decode.EndStop:
		w.result.Stop = StopToken
	case end == decode.EndContext || len(w.result.TokenIDs) >= room:
		w.result.Stop = StopContext
	default:
		w.result.Stop = StopLimit
	}
	return nil
}

// ErrEmptyPrompt is returned when there is nothing to go on from.
var ErrEmptyPrompt = errors.New("the prompt is empty")

// knobs are what the request asks for now. A threshold that a person set goes before the
// calibration's, and that before the drafter's own.
func (w *writer) knobs(drafter models.Drafter, c *confidence.Calibration) decode.Knobs {
	k := w.request.Controls.Get()
	s := sample.Settings{Temperature: k.Temperature, TopP: w.request.TopP, TopK: w.request.TopK, MinP: w.request.MinP}
	if s.TopP == 0 {
		s.TopP = 1
	}
	knobs := decode.Knobs{Gamma: max(k.Gamma, 0), Sampling: s}
	switch m := c.For(k.Temperature); {
	case drafter == nil:
	case m != nil:
		knobs.Thresholds = m.Asked(k.Threshold, drafter.Block())
	case k.Threshold != nil:
		knobs.Thresholds = decode.Uniform(drafter, *k.Threshold)
	default:
		knobs.Thresholds = drafter.Thresholds()
	}
	return knobs
}

func seed(wanted *uint64) uint64 {
	if wanted != nil {
		return *wanted
	}
	var b [4]byte
	crand.Read(b[:])
	// Short enough to be typed again.
	return uint64(binary.LittleEndian.Uint32(b[:]))
}

// round takes one round's tokens in.
func (w *writer) round(r decode.Round) bool {
	w.last = r.At
	res := &w.result
	if r.First {
		w.first = r.At
		res.TimeToFirstToken = r.At.Sub(w.begun)
	} else {
		res.Rounds++
		res.Drafted += r.Proposed
		res.Accepted += r.Accepted
		for len(res.DraftedByPosition) < r.Proposed {
			res.DraftedByPosition = append(res.DraftedByPosition, 0)
			res.AcceptedByPosition = append(res.AcceptedByPosition, 0)
		}
		for j := range r.Proposed {
			res.DraftedByPosition[j]++
			if j < r.Accepted {
				res.AcceptedByPosition[j]++
			}
		}
		if w.request.Trace {
			res.Trace = append(res.Trace, RoundTrace{
				Start: r.Start, Draft: r.Draft, ConfidenceLogits: r.ConfidenceLogits,
				Proposed: r.Proposed, Accepted: r.Accepted, Emitted: r.Emitted,
			})
		}
	}
	delta := ""
	for _, token := range r.Emitted {
		if w.stop[token] && !w.request.IgnoreStop {
			break
		}
		res.TokenIDs = append(res.TokenIDs, token)
		delta += w.stream.Push(token)
	}
	w.say(delta)
	if !r.First {
		w.emit(Round{Drafted: r.Proposed, Accepted: r.Accepted, Tokens: len(res.TokenIDs), Elapsed: r.At.Sub(w.first)})
	}
	return true
}

func (w *writer) say(delta string) {
	if delta == "" {
		return
	}
	w.text.WriteString(delta)
	w.emit(Text{delta})
}

// flush says what was held back and closes the text.
func (w *writer) flush() {
	if w.stream != nil {
		w.say(w.stream.Flush())
	}
	w.result.Text = w.text.String()
}

// measure works out speeds and means.
func (w *writer) measure() {
	res := &w.result
	if res.Rounds > 0 {
		res.Tau = float64(res.Accepted+res.Rounds) / float64(res.Rounds)
	}
	if res.TimeToFirstToken > 0 {
		res.PrefillPerSecond = float64(res.PromptTokens) / res.TimeToFirstToken.Seconds()
	}
	if span := w.last.Sub(w.first).Seconds(); span > 0 {
		res.TokensPerSecond = float64(len(res.TokenIDs)-1) / span
	}
}
