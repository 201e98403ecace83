package mlxbind

/*
#include "bridge.h"
*/
import "C"

import "unsafe"

// ints converts to C ints; the pointer is valid while the slice is.
func ints(v []int) (*C.int, C.size_t) {
	if len(v) == 0 {
		return nil, 0
	}
	out := make([]C.int, len(v))
	for i, x := range v {
		out[i] = C.int(x)
	}
	return &out[0], C.size_t(len(v))
}

// Making arrays.

// Floats is a float32 array of shape, copied from values; no shape means a vector.
func (s *Scope) Floats(values []float32, shape ...int) Array {
	if len(shape) == 0 {
		shape = []int{len(values)}
	}
	return s.data(unsafe.Pointer(unsafe.SliceData(values)), len(values)*4, shape, Float32)
}

// Ints is an int32 array of shape, copied from values; no shape means a vector.
func (s *Scope) Ints(values []int32, shape ...int) Array {
	if len(shape) == 0 {
		shape = []int{len(values)}
	}
	return s.data(unsafe.Pointer(unsafe.SliceData(values)), len(values)*4, shape, Int32)
}

// Data is an array of shape and dtype copied from raw, row by row, in the machine's byte order.
func (s *Scope) Data(raw []byte, dtype DType, shape ...int) Array {
	return s.data(unsafe.Pointer(unsafe.SliceData(raw)), len(raw), shape, dtype)
}

func (s *Scope) data(p unsafe.Pointer, bytes int, shape []int, dtype DType) Array {
	if !s.ready("data") {
		return Array{}
	}
	want := dtype.Size()
	for _, d := range shape {
		want *= d
	}
	if want != bytes {
		s.Fail(&Error{"data", "the values do not fill the shape"})
		return Array{}
	}
	if bytes == 0 {
		return s.Zeros(dtype, shape...)
	}
	dims, n := ints(shape)
	a := C.mlx_array_new_data(p, dims, C.int(n), C.mlx_dtype(dtype))
	if a.ctx == nil {
		return s.made(a, 1, "data")
	}
	return s.made(a, 0, "data")
}

// Scalar is a single value of dtype, shape [].
func (s *Scope) Scalar(v float64, dtype DType) Array {
	if !s.ready("scalar") {
		return Array{}
	}
	if dtype == Int32 {
		return s.made(C.mlx_array_new_int(C.int(v)), 0, "scalar")
	}
	a := s.made(C.mlx_array_new_float32(C.float(v)), 0, "scalar")
	if dtype == Float32 {
		return a
	}
	return s.AsType(a, dtype)
}

// Zeros is an array of zeros.
func (s *Scope) Zeros(dtype DType, shape ...int) Array {
	if !s.ready("zeros") {
		return Array{}
	}
	dims, n := ints(shape)
	r := C.mlx_array_new()
	return s.made(r, C.mlx_zeros(&r, dims, n, C.mlx_dtype(dtype), stream), "zeros")
}

// Arange is start, start+step, … below stop.
func (s *Scope) Arange(start, stop, step float64, dtype DType) Array {
	if !s.ready("arange") {
		return Array{}
	}
	r := C.mlx_array_new()
	return s.made(r, C.mlx_arange(&r, C.double(start), C.double(stop), C.double(step), C.mlx_dtype(dtype), stream), "arange")
}

// Shapes and views.

// AsType converts the elements.
func (s *Scope) AsType(a Array, dtype DType) Array {
	if !s.ready("astype", a) {
		return Array{}
	}
	if a.DType() == dtype {
		return a
	}
	r := C.mlx_array_new()
	return s.made(r, C.mlx_astype(&r, a.c, C.mlx_dtype(dtype), stream), "astype")
}

// View reads the same bits as another element type.
func (s *Scope) View(a Array, dtype DType) Array {
	if !s.ready("view", a) {
		return Array{}
	}
	r := C.mlx_array_new()
	return s.made(r, C.mlx_view(&r, a.c, C.mlx_dtype(dtype), stream), "view")
}

// Reshape gives the elements another shape; one axis may be −1.
func (s *Scope) Reshape(a Array, shape ...int) Array {
	if !s.ready("reshape", a) {
		return Array{}
	}
	dims, n := ints(shape)
	r := C.mlx_array_new()
	return s.made(r, C.mlx_reshape(&r, a.c, dims, n, stream), "reshape")
}

