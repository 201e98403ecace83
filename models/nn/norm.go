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
	const root = 0.7978845608028654
	c := func(v float64) mlxbind.Array { return s.Scalar(v, x.DType()) }
	u := s.Multiply(x, s.Add(c(root), s.Multiply(c(root*0.044715), s.Square(x))))
	return s.Multiply(s.Multiply(c(0.5), x), s.Add(c(1), Tanh(s, u)))
}

// Tanh is the hyperbolic tangent. On a processor MLX calls the C library for each element,
// which took an eighth of decoding time, so there it is a ratio of polynomials in x², fitted
// to tanh(x)/x on |x| ≤ 7.9 (relative error 1.7e-8, in float32 3.5e-7 absolute) and written in
// short independent chains that compilers turn into vector code.
func Tanh(s *mlxbind.Scope, x mlxbind.Array) mlxbind.Array {
	if mlxbind.OnGPU() || x.DType() != mlxbind.Float32 {
		return s.Tanh(x)
	}
	c := func(v float64) mlxbind.Array { return s.Scalar(v, mlxbind.Float32) }
	line := func(y mlxbind.Array, a, b float64) mlxbind.Array { return s.Add(c(a), s.Multiply(c(b), y)) }
	x = s.Maximum(s.Minimum(x, c(7.9)), c(-7.9))
	y := s.Square(x)
	y2 := s.Square(y)
	p := s.Add(line(y, 1, 1.29849201e-1), s.Multiply(y2, s.Add(line(y, 2.99210805e-3, 9.93927994e-6),
		s.Multiply(y2, line(y, -1.49064933e-8, 2.41057546e-11)))))
	q := s.Add(line(y, 1, 4.63182381e-1), s.Multiply(y2, line(y, 2.40531391e-2, 2.38088307e-4)))
	return s.Divide(s.Multiply(x, p), q)
}

// SiLU is x·sigmoid(x).
func SiLU(s *mlxbind.Scope, x mlxbind.Array) mlxbind.Array { return s.Multiply(x, s.Sigmoid(x)) }

// SoftCap is cap·tanh(x/cap); a cap of 0 leaves x as it is.
func SoftCap(s *mlxbind.Scope, x mlxbind.Array, cap float64) mlxbind.Array {
	if cap == 0 {
		return x
	}
	c := s.Scalar(cap, x.DType())
	return s.Multiply(Tanh(s, s.Divide(x, c)), c)
}

func wrongRows(shape []int, want int) string {
	return fmt.Sprintf("has shape %v where the configuration needs %d rows", shape, want)
}
