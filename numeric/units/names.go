package units

import (
	"fmt"
	"slices"

	"farflash/internal/spelling"
)

// Names are the names of an enumeration's values, from 0 on; a value that cannot be written has the name "". An
// enumeration's methods are one line each:
//
//	var modeNames = units.Names[Mode]{"off", "on"}
//
//	func (m Mode) String() string                      { return modeNames.Name(m) }
//	func (m Mode) MarshalText() ([]byte, error)        { return modeNames.Marshal(m) }
//	func (m *Mode) UnmarshalText(text []byte) error    { return modeNames.Unmarshal(text, m) }
type Names[T ~uint8] []string

// Name returns a value's name, or its number in parentheses.
func (n Names[T]) Name(v T) string {
	if int(v) < len(n) && n[v] != "" {
		return n[v]
	}
	return fmt.Sprintf("(%d)", uint8(v))
}

// Marshal returns a value's name. A value without a name is an error.
func (n Names[T]) Marshal(v T) ([]byte, error) {
	if int(v) < len(n) && n[v] != "" {
		return []byte(n[v]), nil
	}
	return nil, fmt.Errorf("unknown value %d; use %s", uint8(v), spelling.OrList(n.list()))
}

// Unmarshal sets v to the value named text; other texts are a *TextError.
func (n Names[T]) Unmarshal(text []byte, v *T) error {
	if i := slices.Index(n, string(text)); i >= 0 && len(text) > 0 {
		*v = T(i)
		return nil
	}
	list := n.list()
	return &TextError{Text: string(text), Use: spelling.OrList(list), Near: spelling.Nearest(string(text), list)}
}

// list returns the names that can be written, in the order of the values.
func (n Names[T]) list() []string {
	return slices.DeleteFunc(slices.Clone(n), func(s string) bool { return s == "" })
}

// TextError is the error for a text that is not a value of its type.
type TextError struct {
	Text string // the invalid text
	Is   string // the fault; "" stands for "is not possible"
	Use  string // the valid texts: "oldest or first-touch"
	Near string // the probable intention; "" if no valid text is similar
}

func (e *TextError) Error() string {
	is := e.Is
	if is == "" {
		is = "is not possible"
	}
	s := fmt.Sprintf("%q %s; use %s", e.Text, is, e.Use)
	if e.Near != "" {
		s += fmt.Sprintf(" (did you mean %s?)", e.Near)
	}
	return s
}
