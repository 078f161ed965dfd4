package ssd_test

import (
	"io"
	"testing"

	"farflash/block"
	"farflash/model/cosim"
	"farflash/model/ssd"
	"farflash/numeric/rng"
	"farflash/policy/ftl"
	"farflash/sim"
	"farflash/workload"
)

// uniform is a source of n requests of one kind at random aligned addresses.
type uniform struct {
	n      int
	op     block.Op
	size   int64
	pages  int64
	random rng.Stream
}

func (u *uniform) Next(r *workload.Record) error {
	if u.n == 0 {
		return io.EOF
	}
	u.n--
	*r = workload.Record{Op: u.op, Size: u.size, Offset: u.random.IntN(u.pages) * u.size}
	return nil
}

// loop is a closed loop on a drive that a benchmark can run in pieces.
func loop(b testing.TB, cfg ssd.Config, op block.Op, size, span int64, outstanding int) (*sim.Engine, *cosim.Host,
	*ssd.Drive) {
	eng := sim.New()
	h := cosim.NewHost(eng)
	d, err := ssd.New(cfg, eng, h, 1, "ssd")
	if err != nil {
		b.Fatal(err)
	}
	if span == 0 {
		span = d.Capacity(0)
	}
	u := &uniform{n: 1 << 60, op: op, size: size, pages: span / size, random: rng.NewStream(1, "addresses")}
	if err := h.Attach(d,
		[]cosim.Flow{{Name: "loop", Source: u, Outstanding: outstanding,
			Queue: block.QueueConfig{Class: block.High}}}); err != nil {
		b.Fatal(err)
	}
	if err := h.Start(); err != nil {
		b.Fatal(err)
	}
	return eng, h, d
}

// run runs until n more requests have completed.
func run(eng *sim.Engine, h *cosim.Host, n uint64) {
	end := h.Ended() + n
	h.OnProgress = func(ended uint64) {
		if ended >= end {
			eng.Stop()
		}
	}
	eng.Run(sim.Forever)
}

// ofPages returns the default drive with a map of whole pages.
func ofPages() ssd.Config {
	cfg := ssd.DefaultConfig()
	cfg.Mapping.Grain = 0
	return cfg
}

func smallConfig() ssd.Config {
	cfg := ofPages()
	cfg.Geometry.BlocksPerPlane = 128
	cfg.Mapping.Ideal = true
	return cfg
}

func collectingConfig() ssd.Config {
	cfg := ofPages()
	cfg.Geometry.BlocksPerPlane, cfg.Geometry.PagesPerBlock = 64, 64
	cfg.Mapping.Ideal = true
	cfg.Cache.Mode = ssd.CacheOff
	cfg.Collection.Victim = ftl.Greedy
	cfg.Initial = ssd.InitialEmpty
	return cfg
}

// loads are the four loads of the speed table in docs/validation/speed.md.
var loads = []struct {
	name        string
	cfg         func() ssd.Config
	op          block.Op
	size        int64
	outstanding int
	share       float64 // share of the address space
	warm        uint64
}{
	{"read/ideal", smallConfig, block.Read, 4096, 32, 1, 20000},
	{"read/miss", ofPages, block.Read, 4096, 32, 1, 300000},
	{"write/cached", ofPages, block.Write, 4096, 16, 1, 300000},
	{"write/collecting", collectingConfig, block.Write, 8192, 64, .6, 700000},
}

func BenchmarkIO(b *testing.B) {
	for _, l := range loads {
		for _, compat := range []bool{false, true} {
			name := l.name + "/ours"
			if compat {
				name = l.name + "/mqsim"
			}
			b.Run(name, func(b *testing.B) {
				cfg := l.cfg()
				if compat {
					cfg = ssd.MQSim(cfg)
				}
				span := int64(float64(cfg.Geometry.Capacity()) * (1 - float64(cfg.OverProvisioning)) * l.share)
				eng, h, _ := loop(b, cfg, l.op, l.size, span-span%(1<<20), l.outstanding)
				run(eng, h, l.warm)
				b.ReportAllocs()
				events := eng.Events()
				b.ResetTimer()
				run(eng, h, uint64(b.N))
				b.ReportMetric(float64(eng.Events()-events)/float64(b.N), "events/op")
			})
		}
	}
}

// TestSteadyStateAllocatesNothing verifies that I/O does not allocate. Maps that grow with the addresses touched are
// first grown to their full size.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	if checked {
		t.Skip("testing laws allocates")
	}
	for _, l := range loads {
		if l.name == "read/miss" || l.name == "write/cached" {
			continue // their address space is never covered: the map keeps growing
		}
		cfg := ssd.MQSim(l.cfg())
		span := int64(float64(cfg.Geometry.Capacity()) * (1 - float64(cfg.OverProvisioning)) * .05)
		eng, h, _ := loop(t, cfg, l.op, l.size, span-span%(1<<20), l.outstanding)
		run(eng, h, 700000)
		if n := testing.AllocsPerRun(10, func() { run(eng, h, 2000) }); n > 2 { // the probe's closure
			t.Errorf("%s: %v allocations in 2000 requests", l.name, n)
		}
	}
}
