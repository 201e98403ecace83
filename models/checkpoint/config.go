package checkpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"
)

// configLimit is far above any real configuration file.
const configLimit = 64 << 20

// Config gives typed values of a JSON object such as config.json. Its zero value is an empty
// object. A key that is present with the value null counts as absent. Getters without a default
// fail when the key is absent; every getter fails when the value is of another type. Failures are
// *Error of KindBadConfig naming the file and the key. Safe for concurrent use.
type Config struct {
	path   string // of the file, for messages
	prefix string // of keys in messages: "text_config." inside that object
	values map[string]any
	outer  *Config // looked at for keys absent here
}

// ReadConfig reads the JSON object in the file at path. A byte order mark is tolerated.
func ReadConfig(path string) (*Config, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, FileError(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{Kind: KindNotReadable, Path: path, Detail: "not an ordinary file"}
	}
	if info.Size() > configLimit {
		return nil, &Error{Kind: KindCorrupt, Path: path, Detail: fmt.Sprintf("%d bytes are too many for a configuration", info.Size())}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, FileError(path, err)
	}
	return ParseConfig(path, data)
}

// ParseConfig is ReadConfig on bytes already in memory; path is for messages only.
func ParseConfig(path string, data []byte) (*Config, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, &Error{Kind: KindIncomplete, Path: path, Detail: "the file is empty"}
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		if err == io.ErrUnexpectedEOF {
			return nil, &Error{Kind: KindCorrupt, Path: path, Detail: "its JSON ends early"}
		}
		return nil, &Error{Kind: KindCorrupt, Path: path, Detail: "it is not valid JSON", Err: err}
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, &Error{Kind: KindCorrupt, Path: path, Detail: "text follows its JSON"}
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, &Error{Kind: KindCorrupt, Path: path, Detail: "it is not a JSON object"}
	}
	return &Config{path: path, values: object}, nil
}

// Path returns the file that the values come from.
func (c *Config) Path() string { return c.path }

func (c *Config) get(key string) (any, bool) {
	for ; c != nil; c = c.outer {
		if v, ok := c.values[key]; ok && v != nil {
			return v, true
		}
	}
	return nil, false
}

// Fail returns an *Error of KindBadConfig about key, for values that a caller finds wanting.
func (c *Config) Fail(key, format string, args ...any) error {
	return &Error{Kind: KindBadConfig, Path: c.path, Key: c.prefix + key, Detail: fmt.Sprintf(format, args...)}
}

func (c *Config) absent(key string) error { return c.Fail(key, "missing") }

func (c *Config) wrong(key, want string, v any) error {
	return c.Fail(key, "%s is not %s", describeValue(v), want)
}

func describeValue(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("a %T", v)
	}
	return clip(string(text))
}

// Has reports whether key is present with a value other than null.
func (c *Config) Has(key string) bool { _, ok := c.get(key); return ok }

