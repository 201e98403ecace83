package confidence

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// rounds draws rounds of a drafter whose slot k is accepted, given those before it, with chance
// truth(k, z) for a logit z.
func rounds(n, block int, seed uint64, truth func(k int, z float64) float64) []Sample {
	random := rand.New(rand.NewPCG(seed, 1))
	list := make([]Sample, n)
	for i := range list {
		list[i].Accepted = -1
		for k := range block {
			z := random.NormFloat64()*1.5 + 0.5
			list[i].Logits = append(list[i].Logits, float32(z))
			if list[i].Accepted < 0 && random.Float64() >= truth(k, z) {
				list[i].Accepted = k
			}
		}
		if list[i].Accepted < 0 {
			list[i].Accepted = block
		}
	}
	return list
}

func TestScoreByHand(t *testing.T) {
	// Chances of 0.8 and 0.2 in one slot: four of five and none of five accepted.
	var list []Sample
	for i := range 5 {
		list = append(list, Sample{[]float32{float32(math.Log(4))}, min(i, 1)}, Sample{[]float32{-float32(math.Log(4))}, 0})
	}
	s := Judge(list, nil, 1)[0]
	near := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6 {
			t.Errorf("%s is %g, want %g", name, got, want)
		}
	}
	near("error", s.Error, 0.1)                     // 0 for the first bin, 0.2 for the other
	near("Brier", s.Brier, (4*0.04+0.64+5*0.04)/10) //
	near("AUC", s.AUC, (4*5+4*0.5)/(4*6))           // the rejected one among the sure is a tie
	near("predicted", s.Predicted, 0.5)             //
	near("observed", s.Observed, 0.4)               //
	if s.Rounds != 10 || len(s.Bins) != BinCount || s.Bins[4].Rounds+s.Bins[3].Rounds != 5 {
		t.Errorf("%+v", s)
	}
}

func TestSlotsPastAStopDoNotCount(t *testing.T) {
	scores := Judge([]Sample{{[]float32{1, 1}, 2}, {[]float32{1}, 1}}, nil, 3)
	if scores[0].Rounds != 2 || scores[1].Rounds != 1 || scores[2].Rounds != 0 {
		t.Errorf("%+v", scores)
	}
}

func TestAUCIsTheChanceOfTheRightOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 30).Draw(t, "n")
		predicted, accepted := make([]float64, n), make([]bool, n)
		for i := range n {
			predicted[i] = float64(rapid.IntRange(0, 8).Draw(t, "p")) / 8
			accepted[i] = rapid.Bool().Draw(t, "y")
		}
		wins, pairs := 0.0, 0.0
		for i := range n {
			for j := range n {
				if !accepted[i] || accepted[j] {
					continue
				}
				pairs++
				switch {
				case predicted[i] > predicted[j]:
					wins++
				case predicted[i] == predicted[j]:
					wins += 0.5
				}
			}
		}
		want := 0.5
		if pairs > 0 {
			want = wins / pairs
		}
		if got := auc(predicted, accepted); math.Abs(got-want) > 1e-12 {
			t.Fatalf("%g, want %g", got, want)
		}
	})
}

func TestFitFindsTheCurve(t *testing.T) {
	want := Curves{{0.5, 0.5, 0.5}, {0.7, 1.5, -0.8}, {2, 0.6, 0}}
	truth := func(k int, z float64) float64 { return want[k].Of(z) }
	samples := rounds(20000, 3, 1, truth)
	held := rounds(20000, 3, 2, truth)
	curves := Fit(samples, 3)
	before, after := Judge(held, nil, 3), Judge(held, curves, 3)
	for k, c := range curves {
		for _, z := range []float64{-1, 0, 1, 2} {
			if math.Abs(c.Of(z)-want[k].Of(z)) > 0.04 {
				t.Errorf("slot %d: %+v, want %+v", k, c, want[k])
			}
		}
		if after[k].Error > max(0.02, before[k].Error/2) {
			t.Errorf("slot %d: error %.3f before, %.3f after", k, before[k].Error, after[k].Error)
		}
	}
	if before[0].Error < 0.05 {
		t.Errorf("the head is too good for this test: %.3f", before[0].Error)
	}
}

// distance is how far a curve is from Plain.
func distance(c Curve) float64 {
	return math.Abs(math.Log(c.Sure)) + math.Abs(math.Log(c.Unsure)) + math.Abs(c.Shift)
}

// TestSearchFindsTheLeastLoss looks around what was found.
func TestSearchFindsTheLeastLoss(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
		truth := Curve{math.Exp(random.NormFloat64()), math.Exp(random.NormFloat64()), random.NormFloat64()}
		e := evidence{}
		var z []float64
		for range 500 {
			v := 2 * random.NormFloat64()
			z = append(z, v)
			e.sure, e.unsure = append(e.sure, math.Log1p(math.Exp(v))), append(e.unsure, math.Log1p(math.Exp(-v)))
			e.before = append(e.before, random.Float64())
			e.accepted = append(e.accepted, random.Float64() < e.before[len(z)-1]*truth.Of(v))
		}
		c := search(z, e.before, e.accepted)
		at := [3]float64{math.Log(c.Sure), math.Log(c.Unsure), c.Shift}
		least := e.loss(at)
		for j := range 3 {
			for _, d := range []float64{-0.02, 0.02} {
				near := at
				near[j] += d
				if l := e.loss(near); l < least-1e-4 {
					t.Fatalf("%+v has %g, beside it is %g", c, least, l)
				}
			}
		}
	})
}

