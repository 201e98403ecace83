package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxID bounds token ids, so that a damaged file can't ask for gigabytes.
const maxID = 1 << 22

// merge is what joining two adjacent tokens gives, and how early it is done.
type merge struct {
	rank int32 // position in the list of merges; the lowest is done first
	id   int32 // the joined token
}

// bpe is the byte-pair model: it turns one word into ids. It is never changed after reading.
type bpe struct {
	vocab  map[string]int32
	merges map[uint64]merge // keyed by pairKey
	runes  map[rune]int32   // tokens of one rune
	low    [512]int32       // the same for the first runes; -1 where there is none
	bytes  [256]int32       // byte fallback tokens; -1 where there is none

	unknown      int32 // -1 when there is none
	byteFallback bool
	fuseUnknown  bool
	ignoreMerges bool
}

func pairKey(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) }

// readBPE reads the "model" object and the texts of its vocabulary by id ("" in gaps).
func readBPE(raw json.RawMessage) (*bpe, []string, error) {
	var parts struct {
		kind, vocab, merges, unknown, dropout, prefix, suffix, fuse, fallback, ignore json.RawMessage
	}
	c := cursor{data: raw}
	if c.peek() != '{' {
		return nil, nil, badField("model", "want an object")
	}
	err := c.object(func(key string) error {
		into := map[string]*json.RawMessage{
			"type": &parts.kind, "vocab": &parts.vocab, "merges": &parts.merges,
			"unk_token": &parts.unknown, "dropout": &parts.dropout,
			"continuing_subword_prefix": &parts.prefix, "end_of_word_suffix": &parts.suffix,
			"fuse_unk": &parts.fuse, "byte_fallback": &parts.fallback, "ignore_merges": &parts.ignore,
		}[key]
		value, err := c.skip()
		if into != nil {
			*into = value
		}
		return err
	})
	if err != nil {
		return nil, nil, &fieldError{field: "model", detail: "not readable", err: err}
	}

	m := &bpe{unknown: -1}
	var kind, unknown, prefix, suffix string
	var dropout float64
	for _, f := range []struct {
		name string
		raw  json.RawMessage
		into any
	}{
		{"type", parts.kind, &kind}, {"unk_token", parts.unknown, &unknown},
		{"dropout", parts.dropout, &dropout}, {"continuing_subword_prefix", parts.prefix, &prefix},
		{"end_of_word_suffix", parts.suffix, &suffix}, {"fuse_unk", parts.fuse, &m.fuseUnknown},
		{"byte_fallback", parts.fallback, &m.byteFallback}, {"ignore_merges", parts.ignore, &m.ignoreMerges},
	} {
		if f.raw == nil {
			continue
		}
		if err := json.Unmarshal(f.raw, f.into); err != nil {
			return nil, nil, &fieldError{field: "model." + f.name, detail: "has the wrong type", err: err}
		}
	}
	// Old files leave the type out; what makes them BPE is the list of merges.
	if kind != "BPE" && (kind != "" || parts.merges == nil) {
		return nil, nil, badField("model.type", "%q is not supported, only BPE is", kind)
	}
	for _, f := range []struct{ name, value string }{{"continuing_subword_prefix", prefix}, {"end_of_word_suffix", suffix}} {
		if f.value != "" {
			return nil, nil, badField("model."+f.name, "%q is not supported", f.value)
		}
	}
	if dropout != 0 {
		return nil, nil, badField("model.dropout", "%v is not supported: it is for training", dropout)
	}
	if parts.vocab == nil {
		return nil, nil, badField("model.vocab", "is missing")
	}
	if parts.merges == nil {
		return nil, nil, badField("model.merges", "is missing")
	}

	texts, err := m.readVocabulary(parts.vocab)
	if err != nil {
		return nil, nil, err
	}
	if parts.unknown != nil && string(parts.unknown) != "null" {
		id, ok := m.vocab[unknown]
		if !ok {
			return nil, nil, badField("model.unk_token", "%q is not in model.vocab", unknown)
		}
		m.unknown = id
	}
	if err := m.readMerges(parts.merges, texts); err != nil {
		return nil, nil, err
	}
	return m, texts, nil
}

