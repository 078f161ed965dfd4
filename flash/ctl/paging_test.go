package ctl_test

import (
	"encoding/binary"
	"math"
	"runtime"
	"slices"
	"sort"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
	"farflash/numeric/rng"
)

// brief is a device that keeps of each page of data only its first 16 bytes, and of all else everything, outside of the
// heap. A page of data has zeros behind those.
type brief struct {
	size   int64
	data   []byte // 16 bytes for each grain
	others map[int64][]byte
	spare  [][]byte
	reads  int64
}

func newBrief(t *testing.T, grains int64) *brief {
	data, err := device.Arena(int(grains * 16))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = device.Release(data) })
	return &brief{size: grains * device.Grain, data: data, others: map[int64][]byte{}}
}

func (d *brief) Size() int64  { return d.size }
func (d *brief) Close() error { return nil }

func (d *brief) Submit(ops ...*device.Op) {
	for _, op := range ops {
		if op.Kind == device.Read {
			d.reads++
		}
		for at := 0; at < len(op.Buf); at += device.Grain {
			n, b := (op.Offset+int64(at))/device.Grain, op.Buf[at:][:device.Grain]
			is := d.others[n]
			switch {
			case op.Kind == device.Read && is != nil:
				copy(b, is)
			case op.Kind == device.Read:
				clear(b)
				copy(b, d.data[n*16:][:16])
			default:
				brief := true
				for i := 16; i < len(b) && brief; i += 8 {
					brief = binary.LittleEndian.Uint64(b[i:]) == 0
				}
				if brief && is != nil {
					d.spare = append(d.spare, is)
					delete(d.others, n)
				}
				if brief {
					copy(d.data[n*16:], b[:16])
					continue
				}
				if is == nil {
					if len(d.spare) == 0 {
						const more = 1 << 10
						arena, err := device.Arena(more * device.Grain)
						if err != nil {
							panic(err)
						}
						for i := range more {
							d.spare = append(d.spare, arena[i*device.Grain:][:device.Grain])
						}
					}
					is = d.spare[len(d.spare)-1]
					d.spare = d.spare[:len(d.spare)-1]
					d.others[n] = is
				}
				copy(is, b)
			}
		}
		op.Finish(nil)
	}
}

