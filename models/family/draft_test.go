package family

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"firesteel/mlxbind"
	"firesteel/models/checkpoint"
	"firesteel/models/internal/mlxtest"
)

const goldens = "../testdata/goldens"

type object = map[string]any

// tensor is one to be written: where, and what.
type tensor struct {
	file  string
	dtype checkpoint.DType
	shape []int
	data  []byte
}

// draft is a checkpoint in memory, to be changed and written.
type draft struct {
	t       *testing.T
	config  object
	tensors map[string]tensor
	files   map[string]string // others, by name
}

// draftOf reads a fixture's configuration and weights.
func draftOf(t *testing.T, fixture string) *draft {
	t.Helper()
	dir := filepath.Join(goldens, fixture)
	d := &draft{t: t, tensors: map[string]tensor{}, files: map[string]string{}}
	raw, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err == nil {
		err = json.Unmarshal(raw, &d.config)
	}
	if err != nil {
		t.Fatal(err)
	}
	folder := mlxtest.Golden(t, fixture)
	for _, name := range folder.Names() {
		x, _ := folder.Tensor(name)
		data := make([]byte, x.Size)
		if err := folder.Read(context.Background(), x, data); err != nil {
			t.Fatal(err)
		}
		d.tensors[name] = tensor{"model.safetensors", x.DType, x.Shape, data}
	}
	return d
}

// text is the language model's own configuration.
func (d *draft) text() object {
	if nested, ok := d.config["text_config"].(object); ok {
		return nested
	}
	return d.config
}

// rename gives every tensor another name; an empty one drops it.
func (d *draft) rename(to func(string) string) {
	renamed := map[string]tensor{}
	for name, x := range d.tensors {
		if name = to(name); name != "" {
			renamed[name] = x
		}
	}
	d.tensors = renamed
}

// deal puts tensors into files.
func (d *draft) deal(file func(name string) string) {
	for name, x := range d.tensors {
		x.file = file(name)
		d.tensors[name] = x
	}
}

// index writes an index of the files that the tensors are in.
func (d *draft) index() {
	places := map[string]string{}
	for name, x := range d.tensors {
		places[name] = x.file
	}
	d.indexOf(places)
}

func (d *draft) indexOf(places map[string]string) {
	d.files["model.safetensors.index.json"] = d.json(object{"metadata": object{}, "weight_map": places})
}

// noise adds a tensor of values that would be noticed if they were used.
func (d *draft) noise(name string, shape ...int) {
	n := 1
	for _, size := range shape {
		n *= size
	}
	data := make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(data[4*i:], 0x41200000+uint32(i%97)<<12) // 10 and more
	}
	d.tensors[name] = tensor{"model.safetensors", checkpoint.F32, shape, data}
}

// head is how many bytes the output layer has that is to be read.
func (d *draft) head() (bytes int64) {
	tied, said := d.config["tie_word_embeddings"].(bool)
	if tied || !said && d.text()["model_type"] != "qwen3" {
		return 0
	}
	for name, x := range d.tensors {
		if strings.HasPrefix(checkpoint.Bare(name), "lm_head.") {
			bytes += int64(len(x.data))
		}
	}
	return bytes
}

func (d *draft) json(v any) string {
	d.t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		d.t.Fatal(err)
	}
	return string(raw)
}

// write puts the checkpoint into a new folder.
func (d *draft) write() string {
	d.t.Helper()
	dir := d.t.TempDir()
	byFile := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(d.tensors)) {
		file := d.tensors[name].file
		byFile[file] = append(byFile[file], name)
	}
	files := maps.Clone(d.files)
	files["config.json"] = d.json(d.config)
	for file, names := range byFile {
		header := object{}
		var data []byte
		for _, name := range names {
			x := d.tensors[name]
			header[name] = object{"dtype": x.dtype, "shape": x.shape, "data_offsets": []int{len(data), len(data) + len(x.data)}}
			data = append(data, x.data...)
		}
		text := d.json(header)
		files[file] = string(binary.LittleEndian.AppendUint64(nil, uint64(len(text)))) + text + string(data)
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			d.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			d.t.Fatal(err)
		}
	}
	return dir
}

// outcome is what a folder computes for a few tokens, and how many bytes loading it read.
type outcome struct {
	logits []float32
	read   int64
	err    error
}

// try opens the target in dir and reads twenty tokens, more than the fixtures' sliding windows.
func try(t *testing.T, dir string) (o outcome) {
	t.Helper()
	mlxtest.On(t, func(s *mlxbind.Scope) {
		folder, err := checkpoint.Open(dir)
		if err != nil {
			o.err = err
			return
		}
		defer folder.Close()
		target, err := OpenTarget(context.Background(), folder, func(done int64) { o.read = done })
		if err != nil {
			o.err = err
			return
		}
		defer target.Close()
		state := target.NewState()
		defer state.Close()
		tokens := make([]int32, 20)
		for i := range tokens {
			tokens[i] = int32(7 + 13*i)
		}
		hidden, _ := target.Forward(s, state, s.Ints(tokens), nil)
		o.logits, o.err = s.ReadFloats(target.Logits(s, hidden))
	})
	return o
}

// refused asserts that err is a *checkpoint.Error of this kind that mentions parts.
func refused(t *testing.T, err error, kind checkpoint.Kind, parts ...string) {
	t.Helper()
	var e *checkpoint.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *checkpoint.Error", err)
	}
	if e.Kind != kind {
		t.Errorf("got kind %q, want %q: %v", e.Kind, kind, err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not mention %q", err, part)
		}
	}
}
