package checkpoint

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ShardLimit is how many bytes of tensors one weights file holds at most, unless a single tensor
// is larger.
const ShardLimit = 5 << 30

// Layout says what weights are to be written.
type Layout struct {
	// Tensors in the order they lie in the files: Name, DType and Shape; the rest is worked out.
	Tensors []Tensor
	// ShardLimit is the most bytes of tensors in a file; 0 means the constant of that name. A tensor
	// is never split.
	ShardLimit int64
	// Metadata goes into each file's header; "format" is "mlx" where it does not say.
	Metadata map[string]string
	// Parameters is the count that an index states; 0 means the number of elements.
	Parameters int64
}

// Writer writes the weights of a checkpoint, in one file or in shards with an index. All places
// are known from the start, so tensors may be filled in any order, or several side by side, and
// nothing is kept in memory. It takes no locks: one goroutine at a time.
type Writer struct {
	dir     string
	layout  Layout
	files   map[string]*os.File
	tensors map[string]*filling
	size    int64
	index   bool
}

// filling is a tensor and how much of it has been written.
type filling struct {
	Tensor
	done int64
}

// CreateWeights makes the weights files of layout in dir, which must have none of them yet, and
// writes their headers. The caller ends with Close, or with Abandon, and removes dir if it fails.
func CreateWeights(dir string, layout Layout) (*Writer, error) {
	if layout.ShardLimit <= 0 {
		layout.ShardLimit = ShardLimit
	}
	w := &Writer{dir: dir, layout: layout, files: map[string]*os.File{}, tensors: map[string]*filling{}}
	shards, err := w.fill()
	if err != nil {
		return nil, err
	}
	w.index = len(shards) > 1
	for i, shard := range shards {
		name := weightsName
		if w.index {
			name = fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(shards))
		}
		if err := w.create(name, shard); err != nil {
			w.Abandon()
			return nil, err
		}
	}
	return w, nil
}

// FileBytes is how many bytes the weights files will have, headers included.
func (l Layout) FileBytes() (int64, error) {
	if l.ShardLimit <= 0 {
		l.ShardLimit = ShardLimit
	}
	w := &Writer{layout: l, tensors: map[string]*filling{}}
	shards, err := w.fill()
	total := w.size
	for _, shard := range shards {
		total += int64(len(w.header(shard)))
	}
	return total, err
}

// fill deals the tensors out to shards, as many to each as it holds.
func (w *Writer) fill() ([][]*filling, error) {
	shards := [][]*filling{nil}
	used := int64(0)
	for _, t := range w.layout.Tensors {
		width := int64(t.DType.Size())
		if width == 0 {
			return nil, &Error{Kind: KindUnsupported, Path: w.dir, Tensor: t.Name, Detail: fmt.Sprintf("its type %q is not known", t.DType)}
		}
		if w.tensors[t.Name] != nil {
			return nil, &Error{Kind: KindCorrupt, Path: w.dir, Tensor: t.Name, Detail: "it is to be written twice"}
		}
		t.Size = t.Elements() * width
		if used > 0 && used+t.Size > w.layout.ShardLimit {
			shards, used = append(shards, nil), 0
		}
		f := &filling{Tensor: t}
		w.tensors[t.Name] = f
		shards[len(shards)-1] = append(shards[len(shards)-1], f)
		used += t.Size
		w.size += t.Size
	}
	return shards, nil
}

// create writes the header of one file and gives the file its full length.
func (w *Writer) create(name string, tensors []*filling) error {
	header := w.header(tensors)
	path := filepath.Join(w.dir, name)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return writeError(path, "", err)
	}
	w.files[name] = file
	if _, err := file.Write(header); err != nil {
		return writeError(path, "", err)
	}
	end := int64(len(header))
	for _, t := range tensors {
		t.File, t.Offset = name, end
		end += t.Size
	}
	return writeError(path, "", file.Truncate(end))
}

