package networks

import (
	"math/bits"
	"slices"
	"sync/atomic"

	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/sim"
)

// exactFlows is the number of completed flows that are stored individually, at 17 bytes each. Beyond it they are
// counted in histograms.
const exactFlows = 1 << 22

// pieceFlows is the number of flows per allocation; pieces are not moved as flows are added.
const pieceFlows = 4096

// ledger records the completed flows of a network or of a part of one, with those that started before the end of the
// warm-up counted separately. Its memory is bounded by the flow limit and some histograms.
type ledger struct {
	warm   sim.Time // end of the warm-up
	shared *shelf
	pieces []*pieceOf
	n      int // in the last piece
	eras   [2]era
}

// shelf is shared by the ledgers of one network: it counts their flows, excluding those in pieces that are not full. So
// exceeding the limit on it implies exceeding it in any division of the network.
type shelf struct {
	limit int64
	flows atomic.Int64
}

// pieceOf holds flows: completion times, slowdowns, and sizes by sizeOf, with lateBit.
type pieceOf struct {
	fct  [pieceFlows]sim.Time
	slow [pieceFlows]float64
	size [pieceFlows]uint8
}

// lateBit marks a flow that started after the warm-up.
const lateBit = 1 << 7

// era is the flows that started before the end of the warm-up, or after it. It has histograms once there are too many
// flows to store.
type era struct {
	count int
	bytes uint64
	fct   *stats.Histogram
	slow  [64]*stats.Histogram // by size, in units of slowdownUnit
}

// slowdownUnit is a slowdown of 1 in a histogram of durations.
const slowdownUnit = units.Microsecond

// sizeOf returns k if a flow has more than 2^(k-1) and up to 2^k bytes.
func sizeOf(size units.Bytes) uint8 { return uint8(bits.Len64(uint64(size - 1))) }

// add records a flow.
func (l *ledger) add(start, fct sim.Time, size units.Bytes, slowdown float64) {
	kind := sizeOf(size)
	if start >= l.warm {
		kind |= lateBit
	}
	e := &l.eras[kind>>7]
	e.count++
	e.bytes += uint64(size)
	if e.fct == nil && l.n == len(l.pieces)*pieceFlows {
		if l.n > 0 && l.shared.flows.Add(pieceFlows) > l.shared.limit {
			l.condense()
		} else {
			l.pieces = append(l.pieces, new(pieceOf))
		}
	}
	if e.fct != nil {
		e.record(fct, slowdown, kind&^lateBit)
		return
	}
	p, i := l.pieces[len(l.pieces)-1], l.n%pieceFlows
	p.fct[i], p.slow[i], p.size[i] = fct, slowdown, kind
	l.n++
}

// condense moves the stored flows into histograms.
func (l *ledger) condense() {
	if l.eras[0].fct != nil {
		return
	}
	for i := range l.eras {
		l.eras[i].fct = &stats.Histogram{}
	}
	for i := range l.n {
		p, k := l.pieces[i/pieceFlows], i%pieceFlows
		l.eras[p.size[k]>>7].record(p.fct[k], p.slow[k], p.size[k]&^lateBit)
	}
	l.pieces, l.n = nil, 0
}

func (e *era) record(fct sim.Time, slowdown float64, size uint8) {
	e.fct.Record(fct)
	if e.slow[size] == nil {
		e.slow[size] = &stats.Histogram{}
	}
	e.slow[size].Record(sim.Time(slowdown * float64(slowdownUnit)))
}

// census is a selection of the flows of ledgers.
type census struct {
	ledgers []*ledger
	whole   bool // includes flows that started before the end of the warm-up
	count   int
	bytes   uint64
	coarse  bool      // they are in histograms
	values  []float64 // buffer for values if they are not
}

