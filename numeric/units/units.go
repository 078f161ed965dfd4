// Package units defines the quantities that Farflash parses, computes with and prints: durations, sizes, rates,
// fractions, energies and money. Each has its own type, so that bits are never mistaken for bytes or megahertz for
// megabytes.
//
// The main types are [Duration] (picoseconds), [Bytes], [BitRate] (bit/s), [ByteRate] (B/s), [TransferRate]
// (transfers/s), [Fraction], [Energy] (joules), [Money] and [Days]. Each has a String method whose text parses back to
// the same value, and MarshalText and UnmarshalText, so that YAML and JSON scalars decode directly.
//
// A quantity is written as a decimal number and a unit, "75us" or "1.5 GiB". A number without a unit is an error that
// lists the units that fit, except for money and for zero. Prefixes follow the SI and IEC 80000-13: 1KB is 1000 B and
// 1KiB is 1024 B. The text must denote a whole number of the type's base unit: "0.5ps" and "1.5B" are errors and not
// rounded.
//
// It also holds what all configurations share: [FieldError], which names an invalid field, [Faults], which collects
// such errors, and [Names], with which an enumeration parses and prints itself.
//
// It leaves out exchange rates, temperatures, dates, and negative quantities (they print, but do not parse).
package units

import (
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

// unit is one notation of a quantity: scale is its size in the type's base unit.
type unit struct {
	name  string
	scale int64
	alias bool // parsed, never printed
	whole bool // printed only for whole multiples
}

// kind describes the units of one type, in ascending order.
type kind struct {
	noun  string // "duration"
	own   string // the type's base unit in words, "picoseconds"
	try   string // the unit suggested by errors about a bare number
	plain int64  // a bare number of at least this was probably meant in the base unit; 0: none
	units []unit
}

// maxText bounds the length of a number; the longest exact value of any type here is far shorter.
const maxText = 128

// split splits s into its number and its unit, both trimmed.
func split(s string) (number, unit string) {
	s = strings.TrimSpace(s)
	i := 0
	for i < len(s) {
		c := s[i]
		switch {
		case c >= '0' && c <= '9', c == '.', c == '_':
		case (c == '+' || c == '-') && (i == 0 || isExponent(s, i-1)):
		case isExponent(s, i):
		default:
			return s[:i], strings.TrimSpace(s[i:])
		}
		i++
	}
	return s, ""
}

// isExponent reports whether s[i] is the e of a decimal exponent: preceded by a digit or a point and followed by
// digits.
func isExponent(s string, i int) bool {
	if s[i] != 'e' && s[i] != 'E' || i == 0 {
		return false
	}
	if c := s[i-1]; (c < '0' || c > '9') && c != '.' {
		return false
	}
	j := i + 1
	if j < len(s) && (s[j] == '+' || s[j] == '-') {
		j++
	}
	return j < len(s) && s[j] >= '0' && s[j] <= '9'
}

// decimal is digits * 10^exp.
type decimal struct {
	digits   string
	exp      int
	negative bool
}

// parseDecimal parses a plain or scientific decimal number. Underscores may separate digits.
func parseDecimal(s string) (decimal, error) {
	var d decimal
	if len(s) > maxText {
		return d, errors.New("number too long")
	}
	rest := s
	if rest != "" && (rest[0] == '+' || rest[0] == '-') {
		d.negative = rest[0] == '-'
		rest = rest[1:]
	}
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		e, err := strconv.Atoi(rest[i+1:])
		if err != nil || e > 1000 || e < -1000 {
			return d, errors.New("exponent out of range")
		}
		d.exp = e
		rest = rest[:i]
	}
	var digits []byte
	point, afterDigit := false, false
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c >= '0' && c <= '9':
			digits = append(digits, c)
			if point {
				d.exp--
			}
			afterDigit = true
			continue
		case c == '.' && !point:
			point = true
		case c == '_' && afterDigit && i+1 < len(rest) && rest[i+1] >= '0' && rest[i+1] <= '9':
		default:
			return d, errors.New("not a number")
		}
		afterDigit = false
	}
	if len(digits) == 0 {
		return d, errors.New("not a number")
	}
	d.digits = strings.TrimLeft(string(digits), "0")
	return d, nil
}

