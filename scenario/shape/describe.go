package shape

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"farflash/internal/spelling"
	"farflash/numeric/units"
)

// Description describes a key.
type Description struct {
	Path    string
	Value   string // valid values, "a time such as 75us"
	Default string // "" for a section
	Doc     string // the comment, in the words of the file
	Keys    []Description
	Values  []ValueDescription // of an enumeration whose words are explained
}

// Describe returns the description of the key at a path of a file whose type whole points to; "" is the whole file.
// Indices in the path are ignored.
func (l *Language) Describe(whole any, path string) (Description, error) {
	v := reflect.New(reflect.TypeOf(whole).Elem()).Elem()
	l.setDefault(v)
	d := Description{Value: "a mapping", Doc: l.Doc}
	if path == "" {
		d.Keys = l.describeKeys(v, "")
		return d, nil
	}
	steps, err := parsePath(path)
	if err != nil {
		return d, err
	}
	at := ""
	for i, s := range steps {
		v = l.section(v)
		if v.Kind() != reflect.Struct {
			return d, fmt.Errorf("%s has no keys", at)
		}
		f, ok := l.fieldOf(v.Type(), s.key)
		if !ok {
			return d, l.noSuchKey(v.Type(), s.key, at)
		}
		at = units.JoinPath(at, s.key)
		if i == len(steps)-1 {
			return l.describe(v, f, at, true), nil
		}
		v = v.FieldByIndex(f.index)
	}
	return d, nil
}

func (l *Language) noSuchKey(t reflect.Type, key, at string) error {
	keys := l.KeysOf(t)
	best := spelling.Nearest(key, keys)
	if p := l.findKey(t, key); p != "" {
		best = p
	}
	if best != "" {
		return fmt.Errorf("no key %q in %s; did you mean %s?", key, l.name(at), units.JoinPath(at, best))
	}
	return fmt.Errorf("no key %q in %s; its keys are %s", key, l.name(at), strings.Join(keys, ", "))
}

// section returns the struct that a value is or contains, behind a pointer or as the items of a list.
func (l *Language) section(v reflect.Value) reflect.Value {
	t := v.Type()
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t == v.Type() {
		return v
	}
	v = reflect.New(t).Elem()
	l.setDefault(v)
	return v
}

func (l *Language) fieldOf(t reflect.Type, key string) (field, bool) {
	for _, f := range l.fields(t) {
		if f.key == key {
			return f, true
		}
	}
	return field{}, false
}

// describeKeys describes a struct's keys, but not theirs.
func (l *Language) describeKeys(v reflect.Value, path string) []Description {
	var out []Description
	for _, f := range l.fields(v.Type()) {
		out = append(out, l.describe(v, f, units.JoinPath(path, f.key), false))
	}
	return out
}

func (l *Language) describe(parent reflect.Value, f field, path string, deep bool) Description {
	v := parent.FieldByIndex(f.index)
	d := Description{Path: path, Doc: l.commentOf(f.owner, parent.Type())}
	inner := l.section(v)
	isSection := inner.Kind() == reflect.Struct && !isText(inner.Type())
	switch {
	case isSection && v.Kind() == reflect.Slice:
		d.Value = "a list of mappings"
	case isSection:
		d.Value = "a mapping"
		if key, ok := l.short(inner.Type()); ok {
			d.Value += ", or its " + key + " alone"
		} else if readsText(inner.Type()) {
			d.Value += ", or its " + l.fields(inner.Type())[0].key + " alone"
		}
	default:
		d.Value = valueOf(v.Type())
		d.Default = defaultOf(v)
		d.Values = l.describeValues(v.Type(), parent.Type())
	}
	if isSection {
		about := l.typeComment(inner.Type())
		if d.Doc == "" {
			d.Doc = about
		}
		if deep {
			if !repeats(d.Doc, about) {
				d.Doc = strings.TrimSpace(d.Doc + "\n" + about)
			}
			d.Keys = l.describeKeys(inner, path)
		}
	}
	return d
}

