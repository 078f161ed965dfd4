package ctl

import (
	"slices"

	"farflash/flash/ctl/media"
	"farflash/flash/device"
	"farflash/policy/ftl"
)

// verifyPages and verifyReads bound one read of verification and the number of reads in flight.
const (
	verifyPages = 64
	verifyReads = 32
)

// run is a read of consecutive places of one segment.
type run struct {
	op    device.Op
	buf   []byte
	first ftl.PPA
	sums  []uint32 // of the pages read
	ok    []bool   // whether a page could be read
}

// verify reads the places of the writes that no mark covers, in the order of the medium and many at a time, and
// computes their checksums; apply looks them up. A crash leaves as many as were written since the last flush
// (Config.Unflushed), so one read after another would take as long as the pool's writes did.
func (r *recovery) verify(chain []logRun) {
	var places []ftl.PPA
	for _, f := range chain {
		for i, rec := range f.records {
			if rec.Kind == media.Write && f.first+uint64(i) >= r.mark && rec.PPA < uint64(len(r.owners)) {
				places = append(places, ftl.PPA(rec.PPA))
			}
		}
	}
	slices.Sort(places)
	places = slices.Compact(places)
	r.contents = make(map[ftl.PPA]uint32, len(places))
	free := make(chan *run, verifyReads)
	// finished takes one completed read into the results, and returns its buffers for the next one.
	finished := func() *run {
		x := <-free
		for i := range x.sums {
			if x.ok[i] {
				r.contents[x.first+ftl.PPA(i)] = x.sums[i]
			}
		}
		x.sums, x.ok = x.sums[:0], x.ok[:0]
		return x
	}
	reads := min(verifyReads, len(places))
	for range reads {
		x := &run{buf: device.Aligned(verifyPages * Page)}
		x.op.Done = func(op *device.Op) {
			for i := range len(op.Buf) / Page {
				x.sums = append(x.sums, media.Sum(r.seed, op.Buf[i*Page:][:Page]))
				x.ok = append(x.ok, op.Err == nil)
			}
			free <- x
		}
		free <- x
	}
	for len(places) > 0 {
		n := 1
		for n < len(places) && n < verifyPages && places[n] == places[0]+ftl.PPA(n) &&
			r.segmentOf(places[n]) == r.segmentOf(places[0]) {
			n++
		}
		x := finished()
		dev, offset := r.at(places[0])
		x.first, places = places[0], places[n:]
		x.op.Kind, x.op.Offset, x.op.Buf, x.op.Err = device.Read, offset, x.buf[:n*Page], nil
		r.devices[dev].Submit(&x.op)
	}
	for range reads {
		finished()
	}
}

// holds reports whether a place has the content that the record describes. A place whose read failed among others is
// read alone, because one bad page fails them all.
func (r *recovery) holds(p ftl.PPA, sum uint32) bool {
	r.report.Checked++
	if is, read := r.contents[p]; read {
		return is == sum
	}
	dev, offset := r.at(p)
	return device.Do(r.devices[dev], device.Read, offset, r.content) == nil && media.Sum(r.seed, r.content) == sum
}
