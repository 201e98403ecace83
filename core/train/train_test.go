package train

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"firesteel/core/decode"
	"firesteel/core/internal/mishap"
	"firesteel/core/internal/threadtest"
	"firesteel/core/sample"
	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/checkpoint"
	"firesteel/models/dflash"
	"firesteel/models/family"
)

func TestMain(m *testing.M) {
	mishap.Child(taught, retuned)
	threadtest.Main(m)
}

func floats(t *testing.T, s *mlxbind.Scope, a mlxbind.Array) []float32 {
	t.Helper()
	values, err := s.ReadFloats(a)
	if err != nil {
		t.Error(err)
	}
	return values
}

func near(t *testing.T, what string, got []float32, want []float64) {
	t.Helper()
	for i := range want {
		if i >= len(got) || math.Abs(float64(got[i])-want[i]) > 2e-6 {
			t.Errorf("%s: %v, not %v", what, got, want)
			return
		}
	}
}

func golden(name string) string {
	return filepath.Join("..", "..", "models", "testdata", "goldens", name)
}

// school is a class over a fixture, with the questions it is asked.
type school struct {
	class
	questions []question
	out, work string
}

// open makes a class for the fixture name with a small drafter.
func open(t *testing.T, name, head string, questions int) *school {
	x := &school{out: filepath.Join(t.TempDir(), "made"), work: t.TempDir()}
	folder, err := checkpoint.Open(golden(name))
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	var target models.Target
	threadtest.On(t, func(*mlxbind.Scope) {
		if target, err = family.OpenTarget(context.Background(), folder, nil); err != nil {
			return
		}
		g := target.Geometry()
		x.pupil, err = begin(checkpoint.DSpark{TargetID: name, Gamma: 3, Width: 64, Layers: 1, Heads: 4, Rank: 32, FeedForward: 2,
			Taps: []int{1, g.Layers - 1, g.Layers}, Head: head, Hidden: g.Hidden, Vocabulary: g.Vocabulary, Eps: 1e-6}, 3, target)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		threadtest.On(t, func(*mlxbind.Scope) { x.pupil.Close(); target.Close() })
	})
	x.do, x.last = func(f func() error) error { return f() }, func(f func()) { f() }
	x.target, x.stops, x.tell = target, func(int) bool { return false }, func(Progress) {}
	x.settings = Settings{Steps: 20, Texts: 4, Anchors: 4, Context: 32, Rate: 4e-3, Seed: 5, Measure: 10, AnswerTokens: 16,
		Sampling: sample.Settings{TopP: 1}, DataLimit: 1 << 30}
	for i := range questions {
		x.questions = append(x.questions, question{ids: []int{2 + i, 40 + 7*i%200, 5, 90 - i, 17}})
	}
	return x
}

func (x *school) place(resume bool) place {
	b, err := benchFor(x.out)
	if err != nil {
		panic(err)
	}
	return place{out: x.out, bench: b, resume: resume}
}

// teach runs the class with the student's first weights.
func (x *school) run(t *testing.T, ctx context.Context, resume bool) (r Result, err error) {
	t.Helper()
	threadtest.On(t, func(s *mlxbind.Scope) {
		r, err = x.teach(ctx, slices.Clone(x.questions), "tiny", x.work, x.place(resume))
	})
	return r, err
}