func (m *bpe) readVocabulary(raw json.RawMessage) ([]string, error) {
	c := cursor{data: raw}
	if c.peek() != '{' {
		return nil, badField("model.vocab", "want an object of token to id")
	}
	// One copy holds every token's text, so that the file's own buffer can go.
	type entry struct{ start, end, id int }
	var (
		arena   []byte
		entries []entry
		top     = -1
	)
	err := c.object(func(key string) error {
		id, err := c.whole()
		if err != nil {
			return &fieldError{field: fmt.Sprintf("model.vocab[%q]", key), detail: "not an id", err: err}
		}
		if id >= maxID {
			return badField(fmt.Sprintf("model.vocab[%q]", key), "id %d is too large", id)
		}
		start := len(arena)
		arena = append(arena, key...)
		entries = append(entries, entry{start, len(arena), id})
		top = max(top, id)
		return nil
	})
	if err != nil {
		return nil, inField("model.vocab", err)
	}
	if len(entries) == 0 {
		return nil, badField("model.vocab", "is empty")
	}

	all := string(arena)
	texts := make([]string, top+1)
	taken := make([]bool, top+1)
	m.vocab = make(map[string]int32, len(entries))
	m.runes = make(map[rune]int32)
	for _, e := range entries {
		text := all[e.start:e.end]
		if old, twice := m.vocab[text]; twice {
			return nil, badField(fmt.Sprintf("model.vocab[%q]", text), "appears twice, with ids %d and %d", old, e.id)
		}
		if taken[e.id] {
			return nil, badField(fmt.Sprintf("model.vocab[%q]", text), "id %d is already that of %q", e.id, texts[e.id])
		}
		taken[e.id], texts[e.id] = true, text
		m.vocab[text] = int32(e.id)
		if r, size := utf8.DecodeRuneInString(text); size > 0 && size == len(text) && (r != utf8.RuneError || size == 3) {
			m.runes[r] = int32(e.id)
		}
	}
	for i := range m.low {
		m.low[i] = -1
		if id, ok := m.runes[rune(i)]; ok {
			m.low[i] = id
		}
	}
	for i := range m.bytes {
		m.bytes[i] = -1
		if id, ok := m.vocab[fmt.Sprintf("<0x%02X>", i)]; ok {
			m.bytes[i] = id
		}
	}
	return texts, nil
}

func (m *bpe) readMerges(raw json.RawMessage, texts []string) error {
	c := cursor{data: raw}
	if c.peek() != '[' {
		return badField("model.merges", "want a list")
	}
	m.merges = make(map[uint64]merge, len(raw)/16)
	var joined []byte
	err := c.array(func(index int) error {
		bad := func(format string, args ...any) error {
			return badField(fmt.Sprintf("model.merges[%d]", index), format, args...)
		}
		var left, right []byte
		switch c.peek() {
		case '"':
			both, err := c.text()
			if err != nil {
				return err
			}
			first, second, ok := strings.Cut(string(both), " ")
			if !ok || strings.Contains(second, " ") {
				return bad("want two tokens with one space between them, found %q", both)
			}
			left, right = []byte(first), []byte(second)
		case '[':
			err := c.array(func(part int) error {
				text, err := c.text()
				switch part {
				case 0:
					left = text
				case 1:
					right = text
				default:
					return bad("want two tokens, found more")
				}
				return err
			})
			if err != nil {
				return inField(fmt.Sprintf("model.merges[%d]", index), err)
			}
			if right == nil {
				return bad("want two tokens")
			}
		default:
			return bad("want a string or a list of two strings")
		}
		l, ok := m.vocab[string(left)]
		if !ok {
			return bad("names %q, which is not in model.vocab", left)
		}
		r, ok := m.vocab[string(right)]
		if !ok {
			return bad("names %q, which is not in model.vocab", right)
		}
		joined = append(append(joined[:0], left...), right...)
		id, ok := m.vocab[string(joined)]
		if !ok {
			return bad("makes %q, which is not in model.vocab", joined)
		}
		m.merges[pairKey(l, r)] = merge{rank: int32(index), id: id}
		return nil
	})
	return inField("model.merges", err)
}

// inField gives an error its field, unless it has one.
func inField(field string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := err.(*fieldError); ok {
		return err
	}
	return &fieldError{field: field, detail: "not readable", err: err}
}

// worker is one call's scratch space.
type worker struct {
	m       *bpe
	blocked map[int32]bool // tokens that may not be formed; nil for none
	ids     []int32
	next    []int32
	prev    []int32
	heap    []candidate
}

// candidate is a merge that could be done at a position; it is stale once either side changed.
type candidate struct {
	rank, at, left, right int32
}

func (a candidate) before(b candidate) bool {
	return a.rank < b.rank || a.rank == b.rank && a.at < b.at
}

// encode appends the ids of one word.
func (w *worker) encode(out []int, word string) []int {
	if word == "" {
		return out
	}
	if w.m.ignoreMerges {
		if id, ok := w.m.vocab[word]; ok && !w.blocked[id] {
			return append(out, int(id))
		}
	}
	w.split(word)
	if len(w.ids) > 24 {
		w.mergeMany()
	} else {
		w.mergeFew()
	}
	for _, id := range w.ids {
		out = append(out, int(id))
	}
	return out
}

