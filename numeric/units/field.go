package units

import (
	"errors"
	"fmt"
)

// FieldError is an error about one field of a configuration. Its path is in the user's notation: "cache.capacity",
// "ports[2].rate". Within prefixes the path of the enclosing part; the reader of the file adds the position.
type FieldError struct {
	Path string // of the field; "" is the whole configuration
	Msg  string // the fault and the remedy
	// the original error if it was not a FieldError; it can carry more than its text, such as a context's cancellation
	err error
}

func (e *FieldError) Error() string {
	if e.Path == "" {
		return e.Msg
	}
	return e.Path + ": " + e.Msg
}

func (e *FieldError) Unwrap() error { return e.err }

// Wrong returns an error about one field.
func Wrong(path, format string, args ...any) error {
	return &FieldError{Path: path, Msg: fmt.Sprintf(format, args...)}
}

// JoinPath returns a field's path within another: "a.b" of "a" and "b", "a[0]" of "a" and "[0]".
func JoinPath(outer, inner string) string {
	switch {
	case outer == "":
		return inner
	case inner == "":
		return outer
	case inner[0] == '[':
		return outer + inner
	}
	return outer + "." + inner
}

// FieldErrors returns the errors that err joins; one that names no field applies to the whole.
func FieldErrors(err error) []*FieldError {
	if err == nil {
		return nil
	}
	switch x := err.(type) {
	case *FieldError:
		return []*FieldError{x}
	case interface{ Unwrap() []error }:
		var out []*FieldError
		for _, e := range x.Unwrap() {
			out = append(out, FieldErrors(e)...)
		}
		return out
	}
	return []*FieldError{{Msg: err.Error(), err: err}}
}

// Within returns a part's errors with paths relative to the whole; nil stays nil.
func Within(path string, err error) error {
	var c Faults
	c.Within(path, err)
	return c.Err()
}

// Faults collects the errors of a configuration. The zero Faults is empty.
type Faults struct{ list []error }

// Hold records an error about a field unless ok.
func (c *Faults) Hold(ok bool, path, format string, args ...any) {
	if !ok {
		c.list = append(c.list, Wrong(path, format, args...))
	}
}

// Within records the errors of a part.
func (c *Faults) Within(path string, err error) {
	for _, f := range FieldErrors(err) {
		c.list = append(c.list, &FieldError{JoinPath(path, f.Path), f.Msg, f.err})
	}
}

// Err joins the recorded errors; nil if there are none.
func (c *Faults) Err() error { return errors.Join(c.list...) }
