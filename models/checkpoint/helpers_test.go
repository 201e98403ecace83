package checkpoint

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const fixtures = "../testdata/goldens"

// item is a tensor to write; its bytes are zero unless data is given.
type item struct {
	name  string
	dtype DType
	shape []int
	data  []byte
}

// raw joins a header text and data into a file's bytes.
func raw(header string, data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

// pack makes a good safetensors file.
func pack(t testing.TB, items ...item) []byte {
	t.Helper()
	header := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	var data []byte
	for _, it := range items {
		n := it.dtype.Size()
		for _, d := range it.shape {
			n *= d
		}
		b := it.data
		if b == nil {
			b = make([]byte, n)
		}
		header[it.name] = map[string]any{"dtype": it.dtype, "shape": it.shape, "data_offsets": []int{len(data), len(data) + n}}
		data = append(data, b...)
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	return raw(string(text), data)
}

// write puts files (name, content pairs) into dir, making folders as needed.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// folderOf makes a folder of these files in a temporary place.
func folderOf(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, files)
	return dir
}

// open opens dir and closes it with the test.
func open(t testing.TB, dir string) *Folder {
	t.Helper()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// refused asserts that err is an *Error of this kind whose text holds every one of parts.
func refused(t testing.TB, err error, kind Kind, parts ...string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an *Error", err)
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

func readAll(t testing.TB, f *Folder, name string) []byte {
	t.Helper()
	x, ok := f.Tensor(name)
	if !ok {
		t.Fatalf("no tensor %q", name)
	}
	b := make([]byte, x.Size)
	if err := f.Read(context.Background(), x, b); err != nil {
		t.Fatal(err)
	}
	return b
}