// take counts the flows of ledgers.
func take(ledgers []*ledger, whole bool) *census {
	c := &census{ledgers: ledgers, whole: whole}
	all, limit := 0, int64(0)
	for _, l := range ledgers {
		for i := range l.eras {
			all += l.eras[i].count
		}
		limit = l.shared.limit
		c.each(l, func(e *era) {
			c.count += e.count
			c.bytes += e.bytes
		})
	}
	// A part of a network's flows is in histograms if all flows are.
	for _, l := range ledgers {
		c.coarse = c.coarse || l.eras[0].fct != nil
	}
	if c.coarse = c.coarse || int64(all) > limit; c.coarse {
		for _, l := range ledgers {
			l.condense()
		}
	} else {
		c.values = make([]float64, 0, c.count)
	}
	return c
}

func (c *census) each(l *ledger, visit func(*era)) {
	visit(&l.eras[1])
	if c.whole {
		visit(&l.eras[0])
	}
}

// flows visits the individually stored flows.
func (c *census) flows(visit func(fct sim.Time, slow float64, size uint8)) {
	for _, l := range c.ledgers {
		for i := range l.n {
			p, k := l.pieces[i/pieceFlows], i%pieceFlows
			if size := p.size[k]; c.whole || size&lateBit != 0 {
				visit(p.fct[k], p.slow[k], size&^lateBit)
			}
		}
	}
}

// times returns completion times, in microseconds and as a histogram. It invalidates earlier results.
func (c *census) times() (found, *stats.Histogram) {
	h := &stats.Histogram{}
	if c.coarse {
		for _, l := range c.ledgers {
			c.each(l, func(e *era) { h.Merge(e.fct) })
		}
		return found{h: h, unit: units.Microsecond}, h
	}
	v := c.values[:0]
	c.flows(func(fct sim.Time, _ float64, _ uint8) {
		h.Record(fct)
		v = append(v, fct.Microseconds())
	})
	slices.Sort(v)
	return found{sorted: v}, h
}

// slowdowns returns the slowdowns of the flows of a size class, or of all flows if size is negative. It invalidates
// earlier results.
func (c *census) slowdowns(size int) found {
	if c.coarse {
		h := &stats.Histogram{}
		for _, l := range c.ledgers {
			c.each(l, func(e *era) {
				for k, x := range &e.slow {
					if x != nil && (size < 0 || k == size) {
						h.Merge(x)
					}
				}
			})
		}
		return found{h: h, unit: slowdownUnit}
	}
	v := c.values[:0]
	c.flows(func(_ sim.Time, slow float64, k uint8) {
		if size < 0 || int(k) == size {
			v = append(v, slow)
		}
	})
	slices.Sort(v)
	return found{sorted: v}
}

// sizes returns the size classes that have flows.
func (c *census) sizes() (has [64]bool) {
	c.flows(func(_ sim.Time, _ float64, k uint8) { has[k] = true })
	for _, l := range c.ledgers {
		c.each(l, func(e *era) {
			for k, x := range &e.slow {
				has[k] = has[k] || x != nil
			}
		})
	}
	return has
}

// found is a set of values: sorted, or in a histogram.
type found struct {
	sorted []float64
	h      *stats.Histogram
	unit   units.Duration
}

func (f *found) count() int64 {
	if f.h != nil {
		return f.h.Count()
	}
	return int64(len(f.sorted))
}

// mean sums sorted values, because the order in which flows complete at one time depends on the division of the
// network.
func (f *found) mean() float64 {
	if f.h != nil {
		return f.h.Mean() / float64(f.unit)
	}
	sum := 0.0
	for _, x := range f.sorted {
		sum += x
	}
	return sum / float64(len(f.sorted))
}

func (f *found) quantile(q float64) float64 {
	if f.h != nil {
		return float64(f.h.Quantile(q)) / float64(f.unit)
	}
	return stats.QuantileOf(f.sorted, q)
}

func (f *found) most() float64 {
	if f.h != nil {
		return float64(f.h.Max()) / float64(f.unit)
	}
	return f.sorted[len(f.sorted)-1]
}
