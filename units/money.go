package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Money is an amount of the one currency that a plan's prices are in. It is written as a number with or without a dollar sign or the
// letters of a currency: "$2700", "2700", "2700 USD"; nothing is converted.
type Money float64

// ParseMoney reads an amount. It cannot be negative.
func ParseMoney(s string) (Money, error) {
	t := strings.TrimSpace(s)
	t = strings.TrimSpace(strings.TrimPrefix(t, "$"))
	if cut := strings.TrimRight(t, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"); len(t)-len(cut) == 3 {
		t = strings.TrimSpace(cut)
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(t, "_", ""), 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 1) {
		return 0, fmt.Errorf("%q is no amount of money; write for example $2700", s)
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
