package ssd_test

import (
	"fmt"
	"testing"

	"farflash/block"
	"farflash/model/cosim"
	"farflash/model/ssd"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// TestShapes verifies every law over drives of all combinable kinds, besides the randomly drawn ones: namespaces on
// separate channels, the first of which is unused, and on all of them; grains or pages; the map in memory or on flash;
// each kind of fill, and of initial content.
func TestShapes(t *testing.T) {
	t.Parallel()
	namespaces := map[string][]ssd.Namespace{
		"one":      {{Streams: 2}},
		"divided":  {{Channels: []int{2}}, {Channels: []int{1}, Streams: 2}},
		"together": {{}, {Channels: []int{1, 2}}},
	}
	for name, ns := range namespaces {
		for _, ideal := range []bool{false, true} {
			for _, grain := range []ssd.Grain{0, 4096} {
				for fill := range ssd.FillSteady + 1 {
					for destage := range ssd.DestageFirstTouch + 1 {
						t.Run(fmt.Sprintf("%s/%v/%v/%v/%v", name, ideal, grain, fill, destage), func(t *testing.T) {
							cfg := ofPages()
							g := &cfg.Geometry
							g.Channels, g.ChipsPerChannel, g.DiesPerChip, g.PlanesPerDie = 3, 1, 1, 2
							g.BlocksPerPlane, g.PagesPerBlock, g.PageSize = 48, 8, 16384
							cfg.OverProvisioning = .45
							cfg.Namespaces = ns
							cfg.Mapping.Ideal, cfg.Mapping.Grain, cfg.Mapping.CMTCapacity = ideal, grain, 1000
							cfg.Preconditioning.Fill, cfg.Preconditioning.Passes = fill, 1
							cfg.Preconditioning.SmallWrites = destage == 0
							cfg.Cache.Destage, cfg.Cache.Capacity = destage, 16*16384
							cfg.Cache.Mode = []ssd.CacheMode{ssd.CacheReadWrite, ssd.CacheOff, ssd.CacheWrite,
								ssd.CacheRead}[(int(fill)+int(destage))%4]
							cfg.Initial = ssd.Initial((int(fill) + int(grain)) % 3)
							cfg.Cache.Partitioned, cfg.Mapping.CMTShared = destage == 1, grain == 0
							shaped(t, cfg)
						})
					}
				}
			}
		}
	}
}

// shaped writes, reads, trims and flushes each namespace of a drive.
func shaped(t *testing.T, cfg ssd.Config) {
	t.Helper()
	eng := sim.New()
	h := cosim.NewHost(eng)
	d, err := ssd.New(cfg, eng, h, 1, "ssd")
	if err != nil {
		t.Fatal(err)
	}
	var flows []cosim.Flow
	for i := range d.Namespaces() {
		flows = append(flows, cosim.Flow{
			Name: "flow", Namespace: uint8(i), Placement: uint8(i), Outstanding: 16,
			Queue: block.QueueConfig{Class: block.Class(i)},
			Source: &mixed{n: 700, span: d.Capacity(i) / 512, most: 64, align: 8, reads: .3, other: .05,
				random: rng.NewStream(uint64(i), "shaped")},
		})
	}
	if err := h.Attach(d, flows); err != nil {
		t.Fatal(err)
	}
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	h.OnIdle = func(sim.Time) { eng.Stop() }
	for h.Ended() < uint64(700*len(flows)) {
		was := eng.Now()
		if eng.Run(was + 50*units.Millisecond); h.Ended() < uint64(700*len(flows)) && eng.Now() > 20*units.Second {
			t.Fatalf("%d of %d requests ended: %s", h.Ended(), 700*len(flows), d.Held())
		}
		if err := d.Books(); err != nil {
			t.Fatalf("%v: %v", eng.Now(), err)
		}
	}
	d.Whole()
	for _, c := range d.Checks() {
		if !c.OK {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
	if h.Err() != nil {
		t.Error(h.Err())
	}
}
