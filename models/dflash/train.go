package dflash

import (
	"firesteel/mlxbind"
	"firesteel/models/block"
	"firesteel/models/checkpoint"
)

// terms works a batch out: each slot is given the tokens that really came before it.
func (n *network) terms(s *mlxbind.Scope, batch block.Batch) block.Terms {
	sight := block.SeeRows(s, n.scale(), n.contextRows(s, batch.Taps), batch.Padding)
	hidden := n.hidden(s, sight, s.AsType(batch.Anchors, mlxbind.Int32))
	rows := n.Rows(s, batch.Before(s)) // [b, gamma, rank]
	logits := s.Add(n.BaseLogits(s, hidden), n.biases(s, rows, hidden))
	return block.Judge(s, batch, logits, n.confidenceLogits(s, hidden, rows), n.target)
}

// biases are the Markov biases of all slots at once [b, gamma, vocabulary].
func (n *network) biases(s *mlxbind.Scope, rows, hidden mlxbind.Array) mlxbind.Array {
	if n.config.Head != checkpoint.HeadRNN {
		bias, _ := n.Bias(s, rows, hidden, mlxbind.Array{})
		return bias
	}
	b := rows.Dim(0)
	slot := func(a mlxbind.Array, k int) mlxbind.Array { return s.Reshape(s.Slice(a, 1, k, k+1), b, -1) }
	list := make([]mlxbind.Array, n.config.Gamma)
	carried := n.Start(s, b)
	for k := range list {
		list[k], carried = n.Bias(s, slot(rows, k), slot(hidden, k), carried)
	}
	return s.Stack(1, list...)
}

// Terms works a batch out with the weights of now.
func (d *Drafter) Terms(s *mlxbind.Scope, batch block.Batch) block.Terms {
	out := s.Within(func(s *mlxbind.Scope) []mlxbind.Array {
		return d.terms(s, block.BatchOf(batch.Arrays(s))).Arrays()
	})
	if s.Err() != nil {
		return block.Terms{}
	}
	return block.TermsOf(out)
}

// Lesson implements block.Student.
func (d *Drafter) Lesson(s *mlxbind.Scope, weights []mlxbind.Array, batch block.Batch) block.Terms {
	n := network{d.config, d.target, arrange(d.config, weights)}
	return n.terms(s, batch)
}

// Weights are the drafter's own arrays, in the order of Config().Tensors(), float32.
func (d *Drafter) Weights() []mlxbind.Array { return d.weights }

// SetWeights takes other arrays of the same shapes in the place of its own; what was compiled with
// the old ones is made anew when next drafting.
func (d *Drafter) SetWeights(s *mlxbind.Scope, weights []mlxbind.Array) error {
	if err := s.Eval(weights...); err != nil {
		return err
	}
	held := make([]mlxbind.Array, len(weights))
	for i, w := range weights {
		held[i] = s.Hold(w)
	}
	d.forget()
	d.free()
	d.weights = held
	d.parameters = arrange(d.config, held)
	return s.Err()
}
