package found

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// followed is a Finder at work.
type followed struct {
	*Finder
	t     *testing.T
	mutex sync.Mutex
	list  []Model
	told  chan struct{}
	check func([]Model)
}

// follow follows home until the test ends, at a pace that suits a test.
func follow(t *testing.T, home string, p pace) *followed {
	f := &followed{Finder: New(home, noVariables), t: t, told: make(chan struct{}, 1)}
	f.pace = p
	ctx, end := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() {
		f.Follow(ctx, func(models []Model) {
			f.mutex.Lock()
			f.list = models
			if f.check != nil {
				f.check(models)
			}
			f.mutex.Unlock()
			select {
			case f.told <- struct{}{}:
			default:
			}
		})
	})
	t.Cleanup(func() { end(); over.Wait() })
	return f
}

// until waits until the list is this one.
func (f *followed) until(want ...string) {
	f.t.Helper()
	limit := time.After(20 * time.Second)
	for {
		f.mutex.Lock()
		got := names(f.list)
		f.mutex.Unlock()
		if slices.Equal(got, want) {
			return
		}
		select {
		case <-f.told:
		case <-limit:
			f.t.Fatalf("the list is %q, want %q", got, want)
		}
	}
}

func rename(t testing.TB, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// Whatever happens to the files, the list ends up as a fresh scan has it, a file that grows is not
// announced, and no files are left open.
func TestFollow(t *testing.T) {
	home := t.TempDir()
	models := filepath.Join(home, "models")
	m := plain(t, "qwen3-like", filepath.Join(models, "m"))
	copied := filepath.Join(models, "copied")
	var whole atomic.Bool
	f := follow(t, home, pace{quiet: 10 * time.Millisecond, most: 50 * time.Millisecond, again: 50 * time.Millisecond})
	f.mutex.Lock()
	f.check = func(list []Model) {
		if slices.Contains(names(list), "target copied") && !whole.Load() {
			t.Error("announced before it was whole")
		}
	}
	f.mutex.Unlock()
	f.until("target m")
	open := descriptors(t)

	for i := range 400 {
		write(t, filepath.Join(models, fmt.Sprintf("file-%03d.txt", i)), []byte("x"))
	}
	config := read(t, filepath.Join(m, "config.json"))
	drafter := read(t, filepath.Join(fixtures, "deepspec-qwen3/config.json"))
	for i := range 100 {
		// Deleted and made anew; replaced at one stroke.
		if err := os.Remove(filepath.Join(m, "config.json")); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(m, "config.json"), config)
		write(t, filepath.Join(m, "next"), [][]byte{config, drafter}[i%2])
		rename(t, filepath.Join(m, "next"), filepath.Join(m, "config.json"))
	}
	f.until("drafter m")
	write(t, filepath.Join(m, "next"), config)
	rename(t, filepath.Join(m, "next"), filepath.Join(m, "config.json"))
	f.until("target m")

	weights := read(t, filepath.Join(fixtures, "gemma4-12b-like/model.safetensors"))
	write(t, filepath.Join(copied, "config.json"), read(t, filepath.Join(fixtures, "gemma4-12b-like/config.json")))
	part, err := os.Create(filepath.Join(copied, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		expect(t, home, "target m")
		time.Sleep(15 * time.Millisecond)
		whole.Store(i == 9)
		if _, err := part.Write(weights[len(weights)*i/10 : len(weights)*(i+1)/10]); err != nil {
			t.Fatal(err)
		}
	}
	part.Close()
	f.until("target copied", "target m")

	rename(t, m, filepath.Join(models, "renamed"))
	f.until("target copied", "target renamed")
	rename(t, models, filepath.Join(home, "away"))
	f.until()
	rename(t, filepath.Join(home, "away"), models)
	f.until("target copied", "target renamed")
	fresh := New(home, noVariables).Scan(t.Context())
	f.mutex.Lock()
	if !slices.EqualFunc(f.list, fresh, same) {
		t.Errorf("the list is %+v, a fresh scan gives %+v", f.list, fresh)
	}
	f.mutex.Unlock()

	most := open + 2 // what the runtime itself may open meanwhile
	if runtime.GOOS != "linux" {
		most = open + watchLimit
	}
	if now := descriptors(t); now > most {
		t.Errorf("%d files are open, %d before", now, open)
	}
}

// Behind other windows, what the system tells is enough for folders that come and go.
func TestFollowBehind(t *testing.T) {
	home := t.TempDir()
	models := filepath.Join(home, "models")
	first := plain(t, "qwen3-like", filepath.Join(models, "first"))
	f := follow(t, home, pace{quiet: 10 * time.Millisecond, most: 50 * time.Millisecond, again: time.Hour})
	f.until("target first")
	f.Front(false)
	rename(t, plain(t, "deepspec-qwen3", filepath.Join(home, "elsewhere")), filepath.Join(models, "second"))
	f.until("target first", "drafter second")
	rename(t, first, filepath.Join(home, "elsewhere"))
	f.until("drafter second")
	// Deeper down, nothing is told; coming to the front helps.
	if err := os.Remove(filepath.Join(models, "second/config.json")); err != nil {
		t.Fatal(err)
	}
	f.Front(true)
	f.until()
}

func TestFront(t *testing.T) {
	f := New("", noVariables)
	for _, front := range []bool{true, false, true, false} {
		f.Front(front) // never waits
	}
	if <-f.front {
		t.Error("the last word does not count")
	}
}
