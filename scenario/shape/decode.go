package shape

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"farflash/internal/spelling"
	"farflash/numeric/units"
)

// Decoder sets Go values from nodes and collects every error.
type Decoder struct {
	Errs Errors
	Set  Set // paths that the file contains
	lang *Language
}

// Set holds the positions of the paths that a file contains.
type Set map[string]Position

// At returns the position of a path: its own, or that of the nearest enclosing path in the file.
func (s Set) At(path string) Position {
	for {
		if p, ok := s[path]; ok {
			return p
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return s[""]
		}
		path = path[:cut]
	}
}

// Decoder returns a decoder with an empty set.
func (l *Language) Decoder() *Decoder { return &Decoder{Set: Set{}, lang: l} }

// Decode sets the value that v refers to, first to its type's default and then from n.
func (d *Decoder) Decode(n *Node, v any, path string) {
	x := reflect.ValueOf(v).Elem()
	d.lang.setDefault(x)
	d.decode(n, x, path)
}

// Fail adds an error at a position.
func (d *Decoder) Fail(at Position, format string, args ...any) {
	d.Errs = append(d.Errs, &Error{at, brief(fmt.Sprintf(format, args...))})
}

// Wrong adds the errors of a part's fields, each at its position in the file.
func (d *Decoder) Wrong(path string, err error) {
	for _, f := range units.FieldErrors(err) {
		p := units.JoinPath(path, f.Path)
		d.Fail(d.Set.At(p), "%v", &units.FieldError{Path: p, Msg: f.Msg})
	}
}

// decode sets v, which holds its default, from n.
func (d *Decoder) decode(n *Node, v reflect.Value, path string) {
	d.Set[path] = n.At
	t := v.Type()
	if n.null() && t.Kind() != reflect.String {
		if t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			v.SetZero()
			return
		}
		d.Fail(n.At, "%s has no value; %s", path, d.lang.wanted(t))
		return
	}
	switch {
	case t.Kind() == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(t.Elem()))
			d.lang.setDefault(v.Elem())
		}
		d.decode(n, v.Elem(), path)
	case isText(t) || readsText(t) && n.Kind == Scalar:
		if d.isScalar(n, t, path) {
			if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.Text)); err != nil {
				d.Fail(n.At, "%s: %v", path, err)
			} else if most, ok := largest[t]; ok && v.Int() > most {
				top := reflect.New(t).Elem()
				top.SetInt(most)
				d.Fail(n.At, "%s: %v is not possible; use at most %v", path, v.Interface(), top.Interface())
			}
			if !isText(t) {
				// The short form sets the first key.
				d.Set[units.JoinPath(path, d.lang.fields(t)[0].key)] = n.At
			}
		}
	case t.Kind() == reflect.Struct:
		d.decodeStruct(n, v, path)
	case t.Kind() == reflect.Slice:
		d.decodeSlice(n, v, path)
	case t.Kind() == reflect.Array:
		d.decodeArray(n, v, path)
	default:
		if d.isScalar(n, t, path) {
			d.decodeScalar(n, v, path)
		}
	}
}

func (d *Decoder) isScalar(n *Node, t reflect.Type, path string) bool {
	if n.Kind == Scalar {
		return true
	}
	d.Fail(n.At, "%s is %v; %s", path, n.Kind, d.lang.wanted(t))
	return false
}

func (d *Decoder) decodeScalar(n *Node, v reflect.Value, path string) {
	t := v.Type()
	switch t.Kind() {
	case reflect.String:
		v.SetString(n.Text)
	case reflect.Bool:
		switch n.Text {
		case "true", "false":
			v.SetBool(n.Text == "true")
		default:
			d.Fail(n.At, "%s: %q is neither true nor false", path, n.Text)
		}
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int16, reflect.Int8:
		bits := t.Bits()
		if t.Kind() == reflect.Int {
			bits = 32 // counts in ints size slices
		}
		x, err := strconv.ParseInt(strings.ReplaceAll(n.Text, "_", ""), 10, bits)
		if errors.Is(err, strconv.ErrRange) {
			d.Fail(n.At, "%s: %s is not possible; use at most %d", path, n.Text, int64(1)<<(bits-1)-1)
			return
		}
		if err != nil {
			d.Fail(n.At, "%s: %q is not a whole number; %s", path, n.Text, d.lang.wanted(t))
			return
		}
		v.SetInt(x)
	case reflect.Uint, reflect.Uint64, reflect.Uint32, reflect.Uint16, reflect.Uint8:
		x, err := strconv.ParseUint(strings.ReplaceAll(n.Text, "_", ""), 10, t.Bits())
		if err != nil {
			d.Fail(n.At, "%s: %q is not a whole number from 0 to %d", path, n.Text, uint64(1)<<t.Bits()-1)
			return
		}
		v.SetUint(x)
	case reflect.Float64:
		x, err := strconv.ParseFloat(n.Text, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			d.Fail(n.At, "%s: %q is not a number; write one such as 1.5", path, n.Text)
			return
		}
		v.SetFloat(x)
	default:
		panic("shape: cannot decode a " + t.String())
	}
}

