package family

import (
	"fmt"
	"strings"
	"testing"

	"firesteel/mlxbind"
	"firesteel/models/checkpoint"
	"firesteel/models/internal/mlxtest"
)

// Every packing gives what its unpacked values give in full precision.
func TestEveryPacking(t *testing.T) {
	list := []mlxbind.Packing{{Bits: 4, GroupSize: 32, Mode: "mxfp4"}, {Bits: 8, GroupSize: 32, Mode: "mxfp8"}, {Bits: 4, GroupSize: 16, Mode: "nvfp4"}}
	for _, bits := range []int{2, 3, 4, 5, 6, 8} {
		for _, group := range []int{32, 64, 128} {
			list = append(list, mlxbind.Packing{Bits: bits, GroupSize: group, Mode: "affine"})
		}
	}
	for i, p := range list {
		t.Run(fmt.Sprintf("%s %d bits g%d", p.Mode, p.Bits, p.GroupSize), func(t *testing.T) {
			fixture := []string{small, double}[i%2]
			packed, unpacked := draftOf(t, fixture), draftOf(t, fixture)
			modules := 0
			mlxtest.On(t, func(s *mlxbind.Scope) {
				for name, x := range packed.tensors {
					module, ok := strings.CutSuffix(name, ".weight")
					if !ok || len(x.shape) != 2 || x.shape[1]%p.GroupSize != 0 {
						continue
					}
					dtype := map[checkpoint.DType]mlxbind.DType{checkpoint.BF16: mlxbind.BFloat16, checkpoint.F32: mlxbind.Float32}[x.dtype]
					q := s.Quantize(s.Data(x.data, dtype, x.shape...), p)
					put := func(d *draft, name string, kept checkpoint.DType, a mlxbind.Array) {
						data, err := s.ReadBytes(a)
						if err != nil {
							t.Fatal(err)
						}
						d.tensors[name] = tensor{x.file, kept, a.Shape(), data}
					}
					put(packed, name, checkpoint.U32, q.Weight)
					if q.Biases.Valid() {
						put(packed, module+".scales", x.dtype, q.Scales)
						put(packed, module+".biases", x.dtype, q.Biases)
						q.Scales, q.Biases = s.AsType(q.Scales, mlxbind.Float32), s.AsType(q.Biases, mlxbind.Float32)
					} else {
						put(packed, module+".scales", checkpoint.U8, q.Scales)
					}
					put(unpacked, name, checkpoint.F32, s.Dequantize(q, mlxbind.Float32))
					modules++
				}
			})
			if modules < 5 {
				t.Fatalf("only %d modules could be packed", modules)
			}
			packed.config["quantization"] = object{"bits": p.Bits, "group_size": p.GroupSize, "mode": p.Mode}
			got, want := try(t, packed.write()), try(t, unpacked.write())
			if got.err != nil || want.err != nil {
				t.Fatal(got.err, want.err)
			}
			if off := mlxtest.Far(got.logits, want.logits); !(off < 1e-3) {
				t.Errorf("%d modules, logits differ by %g", modules, off)
			}
		})
	}
}
