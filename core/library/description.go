package library

import (
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"firesteel/models/checkpoint"
)

// Role is what a checkpoint is for.
type Role string

const (
	Target  Role = "target"  // writes text
	Drafter Role = "drafter" // guesses ahead for a target
)

// Families, as Description.Family holds them.
const (
	Gemma4   = "gemma4"
	Qwen3    = "qwen3"
	DeepSpec = "deepspec" // DeepSeek's drafters: DSpark, and DFlash without a Markov head
	DFlash   = "dflash"   // the trainable drafter of dspark.json
)

// Supported lists the families that can be loaded today. Others that are known here are described
// all the same, so that a person learns what a folder is. A drafter needs its target's family too.
var Supported = []string{Gemma4, Qwen3, DeepSpec, DFlash}

// Description is what a folder holds, as far as configuration and file headers tell.
type Description struct {
	Dir          string // absolute; of a hub repository, the snapshot
	Name         string // what a person calls it
	Kind         Role
	Family       string // Gemma4, Qwen3, DeepSpec or DFlash
	ModelType    string // config.json's model_type, of the language model
	Architecture string // config.json's first architecture

	Layers     int
	Hidden     int // width of the model's own layers
	Vocabulary int // rows of the embedding, padding included
	Context    int // tokens; 0 when the configuration does not say
	EOS        []int
	Generation checkpoint.Generation // what the folder recommends; targets

	Parameters         int64 // packed weights counted unpacked; parts that are never read left out
	FileBytes          int64 // of the weight files
	TensorBytes        int64 // of what would be read
	HalfBytes          int64 // the part of TensorBytes held in 16-bit floats
	SkippedBytes       int64 // vision and audio towers and what else is never read
	DType              checkpoint.DType
	Precision          string // "bf16", "4-bit", "mxfp4", "4–8-bit mixed"
	ModulesByPrecision []ModuleCount
	// StatesQuantization is set when config.json claims a quantization that no weight has: the
	// weights are in full precision and load as such.
	StatesQuantization bool

	Cache CacheLayout
	Moe   bool // mixture of experts

	borrowers int  // layers at the end that use an earlier one's keys and values
	tied      bool // the embedding is the output layer too

	// Drafters only.
	TargetFamily  string // "": any whose sizes are right
	TargetLayers  int    // layers of the target it was trained for; 0 when it does not say
	TargetHidden  int
	TargetID      string // dspark.json's target_id
	Taps          []int  // target layers it reads: the output of layer i; −1 the embedding; the number of layers, the final norm
	Block         int    // tokens drafted at most, the trained γ
	MaskToken     int    // −1 when it has none
	MarkovRank    int    // 0: no Markov head
	MarkovHead    string // "vanilla", "gated", "rnn", "markov"; "" without
	HasConfidence bool   // it says how sure it is, so that a threshold works
}

// ModuleCount says how many weight matrices have one precision.
type ModuleCount struct {
	Precision string // "bf16", "4-bit g64", "mxfp4"
	Modules   int
}

// CacheLayout is what a model keeps for each token of its context.
type CacheLayout struct {
	FullLayers   int // layers that keep every token
	FullRow      int // elements of keys and values together, a token, in each of those
	WindowLayers int // layers that keep the last Window tokens
	WindowRow    int
	Window       int
}

// FamilyName returns the family's name for people.
func (d Description) FamilyName() string {
	switch d.Family {
	case Gemma4:
		return "Gemma 4"
	case Qwen3:
		return "Qwen 3"
	case DeepSpec:
		return "DeepSpec"
	case DFlash:
		return "DFlash"
	}
	return d.Family
}

// WeightBytes returns what the weights take once loaded: as stored, or with 16-bit floats widened to
// 32 bits, as they are on a CPU.
func (d Description) WeightBytes(widened bool) int64 {
	if widened {
		return d.TensorBytes + d.HalfBytes
	}
	return d.TensorBytes
}

// Quantized tells whether any weights are packed.
func (d Description) Quantized() bool { return d.Precision != typeName(d.DType) }

