package train

import (
	"context"
	"fmt"

	"firesteel/core/library"
	"firesteel/models"
	"firesteel/models/checkpoint"
	"firesteel/models/dflash"
)

// apprentice is a DFlash drafter that learns.
type apprentice struct{ *dflash.Drafter }

func begin(shape checkpoint.DSpark, seed uint64, target models.Target) (student, error) {
	d, err := dflash.New(uint32(seed), shape, target)
	if err != nil {
		return nil, err
	}
	return apprentice{d}, nil
}

func (a apprentice) Save(ctx context.Context, dir string) error { return a.Drafter.Save(ctx, dir, 0) }

// Shape completes what is asked of a drafter for a target: layers and width grow with the target,
// up to what is known to be enough.
func Shape(target library.Description, asked checkpoint.DSpark) checkpoint.DSpark {
	layers := target.Layers
	d := checkpoint.DSpark{
		TargetID: fmt.Sprintf("%s@%dx%d", target.Name, target.Hidden, target.Vocabulary),
		Gamma:    5, Width: 1024, Layers: 5, Heads: 8, Rank: 256, FeedForward: 2, Head: checkpoint.HeadMarkov,
		Taps:   []int{max(0, layers/2-1), layers * 3 / 4, layers - 1, layers},
		Hidden: target.Hidden, Vocabulary: target.Vocabulary, Eps: 1e-6,
	}
	if target.Hidden < 1024 {
		d.Width, d.Layers, d.Heads, d.Rank = (target.Hidden+7)/8*8, 3, 4, 64
	}
	for to, from := range map[*int]int{&d.Gamma: asked.Gamma, &d.Width: asked.Width, &d.Layers: asked.Layers, &d.Heads: asked.Heads,
		&d.Rank: asked.Rank, &d.FeedForward: asked.FeedForward} {
		if from != 0 {
			*to = from
		}
	}
	if asked.Head != "" {
		d.Head = asked.Head
	}
	if len(asked.Taps) > 0 {
		d.Taps = asked.Taps
	}
	return d
}

// logitsAtOnce is how many logits a step works out at most by default: several arrays of this
// many numbers are held at a time.
const logitsAtOnce = 1 << 24

// Fill completes settings for a target and a drafter of gamma slots.
func (c Settings) Fill(target library.Description, gamma int) Settings {
	set := func(to *int, value int) {
		if *to <= 0 {
			*to = value
		}
	}
	set(&c.Texts, 8)
	set(&c.Anchors, max(1, min(16, logitsAtOnce/(c.Texts*gamma*target.Vocabulary))))
	set(&c.Steps, 6000)
	set(&c.Context, 512)
	set(&c.AnswerTokens, 320)
	set(&c.Measure, max(1, c.Steps/20))
	if c.Rate <= 0 {
		c.Rate = 1.5e-3
		if target.Hidden >= 1024 {
			c.Rate = 6e-4
		}
	}
	if c.DataLimit <= 0 {
		c.DataLimit = 4 << 30
	}
	if c.Sampling.TopP == 0 {
		c.Sampling.TopP = 1
	}
	return c
}
