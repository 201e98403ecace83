package memory

import (
	"path/filepath"
	"runtime"
	"testing"

	"firesteel/core/library"
	"firesteel/models/checkpoint"
)

const gb = int64(1) << 30

func TestRead(t *testing.T) {
	before := Read()
	if before.MachineTotal <= 0 || before.Available <= 0 || before.Available > before.MachineTotal {
		t.Errorf("%+v", before)
	}
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("no reading of the process here")
	}
	if before.Process <= 0 || before.ProcessPeak < before.Process || before.Process > before.MachineTotal {
		t.Errorf("%+v", before)
	}
	const size = 128 << 20
	held := make([]byte, size)
	for i := 0; i < len(held); i += 1024 {
		held[i] = 1
	}
	after := Read()
	if grown := after.Process - before.Process; grown < size/2 || after.ProcessPeak < after.Process {
		t.Errorf("took %d bytes, the reading grew by %d: %+v", size, grown, after)
	}
	runtime.KeepAlive(held)
}

// gemma12 and its drafter, as published; the quantized weights in round figures.
func gemma12(weights int64) library.Description {
	return library.Description{Kind: library.Target, Family: library.Gemma4, Layers: 48, Hidden: 3840, Vocabulary: 262144, Context: 131072, DType: checkpoint.BF16,
		Parameters: 11_900_000_000, TensorBytes: weights, HalfBytes: weights,
		Cache: library.CacheLayout{FullLayers: 8, FullRow: 2 * 512, WindowLayers: 40, WindowRow: 2 * 8 * 256, Window: 1024}}
}

func drafter12(weights int64) library.Description {
	return library.Description{Kind: library.Drafter, Family: library.DeepSpec, Layers: 5, Hidden: 3840, Vocabulary: 262144, Block: 7, DType: checkpoint.BF16,
		Parameters: 3_430_000_000, TensorBytes: weights, HalfBytes: weights, Cache: library.CacheLayout{FullLayers: 5, FullRow: 2 * 512}}
}

func TestContextBytes(t *testing.T) {
	target, drafter := gemma12(0), drafter12(0)
	if got := TokenBytes(drafter, 2); got != 10240 {
		t.Errorf("the drafter takes %d bytes a token, not 10240", got)
	}
	if got := TokenBytes(target, 2); got != 8*1024*2 {
		t.Errorf("the target takes %d bytes a token", got)
	}
	for _, c := range []struct {
		tokens int
		want   int64
	}{
		{0, 0},
		{-1, 0},
		{1, (8*1024 + 40*4096) * 2},
		{1024, (8*1024 + 40*4096) * 2 * 1024},
		{100000, 8*1024*2*100000 + 40*4096*2*(1024+windowSpare)}, // sliding layers have stopped growing
	} {
		if got := ContextBytes(target, c.tokens, 2); got != c.want {
			t.Errorf("%d tokens: %d bytes, want %d", c.tokens, got, c.want)
		}
	}
	if ContextBytes(target, 100, 4) != 2*ContextBytes(target, 100, 2) {
		t.Error("the size of a number does not count")
	}
	spark := library.Description{Family: library.DFlash, Cache: library.CacheLayout{FullLayers: 5, FullRow: 2048}}
	if got := TokenBytes(spark, 2); got != 5*2048*4 {
		t.Errorf("DFlash keeps float32: %d", got)
	}
}

