package mlxbind

/*
#include "bridge.h"
*/
import "C"

import (
	"fmt"
	"runtime/cgo"
	"runtime/debug"
)

// Function is a graph traced once per input shape and then replayed.
type Function struct {
	run, compiled C.mlx_closure
}

// Graph builds a piece of graph: it may only call operations of s on in and on arrays that
// are held elsewhere.
type Graph func(s *Scope, in []Array) []Array

// Compile makes a Function of build. MLX merges repeated work and, where a compiler for
// kernels is at hand, fuses elementwise operations. Arrays that build captures must stay
// alive as long as the Function.
func Compile(build Graph) (*Function, error) {
	assertThread()
	handle := cgo.NewHandle(build)
	f := &Function{run: C.firesteel_closure(C.uintptr_t(handle))}
	f.compiled = C.mlx_closure_new()
	if C.mlx_compile(&f.compiled, f.run, false) != 0 {
		err := takeError("compile")
		f.Close()
		return nil, err
	}
	return f, nil
}

// Close frees the function. It must not be called again.
func (f *Function) Close() {
	if f.compiled.ctx != nil {
		C.mlx_closure_free(f.compiled)
	}
	if f.run.ctx != nil {
		C.mlx_closure_free(f.run)
	}
	*f = Function{}
}

// Call replays the function on in.
func (s *Scope) Call(f *Function, in ...Array) []Array {
	if !s.ready("call", in...) {
		return nil
	}
	list := vectorOf(in)
	defer C.mlx_vector_array_free(list)
	results := C.mlx_vector_array_new()
	defer func() { C.mlx_vector_array_free(results) }()
	if C.mlx_closure_apply(&results, f.compiled, list) != 0 {
		s.Fail(closureFailure("call"))
		return nil
	}
	return s.unpack(results)
}

// closureFailure is why a call into MLX that called a Go function failed.
func closureFailure(operation string) error {
	err := takeError(operation)
	if closureError != nil {
		// MLX only says that the function failed; this says why.
		err, closureError = closureError, nil
	}
	return err
}

func (s *Scope) unpack(list C.mlx_vector_array) []Array {
	out := make([]Array, int(C.mlx_vector_array_size(list)))
	for i := range out {
		a := C.mlx_array_new()
		code := C.mlx_vector_array_get(&a, list, C.size_t(i))
		out[i] = s.made(a, code, "unpack")
	}
	return out
}

// closureError is why a Go function called by MLX failed. Only the inference thread uses it.
var closureError error

//export firesteelClosure
func firesteelClosure(result *C.mlx_vector_array, input C.mlx_vector_array, handle C.uintptr_t) (code C.int) {
	// A panic must not unwind through C++; the caller gets it as an error.
	defer func() {
		if r := recover(); r != nil {
			closureError = fmt.Errorf("panic while building a graph: %v\n%s", r, debug.Stack())
			code = 1
		}
	}()
	build := cgo.Handle(handle).Value().(Graph)
	s := NewScope()
	s.tracing = true
	defer s.Close()
	out := build(s, s.unpack(input))
	if s.err == nil {
		s.ready("return", out...)
	}
	if s.err != nil {
		closureError = s.err
		return 1
	}
	// MLX hands over an empty result and takes what is put there.
	*result = vectorOf(out)
	return 0
}

//export firesteelForget
func firesteelForget(handle C.uintptr_t) { cgo.Handle(handle).Delete() }
