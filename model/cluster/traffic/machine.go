package traffic

import (
	"fmt"

	"farflash/model/cluster/internal/slab"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// Machine is all nodes in one event loop. It belongs to the goroutine that runs its engine.
type Machine struct {
	cfg  Config
	eng  *sim.Engine
	self sim.Component
	here sim.Target
	rand rng.Stream

	nodes     []node // gateways, then targets
	exchanges slab.Slab[exchange]
	between   []bool // by pair: whether it has an exchange, if exchanges are kept apart

	pending  int64 // events in flight or waiting
	area     float64
	crowded  float64  // sum over nodes of the time with more than one event pending
	measured sim.Time // time up to which area is integrated

	Counters Counters
	// OnDone is called with each completed exchange.
	OnDone sim.Probe[*Done]
}

// Counters are totals since the start.
type Counters struct {
	Begun, Done   uint64 // exchanges
	Sent, Handled uint64 // events
	Held          uint64 // exchanges not begun because no drawn peer had capacity
	Waited        uint64 // exchanges delayed by their bucket
	Bytes         uint64 // sent
	MostPending   int32  // largest number of events at one node
}

// Done is a completed exchange.
type Done struct {
	From, To    int32 // nodes: gateways, then targets
	Begun, Done sim.Time
}

// node is a gateway or a target.
type node struct {
	pending int32    // events in flight to it or waiting
	crowded sim.Time // since when more than one is pending
	busy    sim.Time // when it has handled its current events
	bucket  bucket
}

// exchange is a sequence of events that two nodes send each other.
type exchange struct {
	from, to int32
	hop      int32
	begun    sim.Time
}

// Kinds of events. The argument is a node or an exchange.
const (
	evBegin   uint16 = iota // a node begins an exchange
	evArrive                // an event has arrived at its node
	evHandled               // an event has been handled
)

// New returns a machine that is idle until Start.
func New(cfg Config, eng *sim.Engine, seed uint64) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m := &Machine{cfg: cfg, eng: eng, self: eng.NewComponent(), rand: rng.NewStream(seed, "traffic")}
	m.here = eng.AddHandler(m)
	m.nodes = make([]node, cfg.Gateways+cfg.Targets)
	for i := range m.nodes {
		m.nodes[i].bucket.tokens = cfg.Burst
	}
	if cfg.Apart {
		m.between = make([]bool, cfg.Gateways*cfg.Targets)
	}
	return m, nil
}

// Start has nodes begin their exchanges.
func (m *Machine) Start() {
	if m.cfg.Outstanding > 0 {
		for g := range m.cfg.Gateways {
			for range m.cfg.Outstanding {
				m.begin(int32(g))
			}
		}
		return
	}
	last := m.cfg.Gateways
	if m.cfg.Both {
		last = len(m.nodes)
	}
	for i := range last {
		m.plan(int32(i))
	}
}

// plan schedules the next exchange of a node of an open loop.
func (m *Machine) plan(i int32) {
	gap := sim.Time(float64(m.cfg.Interval) * m.rand.Exp())
	m.eng.Schedule(m.self, m.here, m.eng.Now()+gap, evBegin, uint32(i))
}

// Handle implements sim.Handler.
func (m *Machine) Handle(e sim.Event) {
	switch e.Kind {
	case evBegin:
		m.attempt(int32(e.Arg))
	case evArrive:
		m.arrive(int32(e.Arg))
	case evHandled:
		m.handled(int32(e.Arg))
	}
}

// begin has a node begin an exchange, if there is a peer with capacity.
func (m *Machine) begin(i int32) bool {
	to := m.choose(i)
	if to < 0 {
		m.Counters.Held++
		return false
	}
	k := m.exchanges.Take()
	m.exchanges.Items[k] = exchange{from: i, to: to, begun: m.eng.Now()}
	if m.cfg.Apart {
		m.between[m.pair(i, to)] = true
	}
	m.Counters.Begun++
	m.send(k)
	return true
}

// send sends an exchange's next event.
func (m *Machine) send(k int32) {
	x := &m.exchanges.Items[k]
	x.hop++
	m.Counters.Sent++
	m.Counters.Bytes += uint64(m.cfg.Size)
	m.count(x.at(), 1)
	takes := m.cfg.Trip
	if m.cfg.Jitter > 0 {
		takes += sim.Time(1 + m.rand.IntN(int64(m.cfg.Jitter)))
	}
	m.eng.Schedule(m.self, m.here, m.eng.Now()+takes, evArrive, uint32(k))
}