// Transpose reorders the axes; without any, all are reversed. A view.
func (s *Scope) Transpose(a Array, axes ...int) Array {
	if !s.ready("transpose", a) {
		return Array{}
	}
	r := C.mlx_array_new()
	if len(axes) == 0 {
		return s.made(r, C.mlx_transpose(&r, a.c, stream), "transpose")
	}
	dims, n := ints(axes)
	return s.made(r, C.mlx_transpose_axes(&r, a.c, dims, n, stream), "transpose")
}

// Broadcast repeats a to shape without copying.
func (s *Scope) Broadcast(a Array, shape ...int) Array {
	if !s.ready("broadcast", a) {
		return Array{}
	}
	dims, n := ints(shape)
	r := C.mlx_array_new()
	return s.made(r, C.mlx_broadcast_to(&r, a.c, dims, n, stream), "broadcast")
}

// Contiguous is a with its elements in row order in memory; a itself when they are.
func (s *Scope) Contiguous(a Array) Array {
	if !s.ready("contiguous", a) {
		return Array{}
	}
	r := C.mlx_array_new()
	return s.made(r, C.mlx_contiguous(&r, a.c, false, stream), "contiguous")
}

// Slice takes rows from to to (excluded) of one axis. Negative axes count from the end.
func (s *Scope) Slice(a Array, axis, from, to int) Array {
	return s.SliceStep(a, axis, from, to, 1)
}

// SliceStep takes every step-th row from from to to (excluded) of one axis; a negative step
// walks backwards, with to −1 meaning the front included.
func (s *Scope) SliceStep(a Array, axis, from, to, step int) Array {
	if !s.ready("slice", a) {
		return Array{}
	}
	start, stop := bounds(a, axis, from, to)
	strides := make([]int, len(start))
	for i := range strides {
		strides[i] = 1
	}
	strides[position(a, axis)] = step
	if step < 0 && to < 0 {
		stop[position(a, axis)] = -a.Dim(axis) - 1
	}
	b, n := ints(start)
	e, _ := ints(stop)
	t, _ := ints(strides)
	r := C.mlx_array_new()
	return s.made(r, C.mlx_slice(&r, a.c, b, n, e, n, t, n, stream), "slice")
}

// Update is a with rows from … from+len(update) of one axis replaced. It happens in place
// when nobody else holds a.
func (s *Scope) Update(a, update Array, axis, from int) Array {
	if !s.ready("update", a, update) {
		return Array{}
	}
	start, stop := bounds(a, axis, from, from+update.Dim(axis))
	strides := make([]int, len(start))
	for i := range strides {
		strides[i] = 1
	}
	b, n := ints(start)
	e, _ := ints(stop)
	t, _ := ints(strides)
	r := C.mlx_array_new()
	return s.made(r, C.mlx_slice_update(&r, a.c, update.c, b, n, e, n, t, n, stream), "update")
}

func position(a Array, axis int) int {
	if axis < 0 {
		return axis + int(C.mlx_array_ndim(a.c))
	}
	return axis
}

func bounds(a Array, axis, from, to int) (start, stop []int) {
	stop = a.Shape()
	start = make([]int, len(stop))
	i := position(a, axis)
	start[i], stop[i] = from, to
	return start, stop
}

// Concatenate joins arrays along an axis; a lone array is returned as it is.
func (s *Scope) Concatenate(axis int, arrays ...Array) Array {
	if !s.ready("concatenate", arrays...) {
		return Array{}
	}
	if len(arrays) == 1 {
		return arrays[0]
	}
	list := vectorOf(arrays)
	defer C.mlx_vector_array_free(list)
	r := C.mlx_array_new()
	return s.made(r, C.mlx_concatenate_axis(&r, list, C.int(axis), stream), "concatenate")
}

// Stack joins arrays of equal shape along a new axis.
func (s *Scope) Stack(axis int, arrays ...Array) Array {
	if !s.ready("stack", arrays...) {
		return Array{}
	}
	list := vectorOf(arrays)
	defer C.mlx_vector_array_free(list)
	r := C.mlx_array_new()
	return s.made(r, C.mlx_stack_axis(&r, list, C.int(axis), stream), "stack")
}

// Take gathers rows of one axis by index; the axis is replaced by the shape of indices.
func (s *Scope) Take(a, indices Array, axis int) Array {
	if !s.ready("take", a, indices) {
		return Array{}
	}
	r := C.mlx_array_new()
	return s.made(r, C.mlx_take_axis(&r, a.c, indices.c, C.int(axis), stream), "take")
}

