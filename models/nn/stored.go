package nn

import (
	"firesteel/mlxbind"
	"firesteel/models/checkpoint"
)

var dtypes = map[checkpoint.DType]mlxbind.DType{
	checkpoint.Bool: mlxbind.Bool, checkpoint.U8: mlxbind.Uint8, checkpoint.I8: mlxbind.Int8,
	checkpoint.U16: mlxbind.Uint16, checkpoint.I16: mlxbind.Int16, checkpoint.U32: mlxbind.Uint32,
	checkpoint.I32: mlxbind.Int32, checkpoint.U64: mlxbind.Uint64, checkpoint.I64: mlxbind.Int64,
	checkpoint.F16: mlxbind.Float16, checkpoint.BF16: mlxbind.BFloat16, checkpoint.F32: mlxbind.Float32,
}

// DType is the type of an array that holds a stored tensor as it is; false if there is none.
func DType(stored checkpoint.DType) (mlxbind.DType, bool) {
	dtype, ok := dtypes[stored]
	return dtype, ok
}

// PlainDType is DType for the types that weights in full precision have.
func PlainDType(stored checkpoint.DType) (mlxbind.DType, bool) {
	if !stored.Float() {
		return 0, false
	}
	return DType(stored)
}

// Packing is q in MLX's terms.
func Packing(q checkpoint.Quantization) mlxbind.Packing {
	return mlxbind.Packing{Bits: q.Bits, GroupSize: q.GroupSize, Mode: q.Mode}
}

// Pack quantizes raw rows of width values of a plain type, by way of bfloat16, and returns what is
// stored of them: weight and scales, and biases where the mode has them. On the inference thread.
func Pack(raw []byte, stored checkpoint.DType, width int, q checkpoint.Quantization) ([][]byte, error) {
	s := mlxbind.NewScope()
	defer s.Close()
	rows := s.Data(raw, dtypes[stored], len(raw)/(width*stored.Size()), width)
	packed := s.Quantize(s.AsType(rows, mlxbind.BFloat16), Packing(q))
	var parts [][]byte
	for _, a := range []mlxbind.Array{packed.Weight, packed.Scales, packed.Biases} {
		if !a.Valid() && s.Err() == nil {
			continue
		}
		part, err := s.ReadBytes(a)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}
