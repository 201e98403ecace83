package memory

import "math"

// Machine is what a bill is held against, in bytes; 0 where it is not known.
type Machine struct {
	Total       int64
	Available   int64 // free now; what is about to be unloaded may be added
	Recommended int64 // the device's recommended working set, on a GPU
}

// Level sums a verdict up.
type Level int

const (
	Fits       Level = iota
	Tight            // it will load, and other programs may have to give way
	DoesNotFit       // loading it would swap, or worse
)

func (l Level) String() string {
	switch l {
	case Fits:
		return "fits"
	case Tight:
		return "tight"
	}
	return "does not fit"
}

// Remedy is something a person can do about a verdict.
type Remedy int

const (
	QuantizeDrafter Remedy = iota // make the drafter 4-bit
	ShortenContext                // to Hint.Tokens
	CloseOthers                   // quit other programs
	LeaveDrafter                  // load the target alone
	SmallerTarget                 // nothing else would do
)

// Hint is a remedy with what it brings.
type Hint struct {
	Remedy Remedy
	Saves  int64 // bytes
	Tokens int   // ShortenContext: the context length meant
	Enough bool  // this alone makes it fit
}

// Verdict is whether a bill fits.
type Verdict struct {
	Level Level
	Needs int64
	Free  int64  // what there is for it: available now, within what the machine and the device can give
	Hints []Hint // none when it fits; the mildest remedy first
}

// reserve is what the system and the window need for themselves, whatever is closed.
func reserve(total int64) int64 { return max(2<<30, total/8) }

// shortestContext is what a context is not shortened below.
const shortestContext = 2048

// Judge holds a bill against a machine. A pair fits when it needs no more than is available and no more than
// three fifths of the machine (models above that have taken 24 GB machines down together with what runs
// beside them). It does not fit when it needs more than the device recommends, more than the machine can
// give at all, or so much more than is available that others could not give way. In between it is tight.
func Judge(b Bill, m Machine) Verdict {
	v := Verdict{Needs: b.Needs()}
	ceiling := int64(math.MaxInt64)
	if m.Total > 0 {
		ceiling = max(0, m.Total-reserve(m.Total))
	}
	if m.Recommended > 0 {
		ceiling = min(ceiling, m.Recommended)
	}
	comfortable := ceiling
	if m.Total > 0 {
		comfortable = min(comfortable, m.Total/5*3)
	}
	// Others can be made to give up about a quarter of what they hold without much harm.
	reachable := ceiling
	if m.Available > 0 {
		comfortable = min(comfortable, m.Available)
		if m.Total > 0 {
			reachable = min(reachable, m.Available+max(0, m.Total-m.Available)/4)
		} else {
			reachable = min(reachable, m.Available)
		}
	}
	if ceiling == math.MaxInt64 && m.Available <= 0 {
		// Nothing is known. It may well fit, but nobody can promise it.
		v.Level = Tight
		return v
	}
	v.Free = ceiling
	if m.Available > 0 {
		v.Free = min(ceiling, m.Available)
	}
	switch {
	case v.Needs <= comfortable:
		return v
	case v.Needs <= reachable:
		v.Level = Tight
	default:
		v.Level = DoesNotFit
	}
	v.Hints = hints(b, v.Needs-comfortable, v.Needs <= min(ceiling, m.Total/5*3))
	return v
}

// hints lists what would help when a bill is over by so many bytes.
func hints(b Bill, over int64, fitsIfOthersClose bool) []Hint {
	var list []Hint
	add := func(h Hint) {
		if h.Saves > 0 {
			h.Enough = h.Saves >= over
			list = append(list, h)
		}
	}
	if b.Drafter > 0 && b.DrafterAt4Bit > 0 {
		add(Hint{Remedy: QuantizeDrafter, Saves: b.Drafter - b.DrafterAt4Bit})
	}
	if b.TokenBytes > 0 && b.Tokens > shortestContext {
		// Halved until it is enough, so that the number is one that people know.
		tokens := b.Tokens
		for tokens/2 >= shortestContext && int64(b.Tokens-tokens)*b.TokenBytes < over {
			tokens /= 2
		}
		add(Hint{Remedy: ShortenContext, Saves: int64(b.Tokens-tokens) * b.TokenBytes, Tokens: tokens})
	}
	if fitsIfOthersClose {
		list = append(list, Hint{Remedy: CloseOthers, Saves: over, Enough: true})
	}
	// With all of that done it may still be too much. What the drafter gives can't be more than it takes.
	var ofDrafter, others int64
	for _, h := range list {
		if h.Remedy == QuantizeDrafter {
			ofDrafter += h.Saves
		} else {
			others += h.Saves
		}
	}
	if min(ofDrafter, b.Drafter)+others < over {
		add(Hint{Remedy: LeaveDrafter, Saves: b.Drafter})
	}
	if b.Drafter+others < over {
		list = append(list, Hint{Remedy: SmallerTarget})
	}
	return list
}
