package family

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/checkpoint"
	"firesteel/models/internal/mlxtest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("FIRESTEEL_LONG") == "" {
		flag.Set("rapid.checks", "4")
	}
	os.Exit(m.Run())
}

// reading is a fixture of a target that can be opened: a prompt longer than its sliding window and
// how it goes on.
type reading struct {
	target     models.Target
	prompt, on []int32
}

// readings calls f with every target among the fixtures, on the inference thread.
func readings(t *testing.T, f func(t *testing.T, r reading)) {
	dirs, err := os.ReadDir(goldens)
	if err != nil {
		t.Fatal(err)
	}
	opened := 0
	for _, entry := range dirs {
		recorded, err := checkpoint.OpenFile(filepath.Join(goldens, entry.Name(), "golden.safetensors"))
		if err != nil {
			continue
		}
		defer recorded.Close()
		if _, ok := recorded.Tensor("input_ids"); !ok {
			continue
		}
		opened++
		t.Run(entry.Name(), func(t *testing.T) {
			r := reading{}
			mlxtest.On(t, func(*mlxbind.Scope) {
				var err error
				if r.target, err = OpenTarget(context.Background(), mlxtest.Golden(t, entry.Name()), nil); err != nil {
					t.Fatal(err)
				}
				r.prompt = ids(t, recorded, "input_ids")
				if _, ok := recorded.Tensor("greedy_24"); ok {
					r.on = ids(t, recorded, "greedy_24")
					return
				}
				// As it was recorded for the others: everything read anew for each token.
				for range 24 {
					state := r.target.NewState()
					best := read(t, r.target, state, slices.Concat(r.prompt, r.on))
					r.on = append(r.on, best[len(best)-1])
					state.Close()
				}
			})
			defer mlxtest.On(t, func(*mlxbind.Scope) { r.target.Close() })
			f(t, r)
		})
	}
	if opened < 5 {
		t.Errorf("only %d fixtures of targets were found", opened)
	}
}

func ids(t testing.TB, folder *checkpoint.Folder, name string) []int32 {
	t.Helper()
	x, _ := folder.Tensor(name)
	raw := make([]byte, x.Size)
	if err := folder.Read(context.Background(), x, raw); err != nil {
		t.Fatal(err)
	}
	s := mlxbind.NewScope()
	defer s.Close()
	dtype := map[checkpoint.DType]mlxbind.DType{checkpoint.I32: mlxbind.Int32, checkpoint.I64: mlxbind.Int64}[x.DType]
	values, err := s.ReadInts(s.AsType(s.Data(raw, dtype, x.Shape...), mlxbind.Int32))
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// read reads tokens at the end of state and returns the likeliest token after each.
func read(t testing.TB, target models.Target, state models.State, tokens []int32) []int32 {
	t.Helper()
	s := mlxbind.NewScope()
	defer s.Close()
	hidden, _ := target.Forward(s, state, s.Ints(tokens), nil)
	best, err := s.ReadInts(s.ArgMax(target.Logits(s, hidden), -1, false))
	if err != nil {
		t.Fatal(err)
	}
	return best
}

// readPrompt reads the prompt in pieces of n and returns the token after it.
func readPrompt(t testing.TB, r reading, state models.State, n int) int32 {
	t.Helper()
	var last int32
	for piece := range slices.Chunk(r.prompt, n) {
		best := read(t, r.target, state, piece)
		last = best[len(best)-1]
	}
	return last
}

// Token by token, after a prompt in pieces of any size, the text is the recorded one.
func TestGreedyTextIsTheRecordedOne(t *testing.T) {
	readings(t, func(t *testing.T, r reading) {
		for _, piece := range []int{1, 3, 40} {
			var got []int32
			mlxtest.On(t, func(*mlxbind.Scope) {
				state := r.target.NewState()
				defer state.Close()
				for next := readPrompt(t, r, state, piece); ; {
					if got = append(got, next); len(got) == len(r.on) {
						return
					}
					next = read(t, r.target, state, got[len(got)-1:])[0]
				}
			})
			if !slices.Equal(got, r.on) {
				t.Errorf("in pieces of %d: %v, recorded %v", piece, got, r.on)
			}
		}
	})
}

// The same while blocks of right and wrong guesses come in and go again, past the sliding window.
func TestGreedyTextOutlivesWrongGuesses(t *testing.T) {
	readings(t, func(t *testing.T, r reading) {
		rapid.Check(t, func(random *rapid.T) {
			piece := rapid.SampledFrom([]int{1, 3, 40}).Draw(random, "piece")
			failure := ""
			mlxtest.On(t, func(*mlxbind.Scope) {
				state := r.target.NewState()
				defer state.Close()
				got := []int32{readPrompt(t, r, state, piece)}
				for len(got) < len(r.on) {
					left := r.on[len(got):]
					right := rapid.IntRange(0, min(8, len(left)-1)).Draw(random, "right")
					wrong := rapid.IntRange(0, 8).Draw(random, "wrong")
					block := append(slices.Clone(got[len(got)-1:]), left[:right]...)
					for i := range wrong {
						block = append(block, (left[min(right, len(left)-1)]+1+int32(31*i))%320)
					}
					best := read(t, r.target, state, block)
					got = append(got, best[:right+1]...)
					if err := state.Drop(wrong); err != nil {
						failure = err.Error()
						return
					}
				}
				if want := len(r.prompt) + len(got) - 1; state.Position() != want || !slices.Equal(got, r.on) {
					failure = fmt.Sprintf("%v at %d of %d, recorded %v", got, state.Position(), want, r.on)
				}
			})
			if failure != "" {
				random.Fatal(failure)
			}
		})
	})
}
