package scenario

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"farflash/internal/spelling"
	"farflash/units"
)

// decoder sets Go values from nodes and collects every mistake.
type decoder struct {
	errs Errors
	set  map[string]Position // paths that were written, and where
	word string              // what the whole is called
}

func newDecoder() *decoder { return &decoder{set: map[string]Position{}, word: "the scenario"} }

func (d *decoder) fail(at Position, format string, args ...any) {
	d.errs = append(d.errs, &Error{at, fmt.Sprintf(format, args...)})
}

// preparer is a struct that must see its mapping before its fields are set.
type preparer interface {
	prepare(d *decoder, n *node, path string)
}

// decode sets v, which holds its default, from n.
func (d *decoder) decode(n *node, v reflect.Value, path string) {
	d.set[path] = n.at
	t := v.Type()
	if n.null() && t.Kind() != reflect.String {
		if t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			v.SetZero()
			return
		}
		d.fail(n.at, "%s has no value; %s", path, wanted(t))
		return
	}
	switch {
	case t.Kind() == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(t.Elem()))
			setDefault(v.Elem())
		}
		d.decode(n, v.Elem(), path)
	case isText(t) || readsText(t) && n.kind == scalarNode:
		if d.isScalar(n, t, path) {
			if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.text)); err != nil {
				d.fail(n.at, "%s: %v", path, err)
			}
			if !isText(t) {
				// The short form is for the first key.
				d.set[joinPath(path, fieldsOf(t)[0].key)] = n.at
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

func (d *decoder) isScalar(n *node, t reflect.Type, path string) bool {
	if n.kind == scalarNode {
		return true
	}
	d.fail(n.at, "%s is %v; %s", path, n.kind, wanted(t))
	return false
}

func (d *decoder) decodeScalar(n *node, v reflect.Value, path string) {
	t := v.Type()
	switch t.Kind() {
	case reflect.String:
		v.SetString(n.text)
	case reflect.Bool:
		switch n.text {
		case "true", "false":
			v.SetBool(n.text == "true")
		default:
			d.fail(n.at, "%s: %q is neither true nor false", path, n.text)
		}
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int16, reflect.Int8:
		x, err := strconv.ParseInt(strings.ReplaceAll(n.text, "_", ""), 10, t.Bits())
		if err != nil {
			d.fail(n.at, "%s: %q is not a whole number; %s", path, n.text, wanted(t))
			return
		}
		v.SetInt(x)
	case reflect.Uint, reflect.Uint64, reflect.Uint32, reflect.Uint16, reflect.Uint8:
		x, err := strconv.ParseUint(strings.ReplaceAll(n.text, "_", ""), 10, t.Bits())
		if err != nil {
			d.fail(n.at, "%s: %q is not a whole number from 0 to %d", path, n.text, uint64(1)<<t.Bits()-1)
			return
		}
		v.SetUint(x)
	case reflect.Float64:
		x, err := strconv.ParseFloat(n.text, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			d.fail(n.at, "%s: %q is not a number; write one such as 1.5", path, n.text)
			return
		}
		v.SetFloat(x)
	default:
		panic("scenario: no way to read a " + t.String())
	}
}

func (d *decoder) decodeStruct(n *node, v reflect.Value, path string) {
	t := v.Type()
	if n.kind == scalarNode {
		key, ok := shortKey(v)
		if !ok {
			d.fail(n.at, "%s: %q stands where a mapping is expected; its keys are %s", path, n.text, keyList(t))
			return
		}
		n = &node{kind: mappingNode, at: n.at, keys: []*node{{at: n.at, text: key}}, items: []*node{n}}
	}
	if n.kind != mappingNode {
		d.fail(n.at, "%s is %v; a mapping is expected, with the keys %s", d.name(path), n.kind, keyList(t))
		return
	}
	if p, ok := v.Addr().Interface().(preparer); ok {
		p.prepare(d, n, path)
	}
	fields := fieldsOf(t)
	for i, k := range n.keys {
		at := -1
		for j := range fields {
			if fields[j].key == k.text {
				at = j
			}
		}
		if at < 0 {
			d.unknownKey(k, t, fields, path)
			continue
		}
		d.decode(n.items[i], v.FieldByIndex(fields[at].index), joinPath(path, k.text))
	}
}

// unknownKey says what the key was probably meant to be.
func (d *decoder) unknownKey(k *node, t reflect.Type, fields []field, path string) {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	msg := fmt.Sprintf("unknown key %q in %s", k.text, d.name(path))
	best := spelling.Nearest(k.text, keys)
	// A plural for a singular is likelier than a key of another section.
	if p := findKey(t, k.text); p != "" && best != k.text+"s" {
		msg += fmt.Sprintf("; did you mean %q?", p)
	} else if best != "" {
		msg += fmt.Sprintf("; did you mean %q?", best)
	} else {
		msg += "; its keys are " + keyList(t)
	}
	d.errs = append(d.errs, &Error{k.at, msg})
}

func (d *decoder) decodeSlice(n *node, v reflect.Value, path string) {
	if n.kind != sequenceNode {
		d.fail(n.at, "%s is %v; a list is expected: write [...] or a line with a dash for each item", path, n.kind)
		return
	}
	if len(n.items) == 0 {
		v.SetZero() // an empty list is the same as none, which is how a resolved scenario writes it
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.items), len(n.items))
	for i, item := range n.items {
		setDefault(out.Index(i))
		d.decode(item, out.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	v.Set(out)
}

// decodeArray reads as many values as the array has. An array of durations, one a
// page type, may also be a single value for all, or a shorter list whose last
// value is repeated.
func (d *decoder) decodeArray(n *node, v reflect.Value, path string) {
	perPageType := v.Type().Elem() == reflect.TypeFor[units.Duration]()
	switch {
	case n.kind == scalarNode && perPageType:
		d.decode(n, v.Index(0), path)
		for i := 1; i < v.Len(); i++ {
			v.Index(i).Set(v.Index(0))
		}
		return
	case n.kind != sequenceNode:
		d.fail(n.at, "%s is %v; a list of %d values is expected", path, n.kind, v.Len())
		return
	case len(n.items) > v.Len() || len(n.items) == 0 || len(n.items) < v.Len() && !perPageType:
		least := ""
		if perPageType {
			least = "1 to "
		}
		d.fail(n.at, "%s has %d values; %s%d are expected", path, len(n.items), least, v.Len())
		return
	}
	for i := range v.Len() {
		if i < len(n.items) {
			d.decode(n.items[i], v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		} else {
			v.Index(i).Set(v.Index(i - 1))
		}
	}
}

// wanted says what would be right for a value of a type.
func wanted(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return wanted(t.Elem())
	case readsText(t):
		if ex := exampleOf(t); ex != "" {
			return "write " + ex
		}
		return "write a single word"
	}
	switch t.Kind() {
	case reflect.Struct:
		return "its keys are " + keyList(t)
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
func keyList(t reflect.Type) string {
	var keys []string
	for _, f := range fieldsOf(t) {
		keys = append(keys, f.key)
	}
	return strings.Join(keys, ", ")
}

// name is a path in words.
func name(path string) string {
	if path == "" {
		return "the scenario"
	}
	return path
}

// name is a path in words, and the whole what the decoder calls it.
func (d *decoder) name(path string) string {
	if path == "" {
		return d.word
	}
	return path
}

// exampleOf is a value of a type that reads itself.
func exampleOf(t reflect.Type) string { return examples[t] }

// examples has, for the types that read themselves, what a value looks like.
var examples = map[reflect.Type]string{
	reflect.TypeFor[units.Duration]():     "a time such as 75us",
	reflect.TypeFor[units.Bytes]():        "a size such as 16KiB",
	reflect.TypeFor[units.ByteRate]():     "a rate such as 1GB/s",
	reflect.TypeFor[units.BitRate]():      "a rate such as 40Gbps",
	reflect.TypeFor[units.TransferRate](): "a rate such as 333MT/s",
	reflect.TypeFor[units.Fraction]():     "a share such as 7%",
	reflect.TypeFor[units.Energy]():       "an energy such as 42uJ",
}
