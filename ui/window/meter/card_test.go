package meter

import (
	"testing"

	"fyne.io/fyne/v2/test"

	"firesteel/core/engine"
	"firesteel/ui/window/look"
)

func TestLevelOf(t *testing.T) {
	const gb = int64(1) << 30
	for _, c := range []struct {
		process, available, total int64
		want                      Level
	}{
		{gb, 10 * gb, 16 * gb, Calm},
		{10 * gb, 4 * gb, 24 * gb, Amber}, // 10 of 12
		{10 * gb, 3 * gb, 24 * gb, Red},   // 10 of 11
		{gb, gb, 24 * gb, Red},            // nothing left above the reserve
		{0, 0, 0, Calm},                   // the system tells nothing
	} {
		if got := LevelOf(engine.Memory{Process: c.process, Available: c.available, MachineTotal: c.total}); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestCard(t *testing.T) {
	test.NewTempApp(t).Settings().SetTheme(&look.Theme{})
	helped := false
	c := New("Free memory", func() { helped = true })
	c.Set(engine.Memory{Target: 56 << 20, Drafter: 22 << 20, Peak: 118 << 20, Process: 3 << 28, MachineTotal: 24 << 30, Available: 12 << 30})
	got := c.Words()
	want := []string{"56 MB", "22 MB", "–", "118 MB", "0.8 GB", "12.0 of 24.0 GB"}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%q, want %q", got[i], want[i])
		}
	}
	if c.warning.Visible() {
		t.Error("nothing to warn of yet")
	}
	c.Set(engine.Memory{Process: 20 << 30, MachineTotal: 24 << 30, Available: 1 << 30})
	if c.Level() != Red || !c.help.Visible() {
		t.Error("red must come with a button that helps")
	}
	test.Tap(c.help)
	if !helped {
		t.Error("the button did nothing")
	}
	for range 500 {
		c.Set(engine.Memory{Process: 1 << 30, MachineTotal: 24 << 30, Available: 20 << 30})
	}
	if len(c.graph.values) != points || c.Level() != Calm {
		t.Errorf("kept %d readings at level %v", len(c.graph.values), c.Level())
	}
	if img := c.graph.draw(120, 24); img.Bounds().Dx() != 120 {
		t.Error("the line has another size than asked")
	}
}