// at returns the destination of an exchange's present event: odd hops go to the peer, even ones back.
func (x *exchange) at() int32 {
	if x.hop&1 != 0 {
		return x.to
	}
	return x.from
}

// count changes the number of events pending at a node.
func (m *Machine) count(i, by int32) {
	now := m.eng.Now()
	m.measure(now)
	n := &m.nodes[i]
	was := n.pending
	n.pending += by
	m.pending += int64(by)
	m.Counters.MostPending = max(m.Counters.MostPending, n.pending)
	switch {
	case was <= 1 && n.pending > 1:
		n.crowded = now
	case was > 1 && n.pending <= 1:
		m.crowded += float64(now - n.crowded)
	}
}

// measure integrates the number of pending events over time.
func (m *Machine) measure(now sim.Time) {
	m.area += float64(float64(now-m.measured) * float64(m.pending))
	m.measured = now
}

// arrive handles the arrival of an event at its node, which handles events one after the other.
func (m *Machine) arrive(k int32) {
	if m.cfg.Service == 0 {
		m.handled(k)
		return
	}
	n := &m.nodes[m.exchanges.Items[k].at()]
	n.busy = max(n.busy, m.eng.Now()) + sim.Time(float64(m.cfg.Service)*m.rand.Exp())
	m.eng.Schedule(m.self, m.here, n.busy, evHandled, uint32(k))
}

// handled handles the completion of an event: the next one is sent, or the exchange is complete.
func (m *Machine) handled(k int32) {
	x := &m.exchanges.Items[k]
	m.Counters.Handled++
	m.count(x.at(), -1)
	if int(x.hop) < m.cfg.Hops {
		m.send(k)
		return
	}
	m.Counters.Done++
	if m.OnDone != nil {
		m.OnDone(&Done{From: x.from, To: x.to, Begun: x.begun, Done: m.eng.Now()})
	}
	from := x.from
	if m.cfg.Apart {
		m.between[m.pair(from, x.to)] = false
	}
	m.exchanges.Give(k)
	if m.cfg.Outstanding > 0 {
		m.begin(from)
	}
}

// Pending returns the integral over time, up to now, of the events in flight to nodes or waiting there, in events times
// seconds. The difference of two values, over the time between and over Receivers, is the mean load of a node.
func (m *Machine) Pending(now sim.Time) float64 {
	m.measure(now)
	return m.area / float64(units.Second)
}

// Contended returns the total time of nodes, up to now, with more than one event pending, in seconds.
func (m *Machine) Contended(now sim.Time) float64 {
	sum := m.crowded
	for i := range m.nodes {
		if n := &m.nodes[i]; n.pending > 1 {
			sum += float64(now - n.crowded)
		}
	}
	return sum / float64(units.Second)
}

// Receivers returns the number of nodes that receive events.
func (m *Machine) Receivers() int {
	if m.cfg.Both || m.cfg.Hops > 1 {
		return len(m.nodes)
	}
	return m.cfg.Targets
}

// Bound returns the maximum sustained rate of events per second: the exchanges that open loops begin, or that their
// buckets admit, times the events of an exchange; or the rate of closed loops when events never wait.
func (m *Machine) Bound() float64 {
	c := &m.cfg
	if c.Outstanding > 0 {
		return float64(c.Gateways*c.Outstanding) / (c.Trip + c.Jitter/2 + c.Service).Seconds()
	}
	senders := c.Gateways
	if c.Both {
		senders += c.Targets
	}
	gap := c.Interval
	if c.Burst > 0 {
		gap = max(gap, c.Refill)
	}
	return float64(senders*c.Hops) / gap.Seconds()
}

// Check verifies the conservation laws and returns the first violation.
func (m *Machine) Check() error {
	k := &m.Counters
	live := uint64(m.exchanges.Used())
	sum := int64(0)
	for i := range m.nodes {
		sum += int64(m.nodes[i].pending)
	}
	switch {
	case k.Begun != k.Done+live:
		return fmt.Errorf("%d exchanges begun, but %d done and %d under way", k.Begun, k.Done, live)
	case k.Sent != k.Handled+live:
		return fmt.Errorf("%d events sent, but %d handled and %d exchanges under way", k.Sent, k.Handled, live)
	case sum != m.pending || uint64(sum) != live:
		return fmt.Errorf("%d events pending at nodes, of %d exchanges", sum, live)
	}
	return nil
}
