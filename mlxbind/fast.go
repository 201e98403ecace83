package mlxbind

/*
#include "bridge.h"
*/
import "C"

import "unsafe"

// RMSNorm divides each row of the last axis by its root mean square and multiplies by weight
// [d]; the zero Array means no weight. Computed in float32, returned in a's type.
func (s *Scope) RMSNorm(a, weight Array, eps float32) Array {
	if !s.ready("rms norm", a) {
		return Array{}
	}
	r := C.mlx_array_new()
	return s.made(r, C.mlx_fast_rms_norm(&r, a.c, weight.c, C.float(eps), stream), "rms norm")
}

// Rope rotates pairs (i, i+d/2) of a [.., n, d] by position; row j stands at offset+j.
// wavelengths [d/2] float32 holds one value a pair, +∞ leaving it as it is.
func (s *Scope) Rope(a Array, wavelengths Array, offset int) Array {
	if !s.ready("rope", a, wavelengths) {
		return Array{}
	}
	r := C.mlx_array_new()
	return s.made(r, C.mlx_fast_rope(&r, a.c, C.int(a.Dim(-1)), false, C.mlx_optional_float{}, 1,
		C.int(offset), wavelengths.c, stream), "rope")
}

// RopeAt is Rope with the offset on the device: an int32 scalar, or [batch] with one for
// each entry of a's first axis.
func (s *Scope) RopeAt(a, wavelengths, offset Array) Array {
	if !s.ready("rope", a, wavelengths, offset) {
		return Array{}
	}
	r := C.mlx_array_new()
	return s.made(r, C.mlx_fast_rope_dynamic(&r, a.c, C.int(a.Dim(-1)), false, C.mlx_optional_float{}, 1,
		offset.c, wavelengths.c, stream), "rope")
}

// Attention is softmax(scale·q·kᵀ + mask)·v for q [b, heads, n, d] and k, v [b, kv, m, d],
// heads a multiple of kv. mask broadcasts to [b, heads, n, m]; the zero Array means none.
func (s *Scope) Attention(q, k, v Array, scale float32, mask Array) Array {
	if !s.ready("attention", q, k, v) {
		return Array{}
	}
	mode := C.CString("")
	if mask.Valid() {
		C.free(unsafe.Pointer(mode))
		mode = C.CString("array")
	}
	defer C.free(unsafe.Pointer(mode))
	r := C.mlx_array_new()
	return s.made(r, C.mlx_fast_scaled_dot_product_attention(&r, q.c, k.c, v.c, C.float(scale), mode, mask.c,
		C.mlx_array{}, false, stream), "attention")
}
