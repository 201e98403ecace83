package nn

import "firesteel/mlxbind"

// Up to this many rows a Segment is compiled: decoding and verifying meet the same few sizes
// again and again. Longer inputs, as in prefill, are not worth a trace each.
const compiledRows = 16

// Segment is a piece of a model that maps arrays to arrays without touching a cache. It is
// compiled for short inputs.
type Segment struct {
	build    mlxbind.Graph
	compiled *mlxbind.Function
}

// NewSegment wraps build. What build captures must live as long as the segment.
func NewSegment(build mlxbind.Graph) *Segment { return &Segment{build: build} }

// Call runs the segment on an input of n rows.
func (g *Segment) Call(s *mlxbind.Scope, n int, in ...mlxbind.Array) []mlxbind.Array {
	if n > compiledRows {
		return s.Within(func(s *mlxbind.Scope) []mlxbind.Array { return g.build(s, in) })
	}
	if g.compiled == nil {
		compiled, err := mlxbind.Compile(g.build)
		if err != nil {
			s.Fail(err)
			return nil
		}
		g.compiled = compiled
	}
	return s.Call(g.compiled, in...)
}

// Close frees the compiled form.
func (g *Segment) Close() {
	if g.compiled != nil {
		g.compiled.Close()
		g.compiled = nil
	}
}
