package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Money is an amount in the single currency of a plan's prices: "$2700", "2700", "2700 USD". Other currencies are
// refused.
type Money float64

// parseMoney parses an amount. It cannot be negative.
func parseMoney(s string) (Money, error) {
	t := strings.TrimSpace(s)
	t = strings.TrimSpace(strings.TrimPrefix(t, "$"))
	number, letters := t, ""
	if cut := strings.TrimRight(t, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"); len(t)-len(cut) == 3 {
		number, letters = strings.TrimSpace(cut), t[len(cut):]
		t = number
	}
	if _, err := strconv.ParseFloat(strings.ReplaceAll(number, "_", ""), 64); err == nil && letters != "" &&
		letters != "USD" {
		return 0, fmt.Errorf(
			"%q is in %s, but amounts are in dollars and are not converted; give the amount in dollars", s, letters)
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(t, "_", ""), 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 1) {
		return 0, fmt.Errorf("%q is not an amount of money; try $2700", s)
	}
	return Money(v), nil
}

// String returns the amount in the form that parseMoney accepts.
func (m Money) String() string { return "$" + strconv.FormatFloat(float64(m), 'f', -1, 64) }

// Wanted describes the expected text for error messages.
func (Money) Wanted() string { return "an amount of money such as $2700" }

func (m Money) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

func (m *Money) UnmarshalText(text []byte) (err error) {
	*m, err = parseMoney(string(text))
	return err
}
