package cluster_test

import (
	"testing"

	"farflash/cluster"
	"farflash/sim"
	"farflash/units"
)

// TestSpent: a target's time is accounted for to the picosecond, that of its disk as it is elsewhere; and in a cluster with one gateway,
// where a replica's way is known, each part is what it must be.
func TestSpent(t *testing.T) {
	for _, p := range schemes {
		for _, compat := range []bool{true, false} {
			cfg := cluster.DefaultConfig()
			cfg.Protocol, cfg.Gateways, cfg.Targets = p, 45, 45
			if compat {
				cfg.Compat, cfg.Control.Queued = cluster.CompatSURGE, false
			}
			const until = 7 * units.Millisecond
			c, _ := run(t, cfg, 1, until)
			disks, _, _ := c.Busy(until)
			var all cluster.Spent
			for i, s := range c.Spent(until) {
				if s.All() != until || s.Disk != disks[i] {
					t.Errorf("%v: target %d: %+v of %v, its disk was busy for %v", p, i, s, sim.Time(until), disks[i])
				}
				all.Receiving += s.Receiving
				all.Reserved += s.Reserved
				all.Tentative += s.Tentative
				all.Nothing += s.Nothing
			}
			if bids := p == cluster.ReplicastM || p == cluster.ReplicastH; all.Receiving == 0 || all.Reserved == 0 || all.Nothing == 0 || bids != (all.Tentative > 0) {
				t.Errorf("%v: %+v", p, all)
			}
		}
	}
	cfg := lone(cluster.ReplicastM, true, 128*units.KiB)
	c, done := run(t, cfg, 1, 400*units.Microsecond)
	if len(done) != 0 {
		t.Fatal("the first chunk is done too soon")
	}
	var data, tentative sim.Time
	n := 0
	for _, s := range c.Spent(400 * units.Microsecond) {
		if s.Disk > 0 {
			n++
			data = s.Receiving
		}
		tentative = max(tentative, s.Tentative)
	}
	// 131,072 B at 8.91 Gbit/s; two control messages of 300 B at 0.99 and two trips. SURGE rounds a frame's time down to ns.
	if n != 3 || data < 117670*units.Nanosecond || data > 117690*units.Nanosecond {
		t.Errorf("%d targets received for %v", n, data)
	}
	if tentative < 6848*units.Nanosecond || tentative > 6849*units.Nanosecond {
		t.Errorf("bids were tentative for %v", tentative)
	}
}
