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
	c.Env = append(os.Environ(), child+"="+string(text))
	if long() {
		// As on a person's machine: products are rounded by how they are spread over threads.
		c.Env = append(c.Env, "OPENBLAS_NUM_THREADS=2")
	}
	return c
}

// done has the job done in a process of its own.
func (j *Job) done(t *testing.T, place string) {
	t.Helper()
	if out, err := j.process(t, place).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// Killed kills processes that do the job at random moments, 3 times or, in the long grids, 30 times. What
// a killed one has begun is gone on with or done again by the next.
func (j *Job) Killed(t *testing.T) {
	j.know(t)
	before := digests(t, j.Sources)
	times, whole, curve, took := 3, j.after, j.curve, j.took
	if long() {
		times = 30
		// With as many threads as those that are killed.
		place, begun := j.prepare(t, t.TempDir()), time.Now()
		j.done(t, place)
		whole, curve, took = j.result(t, place), j.way(t, place), time.Since(begun)
	}
	random := rand.New(rand.NewPCG(7, 7))
	place := j.prepare(t, t.TempDir())
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
		if r != j.before && r != whole {
			t.Fatalf("killed after %v it made %s, not %s", after, r, whole)
		}
		nextStart(t, place)
		if j.Discard == nil {
			j.tidied(t, place)
		}
		if r == whole {
			// It came to its end: again from the beginning.
			if err == nil {
				j.sameWay(t, place, curve)
			}
			place = j.prepare(t, t.TempDir())
		}
	}
	j.done(t, place)
	if r := j.result(t, place); r != whole {
		t.Errorf("it made %s, not %s", r, whole)
	}
	j.sameWay(t, place, curve)
	j.tidied(t, place)
	t.Logf("%d of %d kills left something hidden", began, times)
	unchanged(t, j.Sources, before)
}
