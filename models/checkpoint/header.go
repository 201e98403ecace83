package checkpoint

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"sort"
	"strconv"
	"unicode/utf8"
)

const (
	// headerLimit is the reference reader's limit; nothing longer can be a file it wrote.
	headerLimit = 100_000_000
	// nestingLimit is far above what a header needs: an object of objects holding arrays.
	nestingLimit = 32
	// dimensionLimit is the longest side that MLX can address.
	dimensionLimit = math.MaxInt32
	rankLimit      = 16
)

// Tensor is where one tensor's bytes lie. The bytes are little-endian, row-major.
type Tensor struct {
	Name   string
	DType  DType
	Shape  []int  // shared with the folder: don't change it
	File   string // the shard's name inside the folder
	Offset int64  // of the first byte, from the start of the file
	Size   int64  // bytes
}

// Elements returns the number of elements; 1 for a scalar.
func (t Tensor) Elements() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= int64(d)
	}
	return n
}

// readHeader reads and checks the header of a safetensors file of size bytes. path is for
// messages, file becomes Tensor.File. Tensors come sorted by offset.
func readHeader(r io.ReaderAt, size int64, path, file string) ([]Tensor, error) {
	fail := func(kind Kind, tensor, format string, args ...any) error {
		return &Error{Kind: kind, Path: path, Tensor: tensor, Detail: fmt.Sprintf(format, args...)}
	}
	if size == 0 {
		return nil, &Error{Kind: KindIncomplete, Path: path, Detail: "the file is empty", Files: []string{file}}
	}
	var prefix [8]byte
	if size < 8 {
		return nil, fail(KindCorrupt, "", "%d bytes are too few for a safetensors file", size)
	}
	if err := readFull(r, prefix[:], 0); err != nil {
		return nil, readError(path, "", err)
	}
	length := binary.LittleEndian.Uint64(prefix[:])
	switch {
	case string(prefix[:]) == "version " && size < 1024:
		return nil, &Error{Kind: KindIncomplete, Path: path, Files: []string{file},
			Detail: "the file is a Git LFS pointer that stands for the weights, not the weights"}
	case length == 0:
		return nil, fail(KindCorrupt, "", "the header is empty")
	case length > headerLimit:
		return nil, fail(KindCorrupt, "", "the header claims %d bytes; no safetensors header is longer than %d", length, headerLimit)
	case length > uint64(size-8):
		return nil, &Error{Kind: KindIncomplete, Path: path, Files: []string{file},
			Detail: fmt.Sprintf("the header claims %d bytes, but the file has %d", length, size)}
	}
	header := make([]byte, length)
	if err := readFull(r, header, 8); err != nil {
		return nil, readError(path, "", err)
	}
	start := 8 + int64(length)
	entries, err := parseHeader(header)
	if err != nil {
		var bad *headerError
		if errors.As(err, &bad) {
			return nil, fail(bad.kind, bad.tensor, "%s", bad.detail)
		}
		return nil, fail(KindCorrupt, "", "%v", err)
	}
	return placeTensors(entries, start, size, path, file)
}

// headerEntry is one tensor as the header states it; offsets count from the end of the header.
type headerEntry struct {
	name       string
	dtype      DType
	shape      []int
	begin, end int64
}

type headerError struct {
	kind           Kind
	tensor, detail string
}

func (e *headerError) Error() string { return e.detail }

func badHeader(tensor, format string, args ...any) error {
	return &headerError{KindCorrupt, tensor, fmt.Sprintf(format, args...)}
}

// headerParser walks the header token by token, because decoding into a map would silently
// keep the last of two entries with one name.
type headerParser struct {
	dec *json.Decoder
}

