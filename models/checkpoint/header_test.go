package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func parse(b []byte) ([]Tensor, error) {
	return readHeader(bytes.NewReader(b), int64(len(b)), "/m/x.safetensors", "x.safetensors")
}

func TestHeaderGood(t *testing.T) {
	one := `"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}`
	for name, header := range map[string]string{
		"without metadata":            `{` + one + `}`,
		"metadata empty":              `{"__metadata__":{},` + one + `}`,
		"metadata null":               `{"__metadata__":null,` + one + `}`,
		"a number inside metadata":    `{"__metadata__":{"format":0},` + one + `}`,
		"nested metadata":             `{"__metadata__":{"a":[{"b":[1,"}"]}]},` + one + `}`,
		"metadata after the tensors":  `{` + one + `,"__metadata__":{"format":"pt"}}`,
		"padded with blanks":          `{` + one + `}      `,
		"an unknown field":            `{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"note":{"x":[]}}}`,
		"escaped name":                `{"\u0061":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`,
		"a tensor of no elements":     `{"e":{"dtype":"F32","shape":[0,7],"data_offsets":[0,0]},` + one + `}`,
		"a tensor of none at the end": `{` + one + `,"e":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}}`,
		"brackets inside a name":      `{"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[":{"dtype":"F16","shape":[0],"data_offsets":[0,0]},` + one + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			tensors, err := parse(raw(header, []byte{1, 2, 3, 4}))
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range tensors {
				if x.Name == "a" {
					if x.DType != F32 || x.Elements() != 1 || x.Size != 4 || x.Offset != int64(8+len(header)) || x.File != "x.safetensors" {
						t.Errorf("got %+v", x)
					}
					return
				}
			}
			t.Errorf("no tensor a in %v", tensors)
		})
	}
	if tensors, err := parse(raw(`{}`, nil)); err != nil || len(tensors) != 0 {
		t.Errorf("a file of no tensors: %v, %v", tensors, err)
	}
	scalar, err := parse(raw(`{"s":{"dtype":"I64","shape":[],"data_offsets":[0,8]}}`, make([]byte, 8)))
	if err != nil || scalar[0].Elements() != 1 {
		t.Errorf("a scalar: %v, %v", scalar, err)
	}
}

