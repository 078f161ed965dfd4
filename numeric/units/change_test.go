package units_test

import (
	"testing"

	"farflash/numeric/units"
)

func TestChange(t *testing.T) {
	for text, want := range map[string]units.Change{"20%": 0.2, "+20%": 0.2, "-15%": -0.15, "0": 0, " -0.5 ": -0.5,
		"300%": 3, "-0": 0} {
		c, err := units.ParseChange(text)
		if err != nil || c != want {
			t.Errorf("%s is %v, %v", text, c, err)
		}
		if again, err := units.ParseChange(c.String()); err != nil || again != c {
			t.Errorf("%v is read back as %v, %v", c, again, err)
		}
	}
	for _, bad := range []string{"", "-", "--1%", "+-1%", "7", "x%", "-7"} {
		if c, err := units.ParseChange(bad); err == nil {
			t.Errorf("%q is %v", bad, c)
		}
	}
}