// header is the length and JSON of a file's header, padded so that tensors begin at a multiple
// of 8 bytes.
func (w *Writer) header(tensors []*filling) []byte {
	metadata := map[string]string{"format": "mlx"}
	for k, v := range w.layout.Metadata {
		metadata[k] = v
	}
	b := bytes.NewBuffer(make([]byte, 8))
	b.WriteString(`{"__metadata__":`)
	b.Write(mustJSON(metadata))
	at := int64(0)
	for _, t := range tensors {
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		b.WriteByte(',')
		b.Write(mustJSON(t.Name))
		b.WriteByte(':')
		b.Write(mustJSON(struct {
			DType   DType    `json:"dtype"`
			Shape   []int    `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}{t.DType, shape, [2]int64{at, at + t.Size}}))
		at += t.Size
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	out := b.Bytes()
	binary.LittleEndian.PutUint64(out, uint64(len(out)-8))
	return out
}

// mustJSON encodes texts, numbers and lists of them, which cannot fail.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// Bytes is the sum of all tensors' bytes.
func (w *Writer) Bytes() int64 { return w.size }

// Append writes the next bytes of a tensor.
func (w *Writer) Append(tensor string, data []byte) error {
	t := w.tensors[tensor]
	if t == nil {
		return &Error{Kind: KindMismatch, Path: w.dir, Tensor: tensor, Detail: "it is not to be written"}
	}
	if t.done+int64(len(data)) > t.Size {
		return &Error{Kind: KindMismatch, Path: filepath.Join(w.dir, t.File), Tensor: tensor,
			Detail: fmt.Sprintf("%d bytes are more than its shape %v holds", t.done+int64(len(data)), t.Shape)}
	}
	n, err := w.files[t.File].WriteAt(data, t.Offset+t.done)
	t.done += int64(n)
	return writeError(filepath.Join(w.dir, t.File), tensor, err)
}

// Close checks that every tensor is complete, brings everything to the disk and writes the index
// if there are shards. It closes the files also when it fails.
func (w *Writer) Close() error {
	defer w.Abandon()
	for _, t := range w.layout.Tensors {
		if f := w.tensors[t.Name]; f.done != f.Size {
			return &Error{Kind: KindMismatch, Path: filepath.Join(w.dir, f.File), Tensor: t.Name,
				Detail: fmt.Sprintf("%d of its %d bytes were written", f.done, f.Size)}
		}
	}
	for name, file := range w.files {
		if err := errors.Join(file.Sync(), file.Close()); err != nil {
			return writeError(filepath.Join(w.dir, name), "", err)
		}
		delete(w.files, name)
	}
	if w.index {
		if err := w.writeIndex(); err != nil {
			return err
		}
	}
	return syncFolder(w.dir)
}

func (w *Writer) writeIndex() error {
	places := map[string]string{}
	parameters := w.layout.Parameters
	for name, t := range w.tensors {
		places[name] = t.File
		if w.layout.Parameters == 0 {
			parameters += t.Elements()
		}
	}
	return WriteJSON(filepath.Join(w.dir, indexName), map[string]any{
		"metadata":   map[string]int64{"total_size": w.size, "total_parameters": parameters},
		"weight_map": places,
	})
}

// Abandon closes the files as they are.
func (w *Writer) Abandon() {
	for name, file := range w.files {
		file.Close()
		delete(w.files, name)
	}
}

// WriteJSON writes v, indented, to the file at path and brings it to the disk. The file appears
// whole or not at all, in place of one that was there.
func WriteJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return writeError(path, "", err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), hidden(filepath.Base(path)))
	if err != nil {
		return writeError(path, "", err)
	}
	_, err = file.Write(append(text, '\n'))
	err = errors.Join(err, file.Chmod(0o644), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
		return writeError(path, "", err)
	}
	return syncFolder(filepath.Dir(path))
}

func writeError(path, tensor string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: KindNotWritable, Path: path, Tensor: tensor, Err: err}
}

// syncFolder brings a folder's list of names to the disk. Some drives cannot, and need not.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return writeError(dir, "", err)
	}
	f.Sync()
	return writeError(dir, "", f.Close())
}
