package quantize

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"time"

	"firesteel/core/job"
	"firesteel/core/library"
	"firesteel/mlxbind"
	"firesteel/models/checkpoint"
	"firesteel/models/nn"
)

// Result is what a job has made.
type Result struct {
	Dir         string
	ResultBytes int64 // of the weights files
	Seconds     float64
}

// pieceBytes is how much of a source tensor is worked on at a time.
const pieceBytes = 8 << 20

// cacheLimit is how much of what pieces leave behind may wait for reuse.
const cacheLimit = 128 << 20

// piece is some rows of a module, or some bytes of a tensor that is copied (module nil).
type piece struct {
	module *Module
	part   checkpoint.Tensor
	raw    []byte
	out    map[string][]byte // by tensor
}

// Run follows the plan. runner does the arithmetic, a piece at a time, so that other work on its
// thread goes on between; tell, which may be nil, hears how far it is and is called from several
// goroutines, one at a time. When Run fails or ctx ends, nothing is left of it.
func Run(ctx context.Context, runner job.Runner, p *Plan, tell func(job.Progress)) (Result, error) {
	begun := time.Now()
	if err := job.CheckRoom(p.place(), p.ResultBytes); err != nil {
		return Result{}, err
	}
	source, err := checkpoint.Open(p.Source)
	if err != nil {
		return Result{}, err
	}
	defer source.Close()
	if parent := filepath.Dir(p.Destination); p.MakeParent && os.Mkdir(parent, 0o755) == nil {
		defer os.Remove(parent) // which it can't be once the result is in it
	}
	stage, err := job.NewStage(p.Destination, p.Notes)
	if err != nil {
		return Result{}, err
	}
	defer stage.Discard()
	meter := job.NewMeter(source.Bytes(), tell)
	if err := p.write(ctx, runner, source, stage.Dir, meter); err != nil {
		return Result{}, err
	}
	if err := job.CopyBeside(ctx, p.Source, stage.Dir, "config.json", "optiq_metadata.json"); err != nil {
		return Result{}, err
	}
	if err := p.describe(stage.Dir); err != nil {
		return Result{}, err
	}
	meter.Add("checking", 0)
	made, err := p.verify(ctx, runner, source, stage.Dir)
	if err != nil {
		return Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	if err := stage.Finish(); err != nil {
		return Result{}, err
	}
	return Result{Dir: p.Destination, ResultBytes: made, Seconds: time.Since(begun).Seconds()}, nil
}

// write makes the weights files: one goroutine reads, one packs (on the inference thread), one
// writes, each a piece ahead of the next.
func (p *Plan) write(ctx context.Context, runner job.Runner, source *checkpoint.Folder, dir string, meter *job.Meter) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w, err := checkpoint.CreateWeights(dir, p.layout)
	if err != nil {
		return err
	}
	defer w.Abandon()
	read, packed, done := make(chan *piece), make(chan *piece), make(chan struct{})
	go func() {
		defer close(read)
		for at := range p.pieces() {
			at.raw = make([]byte, at.part.Size)
			if err := source.Read(ctx, at.part, at.raw); err != nil {
				stop(err)
				return
			}
			select {
			case read <- at:
			case <-ctx.Done():
				return
			}
		}
	}()
	go func() {
		defer close(packed)
		for at := range read {
			if err := at.pack(ctx, runner); err != nil {
				stop(err)
				return
			}
			select {
			case packed <- at:
			case <-ctx.Done():
				return
			}
		}
	}()
	go func() {
		defer close(done)
		for at := range packed {
			for _, name := range at.tensors() {
				if err := w.Append(name, at.out[name]); err != nil {
					stop(err)
					return
				}
			}
			if ctx.Err() != nil {
				return
			}
			meter.Add("packing", at.part.Size)
		}
	}()
	<-done
	// The others end too, as soon as they try to hand something on.
	if err := context.Cause(ctx); err != nil {
		for range read {
		}
		for range packed {
		}
		return err
	}
	return w.Close()
}

// pieces is everything that is to be read, in order.
func (p *Plan) pieces() func(yield func(*piece) bool) {
	return func(yield func(*piece) bool) {
		for i := range p.Modules {
			m := &p.Modules[i]
			out := m.source.Shape[0]
			step := max(1, int(pieceBytes/(m.source.Size/int64(out))))
			for from := 0; from < out; from += step {
				to := min(from+step, out)
				if !yield(&piece{module: m, part: m.source.Part(from, to)}) {
					return
				}
			}
		}
		for _, t := range p.copied {
			end := t.Offset + t.Size
			for at := t.Offset; at < end; at += pieceBytes {
				part := t
				part.Offset, part.Size = at, min(pieceBytes, end-at)
				if !yield(&piece{part: part}) {
					return
				}
			}
		}
	}
}

