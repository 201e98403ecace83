package decode

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"firesteel/core/internal/chisquare"
	"firesteel/core/internal/threadtest"
	"firesteel/core/sample"
	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/checkpoint"
	"firesteel/models/dflash"
	"firesteel/models/family"
)

// opened is a checkpoint of the fixtures.
func opened(t *testing.T, name string) *checkpoint.Folder {
	folder, err := checkpoint.Open(filepath.Join("..", "..", "models", "testdata", "goldens", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	return folder
}

// pair names a target and a drafter of the fixtures; "" is a DFlash drafter begun afresh.
type pair struct{ target, drafter string }

// pairs runs f for the pairs given, for one of each kind without any.
func pairs(t *testing.T, f func(t *testing.T, target models.Target, drafter models.Drafter), list ...pair) {
	if len(list) == 0 {
		list = []pair{{"gemma4-12b-like", "deepspec-gemma4"}, {"gemma4-12b-like", "dflash"}, {"gemma4-12b-like", ""},
			{"qwen3-like", "deepspec-qwen3"}, {"qwen3-tied-like-q3", ""}}
	}
	ctx := context.Background()
	load := func(t *testing.T, open func() (models.Target, models.Drafter, error)) {
		var target models.Target
		var drafter models.Drafter
		err := threadtest.Thread.Do(ctx, func() (err error) {
			target, drafter, err = open()
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		defer threadtest.Thread.Do(ctx, func() error {
			drafter.Close()
			target.Close()
			return nil
		})
		f(t, target, drafter)
	}
	for _, p := range list {
		t.Run(p.target+"+"+p.drafter, func(t *testing.T) {
			load(t, func() (models.Target, models.Drafter, error) {
				target, err := family.OpenTarget(ctx, opened(t, p.target), nil)
				if err != nil {
					return nil, nil, err
				}
				if p.drafter == "" {
					drafter, err := dflash.New(3, checkpoint.DSpark{Gamma: 5, Width: 32, Layers: 2, Heads: 4, Rank: 16, FeedForward: 2,
						Taps: []int{1, 3, target.Geometry().Layers}, Head: checkpoint.HeadRNN, Hidden: 64, Vocabulary: 320, Eps: 1e-6}, target)
					return target, drafter, err
				}
				drafter, err := family.OpenDrafter(ctx, opened(t, p.drafter), target, false, nil)
				return target, drafter, err
			})
		})
	}
}

func TestDraftersLeaveGreedyTextAsItIs(t *testing.T) {
	pairs(t, func(t *testing.T, target models.Target, drafter models.Drafter) {
		plain, _, _, err := write(t, Config{Target: target, MaxTokens: 40, Knobs: fixed(Knobs{})})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range []Knobs{{Gamma: 1}, {Gamma: 3}, {Gamma: 5}, {Gamma: 5, Thresholds: Uniform(drafter, 0.6)}, {Gamma: 5, Thresholds: []float64{0.9, 0.4, 0.5, 0.6}}} {
			got, rounds, _, err := write(t, Config{Target: target, Drafter: drafter, MaxTokens: 40, Knobs: fixed(k), Trace: true})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, plain) {
				t.Errorf("%+v: another text:\n%v\n%v", k, got, plain)
			}
			if _, ok := drafter.(*dflash.Drafter); ok {
				for _, r := range rounds[1:] {
					if len(r.Draft) > 0 && r.Proposed < 1 {
						t.Errorf("%+v: the first draft was left out", k)
					}
				}
			}
		}
	})
}

// An untrained drafter is sure of nothing, so a threshold above a half leaves the first draft alone.
func TestAThresholdAboveAHalfKeepsOneUntrainedDraft(t *testing.T) {
	pairs(t, func(t *testing.T, target models.Target, drafter models.Drafter) {
		for threshold, want := range map[float64]int{0.6: 1, 0.4: 5} {
			_, rounds, _, err := write(t, Config{Target: target, Drafter: drafter, MaxTokens: 30, Knobs: fixed(Knobs{Gamma: 5, Thresholds: Uniform(drafter, threshold)})})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rounds[1:] {
				if len(r.Draft) == 5 && r.Proposed != want {
					t.Errorf("threshold %g: %d proposed of %d", threshold, r.Proposed, len(r.Draft))
				}
			}
		}
	}, pair{"gemma4-12b-like", ""})
}

// What is drawn with a drafter follows the target: the first three tokens of many texts are counted
// against their exact chances.
func TestDraftersLeaveChancesAsTheyAre(t *testing.T) {
	texts := 50
	if os.Getenv("FIRESTEEL_LONG") != "" {
		texts = 1500
	}
	sampling := sample.Settings{Temperature: 1.5, TopK: 3, TopP: 1}
	pairs(t, func(t *testing.T, target models.Target, drafter models.Drafter) {
		chances := map[[3]int]float64{}
		err := threadtest.Thread.Do(context.Background(), func() error { return enumerate(target, sampling, nil, 1, chances) })
		if err != nil {
			t.Fatal(err)
		}
		counts := map[[3]int]int{}
		for seed := range texts {
			got, _, _, err := write(t, Config{Target: target, Drafter: drafter, MaxTokens: 3, Seed: uint64(seed), Knobs: fixed(Knobs{Gamma: 5, Sampling: sampling})})
			if err != nil {
				t.Fatal(err)
			}
			counts[[3]int(got)]++
		}
		var seen []int
		var want []float64
		for text, p := range chances {
			seen, want = append(seen, counts[text]), append(want, p)
			delete(counts, text)
		}
		if len(counts) > 0 {
			t.Errorf("texts that never should come: %v", counts)
		}
		chisquare.Check(t, "three tokens", seen, want)
	})
}

// enumerate adds the chance of every text that begins with head, after the prompt of write.
func enumerate(target models.Target, sampling sample.Settings, head []int, chance float64, to map[[3]int]float64) error {
	if len(head) == 3 {
		to[[3]int(head)] += chance
		return nil
	}
	s := mlxbind.NewScope()
	defer s.Close()
	state := target.NewState()
	defer state.Close()
	tokens := append([]int{1, 2}, head...)
	hidden, _ := target.Forward(s, state, array(s, tokens), nil)
	logits := target.Logits(s, s.Slice(hidden, 0, len(tokens)-1, len(tokens)))
	p, err := s.ReadFloats(s.Exp(sample.LogDistribution(s, logits, sampling)))
	if err != nil {
		return err
	}
	for token, x := range p {
		if x > 1e-6 {
			if err := enumerate(target, sampling, append(slices.Clone(head), token), chance*float64(x), to); err != nil {
				return err
			}
		}
	}
	return nil
}
