package chat

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ardanlabs/jinja"
)

type function = func(args []jinja.Value, named map[string]jinja.Value) (jinja.Value, error)

// filters are what templates get in place of the engine's own, by name.
var filters = map[string]function{
	"print":        printed,
	"tojson":       toJSON,
	"strip":        stripFilter(true, true),
	"lstrip":       stripFilter(true, false),
	"rstrip":       stripFilter(false, true),
	"split":        splitFilter(false),
	"rsplit":       splitFilter(true),
	"removeprefix": affixFilter(strings.TrimPrefix),
	"removesuffix": affixFilter(strings.TrimSuffix),
}

// textOf is a value as a template would print it.
func textOf(v jinja.Value) string {
	switch {
	case v.IsString():
		return v.AsString()
	case v.IsUndefined() || v.IsNone():
		return ""
	}
	return v.String()
}

// printed makes of an output's value what Python prints, where the engine would print less.
func printed(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
	switch v := args[0]; {
	case v.IsNone():
		return jinja.NewString("None"), nil
	case v.IsFloat():
		return jinja.NewString(pythonFloat(v.AsFloat())), nil
	}
	return args[0], nil
}

func given(args []jinja.Value, named map[string]jinja.Value, at int, name string) (jinja.Value, bool) {
	if at < len(args) {
		return args[at], true
	}
	v, ok := named[name]
	return v, ok
}

func stripFilter(left, right bool) function {
	return func(args []jinja.Value, named map[string]jinja.Value) (jinja.Value, error) {
		text, in := textOf(args[0]), isSpace
		if chars, ok := given(args, named, 1, "chars"); ok && !chars.IsNone() {
			set := textOf(chars)
			in = func(r rune) bool { return strings.ContainsRune(set, r) }
		}
		if left {
			text = strings.TrimLeftFunc(text, in)
		}
		if right {
			text = strings.TrimRightFunc(text, in)
		}
		return jinja.NewString(text), nil
	}
}

func splitFilter(fromRight bool) function {
	return func(args []jinja.Value, named map[string]jinja.Value) (jinja.Value, error) {
		text := textOf(args[0])
		limit := -1
		if v, ok := given(args, named, 2, "maxsplit"); ok && v.IsInt() {
			limit = int(v.AsInt())
		}
		var parts []string
		separator, ok := given(args, named, 1, "sep")
		switch sep := textOf(separator); {
		case !ok || separator.IsNone():
			parts = splitSpace(text, limit, fromRight)
		case sep == "":
			return jinja.Undefined(), errors.New("empty separator")
		case !fromRight && limit >= 0:
			parts = strings.SplitN(text, sep, limit+1)
		default:
			parts = strings.Split(text, sep)
			if fromRight && limit >= 0 && len(parts) > limit+1 {
				head := len(parts) - limit
				parts = append([]string{strings.Join(parts[:head], sep)}, parts[head:]...)
			}
		}
		items := make([]jinja.Value, len(parts))
		for i, part := range parts {
			items[i] = jinja.NewString(part)
		}
		return jinja.NewList(items), nil
	}
}

// splitSpace cuts at white space, at most limit times unless it is negative.
func splitSpace(text string, limit int, fromRight bool) []string {
	var parts []string
	if fromRight {
		for text = strings.TrimRightFunc(text, isSpace); text != ""; text = strings.TrimRightFunc(text, isSpace) {
			at := strings.LastIndexFunc(text, isSpace)
			if at < 0 || limit >= 0 && len(parts) == limit {
				parts = append(parts, text)
				break
			}
			_, size := utf8.DecodeRuneInString(text[at:])
			parts = append(parts, text[at+size:])
			text = text[:at]
		}
		slices.Reverse(parts)
		return parts
	}
	for text = strings.TrimLeftFunc(text, isSpace); text != ""; text = strings.TrimLeftFunc(text, isSpace) {
		at := strings.IndexFunc(text, isSpace)
		if at < 0 || limit >= 0 && len(parts) == limit {
			return append(parts, text)
		}
		parts = append(parts, text[:at])
		text = text[at:]
	}
	return parts
}

func affixFilter(trim func(text, affix string) string) function {
	return func(args []jinja.Value, named map[string]jinja.Value) (jinja.Value, error) {
		if len(args) < 2 {
			return jinja.Undefined(), errors.New("an argument is missing")
		}
		return jinja.NewString(trim(textOf(args[0]), textOf(args[1]))), nil
	}
}

// toJSON writes JSON as Python's json.dumps does: keys in their order, nothing escaped that
// need not be.
func toJSON(args []jinja.Value, named map[string]jinja.Value) (jinja.Value, error) {
	w := jsonWriter{item: ", ", key: ": "}
	if v, ok := given(args, named, 1, "ensure_ascii"); ok {
		w.ascii = v.IsTruthy()
	}
	if v, ok := given(args, named, 2, "indent"); ok && !v.IsNone() && !v.IsUndefined() {
		w.indented, w.item = true, ","
		switch {
		case v.IsInt():
			w.indent = strings.Repeat(" ", int(min(max(v.AsInt(), 0), 64)))
		case v.IsString():
			w.indent = v.AsString()
		}
	}
	if v, ok := given(args, named, 3, "separators"); ok && v.IsList() && v.AsList().Len() == 2 {
		w.item, w.key = textOf(v.AsList().Get(0)), textOf(v.AsList().Get(1))
	}
	if v, ok := given(args, named, 4, "sort_keys"); ok {
		w.sorted = v.IsTruthy()
	}
	if err := w.value(args[0], 0); err != nil {
		return jinja.Undefined(), err
	}
	return jinja.NewString(w.String()), nil
}

