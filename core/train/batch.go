package train

import (
	"context"
	"math/rand/v2"
	"slices"

	"firesteel/mlxbind"
	"firesteel/models/block"
)

// rowsStep is what the length of a batch's texts is rounded up to, so that few lengths occur and
// each is compiled once.
const rowsStep = 64

// batcher draws batches from prepared texts. A step's batch depends on the seed and the step
// alone, so that training can go on where it broke off.
type batcher struct {
	texts   *texts
	seed    uint64
	gamma   int
	perStep int // texts in a batch
	anchors int // anchors in a text
	context int // rows that an anchor sees at most
	usable  []int

	epoch int // that order is of
	order []int
}

func newBatcher(t *texts, seed uint64, gamma, count, anchors, context int) *batcher {
	b := &batcher{texts: t, seed: seed, gamma: gamma, perStep: count, anchors: anchors, context: context, epoch: -1}
	for i := range t.count {
		if _, e := t.place(i); e.Answer+gamma < e.Rows {
			b.usable = append(b.usable, i)
		}
	}
	return b
}

// pick is the text at a place in the endless row of shuffled rounds through all texts.
func (b *batcher) pick(place int) int {
	if epoch := place / len(b.usable); epoch != b.epoch {
		b.epoch = epoch
		b.order = rand.New(rand.NewPCG(b.seed, uint64(epoch)<<1|1)).Perm(len(b.usable))
	}
	return b.usable[b.order[place%len(b.usable)]]
}

// span is a stretch of a text with the anchors that learn from it. An anchor stands anywhere in
// the answer where gamma labels follow; its context are the rows of the stretch before it.
type span struct {
	text     int
	from, to int // rows whose taps are read
	anchors  []int
}

func (b *batcher) span(random *rand.Rand, i int) span {
	_, e := b.texts.place(i)
	// The first token of an answer comes from the target's own reading of the prompt.
	first, last := e.Answer, e.Rows-b.gamma-1
	draw := func(lo, hi int) int { return lo + random.IntN(hi-lo+1) }
	x := span{text: i, anchors: []int{draw(first, last)}}
	// The others lie near the first, so that all of them have a long context in one stretch.
	lo, hi := max(first, x.anchors[0]-b.context/2), min(last, x.anchors[0]+b.context/2)
	for len(x.anchors) < b.anchors {
		x.anchors = append(x.anchors, draw(lo, hi))
	}
	slices.Sort(x.anchors)
	x.to = x.anchors[len(x.anchors)-1]
	x.from = max(0, x.anchors[0]-b.context)
	return x
}

// at makes the batch of a step, with arrays of s.
func (b *batcher) at(ctx context.Context, s *mlxbind.Scope, step int) (block.Batch, error) {
	random := rand.New(rand.NewPCG(b.seed, uint64(step)<<1))
	spans := make([]span, b.perStep)
	longest := 1
	for j := range spans {
		spans[j] = b.span(random, b.pick(step*b.perStep+j))
		longest = max(longest, spans[j].to-spans[j].from)
	}
	longest = (longest + rowsStep - 1) / rowsStep * rowsStep
	n := b.perStep * b.anchors
	taps := make([]byte, b.perStep*longest*b.texts.width*2)
	padding := make([]byte, n*longest)
	var positions, anchors, labels []int32
	var hidden []byte
	for j, x := range spans {
		raw, err := b.texts.read(ctx, x.text, "taps", x.from, x.to)
		if err != nil {
			return block.Batch{}, err
		}
		copy(taps[j*longest*b.texts.width*2:], raw)
		ids, err := b.texts.ids(ctx, x.text)
		if err != nil {
			return block.Batch{}, err
		}
		for k, t := range x.anchors {
			// Strictly before the anchor: its own row does not exist yet when it is drafted from.
			unseen := padding[(j*b.anchors+k)*longest:][:longest]
			for row := range unseen {
				if at := x.from + row; at >= t || at < t-b.context {
					unseen[row] = 1
				}
			}
			positions = append(positions, int32(t-x.from))
			anchors = append(anchors, ids[t])
			labels = append(labels, ids[t+1:t+1+b.gamma]...)
			// The row of the anchor says what follows it, and so on.
			raw, err := b.texts.read(ctx, x.text, "hidden", t, t+b.gamma)
			if err != nil {
				return block.Batch{}, err
			}
			hidden = append(hidden, raw...)
		}
	}
	return block.Batch{
		Taps:    s.Data(taps, mlxbind.BFloat16, b.perStep, longest, b.texts.width),
		Padding: s.Data(padding, mlxbind.Uint8, n, longest), Positions: s.Ints(positions), Anchors: s.Ints(anchors),
		Labels: s.Ints(labels, n, b.gamma), TargetHidden: s.Data(hidden, mlxbind.BFloat16, n, b.gamma, b.texts.hidden),
	}, s.Err()
}