// parse parses s exactly as a quantity of kind k.
func (k *kind) parse(s string) (int64, error) {
	number, name := split(s)
	if number == "" {
		if name == "" {
			return 0, fmt.Errorf("empty %s; try 40%s", k.noun, k.try)
		}
		return 0, fmt.Errorf("%q is not a %s: it must start with a number; try 40%s", s, k.noun,
			k.try)
	}
	d, err := parseDecimal(number)
	if err != nil {
		return 0, fmt.Errorf("%q is not a %s: %w; try 40%s", s, k.noun, err, k.try)
	}
	if name == "" && d.digits == "" {
		return 0, nil
	}
	if name == "" {
		return 0, fmt.Errorf("%q has no unit; try %s (units: %s)", s, k.withUnit(number, d), k.names())
	}
	scale, ok := k.lookup(name)
	if !ok {
		return 0, fmt.Errorf("%q: unknown unit %q for a %s%s", s, name, k.noun, k.hint(number, name))
	}
	if d.digits == "" {
		return 0, nil
	}
	if d.negative {
		return 0, fmt.Errorf("%q: a %s cannot be negative", s, k.noun)
	}
	v, err := d.times(scale, k.own)
	if err != nil {
		return 0, fmt.Errorf("%q: %w", s, err)
	}
	return v, nil
}

// times returns d * scale if it is an integer that fits into an int64; own names the resulting unit in errors.
func (d decimal) times(scale int64, own string) (int64, error) {
	tooLarge := fmt.Errorf("too large: the maximum is %d %s", int64(1<<63-1), own)
	// Beyond 10^40 no scale can bring the number back into range.
	if len(d.digits)+d.exp > 40 {
		return 0, tooLarge
	}
	n, _ := new(big.Int).SetString(d.digits, 10)
	n.Mul(n, big.NewInt(scale))
	if d.exp >= 0 {
		n.Mul(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(d.exp)), nil))
	} else {
		var rest big.Int
		n.QuoRem(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-d.exp)), nil), &rest)
		if rest.Sign() != 0 {
			return 0, fmt.Errorf("not a whole number of %s", own)
		}
	}
	if !n.IsInt64() {
		return 0, tooLarge
	}
	return n.Int64(), nil
}

// withUnit suggests how to write a bare number as a quantity, in one or two forms.
func (k *kind) withUnit(number string, d decimal) string {
	v, err := d.times(1, k.own)
	if err != nil || k.plain == 0 || v < k.plain || d.negative {
		return number + k.try
	}
	own := number + k.units[0].name
	if short := k.format(v); short != own {
		return own + " or " + short
	}
	return own
}

func (k *kind) lookup(name string) (int64, bool) {
	for i := range k.units {
		if k.units[i].name == name {
			return k.units[i].scale, true
		}
	}
	return 0, false
}

