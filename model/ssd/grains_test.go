package ssd_test

import (
	"fmt"
	"slices"
	"testing"

	"farflash/block"
	"farflash/model/cosim"
	"farflash/model/ssd"
	"farflash/model/ssd/nand"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/policy/ftl"
	"farflash/policy/ftl/waf"
	"farflash/sim"
	"farflash/workload"
)

const kib4 = ssd.Grain(4 * units.KiB)

// grained returns a small drive of 16 KiB pages with a map of 4 KiB.
func grained() ssd.Config {
	cfg := ofPages()
	cfg.Geometry = nand.Geometry{Channels: 2, ChipsPerChannel: 2, DiesPerChip: 1, PlanesPerDie: 2,
		BlocksPerPlane: 128, PagesPerBlock: 64, PageSize: 16384}
	cfg.OverProvisioning = .2
	cfg.Preconditioning.SmallWrites = true
	cfg.Mapping.Ideal, cfg.Mapping.Grain = true, kib4
	cfg.Initial = ssd.InitialEmpty
	cfg.Timing.TransferRate = 1_600_000_000
	return cfg
}

// TestGrainsFillPages: writes of a grain fill pages, four to each, whatever their addresses, through the cache and, if
// enough of them wait, past it. Grains that do not fill a page stay in memory. With a map of pages each grain takes a
// page.
func TestGrainsFillPages(t *testing.T) {
	const n = 4003
	for _, c := range []struct {
		name        string
		grain       ssd.Grain
		mode        ssd.CacheMode
		outstanding int
		least, most uint64
	}{
		{"cached", kib4, ssd.CacheWrite, 1, n / 4, n / 4},
		{"cached, deep", kib4, ssd.CacheWrite, 64, n / 4, n / 4},
		{"past the cache, deep", kib4, ssd.CacheOff, 512, n / 4, n/4*102/100 + 8},
		{"past the cache, one by one", kib4, ssd.CacheOff, 1, n, n},
		{"pages", 0, ssd.CacheWrite, 64, n, n},
		{"a grain as large as a page", 16 << 10, ssd.CacheWrite, 64, n, n},
	} {
		cfg := grained()
		cfg.Mapping.Grain, cfg.Cache.Mode = c.grain, c.mode
		records := make([]workload.Record, n) // each address once
		for i := range records {
			records[i] = workload.Record{Op: block.Write,
				Offset: int64(i*7919%100003) * 16384 % 500_000_000 / 16384 * 16384, Size: 4096}
			records[i].Offset += int64(i%4) * 4096
		}
		d, _, _ := play(t, cfg, c.outstanding, records)
		if s := d.Stats(); s.HostPrograms < c.least || s.HostPrograms > c.most ||
			s.Programmed != int64(s.Programs)*16384 {
			t.Errorf("%s: %d pages programmed, %d bytes; want %d to %d pages", c.name, s.HostPrograms, s.Programmed,
				c.least, c.most)
		}
	}
}

// TestReadsTakeGrains: if the drive lays out data on demand, a read of an unwritten address takes a grain of the open
// page. A page is programmed when the last of its four grains is taken, by a read or a write, and never if none of them
// was written.
func TestReadsTakeGrains(t *testing.T) {
	for seed := range uint64(8) {
		cfg := grained()
		cfg.Geometry.Channels, cfg.Geometry.ChipsPerChannel, cfg.Geometry.PlanesPerDie = 1, 1, 1
		cfg.Initial = ssd.InitialOnRead
		r := rng.NewStream(seed, "reads take grains")
		const n = 402 // the last page is not full
		var records []workload.Record
		programs, written := uint64(0), false
		for i := range n {
			op := block.Read
			if i >= 4 && r.IntN(3) == 0 {
				op, written = block.Write, true
			}
			records = append(records, workload.Record{Op: op, Offset: int64(i) * 4096, Size: 4096})
			if op == block.Write { // it leaves the cache while flash is read, and before the next request
				records = append(records, workload.Record{Op: block.Read, Size: 4096},
					workload.Record{Op: block.Read, Offset: 4096, Size: 4096})
			}
			if i%4 == 3 {
				if written {
					programs++
				}
				written = false
			}
		}
		d, _, _ := play(t, cfg, 1, records)
		if s := d.Stats(); s.HostPrograms != programs {
			t.Errorf("seed %d: %d pages programmed, not %d", seed, s.HostPrograms, programs)
		}
	}
}

