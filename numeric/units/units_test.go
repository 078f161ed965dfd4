package units

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"

	"farflash/internal/patience"
)

func TestParse(t *testing.T) {
	duration := func(s string) (any, error) { v, err := ParseDuration(s); return int64(v), err }
	size := func(s string) (any, error) { v, err := ParseBytes(s); return int64(v), err }
	bitRate := func(s string) (any, error) { v, err := ParseBitRate(s); return int64(v), err }
	byteRate := func(s string) (any, error) { v, err := ParseByteRate(s); return int64(v), err }
	transferRate := func(s string) (any, error) { v, err := ParseTransferRate(s); return int64(v), err }
	fraction := func(s string) (any, error) { v, err := ParseFraction(s); return float64(v), err }
	energy := func(s string) (any, error) { v, err := ParseEnergy(s); return float64(v), err }
	cases := []struct {
		parse func(string) (any, error)
		in    string
		want  any    // if there is no error
		err   string // a substring of the error
	}{
		{duration, "75us", int64(75e6), ""},
		{duration, " 75 us ", int64(75e6), ""},
		{duration, "75µs", int64(75e6), ""},
		{duration, "75μs", int64(75e6), ""},
		{duration, "1.5ns", int64(1500), ""},
		{duration, "1_000ns", int64(1e6), ""},
		{duration, "2.5e3us", int64(2500e6), ""},
		{duration, "1e-3ns", int64(1), ""},
		{duration, "90min", int64(5400e12), ""},
		{duration, "2h", int64(7200e12), ""},
		{duration, "106d", int64(106 * Day), ""},
		{duration, "9223372036854775807ps", int64(math.MaxInt64), ""},
		{duration, "0", int64(0), ""},
		{duration, "-0s", int64(0), ""},
		{duration, "9223372036854775808ps", nil, "too large"},
		{duration, "107d", nil, "too large: the maximum is 9223372036854775807 picoseconds"},
		{duration, "1e999s", nil, "too large"},
		{duration, "1e99999s", nil, "exponent out of range"},
		{duration, "0.5ps", nil, "not a whole number of picoseconds"},
		{duration, "40", nil, `"40" has no unit; try 40us (units: ps, ns, us, ms, s, min, h, d)`},
		{duration, "5m", nil, "write 5min for minutes or 5ms for milliseconds"},
		{duration, "5US", nil, "did you mean 5us?"},
		{duration, "-5us", nil, "cannot be negative"},
		{duration, "NaN", nil, "must start with a number"},
		{duration, "infs", nil, "must start with a number"},
		{duration, "", nil, "empty duration"},
		{duration, "us", nil, "must start with a number"},
		{duration, "1.2.3us", nil, "not a number"},
		{duration, "1__0us", nil, "not a number"},
		{duration, "1_us", nil, "not a number"},
		{duration, ".us", nil, "not a number"},
		{duration, "1e5", nil, "has no unit"},
		{size, "1KB", int64(1000), ""},
		{size, "1kB", int64(1000), ""},
		{size, "1KiB", int64(1024), ""},
		{size, "1.5GiB", int64(1610612736), ""},
		{size, "3.84TB", int64(3840000000000), ""},
		{size, "7EiB", int64(7 << 60), ""},
		{size, "5EB", int64(5e18), ""},
		{size, "8EiB", nil, "too large"},
		{size, "1.5B", nil, "not a whole number of bytes"},
		{size, "4K", nil, "write 4KiB (1024 B) or 4KB (1000 B)"},
		{size, "4kib", nil, "did you mean 4KiB?"},
		{size, "4096", nil, "try 4096B or 4KiB (units: B,"},
		{size, "4_096", nil, "try 4_096B or 4KiB (units: B,"},
		{size, "512", nil, "try 512B (units: B,"},
		{size, "44000", nil, "try 44000B or 44KB (units: B,"},
		{size, "1048576", nil, "try 1048576B or 1MiB (units: B,"},
		{size, "64", nil, "try 64KiB (units: B,"},
		{size, "1.5", nil, "try 1.5KiB (units: B,"},
		{size, "1e30", nil, "try 1e30KiB (units: B,"},
		{size, "-4096", nil, "try -4096KiB (units: B,"},
		{bitRate, "40Gbps", int64(40e9), ""},
		{bitRate, "2.5 Gbit/s", int64(25e8), ""},
		{bitRate, "40", nil, `"40" has no unit; try 40Gbps`},
		{bitRate, "5GB/s", nil, "counts bytes; write 5Gbps for as many bits, or 40Gbps for the same"},
		{byteRate, "10Gb/s", nil, "counts bits; write 10GB/s for as many bytes, or 1.25GB/s for the same"},
		{byteRate, "200MB/s", int64(2e8), ""},
		{byteRate, "1GiB/s", int64(1 << 30), ""},
		{byteRate, "40Gbps", nil, "counts bits; write 40GB/s for as many bytes, or 5GB/s for the same"},
		{transferRate, "333MT/s", int64(333e6), ""},
		{transferRate, "8GT/s", int64(8e9), ""},
		{transferRate, "333MHz", nil, "write transfers"},
		{fraction, "7%", 0.07, ""},
		{fraction, "0.07", 0.07, ""},
		{fraction, "12.5 %", 0.125, ""},
		{fraction, "1/3", 1.0 / 3, ""},
		{fraction, "150%", 1.5, ""},
		{fraction, "1", 1.0, ""},
		{fraction, "7", nil, `"7" is above 1; write 7%`},
		{fraction, "-7%", nil, "cannot be negative"},
		{fraction, "NaN", nil, "not a number"},
		{fraction, "Inf", nil, "not a number"},
		{fraction, "1/0", nil, "two whole numbers"},
		{fraction, "0.07us", nil, "not a number"},
		{fraction, "", nil, "empty fraction"},
		{energy, "42uJ", 42e-6, ""},
		{energy, "42µJ", 42e-6, ""},
		{energy, "1.5nJ", 1.5e-9, ""},
		{energy, "2Wh", 7200.0, ""},
		{energy, "42", nil, `"42" has no unit; try 42uJ`},
		{energy, "42W", nil, `unknown unit "W"`},
		{energy, "-1J", nil, "cannot be negative"},
	}
	for _, c := range cases {
		got, err := c.parse(c.in)
		switch {
		case c.err == "" && err != nil:
			t.Errorf("%q: %v", c.in, err)
		case c.err == "" && got != c.want:
			t.Errorf("%q = %v, want %v", c.in, got, c.want)
		case c.err != "" && err == nil:
			t.Errorf("%q = %v, want an error with %q", c.in, got, c.err)
		case c.err != "" && !strings.Contains(err.Error(), c.err):
			t.Errorf("%q: error %q, want one with %q", c.in, err, c.err)
		}
	}
}