func parseHeader(header []byte) ([]headerEntry, error) {
	if header[0] != '{' {
		return nil, badHeader("", "the header does not start with an opening brace")
	}
	if !utf8.Valid(header) {
		return nil, badHeader("", "the header is not valid UTF-8")
	}
	if err := checkNesting(header); err != nil {
		return nil, err
	}
	p := &headerParser{dec: json.NewDecoder(bytes.NewReader(header))}
	p.dec.UseNumber()
	if _, err := p.dec.Token(); err != nil {
		return nil, p.syntax(err)
	}
	var entries []headerEntry
	seen := map[string]bool{}
	for p.dec.More() {
		name, err := p.key()
		if err != nil {
			return nil, err
		}
		if seen[name] {
			return nil, badHeader(name, "the name appears twice in the header")
		}
		seen[name] = true
		if name == "__metadata__" {
			// Free text for people and tools. Odd values there are no reason to refuse weights.
			if err := p.skip(); err != nil {
				return nil, err
			}
			continue
		}
		entry, err := p.entry(name)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	if _, err := p.dec.Token(); err != nil {
		return nil, p.syntax(err)
	}
	if _, err := p.dec.Token(); err != io.EOF {
		return nil, badHeader("", "text follows the header's closing brace")
	}
	return entries, nil
}

func (p *headerParser) syntax(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return badHeader("", "the header's JSON ends early")
	}
	return badHeader("", "the header is not valid JSON: %v", err)
}

func (p *headerParser) key() (string, error) {
	token, err := p.dec.Token()
	if err != nil {
		return "", p.syntax(err)
	}
	name, ok := token.(string)
	if !ok {
		return "", badHeader("", "the header is not valid JSON: unexpected %v", token)
	}
	return name, nil
}

