package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Days is a span of calendar time, beyond the range of a Duration: "5y" of 365 days, "36mo" of a twelfth of that,
// "30d", "12h".
type Days float64

// DaysPerYear and DaysPerMonth are the conventions of vendors and bills.
const (
	DaysPerYear  = 365.0
	DaysPerMonth = DaysPerYear / 12
)

// dayUnits are the units of Days, longest name first.
var dayUnits = []struct {
	name string
	days float64
}{{"mo", DaysPerMonth}, {"y", DaysPerYear}, {"d", 1}, {"h", 1.0 / 24}}

// parseDays parses a span.
func parseDays(s string) (Days, error) {
	t := strings.TrimSpace(s)
	if t == "0" {
		return 0, nil
	}
	for _, u := range dayUnits {
		if number, ok := strings.CutSuffix(t, u.name); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			if v *= u.days; err == nil && v >= 0 && !math.IsInf(v, 1) {
				return Days(v), nil
			}
		}
	}
	return 0, fmt.Errorf("%q is not a span of time; try 5y, 36mo, 30d or 12h", s)
}

// String returns the span in years or days.
func (d Days) String() string {
	if y := float64(d) / DaysPerYear; y >= 1 && y == math.Trunc(y) {
		return strconv.FormatFloat(y, 'f', -1, 64) + "y"
	}
	return strconv.FormatFloat(float64(d), 'f', -1, 64) + "d"
}

// Wanted describes the expected text for error messages.
func (Days) Wanted() string { return "a span of time such as 5y, 36mo, 30d or 12h" }

func (d Days) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d *Days) UnmarshalText(text []byte) (err error) {
	*d, err = parseDays(string(text))
	return err
}
