package ssd_test

import (
	"math"
	"strings"
	"testing"

	"farflash/model/ssd"
	"farflash/model/ssd/nand"
	"farflash/numeric/units"
)

// limit is the valid range of a key: the values at its ends, and those just beyond.
type limit struct {
	key  string
	set  func(c *ssd.Config, v float64)
	may  []float64
	must []float64 // values that must be rejected
}

// TestLimits verifies both sides of each numeric limit: the last valid value is accepted, and the first invalid one is
// rejected with its key.
func TestLimits(t *testing.T) {
	const most = 1 << 30
	above, below := func(x float64) float64 { return math.Nextafter(x, 2*x+1) },
		func(x float64) float64 { return math.Nextafter(x, -1) }
	for _, l := range []limit{
		{"over_provisioning", func(c *ssd.Config, v float64) { c.OverProvisioning = units.Fraction(v) },
			[]float64{.1, .99}, []float64{0, 1, -.1, math.NaN()}},
		{"host", func(c *ssd.Config, v float64) { c.Host.Lanes = int(v) }, []float64{1, 32}, []float64{0, 33}},
		{"host", func(c *ssd.Config, v float64) { c.Host.LaneRate = units.ByteRate(v) }, []float64{1e6},
			[]float64{1e6 - 1, 0}},
		{"host.max_payload", func(c *ssd.Config, v float64) { c.Host.MaxPayload = int(v) }, []float64{1}, []float64{0}},
		{"host.max_payload", func(c *ssd.Config, v float64) { c.Host.PacketBytes = int(v) }, []float64{0, 4096},
			[]float64{-1, 4097}},
		{"host.fetch_size", func(c *ssd.Config, v float64) { c.Host.FetchSize = int(v) }, []float64{1, 65536},
			[]float64{0, 65537}},
		{"host.commands", func(c *ssd.Config, v float64) { c.Host.Commands = int(v) }, []float64{0, 1, most},
			[]float64{-1, most + 1}},
		{"host.burst", func(c *ssd.Config, v float64) { c.Host.Burst = int(v) }, []float64{1, 65536},
			[]float64{0, 65537}},
		{"host.weights", func(c *ssd.Config, v float64) { c.Host.Weights[0] = int(v) }, []float64{1, 256},
			[]float64{0, 257}},
		{"host.weights", func(c *ssd.Config, v float64) { c.Host.Weights[1] = int(v) }, []float64{1, 256},
			[]float64{0, 257}},
		{"host.weights", func(c *ssd.Config, v float64) { c.Host.Weights[2] = int(v) }, []float64{1, 256},
			[]float64{0, 257}},
		{"host.submission_depth", func(c *ssd.Config, v float64) { c.Host.SubmissionDepth = int(v) },
			[]float64{2, 65536}, []float64{1, 65537}},
		{"dram", func(c *ssd.Config, v float64) { c.DRAM.RowSize = units.Bytes(v) }, []float64{1}, []float64{0}},
		{"dram", func(c *ssd.Config, v float64) { c.DRAM.BurstSize = units.Bytes(v) }, []float64{1}, []float64{0}},
		{"dram", func(c *ssd.Config, v float64) { c.DRAM.TRCD = units.Duration(v) }, []float64{0, 100e12},
			[]float64{-1, 100e12 + 1}},
		{"dram", func(c *ssd.Config, v float64) { c.DRAM.TCL = units.Duration(v) }, []float64{0, 100e12},
			[]float64{-1, 100e12 + 1}},
		{"dram", func(c *ssd.Config, v float64) { c.DRAM.TRP = units.Duration(v) }, []float64{0, 100e12},
			[]float64{-1, 100e12 + 1}},
		{"dram.data_rate", func(c *ssd.Config, v float64) { c.DRAM.DataRate = units.TransferRate(v) }, []float64{1e6},
			[]float64{1e6 - 1}},
		{"cache.capacity", func(c *ssd.Config, v float64) { c.Cache.Capacity = units.Bytes(v) }, []float64{8192},
			[]float64{8191, -1}},
		{"cache.capacity", func(c *ssd.Config, v float64) {
			c.Cache.Mode, c.Cache.Capacity = ssd.CacheOff,
				units.Bytes(v)
		}, []float64{0, 8191}, []float64{-1}},
		{"cache.destage_at", func(c *ssd.Config, v float64) { c.Cache.DestageAt = units.Fraction(v) },
			[]float64{0, below(1)}, []float64{-.1, 1}},
		{"cache.destage_depth", func(c *ssd.Config, v float64) { c.Cache.DestageDepth = int(v) }, []float64{0, 1},
			[]float64{-1}},
		{"controller.processors",
			func(c *ssd.Config, v float64) {
				c.Controller = &ssd.Controller{Processors: int(v),
					Command: 1}
			}, []float64{1, 256}, []float64{0, 257}},
		{"controller.command", func(c *ssd.Config, v float64) {
			c.Controller = &ssd.Controller{Processors: 1, Command: units.Duration(v)}
		}, []float64{1, 1e12}, []float64{0, -1, 1e12 + 1}},
		{"controller.completion", func(c *ssd.Config, v float64) {
			c.Controller = &ssd.Controller{Processors: 1, Command: 1, Completion: units.Duration(v)}
		}, []float64{0, 1e12}, []float64{-1, 1e12 + 1}},
		{"power_states[0].after",
			func(c *ssd.Config, v float64) { c.PowerStates = []ssd.PowerState{{After: units.Duration(v)}} },
			[]float64{1, 100e12}, []float64{0, 100e12 + 1}},
		{"power_states[1].after", func(c *ssd.Config, v float64) {
			c.PowerStates = []ssd.PowerState{{After: 10, Entry: 5}, {After: units.Duration(v)}}
		}, []float64{15}, []float64{14}},
		{"power_states[0].entry",
			func(c *ssd.Config, v float64) {
				c.PowerStates = []ssd.PowerState{{After: 1,
					Entry: units.Duration(v)}}
			}, []float64{0, 100e12}, []float64{-1, 100e12 + 1}},
		{"power_states[0].exit",
			func(c *ssd.Config, v float64) {
				c.PowerStates = []ssd.PowerState{{After: 1,
					Exit: units.Duration(v)}}
			}, []float64{0, 100e12}, []float64{-1, 100e12 + 1}},
		{"power_states[0].watts", func(c *ssd.Config, v float64) {
			c.Energy, c.PowerStates = &ssd.Energy{Idle: 5}, []ssd.PowerState{{After: 1, Watts: v}}
		}, []float64{0, 5}, []float64{-1, 5.1}},
		{"power_states[0].watts",
			func(c *ssd.Config, v float64) {
				c.PowerStates = []ssd.PowerState{{After: 1,
					Watts: v}}
			}, []float64{0}, []float64{1}},
		{"power_limit.watts", func(c *ssd.Config, v float64) {
			c.Energy, c.PowerLimit = &ssd.Energy{Idle: 5}, &ssd.PowerLimit{Watts: v}
		}, []float64{5.001, 1e6}, []float64{5, -1, 1e6 + 1}},
		{"power_limit.window", func(c *ssd.Config, v float64) {
			c.Energy, c.PowerLimit = &ssd.Energy{}, &ssd.PowerLimit{Watts: 1, Window: units.Duration(v)}
		}, []float64{0, 100e12}, []float64{-1, 100e12 + 1}},
		{"power_limit", func(c *ssd.Config, v float64) { c.PowerLimit = &ssd.PowerLimit{Watts: v} }, nil, []float64{1}},
		{"slc_cache.read_latency", withSLC(func(s *ssd.SLCCache, v float64) { s.ReadLatency = units.Duration(v) }),
			[]float64{1, 1e12}, []float64{0, 1e12 + 1}},
		{"slc_cache.program_latency",
			withSLC(func(s *ssd.SLCCache, v float64) { s.ProgramLatency = units.Duration(v) }), []float64{1, 1e12},
			[]float64{0, 1e12 + 1}},
		{"slc_cache.idle_after", withSLC(func(s *ssd.SLCCache, v float64) { s.IdleAfter = units.Duration(v) }),
			[]float64{0, 100e12}, []float64{-1, 100e12 + 1}},
		{"slc_cache.capacity", withSLC(func(s *ssd.SLCCache, v float64) { s.Capacity = units.Bytes(v) }),
			[]float64{1 << 40}, []float64{0, -1, 1 << 20}},
		{"slc_cache.reserved", withSLC(func(s *ssd.SLCCache, v float64) { s.Reserved = units.Bytes(v) }),
			[]float64{0}, []float64{-1, 1 << 20, 1 << 40, 1 << 60}},
		{"zones.capacity", withZones(func(z *ssd.Zones, v float64) { z.Capacity = units.Bytes(v) }),
			[]float64{0, superblock, 2 * superblock}, []float64{-1, 1, superblock + 8192, 1e18}},
		{"zones.size", withZones(func(z *ssd.Zones, v float64) { z.Size = units.Bytes(v) }),
			[]float64{0, superblock, superblock + 8192}, []float64{-1, superblock - 8192, superblock + 512, 1e18}},
		{"zones.max_open", withZones(func(z *ssd.Zones, v float64) { z.MaxOpen = int(v) }), []float64{1, 4},
			[]float64{0, 5}},
		{"zones", withZones(func(z *ssd.Zones, v float64) { z.MaxActive, z.MaxOpen = int(v), 1 }), []float64{1, 100},
			[]float64{-1}},
		{"zones.max_append", withZones(func(z *ssd.Zones, v float64) { z.MaxAppend = units.Bytes(v) }),
			[]float64{0, 8192}, []float64{8191, -1}},
		{"cache.mode", func(c *ssd.Config, v float64) { withZones(nil)(c, 0); c.Cache.Mode = ssd.CacheMode(v) },
			[]float64{1, 3}, []float64{0, 2}},
		{"preconditioning.fill",
			func(c *ssd.Config, v float64) {
				withZones(nil)(c,
					0)
				c.Preconditioning.Fill = ssd.Fill(v)
			}, []float64{0, 1}, []float64{2, 3}},
		{"namespaces[1].streams", func(c *ssd.Config, v float64) {
			withZones(nil)(c, 0)
			c.Namespaces = []ssd.Namespace{{Conventional: true, Streams: 4}, {Streams: int(v)}}
		}, []float64{0, 1}, []float64{2}},
		{"zones", func(c *ssd.Config, v float64) {
			withZones(nil)(c, 0)
			c.Namespaces = []ssd.Namespace{{Conventional: v > 0}, {Conventional: true}}
		}, []float64{0}, []float64{1}},
		{"fdp.handles", func(c *ssd.Config, v float64) { c.FDP = &ssd.FDP{Handles: int(v), Groups: 1} },
			[]float64{1, ssd.MaxHandles}, []float64{0, ssd.MaxHandles + 1}},
		{"fdp.groups", func(c *ssd.Config, v float64) { c.FDP = &ssd.FDP{Handles: 4, Groups: int(v)} },
			[]float64{1, 64}, []float64{0, 3, 128}},
		{"fdp.groups", func(c *ssd.Config, v float64) { c.FDP = &ssd.FDP{Handles: int(v), Groups: 64} }, []float64{4},
			[]float64{5}},
		{"fdp.groups", func(c *ssd.Config, v float64) {
			c.FDP, c.Quirks.WholeChip = &ssd.FDP{Handles: 4, Groups: int(v)}, true
		}, []float64{1}, []float64{2}},
		{"namespaces[1]", func(c *ssd.Config, v float64) {
			c.FDP, c.Namespaces = &ssd.FDP{Handles: 4, Groups: int(v)}, []ssd.Namespace{{}, {Dies: []int{0}}}
		}, []float64{1}, []float64{2}},
		{"fdp.isolation", func(c *ssd.Config,
			v float64) {
			c.FDP = &ssd.FDP{Handles: 2, Groups: 1, Isolation: ssd.Isolation(v)}
		}, []float64{0, 1}, []float64{2}},
		{"namespaces[0].handles", func(c *ssd.Config, v float64) {
			c.FDP, c.Namespaces = &ssd.FDP{Handles: 4, Groups: 1}, []ssd.Namespace{{Handles: []int{0, int(v)}}}
		}, []float64{1, 3}, []float64{-1, 0, 4}},
		{"namespaces[0].handles",
			func(c *ssd.Config, v float64) { c.Namespaces = []ssd.Namespace{{Handles: []int{int(v)}}} }, nil,
			[]float64{0}},
		{"collection.streams",
			func(c *ssd.Config, v float64) {
				c.FDP, c.Collection.Streams = &ssd.FDP{Handles: 4, Groups: 1},
					v > 0
			}, []float64{0}, []float64{1}},
		{"fdp", func(c *ssd.Config, v float64) { withZones(nil)(c, 0); c.FDP = &ssd.FDP{Handles: int(v), Groups: 1} },
			nil, []float64{4}},
		{"namespaces[0].conventional",
			func(c *ssd.Config, v float64) {
				c.Namespaces = []ssd.Namespace{{Conventional: v >
					0}}
			}, []float64{0}, []float64{1}},
		{"collection.start",
			func(c *ssd.Config, v float64) {
				c.Collection.Hard, c.Collection.Start = 0,
					units.Fraction(v)
			}, []float64{.01, .1}, []float64{0, 1}},
		{"collection.hard", func(c *ssd.Config, v float64) {
			c.Collection.Start, c.Collection.Hard = .05,
				units.Fraction(v)
		}, []float64{0, .05}, []float64{-.01, above(.05)}},
		{"collection.concurrent", func(c *ssd.Config, v float64) { c.Collection.Concurrent = int(v) },
			[]float64{1, 64}, []float64{0, 65}},
		{"collection.moves_per_plane", func(c *ssd.Config, v float64) { c.Collection.MovesPerPlane = v },
			[]float64{.001, 1000}, []float64{0, -1, 1001}},
		{"collection.reserve", func(c *ssd.Config, v float64) { c.Collection.Reserve = int(v) }, []float64{1, 2},
			[]float64{0, -1, 2048}},
		{"collection.choices", func(c *ssd.Config, v float64) { c.Collection.Choices = int(v) },
			[]float64{0, 1, 2048}, []float64{-1, 2049}},
		{"collection.window", func(c *ssd.Config, v float64) { c.Collection.Window = units.Fraction(v) },
			[]float64{0, 1}, []float64{-.1, 1.1}},
		{"energy", func(c *ssd.Config, v float64) { c.Energy = &ssd.Energy{Read: units.Energy(v)} },
			[]float64{0, 1000}, []float64{-1, 1001}},
		{"energy", func(c *ssd.Config, v float64) { c.Energy = &ssd.Energy{Program: units.Energy(v)} },
			[]float64{0, 1000}, []float64{-1, 1001}},
		{"energy", func(c *ssd.Config, v float64) { c.Energy = &ssd.Energy{Erase: units.Energy(v)} },
			[]float64{0, 1000}, []float64{-1, 1001}},
		{"energy", func(c *ssd.Config, v float64) { c.Energy = &ssd.Energy{TransferPerByte: units.Energy(v)} },
			[]float64{0, 1000}, []float64{-1, 1001}},
		{"energy", func(c *ssd.Config, v float64) { c.Energy = &ssd.Energy{LinkPerByte: units.Energy(v)} },
			[]float64{0, 1000}, []float64{-1, 1001}},
		{"energy.idle_watts", func(c *ssd.Config, v float64) { c.Energy = &ssd.Energy{Idle: v} }, []float64{0, 1e6},
			[]float64{-1, above(1e6)}},
		{"mapping.allocation", func(c *ssd.Config, v float64) { c.Mapping.Allocation = ssd.Allocation(v) },
			[]float64{0, 1}, []float64{2}},
		{"mapping.cmt_capacity", func(c *ssd.Config, v float64) { c.Mapping.CMTCapacity = units.Bytes(v) },
			[]float64{16 * 9}, []float64{16*9 - 1}},
		{"wear", func(c *ssd.Config, v float64) { c.Wear.Static = int(v) }, []float64{0, 1}, []float64{-1}},
		{"wear", func(c *ssd.Config, v float64) { c.Wear.Cycles = int(v) }, []float64{0, 1}, []float64{-1}},
		{"preconditioning.occupancy", func(c *ssd.Config, v float64) {
			c.Preconditioning.Fill, c.Preconditioning.Occupancy = ssd.FillSequential, units.Fraction(v)
		}, []float64{.01, 1}, []float64{0, 1.01}},
		{"preconditioning.passes", func(c *ssd.Config, v float64) { c.Preconditioning.Passes = v },
			[]float64{0, 1000}, []float64{-.1, 1001}},
		{"namespaces", func(c *ssd.Config, v float64) { c.Namespaces = make([]ssd.Namespace, int(v)) },
			[]float64{0, 1, ssd.MaxNamespaces}, []float64{ssd.MaxNamespaces + 1}},
		{"namespaces[0].streams",
			func(c *ssd.Config, v float64) { c.Namespaces = []ssd.Namespace{{Streams: int(v)}} }, []float64{0, 1,
				ssd.MaxStreams}, []float64{-1, ssd.MaxStreams + 1}},
		{"namespaces[0].channels",
			func(c *ssd.Config, v float64) {
				c.Namespaces = []ssd.Namespace{{Channels: []int{0,
					int(v)}}}
			}, []float64{1, 7}, []float64{-1, 0, 8}},
		{"namespaces[0].chips",
			func(c *ssd.Config, v float64) { c.Namespaces = []ssd.Namespace{{Chips: []int{0, int(v)}}} }, []float64{1,
				3}, []float64{-1, 0, 4}},
		{"namespaces[0].dies",
			func(c *ssd.Config, v float64) {
				c.Namespaces = []ssd.Namespace{{Dies: []int{0,
					int(v)}}}
			}, []float64{1}, []float64{-1, 0, 2}},
		{"namespaces[0].planes",
			func(c *ssd.Config, v float64) {
				c.Namespaces = []ssd.Namespace{{Planes: []int{0,
					int(v)}}}
			}, []float64{1}, []float64{-1, 0, 2}},
	} {
		for i, v := range append(append([]float64(nil), l.may...), l.must...) {
			cfg := ofPages()
			cfg.OverProvisioning = .5 // space for whatever else is set
			l.set(&cfg, v)
			err := cfg.Validate()
			if i < len(l.may) && err != nil {
				t.Errorf("%s of %v: %v", l.key, v, err)
			}
			if i >= len(l.may) && !named(err, l.key) {
				t.Errorf("%s of %v: error %v, want one of the key", l.key, v, err)
			}
		}
	}
}

// named reports whether an error is about a key, or one inside it.
func named(err error, key string) bool {
	for _, e := range units.FieldErrors(err) {
		if e.Path == key || strings.HasPrefix(e.Path, key+"[") || strings.HasPrefix(e.Path, key+".") {
			return true
		}
	}
	return false
}

// superblock is the size of a superblock of the default drive.
const superblock = 8 * 4 * 2 * 2 * 256 * 8192

// withZones returns a change to a drive with zones.
func withZones(change func(z *ssd.Zones, v float64)) func(c *ssd.Config, v float64) {
	return func(c *ssd.Config, v float64) {
		c.Mapping.Ideal = true
		c.Zones = &ssd.Zones{MaxOpen: 4, MaxActive: 4}
		if change != nil {
			change(c.Zones, v)
		}
	}
}

// withSLC returns a change to a drive with an SLC cache.
func withSLC(change func(s *ssd.SLCCache, v float64)) func(c *ssd.Config, v float64) {
	return func(c *ssd.Config, v float64) {
		c.Timing.Cell = nand.TLC
		s := ssd.DefaultSLCCache()
		s.Capacity = 1 << 40
		c.SLCCache = &s
		change(&s, v)
	}
}
