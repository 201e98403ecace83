package memory

import "firesteel/core/library"

// Bill is what a pair of models will need, in bytes.
type Bill struct {
	Target  int64 // weights
	Drafter int64 // weights, less those that it shares with the target; 0 without a drafter
	Context int64 // keys and values of both at the chosen length
	Working int64 // what a step needs besides; an estimate

	// What could be saved, for hints; 0 where there is nothing to save or it is not known.
	DrafterAt4Bit int64 // what the drafter's weights would take at 4 bits
	Tokens        int   // the context length that Context is for
	TokenBytes    int64 // how much of Context each further token takes
}

// Needs returns the sum.
func (b Bill) Needs() int64 { return b.Target + b.Drafter + b.Context + b.Working }

const (
	// windowSpare is how many tokens a sliding layer keeps beyond its window, so that a rejected
	// block can be dropped again.
	windowSpare = 64
	// prefillChunk is how many tokens of a prompt are read at once.
	prefillChunk = 512
)

// ContextBytes returns what d keeps for a context of so many tokens, at elementSize bytes a number (2 for
// half precision, 4 on a CPU). Layers with a sliding window stop growing at its length.
func ContextBytes(d library.Description, tokens, elementSize int) int64 {
	if tokens <= 0 {
		return 0
	}
	c := d.Cache
	rows := int64(c.FullLayers) * int64(c.FullRow) * int64(tokens)
	if c.WindowLayers > 0 {
		rows += int64(c.WindowLayers) * int64(c.WindowRow) * int64(min(tokens, c.Window+windowSpare))
	}
	return rows * int64(element(d, elementSize))
}

// TokenBytes returns what each token beyond every window adds.
func TokenBytes(d library.Description, elementSize int) int64 {
	return int64(d.Cache.FullLayers) * int64(d.Cache.FullRow) * int64(element(d, elementSize))
}

func element(d library.Description, elementSize int) int {
	if d.Family == library.DFlash {
		return 4 // it computes in float32 everywhere
	}
	return elementSize
}

// BillFor makes the bill for a target, a drafter (nil for none; see tables.Held for one that shares the
// target's tables) and a context of so many tokens. cpu
// says that the work is done in float32, with 16-bit weights widened as they are loaded.
func BillFor(target library.Description, drafter *library.Description, tokens int, cpu bool) Bill {
	size := 2
	if cpu || target.DType.Size() > 2 {
		size = 4
	}
	b := Bill{
		Target:     target.WeightBytes(cpu),
		Context:    ContextBytes(target, tokens, size),
		Tokens:     tokens,
		TokenBytes: TokenBytes(target, size),
	}
	block := 0
	if drafter != nil {
		b.Drafter = drafter.WeightBytes(cpu)
		b.Context += ContextBytes(*drafter, tokens, size)
		b.TokenBytes += TokenBytes(*drafter, size)
		block = drafter.Block
		// Worth it only for a drafter of more than six bits a weight. A group of 64 takes 32 bytes, a
		// scale and a bias.
		if drafter.TensorBytes*8 > drafter.Parameters*6 {
			b.DrafterAt4Bit = drafter.Parameters / 64 * int64(32+2*size)
		}
	}
	// A chunk's activations, a block's logits and their probabilities, and what the allocator keeps
	// between steps. Measured use varies; this is meant to be a little high.
	b.Working = 32<<20 + b.Target/50 +
		int64(min(prefillChunk, max(tokens, 1)))*int64(target.Hidden)*24*int64(size) +
		int64(block+1)*int64(target.Vocabulary)*16
	return b
}
