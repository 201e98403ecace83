package nn

import "firesteel/mlxbind"

// State is the caches of a model's layers, which move together.
type State struct{ Caches []*Cache }

// Position is the number of tokens so far.
func (st *State) Position() int {
	if len(st.Caches) == 0 {
		return 0
	}
	return st.Caches[0].Position()
}

// Drop forgets the last n tokens in every layer.
func (st *State) Drop(n int) error {
	for _, c := range st.Caches {
		if err := c.Drop(n); err != nil {
			return err
		}
	}
	return nil
}

// Buffers are the arrays behind the caches.
func (st *State) Buffers() []mlxbind.Array {
	buffers := make([]mlxbind.Array, len(st.Caches))
	for i, c := range st.Caches {
		buffers[i] = c.buffer
	}
	return buffers
}

// Bytes is what the caches hold on the device.
func (st *State) Bytes() (total int64) {
	for _, c := range st.Caches {
		total += c.Bytes()
	}
	return total
}

// Close frees the caches.
func (st *State) Close() {
	for _, c := range st.Caches {
		c.Close()
	}
}