// skip consumes one value; nesting is bounded already.
func (p *headerParser) skip() error {
	depth := 0
	for {
		token, err := p.dec.Token()
		if err != nil {
			return p.syntax(err)
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

func (p *headerParser) entry(name string) (headerEntry, error) {
	entry := headerEntry{name: name}
	token, err := p.dec.Token()
	if err != nil {
		return entry, p.syntax(err)
	}
	if token != json.Delim('{') {
		return entry, badHeader(name, "its entry is not an object")
	}
	seen := map[string]bool{}
	for p.dec.More() {
		field, err := p.key()
		if err != nil {
			return entry, err
		}
		if seen[field] {
			return entry, badHeader(name, "%q appears twice in its entry", field)
		}
		seen[field] = true
		switch field {
		case "dtype":
			token, err := p.dec.Token()
			if err != nil {
				return entry, p.syntax(err)
			}
			text, ok := token.(string)
			if !ok {
				return entry, badHeader(name, "its dtype is not text")
			}
			entry.dtype = DType(text)
		case "shape":
			values, err := p.integers(name, "shape", rankLimit)
			if err != nil {
				return entry, err
			}
			entry.shape = make([]int, len(values))
			for i, v := range values {
				if v > dimensionLimit {
					return entry, &headerError{KindUnsupported, name, fmt.Sprintf("a dimension of %d is too long", v)}
				}
				entry.shape[i] = int(v)
			}
		case "data_offsets":
			values, err := p.integers(name, "data_offsets", 2)
			if err != nil {
				return entry, err
			}
			if len(values) != 2 {
				return entry, badHeader(name, "data_offsets has %d numbers, not two", len(values))
			}
			entry.begin, entry.end = values[0], values[1]
		default:
			if err := p.skip(); err != nil {
				return entry, err
			}
		}
	}
	if _, err := p.dec.Token(); err != nil {
		return entry, p.syntax(err)
	}
	for _, field := range []string{"dtype", "shape", "data_offsets"} {
		if !seen[field] {
			return entry, badHeader(name, "its entry has no %s", field)
		}
	}
	return entry, nil
}

// integers reads an array of at most limit non-negative whole numbers.
func (p *headerParser) integers(tensor, field string, limit int) ([]int64, error) {
	token, err := p.dec.Token()
	if err != nil {
		return nil, p.syntax(err)
	}
	if token != json.Delim('[') {
		return nil, badHeader(tensor, "its %s is not a list", field)
	}
	var values []int64
	for p.dec.More() {
		token, err := p.dec.Token()
		if err != nil {
			return nil, p.syntax(err)
		}
		number, ok := token.(json.Number)
		if !ok {
			return nil, badHeader(tensor, "its %s holds something that is not a number", field)
		}
		value, err := strconv.ParseInt(number.String(), 10, 64)
		if err != nil {
			return nil, badHeader(tensor, "its %s holds %s, which is not a whole number in range", field, clip(number.String()))
		}
		if value < 0 {
			return nil, badHeader(tensor, "its %s holds the negative number %d", field, value)
		}
		if len(values) == limit {
			return nil, badHeader(tensor, "its %s has more than %d numbers", field, limit)
		}
		values = append(values, value)
	}
	if _, err := p.dec.Token(); err != nil {
		return nil, p.syntax(err)
	}
	return values, nil
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

// checkNesting bounds how deep brackets nest before the decoder sees them.
func checkNesting(header []byte) error {
	depth, quoted := 0, false
	for i := 0; i < len(header); i++ {
		switch c := header[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > nestingLimit {
				return badHeader("", "the header nests brackets more than %d deep", nestingLimit)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// placeTensors checks types, shapes and spans, and turns offsets into file positions.
func placeTensors(entries []headerEntry, start, size int64, path, file string) ([]Tensor, error) {
	tensors := make([]Tensor, 0, len(entries))
	data := size - start
	for _, e := range entries {
		fail := func(kind Kind, format string, args ...any) ([]Tensor, error) {
			return nil, &Error{Kind: kind, Path: path, Tensor: e.name, Detail: fmt.Sprintf(format, args...)}
		}
		width := e.dtype.Size()
		if width == 0 {
			if packedBelowByte(e.dtype) {
				return fail(KindUnsupported, "its type %s packs several elements into a byte", e.dtype)
			}
			return fail(KindUnsupported, "its type %q is not known", clip(string(e.dtype)))
		}
		bytes := uint64(width)
		for _, d := range e.shape {
			high, low := bits.Mul64(bytes, uint64(d))
			if high != 0 || low > math.MaxInt64 {
				// A later zero would make it harmless, and still nobody writes such a shape.
				return fail(KindCorrupt, "its shape %v is too large", e.shape)
			}
			bytes = low
		}
		if e.begin > e.end {
			return fail(KindCorrupt, "its data begins at %d and ends before that, at %d", e.begin, e.end)
		}
		if uint64(e.end-e.begin) != bytes {
			return fail(KindCorrupt, "its shape %v needs %d bytes, but its offsets span %d", e.shape, bytes, e.end-e.begin)
		}
		if e.end > data {
			return nil, &Error{Kind: KindIncomplete, Path: path, Tensor: e.name, Files: []string{file},
				Detail: fmt.Sprintf("its data ends at byte %d, but the file has %d", sumSaturated(start, e.end), size)}
		}
		tensors = append(tensors, Tensor{Name: e.name, DType: e.dtype, Shape: e.shape, File: file,
			Offset: start + e.begin, Size: int64(bytes)})
	}
	sort.SliceStable(tensors, func(i, j int) bool {
		a, b := tensors[i], tensors[j]
		if a.Offset != b.Offset {
			return a.Offset < b.Offset
		}
		return a.Size < b.Size
	})
	// The format allows neither overlaps nor holes: either means that the header belongs to other bytes.
	next := start
	for i, t := range tensors {
		switch {
		case t.Offset < next:
			return nil, &Error{Kind: KindCorrupt, Path: path, Tensor: t.Name,
				Detail: fmt.Sprintf("its data overlaps that of %q", tensors[i-1].Name)}
		case t.Offset > next:
			return nil, &Error{Kind: KindCorrupt, Path: path, Tensor: t.Name,
				Detail: fmt.Sprintf("%d bytes before its data belong to no tensor", t.Offset-next)}
		}
		next = t.Offset + t.Size
	}
	if next != size {
		return nil, &Error{Kind: KindCorrupt, Path: path,
			Detail: fmt.Sprintf("%d bytes after the last tensor belong to no tensor", size-next)}
	}
	return tensors, nil
}

func sumSaturated(a, b int64) int64 {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}
