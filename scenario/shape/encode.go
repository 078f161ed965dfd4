package shape

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"farflash/numeric/units"
)

// Marks at the ends of a resolved scenario's lines: a default value, and one that was given on the command line.
const (
	defaultMark = "  # default"
	setMark     = "  # set"
)

// Encoding controls the form of the output.
type Encoding struct {
	// Marks holds the positions of values, from which defaults and values of the command line are marked; nil: no
	// marks.
	Marks Set
	// Skip lists paths that are omitted.
	Skip []string
	// File returns the text for a file name; nil: the name itself.
	File func(string) string
	// Base returns the initial values of a section or list item before its keys are read, as a pointer to such a
	// struct; equal values are omitted. nil: no value is omitted.
	Base func(section any) any
}

// Encode returns the value that v points to as YAML, in the order of its fields, with every default, so that it reads
// back to an equal value.
func (l *Language) Encode(v any, how Encoding) string {
	e := encoder{lang: l, Encoding: how}
	x := reflect.ValueOf(v).Elem()
	e.fields(x, e.base(x), "", 0)
	return e.b.String()
}

// base returns a struct's initial values; the zero Value if none of its values are omitted.
func (e *encoder) base(v reflect.Value) reflect.Value {
	if e.Base == nil {
		return reflect.Value{}
	}
	if !v.CanAddr() {
		x := reflect.New(v.Type()).Elem()
		x.Set(v)
		v = x
	}
	return reflect.ValueOf(e.Base(v.Addr().Interface())).Elem()
}

// Blank returns a pointer to the initial values of a section of the type that p points to.
func (l *Language) Blank(p any) any {
	x := reflect.New(reflect.TypeOf(p).Elem())
	l.setDefault(x.Elem())
	return x.Interface()
}

type encoder struct {
	b    strings.Builder
	lang *Language
	Encoding
}

// fields writes a struct's keys, each on its own lines.
func (e *encoder) fields(v, base reflect.Value, path string, indent int) {
	for _, f := range e.lang.fields(v.Type()) {
		p := units.JoinPath(path, f.key)
		x := v.FieldByIndex(f.index)
		if slices.Contains(e.Skip, p) || omitted(x) || path == "" && x.Kind() == reflect.Slice && x.Len() == 0 {
			continue
		}
		var same reflect.Value
		if base.IsValid() {
			same = base.FieldByIndex(f.index)
			if reflect.DeepEqual(x.Interface(), same.Interface()) {
				continue
			}
		}
		e.b.WriteString(strings.Repeat("  ", indent))
		e.b.WriteString(f.key)
		e.b.WriteByte(':')
		if e.File != nil && slices.Contains(e.lang.Files, f.owner) {
			x = reflect.ValueOf(e.File(x.String()))
		}
		e.value(x, same, p, indent)
	}
}

// omitted reports whether a value is absent and therefore not written: absent sections and empty text.
func omitted(v reflect.Value) bool {
	return v.Kind() == reflect.Pointer && v.IsNil() || v.Kind() == reflect.String && v.Len() == 0
}

func (e *encoder) value(v, base reflect.Value, path string, indent int) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
		if base.IsValid() && v.Kind() == reflect.Struct && !isText(v.Type()) {
			base = e.base(v)
		}
	}
	switch {
	case v.Kind() == reflect.Struct && !isText(v.Type()):
		inner := encoder{lang: e.lang, Encoding: e.Encoding}
		inner.fields(v, base, path, indent+1)
		if inner.b.Len() == 0 { // an empty section would read as an absent one
			e.b.WriteString(" {}\n")
			return
		}
		e.b.WriteString("\n" + inner.b.String())
	case v.Kind() == reflect.Slice && v.Len() > 0 && v.Type().Elem().Kind() == reflect.Struct:
		e.b.WriteByte('\n')
		for i := range v.Len() {
			e.item(v.Index(i), fmt.Sprintf("%s[%d]", path, i), indent+1)
		}
	default:
		e.b.WriteByte(' ')
		e.b.WriteString(inline(v))
		e.b.WriteString(e.mark(path))
		e.b.WriteByte('\n')
	}
}

// mark marks the origin of a value.
func (e *encoder) mark(path string) string {
	at, ok := e.Marks[path]
	switch {
	case e.Marks == nil:
		return ""
	case !ok:
		return defaultMark
	case strings.HasPrefix(at.File, "--"):
		return setMark
	}
	return ""
}

// item writes a struct as an item of a list.
func (e *encoder) item(v reflect.Value, path string, indent int) {
	inner := encoder{lang: e.lang, Encoding: e.Encoding}
	inner.fields(v, e.base(v), path, indent+1)
	text := inner.b.String()
	if text == "" {
		e.b.WriteString(strings.Repeat("  ", indent) + "- {}\n")
		return
	}
	lead := strings.Repeat("  ", indent)
	e.b.WriteString(lead + "- " + strings.TrimPrefix(text, lead+"  "))
}

// inline returns a value on one line.
func inline(v reflect.Value) string {
	if isText(v.Type()) {
		text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil {
			panic(fmt.Sprintf("shape: %v", err))
		}
		return plain(string(text))
	}
	switch v.Kind() {
	case reflect.String:
		return plain(v.String())
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int16, reflect.Int8:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Uint, reflect.Uint64, reflect.Uint32, reflect.Uint16, reflect.Uint8:
		return strconv.FormatUint(v.Uint(), 10)
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	case reflect.Pointer:
		if v.IsNil() {
			return "null"
		}
		return inline(v.Elem())
	case reflect.Array:
		if v.Type().Elem() == reflect.TypeFor[units.Duration]() && allEqual(v) {
			return inline(v.Index(0))
		}
		fallthrough
	case reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = inline(v.Index(i))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	panic("shape: cannot encode a " + v.Type().String())
}

func allEqual(v reflect.Value) bool {
	for i := 1; i < v.Len(); i++ {
		if !v.Index(i).Equal(v.Index(0)) {
			return false
		}
	}
	return true
}

// word matches text that YAML reads literally without quotes, in flow style too.
var word = regexp.MustCompile(`^[A-Za-z0-9_./][-A-Za-z0-9_./%+]*( [A-Za-z0-9_./(][-A-Za-z0-9_./%+()]*)*$`)

// plain quotes text that YAML could interpret otherwise.
func plain(s string) string {
	switch strings.ToLower(s) {
	case "null", "~", "":
	default:
		if word.MatchString(s) {
			return s
		}
	}
	quoted, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string can always be encoded
	}
	return string(quoted)
}

// Differing calls f for every key whose value differs between the values that two pointers to a type refer to, with its
// path below path and the text of the second value.
func (l *Language) Differing(a, b any, path string, f func(path, text string)) {
	l.differing(reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem(), path, f)
}

func (l *Language) differing(a, b reflect.Value, path string, f func(path, text string)) {
	if a.Kind() == reflect.Struct && !isText(a.Type()) {
		for _, x := range l.fields(a.Type()) {
			l.differing(a.FieldByIndex(x.index), b.FieldByIndex(x.index), units.JoinPath(path, x.key), f)
		}
		return
	}
	if !reflect.DeepEqual(a.Interface(), b.Interface()) {
		f(path, inline(b))
	}
}
