package mlxbind

/*
#include "bridge.h"
*/
import "C"

// Randomness comes from explicit keys: the same key gives the same values.

// Key is a random key for a seed.
func (s *Scope) Key(seed uint64) Array {
	if !s.ready("random key") {
		return Array{}
	}
	r := C.mlx_array_new()
	return s.made(r, C.mlx_random_key(&r, C.uint64_t(seed)), "random key")
}

// Uniform draws float32 values from [0, 1).
func (s *Scope) Uniform(key Array, shape ...int) Array {
	if !s.ready("uniform", key) {
		return Array{}
	}
	low, high := s.Scalar(0, Float32), s.Scalar(1, Float32)
	dims, n := ints(shape)
	r := C.mlx_array_new()
	return s.made(r, C.mlx_random_uniform(&r, low.c, high.c, dims, n, C.MLX_FLOAT32, key.c, stream), "uniform")
}

// Normal draws float32 values from the standard normal distribution.
func (s *Scope) Normal(key Array, shape ...int) Array {
	if !s.ready("normal", key) {
		return Array{}
	}
	dims, n := ints(shape)
	r := C.mlx_array_new()
	return s.made(r, C.mlx_random_normal(&r, dims, n, C.MLX_FLOAT32, 0, 1, key.c, stream), "normal")
}

// Categorical draws one position a row of logits [.., V] → [..]; uint32. Logits need not be
// normalized; −∞ is never drawn.
func (s *Scope) Categorical(key, logits Array) Array {
	if !s.ready("categorical", key, logits) {
		return Array{}
	}
	r := C.mlx_array_new()
	return s.made(r, C.mlx_random_categorical(&r, logits.c, -1, key.c, stream), "categorical")
}
