package study

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"farflash/numeric/units"
	"farflash/scenario/shape"
)

// Axis is one parameter of a sweep with its values.
type Axis struct {
	Path      string   `json:"path"`
	Values    []string `json:"values"` // as written in a scenario
	Geometric bool     `json:"geometric,omitempty"`
}

// mostValues limits an axis: a range with too small a step is a typing mistake.
const mostValues = 10_000

// ParseAxis reads what --vary takes:
//
//	path=a,b,c         the values a, b and c
//	path=lo..hi:xK     lo, lo K, lo K^2 and so on up to hi
//	path=lo..hi:+K     lo, lo+K, lo+2K and so on up to hi
//
// lo, hi and an additive K are numbers, or quantities of one kind with their units. A comma inside brackets, braces
// or quotes belongs to its value.
func ParseAxis(text string) (Axis, error) {
	path, value, ok := strings.Cut(text, "=")
	a := Axis{Path: strings.TrimSpace(path)}
	value = strings.TrimSpace(value)
	if !ok || a.Path == "" || value == "" {
		return a, fmt.Errorf("%q names no values; write path=a,b,c or path=lo..hi:x2 or path=lo..hi:+4KiB", text)
	}
	parts, err := SplitValues(value)
	if err != nil {
		return a, fmt.Errorf("%q: %w", text, err)
	}
	if len(parts) == 1 && isRange(value) {
		if err := a.expand(value); err != nil {
			return a, fmt.Errorf("%q: %w", text, err)
		}
		return a, nil
	}
	seen := map[string]bool{}
	for i, p := range parts {
		switch {
		case p == "":
			return a, fmt.Errorf("%q: value %d is empty; write \"\" for empty text", text, i+1)
		case seen[p]:
			return a, fmt.Errorf("%q: the value %s is listed twice", text, p)
		}
		seen[p] = true
	}
	if len(parts) > mostValues {
		return a, fmt.Errorf("%q: %d values; an axis has at most %d", text, len(parts), mostValues)
	}
	a.Values = parts
	return a, nil
}

// SplitValues splits a text at commas outside of brackets, braces and quotes.
func SplitValues(text string) ([]string, error) {
	var out []string
	var open []rune
	quote := rune(0)
	from := 0
	for i, r := range text {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case r == '[':
			open = append(open, ']')
		case r == '{':
			open = append(open, '}')
		case r == ']' || r == '}':
			if len(open) == 0 || open[len(open)-1] != r {
				return nil, fmt.Errorf("unmatched %c at %d", r, i+1)
			}
			open = open[:len(open)-1]
		case r == ',' && len(open) == 0:
			out = append(out, strings.TrimSpace(text[from:i]))
			from = i + 1
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("unclosed %c", quote)
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("missing %c at the end", open[len(open)-1])
	}
	return append(out, strings.TrimSpace(text[from:])), nil
}

// isRange distinguishes a range, which starts with a number, from a value such as ../a..b.csv.
func isRange(value string) bool {
	v := strings.TrimLeft(value, "+-.")
	return strings.Contains(value, "..") && !strings.HasPrefix(value, "..") && v != "" && v[0] >= '0' && v[0] <= '9'
}

// expand computes the values of a range.
func (a *Axis) expand(text string) error {
	low, rest, _ := strings.Cut(text, "..")
	high, step, ok := strings.Cut(rest, ":")
	low, high, step = strings.TrimSpace(low), strings.TrimSpace(high), strings.TrimSpace(step)
	use := fmt.Sprintf("write %s..%s:x2 or %s..%s:+%s", low, high, low, high, low)
	if _, v, err := readAll(low); err == nil && v[0].Sign() <= 0 {
		use = fmt.Sprintf("write %s..%s:+K with a K above 0", low, high)
	}
	switch {
	case high == "":
		return fmt.Errorf("the range has no end; write lo..hi:x2 or lo..hi:+K")
	case !ok || step == "":
		return fmt.Errorf("the range has no step; %s", use)
	case step[0] != 'x' && step[0] != '+':
		return fmt.Errorf("the step %s is neither xK nor +K; %s", step, use)
	}
	by := strings.TrimSpace(step[1:])
	if a.Geometric = step[0] == 'x'; a.Geometric {
		return a.multiply(low, high, by)
	}
	return a.add(low, high, by)
}

func (a *Axis) multiply(low, high, by string) error {
	k, err := plainNumber(by)
	if err != nil || k.Cmp(big.NewRat(1, 1)) <= 0 {
		return fmt.Errorf("the factor %q is not a number above 1", by)
	}
	q, v, err := readAll(low, high)
	if err != nil {
		return err
	}
	if v[0].Sign() <= 0 {
		return fmt.Errorf("a range by factors cannot start at %s; start above 0, or step by +K", low)
	}
	return a.fill(q, v[0], v[1], func(x *big.Rat) *big.Rat {
		y := new(big.Rat).Mul(x, k)
		if f, _ := y.Float64(); y.Denom().BitLen() > 512 {
			y.SetFloat64(f) // a factor such as 1.001 adds digits with every step
		}
		return y
	})
}

