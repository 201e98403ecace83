package engine

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"firesteel/core/library"
	"firesteel/core/thread"
	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/chat"
)

const pairDir = "../../models/demo/pair"

var (
	demoTarget  = filepath.Join(pairDir, "target")
	demoDrafter = filepath.Join(pairDir, "drafter")
	demoRequest = LoadRequest{TargetDir: demoTarget, DrafterDir: demoDrafter}
)

func long() bool { return os.Getenv("FIRESTEEL_LONG") != "" }

func started(t testing.TB) *Engine {
	t.Helper()
	e, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// loaded is an engine with the demo pair.
func loaded(t testing.TB) *Engine {
	t.Helper()
	e := started(t)
	if _, err := e.Load(context.Background(), demoRequest); err != nil {
		t.Fatal(err)
	}
	return e
}

func prompts(t testing.TB) []string {
	raw, err := os.ReadFile("../../models/testdata/demo/demo-pair.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded []struct{ Prompt string }
	if err := json.Unmarshal(raw, &recorded); err != nil {
		t.Fatal(err)
	}
	list := []string{"What do bees do all day?", "Write about the sea.", "Why is the sky blue?", "A list of fruit, please.",
		"Tell me about winter.", "Who is the king?", "How do I make soup?", "Say something about trains."}
	for _, r := range recorded {
		list = append(list, r.Prompt)
	}
	return list
}

func ask(prompt string, k Knobs) Request {
	return Request{Messages: []chat.Message{{Role: "user", Content: prompt}}, Controls: NewControls(k), MaxTokens: 400}
}

func generate(t testing.TB, e *Engine, r Request) Result {
	t.Helper()
	result, err := e.Generate(context.Background(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// gap is how far the two likeliest tokens are apart after so many of plain's tokens.
func gap(t *testing.T, e *Engine, r Request, tokens []int) float64 {
	t.Helper()
	var lead float64
	err := e.thread.Do(context.Background(), func() error {

		prompt, err := e.held.target.Encode(r.Messages, r.Raw)
		if err != nil {
			return err
		}
		s := mlxbind.NewScope()
		defer s.Close()
		state := e.held.target.NewState()
		defer state.Close()
		var ids []int32
		for _, id := range append(prompt, tokens...) {
			ids = append(ids, int32(id))
		}
		hidden, _ := e.held.target.Forward(s, state, s.Ints(ids), nil)
		n := hidden.Dim(0)
		row, err := s.ReadFloats(e.held.target.Logits(s, s.Slice(hidden, 0, n-1, n)))
		if err != nil {
			return err
		}
		slices.Sort(row)
		lead = float64(row[len(row)-1] - row[len(row)-2])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lead
}

// Drafting changes nothing about the text: for every γ and threshold, past the sliding window
// and past the end, greedy text is the plain one. The only excuse is a tie.
func TestGreedyTextIsThePlainOne(t *testing.T) {
	e := loaded(t)
	list := prompts(t)
	limit, every := 400, 5
	grid := []Knobs{}
	for _, gamma := range []int{1, 3, 7} {
		for _, threshold := range []float64{0, 0.5, 0.9} {
			grid = append(grid, Knobs{Gamma: gamma, Threshold: &threshold})
		}
	}
	if !long() {
		list, limit, every = list[len(list)-2:], 130, 2
		grid = []Knobs{{Gamma: 3, Threshold: new(0.5)}, {Gamma: 7}}
	}
	for i, prompt := range list {
		for _, ignore := range []bool{false, true} {
			base := ask(prompt, Knobs{})
			base.IgnoreStop, base.MaxTokens = ignore, limit
			plain := generate(t, e, base)
			if plain.Rounds != len(plain.TokenIDs)-1+map[StopReason]int{StopToken: 1}[plain.Stop] {
				t.Errorf("%q: %d plain rounds for %d tokens", prompt, plain.Rounds, len(plain.TokenIDs))
			}
			for j, k := range grid {
				if ignore && (i+j)%every != 0 {
					continue // past the end, each prompt takes its part of the grid
				}
				r := ask(prompt, k)
				r.IgnoreStop, r.MaxTokens = ignore, limit
				got := generate(t, e, r)
				if slices.Equal(got.TokenIDs, plain.TokenIDs) {
					if got.Text != plain.Text {
						t.Errorf("%q: the same tokens make another text", prompt)
					}
					continue
				}
				at := 0
				for at < len(got.TokenIDs) && at < len(plain.TokenIDs) && got.TokenIDs[at] == plain.TokenIDs[at] {
					at++
				}
				lead := gap(t, e, base, plain.TokenIDs[:at])
				if lead > 1e-4 {
					t.Errorf("%q, %+v: differs after %d tokens, where the likeliest leads by %g", prompt, k, at, lead)
				} else {
					t.Logf("%q, %+v: a tie after %d tokens, %g", prompt, k, at, lead)
				}
			}
		}
	}
}

func TestDraftsAtThreeAreTheFirstOfSeven(t *testing.T) {
	e := loaded(t)
	run := func(gamma int) Result {
		r := ask(prompts(t)[8], Knobs{Gamma: gamma})
		r.Trace, r.MaxTokens = true, 120
		return generate(t, e, r)
	}
	seven, three := run(7), run(3)
	drafts := map[int][]int{}
	for _, r := range seven.Trace {
		drafts[r.Start] = r.Draft
	}
	same := 0
	for _, r := range three.Trace {
		if d, ok := drafts[r.Start]; ok {
			same++
			if !slices.Equal(r.Draft, d[:3]) {
				t.Errorf("at %d: %v, and %v of seven", r.Start, r.Draft, d)
			}
		}
	}
	if same < 10 {
		t.Errorf("only %d rounds to compare", same)
	}
}

func TestSampledTextsDependOnTheSeedAlone(t *testing.T) {
	e := loaded(t)
	run := func(seed *uint64) Result {
		r := ask("Tell me a story.", Knobs{Gamma: 5, Temperature: 1})
		r.Seed, r.MaxTokens = seed, 40
		return generate(t, e, r)
	}
	one, two := uint64(1), uint64(2)
	first := run(&one)
	between := ask("Something else.", Knobs{Gamma: 3, Temperature: 0.5})
	between.MaxTokens = 20
	generate(t, e, between)
	if again := run(&one); again.Text != first.Text {
		t.Error("one seed wrote two texts")
	}
	if other := run(&two); other.Text == first.Text {
		t.Error("two seeds wrote one text")
	}
	a, b := run(nil), run(nil)
	if a.Text == b.Text || a.Seed == b.Seed {
		t.Error("without a seed the text was the same twice")
	}
	if again := run(&a.Seed); again.Text != a.Text {
		t.Error("the seed that was told does not give the text again")
	}
}

func TestOneHostReadARound(t *testing.T) {
	e := loaded(t)
	for _, k := range []Knobs{{}, {Gamma: 7}, {Gamma: 7, Threshold: new(0.6)}} {
		r := ask(prompts(t)[8], k)
		r.MaxTokens = 50
		got := generate(t, e, r)
		if got.HostReads > got.Rounds+1 {
			t.Errorf("%+v: %d reads for %d rounds and the first token", k, got.HostReads, got.Rounds)
		}
	}
}

func TestEventsMakeTheText(t *testing.T) {
	e := loaded(t)
	var text strings.Builder
	rounds, read := 0, 0
	q := ask("Tell me about 🦊 and Zoë.", Knobs{Gamma: 7, Temperature: 1.5})
	q.MaxTokens = 120
	r, err := e.Generate(context.Background(), q, func(event Event) {
		switch v := event.(type) {
		case Text:
			text.WriteString(v.Delta)
		case Round:
			rounds++
		case Prefill:
			read = v.Done
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if text.String() != r.Text || rounds != r.Rounds || read != r.PromptTokens {
		t.Errorf("events say %d rounds, %d read, %q; the result %d, %d, %q", rounds, read, text.String(), r.Rounds, r.PromptTokens, r.Text)
	}
}

func TestCancelKeepsTheText(t *testing.T) {
	e := loaded(t)
	ctx, cancel := context.WithCancel(context.Background())
	r := ask("Tell me a story.", Knobs{Gamma: 7})
	r.IgnoreStop, r.MaxTokens = true, 0
	rounds := 0
	got, err := e.Generate(ctx, r, func(event Event) {
		if _, ok := event.(Round); ok {
			if rounds++; rounds == 5 {
				cancel()
			}
		}
	})
	if !errors.Is(err, context.Canceled) || got.Stop != StopCancelled || got.Text == "" || rounds != 5 {
		t.Errorf("%v, %s, %d rounds, %q", err, got.Stop, rounds, got.Text)
	}
	cancelled, cancelNow := context.WithCancel(context.Background())
	cancelNow()
	if _, err := e.Generate(cancelled, r, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a request cancelled before it began: %v", err)
	}
	if got := generate(t, e, ask("And now?", Knobs{Gamma: 2})); got.Text == "" {
		t.Error("nothing is written afterwards")
	}
}

func TestLoadingCanBeCancelledAndKeepsWhatWasLoaded(t *testing.T) {
	e := loaded(t)
	hello := ask("Hello.", Knobs{Gamma: 3})
	hello.MaxTokens = 30
	before := generate(t, e, hello).Text
	ctx, cancel := context.WithCancel(context.Background())
	r := demoRequest
	r.Progress = func(done, total int64) {
		if done > total/2 {
			cancel()
		}
	}
	if _, err := e.Load(ctx, r); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	for name, bad := range map[string]LoadRequest{
		"empty folder":      {TargetDir: t.TempDir()},
		"drafter alone":     {TargetDir: demoDrafter},
		"target as both":    {TargetDir: demoTarget, DrafterDir: demoTarget},
		"another's drafter": {TargetDir: demoTarget, DrafterDir: "../../models/testdata/goldens/deepspec-gemma4"},
	} {
		if _, err := e.Load(context.Background(), bad); err == nil {
			t.Errorf("%s was loaded", name)
		}
	}
	if got := generate(t, e, hello).Text; got != before {
		t.Errorf("afterwards %q, before %q", got, before)
	}
}

func TestPromptsThatCannotBeRead(t *testing.T) {
	e := loaded(t)
	var long *PromptTooLongError
	_, err := e.Generate(context.Background(), ask(strings.Repeat("a very long story ", 3000), Knobs{}), nil)
	if !errors.As(err, &long) || long.Context != 4096 {
		t.Errorf("%v", err)
	}
	var gamma *GammaError
	if _, err := e.Generate(context.Background(), ask("Hello.", Knobs{Gamma: 8}), nil); !errors.As(err, &gamma) {
		t.Errorf("%v", err)
	}
	empty := started(t)
	if _, err := empty.Generate(context.Background(), ask("Hello.", Knobs{}), nil); !errors.Is(err, ErrNothingLoaded) {
		t.Errorf("%v", err)
	}
}

// A text may fill the context to its last position.
func TestContextEnds(t *testing.T) {
	e := loaded(t)
	gammas := []int{7}
	if long() {
		gammas = []int{0, 7}
	}
	for _, gamma := range gammas {
		r := ask(strings.Repeat("a story about a dog ", 780), Knobs{Gamma: gamma})
		r.IgnoreStop, r.MaxTokens = true, 0
		got := generate(t, e, r)
		if got.Stop != StopContext || got.PromptTokens+len(got.TokenIDs) != 4096 {
			t.Errorf("γ %d: %s after %d + %d tokens", gamma, got.Stop, got.PromptTokens, len(got.TokenIDs))
		}
	}
}

func TestLoadingHoldsEveryWeightOnce(t *testing.T) {
	e := started(t)
	var base int64
	if err := e.thread.Do(context.Background(), func() error {
		mlxbind.ClearCache()
		base = mlxbind.ActiveMemory()
		mlxbind.ResetPeakMemory()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var peak int64
	r := demoRequest
	r.Progress = func(int64, int64) { peak = max(peak, mlxbind.PeakMemory()) }
	if _, err := e.Load(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	var wide int64
	for _, dir := range []string{demoTarget, demoDrafter} {
		d, err := library.Describe(dir)
		if err != nil {
			t.Fatal(err)
		}
		wide += d.WeightBytes(true)
	}
	t.Logf("peak %d of %d", peak-base, wide)
	if float64(peak-base) > 1.15*float64(wide) {
		t.Errorf("peak %d, tensors in float32 %d", peak-base, wide)
	}
}

func TestMemoryComesBack(t *testing.T) {
	e := started(t)
	cycles, requests := 4, 15
	if long() {
		cycles, requests = 20, 200
	}
	before := mlxbind.ActiveMemory()
	routines := runtime.NumGoroutine()
	for range cycles {
		if _, err := e.Load(context.Background(), demoRequest); err != nil {
			t.Fatal(err)
		}
		r := ask("Hello.", Knobs{Gamma: 7})
		r.MaxTokens = 20
		generate(t, e, r)
		if err := e.Unload(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if after := mlxbind.ActiveMemory(); after > before {
		t.Errorf("%d bytes stay after %d cycles", after-before, cycles)
	}
	if m := e.Memory(); m.Cache != 0 || m.Target != 0 || m.Drafter != 0 {
		t.Errorf("after unloading: %+v", m)
	}
	if _, err := e.Load(context.Background(), demoRequest); err != nil {
		t.Fatal(err)
	}
	var active int64
	for i := range requests {
		r := ask("Hello again.", Knobs{Gamma: 7, Temperature: float64(i % 2)})
		r.MaxTokens = 16
		generate(t, e, r)
		if i == 2 {
			active = mlxbind.ActiveMemory()
		}
	}
	if after := mlxbind.ActiveMemory(); after > active {
		t.Errorf("%d bytes more after %d requests", after-active, requests)
	}
	if now := runtime.NumGoroutine(); now > routines+2 {
		t.Errorf("%d goroutines, %d before", now, routines)
	}
}

// faulty fails in one place, as a device may.
type faulty struct {
	models.Target
	left *int // forward passes until it fails
}

func (f faulty) Forward(s *mlxbind.Scope, state models.State, tokens mlxbind.Array, taps []int) (mlxbind.Array, []mlxbind.Array) {
	if *f.left--; *f.left == 0 {
		s.Matmul(s.Zeros(mlxbind.Float32, 3, 4), s.Zeros(mlxbind.Float32, 3, 4))
	}
	return f.Target.Forward(s, state, tokens, taps)
}

// with is the target with another model.
func (t Target) with(m models.Target) *Target {
	t.Target = m
	return &t
}

type sickDrafter struct {
	models.Drafter
	left *int // drafts until it panics
}

func (f sickDrafter) Draft(s *mlxbind.Scope, c models.Context, from models.Anchor, n int, choose models.Chooser, sure bool) models.Draft {
	if *f.left--; *f.left == 0 {
		panic("out of luck")
	}
	return f.Drafter.Draft(s, c, from, n, choose, sure)
}

func TestErrorsKeepTheTextAndTheEngine(t *testing.T) {
	e := loaded(t)
	r := ask("Tell me a story.", Knobs{Gamma: 3})
	r.MaxTokens = 60
	whole := generate(t, e, r).Text
	good := *e.held
	active := mlxbind.ActiveMemory()
	for name, hurt := range map[string]func(p *pair){
		"prefill": func(p *pair) { p.target = good.target.with(faulty{good.target.Target, new(1)}) },
		"verify":  func(p *pair) { p.target = good.target.with(faulty{good.target.Target, new(6)}) },
		"draft":   func(p *pair) { p.drafter = sickDrafter{good.drafter, new(5)} },
	} {
		hurt(e.held)
		got, err := e.Generate(context.Background(), r, nil)
		*e.held = good
		var broken *thread.PanicError
		var mlx *mlxbind.Error
		if !errors.As(err, &broken) && !errors.As(err, &mlx) || got.Stop != StopFailed {
			t.Errorf("%s: %v, %s", name, err, got.Stop)
		}
		if name != "prefill" && (got.Text == "" || !strings.HasPrefix(whole, got.Text)) {
			t.Errorf("%s: %q was kept of %q", name, got.Text, whole)
		}
		if again := generate(t, e, r).Text; again != whole {
			t.Errorf("after %s: %q", name, again)
		}
	}
	if now := mlxbind.ActiveMemory(); now > active {
		t.Errorf("%d bytes are left behind by errors", now-active)
	}
}

func TestFiftyAtOnce(t *testing.T) {
	e := loaded(t)
	r := ask("Hello.", Knobs{Gamma: 7})
	r.MaxTokens = 10
	want := generate(t, e, r).Text
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if got, err := e.Generate(context.Background(), r, nil); err != nil || got.Text != want {
				t.Errorf("%v, %q", err, got.Text)
			}
		})
	}
	all.Wait()
}

func TestCloseEndsARunningText(t *testing.T) {
	e, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Load(context.Background(), demoRequest); err != nil {
		t.Fatal(err)
	}
	begun := make(chan bool, 1)
	ended := make(chan error, 1)
	go func() {
		r := ask("Tell me a story.", Knobs{Gamma: 7})
		r.IgnoreStop, r.MaxTokens = true, 0
		_, err := e.Generate(context.Background(), r, func(Event) {
			select {
			case begun <- true:
			default:
			}
		})
		ended <- err
	}()
	<-begun
	at := time.Now()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(at); took > 2*time.Second {
		t.Errorf("closing took %v", took)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := e.Generate(context.Background(), ask("Hello.", Knobs{}), nil); err == nil {
		t.Error("a closed engine wrote")
	}
}