// TestPartsOfGrains: a write of a part of a grain with data reads that grain, exactly once. A write of a whole grain,
// or of a part of an empty one, reads no page.
func TestPartsOfGrains(t *testing.T) {
	cfg := grained()
	cfg.Cache.Mode = ssd.CacheOff
	whole := inOrder(400, block.Write, 16384)
	for _, c := range []struct {
		name    string
		size    int64
		offset  int64 // within 4 KiB
		reads   uint64
		bytesIn units.Bytes // bytes read over the channel
	}{{"a sector", 512, 1024, 1, 7 * 512}, {"a grain", 4096, 0, 0, 0}, {"across two", 4096, 2048, 2, 4096}} {
		records := append([]workload.Record(nil), whole...)
		for i := range 100 {
			records = append(records,
				workload.Record{Op: block.Write, Offset: int64(i)*16384 + 4096 + c.offset, Size: c.size})
		}
		read := int64(0)
		d, _, _ := play(t, cfg, 1, records, func(d *ssd.Drive) {
			d.OnWork = func(w ssd.Work) {
				if w.Activity == ssd.ReadData {
					read += w.Bytes
				}
			}
		})
		if s := d.Stats(); s.Reads != 100*c.reads || read != 100*int64(c.bytesIn) {
			t.Errorf("%s: %d pages and %d bytes read for 100 writes, want %d and %d", c.name, s.Reads, read,
				100*c.reads, 100*c.bytesIn)
		}
	}
	// Empty grains, written past each other's sectors.
	d, _, _ := play(t, cfg, 1, random(100, block.Write, 512, 1<<26))
	if s := d.Stats(); s.Reads != 0 {
		t.Errorf("%d pages read for writes of what holds nothing", s.Reads)
	}
}

// TestReadsOfGrains verifies that a read senses a page once for all grains of a request, and transfers just those.
func TestReadsOfGrains(t *testing.T) {
	for _, initial := range []ssd.Initial{ssd.InitialEmpty, ssd.InitialFormula} {
		cfg := grained()
		cfg.Initial = initial
		cfg.Preconditioning.Fill = ssd.FillSequential
		if initial == ssd.InitialFormula {
			cfg.Preconditioning.Fill = ssd.FillNone
		}
		for _, c := range []struct {
			offset, size int64
			reads        uint64
		}{{0, 4096, 1}, {4096, 8192, 1}, {0, 16384, 1}, {0, 65536, 4}, {8192, 16384, 2}, {12288, 512, 1}} {
			sent := int64(0)
			d, _, _ := play(t, cfg, 1, []workload.Record{{Op: block.Read, Offset: c.offset, Size: c.size}},
				func(d *ssd.Drive) {
					d.OnWork = func(w ssd.Work) {
						if w.Activity == ssd.ReadData {
							sent += w.Bytes
						}
					}
				})
			if s := d.Stats(); s.Reads != c.reads || sent != c.size {
				t.Errorf("%v, %d bytes at %d: %d pages read and %d bytes sent, want %d and %d", initial, c.size,
					c.offset, s.Reads, sent, c.reads, c.size)
			}
		}
	}
}

// TestReadsFromMemory verifies that grains waiting in memory for their page to fill are read from there.
func TestReadsFromMemory(t *testing.T) {
	cfg := grained()
	d, h, _ := play(t, cfg, 1, []workload.Record{{Op: block.Write, Size: 4096}, {Op: block.Read, Size: 4096}})
	if s := d.Stats(); s.Programs != 0 || s.Reads != 0 {
		t.Errorf("%d programs and %d reads of flash", s.Programs, s.Reads)
	}
	if got := h.Measured(block.Read).Latency.Max(); got > 10*units.Microsecond {
		t.Errorf("the read took %v", got)
	}
}

