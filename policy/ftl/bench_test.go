package ftl_test

import (
	"testing"

	"farflash/numeric/rng"
	"farflash/policy/ftl"
)

// array is a minimal driver: the map and its inverse in two arrays, every operation synchronous.
type array struct {
	*ftl.FTL
	to, of    []int32
	now       ftl.Tick
	addresses rng.Stream
}

func (d *array) Lookup(lpa ftl.LPA) ftl.PPA { return ftl.PPA(d.to[lpa]) }
func (d *array) Owner(ppa ftl.PPA) ftl.LPA  { return ftl.LPA(d.of[ppa]) }
func (d *array) CompareAndSwap(lpa ftl.LPA, old, new ftl.PPA) bool {
	if d.to[lpa] != int32(old) {
		return false
	}
	d.to[lpa] = int32(new)
	return true
}

func (d *array) write(lpa int32) {
	d.now++
	ppa, ok := d.Allocate(0, 0, d.now)
	if !ok {
		panic("no page")
	}
	old := d.to[lpa]
	d.to[lpa], d.of[ppa] = int32(ppa), lpa
	d.Programmed(ppa)
	d.Invalidate(ftl.PPA(old), d.now)
	for {
		a, ok := d.Next(0)
		if !ok {
			return
		}
		if a.Kind == ftl.Erase {
			d.Erased(a.Block)
		} else if dst, ok := d.Relocate(a.Source, d.now); ok {
			d.of[dst] = int32(a.LPA)
			d.Moved(a.Source, dst, d.now)
		}
	}
}

// filled returns a warm drive of blocks of 256 pages whose logical space is the given part of its physical space.
func filled(tb testing.TB, victim ftl.Victim, blocks int, part float64) *array {
	cfg := ftl.DefaultConfig()
	cfg.BlocksPerPool, cfg.Victim = blocks, victim
	pages := cfg.BlocksPerPool * cfg.PagesPerBlock
	d := &array{to: make([]int32, int(part*float64(pages))), of: make([]int32, pages),
		addresses: rng.NewStream(1, "addresses")}
	random := rng.NewStream(1, "victims")
	var err error
	if d.FTL, err = ftl.New(cfg, d, &random); err != nil {
		tb.Fatal(err)
	}
	for lpa := range d.to {
		ppa, _ := d.Allocate(0, 0, 0)
		d.to[lpa], d.of[ppa] = int32(ppa), int32(lpa)
		d.Programmed(ppa)
	}
	for range 2 * pages {
		d.write(d.draw())
	}
	return d
}

func (d *array) draw() int32 { return int32(d.addresses.IntN(int64(len(d.to)))) }

// BenchmarkHostWrite measures Allocate, Programmed and Invalidate of the page overwritten half a drive ago, with an
// erase every 256 writes and no page to move.
func BenchmarkHostWrite(b *testing.B) {
	for victim := ftl.Greedy; victim <= ftl.CostBenefit; victim++ {
		b.Run(victim.String(), func(b *testing.B) {
			d := filled(b, victim, 2048, 0.5)
			for lpa := range d.to {
				d.write(int32(lpa))
			}
			lpa := int32(0)
			b.ReportAllocs()
			for b.Loop() {
				d.write(lpa)
				if lpa++; int(lpa) == len(d.to) {
					lpa = 0
				}
			}
		})
	}
}

// BenchmarkRandomWrite measures a random write on a drive half full: random invalidation and occasional collection.
func BenchmarkRandomWrite(b *testing.B) {
	d := filled(b, ftl.Greedy, 2048, 0.5)
	b.ReportAllocs()
	before := d.Stats()
	for b.Loop() {
		d.write(d.draw())
	}
	b.ReportMetric(d.Stats().Sub(before).WAF(), "WAF")
}

// BenchmarkCollect measures random writes on a drive with 7 % of spare space; the metric is the time per programmed
// page, moves included.
func BenchmarkCollect(b *testing.B) {
	for victim := ftl.Greedy; victim <= ftl.CostBenefit; victim++ {
		b.Run(victim.String(), func(b *testing.B) {
			d := filled(b, victim, 2048, 0.93)
			b.ReportAllocs()
			before := d.Stats()
			for b.Loop() {
				d.write(d.draw())
			}
			s := d.Stats().Sub(before)
			b.ReportMetric(s.WAF(), "WAF")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(s.HostPrograms+s.GCPrograms), "ns/program")
		})
	}
}

// TestNoAllocation verifies that the hot path, collection included, does not allocate.
func TestNoAllocation(t *testing.T) {
	if checked {
		t.Skip("walking invariants allocates")
	}
	for victim := ftl.Greedy; victim <= ftl.CostBenefit; victim++ {
		d := filled(t, victim, 128, 0.85)
		erases := d.Stats().Erases
		if n := testing.AllocsPerRun(10, func() {
			for range 2000 {
				d.write(d.draw())
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations for 2000 writes", victim, n)
		}
		if d.Stats().Erases == erases {
			t.Errorf("%v: nothing was collected", victim)
		}
	}
}
