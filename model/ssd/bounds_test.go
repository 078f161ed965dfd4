package ssd_test

import (
	"fmt"
	"testing"

	"farflash/block"
	"farflash/model/cosim"
	"farflash/model/ssd"
	"farflash/model/ssd/nand"
	"farflash/numeric/units"
	"farflash/sim"
	"farflash/workload"
)

// linkTime returns the time of a payload on the link: 28 or more bytes of overhead a packet, striped over the lanes.
func linkTime(h *ssd.Host, bytes int64) units.Duration {
	wire := bytes + (bytes+int64(h.MaxPayload)-1)/int64(h.MaxPayload)*int64(h.PacketBytes)
	return h.LaneRate.TimeFor(units.Bytes((wire + int64(h.Lanes) - 1) / int64(h.Lanes)))
}

// dramTime returns the time of a DRAM transfer: the first row is opened, each further one after the previous one is
// closed.
func dramTime(m *ssd.DRAM, bytes int64) units.Duration {
	rows := units.Duration((bytes + int64(m.RowSize) - 1) / int64(m.RowSize))
	return rows*(m.TRCD+m.TCL) + (rows-1)*m.TRP + m.DataRate.TimeFor((bytes+int64(m.BurstSize)-1)/int64(m.BurstSize))
}

// inOrder returns n requests of a size from the first address on.
func inOrder(n int, op block.Op, size int64) []workload.Record {
	out := make([]workload.Record, n)
	for i := range out {
		out[i] = workload.Record{Op: op, Size: size, Offset: int64(i) * size}
	}
	return out
}

// boundsConfig returns a drive in which every part is fast; each case slows down the one that should be the bottleneck.
func boundsConfig(channels, dies, planes int, page units.Bytes) ssd.Config {
	cfg := ofPages()
	cfg.Geometry = nand.Geometry{Channels: channels, ChipsPerChannel: dies, DiesPerChip: 1, PlanesPerDie: planes,
		BlocksPerPlane: 128, PagesPerBlock: 256, PageSize: page}
	cfg.OverProvisioning = .2
	cfg.Mapping.Ideal = true
	cfg.Cache.Mode = ssd.CacheOff
	cfg.Host.LaneRate, cfg.Host.Lanes, cfg.Host.MaxPayload = 16*units.GBPerSecond, 16, 512
	cfg.Host.FetchSize, cfg.Host.Commands = 4096, 8192
	cfg.DRAM.DataRate = 100_000_000_000
	cfg.DRAM.TRCD, cfg.DRAM.TCL, cfg.DRAM.TRP = 0, 0, 0
	cfg.Timing.TransferRate = 100_000_000_000
	for k := range cfg.Timing.Read {
		cfg.Timing.Read[k], cfg.Timing.Program[k] = units.Microsecond, 5*units.Microsecond
	}
	t := &cfg.Timing
	t.TDBSY, t.TWC, t.TCS, t.TWB = 50*units.Nanosecond, 5*units.Nanosecond, 10*units.Nanosecond, 20*units.Nanosecond
	return cfg
}

