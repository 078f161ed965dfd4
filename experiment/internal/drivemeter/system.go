package drivemeter

import (
	"fmt"

	"farflash/block"
	"farflash/model/cosim"
	"farflash/model/ssd"
	"farflash/result"
	"farflash/sim"
)

// measured returns the mark at the start of the measured time, the last mark, and the time between them in seconds.
// Fill must have determined the warm-up.
func (m *Meter) measured() (from, last *mark, span float64) {
	last, from = &m.marks[len(m.marks)-1], new(mark)
	if m.skip > 0 {
		from = &m.marks[m.skip-1]
	}
	return from, last, (last.at - from.at).Seconds()
}

// Bandwidth is the bytes per second of an operation's requests completed after the warm-up; ok is false if that took no
// time. Call it after Fill.
func (m *Meter) Bandwidth(op block.Op) (float64, bool) {
	from, last, span := m.measured()
	return float64(last.bytes[op]-from.bytes[op]) / span, span > 0
}

// Anatomy is the latency breakdown of an operation's requests after the warm-up.
func (m *Meter) Anatomy(op block.Op) *cosim.Anatomy {
	var a cosim.Anatomy
	if m.keep {
		for _, b := range m.bins[m.skip:] {
			a.Merge(&b[op].parts)
		}
	} else {
		a.Merge(&m.parts[op])
	}
	return &a
}

// New returns one of several drives of a system, from an image.
func New(m *ssd.Image, eng *sim.Engine, sink ssd.Sink, seed uint64, number int) (*ssd.Drive, error) {
	return ssd.NewFrom(m, eng, sink, seed, fmt.Sprintf("ssd[%d]", number))
}

// mostDriveRows is the largest number of drives with figures of their own in a result.
const mostDriveRows = 1024

// FillEach fills in the statistics of each drive after the warm-up.
func (m *Meter) FillEach(r *result.Result) {
	from, last, span := m.measured()
	for i, x := range last.each {
		name := func(n string) string { return fmt.Sprintf("ssd[%d].%s", i, n) }
		if m.skip > 0 {
			y := &from.each[i]
			for op := range x.finished {
				x.finished[op] -= y.finished[op]
			}
			x.busy, x.host, x.programs = x.busy-y.busy, x.host-y.host, x.programs-y.programs
		}
		r.Set(name("read.count"), float64(x.finished[block.Read]))
		r.Set(name("write.count"), float64(x.finished[block.Write]))
		if span > 0 {
			r.Set(name("utilisation.die"), x.busy.Seconds()/span)
		}
		if x.host > 0 {
			r.Set(name("waf"), float64(x.programs)/float64(x.host))
		}
	}
	if len(m.drives) > len(last.each) {
		r.Warn("figures per drive cover only the first %d of %d drives", len(last.each), len(m.drives))
	}
}