// Loadable returns nil if there is code for this family, otherwise an *checkpoint.Error of
// KindArchitecture whose Detail names what there is no code for.
func (d Description) Loadable() error {
	missing := func(what string) error {
		return &checkpoint.Error{Kind: checkpoint.KindArchitecture, Path: d.Dir, Detail: what}
	}
	name := d.Architecture
	if name == "" {
		name = d.FamilyName()
	}
	if !slices.Contains(Supported, d.Family) || d.TargetFamily != "" && !slices.Contains(Supported, d.TargetFamily) {
		return missing(name)
	}
	if d.Moe {
		return missing(name + " with a mixture of experts")
	}
	return nil
}

// Describe says what the folder dir is. dir may be anything that Resolve takes. No weights are read.
// The error is a *checkpoint.Error that says why the folder is not a whole model of a known family.
func Describe(dir string) (Description, error) {
	resolved, err := Resolve(dir)
	if err != nil {
		return Description{}, err
	}
	listing, err := checkpoint.List(resolved)
	if err != nil {
		return Description{}, err
	}
	d := Description{Dir: resolved, Name: Name(resolved), MaskToken: -1}
	// What it is comes before whether it is whole: "unknown model" helps more than "file missing".
	switch {
	case listing.Has("dspark.json"):
		err = d.readDSpark()
	case listing.Has("config.json"):
		err = d.readConfig()
	default:
		err = undescribed(listing)
	}
	if err != nil {
		return Description{}, err
	}
	f, err := checkpoint.Open(resolved)
	if err != nil {
		return Description{}, err
	}
	defer f.Close()
	if err := d.readTensors(f); err != nil {
		return Description{}, err
	}
	if d.Kind == Target {
		if d.EOS, err = f.EOS(); err != nil {
			return Description{}, err
		}
		if d.Generation, err = f.Generation(); err != nil {
			return Description{}, err
		}
	}
	return d, nil
}

// DescribeAs is Describe that also refuses a folder of the other role (KindWrongRole) and one that
// there is no code for (KindArchitecture).
func DescribeAs(role Role, dir string) (Description, error) {
	d, err := Describe(dir)
	if err != nil {
		return d, err
	}
	if d.Kind != role {
		return d, &checkpoint.Error{Kind: checkpoint.KindWrongRole, Path: d.Dir, Detail: fmt.Sprintf("it is a %s, not a %s", d.Kind, role)}
	}
	return d, d.Loadable()
}

// undescribed says what is wrong with a folder that has no configuration.
func undescribed(l *checkpoint.Listing) error {
	if len(l.Names) == 0 {
		return &checkpoint.Error{Kind: checkpoint.KindEmpty, Path: l.Dir, Detail: "the folder is empty"}
	}
	for _, name := range l.Names {
		if checkpoint.IsPartial(name) {
			return &checkpoint.Error{Kind: checkpoint.KindIncomplete, Path: l.Dir, Files: []string{"config.json"},
				Detail: "missing: config.json; " + name + " suggests an unfinished download"}
		}
	}
	for _, name := range l.Names {
		if strings.HasSuffix(name, ".safetensors") {
			return &checkpoint.Error{Kind: checkpoint.KindNoConfig, Path: l.Dir, Detail: "weights, but no config.json"}
		}
	}
	for _, name := range l.Names {
		if ext := strings.ToLower(filepath.Ext(name)); ext == ".gguf" || ext == ".npz" {
			return &checkpoint.Error{Kind: checkpoint.KindUnsupported, Path: l.Dir, Detail: fmt.Sprintf("its weights (%s) are not in safetensors format", name)}
		}
	}
	return &checkpoint.Error{Kind: checkpoint.KindNotACheckpoint, Path: l.Dir, Detail: "no config.json and no safetensors weights"}
}