func entryOf(dtype, shape, offsets string) string {
	return fmt.Sprintf(`{"bad":{"dtype":%s,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
}

func claim(n uint64, rest string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, n), rest...)
}

func TestHeaderRefused(t *testing.T) {
	f32 := `"F32"`
	for name, c := range map[string]struct {
		file  []byte
		kind  Kind
		parts []string
	}{
		"nothing at all":          {nil, KindIncomplete, []string{"empty"}},
		"seven bytes":             {[]byte("1234567"), KindCorrupt, []string{"7 bytes"}},
		"length 0":                {claim(0, "{}"), KindCorrupt, []string{"header is empty"}},
		"length 2^63":             {claim(1<<63, "{}"), KindCorrupt, []string{"9223372036854775808"}},
		"length 2^64-1":           {claim(math.MaxUint64, "{}"), KindCorrupt, []string{"claims"}},
		"length over the cap":     {claim(126_000_000, "{}"), KindCorrupt, []string{"126000000"}},
		"length at the cap":       {claim(100_000_000, "{}"), KindIncomplete, []string{"the file has 10"}},
		"length past the file":    {claim(3, "{}"), KindIncomplete, []string{"the file has 10"}},
		"AppleDouble":             {append([]byte{0, 5, 0x16, 7, 0, 2, 0, 0}, make([]byte, 4088)...), KindCorrupt, []string{"claims"}},
		"LFS pointer":             {[]byte("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"), KindIncomplete, []string{"Git LFS pointer"}},
		"not an opening brace":    {raw(`["a"]`, nil), KindCorrupt, []string{"opening brace"}},
		"a leading blank":         {raw(` {}`, nil), KindCorrupt, []string{"opening brace"}},
		"10k nested brackets":     {raw(`{"a":`+strings.Repeat("[", 10000)+strings.Repeat("]", 10000)+`}`, nil), KindCorrupt, []string{"nests"}},
		"nested metadata":         {raw(`{"__metadata__":`+strings.Repeat(`{"a":`, 40)+`1`+strings.Repeat(`}`, 40)+`}`, nil), KindCorrupt, []string{"nests"}},
		"same tensor twice":       {raw(`{"bad":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"bad":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, []byte{1, 2}), KindCorrupt, []string{`"bad"`, "twice"}},
		"twice, once escaped":     {raw(`{"bad":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b\u0061d":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, []byte{1, 2}), KindCorrupt, []string{`"bad"`, "twice"}},
		"metadata twice":          {raw(`{"__metadata__":{},"__metadata__":{}}`, nil), KindCorrupt, []string{"twice"}},
		"offsets twice":           {raw(`{"bad":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"data_offsets":[0,1]}}`, []byte{1}), KindCorrupt, []string{`"bad"`, "twice"}},
		"JSON ends early":         {raw(`{"bad":{"dtype":"U8"`, nil), KindCorrupt, []string{"ends early"}},
		"unclosed":                {raw(`{`, nil), KindCorrupt, []string{"ends early"}},
		"not JSON":                {raw(`{bad}`, nil), KindCorrupt, []string{"not valid JSON"}},
		"invalid UTF-8":           {raw("{\"\xff\":1}", nil), KindCorrupt, []string{"UTF-8"}},
		"text after the header":   {raw(`{}{}`, nil), KindCorrupt, []string{"closing brace"}},
		"entry not an object":     {raw(`{"bad":7}`, nil), KindCorrupt, []string{`"bad"`, "object"}},
		"entry null":              {raw(`{"bad":null}`, nil), KindCorrupt, []string{`"bad"`, "object"}},
		"no dtype":                {raw(`{"bad":{"shape":[1],"data_offsets":[0,4]}}`, make([]byte, 4)), KindCorrupt, []string{`"bad"`, "dtype"}},
		"no shape":                {raw(`{"bad":{"dtype":"F32","data_offsets":[0,4]}}`, make([]byte, 4)), KindCorrupt, []string{`"bad"`, "shape"}},
		"no offsets":              {raw(`{"bad":{"dtype":"F32","shape":[1]}}`, make([]byte, 4)), KindCorrupt, []string{`"bad"`, "data_offsets"}},
		"shape needs more":        {raw(entryOf(f32, "[1000,1000]", "[0,4]"), make([]byte, 4)), KindCorrupt, []string{`"bad"`, "4000000"}},
		"past the end":            {raw(entryOf(f32, "[1000,1000]", "[0,4000000]"), make([]byte, 4)), KindIncomplete, []string{`"bad"`, "ends at byte"}},
		"begin after end":         {raw(entryOf(f32, "[1]", "[4,0]"), make([]byte, 4)), KindCorrupt, []string{`"bad"`, "begins at 4"}},
		"three offsets":           {raw(entryOf(f32, "[1]", "[0,4,8]"), make([]byte, 8)), KindCorrupt, []string{`"bad"`, "more than 2"}},
		"one offset":              {raw(entryOf(f32, "[1]", "[4]"), make([]byte, 4)), KindCorrupt, []string{`"bad"`, "not two"}},
		"negative offset":         {raw(entryOf(f32, "[1]", "[-4,0]"), make([]byte, 4)), KindCorrupt, []string{`"bad"`, "negative"}},
		"negative shape":          {raw(entryOf(f32, "[-1]", "[0,4]"), make([]byte, 4)), KindCorrupt, []string{`"bad"`, "negative"}},
		"two negatives":           {raw(entryOf(f32, "[-1,-1]", "[0,4]"), make([]byte, 4)), KindCorrupt, []string{`"bad"`, "negative"}},
		"fractional shape":        {raw(entryOf(f32, "[1.5]", "[0,4]"), make([]byte, 4)), KindCorrupt, []string{`"bad"`, "1.5"}},
		"shape of text":           {raw(entryOf(f32, `["1"]`, "[0,4]"), make([]byte, 4)), KindCorrupt, []string{`"bad"`, "not a number"}},
		"shape not a list":        {raw(entryOf(f32, `4`, "[0,4]"), make([]byte, 4)), KindCorrupt, []string{`"bad"`, "not a list"}},
		"product overflows":       {raw(entryOf(f32, "[2147483647,2147483647,2147483647]", "[0,4]"), make([]byte, 4)), KindCorrupt, []string{`"bad"`, "too large"}},
		"product wraps to 4":      {raw(entryOf(f32, "[1073741824,1073741824,16,1]", "[0,4]"), make([]byte, 4)), KindCorrupt, []string{`"bad"`, "too large"}},
		"offset beyond int64":     {raw(entryOf(f32, "[1]", "[0,99999999999999999999]"), make([]byte, 4)), KindCorrupt, []string{`"bad"`, "99999999999999999999"}},
		"offsets near int64":      {raw(entryOf(f32, "[1]", "[9223372036854775803,9223372036854775807]"), make([]byte, 4)), KindIncomplete, []string{`"bad"`}},
		"a side too long":         {raw(entryOf(f32, "[0,2147483648]", "[0,0]"), nil), KindUnsupported, []string{`"bad"`, "2147483648"}},
		"too many dimensions":     {raw(entryOf(f32, "["+strings.Repeat("1,", 16)+"1]", "[0,4]"), make([]byte, 4)), KindCorrupt, []string{`"bad"`}},
		"unknown dtype":           {raw(entryOf(`"Q4_K"`, "[1]", "[0,4]"), make([]byte, 4)), KindUnsupported, []string{`"bad"`, "Q4_K"}},
		"dtype below a byte":      {raw(entryOf(`"F4"`, "[2]", "[0,1]"), make([]byte, 1)), KindUnsupported, []string{`"bad"`, "F4"}},
		"dtype not text":          {raw(entryOf(`4`, "[1]", "[0,4]"), make([]byte, 4)), KindCorrupt, []string{`"bad"`, "dtype"}},
		"overlap":                 {raw(`{"ok":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"bad":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}}`, make([]byte, 6)), KindCorrupt, []string{`"bad"`, "overlaps", `"ok"`}},
		"two on the same bytes":   {raw(`{"ok":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"bad":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, make([]byte, 4)), KindCorrupt, []string{"overlaps"}},
		"a hole":                  {raw(`{"ok":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"bad":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`, make([]byte, 3)), KindCorrupt, []string{`"bad"`, "belong to no tensor"}},
		"bytes after the tensors": {raw(entryOf(f32, "[1]", "[0,4]"), make([]byte, 9)), KindCorrupt, []string{"5 bytes", "belong to no tensor"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(c.file)
			refused(t, err, c.kind, append(c.parts, "/m/x.safetensors")...)
		})
	}
}

// A claimed header length must be compared with the file before memory is taken for it.
func TestHeaderLengthIsNotAllocated(t *testing.T) {
	file := claim(headerLimit, "{}")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	parse(file)
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 1<<20 {
		t.Errorf("%d bytes taken for a file of 10", taken)
	}
}

func TestHeaderTruncatedFixture(t *testing.T) {
	whole := pack(t, item{"a", F32, []int{8, 8}, nil}, item{"b", BF16, []int{3}, nil})
	if _, err := parse(whole); err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) {
		if _, err := parse(whole[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes were accepted", n, len(whole))
		}
	}
}

func FuzzHeader(f *testing.F) {
	f.Add(pack(f, item{"a", F32, []int{2, 3}, nil}, item{"b", BF16, []int{3}, nil}))
	f.Add(raw(`{}`, nil))
	f.Add(raw(`{"__metadata__":{"a":0}}`, nil))
	f.Add(raw(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, []byte{1, 2}))
	f.Add(raw(entryOf(`"F32"`, "[1000,1000]", "[0,4]"), make([]byte, 4)))
	f.Add(raw(entryOf(`"F32"`, "[2147483647,2147483647,2147483647]", "[0,4]"), nil))
	f.Add(raw(`{"a":[[[[[[[[[[[[[[[[[[`, nil))
	f.Add(claim(1<<63, "{}"))
	f.Add([]byte{0, 5, 0x16, 7, 0, 2, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		tensors, err := parse(b)
		if err != nil {
			if KindOf(err) == KindUnknown {
				t.Fatalf("an error without a kind: %v", err)
			}
			return
		}
		seen := map[string]bool{}
		end := int64(0)
		for _, x := range tensors {
			if seen[x.Name] || x.Offset < end || x.Size != x.Elements()*int64(x.DType.Size()) || x.Offset+x.Size > int64(len(b)) {
				t.Fatalf("accepted %+v of %d bytes", x, len(b))
			}
			seen[x.Name], end = true, x.Offset+x.Size
		}
	})
}

func TestErrorNamesFileInFolder(t *testing.T) {
	dir := folderOf(t, map[string]string{"model.safetensors": string(raw(entryOf(`"F32"`, "[2]", "[0,4]"), make([]byte, 4)))})
	_, err := Open(dir)
	refused(t, err, KindCorrupt, filepath.Join(dir, "model.safetensors"), `"bad"`)
}
