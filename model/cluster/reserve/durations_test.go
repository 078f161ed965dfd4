package reserve

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"farflash/numeric/units"
	"farflash/sim"

	"pgregory.net/rapid"
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

// TestLimits verifies both sides of each setting's limits, and the errors.
func TestLimits(t *testing.T) {
	wide := func(c *Config) *int64 { c.WidthPercent = 140; return &c.WiderPercent }
	for _, x := range []struct {
		name string
		set  func(c *Config, v int64)
		may  []int64
		must []int64 // values that must be refused
		want string
	}{
		{"link", func(c *Config, v int64) { c.LinkRate = units.BitRate(v) }, []int64{100e9}, []int64{0, -1},
			"; it must be positive"},
		{"slow link", func(c *Config, v int64) { c.LinkRate = units.BitRate(v) }, []int64{2}, []int64{1}, "a link of "},
		{"overhead", func(c *Config, v int64) { c.OverheadPercent = v }, []int64{0, 99}, []int64{-1, 100},
			"it must be at least 0 and below 100"},
		{"reserved", func(c *Config, v int64) { c.ReservedPercent = v }, []int64{1, 100}, []int64{0, 101},
			"it must be above 0 and at most 100"},
		{"control", func(c *Config, v int64) { c.ControlSize = units.Bytes(v) }, []int64{1}, []int64{0, -1},
			"each must be positive"},
		{"frame", func(c *Config, v int64) { c.FrameSize = units.Bytes(v) }, []int64{1}, []int64{0, -1},
			"each must be positive"},
		{"chunk", func(c *Config, v int64) { c.ChunkSize = units.Bytes(v) }, []int64{1}, []int64{0, -1},
			"each must be positive"},
		{"trip", func(c *Config, v int64) { c.Trip = sim.Time(v) }, []int64{0}, []int64{-1}, "none may be negative"},
		{"lead", func(c *Config, v int64) { c.Lead = sim.Time(v) }, []int64{0}, []int64{-1}, "none may be negative"},
		{"gap", func(c *Config, v int64) { c.Gap = sim.Time(v) }, []int64{0}, []int64{-1}, "none may be negative"},
		{"replicas", func(c *Config, v int64) { c.Replicas = int(v) }, []int64{1, 9}, []int64{0, -1},
			"a chunk needs at least one"},
		{"group", func(c *Config, v int64) { c.Group = int(v) }, []int64{3}, []int64{2}, "a group needs at least as many"},
		{"width", func(c *Config, v int64) { c.WidthPercent = v }, []int64{100}, []int64{99}, "a bid must hold a chunk"},
		{"wider", func(c *Config, v int64) { *wide(c) = v }, []int64{0, 140}, []int64{139, -1}, "be no narrower"},
		{"disk", func(c *Config, v int64) { c.DiskRate = units.ByteRate(v) }, []int64{1}, []int64{0, -1},
			"it must be positive"},
		{"disk queue", func(c *Config, v int64) { c.DiskQueue = units.Bytes(v) }, []int64{0}, []int64{-1},
			"it must not be negative"},
		{"accept", func(c *Config, v int64) { c.Accept = AcceptRule(v) }, []int64{0, 2}, []int64{3}, "no accept rule 3"},
		{"rules", func(c *Config, v int64) { c.Rules = Rules(v) }, []int64{0, 1}, []int64{2}, "under rules 2"},
	} {
		for _, v := range append(x.may, x.must...) {
			c := DefaultConfig()
			if x.name == "slow link" {
				c.ReservedPercent = 50
			}
			x.set(&c, v)
			_, err := New(c)
			must := slices.Contains(x.must, v)
			if must != (err != nil) || must && !strings.Contains(err.Error(), x.want) {
				t.Errorf("%s of %d: %v", x.name, v, err)
			}
		}
	}
}