// unread tells whether a tensor or module belongs to a part that is never read.
func (d *Description) unread(name string) bool {
	bare := checkpoint.Bare(name)
	if checkpoint.Beside(name) || d.tied && (bare == "lm_head" || strings.HasPrefix(bare, "lm_head.")) {
		return true
	}
	var layer int
	var module string
	if n, _ := fmt.Sscanf(bare, "layers.%d.self_attn.%s", &layer, &module); n != 2 || layer < d.Layers-d.borrowers {
		return false
	}
	return strings.HasPrefix(module, "k_") || strings.HasPrefix(module, "v_")
}

func (d *Description) readTensors(f *checkpoint.Folder) error {
	d.FileBytes = f.FileBytes()
	quantized := map[string]*checkpoint.Quantization{}
	for _, module := range f.QuantizedModules() {
		if d.unread(module) {
			continue
		}
		q, err := f.Quantization(module)
		if err != nil {
			return err
		}
		quantized[module] = q
	}
	count := map[string]int{}
	byType := map[checkpoint.DType]int64{}
	for _, name := range f.Names() {
		t, _ := f.Tensor(name)
		if d.unread(name) {
			d.SkippedBytes += t.Size
			continue
		}
		d.TensorBytes += t.Size
		// Rows of the table of token inputs are widened as they are looked up.
		half := t.DType == checkpoint.BF16 || t.DType == checkpoint.F16
		if half && !strings.HasPrefix(checkpoint.Bare(name), "embed_tokens_per_layer.") {
			d.HalfBytes += t.Size
		}
		module, part := name, ""
		if i := strings.LastIndexByte(name, '.'); i >= 0 {
			module, part = name[:i], name[i+1:]
		}
		if q := quantized[module]; q != nil {
			switch part {
			case "weight":
				d.Parameters += t.Elements() * 32 / int64(q.Bits)
				count[label(*q)]++
			case "bias":
				d.Parameters += t.Elements()
			}
			continue
		}
		if part == "weight" && t.DType == checkpoint.U32 {
			// Packed, but its scales are missing: let Quantization say so.
			if _, err := f.Quantization(module); err != nil {
				return err
			}
		}
		d.Parameters += t.Elements()
		byType[t.DType] += t.Size
		if len(t.Shape) >= 2 {
			count[typeName(t.DType)]++
		}
	}
	d.DType = most(byType)
	d.Precision = precision(quantized, d.DType)
	for p, n := range count {
		d.ModulesByPrecision = append(d.ModulesByPrecision, ModuleCount{p, n})
	}
	sort.Slice(d.ModulesByPrecision, func(i, j int) bool {
		a, b := d.ModulesByPrecision[i], d.ModulesByPrecision[j]
		if a.Modules != b.Modules {
			return a.Modules > b.Modules
		}
		return a.Precision < b.Precision
	})
	d.StatesQuantization = f.StatesQuantization() && len(quantized) == 0
	return nil
}

func typeName(t checkpoint.DType) string { return strings.ToLower(string(t)) }

// most returns the type that takes the most bytes, the first by name among equals.
func most(bytes map[checkpoint.DType]int64) checkpoint.DType {
	var best checkpoint.DType
	for t, n := range bytes {
		if best == "" || n > bytes[best] || n == bytes[best] && t < best {
			best = t
		}
	}
	return best
}

func label(q checkpoint.Quantization) string {
	if q.Mode == "affine" {
		return fmt.Sprintf("%d-bit g%d", q.Bits, q.GroupSize)
	}
	return q.Mode
}

// precision sums up how the quantized modules are packed; without any it is the type of the weights.
func precision(quantized map[string]*checkpoint.Quantization, dtype checkpoint.DType) string {
	if len(quantized) == 0 {
		return typeName(dtype)
	}
	low, high := 99, 0
	modes := map[string]bool{}
	for _, q := range quantized {
		low, high = min(low, q.Bits), max(high, q.Bits)
		modes[q.Mode] = true
	}
	switch {
	case len(modes) == 1 && !modes["affine"]:
		for mode := range modes {
			return mode
		}
		return ""
	case low != high:
		return fmt.Sprintf("%d–%d-bit mixed", low, high)
	}
	return fmt.Sprintf("%d-bit", low)
}