func TestBillOfFixtures(t *testing.T) {
	describe := func(name string) library.Description {
		d, err := library.Describe(filepath.Join("../../models/testdata/goldens", name))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	target, drafter := describe("gemma4-12b-like"), describe("deepspec-gemma4")
	b := BillFor(target, &drafter, 100, true)
	if b.Target != 2*target.TensorBytes || b.Drafter != 2*drafter.TensorBytes {
		t.Errorf("on a CPU bf16 is widened: %+v", b)
	}
	// 2 global layers of 64 and 4 sliding ones of 64 that stop at 8 + spare; 2 drafter layers of 64.
	if want := int64(2*64*100+4*64*(8+windowSpare)+2*64*100) * 4; b.Context != want {
		t.Errorf("context %d, want %d", b.Context, want)
	}
	if plain := BillFor(target, nil, 100, false); plain.Target != target.TensorBytes || plain.Drafter != 0 || plain.Context >= b.Context || plain.DrafterAt4Bit != 0 {
		t.Errorf("%+v", plain)
	}
	if b.DrafterAt4Bit == 0 || b.DrafterAt4Bit >= b.Drafter/4 {
		t.Errorf("a bf16 drafter at 4 bits: %+v", b)
	}
	packed := describe("deepspec-gemma4-q4")
	if b := BillFor(target, &packed, 100, false); b.DrafterAt4Bit != 0 {
		t.Errorf("a 4-bit drafter can't be made 4-bit: %+v", b)
	}
}

// The machines are Macs with what they recommend and what is usually free; each bill is a target of so many
// GB with 0.5 GB of context and 1 GB of working memory.
func TestJudgeTable(t *testing.T) {
	macs := map[int64]Machine{
		8:  {Total: 8 * gb, Available: 5 * gb, Recommended: 8 * gb * 2 / 3},
		16: {Total: 16 * gb, Available: 12 * gb, Recommended: 16 * gb * 2 / 3},
		24: {Total: 24 * gb, Available: 19 * gb, Recommended: 24 * gb * 2 / 3},
		32: {Total: 32 * gb, Available: 26 * gb, Recommended: 32 * gb * 2 / 3},
		64: {Total: 64 * gb, Available: 56 * gb, Recommended: 64 * gb * 3 / 4},
	}
	for _, c := range []struct {
		machine, target, drafter int64
		want                     Level
	}{
		{8, 2, 0, Fits}, {8, 3, 0, Fits}, {8, 4, 0, DoesNotFit}, {8, 9, 0, DoesNotFit}, {8, 22, 0, DoesNotFit},
		{16, 4, 0, Fits}, {16, 4, 2, Fits}, {16, 9, 0, Tight}, {16, 4, 7, DoesNotFit}, {16, 14, 0, DoesNotFit}, {16, 18, 0, DoesNotFit},
		{24, 4, 0, Fits}, {24, 9, 0, Fits}, {24, 9, 2, Fits}, {24, 9, 5, Tight}, {24, 9, 7, DoesNotFit}, {24, 14, 0, Tight}, {24, 14, 2, DoesNotFit}, {24, 18, 0, DoesNotFit}, {24, 22, 0, DoesNotFit},
		{32, 9, 7, Fits}, {32, 14, 0, Fits}, {32, 14, 2, Fits}, {32, 18, 0, Tight}, {32, 18, 2, DoesNotFit}, {32, 22, 0, DoesNotFit},
		{64, 14, 7, Fits}, {64, 22, 0, Fits}, {64, 22, 7, Fits}, {64, 40, 0, Tight}, {64, 48, 0, DoesNotFit},
	} {
		b := Bill{Target: c.target * gb, Drafter: c.drafter * gb, Context: gb / 2, Working: gb}
		v := Judge(b, macs[c.machine])
		if v.Level != c.want {
			t.Errorf("%d GB, target %d, drafter %d: %v, want %v", c.machine, c.target, c.drafter, v.Level, c.want)
		}
		if v.Needs != (c.target+c.drafter)*gb+gb*3/2 || v.Free > macs[c.machine].Available || v.Free > macs[c.machine].Recommended || v.Free <= 0 {
			t.Errorf("%+v", v)
		}
		if (v.Level == Fits) != (len(v.Hints) == 0) {
			t.Errorf("%d GB, target %d, drafter %d: %v with hints %v", c.machine, c.target, c.drafter, v.Level, v.Hints)
		}
	}
}

// More need never makes a better verdict, more memory never a worse one.
func TestJudgeIsMonotonic(t *testing.T) {
	for total := int64(8); total <= 64; total += 8 {
		for available := int64(2); available <= total; available += 3 {
			last := Fits
			for need := int64(1); need < 70; need++ {
				v := Judge(Bill{Target: need * gb}, Machine{Total: total * gb, Available: available * gb, Recommended: total * gb * 2 / 3})
				if v.Level < last {
					t.Fatalf("%d of %d GB free: %d GB is better than %d", available, total, need, need-1)
				}
				last = v.Level
				if more := Judge(Bill{Target: need * gb}, Machine{Total: (total + 8) * gb, Available: (available + 8) * gb, Recommended: (total + 8) * gb * 2 / 3}); more.Level > v.Level {
					t.Fatalf("%d GB on %d/%d: %v, on 8 more: %v", need, available, total, v.Level, more.Level)
				}
			}
		}
	}
}

func TestJudgeKnowsOnlySome(t *testing.T) {
	b := Bill{Target: 10 * gb}
	for name, c := range map[string]struct {
		m    Machine
		want Level
	}{
		"nothing":                {Machine{}, Tight},
		"no device, enough":      {Machine{Total: 32 * gb, Available: 20 * gb}, Fits},
		"no device, too little":  {Machine{Total: 11 * gb, Available: 10 * gb}, DoesNotFit},
		"only what is available": {Machine{Available: 11 * gb}, Fits},
		"only that, too little":  {Machine{Available: 9 * gb}, DoesNotFit},
		"only the device":        {Machine{Recommended: 9 * gb}, DoesNotFit},
		"others hold a part":     {Machine{Total: 32 * gb, Available: 8 * gb}, Tight},
		"others hold nearly all": {Machine{Total: 32 * gb, Available: 1 * gb}, DoesNotFit},
	} {
		if v := Judge(b, c.m); v.Level != c.want {
			t.Errorf("%s: %v, want %v", name, v.Level, c.want)
		}
	}
}

func TestHints(t *testing.T) {
	mac := Machine{Total: 24 * gb, Available: 19 * gb, Recommended: 16 * gb}
	find := func(v Verdict, r Remedy) *Hint {
		for _, h := range v.Hints {
			if h.Remedy == r {
				return &h
			}
		}
		return nil
	}
	// The published pair on a 24 GB machine: 8-bit target, bf16 drafter.
	target, drafter := gemma12(12*gb), drafter12(6_860_000_000)
	b := BillFor(target, &drafter, 8192, false)
	v := Judge(b, mac)
	if v.Level != DoesNotFit {
		t.Fatalf("%v: %+v", v.Level, b)
	}
	if h := find(v, QuantizeDrafter); h == nil || h.Saves < 4*gb || h.Saves > 5*gb || v.Hints[0].Remedy != QuantizeDrafter {
		t.Errorf("%+v", v.Hints)
	}
	// With a 4-bit target and a 4-bit drafter it fits.
	small := drafter12(19 * gb / 10)
	small.HalfBytes = 0
	if v := Judge(BillFor(gemma12(7*gb), &small, 8192, false), mac); v.Level != Fits {
		t.Errorf("%+v", v)
	}
	// A long context is shortened to what is enough, by halves.
	b = BillFor(gemma12(10*gb), nil, 262144, false)
	h := find(Judge(b, mac), ShortenContext)
	if h == nil || !h.Enough || h.Tokens != 131072 {
		t.Fatalf("%+v", Judge(b, mac))
	}
	if v := Judge(BillFor(gemma12(10*gb), nil, h.Tokens, false), mac); v.Level != Fits {
		t.Errorf("shortened as advised it is %v", v.Level)
	}
	// Other programs hold the memory.
	busy := mac
	busy.Available = 9 * gb
	v = Judge(Bill{Target: 10 * gb}, busy)
	if h := find(v, CloseOthers); v.Level != Tight || h == nil || !h.Enough || find(v, SmallerTarget) != nil {
		t.Errorf("%+v", v)
	}
	// Nothing but another target.
	v = Judge(Bill{Target: 22 * gb, Drafter: gb}, mac)
	if find(v, SmallerTarget) == nil || find(v, LeaveDrafter) == nil || find(v, LeaveDrafter).Enough || find(v, CloseOthers) != nil {
		t.Errorf("%+v", v)
	}
	// Making the drafter 4-bit and leaving it out do not add up.
	v = Judge(Bill{Target: 18 * gb, Drafter: 6 * gb, DrafterAt4Bit: 2 * gb}, mac)
	if find(v, SmallerTarget) == nil || find(v, LeaveDrafter) == nil {
		t.Errorf("%+v", v)
	}
	// The drafter is what is too much.
	v = Judge(Bill{Target: 8 * gb, Drafter: 7 * gb}, mac)
	if h := find(v, LeaveDrafter); h == nil || !h.Enough || find(v, SmallerTarget) != nil {
		t.Errorf("%+v", v)
	}
}
