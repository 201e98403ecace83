package mlxbind

/*
#include "bridge.h"
*/
import "C"

// Elementwise operations broadcast their arguments against each other as NumPy does; the
// result has the wider element type of the two. Unary ones keep shape and type.

func (s *Scope) unary(op C.int, a Array) Array {
	if !a.Valid() || s.err != nil {
		s.ready(C.GoString(C.firesteel_unary_name(op)), a)
		return Array{}
	}
	r := C.mlx_array_new()
	if C.firesteel_unary(op, &r, a.c, stream) != 0 {
		return s.made(r, 1, C.GoString(C.firesteel_unary_name(op)))
	}
	return s.made(r, 0, "")
}

func (s *Scope) binary(op C.int, a, b Array) Array {
	if !a.Valid() || !b.Valid() || s.err != nil {
		s.ready(C.GoString(C.firesteel_binary_name(op)), a, b)
		return Array{}
	}
	r := C.mlx_array_new()
	if C.firesteel_binary(op, &r, a.c, b.c, stream) != 0 {
		return s.made(r, 1, C.GoString(C.firesteel_binary_name(op)))
	}
	return s.made(r, 0, "")
}

// Abs is |a|.
func (s *Scope) Abs(a Array) Array { return s.unary(C.FIRESTEEL_abs, a) }

// Exp is eᵃ.
func (s *Scope) Exp(a Array) Array { return s.unary(C.FIRESTEEL_exp, a) }

// Log is the natural logarithm.
func (s *Scope) Log(a Array) Array { return s.unary(C.FIRESTEEL_log, a) }

// Sqrt is √a.
func (s *Scope) Sqrt(a Array) Array { return s.unary(C.FIRESTEEL_sqrt, a) }

// Square is a².
func (s *Scope) Square(a Array) Array { return s.unary(C.FIRESTEEL_square, a) }

// Rsqrt is 1/√a.
func (s *Scope) Rsqrt(a Array) Array { return s.unary(C.FIRESTEEL_rsqrt, a) }

// Sigmoid is 1/(1+e⁻ᵃ).
func (s *Scope) Sigmoid(a Array) Array { return s.unary(C.FIRESTEEL_sigmoid, a) }

// Tanh is the hyperbolic tangent.
func (s *Scope) Tanh(a Array) Array { return s.unary(C.FIRESTEEL_tanh, a) }

// Negative is −a.
func (s *Scope) Negative(a Array) Array { return s.unary(C.FIRESTEEL_negative, a) }

// Not is true where a is false; bool.
func (s *Scope) Not(a Array) Array { return s.unary(C.FIRESTEEL_logical_not, a) }

// StopGradient is a, through which no gradient flows.
func (s *Scope) StopGradient(a Array) Array { return s.unary(C.FIRESTEEL_stop_gradient, a) }

// IsFinite is true where a is neither infinite nor NaN; bool.
func (s *Scope) IsFinite(a Array) Array { return s.unary(C.FIRESTEEL_isfinite, a) }

// Add is a + b.
func (s *Scope) Add(a, b Array) Array { return s.binary(C.FIRESTEEL_add, a, b) }

// Subtract is a − b.
func (s *Scope) Subtract(a, b Array) Array { return s.binary(C.FIRESTEEL_subtract, a, b) }

// Multiply is a · b.
func (s *Scope) Multiply(a, b Array) Array { return s.binary(C.FIRESTEEL_multiply, a, b) }

// Divide is a ÷ b.
func (s *Scope) Divide(a, b Array) Array { return s.binary(C.FIRESTEEL_divide, a, b) }

// Power is aᵇ.
func (s *Scope) Power(a, b Array) Array { return s.binary(C.FIRESTEEL_power, a, b) }

// Maximum is the larger.
func (s *Scope) Maximum(a, b Array) Array { return s.binary(C.FIRESTEEL_maximum, a, b) }

// Minimum is the smaller.
func (s *Scope) Minimum(a, b Array) Array { return s.binary(C.FIRESTEEL_minimum, a, b) }

// Equal is a = b; bool.
func (s *Scope) Equal(a, b Array) Array { return s.binary(C.FIRESTEEL_equal, a, b) }

// Greater is a > b; bool.
func (s *Scope) Greater(a, b Array) Array { return s.binary(C.FIRESTEEL_greater, a, b) }

// GreaterEqual is a ≥ b; bool.
func (s *Scope) GreaterEqual(a, b Array) Array { return s.binary(C.FIRESTEEL_greater_equal, a, b) }

// Less is a < b; bool.
func (s *Scope) Less(a, b Array) Array { return s.binary(C.FIRESTEEL_less, a, b) }

// LessEqual is a ≤ b; bool.
func (s *Scope) LessEqual(a, b Array) Array { return s.binary(C.FIRESTEEL_less_equal, a, b) }

// And is both true; bool.
func (s *Scope) And(a, b Array) Array { return s.binary(C.FIRESTEEL_logical_and, a, b) }

// Or is either true; bool.
func (s *Scope) Or(a, b Array) Array { return s.binary(C.FIRESTEEL_logical_or, a, b) }

// Matmul is the matrix product [.., n, k]·[.., k, m] → [.., n, m], leading axes broadcast.
func (s *Scope) Matmul(a, b Array) Array { return s.binary(C.FIRESTEEL_matmul, a, b) }

// Sin is the sine of an angle in radians.
func (s *Scope) Sin(a Array) Array { return s.unary(C.FIRESTEEL_sin, a) }

// Cos is the cosine of an angle in radians.
func (s *Scope) Cos(a Array) Array { return s.unary(C.FIRESTEEL_cos, a) }