// TestBounds verifies that a drive under enough load is as fast as its slowest part allows, whichever that is and
// whatever the drive's shape: within 2 % below, and never above. Programs go to random addresses; reads and cached
// writes go in order, so that all dies have equal work and no address is rewritten in the cache.
func TestBounds(t *testing.T) {
	read := func(cfg *ssd.Config, n int, size units.Bytes) units.Duration { // of n planes, on the channel
		return cfg.Timing.ReadCommand(n) + units.Duration(n)*(cfg.Timing.DataOutSetup+cfg.Timing.Data(size))
	}
	program := func(cfg *ssd.Config, n int) units.Duration {
		return cfg.Timing.ProgramCommand(n) + units.Duration(n)*cfg.Timing.Data(cfg.Geometry.PageSize)
	}
	for _, c := range []struct {
		what   string
		op     block.Op
		change func(cfg *ssd.Config)
		least  func(cfg *ssd.Config, size units.Bytes) units.Duration // time of a request on the whole drive
		deep   int                                                    // outstanding requests a plane
	}{
		{"channel, reads", block.Read, func(cfg *ssd.Config) {
			cfg.Timing.TransferRate = 400_000_000
		}, func(cfg *ssd.Config, size units.Bytes) units.Duration {
			return read(cfg, 1, size) / units.Duration(cfg.Geometry.Channels)
		}, 64},
		{"channel, programs", block.Write, func(cfg *ssd.Config) {
			cfg.Timing.TransferRate = 400_000_000
		}, func(cfg *ssd.Config, size units.Bytes) units.Duration {
			n := cfg.Geometry.PlanesPerDie
			return program(cfg, n) / units.Duration(n*cfg.Geometry.Channels*int(cfg.Geometry.PageSize/size))
		}, 16},
		{"dies, reads", block.Read, func(cfg *ssd.Config) {
			cfg.Geometry.PlanesPerDie = 1 // planes would pair only by chance
			for k := range cfg.Timing.Read {
				cfg.Timing.Read[k] = units.Millisecond
			}
		}, func(cfg *ssd.Config, size units.Bytes) units.Duration {
			return (read(cfg, 1, size) + units.Millisecond + cfg.Timing.ReadyBusy) / units.Duration(cfg.Geometry.Dies())
		}, 64},
		{"planes, reads", block.Read, func(cfg *ssd.Config) {
			cfg.Scheduling.IndependentReads = true
			for k := range cfg.Timing.Read {
				cfg.Timing.Read[k] = units.Millisecond
			}
		}, func(cfg *ssd.Config, size units.Bytes) units.Duration {
			return (read(cfg, 1, size) + units.Millisecond + cfg.Timing.ReadyBusy) /
				units.Duration(cfg.Geometry.Planes())
		}, 64},
		{"dies, programs", block.Write, func(cfg *ssd.Config) {
			for k := range cfg.Timing.Program {
				cfg.Timing.Program[k] = 2 * units.Millisecond
			}
		}, func(cfg *ssd.Config, size units.Bytes) units.Duration {
			n := cfg.Geometry.PlanesPerDie
			return (program(cfg, n) + 2*units.Millisecond) /
				units.Duration(n*cfg.Geometry.Dies()*int(cfg.Geometry.PageSize/size))
		}, 8},
		{"link, reads", block.Read, func(cfg *ssd.Config) {
			cfg.Host.LaneRate, cfg.Host.Lanes = 200_000_000, 1
		}, func(cfg *ssd.Config, size units.Bytes) units.Duration {
			h := &cfg.Host // the controller requests the entry, then data and completion follow
			return h.LaneRate.TimeFor(units.Bytes(h.PacketBytes+4)) + linkTime(h, int64(size)) + linkTime(h, 16)
		}, 16},
		{"DRAM, cached writes", block.Write, func(cfg *ssd.Config) {
			cfg.Cache.Mode = ssd.CacheWrite
			cfg.DRAM.DataRate, cfg.DRAM.TRCD, cfg.DRAM.TCL, cfg.DRAM.TRP = 25_000_000, 13_000, 13_000, 13_000
		}, func(cfg *ssd.Config, size units.Bytes) units.Duration {
			return 2 * dramTime(&cfg.DRAM, int64(size)) // in from the host, out to flash
		}, 16},
	} {
		for _, g := range []struct {
			channels, dies, planes int
			page, grain, size      units.Bytes
		}{
			{1, 4, 1, 4096, 0, 4096}, {1, 4, 2, 16384, 0, 16384}, {2, 8, 2, 4096, 0, 4096}, {2, 3, 6, 16384, 0, 16384},
			{4, 4, 4, 16384, 0, 16384}, {3, 5, 2, 8192, 0, 8192}, {8, 4, 1, 16384, 0, 16384},
			{1, 4, 2, 16384, 4096, 16384}, {4, 4, 4, 16384, 4096, 16384}, {3, 5, 2, 8192, 4096, 8192},
			{8, 4, 1, 16384, 2048, 16384},
			{1, 4, 2, 16384, 4096, 4096}, {4, 4, 4, 16384, 4096, 4096}, {3, 5, 2, 8192, 4096, 4096},
			{8, 4, 1, 16384, 2048, 2048},
		} {
			t.Run(fmt.Sprintf("%s/%dx%dx%d,%v,%v,%v", c.what, g.channels, g.dies, g.planes, g.page, g.grain, g.size),
				func(t *testing.T) {
					t.Parallel()
					cfg := boundsConfig(g.channels, g.dies, g.planes, g.page)
					cfg.Mapping.Grain = ssd.Grain(g.grain)
					c.change(&cfg)
					cfg.Cache.Capacity = 64 * units.Bytes(cfg.Geometry.Planes()) * g.page
					depth := c.deep * cfg.Geometry.Planes()
					if c.op == block.Write {
						depth *= int(g.page / g.size) // equally many pages
					}
					n := 80 * depth
					if c.op == block.Read {
						n = 40 * depth
					}
					n = min(n, 30000)
					records := inOrder(n, c.op, int64(g.size))
					if c.op == block.Write && cfg.Cache.Mode == ssd.CacheOff {
						records = random(n, c.op, int64(g.size), int64(cfg.Geometry.Capacity())/10*7)
					}
					_, _, eng := play(t, cfg, depth, records)
					took, least := eng.Now(), units.Duration(n)*c.least(&cfg, g.size)
					if ratio := float64(least) / float64(took); ratio > 1.001 || ratio < .98 {
						t.Errorf("%d requests of %v took %v: %.4f of what the bound allows", n, g.size, took, ratio)
					}
				})
		}
	}
}