// TestPadding verifies that FLUSH and FUA program partly filled pages and lose the rest of them.
func TestPadding(t *testing.T) {
	for _, p := range []ssd.Destage{ssd.DestageOldest, ssd.DestageFirstTouch} {
		cfg := grained()
		cfg.Cache.Destage = p
		var records []workload.Record
		for i := range int64(30) {
			records = append(records, workload.Record{Op: block.Write, Offset: i * 8192, Size: 4096})
			if i%3 == 2 {
				records = append(records, workload.Record{Op: block.Flush})
			}
		}
		d, h, _ := play(t, cfg, 1, records)
		s := d.Stats()
		if s.HostPrograms != 10 || s.FTL.Skipped != 10 {
			t.Errorf("%v: %d pages programmed and %d grains lost, want 10 and 10", p, s.HostPrograms, s.FTL.Skipped)
		}
		if got := h.Measured(block.Flush).Latency.Min(); got < 750*units.Microsecond {
			t.Errorf("%v: a flush took %v, less than a program", p, got)
		}
	}
}

// TestTinyCacheOfGrains verifies that a cache so small that all its data wait for pages to fill programs partly filled
// pages to make space.
func TestTinyCacheOfGrains(t *testing.T) {
	for _, p := range []ssd.Destage{ssd.DestageOldest, ssd.DestageFirstTouch} {
		cfg := grained()
		cfg.Cache.Destage, cfg.Cache.Capacity = p, 16384
		cfg.Namespaces = []ssd.Namespace{{Streams: 8}}
		eng := sim.New()
		h := cosim.NewHost(eng)
		d, err := ssd.New(cfg, eng, h, 1, "ssd")
		if err != nil {
			t.Fatal(err)
		}
		var flows []cosim.Flow
		for k := range 8 {
			flows = append(flows,
				cosim.Flow{Name: fmt.Sprint(k), Placement: uint8(k), Outstanding: 1,
					Source: workload.Slice(random(50+k, block.Write, 4096, 1<<26))})
		}
		if err := h.Attach(d, flows); err != nil {
			t.Fatal(err)
		}
		if err := h.Start(); err != nil {
			t.Fatal(err)
		}
		eng.Run(sim.Forever)
		if h.Err() != nil || h.Ended() != h.Issued() {
			t.Errorf("%v: %d of %d writes ended: %v %s", p, h.Ended(), h.Issued(), h.Err(), d.Held())
		}
		for _, c := range d.Checks() {
			if !c.OK {
				t.Errorf("%v, %s: %s", p, c.Name, c.Detail)
			}
		}
	}
}

