package cluster_test

import (
	"math"
	"testing"

	"farflash/model/cluster"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// TestSeveralDisks verifies that a target of n disks has n times the throughput where its link allows it, and that a
// lone chunk takes as long as with one disk, because one disk writes a piece.
func TestSeveralDisks(t *testing.T) {
	for _, p := range []cluster.Scheme{cluster.Pull, cluster.Chain, cluster.DCTCP, cluster.Grants, cluster.UCH} {
		rates := map[int]float64{}
		for _, n := range []int{1, 4} {
			cfg := cluster.DefaultConfig()
			cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Group, cfg.Chunk = p, 18, 18, 9, 64*units.KiB
			cfg.Disk.Rate, cfg.Disk.Count, cfg.Link.Rate, cfg.Outstanding = 100*units.ByteRate(units.MiB), n,
				10*units.Gbps, 12
			c, done := run(t, cfg, 1, 120*units.Millisecond)
			if err := c.Check(); err != nil {
				t.Fatal(err)
			}
			half := 0
			for _, d := range done {
				if d.Done > 60*units.Millisecond {
					half++
				}
			}
			rates[n] = float64(half) / 0.06
			bound := c.Bounds()[0]
			if want := float64(n) * 18 * float64(cfg.Disk.Rate) /
				(3 * float64(cfg.Chunk)); math.Abs(bound.Chunks/want-1) > 1e-6 {
				t.Errorf("%v: %d disks allow %v chunks a second, not %v", p, n, bound.Chunks, want)
			}
			if rates[n] > 1.02*bound.Chunks {
				t.Errorf("%v: %v chunks a second of %v that disks allow", p, rates[n], bound.Chunks)
			}
			used, _, _ := c.Busy(120 * units.Millisecond)
			for i, u := range used {
				if u > 120*units.Millisecond {
					t.Errorf("%v: the disks of target %d are busy for %v", p, i, u)
				}
			}
		}
		if grows := rates[4] / rates[1]; grows < 2.7 || grows > 4.4 {
			t.Errorf("%v: four disks do %.2f times what one does", p, grows)
		}
		one, four := floorOf(t, p, 1), floorOf(t, p, 4)
		if p != cluster.UCH && math.Abs(float64(one-four)) > float64(units.Microsecond) {
			t.Errorf("%v: a chunk that is alone takes %v with one disk and %v with four", p, one, four)
		}
	}
}

// floorOf returns the time of a lone chunk.
func floorOf(t *testing.T, p cluster.Scheme, disks int) sim.Time {
	cfg := cluster.DefaultConfig()
	cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Disk.Count = p, 1, 18, disks
	c, done := run(t, cfg, 1, 20*units.Millisecond)
	if len(done) == 0 {
		t.Fatal("nothing is done")
	}
	if took := done[0].Done - done[0].Begun; took < c.Floor() {
		t.Errorf("%v, %d disks: a chunk takes %v, less than %v", p, disks, took, c.Floor())
	}
	return done[0].Done - done[0].Begun
}

// TestDisksLaws verifies the laws with several disks per target under reads, losses, failures and repairs, and that the
// disks' time is fully accounted.
func TestDisksLaws(t *testing.T) {
	s := rng.NewStream(7, "disks")
	for k, p := range []cluster.Scheme{cluster.Pull, cluster.Chain, cluster.DCTCP, cluster.Grants, cluster.UCH,
		cluster.ReplicastH} {
		cfg := cluster.DefaultConfig()
		cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Group, cfg.Chunk = p, 6, 18, 9, 40*units.KB
		cfg.Disk.Count, cfg.Outstanding, cfg.Reads, cfg.Objects = 2+int(s.IntN(4)), 4, 0.4, 300
		cfg.Read = cluster.Reading(k % 5)
		cfg.Link.Loss, cfg.Repair.Detect = 0.001, units.Millisecond
		cfg.Failures = []cluster.Failure{{Target: 3, At: 5 * units.Millisecond},
			{Target: 4, At: 6 * units.Millisecond, Back: 12 * units.Millisecond}}
		const until = 40 * units.Millisecond
		c, _ := run(t, settled(cfg), uint64(k), until)
		if err := c.Check(); err != nil {
			t.Errorf("%v: %v", p, err)
		}
		if c.Counters.Repaired == 0 {
			t.Errorf("%v: nothing is made again", p)
		}
		disks, _ := c.Spent(until)
		for i := range disks {
			if got, want := disks[i].All(), until*sim.Time(cfg.Disk.Count); got != want {
				t.Errorf("%v: %v of %v of target %d are accounted for", p, got, want, i)
			}
		}
	}
}
