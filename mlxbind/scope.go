package mlxbind

/*
#include "bridge.h"
*/
import "C"

import (
	"math"
	"sync/atomic"
	"unsafe"
)

// Scope frees the arrays made in it when it is closed, and remembers the first error.
type Scope struct {
	arrays []C.mlx_array
	err    error
	// Inside a compiled function nothing may be evaluated.
	tracing bool
}

// NewScope opens a scope on the inference thread.
func NewScope() *Scope {
	assertThread()
	return &Scope{arrays: make([]C.mlx_array, 0, 256)}
}

// Close frees everything made in the scope that was not held.
func (s *Scope) Close() {
	for _, a := range s.arrays {
		C.mlx_array_free(a)
	}
	s.arrays = s.arrays[:0]
}

// Within builds a piece of graph in a scope of its own and returns what build returns, as
// arrays of s (the zero Array stays what it is). Everything else that build made is let go at
// once: MLX then frees each intermediate value as soon as it has been used, and not only when
// s closes.
func (s *Scope) Within(build func(inner *Scope) []Array) []Array {
	if s.err != nil {
		return nil
	}
	inner := &Scope{arrays: make([]C.mlx_array, 0, 64), tracing: s.tracing}
	defer inner.Close()
	out := build(inner)
	if s.err = inner.err; s.err != nil {
		return nil
	}
	for i, a := range out {
		out[i] = s.Adopt(s.Hold(a))
	}
	return out
}

// Err is the first error of the scope.
func (s *Scope) Err() error { return s.err }

// Fail records an error found outside MLX, so that later operations do nothing.
func (s *Scope) Fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// Hold returns a handle of its own to a, which outlives the scope; the holder frees it.
func (s *Scope) Hold(a Array) Array {
	if !a.Valid() {
		return Array{}
	}
	held := C.mlx_array_new()
	if C.mlx_array_set(&held, a.c) != 0 {
		s.Fail(takeError("hold"))
		C.mlx_array_free(held)
		return Array{}
	}
	return Array{held}
}

// Adopt hands an array that was held to the scope, which then frees it.
func (s *Scope) Adopt(a Array) Array {
	if a.Valid() {
		s.arrays = append(s.arrays, a.c)
	}
	return a
}

// made registers the result of an operation.
func (s *Scope) made(result C.mlx_array, code C.int, operation string) Array {
	if code != 0 {
		s.Fail(takeError(operation))
		C.mlx_array_free(result)
		return Array{}
	}
	s.arrays = append(s.arrays, result)
	return Array{result}
}

// ready tells whether an operation on these arrays can go ahead.
func (s *Scope) ready(operation string, arrays ...Array) bool {
	if s.err != nil {
		return false
	}
	for _, a := range arrays {
		if !a.Valid() {
			s.err = &Error{operation, "given no array"}
			return false
		}
	}
	return true
}

// Eval computes the arrays now.
func (s *Scope) Eval(arrays ...Array) error { return s.evaluate(false, arrays) }

// Start begins to compute the arrays and returns at once.
func (s *Scope) Start(arrays ...Array) error { return s.evaluate(true, arrays) }

func (s *Scope) evaluate(async bool, arrays []Array) error {
	if s.tracing {
		panic("mlxbind: evaluation inside a compiled function")
	}
	if !s.ready("evaluate", arrays...) {
		return s.err
	}
	list := vectorOf(arrays)
	defer C.mlx_vector_array_free(list)
	var code C.int
	if async {
		code = C.mlx_async_eval(list)
	} else {
		code = C.mlx_eval(list)
	}
	if code != 0 {
		s.Fail(takeError("evaluate"))
	}
	return s.err
}

func vectorOf(arrays []Array) C.mlx_vector_array {
	if len(arrays) == 0 {
		return C.mlx_vector_array_new()
	}
	// Array has the layout of mlx_array, its only field.
	return C.mlx_vector_array_new_data((*C.mlx_array)(unsafe.Pointer(&arrays[0])), C.size_t(len(arrays)))
}

var hostReads atomic.Int64

// HostReads counts how often values were read from the device so far. Any thread.
func HostReads() int64 { return hostReads.Load() }

// ReadInts evaluates a and returns its int32 or uint32 elements, in row order. One host read.
func (s *Scope) ReadInts(a Array) ([]int32, error) {
	p, n, err := s.read(a, Int32, Uint32)
	if err != nil {
		return nil, err
	}
	return append([]int32(nil), unsafe.Slice((*int32)(p), n)...), nil
}

// ReadFloats evaluates a and returns its elements as float32, in row order. One host read.
func (s *Scope) ReadFloats(a Array) ([]float32, error) {
	if a.Valid() && a.DType() != Float32 {
		a = s.AsType(a, Float32)
	}
	p, n, err := s.read(a, Float32)
	if err != nil {
		return nil, err
	}
	return append([]float32(nil), unsafe.Slice((*float32)(p), n)...), nil
}

// ReadBytes evaluates a and returns its elements as they lie in memory. One host read.
func (s *Scope) ReadBytes(a Array) ([]byte, error) {
	p, n, err := s.read(a)
	if err != nil {
		return nil, err
	}
	return append([]byte(nil), unsafe.Slice((*byte)(p), n*a.DType().Size())...), nil
}

// Bits is the float whose bits an int32 read carries; see Scope.View.
func Bits(i int32) float32 { return math.Float32frombits(uint32(i)) }

func (s *Scope) read(a Array, allowed ...DType) (unsafe.Pointer, int, error) {
	if !s.ready("read", a) {
		return nil, 0, s.err
	}
	ok := len(allowed) == 0
	for _, d := range allowed {
		ok = ok || a.DType() == d
	}
	if !ok {
		s.Fail(&Error{"read", "of another element type"})
		return nil, 0, s.err
	}
	a = s.Contiguous(a)
	if err := s.Eval(a); err != nil {
		return nil, 0, err
	}
	hostReads.Add(1)
	n := int(C.mlx_array_size(a.c))
	p := unsafe.Pointer(C.mlx_array_data_uint8(a.c))
	if p == nil && n > 0 {
		s.Fail(&Error{"read", "no data"})
		return nil, 0, s.err
	}
	return p, n, nil
}
