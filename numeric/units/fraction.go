package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Fraction is a dimensionless part of a whole, such as a read share; not negative.
type Fraction float64

// ParseFraction parses "7%", "0.07" or "1/3". It refuses a bare number above 1: "700%".
func ParseFraction(s string) (Fraction, error) {
	text := strings.TrimSpace(s)
	if text == "" {
		return 0, fmt.Errorf("empty fraction; try 7%% or 0.07")
	}
	if top, bottom, ok := strings.Cut(text, "/"); ok {
		return parseRatio(s, top, bottom)
	}
	number, percent := strings.CutSuffix(text, "%")
	number = strings.TrimSpace(number)
	d, err := parseDecimal(number)
	if err != nil {
		return 0, fmt.Errorf("%q is not a fraction: %w; try 7%% or 0.07", s, err)
	}
	if percent {
		d.exp -= 2
	}
	v, err := d.float()
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a fraction: %w", s, err)
	case d.negative && v != 0:
		return 0, fmt.Errorf("%q: a fraction cannot be negative", s)
	case !percent && v > 1:
		return 0, fmt.Errorf("%q is above 1; write %s%% or a number from 0 to 1", s, number)
	}
	return Fraction(v), nil
}

func parseRatio(s, top, bottom string) (Fraction, error) {
	a, errA := strconv.ParseUint(strings.TrimSpace(top), 10, 53)
	b, errB := strconv.ParseUint(strings.TrimSpace(bottom), 10, 53)
	if errA != nil || errB != nil || b == 0 {
		return 0, fmt.Errorf("%q is not a fraction: a ratio has two whole numbers, as in 1/3", s)
	}
	return Fraction(float64(a) / float64(b)), nil
}

// float returns the float64 nearest to d's magnitude.
func (d decimal) float() (float64, error) {
	if d.digits == "" {
		return 0, nil
	}
	v, err := strconv.ParseFloat(d.digits+"e"+strconv.Itoa(d.exp), 64)
	if err != nil || math.IsInf(v, 0) {
		return 0, fmt.Errorf("out of range")
	}
	return v, nil
}

// String returns a percentage that parses back exactly, such as "7%".
func (f Fraction) String() string {
	text, err := f.percent()
	if err != nil {
		return strconv.FormatFloat(float64(f), 'g', -1, 64)
	}
	return text
}

func (f Fraction) percent() (string, error) {
	v := float64(f)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "", fmt.Errorf("invalid fraction %v", v)
	}
	return shift(v, 2) + "%", nil
}

// shift formats v * 10^places with the digits of v's shortest form, which keeps the round trip exact.
func shift(v float64, places int) string {
	text := strconv.FormatFloat(v, 'e', -1, 64)
	mantissa, exponent, _ := strings.Cut(text, "e")
	e, _ := strconv.Atoi(exponent)
	sign := ""
	if mantissa[0] == '-' {
		sign, mantissa = "-", mantissa[1:]
	}
	digits := strings.Replace(mantissa, ".", "", 1)
	point := 1 + e + places // digits before the decimal point
	switch {
	case digits == "0":
		return "0"
	case point > 21 || point < -6:
		return sign + mantissa + "e" + strconv.Itoa(e+places)
	case point <= 0:
		return sign + "0." + strings.Repeat("0", -point) + digits
	case point >= len(digits):
		return sign + digits + strings.Repeat("0", point-len(digits))
	}
	return sign + digits[:point] + "." + digits[point:]
}

// MarshalText returns String; NaN and infinities are errors.
func (f Fraction) MarshalText() ([]byte, error) {
	text, err := f.percent()
	return []byte(text), err
}

func (f *Fraction) UnmarshalText(text []byte) error {
	v, err := ParseFraction(string(text))
	if err == nil {
		*f = v
	}
	return err
}

// WholePercent reports whether f is a whole number of per cent.
func (f Fraction) WholePercent() bool {
	x := float64(float64(f) * 100)
	return math.Abs(x-math.Round(x)) < 1e-9
}