// TakeAlong picks along one axis with an index for each position of the others.
func (s *Scope) TakeAlong(a, indices Array, axis int) Array {
	if !s.ready("take along", a, indices) {
		return Array{}
	}
	r := C.mlx_array_new()
	return s.made(r, C.mlx_take_along_axis(&r, a.c, indices.c, C.int(axis), stream), "take along")
}

// PutAlong is a with values put where indices point along one axis.
func (s *Scope) PutAlong(a, indices, values Array, axis int) Array {
	if !s.ready("put along", a, indices, values) {
		return Array{}
	}
	r := C.mlx_array_new()
	return s.made(r, C.mlx_put_along_axis(&r, a.c, indices.c, values.c, C.int(axis), stream), "put along")
}

// Where picks a where the condition holds and b elsewhere.
func (s *Scope) Where(condition, a, b Array) Array {
	if !s.ready("where", condition, a, b) {
		return Array{}
	}
	r := C.mlx_array_new()
	return s.made(r, C.mlx_where(&r, condition.c, a.c, b.c, stream), "where")
}

// Along an axis. keep leaves the axis in place with length 1.

// Sum adds along axis.
func (s *Scope) Sum(a Array, axis int, keep bool) Array {
	if !s.ready("sum", a) {
		return Array{}
	}
	r := C.mlx_array_new()
	return s.made(r, C.mlx_sum_axis(&r, a.c, C.int(axis), C.bool(keep), stream), "sum")
}

// Max is the largest along axis.
func (s *Scope) Max(a Array, axis int, keep bool) Array {
	if !s.ready("max", a) {
		return Array{}
	}
	r := C.mlx_array_new()
	return s.made(r, C.mlx_max_axis(&r, a.c, C.int(axis), C.bool(keep), stream), "max")
}

// MaxAll is the largest of all elements, shape [].
func (s *Scope) MaxAll(a Array) Array {
	if !s.ready("max", a) {
		return Array{}
	}
	r := C.mlx_array_new()
	return s.made(r, C.mlx_max(&r, a.c, false, stream), "max")
}

// ArgMax is the position of the largest along axis, the lowest on ties; uint32.
func (s *Scope) ArgMax(a Array, axis int, keep bool) Array {
	if !s.ready("argmax", a) {
		return Array{}
	}
	r := C.mlx_array_new()
	return s.made(r, C.mlx_argmax_axis(&r, a.c, C.int(axis), C.bool(keep), stream), "argmax")
}

// ArgSort is the order that sorts axis upwards; uint32.
func (s *Scope) ArgSort(a Array, axis int) Array {
	if !s.ready("argsort", a) {
		return Array{}
	}
	r := C.mlx_array_new()
	return s.made(r, C.mlx_argsort_axis(&r, a.c, C.int(axis), stream), "argsort")
}

// ArgPartition orders axis so that position kth holds what sorting would put there, smaller
// ones before it; uint32.
func (s *Scope) ArgPartition(a Array, kth, axis int) Array {
	if !s.ready("argpartition", a) {
		return Array{}
	}
	r := C.mlx_array_new()
	return s.made(r, C.mlx_argpartition_axis(&r, a.c, C.int(kth), C.int(axis), stream), "argpartition")
}

// CumSum is the running sum along axis, each element included.
func (s *Scope) CumSum(a Array, axis int) Array {
	if !s.ready("cumsum", a) {
		return Array{}
	}
	r := C.mlx_array_new()
	return s.made(r, C.mlx_cumsum_axis(&r, a.c, C.int(axis), false, true, C.mlx_optional_dtype{}, stream), "cumsum")
}

// CumProd is the running product along axis, each element included.
func (s *Scope) CumProd(a Array, axis int) Array {
	if !s.ready("cumprod", a) {
		return Array{}
	}
	r := C.mlx_array_new()
	return s.made(r, C.mlx_cumprod_axis(&r, a.c, C.int(axis), false, true, C.mlx_optional_dtype{}, stream), "cumprod")
}

// Softmax normalizes e^a along axis, summed in float32 at least.
func (s *Scope) Softmax(a Array, axis int) Array {
	if !s.ready("softmax", a) {
		return Array{}
	}
	r := C.mlx_array_new()
	return s.made(r, C.mlx_softmax_axis(&r, a.c, C.int(axis), true, stream), "softmax")
}

// LogSumExp is log Σ e^a along axis.
func (s *Scope) LogSumExp(a Array, axis int, keep bool) Array {
	if !s.ready("logsumexp", a) {
		return Array{}
	}
	r := C.mlx_array_new()
	return s.made(r, C.mlx_logsumexp_axis(&r, a.c, C.int(axis), C.bool(keep), stream), "logsumexp")
}
