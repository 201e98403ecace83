package nn

import (
	"math"

	"firesteel/mlxbind"
)

// Rotary turns pairs (i, i+d/2) of each head by an angle that grows with position.
type Rotary struct {
	wavelengths mlxbind.Array // [d/2] float32; +∞ for pairs that stay
	frequencies mlxbind.Array // 1 ÷ wavelengths
}

// Rotary builds the angles for heads of width d: pair i has wavelength theta^(2i/d), and only
// the first d·share/2 pairs turn (share 1: all). The powers are taken on the device in
// float32, as the reference does.
func (l *Loader) Rotary(d int, theta, share float64) *Rotary {
	if l.err != nil {
		return &Rotary{}
	}
	s := mlxbind.NewScope()
	defer s.Close()
	turning := int(float64(d) * share / 2)
	exponent := s.Divide(s.Arange(0, float64(2*turning), 2, mlxbind.Float32), s.Scalar(float64(d), mlxbind.Float32))
	w := s.Power(s.Scalar(theta, mlxbind.Float32), exponent)
	if rest := d/2 - turning; rest > 0 {
		still := make([]float32, rest)
		for i := range still {
			still[i] = float32(math.Inf(1))
		}
		w = s.Concatenate(0, w, s.Floats(still))
	}
	f := s.Divide(s.Scalar(1, mlxbind.Float32), w)
	if err := s.Eval(w, f); err != nil {
		l.err = err
		return &Rotary{}
	}
	return &Rotary{wavelengths: l.Weights.own(s, w), frequencies: l.Weights.own(s, f)}
}

// Turn is a Rotary at certain positions, ready to apply to any number of layers.
type Turn struct {
	rotary *Rotary
	offset mlxbind.Array // GPU: int32 scalar, or [batch]
	// Processor: [n, 1, d], or [batch, n, 1, d].
	cos, sin mlxbind.Array
}

// At prepares for n rows at offset, offset+1, …; offset is an int32 scalar on the device, or
// [batch] with one for each entry of the batch.
func (r *Rotary) At(s *mlxbind.Scope, offset mlxbind.Array, n int) Turn {
	t := Turn{rotary: r, offset: offset}
	if mlxbind.OnGPU() {
		return t
	}
	// The angles are worked out once for all layers; MLX's own rope would do so at each call.
	steps := s.Arange(0, float64(n), 1, mlxbind.Float32)
	position := s.AsType(offset, mlxbind.Float32)
	if len(offset.Shape()) == 1 {
		position = s.Reshape(position, -1, 1)
	}
	position = s.Add(position, steps)
	shape := append(position.Shape(), 1)
	angles := s.Multiply(s.Reshape(position, shape...), r.frequencies) // [.., n, d/2]
	cos, sin := s.Cos(angles), s.Sin(angles)
	shape = append(angles.Shape()[:len(shape)-1], 1, -1)
	t.cos = s.Reshape(s.Concatenate(-1, cos, cos), shape...)
	t.sin = s.Reshape(s.Concatenate(-1, s.Negative(sin), sin), shape...)
	return t
}

// Arrays are what a compiled function needs to rebuild the Turn with Over.
func (t Turn) Arrays() []mlxbind.Array {
	if t.cos.Valid() {
		return []mlxbind.Array{t.cos, t.sin}
	}
	return []mlxbind.Array{t.offset}
}

// Over rebuilds a Turn from its Arrays.
func (r *Rotary) Over(a []mlxbind.Array) Turn {
	if len(a) == 2 {
		return Turn{rotary: r, cos: a[0], sin: a[1]}
	}
	return Turn{rotary: r, offset: a[0]}
}

// Apply turns x [batch, n, heads, d] and returns it as [batch, heads, n, d].
func (t Turn) Apply(s *mlxbind.Scope, x mlxbind.Array) mlxbind.Array {
	if !t.cos.Valid() {
		return s.RopeAt(s.Transpose(x, 0, 2, 1, 3), t.rotary.wavelengths, t.offset)
	}
	shape := x.Shape()
	d := shape[3]
	halves := s.Reshape(x, shape[0], shape[1], shape[2], 2, d/2)
	swapped := s.Reshape(s.SliceStep(halves, 3, 1, -1, -1), shape...)
	turned := s.Add(s.Multiply(x, t.cos), s.Multiply(swapped, t.sin))
	return s.Transpose(turned, 0, 2, 1, 3)
}
