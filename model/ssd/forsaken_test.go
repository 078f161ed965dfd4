package ssd_test

import (
	"testing"

	"farflash/block"
	"farflash/model/cosim"
	"farflash/model/ssd"
	"farflash/numeric/units"
	"farflash/sim"
	"farflash/workload"
	"farflash/workload/mqsimgen"
)

// TestForsaken: MQSim's map evicts entries that transactions wait for, and its polls of a chip may find no work
// although some waits; it loses such requests at the end of a run. Here they complete late.
func TestForsaken(t *testing.T) {
	cfg := ofPages()
	g := &cfg.Geometry
	g.Channels, g.ChipsPerChannel, g.BlocksPerPlane, g.PagesPerBlock = 1, 1, 256, 64
	cfg.Mapping.Ideal, cfg.Mapping.CMTCapacity = false, 200
	off := ssd.CacheOff
	cfg.Namespaces = []ssd.Namespace{{Cache: &off}}
	eng := sim.New()
	h := cosim.NewHost(eng)
	d, err := ssd.New(ssd.MQSim(cfg), eng, h, 1, "ssd")
	if err != nil {
		t.Fatal(err)
	}
	c := mqsimgen.DefaultConfig()
	c.ReadFraction, c.Range.Last, c.Requests = .5, d.Capacity(0)/512-1, 2000
	src, err := mqsimgen.New(c)
	if err != nil {
		t.Fatal(err)
	}
	flow := cosim.Flow{Name: "low", Source: workload.Source(src), Outstanding: 64, Start: units.Nanosecond,
		Loose: true, Queue: block.QueueConfig{Class: block.Low}}
	if err := h.Attach(d, []cosim.Flow{flow}); err != nil {
		t.Fatal(err)
	}
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	eng.Run(sim.Forever)
	if h.Ended() != 2000 {
		t.Errorf("%d of 2000 requests ended; %s", h.Ended(), d.Held())
	}
	if err := d.Books(); err != nil {
		t.Error(err)
	}
}