type jsonWriter struct {
	strings.Builder
	item, key, indent       string
	indented, ascii, sorted bool
}

func (w *jsonWriter) line(depth int) {
	if w.indented {
		w.WriteString("\n" + strings.Repeat(w.indent, depth))
	}
}

func (w *jsonWriter) value(v jinja.Value, depth int) error {
	if depth > maxNesting {
		return errors.New("tojson: the value is nested too deeply")
	}
	switch {
	case v.IsNone():
		w.WriteString("null")
	case v.IsBool():
		w.WriteString(strconv.FormatBool(v.AsBool()))
	case v.IsInt():
		w.WriteString(strconv.FormatInt(v.AsInt(), 10))
	case v.IsFloat():
		w.WriteString(pythonFloat(v.AsFloat()))
	case v.IsString():
		w.text(v.AsString())
	case v.IsList():
		items := v.AsList().Items
		w.WriteByte('[')
		for i, item := range items {
			if i > 0 {
				w.WriteString(w.item)
			}
			w.line(depth + 1)
			if err := w.value(item, depth+1); err != nil {
				return err
			}
		}
		if len(items) > 0 {
			w.line(depth)
		}
		w.WriteByte(']')
	case v.IsDict():
		dict := v.AsDict()
		keys := dict.OrderedKeys()
		if w.sorted {
			slices.Sort(keys)
		}
		w.WriteByte('{')
		for i, key := range keys {
			if i > 0 {
				w.WriteString(w.item)
			}
			w.line(depth + 1)
			w.text(key)
			w.WriteString(w.key)
			item, _ := dict.Get(key)
			if err := w.value(item, depth+1); err != nil {
				return err
			}
		}
		if len(keys) > 0 {
			w.line(depth)
		}
		w.WriteByte('}')
	default:
		return errors.New("tojson: the value is not JSON")
	}
	return nil
}

func (w *jsonWriter) text(text string) {
	w.WriteByte('"')
	for _, r := range text {
		switch r {
		case '"', '\\':
			w.WriteByte('\\')
			w.WriteRune(r)
		case '\n':
			w.WriteString(`\n`)
		case '\r':
			w.WriteString(`\r`)
		case '\t':
			w.WriteString(`\t`)
		case '\b':
			w.WriteString(`\b`)
		case '\f':
			w.WriteString(`\f`)
		default:
			switch {
			case r < 0x20 || w.ascii && r >= 0x7F && r < 0x10000 && r != 0x7F:
				fmt.Fprintf(w, `\u%04x`, r)
			case w.ascii && r >= 0x10000:
				fmt.Fprintf(w, `\u%04x\u%04x`, 0xD800+(r-0x10000)>>10, 0xDC00+(r-0x10000)&0x3FF)
			default:
				w.WriteRune(r)
			}
		}
	}
	w.WriteByte('"')
}

// pythonFloat spells a float as Python's repr does.
func pythonFloat(f float64) string {
	s := strconv.FormatFloat(f, 'e', -1, 64)
	_, exponent, ok := strings.Cut(s, "e")
	if !ok {
		return map[string]string{"NaN": "NaN", "+Inf": "Infinity", "-Inf": "-Infinity"}[s]
	}
	if n, _ := strconv.Atoi(exponent); n < -4 || n >= 16 {
		return s
	}
	s = strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// strftime formats a time as C does in its own locale.
func strftime(format string, t time.Time) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		bare := format[i] == '-' && i+1 < len(format)
		if bare {
			i++
		}
		number := func(width, n int) {
			if bare {
				width = 1
			}
			fmt.Fprintf(&b, "%0*d", width, n)
		}
		hour12 := (t.Hour()+11)%12 + 1
		switch c := format[i]; c {
		case 'Y':
			number(4, t.Year())
		case 'y':
			number(2, t.Year()%100)
		case 'm':
			number(2, int(t.Month()))
		case 'd':
			number(2, t.Day())
		case 'e':
			b.WriteString(t.Format("_2"))
		case 'H':
			number(2, t.Hour())
		case 'I':
			number(2, hour12)
		case 'M':
			number(2, t.Minute())
		case 'S':
			number(2, t.Second())
		case 'f':
			number(6, t.Nanosecond()/1000)
		case 'j':
			number(3, t.YearDay())
		case 'u':
			number(1, (int(t.Weekday())+6)%7+1)
		case 'w':
			number(1, int(t.Weekday()))
		case 'B':
			b.WriteString(t.Month().String())
		case 'b', 'h':
			b.WriteString(t.Format("Jan"))
		case 'A':
			b.WriteString(t.Weekday().String())
		case 'a':
			b.WriteString(t.Format("Mon"))
		case 'p':
			b.WriteString(t.Format("PM"))
		case 'Z', 'z':
			// Python's clock without a zone prints none.
		case 'D', 'x':
			b.WriteString(t.Format("01/02/06"))
		case 'F':
			b.WriteString(t.Format("2006-01-02"))
		case 'T', 'X':
			b.WriteString(t.Format("15:04:05"))
		case 'R':
			b.WriteString(t.Format("15:04"))
		case 'c':
			b.WriteString(t.Format("Mon Jan _2 15:04:05 2006"))
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case '%':
			b.WriteByte('%')
		default:
			b.WriteByte('%')
			b.WriteByte(c)
		}
	}
	return b.String()
}
