package checkpoint

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// DSpark is what dspark.json says of a trainable drafter.
type DSpark struct {
	TargetID string // name@HIDDENxVOCABULARY of the target it was trained for; "" when it does not say

	Gamma       int // drafts in a block
	Width       int // of the drafter's own layers
	Layers      int
	Heads       int
	Rank        int   // of the Markov head
	FeedForward int   // the inner width of a feed-forward block ÷ Width
	Taps        []int // layers of the target that it reads; the number of layers stands for the final norm
	Head        string
	Calibration *Calibration // nil when it was never calibrated

	Hidden, Vocabulary int // of the target
	Eps                float64
}

// The kinds of DSpark.Head.
const (
	HeadMarkov = "markov"
	HeadRNN    = "rnn"
)

// Calibration is dspark.json's config.sts: how sure each slot must be. No thresholds means that
// none is wanted.
type Calibration struct {
	Thresholds []float64 `json:"thresholds"`
	Target     float64   `json:"target"`
	Samples    int       `json:"samples,omitempty"`
}

// HasDSpark tells whether the folder dir has a dspark.json: then nothing else there says what it is.
func HasDSpark(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, dsparkName))
	return err == nil
}

// ReadDSpark reads and checks dspark.json in the folder dir. One without a variant is refused
// with KindSuperseded.
func ReadDSpark(dir string) (*DSpark, error) {
	file, err := ReadConfig(filepath.Join(dir, dsparkName))
	if err != nil {
		return nil, err
	}
	c := &Fields{Config: file}
	if kind := c.Text("kind", "dspark-drafter"); c.Err == nil && kind != "dspark-drafter" {
		return nil, &Error{Kind: KindUnsupported, Path: file.Path(), Key: "kind", Detail: kind}
	}
	if variant := c.Text("variant", "none"); c.Err == nil && variant != "dspark" && variant != "dflash" {
		return nil, &Error{Kind: KindSuperseded, Path: dir,
			Detail: fmt.Sprintf("a superseded v1 single-vector drafter (variant=%s); it has to be trained again", variant)}
	}
	d := &DSpark{TargetID: c.Text("target_id", "")}
	if c.Err != nil {
		return nil, c.Err
	}
	sizes, err := file.Object("dims")
	if err != nil {
		return nil, err
	}
	config, err := file.ObjectOr("config")
	if err != nil {
		return nil, err
	}
	c = &Fields{Config: sizes}
	d.Hidden, d.Vocabulary, d.Eps = c.Count("hiddenSize"), c.Count("vocabSize"), c.Number("eps", 1e-6)
	if c.Err != nil {
		return nil, c.Err
	}
	c = &Fields{Config: config}
	count := func(key string, absent int) int {
		if !config.Has(key) {
			return absent
		}
		return c.Count(key)
	}
	d.Gamma, d.Width, d.Layers, d.Heads = count("gamma", 5), count("dDraft", 1024), count("nLayers", 5), count("nHeads", 8)
	d.Rank, d.FeedForward = count("markovRank", 256), count("ffMult", 2)
	d.Head = c.Text("seqHead", HeadMarkov)
	d.Taps = []int{20, 31, 41, 42}
	if config.Has("tapLayers") {
		d.Taps = c.Wholes("tapLayers")
	}
	if c.Err == nil && config.Has("sts") {
		d.Calibration, c.Err = readCalibration(config)
	}
	if c.Err != nil {
		return nil, c.Err
	}
	return d, d.check(config)
}

func readCalibration(config *Config) (*Calibration, error) {
	sts, err := config.Object("sts")
	if err != nil {
		return nil, err
	}
	c := &Fields{Config: sts}
	cal := &Calibration{Target: c.Number("target", 0), Samples: c.Whole("samples", 0)}
	if c.Err == nil && sts.Has("thresholds") {
		cal.Thresholds, c.Err = sts.Floats("thresholds")
	}
	return cal, c.Err
}

// check refuses what no drafter can be; config is for messages.
func (d *DSpark) check(config *Config) error {
	switch {
	case d.Width%d.Heads != 0:
		return config.Fail("dDraft", "%d is not divisible by %d heads", d.Width, d.Heads)
	case len(d.Taps) == 0 || slices.Min(d.Taps) < 0:
		return config.Fail("tapLayers", "%v is not a list of layers", d.Taps)
	case d.Head != HeadMarkov && d.Head != HeadRNN:
		return config.Fail("seqHead", "%q is not a kind of head that is known", d.Head)
	case d.Calibration != nil && len(d.Calibration.Thresholds) > d.Gamma:
		return config.Fail("sts", "has %d thresholds for %d drafts", len(d.Calibration.Thresholds), d.Gamma)
	}
	return nil
}

