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
}

// unmarked appends the places of the writes among records, of which the first has a number, that no mark covers.
func (r *recovery) unmarked(places []ftl.PPA, first uint64, records []media.Record) []ftl.PPA {
	for i, rec := range records {
		if rec.Kind == media.Write && first+uint64(i) >= r.mark && rec.PPA < uint64(r.ledger.Places()) {
			places = append(places, ftl.PPA(rec.PPA))
		}
	}
	return places
}

// verify reads the places of the writes that no mark covers and computes their checksums; apply looks them up. A crash
// leaves as many as were written since the last flush (Config.Unflushed), so one read after another would take as long
// as the pool's writes did.
func (r *recovery) verify(places []ftl.PPA) {
	slices.Sort(places)
	places = slices.Compact(places)
	r.contents = make(map[ftl.PPA]uint32, len(places))
	r.sumPlaces(r.devices, places, func(p ftl.PPA, sum uint32, err error) {
		if err == nil {
			r.contents[p] = sum
		}
	})
}

// sumPlaces reads places, which are in order, many at a time, and calls each with the checksum of their content. A read
// of several places that fails reports all of them as unreadable.
func (c *core) sumPlaces(devices []device.Device, places []ftl.PPA, each func(p ftl.PPA, sum uint32, err error)) {
	free := make(chan *run, verifyReads)
	// finished takes one completed read into the results, and returns its buffers for the next one.
	finished := func() *run {
		x := <-free
		for i, sum := range x.sums {
			each(x.first+ftl.PPA(i), sum, x.op.Err)
		}
		x.sums = x.sums[:0]
		return x
	}
	reads := min(verifyReads, len(places))
	for range reads {
		x := &run{buf: device.Aligned(verifyPages * Page)}
		x.op.Done = func(op *device.Op) {
			for i := range len(op.Buf) / Page {
				x.sums = append(x.sums, media.Sum(c.seed, op.Buf[i*Page:][:Page]))
			}
			free <- x
		}
		free <- x
	}
	for len(places) > 0 {
		n := 1
		for n < len(places) && n < verifyPages && places[n] == places[0]+ftl.PPA(n) &&
			c.segmentOf(places[n]) == c.segmentOf(places[0]) {
			n++
		}
		x := finished()
		dev, offset := c.at(places[0])
		x.first, places = places[0], places[n:]
		x.op.Kind, x.op.Offset, x.op.Buf, x.op.Err = device.Read, offset, x.buf[:n*Page], nil
		devices[dev].Submit(&x.op)
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
