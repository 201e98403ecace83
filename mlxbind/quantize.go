package mlxbind

/*
#include "bridge.h"
*/
import "C"

import "unsafe"

// Packing says how a matrix is quantized: bits a value, values sharing a scale, and the mode
// ("affine", "mxfp4", "mxfp8", "nvfp4").
type Packing struct {
	Bits, GroupSize int
	Mode            string
}

func (p Packing) c() (group, bits C.mlx_optional_int, mode *C.char) {
	return C.mlx_optional_int{value: C.int(p.GroupSize), has_value: true},
		C.mlx_optional_int{value: C.int(p.Bits), has_value: true}, C.CString(p.Mode)
}

// Packed is a quantized matrix [rows, cols]: Weight uint32 [rows, cols·bits/32], Scales and
// Biases [rows, cols/group]. Biases is the zero Array for modes that have none.
type Packed struct {
	Weight, Scales, Biases Array
	Packing                Packing
}

// QuantizedMatmul is x·Wᵀ for x [.., cols] → [.., rows], in x's type.
func (s *Scope) QuantizedMatmul(x Array, w Packed) Array {
	if !s.ready("quantized matmul", x, w.Weight, w.Scales) {
		return Array{}
	}
	group, bits, mode := w.Packing.c()
	defer C.free(unsafe.Pointer(mode))
	r := C.mlx_array_new()
	return s.made(r, C.mlx_quantized_matmul(&r, x.c, w.Weight.c, w.Scales.c, w.Biases.c, true,
		group, bits, mode, stream), "quantized matmul")
}

// Dequantize unpacks a quantized matrix to dtype.
func (s *Scope) Dequantize(w Packed, dtype DType) Array {
	if !s.ready("dequantize", w.Weight, w.Scales) {
		return Array{}
	}
	group, bits, mode := w.Packing.c()
	defer C.free(unsafe.Pointer(mode))
	r := C.mlx_array_new()
	out := C.mlx_optional_dtype{value: C.mlx_dtype(dtype), has_value: true}
	return s.made(r, C.mlx_dequantize(&r, w.Weight.c, w.Scales.c, w.Biases.c, group, bits, mode,
		C.mlx_array{}, out, stream), "dequantize")
}

// Quantize packs a [rows, cols].
func (s *Scope) Quantize(a Array, p Packing) Packed {
	if !s.ready("quantize", a) {
		return Packed{}
	}
	group, bits, mode := p.c()
	defer C.free(unsafe.Pointer(mode))
	list := C.mlx_vector_array_new()
	defer func() { C.mlx_vector_array_free(list) }()
	if C.mlx_quantize(&list, a.c, group, bits, mode, C.mlx_array{}, stream) != 0 {
		s.Fail(takeError("quantize"))
		return Packed{}
	}
	parts := s.unpack(list)
	w := Packed{Weight: parts[0], Scales: parts[1], Packing: p}
	if len(parts) > 2 {
		w.Biases = parts[2]
	}
	return w
}
