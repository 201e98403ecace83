package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxNesting bounds how deep values may nest: real files need seven levels.
const maxNesting = 64

var errNesting = errors.New("nested too deeply")

// cursor reads JSON from one buffer in one pass. A tokenizer.json runs to tens of megabytes,
// nearly all of it two flat lists, which the general decoder would scan four times over.
type cursor struct {
	data []byte
	pos  int
}

func (c *cursor) space() {
	for c.pos < len(c.data) {
		switch c.data[c.pos] {
		case ' ', '\t', '\n', '\r':
			c.pos++
		default:
			return
		}
	}
}

// peek returns the next significant byte, or 0 at the end.
func (c *cursor) peek() byte {
	c.space()
	if c.pos >= len(c.data) {
		return 0
	}
	return c.data[c.pos]
}

func (c *cursor) fail(want string) error {
	if c.pos >= len(c.data) {
		return fmt.Errorf("ends early: %s is missing", want)
	}
	return fmt.Errorf("byte %d: want %s, found %q", c.pos, want, c.data[c.pos])
}

func (c *cursor) expect(b byte) error {
	if c.peek() != b {
		return c.fail(fmt.Sprintf("%q", b))
	}
	c.pos++
	return nil
}

// object calls member for every key with the cursor on the value; member must consume it.
func (c *cursor) object(member func(key string) error) error {
	if err := c.expect('{'); err != nil {
		return err
	}
	if c.peek() == '}' {
		c.pos++
		return nil
	}
	for {
		if c.peek() != '"' {
			return c.fail("a name in quotes")
		}
		key, err := c.text()
		if err != nil {
			return err
		}
		if err := c.expect(':'); err != nil {
			return err
		}
		if err := member(string(key)); err != nil {
			return err
		}
		switch c.peek() {
		case ',':
			c.pos++
		case '}':
			c.pos++
			return nil
		default:
			return c.fail("',' or '}'")
		}
	}
}

// array calls element for every item with the cursor on it; element must consume it.
func (c *cursor) array(element func(index int) error) error {
	if err := c.expect('['); err != nil {
		return err
	}
	if c.peek() == ']' {
		c.pos++
		return nil
	}
	for i := 0; ; i++ {
		if err := element(i); err != nil {
			return err
		}
		switch c.peek() {
		case ',':
			c.pos++
		case ']':
			c.pos++
			return nil
		default:
			return c.fail("',' or ']'")
		}
	}
}

// text reads a string. The bytes may alias the buffer: copy them to keep them.
func (c *cursor) text() ([]byte, error) {
	if c.peek() != '"' {
		return nil, c.fail("a string")
	}
	start := c.pos + 1
	for i := start; i < len(c.data); i++ {
		switch b := c.data[i]; {
		case b == '"':
			c.pos = i + 1
			return c.data[start:i], nil
		case b == '\\':
			return c.escapedText(start, i)
		case b < 0x20:
			c.pos = i
			return nil, c.fail("a string without raw control characters")
		}
	}
	c.pos = len(c.data)
	return nil, c.fail("a closing quote")
}

func (c *cursor) escapedText(start, i int) ([]byte, error) {
	out := append([]byte(nil), c.data[start:i]...)
	for i < len(c.data) {
		b := c.data[i]
		if b == '"' {
			c.pos = i + 1
			return out, nil
		}
		if b < 0x20 {
			c.pos = i
			return nil, c.fail("a string without raw control characters")
		}
		if b != '\\' {
			out = append(out, b)
			i++
			continue
		}
		if i+1 >= len(c.data) {
			break
		}
		i += 2
		switch e := c.data[i-1]; e {
		case '"', '\\', '/':
			out = append(out, e)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, ok := c.hex(i)
			if !ok {
				c.pos = i
				return nil, c.fail("four hexadecimal digits")
			}
			i += 4
			if utf16.IsSurrogate(r) {
				low, ok := rune(0), false
				if i+1 < len(c.data) && c.data[i] == '\\' && c.data[i+1] == 'u' {
					low, ok = c.hex(i + 2)
				}
				if joined := utf16.DecodeRune(r, low); ok && joined != utf8.RuneError {
					r = joined
					i += 6
				} else {
					r = utf8.RuneError
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			c.pos = i - 1
			return nil, c.fail("an escape")
		}
	}
	c.pos = len(c.data)
	return nil, c.fail("a closing quote")
}

func (c *cursor) hex(at int) (rune, bool) {
	if at+4 > len(c.data) {
		return 0, false
	}
	var r rune
	for _, b := range c.data[at : at+4] {
		switch {
		case b >= '0' && b <= '9':
			r = r<<4 | rune(b-'0')
		case b >= 'a' && b <= 'f':
			r = r<<4 | rune(b-'a'+10)
		case b >= 'A' && b <= 'F':
			r = r<<4 | rune(b-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// whole reads a non-negative integer of at most nine digits.
func (c *cursor) whole() (int, error) {
	first := c.peek()
	start, n := c.pos, 0
	for c.pos < len(c.data) && c.data[c.pos] >= '0' && c.data[c.pos] <= '9' {
		n = n*10 + int(c.data[c.pos]-'0')
		c.pos++
		if c.pos-start > 9 {
			return 0, errors.New("the number is too large")
		}
	}
	if c.pos == start || first == '0' && c.pos > start+1 {
		return 0, c.fail("a whole number that is not negative")
	}
	if c.pos < len(c.data) {
		switch c.data[c.pos] {
		case '.', 'e', 'E':
			return 0, c.fail("a whole number")
		}
	}
	return n, nil
}

// skip passes over one value of any kind and returns its bytes. It checks nesting and strings
// only: whoever uses the bytes parses them.
func (c *cursor) skip() (json.RawMessage, error) {
	c.space()
	start, depth := c.pos, 0
	for {
		switch b := c.peek(); b {
		case 0:
			return nil, c.fail("a value")
		case '{', '[':
			if depth++; depth > maxNesting {
				return nil, errNesting
			}
			c.pos++
			continue
		case '}', ']':
			if depth--; depth < 0 {
				return nil, c.fail("a value")
			}
			c.pos++
		case ',', ':':
			if depth == 0 {
				return nil, c.fail("a value")
			}
			c.pos++
			continue
		case '"':
			if _, err := c.text(); err != nil {
				return nil, err
			}
		default:
			at := c.pos
			for c.pos < len(c.data) && !strings.ContainsRune(" \t\r\n,:{}[]\"", rune(c.data[c.pos])) {
				c.pos++
			}
			if c.pos == at {
				return nil, c.fail("a value")
			}
		}
		if depth == 0 {
			return c.data[start:c.pos], nil
		}
	}
}
