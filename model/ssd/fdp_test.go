package ssd_test

import (
	"io"
	"math"
	"testing"

	"farflash/block"
	"farflash/model/cosim"
	"farflash/model/ssd"
	"farflash/model/ssd/nand"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/policy/ftl"
	"farflash/policy/ftl/waf"
	"farflash/sim"
	"farflash/workload"
)

// placed is a share of a load of one-page writes, to a part of the pages, in order or at random.
type placed struct {
	first, pages int64
	inOrder      bool
	share        float64
	placement    uint8
}

// placedWAF returns the write amplification of a drive of one plane under loads mixed by their shares, after six times
// as many pages as it has were written.
func placedWAF(t *testing.T, cfg ssd.Config, loads ...placed) float64 {
	t.Helper()
	eng := sim.New()
	h := cosim.NewHost(eng)
	d, err := ssd.New(cfg, eng, h, 1, "ssd")
	if err != nil {
		t.Fatal(err)
	}
	writes := float64(cfg.Geometry.Pages()) * 10
	var flows []cosim.Flow
	for i, l := range loads {
		flows = append(flows, cosim.Flow{
			Name: "load", Placement: l.placement,
			Source: &placedWrites{placed: l, left: int64(l.share * writes),
				gap:    units.Duration(float64(400*units.Microsecond) / l.share),
				random: rng.NewStream(1, string(rune('a'+i)))},
		})
	}
	if err := h.Attach(d, flows); err != nil {
		t.Fatal(err)
	}
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	eng.Run(sim.Time(writes * .6 * float64(400*units.Microsecond)))
	before := d.Stats()
	h.OnIdle = func(sim.Time) { eng.Stop() }
	eng.Run(sim.Forever)
	after := d.Stats()
	s := after.Since(&before)
	if h.Err() != nil {
		t.Fatal(h.Err())
	}
	for _, c := range d.Checks() {
		if !c.OK {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
	return float64(s.HostPrograms+s.MovePrograms) / float64(s.HostPrograms)
}

type placedWrites struct {
	placed
	left   int64
	at     int64
	now    units.Duration
	gap    units.Duration
	random rng.Stream
}

func (p *placedWrites) Next(r *workload.Record) error {
	if p.left--; p.left < 0 {
		return io.EOF
	}
	p.now += p.gap
	k := p.at
	if p.inOrder {
		p.at = (p.at + 1) % p.pages
	} else {
		k = p.random.IntN(p.pages)
	}
	*r = workload.Record{Time: p.now, Op: block.Write, Offset: (p.first + k) * 8192, Size: 8192,
		Response: workload.NoResponse}
	return nil
}

// placedDrive returns a plane of 400 blocks of 64 pages, 15 % of them spare, fast enough for the loads.
func placedDrive(isolation ssd.Isolation) ssd.Config {
	cfg := ofPages()
	each := func(d units.Duration) [4]units.Duration { return [4]units.Duration{d, d, d, d} }
	cfg.Geometry = nand.Geometry{Channels: 1, ChipsPerChannel: 1, DiesPerChip: 1, PlanesPerDie: 1,
		BlocksPerPlane: 400, PagesPerBlock: 64, PageSize: 8192}
	cfg.Timing.Read, cfg.Timing.Program, cfg.Timing.Erase = each(5*units.Microsecond), each(20*units.Microsecond),
		100*units.Microsecond
	cfg.OverProvisioning = .15
	cfg.Mapping.Ideal, cfg.Cache.Mode = true, ssd.CacheOff
	cfg.Collection.Victim, cfg.Collection.Start, cfg.Collection.Hard = ftl.Greedy, .01, .005
	cfg.Wear.Static = 0
	cfg.Preconditioning.Fill = ssd.FillSequential
	cfg.FDP = &ssd.FDP{Handles: 2, Groups: 1, Isolation: isolation}
	return cfg
}

// TestHandlesMeetClosedForms: a log written in order through a separate handle empties its own reclaim units, and
// random writes alongside have the remaining spare space to themselves. The write amplification is 1 for the log and
// greedy collection's for the random writes, weighted by their writes (as in Allison et al., EuroSys 2025, for caches).
// Two random classes, one written often and one rarely, that stay apart persistently amplify like uniform writes:
// greedy collection chooses victims with equally many valid pages from both. Through a single handle both loads cost
// more.
func TestHandlesMeetClosedForms(t *testing.T) {
	t.Parallel()
	const logical = 340 * 64 // pages
	// Of 400 blocks 3 are free when a victim is chosen, because collection starts below 4. Open blocks, one for each
	// stream and its survivors, are half full.
	free := func(open float64) (closed float64) { return 400 - 3 - open }
	logAnd := func(placement uint8) []placed {
		return []placed{{0, logical / 2, true, .5, 0}, {logical / 2, logical / 2, false, .5, placement}}
	}
	form := .5 + .5*waf.GreedyExact((free(3)-170)/(170-1), 64)
	apart := placedWAF(t, placedDrive(ssd.InitiallyIsolated), logAnd(1)...)
	if math.Abs(apart/form-1) > .03 {
		t.Errorf("a log and random writes apart have %.3f, the form %.3f", apart, form)
	}
	if got := placedWAF(t, placedDrive(ssd.InitiallyIsolated), logAnd(0)...); got < 1.3*apart {
		t.Errorf("together they have %.3f, apart %.3f", got, apart)
	}

	hotAndCold := []placed{{0, logical / 5, false, .8, 0}, {logical / 5, logical - logical/5, false, .2, 1}}
	form = waf.GreedyExact(free(4)/(340-2), 64)
	apart = placedWAF(t, placedDrive(ssd.PersistentlyIsolated), hotAndCold...)
	if math.Abs(apart/form-1) > .03 {
		t.Errorf("hot and cold data persistently apart have %.3f, uniform writes %.3f", apart, form)
	}
	if got := placedWAF(t, placedDrive(ssd.InitiallyIsolated), hotAndCold...); got < 1.02*apart {
		t.Errorf("initially apart they have %.3f, persistently %.3f", got, apart)
	}
}

// TestHandlesAreShared verifies that namespaces with the same handle write to one reclaim unit and others do not, and
// that a placement is an index into a namespace's own list of handles.
func TestHandlesAreShared(t *testing.T) {
	cfg := placedDrive(ssd.InitiallyIsolated)
	cfg.Preconditioning.Fill = ssd.FillNone
	cfg.OverProvisioning = .3
	cfg.FDP.Handles = 3
	cfg.Namespaces = []ssd.Namespace{{Handles: []int{0, 2}}, {Handles: []int{2, 1}}, {}}
	eng := sim.New()
	h := cosim.NewHost(eng)
	d, err := ssd.New(cfg, eng, h, 1, "ssd")
	if err != nil {
		t.Fatal(err)
	}
	var flows []cosim.Flow
	want := [3]int64{}
	for i, x := range []struct {
		namespace, placement uint8
		handle               int
	}{{0, 0, 0}, {0, 1, 2}, {0, 9, 0}, {1, 0, 2}, {1, 1, 1}, {2, 0, 0}, {2, 1, 1}, {2, 2, 2}} {
		n := int64(10 + i)
		want[x.handle] += n
		flows = append(flows,
			cosim.Flow{Name: "load", Namespace: x.namespace, Placement: x.placement, Outstanding: 1,
				Source: &placedWrites{placed: placed{pages: 100, inOrder: true}, left: n}})
	}
	if err := h.Attach(d, flows); err != nil {
		t.Fatal(err)
	}
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	eng.Run(sim.Forever)
	if got := d.Stats().FTL.Programs[:3]; [3]int64(got) != want {
		t.Errorf("%v pages went through the handles, not %v", got, want)
	}
	// The open units are those of three handles.
	if s := d.Stats(); s.FreeBlocks != 400-3 {
		t.Errorf("%d blocks are in use", 400-s.FreeBlocks)
	}
	// Namespaces filled through one handle leave a single unit of it open.
	cfg.Preconditioning.Fill, cfg.Preconditioning.Occupancy = ssd.FillSequential, .61
	cfg.Namespaces = []ssd.Namespace{{Handles: []int{1}}, {Handles: []int{1}}}
	if d, err = ssd.New(cfg, sim.New(), h, 1, "ssd"); err != nil {
		t.Fatal(err)
	}
	for _, c := range d.Checks() {
		if !c.OK {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
}

// TestHandlesAreFilledWithoutGaps verifies that namespaces with one handle are filled one after the other in its
// reclaim units. A drive with just the spare blocks that validation asks for would otherwise start with none for
// collection, and neither fill: replay nor its host could write more pages than the unit left open has.
func TestHandlesAreFilledWithoutGaps(t *testing.T) {
	for _, c := range []struct {
		name    string
		of      int     // handles
		handles [][]int // by namespace, each of 21 pages
		blocks  int
		spare   units.Fraction
		used    int // blocks with data
	}{
		{"one handle", 1, [][]int{{0}, {0}, {0}}, 18, .125, 16},
		{"one handle, by default", 1, make([][]int, 3), 18, .125, 16},
		{"neighbours", 2, [][]int{{0}, {1}, {1}}, 19, .171, 6 + 11},
		{"another between", 2, [][]int{{1}, {0}, {1}}, 19, .171, 11 + 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := placedDrive(ssd.InitiallyIsolated)
			cfg.Geometry.BlocksPerPlane, cfg.Geometry.PagesPerBlock = c.blocks, 4
			cfg.OverProvisioning, cfg.FDP.Handles = c.spare, c.of
			for _, h := range c.handles {
				cfg.Namespaces = append(cfg.Namespaces, ssd.Namespace{Handles: h})
			}
			replay := cfg
			replay.Preconditioning = ssd.Preconditioning{Fill: ssd.FillReplay, Occupancy: 1, Passes: 1}
			if _, err := ssd.Prepare(replay, 1, "ssd", nil); err != nil {
				t.Errorf("overwritten before time 0: %v", err)
			}
			eng := sim.New()
			h := cosim.NewHost(eng)
			d, err := ssd.New(cfg, eng, h, 1, "ssd")
			if err != nil {
				t.Fatal(err)
			}
			if used := c.blocks - d.Stats().FreeBlocks; used != c.used {
				t.Errorf("the data fill %d blocks, not %d", used, c.used)
			}
			const each = 200
			var flows []cosim.Flow
			for ns := range cfg.Namespaces {
				flows = append(flows, cosim.Flow{Name: "load", Namespace: uint8(ns), Outstanding: 1,
					Source: &placedWrites{placed: placed{pages: 21}, left: each,
						random: rng.NewStream(1, string(rune('a'+ns)))}})
			}
			if err := h.Attach(d, flows); err != nil {
				t.Fatal(err)
			}
			if err := h.Start(); err != nil {
				t.Fatal(err)
			}
			h.OnIdle = func(sim.Time) { eng.Stop() }
			eng.Run(sim.Forever)
			if err := h.Err(); err != nil {
				t.Error(err)
			}
			if n := h.Ended(); n != 3*each {
				t.Errorf("%d of %d writes ended; %s", n, 3*each, d.Held())
			}
			for _, k := range d.Checks() {
				if !k.OK {
					t.Errorf("%s: %s", k.Name, k.Detail)
				}
			}
		})
	}
}
