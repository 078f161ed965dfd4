// Package heat assigns each page write to one of three streams, so that pages share segments with others that will be
// overwritten at about the same time.
//
// Its main types are Page (eight bytes of write history) and Policy. A page's interval between writes is estimated from
// its own past. A page that has not been written for longer than its interval is at least as cold as it is old, so that
// a formerly hot page cools down when collection moves it. The stream bounds are multiples of the number of pages in
// use, because a page that is written once in that many writes is the average page, whatever the pool's size.
//
// It leaves out which segment is collected (package ftl) and real clocks: time is counted in writes. The three
// criteria, origin, age and frequency, are those of FlashNet (section 3.2). The estimator and the bounds are our own
// and were measured; see docs/validation/flash.md.
package heat

import "math"

// Stream is one of the three write frontiers.
type Stream uint8

// The streams.
const (
	Hot Stream = iota
	Warm
	Cold
	Streams // number of streams
)

func (s Stream) String() string { return [...]string{"hot", "warm", "cold"}[s] }

// Origin is the writer's hint about its data. Auto is no hint.
type Origin uint8

// The origins. Steady is data written once, such as a copied file; Brief is data that will soon be overwritten, such as
// a file system's own.
const (
	Auto Origin = iota
	Brief
	Steady
)

// Policy holds the estimator's weight and the stream bounds.
type Policy struct {
	Weight float64 // of the newest interval in the estimate, above 0, at most 1
	Hot    float64 // pages with a shorter interval are hot; in writes per page in use
	Warm   float64 // pages with a shorter interval are warm, all others cold; in writes per page in use
	Single bool    // a single stream: the baseline without separation
}

// Default is the default policy. The bounds were chosen by simulating the streams alone on seed 11; halving or doubling
// either changes the result by 1 to 2 %.
func Default() Policy { return Policy{Weight: 0.3, Hot: 0.07, Warm: 1} }

// Page holds when a page was last written and its estimated interval as a float32, both in quanta. The zero Page was
// never written.
type Page uint64

func (p Page) last() uint32      { return uint32(p >> 32) }
func (p Page) interval() float64 { return float64(math.Float32frombits(uint32(p &^ coarse))) }

// Short is a Page in 16 bits: 11 for when it was last written, in units of 2^13 quanta, and 5 for the logarithm
// of the interval. 0 is a page that was never written.
type Short uint16

const (
	unit   = 13               // log2 of the quanta in a unit of a Short
	wraps  = 1<<(11+unit) - 1 // quanta after which a Short's time begins anew
	coarse = Page(1) << 31    // the sign of the interval: of the time, only the bits of a Short are known
)

// Short returns the history in 16 bits.
func (p Page) Short() Short {
	if p == 0 {
		return 0
	}
	_, exponent := math.Frexp(p.interval() * math.Sqrt2) // the nearest power of two is 2^(exponent-1)
	return max(Short(p.last()&wraps>>unit)<<5|Short(min(max(exponent-1, 0), 31)), 1)
}

// Page returns the history that a Short stands for.
func (s Short) Page() Page {
	if s == 0 {
		return 0
	}
	return pack(uint32(s>>5)<<unit, math.Ldexp(1, int(s&31))) | coarse
}

// at returns the history with a time that is whole: the latest before now that it can be.
func (p Page) at(now uint32) Page {
	if p&coarse == 0 {
		return p
	}
	return pack(now-(now-p.last())&wraps, p.interval())
}

func pack(last uint32, interval float64) Page {
	return Page(last)<<32 | Page(math.Float32bits(float32(interval)))
}

// Clock counts writes in quanta, so that 32 bits last for tens of thousands of overwrites of the pool.
type Clock struct {
	writes  uint64
	quantum uint // log2 of the writes in a quantum
}

// NewClock returns the clock of a pool with the given number of pages, after the given number of writes.
func NewClock(pages int64, writes uint64) Clock {
	c := Clock{writes: writes}
	for pages>>c.quantum > 1<<18 {
		c.quantum++
	}
	return c
}

// Tick counts a write and returns the new time.
func (c *Clock) Tick() uint64 { c.writes++; return c.writes }

// Writes returns the time, in writes.
func (c *Clock) Writes() uint64 { return c.writes }

func (c *Clock) now() uint32 { return uint32(c.writes >> c.quantum) }

// Written returns the updated history of a page being written, and its stream. used is the number of pages in use.
func (p *Policy) Written(page Page, c *Clock, used int64, from Origin) (Page, Stream) {
	now, average := c.now(), float64(used)/float64(uint64(1)<<c.quantum)
	interval := average
	if page = page.at(now); page != 0 {
		interval = page.interval()
		interval += float64(p.Weight * (float64(now-page.last()) - interval))
	}
	next := pack(now, interval)
	if next == 0 {
		next = pack(0, 1e-9) // the very first write must not look unwritten
	}
	switch {
	case p.Single:
		return next, Hot
	case from == Brief:
		return next, Hot
	case from == Steady && page == 0:
		return next, Cold
	}
	return next, p.stream(interval, average)
}

// Survived returns the stream of a page that collection moves.
func (p *Policy) Survived(page Page, c *Clock, used int64) Stream {
	if p.Single {
		return Hot
	}
	average := float64(used) / float64(uint64(1)<<c.quantum)
	interval := average
	if page = page.at(c.now()); page != 0 {
		interval = max(page.interval(), float64(c.now()-page.last()))
	}
	return p.stream(interval, average)
}

func (p *Policy) stream(interval, average float64) Stream {
	switch {
	case interval < p.Hot*average:
		return Hot
	case interval < p.Warm*average:
		return Warm
	}
	return Cold
}

// Interval returns the estimated number of writes to the pool between two of this page; 0 if it was never written.
func (p Page) Interval(c *Clock) float64 { return p.interval() * float64(uint64(1)<<c.quantum) }
