package nn

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"firesteel/mlxbind"
	"firesteel/models/checkpoint"
	"firesteel/models/internal/mlxtest"
)

// writeTable writes a table of rows whose first value tells which row it is, and returns the
// folder and the bytes stored.
func writeTable(t *testing.T, rows, width int) (*checkpoint.Folder, int64) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	w, err := checkpoint.CreateWeights(dir, checkpoint.Layout{Tensors: []checkpoint.Tensor{{Name: "table.weight", DType: checkpoint.BF16, Shape: []int{rows, width}}}})
	if err != nil {
		t.Fatal(err)
	}
	row := make([]byte, 2*width)
	for i := range rows {
		// Bfloat16 holds whole numbers up to 256 exactly: i is written in two places.
		for at, v := range []int{i % 256, i / 256} {
			bits := math.Float32bits(float32(v)) >> 16
			row[2*at], row[2*at+1] = byte(bits), byte(bits>>8)
		}
		if err := w.Append("table.weight", row); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	folder, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	return folder, w.Bytes()
}

// A table larger than what is read at once arrives whole, is never held twice, and stays as it is
// stored where it only serves to look rows up.
func TestLargeTables(t *testing.T) {
	const rows, width = 20_011, 2048
	folder, stored := writeTable(t, rows, width)
	mlxtest.On(t, func(s *mlxbind.Scope) {
		for name, c := range map[string]struct {
			load  func(*Loader) *Embedding
			bytes int64
			piece int64 // a piece as stored and as kept
		}{
			"looked up":   {func(l *Loader) *Embedding { return l.Lookup("table", rows, width) }, stored, tablePiece},
			"a head, too": {func(l *Loader) *Embedding { return l.Embedding("table", rows, width) }, 2 * stored, 3 * tablePiece},
		} {
			mlxbind.ClearCache()
			base := mlxbind.ActiveMemory()
			mlxbind.ResetPeakMemory()
			told := int64(0)
			l := NewLoader(context.Background(), folder, func(done int64) { told = done })
			table := c.load(l)
			if err := l.Err(); err != nil {
				t.Fatal(err)
			}
			peak := mlxbind.PeakMemory() - base
			if l.Weights.Bytes() != c.bytes || peak > c.bytes+c.piece+1<<20 || told != stored {
				t.Errorf("%s: %d bytes held, %d at the peak, %d read, of %d stored", name, l.Weights.Bytes(), peak, told, stored)
			}
			ids := []int32{0, 1, 255, 256, 8191, 8192, 8193, 16384, rows - 1}
			values := mlxtest.Floats(t, s, s.Slice(table.Rows(s, s.Ints(ids)), 1, 0, 2))
			for i, id := range ids {
				if got := int32(values[2*i]) + 256*int32(values[2*i+1]); got != id {
					t.Errorf("%s: row %d holds what belongs to row %d", name, id, got)
				}
			}
			l.Weights.Close()
		}
		cancelled, cancel := context.WithCancel(context.Background())
		l := NewLoader(cancelled, folder, func(int64) { cancel() })
		l.Lookup("table", rows, width)
		if l.Err() != context.Canceled || l.Weights.Bytes() != 0 {
			t.Error("a cancelled table:", l.Err(), fmt.Sprint(l.Weights.Bytes()))
		}
	})
}
