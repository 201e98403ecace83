package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// filled is what tensor i of a written checkpoint holds.
func filled(i int, t Tensor) []byte {
	data := make([]byte, t.Elements()*int64(t.DType.Size()))
	for j := range data {
		data[j] = byte(7*i + j)
	}
	return data
}

func someTensors() []Tensor {
	return []Tensor{
		{Name: "b", DType: BF16, Shape: []int{3, 5}}, {Name: "a.weight", DType: U32, Shape: []int{4, 2}},
		{Name: "scalar", DType: F32}, {Name: "nothing", DType: F32, Shape: []int{0, 4}}, {Name: "ü", DType: U8, Shape: []int{41}},
	}
}

func TestWeightsAreReadAsTheyWereWritten(t *testing.T) {
	for limit, files := range map[int64][]string{
		0:  {"model.safetensors"},
		40: {"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors", "model-00003-of-00003.safetensors", "model.safetensors.index.json"},
	} {
		dir, tensors := t.TempDir(), someTensors()
		w, err := CreateWeights(dir, Layout{Tensors: tensors, ShardLimit: limit})
		if err != nil {
			t.Fatal(err)
		}
		// A byte of each in turn: the order of writing is the caller's own.
		for at := 0; at < 41; at++ {
			for i, x := range tensors {
				if data := filled(i, x); at < len(data) {
					if err := w.Append(x.Name, data[at:at+1]); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		listing, err := List(dir)
		if err != nil || !slices.Equal(listing.Names, files) {
			t.Fatalf("%v, %v", listing.Names, err)
		}
		f, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if len(f.Names()) != len(tensors) {
			t.Errorf("%v", f.Names())
		}
		for i, x := range tensors {
			got, ok := f.Tensor(x.Name)
			data := make([]byte, got.Size)
			if err := f.Read(context.Background(), got, data); err != nil || !ok {
				t.Fatal(err)
			}
			if got.DType != x.DType || !slices.Equal(got.Shape, x.Shape) || !bytes.Equal(data, filled(i, x)) {
				t.Errorf("%s: %+v", x.Name, got)
			}
		}
		if limit > 0 {
			c, err := ReadConfig(filepath.Join(dir, "model.safetensors.index.json"))
			if err != nil {
				t.Fatal(err)
			}
			metadata, _ := c.Object("metadata")
			if size, err := metadata.Int("total_size"); err != nil || int64(size) != w.Bytes() || size != 30+32+4+41 {
				t.Errorf("total_size %d, %v", size, err)
			}
			if n, err := metadata.Int("total_parameters"); err != nil || n != 15+8+1+41 {
				t.Errorf("total_parameters %d, %v", n, err)
			}
		}
	}
}

func TestWeightsAreNotHalfWritten(t *testing.T) {
	refused := func(err error, kind Kind) {
		t.Helper()
		if KindOf(err) != kind {
			t.Errorf("%v is of kind %v, not %v", err, KindOf(err), kind)
		}
	}
	dir := t.TempDir()
	w, err := CreateWeights(dir, Layout{Tensors: someTensors()})
	if err != nil {
		t.Fatal(err)
	}
	refused(w.Append("other", nil), KindMismatch)
	refused(w.Append("scalar", make([]byte, 5)), KindMismatch)
	if err := w.Append("scalar", make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	refused(w.Close(), KindMismatch)
	_, err = CreateWeights(dir, Layout{Tensors: someTensors()})
	refused(err, KindNotWritable) // never over a file that is there
	_, err = CreateWeights(t.TempDir(), Layout{Tensors: []Tensor{{Name: "a", DType: "F4"}}})
	refused(err, KindUnsupported)
	_, err = CreateWeights(t.TempDir(), Layout{Tensors: []Tensor{{Name: "a", DType: F32}, {Name: "a", DType: F32}}})
	refused(err, KindCorrupt)
	_, err = CreateWeights(filepath.Join(dir, "nowhere"), Layout{})
	refused(err, KindNotWritable)
}

func TestStageTakesNamesOfAllSorts(t *testing.T) {
	for _, name := range oddNames {
		place := filepath.Join(t.TempDir(), name)
		if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
			t.Fatal(err)
		}
		stage, err := NewStage(place)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if left, err := Unfinished(filepath.Dir(place)); err != nil || !slices.Equal(left, []string{stage.Dir}) {
			t.Errorf("%q: %v, %v", name, left, err)
		}
		if err := stage.Commit(false); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := os.Stat(place); err != nil {
			t.Error(err)
		}
	}
	long := strings.Repeat("ü", 125)
	if a, b := Hidden(long+"a", ".x"), Hidden(long+"b", ".x"); a == b || len(a) > 255-20 || !utf8.ValidString(a) {
		t.Errorf("%q, %q", a, b)
	}
}

func TestStageReplacesAFolderOrLeavesIt(t *testing.T) {
	place := filepath.Join(t.TempDir(), "drafter")
	stage := func(text string) *Stage {
		s, err := NewStage(place)
		if err != nil {
			t.Fatal(err)
		}
		if err := WriteJSON(filepath.Join(s.Dir, "config.json"), text); err != nil {
			t.Fatal(err)
		}
		return s
	}
	holds := func(want string) {
		t.Helper()
		got, err := os.ReadFile(filepath.Join(place, "config.json"))
		if err != nil || string(got) != "\""+want+"\"\n" {
			t.Errorf("%q, %v", got, err)
		}
	}
	first := stage("one")
	if left, err := Unfinished(filepath.Dir(place)); err != nil || !slices.Equal(left, []string{first.Dir}) {
		t.Errorf("%v, %v", left, err)
	}
	if err := first.Commit(false); err != nil {
		t.Fatal(err)
	}
	second := stage("two")
	if err := second.Commit(false); !errors.Is(err, os.ErrExist) {
		t.Errorf("another folder was overwritten: %v", err)
	}
	holds("one")
	if err := second.Commit(true); err != nil {
		t.Fatal(err)
	}
	holds("two")
	if err := stage("three").Discard(); err != nil {
		t.Fatal(err)
	}
	holds("two")
	if left, err := Unfinished(filepath.Dir(place)); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
	// The way of drives that cannot let two folders change places in one step.
	third := stage("three")
	if err := exchangeStepwise(third.Dir, place); err != nil {
		t.Fatal(err)
	}
	holds("three")
	if err := third.Discard(); err != nil {
		t.Fatal(err)
	}
	holds("three")
}
