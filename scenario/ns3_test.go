package scenario

import (
	"testing"

	"farflash/numeric/units"
)

// TestNS3Seconds compares the conversion of times with ns-3's: the result is below the decimal whenever the float64 is.
func TestNS3Seconds(t *testing.T) {
	for _, c := range []struct{ in, want units.Duration }{
		{2 * units.Second, 2 * units.Second},
		{2*units.Second + 540*units.Nanosecond, 2*units.Second + 540*units.Nanosecond},
		{2*units.Second + 500*units.Millisecond, 2*units.Second + 500*units.Millisecond},
		{2*units.Second + 999*units.Picosecond, 2 * units.Second},
		{100 * units.Millisecond, 100 * units.Millisecond},
	} {
		got := ns3Seconds(c.in)
		if got != c.want && got != c.want-units.Nanosecond {
			t.Errorf("%v becomes %v, want %v or a nanosecond less", c.in, got, c.want)
		}
	}
}
