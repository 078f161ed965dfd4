package chart

import (
	"math"
	"strconv"
	"strings"
)

// Unit is the unit and format of an axis' numbers.
type Unit int

// The units. A number on an axis of Microseconds is in microseconds, and so on.
const (
	Plain      Unit = iota // any number; large ones with k, M, G
	Counts                 // whole numbers
	Micros                 // microseconds
	Secs                   // seconds
	ByteRates              // bytes per second, decimal prefixes
	BitRates               // bits per second
	PerSecond              // operations per second
	Bytes                  // bytes, decimal prefixes
	BinaryByte             // bytes, binary prefixes
	Fractions              // fractions, written in per cent
	Watts
	Joules
	Dollars // money; the sign precedes the number
)

// UnitOf returns the unit of that name in result.json; unknown ones are Plain.
func UnitOf(name string) Unit {
	switch name {
	case "us":
		return Micros
	case "s":
		return Secs
	case "B/s":
		return ByteRates
	case "bit/s":
		return BitRates
	case "1/s":
		return PerSecond
	case "B":
		return Bytes
	case "fraction":
		return Fractions
	case "count":
		return Counts
	case "W":
		return Watts
	case "J":
		return Joules
	}
	return Plain
}

// Name returns the name in result.json of the unit of an axis' numbers, "" for numbers without one.
func (u Unit) Name() string { return u.name() }

// name returns the unit's name in result.json, "" for numbers without one.
func (u Unit) name() string {
	for _, s := range []string{"us", "s", "B/s", "bit/s", "1/s", "B", "fraction", "count", "W", "J"} {
		if UnitOf(s) == u {
			return s
		}
	}
	return ""
}

// prefix is a unit in which an axis may be written.
type prefix struct {
	name  string
	scale float64
}

var (
	timePrefixes = []prefix{{"ps", 1e-6}, {"ns", 1e-3}, {"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"min", 60e6},
		{"h", 3600e6}, {"d", 86400e6}}
	plainPrefixes  = []prefix{{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}}
	binaryPrefixes = []prefix{{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
		{"PiB", 1 << 50}}
)

// prefixes returns the unit's prefixes, smallest first, and the factor from the axis' numbers to the first scale 1.
func (u Unit) prefixes() (list []prefix, factor float64) {
	with := func(suffix string) []prefix {
		out := make([]prefix, len(plainPrefixes))
		for i, p := range plainPrefixes {
			name := p.name
			if name == "k" {
				name = "K"
			}
			out[i] = prefix{name + suffix, p.scale}
		}
		return out
	}
	switch u {
	case Micros:
		return timePrefixes, 1
	case Secs:
		return timePrefixes, 1e6
	case ByteRates:
		return with("B/s"), 1
	case BitRates:
		return with("bit/s"), 1
	case Bytes:
		return with("B"), 1
	case BinaryByte:
		return binaryPrefixes, 1
	case Fractions:
		return []prefix{{"%", 1}}, 100
	case Watts:
		return []prefix{{"mW", 1e-3}, {"W", 1}, {"kW", 1e3}}, 1
	case Joules:
		return []prefix{{"nJ", 1e-9}, {"uJ", 1e-6}, {"mJ", 1e-3}, {"J", 1}, {"kJ", 1e3}, {"MJ", 1e6}}, 1
	}
	return plainPrefixes, 1
}

// choose returns a suitable prefix for v, and the factor from the axis' numbers to it.
func (u Unit) choose(v float64) (name string, factor float64) {
	list, f := u.prefixes()
	best := prefix{}
	for _, p := range list {
		if p.scale == 1 {
			best = p
		}
	}
	if x := math.Abs(v) * f; x > 0 {
		if first := list[0]; first.scale < best.scale {
			best = first
		}
		for _, p := range list {
			if x >= 0.99999*p.scale {
				best = p
			}
		}
		if u == Counts && best.scale <= 1e3 && x < 1e5 {
			best = prefix{"", 1}
		}
	}
	return best.name, f / best.scale
}

// Format formats one number with its unit, to three significant digits: "402 us", "1.23 GB/s", "97.3 %".
func (u Unit) Format(v float64) string {
	if math.IsNaN(v) {
		return "none"
	}
	if math.IsInf(v, 0) {
		return "infinite"
	}
	name, factor := u.choose(v)
	text := significant(v*factor, 3)
	switch u {
	case Dollars:
		return "$" + text + name
	case PerSecond:
		return text + name + "/s"
	case Plain, Counts:
		return text + name
	}
	return text + " " + name
}

// significant formats v with at least that many significant digits, without an exponent, whole numbers in full.
func significant(v float64, digits int) string {
	if v == 0 {
		return "0"
	}
	if v == math.Trunc(v) && math.Abs(v) < 1e6 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	text := strconv.FormatFloat(v, 'e', digits-1, 64)
	_, exponent, _ := strings.Cut(text, "e")
	e, err := strconv.Atoi(exponent)
	if err != nil || e > 15 || e < -9 {
		return text
	}
	return strconv.FormatFloat(v, 'f', max(digits-1-e, 0), 64)
}
