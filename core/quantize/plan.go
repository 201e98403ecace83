// Package quantize makes a smaller copy of a model: its matrices packed to a few bits a value, row
// by row as MLX packs them, everything else as it is. The source is only read; what is held in
// memory does not grow with the model.
//
//	plan, err := quantize.NewPlan(options) // sizes and refusals, before anything is written
//	result, err := quantize.Run(ctx, runner, plan, progress)
package quantize

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"firesteel/core/job"
	"firesteel/core/library"
	"firesteel/models/checkpoint"
)

// Options say what is to be made.
type Options struct {
	Source, Destination string

	// Packing of every matrix; the zero value is 4 bits in groups of 64. A mode other than "affine"
	// fixes the rest.
	Packing checkpoint.Quantization
	// Recommended gives the matrices that suffer most more bits than Packing has; affine only.
	Recommended bool
	// MakeParent has Run make the folder that Destination lies in, where only that one is missing.
	MakeParent bool
	// Notes is where unfinished work is noted, for job.RemoveLeftovers; "" is the usual place.
	Notes string
}

// Module is a matrix and how it is to be packed.
type Module struct {
	Name    string
	Packing checkpoint.Quantization
	source  checkpoint.Tensor // [out, in]
}

// Kept is a matrix that stays as it is, and why.
type Kept struct{ Name, Why string }

// Plan is what a job will do.
type Plan struct {
	Options
	Model library.Description // the source

	Modules []Module
	Kept    []Kept

	SourceBytes, ResultBytes int64 // of the weights files
	MemoryBefore             int64 // of the weights, once loaded as they are stored
	MemoryAfter              int64
	BitsPerWeight            float64 // of the packed matrices, scales included

	layout checkpoint.Layout
	copied []checkpoint.Tensor
}

// Reason says why a plan is refused.
type Reason int

const (
	AlreadyQuantized   Reason = iota // the source has packed matrices
	SmallDrafter                     // a DFlash drafter, which is small as it is
	SourceItself                     // the destination is the source
	InsideSource                     // or lies in it
	DestinationTaken                 // something is there
	NotWritable                      // the place cannot be written to
	NothingToPack                    // no matrix has a width that fits
	UnsuitablePacking                // bits, group and mode do not go together
	RecommendedIsMixed               // the recommended recipe is for affine packing
)

// RefusedError is returned for a plan that cannot be followed.
type RefusedError struct {
	Reason Reason
	Path   string // the folder concerned
	Detail string
	Err    error
}

func (e *RefusedError) Error() string {
	text := [...]string{"it is quantized already", "it is small as it is", "the destination is the source", "the destination lies in the source",
		"something is there already", "it cannot be written to", "nothing in it can be packed", "bits, group and mode do not go together",
		"the recommended recipe is for the affine mode"}[e.Reason]
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return e.Path + ": " + text
}

func (e *RefusedError) Unwrap() error { return e.Err }

// complete fills in what is not said and checks what is.
func complete(q checkpoint.Quantization) (checkpoint.Quantization, error) {
	refuse := func(format string, args ...any) (checkpoint.Quantization, error) {
		return q, &RefusedError{Reason: UnsuitablePacking, Detail: fmt.Sprintf(format, args...)}
	}
	if q.Mode == "" {
		q.Mode = "affine"
	}
	if f, ok := checkpoint.Microscaling(q.Mode); ok {
		if q.Bits != 0 && q.Bits != f.Bits || q.GroupSize != 0 && q.GroupSize != f.GroupSize {
			return refuse("%s has %d bits in groups of %d", q.Mode, f.Bits, f.GroupSize)
		}
		return f, nil
	}
	if q.Bits == 0 {
		q.Bits = 4
	}
	if q.GroupSize == 0 {
		q.GroupSize = 64
	}
	switch {
	case q.Mode != "affine":
		return refuse("there is no mode %q", q.Mode)
	case !slices.Contains(checkpoint.Bits, q.Bits):
		return refuse("%d bits", q.Bits)
	case !slices.Contains(checkpoint.GroupSizes, q.GroupSize):
		return refuse("groups of %d", q.GroupSize)
	}
	return q, nil
}

// NewPlan looks at the source's headers and at the destination's place, and says what would come
// of it. It writes nothing.
func NewPlan(o Options) (*Plan, error) {
	var err error
	if o.Packing, err = complete(o.Packing); err != nil {
		return nil, err
	}
	if o.Recommended && o.Packing.Mode != "affine" {
		return nil, &RefusedError{Reason: RecommendedIsMixed, Path: o.Source}
	}
	p := &Plan{Options: o}
	if p.Model, err = library.Describe(o.Source); err != nil {
		return nil, err
	}
	p.Source = p.Model.Dir
	if p.Model.Family == library.DFlash {
		return nil, &RefusedError{Reason: SmallDrafter, Path: p.Source}
	}
	if err := p.Model.Loadable(); err != nil {
		return nil, err
	}
	if p.Destination, err = filepath.Abs(o.Destination); err != nil {
		return nil, err
	}
	if err := p.checkPlaces(); err != nil {
		return nil, err
	}
	if p.Notes == "" {
		if p.Notes, err = job.Notes(); err != nil {
			return nil, err
		}
	}
	folder, err := checkpoint.Open(p.Source)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	if len(folder.QuantizedModules()) > 0 || folder.StatesQuantization() {
		return nil, &RefusedError{Reason: AlreadyQuantized, Path: p.Source}
	}
	if err := p.sort(folder); err != nil {
		return nil, err
	}
	p.SourceBytes = folder.FileBytes()
	if p.ResultBytes, err = p.layout.FileBytes(); err != nil {
		return nil, err
	}
	return p, nil
}

