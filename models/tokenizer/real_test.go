package tokenizer

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"firesteel/models/tokenizer/realfiles"
)

type realRow struct {
	IDs  []int   `json:"ids"`
	Text *string `json:"text"` // decoded, where it is not the text that was encoded
	Bare *string `json:"bare"` // decoded without special tokens, where it differs from Text
	Cut  int     `json:"cut"`
	Part string  `json:"part"` // what the reference's stream gave after the first Cut ids
}

type realGolden struct {
	Texts         []string  `json:"texts"`
	Gemma3        []realRow `json:"gemma3"`
	Qwen3         []realRow `json:"qwen3"`
	Gemma3Special [][]int   `json:"gemma3_special"`
	Qwen3Special  [][]int   `json:"qwen3_special"`
}

// Hard strings through two real tokenizers, one of each great kind: encoding, decoding, and
// decoding as a stream.
func TestRealTokenizers(t *testing.T) {
	var golden realGolden
	readJSON(t, "testdata/real.json", &golden)
	if len(golden.Texts) < 500 {
		t.Fatalf("only %d texts", len(golden.Texts))
	}
	for _, family := range []struct {
		name    string
		rows    []realRow
		special [][]int
	}{
		{"gemma3", golden.Gemma3, golden.Gemma3Special},
		{"qwen3", golden.Qwen3, golden.Qwen3Special},
	} {
		t.Run(family.name, func(t *testing.T) {
			dir := realfiles.Dir(t, family.name)
			began := time.Now()
			tok, err := Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("loaded %d tokens in %v", tok.Size(), time.Since(began))
			tried, encoded, decoded, streamed := 0, 0, 0, 0
			for i, row := range family.rows {
				if i%8 != 0 && !realfiles.Long() {
					continue
				}
				tried++
				text := golden.Texts[i]
				ids, err := tok.Encode(text, false)
				if err != nil || !slices.Equal(ids, row.IDs) {
					t.Errorf("encode %q: %v %q\nwant %q", text, err, spelled(tok, ids), spelled(tok, row.IDs))
				} else {
					encoded++
				}
				whole := text
				if row.Text != nil {
					whole = *row.Text
				}
				bare := whole
				if row.Bare != nil {
					bare = *row.Bare
				}
				if got, gotBare := tok.Decode(row.IDs, false), tok.Decode(row.IDs, true); got != whole || gotBare != bare {
					t.Errorf("decode %q:\n got %q and %q\nwant %q and %q", spelled(tok, row.IDs), got, gotBare, whole, bare)
				} else {
					decoded++
				}
				if checkStream(t, tok, row.IDs, whole, row.Cut, row.Part) {
					streamed++
				}
			}
			for i, want := range family.special {
				if ids, err := tok.Encode(golden.Texts[i], true); err != nil || !slices.Equal(ids, want) {
					t.Errorf("encode %q with special tokens: %v, want %v (%v)", golden.Texts[i], ids, want, err)
				}
			}
			t.Logf("%s: of %d texts %d encode, %d decode and %d stream as the reference does", family.name, tried, encoded, decoded, streamed)
		})
	}
}

// checkStream compares a stream with the whole text at every id, and with the reference's own
// stream at one of them.
func checkStream(t *testing.T, tok *Tokenizer, ids []int, whole string, cut int, part string) bool {
	t.Helper()
	ok := true
	stream, joined := tok.NewStreamWithSpecial(), ""
	for i := 0; i <= len(ids); i++ {
		if !strings.HasPrefix(whole, joined) || !utf8.ValidString(joined) {
			t.Errorf("stream %q: %q is not how %q begins", spelled(tok, ids[:i]), joined, whole)
			return false
		}
		// Of a token that ends one character and begins another the reference holds both back.
		ahead := strings.HasPrefix(joined, part) && strings.HasSuffix(tok.Decode(ids[:i], false), "\uFFFD")
		if i == cut && joined != part && !ahead {
			t.Errorf("stream %q: %q, want %q", spelled(tok, ids[:i]), joined, part)
			ok = false
		}
		if i < len(ids) {
			joined += stream.Push(ids[i])
		}
	}
	if joined += stream.Flush(); joined != whole {
		t.Errorf("stream %q: %q, want %q", spelled(tok, ids), joined, whole)
		ok = false
	}
	return ok
}

// Long texts must not take long: one word as long as the text, and one line.
func TestRealSpeed(t *testing.T) {
	if !realfiles.Long() {
		t.Skip("part of the long set")
	}
	for _, name := range []string{"gemma3", "qwen3"} {
		t.Run(name, func(t *testing.T) {
			tok, err := Load(realfiles.Dir(t, name))
			if err != nil {
				t.Fatal(err)
			}
			checkSpeed(t, tok)
		})
	}
}

func checkSpeed(t *testing.T, tok *Tokenizer) {
	t.Helper()
	prose := strings.Repeat("The quick brown fox jumps over the lazy dog, and 12 others don't. ", 200_000/66)
	for _, text := range []struct{ name, text string }{
		{"prose", prose},
		{"one word", strings.Repeat("abcdefghij", 20_000)},
		{"one letter", strings.Repeat("a", 200_000)},
		{"spaces", strings.Repeat(" ", 200_000)},
		{"lines", strings.Repeat("\n", 50_000) + "x"},
		{"spaces and a letter", strings.Repeat(" ", 50_000) + "x"},
		{"one line", strings.Repeat("字", 50_000)},
		{"signs", strings.Repeat("=-", 50_000)},
		{"broken markers", strings.Repeat("<|im_", 40_000)},
	} {
		limit := time.Second
		if raceEnabled {
			limit = 10 * time.Second
		}
		var ids []int
		took := time.Hour
		for range 3 { // another program may have had the machine
			began := time.Now()
			var err error
			if ids, err = tok.Encode(text.text, false); err != nil {
				t.Fatal(err)
			}
			if took = min(took, time.Since(began)); took < limit {
				break
			}
		}
		if took > limit {
			t.Errorf("%s: %d bytes took %v", text.name, len(text.text), took)
		}
		began := time.Now()
		if back := tok.Decode(ids, false); back != text.text {
			t.Errorf("%s does not come back", text.name)
		}
		t.Logf("%s: %d bytes, %d tokens, %v; back in %v", text.name, len(text.text), len(ids), took, time.Since(began))
	}
}
