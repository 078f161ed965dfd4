package chart

import (
	"math"
	"strings"
	"testing"
)

func labels(x axis) string {
	var list []string
	for _, t := range x.ticks {
		if t.label != "" {
			list = append(list, t.label)
		}
	}
	return strings.Join(list, " | ")
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		axis   Axis
		lo, hi float64
		room   float64
		want   string
		label  string
	}{
		{Axis{Label: "t", Unit: Secs}, 0, 0.2, 300, "0 | 50 | 100 | 150 | 200", "t (ms)"},
		{Axis{Label: "t", Unit: Secs}, 0, 5400, 300, "0.0 | 0.5 | 1.0 | 1.5", "t (h)"},
		{Axis{Label: "t", Unit: Secs, Tight: true}, 0, 2.04, 500, "0 | 0.5 | 1.0 | 1.5 | 2.0", "t (s)"},
		{Axis{Label: "b", Unit: ByteRates, FromZero: true}, 1.2e8, 5.4e8, 250, "0 | 200 | 400 | 600", "b (MB/s)"},
		{Axis{Label: "s", Unit: BinaryByte}, 0, 3 << 20, 250, "0 | 1 | 2 | 3", "s (MiB)"},
		{Axis{Label: "n", Unit: Counts}, 0, 3, 600, "0 | 1 | 2 | 3", "n"},
		{Axis{Label: "n", Unit: Counts}, 5, 5, 250, "0 | 2 | 4 | 6 | 8", "n"},
		{Axis{Label: "n"}, 1e15, 1e15 + 0.25, 250, "0 | 500 | 1000 | 1500", "n (T)"},
		{Axis{Label: "f", Unit: Fractions}, 0, 1, 250, "0 | 50 | 100", "f (%)"},
		{Axis{Label: "i", Unit: PerSecond, FromZero: true}, 0, 38000, 250, "0 | 10 | 20 | 30 | 40", "i (k/s)"},
		{Axis{Label: "l", Unit: Micros, Scale: Log}, 12, 9000, 400, "10 us | 100 us | 1 ms | 10 ms", "l"},
		{Axis{Label: "l", Unit: Micros, Scale: Log}, 60, 300, 400, "50 us | 100 us | 200 us | 500 us", "l"},
		{Axis{Label: "p", Scale: Nines}, 0, 0.9995, 300, "0 % | 50 % | 90 % | 99 % | 99.9 %", "p"},
		{Axis{Label: "p", Scale: Nines}, 0, 0.99999, 300, "0 % | 50 % | 90 % | 99 % | 99.9 % | 99.99 % | 99.999 %",
			"p"},
	} {
		x := newAxis(c.axis, c.lo, c.hi, c.room)
		if got := labels(x); strings.Replace(got, "0.0 |", "0 |", 1) != strings.Replace(c.want, "0.0 |", "0 |", 1) ||
			x.label != c.label {
			t.Errorf("%v to %v: %s: %s, want %s: %s", c.lo, c.hi, x.label, got, c.label, c.want)
		}
	}
}

func TestPlaces(t *testing.T) {
	x := newAxis(Axis{Scale: Nines}, 0, 0.999, 300)
	x.place(0, 300)
	for share, want := range map[float64]float64{0: 0, 0.9: 100, 0.99: 200, 0.999: 300, 0.99999: 300, 1: 300} {
		if got := x.at(share); math.Abs(got-want) > 1e-6 {
			t.Errorf("%v is at %v, want %v", share, got, want)
		}
	}
	l := newAxis(Axis{Scale: Log, Min: 1, Max: 1000}, 0, 0, 300)
	l.place(300, 0)
	for v, want := range map[float64]float64{1: 300, 10: 200, 1000: 0, 0: 300, -5: 300} {
		if got := l.at(v); math.Abs(got-want) > 1e-6 {
			t.Errorf("%v is at %v, want %v", v, got, want)
		}
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		unit Unit
		v    float64
		want string
	}{
		{Micros, 402.13, "402 us"}, {Micros, 0.25, "250 ns"}, {Micros, 1e6, "1 s"}, {Micros, 0, "0 us"},
		{Secs, 0.0304, "30.4 ms"},
		{ByteRates, 1.234e9, "1.23 GB/s"}, {ByteRates, 512, "512 B/s"}, {BitRates, 4e10, "40 Gbit/s"},
		{PerSecond, 36700, "36.7k/s"}, {PerSecond, 12, "12/s"},
		{Fractions, 0.5, "50 %"}, {Fractions, 0.0625, "6.25 %"}, {Counts, 12345, "12345"}, {Plain, 1.5, "1.50"},
		{Plain, 2.5e6, "2.50M"}, {Bytes, 3.84e12, "3.84 TB"}, {BinaryByte, 65536, "64 KiB"},
		{Joules, 5e-5, "50 uJ"}, {Watts, 7.25, "7.25 W"}, {Micros, math.NaN(), "none"},
	} {
		if got := c.unit.Format(c.v); got != c.want {
			t.Errorf("Format(%v) = %q, want %q", c.v, got, c.want)
		}
	}
	for share, want := range map[float64]string{0: "0.0 %", 0.5: "50.0 %", 0.99: "99.0 %", 0.99951: "99.951 %",
		1: "100 %"} {
		if got := FormatShare(share); got != want {
			t.Errorf("FormatShare(%v) = %q, want %q", share, got, want)
		}
	}
}

func TestUnitOf(t *testing.T) {
	for name, want := range map[string]Unit{"us": Micros, "B/s": ByteRates, "fraction": Fractions, "ratio": Plain,
		"count": Counts, "1/s": PerSecond} {
		if UnitOf(name) != want {
			t.Errorf("UnitOf(%q) = %v", name, UnitOf(name))
		}
	}
}

func TestColours(t *testing.T) {
	if c, light := colourAt(0); c != "#00224e" || light {
		t.Errorf("%s %v", c, light)
	}
	if c, light := colourAt(1); c != "#fee838" || !light {
		t.Errorf("%s %v", c, light)
	}
	if c, _ := colourAt(7); c != "#fee838" {
		t.Errorf("%s", c)
	}
}
