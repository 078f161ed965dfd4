package nvmf_test

import (
	"testing"

	"farflash/block"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/sim"
)

// TestTenantLimits computes when reads start at a drive of which a tenant's limits let two pass in a millisecond: those
// of 0.5 ms at once, and the others in pairs at the start of slices. A write is limited with them, and a flush is not.
func TestTenantLimits(t *testing.T) {
	for _, p := range transports {
		o := newOutage(t, p, func(c *nvmf.Config) { c.Limits.IOs = 2000 }, nil)
		for range 5 {
			o.ask(500*us, block.Request{Op: block.Read, Length: 512})
		}
		o.ask(600*us, block.Request{Op: block.Write, Length: 512})
		o.ask(700*us, block.Request{Op: block.Flush})
		o.run(sim.Forever)
		starts := map[sim.Time]int{}
		for _, d := range o.done {
			switch {
			case d.Op == block.Flush && d.DriveIn > ms || d.DriveIn > ms && d.DriveIn%ms != 0:
				t.Errorf("%v: a %v starts at %v", p, d.Op, d.DriveIn)
			default:
				starts[d.DriveIn/ms]++
			}
		}
		if starts[0] != 3 || starts[1] != 2 || starts[2] != 2 || o.sys.Counters.HeldByLimits != 4 {
			t.Errorf("%v: %v commands by millisecond, %d held", p, starts, o.sys.Counters.HeldByLimits)
		}
		if err := o.sys.Idle(); err != nil {
			t.Error(err)
		}
	}
}

// TestTenants: limits per namespace are a drive's, whoever uses it; limits per initiator are its own at each target,
// whichever drives it uses. 16 reads of 64 KiB a millisecond are 1 GiB/s.
func TestTenants(t *testing.T) {
	const reads, size = 1000, 65536
	for _, x := range []struct {
		per                nvmf.Tenant
		initiators, drives int
		span               sim.Time // all reads together
	}{
		{nvmf.Namespace, 2, 1, reads / 16 * ms},
		{nvmf.Namespace, 1, 2, reads / 2 / 16 * ms},
		{nvmf.PerInitiator, 1, 2, reads / 16 * ms},
		{nvmf.PerInitiator, 2, 1, reads / 2 / 16 * ms},
	} {
		l := defaultLayout()
		l.initiators, l.drives = x.initiators, x.drives
		l.cfg.Limits = nvmf.Limits{Per: x.per, ReadBytes: 16 * size * 1000}
		r := newRig(t, l)
		for i := range reads {
			r.ask(ask{initiator: int32(i % x.initiators), drive: int32(i % x.drives),
				req: block.Request{Op: block.Read, Length: size}})
		}
		r.run(t)
		last := r.done[len(r.done)-1].DriveIn
		if last < x.span-ms || last > x.span+ms {
			t.Errorf("%v, %d initiators, %d drives: the last read starts at %v, not at %v", x.per, x.initiators,
				x.drives, last, x.span)
		}
	}
}

// TestLimitsLost loses connections while commands wait for limits.
func TestLimitsLost(t *testing.T) {
	for _, p := range transports {
		for when := range sim.Time(40) {
			o := newOutage(t, p, func(c *nvmf.Config) {
				c.Limits = nvmf.Limits{IOs: 4000, Per: nvmf.Tenant(when % 2)}
				c.WriteBuffers = 100 * units.KiB
			}, nil)
			for i := range sim.Time(40) {
				o.ask(i*us, block.Request{Op: block.Op(i % 2), Length: []int64{4096, 16384}[i%2]})
			}
			o.breakAt(when*100*us, 0)
			o.run(sim.Forever)
			if err := o.sys.Idle(); err != nil || len(o.done) != 40 || o.sys.Counters.Failed > 0 {
				t.Fatalf("%v, %v: %d ended; %v", p, when, len(o.done), err)
			}
		}
	}
}
