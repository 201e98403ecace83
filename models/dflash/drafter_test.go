package dflash

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/checkpoint"
	"firesteel/models/gemma4"
	"firesteel/models/internal/mlxtest"
)

func target(t *testing.T, name string) models.Target {
	g, err := gemma4.Load(context.Background(), mlxtest.Golden(t, name), nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// tiny is a drafter's shape for gemma4-12b-like.
func tiny(head string) checkpoint.DSpark {
	return checkpoint.DSpark{TargetID: "gemma4-12b-like@64x320", Gamma: 5, Width: 32, Layers: 2, Heads: 4, Rank: 16, FeedForward: 2,
		Taps: []int{1, 3, 6}, Head: head, Hidden: 64, Vocabulary: 320, Eps: 1e-6}
}

func fresh(t *testing.T, head string, on models.Target) *Drafter {
	d, err := New(7, tiny(head), on)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func load(t *testing.T, dir string, on models.Target) *Drafter {
	folder, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	d, err := Load(context.Background(), folder, on, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var golden = filepath.Join("..", "testdata", "goldens", "dflash")

// filled is a context of n made-up rows.
func filled(s *mlxbind.Scope, d *Drafter, n int, seed uint64) models.Context {
	c := d.NewContext()
	if n > 0 {
		d.Extend(s, c, rows(s, d, n, seed))
	}
	return c
}

func rows(s *mlxbind.Scope, d *Drafter, n int, seed uint64) (tapped []mlxbind.Array) {
	for i := range d.Taps() {
		tapped = append(tapped, s.Normal(s.Key(seed+uint64(i)), n, d.config.Hidden))
	}
	return tapped
}

func draft(s *mlxbind.Scope, d *Drafter, c models.Context, anchor, n, spare int) models.Draft {
	return d.Draft(s, c, models.Anchor{Token: s.Ints([]int32{int32(anchor)}), Position: s.Ints([]int32{int32(c.Position() - spare)}), Spare: spare}, n, nil, true)
}

func same(t *testing.T, s *mlxbind.Scope, what string, a, b models.Draft) {
	t.Helper()
	if x := mlxtest.Far(mlxtest.Floats(t, s, a.Tokens), mlxtest.Floats(t, s, b.Tokens)); x != 0 {
		t.Errorf("%s: drafts differ", what)
	}
	if x := mlxtest.Far(mlxtest.Floats(t, s, a.ConfidenceLogits), mlxtest.Floats(t, s, b.ConfidenceLogits)); !(x < 1e-4) {
		t.Errorf("%s: confidences differ by %g", what, x)
	}
}

func TestContextRowsComeInAnyPortions(t *testing.T) {
	mlxtest.On(t, func(s *mlxbind.Scope) {
		on := target(t, "gemma4-12b-like")
		defer on.Close()
		d := load(t, golden, on)
		defer d.Close()
		whole := filled(s, d, 40, 5)
		parts := d.NewContext()
		all := rows(s, d, 40, 5)
		for from, to := range map[int]int{0: 23} {
			for _, end := range []int{to, 24, 40} {
				var piece []mlxbind.Array
				for _, a := range all {
					piece = append(piece, s.Slice(a, 0, from, end))
				}
				d.Extend(s, parts, piece)
				from = end
			}
		}
		want := draft(s, d, whole, 17, 5, 0)
		same(t, s, "in portions", draft(s, d, parts, 17, 5, 0), want)
		// Rejected rows are as if they were not there.
		short := filled(s, d, 40, 5)
		if err := short.Drop(6); err != nil {
			t.Fatal(err)
		}
		same(t, s, "masked", draft(s, d, whole, 8, 5, 6), draft(s, d, short, 8, 5, 0))
		tokens := mlxtest.Floats(t, s, want.Tokens)
		for n := 1; n < 5; n++ {
			if x := mlxtest.Far(mlxtest.Floats(t, s, draft(s, d, whole, 17, n, 0).Tokens), tokens[:n]); x != 0 {
				t.Errorf("%d drafts are not the first of 5", n)
			}
		}
		empty := d.NewContext()
		mlxtest.Floats(t, s, draft(s, d, empty, 17, 5, 0).Tokens)
	})
}

func TestAnUntrainedDrafter(t *testing.T) {
	mlxtest.On(t, func(s *mlxbind.Scope) {
		on := target(t, "gemma4-12b-like")
		defer on.Close()
		markov, rnn := fresh(t, checkpoint.HeadMarkov, on), fresh(t, checkpoint.HeadRNN, on)
		defer markov.Close()
		defer rnn.Close()
		one := draft(s, markov, filled(s, markov, 9, 1), 3, 5, 0)
		same(t, s, "rnn at the start", draft(s, rnn, filled(s, rnn, 9, 1), 3, 5, 0), one)
		for _, z := range mlxtest.Floats(t, s, one.ConfidenceLogits) {
			if z != 0 {
				t.Errorf("confidence logit %g, not 0", z)
			}
		}
		if markov.Kept() != 1 || len(markov.Thresholds()) != 0 {
			t.Errorf("keeps %d, thresholds %v", markov.Kept(), markov.Thresholds())
		}
		values := mlxtest.Floats(t, s, markov.p("bb.1.gate"))
		mean, square := 0.0, 0.0
		for _, v := range values {
			mean += float64(v) / float64(len(values))
			square += float64(v) * float64(v) / float64(len(values))
		}
		if mean > 0.002 || mean < -0.002 || square < 0.018*0.018 || square > 0.022*0.022 {
			t.Errorf("weights of mean %g, mean square %g", mean, square)
		}
		other, err := New(8, tiny(checkpoint.HeadMarkov), on)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		if mlxtest.Far(mlxtest.Floats(t, s, other.p("W_c")), mlxtest.Floats(t, s, markov.p("W_c"))) == 0 {
			t.Error("two seeds give the same weights")
		}
		for _, wrong := range []func(c *checkpoint.DSpark){
			func(c *checkpoint.DSpark) { c.Hidden = 32 }, func(c *checkpoint.DSpark) { c.Taps = []int{7} },
			func(c *checkpoint.DSpark) { c.Heads = 5 }, func(c *checkpoint.DSpark) { c.Gamma = 0 },
		} {
			c := tiny(checkpoint.HeadMarkov)
			wrong(&c)
			if _, err := New(7, c, on); err == nil {
				t.Errorf("%+v was taken", c)
			}
		}
	})
}

// p is the parameter of this name.
func (d *Drafter) p(name string) mlxbind.Array {
	return d.weights[slices.IndexFunc(d.config.Tensors(), func(t checkpoint.Tensor) bool { return t.Name == name })]
}

func TestSavedAndLoadedDraftsTheSame(t *testing.T) {
	mlxtest.On(t, func(s *mlxbind.Scope) {
		on := target(t, "gemma4-12b-like")
		defer on.Close()
		d := load(t, golden, on)
		defer d.Close()
		want := draft(s, d, filled(s, d, 20, 2), 30, 5, 0)
		dir := filepath.Join(t.TempDir(), "saved")
		for _, limit := range []int64{0, 40_000} {
			if err := d.Save(context.Background(), dir, limit); err != nil {
				t.Fatal(err)
			}
			listing, err := checkpoint.List(dir)
			if err != nil || listing.Has("model.safetensors.index.json") != (limit > 0) {
				t.Fatalf("%v, %v", listing, err)
			}
			again := load(t, dir, on)
			same(t, s, "loaded again", draft(s, again, filled(s, again, 20, 2), 30, 5, 0), want)
			if c := again.Config(); c.TargetID != "gemma4-12b-like@64x320" || !slices.Equal(c.Taps, d.config.Taps) || c.Eps != d.config.Eps || c.Head != d.config.Head {
				t.Errorf("%+v", c)
			}
			again.Close()
		}
		// What is no drafter, or holds more than one, is left alone.
		note := filepath.Join(dir, "notes.txt")
		if err := os.WriteFile(note, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := d.Save(context.Background(), dir, 0); !errors.Is(err, os.ErrExist) {
			t.Errorf("a folder with other files was replaced: %v", err)
		}
		if err := d.Save(context.Background(), t.TempDir(), 0); !errors.Is(err, os.ErrExist) {
			t.Errorf("a folder that is no drafter was replaced: %v", err)
		}
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if err := d.Save(ended, filepath.Join(filepath.Dir(dir), "cancelled"), 0); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) != 1 {
			t.Errorf("left behind: %v, %v", entries, err)
		}
	})
}

func TestCalibrationIsKept(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(golden)); err != nil {
		t.Fatal(err)
	}
	want := []float64{0, 0.25, 0.5, 1, 0}
	if err := checkpoint.WriteCalibration(dir, checkpoint.Calibration{Thresholds: want, Target: 0.5, Samples: 900}); err != nil {
		t.Fatal(err)
	}
	mlxtest.On(t, func(s *mlxbind.Scope) {
		on := target(t, "gemma4-12b-like")
		defer on.Close()
		d := load(t, dir, on)
		defer d.Close()
		if !slices.Equal(d.Thresholds(), want) || d.config.Calibration.Samples != 900 || d.config.Calibration.Target != 0.5 {
			t.Errorf("%+v", d.config.Calibration)
		}
		elsewhere := filepath.Join(dir, "saved")
		if err := d.Save(context.Background(), elsewhere, 0); err != nil {
			t.Fatal(err)
		}
		if c, err := checkpoint.ReadDSpark(elsewhere); err != nil || !slices.Equal(c.Calibration.Thresholds, want) {
			t.Errorf("%+v, %v", c, err)
		}
		// An empty list is a calibration too, and means that nothing is left out.
		if err := checkpoint.WriteCalibration(dir, checkpoint.Calibration{}); err != nil {
			t.Fatal(err)
		}
		if c, err := checkpoint.ReadDSpark(dir); err != nil || c.Calibration == nil || len(c.Calibration.Thresholds) != 0 || c.TargetID != d.config.TargetID {
			t.Errorf("%+v, %v", c, err)
		}
	})
}
