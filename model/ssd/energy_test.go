package ssd_test

import (
	"math"
	"testing"

	"farflash/block"
	"farflash/model/ssd"
	"farflash/workload"
)

// pages counts the work of dies and channels, as reported by their probe.
type pages struct {
	of    [ssd.Erase + 1]float64 // by activity
	bytes float64                // over channels
}

func (p *pages) note(w ssd.Work) {
	p.of[w.Activity] += float64(w.Pages)
	p.bytes += float64(w.Bytes)
}

// TestEnergyTerms verifies each term of the energy separately: a figure times a count that is also known independently.
// Dies and channels report their work, the host knows its requests, blocks record their erases. No operation is
// suspended, so that no work is reported twice.
func TestEnergyTerms(t *testing.T) {
	t.Parallel()
	const page, reads, writes, span = 8192, 300, 20000, 1 << 25
	sum := 0.0
	for _, c := range []struct {
		name   string
		energy ssd.Energy
		copies bool
		want   func(p *pages, s *ssd.Stats) float64
	}{
		{"read", ssd.Energy{Read: 3}, false, func(p *pages, _ *ssd.Stats) float64 { return 3 * p.of[ssd.Read] }},
		{"program", ssd.Energy{Program: 5}, false,
			func(p *pages, _ *ssd.Stats) float64 { return 5 * p.of[ssd.Program] }},
		{"erase", ssd.Energy{Erase: 7}, false, func(p *pages, _ *ssd.Stats) float64 { return 7 * p.of[ssd.Erase] }},
		{"channel", ssd.Energy{TransferPerByte: 11}, false,
			func(p *pages, _ *ssd.Stats) float64 { return 11 * p.bytes }},
		{"link", ssd.Energy{LinkPerByte: 13}, false,
			func(*pages, *ssd.Stats) float64 { return 13 * page * (reads + writes) }},
		// added by whoever knows the span
		{"idle", ssd.Energy{Idle: 17}, false, func(*pages, *ssd.Stats) float64 { return 0 }},
		{"all", ssd.Energy{Read: 3, Program: 5, Erase: 7, TransferPerByte: 11, LinkPerByte: 13}, false,
			func(*pages, *ssd.Stats) float64 { return sum }},
		// A copyback reads and programs a page without transferring data over the channel.
		{"program, copyback", ssd.Energy{Program: 5}, true,
			func(p *pages, s *ssd.Stats) float64 { return 5 * float64(writes+s.MovePrograms) }},
		{"channel, copyback", ssd.Energy{TransferPerByte: 11}, true,
			func(*pages, *ssd.Stats) float64 { return 11 * page * (reads + writes) }},
	} {
		cfg := collectingConfig()
		cfg.Energy, cfg.Collection.Copyback = &c.energy, c.copies
		if c.copies {
			cfg.Mapping.Allocation = ssd.AllocateStatic
		}
		g := &cfg.Geometry
		g.Channels, g.ChipsPerChannel, g.DiesPerChip, g.BlocksPerPlane = 1, 2, 1, 48
		cfg.Initial = ssd.InitialFormula // pages never written are read as well
		records := append(random(writes, block.Write, page, span), random(reads, block.Read, page, span)...)
		var p pages
		d, _, _ := play(t, cfg, 16, records, func(d *ssd.Drive) { d.OnWork = p.note })
		s := d.Stats()
		erases := 0.0
		for n, blocks := range d.EraseHistogram() {
			erases += float64(n) * float64(blocks)
		}
		moves := s.FTL.GCPrograms + s.FTL.WearPrograms
		if erases == 0 || moves == 0 || erases != p.of[ssd.Erase] ||
			!c.copies && p.of[ssd.Program] != float64(writes+moves) {
			t.Fatalf("%s: %v erases, blocks remember %v; %v programs, %d moves", c.name, p.of[ssd.Erase], erases,
				p.of[ssd.Program], moves)
		}
		want := c.want(&p, &s)
		if math.Abs(s.Energy-want) > 1e-9*want {
			t.Errorf("%s: %v J, want %v", c.name, s.Energy, want)
		}
		if c.name != "all" {
			sum += s.Energy
		}
	}
}

// TestNoEnergy verifies that without figures the energy is zero.
func TestNoEnergy(t *testing.T) {
	d, _, _ := play(t, smallConfig(), 1, []workload.Record{{Op: block.Write, Size: 8192}})
	if e := d.Stats().Energy; e != 0 {
		t.Errorf("%v J of a drive whose figures are not known", e)
	}
}
