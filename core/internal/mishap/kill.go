package mishap

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"
)

// child is the environment variable that has a test program do a job and nothing else.
const child = "FIRESTEEL_MISHAP"

type errand struct {
	Job     string
	Sources []string
	Place   string
}

// Child does the one of the jobs that this process was started for, and does not return; in other
// processes it does nothing. A package whose jobs are killed calls it first in its TestMain.
func Child(jobs ...*Job) {
	var e errand
	if text := os.Getenv(child); text == "" {
		return
	} else if err := json.Unmarshal([]byte(text), &e); err != nil {
		fail(err)
	}
	for _, j := range jobs {
		if j.Name == e.Job {
			if err := j.Run(context.Background(), e.Sources, e.Place, func(float64) {}); err != nil {
				fail(err)
			}
			os.Exit(0)
		}
	}
	fail(fmt.Errorf("there is no job %q", e.Job))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// process is the job in a process of its own.
func (j *Job) process(t *testing.T, place string) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(errand{j.Name, j.Sources, place})
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0])
	// With several threads, as on a person's machine: products are rounded by how they are spread.
	c.Env = append(os.Environ(), child+"="+string(text), "OPENBLAS_NUM_THREADS=2")
	return c
}

// Killed kills processes that do the job at random moments, 30 times with Long and otherwise few
// times, slow ones not at all. What a killed one has begun is gone on with or done again by the next.
func (j *Job) Killed(t *testing.T, few int) {
	times := few
	if j.sampled() {
		t.Skip("FIRESTEEL_LONG is not set")
	}
	if Long() {
		times = 30
	}
	before := digests(t, j.Sources)
	place := j.prepare(t, t.TempDir())
	old := j.result(t, place)
	begun := time.Now()
	if out, err := j.process(t, place).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	took := time.Since(begun)
	whole := j.result(t, place)
	var curve []float64
	if j.Curve != nil {
		var err error
		if curve, err = j.Curve(place); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(7, 7))
	place = j.prepare(t, t.TempDir())
	began := 0
	for killed := 0; killed < times; {
		c := j.process(t, place)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		after := time.Duration(random.Float64() * float64(took))
		kill := time.AfterFunc(after, func() { c.Process.Kill() })
		err := c.Wait()
		kill.Stop()
		if err != nil {
			if c.ProcessState.Exited() {
				t.Fatalf("it ended by itself: %v", err)
			}
			killed++
			if len(hidden(t, place)) > 0 {
				began++
			}
		}
		r := j.result(t, place)
		if r != old && r != whole {
			t.Fatalf("killed after %v it made %s, not %s", after, r, whole)
		}
		if j.Discard == nil {
			nextStart(t, place)
			j.tidied(t, place)
		}
		if r == whole {
			// It came to its end: again from the beginning.
			place = j.prepare(t, t.TempDir())
		}
	}
	if out, err := j.process(t, place).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if r := j.result(t, place); r != whole {
		t.Errorf("it made %s, not %s", r, whole)
	}
	j.sameWay(t, place, curve)
	j.tidied(t, place)
	t.Logf("%d of %d kills left something hidden", began, times)
	unchanged(t, j.Sources, before)
}
