package mlxbind

/*
#include "bridge.h"
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// DType is an array's element type.
type DType int

// Element types, with MLX's own numbers.
const (
	Bool     = DType(C.MLX_BOOL)
	Uint8    = DType(C.MLX_UINT8)
	Uint16   = DType(C.MLX_UINT16)
	Uint32   = DType(C.MLX_UINT32)
	Uint64   = DType(C.MLX_UINT64)
	Int8     = DType(C.MLX_INT8)
	Int16    = DType(C.MLX_INT16)
	Int32    = DType(C.MLX_INT32)
	Int64    = DType(C.MLX_INT64)
	Float16  = DType(C.MLX_FLOAT16)
	Float32  = DType(C.MLX_FLOAT32)
	BFloat16 = DType(C.MLX_BFLOAT16)
)

// Size is the bytes of one element.
func (d DType) Size() int { return int(C.mlx_dtype_size(C.mlx_dtype(d))) }

// Array is a handle to an MLX array: a value, or the recipe for one until it is evaluated.
// The zero Array is no array; operations on it do nothing.
type Array struct{ c C.mlx_array }

// Valid tells whether there is an array.
func (a Array) Valid() bool { return a.c.ctx != nil }

// Shape is the length of each axis.
func (a Array) Shape() []int {
	if !a.Valid() {
		return nil
	}
	n := int(C.mlx_array_ndim(a.c))
	shape := make([]int, n)
	for i, d := range unsafe.Slice(C.mlx_array_shape(a.c), n) {
		shape[i] = int(d)
	}
	return shape
}

// Dim is the length of one axis; negative axes count from the end.
func (a Array) Dim(axis int) int {
	if !a.Valid() {
		return 0
	}
	n := int(C.mlx_array_ndim(a.c))
	if axis < 0 {
		axis += n
	}
	return int(unsafe.Slice(C.mlx_array_shape(a.c), n)[axis])
}

// DType is the element type.
func (a Array) DType() DType {
	if !a.Valid() {
		return Float32
	}
	return DType(C.mlx_array_dtype(a.c))
}

// Bytes is the size of the elements.
func (a Array) Bytes() int64 {
	if !a.Valid() {
		return 0
	}
	return int64(C.mlx_array_nbytes(a.c))
}

// Free gives up a handle made by Hold. Freeing the zero Array does nothing.
func (a *Array) Free() {
	if a.Valid() {
		C.mlx_array_free(a.c)
		*a = Array{}
	}
}

func (a Array) String() string {
	if !a.Valid() {
		return "no array"
	}
	return fmt.Sprintf("array%v", a.Shape())
}
