package trace

import (
	"fmt"
	"math"

	"farflash/block"
	"farflash/numeric/units"
)

// sector is the unit of addresses in most formats, in bytes.
const sector = int64(units.Sector)

// event is a decoded record whose time is not yet relative to the first one.
type event struct {
	at       instant
	response units.Duration
	offset   int64
	size     int64
	volume   uint32
	op       block.Op
	append   bool // a write that is a Zone Append

	completes bool  // completes an earlier event; not a request itself
	place     place // position in the file
}

// instant is a time on the trace's own clock: seconds since its epoch and picoseconds within the second.
type instant struct {
	sec int64
	ps  int64
}

const psPerSecond = int64(units.Second)

func (t instant) before(u instant) bool {
	return t.sec < u.sec || t.sec == u.sec && t.ps < u.ps
}

// since returns t - u; ok is false when the difference exceeds a Duration.
func (t instant) since(u instant) (d units.Duration, ok bool) {
	sec := t.sec - u.sec
	const most = math.MaxInt64/psPerSecond - 1
	if sec > most || sec < -most {
		return 0, false
	}
	return units.Duration(sec*psPerSecond + t.ps - u.ps), true
}

// ticks returns the instant n ticks of 1/perSecond s after the epoch. perSecond divides 10^12.
func ticks(n uint64, perSecond uint64) instant {
	return instant{int64(n / perSecond), int64(n%perSecond) * (psPerSecond / int64(perSecond))}
}

// fieldError reports an invalid field; the reader adds the position.
func fieldError(name string, field []byte, want string) error {
	const most = 40
	text := string(field)
	if len(text) > most {
		text = text[:most] + "..."
	}
	if text == "" {
		return fmt.Errorf("%s is empty; it must be %s", name, want)
	}
	return fmt.Errorf("%s is %q; it must be %s", name, text, want)
}

// parseUint parses an unsigned decimal number.
func parseUint(s []byte) (v uint64, ok bool) {
	if len(s) == 0 || len(s) > 20 {
		return 0, false
	}
	for _, c := range s {
		d := uint64(c - '0')
		if d > 9 {
			return 0, false
		}
		if v > (math.MaxUint64-9)/10 {
			return 0, false
		}
		v = v*10 + d
	}
	return v, true
}

// parseInt63 parses an unsigned decimal number that fits an int64.
func parseInt63(s []byte) (int64, bool) {
	v, ok := parseUint(s)
	if !ok || v > math.MaxInt64 {
		return 0, false
	}
	return int64(v), true
}

// parseHex parses a hexadecimal number, with or without 0x.
func parseHex(s []byte) (v uint64, ok bool) {
	if len(s) > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') {
		s = s[2:]
	}
	if len(s) == 0 || len(s) > 16 {
		return 0, false
	}
	for _, c := range s {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | uint64(c-'a'+10)
		case c >= 'A' && c <= 'F':
			v = v<<4 | uint64(c-'A'+10)
		default:
			return 0, false
		}
	}
	return v, true
}

// parseDecimal parses a plain decimal number, such as 1456095145.133076, in units of 10^-exponent seconds, 0 <=
// exponent <= 12. Digits finer than a picosecond are dropped.
func parseDecimal(s []byte, exponent int) (instant, bool) {
	var t instant
	i := 0
	var whole uint64
	for i < len(s) && s[i] != '.' {
		d := uint64(s[i] - '0')
		if d > 9 || whole > math.MaxInt64/10-1 {
			return t, false
		}
		whole = whole*10 + d
		i++
	}
	digits := i
	perSecond := uint64(1)
	unit := psPerSecond
	for range exponent {
		perSecond *= 10
		unit /= 10
	}
	t.sec = int64(whole / perSecond)
	t.ps = int64(whole%perSecond) * unit
	if i < len(s) {
		for i++; i < len(s); i++ {
			d := int64(s[i] - '0')
			if d < 0 || d > 9 {
				return t, false
			}
			unit /= 10
			t.ps += d * unit
			digits++
		}
	}
	return t, digits > 0
}

// parseDuration parses a decimal number of seconds as a duration of at most 106 days.
func parseDuration(s []byte) (units.Duration, bool) {
	t, ok := parseDecimal(s, 0)
	if !ok {
		return 0, false
	}
	return t.since(instant{})
}

// sectors converts n sectors to bytes; ok is false if that overflows.
func sectors(n int64) (int64, bool) {
	return n * sector, n <= math.MaxInt64/sector
}

// readOrWrite parses R, Read, w, WRITE and so on.
func readOrWrite(s []byte) (block.Op, bool) {
	if len(s) == 0 {
		return 0, false
	}
	var word string
	var op block.Op
	switch s[0] {
	case 'R', 'r':
		word, op = "read", block.Read
	case 'W', 'w':
		word, op = "write", block.Write
	default:
		return 0, false
	}
	if len(s) == 1 {
		return op, true
	}
	if len(s) != len(word) {
		return 0, false
	}
	for i := range s {
		if s[i]|0x20 != word[i] {
			return 0, false
		}
	}
	return op, true
}

// splitComma splits a line at its commas into dst and returns the number of fields; those beyond len(dst) are only
// counted.
func splitComma(line []byte, dst [][]byte) int {
	n, start := 0, 0
	for i := 0; i <= len(line); i++ {
		if i < len(line) && line[i] != ',' {
			continue
		}
		if n < len(dst) {
			dst[n] = trim(line[start:i])
		}
		n++
		start = i + 1
	}
	return n
}

// splitSpace splits a line at runs of spaces and tabs into dst and returns the number of fields.
func splitSpace(line []byte, dst [][]byte) int {
	n := 0
	for i := 0; i < len(line); {
		for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
			i++
		}
		start := i
		for i < len(line) && line[i] != ' ' && line[i] != '\t' {
			i++
		}
		if i > start {
			if n < len(dst) {
				dst[n] = line[start:i]
			}
			n++
		}
	}
	return n
}

// trim removes spaces around a field.
func trim(s []byte) []byte {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for len(s) > 0 && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

// columnsError reports a line with the wrong number of fields.
type columnsError struct {
	got  int
	want string
}

func (c *columnsError) Error() string { return fmt.Sprintf("%d columns instead of %s", c.got, c.want) }

func columns(got int, want string) error { return &columnsError{got, want} }