// TestGrainsWriteAmplification verifies that random writes of a grain amplify as in the closed form of greedy
// collection with grains as pages, also in bytes. With a map of pages the same writes cost more than four times as many
// bytes.
func TestGrainsWriteAmplification(t *testing.T) {
	t.Parallel()
	const span = 70 // percent of the flash
	amplify := func(grain ssd.Grain) (pages, bytes float64, cfg ssd.Config) {
		cfg = grained()
		cfg.Geometry.Channels, cfg.Geometry.ChipsPerChannel = 1, 2
		cfg.Mapping.Grain = grain
		cfg.OverProvisioning = 1 - span/100.
		cfg.Collection.Start, cfg.Collection.Hard = .03, .02
		cfg.Wear.Static = 0
		cfg.Cache.Capacity = 1 << 20
		cfg.Preconditioning.Fill = ssd.FillSteady
		m, err := ssd.Prepare(cfg, 1, "ssd", nil)
		if err != nil {
			t.Fatal(err)
		}
		eng := sim.New()
		h := cosim.NewHost(eng)
		d, err := ssd.NewOnly(m, eng, h, 1, "ssd")
		if err != nil {
			t.Fatal(err)
		}
		n := int(d.Capacity(0) / 4096)
		if grain == 0 {
			n /= 4
		}
		if err := h.Attach(d,
			[]cosim.Flow{{Name: "writes", Outstanding: 64,
				Source: workload.Slice(random(n, block.Write, 4096, d.Capacity(0)))}}); err != nil {
			t.Fatal(err)
		}
		if err := h.Start(); err != nil {
			t.Fatal(err)
		}
		var from ssd.Stats
		h.OnProgress = func(ended uint64) {
			if from.Finished[block.Write] == 0 && ended >= uint64(n/4) {
				from = d.Stats()
			}
		}
		eng.Run(sim.Forever)
		for _, c := range d.Checks() {
			if !c.OK {
				t.Errorf("%s: %s", c.Name, c.Detail)
			}
		}
		s := d.Stats()
		s = s.Since(&from)
		return float64(s.HostPrograms+s.MovePrograms) / float64(s.HostPrograms),
			float64(s.Programmed) / float64(s.Bytes[block.Write]), cfg
	}
	pages, bytes, cfg := amplify(kib4)
	// Blocks with data: all except two that are free while one is collected, and the unused part of two open blocks,
	// each half full.
	g := cfg.Geometry
	closed := float64(g.BlocksPerPlane) - 3
	want, err := waf.Policy{Victim: ftl.Greedy}.WAF(closed/float64(g.BlocksPerPlane)/(span/100.),
		g.PagesPerBlock*g.Planes()*4)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("grains: %.3f in pages, %.3f in bytes; the closed form has %.3f", pages, bytes, want)
	if r := pages / want; r < .98 || r > 1.02 {
		t.Errorf("write amplification is %.3f, the closed form has %.3f", pages, want)
	}
	if r := bytes / pages; r < .97 || r > 1.01 { // rewrites in the cache make it slightly less
		t.Errorf("in bytes it is %.3f, in pages %.3f", bytes, pages)
	}
	whole, wholeBytes, _ := amplify(0)
	t.Logf("pages: %.3f in pages, %.3f in bytes", whole, wholeBytes)
	if r := wholeBytes / bytes; r < 3.8 || r > 4.2 {
		t.Errorf("pages amplify %.2f times as much as grains in bytes, want 4", r)
	}
}

// TestCollectionReadsPagesOnce verifies that data laid out before time 0 cost collection as much as data written by the
// drive: it moves valid grains, and reads them a page at a time.
func TestCollectionReadsPagesOnce(t *testing.T) {
	t.Parallel()
	cfg := grained()
	cfg.Collection.Start, cfg.Collection.Hard = .05, .03
	cfg.Preconditioning.Fill = ssd.FillSteady
	d, _, _ := play(t, cfg, 64, random(60000, block.Write, 4096, 850_000_000))
	s := d.Stats()
	moved := float64(s.FTL.GCPrograms)
	if s.MovePrograms < 1000 {
		t.Fatalf("only %d pages were programmed by collection", s.MovePrograms)
	}
	// Survivors fill their pages, except for those in memory.
	if full := moved / 4; float64(s.MovePrograms) > full || float64(s.MovePrograms) < full-8 {
		t.Errorf("%d pages programmed for %.0f grains that were moved", s.MovePrograms, moved)
	}
	// Of a victim's pages of four grains, each valid independently with probability u, those with at least one are
	// read: (1-(1-u)^4)/4u pages a grain.
	u := moved / (float64(s.FTL.Collections) / 8 * 64 * 8 * 4)
	want := (1 - (1-u)*(1-u)*(1-u)*(1-u)) / (4 * u)
	if got := float64(s.Reads) / moved; got/want < .97 || got/want > 1.05 {
		t.Errorf("%.3f pages read a grain moved, want %.3f: %.2f of a victim was valid", got, want, u)
	}
}

// TestSteadyOfPagesAndGrains verifies that data written a page at a time are read, and collected, with one sense of
// flash, and data written a grain at a time are not.
func TestSteadyOfPagesAndGrains(t *testing.T) {
	t.Parallel()
	for _, fill := range []ssd.Fill{ssd.FillSteady, ssd.FillReplay} {
		for small, most := range map[bool]float64{false: 1.0001, true: 4} {
			cfg := grained()
			cfg.Preconditioning.Fill, cfg.Preconditioning.SmallWrites, cfg.Preconditioning.Passes = fill, small, 2
			d, _, _ := play(t, cfg, 8, random(1000, block.Read, 16384, 850_000_000))
			if got := float64(d.Stats().Reads) / 1000; got > most || small && got < 2 {
				t.Errorf("%v, small writes %v: %.2f pages sensed for 16 KiB", fill, small, got)
			}
		}
	}
}

