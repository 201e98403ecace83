package checkpoint

import (
	"context"
	"testing"
)

func TestOpensFixtures(t *testing.T) {
	for _, name := range []string{"gemma4-12b-like", "gemma4-12b-like-q4", "deepspec-gemma4", "deepspec-gemma4-q4", "deepspec-gemma4-mixed"} {
		f, err := Open("../../testdata/goldens/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, n := range f.Names() {
			x, _ := f.Tensor(n)
			if err := f.Read(context.Background(), x, make([]byte, x.Size)); err != nil {
				t.Error(err)
			}
		}
		for _, m := range f.QuantizedModules() {
			q, err := f.Quantization(m)
			if err != nil || q == nil {
				t.Error(name, m, q, err)
			}
		}
	}
}
