package dflash

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"

	"firesteel/mlxbind"
	"firesteel/models"
	"firesteel/models/checkpoint"
)

// deviation of the normal distribution that matrices begin with.
const deviation = 0.02

// Pieces that weights are written in.
const piece = 64 << 20

// New begins an untrained drafter for target: norms 1, matrices normal around 0, both ways into
// the Markov bias and the confidence head 0, so that it drafts what its block alone says and is
// sure of nothing. The same seed gives the same weights.
func New(seed uint32, config checkpoint.DSpark, target models.Target) (*Drafter, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	s := mlxbind.NewScope()
	defer s.Close()
	random := newNormals(seed)
	var weights []mlxbind.Array
	for _, t := range config.Tensors() {
		values := make([]float32, t.Elements())
		switch name := t.Name; {
		case strings.HasSuffix(name, "norm"):
			for i := range values {
				values[i] = 1
			}
		case name == "markov.w2" || name == "rnn.wO" || name == "rnn.bH" || strings.HasPrefix(name, "conf."):
		default:
			random.fill(values)
		}
		weights = append(weights, s.Floats(values, t.Shape...))
	}
	if err := s.Eval(weights...); err != nil {
		return nil, err
	}
	return hold(s, &config, target, weights)
}

// normals draws from the normal distribution by xorshift32 (13, 17, 5) and Box and Muller's
// method, so that a seed means the same numbers everywhere.
type normals struct{ state uint32 }

func newNormals(seed uint32) *normals {
	if seed == 0 {
		seed = 0x9e3779b9
	}
	return &normals{seed}
}

func (n *normals) uniform() float64 {
	n.state ^= n.state << 13
	n.state ^= n.state >> 17
	n.state ^= n.state << 5
	return float64(n.state) / (1 << 32)
}

func (n *normals) fill(values []float32) {
	for i := 0; i < len(values); i += 2 {
		// The generator never gives 0, so the logarithm is finite.
		radius := deviation * math.Sqrt(-2*math.Log(n.uniform()))
		sin, cos := math.Sincos(2 * math.Pi * n.uniform())
		values[i] = float32(radius * cos)
		if i+1 < len(values) {
			values[i+1] = float32(radius * sin)
		}
	}
}

// Save writes the drafter as the folder dir, whole or not at all. A drafter of the same kind that
// is there is replaced; anything else stays and is an error. Files hold shardLimit bytes at most,
// 0 meaning checkpoint.ShardLimit.
func (d *Drafter) Save(ctx context.Context, dir string, shardLimit int64) error {
	replace, err := replaceable(dir)
	if err != nil {
		return err
	}
	stage, err := checkpoint.NewStage(dir)
	if err != nil {
		return err
	}
	defer stage.Discard()
	if err := d.write(ctx, stage.Dir, shardLimit); err != nil {
		return err
	}
	return stage.Commit(replace)
}

// replaceable tells whether dir holds a drafter of this kind and nothing else.
func replaceable(dir string) (bool, error) {
	listing, err := checkpoint.List(dir)
	switch {
	case checkpoint.KindOf(err) == checkpoint.KindNotFound:
		return false, nil
	case err != nil:
		return false, err
	case !listing.Has("dspark.json"):
		return false, &checkpoint.Error{Kind: checkpoint.KindNotWritable, Path: dir, Detail: "it exists and is no drafter of this kind", Err: os.ErrExist}
	}
	for _, name := range listing.Names {
		if name != "dspark.json" && name != "config.json" && !strings.HasPrefix(name, "model") {
			return false, &checkpoint.Error{Kind: checkpoint.KindNotWritable, Path: dir, Detail: fmt.Sprintf("it holds %s too", name), Err: os.ErrExist}
		}
	}
	return true, nil
}

func (d *Drafter) write(ctx context.Context, dir string, shardLimit int64) error {
	tensors := d.config.Tensors()
	w, err := checkpoint.CreateWeights(dir, checkpoint.Layout{Tensors: tensors, ShardLimit: shardLimit})
	if err != nil {
		return err
	}
	defer w.Abandon()
	for i, t := range tensors {
		rows := 1
		if t.Elements() > 0 {
			rows = max(1, piece*t.Shape[0]/int(4*t.Elements()))
		}
		for from := 0; from < t.Shape[0]; from += rows {
			if err := ctx.Err(); err != nil {
				return err
			}
			data, err := read(d.weights[i], from, min(from+rows, t.Shape[0]))
			if err != nil {
				return err
			}
			if err := w.Append(t.Name, data); err != nil {
				return err
			}
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return d.config.Write(dir)
}

func read(a mlxbind.Array, from, to int) ([]byte, error) {
	s := mlxbind.NewScope()
	defer s.Close()
	return s.ReadBytes(s.Slice(a, 0, from, to))
}
