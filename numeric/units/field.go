package units

import (
	"errors"
	"fmt"
)

// FieldError says what is wrong with one field of a configuration. Its path is as a user writes it: keys in
// snake_case, joined by points, indices in brackets, "cache.capacity", "ports[2].rate". Who reads the file adds the
// place (Within puts what is around it in front).
type FieldError struct {
	Path string // of the field; "" is the whole
	Msg  string // what is wrong and what would be right
	// whose message it is, if it was no FieldError: it may be more than its text, such as the end of a context
	err error
}

// Error is the path and the message.
func (e *FieldError) Error() string {
	if e.Path == "" {
		return e.Msg
	}
	return e.Path + ": " + e.Msg
}

// Unwrap is the error whose message it is, or nil.
func (e *FieldError) Unwrap() error { return e.err }

// Wrong returns the error of one field.
func Wrong(path, format string, args ...any) error {
	return &FieldError{Path: path, Msg: fmt.Sprintf(format, args...)}
}

// JoinPath is the path of a field within another: "a" and "b" are "a.b", "a" and "[0]" are "a[0]".
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

// FieldErrors are the errors that err joins, each as one of a field. What says nothing of a field is one of the
// whole. They are none if err is nil.
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

// Within are the errors of a part, as those of what it is a part of. Nil stays nil.
func Within(path string, err error) error {
	var c Faults
	c.Within(path, err)
	return c.Err()
}

// Faults collects what is wrong with a configuration. The zero one is empty.
type Faults struct{ list []error }

// Hold notes that a field is wrong unless ok.
func (c *Faults) Hold(ok bool, path, format string, args ...any) {
	if !ok {
		c.list = append(c.list, Wrong(path, format, args...))
	}
}

// Within notes the errors of a part.
func (c *Faults) Within(path string, err error) {
	for _, f := range FieldErrors(err) {
		c.list = append(c.list, &FieldError{JoinPath(path, f.Path), f.Msg, f.err})
	}
}

// Err joins what was noted; nil if that is nothing.
func (c *Faults) Err() error { return errors.Join(c.list...) }