// TestMergedBytes: a second write of a grain that leaves some of the first one's sectors valid is merged with those,
// which are read, and all sectors that are then valid cross the channel. A write that covers the first is sent alone.
// Each write reaches flash before the next, because there is no cache and each is followed by a FLUSH.
func TestMergedBytes(t *testing.T) {
	type span struct{ from, to int64 } // sectors
	for _, c := range []struct{ first, second span }{
		{span{0, 4}, span{4, 8}}, {span{0, 6}, span{4, 8}}, {span{4, 8}, span{0, 2}}, {span{1, 3}, span{5, 6}},
		{span{2, 4}, span{0, 8}}, {span{2, 4}, span{2, 4}}, {span{2, 4}, span{1, 4}},
	} {
		cfg := grained()
		cfg.Cache.Mode = ssd.CacheOff
		var records []workload.Record
		for _, w := range []span{c.first, c.second} {
			records = append(records,
				workload.Record{Op: block.Write, Offset: w.from * 512, Size: (w.to - w.from) * 512},
				workload.Record{Op: block.Flush})
		}
		var programs, reads []int64
		play(t, cfg, 1, records, func(d *ssd.Drive) {
			d.OnWork = func(w ssd.Work) {
				switch {
				case w.Bytes > 0 && w.Activity == ssd.ProgramData:
					programs = append(programs, w.Bytes)
				case w.Bytes > 0:
					reads = append(reads, w.Bytes)
				}
			}
		})
		var first, second, kept int64
		for s := range int64(8) {
			in := func(w span) bool { return s >= w.from && s < w.to }
			if in(c.first) {
				first += 512
			}
			if in(c.first) && !in(c.second) {
				kept += 512
			}
			if in(c.second) {
				second += 512
			}
		}
		if want := []int64{first, kept + second}; !slices.Equal(programs, want) {
			t.Errorf("%+v: programs of %v B, not %v", c, programs, want)
		}
		if kept == 0 != (len(reads) == 0) || kept > 0 && reads[0] != kept {
			t.Errorf("%+v: reads of %v B, of %d that stay", c, reads, kept)
		}
	}
}

// TestPoolsOfOneCompletion: when grains of one pool's page complete together, data leaving the cache may ask another
// pool for a page. If the host then waits for space in that pool, its collection must start.
func TestPoolsOfOneCompletion(t *testing.T) {
	for seed := range uint64(6) {
		cfg := ssd.DefaultConfig()
		g := &cfg.Geometry
		g.Channels, g.ChipsPerChannel, g.DiesPerChip, g.PlanesPerDie = 2, 3, 1, 4
		g.BlocksPerPlane, g.PagesPerBlock, g.PageSize = 60, 8, 4096
		cfg.Timing.Cell, cfg.OverProvisioning = nand.QLC, .45
		cfg.Cache.Mode, cfg.Cache.Capacity, cfg.Cache.Destage = ssd.CacheReadWrite, 16<<10, ssd.DestageFirstTouch
		cfg.Mapping.Ideal, cfg.Mapping.Grain, cfg.Mapping.Allocation = true, 512, ssd.AllocateStatic
		cfg.Collection.Reserve = 4
		cfg.Preconditioning.Fill = ssd.Fill(seed % 3)
		s := ssd.DefaultSLCCache()
		s.WhenFull, s.Capacity = ssd.WaitFold, 2*g.PageSize*units.Bytes(g.PagesPerBlock/4*g.Planes())
		cfg.SLCCache = &s
		random := rng.NewStream(seed, "writes")
		var records []workload.Record
		for range 500 {
			n := random.IntN(44) + 1
			records = append(records, workload.Record{Op: block.Write, Size: 512 * n, Offset: 512 * random.IntN(20000)})
		}
		play(t, cfg, 1, records)
	}
}
