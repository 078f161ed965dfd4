package ftl_test

import (
	"testing"

	"farflash/numeric/units"
	"farflash/policy/ftl"
)

// TestLimits verifies both sides of each numeric limit: the last valid value is accepted, and the first invalid one is
// refused with its key.
func TestLimits(t *testing.T) {
	for _, l := range []struct {
		key       string
		set       func(c *ftl.Config, v float64)
		may, must []float64
	}{
		{"pools", func(c *ftl.Config, v float64) { c.Pools = int(v) }, []float64{1, 2}, []float64{0, -1}},
		{"pages_per_block", func(c *ftl.Config, v float64) { c.BlocksPerPool, c.PagesPerBlock = 20, int(v) },
			[]float64{2, 1 << 24}, []float64{1, 1<<24 + 1}},
		{"blocks_per_pool", func(c *ftl.Config, v float64) { c.BlocksPerPool, c.PagesPerBlock = int(v), 2 },
			[]float64{5, 1 << 30}, []float64{1, 4, 1<<30 + 1}},
		{"streams", func(c *ftl.Config, v float64) { c.Streams, c.Survivors = int(v), nil }, []float64{1, 127},
			[]float64{0, 256}},
		{"survivors", func(c *ftl.Config, v float64) { c.Streams, c.Survivors = 2, make([]int, int(v)) },
			[]float64{2, 255}, []float64{1, 256}},
		{"survivors[0]", func(c *ftl.Config, v float64) { c.Survivors = []int{int(v), 1} }, []float64{0, 1},
			[]float64{-1, 2}},
		{"victim", func(c *ftl.Config, v float64) { c.Victim = ftl.Victim(v) },
			[]float64{float64(ftl.Greedy), float64(ftl.RandomYield)}, []float64{float64(ftl.RandomYield) + 1}},
		{"yield", func(c *ftl.Config, v float64) { c.PagesPerBlock, c.Yield = 8, int(v) }, []float64{0, 8},
			[]float64{-1, 9}},
		{"choices", func(c *ftl.Config, v float64) { c.Victim, c.Choices = ftl.DChoices, int(v) }, []float64{1},
			[]float64{0}},
		{"choices", func(c *ftl.Config, v float64) { c.Victim, c.Choices = ftl.Greedy, int(v) }, []float64{0, -1}, nil},
		{"window", func(c *ftl.Config, v float64) { c.Victim, c.Window = ftl.WindowedGreedy, units.Fraction(v) },
			[]float64{0, 1}, []float64{-.01, 1.01}},
		{"window", func(c *ftl.Config, v float64) { c.Victim, c.Window = ftl.Greedy, units.Fraction(v) },
			[]float64{2}, nil},
		{"host_reserve", func(c *ftl.Config, v float64) { c.HostReserve, c.GCStart = int(v), int(v)+1 },
			[]float64{1, 2}, []float64{0, -1}},
		{"gc_start", func(c *ftl.Config, v float64) { c.HostReserve, c.GCStart = 3, int(v) }, []float64{4},
			[]float64{3, 2}},
		{"gc_hard", func(c *ftl.Config, v float64) { c.GCHard = int(v) }, []float64{0, 1}, []float64{-1}},
		{"concurrent", func(c *ftl.Config, v float64) { c.Concurrent = int(v) }, []float64{1, 1 << 16},
			[]float64{0, 1<<16 + 1}},
		{"static_wear", func(c *ftl.Config, v float64) { c.StaticWear = int(v) }, []float64{0, 1}, []float64{-1}},
		{"erase_limit", func(c *ftl.Config, v float64) { c.EraseLimit = int(v) }, []float64{0, 1},
			[]float64{-1, 1 << 30}},
		{"quirks.host_stop",
			func(c *ftl.Config, v float64) {
				c.GCStart, c.HostReserve, c.Quirks.HostStop = 5, 1,
					int(v)
			}, []float64{0, 5}, []float64{-1, 6}},
		{"fast.streams", func(c *ftl.Config, v float64) {
			c.Streams, c.Fast = 2,
				ftl.Fast{Streams: int(v), Pages: 3, Most: 2}
		}, []float64{0, 1, 2}, []float64{-1, 3}},
		{"fast.pages", func(c *ftl.Config, v float64) { c.Fast = ftl.Fast{Streams: 1, Pages: int(v), Most: 2} },
			[]float64{1, 255}, []float64{0, 256}},
		{"fast.most", func(c *ftl.Config, v float64) { c.Fast = ftl.Fast{Streams: 1, Pages: 3, Most: int(v)} },
			[]float64{1, 600}, []float64{0, 601}},
		{"fast.least", func(c *ftl.Config,
			v float64) {
			c.Fast = ftl.Fast{Streams: 1, Pages: 3, Most: 4, Least: int(v)}
		}, []float64{0, 4}, []float64{-1, 5}},
		{"fast", func(c *ftl.Config, v float64) {
			c.Fast, c.Quirks.OpenAtOnce = ftl.Fast{Streams: int(v), Pages: 3, Most: 4}, true
		}, []float64{0}, []float64{1}},
		{"survivors", func(c *ftl.Config, v float64) {
			c.Streams, c.Survivors, c.Fast = 2, []int{int(v), 2, 2}, ftl.Fast{Streams: 1, Pages: 3, Most: 4}
		}, []float64{1, 2}, []float64{0}},
	} {
		for i, v := range append(append([]float64(nil), l.may...), l.must...) {
			cfg := ftl.DefaultConfig()
			cfg.Pools, cfg.HostReserve, cfg.GCStart, cfg.GCHard = 1, 1, 2, 0
			if l.key != "blocks_per_pool" {
				cfg.BlocksPerPool = 600
			}
			l.set(&cfg, v)
			err := cfg.Validate()
			if i < len(l.may) {
				if err != nil {
					t.Errorf("%s of %v: %v", l.key, v, err)
				}
				continue
			}
			named := false
			for _, e := range units.FieldErrors(err) {
				named = named || e.Path == l.key
			}
			if !named {
				t.Errorf("%s of %v: error %v, want one of the key", l.key, v, err)
			}
		}
	}
}