func TestEightTextsAreLearnedByHeart(t *testing.T) {
	x := open(t, "gemma4-12b-like", checkpoint.HeadMarkov, 8)
	x.settings.Steps, x.settings.Measure, x.settings.Texts, x.settings.Anchors, x.settings.Rate = 300, 300, 8, 4, 1e-2
	x.settings.AnswerTokens = 10
	r, err := x.run(t, context.Background(), false)
	if err != nil {
		t.Fatal(err)
	}
	accept := 0.0
	for _, a := range r.Accept[len(r.Accept)-20:] {
		accept += a / 20
	}
	t.Logf("accept rate %.3f, loss %.3f, live %+v", accept, r.Losses[len(r.Losses)-1], r.Live)
	if accept < 0.9 {
		t.Errorf("the accept rate is %.3f", accept)
	}
	if r.Texts != 8 || r.HeldOut != 0 || r.Live[0].Tau > 1.5 || r.Best.Tau < 2.5 {
		t.Errorf("%+v", r.Live)
	}
	// What was made opens, and writes what the target writes.
	folder, err := checkpoint.Open(x.out)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	threadtest.On(t, func(*mlxbind.Scope) {
		d, err := dflash.Load(context.Background(), folder, x.target, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer d.Close()
		live, err := measure(context.Background(), x.target, d, x.questions, x.stops, x.settings.AnswerTokens)
		if live.Step = r.Best.Step; err != nil || live != r.Best {
			t.Errorf("made %+v, measured %+v, %v", r.Best, live, err)
		}
	})
	if left, err := os.ReadDir(filepath.Dir(x.out)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A training that is broken off again and again goes the way of one that is not.
func TestBrokenOffTrainingGoesOnTheSameWay(t *testing.T) {
	x := open(t, "gemma4-12b-like", checkpoint.HeadMarkov, 12)
	whole, err := x.run(t, context.Background(), false)
	if err != nil {
		t.Fatal(err)
	}
	if whole.HeldOut != 1 || whole.Texts != 11 || len(whole.Losses) != 20 {
		t.Errorf("%+v", whole)
	}
	y := open(t, "gemma4-12b-like", checkpoint.HeadMarkov, 12)
	for _, end := range []struct {
		stage string
		done  int64
	}{{Reading, 4}, {Learning, 3}, {Learning, 13}, {Learning, 19}} {
		ctx, stop := context.WithCancel(context.Background())
		y.tell = func(p Progress) {
			if p.Stage == end.stage && p.Done == end.done {
				stop()
			}
		}
		_, err := y.run(t, ctx, true)
		stop()
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("%v", err)
		}
		if _, err := os.Lstat(y.out); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("a folder was made half way")
		}
	}
	y.tell = func(Progress) {}
	// As a program that was killed would have left it: files that were being written.
	for _, dir := range []string{string(y.place(true).bench), y.class.work} {
		if err := os.MkdirAll(filepath.Join(dir, ".state.unfinished-1"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	parts, err := y.run(t, context.Background(), true)
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range whole.Losses {
		if k >= len(parts.Losses) || math.Abs(parts.Losses[k]-want) > 1e-5 {
			t.Fatalf("step %d: losses %v and %v", k, whole.Losses, parts.Losses)
		}
	}
	if !slices.Equal(whole.Live, parts.Live) || whole.Best != parts.Best {
		t.Errorf("measured %v and %v", whole.Live, parts.Live)
	}
	one, err1 := os.ReadFile(filepath.Join(x.out, "model.safetensors"))
	two, err2 := os.ReadFile(filepath.Join(y.out, "model.safetensors"))
	if err := errors.Join(err1, err2); err != nil || string(one) != string(two) {
		t.Errorf("the drafters differ: %v", err)
	}
}

func TestAnyTargetAndHeadLearns(t *testing.T) {
	for name, head := range map[string]string{"gemma4-12b-like-q4": checkpoint.HeadMarkov, "qwen3-tied-like": checkpoint.HeadRNN} {
		x := open(t, name, head, 8)
		x.settings.Steps, x.settings.Measure = 60, 60
		r, err := x.run(t, context.Background(), false)
		if err != nil {
			t.Fatal(err)
		}
		if first, last := r.Losses[0], r.Losses[59]; !(last < first-0.3) {
			t.Errorf("%s: the loss went from %g to %g", name, first, last)
		}
	}
}

func TestAnotherTrainingIsNotGoneOnWith(t *testing.T) {
	x := open(t, "gemma4-12b-like", checkpoint.HeadMarkov, 8)
	ctx, stop := context.WithCancel(context.Background())
	x.tell = func(p Progress) {
		if p.Stage == Learning && p.Done == 2 {
			stop()
		}
	}
	if _, err := x.run(t, ctx, false); !errors.Is(err, context.Canceled) || !Begun(x.out) {
		t.Fatalf("%v", err)
	}
	x.settings.Rate *= 2
	if _, err := x.run(t, context.Background(), true); !errors.Is(err, ErrOther) {
		t.Errorf("%v", err)
	}
	for _, c := range []struct {
		job  Job
		want error
	}{
		{Job{Out: x.out}, ErrBegun}, {Job{Out: x.out + "2", Resume: true}, ErrNothingBegun}, {Job{Out: x.work}, os.ErrExist},
		{Job{Out: x.work, Replace: true}, os.ErrExist}, {Job{Out: golden("qwen3-like"), Replace: true}, os.ErrExist},
	} {
		if _, err := newPlace(c.job); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c.job, err)
		}
	}
	if err := Discard(x.out); err != nil || Begun(x.out) {
		t.Errorf("%v", err)
	}
}

func TestTextsStayWithinTheLimit(t *testing.T) {
	x := open(t, "gemma4-12b-like", checkpoint.HeadMarkov, 8)
	x.settings.DataLimit, x.settings.Steps = 30_000, 2
	var most int64
	x.tell = func(p Progress) {
		if p.Stage == Reading {
			most = p.Most
		}
	}
	r, err := x.run(t, context.Background(), false)
	if err != nil {
		t.Fatal(err)
	}
	taken := int64(0)
	filepath.WalkDir(x.work, func(_ string, e os.DirEntry, err error) error {
		if info, err2 := e.Info(); err == nil && err2 == nil && strings.HasSuffix(e.Name(), ".safetensors") {
			taken += info.Size()
		}
		return err
	})
	if r.Texts >= 8 || r.Texts < 1 || taken > 30_000 || most <= 30_000 {
		t.Errorf("%d texts take %d bytes; all would take %d", r.Texts, taken, most)
	}
}

func TestLostTextsEndTrainingAndLeaveItsState(t *testing.T) {
	x := open(t, "gemma4-12b-like", checkpoint.HeadMarkov, 8)
	x.tell = func(p Progress) {
		if p.Stage == Learning && p.Done == 12 {
			filepath.WalkDir(x.work, func(path string, e os.DirEntry, _ error) error {
				if strings.HasSuffix(path, ".safetensors") {
					return os.Truncate(path, 100)
				}
				return nil
			})
		}
	}
	_, err := x.run(t, context.Background(), false)
	var e *checkpoint.Error
	if !errors.As(err, &e) || e.Tensor == "" {
		t.Fatalf("%v", err)
	}
	if _, err := os.Lstat(x.out); !errors.Is(err, os.ErrNotExist) || !Begun(x.out) {
		t.Errorf("%v", err)
	}
}

// numbered prepares texts whose rows say where they stand: text i has token 100·i + row, taps of
// that number and hidden rows of its half.
func numbered(t *testing.T, lengths ...int) *texts {
	all, err := openTexts(t.TempDir(), 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(all.close)
	bits := func(v float32) []byte { u := math.Float32bits(v) >> 16; return []byte{byte(u), byte(u >> 8)} }
	for i, n := range lengths {
		x := text{answer: 4}
		var r rows
		for row := range n {
			x.ids = append(x.ids, int32(100*i+row))
			r.taps = append(append(r.taps, bits(float32(row))...), bits(float32(i))...)
			r.hidden = append(r.hidden, bits(float32(row)/2)...)
		}
		if err := all.add(x, r); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			if err := all.flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := all.flush(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAnchorsSeeWhatLiesStrictlyBeforeThem(t *testing.T) {
	all := numbered(t, 30, 7, 50, 80)
	const gamma, context1 = 3, 10
	b := newBatcher(all, 9, gamma, 2, 3, context1)
	if !slices.Equal(b.usable, []int{0, 2, 3}) {
		t.Fatalf("usable: %v", b.usable)
	}
	seen := map[int]int{}
	threadtest.On(t, func(s *mlxbind.Scope) {
		for step := range 30 {
			batch, err := b.at(context.Background(), s, step)
			if err != nil {
				t.Error(err)
				return
			}
			n := batch.Taps.Dim(1)
			taps, padding := floats(t, s, batch.Taps), floats(t, s, batch.Padding)
			anchors, labels := floats(t, s, batch.Anchors), floats(t, s, batch.Labels)
			hidden, positions := floats(t, s, batch.TargetHidden), floats(t, s, batch.Positions)
			for k, id := range anchors {
				text, at := int(id)/100, int(id)%100
				seen[text]++
				if at < 4 || at+gamma >= []int{30, 7, 50, 80}[text] {
					t.Errorf("an anchor at %d of text %d", at, text)
				}
				var visible []int
				for row := range n {
					if padding[k*n+row] == 0 {
						visible = append(visible, int(taps[(k/3*n+row)*2]))
						if int(taps[(k/3*n+row)*2+1]) != text {
							t.Errorf("a row of another text")
						}
					}
				}
				if len(visible) != min(at, context1) || visible[0] != max(0, at-context1) || visible[len(visible)-1] != at-1 || !slices.IsSorted(visible) {
					t.Errorf("the anchor at %d sees rows %v", at, visible)
				}
				if row := int(positions[k]); int(taps[(k/3*n+row-1)*2]) != at-1 {
					t.Errorf("the anchor at %d stands at row %d", at, row)
				}
				for j := range gamma {
					if int(labels[k*gamma+j]) != int(id)+1+j || hidden[k*gamma+j] != float32(at+j)/2 {
						t.Errorf("slot %d after %g: label %g, row %g", j, id, labels[k*gamma+j], hidden[k*gamma+j])
					}
				}
			}
		}
	})
	if seen[0] != seen[2] || seen[2] != seen[3] {
		t.Errorf("texts came %v times", seen)
	}
}

func TestHeldOutQuestionsAreNotLearnedFrom(t *testing.T) {
	var all []question
	for i := range 100 {
		all = append(all, question{ids: []int{i % 60}})
	}
	learned, held, apart := deal(all, 4)
	if !apart || len(held) != 5 {
		t.Fatalf("%d held out, %v", len(held), apart)
	}
	for _, q := range held {
		if slices.ContainsFunc(learned, func(x question) bool { return slices.Equal(x.ids, q.ids) }) {
			t.Errorf("%v is learned from too", q.ids)
		}
	}
	again, _, _ := deal(slices.Clone(all[:0:0]), 4)
	if len(again) != 0 {
		t.Error("questions from nowhere")
	}
	if _, held, apart := deal(all[:9], 4); apart || len(held) != 9 {
		t.Errorf("%d of 9 held out", len(held))
	}
}

// The rows that are kept are those that decoding computes.
func TestTappedRowsAreTheTargetsOwn(t *testing.T) {
	x := open(t, "gemma4-12b-like", checkpoint.HeadMarkov, 1)
	threadtest.On(t, func(s *mlxbind.Scope) {
		q := x.questions[0]
		w, err := write(context.Background(), x.target, x.stops, q, x.settings.Sampling, 16, 1)
		if err != nil || len(w.ids) != 21 || w.answer != 5 {
			t.Errorf("%v, %v", w, err)
			return
		}
		var plain []int
		_, err = decode.Run(context.Background(), q.ids, decode.Config{Target: x.target, MaxTokens: 16, Stop: x.stops,
			Knobs: func() decode.Knobs { return decode.Knobs{} }, Round: func(r decode.Round) bool { plain = append(plain, r.Emitted...); return true }})
		for i, id := range plain {
			if int(w.ids[5+i]) != id {
				t.Errorf("%v, not %v (%v)", w.ids[5:], plain, err)
			}
		}
		r, err := tap(context.Background(), x.target, []int{0, 6}, w)
		if err != nil {
			t.Error(err)
			return
		}
		state := x.target.NewState()
		defer state.Close()
		hidden, tapped := x.target.Forward(s, state, s.Ints(w.ids), []int{0, 6})
		for i, want := range []mlxbind.Array{s.Concatenate(-1, tapped...), hidden} {
			have := floats(t, s, s.Data([][]byte{r.taps, r.hidden}[i], mlxbind.BFloat16, want.Shape()...))
			for j, v := range floats(t, s, want) {
				if d := math.Abs(float64(have[j] - v)); d > 0.004*math.Abs(float64(v))+1e-6 {
					t.Fatalf("element %d is %g, not %g", j, have[j], v)
				}
			}
		}
	})
}
