package scenario

import (
	"reflect"
)

// Document is a struct that a YAML file other than a scenario is decoded into, by the rules of scenarios: keys are fields'
// names in snake_case, unknown ones are errors, and every mistake is reported with its place.
type Document interface {
	// Word is what the file is called in messages, such as "the plan".
	Word() string
}

// defaulter is a part of a document that has defaults of its own: it is asked to set them before it is decoded.
type defaulter interface{ SetDefault() }

// abbreviated is a part of a document that may be written as a single value, which is for the key that Short names.
type abbreviated interface{ Short() string }

// ParseDocument decodes a document, which holds its defaults, and returns where each of its keys was written.
func ParseDocument(src Source, v Document) (map[string]Position, error) {
	top, err := parseYAML(src.File, src.Text)
	if err != nil {
		return nil, err
	}
	d := newDecoder()
	d.word = v.Word()
	d.decode(top, reflect.ValueOf(v).Elem(), "")
	if d.errs != nil {
		return nil, d.errs
	}
	return d.set, nil
}

// shortKey is the key that a single value in the place of a struct is for.
func shortKey(v reflect.Value) (string, bool) {
	if x, ok := v.Addr().Interface().(abbreviated); ok {
		return x.Short(), true
	}
	key, ok := shorthand[v.Type()]
	return key, ok
}