// checkPlaces refuses a destination that is the source, lies in it, is taken or cannot be written.
func (p *Plan) checkPlaces() error {
	source, err := os.Stat(p.Source)
	if err != nil {
		return err
	}
	if info, err := os.Stat(p.Destination); err == nil {
		if os.SameFile(info, source) {
			return &RefusedError{Reason: SourceItself, Path: p.Destination}
		}
		listing, err := os.ReadDir(p.Destination)
		if err != nil || len(listing) > 0 {
			return &RefusedError{Reason: DestinationTaken, Path: p.Destination}
		}
	} else if _, err := os.Lstat(p.Destination); err == nil {
		return &RefusedError{Reason: DestinationTaken, Path: p.Destination, Detail: "a link to nowhere"}
	}
	// Whatever links and letter case it is written with, an ancestor is the same folder.
	parent, err := filepath.EvalSymlinks(p.place())
	if err != nil {
		return &RefusedError{Reason: NotWritable, Path: filepath.Dir(p.Destination), Err: err}
	}
	for at := parent; ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && os.SameFile(info, source) {
			return &RefusedError{Reason: InsideSource, Path: p.Destination}
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	probe, err := os.MkdirTemp(parent, ".firesteel-probe-*")
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return &RefusedError{Reason: NotWritable, Path: parent, Err: err}
	}
	return os.Remove(probe)
}

// place is the folder that Destination lies in, or the one that it is to be made in.
func (p *Plan) place() string {
	parent := filepath.Dir(p.Destination)
	if _, err := os.Lstat(parent); p.MakeParent && errors.Is(err, fs.ErrNotExist) {
		return filepath.Dir(parent)
	}
	return parent
}

// sort decides for every tensor what becomes of it.
func (p *Plan) sort(folder *checkpoint.Folder) error {
	var packedBits, packedWeights int64
	put := func(t checkpoint.Tensor) { p.layout.Tensors = append(p.layout.Tensors, t) }
	for _, name := range folder.Names() {
		t, _ := folder.Tensor(name)
		p.layout.Parameters += t.Elements()
		module, isWeight := strings.CutSuffix(name, ".weight")
		if !isWeight || len(t.Shape) != 2 || !t.DType.Float() || checkpoint.Beside(name) {
			p.copied = append(p.copied, t)
			put(t)
			continue
		}
		q, why := p.packing(module, t.Shape[1])
		if why != "" {
			p.Kept = append(p.Kept, Kept{module, why})
			p.copied = append(p.copied, t)
			put(t)
			continue
		}
		p.Modules = append(p.Modules, Module{module, q, t})
		out, in := t.Shape[0], t.Shape[1]
		put(checkpoint.Tensor{Name: name, DType: checkpoint.U32, Shape: []int{out, in * q.Bits / 32}})
		groups := []int{out, in / q.GroupSize}
		if q.Mode == "affine" {
			put(checkpoint.Tensor{Name: module + ".scales", DType: checkpoint.BF16, Shape: groups})
			put(checkpoint.Tensor{Name: module + ".biases", DType: checkpoint.BF16, Shape: groups})
			packedBits += int64(out) * int64(groups[1]) * 32
		} else {
			put(checkpoint.Tensor{Name: module + ".scales", DType: checkpoint.U8, Shape: groups})
			packedBits += int64(out) * int64(groups[1]) * 8
		}
		packedBits += t.Elements() * int64(q.Bits)
		packedWeights += t.Elements()
	}
	if len(p.Modules) == 0 {
		return &RefusedError{Reason: NothingToPack, Path: p.Source}
	}
	p.BitsPerWeight = float64(packedBits) / float64(packedWeights)
	p.MemoryBefore = p.Model.TensorBytes
	p.MemoryAfter = p.MemoryBefore + packedBits/8
	for _, m := range p.Modules {
		p.MemoryAfter -= m.source.Size
	}
	return nil
}

// packing is how a module with rows of in values is to be packed, or why it stays as it is.
func (p *Plan) packing(module string, in int) (q checkpoint.Quantization, why string) {
	bare := checkpoint.Bare(module)
	if strings.HasPrefix(bare, "confidence_head.") {
		return q, "tiny, and what caution goes by"
	}
	q = p.Options.Packing
	if p.Recommended {
		q.Bits = max(q.Bits, recommended(bare))
	}
	for _, group := range []int{q.GroupSize, 64, 32} {
		if group <= q.GroupSize && in%group == 0 && in%32 == 0 {
			q.GroupSize = group
			return q, ""
		}
		if q.Mode != "affine" {
			break
		}
	}
	return q, fmt.Sprintf("its rows of %d values can't be divided into groups", in)
}

// recommended is how many bits a module of this bare name should have at least. See the table that
// TestRecipes prints.
func recommended(bare string) int {
	switch {
	case strings.HasPrefix(bare, "markov_head."):
		return 8
	case bare == "fc", bare == "lm_head", bare == "embed_tokens":
		return 6
	}
	return 0
}
