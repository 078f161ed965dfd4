package spread_test

import (
	"testing"

	"farflash/model/fabric/spread"
	"farflash/numeric/units"
)

// TestValidate verifies that each field is refused beyond its limits, alone, and taken at them.
func TestValidate(t *testing.T) {
	random := spread.Config{Choice: spread.Random, Gap: 1, Table: 1}
	for _, x := range []struct {
		change func(*spread.Config)
		path   string // of the fault; empty: there is none
	}{
		{func(*spread.Config) {}, ""},
		{func(c *spread.Config) { *c = spread.DefaultConfig() }, ""},
		{func(c *spread.Config) { c.Per = spread.Flowlet }, ""},
		{func(c *spread.Config) { c.Choice = spread.LeastQueue }, ""},
		{func(c *spread.Config) { c.Choice = spread.LeastQueue + 1 }, "choice"},
		{func(c *spread.Config) { c.Per = spread.Flowlet + 1 }, "per"},
		{func(c *spread.Config) { c.Choice, c.Per = spread.Hash, spread.Flowlet }, "per"},
		{func(c *spread.Config) { c.Gap = 0 }, "gap"},
		{func(c *spread.Config) { c.Gap = -units.Second }, "gap"},
		{func(c *spread.Config) { c.Table = 1 << 20 }, ""},
		{func(c *spread.Config) { c.Table = 1<<20 + 1 }, "table"},
		{func(c *spread.Config) { c.Table = 0 }, "table"},
	} {
		c := random
		x.change(&c)
		faults := units.FieldErrors(c.Validate())
		if x.path == "" && len(faults) > 0 || x.path != "" && (len(faults) != 1 || faults[0].Path != x.path) {
			t.Errorf("%+v: %v; want a fault of %q", c, faults, x.path)
		}
	}
	if d := spread.DefaultConfig(); d.Gap != 100*units.Microsecond || d.Table != 65536 || d.Choice != spread.Hash {
		t.Errorf("the defaults are %+v", d)
	}
}

// TestReorders: only packets that choose for themselves overtake each other.
func TestReorders(t *testing.T) {
	for _, choice := range []spread.Choice{spread.Hash, spread.RoundRobin, spread.Random, spread.LeastQueue} {
		for _, per := range []spread.Unit{spread.Packet, spread.Flowlet} {
			c := spread.Config{Choice: choice, Per: per}
			if want := choice != spread.Hash && per == spread.Packet; c.Reorders() != want {
				t.Errorf("%v per %v: %v", choice, per, c.Reorders())
			}
		}
	}
}
