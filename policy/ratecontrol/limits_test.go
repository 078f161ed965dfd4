package ratecontrol_test

import (
	"math"
	"strings"
	"testing"

	"farflash/numeric/units"
	"farflash/policy/ratecontrol"
)

// TestLimits checks each bound of each setting from both sides.
func TestLimits(t *testing.T) {
	const us, s = units.Microsecond, units.Second
	for _, x := range []struct {
		key       string
		good, bad []func(*ratecontrol.Config)
	}{
		{"weight_ratio",
			[]func(*ratecontrol.Config){func(c *ratecontrol.Config) { c.WeightRatio = 1 },
				func(c *ratecontrol.Config) { c.WeightRatio = 10000 }},
			[]func(*ratecontrol.Config){func(c *ratecontrol.Config) { c.WeightRatio = 0 },
				func(c *ratecontrol.Config) { c.WeightRatio = 10001 }}},
		{"partition",
			[]func(*ratecontrol.Config){func(c *ratecontrol.Config) { c.Partition = ratecontrol.Always }},
			[]func(*ratecontrol.Config){func(c *ratecontrol.Config) { c.Partition = ratecontrol.Always + 1 }}},
		{"max_ratio",
			[]func(*ratecontrol.Config){func(c *ratecontrol.Config) { c.MaxRatio = 1 },
				func(c *ratecontrol.Config) { c.MaxRatio = 10000 }},
			[]func(*ratecontrol.Config){func(c *ratecontrol.Config) { c.MaxRatio = 0 },
				func(c *ratecontrol.Config) { c.MaxRatio = 10001 }}},
		{"window",
			[]func(*ratecontrol.Config){func(c *ratecontrol.Config) { c.Window = 10 * us },
				func(c *ratecontrol.Config) { c.Window = 100 * s }},
			[]func(*ratecontrol.Config){func(c *ratecontrol.Config) { c.Window = 10*us - 1 },
				func(c *ratecontrol.Config) { c.Window = 100*s + 1 }}},
		{"interval",
			[]func(*ratecontrol.Config){func(c *ratecontrol.Config) { c.Interval = us },
				func(c *ratecontrol.Config) { c.Interval = 100 * s }},
			[]func(*ratecontrol.Config){func(c *ratecontrol.Config) { c.Interval = us - 1 },
				func(c *ratecontrol.Config) { c.Interval = 100*s + 1 }}},
		{"tolerance",
			[]func(*ratecontrol.Config){func(c *ratecontrol.Config) { c.Tolerance = 0 },
				func(c *ratecontrol.Config) { c.Tolerance = 1 }},
			[]func(*ratecontrol.Config){func(c *ratecontrol.Config) { c.Tolerance = -1e-9 },
				func(c *ratecontrol.Config) { c.Tolerance = 1.0000001 },
				func(c *ratecontrol.Config) { c.Tolerance = units.Fraction(math.NaN()) }}},
		{"model",
			[]func(*ratecontrol.Config){func(c *ratecontrol.Config) { c.Model = "x" }},
			[]func(*ratecontrol.Config){func(c *ratecontrol.Config) { c.Model = "" }}},
		{"headroom",
			[]func(*ratecontrol.Config){func(c *ratecontrol.Config) { c.Headroom = 1e-9 },
				func(c *ratecontrol.Config) { c.Headroom = 1000 }},
			[]func(*ratecontrol.Config){func(c *ratecontrol.Config) { c.Headroom = 0 },
				func(c *ratecontrol.Config) { c.Headroom = 1000.001 },
				func(c *ratecontrol.Config) { c.Headroom = math.NaN() }}},
		{"yield",
			[]func(*ratecontrol.Config){func(c *ratecontrol.Config) { c.Yield = 1e-9 },
				func(c *ratecontrol.Config) { c.Yield = 1 }},
			[]func(*ratecontrol.Config){func(c *ratecontrol.Config) { c.Yield = 0 },
				func(c *ratecontrol.Config) { c.Yield = 1.0000001 },
				func(c *ratecontrol.Config) { c.Yield = units.Fraction(math.NaN()) }}},
		{"demands[0].at",
			[]func(*ratecontrol.Config){func(c *ratecontrol.Config) {
				c.Demands = []ratecontrol.Demanded{{At: 0,
					Rate: 1}, {At: 1, Rate: 1}}
			}},
			[]func(*ratecontrol.Config){func(c *ratecontrol.Config) {
				c.Demands = []ratecontrol.Demanded{{At: -1,
					Rate: 1}}
			}}},
		{"demands[1].at", nil,
			[]func(*ratecontrol.Config){func(c *ratecontrol.Config) {
				c.Demands = []ratecontrol.Demanded{{At: 1,
					Rate: 1}, {At: 1, Rate: 1}}
			}}},
		{"demands[1].rate", nil,
			[]func(*ratecontrol.Config){func(c *ratecontrol.Config) {
				c.Demands = []ratecontrol.Demanded{{At: 0,
					Rate: 1}, {At: 1, Rate: 0}}
			}}},
	} {
		for i, change := range x.good {
			c := ratecontrol.DefaultConfig()
			change(&c)
			if err := c.Validate(); err != nil {
				t.Errorf("%s, possible value %d: %v", x.key, i, err)
			}
		}
		for i, change := range x.bad {
			c := ratecontrol.DefaultConfig()
			change(&c)
			if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), x.key+": ") {
				t.Errorf("%s, impossible value %d: %v", x.key, i, err)
			}
			if _, err := ratecontrol.New(c, nil); err == nil {
				t.Errorf("%s, impossible value %d: there is a controller with it", x.key, i)
			}
		}
	}
}

// TestKinds verifies that every kind has a name that round-trips, and a controller except for none, which starts with
// the expected weights.
func TestKinds(t *testing.T) {
	for _, x := range []struct {
		kind  ratecontrol.Kind
		ratio int
	}{{ratecontrol.Static, 7}, {ratecontrol.AIMD, 1}, {ratecontrol.SRC, 1}, {ratecontrol.Reserve, 1},
		{ratecontrol.Paced, 1}} {
		text, err := x.kind.MarshalText()
		var back ratecontrol.Kind
		if err != nil || back.UnmarshalText(text) != nil || back != x.kind || x.kind.String() != string(text) {
			t.Errorf("%v is written %q and read as %v, %v", x.kind, text, back, err)
		}
		c := newController(t, func(c *ratecontrol.Config) {
			c.Kind, c.WeightRatio, c.Partition = x.kind, 7, ratecontrol.Always
		}, table{1}, table{1})
		s := steering(2)
		c.Start(s)
		// Those without weights have the whole depth for whatever their limits let in.
		weighs := x.kind != ratecontrol.Reserve && x.kind != ratecontrol.Paced
		if (s.Partition == ratecontrol.Always) != weighs {
			t.Errorf("%v: the partition is %v", x.kind, s.Partition)
		}
		for d, w := range s.Weights {
			if w.Read != 1 || w.Write != x.ratio || w.Ratio() != float64(x.ratio) {
				t.Errorf("%v: drive %d begins with %+v", x.kind, d, w)
			}
		}
	}
	c := ratecontrol.DefaultConfig()
	if ctl, err := ratecontrol.New(c, nil); ctl != nil || err != nil {
		t.Errorf("without a kind there is %v, %v", ctl, err)
	}
}