// names lists the printed units for error messages.
func (k *kind) names() string {
	var b strings.Builder
	for i := range k.units {
		if k.units[i].alias {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(k.units[i].name)
	}
	return b.String()
}

// confusions maps a unit that is invalid here, or means something else, to a hint about the probable intention. The
// second argument of a hint is eight times the number, the third an eighth of it.
var confusions = []struct{ noun, name, hint string }{
	{"duration", "m", `; write %[1]smin for minutes or %[1]sms for milliseconds`},
	{"size", "K", `; write %[1]sKiB (1024 B) or %[1]sKB (1000 B)`},
	{"size", "k", `; write %[1]sKiB (1024 B) or %[1]sKB (1000 B)`},
	{"size", "M", `; write %[1]sMiB or %[1]sMB`},
	{"size", "G", `; write %[1]sGiB or %[1]sGB`},
	{"size", "T", `; write %[1]sTiB or %[1]sTB`},
	{"bit rate", "GB/s", `, which counts bytes; write %[1]sGbps for as many bits, or %[2]sGbps for the same rate`},
	{"bit rate", "MB/s", `, which counts bytes; write %[1]sMbps for as many bits, or %[2]sMbps for the same rate`},
	{"bit rate", "GBps", `, which looks like bytes; write %[1]sGbps for as many bits, or %[2]sGbps for the same rate`},
	{"byte rate", "Gbps", `, which counts bits; write %[1]sGB/s for as many bytes, or %[3]sGB/s for the same rate`},
	{"byte rate", "Mbps", `, which counts bits; write %[1]sMB/s for as many bytes, or %[3]sMB/s for the same rate`},
	{"byte rate", "Gb/s", `, which counts bits; write %[1]sGB/s for as many bytes, or %[3]sGB/s for the same rate`},
	{"byte rate", "Mb/s", `, which counts bits; write %[1]sMB/s for as many bytes, or %[3]sMB/s for the same rate`},
	{"byte rate", "GBps", `; write %[1]sGB/s`},
	{"byte rate", "MBps", `; write %[1]sMB/s`},
	{"transfer rate", "MHz", `; write transfers, for example %[1]sMT/s (a double data rate bus makes two transfers per cycle)`},
}

// hint suggests a replacement for an unknown unit name.
func (k *kind) hint(number, name string) string {
	for i := range confusions {
		if confusions[i].noun == k.noun && confusions[i].name == name {
			x, err := strconv.ParseFloat(number, 64)
			if err != nil {
				break // the number is out of range, although parse accepted its syntax
			}
			figure := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
			text := confusions[i].hint
			for k, word := range []string{number, figure(8 * x), figure(x / 8)} {
				text = strings.ReplaceAll(text, fmt.Sprintf("%%[%d]s", k+1), word)
			}
			return text
		}
	}
	for i := range k.units {
		if !k.units[i].alias && strings.EqualFold(k.units[i].name, name) {
			return "; did you mean " + number + k.units[i].name + "? (units: " + k.names() + ")"
		}
	}
	return " (units: " + k.names() + ")"
}

// format formats v in the unit that needs the fewest digits to be exact; among equals, the largest unit.
func (k *kind) format(v int64) string {
	magnitude := uint64(v)
	if v < 0 {
		magnitude = -magnitude
	}
	best, bestDigits, bestUnit := "", 0, ""
	for i := range k.units {
		u := &k.units[i]
		if u.alias || magnitude < uint64(u.scale) && u.scale != 1 {
			continue
		}
		if u.whole && magnitude%uint64(u.scale) != 0 {
			continue
		}
		text, digits, ok := quotient(magnitude, uint64(u.scale))
		if ok && (best == "" || digits <= bestDigits) {
			best, bestDigits, bestUnit = text, digits, u.name
		}
	}
	if v < 0 {
		best = "-" + best
	}
	return best + bestUnit
}

// quotient formats n/scale as an exact decimal and counts its digits; it fails beyond 20 decimals.
func quotient(n, scale uint64) (text string, digits int, ok bool) {
	whole, rest := n/scale, n%scale
	text = strconv.FormatUint(whole, 10)
	digits = len(text)
	if rest == 0 {
		return text, digits, true
	}
	decimals := make([]byte, 0, 20)
	for rest != 0 {
		if len(decimals) == 20 {
			return "", 0, false
		}
		hi, lo := bits.Mul64(rest, 10)
		var d uint64
		d, rest = bits.Div64(hi, lo, scale)
		decimals = append(decimals, '0'+byte(d))
	}
	return text + "." + string(decimals), digits + len(decimals), true
}

// scaled returns round(n * multiplier / divisor), halves up, saturating at the largest int64. divisor must not be zero.
func scaled(n, multiplier, divisor uint64) int64 {
	hi, lo := bits.Mul64(n, multiplier)
	lo, carry := bits.Add64(lo, divisor/2, 0)
	hi += carry
	if hi >= divisor {
		return 1<<63 - 1
	}
	q, _ := bits.Div64(hi, lo, divisor)
	if q > 1<<63-1 {
		return 1<<63 - 1
	}
	return int64(q)
}
