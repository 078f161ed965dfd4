package units_test

import (
	"math"
	"testing"

	"farflash/numeric/units"
)

func TestDays(t *testing.T) {
	for _, c := range []struct {
		text  string
		want  units.Days
		again string
	}{{"5y", 1825, "5y"}, {"36mo", 1095, "3y"}, {"30 d", 30, "30d"}, {"12h", 0.5, "0.5d"}, {"0", 0, "0d"},
		{"1.5y", 547.5, "547.5d"}, {"730d", 730, "2y"}} {
		d, err := units.ParseDays(c.text)
		if err != nil || math.Abs(float64(d-c.want)) > 1e-9 || d.String() != c.again {
			t.Errorf("%s is %v, %v; want %s", c.text, d, err, c.again)
		}
		var back units.Days
		if text, _ := d.MarshalText(); back.UnmarshalText(text) != nil || back != d {
			t.Errorf("%s comes back as %v", text, back)
		}
	}
	for _, bad := range []string{"", "5", "y", "-1d", "5 years", "NaNy", "Infd", "1e308y", "365"} {
		if d, err := units.ParseDays(bad); err == nil {
			t.Errorf("%q is %v", bad, d)
		}
	}
}
