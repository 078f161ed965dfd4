package cluster_test

import (
	"testing"

	"farflash/model/cluster"
	"farflash/numeric/units"
)

// TestPutsFail verifies that while too few targets are left for any chunk, puts fail and are counted, for every
// protocol that tolerates failures, and that gateways put again once there are enough.
func TestPutsFail(t *testing.T) {
	for _, p := range recovering() {
		cfg := cluster.DefaultConfig()
		cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Group, cfg.Groups, cfg.Objects = p, 2, 8, 4, 2, 100
		for k := range 6 {
			cfg.Failures = append(cfg.Failures,
				cluster.Failure{Target: k, At: 20 * units.Millisecond, Back: 120 * units.Millisecond})
		}
		for _, key := range cfg.Unused() {
			key.Reset()
		}
		c, done := run(t, cfg, 1, 160*units.Millisecond)
		before, after := 0, 0
		for _, d := range done {
			switch {
			case d.Done < 20*units.Millisecond:
				before++
			case d.Done > 125*units.Millisecond:
				after++
			}
		}
		if k := &c.Counters; k.Failed < 4 || before == 0 || after < before/2 {
			t.Errorf("%v: %d puts failed in 100ms; %d were done in the 20ms before and %d in the 35ms behind it", p,
				k.Failed, before, after)
		}
	}
}

// TestQuorumOfFew verifies that puts continue with a quorum of the targets left, each counted as short of a piece.
func TestQuorumOfFew(t *testing.T) {
	cfg := cluster.DefaultConfig()
	cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Code, cfg.Quorum, cfg.Objects = cluster.Chain, 1, 4,
		cluster.Code{Data: 2, Parity: 2}, 3, 100
	cfg.Failures = []cluster.Failure{{Target: 1, At: 20 * units.Millisecond}}
	c, done := run(t, cfg, 1, 200*units.Millisecond)
	late := 0
	for _, d := range done {
		if d.Done > 30*units.Millisecond {
			late++
		}
	}
	if k := &c.Counters; k.Failed > 0 || late < 20 || k.Short < uint64(late)-2 {
		t.Errorf("%d puts failed; %d of %d put after the failure are short of a piece", k.Failed, k.Short, late)
	}
}

// TestReadsOfNothing verifies that a gateway that cannot read anything does not loop at one instant.
func TestReadsOfNothing(t *testing.T) {
	for _, open := range []bool{false, true} {
		cfg := cluster.DefaultConfig()
		cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Reads, cfg.Objects, cfg.Repair.Streams = cluster.Chain, 2, 4, 1,
			100, 0
		if open {
			cfg.Load.Rate = 10000
		}
		for k := range 4 {
			cfg.Failures = append(cfg.Failures, cluster.Failure{Target: k, At: 5 * units.Millisecond})
		}
		c, _ := run(t, cfg, 1, 50*units.Millisecond)
		if k := &c.Counters; k.Failed < 10 || k.Failed > 100000 ||
			k.Unavailable != k.Failed && k.Failed-k.Unavailable > 4 {
			t.Errorf("open %v: %d reads failed, %d since too little was left", open, k.Failed, k.Unavailable)
		}
	}
}