func (d *Decoder) decodeStruct(n *Node, v reflect.Value, path string) {
	t := v.Type()
	if n.Kind == Scalar {
		key, ok := d.lang.short(t)
		if !ok {
			d.Fail(n.At, "%s: %q where a mapping is expected; its keys are %s", d.lang.name(path), n.Text,
				d.lang.keyList(t))
			return
		}
		n = &Node{Kind: Mapping, At: n.At, Keys: []*Node{{At: n.At, Text: key}}, Items: []*Node{n}}
	}
	if n.Kind != Mapping {
		d.Fail(n.At, "%s is %v; a mapping is expected, with the keys %s", d.lang.name(path), n.Kind, d.lang.keyList(t))
		return
	}
	if p, ok := v.Addr().Interface().(Preparer); ok {
		p.Prepare(d, n, path)
	}
	fields := d.lang.fields(t)
	for i, k := range n.Keys {
		at := -1
		for j := range fields {
			if fields[j].key == k.Text {
				at = j
			}
		}
		if at < 0 {
			d.unknownKey(k, t, path)
			continue
		}
		d.decode(n.Items[i], v.FieldByIndex(fields[at].index), units.JoinPath(path, k.Text))
	}
}

// unknownKey reports an unknown key and suggests the likely one.
func (d *Decoder) unknownKey(k *Node, t reflect.Type, path string) {
	msg := fmt.Sprintf("unknown key %q in %s", k.Text, d.lang.name(path))
	if len(d.Errs) >= maxShown || len(k.Text) > maxMessage {
		d.Fail(k.At, "%s", msg) // a suggestion would not be read
		return
	}
	keys := d.lang.KeysOf(t)
	best := spelling.Nearest(k.Text, keys)
	// A plural for a singular is more likely than a key of another section.
	if p := d.lang.findKey(t, k.Text); p != "" && best != k.Text+"s" {
		msg += fmt.Sprintf("; did you mean %q?", p)
	} else if best != "" {
		msg += fmt.Sprintf("; did you mean %q?", best)
	} else {
		msg += "; its keys are " + d.lang.keyList(t)
	}
	d.Errs = append(d.Errs, &Error{k.At, msg})
}

func (d *Decoder) decodeSlice(n *Node, v reflect.Value, path string) {
	if n.Kind != Sequence {
		d.Fail(n.At, "%s is %v; a list is expected: write [...] or a line with a dash for each item", path, n.Kind)
		return
	}
	if len(n.Items) == 0 {
		v.SetZero() // an empty list equals none, which is how a resolved scenario writes it
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items))
	for i, item := range n.Items {
		d.lang.setDefault(out.Index(i))
		d.decode(item, out.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	v.Set(out)
}

// decodeArray reads as many values as the array has. An array of durations, one per page type, may also be a single
// value for all, or a shorter list whose last value is repeated.
func (d *Decoder) decodeArray(n *Node, v reflect.Value, path string) {
	perPageType := v.Type().Elem() == reflect.TypeFor[units.Duration]()
	switch {
	case n.Kind == Scalar && perPageType:
		d.decode(n, v.Index(0), path)
		for i := 1; i < v.Len(); i++ {
			v.Index(i).Set(v.Index(0))
		}
		return
	case n.Kind != Sequence:
		d.Fail(n.At, "%s is %v; a list of %d values is expected", path, n.Kind, v.Len())
		return
	case len(n.Items) > v.Len() || len(n.Items) == 0 || len(n.Items) < v.Len() && !perPageType:
		least := ""
		if perPageType {
			least = "1 to "
		}
		d.Fail(n.At, "%s has %d values; %s%d are expected", path, len(n.Items), least, v.Len())
		return
	}
	for i := range v.Len() {
		if i < len(n.Items) {
			d.decode(n.Items[i], v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		} else {
			v.Index(i).Set(v.Index(i - 1))
		}
	}
}

// largest limits quantities that models multiply: beyond the limit, a picosecond, the clock's step, corresponds to many
// bits, and sums of products overflow int64. Times may be as long as the clock.
var largest = map[reflect.Type]int64{
	// at which a packet takes no time, to exclude the network
	reflect.TypeFor[units.BitRate]():      int64(1000 * 1000 * 1000 * units.Gbps),
	reflect.TypeFor[units.ByteRate]():     int64(1000 * 1000 * units.GBPerSecond),
	reflect.TypeFor[units.TransferRate](): int64(1000 * 1000 * units.MTPerSecond),
	reflect.TypeFor[units.Bytes]():        int64(units.PiB) << 7,
}

// wanted describes the valid values of a type.
func (l *Language) wanted(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return l.wanted(t.Elem())
	case readsText(t):
		if ex := exampleOf(t); ex != "" {
			return "write " + ex
		}
		return "write a single word"
	}
	switch t.Kind() {
	case reflect.Struct:
		return "its keys are " + l.keyList(t)
	case reflect.Slice, reflect.Array:
		return "write a list such as [a, b]"
	case reflect.Bool:
		return "write true or false"
	case reflect.Float64:
		return "write a number such as 1.5"
	case reflect.String:
		return "write text"
	}
	return "write a whole number such as 4"
}

// keyList lists a struct's keys for an error.
func (l *Language) keyList(t reflect.Type) string { return strings.Join(l.KeysOf(t), ", ") }

// exampleOf returns an example value of a type with a text form.
func exampleOf(t reflect.Type) string { return examples[t] }

// examples holds example values for the types with a text form.
var examples = map[reflect.Type]string{
	reflect.TypeFor[units.Duration]():     "a time such as 75us",
	reflect.TypeFor[units.Bytes]():        "a size such as 16KiB",
	reflect.TypeFor[units.ByteRate]():     "a rate such as 1GB/s",
	reflect.TypeFor[units.BitRate]():      "a rate such as 40Gbps",
	reflect.TypeFor[units.TransferRate](): "a rate such as 333MT/s",
	reflect.TypeFor[units.Fraction]():     "a share such as 7%",
	reflect.TypeFor[units.Energy]():       "an energy such as 42uJ",
	reflect.TypeFor[units.Change]():       "a change such as -15%",
}
