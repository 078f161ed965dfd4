package cluster_test

import (
	"math"
	"slices"
	"testing"

	"farflash/model/cluster"
	"farflash/model/cluster/uses"
	"farflash/numeric/units"
	"farflash/sim"
)

// TestSpent verifies that the time of each disk and link is accounted to the picosecond and agrees with the disks' busy
// time, for every protocol, with puts, reads, codes, lost messages and failures.
func TestSpent(t *testing.T) {
	for _, p := range schemes {
		for name, change := range map[string]func(*cluster.Config){
			"puts": func(*cluster.Config) {},
			"slow links": func(c *cluster.Config) {
				c.Link.Rate, c.Disk.Rate = 2*units.Gbps, units.ByteRate(units.GiB)
			},
			"gets": func(c *cluster.Config) { c.Reads, c.Objects = 0.7, 1000 },
			"gets over slow links": func(c *cluster.Config) {
				c.Reads, c.Objects, c.Link.Rate, c.Disk.Rate = 0.9, 1000, 2*units.Gbps, units.ByteRate(units.GiB)
			},
			"few gateways in an open loop": func(c *cluster.Config) {
				c.Gateways, c.Load.Share, c.Outstanding = 3,
					0.5, 8
			},
			"failures": func(c *cluster.Config) {
				c.Reads, c.Objects, c.Link.Loss = 0.5, 1000, 0.001
				c.Failures = []cluster.Failure{{Target: 5, At: 5 * units.Millisecond, Back: 12 * units.Millisecond}}
			},
			"kinds": func(c *cluster.Config) {
				c.Disk.Kinds = []cluster.Kind{{Share: 0.3, Rate: 200 * units.ByteRate(units.MiB)}}
			},
			"compat": func(c *cluster.Config) { c.Compat, c.Control.Queued = cluster.CompatSURGE, false },
		} {
			cfg := cluster.DefaultConfig()
			cfg.Protocol, cfg.Gateways, cfg.Targets = p, 18, 18
			if p == cluster.CommandWindow {
				cfg.Replicas = 1
			}
			if change(&cfg); cfg.Validate() != nil {
				continue // no protocol supports all of these
			}
			// Whether the protocol has a phase before data.
			negotiates := !slices.Contains([]cluster.Scheme{cluster.Chain, cluster.Grants, cluster.DCTCP,
				cluster.CommandWindow}, p)
			const until = 20 * units.Millisecond
			c, _ := run(t, cfg, 1, until)
			busy, _, _ := c.Busy(until)
			disks, links := c.Spent(until)
			var all uses.Spent
			for i, s := range disks {
				if s.All() != until {
					t.Errorf("%v, %s: disk %d: %v of %v", p, name, i, s.All(), until)
				}
				if used := s[uses.Work] + s[uses.Repair]; used != busy[i] && name != "compat" {
					t.Errorf("%v, %s: disk %d: used for %v, was busy for %v", p, name, i, used, busy[i])
				}
				for u := range s {
					if all[u] += s[u]; s[u] < 0 {
						t.Errorf("%v, %s: disk %d: %v", p, name, i, s)
					}
				}
			}
			for i, s := range links {
				if s.All() != until || s[uses.Work] == 0 || s[uses.Control] == 0 && negotiates {
					t.Errorf("%v, %s: link %d: %v of %v", p, name, i, s, until)
				}
			}
			if (len(links) > 0) != (c.Binding() != "disks") {
				t.Errorf("%v, %s: %s bound the cluster, and there are %d links", p, name, c.Binding(), len(links))
			}
			if name == "failures" && (all[uses.Down] != 7*units.Millisecond || all[uses.Repair] == 0) {
				t.Errorf("%v: %v", p, all)
			}
			if name == "puts" &&
				(all[uses.Receiving] == 0 || all[uses.Reserved] == 0 && negotiates ||
					all[uses.Control]+all[uses.Waiting]+all[uses.Down] > 0) {
				t.Errorf("%v: %v", p, all)
			}
			if bids := p.Grouped() && p != cluster.ReplicastProxy; name == "puts" && bids != (all[uses.Tentative] > 0) {
				t.Errorf("%v: %v", p, all)
			}
		}
	}
}

// TestSpentIsTheBound verifies that the accounted work is the share of the bound that was reached, apart from chunks in
// flight at the ends.
func TestSpentIsTheBound(t *testing.T) {
	for _, p := range schemes {
		cfg := cluster.DefaultConfig()
		cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Outstanding = p, 18, 18, 2
		if p == cluster.CommandWindow {
			cfg.Replicas = 1
		}
		const until = 50 * units.Millisecond
		c, done := run(t, cfg, 1, until)
		reached := float64(len(done)) / until.Seconds() / c.Bound().Chunks
		disks, _ := c.Spent(until)
		work := 0.0
		for _, s := range disks {
			work += s[uses.Work].Seconds() / until.Seconds() / float64(len(disks))
		}
		if c.Binding() != "disks" || math.Abs(work-reached) > 0.02 {
			t.Errorf("%v: %.3f of the bound of %s, disks worked for %.3f", p, reached, c.Binding(), work)
		}
	}
}

// TestSpentOfOneChunk verifies each part of the time of a replica whose path is known.
func TestSpentOfOneChunk(t *testing.T) {
	cfg := lone(cluster.ReplicastM, true, 128*units.KiB)
	const until = 400 * units.Microsecond
	c, done := run(t, cfg, 1, until)
	if len(done) != 0 {
		t.Fatal("the first chunk is done too soon")
	}
	var data, tentative sim.Time
	n := 0
	disks, _ := c.Spent(until)
	for _, s := range disks {
		if s[uses.Work] > 0 {
			n++
			data = s[uses.Receiving]
		}
		tentative = max(tentative, s[uses.Tentative])
	}
	// 131,072 B at 8.91 Gbit/s; two control messages of 300 B at 0.99 Gbit/s and two trips. SURGE rounds a frame's time
	// down to ns.
	if n != 3 || data < 117670*units.Nanosecond || data > 117690*units.Nanosecond {
		t.Errorf("%d targets received for %v", n, data)
	}
	if tentative < 6848*units.Nanosecond || tentative > 6849*units.Nanosecond {
		t.Errorf("bids were tentative for %v", tentative)
	}
}
