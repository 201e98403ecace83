package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// object is a JSON object under construction.
type object = map[string]any

// small is a tokenizer.json with byte fallback, as the Gemma family has it.
func small() object {
	vocab := object{"<pad>": 0, "<eos>": 1, "<bos>": 2, "<unk>": 3, "<turn|>": 4}
	for b := range 256 {
		vocab[fmt.Sprintf("<0x%02X>", b)] = len(vocab)
	}
	for _, s := range []string{"a", "b", "ab", "▁", "▁a", "<", ">", "\n", "👩", "e", "\u0301", "\u200d", "\ufe0f"} {
		vocab[s] = len(vocab)
	}
	var added []any
	for id, text := range []string{"<pad>", "<eos>", "<bos>", "<unk>", "<turn|>"} {
		added = append(added, object{"id": id, "content": text, "special": true, "normalized": false})
	}
	return object{
		"added_tokens": added,
		"normalizer":   object{"type": "Replace", "pattern": object{"String": " "}, "content": "▁"},
		"post_processor": object{
			"type":           "TemplateProcessing",
			"single":         []any{object{"SpecialToken": object{"id": "<bos>", "type_id": 0}}, object{"Sequence": object{"id": "A", "type_id": 0}}},
			"special_tokens": object{"<bos>": object{"id": "<bos>", "ids": []any{2}, "tokens": []any{"<bos>"}}},
		},
		"decoder": object{"type": "Sequence", "decoders": []any{
			object{"type": "Replace", "pattern": object{"String": "▁"}, "content": " "},
			object{"type": "ByteFallback"}, object{"type": "Fuse"},
		}},
		"model": object{
			"type": "BPE", "unk_token": "<unk>", "byte_fallback": true, "fuse_unk": true,
			"vocab": vocab, "merges": []any{"a b", []any{"▁", "a"}},
		},
	}
}

