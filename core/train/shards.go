package train

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"firesteel/models/checkpoint"
)

// shardBytes is how much of prepared texts is gathered before it goes to the disk, and what a
// break costs at most.
const shardBytes = 32 << 20

// entry is where a text lies in its shard.
type entry struct {
	From   int `json:"from"` // first row
	Rows   int `json:"rows"`
	Answer int `json:"answer"` // rows before the answer
}

// shard is one folder of prepared texts.
type shard struct {
	folder  *checkpoint.Folder
	entries []entry
}

// texts are prepared texts on disk, in the order of the questions they come from.
type texts struct {
	dir    string
	width  int // of a row of taps
	hidden int
	shards []shard

	// What is gathered for the next shard.
	pending entryList
	count   int
	bytes   int64
}

type entryList struct {
	entries      []entry
	ids          []int32
	taps, hidden []byte
}

const entriesName = "texts.json"

// openTexts opens what was prepared in dir so far. A shard is there whole or not at all.
func openTexts(dir string, width, hidden int) (*texts, error) {
	t := &texts{dir: dir, width: width, hidden: hidden}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, &checkpoint.Error{Kind: checkpoint.KindNotWritable, Path: dir, Err: err}
	}
	if left, err := checkpoint.Unfinished(dir); err == nil {
		for _, path := range left {
			os.RemoveAll(path)
		}
	}
	for {
		err := t.open(t.shardDir(len(t.shards)))
		if errors.Is(err, fs.ErrNotExist) {
			return t, nil
		}
		if err != nil {
			t.close()
			return nil, err
		}
	}
}

func (t *texts) shardDir(i int) string { return filepath.Join(t.dir, fmt.Sprintf("shard-%05d", i)) }

func (t *texts) open(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, entriesName))
	if err != nil {
		return err
	}
	var s shard
	if err := json.Unmarshal(raw, &s.entries); err != nil {
		return &checkpoint.Error{Kind: checkpoint.KindCorrupt, Path: filepath.Join(dir, entriesName), Err: err}
	}
	if s.folder, err = checkpoint.Open(dir); err != nil {
		return err
	}
	rows := 0
	for _, e := range s.entries {
		rows += e.Rows
	}
	for name, shape := range map[string][]int{"ids": {rows}, "taps": {rows, t.width}, "hidden": {rows, t.hidden}} {
		have, ok := s.folder.Tensor(name)
		if !ok || fmt.Sprint(have.Shape) != fmt.Sprint(shape) {
			s.folder.Close()
			return &checkpoint.Error{Kind: checkpoint.KindMismatch, Path: dir, Tensor: name, Detail: fmt.Sprintf("is not of shape %v", shape)}
		}
	}
	t.shards = append(t.shards, s)
	t.count += len(s.entries)
	t.bytes += s.folder.FileBytes()
	return nil
}

func (t *texts) close() {
	for _, s := range t.shards {
		s.folder.Close()
	}
}

// add takes a text in; it is on the disk after the next flush.
func (t *texts) add(x text, r rows) error {
	p := &t.pending
	p.entries = append(p.entries, entry{From: len(p.ids), Rows: len(x.ids), Answer: x.answer})
	p.ids = append(p.ids, x.ids...)
	p.taps, p.hidden = append(p.taps, r.taps...), append(p.hidden, r.hidden...)
	if len(p.taps)+len(p.hidden) >= shardBytes {
		return t.flush()
	}
	return nil
}

// flush writes what was gathered as a shard.
func (t *texts) flush() error {
	p := t.pending
	if len(p.entries) == 0 {
		return nil
	}
	dir := t.shardDir(len(t.shards))
	stage, err := checkpoint.NewStage(dir)
	if err != nil {
		return err
	}
	defer stage.Discard()
	n := len(p.ids)
	w, err := checkpoint.CreateWeights(stage.Dir, checkpoint.Layout{Tensors: []checkpoint.Tensor{
		{Name: "ids", DType: checkpoint.I32, Shape: []int{n}},
		{Name: "taps", DType: checkpoint.BF16, Shape: []int{n, t.width}},
		{Name: "hidden", DType: checkpoint.BF16, Shape: []int{n, t.hidden}},
	}})
	if err != nil {
		return err
	}
	defer w.Abandon()
	ids, err := binary.Append(nil, binary.LittleEndian, p.ids)
	if err != nil {
		return err
	}
	for name, raw := range map[string][]byte{"ids": ids, "taps": p.taps, "hidden": p.hidden} {
		if err := w.Append(name, raw); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := checkpoint.WriteJSON(filepath.Join(stage.Dir, entriesName), p.entries); err != nil {
		return err
	}
	if err := stage.Commit(false); err != nil {
		return err
	}
	t.pending = entryList{}
	return t.open(dir)
}

// place finds text i.
func (t *texts) place(i int) (*checkpoint.Folder, entry) {
	for _, s := range t.shards {
		if i < len(s.entries) {
			return s.folder, s.entries[i]
		}
		i -= len(s.entries)
	}
	panic("train: no such text")
}

// read fills dst with rows from to to (excluded) of a tensor of text i.
func (t *texts) read(ctx context.Context, i int, tensor string, from, to int) ([]byte, error) {
	folder, e := t.place(i)
	whole, _ := folder.Tensor(tensor)
	part := whole.Part(e.From+from, e.From+to)
	raw := make([]byte, part.Size)
	return raw, folder.Read(ctx, part, raw)
}

// ids are the tokens of text i.
func (t *texts) ids(ctx context.Context, i int) ([]int32, error) {
	_, e := t.place(i)
	raw, err := t.read(ctx, i, "ids", 0, e.Rows)
	if err != nil {
		return nil, err
	}
	ids := make([]int32, e.Rows)
	_, err = binary.Decode(raw, binary.LittleEndian, ids)
	return ids, err
}