// TestRandomPages writes pages of a pool at random, again and again, with memory for a fraction of its map. All have
// their newest content, also after the pool was closed and after it was not, and the map keeps within its memory.
func TestRandomPages(t *testing.T) {
	if raced {
		t.Skip("one goroutine: no races to find")
	}
	pages := int64(1 << 16)
	if testing.Short() {
		pages = 1 << 14
	}
	layout := ctl.DefaultLayout()
	layout.UUID = media.UUID{5}
	layout.Segment = int(pages >> 7)
	dev := newBrief(t, pages*5/4+pages/8)
	format(t, layout, dev)
	cfg := ctl.DefaultConfig()
	cfg.Frames, cfg.Map = int(pages>>10), pages*4
	p := open(t, cfg, dev)
	draw := rng.NewStream(1, "pages")
	newest := make([]uint32, pages)
	b := make([]byte, ctl.Page)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	read := func(n int) {
		t.Helper()
		for range n {
			page := draw.IntN(pages)
			if err := p.ReadAt(b, uint64(page)*ctl.Page); err != nil {
				t.Fatal(err)
			}
			if is, as := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]); is != uint64(newest[page]) ||
				newest[page] > 0 && as != uint64(page) {
				t.Fatalf("page %d is version %d of page %d, not %d", page, is, as, newest[page])
			}
		}
	}
	for round := range uint32(3) {
		for i := range pages {
			page := draw.IntN(pages)
			newest[page] = round*uint32(pages) + uint32(i) + 1
			clear(b)
			binary.LittleEndian.PutUint64(b, uint64(newest[page]))
			binary.LittleEndian.PutUint64(b[8:], uint64(page))
			if err := p.WriteAt(b, uint64(page)*ctl.Page, false); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Sync(); err != nil {
			t.Fatal(err)
		}
		ofPages, ofPlaces := p.MapBytes()
		s := p.Stats()
		t.Logf("round %d: %d KiB of pages, %d KiB of places; %d checkpoints, %d reads and %d writes of the map, "+
			"write amplification %.2f", round, ofPages>>10, ofPlaces>>10, s.Checkpoints, s.MapReads, s.MapWrites, s.WAF())
		if ofPages+ofPlaces > cfg.Map*5/4 {
			t.Errorf("the map takes %d bytes, not %d", ofPages+ofPlaces, cfg.Map)
		}
		before := heap()
		read(20_000)
		clean(t, p, round == 1)
		if round == 0 { // stops here
			if p = open(t, cfg, dev); p.Found().Clean {
				t.Error("the pool was not closed, but is clean")
			}
		} else if err := p.Close(); err != nil {
			t.Fatal(err)
		} else {
			p = nil
			fixed := heap()
			p = open(t, cfg, dev)
			is := heap() - fixed
			t.Logf("heap: %d KiB open, %d KiB reopened", (before-fixed)>>10, is>>10)
			if is > cfg.Map+1<<20 {
				t.Errorf("the heap has %d bytes with %d for the map", is, cfg.Map)
			}
		}
		read(20_000)
	}
	clean(t, p, true)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// TestLostLeaf damages all stored parts of the map of an open pool, which are rebuilt from the owners of places, and
// the list of them of one that is closed, which is then filled from the entries.
func TestLostLeaf(t *testing.T) {
	const pages = 3000
	cfg, layout := small()
	layout.Segment, layout.LogPages = 64, 64
	cfg.Moves = 16
	dev := device.NewMem(pages * 2 * device.Grain)
	format(t, layout, dev)
	p := open(t, cfg, dev)
	draw := rng.NewStream(1, "leaf")
	newest := make([]uint64, pages)
	b := make([]byte, ctl.Page)
	write := func(n int) {
		t.Helper()
		for range n {
			page := uint64(draw.IntN(pages))
			serial++
			newest[page] = serial
			stamp(b, page, serial)
			if err := p.WriteAt(b, page*ctl.Page, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	read := func() {
		t.Helper()
		for page, want := range newest {
			if err := p.ReadAt(b, uint64(page)*ctl.Page); err != nil {
				t.Fatal(err)
			}
			if is, err := serialOf(b, uint64(page)); err != nil || is != want {
				t.Fatalf("page %d is %d, %v; it was %d", page, is, err, want)
			}
		}
	}
	for range 3 {
		write(3 * pages)
		leaves, _ := p.Stored()
		if len(leaves) == 0 {
			t.Fatal("no part of the map is stored")
		}
		for _, at := range leaves {
			dev.Corrupt(at + 77)
		}
		read()
		write(pages)
		read()
		clean(t, p, true)
		if p.Stats().MapReads == 0 {
			t.Error("no part of the map was read")
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	dev = dev.Reopen()
	p = open(t, cfg, dev)
	read()
	clean(t, p, true)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	dev = dev.Reopen()
	_, list := p.Stored()
	if len(list) == 0 {
		t.Fatal("no list of the parts of the map is there")
	}
	for _, at := range list {
		dev.Corrupt(at + 77)
	}
	p = open(t, cfg, dev)
	if len(p.Found().Lost) != 1 {
		t.Errorf("the lost list is not reported: %v", p.Found().Lost)
	}
	read()
	clean(t, p, true)
}

// TestMapReads measures the device reads that a random read takes beside that of its page, and compares those of the
// map with the least that any choice of leaves that stays the same can have.
func TestMapReads(t *testing.T) {
	const pages, leaf = 1 << 16, 512
	if raced {
		t.Skip("one goroutine: no races to find")
	}
	requests, parts := 20_000, []int64{4, 2, 1}
	if testing.Short() {
		requests, parts = 5000, parts[:1]
	}
	patterns := []struct {
		name string
		next func(draw *rng.Stream, zipf func(*rng.Stream) int64, i int) int64
		skew float64
	}{
		{"uniform", func(draw *rng.Stream, _ func(*rng.Stream) int64, _ int) int64 { return draw.IntN(pages) }, 0},
		{"zipf 0.9", func(draw *rng.Stream, zipf func(*rng.Stream) int64, _ int) int64 { return zipf(draw) }, 0.9},
		{"zipf 1.1", func(draw *rng.Stream, zipf func(*rng.Stream) int64, _ int) int64 { return zipf(draw) }, 1.1},
		{"hot set of an eighth that shifts", func(draw *rng.Stream, _ func(*rng.Stream) int64, i int) int64 {
			if draw.IntN(10) == 0 {
				return draw.IntN(pages)
			}
			return (draw.IntN(pages/8) + int64(i)*pages/int64(requests)) % pages
		}, 0},
	}
	layout := ctl.DefaultLayout()
	layout.UUID, layout.Segment = media.UUID{6}, 512
	dev := newBrief(t, pages*5/4+pages/8)
	format(t, layout, dev)
	cfg := ctl.DefaultConfig()
	cfg.Frames, cfg.Map = 64, pages*2
	p := open(t, cfg, dev)
	draw := rng.NewStream(2, "reads")
	b := make([]byte, ctl.Page)
	order := make([]int, pages)
	for i := range order { // a random order
		k := draw.IntN(int64(i) + 1)
		order[i], order[k] = order[k], i
	}
	clear(b)
	for _, page := range order {
		binary.LittleEndian.PutUint64(b, uint64(page)+1)
		if err := p.WriteAt(b, uint64(page)*ctl.Page, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	all := int64(pages / leaf * 4200)
	for _, part := range parts {
		for _, x := range patterns {
			cfg.Map = all/part + 104<<10 // of which frames, the table's nodes and places take the second
			p = open(t, cfg, dev)
			weights := make([]float64, pages)
			total := 0.0
			for i := range weights {
				total += math.Pow(float64(i+1), -x.skew)
				weights[i] = total
			}
			zipf := func(draw *rng.Stream) int64 {
				u := draw.Float64() * total
				at := int64(sort.SearchFloat64s(weights, u))
				return int64(rng.Mix(uint64(at)) % pages) // the ranks are scattered
			}
			one := rng.NewStream(3, x.name)
			var before ctl.Stats
			var reads int64
			counts := make([]int, pages/leaf)
			for i := range 2 * requests {
				if i == requests { // warm
					before, reads = p.Stats(), dev.reads
				}
				page := x.next(&one, zipf, i%requests)
				if i >= requests {
					counts[page/leaf]++
				}
				if err := p.ReadAt(b, uint64(page)*ctl.Page); err != nil ||
					binary.LittleEndian.Uint64(b) != uint64(page)+1 {
					t.Fatalf("page %d is %d: %v", page, binary.LittleEndian.Uint64(b)-1, err)
				}
			}
			s := p.Stats().Sub(before)
			slices.Sort(counts)
			least := 0
			for i := range len(counts) - len(counts)/int(part) {
				least += counts[i]
			}
			each := func(n int64) float64 { return float64(n) / float64(requests) }
			t.Logf("1/%d of the map, %s: %.3f device reads a request: %.3f of the page, %.3f of the map (least %.3f), "+
				"%.3f of checksums", part, x.name, each(dev.reads-reads), each(s.Misses), each(s.MapReads),
				each(int64(least)), each(s.Sums))
			if all := each(dev.reads - reads); all > 2 {
				t.Errorf("1/%d of the map, %s: %.3f device reads a request", part, x.name, all)
			}
			if got, bound := each(s.MapReads), each(int64(least)); got > bound*1.3+0.45 {
				t.Errorf("1/%d of the map, %s: %.3f reads of the map a request, of at least %.3f", part, x.name, got, bound)
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestLeafSums writes and moves pages of a leaf in a pool so small that they soon come back to places that they had
// before. Their leaf never has the checksum of earlier content.
func TestLeafSums(t *testing.T) {
	cfg, layout := small()
	cfg.Frames, layout.LogPages = 64, 600 // many changes between two checkpoints
	dev := device.NewMem(2000 * device.Grain)
	format(t, layout, dev)
	p := open(t, cfg, dev)
	const pages = 900
	draw := rng.NewStream(1, "newest")
	b := make([]byte, ctl.Page)
	known := 0
	for i := range uint64(60_000) {
		page := uint64(draw.IntN(pages))
		if i%2 == 0 { // most of these stay in frames
			page = page * 37 % 40 * 17
		}
		switch draw.IntN(20) {
		case 0:
			to := uint64(draw.IntN(40) * 17)
			if to == page {
				continue
			}
			if err := p.Remap([]ctl.Step{{From: page, To: to, Count: 1}}, false, func(error) {}); err != nil {
				t.Fatal(err)
			}
		case 1:
			if err := p.ReadAt(b, page*ctl.Page); err != nil {
				t.Fatal(err)
			}
		default:
			stamp(b, page, i+1)
			if err := p.WriteAt(b, page*ctl.Page, false); err != nil {
				t.Fatal(err)
			}
		}
		if i%16 > 0 {
			continue
		}
		n, wrong := p.LeafSums(pages)
		if known += n; wrong > 0 {
			t.Fatalf("step %d: %d checksums are of earlier contents", i, wrong)
		}
	}
	if known == 0 {
		t.Errorf("no leaf has a checksum: %+v", p.Stats())
	}
	clean(t, p, true)
}
