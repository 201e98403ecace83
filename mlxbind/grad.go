package mlxbind

/*
#include "bridge.h"
*/
import "C"

import "runtime/cgo"

// Gradient is a function that returns, besides its values, how its first value changes with each
// of its first arguments.
type Gradient struct {
	closure C.mlx_closure
	grad    C.mlx_closure_value_and_grad
}

// ValueAndGrad differentiates build with respect to its first n arguments. The first array that
// build returns must be a float scalar, shape []; more may follow. Arrays that build captures are
// constants, and must stay alive as long as the Gradient.
func ValueAndGrad(build Graph, n int) (*Gradient, error) {
	assertThread()
	arguments := make([]int, n)
	for i := range arguments {
		arguments[i] = i
	}
	g := &Gradient{closure: C.firesteel_closure(C.uintptr_t(cgo.NewHandle(build)))}
	g.grad = C.mlx_closure_value_and_grad_new()
	list, count := ints(arguments)
	if C.mlx_value_and_grad(&g.grad, g.closure, list, count) != 0 {
		err := takeError("value and gradient")
		g.Close()
		return nil, err
	}
	return g, nil
}

// Close frees the function. It must not be called again.
func (g *Gradient) Close() {
	if g.grad.ctx != nil {
		C.mlx_closure_value_and_grad_free(g.grad)
	}
	if g.closure.ctx != nil {
		C.mlx_closure_free(g.closure)
	}
	*g = Gradient{}
}

// Differentiate returns what the function returns for in, and the gradients, which have the
// shapes of the first arguments. It builds a graph and may be called inside a compiled function.
func (s *Scope) Differentiate(g *Gradient, in ...Array) (values, gradients []Array) {
	if !s.ready("differentiate", in...) {
		return nil, nil
	}
	list := vectorOf(in)
	defer C.mlx_vector_array_free(list)
	results, slopes := C.mlx_vector_array_new(), C.mlx_vector_array_new()
	defer func() {
		C.mlx_vector_array_free(results)
		C.mlx_vector_array_free(slopes)
	}()
	if C.mlx_closure_value_and_grad_apply(&results, &slopes, g.grad, list) != 0 {
		s.Fail(closureFailure("differentiate"))
		return nil, nil
	}
	return s.unpack(results), s.unpack(slopes)
}
