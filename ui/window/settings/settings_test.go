package settings

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSaveAndLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "with space é", "settings.json")
	fresh, err := Load(path)
	if err != nil || fresh.Width != 1280 || fresh.Height != 800 || fresh.TextSize != 100 || fresh.Theme != "system" {
		t.Fatalf("fresh settings: %+v, %v", fresh, err)
	}
	gamma, temperature := 3, 0.4
	want := Settings{Width: 1000, Height: 700, Theme: "dark", TextSize: 130, Gamma: &gamma, Temperature: &temperature,
		Target: "/models/Modèle  a", RecentTargets: []string{"/models/Modèle  a", "/b"}}
	if err := want.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	left, _ := os.ReadDir(filepath.Dir(path))
	if len(left) != 1 {
		t.Errorf("saving left %d files", len(left))
	}
}

func TestDamagedAndOddValues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.json")
	os.WriteFile(path, []byte(`{"width": `), 0o600)
	if s, err := Load(path); err == nil || s.Width != 1280 {
		t.Errorf("damaged file: %+v, %v", s, err)
	}
	if _, err := os.Stat(path + ".damaged"); err != nil {
		t.Error("the damaged file was not kept")
	}
	os.WriteFile(path, []byte(`{"width":-5,"height":1e9,"theme":"pink","text_size":9000,"creativity":-1,"caution":7,"words_guessed_ahead":-2}`), 0o600)
	s, err := Load(path)
	if err != nil || s.Width != 1280 || s.Theme != "system" || s.TextSize != 150 || s.Temperature != nil || s.Threshold != nil || s.Gamma != nil {
		t.Errorf("odd values: %+v, %v", s, err)
	}
}

func TestRemember(t *testing.T) {
	list := []string{}
	for _, d := range []string{"a", "b", "c", "d", "e", "f", "g", "c"} {
		list = Remember(list, d)
	}
	if d := cmp.Diff([]string{"c", "g", "f", "e", "d", "b"}, list); d != "" {
		t.Error(d)
	}
}
