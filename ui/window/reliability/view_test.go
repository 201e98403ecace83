package reliability

import (
	"math/rand/v2"
	"strings"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/test"

	"firesteel/core/confidence"
	"firesteel/ui/window/look"
)

// measured is what calibrating a drafter that is too timid finds.
func measured() *confidence.Measured {
	random := rand.New(rand.NewPCG(1, 2))
	draw := func() (list []confidence.Sample) {
		for range 6000 {
			s := confidence.Sample{Accepted: -1}
			for k := range 3 {
				z := random.NormFloat64() * 1.5
				s.Logits = append(s.Logits, float32(z))
				if s.Accepted < 0 && random.Float64() >= confidence.Sigmoid(z+1) {
					s.Accepted = k
				}
			}
			if s.Accepted < 0 {
				s.Accepted = 3
			}
			list = append(list, s)
		}
		return list
	}
	m := &confidence.Measured{HeldOut: 6000, Fitted: 6000, Costs: confidence.Costs{Round: []float64{0.010, 0.012, 0.015, 0.030}, Plain: 0.009}}
	m.Fit(draw(), draw(), 3, 0)
	return m
}

// texts are all texts below o.
func texts(o fyne.CanvasObject) (list []string) {
	switch o := o.(type) {
	case *canvas.Text:
		list = append(list, o.Text)
	case *fyne.Container:
		for _, inner := range o.Objects {
			list = append(list, texts(inner)...)
		}
	case *look.Text:
		list = append(list, o.Text())
	}
	return list
}

func TestViewShowsTheWordChosen(t *testing.T) {
	test.NewTempApp(t).Settings().SetTheme(&look.Theme{Mode: look.Light})
	m := measured()
	v := NewView(m)
	w := test.NewTempWindow(t, v.Content)
	w.Resize(fyne.NewSize(520, 480))
	seen := map[string]bool{}
	for k := range m.Before {
		v.word.SetSelectedIndex(k)
		if len(v.before.diagram.bins) != confidence.BinCount || &v.before.diagram.bins[0] != &m.Before[k].Bins[0] || &v.after.diagram.bins[0] != &m.After[k].Bins[0] {
			t.Errorf("word %d: other bins are drawn", k+1)
		}
		seen[v.before.figures.Text()+v.after.figures.Text()] = true
	}
	if len(seen) != 3 {
		t.Errorf("%v", seen)
	}
	all := strings.Join(texts(v.Content), "|")
	for _, part := range []string{"Before", "After", "each word its own", "no drafter|0.0|1.00|111", "caution|words checked|words per check|words per second"} {
		if !strings.Contains(all, part) {
			t.Errorf("%q is missing in %s", part, all)
		}
	}
	if !m.Pays || !strings.Contains(v.verdict.Text, "caution of its own") || !strings.Contains(v.verdict.Text, "6000 checks") {
		t.Errorf("%v, %q", m.Pays, v.verdict.Text)
	}
	m.Pays, m.HeldOut = false, 400
	if !strings.Contains(verdict(m), "much of that is chance") || strings.Contains(v.verdict.Text, "chance") {
		t.Error(verdict(m))
	}
	if !strings.Contains(verdict(m), "nothing is left out") {
		t.Error(verdict(m))
	}
}
