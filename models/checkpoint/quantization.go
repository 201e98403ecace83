package checkpoint

import (
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// Quantization is how one module's weights are packed.
type Quantization struct {
	Bits      int
	GroupSize int    // elements of a row that share one scale
	Mode      string // "affine", "mxfp4", "mxfp8" or "nvfp4"
}

const modeAffine = "affine"

// Packings that are handled: the modes, and the bits and group sizes of "affine".
var (
	Modes      = []string{modeAffine, "mxfp4", "mxfp8", "nvfp4"}
	Bits       = []int{2, 3, 4, 5, 6, 8}
	GroupSizes = []int{32, 64, 128}
)

// microscaling modes fix bits and group size, scale with one byte a group, and have no biases.
var microscaling = map[string]Quantization{
	"mxfp4": {4, 32, "mxfp4"},
	"mxfp8": {8, 32, "mxfp8"},
	"nvfp4": {4, 16, "nvfp4"},
}

// Microscaling is the packing that a mode other than "affine" prescribes; false for any other mode.
func Microscaling(mode string) (Quantization, bool) {
	q, ok := microscaling[mode]
	return q, ok
}

// packing is what config.json states, each field perhaps absent.
type packing struct {
	bits, group int // 0: not stated
	mode        string
	full        bool // an entry of false, or bits of null: full precision
}

// policy is config.json's quantization block.
type policy struct {
	stated  bool
	base    packing
	exact   map[string]packing // by module, as written
	bare    map[string]packing // by module, wrapper prefixes stripped
	path    string
	section string
}

// readPolicy reads "quantization", or "quantization_config" where that is absent.
func readPolicy(c *Config) (*policy, error) {
	p := &policy{path: c.path, exact: map[string]packing{}, bare: map[string]packing{}}
	for _, key := range []string{"quantization", "quantization_config"} {
		holder := c
		if !c.Has(key) {
			// Some converters leave it with the language model's values.
			text, err := c.Text()
			if err != nil {
				return nil, err
			}
			holder = text
		}
		if !holder.Has(key) {
			continue
		}
		block, err := holder.Object(key)
		if err != nil {
			return nil, err
		}
		if block.Has("quant_method") {
			method, err := block.String("quant_method")
			if err != nil {
				return nil, err
			}
			if method != "mlx" && method != modeAffine {
				if _, ok := microscaling[method]; !ok || !block.Has("bits") {
					return nil, &Error{Kind: KindUnsupported, Path: c.path, Key: key, Detail: "quantization method " + clip(method)}
				}
			}
		}
		p.stated, p.section = true, key
		if p.base, err = readPacking(block); err != nil {
			return nil, err
		}
		if v, present := block.values["bits"]; present && v == nil {
			p.base.full = true
		}
		return p, p.readEntries(block)
	}
	return p, nil
}

func (p *policy) readEntries(block *Config) error {
	// Sorted, so that of two entries that differ only in wrapper prefixes always the same one counts.
	for _, module := range block.Keys() {
		var entry packing
		switch v := block.values[module].(type) {
		case bool:
			if v {
				continue
			}
			entry.full = true
		case map[string]any:
			if module == "config_groups" {
				return &Error{Kind: KindUnsupported, Path: p.path, Key: p.section, Detail: "quantization in config_groups"}
			}
			object, err := block.Object(module)
			if err != nil {
				return err
			}
			if entry, err = readPacking(object); err != nil {
				return err
			}
			if bits, present := v["bits"]; present && bits == nil {
				entry.full = true
			}
		default:
			continue
		}
		p.exact[module] = entry
		if bare := Bare(module); !hasKey(p.bare, bare) {
			p.bare[bare] = entry
		}
	}
	return nil
}

func hasKey(m map[string]packing, key string) bool { _, ok := m[key]; return ok }

func readPacking(c *Config) (packing, error) {
	var p packing
	var err error
	if p.bits, err = c.IntOr("bits", 0); err != nil {
		return p, err
	}
	if p.group, err = c.IntOr("group_size", 0); err != nil {
		return p, err
	}
	p.mode, err = c.StringOr("mode", "")
	return p, err
}

func (p *policy) entry(module string) (packing, bool) {
	if e, ok := p.exact[module]; ok {
		return e, true
	}
	e, ok := p.bare[Bare(module)]
	return e, ok
}

// Quantization returns how module (a tensor name without ".weight") is packed, nil when it is in full
// precision. What lies in the files decides: a module is quantized exactly if module+".scales" exists.
// Then the configuration must say how, its own entry first, and the tensors must agree with it;
// otherwise the error names the tensor.
func (f *Folder) Quantization(module string) (*Quantization, error) {
	weight, haveWeight := f.tensors[module+".weight"]
	scales, packed := f.tensors[module+".scales"]
	if !packed {
		if haveWeight && weight.DType == U32 {
			return nil, &Error{Kind: KindIncomplete, Path: f.path(weight), Tensor: module + ".scales",
				Detail: "the weight is packed, but its scales are missing"}
		}
		return nil, nil
	}
	if !haveWeight {
		return nil, &Error{Kind: KindIncomplete, Path: f.path(scales), Tensor: module + ".weight",
			Detail: "the scales are there, but the weight is missing"}
	}
	q, err := f.stated(module, scales)
	if err != nil {
		return nil, err
	}
	if err := f.checkPacked(module, q, weight, scales); err != nil {
		return nil, err
	}
	return &q, nil
}

// StatesQuantization reports whether config.json has a quantization block. It says nothing about the
// weights: only their own scales do.
func (f *Folder) StatesQuantization() bool { return f.quant.stated && !f.quant.base.full }

// QuantizedModules returns the modules that are packed, sorted.
func (f *Folder) QuantizedModules() []string {
	var modules []string
	for _, name := range f.names {
		if module, ok := strings.CutSuffix(name, ".scales"); ok {
			modules = append(modules, module)
		}
	}
	sort.Strings(modules)
	return modules
}

func (f *Folder) path(t Tensor) string { return filepath.Join(f.dir, t.File) }

// stated returns what the configuration says about module, missing fields taken from the top level.
func (f *Folder) stated(module string, scales Tensor) (Quantization, error) {
	undecided := func(detail string) (Quantization, error) {
		return Quantization{}, &Error{Kind: KindMismatch, Path: f.path(scales), Tensor: module,
			Detail: "it is packed, but config.json " + detail}
	}
	if !f.quant.stated {
		return undecided("has no quantization")
	}
	say, own := f.quant.entry(module)
	base := f.quant.base
	if own && say.full {
		return undecided("says it is in full precision")
	}
	if !own && base.full {
		return undecided("gives no bits for it")
	}
	if say.mode == "" {
		say.mode = base.mode
		if _, fixed := microscaling[say.mode]; fixed && own && scales.DType.Float() {
			// An affine module among microscaled ones is often written without its mode.
			say.mode = modeAffine
		}
	}
	if say.mode == "" {
		say.mode = modeAffine
	}
	if fixed, ok := microscaling[say.mode]; ok {
		sameMode := base.mode == say.mode
		if say.bits == 0 && sameMode {
			say.bits = base.bits
		}
		if say.group == 0 && sameMode {
			say.group = base.group
		}
		if (say.bits != 0 && say.bits != fixed.Bits) || (say.group != 0 && say.group != fixed.GroupSize) {
			return Quantization{}, &Error{Kind: KindMismatch, Path: f.quant.path, Tensor: module,
				Detail: fmt.Sprintf("%s has %d bits in groups of %d, not %d in groups of %d", say.mode, fixed.Bits, fixed.GroupSize, say.bits, say.group)}
		}
		return fixed, nil
	}
	if say.mode != modeAffine {
		return Quantization{}, &Error{Kind: KindUnsupported, Path: f.quant.path, Tensor: module, Detail: "quantization mode " + clip(say.mode)}
	}
	if say.bits == 0 {
		say.bits = base.bits
	}
	if say.bits == 0 {
		return undecided("gives no bits for it")
	}
	if say.group == 0 {
		say.group = base.group
	}
	if say.group == 0 {
		say.group = 64 // MLX's own default
	}
	if !slices.Contains(Bits, say.bits) || !slices.Contains(GroupSizes, say.group) {
		return Quantization{}, &Error{Kind: KindUnsupported, Path: f.quant.path, Tensor: module,
			Detail: fmt.Sprintf("%d bits in groups of %d", say.bits, say.group)}
	}
	return Quantization{say.bits, say.group, modeAffine}, nil
}

// checkPacked compares weight, scales and biases with q: weight U32 [..., out, in·bits/32],
// scales and biases [..., out, in/group].
func (f *Folder) checkPacked(module string, q Quantization, weight, scales Tensor) error {
	fail := func(t Tensor, format string, args ...any) error {
		return &Error{Kind: KindMismatch, Path: f.path(t), Tensor: t.Name, Detail: fmt.Sprintf(format, args...)}
	}
	if weight.DType != U32 {
		return fail(weight, "it is %s, but packed weights are U32", weight.DType)
	}
	rank := len(weight.Shape)
	if rank < 2 || len(scales.Shape) != rank || !slices.Equal(weight.Shape[:rank-1], scales.Shape[:rank-1]) {
		return fail(scales, "its shape %v does not go with the weight's %v", scales.Shape, weight.Shape)
	}
	words, groups := int64(weight.Shape[rank-1]), int64(scales.Shape[rank-1])
	in := groups * int64(q.GroupSize)
	if words*32 != in*int64(q.Bits) {
		return fail(weight, "its %d words a row are not what %d groups of %d at %d bits take", words, groups, q.GroupSize, q.Bits)
	}
	biases, biased := f.tensors[module+".biases"]
	if q.Mode != modeAffine {
		if scales.DType != U8 {
			return fail(scales, "it is %s, but %s scales are U8", scales.DType, q.Mode)
		}
		if biased {
			return fail(biases, "%s has no biases", q.Mode)
		}
		return nil
	}
	if scales.DType != BF16 && scales.DType != F16 && scales.DType != F32 {
		return fail(scales, "it is %s, but affine scales are BF16, F16 or F32", scales.DType)
	}
	if !biased {
		return &Error{Kind: KindIncomplete, Path: f.path(scales), Tensor: module + ".biases", Detail: "missing"}
	}
	if !slices.Equal(biases.Shape, scales.Shape) || biases.DType != scales.DType {
		return fail(biases, "it is %s %v, but the scales are %s %v", biases.DType, biases.Shape, scales.DType, scales.Shape)
	}
	return nil
}
