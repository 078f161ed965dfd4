package ctl_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"farflash/flash/ctl"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
	"farflash/internal/patience"
	"farflash/numeric/rng"
)

// computed is a device whose pool holds pages in order, as if they had been written once. It computes their contents
// and the checkpoint that maps them, so it can be of any size. Later writes are kept in memory.
type computed struct {
	size     int64
	shape    media.Shape
	written  map[int64][]byte // by grain
	body     media.Body
	filled   int64
	sums     [251]uint32 // of the contents
	slot     int64       // its first grain
	grains   int64       // of the body
	kept     []int64     // segments whose entries are in body
	reads    int64
	took     int64 // grains read
	computes bool
}

// newComputed formats a device and fills it to its capacity.
func newComputed(t testing.TB, size int64) *computed {
	layout := ctl.DefaultLayout()
	for size/ctl.Page/int64(layout.Segment) > 1<<17 { // as package pool does
		layout.Segment *= 2
	}
	layout.UUID[3] = 7
	d := &computed{size: size &^ (ctl.Page - 1), written: map[int64][]byte{}}
	d.shape = format(t, layout, d)
	segments := d.shape.AllSegments()
	d.filled = d.shape.Capacity / int64(d.shape.Pages)
	d.body = media.Body{Segments: make([]media.Segment, segments), Entries: make([][]media.Entry, segments),
		Pages: d.shape.Pages}
	for i := range d.filled {
		d.body.Segments[i] = media.Segment{Use: media.Filled, Stream: 2, Order: uint64(i), Session: 1}
	}
	page := make([]byte, ctl.Page)
	for i := range d.sums {
		page[0] = byte(i)
		d.sums[i] = media.Sum(d.shape.UUID.Seed(), page)
	}
	d.slot, d.grains = d.shape.CheckpointStart(1), media.BodyPages(segments, d.shape.Pages)
	for grain := range d.written {
		if grain >= d.slot+media.Headers && grain < d.shape.LogStart() {
			delete(d.written, grain)
		}
	}
	d.computes = true
	return d
}

// entries sets the entries of segments from to to, and forgets others.
func (d *computed) entries(from, to int64) {
	for _, s := range d.kept {
		if s < from || s > to {
			d.body.Entries[s] = nil
		}
	}
	d.kept = d.kept[:0]
	for s := from; s <= to; s++ {
		if d.body.Segments[s].Use == media.Erased {
			continue
		}
		d.kept = append(d.kept, s)
		if d.body.Entries[s] != nil {
			continue
		}
		e := make([]media.Entry, d.shape.Pages)
		for k := range e {
			page := uint64(s)*uint64(len(e)) + uint64(k)
			e[k] = media.Entry{Page: page + 1, Sum: d.sums[page%251]}
		}
		d.body.Entries[s] = e
	}
}

// compute fills a grain that was never written, and reports whether it has content.
func (d *computed) compute(grain int64, to []byte) bool {
	if k := grain - d.slot - media.Headers; k >= 0 && k < d.grains+d.grains/media.Group {
		clear(to)
		if k%(media.Group+1) == media.Group {
			return true // parity, which no test needs
		}
		i := k - k/(media.Group+1)
		if from, upto, places := media.Covers(i, int64(len(d.body.Segments)), d.shape.Pages); places {
			d.entries(from/int64(d.shape.Pages), (upto-1)/int64(d.shape.Pages))
		}
		d.body.EncodePage(to, i, d.shape.UUID, 1)
		return true
	}
	each := int64(d.shape.Pages + d.shape.SummaryGrains())
	if k := grain - d.shape.Start(0); k >= 0 && k/each < d.filled && k%each < int64(d.shape.Pages) {
		clear(to)
		to[0] = byte((k/each*int64(d.shape.Pages) + k%each) % 251)
		return true
	}
	return false
}

// Size implements device.Device, and so do Close and Submit.
func (d *computed) Size() int64 { return d.size }

func (d *computed) Close() error { return nil }

func (d *computed) Submit(ops ...*device.Op) {
	for _, op := range ops {
		first, n := op.Offset/device.Grain, int64(len(op.Buf)/device.Grain)
		switch op.Kind {
		case device.Write:
			for i := range n {
				d.written[first+i] = bytes.Clone(op.Buf[i*device.Grain:][:device.Grain])
			}
		case device.Read:
			d.reads, d.took = d.reads+1, d.took+n
			for i := range n {
				to := op.Buf[i*device.Grain:][:device.Grain]
				if is := d.written[first+i]; is != nil {
					copy(to, is)
				} else if !d.computes || !d.compute(first+i, to) {
					clear(to)
				}
			}
		}
		op.Finish(nil)
	}
}

