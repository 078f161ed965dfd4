package scenario

import (
	_ "embed"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"farflash/internal/spelling"
	"farflash/units"
)

// comments has the comments of the structs that a scenario is made of, one a line:
// "nand.Geometry.Channels", a tab, the text. TestComments writes it.
//
//go:embed comments.txt
var comments string

// Description is what is known of a key.
type Description struct {
	Path    string
	Value   string // what to write, "a time such as 75us"
	Default string // "" for a section
	Doc     string // the comment, in the words of a scenario
	Keys    []Description
}

// Describe returns what is known of the key at a path; "" is the whole scenario.
// Indices in the path are ignored.
func Describe(path string) (Description, error) {
	v := reflect.New(reflect.TypeFor[Scenario]()).Elem()
	setDefault(v)
	d := Description{Value: "a mapping", Doc: "A scenario says what is simulated: a workload, a drive, and what is measured."}
	if path == "" {
		d.Keys = describeKeys(v, "")
		return d, nil
	}
	steps, err := parsePath(path)
	if err != nil {
		return d, err
	}
	at := ""
	for i, s := range steps {
		v = section(v)
		if v.Kind() != reflect.Struct {
			return d, fmt.Errorf("%s has no keys", at)
		}
		f, ok := fieldOf(v.Type(), s.key)
		if !ok {
			return d, noSuchKey(v.Type(), s.key, at)
		}
		at = joinPath(at, s.key)
		if i == len(steps)-1 {
			return describe(v, f, at, true), nil
		}
		v = v.FieldByIndex(f.index)
	}
	return d, nil
}

func noSuchKey(t reflect.Type, key, at string) error {
	var keys []string
	for _, f := range fieldsOf(t) {
		keys = append(keys, f.key)
	}
	best := spelling.Nearest(key, keys)
	if p := findKey(t, key); p != "" {
		best = p
	}
	if best != "" {
		return fmt.Errorf("no key %q in %s; did you mean %s?", key, name(at), joinPath(at, best))
	}
	return fmt.Errorf("no key %q in %s; its keys are %s", key, name(at), strings.Join(keys, ", "))
}

// section is the struct that a value is or holds: behind a pointer, or as the items
// of a list.
func section(v reflect.Value) reflect.Value {
	t := v.Type()
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t == v.Type() {
		return v
	}
	v = reflect.New(t).Elem()
	setDefault(v)
	return v
}

func fieldOf(t reflect.Type, key string) (field, bool) {
	for _, f := range fieldsOf(t) {
		if f.key == key {
			return f, true
		}
	}
	return field{}, false
}

// describeKeys describes a struct's keys, but not theirs.
func describeKeys(v reflect.Value, path string) []Description {
	var out []Description
	for _, f := range fieldsOf(v.Type()) {
		out = append(out, describe(v, f, joinPath(path, f.key), false))
	}
	return out
}

func describe(parent reflect.Value, f field, path string, deep bool) Description {
	v := parent.FieldByIndex(f.index)
	d := Description{Path: path, Doc: commentOf(f.owner, parent.Type())}
	inner := section(v)
	isSection := inner.Kind() == reflect.Struct && !isText(inner.Type())
	switch {
	case isSection && v.Kind() == reflect.Slice:
		d.Value = "a list of mappings"
	case isSection:
		d.Value = "a mapping"
		if key, ok := shorthand[inner.Type()]; ok {
			d.Value += ", or its " + key + " alone"
		} else if readsText(inner.Type()) {
			d.Value += ", or its " + fieldsOf(inner.Type())[0].key + " alone"
		}
	default:
		d.Value = valueOf(v.Type())
		d.Default = defaultOf(v)
	}
	if isSection {
		about := typeComment(inner.Type())
		if d.Doc == "" {
			d.Doc = about
		}
		if deep {
			if d.Doc != about {
				d.Doc = strings.TrimSpace(d.Doc + "\n" + about)
			}
			d.Keys = describeKeys(inner, path)
		}
	}
	return d
}

// valueOf says what to write for a type.
func valueOf(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return valueOf(t.Elem())
	case examples[t] != "":
		return examples[t]
	case isText(t):
		return choices(t)
	case t.Kind() == reflect.Array && t.Elem() == reflect.TypeFor[units.Duration]():
		return "a time such as 75us, or a list of one a page type"
	case t.Kind() == reflect.Array:
		return fmt.Sprintf("a list of %d: %s", t.Len(), valueOf(t.Elem()))
	case t.Kind() == reflect.Slice:
		return "a list: " + valueOf(t.Elem())
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "text"
	}
	return "a whole number"
}

// choices asks an enumeration what it reads, by giving it what it cannot.
func choices(t reflect.Type) string {
	v := reflect.New(t)
	err := v.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte("?"))
	if err == nil {
		return "text"
	}
	if text, ok := errors.AsType[*units.TextError](err); ok {
		return text.Use
	}
	if _, use, ok := strings.Cut(err.Error(), "use "); ok {
		return use
	}
	if _, rest, ok := strings.Cut(err.Error(), "; "); ok {
		return rest
	}
	return "a word"
}

// defaultOf is a default as it would be written.
func defaultOf(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil():
		return "none"
	case v.Kind() == reflect.String && v.Len() == 0:
		return "none"
	}
	return inline(v)
}

// commentOf is a field's comment, in the words of a scenario.
func commentOf(owner string, parent reflect.Type) string {
	return inKeys(lookUp(owner), parent)
}

// typeComment is a struct's comment.
func typeComment(t reflect.Type) string { return inKeys(lookUp(t.String()), t) }

func lookUp(name string) string {
	i := strings.Index(comments, "\n"+name+"\t")
	if i < 0 {
		return ""
	}
	_, rest, _ := strings.Cut(comments[i+1:], "\t")
	text, _, _ := strings.Cut(rest, "\n")
	return text
}

var goName = regexp.MustCompile(`\b[A-Z][A-Za-z0-9]+\b`)

// inKeys replaces the names of a struct's fields, and of the struct itself, by
// those that scenarios use.
func inKeys(text string, t reflect.Type) string {
	if text == "" {
		return ""
	}
	names := map[string]string{}
	collect := func(t reflect.Type) {
		for _, f := range fieldsOf(t) {
			_, last, _ := strings.Cut(f.owner[strings.Index(f.owner, ".")+1:], ".")
			names[last] = f.key
		}
	}
	if t.Kind() == reflect.Struct {
		collect(t)
		for i := range t.NumField() {
			if f := t.Field(i); f.Anonymous && f.Type.Kind() == reflect.Struct {
				collect(f.Type)
			}
		}
	}
	names["SSD"], names["MQSim"] = "SSD", "MQSim" // the words, where they are no key
	if len(t.Name()) > 0 {
		if first, rest, ok := strings.Cut(text, " "); ok && first == t.Name() {
			text = "This " + rest
		}
	}
	return goName.ReplaceAllStringFunc(text, func(w string) string {
		if key, ok := names[w]; ok {
			return key
		}
		return w
	})
}
