package units

import (
	"fmt"
	"slices"

	"farflash/internal/spelling"
)

// Names are those of an enumeration's values, from 0 on; a value that is not to be written has the name "". An
// enumeration's methods are one line each:
//
//	var modeNames = units.Names[Mode]{"off", "on"}
//
//	func (m Mode) String() string                      { return modeNames.Name(m) }
//	func (m Mode) MarshalText() ([]byte, error)        { return modeNames.Marshal(m) }
//	func (m *Mode) UnmarshalText(text []byte) error    { return modeNames.Unmarshal(text, m) }
type Names[T ~uint8] []string

// Name is that of a value; of one that has none it is the value in brackets.
func (n Names[T]) Name(v T) string {
	if int(v) < len(n) && n[v] != "" {
		return n[v]
	}
	return fmt.Sprintf("(%d)", uint8(v))
}

// Marshal writes a value's name. A value that has none is an error.
func (n Names[T]) Marshal(v T) ([]byte, error) {
	if int(v) < len(n) && n[v] != "" {
		return []byte(n[v]), nil
	}
	return nil, fmt.Errorf("%d is none of %s", uint8(v), spelling.OrList(n.List()))
}

// Unmarshal sets v to the value of a name; of any other text the error is a *TextError.
func (n Names[T]) Unmarshal(text []byte, v *T) error {
	if i := slices.Index(n, string(text)); i >= 0 && len(text) > 0 {
		*v = T(i)
		return nil
	}
	list := n.List()
	return &TextError{Text: string(text), Use: spelling.OrList(list), Near: spelling.Nearest(string(text), list)}
}

// List is the names that can be written, in the values' order.
func (n Names[T]) List() []string {
	return slices.DeleteFunc(slices.Clone(n), func(s string) bool { return s == "" })
}

// TextError says that a text is no value of its type, and what would be one.
type TextError struct {
	Text string // that was read
	Is   string // what is wrong with it; "" is "is not possible"
	Use  string // what to write instead: "oldest or first-touch"
	Near string // what was probably meant; "" if nothing is close
}

// Error puts it in a sentence.
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