// resident returns the memory of this process, in bytes, and the most that it was.
func resident(t *testing.T) (is, most int64) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("the memory of this process is not known: ", err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		n, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "VmRSS:":
			is = n << 10
		case "VmHWM:":
			most = n << 10
		}
	}
	return is, most
}

// processor returns the time that this process has had a processor.
func processor() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestSize opens pools that were filled in order, reads and overwrites pages at random, and verifies that the memory of
// their maps and checksums keeps within Config.Map. FARFLASH_LONG tries up to 8 TB.
func TestSize(t *testing.T) {
	sizes := []int64{8e9}
	if patience.Long(t) {
		sizes = []int64{1e12, 4e12, 8e12}
	}
	if text := os.Getenv("FARFLASH_SIZE"); text != "" {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		sizes = []int64{int64(n)}
	}
	for _, size := range sizes {
		t.Run(fmt.Sprintf("%.0f GB", float64(size)/1e9), func(t *testing.T) {
			debug.FreeOSMemory()
			var before, after runtime.MemStats
			d := newComputed(t, size)
			runtime.GC()
			runtime.ReadMemStats(&before)
			_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // begins VmHWM anew, where it may
			cfg := ctl.DefaultConfig()
			cfg.Map = 96 << 20
			if len(sizes) == 1 && size < 1e12 {
				cfg.Map = 4 << 20
			}
			p := open(t, cfg, d)
			used, _ := p.Use()
			draw := rng.NewStream(1, "size")
			b := make([]byte, ctl.Page)
			read := func(requests, span int64) float64 {
				t.Helper()
				d.reads = 0
				for range requests {
					page := draw.IntN(span)
					if err := p.ReadAt(b, uint64(page)*ctl.Page); err != nil || b[0] != byte(page%251) {
						t.Fatalf("page %d has %d: %v", page, b[0], err)
					}
				}
				return float64(d.reads) / float64(requests)
			}
			requests := int64(300_000)
			if size < 1e11 {
				requests = 10_000
			}
			all := read(requests, used)
			read(2*requests, min(used, 1<<20))
			few := read(requests, min(used, 1<<20))
			for i := range uint64(3000) {
				page := uint64(draw.IntN(used))
				b[0], b[1] = byte(page%251), byte(i)
				if err := p.WriteAt(b, page*ctl.Page, i%64 == 0); err != nil {
					t.Fatal(err)
				}
			}
			all2 := read(requests/10, used)
			_, most := resident(t)
			debug.FreeOSMemory()
			runtime.ReadMemStats(&after)
			heap := int64(after.HeapAlloc) - int64(before.HeapAlloc)
			is, _ := resident(t)
			t.Logf("%d pages in segments of %d: heap %d MiB, RSS %d MiB (%d with the test's own, at most %d); device "+
				"reads a request %.3f over all, %.3f over 4 GiB, %.3f after overwrites; %+v", used, d.shape.Pages, heap>>20,
				is>>20, (int64(before.HeapAlloc) >> 20), most>>20, all, few, all2, p.Stats())
			if limit := cfg.Map + 96<<20 + 400*d.shape.AllSegments(); heap > limit {
				t.Errorf("%d bytes are in use, more than %d", heap, limit)
			}
			if all > 2.1 || few > 1.2 && size > 1e11 {
				t.Errorf("%.3f device reads a request over all, %.3f over 4 GiB", all, few)
			}
			if size > 1e12 { // the test would hold all of the next checkpoint
				runtime.KeepAlive(p)
				return
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			d.took = 0
			began := processor()
			p = open(t, cfg, d)
			t.Logf("opened again: %d pages read beside the log's %d, in %v of processor time; entries have %d",
				d.took-d.shape.LogPages, d.shape.LogPages, processor()-began, d.grains)
			if !p.Found().Indexed || d.took-d.shape.LogPages > d.grains/20+media.Group {
				t.Errorf("%d pages were read to open it again: %+v", d.took, p.Found())
			}
			if err := p.ReadAt(b, uint64(used-1)*ctl.Page); err != nil || b[0] != byte((used-1)%251) {
				t.Errorf("the last page has %d: %v", b[0], err)
			}
		})
	}
}
