package ssd_test

import (
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"regexp"
	"strings"
	"testing"

	"farflash/block"
	"farflash/model/cosim"
	"farflash/model/ssd"
	"farflash/model/ssd/nand"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/policy/ftl"
	"farflash/sim"

	"github.com/cockroachdb/datadriven"
)

// choose picks one of the alternatives.
func choose[T any](r *rng.Stream, from ...T) T { return from[r.IntN(int64(len(from)))] }

// chosen returns a drive of few blocks with every setting drawn.
func chosen(r *rng.Stream) ssd.Config {
	cfg := ofPages()
	g := &cfg.Geometry
	*g = nand.Geometry{
		Channels: choose(r, 1, 2, 3), ChipsPerChannel: choose(r, 1, 2), DiesPerChip: choose(r, 1, 2),
		PlanesPerDie:   choose(r, 1, 2, 4),
		BlocksPerPlane: choose(r, 44, 60), PagesPerBlock: choose(r, 8, 24),
		PageSize: choose[units.Bytes](r, 4096, 16384),
	}
	cfg.Timing.Cell = choose(r, nand.SLC, nand.MLC, nand.TLC, nand.QLC)
	cfg.OverProvisioning = units.Fraction(choose(r, .3, .42))
	cfg.Host.FetchSize, cfg.Host.Commands, cfg.Host.Burst = choose(r, 1, 7, 64), choose(r, 0, 3, 16), choose(r, 1, 4)
	cfg.Host.Weights = choose(r, [3]int{1, 1, 1}, [3]int{8, 4, 1})
	cfg.Cache.Mode = choose(r, ssd.CacheOff, ssd.CacheWrite, ssd.CacheRead, ssd.CacheReadWrite)
	cfg.Cache.Capacity = g.PageSize * choose[units.Bytes](r, 3, 20, 100)
	cfg.Cache.Destage = choose(r, ssd.DestageOldest, ssd.DestageFirstTouch)
	cfg.Cache.DestageAt, cfg.Cache.DestageDepth = units.Fraction(choose(r, 0, .5)), choose(r, 0, 2)
	cfg.Mapping.Ideal = choose(r, true, false)
	cfg.Mapping.Allocation = choose(r, ssd.AllocateDynamic, ssd.AllocateStatic)
	cfg.Mapping.CMTCapacity = choose[units.Bytes](r, 1200, 6000)
	cfg.Mapping.CMTShared = choose(r, true, false)
	cfg.Mapping.Grain = ssd.Grain(choose(r, 0, 4096, g.PageSize/2))
	cfg.Scheduling = ssd.Scheduling{
		Classes: choose(r, true, false), SuspendProgram: choose(r, true, false), SuspendErase: choose(r, true, false),
		SuspendEraseForWrite: choose(r, true, false),
		ProgramLeftForRead:   20 * units.Microsecond, EraseLeftForRead: 100 * units.Microsecond,
		EraseLeftForWrite: 200 * units.Microsecond,
		IndependentReads:  choose(r, true, false),
	}
	c := &cfg.Collection
	c.Victim = choose(r, ftl.Victim(0), 1, 2, 3, 4, 5, 6)
	c.Window = .2
	c.Preemptible, c.Streams, c.Concurrent = choose(r, true, false), choose(r, true, false), choose(r, 1, 3)
	c.Copyback = cfg.Mapping.Allocation == ssd.AllocateStatic && cfg.Mapping.Grain == 0 && choose(r, true, false)
	cfg.Wear.Static, cfg.Wear.Dynamic = choose(r, 0, 2), choose(r, true, false)
	cfg.Initial = choose(r, ssd.InitialFormula, ssd.InitialEmpty, ssd.InitialOnRead)
	cfg.Preconditioning.Fill = choose(r, ssd.FillNone, ssd.FillSequential, ssd.FillSteady, ssd.FillReplay)
	cfg.Preconditioning.Occupancy, cfg.Preconditioning.Passes = units.Fraction(choose(r, .6, 1)), 1
	if choose(r, true, false, false) {
		cfg.Namespaces = []ssd.Namespace{{Streams: 2}, {Channels: []int{0}}}
	}
	if choose(r, true, false, false, false) {
		cfg = ssd.MQSim(cfg)
		cfg.Geometry.BlocksPerPlane += 60
		cfg.OverProvisioning, cfg.Mapping.Ideal = .45, true
		if len(cfg.Namespaces) > 0 {
			cfg.Namespaces[1].Channels = nil
		}
	}
	return cfg
}

