package sample

import (
	"fmt"
	"math"
	"sort"
	"testing"

	"firesteel/core/internal/chisquare"
	"firesteel/core/internal/threadtest"
	"firesteel/mlxbind"
)

func TestMain(m *testing.M) { threadtest.Main(m) }

// reference filters one row the plain way: mlx-lm's order, written from its description.
func reference(logits []float32, c Settings) []float64 {
	n := len(logits)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return logits[order[i]] > logits[order[j]] })
	p := softmax(logits, 1, nil)
	keep := make([]bool, n)
	before := 0.0
	for rank, i := range order {
		keep[i] = rank == 0 || (c.TopP >= 1 || before < c.TopP) && (c.MinP == 0 || p[i] >= c.MinP*p[order[0]]) && (c.TopK == 0 || rank < c.TopK)
		before += p[i]
	}
	return softmax(logits, c.Temperature, keep)
}

func softmax(logits []float32, temperature float64, keep []bool) []float64 {
	p := make([]float64, len(logits))
	sum := 0.0
	for i, v := range logits {
		if keep == nil || keep[i] {
			p[i] = math.Exp(float64(v) / temperature)
			sum += p[i]
		}
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

func TestFiltersAgreeWithPlainCode(t *testing.T) {
	rows := [][]float32{{5, 4, 3, 2}, {0, 0.1, 7, 6.9}, {-3, 2, 2.5, -1}}
	threadtest.On(t, func(s *mlxbind.Scope) {
		for _, p := range []float64{0, 1e-6, 0.5, 0.9, 1, 1.5} {
			for _, k := range []int{0, 1, 2, 99} {
				for _, m := range []float64{0, 0.2, 1} {
					for _, temperature := range []float64{0.3, 1, 2} {
						c := Settings{Temperature: temperature, TopP: p, TopK: k, MinP: m}
						for _, row := range rows {
							got, err := s.ReadFloats(s.Exp(LogDistribution(s, s.Floats(row, 1, 4), c)))
							if err != nil {
								t.Fatal(err)
							}
							for i, want := range reference(row, c) {
								if math.Abs(float64(got[i])-want) > 1e-5 {
									t.Fatalf("%+v of %v: token %d has %g, not %g", c, row, i, got[i], want)
								}
							}
						}
					}
				}
			}
		}
	})
}

func TestGreedyKeepsTheLikeliest(t *testing.T) {
	threadtest.On(t, func(s *mlxbind.Scope) {
		// The likeliest are 1, 0, 2, 1.
		logits := s.Floats([]float32{0, 5, 1, 4, 0, 0, 0, 0, 9, 1, 2, 0}, 1, 4, 3)
		for _, c := range []struct {
			drafts []int32
			kept   int32
			next   int32
		}{{[]int32{1, 0, 2}, 3, 1}, {[]int32{1, 0, 1}, 2, 2}, {[]int32{0, 0, 2}, 0, 1}, {[]int32{1, 1, 2}, 1, 0}} {
			v := Judge(s, logits, s.Ints(c.drafts, 1, 3), mlxbind.Array{}, Settings{}, NewStream(1))
			got, err := s.ReadInts(s.Concatenate(0, v.Accepted, v.Next))
			if err != nil {
				t.Fatal(err)
			}
			if got[0] != c.kept || got[1] != c.next {
				t.Errorf("%v: kept %d, then %d; want %d, then %d", c.drafts, got[0], got[1], c.kept, c.next)
			}
		}
	})
}

// The first token that a judged draft brings must follow the target's distribution, whatever
// the drafter's is; so must the second one, given the first.
func TestJudgedTokensFollowTheTarget(t *testing.T) {
	const draws, v = 100_000, 6
	target := [][]float32{{1, 0, -1, 2, 0.5, -2}, {0, 1.5, 0, -1, 1, 0.3}, {2, 1, 0, 0, -1, 1}}
	drafter := [][]float32{{-1, 1, 0, 1.5, 0, 0}, {1, 1, -2, 0, 0.5, 0}}
	for _, c := range []Settings{{Temperature: 0.3, TopP: 1}, {Temperature: 1, TopP: 1}, {Temperature: 2, TopP: 1}, {Temperature: 1, TopP: 0.8}, {Temperature: 0.7, TopP: 0.9, TopK: 4}} {
		for _, certain := range []bool{false, true} {
			t.Run(fmt.Sprintf("%+v certain=%v", c, certain), func(t *testing.T) {
				threadtest.On(t, func(s *mlxbind.Scope) {
					random := NewStream(7)
					repeat := func(rows [][]float32) mlxbind.Array {
						var flat []float32
						for _, r := range rows {
							flat = append(flat, r...)
						}
						return s.Broadcast(s.Floats(flat, 1, len(rows), v), draws, len(rows), v)
					}
					var q, drafts mlxbind.Array
					if certain {
						drafts = s.Broadcast(s.Ints([]int32{3, 1}, 1, 2), draws, 2)
					} else {
						q = LogDistribution(s, repeat(drafter), c)
						drafts = s.AsType(s.Categorical(random.Next(s), q), mlxbind.Int32)
					}
					verdict := Judge(s, repeat(target), drafts, q, c, random)
					out, err := s.ReadInts(s.Concatenate(1, s.Reshape(verdict.Accepted, draws, 1), s.Reshape(verdict.Next, draws, 1), drafts))
					if err != nil {
						t.Fatal(err)
					}
					first, second := make([]int, v), make([]int, v)
					for i := range draws {
						kept, next, drafted := out[4*i], out[4*i+1], out[4*i+2:4*i+4]
						tokens := append(append([]int32{}, drafted[:kept]...), next)
						first[tokens[0]]++
						if len(tokens) > 1 {
							second[tokens[1]]++
						}
					}
					chisquare.Check(t, "first token", first, reference(target[0], c))
					chisquare.Check(t, "second token", second, reference(target[1], c))
				})
			})
		}
	}
}