// tensors are the names that a piece has something for.
func (at *piece) tensors() []string {
	if at.module == nil {
		return []string{at.part.Name}
	}
	names := []string{at.module.Name + ".weight", at.module.Name + ".scales"}
	if at.module.Packing.Mode == "affine" {
		names = append(names, at.module.Name+".biases")
	}
	return names
}

// pack turns raw into what is to be written.
func (at *piece) pack(ctx context.Context, runner job.Runner) error {
	if at.module == nil {
		at.out = map[string][]byte{at.part.Name: at.raw}
		return nil
	}
	if _, ok := nn.PlainDType(at.part.DType); !ok {
		return &checkpoint.Error{Kind: checkpoint.KindUnsupported, Path: at.part.File, Tensor: at.part.Name, Detail: fmt.Sprintf("element type %v", at.part.DType)}
	}
	err := runner.Do(ctx, func() error {
		parts, err := nn.Pack(at.raw, at.part.DType, at.part.Shape[1], at.module.Packing)
		if err != nil {
			return fmt.Errorf("%s: %w", at.part.Name, err)
		}
		at.out = map[string][]byte{}
		for i, name := range at.tensors() {
			at.out[name] = parts[i]
		}
		if mlxbind.CacheMemory() > cacheLimit {
			mlxbind.ClearCache()
		}
		return nil
	})
	at.raw = nil
	return err
}

// describe writes config.json with what is packed how, and a note of how it came about.
func (p *Plan) describe(dir string) error {
	path := filepath.Join(p.Source, "config.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		return &checkpoint.Error{Kind: checkpoint.KindNotReadable, Path: path, Err: err}
	}
	config := map[string]any{}
	decode := json.NewDecoder(bytes.NewReader(raw))
	decode.UseNumber() // numbers as they are written
	if err := decode.Decode(&config); err != nil {
		return &checkpoint.Error{Kind: checkpoint.KindBadConfig, Path: path, Err: err}
	}
	entry := func(q checkpoint.Quantization) map[string]any {
		e := map[string]any{"bits": q.Bits, "group_size": q.GroupSize}
		if q.Mode != "affine" {
			e["mode"] = q.Mode
		}
		return e
	}
	quantization := entry(p.Packing)
	quantization["mode"] = p.Packing.Mode
	for _, m := range p.Modules {
		quantization[m.Name] = entry(m.Packing)
	}
	for _, k := range p.Kept {
		quantization[k.Name] = false
	}
	config["quantization"], config["quantization_config"] = quantization, quantization
	if err := checkpoint.WriteJSON(filepath.Join(dir, "config.json"), config); err != nil {
		return err
	}
	method := "uniform_" + p.Packing.Mode
	if p.Recommended {
		method = "recommended_" + p.Packing.Mode
	}
	return checkpoint.WriteJSON(filepath.Join(dir, "optiq_metadata.json"), map[string]any{
		"method": method, "base_model": p.Model.Name, "bits": p.Packing.Bits, "group_size": p.Packing.GroupSize,
		"achieved_bpw": math.Round(p.BitsPerWeight*1000) / 1000, "per_layer_count": len(p.Modules),
	})
}

// VerifyError is returned when what was written is not what it should be.
type VerifyError struct{ Tensor, Detail string }

func (e *VerifyError) Error() string {
	return fmt.Sprintf("the copy of %s is not right: %s", e.Tensor, e.Detail)
}

// verify opens what was written as a model would be, compares one row of every packed matrix with
// the source, and every copied tensor byte for byte. It returns the size of the weights files.
func (p *Plan) verify(ctx context.Context, runner job.Runner, source *checkpoint.Folder, dir string) (int64, error) {
	d, err := library.Describe(dir)
	if err != nil {
		return 0, err
	}
	if d.Kind != p.Model.Kind || d.Family != p.Model.Family || d.Parameters != p.Model.Parameters {
		return 0, &VerifyError{dir, fmt.Sprintf("it is a %s with %d parameters, the source a %s with %d", d.Kind, d.Parameters, p.Model.Kind, p.Model.Parameters)}
	}
	made, err := checkpoint.Open(dir)
	if err != nil {
		return 0, err
	}
	defer made.Close()
	for i := range p.Modules {
		if err := p.Modules[i].verify(ctx, runner, source, made); err != nil {
			return 0, err
		}
	}
	for _, t := range p.copied {
		if err := same(ctx, t, source, made); err != nil {
			return 0, err
		}
	}
	return made.FileBytes(), nil
}

