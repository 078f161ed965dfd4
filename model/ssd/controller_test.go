package ssd

import (
	"testing"

	"farflash/block"
	"farflash/numeric/units"
	"farflash/sim"
)

// TestControllerByHand: a lone read is delayed by the processor time spent on it. Of simultaneous reads to separate
// dies, on one processor, the k-th is passed on k commands' times late. At high depth, the processors limit the
// throughput if flash could do more.
func TestControllerByHand(t *testing.T) {
	read := func(page int64) block.Request {
		return block.Request{Op: block.Read, Offset: page * 8192, Length: 8192}
	}
	cfg := round()
	bare := newAsker(t, cfg)
	q := bare.open(t, block.QueueConfig{Depth: 16, Weight: 1})
	alone := bare.submit(t, q, read(0))[0]
	for _, processors := range []int{1, 2, 3} {
		cfg.Controller = &Controller{Processors: processors, Command: 700 * units.Nanosecond,
			Completion: 300 * units.Nanosecond}
		a := newAsker(t, cfg)
		q = a.open(t, block.QueueConfig{Depth: 16, Weight: 1})
		c := a.submit(t, q, read(0))[0]
		if got := c.Finished - c.Submitted - (alone.Finished - alone.Submitted); got != us {
			t.Errorf("%d processors: a read takes %v longer", processors, got)
		}
		s := a.d.Stats()
		if b := s.Breakdown[block.Read]; b.Controller != units.TotalOf(us) || s.ControllerBusy != us ||
			partsOf(&b) != b.All {
			t.Errorf("%d processors: the breakdown is %+v, they were busy for %v", processors, b, s.ControllerBusy)
		}
	}

	// Writes into a cache with space use only link, DRAM and processors: in a long run of n, with one always waiting, 1
	// us / processors each.
	cfg.Cache.Mode, cfg.Cache.DestageAt, cfg.Cache.Capacity = CacheWrite, .99, 64<<20
	for _, processors := range []int{1, 2, 4} {
		cfg.Controller = &Controller{Processors: processors, Command: 70 * us, Completion: 30 * us}
		a := newAsker(t, cfg)
		q = a.open(t, block.QueueConfig{Depth: 256, Weight: 1})
		writes := make([]block.Request, 240)
		for i := range writes {
			writes[i] = block.Request{Op: block.Write, Offset: int64(i) * 8192, Length: 8192}
		}
		a.submit(t, q, writes...)
		s := a.d.StatsAt(a.d.eng.Now())
		ideal := sim.Time(240) * 100 * us / sim.Time(processors)
		if s.ControllerBusy != 240*100*us || a.d.eng.Now() < ideal || a.d.eng.Now() > ideal+200*us {
			t.Errorf("%d processors: 240 writes took %v, not %v; the processors were busy for %v", processors,
				a.d.eng.Now(), ideal, s.ControllerBusy)
		}
	}
}

// TestProcessorsCut verifies that the processors' busy time up to any moment is clipped at that moment.
func TestProcessorsCut(t *testing.T) {
	p := processors{free: make([]sim.Time, 2)}
	for _, ends := range []struct{ at, want sim.Time }{{p.work(0, 10), 10}, {p.work(0, 10), 10}, {p.work(2, 10), 20},
		{p.work(3, 1), 11}, {p.work(30, 5), 35}} {
		if ends.at != ends.want {
			t.Errorf("ends at %v, not %v", ends.at, ends.want)
		}
	}
	for _, c := range []struct{ at, want sim.Time }{{30, 31}, {33, 34}, {35, 36}, {99, 36}} {
		if got := p.busyUntil(c.at); got != c.want {
			t.Errorf("busy for %v up to %v, not %v", got, c.at, c.want)
		}
	}
}
