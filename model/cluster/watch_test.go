package cluster_test

import (
	"testing"

	"farflash/model/cluster"
	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
	"farflash/sim"
)

// watched counts the calls of probes.
type watched struct {
	messages, frames, given, taken, freed, used uint64
	writes                                      map[int32][]cluster.Work
}

// watch runs a cluster with all probes set, and verifies each call.
func watch(t *testing.T, cfg cluster.Config, until sim.Time) (*cluster.Cluster, *watched) {
	t.Helper()
	eng := sim.New()
	c, err := cluster.New(cfg, eng, 1)
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{writes: map[int32][]cluster.Work{}}
	type key struct {
		target int32
		chunk  uint64
	}
	open := map[key]reserve.State{}
	sent := uint64(0)
	c.OnSend = func(x *cluster.Passage) { sent += uint64(len(x.To)) }
	c.OnReceive = func(x *cluster.Passage) {
		if x.Received != eng.Now() || x.Received < x.Sent+x.Takes+cfg.Link.Trip || len(x.To) != 1 || x.Chunk == 0 {
			t.Fatalf("at %v: %+v", eng.Now(), x)
		}
		if x.Data {
			w.frames++
		} else {
			w.messages++
		}
	}
	c.OnBid = func(x *cluster.BidChange) {
		k := key{x.Target, x.Chunk}
		state, there := open[k]
		switch {
		case x.State == reserve.Tentative && !there && x.Window.Width() > 0:
			open[k] = x.State
			w.given++
		case x.State == reserve.Accepted && !x.Done && there && state == reserve.Tentative:
			open[k] = x.State
			w.taken++
		case x.State == reserve.Canceled && there && state == reserve.Tentative:
			delete(open, k)
			w.freed++
		case x.Done && there && state == reserve.Accepted:
			delete(open, k)
			w.used++
		case cfg.Protocol == cluster.ReplicastHDouble && x.State == reserve.Canceled && !there:
			// A bid that was withdrawn is then canceled by a gateway that has not heard of it.
		default:
			t.Fatalf("%+v after %v (%v)", x, state, there)
		}
	}
	c.OnDisk = func(x *cluster.Work) { w.writes[x.Target] = append(w.writes[x.Target], *x) }
	seen := map[uint64]bool{}
	c.OnDone = func(d *cluster.Done) {
		if d.Chunk == 0 || seen[d.Chunk] {
			t.Fatalf("chunk %d is done twice", d.Chunk)
		}
		seen[d.Chunk] = true
	}
	c.Start()
	eng.Run(until)
	if sent < w.messages+w.frames {
		t.Errorf("%d sent, %d received", sent, w.messages+w.frames)
	}
	return c, w
}

// TestProbes verifies that probes report everything that is counted, in a plausible order, without changing results.
func TestProbes(t *testing.T) {
	for _, p := range schemes {
		for _, queued := range []bool{true, false} {
			cfg := cluster.DefaultConfig()
			cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Control.Queued = p, 12, 18, queued
			if cfg.Validate() != nil {
				continue // it needs links that queue
			}
			const until = 8 * units.Millisecond
			c, w := watch(t, cfg, until)
			blind, _ := run(t, cfg, 1, until)
			if c.Counters != blind.Counters {
				t.Errorf("%v: watched %+v, else %+v", p, c.Counters, blind.Counters)
			}
			if w.messages != c.Counters.Messages || w.frames != c.Counters.Frames {
				t.Errorf("%v: saw %d messages and %d frames, counted %d and %d", p, w.messages, w.frames,
					c.Counters.Messages, c.Counters.Frames)
			}
			if asked := c.Counters.Bids.Asked; w.given != asked || w.given < w.taken+w.freed || w.taken < w.used ||
				asked > 0 && w.used == 0 {
				t.Errorf("%v: %d asked, %d given, %d accepted, %d canceled, %d used", p, asked, w.given, w.taken,
					w.freed, w.used)
			}
			disks, _, _ := c.Busy(until)
			for target, list := range w.writes {
				at, busy := sim.Time(0), sim.Time(0)
				for _, x := range list {
					if x.From < at || x.From < x.At || x.To <= x.From {
						t.Fatalf("%v: target %d writes %+v after %v", p, target, x, at)
					}
					at = x.To
					busy += min(x.To, until) - min(x.From, until)
				}
				if busy != disks[target] {
					t.Errorf("%v: target %d wrote for %v, was busy for %v", p, target, busy, disks[target])
				}
			}
		}
	}
}