// byteLevelSmall is a byte-level tokenizer of 300 entries, as the Qwen family has it.
func byteLevelSmall() object {
	vocab := object{}
	for b := range 256 {
		vocab[string(byteRunes[b])] = b
	}
	spell := func(text string) string {
		var b strings.Builder
		for i := range len(text) {
			b.WriteRune(byteRunes[text[i]])
		}
		return b.String()
	}
	var merges []any
	join := func(a, b string) {
		if _, have := vocab[spell(a+b)]; !have && len(vocab) < 300 {
			vocab[spell(a+b)] = len(vocab)
			merges = append(merges, []any{spell(a), spell(b)})
		}
	}
	join("\xF0", "\x9F")
	join("\xF0\x9F", "\x91")
	join("\xE4", "\xBD")
	join(" ", "\xF0\x9F")
	join("\xA9", "\xE4")
	join("t", "h")
	for i := 0; len(vocab) < 300; i++ {
		join(string(rune('a'+i/7)), string(rune('o'+i%7)))
	}
	return object{
		"added_tokens": []any{
			object{"id": 300, "content": "<|end|>", "special": true, "normalized": false},
			object{"id": 301, "content": "<think>", "special": false, "normalized": false},
			object{"id": 302, "content": "字", "special": false, "normalized": false},
		},
		"pre_tokenizer": object{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
		"decoder":       object{"type": "ByteLevel"},
		"model":         object{"type": "BPE", "vocab": vocab, "merges": merges},
	}
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func mustParse(t testing.TB, v any) *Tokenizer {
	t.Helper()
	tok, err := parse(marshal(t, v))
	if err != nil {
		t.Fatal(err)
	}
	if err := tok.configure(nil); err != nil {
		t.Fatal(err)
	}
	return tok
}

// bytesIDs spells bytes as ids of a tokenizer of one of the two kinds.
func bytesIDs(t testing.TB, tok *Tokenizer, text string) []int {
	t.Helper()
	var ids []int
	for i := range len(text) {
		id, ok := tok.ID(fmt.Sprintf("<0x%02X>", text[i]))
		if !ok {
			id, ok = tok.ID(string(byteRunes[text[i]]))
		}
		if !ok {
			t.Fatalf("no id for byte %#x", text[i])
		}
		ids = append(ids, id)
	}
	return ids
}

func TestStreamHoldsUnfinishedCharacters(t *testing.T) {
	const bad = "\uFFFD"
	for _, kind := range []struct {
		name string
		tok  *Tokenizer
	}{{"byte fallback", mustParse(t, small())}, {"byte level", mustParse(t, byteLevelSmall())}} {
		for _, c := range []struct {
			bytes string
			steps []string // one for each byte, then what Flush gives
		}{
			{"\xF0\x9F\x98\x80", []string{"", "", "", "😀", ""}},
			{"\xC3\xA9x", []string{"", "é", "x", ""}},
			{"\xE4\xBD\xA0\xE5", []string{"", "", "你", "", bad}},
			{"\xF0\x9F\x98", []string{"", "", "", bad}},                                 // ends inside a character
			{"\xFFa", []string{bad, "a", ""}},                                           // never a character
			{"\xE2\x82a", []string{"", "", bad + "a", ""}},                              // one replacement for the two
			{"\xC0\x80", []string{bad, bad, ""}},                                        // overlong
			{"\xED\xA0\x80", []string{"", bad + bad, bad, ""}},                          // a surrogate
			{"\xF4\x90\x80\x80", []string{"", bad + bad, bad, bad, ""}},                 // beyond Unicode
			{"\xF0\x80\x80\x80", []string{"", bad + bad, bad, bad, ""}},                 // overlong
			{"\xE2\xF0\x9F\x98\x80", []string{"", bad, "", "", "😀", ""}},                // a new one begins inside
			{"\xEF\xBF\xBD\xEF\xBB\xBF", []string{"", "", bad, "", "", "\uFEFF", ""}},   // real U+FFFD, and a mark
			{"e\xCC\x81", []string{"e", "", "\u0301", ""}},                              // shown once, never twice
			{"\x00", []string{"\x00", ""}},                                              // NUL is a character
			{"\xF0\x9F\x87\xA9 \xF0", []string{"", "", "", "\U0001F1E9", " ", "", bad}}, // half a flag
		} {
			ids := bytesIDs(t, kind.tok, c.bytes)
			stream, joined := kind.tok.NewStream(), ""
			for i, id := range ids {
				got := stream.Push(id)
				if got != c.steps[i] {
					t.Errorf("%s %q: step %d gives %q, want %q", kind.name, c.bytes, i, got, c.steps[i])
				}
				joined += got
				if full := kind.tok.Decode(ids[:i+1], true); !strings.HasPrefix(full, joined) {
					t.Errorf("%s %q: %q is not how %q begins", kind.name, c.bytes, joined, full)
				}
			}
			if got := stream.Flush(); got != c.steps[len(ids)] {
				t.Errorf("%s %q: flush gives %q, want %q", kind.name, c.bytes, got, c.steps[len(ids)])
			}
			if want, _ := lossyAll(c.bytes); kind.tok.Decode(ids, true) != want {
				t.Errorf("%s %q: %q, want %q", kind.name, c.bytes, kind.tok.Decode(ids, true), want)
			}
		}
	}
}

// lossyAll decodes as Rust, Python and the Unicode standard do, by trying every cut.
func lossyAll(text string) (string, bool) {
	var b strings.Builder
	clean := true
	for len(text) > 0 {
		if r, size := utf8.DecodeRuneInString(text); r != utf8.RuneError || size > 1 {
			b.WriteString(text[:size])
			text = text[size:]
			continue
		}
		clean = false
		n := 1
		for n < len(text) && n < 4 && startsCharacter(text[:n+1]) {
			n++
		}
		b.WriteRune(utf8.RuneError)
		text = text[n:]
	}
	return b.String(), clean
}

// startsCharacter reports whether some character begins with these bytes.
func startsCharacter(prefix string) bool {
	for _, fill := range []string{"\x80\x80\x80", "\xBF\xBF\xBF"} {
		for n := 1; n <= 3; n++ {
			if whole := prefix + fill[:n]; utf8.ValidString(whole) && utf8.RuneCountInString(whole) == 1 {
				return true
			}
		}
	}
	return false
}

// Any ids at all, known or not, cut anywhere: the stream is the start of the whole text.
func TestStreamIsDecode(t *testing.T) {
	llama := small()
	llama["decoder"].(object)["decoders"] = append(llama["decoder"].(object)["decoders"].([]any),
		object{"type": "Strip", "content": " ", "start": 1, "stop": 2})
	for name, tok := range map[string]*Tokenizer{
		"byte fallback": mustParse(t, small()), "byte level": mustParse(t, byteLevelSmall()), "strip": mustParse(t, llama),
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				ids := rapid.SliceOfN(rapid.IntRange(-2, tok.Size()+2), 0, 40).Draw(t, "ids")
				special := rapid.Bool().Draw(t, "skip special")
				stream, joined := tok.newStream(special), ""
				for i, id := range ids {
					joined += stream.Push(id)
					if full := tok.Decode(ids[:i+1], special); !strings.HasPrefix(full, joined) {
						t.Fatalf("after %v: %q is not how %q begins", ids[:i+1], joined, full)
					}
				}
				joined += stream.Flush()
				if full := tok.Decode(ids, special); joined != full || !utf8.ValidString(full) {
					t.Fatalf("%v: streamed %q, want %q", ids, joined, full)
				}
				// A stream starts over after Flush.
				for _, id := range ids {
					stream.Push(id)
				}
				stream.Flush()
			})
		})
	}
}

