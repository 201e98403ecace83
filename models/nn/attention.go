package nn

import "firesteel/mlxbind"

// Attend is softmax(scale·q·kᵀ + mask)·v: q [batch, heads, n, d], k and v [batch, kv, m, d]
// with heads a multiple of kv, mask additive and broadcast to [batch, 1, n, m] (the zero Array
// means everything is visible). The result is [batch, n, heads·d].
func Attend(s *mlxbind.Scope, q, k, v mlxbind.Array, scale float32, mask mlxbind.Array) mlxbind.Array {
	shape := q.Shape()
	batch, heads, n, d := shape[0], shape[1], shape[2], shape[3]
	if mlxbind.OnGPU() {
		out := s.Attention(q, k, v, scale, mask)
		return s.Reshape(s.Transpose(out, 0, 2, 1, 3), batch, n, heads*d)
	}
	// Queries that share a key head are rows of one product, so keys are read once.
	kv, m := k.Dim(1), k.Dim(2)
	group := heads / kv
	if scale != 1 {
		q = s.Multiply(q, s.Scalar(float64(scale), q.DType()))
	}
	scores := s.Matmul(s.Reshape(q, batch, kv, group*n, d), s.Transpose(k, 0, 1, 3, 2))
	if mask.Valid() {
		scores = s.Reshape(s.Add(s.Reshape(scores, batch, heads, n, m), mask), batch, kv, group*n, m)
	}
	out := s.Reshape(s.Matmul(s.Softmax(scores, -1), v), batch, heads, n, d)
	return s.Reshape(s.Transpose(out, 0, 2, 1, 3), batch, n, heads*d)
}

// Mask is the additive mask [n, m] for n queries at the end of m rows of consecutive
// positions: each sees itself and earlier rows, at most window of them (0: all). The zero Array
// when every query sees every row.
func Mask(s *mlxbind.Scope, n, m, window int, dtype mlxbind.DType) mlxbind.Array {
	if n == 1 && (window == 0 || m <= window) {
		return mlxbind.Array{}
	}
	rows := s.Reshape(s.Arange(float64(m-n), float64(m), 1, mlxbind.Int32), n, 1)
	columns := s.Arange(0, float64(m), 1, mlxbind.Int32)
	seen := s.LessEqual(columns, rows)
	if window > 0 {
		seen = s.And(seen, s.Greater(columns, s.Subtract(rows, s.Scalar(float64(window), mlxbind.Int32))))
	}
	return Additive(s, seen, dtype)
}

// Additive is 0 where seen holds and −∞ elsewhere.
func Additive(s *mlxbind.Scope, seen mlxbind.Array, dtype mlxbind.DType) mlxbind.Array {
	return s.Where(seen, s.Scalar(0, dtype), s.Scalar(minusInfinity, dtype))
}