func (a *Axis) add(low, high, by string) error {
	q, v, err := readAll(low, high, by)
	if err != nil {
		return err
	}
	if v[2].Sign() <= 0 {
		return fmt.Errorf("the step is %s; it must be above 0", by)
	}
	return a.fill(q, v[0], v[1], func(x *big.Rat) *big.Rat { return new(big.Rat).Add(x, v[2]) })
}

// fill lists the values from low to high.
func (a *Axis) fill(q quantity, low, high *big.Rat, next func(*big.Rat) *big.Rat) error {
	if low.Cmp(high) > 0 {
		return fmt.Errorf("the range starts above its end; write the smaller value first")
	}
	for x := low; x.Cmp(high) <= 0; x = next(x) {
		if len(a.Values) == mostValues {
			return fmt.Errorf("the range has more than %d values; take a larger step", mostValues)
		}
		v := q.write(x)
		if n := len(a.Values); n > 0 && a.Values[n-1] == v {
			return fmt.Errorf("the step is too small to change the value %s", v)
		}
		a.Values = append(a.Values, v)
	}
	return nil
}

// quantity is a kind of value for ranges and for the axes of charts.
type quantity struct {
	noun  string
	unit  string // the unit of the number, as named in result.json
	read  func(string) (*big.Rat, error)
	write func(*big.Rat) string
	scale float64 // factor from the result of read to unit
}

// whole returns a quantity for a type of package units that is an integer in its own unit.
func whole[T ~int64](noun, unit string, scale float64, parse func(string) (T, error), format func(T) string) quantity {
	return quantity{noun: noun, unit: unit, scale: scale,
		read: func(s string) (*big.Rat, error) {
			v, err := parse(s)
			return new(big.Rat).SetInt64(int64(v)), err
		},
		write: func(x *big.Rat) string {
			// Rounded half up.
			two := new(big.Int).Lsh(x.Denom(), 1)
			n := new(big.Int).Add(new(big.Int).Lsh(x.Num(), 1), x.Denom())
			return format(T(n.Div(n, two).Int64()))
		},
	}
}

// quantities lists the kinds in the order in which they are tried.
func quantities() []quantity {
	return []quantity{
		{noun: "number", scale: 1, read: plainNumber, write: writeNumber},
		{noun: "fraction", unit: "fraction", scale: 1, read: func(s string) (*big.Rat, error) {
			f, err := units.ParseFraction(s)
			if err != nil {
				return nil, err
			}
			return plainNumber(strconv.FormatFloat(float64(f), 'g', -1, 64))
		}, write: func(x *big.Rat) string {
			f, _ := x.Float64()
			return units.Fraction(f).String()
		}},
		whole("duration", "us", 1e-6, units.ParseDuration, units.Duration.String),
		whole("size", "B", 1, units.ParseBytes, units.Bytes.String),
		whole("bit rate", "bit/s", 1, units.ParseBitRate, units.BitRate.String),
		whole("byte rate", "B/s", 1, units.ParseByteRate, units.ByteRate.String),
		whole("transfer rate", "1/s", 1, units.ParseTransferRate, units.TransferRate.String),
	}
}

// readAll reads all texts as the same kind of quantity.
func readAll(texts ...string) (quantity, []*big.Rat, error) {
	for _, q := range quantities() {
		var out []*big.Rat
		for _, t := range texts {
			x, err := q.read(t)
			if err != nil {
				break
			}
			out = append(out, x)
		}
		if len(out) == len(texts) {
			return q, out, nil
		}
	}
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = strconv.Quote(t)
	}
	return quantity{}, nil,
		fmt.Errorf("%s are not all numbers or quantities of one kind; write for example 4KiB..64KiB:x2 or "+
			"10us..50us:+10us", strings.Join(quoted, ", "))
}

// plainNumber reads a decimal number exactly.
func plainNumber(s string) (*big.Rat, error) {
	v, err := strconv.ParseFloat(s, 64)
	// The bounds keep the exact representation short.
	if err != nil || math.IsNaN(v) || v != 0 && (math.Abs(v) > 1e30 || math.Abs(v) < 1e-30) || len(s) > 60 {
		return nil, errors.New("not a number")
	}
	x, ok := new(big.Rat).SetString(s)
	if !ok {
		return nil, errors.New("not a number")
	}
	return x, nil
}

func writeNumber(x *big.Rat) string {
	if x.IsInt() {
		return x.Num().String()
	}
	f, _ := x.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// Numbers returns the axis' values as numbers in a unit of result.json ("" for bare numbers), and false if they are not
// all numbers or quantities of one kind.
func (a Axis) Numbers() (values []float64, unit string, ok bool) {
	q, exact, err := readAll(a.Values...)
	if err != nil {
		return nil, "", false
	}
	for _, x := range exact {
		f, _ := x.Float64()
		values = append(values, f*q.scale)
	}
	return values, q.unit, true
}

// change is the change of the scenario that sets the axis to its i-th value; errors refer to it by flag.
func (a Axis) change(i int, flag string) shape.Change {
	return shape.Change{Path: a.Path, Value: a.Values[i], Flag: flag}
}
