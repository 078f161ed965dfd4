package ssd_test

import (
	"math"
	"testing"

	"farflash/block"
	"farflash/block/blocktest"
	"farflash/internal/hostile"
	"farflash/internal/patience"
	"farflash/model/ssd"
	"farflash/numeric/units"
	"farflash/sim"
)

// littleConfig is a drive of 128 blocks of 16 pages.
func littleConfig() ssd.Config {
	cfg := smallConfig()
	cfg.Geometry.Channels, cfg.Geometry.ChipsPerChannel, cfg.Geometry.DiesPerChip = 2, 1, 1
	cfg.Geometry.PlanesPerDie, cfg.Geometry.BlocksPerPlane, cfg.Geometry.PagesPerBlock = 2, 32, 16
	cfg.OverProvisioning = .4
	return cfg
}

// TestArguments verifies that what a drive cannot be made with, or cannot do, is an error or refused.
func TestArguments(t *testing.T) {
	sink := blocktest.Sink(func(block.Completion) {})
	d, err := ssd.New(littleConfig(), sim.New(), sink, 1, "ssd")
	if err != nil {
		t.Fatal(err)
	}
	m, err := ssd.Prepare(littleConfig(), 1, "ssd", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ssd.NewOnly(m, sim.New(), sink, 1, "ssd"); err != nil {
		t.Fatal(err)
	}
	config := func(change func(*ssd.Config)) func() error {
		return func() error {
			c := littleConfig()
			change(&c)
			_, err := ssd.New(c, sim.New(), sink, 1, "ssd")
			return err
		}
	}
	open := func(c block.QueueConfig) func() error {
		return func() error { _, err := d.Open(c); return err }
	}
	nan, inf := math.NaN(), math.Inf(1)
	refused := hostile.Check(t, "ssd")
	refused("nil engine", func() error { _, err := ssd.New(littleConfig(), nil, sink, 1, ""); return err },
		"engine is nil")
	refused("nil sink", func() error { _, err := ssd.New(littleConfig(), sim.New(), nil, 1, ""); return err },
		"sink is nil")
	refused("nil image", func() error { _, err := ssd.NewFrom(nil, sim.New(), sink, 1, ""); return err },
		"image is nil")
	refused("nil image of one", func() error { _, err := ssd.NewOnly(nil, sim.New(), sink, 1, ""); return err },
		"image is nil")
	refused("image used up", func() error { _, err := ssd.NewFrom(m, sim.New(), sink, 1, ""); return err },
		"has used it")
	refused("image used twice", func() error { _, err := ssd.NewOnly(m, sim.New(), sink, 1, ""); return err },
		"has used it")
	refused("no configuration", func() error { _, err := ssd.Prepare(ssd.Config{}, 1, "", nil); return err },
		"geometry")
	refused("over-provisioning", config(func(c *ssd.Config) { c.OverProvisioning = units.Fraction(nan) }),
		"over_provisioning")
	refused("occupancy", config(func(c *ssd.Config) { c.Preconditioning.Occupancy = units.Fraction(inf) }), "occupancy")
	refused("passes", config(func(c *ssd.Config) { c.Preconditioning.Passes = nan }), "passes")
	refused("a geometry that overflows", config(func(c *ssd.Config) { c.Geometry.BlocksPerPlane = math.MaxInt }),
		"geometry")
	refused("depth", open(block.QueueConfig{Depth: -1}), "-1 entries")
	refused("class", open(block.QueueConfig{Depth: 2, Class: block.Classes}), "class")
	refused("weight", open(block.QueueConfig{Depth: 2, Weight: -1}), "weight -1")
	refused("weight that overflows", open(block.QueueConfig{Depth: 2, Weight: math.MaxInt}), "weight")
	refused("in flight", open(block.QueueConfig{Depth: 2, InFlight: -1}), "-1 commands")
	refused("in flight that overflows", open(block.QueueConfig{Depth: 2, InFlight: math.MaxInt}), "in flight")
	refused("tune", func() error { d.Tune(7, 1, 1); return nil }, "queue 7")
	refused("tune below all", func() error { d.Tune(-1, 1, 1); return nil }, "queue -1")
	refused("acknowledge", func() error { d.Acknowledge(7); return nil }, "queue 7")
	refused("bound", func() error { d.Bound(7, 1); return nil }, "namespace 7")
	refused("no victim policy", func() error { return d.CollectBy(nil) }, "nil")
	for _, namespace := range []int{-1, 1, math.MaxInt} {
		c := littleConfig()
		if d.Capacity(namespace) != 0 || d.Zones(namespace) != (block.Zones{}) || c.CapacityOf(namespace) != 0 ||
			c.ZonesOf(namespace) != (block.Zones{}) || c.Placements(namespace) != 0 || m.Capacity(namespace) != 0 {
			t.Errorf("there is a namespace %d", namespace)
		}
	}
}

// FuzzDrive makes a drive of a configuration that the input changes, and calls it as the input says. It refuses the
// configuration, or serves and refuses requests so that each completes once and the conservation laws hold.
func FuzzDrive(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 1, 0, 1, 2, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13})
	f.Add([]byte{3, 0, 1, 0, 0, 9, 1, 1, 30, 0, 2, 1, 1, 0, 5, 8, 1, 1, 4, 8, 1, 2, 4, 8, 3, 0, 0, 4, 200, 1, 200, 2})
	f.Add([]byte("a drive of any kind, with requests of any kind on queues of any kind, until the input ends"))
	f.Fuzz(func(t *testing.T, in []byte) {
		defer patience.Limit()()
		if len(in) > 600 {
			return
		}
		code := hostile.Code(in)
		cfg := littleConfig()
		code.Change(&cfg, code.Below(5))
		if g := cfg.Geometry; g.Validate() == nil && (g.Pages() > 1<<13 || g.PageSize > 64*units.KiB) ||
			cfg.Preconditioning.Passes > 2 {
			return // larger drives are no different, and slow
		}
		eng := sim.New()
		sent, done := map[uint64]bool{}, 0
		var d *ssd.Drive
		submitting := false
		var err error
		d, err = ssd.New(cfg, eng, blocktest.Sink(func(c block.Completion) {
			if !sent[c.Tag] || submitting {
				t.Errorf("the completion of request %d, submitting: %v", c.Tag, submitting)
			}
			delete(sent, c.Tag)
			done++
		}), 1, "ssd")
		if err != nil {
			return
		}
		var queues []block.QueueID
		tag := uint64(0)
		for range 60 {
			if !code.More() {
				break
			}
			switch code.Below(8) {
			case 0:
				q, err := d.Open(block.QueueConfig{Depth: int(code.Int()), Class: block.Class(code.Below(6)),
					Weight: int(code.Int()), InFlight: int(code.Int())})
				if err == nil {
					queues = append(queues, q)
				}
			case 1:
				eng.Run(eng.Now() + units.Duration(code.Byte())*units.Microsecond)
			case 2:
				hostile.Refused(t, "ssd",
					func() { d.Tune(block.QueueID(code.Int()), int(code.Int()), int(code.Int())) })
			case 3:
				d.Expect(code.Byte(), code.Int())
				d.Capacity(int(code.Int()))
				d.Zones(int(code.Int()))
				hostile.Refused(t, "ssd", func() { d.Stats(); d.Rounds(); d.Held(); d.EraseHistogram() })
			default:
				tag++
				r := block.Request{Tag: tag, Op: block.Op(code.Below(9)), Offset: code.Int() * 4096,
					Length: code.Int() * 512, ForceUnit: code.Below(2) == 1, Placement: code.Byte() / 16}
				if code.Below(6) == 0 {
					r.Offset, r.Length, r.Namespace, r.Append = code.Int(), code.Int(), code.Byte(), true
				}
				if cfg.Quirks.CutAcross {
					r.Length %= 1 << 24 // as in MQSim, a longer one is no error, and takes its time
				}
				q := block.QueueID(code.Int())
				if len(queues) > 0 && code.Below(4) > 0 {
					q = queues[code.Below(len(queues))]
				}
				submitting = true
				sent[tag] = true
				if !d.Submit(q, r) {
					delete(sent, tag)
				}
				submitting = false
			}
		}
		if n := d.InFlight(); n != uint64(len(sent)) {
			t.Errorf("%d requests in flight, of %d", n, len(sent))
		}
		if len(sent) > 0 && d.Close() == nil {
			t.Error("the drive closes with requests in flight")
		}
		eng.Run(eng.Now() + 1000*units.Second)
		if d.Full() == 0 && len(sent) > 0 {
			t.Errorf("%d requests have not completed: %s", len(sent), d.Held())
		}
		for _, c := range d.Checks() {
			if !c.OK && d.Full() == 0 {
				t.Errorf("%s does not hold: %s", c.Name, c.Detail)
			}
		}
	})
}
