package units_test

import (
	"testing"

	"farflash/numeric/units"
)

func TestMoney(t *testing.T) {
	for _, c := range []struct {
		text string
		want units.Money
	}{{"$2700", 2700}, {"2700 USD", 2700}, {"0.10", 0.1}, {"2_700", 2700}, {"$ 12", 12}, {"0", 0}} {
		m, err := units.ParseMoney(c.text)
		if err != nil || m != c.want {
			t.Errorf("%s is %v, %v", c.text, m, err)
		}
		if again, err := units.ParseMoney(m.String()); err != nil || again != m {
			t.Errorf("%v is read back as %v, %v", m, again, err)
		}
	}
	for _, bad := range []string{"", "$", "-1", "12 dollars", "NaN", "x", "2,700", "Inf", "2700 EUR", "2700EUR",
		"USD"} {
		if m, err := units.ParseMoney(bad); err == nil {
			t.Errorf("%q is %v", bad, m)
		}
	}
}
