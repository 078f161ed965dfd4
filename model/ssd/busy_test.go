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

// spans are the busy intervals of a channel or a die, as reported by the drive's probes.
type spans []struct{ begin, end sim.Time }

// before returns the part of the total that lies before a time.
func (s spans) before(at sim.Time) (sum sim.Time) {
	for _, x := range s {
		sum += max(0, min(x.end, at)-x.begin)
	}
	return sum
}

// TestBusyIsCut verifies, for random drives and loads, that busy times up to any moment equal the busy intervals
// clipped at that moment, as reported by the probes, to the picosecond. Busy time therefore never exceeds elapsed time,
// wherever a run or a warm-up is cut.
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
