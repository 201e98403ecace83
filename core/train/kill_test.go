package train

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"firesteel/models/checkpoint"
)

// folderToTrain tells TestTrainingInAProcessOfItsOwn where to work.
const folderToTrain = "FIRESTEEL_FOLDER_TO_TRAIN"

// TestTrainingInAProcessOfItsOwn is what TestKilledTrainingGoesOnTheSameWay kills.
func TestTrainingInAProcessOfItsOwn(t *testing.T) {
	dir := os.Getenv(folderToTrain)
	if dir == "" {
		t.Skip("only for another test")
	}
	x := open(t, "gemma4-12b-like", checkpoint.HeadMarkov, 12)
	x.out, x.work = filepath.Join(dir, "made"), filepath.Join(dir, "work")
	x.settings.Steps, x.settings.Measure = 40, 4
	if _, err := x.run(t, context.Background(), true); err != nil {
		t.Fatal(err)
	}
}

func trainIn(dir string) *exec.Cmd {
	c := exec.Command(os.Args[0], "-test.run", "^TestTrainingInAProcessOfItsOwn$")
	// With several threads, as on a person's machine: products are rounded by how they are spread.
	c.Env = append(os.Environ(), folderToTrain+"="+dir, "OPENBLAS_NUM_THREADS=2")
	return c
}

func TestKilledTrainingGoesOnTheSameWay(t *testing.T) {
	if os.Getenv("FIRESTEEL_LONG") == "" {
		t.Skip("FIRESTEEL_LONG is not set")
	}
	whole, parts := t.TempDir(), t.TempDir()
	begun := time.Now()
	if out, err := trainIn(whole).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	long := time.Since(begun)
	random := rand.New(rand.NewPCG(1, 2))
	for killed := 0; killed < 30; {
		c := trainIn(parts)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		after := time.Duration(random.Float64() * float64(long))
		kill := time.AfterFunc(after, func() { c.Process.Kill() })
		err := c.Wait()
		kill.Stop()
		_, made := os.Stat(filepath.Join(parts, "made", "dspark.json"))
		if err != nil {
			killed++
			if entries, _ := os.ReadDir(filepath.Join(parts, "made")); made != nil && len(entries) > 0 {
				t.Fatalf("half a folder after %v: %v", after, entries)
			}
		}
		if made == nil && killed < 30 {
			// It came to its end: again from the beginning.
			same(t, whole, parts)
			os.RemoveAll(parts)
			if err := os.Mkdir(parts, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if out, err := trainIn(parts).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	same(t, whole, parts)
	if left, err := os.ReadDir(parts); err != nil || len(left) != 2 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func same(t *testing.T, whole, parts string) {
	t.Helper()
	one, err1 := os.ReadFile(filepath.Join(whole, "made", "model.safetensors"))
	two, err2 := os.ReadFile(filepath.Join(parts, "made", "model.safetensors"))
	if err1 != nil || err2 != nil || string(one) != string(two) {
		t.Errorf("the drafters differ: %v, %v", err1, err2)
	}
}
