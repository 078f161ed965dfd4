package cluster

import (
	"farflash/model/cluster/internal/queue"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// Load is what gateways do. In a closed loop each has as many chunks under way as it may and begins the next one when
// one is done. In an open loop chunks come in their own time, by a Poisson process, one by one or in bursts
// (burst.go), or from a source, and wait at their gateway if it has as many under way as it may.
type Load struct {
	// Rate is how many chunks a second come to the cluster, in an open loop; 0 is a closed loop.
	Rate float64
	// Share is the rate as a share of what the cluster's resources allow; 0 is a closed loop.
	Share units.Fraction
	// Burst is how many chunks come to a gateway at once at most, in an open loop; 0 and 1 are one at a time. How
	// many a burst has is drawn from a bounded Pareto distribution.
	Burst int
	// Shape is with which power the sizes of bursts become rarer; 0 is 1.2.
	Shape float64
}

// open reports whether chunks come in their own time.
func (l *Load) open() bool { return l.Rate > 0 || l.Share > 0 }

// Arrival is a chunk that comes to a gateway.
type Arrival struct {
	At      sim.Time
	Gateway int32
	Read    bool
	Object  int64 // which of those that are kept is read; negative: any
}

// Source tells of chunks that come in their own time, as from a trace.
type Source interface {
	// Next fills in the next one, or reports that there is none. Times do not go back.
	Next(*Arrival) bool
}

// loader has gateways begin chunks.
type loader struct {
	source  Source
	mix     rng.Stream // which are read
	times   rng.Stream
	gap     float64                // mean time between arrivals, ps
	waiting []queue.Queue[Arrival] // by gateway
	behind  int                    // of them in all
	under   []int32                // by gateway: chunks under way
	coming  Arrival                // the next
	more    int                    // that come with it
}

// Start has each gateway take its first chunks.
func (c *Cluster) Start() {
	c.books.open(c)
	l := &c.load
	l.mix, l.times = rng.NewStream(c.seed, "cluster/mix"), rng.NewStream(c.seed, "cluster/arrivals")
	l.waiting, l.under = make([]queue.Queue[Arrival], len(c.gateways)), make([]int32, len(c.gateways))
	if l.source != nil || c.cfg.Load.open() {
		if l.source == nil {
			l.gap = 1e12 / c.Offered() * c.cfg.Load.bursts().Mean()
		}
		c.arrivalAt(0)
		return
	}
	for g := range c.gateways {
		for range c.cfg.Outstanding {
			c.eng.Schedule(c.self, c.here, c.eng.Now(), evBegin, uint32(g))
		}
	}
}

// Replay has chunks come from a source; it is called before Start.
func (c *Cluster) Replay(s Source) { c.load.source = s }

// Offered is how many chunks a second come in an open loop that is not from a source; 0 in others.
func (c *Cluster) Offered() float64 {
	if c.load.source != nil {
		return 0
	}
	if c.cfg.Load.Rate > 0 {
		return float64(c.cfg.Load.Rate)
	}
	return float64(c.cfg.Load.Share) * c.Bound().Chunks
}

// draw is whether a chunk is read.
func (l *loader) draw(share units.Fraction) bool {
	return share > 0 && (share >= 1 || l.mix.Float64() < float64(share))
}

// arrivalAt plans the next arrival.
func (c *Cluster) arrivalAt(from sim.Time) {
	l := &c.load
	x := &l.coming
	if l.source != nil {
		if !l.source.Next(x) {
			return
		}
	} else {
		if l.more > 0 {
			l.more--
		} else {
			x.At = from + sim.Time(l.times.Exp()*l.gap)
			x.Gateway = int32(l.times.IntN(int64(len(c.gateways))))
			if c.cfg.Load.Burst > 1 {
				l.more = c.cfg.Load.bursts().Size(l.times.Float64()) - 1
			}
		}
		x.Read, x.Object = l.draw(c.cfg.Reads), -1
	}
	x.At = max(x.At, c.eng.Now())
	c.eng.Schedule(c.self, c.here, x.At, evArrival, 0)
}

// arrives: a chunk comes.
func (c *Cluster) arrives() {
	l := &c.load
	x := l.coming
	c.arrivalAt(c.eng.Now())
	c.Counters.Arrived++
	if l.under[x.Gateway] < int32(c.cfg.Outstanding) {
		l.under[x.Gateway]++
		c.take(&x)
		return
	}
	if l.behind++; l.behind > mostWaiting {
		c.err = units.Wrong("load",
			"more than %d chunks wait at gateways at %v: they come faster than the cluster takes them, until there "+
				"is no memory left; lower the load, or end the run earlier with measure.until",
			mostWaiting, c.eng.Now())
		c.eng.Stop()
		return
	}
	l.waiting[x.Gateway].Push(x)
}

// mostWaiting bounds the chunks of an open loop that nobody works on, and with them memory.
const mostWaiting = 1 << 24

// begin has a gateway of a closed loop take a chunk.
func (c *Cluster) begin(gateway int32) {
	c.take(&Arrival{At: c.eng.Now(), Gateway: gateway, Read: c.load.draw(c.cfg.Reads), Object: -1})
}

// freed: a gateway has one chunk fewer under way.
func (c *Cluster) freed(gateway int32) {
	l := &c.load
	if l.source == nil && !c.cfg.Load.open() {
		c.eng.Schedule(c.self, c.here, c.eng.Now(), evBegin, uint32(gateway))
		return
	}
	if w := &l.waiting[gateway]; !w.Empty() {
		x := w.Pop()
		l.behind--
		c.take(&x)
		return
	}
	l.under[gateway]--
}
