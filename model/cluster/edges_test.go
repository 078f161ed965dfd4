package cluster_test

import (
	"strings"
	"testing"

	"farflash/model/cluster"
	"farflash/numeric/units"
	"farflash/sim"
)

// TestPopulationIsPlaced verifies that a cluster with reads starts with all its objects stored, each piece at a
// different target, as the placement or the groups prescribe.
func TestPopulationIsPlaced(t *testing.T) {
	for _, p := range []cluster.Scheme{cluster.Chain, cluster.ReplicastM, cluster.Pull} {
		cfg := cluster.DefaultConfig()
		cfg.Protocol, cfg.Reads, cfg.Objects = p, .5, 300
		c, err := cluster.New(cfg, sim.New(), 1)
		if err != nil {
			t.Fatal(err)
		}
		targets, copies := c.Holders()
		if len(targets) != cfg.Objects*copies {
			t.Fatalf("%v: %d pieces of %d objects", p, len(targets), cfg.Objects)
		}
		used := map[int32]int{}
		for n := range cfg.Objects {
			seen := map[int32]bool{}
			for _, x := range targets[n*copies:][:copies] {
				if x < 0 || int(x) >= cfg.Targets || seen[x] {
					t.Fatalf("%v: object %d is at %v", p, n, targets[n*copies:][:copies])
				}
				seen[x] = true
				used[x]++
			}
		}
		if len(used) < cfg.Targets*9/10 {
			t.Errorf("%v: only %d of %d targets have something", p, len(used), cfg.Targets)
		}
	}
}

// TestSumBytes verifies that SumBytes is the sum of the nodes' traffic.
func TestSumBytes(t *testing.T) {
	cfg := cluster.DefaultConfig()
	cfg.Gateways, cfg.Targets, cfg.Reads = 7, 18, .3
	c, _ := run(t, cfg, 1, 5*units.Millisecond)
	var want [2]cluster.NodeBytes
	for i, b := range c.AppendBytes(nil) {
		x := &want[min(i/cfg.Gateways, 1)]
		x.Sent, x.Data, x.Control = x.Sent+b.Sent, x.Data+b.Data, x.Control+b.Control
	}
	gateways, targets := c.SumBytes()
	if gateways != want[0] || targets != want[1] || gateways.Sent <= 0 || targets.Sent <= 0 {
		t.Errorf("%+v and %+v, want %+v", gateways, targets, want)
	}
}

// TestRacksLimits tests both sides of the minimum number of racks for chunks that avoid the targets of the previous
// one.
func TestRacksLimits(t *testing.T) {
	for _, x := range []struct {
		racks, targets int
		may            bool
	}{{6, 6, true}, {5, 10, true}, {5, 9, false}, {3, 6, true}, {3, 5, false}, {2, 12, false}} {
		cfg := cluster.DefaultConfig()
		cfg.Protocol, cfg.Placement, cfg.Racks, cfg.Targets, cfg.Gateways = cluster.UCH, cluster.PlaceRandom, x.racks,
			x.targets, 3
		if err := cfg.Validate(); (err == nil) != x.may || err != nil && !strings.Contains(err.Error(), "racks") {
			t.Errorf("%d racks of %d targets: %v", x.racks, x.targets, err)
		}
	}
}
