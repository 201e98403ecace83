// Package tables finds out whether a drafter's embedding and output layer are its target's own,
// so that they need not be held twice. What was found is remembered, since looking means to read
// all of them once.
package tables

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"firesteel/core/library"
	"firesteel/models/checkpoint"
	"firesteel/models/nn"
)

const (
	// sampleRows are compared first: different tables differ nearly everywhere.
	sampleRows = 4096
	// pieceBytes is about how much is read at a time.
	pieceBytes = 16 << 20
	// remembered is how many answers are kept.
	remembered = 64
)

// Place is the usual folder for what was found.
func Place() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "Firesteel"), nil
}

// Shared tells whether the tables of the DeepSpec drafter in folder drafter are those of target:
// the same values, or the same once they are packed as the target's are. It reads both files, once:
// the answer is kept in the folder place ("" keeps nothing) for these very files. To be called on
// the inference thread.
func Shared(ctx context.Context, target, drafter *checkpoint.Folder, place string) (bool, error) {
	pairs, ok := match(target, drafter)
	if !ok {
		return false, nil
	}
	key, err := key(target, drafter)
	if err != nil {
		return false, err
	}
	if known, ok := recall(place, key); ok {
		return known, nil
	}
	shared := true
	for _, p := range pairs {
		if shared, err = p.same(ctx); err != nil || !shared {
			break
		}
	}
	if err != nil {
		return false, err
	}
	keep(place, key, shared)
	return shared, nil
}

// Held describes what the drafter will take once it is loaded beside target: less than it has on the
// disk where its tables are known, by what is kept in place, to be the target's.
func Held(target, drafter library.Description, place string) library.Description {
	t, err := checkpoint.Open(target.Dir)
	if err != nil {
		return drafter
	}
	defer t.Close()
	d, err := checkpoint.Open(drafter.Dir)
	if err != nil {
		return drafter
	}
	defer d.Close()
	pairs, ok := match(t, d)
	if !ok {
		return drafter
	}
	if key, err := key(t, d); err != nil {
		return drafter
	} else if shared, _ := recall(place, key); !shared {
		return drafter
	}
	for _, p := range pairs {
		for i, part := range p.ours.parts {
			drafter.TensorBytes -= part.Size
			if part.DType.Float() && part.DType.Size() == 2 {
				drafter.HalfBytes -= part.Size
			}
			if i > 0 {
				continue
			}
			numbers := part.Elements()
			if p.ours.q != nil {
				numbers = numbers * 32 / int64(p.ours.q.Bits)
			}
			drafter.Parameters -= numbers
		}
	}
	return drafter
}

// table is one stored table, plain or packed.
type table struct {
	folder *checkpoint.Folder
	parts  []checkpoint.Tensor // weight; or weight, scales and biases
	q      *checkpoint.Quantization
}

type couple struct{ theirs, ours table }

// match pairs the drafter's tables with the target's, if they could be the same.
func match(target, drafter *checkpoint.Folder) ([]couple, bool) {
	text, err := target.Config().Text()
	if err != nil {
		return nil, false
	}
	t, d := &checkpoint.Fields{Config: text}, &checkpoint.Fields{Config: drafter.Config()}
	if t.Number("final_logit_softcapping", 0) != d.Number("final_logit_softcapping", 0) || t.Whole("vocab_size", -1) != d.Whole("vocab_size", -2) ||
		t.Err != nil || d.Err != nil {
		return nil, false
	}
	embedding, ok := find(target, "embed_tokens")
	if !ok {
		return nil, false
	}
	head := embedding
	kind := t.Text("model_type", "")
	if tied := t.Flag("tie_word_embeddings", kind != "qwen3"); !tied {
		if head, ok = find(target, "lm_head"); !ok {
			return nil, false
		}
	}
	var pairs []couple
	for name, theirs := range map[string]table{"embed_tokens": embedding, "lm_head": head} {
		ours, ok := find(drafter, name)
		if !ok || ours.parts[0].Shape[0] != theirs.parts[0].Shape[0] {
			return nil, false
		}
		switch {
		case ours.q == nil && theirs.q == nil:
			if !slices.Equal(ours.parts[0].Shape, theirs.parts[0].Shape) || ours.parts[0].DType != theirs.parts[0].DType {
				return nil, false
			}
		case ours.q == nil:
			if !plain(ours.parts[0]) || ours.parts[0].Shape[1]*theirs.q.Bits/32 != theirs.parts[0].Shape[1] ||
				theirs.q.Mode == "affine" && theirs.parts[1].DType != checkpoint.BF16 {
				return nil, false
			}
		case theirs.q == nil || *ours.q != *theirs.q || !slices.Equal(ours.parts[0].Shape, theirs.parts[0].Shape):
			return nil, false
		}
		pairs = append(pairs, couple{theirs, ours})
	}
	return pairs, true
}

