package ssd_test

import (
	"testing"

	"farflash/block"
	"farflash/model/cosim"
	"farflash/model/ssd"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"

	"pgregory.net/rapid"
)

// spans is what a channel or a die was busy with, as the drive's probes have it.
type spans []struct{ begin, end sim.Time }

// before is how much of it lies before a time.
func (s spans) before(at sim.Time) (sum sim.Time) {
	for _, x := range s {
		sum += max(0, min(x.end, at)-x.begin)
	}
	return sum
}

// TestBusyIsCut holds, over drives and loads by chance, that busy times up to any moment are those of what lies
// before it, as the probes have it, to the picosecond: so nothing is busy for longer than the time there was,
// whatever a run or a warm-up cuts.
func TestBusyIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawConfig(t)
		drawFront(t, &cfg)
		seed := rapid.Uint64().Draw(t, "seed")
		eng := sim.New()
		h := cosim.NewHost(eng)
		d, err := ssd.New(cfg, eng, h, seed, "ssd")
		if err != nil {
			t.Skip(err)
		}
		dies, buses := make([]spans, d.Lanes()), make([]spans, d.Channels())
		d.OnWork = func(w ssd.Work) {
			to := &dies
			if w.Activity.OnBus() {
				to = &buses
			}
			(*to)[w.Number] = append((*to)[w.Number], struct{ begin, end sim.Time }{w.Begin, w.End})
		}
		d.OnSuspend = func(s ssd.Suspension) {
			x := dies[s.Number]
			x[len(x)-1].end = s.At
		}
		f := cosim.Flow{
			Name: "flow", Outstanding: rapid.IntRange(1, 64).Draw(t, "outstanding"),
			Queue: block.QueueConfig{Class: block.High},
			Source: &mixed{
				n: 1000, span: d.Capacity(0) / 512, most: rapid.Int64Range(1, 200).Draw(t, "most"), align: 8,
				reads: rapid.SampledFrom([]float64{0, .5, .9}).Draw(t, "reads"), random: rng.NewStream(seed, "mixed"),
			},
		}
		if err := h.Attach(d, []cosim.Flow{f}); err != nil {
			t.Fatal(err)
		}
		if err := h.Start(); err != nil {
			t.Fatal(err)
		}
		processors := 1
		if cfg.Controller != nil {
			processors = cfg.Controller.Processors
		}
		was := d.StatsAt(0)
		at := sim.Time(0)
		for range 8 {
			from := at
			at += units.Duration(rapid.IntRange(1, 2000).Draw(t, "cut us")) * units.Microsecond
			eng.Run(at)
			if err := d.Books(); err != nil {
				t.Errorf("%v: %v", at, err)
			}
			now := d.StatsAt(at)
			for i, b := range now.LaneBusy {
				if want := dies[i].before(at); b != want {
					t.Errorf("%v: die %d is busy for %v, what it did takes %v", at, i, b, want)
				}
			}
			for i, b := range now.ChannelBusy {
				if want := buses[i].before(at); b != want {
					t.Errorf("%v: channel %d is busy for %v, what it carried takes %v", at, i, b, want)
				}
			}
			did := now.Since(&was)
			all := append(append(did.LaneBusy, did.ChannelBusy...), did.LinkBusy[0], did.LinkBusy[1], did.DRAMBusy,
				did.ControllerBusy/sim.Time(processors))
			all = append(all, did.Rested...)
			for i, b := range all {
				if b < 0 || b > at-from {
					t.Errorf("from %v to %v number %d of dies, channels, link, DRAM, controller and power states is "+
						"busy for %v", from, at, i, b)
				}
			}
			was = now
		}
	})
}
