package units

import (
	"fmt"
	"strings"
)

// Change is a relative change: "20%" is a fifth more. It is written as a Fraction, with or without a sign.
type Change float64

// parseChange parses "20%", "+20%", "-15%" or "0".
func parseChange(s string) (Change, error) {
	text := strings.TrimSpace(s)
	cut, less := strings.CutPrefix(text, "-")
	if !less {
		cut = strings.TrimPrefix(text, "+")
	}
	if strings.HasPrefix(cut, "+") || strings.HasPrefix(cut, "-") {
		return 0, fmt.Errorf("%q has two signs; try -15%% or 20%%", s)
	}
	f, err := ParseFraction(cut)
	if err != nil {
		return 0, err
	}
	if less {
		f = -f
	}
	return Change(f), nil
}

// String returns the change in the form that parseChange accepts.
func (c Change) String() string {
	if c < 0 {
		return "-" + Fraction(-c).String()
	}
	return Fraction(c).String()
}

// Wanted describes the expected text for error messages.
func (Change) Wanted() string { return "a change such as 20% or -15%" }

func (c Change) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

func (c *Change) UnmarshalText(text []byte) (err error) {
	*c, err = parseChange(string(text))
	return err
}