// TestWidthsAtEdges verifies where bids become wider, on a link on which a byte takes 1 ns, without trips.
func TestWidthsAtEdges(t *testing.T) {
	for _, x := range []struct {
		name                     string
		chunk                    units.Bytes
		set                      func(*Config)
		window, accepted, needed sim.Time // ns
	}{
		// 150 % of 16000 are 24000, as much as a chunk and a frame, and as three frames.
		{"just wide enough", 16000, func(c *Config) { c.WiderPercent = 200 }, 24000, 24000, 24000},
		{"too narrow", 15999, func(c *Config) { c.WiderPercent, c.Rules = 200, RulesHead }, 31998, 23999, 23999},
		{"no second width", 15999, nil, 23999 + 8000, 23999, 23999}, // slack for a common window
		{"no slack in the last build", 15999, func(c *Config) { c.Rules = RulesHead }, 23999, 23999, 23999},
		{"slack", 112000, nil, 168000, 128000, 120000}, // 48000 are 6 frames, of which a third is taken
		{"less slack", 111998, nil, 167997, 119998, 119998},
		{"three replicas", 100000, func(c *Config) { c.ReplicasInWindow = true }, 330000, 324000, 324000},
		{"three replicas in SURGE", 240000, func(c *Config) {
			c.ReplicasInWindow, c.Compat = true, true // 792000 are 744000 and 6 frames
		}, 792000, 240000 + 2*8000, 240000 + 2*8000},
		{"too little slack for that", 210000, func(c *Config) {
			c.ReplicasInWindow, c.Compat = true, true // 693000 are 654000 and 4 frames
		}, 693000, 654000, 654000},
		{"the window", 16000, func(c *Config) { c.Accept, c.Trip = AcceptWindow, 1000*ns }, 25500, 24500, 24000},
		{"the whole window", 16000, func(c *Config) { c.Accept, c.Trip = AcceptAll, 1000*ns }, 25500, 25500, 24000},
	} {
		c := DefaultConfig()
		c.LinkRate, c.OverheadPercent, c.ReservedPercent, c.Trip = 8*units.Gbps, 0, 100, 0
		c.FrameSize, c.ChunkSize, c.WidthPercent = 8000, x.chunk, 150
		if x.set != nil {
			x.set(&c)
		}
		d := mustNew(t, c)
		if d.Window != x.window*ns || d.Accepted != x.accepted*ns || d.Needed != x.needed*ns {
			t.Errorf("%s: bid of %v, accepted %v, needed %v; want %d, %d and %d ns", x.name, d.Window, d.Accepted, d.Needed,
				x.window, x.accepted, x.needed)
		}
	}
	c := DefaultConfig()
	c.Lead = 5 * units.Microsecond
	d := mustNew(t, c)
	first := 7*ns + 2*d.Control + d.Trip + 5*units.Microsecond
	if got := d.earliest(7*ns, first); got != first || d.earliest(7*ns, first+1) != first+1 {
		t.Errorf("the earliest window begins at %v, want %v", got, first)
	}
	if d.Write(400*units.MiB) != units.Second || d.Send(1000, units.Kbps) != 8*units.Second {
		t.Errorf("400 MiB take %v, 1000 B at 1 kb/s take %v", d.Write(400*units.MiB), d.Send(1000, units.Kbps))
	}
}

// TestMuldivAgainstBig compares products of 128 bits with math/big.
func TestMuldivAgainstBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, least int64) int64 {
			return max(least, rapid.Int64Range(0, 1<<63-1).Draw(t, name)>>rapid.IntRange(0, 62).Draw(t, "shift"))
		}
		x, a, more, b := draw("x", 0), draw("a", 0), draw("more", 0), draw("b", 1)
		want := new(big.Int).Mul(big.NewInt(x), big.NewInt(a))
		want, rest := want.Add(want, big.NewInt(more)).QuoRem(want, big.NewInt(b), new(big.Int))
		if !want.IsInt64() {
			want, rest = big.NewInt(int64(sim.Forever)), new(big.Int)
		}
		if q, r := muldivrem(x, a, more, b); q != want.Int64() || r != rest.Int64() {
			t.Fatalf("(%d*%d+%d)/%d is %d rest %d, want %v rest %v", x, a, more, b, q, r, want, rest)
		}
	})
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