func TestStripAtTheEnds(t *testing.T) {
	spec := small()
	spec["decoder"].(object)["decoders"] = append(spec["decoder"].(object)["decoders"].([]any),
		object{"type": "Strip", "content": " ", "start": 1, "stop": 0})
	tok := mustParse(t, spec)
	space, _ := tok.ID("▁a")
	stream := tok.NewStream()
	if got := stream.Push(space) + stream.Push(space) + stream.Flush(); got != "a a" {
		t.Errorf("%q, want %q", got, "a a")
	}
	if got := stream.Push(space) + stream.Flush(); got != "a" {
		t.Errorf("a second text: %q, want %q", got, "a")
	}
}

func TestUnknownIDs(t *testing.T) {
	tok := mustParse(t, small())
	a, _ := tok.ID("a")
	for _, id := range []int{-1, tok.Size(), 1 << 40, -1 << 40} {
		if _, ok := tok.Token(id); ok || tok.IsSpecial(id) {
			t.Errorf("id %d is known", id)
		}
		if got := tok.Decode([]int{a, id, a}, true); got != "aa" {
			t.Errorf("id %d gives %q, want nothing", id, got)
		}
	}
	gap := small()
	gap["model"].(object)["vocab"].(object)["far"] = 5000
	tok = mustParse(t, gap)
	if got := tok.Decode([]int{a, 4000, 5000}, true); got != "afar" || tok.Size() != 5001 {
		t.Errorf("with a gap: %q of %d", got, tok.Size())
	}
}

func TestSpecialTokens(t *testing.T) {
	tok := mustParse(t, small())
	bos, _ := tok.BOS()
	turn, _ := tok.ID("<turn|>")
	a, _ := tok.ID("a")
	ids, err := tok.Encode("a<turn|>a", true)
	if want := []int{bos, a, turn, a}; err != nil || !slices.Equal(ids, want) {
		t.Errorf("%v %v, want %v", ids, err, want)
	}
	plain, err := tok.EncodePlain("a<turn|>a<bos>")
	if err != nil || slices.Contains(plain, turn) || slices.Contains(plain, bos) {
		t.Errorf("plain: %v %v", plain, err)
	}
	if got := tok.Decode(plain, true); got != "a<turn|>a<bos>" {
		t.Errorf("plain comes back as %q", got)
	}
	if got := tok.Decode(ids, false); got != "<bos>a<turn|>a" {
		t.Errorf("with special tokens: %q", got)
	}
	if got := tok.Decode(ids, true); got != "aa" {
		t.Errorf("without: %q", got)
	}
}