func plain(t checkpoint.Tensor) bool {
	_, ok := nn.PlainDType(t.DType)
	return ok
}

// find is the table of that name, whatever it is wrapped in.
func find(f *checkpoint.Folder, module string) (table, bool) {
	name, ok := f.Find(module + ".weight")
	if !ok {
		return table{}, false
	}
	module = name[:len(name)-len(".weight")]
	q, err := f.Quantization(module)
	if err != nil {
		return table{}, false
	}
	t := table{folder: f, q: q}
	for _, suffix := range []string{".weight", ".scales", ".biases"} {
		if part, ok := f.Tensor(module + suffix); ok && (suffix == ".weight" || q != nil) {
			t.parts = append(t.parts, part)
		}
	}
	return t, len(t.parts[0].Shape) == 2
}

// same compares a sample, then all rows.
func (c couple) same(ctx context.Context) (bool, error) {
	rows := c.ours.parts[0].Shape[0]
	if rows > sampleRows {
		random := rand.New(rand.NewPCG(1, 2))
		var sample [][2]int
		for range sampleRows {
			row := random.IntN(rows)
			sample = append(sample, [2]int{row, row + 1})
		}
		if same, err := c.sameRows(ctx, sample); err != nil || !same {
			return false, err
		}
	}
	step := max(1, int(pieceBytes*int64(rows)/c.ours.parts[0].Size))
	for from := 0; from < rows; from += step {
		if same, err := c.sameRows(ctx, [][2]int{{from, min(from+step, rows)}}); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// sameRows compares ranges of rows.
func (c couple) sameRows(ctx context.Context, ranges [][2]int) (bool, error) {
	theirs, err := c.theirs.read(ctx, ranges)
	if err != nil {
		return false, err
	}
	ours, err := c.ours.read(ctx, ranges)
	if err != nil {
		return false, err
	}
	if c.theirs.q != nil && c.ours.q == nil {
		t := c.ours.parts[0]
		if ours, err = nn.Pack(ours[0], t.DType, t.Shape[1], *c.theirs.q); err != nil {
			return false, err
		}
	}
	return slices.EqualFunc(ours, theirs, bytes.Equal), nil
}

// read joins ranges of rows, part by part.
func (t table) read(ctx context.Context, ranges [][2]int) ([][]byte, error) {
	var all [][]byte
	for _, part := range t.parts {
		var joined []byte
		for _, r := range ranges {
			rows := part.Part(r[0], r[1])
			at := len(joined)
			joined = append(joined, make([]byte, rows.Size)...)
			if err := t.folder.Read(ctx, rows, joined[at:]); err != nil {
				return nil, err
			}
		}
		all = append(all, joined)
	}
	return all, nil
}

// key names the files of both folders: their places, lengths and times.
func key(folders ...*checkpoint.Folder) (string, error) {
	h := sha256.New()
	for _, f := range folders {
		files := map[string]bool{}
		for _, name := range f.Names() {
			t, _ := f.Tensor(name)
			files[t.File] = true
		}
		names := make([]string, 0, len(files)+1)
		for name := range files {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range append(names, "config.json") {
			path, err := filepath.Abs(filepath.Join(f.Dir(), name))
			if err != nil {
				return "", err
			}
			info, err := os.Stat(path)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(h, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

const fileName = "tables.json"

// found is what is remembered, the newest last.
type found struct {
	Pairs []answer `json:"pairs"`
}

type answer struct {
	Key    string `json:"key"`
	Shared bool   `json:"shared"`
}

func (f *found) read(place string) {
	c, err := checkpoint.ReadConfig(filepath.Join(place, fileName))
	if err != nil {
		return
	}
	list, err := c.Objects("pairs")
	if err != nil {
		return
	}
	for _, o := range list {
		e := &checkpoint.Fields{Config: o}
		f.Pairs = append(f.Pairs, answer{e.Text("key", ""), e.Flag("shared", false)})
	}
}

func recall(place, key string) (shared, ok bool) {
	if place == "" {
		return false, false
	}
	var f found
	f.read(place)
	i := slices.IndexFunc(f.Pairs, func(a answer) bool { return a.Key == key })
	if i < 0 {
		return false, false
	}
	return f.Pairs[i].Shared, true
}

// keep remembers an answer; a place that can't be written to costs only time.
func keep(place, key string, shared bool) {
	if place == "" || os.MkdirAll(place, 0o700) != nil {
		return
	}
	var f found
	f.read(place)
	f.Pairs = append(f.Pairs, answer{key, shared})
	f.Pairs = f.Pairs[max(0, len(f.Pairs)-remembered):]
	checkpoint.WriteJSON(filepath.Join(place, fileName), f)
}
