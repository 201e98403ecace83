package deepspec

import (
	"context"
	"testing"

	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/block"
	"firesteel/models/internal/mlxtest"
)

func open(t *testing.T, name string) *Drafter {
	d, err := Load(context.Background(), mlxtest.Golden(t, name), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// filled is a context of n made-up rows.
func filled(s *mlxbind.Scope, d *Drafter, n int, seed uint64) *block.Context {
	c := d.NewContext().(*block.Context)
	if n > 0 {
		var tapped []mlxbind.Array
		for i := range d.Taps() {
			tapped = append(tapped, s.Normal(s.Key(seed+uint64(i)), n, d.hidden))
		}
		d.Extend(s, c, tapped)
	}
	return c
}

func TestRowsWithDifferentContextsAreSingleRuns(t *testing.T) {
	for _, name := range []string{"deepspec-gemma4", "deepspec-gemma4-mixed"} {
		mlxtest.On(t, func(s *mlxbind.Scope) {
			d := open(t, name)
			defer d.Close()
			lengths, anchors := []int{0, 5, 23}, []int32{9, 100, 250}
			var contexts []*block.Context
			var positions []int32
			for i, n := range lengths {
				contexts = append(contexts, filled(s, d, n, uint64(10*i)))
				positions = append(positions, int32(n))
			}
			together := d.Hidden(s, d.SeeEach(s, contexts), s.Ints(anchors), s.Ints(positions))
			steps := d.Slots(s, together, s.Ints(anchors), nil)
			for i, c := range contexts {
				anchor, position := s.Ints(anchors[i:i+1]), s.Ints(positions[i:i+1])
				alone := d.Hidden(s, d.See(s, c, position, 0), anchor, position)
				if x := mlxtest.Far(mlxtest.Floats(t, s, s.Slice(together, 0, i, i+1)), mlxtest.Floats(t, s, alone)); !(x < 1e-4) {
					t.Errorf("%s: row %d differs by %g from its single run", name, i, x)
				}
				single := d.Slots(s, alone, anchor, nil)
				for k := range d.Block() {
					a := mlxtest.Floats(t, s, s.Slice(steps.Tokens[k], 0, i, i+1))
					if b := mlxtest.Floats(t, s, single.Tokens[k]); a[0] != b[0] {
						t.Errorf("%s: row %d, draft %d: %g and %g", name, i, k, a[0], b[0])
					}
				}
			}
		})
	}
}

func TestAnchorsOverOneContextAreSingleRuns(t *testing.T) {
	mlxtest.On(t, func(s *mlxbind.Scope) {
		d := open(t, "deepspec-gemma4")
		defer d.Close()
		c := filled(s, d, 12, 3)
		anchors := s.Ints([]int32{4, 77, 300})
		for _, positions := range [][]int32{{12, 12, 12}, {12, 5, 9}} {
			together := d.Hidden(s, d.See(s, c, s.Ints(positions), 7), anchors, s.Ints(positions))
			for i, p := range positions {
				short := filled(s, d, 12, 3)
				if err := short.Drop(12 - int(p)); err != nil {
					t.Fatal(err)
				}
				position := s.Ints([]int32{p})
				alone := d.Hidden(s, d.See(s, short, position, 0), s.Slice(anchors, 0, i, i+1), position)
				if x := mlxtest.Far(mlxtest.Floats(t, s, s.Slice(together, 0, i, i+1)), mlxtest.Floats(t, s, alone)); !(x < 1e-4) {
					t.Errorf("%v, row %d differs by %g from its single run", positions, i, x)
				}
			}
		}
	})
}

func TestShorterDraftsAreTheFirstOfLonger(t *testing.T) {
	mlxtest.On(t, func(s *mlxbind.Scope) {
		d := open(t, "deepspec-gemma4")
		defer d.Close()
		c := filled(s, d, 30, 1)
		anchor := models.Anchor{Token: s.Ints([]int32{17}), Position: s.Ints([]int32{30})}
		all := d.Draft(s, c, anchor, d.Block(), nil, true)
		tokens, confidence := mlxtest.Floats(t, s, all.Tokens), mlxtest.Floats(t, s, all.ConfidenceLogits)
		for n := 1; n < d.Block(); n++ {
			part := d.Draft(s, c, anchor, n, nil, true)
			if x := mlxtest.Far(mlxtest.Floats(t, s, part.Tokens), tokens[:n]); x != 0 {
				t.Errorf("%d drafts differ from the first %d of %d", n, n, d.Block())
			}
			if x := mlxtest.Far(mlxtest.Floats(t, s, part.ConfidenceLogits), confidence[:n]); !(x < 1e-4) {
				t.Errorf("%d confidences differ by %g", n, x)
			}
		}
	})
}

func TestRejectedRowsAreAsIfTheyWereNotThere(t *testing.T) {
	mlxtest.On(t, func(s *mlxbind.Scope) {
		d := open(t, "deepspec-gemma4")
		defer d.Close()
		long, short := filled(s, d, 20, 5), filled(s, d, 20, 5)
		if err := short.Drop(6); err != nil {
			t.Fatal(err)
		}
		at := s.Ints([]int32{14})
		masked := d.Draft(s, long, models.Anchor{Token: s.Ints([]int32{8}), Position: at, Spare: 6}, d.Block(), nil, true)
		dropped := d.Draft(s, short, models.Anchor{Token: s.Ints([]int32{8}), Position: at}, d.Block(), nil, true)
		if x := mlxtest.Far(mlxtest.Floats(t, s, masked.ConfidenceLogits), mlxtest.Floats(t, s, dropped.ConfidenceLogits)); !(x < 1e-4) {
			t.Errorf("confidences differ by %g", x)
		}
		if x := mlxtest.Far(mlxtest.Floats(t, s, masked.Tokens), mlxtest.Floats(t, s, dropped.Tokens)); x != 0 {
			t.Error("drafts differ")
		}
	})
}

func TestFitsATargetWithAnotherPadding(t *testing.T) {
	mlxtest.On(t, func(s *mlxbind.Scope) {
		draft := func(vocabulary int, anchor int32, choose models.Chooser) models.Draft {
			d := open(t, "deepspec-gemma4")
			defer d.Close()
			if vocabulary > 0 {
				d.Fit(vocabulary)
			}
			c := filled(s, d, 10, 4)
			out := d.Draft(s, c, models.Anchor{Token: s.Ints([]int32{anchor}), Position: s.Ints([]int32{10})}, d.Block(), choose, false)
			if err := s.Eval(out.Tokens); err != nil {
				t.Fatal(err)
			}
			return out
		}
		plain := mlxtest.Floats(t, s, draft(0, 9, nil).Tokens)
		if wider := mlxtest.Floats(t, s, draft(328, 9, nil).Tokens); mlxtest.Far(wider, plain) != 0 {
			t.Error("a wider target changes the drafts")
		}
		mlxtest.Floats(t, s, draft(328, 327, nil).Tokens)
		for _, v := range mlxtest.Floats(t, s, draft(40, 9, nil).Tokens) {
			if v >= 40 {
				t.Errorf("token %g was drafted for a target of 40", v)
			}
		}
		even := func(s *mlxbind.Scope, _ int, logits mlxbind.Array) (mlxbind.Array, mlxbind.Array) {
			return s.ArgMax(logits, -1, false), logits
		}
		for _, width := range []int{328, 40} {
			if got := draft(width, 9, even).LogDistributions.Dim(1); got != width {
				t.Errorf("distributions over %d tokens, the target has %d", got, width)
			}
		}
	})
}
