package units

import (
	"fmt"
	"math"
	"strconv"
)

// Energy is an energy in joules. It is not negative.
type Energy float64

// energyUnits lists the units of energy as powers of ten of a joule, from the smallest.
var energyUnits = []struct {
	name string
	exp  int
}{{"pJ", -12}, {"nJ", -9}, {"uJ", -6}, {"mJ", -3}, {"J", 0}, {"kJ", 3}, {"MJ", 6}}

// ParseEnergy parses an energy such as "42uJ", "1.5 mJ" or "3kWh".
func ParseEnergy(s string) (Energy, error) {
	const names = "pJ, nJ, uJ, mJ, J, kJ, MJ, Wh, kWh"
	number, name := split(s)
	if number == "" && name == "" {
		return 0, fmt.Errorf("empty energy; try 42uJ")
	}
	d, err := parseDecimal(number)
	if err != nil {
		return 0, fmt.Errorf("%q is not an energy: %w; try 42uJ", s, err)
	}
	if name == "" {
		if d.digits == "" {
			return 0, nil
		}
		return 0, fmt.Errorf("%q has no unit; try %suJ (units: %s)", s, number, names)
	}
	if name == "µJ" || name == "μJ" {
		name = "uJ"
	}
	joules, known := 1.0, false
	for _, u := range energyUnits {
		if u.name == name {
			d.exp += u.exp
			known = true
		}
	}
	switch name {
	case "Wh":
		joules, known = 3600, true
	case "kWh":
		joules, known = 3.6e6, true
	}
	if !known {
		return 0, fmt.Errorf("%q: unknown unit %q for an energy (units: %s)", s, name, names)
	}
	v, err := d.float()
	if err == nil && math.IsInf(v*joules, 0) {
		err = fmt.Errorf("out of range")
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not an energy: %w", s, err)
	}
	if d.negative && v != 0 {
		return 0, fmt.Errorf("%q: an energy cannot be negative", s)
	}
	return Energy(v * joules), nil
}

// String returns the largest unit with a number of at least 1, such as "42uJ"; it parses back exactly.
func (e Energy) String() string {
	v := float64(e)
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'g', -1, 64) + "J"
	}
	best := energyUnits[0]
	for _, u := range energyUnits {
		if math.Abs(v) >= tenTo(u.exp) {
			best = u
		}
	}
	return shift(v, -best.exp) + best.name
}

// tenTo returns the float64 nearest to 10^exp. strconv rounds correctly; math.Pow may not.
func tenTo(exp int) float64 {
	v, _ := strconv.ParseFloat("1e"+strconv.Itoa(exp), 64)
	return v
}

// MarshalText returns String; NaN and infinities are errors.
func (e Energy) MarshalText() ([]byte, error) {
	if v := float64(e); math.IsNaN(v) || math.IsInf(v, 0) {
		return nil, fmt.Errorf("invalid energy %v", v)
	}
	return []byte(e.String()), nil
}

func (e *Energy) UnmarshalText(text []byte) error {
	v, err := ParseEnergy(string(text))
	if err == nil {
		*e = v
	}
	return err
}
