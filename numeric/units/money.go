package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Money is an amount of the one currency that a plan's prices are in. It is written as a number with or without a
// dollar sign or USD behind it: "$2700", "2700", "2700 USD". Nothing is converted, and amounts are printed with a
// dollar sign: those that name another currency are refused.
type Money float64

// ParseMoney reads an amount. It cannot be negative.
func ParseMoney(s string) (Money, error) {
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
			"%q is in %s, which is not converted and would be printed as $; write the amount in dollars", s, letters)
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(t, "_", ""), 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 1) {
		return 0, fmt.Errorf("%q is not an amount of money; write for example $2700", s)
	}
	return Money(v), nil
}

// String writes the amount as it parses.
func (m Money) String() string { return "$" + strconv.FormatFloat(float64(m), 'f', -1, 64) }

// Wanted says what to write.
func (Money) Wanted() string { return "an amount of money such as $2700" }

// MarshalText implements encoding.TextMarshaler.
func (m Money) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *Money) UnmarshalText(text []byte) (err error) {
	*m, err = ParseMoney(string(text))
	return err
}