func TestFewRoundsLeaveThingsAsTheyAre(t *testing.T) {
	truth := func(int, float64) float64 { return 0.2 }
	for _, c := range Fit(rounds(Few-1, 2, 3, truth), 2) {
		if c != Plain {
			t.Errorf("%+v from few rounds", c)
		}
	}
	some, all := Fit(rounds(Few, 1, 3, truth), 1)[0], Fit(rounds(100*Few, 1, 3, truth), 1)[0]
	if d, e := distance(some), distance(all); d == 0 || d > 0.9*e {
		t.Errorf("%+v from few rounds, %+v from many", some, all)
	}
	for _, got := range Thresholds(rounds(FewForThreshold-1, 2, 3, truth), 2, 0, Worth) {
		if got != 0 {
			t.Errorf("a threshold of %g from few rounds", got)
		}
	}
	if Fit(nil, 2)[1] != Plain || len(Thresholds(nil, 2, 0, Worth)) != 2 {
		t.Error("no rounds at all")
	}
}

func TestThresholdsOfASharpStep(t *testing.T) {
	var list []Sample
	for i := range 400 {
		c := (float64(i) + 0.5) / 400
		s := Sample{Logits: []float32{float32(math.Log(c / (1 - c))), 0, 9}}
		if c > 0.6 {
			s.Accepted = 1
		}
		list = append(list, s)
	}
	list = append(list, Sample{Logits: []float32{float32(math.NaN())}, Accepted: 1})
	got := Thresholds(list, 3, 0, 0.9)
	// Of all above 0.56 nine in ten are above 0.6.
	if got[0] < 0.5 || got[0] > 0.65 {
		t.Errorf("a threshold of %g", got[0])
	}
	if got[1] != 1 || got[2] != 1 {
		t.Errorf("drafts that are never accepted: %v", got)
	}
	if kept := Thresholds(list, 3, 1, 0.9); kept[0] != 0 || kept[1] != 1 {
		t.Errorf("the first is checked anyhow: %v", kept)
	}
}

// TestThresholdsByDefinition compares with the rule as it is written, tried on each confidence.
func TestThresholdsByDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []Sample
		for range rapid.IntRange(FewForThreshold, 90).Draw(t, "n") {
			z := float32(rapid.IntRange(-9, 9).Draw(t, "z")) / 3
			list = append(list, Sample{[]float32{z}, rapid.IntRange(0, 1).Draw(t, "k")})
		}
		worth := rapid.SampledFrom([]float64{0.3, 0.5, 0.9}).Draw(t, "worth")
		want := 1.0
		for _, s := range list {
			n, accepted := 0.0, 0.0
			for _, o := range list {
				if o.Logits[0] >= s.Logits[0] {
					n++
					accepted += float64(o.Accepted)
				}
			}
			if (accepted+1)/(n+2) >= worth {
				want = min(want, Plain.Of(float64(s.Logits[0])))
			}
		}
		if got := Thresholds(list, 1, 0, worth)[0]; got != want {
			t.Fatalf("%g, want %g", got, want)
		}
	})
}

func TestPredictedSpeedIsWhatHappens(t *testing.T) {
	samples := []Sample{{[]float32{2, -2, 2}, 3}, {[]float32{2, 2, 2}, 1}, {[]float32{-2, 2, 2}, 0}}
	costs := Costs{Round: []float64{1, 2, 3, 4}}
	all := Predict(samples, nil, 0, costs)
	if all.Checked != 3 || all.Tau != 7.0/3 || all.PerSecond != 7.0/12 {
		t.Errorf("%+v", all)
	}
	some := Predict(samples, []float64{0.5, 0.5, 0.5}, 0, costs) // 1, 3 and 0 are checked; 1, 1 and 0 kept
	if some.Checked != 4.0/3 || some.Tau != 5.0/3 || some.PerSecond != 5.0/7 {
		t.Errorf("%+v", some)
	}
	one := Predict(samples, []float64{1, 1, 1}, 1, costs)
	if one.Checked != 1 || one.Tau != 5.0/3 {
		t.Errorf("%+v", one)
	}
	if each := Predict(samples, []float64{0, 0.5}, 0, costs); each.Checked != 7.0/3 {
		t.Errorf("%+v", each)
	}
}

func TestRoundTimesNeverFall(t *testing.T) {
	var timing Timing
	if timing.Curve(3) != nil {
		t.Error("a curve from nothing")
	}
	for _, add := range [][2]float64{{1, 10}, {1, 12}, {1, 900}, {3, 8}, {5, 20}} {
		timing.Add(int(add[0]), add[1])
	}
	got := timing.Curve(6)
	if !slices.Equal(got, []float64{11, 11, 11, 11, 15.5, 20, 20}) {
		t.Errorf("%v", got)
	}
}

