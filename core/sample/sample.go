// Package sample turns logits into distributions, draws from them, and decides which drafts
// are kept: always so that the tokens follow the target's distribution exactly.
//
// Everything here builds graphs on the inference thread; nothing is read back.
package sample

import (
	"math"

	"firesteel/mlxbind"
)

// Settings shape a distribution.
type Settings struct {
	Temperature float64 // below Greedy the likeliest token is always taken
	TopP        float64 // keep the smallest set whose probability reaches this; 1 or more: off
	TopK        int     // keep this many; 0: off
	MinP        float64 // keep tokens at least this fraction as likely as the likeliest; 0: off
}

// Greedy is the temperature below which nothing is left to chance.
const Greedy = 1e-5

// IsGreedy tells whether the likeliest token is always taken.
func (c Settings) IsGreedy() bool { return c.Temperature < Greedy }

// LogDistribution is the logarithm of the distribution that settings make of logits [.., V],
// float32: the filters at temperature 1, all keeping a top of the order, then the temperature.
// At least one token is always kept.
func LogDistribution(s *mlxbind.Scope, logits mlxbind.Array, c Settings) mlxbind.Array {
	wide := mlxbind.Float32
	number := func(v float64) mlxbind.Array { return s.Scalar(v, wide) }
	kept := logits
	drop := func(keep mlxbind.Array) { kept = s.Where(keep, kept, number(math.Inf(-1))) }
	v := logits.Dim(-1)
	cutP, cutK := c.TopP < 1, c.TopK > 0 && c.TopK < v
	if cutP || cutK {
		order := s.ArgSort(s.Negative(logits), -1)
		rank := s.ArgSort(order, -1)
		if cutP {
			// Sorted downwards, a token stays while what is before it has not reached p.
			p := s.Softmax(s.TakeAlong(logits, order, -1), -1)
			before := s.Subtract(s.CumSum(p, -1), p)
			keep := s.Or(s.Less(before, number(c.TopP)), s.Equal(s.Arange(0, float64(v), 1, mlxbind.Int32), s.Scalar(0, mlxbind.Int32)))
			drop(s.TakeAlong(keep, rank, -1))
		}
		if cutK {
			drop(s.Less(s.AsType(rank, mlxbind.Int32), s.Scalar(float64(c.TopK), mlxbind.Int32)))
		}
	}
	if c.MinP > 0 {
		floor := s.Add(s.Max(logits, -1, true), number(math.Log(min(c.MinP, 1))))
		drop(s.GreaterEqual(logits, floor))
	}
	scaled := s.Divide(kept, number(c.Temperature))
	return s.Subtract(scaled, s.LogSumExp(scaled, -1, true))
}

// Stream deals out random keys: one an event, the same for the same seed whatever ran before.
type Stream struct{ seed, events uint64 }

// NewStream starts at the first event of seed.
func NewStream(seed uint64) *Stream { return &Stream{seed: seed} }

// Next is the key of the next event.
func (r *Stream) Next(s *mlxbind.Scope) mlxbind.Array {
	r.events++
	return s.Key(r.seed ^ r.events*0x9E3779B97F4A7C15)
}

// Verdict is what became of drafts: how many were kept, [b] int32, and the token after them,
// [b] int32.
type Verdict struct{ Accepted, Next mlxbind.Array }

// Judge decides on drafts [b, d] given the target's logits [b, d+1, V] for each draft's place
// and the one after. q is the logarithm of the distribution that each draft was drawn from,
// [b, d, V]; the zero Array when the drafts were certain. d may be 0, with no drafts.
//
// Greedy keeps drafts while they are the target's likeliest. Otherwise draft x is kept with
// probability min(1, p(x)/q(x)), and the token after the kept ones is drawn from what is left
// of p where a draft fell, max(p−q, 0), or from p where none did (Leviathan et al. 2023).
func Judge(s *mlxbind.Scope, logits, drafts, q mlxbind.Array, c Settings, random *Stream) Verdict {
	out := s.Within(func(s *mlxbind.Scope) []mlxbind.Array {
		v := judge(s, logits, drafts, q, c, random)
		return []mlxbind.Array{v.Accepted, v.Next}
	})
	if s.Err() != nil {
		return Verdict{}
	}
	return Verdict{out[0], out[1]}
}

func judge(s *mlxbind.Scope, logits, drafts, q mlxbind.Array, c Settings, random *Stream) Verdict {
	b, d := logits.Dim(0), logits.Dim(1)-1
	if c.IsGreedy() {
		likeliest := s.AsType(s.ArgMax(logits, -1, false), mlxbind.Int32)
		if d == 0 {
			return Verdict{s.Zeros(mlxbind.Int32, b), s.Reshape(likeliest, b)}
		}
		kept := prefix(s, s.Equal(s.Slice(likeliest, 1, 0, d), drafts))
		return Verdict{kept, s.Reshape(s.TakeAlong(likeliest, s.Reshape(kept, b, 1), 1), b)}
	}
	p := LogDistribution(s, logits, c)
	v := logits.Dim(2)
	if d == 0 {
		next := s.Categorical(random.Next(s), s.Reshape(p, b, v))
		return Verdict{s.Zeros(mlxbind.Int32, b), s.AsType(next, mlxbind.Int32)}
	}
	column := s.Reshape(drafts, b, d, 1)
	ratio := s.TakeAlong(s.Slice(p, 1, 0, d), column, 2)
	var qs mlxbind.Array // probabilities [b, d, V]
	if q.Valid() {
		ratio = s.Subtract(ratio, s.TakeAlong(q, column, 2))
		qs = s.Exp(q)
	} else {
		qs = s.AsType(s.Equal(s.Arange(0, float64(v), 1, mlxbind.Int32), s.AsType(column, mlxbind.Int32)), mlxbind.Float32)
	}
	chance := s.Uniform(random.Next(s), b, d)
	kept := prefix(s, s.Less(chance, s.Exp(s.Reshape(ratio, b, d))))

	// No draft stands after the last one: q is 0 there and what is left is p itself.
	row := s.Broadcast(s.Reshape(kept, b, 1, 1), b, 1, v)
	qs = s.Concatenate(1, qs, s.Zeros(mlxbind.Float32, b, 1, v))
	mine := s.Reshape(s.TakeAlong(p, row, 1), b, v)
	zero := s.Scalar(0, mlxbind.Float32)
	left := s.Maximum(s.Subtract(s.Exp(mine), s.Reshape(s.TakeAlong(qs, row, 1), b, v)), zero)
	// Where rounding leaves nothing, p and q are the same and p serves.
	enough := s.Greater(s.Sum(left, -1, true), s.Scalar(1e-8, mlxbind.Float32))
	next := s.Categorical(random.Next(s), s.Where(enough, s.Log(left), mine))
	return Verdict{kept, s.AsType(next, mlxbind.Int32)}
}

// prefix counts the leading true values of each row [b, d].
func prefix(s *mlxbind.Scope, kept mlxbind.Array) mlxbind.Array {
	return s.Sum(s.CumProd(s.AsType(kept, mlxbind.Int32), 1), 1, false)
}
