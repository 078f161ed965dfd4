package shape

import (
	"reflect"

	"farflash/numeric/units"
)

// Source is the text of a file and where it is from.
type Source struct {
	File string // stands for it in errors
	Text []byte
	Dir  string // relative paths in it start here; "" is the working directory
}

// Document is a struct that a file is decoded into, whose language needs no more than a word.
type Document interface {
	// Word is what the file is called in messages, such as "the plan".
	Word() string
}

// ParseDocument decodes a document, which holds its defaults, with the changes of the command line, and returns where
// each of its keys was written.
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

// WriteDocument writes a document with every default, so that it loads back to the same thing; skip are paths that
// are left out.
func WriteDocument(v Document, set Set, skip []string) string {
	return (&Language{Word: v.Word()}).Encode(v, Encoding{Marks: set, Skip: skip})
}

// Locate gives the errors of fields, as a Validate returns them, the places of their keys. Nil stays nil.
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
