package sizing

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Money is an amount of the one currency that all prices are in. It is written as a number, with or without a dollar sign or the
// letters of a currency; nothing is converted.
type Money float64

// ParseMoney reads an amount.
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

// String writes the amount as people read it: without cents from a hundred on, with thousands apart.
func (m Money) String() string {
	digits := 0
	if m < 100 && m != Money(math.Round(float64(m))) {
		digits = 2
	}
	whole, cents, _ := strings.Cut(strconv.FormatFloat(float64(m), 'f', digits, 64), ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if cents != "" {
		whole += "." + cents
	}
	return "$" + whole
}

// MarshalText writes the amount as ParseMoney reads it.
func (m Money) MarshalText() ([]byte, error) {
	return []byte("$" + strconv.FormatFloat(float64(m), 'f', -1, 64)), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *Money) UnmarshalText(text []byte) (err error) {
	*m, err = ParseMoney(string(text))
	return err
}