func TestString(t *testing.T) {
	cases := []struct {
		in   interface{ String() string }
		want string
	}{
		{Duration(0), "0s"},
		{75 * Microsecond, "75us"},
		{1500 * Nanosecond, "1.5us"},
		{100 * Nanosecond, "100ns"},
		{Duration(1234567), "1.234567us"},
		{90 * Second, "90s"},
		{90 * Minute, "90min"},
		{48 * Hour, "2d"},
		{-75 * Microsecond, "-75us"},
		{Forever, "9223372.036854775807s"},
		{Duration(math.MinInt64), "-9223372.036854775808s"},
		{Bytes(0), "0B"},
		{Bytes(512), "512B"},
		{Bytes(4096), "4KiB"},
		{Bytes(44000), "44KB"},
		{Bytes(1536), "1.5KiB"},
		{1000 * MiB, "1000MiB"},
		{256 * GiB, "256GiB"},
		{Bytes(math.MaxInt64), "9.223372036854775807EB"},
		{40 * Gbps, "40Gbps"},
		{Gbps * 5 / 2, "2.5Gbps"},
		{200 * MBPerSecond, "200MB/s"},
		{333 * MTPerSecond, "333MT/s"},
		{BitRate(0), "0bps"},
		{Fraction(0.07), "7%"},
		{Fraction(0.125), "12.5%"},
		{Fraction(1), "100%"},
		{Fraction(0), "0%"},
		{Fraction(1e-9), "0.0000001%"},
		{Fraction(1e-12), "1e-10%"},
		{Energy(42e-6), "42uJ"},
		{Energy(0), "0J"},
		{Energy(1500), "1.5kJ"},
		{Energy(1e-13), "0.1pJ"},
	}
	for _, c := range cases {
		if got := c.in.String(); got != c.want {
			t.Errorf("%T: got %q, want %q", c.in, got, c.want)
		}
	}
}

