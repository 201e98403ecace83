package check

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"

	"firesteel/core/library"
	"firesteel/core/thread"
	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/block"
	"firesteel/models/checkpoint"
	"firesteel/models/family"
)

// Two tokens whose logits are this close may change places with another order of summation.
const tie = 1e-4

// Verdict counts what a replay of reference runs found.
type Verdict struct {
	Prompts                     int
	Rounds, RoundsAgreeing      int
	Tokens, TokensAgreeing      int // emitted by the rounds
	Ties                        int // differences excused by a tie
	LargestConfidenceDifference float64
}

// Agrees tells whether everything agrees, ties aside.
func (v Verdict) Agrees() bool {
	return v.Rounds > 0 && v.RoundsAgreeing == v.Rounds && v.TokensAgreeing == v.Tokens && v.LargestConfidenceDifference <= Limit
}

// Disagreement is one thing that differs from the reference.
type Disagreement struct {
	Prompt string
	Round  int
	What   string
	Tie    bool // excused
}

type recordedRound struct {
	Start            int       `json:"start"`
	Draft            []int     `json:"draft"`
	ConfidenceLogits []float64 `json:"confidence_logits"`
	Proposed         int       `json:"proposed"`
	Accepted         int       `json:"accepted"`
	Emitted          []int     `json:"emitted"`
}

// Pair replays the reference rounds in file on a target and its drafter, each round from the
// file's own words, so that one tie cannot spread. It uses a thread of its own.
func Pair(ctx context.Context, targetDir, drafterDir, file string, report func(Disagreement)) (Verdict, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return Verdict{}, err
	}
	var prompts []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &prompts); err != nil {
		return Verdict{}, fmt.Errorf("%s: not a file of reference runs: %w", file, err)
	}
	target, err := library.DescribeAs(library.Target, targetDir)
	if err != nil {
		return Verdict{}, err
	}
	drafter, err := library.DescribeAs(library.Drafter, drafterDir)
	if err != nil {
		return Verdict{}, err
	}
	if err := library.CheckPair(target, drafter); err != nil {
		return Verdict{}, err
	}
	t, err := thread.Start()
	if err != nil {
		return Verdict{}, err
	}
	defer t.Close()
	p := &replay{report: report}
	err = t.Do(ctx, func() error {
		if err := p.open(ctx, target.Dir, drafter.Dir); err != nil {
			return err
		}
		defer p.close()
		for _, prompt := range prompts {
			if err := p.prompt(ctx, file, prompt); err != nil {
				return err
			}
		}
		return nil
	})
	return p.verdict, err
}

type replay struct {
	target  models.Target
	drafter blockDrafter
	verdict Verdict
	report  func(Disagreement)
}

func (p *replay) open(ctx context.Context, targetDir, drafterDir string) error {
	folder, err := checkpoint.Open(targetDir)
	if err != nil {
		return err
	}
	defer folder.Close()
	if p.target, err = family.OpenTarget(ctx, folder, nil); err != nil {
		return err
	}
	side, err := checkpoint.Open(drafterDir)
	if err != nil {
		return err
	}
	defer side.Close()
	drafter, err := family.OpenDrafter(ctx, side, p.target, false, nil)
	if err != nil {
		return err
	}
	var ok bool
	if p.drafter, ok = drafter.(blockDrafter); !ok {
		return fmt.Errorf("%s: reference rounds are for drafters that fill a block", drafterDir)
	}
	return nil
}

func (p *replay) close() {
	if p.target != nil {
		p.target.Close()
	}
	if p.drafter != nil {
		p.drafter.Close()
	}
}