// repeats reports whether a type's comment adds nothing to its key's own comment: it is part of that, or a single short
// sentence.
func repeats(key, about string) bool {
	return strings.Contains(key, strings.TrimSuffix(about, ".")) ||
		key != "" && len(strings.Fields(about)) <= 9 && !strings.Contains(about, ". ") && !strings.Contains(about, ":")
}

// valueOf describes the valid values of a type.
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

// Worded is a type that describes its valid values: "none, auto, or a time such as 50ms".
type Worded interface{ Wanted() string }

// choices describes the valid values of a type with a text form: by its Wanted method, or, for an enumeration, from the
// error of its parser.
func choices(t reflect.Type) string {
	v := reflect.New(t).Interface()
	if w, ok := v.(Worded); ok {
		return w.Wanted()
	}
	if text, ok := errors.AsType[*units.TextError](v.(encoding.TextUnmarshaler).UnmarshalText([]byte("?"))); ok {
		return text.Use
	}
	return "text"
}

// defaultOf returns a default as a file would write it.
func defaultOf(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil():
		return "none"
	case v.Kind() == reflect.String && v.Len() == 0:
		return "none"
	}
	return inline(v)
}

// commentOf returns a field's comment, in the words of the file.
func (l *Language) commentOf(owner string, parent reflect.Type) string {
	return l.inKeys(l.lookUp(owner), parent)
}

// typeComment returns a struct's comment.
func (l *Language) typeComment(t reflect.Type) string { return l.inKeys(l.lookUp(t.String()), t) }

func (l *Language) lookUp(name string) string {
	i := strings.Index(l.Comments, "\n"+name+"\t")
	if i < 0 {
		return ""
	}
	_, rest, _ := strings.Cut(l.Comments[i+1:], "\t")
	text, _, _ := strings.Cut(rest, "\n")
	return predicate(name[strings.LastIndexByte(name, '.')+1:], text)
}

// predicate returns a comment without its subject, which the reader has asked for or sees in the adjacent column:
// "Until is when the flow ends." becomes "When the flow ends.", "Scale multiplies times." becomes "Multiplies times.".
func predicate(subject, comment string) string {
	rest, ok := strings.CutPrefix(comment, subject+" ")
	verb, object, more := strings.Cut(rest, " ")
	switch {
	case !ok || !more:
		return comment
	case verb == "is" || verb == "are":
		rest = object
	case !strings.HasSuffix(verb, "s"): // "Addresses beyond the end are errors."
		return comment
	}
	// A value or a symbol does not start a sentence: "nvmeof, NVMe over Fabrics", "hash (of addresses and ports)", "g,
	// the weight".
	first, after, _ := strings.Cut(rest, " ")
	if strings.HasPrefix(after, "(") || first != "a" && len(first) < 2 || strings.HasSuffix(first, ",") ||
		strings.HasSuffix(first, ":") || strings.ContainsAny(first, "_-0123456789") {
		return rest
	}
	return strings.ToUpper(rest[:1]) + rest[1:]
}

var goName = regexp.MustCompile(`\b[A-Z][A-Za-z0-9]+\b`)

// inKeys replaces the names of a struct's fields, and of the struct itself, by their keys in files.
func (l *Language) inKeys(text string, t reflect.Type) string {
	if text == "" {
		return ""
	}
	names := map[string]string{}
	collect := func(t reflect.Type) {
		for _, f := range l.fields(t) {
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
	var b strings.Builder
	at := 0
	for _, m := range goName.FindAllStringIndex(text, -1) {
		w := text[m[0]:m[1]]
		key, ok := names[w]
		if begins := m[0] == 0 || strings.HasSuffix(text[:m[0]], ". "); !ok || begins && strings.EqualFold(key, w) {
			// a sentence starts with a capital
			key = w
		}
		b.WriteString(text[at:m[0]] + key)
		at = m[1]
	}
	return b.String() + text[at:]
}
