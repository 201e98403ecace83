package train

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"firesteel/core/decode"
	"firesteel/core/engine"
	"firesteel/core/prompts"
	"firesteel/core/sample"
	"firesteel/mlxbind"
	"firesteel/models"
)

// question is a prompt as the target reads it.
type question struct {
	ids    []int
	answer []int // what was answered, the stop token last; nil: the target is to write it
}

// text is a question with its answer.
type text struct {
	ids    []int32
	answer int // where the answer begins
}

// read puts prompts into the target's tokens. What leaves no room for an answer of block tokens
// is left out.
func read(target *engine.Target, list []prompts.Prompt, limit, block int) ([]question, error) {
	var all []question
	for i, p := range list {
		ids, err := target.Encode(p.Messages, "")
		if err != nil {
			return nil, fmt.Errorf("prompt %d: %w", i+1, err)
		}
		q := question{ids: ids}
		if p.Answer != "" {
			if q.answer, err = target.EncodeAnswer(p.Answer); err != nil {
				return nil, fmt.Errorf("the answer of prompt %d: %w", i+1, err)
			}
			q.answer = q.answer[:min(len(q.answer), limit)]
			if len(q.answer) <= block {
				continue
			}
		}
		if len(ids)+block+1 < target.Geometry().Context {
			all = append(all, q)
		}
	}
	return all, nil
}

// Share of the questions that is held out, and how many at most.
const (
	heldShare = 20
	heldMost  = 24
	heldFrom  = 10 // with fewer questions none are held out: the texts learned from are measured
)

// deal shuffles the questions and holds some out, to measure on. None that is held out is learned
// from, also where a prompt comes several times.
func deal(all []question, seed uint64) (learned, held []question, apart bool) {
	random := rand.New(rand.NewPCG(seed, 0x6465616c))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if len(all) < heldFrom {
		return all, all, false
	}
	want := min(heldMost, max(1, len(all)/heldShare))
	seen := map[string]bool{}
	for _, q := range all {
		key := fmt.Sprint(q.ids)
		if len(held) < want && !seen[key] {
			held = append(held, q)
			seen[key] = true
		} else if !seen[key] {
			learned = append(learned, q)
		}
	}
	if len(learned) == 0 {
		return all, all, false
	}
	return learned, held, true
}

// write has the target answer q where the answer is not given.
func write(ctx context.Context, target models.Target, stops func(int) bool, q question, c sample.Settings, limit int, seed uint64) (text, error) {
	answer := q.answer
	if answer == nil {
		_, err := decode.Run(ctx, q.ids, decode.Config{
			Target: target, Knobs: func() decode.Knobs { return decode.Knobs{Sampling: c} }, Seed: seed, MaxTokens: limit, Stop: stops,
			Round: func(r decode.Round) bool {
				answer = append(answer, r.Emitted...)
				return true
			},
		})
		if err != nil {
			return text{}, err
		}
	}
	ids := slices.Concat(q.ids, answer)
	ids = ids[:min(len(ids), target.Geometry().Context)]
	t := text{ids: make([]int32, len(ids)), answer: len(q.ids)}
	for i, id := range ids {
		t.ids[i] = int32(id)
	}
	return t, nil
}

// rows are what a drafter learns of a text, bf16: its taps side by side [n, taps·hidden] and the
// target's rows after the final norm [n, hidden].
type rows struct{ taps, hidden []byte }

// tap reads the text once.
func tap(ctx context.Context, target models.Target, taps []int, t text) (rows, error) {
	var out rows
	state := target.NewState()
	defer state.Close()
	for from := 0; from < len(t.ids); from += decode.Chunk {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		err := func() error {
			s := mlxbind.NewScope()
			defer s.Close()
			hidden, tapped := target.Forward(s, state, s.Ints(t.ids[from:min(from+decode.Chunk, len(t.ids))]), taps)
			if s.Err() != nil {
				return s.Err()
			}
			wide := s.Concatenate(-1, append(tapped, hidden)...)
			finite := s.IsFinite(s.MaxAll(s.Abs(wide)))
			both := [2]mlxbind.Array{s.AsType(s.Concatenate(-1, tapped...), mlxbind.BFloat16), s.AsType(hidden, mlxbind.BFloat16)}
			if err := s.Eval(both[0], both[1], finite); err != nil {
				return err
			}
			if ok, err := s.ReadInts(s.AsType(finite, mlxbind.Int32)); err != nil || ok[0] == 0 {
				return errors.Join(err, decode.ErrNotFinite)
			}
			for i, to := range []*[]byte{&out.taps, &out.hidden} {
				raw, err := s.ReadBytes(both[i])
				if err != nil {
					return err
				}
				*to = append(*to, raw...)
			}
			return nil
		}()
		if err != nil {
			return out, err
		}
	}
	return out, nil
}
