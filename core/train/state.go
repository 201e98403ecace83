package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"firesteel/core/prompts"
	"firesteel/mlxbind"
	"firesteel/models/block"
	"firesteel/models/checkpoint"
)

// Errors about what an earlier training left.
var (
	ErrNothingBegun = errors.New("no training for this folder was begun")
	ErrBegun        = errors.New("a training for this folder was begun and not ended")
	ErrOther        = errors.New("the training that was begun for this folder is another: its model, prompts or settings differ")
)

// History is how a training went.
type History struct {
	Step   int       `json:"step"`   // steps done
	Losses []float64 `json:"losses"` // of each step
	Accept []float64 `json:"accept"` // of each step, the mean over slots and anchors of the accept rate given the true tokens
	Live   []Live    `json:"live"`
	Best   Live      `json:"best"`
}

// bench is the hidden folder beside the one that is to be made, where a training lies while it
// goes on: in "assignment.json" what it was begun with, in "state" how far it is, in "best" the best
// drafter so far, and in "texts" what is learned from, unless the job has another place for that.
type bench string

func benchFor(out string) (bench, error) {
	out, err := filepath.Abs(out)
	return bench(filepath.Join(filepath.Dir(out), checkpoint.Hidden(filepath.Base(out), ".training"))), err
}

func (b bench) state() string { return filepath.Join(string(b), "state") }
func (b bench) best() string  { return filepath.Join(string(b), "best") }

func (b bench) texts() string { return filepath.Join(string(b), "texts") }

func (b bench) assignment() string { return filepath.Join(string(b), "assignment.json") }

const stateName = "state.json"

// assignment is what a training was begun with, kept so that it can go on also where a file of
// prompts has changed since, as that of kept chats does.
type assignment struct {
	Prompts  []prompts.Prompt  `json:"prompts"`
	Settings Settings          `json:"settings"`
	Shape    checkpoint.DSpark `json:"shape"`
}

// resume takes up what the job was begun with, where it goes on and names no prompts.
func (j *Job) resume() error {
	if !j.Resume || len(j.Prompts) > 0 {
		return nil
	}
	b, err := benchFor(j.Out)
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(b.assignment())
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNothingBegun
	}
	if err != nil {
		return err
	}
	var a assignment
	if err := json.Unmarshal(raw, &a); err != nil {
		return &checkpoint.Error{Kind: checkpoint.KindCorrupt, Path: b.assignment(), Err: err}
	}
	// How much room and time there is may differ from then.
	a.Settings.DataLimit, a.Settings.MaxTime = j.Settings.DataLimit, j.Settings.MaxTime
	j.Prompts, j.Settings, j.Shape = a.Prompts, a.Settings, a.Shape
	return nil
}

// saved is state.json.
type saved struct {
	Plan string `json:"plan"`
	History
}

// begun tells whether there is something to go on with.
func (b bench) begun() bool {
	_, err := os.Stat(b.assignment())
	return err == nil
}

// learned tells whether there is a state.
func (b bench) learned() bool {
	_, err := os.Stat(filepath.Join(b.state(), stateName))
	return err == nil
}

// begin keeps what a training is begun with.
func (b bench) begin(a assignment) error {
	if b.begun() {
		return nil
	}
	if err := os.MkdirAll(string(b), 0o755); err != nil {
		return &checkpoint.Error{Kind: checkpoint.KindNotWritable, Path: string(b), Err: err}
	}
	return checkpoint.WriteJSON(b.assignment(), a)
}

// remove throws everything away.
func (b bench) remove() error { return os.RemoveAll(string(b)) }

// Discard throws away what a training for the folder out left unfinished.
func Discard(out string) error {
	b, err := benchFor(out)
	if err != nil {
		return err
	}
	return b.remove()
}

// Begun tells whether a training for the folder out was begun and can go on.
func Begun(out string) bool {
	b, err := benchFor(out)
	return err == nil && b.begun()
}

// learning is what changes from step to step, float32 arrays on the device.
type learning struct {
	weights []mlxbind.Array
	moments
}

func (l *learning) all() []mlxbind.Array {
	var list []mlxbind.Array
	for _, part := range [][]mlxbind.Array{l.weights, l.first, l.second} {
		list = append(list, part...)
	}
	return list
}

// hold makes the arrays of list, weights and both moments, what l holds.
func (l *learning) hold(s *mlxbind.Scope, list []mlxbind.Array) {
	var held []mlxbind.Array
	for _, a := range list {
		held = append(held, s.Hold(a))
	}
	l.free()
	n := len(held) / 3
	l.weights, l.first, l.second = held[:n], held[n:2*n], held[2*n:]
}

func (l *learning) free() {
	for _, a := range l.all() {
		a.Free()
	}
	*l = learning{}
}

// begin holds a student's weights and moments of 0.
func (l *learning) begin(student block.Student) error {
	s := mlxbind.NewScope()
	defer s.Close()
	m := newMoments(s, student.Weights())
	list := append(append([]mlxbind.Array{}, student.Weights()...), append(m.first, m.second...)...)
	if err := s.Eval(list...); err != nil {
		return err
	}
	l.hold(s, list)
	return s.Err()
}

func tensorName(i int) string { return fmt.Sprintf("%05d", i) }

// save puts the state on the disk, in place of an older one, whole or not at all.
func (b bench) save(ctx context.Context, l *learning, plan string, h History) error {
	stage, err := checkpoint.NewStage(b.state())
	if err != nil {
		return err
	}
	defer stage.Discard()
	var layout checkpoint.Layout
	all := l.all()
	for i, a := range all {
		layout.Tensors = append(layout.Tensors, checkpoint.Tensor{Name: tensorName(i), DType: checkpoint.F32, Shape: a.Shape()})
	}
	w, err := checkpoint.CreateWeights(stage.Dir, layout)
	if err != nil {
		return err
	}
	defer w.Abandon()
	for i, a := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := writeArray(w, tensorName(i), a); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := checkpoint.WriteJSON(filepath.Join(stage.Dir, stateName), saved{plan, h}); err != nil {
		return err
	}
	return stage.Commit(true)
}

func writeArray(w *checkpoint.Writer, name string, a mlxbind.Array) error {
	s := mlxbind.NewScope()
	defer s.Close()
	raw, err := s.ReadBytes(a)
	if err != nil {
		return err
	}
	return w.Append(name, raw)
}

// load takes up what save left.
func (b bench) load(ctx context.Context, l *learning, plan string) (History, error) {
	path := filepath.Join(b.state(), stateName)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return History{}, ErrNothingBegun
	}
	if err != nil {
		return History{}, err
	}
	var have saved
	if err := json.Unmarshal(raw, &have); err != nil {
		return History{}, &checkpoint.Error{Kind: checkpoint.KindCorrupt, Path: path, Err: err}
	}
	if have.Plan != plan {
		return History{}, ErrOther
	}
	folder, err := checkpoint.Open(b.state())
	if err != nil {
		return History{}, err
	}
	defer folder.Close()
	s := mlxbind.NewScope()
	defer s.Close()
	var list []mlxbind.Array
	for i := range folder.Names() {
		t, ok := folder.Tensor(tensorName(i))
		if !ok {
			return History{}, &checkpoint.Error{Kind: checkpoint.KindIncomplete, Path: b.state(), Tensor: tensorName(i), Detail: "missing"}
		}
		raw := make([]byte, t.Size)
		if err := folder.Read(ctx, t, raw); err != nil {
			return History{}, err
		}
		list = append(list, s.Data(raw, mlxbind.Float32, t.Shape...))
	}
	l.hold(s, list)
	return have.History, s.Err()
}
