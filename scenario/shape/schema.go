package shape

import (
	"encoding"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"farflash/numeric/units"
)

// Language holds the properties of a kind of file that its structs do not express. The zero Language is a file without
// any.
type Language struct {
	// Word is the file's name in messages: "the scenario".
	Word string
	// Doc describes the whole file, for Describe.
	Doc string
	// Keys holds the keys that are neither given by a yaml tag nor the field's name in snake_case, by
	// "package.Type.Field". "-" excludes a field.
	Keys map[string]string
	// Short gives, for structs that may be written as a single value, the key that the value sets. A type can also have
	// a method Short.
	Short map[reflect.Type]string
	// Default sets the value that a pointer refers to, to the default of its type; nil sets none. A type can also have
	// a method SetDefault.
	Default func(any)
	// Files lists the fields that name files, as "package.Type.Field".
	Files []string
	// Comments are those of the structs and their fields, one per line: "nand.Geometry.Channels", a tab, the text.
	Comments string
}

// Defaulter is a struct that sets its own defaults, before it is decoded.
type Defaulter interface{ SetDefault() }

// Shortened is a struct that may be written as a single value, which sets the key that Short returns.
type Shortened interface{ Short() string }

// Preparer is a struct that reads its mapping before its fields are set.
type Preparer interface {
	Prepare(d *Decoder, n *Node, path string)
}

func (l *Language) word() string {
	if l.Word == "" {
		return "the file"
	}
	return l.Word
}

// name returns a path in words.
func (l *Language) name(path string) string {
	if path == "" {
		return l.word()
	}
	return path
}

// setDefault sets v to the default of its type.
func (l *Language) setDefault(v reflect.Value) {
	x := v.Addr().Interface()
	if d, ok := x.(Defaulter); ok {
		d.SetDefault()
	} else if l.Default != nil {
		l.Default(x)
	}
}

// short returns the key that a single value sets in place of a struct.
func (l *Language) short(t reflect.Type) (string, bool) {
	if key, ok := l.Short[t]; ok {
		return key, true
	}
	if t == nil || !reflect.PointerTo(t).Implements(shortened) {
		return "", false
	}
	return reflect.New(t).Interface().(Shortened).Short(), true
}

// field is one key of a struct.
type field struct {
	key   string
	index []int
	typ   reflect.Type
	owner string // "nand.Geometry.Channels", which identifies the comment
}

// fields lists a struct's keys in order, including those of embedded structs.
func (l *Language) fields(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		if f.Anonymous {
			for _, inner := range l.fields(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				out = append(out, inner)
			}
			continue
		}
		owner := t.String() + "." + f.Name
		key, ok := l.Keys[owner]
		if !ok {
			key, _, _ = strings.Cut(f.Tag.Get("yaml"), ",")
		}
		if key == "" {
			key = snake(f.Name)
		}
		if key != "-" {
			out = append(out, field{key, []int{i}, f.Type, owner})
		}
	}
	return out
}

// snake converts CamelCase to snake_case; a run of capitals is one word.
func snake(name string) string {
	var b strings.Builder
	rs := []rune(name)
	for i, r := range rs {
		if unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(rs[i-1]) || i+1 < len(rs) && unicode.IsLower(rs[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

var (
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	shortened       = reflect.TypeFor[Shortened]()
)

// readsText reports whether a type parses itself from a single value.
func readsText(t reflect.Type) bool { return reflect.PointerTo(t).Implements(textUnmarshaler) }

// isText reports whether a type is always a single value: quantities with units, enumerations. A struct that only
// parses itself from text may also be a mapping: "size: 4KiB" is short for "size: {mean: 4KiB}".
func isText(t reflect.Type) bool {
	return readsText(t) && (t.Kind() != reflect.Struct || t.Implements(textMarshaler))
}

// Structs lists the struct types of a file whose type whole points to, that type first.
func (l *Language) Structs(whole any) []reflect.Type {
	var list []reflect.Type
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || slices.Contains(list, t) || isText(t) {
			return
		}
		list = append(list, t)
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && l.Keys[t.String()+"."+f.Name] != "-" {
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeOf(whole))
	return list
}

// KeysOf lists a struct's keys in the order of its fields.
func (l *Language) KeysOf(t reflect.Type) []string {
	var keys []string
	for _, f := range l.fields(t) {
		keys = append(keys, f.key)
	}
	return keys
}

// findKey returns the path below t of the shallowest key of that name, "" if there is none.
func (l *Language) findKey(t reflect.Type, key string) string {
	type place struct {
		t    reflect.Type
		path string
	}
	level := []place{{t, ""}}
	for range 5 {
		var next []place
		for _, p := range level {
			for _, f := range l.fields(p.t) {
				path := units.JoinPath(p.path, f.key)
				if f.key == key && p.path != "" {
					return path
				}
				inner := f.typ
				if inner.Kind() == reflect.Pointer {
					inner = inner.Elem()
				}
				if inner.Kind() == reflect.Struct && !isText(inner) {
					next = append(next, place{inner, path})
				}
			}
		}
		level = next
	}
	return ""
}