var byOperation = regexp.MustCompile(`((?:Submitted|Finished|Bytes):\[\d+ \d+ \d+ \d+) 0 0 0 0\]`)

var undivided = regexp.MustCompile(`Zone(s|Levels):\{(\w+:0 ?)+\}|Groups:\[\]`)

// noted passes completions on, and hashes them.
type noted struct {
	to  block.Sink
	all hash.Hash64
}

func (n noted) Complete(c block.Completion) {
	n.digest(c)
	n.to.Complete(c)
}

// digest adds the non-zero fields of v, so that a new counter changes only the digests of runs in which it counts.
func (n noted) digest(v any) {
	// Counts by operation end with those of zone commands, and the statistics of zones and reclaim groups are empty on
	// drives without them: both are cut where they are zero.
	text := undivided.ReplaceAllString(byOperation.ReplaceAllString(fmt.Sprintf("%+v", v), "$1]"), "")
	for _, field := range strings.Fields(text) {
		if !strings.HasSuffix(field, ":0") {
			io.WriteString(n.all, field)
		}
	}
}

// transcript runs a drive drawn from seed and describes the outcome, with a hash of the requests' order, times and
// results.
func transcript(t *testing.T, seed uint64, failures bool) string {
	r := rng.NewStream(seed, "drive")
	cfg := chosen(&r)
	if failures {
		cfg.Quirks = ssd.Quirks{}
		cfg.Geometry.BlocksPerPlane += 20
		cfg.OverProvisioning, cfg.Collection.Reserve, cfg.Mapping.CMTCapacity = .45, 4, 10000
	}
	eng := sim.New()
	h := cosim.NewHost(eng)
	ended := noted{to: h, all: fnv.New64a()}
	d, err := ssd.New(cfg, eng, ended, seed, "ssd")
	if err != nil {
		return fmt.Sprintf("%d: %v\n", seed, err)
	}
	if failures {
		planes, perBlock := d.PoolPages()
		failing := map[int]int{}
		d.FailPrograms(func(page uint32) bool {
			if pool := int(page) / planes; failing[pool] < 2 && r.IntN(60) == 0 && int(page)%perBlock > 1 {
				failing[pool]++
				return true
			}
			return false
		})
	}
	var flows []cosim.Flow
	const each = 700
	for ns := range d.Namespaces() {
		for k := range 2 {
			f := cosim.Flow{
				Name: "flow", Namespace: uint8(ns), Placement: uint8(k), ForceUnit: k == 1 && choose(&r, true, false),
				Queue: block.QueueConfig{Class: choose(&r, block.Class(0), 1, 2, 3), Depth: choose(&r, 4, 64),
					Weight: choose(&r, 1, 3)},
				Source: &mixed{
					n: each, gap: choose[units.Duration](&r, 0, 30, 120) * units.Microsecond,
					span: int64(float64(d.Capacity(ns)/512)*.5) / 32 * 32,
					most: choose[int64](&r, 8, 60), align: choose[int64](&r, 1, 8, 32), reads: choose(&r, 0, .5, .8),
					other:  choose(&r, 0, .04),
					random: rng.NewStream(seed, fmt.Sprint("flow", ns, k)),
				},
			}
			if choose(&r, true, false) {
				f.Outstanding = choose(&r, 1, 6, 40)
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
	h.OnIdle = func(sim.Time) { eng.Stop() }
	eng.Run(sim.Forever)
	for _, c := range d.Checks() {
		if !c.OK {
			t.Errorf("%d: %s: %s", seed, c.Name, c.Detail)
		}
	}
	s := d.Stats()
	ended.digest(s)
	return fmt.Sprintf("%d: %v; %d of %d ended; flash %d reads %d programs %d erases; moved %d; map %d hits %d "+
		"misses; cache %d %d; %016x\n",
		seed, eng.Now(), h.Ended(), len(flows)*each, s.Reads, s.Programs, s.Erases, s.MovePrograms, s.MapHits,
		s.MapMisses, s.CacheHits, s.CacheMisses, ended.all.Sum64())
}

// TestTranscripts pins the behaviour of drives that were drawn once, to the picosecond of every request. A change that
// should not move results must not change it; one that should is reviewed here, line by line, before it is accepted
// with -rewrite.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	datadriven.RunTest(t, "testdata/transcripts", func(t *testing.T, td *datadriven.TestData) string {
		var from, to int
		td.ScanArgs(t, "seeds", &from, &to)
		var b strings.Builder
		for seed := from; seed <= to; seed++ {
			b.WriteString(transcript(t, uint64(seed), td.HasArg("failures")))
		}
		return b.String()
	})
}
