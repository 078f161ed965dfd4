package reserve

import (
	"testing"

	"farflash/numeric/units"
	"farflash/sim"
)

func mustNew(t testing.TB, c Config) *Durations {
	t.Helper()
	d, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// surge returns a configuration with the paper's faults.
func surge(c Config, chunk units.Bytes) Config {
	c.Compat, c.ChunkSize = true, chunk
	return c
}

// TestWidths compares the widths of bids and of accepted windows with values computed by hand from the link's rate.
func TestWidths(t *testing.T) {
	head := func(c Config) Config { c.Rules = RulesHead; return c }
	narrow := DefaultConfig()
	narrow.ReplicasInWindow = true
	for _, c := range []struct {
		name             string
		config           Config
		window, accepted sim.Time // ns
	}{
		{"M 16K", surge(DefaultConfig(), 16*units.KiB), 30870, 22790},
		{"M 128K", surge(DefaultConfig(), 128*units.KiB), 166159, 125765},
		{"M 1M", surge(DefaultConfig(), units.MiB), 1319474, 1062682},
		{"M 16K head", surge(head(DefaultConfig()), 16*units.KiB), 22790, 22790},
		{"H 16K", surge(HybridConfig(), 16*units.KiB), 30870, 29870},
		{"H 16K head", surge(head(HybridConfig()), 16*units.KiB), 22790, 21790},
		{"H 128K", surge(HybridConfig(), 128*units.KiB), 130553, 129553},
		{"H 1M", surge(HybridConfig(), units.MiB), 1036730, 1035730},
		{"proxy 16K", surge(ProxyConfig(), 16*units.KiB), 22790, 22790},
		{"proxy 128K", surge(ProxyConfig(), 128*units.KiB), 166159, 166159},
		{"M unicast 128K", surge(narrow, 128*units.KiB), 391660, 377295},
		{"M unicast 1M", surge(narrow, units.MiB), 3110190, 1022282},
	} {
		d := mustNew(t, c.config)
		if d.Window != c.window*units.Nanosecond || d.Accepted != c.accepted*units.Nanosecond {
			t.Errorf("%s: bid of %v, accepted %v, want %v and %v", c.name, d.Window, d.Accepted,
				c.window*units.Nanosecond, c.accepted*units.Nanosecond)
		}
		if d.Needed != d.Accepted {
			t.Errorf("%s: a gateway takes %v of %v", c.name, d.Needed, d.Accepted)
		}
		c.config.Compat = false
		exact := mustNew(t, c.config)
		if c.name == "M unicast 1M" {
			// Three replicas and a third of the slack: SURGE counts only one replica.
			if want := 3*exact.Chunk +
				exact.Frame*((exact.Window-exact.least())/exact.Frame/3); exact.Accepted != want {
				t.Errorf("%s: accepted %v, want %v", c.name, exact.Accepted, want)
			}
			continue
		}
		if diff := exact.Window - d.Window; diff < 0 || diff > 10*units.Nanosecond {
			t.Errorf("%s: exact bid of %v beside SURGE's %v", c.name, exact.Window, d.Window)
		}
		if exact.Needed > exact.Accepted || exact.Needed < exact.Chunk || exact.Accepted > exact.Window {
			t.Errorf("%s: needed %v, accepted %v, bid %v", c.name, exact.Needed, exact.Accepted, exact.Window)
		}
	}
}

// TestTimes verifies single durations.
func TestTimes(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want sim.Time
	}{
		{"control 300 B at 0.99 Gb/s", mustNew(t, DefaultConfig()).Control, 2424242},
		{"the same in SURGE", mustNew(t, surge(DefaultConfig(), units.KiB)).Control, 2424000},
		{"control 100 B at 9.9 Gb/s", mustNew(t, UnicastConfig()).Control, 80808},
		{"frame at 8.91 Gb/s", mustNew(t, DefaultConfig()).Frame, 8080808},
		{"128K at 8.91 Gb/s", mustNew(t, DefaultConfig()).Chunk, 117685297},
		{"128K at 9.9 Gb/s", mustNew(t, UnicastConfig()).Chunk, 105916767},
		{"128K at 400 MiB/s", mustNew(t, DefaultConfig()).DiskChunk, 312500000},
		{"16K at 400 MiB/s in SURGE", mustNew(t, surge(DefaultConfig(), 16*units.KiB)).DiskChunk, 39062000},
		{"patience", mustNew(t, HybridConfig()).MaxBidWait, 6 * (2424242 + 1000000)},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	for chunk, want := range map[units.Bytes]int{16 * units.KiB: 16, 128 * units.KiB: 2, units.MiB: 2} {
		c := DefaultConfig()
		c.ChunkSize = chunk
		if got := mustNew(t, c).MaxDiskChunks; got != want {
			t.Errorf("%v: %d chunks may wait for a disk, want %d", chunk, got, want)
		}
	}
}

// TestRefused verifies that unworkable configurations are refused.
func TestRefused(t *testing.T) {
	for name, spoil := range map[string]func(*Config){
		"no link":           func(c *Config) { c.LinkRate = 0 },
		"all overhead":      func(c *Config) { c.OverheadPercent = 100 },
		"no data":           func(c *Config) { c.ReservedPercent = 0 },
		"no chunk":          func(c *Config) { c.ChunkSize = 0 },
		"negative trip":     func(c *Config) { c.Trip = -1 },
		"no replicas":       func(c *Config) { c.Replicas = 0 },
		"small group":       func(c *Config) { c.Group = 2 },
		"narrow bids":       func(c *Config) { c.WidthPercent = 99 },
		"wider is narrower": func(c *Config) { c.WiderPercent = 120 },
		"no disk":           func(c *Config) { c.DiskRate = 0 },
		"negative queue":    func(c *Config) { c.DiskQueue = -1 },
		"unknown rule":      func(c *Config) { c.Accept = 9 },
		"link too slow":     func(c *Config) { c.LinkRate = 1 },
	} {
		c := DefaultConfig()
		spoil(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: not refused", name)
		}
	}
}

func TestMuldiv(t *testing.T) {
	if q, r := muldivrem(7, 5, 3, 4); q != 9 || r != 2 {
		t.Errorf("(7*5+3)/4 is %d rest %d", q, r)
	}
	if q := muldiv(sim.Forever, 3, 2); q != sim.Forever {
		t.Errorf("too large a quotient is %v", q)
	}
	if q := muldiv(sim.Forever, 1<<62, 1<<62); q != sim.Forever {
		t.Errorf("a product of 125 bits over 62 is %v", q)
	}
}