// Keys returns the keys of this object, sorted, those of an outer object not included.
func (c *Config) Keys() []string {
	keys := make([]string, 0, len(c.values))
	for k := range c.values {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// wholeNumber accepts 8, 8.0 and 8e0, and nothing that int64 can't hold exactly.
func wholeNumber(v any) (int64, bool) {
	number, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	if n, err := strconv.ParseInt(number.String(), 10, 64); err == nil {
		return n, true
	}
	f, err := number.Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 || !strings.ContainsAny(number.String(), ".eE") {
		return 0, false
	}
	return int64(f), true
}

// Int returns a whole number.
func (c *Config) Int(key string) (int, error) {
	v, ok := c.get(key)
	if !ok {
		return 0, c.absent(key)
	}
	n, ok := wholeNumber(v)
	if !ok {
		return 0, c.wrong(key, "a whole number", v)
	}
	return int(n), nil
}

// IntOr is Int with a value for an absent key.
func (c *Config) IntOr(key string, absent int) (int, error) {
	if !c.Has(key) {
		return absent, nil
	}
	return c.Int(key)
}

// PositiveInt is Int refusing values below 1 and above 2³¹−1, as for sizes and counts.
func (c *Config) PositiveInt(key string) (int, error) {
	n, err := c.Int(key)
	if err == nil && (n < 1 || n > math.MaxInt32) {
		return 0, c.Fail(key, "%d is out of range", n)
	}
	return n, err
}

// Float returns a finite number.
func (c *Config) Float(key string) (float64, error) {
	v, ok := c.get(key)
	if !ok {
		return 0, c.absent(key)
	}
	number, ok := v.(json.Number)
	if !ok {
		return 0, c.wrong(key, "a number", v)
	}
	f, err := number.Float64()
	if err != nil {
		return 0, c.wrong(key, "a number in range", v)
	}
	return f, nil
}

// FloatOr is Float with a value for an absent key.
func (c *Config) FloatOr(key string, absent float64) (float64, error) {
	if !c.Has(key) {
		return absent, nil
	}
	return c.Float(key)
}

// Bool returns true or false.
func (c *Config) Bool(key string) (bool, error) {
	v, ok := c.get(key)
	if !ok {
		return false, c.absent(key)
	}
	b, ok := v.(bool)
	if !ok {
		return false, c.wrong(key, "true or false", v)
	}
	return b, nil
}

// BoolOr is Bool with a value for an absent key.
func (c *Config) BoolOr(key string, absent bool) (bool, error) {
	if !c.Has(key) {
		return absent, nil
	}
	return c.Bool(key)
}

// String returns text.
func (c *Config) String(key string) (string, error) {
	v, ok := c.get(key)
	if !ok {
		return "", c.absent(key)
	}
	s, ok := v.(string)
	if !ok {
		return "", c.wrong(key, "text", v)
	}
	return s, nil
}

// StringOr is String with a value for an absent key.
func (c *Config) StringOr(key, absent string) (string, error) {
	if !c.Has(key) {
		return absent, nil
	}
	return c.String(key)
}

func (c *Config) list(key string) ([]any, error) {
	v, ok := c.get(key)
	if !ok {
		return nil, c.absent(key)
	}
	list, ok := v.([]any)
	if !ok {
		return nil, c.wrong(key, "a list", v)
	}
	return list, nil
}

// Ints returns a list of whole numbers.
func (c *Config) Ints(key string) ([]int, error) {
	list, err := c.list(key)
	if err != nil {
		return nil, err
	}
	numbers := make([]int, len(list))
	for i, v := range list {
		n, ok := wholeNumber(v)
		if !ok {
			return nil, c.wrong(key, "a list of whole numbers", v)
		}
		numbers[i] = int(n)
	}
	return numbers, nil
}

// IntList is Ints that also takes a single number, as token ids are written; absent is nil.
func (c *Config) IntList(key string) ([]int, error) {
	v, ok := c.get(key)
	if !ok {
		return nil, nil
	}
	if _, ok := v.([]any); ok {
		return c.Ints(key)
	}
	n, err := c.Int(key)
	if err != nil {
		return nil, err
	}
	return []int{n}, nil
}

// Floats returns a list of numbers.
func (c *Config) Floats(key string) ([]float64, error) {
	list, err := c.list(key)
	if err != nil {
		return nil, err
	}
	numbers := make([]float64, len(list))
	for i, v := range list {
		number, ok := v.(json.Number)
		if !ok {
			return nil, c.wrong(key, "a list of numbers", v)
		}
		if numbers[i], err = number.Float64(); err != nil {
			return nil, c.wrong(key, "a list of numbers in range", v)
		}
	}
	return numbers, nil
}

// Strings returns a list of texts.
func (c *Config) Strings(key string) ([]string, error) {
	list, err := c.list(key)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(list))
	for i, v := range list {
		s, ok := v.(string)
		if !ok {
			return nil, c.wrong(key, "a list of texts", v)
		}
		texts[i] = s
	}
	return texts, nil
}

// Object returns the object under key. Its failures name the whole way: "rope_parameters.rope_theta".
func (c *Config) Object(key string) (*Config, error) {
	v, ok := c.get(key)
	if !ok {
		return nil, c.absent(key)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, c.wrong(key, "an object", v)
	}
	return &Config{path: c.path, prefix: c.prefix + key + ".", values: object}, nil
}

// ObjectOr is Object returning an empty one for an absent key.
func (c *Config) ObjectOr(key string) (*Config, error) {
	if !c.Has(key) {
		return &Config{path: c.path, prefix: c.prefix + key + "."}, nil
	}
	return c.Object(key)
}

// Objects returns a list of objects.
func (c *Config) Objects(key string) ([]*Config, error) {
	list, err := c.list(key)
	if err != nil {
		return nil, err
	}
	objects := make([]*Config, len(list))
	for i, v := range list {
		object, ok := v.(map[string]any)
		if !ok {
			return nil, c.wrong(key, "a list of objects", v)
		}
		objects[i] = &Config{path: c.path, prefix: fmt.Sprintf("%s%s[%d].", c.prefix, key, i), values: object}
	}
	return objects, nil
}

// Text returns the values of the language model: those of text_config where the folder nests them
// there, and the outer object's for keys that text_config lacks; c itself when nothing is nested.
func (c *Config) Text() (*Config, error) {
	if !c.Has("text_config") {
		return c, nil
	}
	text, err := c.Object("text_config")
	if err != nil {
		return nil, err
	}
	text.outer = c
	return text, nil
}
