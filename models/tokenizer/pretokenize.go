package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A preTokenizer cuts text into the words that are encoded apart. first says that the first of
// them is the start of what is encoded.
type preTokenizer func(words []string, first bool) (cut []string, stillFirst bool, err error)

func readPreTokenizer(field string, raw json.RawMessage, depth int) (preTokenizer, error) {
	if absent(raw) {
		return nil, nil
	}
	kind, err := stepType(field, raw, depth)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "Sequence":
		var s struct {
			Steps []json.RawMessage `json:"pretokenizers"`
		}
		if err := unmarshalStep(field, raw, &s); err != nil {
			return nil, err
		}
		var steps []preTokenizer
		for i, item := range s.Steps {
			step, err := readPreTokenizer(fmt.Sprintf("%s.pretokenizers[%d]", field, i), item, depth+1)
			if err != nil {
				return nil, err
			}
			if step != nil {
				steps = append(steps, step)
			}
		}
		return func(words []string, first bool) ([]string, bool, error) {
			for _, step := range steps {
				var err error
				if words, first, err = step(words, first); err != nil {
					return nil, false, err
				}
			}
			return words, first, nil
		}, nil
	case "Split":
		var s struct {
			Pattern  json.RawMessage `json:"pattern"`
			Behavior string          `json:"behavior"`
			Invert   bool            `json:"invert"`
		}
		if err := unmarshalStep(field, raw, &s); err != nil {
			return nil, err
		}
		pattern, err := readPattern(field+".pattern", s.Pattern)
		if err != nil {
			return nil, err
		}
		return splitter(field, pattern.parts, s.Behavior, s.Invert)
	case "ByteLevel":
		s := struct {
			AddPrefixSpace bool `json:"add_prefix_space"`
			UseRegex       bool `json:"use_regex"`
		}{true, true}
		if err := unmarshalStep(field, raw, &s); err != nil {
			return nil, err
		}
		return byteLevel(s.AddPrefixSpace, s.UseRegex)
	case "Digits":
		var s struct {
			Individual bool `json:"individual_digits"`
		}
		if err := unmarshalStep(field, raw, &s); err != nil {
			return nil, err
		}
		behavior := "Contiguous"
		if s.Individual {
			behavior = "Isolated"
		}
		return splitter(field, runeParts(unicode.IsNumber), behavior, false)
	case "Punctuation":
		s := struct {
			Behavior string `json:"behavior"`
		}{"Isolated"}
		if err := unmarshalStep(field, raw, &s); err != nil {
			return nil, err
		}
		return splitter(field, runeParts(isPunctuation), s.Behavior, false)
	case "WhitespaceSplit":
		return splitter(field, runeParts(unicode.IsSpace), "Removed", false)
	case "Metaspace":
		return readMetaspace(field, raw)
	}
	return nil, badField(field+".type", "pre-tokenizer %q is not supported", kind)
}

