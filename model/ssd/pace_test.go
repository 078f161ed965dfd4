package ssd_test

import (
	"testing"

	"farflash/block"
	"farflash/model/ssd"
	"farflash/model/ssd/nand"
)

// TestPace verifies that a host whose writes have used up the free blocks is throttled, not stopped: no write waits as
// long as the moves of a whole superblock take, which it would if collection had priority until the superblock was
// erased.
func TestPace(t *testing.T) {
	cfg := ofPages()
	cfg.Geometry = nand.Geometry{Channels: 2, ChipsPerChannel: 2, DiesPerChip: 1, PlanesPerDie: 2,
		BlocksPerPlane: 128, PagesPerBlock: 256, PageSize: 16384}
	cfg.OverProvisioning = .28
	cfg.Mapping.Ideal = true
	cfg.Cache.Mode = ssd.CacheOff
	cfg.Timing.TransferRate = 1_600_000_000
	cfg.Collection.Start, cfg.Collection.Hard = .05, .03
	cfg.Preconditioning.Fill = ssd.FillSteady
	d, h, _ := play(t, cfg, 64, random(20000, block.Write, 16384, 3_000_000_000))
	s := d.Stats()
	if s.MovePrograms < s.HostPrograms/2 {
		t.Fatalf("%d pages were moved for %d written", s.MovePrograms, s.HostPrograms)
	}
	// Half a superblock's pages, two a command on each of four dies.
	superblock := 256 / 2 * (cfg.Timing.Read[0] + cfg.Timing.Program[0])
	most := h.Measured(block.Write).Latency.Max()
	t.Logf("at most %v; a superblock's moves take %v", most, superblock)
	if most > superblock/2 {
		t.Errorf("a write took %v; a superblock's moves take %v", most, superblock)
	}
}

// TestMovesPerPlane verifies the limit on moves in flight on a drive that collects as fast as it may: with one in all,
// moves take the read and the program of each, one after the other.
func TestMovesPerPlane(t *testing.T) {
	for _, limit := range []float64{1. / 8, 4} {
		cfg := ofPages()
		cfg.Geometry = nand.Geometry{Channels: 2, ChipsPerChannel: 2, DiesPerChip: 1, PlanesPerDie: 2,
			BlocksPerPlane: 128, PagesPerBlock: 64, PageSize: 16384}
		cfg.OverProvisioning = .28
		cfg.Mapping.Ideal = true
		cfg.Cache.Mode = ssd.CacheOff
		cfg.Collection.Start, cfg.Collection.Hard, cfg.Collection.MovesPerPlane = .05, .03, limit
		cfg.Preconditioning.Fill = ssd.FillSteady
		d, _, eng := play(t, cfg, 64, random(5000, block.Write, 16384, 750_000_000))
		s, tm := d.Stats(), &cfg.Timing
		if s.MovePrograms < s.HostPrograms/2 {
			t.Fatalf("%d pages were moved for %d written", s.MovePrograms, s.HostPrograms)
		}
		one := tm.ReadCommand(1) + tm.Read[0] + tm.ReadyBusy + tm.DataOutSetup + tm.ProgramCommand(1) + tm.Program[0] +
			2*tm.Data(16384)
		at := float64(s.MovePrograms) * float64(one) / float64(eng.Now())
		t.Logf("%v: %.3f moves in flight on average if each took no longer than on an idle drive", limit, at)
		if limit < 1 && (at > 1 || at < .3) || limit > 1 && at < 2 {
			t.Errorf("%v a plane: %.3f moves in flight", limit, at)
		}
	}
}
