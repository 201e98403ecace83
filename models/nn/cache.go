package nn

import (
	"fmt"
	"math"

	"firesteel/mlxbind"
)

var minusInfinity = math.Inf(-1)

// Rows a sliding cache keeps beyond its window, so that this many can be dropped again after
// it has wrapped: more than any block of drafts.
const rollback = 64

// Rows a cache grows by, at least.
const growth = 256

// Cache holds keys and values of past tokens for one layer, in one buffer
// [1, keys+values heads, capacity, d] in order of position. With a window, rows that no later
// query can see are given up as room is needed, and the last ones can still be dropped: the
// buffer never wraps around, it moves its rows to the front.
type Cache struct {
	keys, values int // heads
	window       int // 0: unlimited

	buffer   mlxbind.Array
	capacity int
	first    int // where the oldest kept row is
	rows     int // kept rows
	position int // tokens so far: the position of the next row
}

// NewCache is empty. keys and values are head counts; window is how many rows a query sees,
// itself included.
func NewCache(keys, values, window int) *Cache {
	return &Cache{keys: keys, values: values, window: window}
}

// Position is the number of tokens so far.
func (c *Cache) Position() int { return c.position }

// Rows is how many rows are kept.
func (c *Cache) Rows() int { return c.rows }

// Window is how many rows a query sees, itself included; 0 means all.
func (c *Cache) Window() int { return c.window }

// Bytes is what the cache holds on the device.
func (c *Cache) Bytes() int64 { return c.buffer.Bytes() }

// Close frees the rows.
func (c *Cache) Close() {
	c.buffer.Free()
	*c = *NewCache(c.keys, c.values, c.window)
}

// Seen is how many rows n new queries look at, the n new ones included.
func (c *Cache) Seen(n int) int {
	past := c.rows
	if c.window > 0 {
		past = min(past, c.window-1)
	}
	return past + n
}

// Append adds rows [1, heads, n, d], keys' heads first, and returns the keys and values that
// the n new queries look at, [1, .., Seen(n), d].
func (c *Cache) Append(s *mlxbind.Scope, rows mlxbind.Array) (k, v mlxbind.Array) {
	n := rows.Dim(2)
	seen := c.Seen(n)
	if c.first+c.rows+n > c.capacity {
		c.makeRoom(s, rows)
	}
	updated := s.Update(c.buffer, rows, 2, c.first+c.rows)
	// Our handle goes before the update is evaluated, so that it happens in place.
	c.buffer.Free()
	c.buffer = s.Hold(updated)
	c.rows += n
	c.position += n
	end := c.first + c.rows
	visible := s.Slice(updated, 2, end-seen, end)
	return s.Slice(visible, 1, 0, c.keys), s.Slice(visible, 1, c.keys, c.keys+c.values)
}

// makeRoom moves the rows that are still needed to the front of a buffer with room for more.
func (c *Cache) makeRoom(s *mlxbind.Scope, rows mlxbind.Array) {
	n, d := rows.Dim(2), rows.Dim(3)
	keep := c.rows
	if c.window > 0 {
		keep = min(keep, c.window-1+rollback)
	}
	need := keep + n
	capacity := c.capacity
	if c.window > 0 {
		capacity = max(c.window-1+rollback+growth, need)
	} else if need > capacity {
		capacity = max(need+growth, capacity+capacity/4)
		capacity = (capacity + growth - 1) / growth * growth
	}
	fresh := s.Zeros(rows.DType(), 1, c.keys+c.values, capacity, d)
	if keep > 0 {
		end := c.first + c.rows
		fresh = s.Update(fresh, s.Slice(c.buffer, 2, end-keep, end), 2, 0)
	}
	c.buffer.Free()
	c.buffer = s.Hold(fresh)
	c.capacity, c.first, c.rows = capacity, 0, keep
}

// Drop forgets the last n rows, whether or not the window has been passed.
func (c *Cache) Drop(n int) error {
	if n < 0 || n > c.rows || c.window > 0 && c.rows-n < min(c.position-n, c.window-1) {
		return fmt.Errorf("cache: cannot drop %d rows of %d at position %d", n, c.rows, c.position)
	}
	c.rows -= n
	c.position -= n
	return nil
}

// Kept is every kept key and value, [1, .., Rows(), d]; not to be called on an empty cache.
func (c *Cache) Kept(s *mlxbind.Scope) (k, v mlxbind.Array) {
	all := c.Last(s, c.rows)
	return s.Slice(all, 1, 0, c.keys), s.Slice(all, 1, c.keys, c.keys+c.values)
}

// Last is the last n kept rows [1, heads, n, d], for tests and for sharing.
func (c *Cache) Last(s *mlxbind.Scope, n int) mlxbind.Array {
	end := c.first + c.rows
	return s.Slice(c.buffer, 2, end-n, end)
}