func TestEveryTemperatureHasItsBand(t *testing.T) {
	for temperature, want := range map[float64]string{0: "greedy", 9e-6: "greedy", 1e-5: "low", 0.5: "low", 0.51: "medium", 0.9: "medium",
		1: "high", 1.25: "high", 1.3: "very high", 100: "very high"} {
		if got := BandOf(temperature).Name; got != want {
			t.Errorf("%g is %s, want %s", temperature, got, want)
		}
	}
}

func TestCalibrationsAreKeptByPair(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "when needed")
	pair := &Calibration{Target: Model{Identity: "a", Name: "T"}, Drafter: Model{Identity: "b"}, Block: 2}
	if c, err := Read(dir, "a", "b"); c != nil || err != nil {
		t.Fatal(c, err)
	}
	cold := &Measured{Temperature: 0, Curves: Curves{{2, 1, 0.1}, Plain}, Thresholds: []float64{0, 1}}
	if _, err := pair.Keep(dir, cold); err != nil {
		t.Fatal(err)
	}
	if _, err := pair.Keep(dir, &Measured{Temperature: 1}); err != nil {
		t.Fatal(err)
	}
	c, err := Read(dir, "a", "b")
	if err != nil || c.Target.Name != "T" || len(c.Bands) != 2 || c.For(0).Curves[0] != cold.Curves[0] || c.For(1.2).Temperature != 1 || c.For(0.5) != nil {
		t.Errorf("%+v, %v", c, err)
	}
	for _, other := range [][2]string{{"b", "a"}, {"a", "c"}, {"c", "b"}} {
		if c, err := Read(dir, other[0], other[1]); c != nil || err != nil {
			t.Errorf("%v: %v, %v", other, c, err)
		}
	}
	var none *Calibration
	if none.For(0) != nil {
		t.Error("a calibration from none")
	}
	for _, damage := range []string{"", "{", `{"target":{"identity":"x"}}`,
		`{"target":{"identity":"a"},"drafter":{"identity":"b"},"bands":{"low":null}}`,
		`{"target":{"identity":"a"},"drafter":{"identity":"b"},"bands":{"low":{"curves":[{"sure":-1,"unsure":1}]}}}`,
		`{"target":{"identity":"a"},"drafter":{"identity":"b"},"bands":{"low":{"thresholds":[2]}}}`} {
		if err := os.WriteFile(file(dir, "a", "b"), []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := Read(dir, "a", "b"); c != nil || err == nil {
			t.Errorf("%q was read: %v", damage, c)
		}
	}
	if whole, err := pair.Keep(dir, cold); err != nil || len(whole.Bands) != 1 {
		t.Errorf("%+v, %v", whole, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestBackIsTheOtherWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slope := rapid.Float64Range(0.25, 4)
		c := Curve{slope.Draw(t, "sure"), slope.Draw(t, "unsure"), rapid.Float64Range(-2, 2).Draw(t, "shift")}
		z, chance := rapid.Float64Range(-8, 8).Draw(t, "z"), rapid.Float64Range(0, 1).Draw(t, "chance")
		if d := c.Of(z) - chance; math.Abs(d) > 1e-9 && (d < 0) != (Sigmoid(z) < c.Back(chance)) {
			t.Fatalf("%+v makes %g of %g, yet %g of %g", c, c.Of(z), Sigmoid(z), chance, c.Back(chance))
		}
	})
	if got := (Curve{2, 1, 1}).Back(0); got != 0 {
		t.Errorf("0 becomes %g", got)
	}
	if got := (Curve{2, 1, 1}).Back(1); got != 1 {
		t.Errorf("1 becomes %g", got)
	}
}

func TestMeasuredAsksWhatPays(t *testing.T) {
	m := &Measured{Costs: Costs{Round: []float64{1, 2, 3}}}
	fitted := rounds(3000, 2, 1, func(int, float64) float64 { return 0.1 })
	held := rounds(3000, 2, 2, func(int, float64) float64 { return 0.1 })
	m.Fit(fitted, held, 2, 0)
	if !m.Pays || len(m.Speeds) != 11 || !m.Speeds[10].Slots || m.Speeds[10].PerSecond <= m.Speeds[0].PerSecond {
		t.Errorf("checking bad drafts at full price pays: %+v", m.Speeds)
	}
	half, none := 0.5, 0.0
	if got := m.Asked(nil, 2); !slices.Equal(got, m.Thresholds) {
		t.Errorf("%v by itself", got)
	}
	if m.Asked(&none, 2) != nil {
		t.Error("none was asked for")
	}
	if got := m.Asked(&half, 2); got[0] != m.Curves[0].Back(0.5) || got[1] != m.Curves[1].Back(0.5) || got[0] < 0.6 {
		t.Errorf("%v for a half, with %+v", got, m.Curves)
	}
	m.Costs = Costs{Round: []float64{1, 1, 1}}
	m.Fit(fitted, held, 2, 0)
	if m.Pays || m.Asked(nil, 2) != nil {
		t.Error("where checks cost nothing, leaving some out pays")
	}
}
