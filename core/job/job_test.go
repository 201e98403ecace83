package job

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLeftoversOfTheLivingStay(t *testing.T) {
	notes, place := t.TempDir(), t.TempDir()
	stage, err := NewStage(filepath.Join(place, "smaller"), notes)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := RemoveLeftovers(notes); n != 0 || err != nil {
		t.Fatalf("%d removed, %v, while it is being written", n, err)
	}
	stage.lock.Close() // as when its process ends
	if n, err := RemoveLeftovers(notes); n != 1 || err != nil {
		t.Fatalf("%d removed, %v, of one that was left", n, err)
	}
	if left, _ := os.ReadDir(place); len(left) != 0 {
		t.Errorf("%v is still there", left)
	}
}

// What is replaced as a whole, as calibrations are, is in the app's own folders.
func TestLeftoversInTheFolderOfNotes(t *testing.T) {
	notes := t.TempDir()
	old, young := filepath.Join(notes, "calibrations", ".a.json.unfinished-1"), filepath.Join(notes, ".b.json.unfinished-2")
	if err := os.Mkdir(filepath.Dir(old), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{old, young} {
		if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hourAgo := time.Now().Add(-time.Hour)
	if err := os.Chtimes(old, hourAgo, hourAgo); err != nil {
		t.Fatal(err)
	}
	if n, err := RemoveLeftovers(notes); n != 1 || err != nil {
		t.Errorf("%d removed, %v", n, err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Error(err)
	}
}

func TestFinishTakesTheNameOfAnEmptyFolderOnly(t *testing.T) {
	place := t.TempDir()
	final := filepath.Join(place, "smaller")
	make := func() *Stage {
		stage, err := NewStage(final, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(stage.Dir, "a"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		return stage
	}
	if err := os.Mkdir(final, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := make().Finish(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(final)
	if err != nil || len(entries) != 1 || entries[0].Name() != "a" {
		t.Errorf("%v, %v", entries, err)
	}
	second := make()
	if err := second.Finish(); err == nil {
		t.Error("something was replaced")
	}
	if err := second.Discard(); err != nil {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(place); len(entries) != 1 {
		t.Errorf("%v is left", entries)
	}
}

func TestRoom(t *testing.T) {
	var room *RoomError
	if err := CheckRoom(t.TempDir(), 1<<60); !errors.As(err, &room) || room.Free <= 0 {
		t.Errorf("an exabyte fits: %v", err)
	}
	if err := CheckRoom(t.TempDir(), 1); err != nil {
		t.Error(err)
	}
}

func TestMeterTellsTheTimeLeft(t *testing.T) {
	var last Progress
	m := NewMeter(100, func(p Progress) { last = p })
	m.begun = time.Now().Add(-10 * time.Second)
	m.Add("packing", 25)
	if last.Done != 25 || last.Total != 100 || last.Stage != "packing" || last.Left < 29*time.Second || last.Left > 31*time.Second {
		t.Errorf("%+v", last)
	}
	m.Add("packing", 200)
	if last.Done != 100 || last.Left != 0 {
		t.Errorf("%+v", last)
	}
}