// TestTimeFor compares the 128-bit divisions with exact rational arithmetic.
func TestTimeFor(t *testing.T) {
	amounts := []int64{0, 1, 3, 512, 4096, 65537, 1 << 40, 1<<62 - 1, math.MaxInt64}
	rates := []int64{1, 3, 7, 333e6, 40e9, 1e12 + 7, math.MaxInt64}
	for _, n := range amounts {
		for _, r := range rates {
			exact := func(perUnit int64) int64 {
				x := new(big.Int).Mul(big.NewInt(n), big.NewInt(perUnit))
				x.Mul(x, big.NewInt(int64(Second)))
				x.Add(x, big.NewInt(r/2))
				x.Quo(x, big.NewInt(r))
				if !x.IsInt64() {
					return math.MaxInt64
				}
				return x.Int64()
			}
			if got, want := int64(ByteRate(r).TimeFor(Bytes(n))), exact(1); got != want {
				t.Errorf("ByteRate(%d).TimeFor(%d) = %d, want %d", r, n, got, want)
			}
			if got, want := int64(BitRate(r).TimeFor(Bytes(n))), exact(8); got != want {
				t.Errorf("BitRate(%d).TimeFor(%d) = %d, want %d", r, n, got, want)
			}
			if got, want := int64(TransferRate(r).TimeFor(n)), exact(1); got != want {
				t.Errorf("TransferRate(%d).TimeFor(%d) = %d, want %d", r, n, got, want)
			}
		}
	}
	if ByteRate(0).TimeFor(1) != Forever || ByteRate(0).TimeFor(0) != 0 || BitRate(-1).TimeFor(1) != Forever {
		t.Error("rate zero must take forever for something and no time for nothing")
	}
}

func TestFloatDurations(t *testing.T) {
	cases := []struct {
		in   float64
		want Duration
	}{
		{1.5, 1500 * Millisecond}, {math.NaN(), 0}, {math.Inf(1), Forever}, {math.Inf(-1), math.MinInt64}, {1e-12, 1},
		{4e-13, 0},
	}
	for _, c := range cases {
		if got := Seconds(c.in); got != c.want {
			t.Errorf("Seconds(%v) = %d, want %d", c.in, got, c.want)
		}
	}
	if got := (75 * Microsecond).Seconds(); got != 75e-6 {
		t.Errorf("Seconds() = %v", got)
	}
}

func TestTextRoundTripInJSON(t *testing.T) {
	type config struct {
		D Duration
		B Bytes
		L BitRate
		R ByteRate
		T TransferRate
		F Fraction
		E Energy
	}
	want := config{75 * Microsecond, 16 * KiB, 40 * Gbps, 200 * MBPerSecond, 333 * MTPerSecond, 0.07, 42e-6}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got config
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("got %+v, want %+v, through %s", got, want, text)
	}
	if err := json.Unmarshal([]byte(`{"L":"40"}`), &got); err == nil || !strings.Contains(err.Error(), "try 40Gbps") {
		t.Errorf("bare rate: %v", err)
	}
	if _, err := json.Marshal(Fraction(math.NaN())); err == nil {
		t.Error("NaN must not marshal")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"75us", "16KiB", "40Gbps", "7%", "1/3", "0.07", "42uJ", "1e3ns", "1_000B", "-5us",
		"9e999s", "µs", "1E", "200MB/s", "8GT/s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		defer patience.Limit()()
		if v, err := ParseDuration(s); err == nil {
			if back, err := ParseDuration(v.String()); err != nil || back != v {
				t.Errorf("%q: %d prints %s, which gives %d, %v", s, v, v, back, err)
			}
		}
		if v, err := ParseBytes(s); err == nil {
			if back, err := ParseBytes(v.String()); err != nil || back != v {
				t.Errorf("%q: %d prints %s, which gives %d, %v", s, v, v, back, err)
			}
		}
		if v, err := ParseBitRate(s); err == nil {
			if back, err := ParseBitRate(v.String()); err != nil || back != v {
				t.Errorf("%q: %d prints %s, which gives %d, %v", s, v, v, back, err)
			}
		}
		if v, err := ParseByteRate(s); err == nil {
			if back, err := ParseByteRate(v.String()); err != nil || back != v {
				t.Errorf("%q: %d prints %s, which gives %d, %v", s, v, v, back, err)
			}
		}
		if v, err := ParseTransferRate(s); err == nil {
			if back, err := ParseTransferRate(v.String()); err != nil || back != v {
				t.Errorf("%q: %d prints %s, which gives %d, %v", s, v, v, back, err)
			}
		}
		if v, err := ParseFraction(s); err == nil {
			if back, err := ParseFraction(v.String()); err != nil || back != v {
				t.Errorf("%q: %v prints %s, which gives %v, %v", s, float64(v), v, float64(back), err)
			}
		}
		if v, err := ParseEnergy(s); err == nil {
			if back, err := ParseEnergy(v.String()); err != nil || back != v {
				t.Errorf("%q: %v prints %s, which gives %v, %v", s, float64(v), v, float64(back), err)
			}
		}
	})
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	var sink Duration
	if n := testing.AllocsPerRun(100, func() { sink += ByteRate(333e6).TimeFor(4096) }); n != 0 {
		t.Errorf("TimeFor allocates %v times", n)
	}
	_ = sink
}
