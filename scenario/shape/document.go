package shape

import (
	"reflect"

	"farflash/numeric/units"
)

// Source is a file's text and origin.
type Source struct {
	File string // name in errors
	Text []byte
	Dir  string // base of its relative paths; "" is the working directory
}

// Document is a struct that a file is decoded into, whose language consists of a word only.
type Document interface {
	// Word is the file's name in messages, such as "the plan".
	Word() string
}

// ParseDocument decodes a document, which holds its defaults, with the changes of the command line, and returns the
// position of each key in the file.
func ParseDocument(src Source, v Document, changes ...Change) (Set, error) {
	l := &Language{Word: v.Word()}
	top, err := Parse(src.File, src.Text)
	if err != nil {
		return nil, err
	}
	if err := l.Apply(top, reflect.TypeOf(v).Elem(), changes); err != nil {
		return nil, err
	}
	d := l.Decoder()
	d.decode(top, reflect.ValueOf(v).Elem(), "")
	if d.Errs != nil {
		return nil, d.Errs.InOrder()
	}
	return d.Set, nil
}

// WriteDocument returns a document's text with every default, so that it loads back to an equal document; skip lists
// paths that are omitted.
func WriteDocument(v Document, set Set, skip []string) string {
	return (&Language{Word: v.Word()}).Encode(v, Encoding{Marks: set, Skip: skip})
}

// Locate adds the positions of the keys to the errors of fields, as Validate returns them. Nil stays nil.
func Locate(set Set, err error) error {
	var out Errors
	for _, f := range units.FieldErrors(err) {
		out = append(out, &Error{set.At(f.Path), f.Error()})
	}
	if out == nil {
		return nil
	}
	return out.InOrder()
}