func (p *replay) prompt(ctx context.Context, file string, record map[string]json.RawMessage) error {
	var name string
	var promptIDs, greedy []int
	for key, to := range map[string]any{"prompt": &name, "prompt_ids": &promptIDs, "greedy_ids": &greedy} {
		if err := json.Unmarshal(record[key], to); err != nil {
			return fmt.Errorf("%s: %s: %w", file, key, err)
		}
	}
	if len(greedy) == 0 || len(promptIDs) == 0 {
		return fmt.Errorf("%s: %q has no ids", file, name)
	}
	if err := p.known(file, promptIDs, greedy); err != nil {
		return err
	}
	var keys []string
	for key := range record {
		if strings.HasPrefix(key, "spec_thr_") {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	for _, key := range keys {
		threshold, err := strconv.ParseFloat(strings.TrimPrefix(key, "spec_thr_"), 64)
		if err != nil {
			return fmt.Errorf("%s: %s: not a threshold", file, key)
		}
		var runs struct {
			Rounds []recordedRound `json:"rounds"`
		}
		if err := json.Unmarshal(record[key], &runs); err != nil {
			return fmt.Errorf("%s: %s: %w", file, key, err)
		}
		for _, r := range runs.Rounds {
			if err := p.known(file, r.Draft, r.Emitted); err != nil {
				return err
			}
			if r.Proposed < 0 || r.Proposed > len(r.Draft) || len(r.Draft) > p.drafter.Block() {
				return fmt.Errorf("%s: %q: %d of %d drafts proposed", file, name, r.Proposed, len(r.Draft))
			}
		}
		if err := p.run(ctx, name, append(append([]int{}, promptIDs...), greedy[0]), threshold, runs.Rounds); err != nil {
			return err
		}
	}
	p.verdict.Prompts++
	return nil
}

// known refuses tokens that the models do not have.
func (p *replay) known(file string, lists ...[]int) error {
	vocabulary := min(p.target.Geometry().Vocabulary, p.drafter.Vocabulary())
	for _, list := range lists {
		for _, id := range list {
			if id < 0 || id >= vocabulary {
				return fmt.Errorf("%s: token %d is outside the vocabulary of %d", file, id, vocabulary)
			}
		}
	}
	return nil
}

// run replays the rounds of one text. text grows by what the file says was emitted.
func (p *replay) run(ctx context.Context, name string, text []int, threshold float64, rounds []recordedRound) error {
	state, context := p.target.NewState(), p.drafter.NewContext().(*block.Context)
	defer state.Close()
	defer context.Close()
	for i, want := range rounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		if want.Start != len(text)-1 {
			return fmt.Errorf("%q round %d: starts at %d where the text has %d tokens", name, i, want.Start, len(text))
		}
		say := func(excused bool, format string, args ...any) {
			if p.report != nil {
				p.report(Disagreement{name, i, fmt.Sprintf(format, args...), excused})
			}
		}
		agrees, err := p.round(state, context, text, threshold, want, say)
		if err != nil {
			return err
		}
		p.verdict.Rounds++
		if agrees {
			p.verdict.RoundsAgreeing++
		}
		text = append(text, want.Emitted...)
	}
	return nil
}

func (p *replay) round(state models.State, context *block.Context, text []int, threshold float64, want recordedRound,
	say func(excused bool, format string, args ...any)) (bool, error) {
	s := mlxbind.NewScope()
	defer s.Close()
	at := want.Start
	_, tapped := p.target.Forward(s, state, ids(s, text[state.Position():at]), p.drafter.Taps())
	p.drafter.Extend(s, context, tapped)

	anchor, position := ids(s, text[at:at+1]), ids(s, []int{at})
	hidden := p.drafter.Hidden(s, p.drafter.See(s, context, position, 0), anchor, position)
	steps := p.drafter.Slots(s, hidden, anchor, nil)
	corrected, err := s.ReadFloats(s.Concatenate(0, steps.Logits...))
	if err != nil {
		return false, err
	}
	agrees := true
	differ := func(excused bool, format string, args ...any) {
		say(excused, format, args...)
		if excused {
			p.verdict.Ties++
		} else {
			agrees = false
		}
	}
	width := len(corrected) / len(steps.Logits)
	for j := range want.Draft {
		row := corrected[j*width : (j+1)*width]
		if best, gap := top(row); best != want.Draft[j] {
			// Later slots follow another word and cannot be compared.
			differ(gap <= tie, "draft %d is %d, not %d; gap %.1e", j, best, want.Draft[j], gap)
			break
		}
	}
	proposed := len(want.Draft)
	if p.drafter.HasConfidence() {
		logits, err := s.ReadFloats(p.drafter.Confidences(s, hidden, steps))
		if err != nil {
			return false, err
		}
		nearest := math.Inf(1)
		cut := math.Log(threshold / (1 - threshold))
		for j, z := range logits {
			if j < len(want.ConfidenceLogits) && agrees {
				p.verdict.LargestConfidenceDifference = max(p.verdict.LargestConfidenceDifference, math.Abs(float64(z)-want.ConfidenceLogits[j]))
			}
			if threshold > 0 && j < proposed {
				nearest = min(nearest, math.Abs(float64(z)-cut))
				if float64(z) < cut {
					proposed = j
				}
			}
		}
		if proposed != want.Proposed {
			differ(nearest <= Limit, "%d drafts proposed, not %d", proposed, want.Proposed)
		}
	}

	// The file's own drafts are checked, and forgotten again.
	block := append([]int{text[at]}, want.Draft[:want.Proposed]...)
	hidden, _ = p.target.Forward(s, state, ids(s, block), nil)
	logits, err := s.ReadFloats(p.target.Logits(s, hidden))
	if err != nil {
		return false, err
	}
	width = len(logits) / len(block)
	accepted, excused := 0, false
	var emitted []int
	for j := range block {
		best, gap := top(logits[j*width : (j+1)*width])
		excused = excused || gap <= tie
		emitted = append(emitted, best)
		if j == want.Proposed || best != want.Draft[j] {
			break
		}
		accepted++
	}
	if accepted != want.Accepted {
		differ(excused, "%d drafts kept, not %d", accepted, want.Accepted)
	}
	for j, token := range want.Emitted {
		p.verdict.Tokens++
		switch {
		case j < len(emitted) && emitted[j] == token:
			p.verdict.TokensAgreeing++
		case excused:
			p.verdict.TokensAgreeing++
			differ(true, "word %d differs at a tie", j)
		default:
			differ(false, "word %d differs", j)
		}
	}
	return agrees, first(s.Err(), state.Drop(len(block)))
}

// top is the position of the largest value and its lead over the next.
func top(row []float32) (best int, gap float64) {
	second := math.Inf(-1)
	for i, v := range row {
		if v > row[best] {
			best = i
		}
	}
	for i, v := range row {
		if i != best {
			second = max(second, float64(v))
		}
	}
	return best, float64(row[best]) - second
}

func ids(s *mlxbind.Scope, tokens []int) mlxbind.Array {
	values := make([]int32, len(tokens))
	for i, t := range tokens {
		values[i] = int32(t)
	}
	return s.Ints(values)
}