// split fills ids with one token a character, bytes or the unknown token standing in.
func (w *worker) split(word string) {
	m := w.m
	w.ids = w.ids[:0]
	pending := false // an unknown token waits, so that its neighbours can join it
	for i, r := range word {
		var id int32
		ok := false
		if r < rune(len(m.low)) {
			id = m.low[r]
			ok = id >= 0
		} else {
			id, ok = m.runes[r]
		}
		if ok && !w.blocked[id] {
			if pending {
				w.ids = append(w.ids, m.unknown)
				pending = false
			}
			w.ids = append(w.ids, id)
			continue
		}
		if m.byteFallback {
			start, complete := len(w.ids), true
			for _, b := range []byte(word[i : i+utf8.RuneLen(r)]) {
				if m.bytes[b] < 0 {
					complete = false
					break
				}
				w.ids = append(w.ids, m.bytes[b])
			}
			if complete {
				continue
			}
			w.ids = w.ids[:start]
		}
		if m.unknown >= 0 {
			if pending && !m.fuseUnknown {
				w.ids = append(w.ids, m.unknown)
			}
			pending = true
		}
	}
	if pending {
		w.ids = append(w.ids, m.unknown)
	}
}

func (w *worker) find(left, right int32) (merge, bool) {
	found, ok := w.m.merges[pairKey(left, right)]
	if ok && w.blocked[found.id] {
		return merge{}, false
	}
	return found, ok
}

// mergeFew does the earliest merge, leftmost first, until none is left: quadratic, and faster
// than keeping order for the short words that make up text.
func (w *worker) mergeFew() {
	w.prev = slices.Grow(w.prev[:0], len(w.ids))[:len(w.ids)]
	w.next = slices.Grow(w.next[:0], len(w.ids))[:len(w.ids)]
	look := func(i int) {
		w.prev[i] = -1 // rank
		if i+1 < len(w.ids) {
			if found, ok := w.find(w.ids[i], w.ids[i+1]); ok {
				w.prev[i], w.next[i] = found.rank, found.id
			}
		}
	}
	for i := range w.ids {
		look(i)
	}
	for {
		best := -1
		for i := range w.ids {
			if w.prev[i] >= 0 && (best < 0 || w.prev[i] < w.prev[best]) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		w.ids[best] = w.next[best]
		w.ids = slices.Delete(w.ids, best+1, best+2)
		w.prev = slices.Delete(w.prev, best+1, best+2)
		w.next = slices.Delete(w.next, best+1, best+2)
		look(best)
		if best > 0 {
			look(best - 1)
		}
	}
}

// mergeMany does the same over a linked list with a heap: n log n for words of any length.
func (w *worker) mergeMany() {
	n := len(w.ids)
	w.prev = slices.Grow(w.prev[:0], n)[:n]
	w.next = slices.Grow(w.next[:0], n)[:n]
	w.heap = w.heap[:0]
	for i := range n {
		w.prev[i], w.next[i] = int32(i-1), int32(i+1)
		if i+1 == n {
			w.next[i] = -1
			continue
		}
		if found, ok := w.find(w.ids[i], w.ids[i+1]); ok {
			w.heap = append(w.heap, candidate{found.rank, int32(i), w.ids[i], w.ids[i+1]})
		}
	}
	for i := len(w.heap)/2 - 1; i >= 0; i-- {
		w.sink(i)
	}
	const gone = -1
	for len(w.heap) > 0 {
		top := w.heap[0]
		last := len(w.heap) - 1
		w.heap[0] = w.heap[last]
		w.heap = w.heap[:last]
		w.sink(0)
		right := w.next[top.at]
		if w.ids[top.at] != top.left || right < 0 || w.ids[right] != top.right {
			continue
		}
		done, ok := w.find(top.left, top.right)
		if !ok {
			continue
		}
		w.ids[top.at], w.ids[right] = done.id, gone
		after := w.next[right]
		w.next[top.at] = after
		if after >= 0 {
			w.prev[after] = top.at
			w.push(top.at, after)
		}
		if before := w.prev[top.at]; before >= 0 {
			w.push(before, top.at)
		}
	}
	kept := w.ids[:0]
	for _, id := range w.ids {
		if id != gone {
			kept = append(kept, id)
		}
	}
	w.ids = kept
}

func (w *worker) push(left, right int32) {
	found, ok := w.find(w.ids[left], w.ids[right])
	if !ok {
		return
	}
	w.heap = append(w.heap, candidate{found.rank, left, w.ids[left], w.ids[right]})
	for i := len(w.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !w.heap[i].before(w.heap[parent]) {
			return
		}
		w.heap[i], w.heap[parent] = w.heap[parent], w.heap[i]
		i = parent
	}
}

func (w *worker) sink(i int) {
	for {
		child := 2*i + 1
		if child >= len(w.heap) {
			return
		}
		if child+1 < len(w.heap) && w.heap[child+1].before(w.heap[child]) {
			child++
		}
		if !w.heap[child].before(w.heap[i]) {
			return
		}
		w.heap[i], w.heap[child] = w.heap[child], w.heap[i]
		i = child
	}
}