// TestNoConvoys verifies that random reads keep channels busy: 4 KiB a page at depth 1000, where all dies of a channel
// are busy except those whose data are on the channel. A channel needs 12.6 us a page and could transfer without gaps.
func TestNoConvoys(t *testing.T) {
	cfg := ofPages()
	cfg.Geometry.PageSize = 4096
	cfg.Mapping.Ideal = true
	const first, last = 10000, 50000
	eng := sim.New()
	h := cosim.NewHost(eng)
	d, err := ssd.New(cfg, eng, h, 1, "ssd")
	if err != nil {
		t.Fatal(err)
	}
	var from, to sim.Time
	n := 0
	h.OnSample = func(x *cosim.Sample) {
		switch n++; n {
		case first:
			from = x.Finished
		case last:
			to = x.Finished
		}
	}
	f := cosim.Flow{Name: "reads", Source: workload.Slice(random(last+2000, block.Read, 4096, 1<<36)),
		Outstanding: 1000, Queue: block.QueueConfig{Class: block.High}}
	if err := h.Attach(d, []cosim.Flow{f}); err != nil {
		t.Fatal(err)
	}
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	eng.Run(sim.Forever)
	page := cfg.Timing.ReadCommand(1) + cfg.Timing.DataOutSetup + cfg.Timing.Data(4096)
	if ratio := float64((last-first)*page/8) / float64(to-from); ratio > 1.001 || ratio < .97 {
		t.Errorf("%.3f of what the channels allow", ratio)
	}
}

