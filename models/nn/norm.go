package nn

import (
	"fmt"

	"firesteel/mlxbind"
)

// RMSNorm divides rows of x [.., d] by their root mean square and multiplies by weight
// (broadcast against x; the zero Array means none): computed in float32, returned in x's type.
// weight may have more axes than one, as [heads, d] for x [.., heads, d].
func RMSNorm(s *mlxbind.Scope, x, weight mlxbind.Array, eps float32) mlxbind.Array {
	if mlxbind.OnGPU() && len(weight.Shape()) <= 1 {
		return s.RMSNorm(x, weight, eps)
	}
	// Written out, so that Compile can fuse it with its neighbours; MLX has no single
	// operation for it on a processor.
	wide := s.AsType(x, mlxbind.Float32)
	mean := s.Multiply(s.Sum(s.Square(wide), -1, true), s.Scalar(1/float64(x.Dim(-1)), mlxbind.Float32))
	y := s.Multiply(wide, s.Rsqrt(s.Add(mean, s.Scalar(float64(eps), mlxbind.Float32))))
	if weight.Valid() {
		y = s.Multiply(y, s.AsType(weight, mlxbind.Float32))
	}
	return s.AsType(y, x.DType())
}

// GELU is x·Φ(x) in the tanh form: ½x(1 + tanh(√(2/π)(x + 0.044715x³))).
func GELU(s *mlxbind.Scope, x mlxbind.Array) mlxbind.Array {
	c := func(v float64) mlxbind.Array { return s.Scalar(v, x.DType()) }
	inner := s.Multiply(x, s.Add(c(0.7978845608028654), s.Multiply(c(0.7978845608028654*0.044715), s.Square(x))))
	return s.Multiply(s.Multiply(c(0.5), x), s.Add(c(1), s.Tanh(inner)))
}

// SiLU is x·sigmoid(x).
func SiLU(s *mlxbind.Scope, x mlxbind.Array) mlxbind.Array { return s.Multiply(x, s.Sigmoid(x)) }

// SoftCap is cap·tanh(x/cap); a cap of 0 leaves x as it is.
func SoftCap(s *mlxbind.Scope, x mlxbind.Array, cap float64) mlxbind.Array {
	if cap == 0 {
		return x
	}
	c := s.Scalar(cap, x.DType())
	return s.Multiply(s.Tanh(s.Divide(x, c)), c)
}

func wrongRows(shape []int, want int) string {
	return fmt.Sprintf("has shape %v where the configuration needs %d rows", shape, want)
}