// Check refuses what no drafter can be.
func (d *DSpark) Check() error {
	for key, n := range map[string]int{"gamma": d.Gamma, "dDraft": d.Width, "nLayers": d.Layers, "nHeads": d.Heads,
		"markovRank": d.Rank, "ffMult": d.FeedForward, "hiddenSize": d.Hidden, "vocabSize": d.Vocabulary} {
		if n < 1 {
			return (&Config{path: dsparkName}).Fail(key, "%d is out of range", n)
		}
	}
	return d.check(&Config{path: dsparkName})
}

// Tensors are the drafter's parameters in the order of its file, matrices as [in, out].
func (d *DSpark) Tensors() []Tensor {
	var list []Tensor
	add := func(name string, shape ...int) { list = append(list, Tensor{Name: name, DType: F32, Shape: shape}) }
	w, inner := d.Width, d.FeedForward*d.Width
	for i := range d.Layers {
		layer := fmt.Sprintf("bb.%d.", i)
		add(layer+"attn_norm", w)
		for _, matrix := range []string{"q", "k", "v", "o"} {
			add(layer+matrix, w, w)
		}
		add(layer+"ff_norm", w)
		add(layer+"gate", w, inner)
		add(layer+"up", w, inner)
		add(layer+"down", inner, w)
	}
	add("W_c", len(d.Taps)*d.Hidden, w)
	add("ctx_norm", w)
	add("tok_proj", d.Hidden, w)
	add("mask_emb", d.Gamma-1, w)
	add("block_pos", d.Gamma, w)
	add("out_norm", w)
	add("out_proj", w, d.Hidden)
	add("markov.w1", d.Vocabulary, d.Rank)
	add("markov.w2", d.Rank, d.Vocabulary)
	add("conf.w", w+d.Rank, 1)
	add("conf.b", 1)
	if d.Head == HeadRNN {
		add("rnn.wH", d.Rank, d.Rank)
		add("rnn.bH", d.Rank)
		add("rnn.wO", d.Rank, d.Vocabulary)
	}
	return list
}

// Write writes dspark.json into the folder dir, and the config.json by which others see that the
// folder holds a drafter and no model.
func (d *DSpark) Write(dir string) error {
	config := map[string]any{"gamma": d.Gamma, "dDraft": d.Width, "nLayers": d.Layers, "nHeads": d.Heads, "markovRank": d.Rank,
		"ffMult": d.FeedForward, "tapLayers": d.Taps, "seqHead": d.Head}
	if d.Calibration != nil {
		config["sts"] = d.Calibration.written()
	}
	var names []string
	for _, t := range d.Tensors() {
		names = append(names, t.Name)
	}
	err := WriteJSON(filepath.Join(dir, configName), map[string]any{
		"model_type": "dspark_assistant", "architectures": []string{"DsparkDrafter"}, "hidden_size": d.Width,
		"vocab_size": d.Vocabulary, "target_hidden_size": d.Hidden, "target_id": d.TargetID,
	})
	if err != nil {
		return err
	}
	return WriteJSON(filepath.Join(dir, dsparkName), map[string]any{
		"kind": "dspark-drafter", "variant": "dspark", "version": 1, "target_id": d.TargetID, "config": config,
		"dims": map[string]any{"hiddenSize": d.Hidden, "vocabSize": d.Vocabulary, "eps": d.Eps}, "param_names": names,
	})
}

// written is c with a list where there are no thresholds.
func (c Calibration) written() Calibration {
	if c.Thresholds == nil {
		c.Thresholds = []float64{}
	}
	return c
}

// WriteCalibration puts c in the place of config.sts in the dspark.json of the folder dir and
// leaves everything else in it as it is.
func WriteCalibration(dir string, c Calibration) error {
	if _, err := ReadDSpark(dir); err != nil {
		return err
	}
	path := filepath.Join(dir, dsparkName)
	text, err := os.ReadFile(path)
	if err != nil {
		return FileError(path, err)
	}
	// Values that are not ours stay as they are written, to the last digit.
	var file, config map[string]json.RawMessage
	if err := json.Unmarshal([]byte(strings.TrimPrefix(string(text), "\ufeff")), &file); err != nil {
		return &Error{Kind: KindCorrupt, Path: path, Err: err}
	}
	if raw := file["config"]; raw != nil {
		if err := json.Unmarshal(raw, &config); err != nil {
			return &Error{Kind: KindCorrupt, Path: path, Key: "config", Err: err}
		}
	}
	if config == nil {
		config = map[string]json.RawMessage{}
	}
	config["sts"] = mustJSON(c.written())
	file["config"] = mustJSON(config)
	return WriteJSON(path, file)
}
