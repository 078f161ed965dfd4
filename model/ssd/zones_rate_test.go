package ssd_test

import (
	"testing"

	"farflash/block"
	"farflash/model/cosim"
	"farflash/model/ssd"
	"farflash/numeric/units"
	"farflash/sim"
	"farflash/workload"
)

// TestAppendsBesideWrites: a host has only one write to a zone outstanding, so writes complete at a rate of one per
// latency of a lone write, whatever the depth; appends complete as fast as the drive's processors accept commands.
// (Doekemeijer et al., CLUSTER 2023, measured both on a ZN540.)
func TestAppendsBesideWrites(t *testing.T) {
	const n, size = 6000, 4096
	cfg := smallConfig()
	cfg.Mapping.Grain = ssd.Grain(4 * units.KiB)
	cfg.Geometry.PagesPerBlock = 512
	cfg.Cache.DestageAt = .9 // all data stay in the cache
	cfg.Zones = &ssd.Zones{}
	cfg.Controller = &ssd.Controller{Processors: 2, Command: 6 * units.Microsecond, Completion: 2 * units.Microsecond}
	rate := func(depth int, appends bool) (perSecond float64, alone units.Duration) {
		t.Helper()
		eng := sim.New()
		h := cosim.NewHost(eng)
		d, err := ssd.New(cfg, eng, h, 1, "ssd")
		if err != nil {
			t.Fatal(err)
		}
		z := d.Zones(0)
		if n*size > z.Capacity {
			t.Fatalf("%d bytes do not fit into a zone of %d", n*size, z.Capacity)
		}
		src := workload.Zoned(workload.Limit(sameWrites{size}, n, 0), z, 0, 1, 1, appends)
		if err := h.Attach(d,
			[]cosim.Flow{{Name: "log", Source: src, Outstanding: depth, FromSubmission: true}}); err != nil {
			t.Fatal(err)
		}
		if err := h.Start(); err != nil {
			t.Fatal(err)
		}
		h.OnIdle = func(sim.Time) { eng.Stop() }
		eng.Run(sim.Forever)
		if h.Err() != nil || h.Measured(block.Write).Latency.Count() != n {
			t.Fatalf("%d writes, %v", h.Measured(block.Write).Latency.Count(), h.Err())
		}
		return n / eng.Now().Seconds(), h.Measured(block.Write).Latency.Quantile(.5)
	}
	one, alone := rate(1, false)
	for _, depth := range []int{4, 32} {
		if got, _ := rate(depth, false); got < .999*one || got > 1.001*one {
			t.Errorf("at depth %d a zone takes %.0f writes a second, at depth 1 %.0f", depth, got, one)
		}
	}
	if want := 1 / alone.Seconds(); one < .99*want || one > 1.01*want {
		t.Errorf("a zone takes %.0f writes a second; one takes %v, so %.0f", one, alone, want)
	}
	if got, want := first(rate(32, true)), 2/(8e-6); got < .99*want || got > want {
		t.Errorf("a zone takes %.0f appends a second; the processors could take %.0f", got, want)
	}
	// Proportional to the depth, until the processors are busy.
	if got, want := first(rate(2, true)), 2*one; got < .95*want || got > 1.01*want {
		t.Errorf("at depth 2 a zone takes %.0f appends a second, twice the rate of depth 1 is %.0f", got, want)
	}
}

func first(x float64, _ units.Duration) float64 { return x }

// sameWrites is a source of writes of one size.
type sameWrites struct{ size int64 }

func (s sameWrites) Next(r *workload.Record) error {
	*r = workload.Record{Op: block.Write, Size: s.size, Response: workload.NoResponse}
	return nil
}
