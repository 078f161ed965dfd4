package peer

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"math/bits"
	"strconv"
	"strings"

	"farflash/numeric/units"
)

// word is text between white space, with its position.
type word struct {
	text   string
	line   int
	column int
	first  bool // of its line
}

// words splits a file of ns-3's programs into words, as C++ streams do.
type words struct {
	file   string
	src    string
	pos    int
	line   int
	start  int  // of the line
	inLine bool // a word of the line was read
	peeked bool
	head   word
	ok     bool
	last   word // the word read last
}

// newWords reads a whole file. Its errors name it.
func newWords(name string, r io.Reader) (*words, error) {
	src, err := readAll(name, r)
	if err != nil {
		return nil, err
	}
	return &words{file: name, src: string(src), line: 1}, nil
}

// peek returns the next word without consuming it, false at the end of the file.
func (w *words) peek() (word, bool) {
	if w.peeked {
		return w.head, w.ok
	}
	w.peeked, w.ok = true, false
	for w.pos < len(w.src) {
		c := w.src[w.pos]
		if c == '\n' {
			w.line++
			w.start, w.inLine = w.pos+1, false
		}
		if !isSpace(c) {
			break
		}
		w.pos++
	}
	if w.pos == len(w.src) {
		w.head = word{line: w.line, column: w.pos - w.start + 1}
		return w.head, false
	}
	begin := w.pos
	for w.pos < len(w.src) && !isSpace(w.src[w.pos]) {
		w.pos++
	}
	w.head = word{w.src[begin:w.pos], w.line, begin - w.start + 1, !w.inLine}
	w.inLine, w.ok = true, true
	return w.head, true
}

// next consumes the next word; it returns false at the end of the file.
func (w *words) next() (word, bool) {
	v, ok := w.peek()
	w.peeked = !ok
	if ok {
		w.last = v
	}
	return v, ok
}

// isSpace reports whether C++ streams treat c as white space.
func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// at returns a word's position.
func (w *words) at(v word) position { return position{w.file, v.line, v.column} }

// fail returns an error about a word.
func (w *words) fail(v word, format string, args ...any) error {
	return fmt.Errorf("%v: %w", w.at(v), fmt.Errorf(format, args...))
}

// field consumes a word that belongs to a record, which is a line.
func (w *words) field(what, layout string) (word, error) {
	v, ok := w.peek()
	if !ok || v.first {
		return v, w.fail(w.last, "%s is missing after %q; the line is %q", what, clip(w.last.text), layout)
	}
	v, _ = w.next()
	return v, nil
}

// begin consumes the first word of a record. done is the number of records read so far.
func (w *words) begin(noun string, done, count int, layout string) (word, error) {
	v, ok := w.peek()
	switch {
	case !ok:
		return v, w.fail(v, "the file ends after %d of %d %ss", done, count, noun)
	case !v.first:
		return v, w.fail(v, "%q follows the end of a line; the next line is %q", clip(v.text), layout)
	}
	v, _ = w.next()
	return v, nil
}

// end verifies that the line of the word read last is complete.
func (w *words) end(layout string) error {
	if v, ok := w.peek(); ok && !v.first {
		return w.fail(v, "unexpected %q; the line is %q", clip(v.text), layout)
	}
	return nil
}

// NS3SurplusError reports that a topology, flow or trace-node file continues after the number of records that its first
// line gives. The programs read no further, and files distributed with HPCC's ns-3 are like that; the reader therefore
// returns the records that the programs would read together with this error, and callers may treat it as a warning.
type NS3SurplusError struct {
	At    string // file:line:column of the first surplus record
	Noun  string // "flow"
	Count int    // of records, as the file says
}

func (e *NS3SurplusError) Error() string {
	return fmt.Sprintf("%s: the file declares %d %ss, but here is one more; change the number or remove "+
		"the rest", e.At, e.Count, e.Noun)
}