// verify unpacks one row, chosen by the module's name, and compares it with the source's.
func (m *Module) verify(ctx context.Context, runner job.Runner, source, made *checkpoint.Folder) error {
	q, err := made.Quantization(m.Name)
	if err != nil {
		return err
	}
	if q == nil || *q != m.Packing {
		return &VerifyError{m.Name, fmt.Sprintf("it reads as %v, not %v", q, m.Packing)}
	}
	h := fnv.New32a()
	h.Write([]byte(m.Name))
	row := int(h.Sum32() % uint32(m.source.Shape[0]))
	read := func(f *checkpoint.Folder, name string) ([]byte, []int, error) {
		t, _ := f.Tensor(name)
		part := t.Part(row, row+1)
		raw := make([]byte, part.Size)
		return raw, part.Shape, f.Read(ctx, part, raw)
	}
	want, shape, err := read(source, m.source.Name)
	if err != nil {
		return err
	}
	var parts [3][]byte
	var shapes [3][]int
	names := (&piece{module: m}).tensors()
	for i, name := range names {
		if parts[i], shapes[i], err = read(made, name); err != nil {
			return err
		}
	}
	return runner.Do(ctx, func() error {
		s := mlxbind.NewScope()
		defer s.Close()
		kinds := []mlxbind.DType{mlxbind.Uint32, mlxbind.BFloat16, mlxbind.BFloat16}
		if m.Packing.Mode != "affine" {
			kinds[1] = mlxbind.Uint8
		}
		var arrays [3]mlxbind.Array
		for i := range names {
			arrays[i] = s.Data(parts[i], kinds[i], shapes[i]...)
		}
		got, err := s.ReadFloats(s.Dequantize(mlxbind.Packed{Weight: arrays[0], Scales: arrays[1], Biases: arrays[2], Packing: nn.Packing(m.Packing)}, mlxbind.Float32))
		if err != nil {
			return err
		}
		exactly, _ := nn.DType(m.source.DType)
		exact, err := s.ReadFloats(s.Data(want, exactly, shape...))
		if err != nil {
			return err
		}
		for from := 0; from < len(exact); from += m.Packing.GroupSize {
			to := from + m.Packing.GroupSize
			allowed := m.tolerance(exact[from:to])
			for i := from; i < to; i++ {
				if d := math.Abs(float64(exact[i] - got[i])); !(d <= allowed) {
					return &VerifyError{m.Name, fmt.Sprintf("value %d of row %d is %g, in the source %g", i, row, got[i], exact[i])}
				}
			}
		}
		return nil
	})
}

// tolerance is how far packing may move the values of one group: one and a half steps of its range
// and what rounding scale and bias to bfloat16 adds; in the other modes, the coarsest gap between
// neighbours of their number formats, as a share of the largest.
func (m *Module) tolerance(group []float32) float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range group {
		low, high = math.Min(low, float64(v)), math.Max(high, float64(v))
	}
	largest := math.Max(math.Abs(low), math.Abs(high))
	switch m.Packing.Mode {
	case "affine":
		return 1.5*(high-low)/float64(int(1)<<m.Packing.Bits-1) + largest/64 + 1e-6
	case "mxfp8":
		return largest/7 + 1e-6
	}
	return largest*0.36 + 1e-6
}

// same compares a tensor that was copied.
func same(ctx context.Context, t checkpoint.Tensor, source, made *checkpoint.Folder) error {
	copied, ok := made.Tensor(t.Name)
	if !ok || copied.Size != t.Size {
		return &VerifyError{t.Name, "it is missing or of another size"}
	}
	for at := int64(0); at < t.Size; at += pieceBytes {
		n := min(pieceBytes, t.Size-at)
		read := func(f *checkpoint.Folder, t checkpoint.Tensor) ([]byte, error) {
			t.Offset, t.Size = t.Offset+at, n
			raw := make([]byte, n)
			return raw, f.Read(ctx, t, raw)
		}
		a, err := read(source, t)
		if err != nil {
			return err
		}
		b, err := read(made, copied)
		if err != nil {
			return err
		}
		if !bytes.Equal(a, b) {
			return &VerifyError{t.Name, "its bytes differ from the source's"}
		}
	}
	return nil
}
