package check

import (
	"context"
	"math"

	"firesteel/core/thread"
	"firesteel/mlxbind"
)

// Health is what a self-test found.
type Health struct {
	MLX     string // MLX's version
	Device  string
	GPU     bool
	Product float64 // how far one matrix product is from plain code, largest absolute difference
}

// gpuLimit is how far a product may be off on a GPU: some multiply float32 with ten bits after
// the point, which for sums of 65 terms is up to some hundredths.
const gpuLimit = 5e-2

// Right tells whether the product is as close as this machine's arithmetic allows.
func (h Health) Right() bool {
	if h.GPU {
		return h.Product <= gpuLimit
	}
	return h.Product <= Limit
}

// Machine tries MLX out on a thread of its own.
func Machine(ctx context.Context) (Health, error) {
	var h Health
	t, err := thread.Start()
	if err != nil {
		return h, err
	}
	defer t.Close()
	err = t.Do(ctx, func() error {
		h.MLX, h.Device, h.GPU = mlxbind.Version(), mlxbind.DeviceName(), mlxbind.OnGPU()
		s := mlxbind.NewScope()
		defer s.Close()
		const n, k, m = 7, 65, 130
		a, b := s.Normal(s.Key(1), n, k), s.Normal(s.Key(2), k, m)
		x, err := s.ReadFloats(a)
		if err != nil {
			return err
		}
		y, err := s.ReadFloats(b)
		if err != nil {
			return err
		}
		got, err := s.ReadFloats(s.Matmul(a, b))
		if err != nil {
			return err
		}
		for i := range n {
			for j := range m {
				sum := 0.0
				for l := range k {
					sum += float64(x[i*k+l]) * float64(y[l*m+j])
				}
				h.Product = max(h.Product, math.Abs(sum-float64(got[i*m+j])))
			}
		}
		return nil
	})
	return h, err
}