// close verifies that no record follows the last one. The reference's own files end in prose, which it never reads; a
// line that starts with a number is not prose.
func (w *words) close(noun string, count int) error {
	v, ok := w.peek()
	if ok && v.first && strings.IndexByte("0123456789+-.", v.text[0]) >= 0 {
		return &NS3SurplusError{w.at(v).String(), noun, count}
	}
	return nil
}

// count consumes the number of records, with which a file starts.
func (w *words) count(noun string) (int, error) {
	v, ok := w.next()
	if !ok {
		return 0, w.fail(v, "the file is empty; it must start with the number of %ss", noun)
	}
	n, err := whole(v.text, 1<<32-1)
	if err != nil {
		return 0, w.fail(v, "number of %ss: %w", noun, err)
	}
	return int(n), nil
}

// number consumes a whole number from 0 to most that is a field of a record.
func (w *words) number(what string, most uint64, layout string) (uint64, error) {
	v, err := w.field(what, layout)
	if err != nil {
		return 0, err
	}
	n, err := whole(v.text, most)
	if err != nil {
		return 0, w.fail(v, "%s: %w", what, err)
	}
	return n, nil
}

// moment consumes a time in units of scale that is a field of a record.
func (w *words) moment(what string, scale units.Duration, layout string) (units.Duration, error) {
	v, err := w.field(what, layout)
	if err != nil {
		return 0, err
	}
	d, err := duration(v.text, scale)
	if err != nil {
		return 0, w.fail(v, "%s: %w", what, err)
	}
	return d, nil
}

// clip shortens a word for an error.
func clip(text string) string {
	const most = 40
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}

// whole parses a number from 0 to most.
func whole(text string, most uint64) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	switch {
	case err == nil && n <= most:
		return n, nil
	case err == nil || errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%s is above %d", clip(text), most)
	case strings.HasPrefix(text, "-"):
		return 0, fmt.Errorf("%s is negative", clip(text))
	}
	return 0, fmt.Errorf("%q is not a whole number", clip(text))
}

// decimal parses a non-negative decimal number.
func decimal(text string, most float64) (float64, error) {
	if !isDecimal(text) {
		return 0, fmt.Errorf("%q is not a number", clip(text))
	}
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case strings.HasPrefix(text, "-"):
		return 0, fmt.Errorf("%s is negative", clip(text))
	case err != nil || x > most:
		return 0, fmt.Errorf("%s is above %v", clip(text), most)
	}
	return x, nil
}

// isDecimal reports whether text is digits, optionally with a sign, a point and an exponent. Go's own parser accepts
// more.
func isDecimal(text string) bool {
	mantissa, exponent, has := strings.Cut(strings.ToLower(text), "e")
	if has {
		exponent = strings.TrimLeft(exponent, "+-")
		if exponent == "" || strings.Trim(exponent, "0123456789") != "" {
			return false
		}
	}
	mantissa = strings.TrimPrefix(strings.TrimPrefix(mantissa, "-"), "+")
	left, right, _ := strings.Cut(mantissa, ".")
	return left+right != "" && strings.Trim(left+right, "0123456789") == ""
}

// times returns a decimal number multiplied by scale: the whole part, and the remainder as -1 for none, 0 for less than
// a half, 1 for a half or more.
func times(text string, scale uint64) (product int64, rest int, err error) {
	if !isDecimal(text) {
		return 0, 0, fmt.Errorf("%q is not a number", clip(text))
	}
	if text[0] == '-' {
		return 0, 0, fmt.Errorf("%s is negative", clip(text))
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(text, "+")), "e")
	left, right, _ := strings.Cut(mantissa, ".")
	right = strings.TrimRight(right, "0")
	digits := strings.TrimLeft(left+right, "0")
	shift := -len(right)
	if exponent != "" {
		e, err := strconv.Atoi(exponent)
		if err != nil || e > 400 || e < -400 {
			return 0, 0, fmt.Errorf("%s has an exponent out of range", clip(text))
		}
		shift += e
	}
	beyond := fmt.Errorf("%s is out of range", clip(text))
	switch {
	case digits == "":
		return 0, -1, nil
	case len(digits) > 400:
		return 0, 0, fmt.Errorf("%s has too many digits", clip(text))
	case shift <= 0 && shift >= -18 && len(digits) <= 18:
		n, _ := strconv.ParseUint(digits, 10, 64)
		divisor := uint64(1)
		for range -shift {
			divisor *= 10
		}
		high, low := bits.Mul64(n, scale)
		if high >= divisor {
			return 0, 0, beyond
		}
		q, r := bits.Div64(high, low, divisor)
		if q > 1<<63-1 {
			return 0, 0, beyond
		}
		return int64(q), part(r == 0, r >= divisor-r), nil
	}
	n, _ := new(big.Int).SetString(digits, 10)
	n.Mul(n, new(big.Int).SetUint64(scale))
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(shift, -shift))), nil)
	remainder := new(big.Int)
	if shift >= 0 {
		n.Mul(n, power)
	} else {
		n.QuoRem(n, power, remainder)
	}
	if !n.IsInt64() {
		return 0, 0, beyond
	}
	return n.Int64(), part(remainder.Sign() == 0, remainder.Lsh(remainder, 1).Cmp(power) >= 0), nil
}

