package term

import (
	"math"
	"strconv"
	"strings"
)

// Significant formats v with the given number of significant digits and without an exponent, such as 402, 1.23 or
// 0.0457.
func Significant(v float64, digits int) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	// Rounding may add a digit before the point: 999.6 to three digits is 1000, not 1000.0.
	text := strconv.FormatFloat(v, 'e', digits-1, 64)
	_, exponent, _ := strings.Cut(text, "e")
	e, err := strconv.Atoi(exponent)
	if err != nil {
		panic("term: formatted number without an exponent: " + text)
	}
	return strconv.FormatFloat(v, 'f', max(digits-1-e, 0), 64)
}

// step is a unit with its multiple of the base unit.
type step struct {
	name  string
	scale float64
}

var (
	times = []step{{"ns", 1e-3}, {"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"min", 60e6}, {"h", 3600e6}, {"d", 86400e6}}
	sizes = []step{{"B", 1}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15}}
	rates = []step{{"B/s", 1}, {"KB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}}
	lines = []step{{"bit/s", 1}, {"Kbit/s", 1e3}, {"Mbit/s", 1e6}, {"Gbit/s", 1e9}, {"Tbit/s", 1e12}}
	plain = []step{{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}}
	watts = []step{{"mW", 1e-3}, {"W", 1}, {"kW", 1e3}}
	joule = []step{{"uJ", 1e-6}, {"mJ", 1e-3}, {"J", 1}, {"kJ", 1e3}, {"MJ", 1e6}}
)

// scaled formats v with three significant digits, in the largest unit in which it is at least one.
func scaled(v float64, steps []step, space string) string {
	if v == 0 {
		zero := ""
		for _, s := range steps {
			if s.scale == 1 {
				zero = s.name
			}
		}
		return strings.TrimSuffix("0"+space+zero, " ")
	}
	best := steps[0]
	for _, s := range steps {
		// A value that rounds up to one of the next unit is formatted in that: 999.9 us is 1.00 ms.
		if math.Abs(v) >= 0.9995*s.scale {
			best = s
		}
	}
	if math.Abs(v) < 1 && best.name == "" {
		return Significant(v, 3)
	}
	return strings.TrimSuffix(Significant(v/best.scale, 3)+space+best.name, " ")
}

// Latency formats microseconds, such as "88.9 us" or "1.23 ms".
func Latency(us float64) string { return scaled(us, times, " ") }

// Seconds formats seconds, such as "402 ms" or "2.50 min".
func Seconds(s float64) string { return scaled(s*1e6, times, " ") }

// bandwidth formats bytes per second with decimal prefixes, such as "1.23 GB/s".
func bandwidth(v float64) string { return scaled(v, rates, " ") }

// Size formats bytes with decimal prefixes, such as "41.0 MB"; below 1 KB it is exact.
func Size(v float64) string {
	if math.Abs(v) < 1000 {
		return strconv.FormatFloat(v, 'f', -1, 64) + " B"
	}
	return scaled(v, sizes, " ")
}

// Rate formats a number per second, such as "36.7k".
func Rate(v float64) string { return scaled(v, plain, "") }

// Count formats an integer with separated thousands, such as "10,000". Other numbers have three digits.
func Count(v float64) string {
	if v != math.Trunc(v) || math.Abs(v) >= 1e15 {
		return scaled(v, plain, "")
	}
	digits := strconv.FormatFloat(math.Abs(v), 'f', 0, 64)
	var b strings.Builder
	if v < 0 {
		b.WriteByte('-')
	}
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// Money formats an amount of money, such as "$7,808" or "$3.285".
func Money(v float64) string {
	switch {
	case v < 0:
		return "-" + Money(-v)
	case v < 1000:
		return "$" + Significant(v, 4)
	}
	return "$" + Count(math.Round(v))
}

// Percent formats a fraction, such as "97.3 %".
func Percent(v float64) string {
	if v == 0 {
		return "0 %"
	}
	if math.Abs(v) < 1e-3 {
		return Significant(v*100, 2) + " %"
	}
	return strconv.FormatFloat(v*100, 'f', 1, 64) + " %"
}

// Quantity formats the value of a metric for people. The unit is that of result.json (us, s, B, B/s, bit/s, 1/s,
// fraction, ratio, count, J, W, years).
func Quantity(v float64, unit string) string {
	if math.IsNaN(v) {
		return "-"
	}
	switch unit {
	case "us":
		return Latency(v)
	case "s":
		return Seconds(v)
	case "B":
		return Size(v)
	case "B/s":
		return bandwidth(v)
	case "bit/s":
		return scaled(v, lines, " ")
	case "1/s":
		return Rate(v)
	case "fraction":
		return Percent(v)
	case "ratio":
		return Significant(v, 4)
	case "J":
		return scaled(v, joule, " ")
	case "W":
		return scaled(v, watts, " ")
	case "years":
		return Rate(v) + " years"
	case "count":
		return Count(v)
	}
	return strings.TrimSuffix(Significant(v, 4)+" "+unit, " ")
}
