package ssd_test

import (
	"io"
	"os"
	"strconv"
	"testing"
	"time"

	"farflash/block"
	"farflash/internal/draws"
	"farflash/model/cosim"
	"farflash/model/ssd"
	"farflash/model/ssd/nand"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/policy/ftl"
	"farflash/sim"
	"farflash/workload"

	"pgregory.net/rapid"
)

// mixed is a random source of all operations.
type mixed struct {
	n      int
	at     units.Duration
	gap    units.Duration
	span   int64 // sectors
	most   int64 // sectors a request
	align  int64
	reads  float64
	other  float64
	random rng.Stream
}

func (m *mixed) Next(r *workload.Record) error {
	if m.n == 0 {
		return io.EOF
	}
	m.n--
	m.at += units.Duration(m.random.IntN(int64(2*m.gap) + 1))
	size := (m.random.IntN(m.most) + m.align) / m.align * m.align
	size = min(size, m.span)
	first := m.random.IntN(m.span-size+1) / m.align * m.align
	*r = workload.Record{Time: m.at, Op: block.Write, Offset: first * 512, Size: size * 512}
	switch u := m.random.Float64(); {
	case u < m.other/2:
		r.Op, r.Offset, r.Size = block.Flush, 0, 0
	case u < m.other:
		r.Op = block.Trim
	case u < m.other+m.reads:
		r.Op = block.Read
	}
	return nil
}

