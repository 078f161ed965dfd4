package cluster

import (
	"farflash/model/cluster/internal/queue"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// Load describes how chunks arrive. In a closed loop each gateway keeps its maximum of chunks outstanding. In an open
// loop chunks arrive independently of completions, singly or in bursts from a Poisson process, or from a source, and
// queue at gateways that have their maximum outstanding.
type Load struct {
	// Rate is the chunks per second that arrive at the cluster, in an open loop; 0 is a closed loop.
	Rate float64
	// Share is the rate relative to the throughput that the cluster's resources allow; 0 is a closed loop.
	Share units.Fraction
	// Burst is the largest number of chunks that arrive at a gateway at once, in an open loop, drawn from a bounded
	// Pareto distribution; 0 and 1 are single arrivals.
	Burst int
	// Shape is the exponent of burst sizes' Pareto distribution; 0 is 1.2.
	Shape float64
}

// open reports whether chunks arrive in an open loop.
func (l *Load) open() bool { return l.Rate > 0 || l.Share > 0 }

// Arrival is the arrival of a chunk at a gateway.
type Arrival struct {
	At      sim.Time
	Gateway int32
	Read    bool
	Object  int64 // which stored chunk is read; negative: one at random
}

// Source yields the arrivals of an open loop, for example from a trace.
type Source interface {
	// Next fills in the next arrival and reports whether there is one. Times never decrease.
	Next(*Arrival) bool
}

// loader starts the chunks of gateways.
type loader struct {
	source  Source
	mix     rng.Stream // decides which chunks are reads
	times   rng.Stream
	gap     float64                // mean time between arrivals or bursts, in picoseconds
	waiting []queue.Queue[Arrival] // queued arrivals, by gateway
	behind  int                    // total number of queued arrivals
	under   []int32                // chunks in flight, by gateway
	coming  Arrival                // the next arrival
	more    int                    // remaining arrivals of its burst
}

// Start has each gateway take its first chunks.
func (c *Cluster) Start() {
	c.books.open(c)
	l := &c.load
	l.mix, l.times = rng.NewStream(c.seed, "cluster/mix"), rng.NewStream(c.seed, "cluster/arrivals")
	l.waiting, l.under = make([]queue.Queue[Arrival], len(c.gateways)), make([]int32, len(c.gateways))
	if l.source != nil || c.cfg.Load.open() {
		if l.source == nil {
			l.gap = 1e12 / c.Offered() * c.cfg.Load.bursts().mean()
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

// Replay takes arrivals from a source. It must be called before Start.
func (c *Cluster) Replay(s Source) { c.load.source = s }

// Offered returns the offered load in chunks per second of an open loop without a source, otherwise 0.
func (c *Cluster) Offered() float64 {
	if c.load.source != nil {
		return 0
	}
	if c.cfg.Load.Rate > 0 {
		return float64(c.cfg.Load.Rate)
	}
	return float64(c.cfg.Load.Share) * c.Bound().Chunks
}

// draw reports whether the next chunk is a read.
func (l *loader) draw(share units.Fraction) bool {
	return share > 0 && (share >= 1 || l.mix.Float64() < float64(share))
}

// arrivalAt schedules the next arrival.
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
				l.more = c.cfg.Load.bursts().size(l.times.Float64()) - 1
			}
		}
		x.Read, x.Object = l.draw(c.cfg.Reads), -1
	}
	x.At = max(x.At, c.eng.Now())
	c.eng.Schedule(c.self, c.here, x.At, evArrival, 0)
}

// arrives handles the arrival of a chunk.
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
			"more than %d chunks wait at gateways at %v: they arrive faster than the cluster serves them, until there "+
				"is no memory left; lower the load, or end the run earlier with measure.until",
			mostWaiting, c.eng.Now())
		c.eng.Stop()
		return
	}
	l.waiting[x.Gateway].Push(x)
}

// mostWaiting bounds the queued chunks of an open loop, and with them memory.
const mostWaiting = 1 << 24

// begin starts a chunk at a gateway of a closed loop.
func (c *Cluster) begin(gateway int32) {
	c.take(&Arrival{At: c.eng.Now(), Gateway: gateway, Read: c.load.draw(c.cfg.Reads), Object: -1})
}

// freed handles the end of a chunk: its gateway has one fewer in flight.
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