// A control token may be reachable through merges, or be a whole word: plain text still never
// becomes one.
func TestPlainCantReachControlTokens(t *testing.T) {
	spec := small()
	model := spec["model"].(object)
	for _, text := range []string{"<t", "<tu", "t", "u"} {
		model["vocab"].(object)[text] = len(model["vocab"].(object))
	}
	model["vocab"].(object)["<tu>"] = 600
	model["merges"] = []any{"< t", "<t u", "<tu >"}
	spec["added_tokens"] = append(spec["added_tokens"].([]any), object{"id": 600, "content": "<tu>", "special": true, "normalized": true})
	for _, ignoreMerges := range []bool{false, true} {
		model["ignore_merges"] = ignoreMerges
		tok := mustParse(t, spec)
		if ids, _ := tok.Encode("<tu>", false); !slices.Equal(ids, []int{600}) {
			t.Errorf("encode: %v", ids)
		}
		if ids, _ := tok.EncodePlain("<tu>"); slices.Contains(ids, 600) || tok.Decode(ids, true) != "<tu>" {
			t.Errorf("plain: %v", ids)
		}
	}
}

func TestControlNames(t *testing.T) {
	spec := byteLevelSmall()
	tok := mustParse(t, spec)
	think, _ := tok.ID("<think>")
	if ids, _ := tok.Encode("<think>", false); !slices.Equal(ids, []int{think}) {
		t.Errorf("%v", ids)
	}
	if ids, _ := tok.EncodePlain("<think>"); slices.Contains(ids, think) {
		t.Errorf("plain: %v", ids)
	}
	for text, want := range map[string]bool{
		"<|im_end|>": true, "<turn|>": true, "<|turn>": true, "</think>": true, "<tool_call>": true, "<unused12>": true,
		"<table>": false, "<s>": false, "\n\n": false, "▁▁": false, "<th>": false,
	} {
		if controlName(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

func TestMask(t *testing.T) {
	tok := mustParse(t, small())
	text := "a<turn|>b <bos><bos> <turn|"
	mask, err := tok.NewMask("<turn|>", text)
	if err != nil {
		t.Fatal(err)
	}
	hidden := mask.Hide(text)
	if strings.Contains(hidden, "<turn|") || strings.Contains(hidden, "<bos>") {
		t.Errorf("not hidden: %q", hidden)
	}
	if utf8.RuneCountInString(hidden) != utf8.RuneCountInString(text) || mask.Restore(hidden) != text {
		t.Errorf("%q does not come back", hidden)
	}
	turn, _ := tok.ID("<turn|>")
	ids, err := tok.EncodeMasked(hidden+"<turn|>", mask)
	if err != nil || ids[len(ids)-1] != turn || slices.Contains(ids[:len(ids)-1], turn) {
		t.Errorf("%q %v", spelled(tok, ids), err)
	}
	if got := tok.Decode(ids, false); got != text+"<turn|>" {
		t.Errorf("%q", got)
	}
	if kept := mask.Hide("<turn|><bos>", "<turn|>"); !strings.HasPrefix(kept, "<turn|>") || strings.Contains(kept, "<bos>") {
		t.Errorf("%q", kept)
	}
	// Stand-ins are never characters of the text.
	private := string(rune(firstStandIn)) + "<bos>" + string(rune(firstStandIn+1))
	if mask, err = tok.NewMask(private); err != nil || mask.Restore(mask.Hide(private)) != private {
		t.Errorf("private characters are lost: %v", err)
	}
	var all strings.Builder
	for r := rune(firstStandIn); r <= utf8.MaxRune; r++ {
		all.WriteRune(r)
	}
	if _, err := tok.NewMask(all.String()); err == nil {
		t.Error("no stand-in is free, and no error")
	}
}

func TestBOS(t *testing.T) {
	for _, c := range []struct {
		config  string
		post    bool
		adds    bool
		encoded int // how many BOS Encode gives
	}{
		{`{"bos_token": "<bos>", "add_bos_token": true}`, true, true, 1},
		{`{"bos_token": "<bos>", "add_bos_token": true}`, false, true, 1},
		{`{"bos_token": "<bos>", "add_bos_token": false}`, true, false, 0},
		{`{"bos_token": "<bos>", "add_bos_token": false}`, false, false, 0},
		{`{"bos_token": {"content": "<bos>", "special": true}}`, true, true, 1},
		{`{"bos_token": "<bos>"}`, false, false, 0},
		{`{"bos_token": "<bos>", "tokenizer_class": "GemmaTokenizer"}`, false, true, 1},
		{`{"bos_token": "<bos>", "tokenizer_class": "LlamaTokenizerFast"}`, false, true, 1},
		{`{"bos_token": null, "add_bos_token": false}`, false, false, 0},
		{`{"bos_token": null, "add_bos_token": true}`, false, false, 0},
		{`{"bos_token": "nowhere", "add_bos_token": true}`, false, false, 0},
		{`{}`, true, true, 1},
		{``, true, true, 1},
	} {
		spec := small()
		if !c.post {
			delete(spec, "post_processor")
		}
		dir := t.TempDir()
		write(t, dir, "tokenizer.json", marshal(t, spec))
		if c.config != "" {
			write(t, dir, "tokenizer_config.json", []byte(c.config))
		}
		tok, err := Load(dir)
		if err != nil {
			t.Errorf("%s: %v", c.config, err)
			continue
		}
		ids, _ := tok.Encode("a", true)
		count := 0
		for _, id := range ids {
			if id == 2 {
				count++
			}
		}
		if tok.AddsBOS() != c.adds || count != c.encoded {
			t.Errorf("%s, post-processor %v: adds %v, %d in %v", c.config, c.post, tok.AddsBOS(), count, ids)
		}
	}
}

func write(t testing.TB, dir, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Files that can't be used are refused with the field that is wrong.
func TestRefusals(t *testing.T) {
	set := func(path string, value any) func(object) {
		return func(spec object) {
			keys := strings.Split(path, ".")
			at := spec
			for _, key := range keys[:len(keys)-1] {
				at = at[key].(object)
			}
			if value == nil {
				delete(at, keys[len(keys)-1])
			} else {
				at[keys[len(keys)-1]] = value
			}
		}
	}
	nested := func(kind, list string, levels int) any {
		var v any = object{"type": "Fuse"}
		for range levels {
			v = object{"type": kind, list: []any{v}}
		}
		return v
	}
	for _, c := range []struct {
		name   string
		change func(object)
		want   string
	}{
		{"unigram", set("model.type", "Unigram"), `model.type: "Unigram" is not supported`},
		{"wordpiece", set("model.type", "WordPiece"), `"WordPiece"`},
		{"no model", set("model", nil), "model: is missing"},
		{"a model that is a list", set("model", []any{}), "model: want an object"},
		{"no vocabulary", set("model.vocab", nil), "model.vocab: is missing"},
		{"an empty vocabulary", set("model.vocab", object{}), "model.vocab: is empty"},
		{"a vocabulary that is a list", set("model.vocab", []any{"a"}), "model.vocab: want an object"},
		{"an id that is text", set("model.vocab.a", "7"), `model.vocab["a"]`},
		{"an id below zero", set("model.vocab.a", -1), `model.vocab["a"]`},
		{"an id that is a fraction", set("model.vocab.a", 1.5), `model.vocab["a"]`},
		{"a huge id", set("model.vocab.a", 1<<30), `model.vocab["a"]`},
		{"an id twice", set("model.vocab.b", 2), `id 2 is already that of`},
		{"no merges", set("model.merges", nil), "model.merges: is missing"},
		{"merges that are text", set("model.merges", "a b"), "model.merges: want a list"},
		{"a merge of an unknown token", set("model.merges", []any{"a zz"}), `model.merges[0]: names "zz"`},
		{"a merge into an unknown token", set("model.merges", []any{"a b", "b a"}), `model.merges[1]: makes "ba"`},
		{"a merge of three", set("model.merges", []any{"a b a"}), "model.merges[0]: want two tokens"},
		{"a merge of one", set("model.merges", []any{[]any{"a"}}), "model.merges[0]: want two tokens"},
		{"a merge of numbers", set("model.merges", []any{[]any{1, 2}}), "model.merges[0]"},
		{"a merge of three in a list", set("model.merges", []any{[]any{"a", "b", "a"}}), "model.merges[0]: want two tokens, found more"},
		{"a merge that is an object", set("model.merges", []any{object{}}), "model.merges[0]"},
		{"an unknown unknown token", set("model.unk_token", "nope"), "model.unk_token"},
		{"dropout", set("model.dropout", 0.1), "model.dropout"},
		{"an affix", set("model.end_of_word_suffix", "</w>"), "model.end_of_word_suffix"},
		{"a flag that is text", set("model.byte_fallback", "yes"), "model.byte_fallback: has the wrong type"},
		{"added tokens that are no list", set("added_tokens", object{}), "added_tokens: want a list"},
		{"an added token without id", set("added_tokens", []any{object{"content": "x"}}), "added_tokens[0].id: is missing"},
		{"an added token without content", set("added_tokens", []any{object{"id": 1}}), "added_tokens[0].content: is missing"},
		{"an added id out of range", set("added_tokens", []any{object{"id": -5, "content": "x"}}), "added_tokens[0].id"},
		{"an added id twice", set("added_tokens", []any{object{"id": 900, "content": "x"}, object{"id": 900, "content": "y"}}), "added_tokens[1].id"},
		{"an added text twice", set("added_tokens", []any{object{"id": 900, "content": "x"}, object{"id": 901, "content": "x"}}), "added_tokens[1].content"},
		{"an added id of another token", set("added_tokens", []any{object{"id": 2, "content": "x"}}), `added_tokens["x"]`},
		{"an added text of another id", set("added_tokens", []any{object{"id": 900, "content": "<bos>"}}), `added_tokens["<bos>"]`},
		{"an added token of the wrong type", set("added_tokens", []any{object{"id": "x", "content": 1}}), "added_tokens[0]"},
		{"a strange normalizer", set("normalizer", object{"type": "Precompiled"}), `normalizer.type: normalizer "Precompiled"`},
		{"a normalizer without type", set("normalizer", object{}), "normalizer.type: is missing"},
		{"a normalizer that is text", set("normalizer", "NFC"), "normalizer: has the wrong type"},
		{"a replacement without pattern", set("normalizer", object{"type": "Replace", "content": "x"}), "normalizer.pattern: is missing"},
		{"a replacement without content", set("normalizer", object{"type": "Replace", "pattern": object{"String": "x"}}), "normalizer.content: is missing"},
		{"a strange pre-tokenizer", set("pre_tokenizer", object{"type": "BertPreTokenizer"}), `"BertPreTokenizer"`},
		{"a strange behavior", set("pre_tokenizer", object{"type": "Split", "pattern": object{"String": "x"}, "behavior": "Shredded"}), `pre_tokenizer.behavior: "Shredded"`},
		{"a broken pattern", set("pre_tokenizer", object{"type": "Split", "pattern": object{"Regex": "(["}, "behavior": "Isolated"}), `pre_tokenizer.pattern.Regex`},
		{"a pattern of neither kind", set("pre_tokenizer", object{"type": "Split", "pattern": object{"Glob": "*"}, "behavior": "Isolated"}), `pre_tokenizer.pattern: want either`},
		{"a strange post-processor", set("post_processor", object{"type": "BertProcessing"}), `"BertProcessing"`},
		{"a template without the text", set("post_processor", object{"type": "TemplateProcessing", "single": []any{}}), "post_processor.single: leaves the text out"},
		{"a template with a strange token", set("post_processor.special_tokens", object{}), `post_processor.single[0]: names "<bos>"`},
		{"a template with a strange id", set("post_processor.special_tokens", object{"<bos>": object{"ids": []any{999999}}}), `post_processor.single[0]`},
		{"a strange decoder", set("decoder", object{"type": "WordPiece"}), `decoder.type: decoder "WordPiece"`},
		{"nested decoders", set("decoder", nested("Sequence", "decoders", 25)), "nested too deeply"},
		{"nested normalizers", set("normalizer", nested("Sequence", "normalizers", 25)), "nested too deeply"},
		{"nested pre-tokenizers", set("pre_tokenizer", nested("Sequence", "pretokenizers", 25)), "nested too deeply"},
		{"nested post-processors", set("post_processor", nested("Sequence", "processors", 25)), "nested too deeply"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := small()
			c.change(spec)
			dir := t.TempDir()
			write(t, dir, "tokenizer.json", marshal(t, spec))
			checkRefusal(t, dir, "tokenizer.json", c.want)
		})
	}
	good := string(marshal(t, small()))
	for _, c := range []struct{ name, file, text, want string }{
		{"nothing", "tokenizer.json", "", "is not a JSON object"},
		{"a list", "tokenizer.json", "[]", "is not a JSON object"},
		{"half a file", "tokenizer.json", good[:len(good)/2], "not readable"},
		{"something after the end", "tokenizer.json", good + "x", "goes on after its end"},
		{"not text", "tokenizer.json", "\xff\xfe{}", "UTF-8"},
		{"10,000 lists", "tokenizer.json", `{"normalizer":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + "}", "nested too deeply"},
		{"10,000 objects", "tokenizer.json", `{"model":{"vocab":` + strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000) + "}}", "nested too deeply"},
		{"10,000 lists without end", "tokenizer.json", `{"a":` + strings.Repeat("[", 10_000), "nested too deeply"},
		{"a token twice", "tokenizer.json", strings.Replace(good, `"a":`, `"a":9000,"a":`, 1), `appears twice`},
		{"a config that is a list", "tokenizer_config.json", "[]", "tokenizer_config.json"},
		{"a broken config", "tokenizer_config.json", "{", "tokenizer_config.json"},
		{"a config with a number for a token", "tokenizer_config.json", `{"bos_token": 7}`, "bos_token"},
		{"a config with an odd flag", "tokenizer_config.json", `{"add_bos_token": "yes"}`, "add_bos_token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "tokenizer.json", []byte(good))
			write(t, dir, c.file, []byte(c.text))
			checkRefusal(t, dir, c.file, c.want)
		})
	}
	t.Run("no file", func(t *testing.T) {
		dir := t.TempDir()
		checkRefusal(t, dir, "tokenizer.json", "not found")
		write(t, dir, "tokenizer.model", nil)
		checkRefusal(t, dir, "tokenizer.json", "SentencePiece")
	})
}

func checkRefusal(t *testing.T, dir, file, want string) {
	t.Helper()
	_, err := Load(dir)
	var refusal *Error
	if !errors.As(err, &refusal) {
		t.Fatalf("error %v, want an *Error", err)
	}
	if refusal.File != filepath.Join(dir, file) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v\nwant %s and %q", err, file, want)
	}
}

// Damaged files never panic, and neither does what is read from them.
func TestDamagedFiles(t *testing.T) {
	rounds := 3000
	if raceEnabled || testing.Short() {
		rounds = 300
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, spec := range []object{small(), byteLevelSmall()} {
		good := marshal(t, spec)
		read := 0
		for range rounds {
			data := slices.Clone(good)
			for range 1 + rng.IntN(3) {
				at := rng.IntN(len(data))
				switch rng.IntN(4) {
				case 0:
					data[at] = byte(rng.IntN(256))
				case 1:
					data = slices.Delete(data, at, min(at+1+rng.IntN(8), len(data)))
				case 2:
					data = slices.Insert(data, at, []byte(`{}[]",:\u10`)[rng.IntN(11)])
				case 3:
					data[at] = []byte(`{}[]",:0-e`)[rng.IntN(10)]
				}
			}
			tok, err := parse(data)
			if err != nil {
				continue
			}
			read++
			if err := tok.configure(nil); err != nil {
				continue
			}
			ids, err := tok.Encode("ab <bos> é 😀\x00 ", true)
			if err == nil {
				tok.Decode(ids, false)
			}
		}
		t.Logf("%d of %d damaged files could be read", read, rounds)
	}
}

// A pattern that backtracks without end is an error, not a hang.
func TestPatternTime(t *testing.T) {
	old := patternTime
	patternTime = 300 * time.Millisecond
	defer func() { patternTime = old }()
	spec := small()
	spec["pre_tokenizer"] = object{"type": "Split", "pattern": object{"Regex": `(a+)+\d`}, "behavior": "Isolated"}
	tok := mustParse(t, spec)
	began := time.Now()
	if _, err := tok.Encode(strings.Repeat("a", 60)+"!", false); err == nil || !strings.Contains(err.Error(), "pattern") {
		t.Errorf("error %v", err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}

// Both ways of merging are one: the quick one for short words and the one for long words.
func TestMergeWays(t *testing.T) {
	tok := loadDemo(t)
	rapid.Check(t, func(t *rapid.T) {
		text := strings.ReplaceAll(rapid.StringOfN(rapid.SampledFrom([]rune("abcdefghinorstuw  .,é字")), 1, 60, -1).Draw(t, "text"), " ", "▁")
		few, many := worker{m: tok.model}, worker{m: tok.model}
		few.split(text)
		few.mergeFew()
		many.split(text)
		many.mergeMany()
		if !slices.Equal(few.ids, many.ids) {
			t.Fatalf("%q: %v and %v", text, few.ids, many.ids)
		}
	})
}

func TestDemoSpeed(t *testing.T) { checkSpeed(t, loadDemo(t)) }

func TestInvalidText(t *testing.T) {
	tok := loadDemo(t)
	ids, err := tok.Encode("a\xffb\xe2\x82", false)
	if err != nil || tok.Decode(ids, true) != "a\uFFFDb\uFFFD" {
		t.Errorf("%q %v", tok.Decode(ids, true), err)
	}
}

// One tokenizer serves several goroutines.
func TestConcurrentUse(t *testing.T) {
	tok := mustParse(t, byteLevelSmall())
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for range 50 {
				text := strings.Repeat("the 😀 é ", i+1)
				ids, err := tok.Encode(text, true)
				if err != nil || tok.Decode(ids, true) != text {
					t.Errorf("%q %v", tok.Decode(ids, true), err)
				}
			}
		}()
	}
	wait.Wait()
}

func FuzzParse(f *testing.F) {
	f.Add(marshal(f, small()), "a <bos> é")
	f.Add(marshal(f, byteLevelSmall()), "the 😀")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		tok, err := parse(data)
		if err != nil || tok.configure(nil) != nil {
			return
		}
		if ids, err := tok.Encode(text, true); err == nil {
			tok.Decode(ids, true)
		}
	})
}