func drawConfig(t *rapid.T) ssd.Config {
	cfg := ofPages()
	g := &cfg.Geometry
	g.Channels = rapid.IntRange(1, 3).Draw(t, "channels")
	g.ChipsPerChannel = rapid.IntRange(1, 3).Draw(t, "chips")
	g.DiesPerChip = rapid.IntRange(1, 2).Draw(t, "dies")
	g.PlanesPerDie = rapid.SampledFrom([]int{1, 2, 4, 6}).Draw(t, "planes")
	g.BlocksPerPlane = rapid.IntRange(40, 80).Draw(t, "blocks")
	g.PagesPerBlock = rapid.SampledFrom([]int{4, 16, 32, 70}).Draw(t, "pages")
	g.PageSize = rapid.SampledFrom([]units.Bytes{512, 4096, 8192, 32768}).Draw(t, "page size")
	cfg.Timing.Cell = rapid.SampledFrom([]nand.Cell{nand.SLC, nand.MLC, nand.TLC, nand.QLC}).Draw(t, "cell")
	cfg.OverProvisioning = units.Fraction(rapid.Float64Range(.28, .5).Draw(t, "op"))
	cfg.Host.FetchSize = rapid.IntRange(1, 64).Draw(t, "fetch")
	cfg.Host.Commands = rapid.SampledFrom([]int{0, 1, 16}).Draw(t, "commands")
	cfg.Cache.Mode = ssd.CacheMode(rapid.IntRange(0, 3).Draw(t, "cache"))
	cfg.Cache.Capacity = g.PageSize * units.Bytes(rapid.IntRange(1, 200).Draw(t, "cache pages"))
	cfg.Cache.Destage = ssd.Destage(rapid.IntRange(0, 1).Draw(t, "destage"))
	cfg.Cache.DestageAt = units.Fraction(rapid.SampledFrom([]float64{0, .5}).Draw(t, "destage at"))
	cfg.Mapping.Ideal = rapid.Bool().Draw(t, "ideal")
	cfg.Mapping.Allocation = ssd.Allocation(rapid.IntRange(0, 1).Draw(t, "allocation"))
	cfg.Mapping.CMTCapacity = units.Bytes(rapid.IntRange(1000, 20000).Draw(t, "cmt"))
	cfg.Scheduling.SuspendProgram = rapid.Bool().Draw(t, "suspend program")
	cfg.Scheduling.SuspendErase = rapid.Bool().Draw(t, "suspend erase")
	cfg.Scheduling.SuspendEraseForWrite = rapid.Bool().Draw(t, "suspend erase for write")
	cfg.Scheduling.ProgramLeftForRead = 10 * units.Microsecond
	cfg.Scheduling.IndependentReads = rapid.Bool().Draw(t, "independent reads")
	cfg.Scheduling.ReadsInTurn = cfg.Scheduling.IndependentReads && rapid.Bool().Draw(t, "reads in turn")
	cfg.Collection.Victim = ftl.Victim(rapid.IntRange(0, 5).Draw(t, "victim"))
	cfg.Collection.Window = .2
	cfg.Collection.Preemptible = rapid.Bool().Draw(t, "preemptible")
	cfg.Mapping.Grain = ssd.Grain(rapid.SampledFrom([]units.Bytes{0, g.PageSize / 2, 512, 4096}).Draw(t, "grain"))
	if grain := units.Bytes(cfg.Mapping.Grain); grain > 0 && (grain%512 != 0 || g.PageSize%grain != 0) {
		cfg.Mapping.Grain = 512
	}
	whole := cfg.Mapping.Grain == 0 || units.Bytes(cfg.Mapping.Grain) >= g.PageSize
	cfg.Collection.Copyback = cfg.Mapping.Allocation == ssd.AllocateStatic && whole && rapid.Bool().Draw(t, "copyback")
	cfg.Collection.Streams = rapid.Bool().Draw(t, "streams")
	cfg.Collection.Concurrent = rapid.IntRange(1, 4).Draw(t, "concurrent")
	cfg.Collection.MovesPerPlane = rapid.SampledFrom([]float64{.001, .5, 4, 100}).Draw(t, "moves")
	cfg.Wear.Static = rapid.SampledFrom([]int{0, 2, 10}).Draw(t, "static")
	cfg.Wear.Dynamic = rapid.Bool().Draw(t, "dynamic")
	cfg.Initial = ssd.Initial(rapid.IntRange(0, 2).Draw(t, "initial"))
	cfg.Preconditioning.Fill = ssd.Fill(rapid.IntRange(0, 3).Draw(t, "fill"))
	cfg.Preconditioning.Occupancy = units.Fraction(rapid.Float64Range(.1, 1).Draw(t, "occupancy"))
	cfg.Preconditioning.Passes = 1
	cfg.Preconditioning.SmallWrites = rapid.Bool().Draw(t, "small writes")
	if rapid.Bool().Draw(t, "two namespaces") {
		cfg.Namespaces = []ssd.Namespace{{Streams: 2}, {Channels: []int{0}}}
	}
	if cfg.Timing.Cell > nand.SLC && rapid.Bool().Draw(t, "slc cache") {
		block := g.PageSize * units.Bytes(g.PagesPerBlock/cfg.Timing.Cell.Bits()*g.Planes())
		s := ssd.DefaultSLCCache()
		s.Capacity = block * units.Bytes(rapid.IntRange(1, 20).Draw(t, "slc blocks"))
		s.Reserved = block * units.Bytes(rapid.IntRange(0, 1).Draw(t, "slc reserved"))
		s.Fold = ssd.Folding(rapid.IntRange(0, 1).Draw(t, "fold"))
		s.IdleAfter = rapid.SampledFrom([]units.Duration{0, 50 * units.Microsecond, units.Millisecond}).Draw(t,
			"idle after")
		s.WhenFull = ssd.WhenFull(rapid.IntRange(0, 1).Draw(t, "when full"))
		if cfg.SLCCache = &s; cfg.Validate() != nil {
			cfg.SLCCache = nil // the drive lacks the blocks for it
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "fdp") == 0 {
		drawGroups(t, &cfg)
	}
	if rapid.Bool().Draw(t, "mqsim") {
		cfg.FDP = nil
		cfg = ssd.MQSim(cfg)
		// MQSim's mapping pages take space that is never freed, its flows may be promised more than their planes hold,
		// and it keeps ten blocks a plane free, so a small drive can run full. It then stops, as intended.
		cfg.Mapping.Ideal = true
		cfg.Geometry.BlocksPerPlane += 60
		cfg.OverProvisioning = .45
		if len(cfg.Namespaces) > 0 {
			cfg.Namespaces[1].Channels = nil
		}
	}
	return cfg
}

// drawGroups makes a drive place data by handles, in reclaim groups.
func drawGroups(t *rapid.T, cfg *ssd.Config) {
	dies := cfg.Geometry.Dies()
	n := rapid.IntRange(1, dies).Draw(t, "groups")
	for dies%n > 0 {
		n--
	}
	cfg.FDP = &ssd.FDP{Handles: rapid.IntRange(1, 3).Draw(t, "handles"), Groups: n,
		Isolation: ssd.Isolation(rapid.IntRange(0, 1).Draw(t, "isolation"))}
	cfg.Collection.Streams = false
	for i := range cfg.Namespaces {
		if cfg.Namespaces[i].Streams = 0; n > 1 {
			cfg.Namespaces[i].Channels = nil
		}
	}
}

// soak runs one random system until it is drained and checks every law.
func soak(t *rapid.T) {
	cfg := drawConfig(t)
	drawFront(t, &cfg)
	soakOf(t, cfg, nil)
}

// drawFront may give a drive a controller with processing times, and power states, some with such short idle times that
// the drive enters them between requests.
func drawFront(t *rapid.T, cfg *ssd.Config) {
	const us = units.Microsecond
	if rapid.Bool().Draw(t, "controller") {
		cfg.Controller = &ssd.Controller{
			Processors: rapid.IntRange(1, 3).Draw(t, "processors"),
			Command:    units.Duration(rapid.IntRange(1, 20).Draw(t, "command us")) * us,
			Completion: units.Duration(rapid.IntRange(0, 20).Draw(t, "completion us")) * us,
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "power limit") == 0 {
		cfg.Energy = &ssd.Energy{Read: 1e-5, Program: 1e-4, Erase: 1e-3, TransferPerByte: 1e-9, LinkPerByte: 1e-9,
			Idle: 1}
		cfg.PowerLimit = &ssd.PowerLimit{Watts: 1 + rapid.SampledFrom([]float64{.1, 1, 10}).Draw(t, "watts"),
			Window: rapid.SampledFrom([]units.Duration{0, us, units.Millisecond}).Draw(t, "window")}
	}
	if rapid.Bool().Draw(t, "rests") {
		cfg.PowerStates = []ssd.PowerState{{After: 10 * us, Entry: 5 * us, Exit: 20 * us},
			{After: 30 * us, Exit: 50 * us}}
	}
}

// soakOf is soak for a given drive. watch, if any, receives it before it starts.
func soakOf(t *rapid.T, cfg ssd.Config, watch func(*ssd.Drive)) *ssd.Drive {
	seed := rapid.Uint64().Draw(t, "seed")
	eng := sim.New()
	h := cosim.NewHost(eng)
	d, err := ssd.New(cfg, eng, h, seed, "ssd")
	if err != nil {
		t.Skip(err) // an invalid geometry; the error is tested elsewhere
	}
	if watch != nil {
		watch(d)
	}
	var flows []cosim.Flow
	total := uint64(0)
	for ns := range d.Namespaces() {
		for k := range rapid.IntRange(1, 3).Draw(t, "queues") {
			placements := 0
			if f := cfg.FDP; f != nil {
				placements = rapid.IntRange(0, f.Groups).Draw(t, "of group") * f.Handles // or of none
			}
			n := rapid.IntRange(1, 3000).Draw(t, "requests")
			total += uint64(n)
			size := d.Capacity(ns) / 512
			if cfg.Quirks.HostStop > 0 && cfg.Preconditioning.Fill != ssd.FillNone {
				// MQSim may promise more than it can hold; the data it holds can be overwritten.
				page := int64(cfg.Geometry.PageSize) / 512
				size = int64(float64(size/page)*float64(cfg.Preconditioning.Occupancy)) * page
				if size == 0 {
					t.Skip("there is nothing to overwrite")
				}
			}
			f := cosim.Flow{
				Name: "flow", Namespace: uint8(ns),
				Queue: block.QueueConfig{Class: block.Class(rapid.IntRange(0, 3).Draw(t, "class")),
					Depth: rapid.SampledFrom([]int{2, 8, 1024}).Draw(t, "depth")},
				Source: &mixed{
					n: n, gap: units.Duration(rapid.IntRange(0, 200).Draw(t, "gap us")) * units.Microsecond, span: size,
					most:   rapid.Int64Range(1, 200).Draw(t, "most"),
					align:  rapid.SampledFrom([]int64{1, 8, 16}).Draw(t, "align"),
					reads:  rapid.SampledFrom([]float64{0, .5, .9}).Draw(t, "reads"),
					other:  rapid.SampledFrom([]float64{0, .05}).Draw(t, "other"),
					random: rng.NewStream(seed, "mixed"+strconv.Itoa(k)),
				},
				Placement: uint8(placements + k),
				ForceUnit: rapid.Bool().Draw(t, "fua"),
			}
			if rapid.Bool().Draw(t, "closed") {
				f.Outstanding = rapid.IntRange(1, 64).Draw(t, "outstanding")
			}
			flows = append(flows, f)
		}
	}
	if err := h.Attach(d, flows); err != nil {
		t.Fatal(err)
	}
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	// A drive whose cached map is far too small may write mapping pages forever, because each page that collection
	// moves dirties an entry. The host does not wait for that.
	h.OnIdle = func(sim.Time) { eng.Stop() }
	for _, ms := range rapid.SliceOfN(rapid.IntRange(1, 20), 3, 3).Draw(t, "looked at, ms") {
		if eng.Run(eng.Now() + units.Duration(ms)*units.Millisecond); h.Ended() == total {
			break
		}
		if err := d.Books(); err != nil {
			t.Errorf("%v: %v", eng.Now(), err)
		}
	}
	// A drive whose victim policy ignores the cost may never have a page left for the host.
	at := eng.Now()
	rounds, _ := d.Rounds()
	for ended := h.Ended(); h.Ended() < total && eng.Pending() > 0; {
		at += 10 * units.Millisecond
		eng.Run(at)
		if now, _ := d.Rounds(); h.Ended() != ended {
			rounds, ended = now, h.Ended()
		} else if now-rounds > 8 {
			t.Skip("the drive collects in vain; packages that run drives say so")
		}
	}
	if err := d.Books(); err != nil {
		t.Errorf("at the end: %v", err)
	}
	if err := h.Err(); err != nil {
		t.Fatal(err)
	}
	for _, c := range d.Checks() {
		if !c.OK {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
	// The checks of changes alone must hold for every page.
	if d.Whole() {
		for _, c := range d.Checks() {
			if !c.OK {
				t.Errorf("page by page: %s: %s", c.Name, c.Detail)
			}
		}
	}
	if h.Ended() != total {
		t.Errorf("%d of %d requests ended; %s", h.Ended(), total, d.Held())
	}
	return d
}

func TestSoak(t *testing.T) {
	t.Parallel()
	rapid.Check(t, soak)
}

// TestFailedPrograms fails programs of the host, of the map and of collection, in up to three blocks of each pool. No
// request is lost, map and flash agree, and the blocks are retired.
func TestFailedPrograms(t *testing.T) {
	t.Parallel()
	var failed, failures, retired int64
	draws.Until(t, func() bool { return failed > 0 && retired > 0 }, func(t *rapid.T) {
		cfg := drawConfig(t)
		cfg.Quirks = ssd.Quirks{}
		cfg.Geometry.BlocksPerPlane += 20
		cfg.OverProvisioning = .45
		cfg.Collection.Reserve = 4
		// A small map cache, which programs dirty again and again, would never settle with failures.
		cfg.Mapping.CMTCapacity = max(cfg.Mapping.CMTCapacity, 10000)
		odds := rapid.SampledFrom([]int64{2, 50, 1000}).Draw(t, "odds")
		random := rng.NewStream(rapid.Uint64().Draw(t, "failures"), "failures")
		failing := make([]int, cfg.Geometry.Planes()) // by pool, of which there may be fewer
		bad := map[uint32]bool{}
		d := soakOf(t, cfg, func(d *ssd.Drive) {
			d.FailPrograms(func(page uint32) bool {
				perPool, perBlock := d.PoolPages()
				pool, blk := int(page)/perPool, page/uint32(perBlock)
				if !bad[blk] {
					if failing[pool] == 3 || random.IntN(odds) > 0 {
						return false
					}
					failing[pool]++
					bad[blk] = true
				}
				return random.IntN(4) > 0 // not all others of the block fail
			})
		})
		s := d.Stats().FTL
		failed += s.FailedPrograms
		failures += s.Failures
		retired += s.Retired
		_, perBlock := d.PoolPages()
		if most := int64(len(bad) * perBlock / cfg.Geometry.PagesPerBlock); s.Failures > most {
			t.Errorf("%d blocks fail, %d were said to", s.Failures, most)
		}
	})
	t.Logf("%d programs failed in %d blocks, of which %d are retired", failed, failures, retired)
}

// TestLongSoak runs new systems for as many seconds as FARFLASH_SOAK specifies.
func TestLongSoak(t *testing.T) {
	seconds, _ := strconv.Atoi(os.Getenv("FARFLASH_SOAK"))
	if seconds == 0 {
		t.Skip("FARFLASH_SOAK is not set to a number of seconds")
	}
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end) && !t.Failed(); {
		rapid.Check(t, soak)
	}
}
