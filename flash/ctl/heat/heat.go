// Package heat decides which of three streams a page is written to, so that pages share segments with others that
// will be overwritten at about the same time.
//
// Its main types are Page (what is known of a page, eight bytes) and Policy. A page's interval between writes is
// estimated from its own past; a page that has not been written for longer than that is at least as cold as it is
// old, which is how a page that was hot cools down when collection moves it. The streams divide at shares of the
// number of pages in use, because a page that is written once in as many writes as there are pages is the average
// one, whatever the pool's size.
//
// What it leaves out: which segment is collected (package ftl), and clocks: time is counted in writes. The three
// criteria, origin, age and frequency, are those of FlashNet (section 3.2); the estimate and the bounds are our own
// and were measured, see docs/validation/flash.md.
package heat

import "math"

// Stream is one of the three write frontiers.
type Stream uint8

// The streams.
const (
	Hot Stream = iota
	Warm
	Cold
	Streams // how many there are
)

func (s Stream) String() string { return [...]string{"hot", "warm", "cold"}[s] }

// Origin is what the writer knows of its data. Auto is nothing.
type Origin uint8

// The origins. Steady is data written once, as a file that is copied; Brief is data that will soon be overwritten, as
// a file system's own.
const (
	Auto Origin = iota
	Brief
	Steady
)

// Policy has the bounds.
type Policy struct {
	Weight float64 // of the newest interval in the estimate, above 0, at most 1
	Hot    float64 // pages with a shorter interval are hot, in writes for each page in use
	Warm   float64 // likewise warm; all others are cold
	Single bool    // one stream for all: what the separation is compared with
}

// Default is the policy in force unless another is asked for. The bounds were chosen on seed 11, by simulating the
// streams alone, and what comes of them changes by 1 to 2 % when either is halved or doubled.
func Default() Policy { return Policy{Weight: 0.3, Hot: 0.07, Warm: 1} }

// Page is when a page was last written, in quanta, and its estimated interval in the same, as a float32. The zero
// Page was never written.
type Page uint64

func (p Page) last() uint32      { return uint32(p >> 32) }
func (p Page) interval() float64 { return float64(math.Float32frombits(uint32(p))) }

func pack(last uint32, interval float64) Page {
	return Page(last)<<32 | Page(math.Float32bits(float32(interval)))
}

// Clock counts writes in quanta, so that 32 bits of them last for tens of thousands of times the pool.
type Clock struct {
	writes  uint64
	quantum uint // writes of a quantum, as a power of two
}

// NewClock is the clock of a pool of so many pages, at so many writes.
func NewClock(pages int64, writes uint64) Clock {
	c := Clock{writes: writes}
	for pages>>c.quantum > 1<<18 {
		c.quantum++
	}
	return c
}

// Tick counts a write and returns the time.
func (c *Clock) Tick() uint64 { c.writes++; return c.writes }

// Writes is the time.
func (c *Clock) Writes() uint64 { return c.writes }

func (c *Clock) now() uint32 { return uint32(c.writes >> c.quantum) }

// Written returns what is known of a page that is being written, and its stream. used is how many pages are in use.
func (p *Policy) Written(page Page, c *Clock, used int64, from Origin) (Page, Stream) {
	now, average := c.now(), float64(used)/float64(uint64(1)<<c.quantum)
	interval := average
	if page != 0 {
		interval = page.interval()
		interval += float64(p.Weight * (float64(now-page.last()) - interval))
	}
	next := pack(now, interval)
	if next == 0 {
		next = pack(0, 1e-9) // the very first write
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
	if page != 0 {
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

// Interval is the estimated number of writes, to any page, between two of this one; 0 if it was never written.
func (p Page) Interval(c *Clock) float64 { return p.interval() * float64(uint64(1)<<c.quantum) }