func part(none, half bool) int {
	switch {
	case none:
		return -1
	case half:
		return 1
	}
	return 0
}

// duration parses a decimal number of units of scale, to the nearest picosecond, halves up.
func duration(text string, scale units.Duration) (units.Duration, error) {
	n, rest, err := times(text, uint64(scale))
	if err != nil {
		return 0, err
	}
	if rest == 1 {
		if n == int64(units.Forever) {
			return 0, fmt.Errorf("%s is out of range", clip(text))
		}
		n++
	}
	return units.Duration(n), nil
}

// delays are the units that ns-3's Time accepts.
var delays = map[string]units.Duration{
	"": units.Second, "s": units.Second, "ms": units.Millisecond, "us": units.Microsecond, "ns": units.Nanosecond,
	"ps": units.Picosecond,
}

// ns3Time parses a time as ns-3 writes it: "1us", "0.001ms"; without a unit it is in seconds.
func ns3Time(text string) (units.Duration, error) {
	number, unit := cutUnit(text)
	scale, ok := delays[unit]
	if !ok {
		return 0, fmt.Errorf("%q is not a time; write for example 1us, 1000ns or 0.000001s", clip(text))
	}
	return duration(number, scale)
}

// rates are the units that ns-3's DataRate accepts, in bit/s.
var rates = map[string]uint64{
	"": 1, "bps": 1, "b/s": 1, "Bps": 8, "B/s": 8,
	"kbps": 1e3, "kb/s": 1e3, "Kbps": 1e3, "Kb/s": 1e3, "kBps": 8e3, "kB/s": 8e3, "KBps": 8e3, "KB/s": 8e3,
	"Kib/s": 1 << 10, "KiB/s": 8 << 10,
	"Mbps": 1e6, "Mb/s": 1e6, "MBps": 8e6, "MB/s": 8e6, "Mib/s": 1 << 20, "MiB/s": 8 << 20,
	"Gbps": 1e9, "Gb/s": 1e9, "GBps": 8e9, "GB/s": 8e9, "Gib/s": 1 << 30, "GiB/s": 8 << 30,
}

// ns3Rate parses a bit rate as ns-3 writes it: "40Gbps", "100Gb/s"; without a unit it is in bit/s.
func ns3Rate(text string) (units.BitRate, error) {
	number, unit := cutUnit(text)
	scale, ok := rates[unit]
	if !ok {
		return 0, fmt.Errorf("%q is not a bit rate; write for example 40Gbps or 40Gb/s", clip(text))
	}
	n, rest, err := times(number, scale)
	if err == nil && rest >= 0 {
		err = fmt.Errorf("%s is not a whole number of bits per second", clip(text))
	}
	return units.BitRate(n), err
}

// cutUnit splits a quantity at the end of its number, as ns-3 does.
func cutUnit(text string) (number, unit string) {
	i := strings.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune("+-0123456789.", r) })
	if i < 0 {
		return text, ""
	}
	return text[:i], text[i:]
}