func isPunctuation(r rune) bool {
	if r < 128 {
		return r > ' ' && r < 127 && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	return unicode.IsPunct(r)
}

// runeParts makes every rune of a kind a match of its own.
func runeParts(is func(rune) bool) func(string, []part) ([]part, error) {
	return func(text string, out []part) ([]part, error) {
		out = out[:0]
		done := 0
		for i, r := range text {
			if !is(r) {
				continue
			}
			if i > done {
				out = append(out, part{done, i, false})
			}
			done = i + utf8.RuneLen(r)
			out = append(out, part{i, done, true})
		}
		if done < len(text) {
			out = append(out, part{done, len(text), false})
		}
		return out, nil
	}
}

// splitter cuts words where matches are, as the named behavior says.
func splitter(field string, find func(string, []part) ([]part, error), behavior string, invert bool) (preTokenizer, error) {
	var join func(parts []part) []part
	switch behavior {
	case "Isolated":
		join = func(parts []part) []part { return parts }
	case "Removed":
		join = func(parts []part) []part {
			kept := parts[:0]
			for _, p := range parts {
				if !p.match {
					kept = append(kept, p)
				}
			}
			return kept
		}
	case "Contiguous":
		join = func(parts []part) []part {
			kept := parts[:0]
			for i, p := range parts {
				if i > 0 && p.match == kept[len(kept)-1].match {
					kept[len(kept)-1].end = p.end
				} else {
					kept = append(kept, p)
				}
			}
			return kept
		}
	case "MergedWithPrevious":
		join = func(parts []part) []part {
			kept := parts[:0]
			previous := false
			for _, p := range parts {
				if p.match && !previous && len(kept) > 0 {
					kept[len(kept)-1].end = p.end
				} else {
					kept = append(kept, p)
				}
				previous = p.match
			}
			return kept
		}
	case "MergedWithNext":
		join = func(parts []part) []part {
			kept := make([]part, 0, len(parts))
			previous := false
			for i := len(parts) - 1; i >= 0; i-- {
				p := parts[i]
				if p.match && !previous && len(kept) > 0 {
					kept[len(kept)-1].start = p.start
				} else {
					kept = append(kept, p)
				}
				previous = p.match
			}
			for i, j := 0, len(kept)-1; i < j; i, j = i+1, j-1 {
				kept[i], kept[j] = kept[j], kept[i]
			}
			return kept
		}
	default:
		return nil, badField(field+".behavior", "%q is not known", behavior)
	}
	return func(words []string, first bool) ([]string, bool, error) {
		out := make([]string, 0, len(words))
		var parts []part
		for i, word := range words {
			var err error
			if parts, err = find(word, parts); err != nil {
				return nil, false, err
			}
			if invert {
				for i := range parts {
					parts[i].match = !parts[i].match
				}
			}
			for _, p := range join(parts) {
				if p.end > p.start {
					if len(out) == 0 && (i > 0 || p.start > 0) {
						first = false // what was first is gone
					}
					out = append(out, word[p.start:p.end])
				}
			}
		}
		return out, first, nil
	}, nil
}

// byteRunes are the printable stand-ins that byte-level vocabularies spell bytes with, and
// runeBytes leads back; -1 marks a rune that is none of them.
var byteRunes, runeBytes = func() (to [256]rune, from [512]int16) {
	for i := range from {
		from[i] = -1
	}
	next := rune(256)
	for b := range 256 {
		r := rune(b)
		if b < '!' || b > '~' && b < 0xA1 || b == 0xAD {
			r = next
			next++
		}
		to[b], from[r] = r, int16(b)
	}
	return to, from
}()

// byteLevelWords is how byte-level tokenizers cut words when their file names no pattern.
const byteLevelWords = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

func byteLevel(prefixSpace, cut bool) (preTokenizer, error) {
	var split preTokenizer
	if cut {
		words, err := newRegex("pre_tokenizer", byteLevelWords)
		if err != nil {
			return nil, err
		}
		if split, err = splitter("pre_tokenizer", words.parts, "Isolated", false); err != nil {
			return nil, err
		}
	}
	return func(words []string, first bool) ([]string, bool, error) {
		if prefixSpace {
			spaced := make([]string, len(words))
			for i, word := range words {
				if !strings.HasPrefix(word, " ") {
					word = " " + word
				}
				spaced[i] = word
			}
			words = spaced
		}
		if split != nil {
			var err error
			if words, first, err = split(words, first); err != nil {
				return nil, false, err
			}
		}
		total := 0
		for _, word := range words {
			total += len(word)
		}
		buffer := make([]byte, 0, 2*total)
		out := make([]string, len(words))
		ends := make([]int, len(words))
		for i, word := range words {
			for j := range len(word) {
				buffer = utf8.AppendRune(buffer, byteRunes[word[j]])
			}
			ends[i] = len(buffer)
		}
		all, start := string(buffer), 0
		for i, end := range ends {
			out[i] = all[start:end]
			start = end
		}
		return out, first, nil
	}, nil
}

func readMetaspaceOptions(field string, raw json.RawMessage) (mark rune, scheme string, split bool, err error) {
	s := struct {
		Replacement string `json:"replacement"`
		Scheme      string `json:"prepend_scheme"`
		PrefixSpace *bool  `json:"add_prefix_space"`
		Split       *bool  `json:"split"`
	}{Replacement: "▁"}
	if err := unmarshalStep(field, raw, &s); err != nil {
		return 0, "", false, err
	}
	mark, size := utf8.DecodeRuneInString(s.Replacement)
	if size == 0 || size != len(s.Replacement) {
		return 0, "", false, badField(field+".replacement", "want one character, found %q", s.Replacement)
	}
	switch s.Scheme {
	case "always", "first", "never":
	case "":
		s.Scheme = "always"
		if s.PrefixSpace != nil && !*s.PrefixSpace {
			s.Scheme = "never"
		}
	default:
		return 0, "", false, badField(field+".prepend_scheme", "%q is not known", s.Scheme)
	}
	return mark, s.Scheme, s.Split == nil || *s.Split, nil
}

func readMetaspace(field string, raw json.RawMessage) (preTokenizer, error) {
	mark, scheme, split, err := readMetaspaceOptions(field, raw)
	if err != nil {
		return nil, err
	}
	cut, err := splitter(field, runeParts(func(r rune) bool { return r == mark }), "MergedWithNext", false)
	if err != nil {
		return nil, err
	}
	return func(words []string, first bool) ([]string, bool, error) {
		marked := make([]string, len(words))
		for i, word := range words {
			word = strings.ReplaceAll(word, " ", string(mark))
			if !strings.HasPrefix(word, string(mark)) && (scheme == "always" || scheme == "first" && first && i == 0) {
				word = string(mark) + word
			}
			marked[i] = word
		}
		if !split {
			return marked, first, nil
		}
		return cut(marked, first)
	}, nil
}
