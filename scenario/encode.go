package scenario

import (
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"farflash/units"
)

// Marks at the ends of a resolved scenario's lines: a value that nobody wrote, and
// one that was given on the command line.
const (
	defaultMark = "  # default"
	setMark     = "  # set"
)

// Resolved writes the scenario with every default, so that it loads back to the
// same thing. File names become absolute. Comments mark what nobody wrote and what
// was set on the command line.
func (s *Scenario) Resolved() string {
	e := encoder{set: s.set, skip: s.absent(), path: func(p string) string {
		if abs, err := filepath.Abs(s.path(p)); err == nil {
			return abs
		}
		return s.path(p)
	}}
	e.fields(reflect.ValueOf(s).Elem(), "", 0)
	return e.b.String()
}

// salt begins what a digest is computed of. Its number is raised whenever a change
// of the models moves results, so that results of different models never share a
// digest.
const salt = "farflash/1\n"

// Digest names what the scenario computes, its seed apart: the SHA-256 of the
// resolved scenario with the content of the files that it names in place of their
// paths, and without what changes no result (the description, the preset's name,
// exports). The same digest and seed give the same result.json.
func (s *Scenario) Digest() (string, error) {
	if s.files == nil {
		s.files = map[string]string{}
	}
	var failed error
	e := encoder{path: func(p string) string {
		h, err := s.contentHash(p)
		if err != nil && failed == nil {
			failed = err
		}
		return "sha256:" + h
	}, skip: []string{"description", "ssd.preset", "fabric.parts", "measure.requests", "measure.flows", "measure.pauses", "measure.timeline"}}
	e.skip = append(e.skip, s.absent()...)
	e.fields(reflect.ValueOf(s).Elem(), "", 0)
	if failed != nil {
		return "", failed
	}
	sum := sha256.Sum256([]byte(salt + e.b.String()))
	return hex.EncodeToString(sum[:16]), nil
}

// contentHash is the SHA-256 of a file that the scenario names.
func (s *Scenario) contentHash(name string) (string, error) {
	p := s.path(name)
	if h, ok := s.files[p]; ok {
		return h, nil
	}
	f, err := os.Open(p)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	s.files[p] = hex.EncodeToString(h.Sum(nil))
	return s.files[p], nil
}

// encoder writes values as YAML in the order of their fields.
type encoder struct {
	b    strings.Builder
	set  map[string]Position // nil: no marks
	path func(string) string // what is written for a file name
	skip []string            // paths that are left out
}

// fields writes a struct's keys, each on lines of its own.
func (e *encoder) fields(v reflect.Value, path string, indent int) {
	for _, f := range fieldsOf(v.Type()) {
		p := joinPath(path, f.key)
		x := v.FieldByIndex(f.index)
		if slices.Contains(e.skip, p) || omitted(x) || path == "" && x.Kind() == reflect.Slice && x.Len() == 0 {
			continue
		}
		e.b.WriteString(strings.Repeat("  ", indent))
		e.b.WriteString(f.key)
		e.b.WriteByte(':')
		if isFileName(f.owner) {
			x = reflect.ValueOf(e.path(x.String()))
		}
		e.value(x, p, indent)
	}
}

// isFileName tells the fields that name files.
func isFileName(owner string) bool {
	switch owner {
	case "scenario.Trace.File", "scenario.Fio.File", "scenario.Topology.File", "scenario.FlowLoad.File":
		return true
	}
	return false
}

// omitted reports what is left out because it is not there: absent sections and
// empty text.
func omitted(v reflect.Value) bool {
	return v.Kind() == reflect.Pointer && v.IsNil() || v.Kind() == reflect.String && v.Len() == 0
}

func (e *encoder) value(v reflect.Value, path string, indent int) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch {
	case v.Kind() == reflect.Struct && !isText(v.Type()):
		e.b.WriteByte('\n')
		e.fields(v, path, indent+1)
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

// mark says where a value is from.
func (e *encoder) mark(path string) string {
	at, ok := e.set[path]
	switch {
	case e.set == nil:
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
	inner := encoder{set: e.set, path: e.path, skip: e.skip}
	inner.fields(v, path, indent+1)
	text := inner.b.String()
	if text == "" {
		e.b.WriteString(strings.Repeat("  ", indent) + "- {}\n")
		return
	}
	lead := strings.Repeat("  ", indent)
	e.b.WriteString(lead + "- " + strings.TrimPrefix(text, lead+"  "))
}

// inline is a value on one line.
func inline(v reflect.Value) string {
	if isText(v.Type()) {
		text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil {
			panic(fmt.Sprintf("scenario: %v", err))
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
	panic("scenario: no way to write a " + v.Type().String())
}

func allEqual(v reflect.Value) bool {
	for i := 1; i < v.Len(); i++ {
		if !v.Index(i).Equal(v.Index(0)) {
			return false
		}
	}
	return true
}

// word is text that YAML reads as itself without quotes, in flow style too.
var word = regexp.MustCompile(`^[A-Za-z0-9_./][-A-Za-z0-9_./%+]*( [A-Za-z0-9_./(][-A-Za-z0-9_./%+()]*)*$`)

// plain quotes text if YAML could take it for something else.
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
		panic(err) // a string can always be written
	}
	return string(quoted)
}
