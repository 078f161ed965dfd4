package ssd

import (
	"fmt"
	"strings"
	"testing"

	"farflash/block"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// zonedRound returns the drive with round times, with pages of two blocks of 4 KiB on two planes: zones of 2 x 16
// pages, 64 blocks.
func zonedRound() Config {
	cfg := round()
	cfg.Geometry.PlanesPerDie = 2
	cfg.Mapping.Grain = Grain(4 * units.KiB)
	cfg.Cache.Mode, cfg.Cache.Capacity = CacheWrite, 1*units.MiB
	cfg.Zones = &Zones{MaxOpen: 2, MaxActive: 3}
	return cfg
}

const zonedBlock = 4096

// TestZoneStates walks a namespace's zones through the states of the specification, one command at a time: w, a write
// of blocks from an offset on; a, append; o, c, f, r, open, close, finish, reset; each with its zone and its expected
// status.
func TestZoneStates(t *testing.T) {
	short := map[block.Status]string{
		block.OK: "ok", block.ZoneBoundary: "boundary", block.ZoneFull: "full", block.ZoneInvalidWrite: "pointer",
		block.TooManyActive: "active",
		block.TooManyOpen:   "open", block.ZoneTransition: "transition", block.Invalid: "invalid",
		block.OutOfRange: "range",
	}
	a := newAsker(t, zonedRound())
	q := a.open(t, block.QueueConfig{Depth: 16, Weight: 1})
	z := a.d.Zones(0)
	if z.Capacity != 64*zonedBlock || z.Size != z.Capacity || z.MaxActive != 3 {
		t.Fatalf("zones are %+v", z)
	}
	for step, c := range strings.Split(strings.TrimSpace(`
w 0 0 4 ok       in order from the beginning
w 0 0 4 pointer  not again
w 0 8 4 pointer  and not beyond
w 0 4 60 ok      it is full
w 0 64 4 ok      which is the next zone's beginning
w 0 0 4 full
a 0 0 4 full
c 0 0 0 transition  a full zone is not open
o 0 0 0 transition
f 0 0 0 ok       is full already
a 1 0 4 ok       zone 1 has 4 blocks
a 1 0 57 boundary
a 1 4 4 invalid  an append is at the zone's beginning
w 2 0 1 ok       two are open
w 3 0 1 ok       a third: zone 1 is closed for it
w 4 0 1 active   a fourth would be active
w 1 8 1 ok       zone 1 is opened again, zone 2 closed for it
o 2 0 0 ok       explicitly: zone 3 is closed
o 1 0 0 ok
w 3 1 1 open     none that is open may be closed for it
c 1 0 0 ok
c 1 0 0 ok       as it is
w 3 1 1 ok
c 5 0 0 transition  it is empty
f 3 0 0 ok       finished, with 62 blocks that nobody can write
w 3 2 1 full
f 5 0 0 ok       an empty one too
r 5 0 0 ok
w 4 0 1 ok       two are active, so this one may be
r 0 0 0 ok       full, and empty then
r 0 0 0 ok       empty already
w 0 0 1 active
r 1 0 0 ok
w 0 0 1 ok
t 0 0 1 invalid  nothing is trimmed
r 0 4 0 invalid
w 9999 0 1 range
`), "\n") {
		f := strings.Fields(c)
		var zone, from, n int64
		fmt.Sscan(strings.Join(f[1:4], " "), &zone, &from, &n)
		r := block.Request{Offset: zone*z.Size + from*zonedBlock, Length: n * zonedBlock}
		r.Op = map[string]block.Op{"w": block.Write, "a": block.Write, "o": block.Open, "c": block.Close,
			"f": block.Finish, "r": block.Reset, "t": block.Trim}[f[0]]
		r.Append = f[0] == "a"
		a.done = nil
		a.d.Submit(q, r)
		a.eng.Run(sim.Forever)
		if got := short[a.done[0].Status]; got != f[4] {
			t.Errorf("step %d, %q: %s", step+1, c, got)
		}
		if c := a.done[0]; r.Append && c.Status == block.OK && c.Offset != z.Size+4*zonedBlock {
			t.Errorf("step %d: the append is at %d", step+1, c.Offset)
		}
	}
	s, levels := a.d.Stats().Zones, a.d.Stats().ZoneLevels
	if levels != (ZoneLevels{Open: 2, Active: 3, Full: 1}) {
		t.Errorf("%+v", levels)
	}
	if want := (ZoneStats{Appends: 1, Resets: 4, Finishes: 3, Opened: 9, Closed: 5, Refused: 12}); s != want {
		t.Errorf("%+v\nnot\n%+v", s, want)
	}
	sound(t, a.d)
}

func sound(t *testing.T, d *Drive) {
	t.Helper()
	for _, c := range d.Checks() {
		if !c.OK {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
	if err := d.ftl.Check(); err != nil {
		t.Error(err)
	}
	if _, same := d.mapIsOwners(); !same && d.l2p.filled == nil && d.InFlight() == 0 {
		t.Error("map and owners are not the same by their sums")
	}
	if s := d.Stats(); s.MovePrograms != 0 && len(d.ns) == 1 {
		t.Errorf("%d pages of zones were moved", s.MovePrograms)
	}
}

// TestZonesByHand: on an idle drive, a reset of a full zone takes a command's round trip and an erase of its
// superblock, one of an empty zone no erase; data that were reset read as zeros, without flash.
func TestZonesByHand(t *testing.T) {
	a := newAsker(t, zonedRound())
	q := a.open(t, block.QueueConfig{Depth: 4, Weight: 1})
	takes := func(r block.Request) sim.Time {
		t.Helper()
		a.done = nil
		from := a.eng.Now()
		a.d.Submit(q, r)
		a.eng.Run(sim.Forever)
		if a.done[0].Status != block.OK {
			t.Fatal(a.done[0].Status)
		}
		return a.done[0].Finished - from
	}
	z := a.d.Zones(0)
	empty := takes(block.Request{Op: block.Reset})
	if empty > 2*us {
		t.Errorf("a reset of an empty zone takes %v", empty)
	}
	takes(block.Request{Op: block.Write, Length: z.Capacity})
	if s := a.d.Stats(); s.HostPrograms != 32 || s.Programs != 32 {
		t.Errorf("%d pages are programmed of a zone of 32", s.Programs)
	}
	read := takes(block.Request{Op: block.Read, Length: zonedBlock})
	// 1 us of command for both planes, and 1000 us in the array.
	if got, want := takes(block.Request{Op: block.Reset}), empty+1001*us; got/us != want/us {
		// the previous completion's doorbell takes 8 ns of the link
		t.Errorf("a reset of a full zone takes %v, not %v", got, want)
	}
	if zeros := takes(block.Request{Op: block.Read, Length: zonedBlock}); zeros > read-10*us {
		t.Errorf("a block that was reset is read in %v, one that was written in %v", zeros, read)
	}
	// Resetting a zone with a partly filled last page drops its data in the cache.
	takes(block.Request{Op: block.Write, Length: 3 * zonedBlock})
	if s := a.d.Stats(); s.Programs != 33 {
		t.Errorf("%d pages are programmed; the fourth block is not there", s.Programs)
	}
	takes(block.Request{Op: block.Finish})
	a.eng.Run(sim.Forever)
	if s := a.d.Stats(); s.Programs != 34 || s.FTL.Skipped != 1 {
		t.Errorf("%d pages are programmed, %d blocks given up; a zone that is finished has its last page programmed "+
			"as it is", s.Programs, s.FTL.Skipped)
	}
	takes(block.Request{Op: block.Reset})
	sound(t, a.d)
}

// zoneModel is an independent model of one namespace's zones according to the specification.
type zoneModel struct {
	size, capacity    int64 // blocks
	zones             []modelZone
	maxOpen, maxActve int
	clock             int
}

type modelZone struct {
	state   byte // E, I, X, C, F
	pointer int64
	opened  int // order of its implicit opening
	busy    bool
}

func (m *zoneModel) count(states string) (n int) {
	for i := range m.zones {
		if strings.IndexByte(states, m.zones[i].state) >= 0 {
			n++
		}
	}
	return n
}

func (m *zoneModel) open(z *modelZone, to byte) block.Status {
	switch {
	case z.state == 'X', z.state == 'I' && to == 'I':
		return block.OK
	case z.state == 'I':
		z.state = 'X'
		return block.OK
	case z.state == 'E' && m.maxActve > 0 && m.count("IXC") >= m.maxActve:
		return block.TooManyActive
	case m.maxOpen > 0 && m.count("IX") >= m.maxOpen:
		var oldest *modelZone
		for i := range m.zones {
			if o := &m.zones[i]; o.state == 'I' && (oldest == nil || o.opened < oldest.opened) {
				oldest = o
			}
		}
		if oldest == nil {
			return block.TooManyOpen
		}
		oldest.state = 'C'
	}
	z.state = to
	m.clock++
	z.opened = m.clock
	return block.OK
}

// apply returns the expected status of a request, and an append's offset.
func (m *zoneModel) apply(r *block.Request) (block.Status, int64) {
	at := r.Offset / zonedBlock
	z := &m.zones[at/m.size]
	switch r.Op {
	case block.Write:
		n := r.Length / zonedBlock
		switch {
		case z.state == 'F':
			return block.ZoneFull, 0
		case !r.Append && at%m.size != z.pointer:
			return block.ZoneInvalidWrite, 0
		case z.pointer+n > m.capacity:
			return block.ZoneBoundary, 0
		}
		if s := m.open(z, 'I'); s != block.OK {
			return s, 0
		}
		was := z.pointer
		if z.pointer += n; z.pointer == m.capacity {
			z.state = 'F'
		}
		if r.Append {
			return block.OK, (at + was) * zonedBlock
		}
	case block.Open:
		if z.state == 'F' {
			return block.ZoneTransition, 0
		}
		return m.open(z, 'X'), 0
	case block.Close:
		if z.state == 'E' || z.state == 'F' {
			return block.ZoneTransition, 0
		}
		z.state = 'C'
	case block.Finish:
		z.state = 'F'
	case block.Reset:
		z.busy = true
	}
	return block.OK, 0
}

// zoneBench sends random commands, several at once, and compares each completion with the model's. It sends none to a
// zone that is being reset, because the drive determines when the reset completes.
type zoneBench struct {
	t    *testing.T
	d    *Drive
	q    block.QueueID
	m    zoneModel
	want map[uint64]block.Completion
	resets,
	ended int
}

func (b *zoneBench) Complete(c block.Completion) {
	w := b.want[c.Tag]
	delete(b.want, c.Tag)
	b.ended++
	if c.Status != w.Status || c.Offset != w.Offset {
		b.t.Errorf("command %d, %v: %v at %d, the model says %v at %d", c.Tag, c.Op, c.Status, c.Offset, w.Status,
			w.Offset)
	}
	if c.Op == block.Reset && c.Status == block.OK {
		z := &b.m.zones[w.Length]
		*z = modelZone{state: 'E'}
		b.resets++
	}
}

// TestZonesModel verifies that any commands to zones, in any order, complete according to the specification's states,
// that no page is moved, and that at the end the drive holds exactly the zones' data.
func TestZonesModel(t *testing.T) {
	rounds := 24
	if testing.Short() {
		rounds = 8
	}
	for seed := range rounds {
		r := rng.NewStream(uint64(seed), "zones")
		cfg := zonedRound()
		cfg.Geometry.BlocksPerPlane = 24
		cfg.OverProvisioning = .1
		cfg.Zones = &Zones{MaxOpen: 1 + int(r.IntN(4))}
		cfg.Zones.MaxActive = cfg.Zones.MaxOpen + int(r.IntN(3))
		superblock := cfg.superblockSize(2)
		switch r.IntN(3) {
		case 0:
			cfg.Zones.Capacity, cfg.Zones.Size = 2*superblock, 4*superblock
		case 1:
			cfg.Zones.Size = superblock + 7*zonedBlock
		}
		if r.IntN(2) == 0 {
			cfg.Cache.Mode = CacheReadWrite
		}
		if r.IntN(3) == 0 {
			cfg.Cache.Capacity = 32 * zonedBlock
		}
		cfg.Cache.DestageAt = units.Fraction(r.IntN(2)) / 2
		if r.IntN(2) == 0 {
			cfg.Preconditioning.Fill, cfg.Preconditioning.Occupancy = FillSequential, .7
		}
		beside := r.IntN(3) == 0
		if beside { // a conventional one, whose collection runs in the same pool
			cfg.Geometry.BlocksPerPlane = 60
			cfg.OverProvisioning = .3
			cfg.Namespaces = []Namespace{{}, {Conventional: true}}
		}
		eng := sim.New()
		b := &zoneBench{t: t, want: map[uint64]block.Completion{}}
		d, err := New(cfg, eng, b, uint64(seed), "ssd")
		if err != nil {
			t.Fatal(err)
		}
		b.d = d
		if b.q, err = d.Open(block.QueueConfig{Depth: 64, Weight: 1}); err != nil {
			t.Fatal(err)
		}
		z := d.Zones(0)
		b.m = zoneModel{size: z.Size / zonedBlock, capacity: z.Capacity / zonedBlock,
			zones: make([]modelZone, z.Count), maxOpen: z.MaxOpen, maxActve: z.MaxActive}
		for i := range b.m.zones {
			b.m.zones[i].state = 'E'
			if cfg.Preconditioning.Fill == FillSequential && i < int(float64(z.Count)*.7) {
				b.m.zones[i] = modelZone{state: 'F', pointer: b.m.capacity}
			}
		}
		tag := uint64(0)
		for range 3000 {
			tag++
			k := r.IntN(int64(z.Count))
			if r.IntN(2) == 0 {
				k = r.IntN(min(4, int64(z.Count)))
			}
			mz := &b.m.zones[k]
			alone := false // the reset of an active zone runs alone, because the drive decides when it frees its place
			req := block.Request{Tag: tag, Offset: k * z.Size}
			want := block.Completion{Length: k}
			switch p := r.IntN(20); {
			case p < 12 && !mz.busy:
				req.Op, req.Length = block.Write, (1+r.IntN(12))*zonedBlock
				if req.Append = r.IntN(2) == 0; !req.Append {
					req.Offset += mz.pointer * zonedBlock
					if r.IntN(10) == 0 {
						req.Offset += zonedBlock
					}
					if req.Offset >= (k+1)*z.Size {
						continue
					}
				}
				if req.Offset+req.Length > d.Capacity(0) {
					continue
				}
				want.Status, want.Offset = b.m.apply(&req)
			case p < 15:
				req.Op, req.Length = block.Read, (1+r.IntN(8))*zonedBlock
				req.Offset = r.IntN(d.Capacity(0)/zonedBlock-8) * zonedBlock
			case p == 15 && beside:
				req.Op, req.Length, req.Namespace = block.Write, 4*zonedBlock, 1
				req.Offset = r.IntN(d.Capacity(1)/zonedBlock-4) * zonedBlock
			case p == 16:
				req.Op = block.Flush
				req.Offset = 0
			case p > 16 && !mz.busy:
				req.Op = []block.Op{block.Open, block.Close, block.Finish, block.Reset, block.Reset}[r.IntN(5)]
				alone = req.Op == block.Reset && strings.IndexByte("IXC", mz.state) >= 0
				want.Status, _ = b.m.apply(&req)
			default:
				continue
			}
			b.want[tag] = want
			for alone && len(b.want) > 1 {
				eng.Run(eng.Next())
			}
			for !d.Submit(b.q, req) {
				eng.Run(eng.Next())
			}
			for n := int(r.IntN(24)); len(b.want) > n || alone && len(b.want) > 0; {
				if eng.Pending() == 0 {
					for i := range d.zones[0].list {
						if z := &d.zones[0].list[i]; z.resetting || z.out > 0 {
							t.Logf("zone %d: %+v; cache %d slots %d dirty %d leaving; packed %d", i, *z,
								d.caches[0].n, d.caches[0].dirty, d.caches[0].leaving, d.packing.Grains())
						}
					}
					t.Fatalf("seed %d: %d commands never end: %s", seed, len(b.want), d.Held())
				}
				eng.Run(eng.Next())
			}
		}
		eng.Run(sim.Forever)
		if len(b.want) > 0 {
			t.Fatalf("seed %d: %d commands never end: %s", seed, len(b.want), d.Held())
		}
		sound(t, d)
		held := int64(0)
		for i := range b.m.zones {
			held += b.m.zones[i].pointer
		}
		if got := d.Stats().ZoneLevels; got.Full != b.m.count("F") || got.Active != b.m.count("IXC") ||
			got.Open != b.m.count("IX") || int(d.Stats().Zones.Resets) != b.resets {
			t.Errorf("seed %d: %+v, the model has %d full, %d active, %d open, %d resets", seed, got, b.m.count("F"),
				b.m.count("IXC"), b.m.count("IX"), b.resets)
		}
		// Data not on flash wait in the cache for a page of flash to fill, or for more dirty data.
		if in := d.Stats().ValidPages; !beside && in+int64(len(d.caches[0].slots)) < held {
			t.Errorf("seed %d: %d blocks have a place, the zones hold %d", seed, in, held)
		}
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, *cfg.Zones)
		}
	}
}