// TestOneRequest compares the latency of one request to idle drives of many shapes with the sum of its parts, computed
// by hand, to a nanosecond.
func TestOneRequest(t *testing.T) {
	const ns, us = units.Nanosecond, units.Microsecond
	fast := func(cfg *ssd.Config) { // a server drive
		cfg.Geometry.PageSize = 16384
		cfg.Timing.TransferRate = 1_600_000_000
		cfg.Host.LaneRate, cfg.Host.MaxPayload = 3_938_000_000, 512
		for k := range cfg.Timing.Read {
			cfg.Timing.Read[k], cfg.Timing.Program[k] = 58*us, 187*us
		}
	}
	through := func(cfg *ssd.Config) { cfg.Cache.Mode = ssd.CacheOff }
	shape := func(channels, chips, planes int) func(cfg *ssd.Config) {
		return func(cfg *ssd.Config) {
			g := &cfg.Geometry
			g.Channels, g.ChipsPerChannel, g.DiesPerChip, g.PlanesPerDie, g.BlocksPerPlane = channels, chips, 1,
				planes, 128
		}
	}
	// On the link with 4 lanes of 1 GB/s: doorbell 30 bytes, 8 ns; the controller's request 32 bytes, 8 ns; entry 100
	// bytes, 25 ns; 4 KiB in 32 packets of 156 bytes, 1,248 ns; completion 44 bytes, 11 ns.
	const ask, data4K = 8*ns + 8*ns + 25*ns, 1248 * ns
	// A page of 4 KiB crosses the channel of 333 MB/s in 12,300.3 ns; a read command takes 290 ns, data setup 30.
	const bus4K = 12_300_300
	for _, c := range []struct {
		name   string
		op     block.Op
		size   int64
		change []func(cfg *ssd.Config)
		want   units.Duration
	}{
		{"4 KiB", block.Read, 4096, nil, ask + 290*ns + 75*us + 20*ns + 30*ns + bus4K + data4K + 11*ns},
		{"a sector", block.Read, 512, nil, ask + 290*ns + 75*us + 20*ns + 30*ns + 1_537_537 + 156*ns + 11*ns},
		{"a page of 8 KiB", block.Read, 8192, nil,
			ask + 290*ns + 75*us + 20*ns + 30*ns + 24_600_600 + 2*data4K + 11*ns},
		// Eight pages on eight channels at once.
		{"64 KiB", block.Read, 65536, nil, ask + 290*ns + 75*us + 20*ns + 30*ns + 24_600_600 + 16*data4K + 11*ns},
		// Two pages on one die: the second command follows the first's data.
		{"two pages, one die", block.Read, 16384, []func(*ssd.Config){shape(1, 1, 1)},
			ask + 2*(290*ns+75*us+20*ns+30*ns+24_600_600) + 4*data4K + 11*ns},
		// On two dies: the second's data wait for the first's.
		{"two pages, two dies", block.Read, 16384, []func(*ssd.Config){shape(1, 2, 1)},
			ask + 290*ns + 75*us + 20*ns + 2*(30*ns+24_600_600) + 4*data4K + 11*ns},
		// On two planes: one command of 940 ns.
		{"two pages, two planes", block.Read, 16384, []func(*ssd.Config){shape(1, 1, 2)},
			ask + 940*ns + 75*us + 20*ns + 2*(30*ns+24_600_600) + 4*data4K + 11*ns},
		{"two bytes wide", block.Read, 4096, []func(*ssd.Config){func(cfg *ssd.Config) { cfg.Timing.Width = 2 }},
			ask + 290*ns + 75*us + 20*ns + 30*ns + 6_150_150 + data4K + 11*ns},
		// 15.752 GB/s: 30 bytes in 2.032 ns (8 a lane), 32 the same, 100 in 6.349 (25 a lane), 32 packets of 540
		// bytes in 1,097.004 (4,320 a lane), 44 in 2.794 (11 a lane); the page crosses the channel in 10.24 us.
		{"fast", block.Read, 16384, []func(*ssd.Config){fast},
			2_032 + 2_032 + 6_349 + 290*ns + 58*us + 20*ns + 30*ns + 10_240*ns + 1_097_004 + 2_794},
		// In DRAM: 26 ns to open the row, 512 transfers of 8 bytes at 800 MT/s. The controller requests the data first.
		{"cached write", block.Write, 4096, nil, ask + 8*ns + data4K + 26*ns + 640*ns + 11*ns},
		// To flash: a program command of 361 ns, the data, 750 us.
		{"write through", block.Write, 8192, []func(*ssd.Config){through},
			ask + 8*ns + 2*data4K + 361*ns + 24_600_600 + 750*us + 11*ns},
		// Half a page: the other half is read first.
		{"half a page through", block.Write, 4096, []func(*ssd.Config){through},
			ask + 8*ns + data4K + 290*ns + 75*us + 20*ns + 30*ns + bus4K + 361*ns + bus4K + 750*us + 11*ns},
		// Two planes: one command of 1,177 ns.
		{"write through, two planes", block.Write, 16384, []func(*ssd.Config){through, shape(1, 1, 2)},
			ask + 8*ns + 4*data4K + 1177*ns + 2*24_600_600 + 750*us + 11*ns},
	} {
		cfg := ofPages()
		cfg.Mapping.Ideal = true
		for _, f := range c.change {
			f(&cfg)
		}
		_, h, _ := play(t, cfg, 1, []workload.Record{{Op: c.op, Size: c.size}})
		if got := h.Measured(c.op).Latency.Max(); max(got-c.want, c.want-got) > ns {
			t.Errorf("%s: %v, its parts are %v", c.name, got, c.want)
		}
	}
}
