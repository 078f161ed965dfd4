// Package nvmftest supports tests on either side of nvmf.Fabric: a network in memory, and the conformance test of every
// Fabric.
//
// Its main parts are Network, whose message times can be added up by hand, and Conform, which tests a Fabric of any
// kind, that network and the simulated one included, against the contract that package nvmf states.
//
// It leaves out packets, losses and congestion. Queue pairs do not affect each other.
package nvmftest

import (
	"fmt"

	"farflash/model/fabric"
	"farflash/numeric/units"
	"farflash/sim"
)

// Config describes a Network.
type Config struct {
	Nodes   int32
	Latency sim.Time       // from when a message's last byte was sent until it has arrived
	Ack     sim.Time       // from then until its sender is notified
	Rate    units.ByteRate // of each queue pair
}

// DefaultConfig returns eight nodes, 10 us apart, whose queue pairs send 4096 bytes in 1 us.
func DefaultConfig() Config {
	return Config{Nodes: 8, Latency: 10 * units.Microsecond, Ack: 5 * units.Microsecond, Rate: 4_096_000_000}
}

// Network is a network whose queue pairs send one message after another, independently of each other. It is an
// nvmf.Fabric and an nvmf.Chooser, with a queue pair for each two nodes and class.
type Network struct {
	cfg      Config
	eng      *sim.Engine
	self     sim.Component
	target   sim.Target
	sink     fabric.Sink
	pairs    []pair
	chosen   map[pair]fabric.QP
	messages []message
	pools    []pool
	held     map[fabric.QP][]int32 // messages that found no receive
	spare    []int32
	// Lost, if not nil, reports whether what would arrive now from one node at another is lost, an acknowledgement
	// included. Nothing is sent again.
	Lost func(src, dst int32) bool
	// Rates, if not nil, returns the rate of queue pairs from one node to another, instead of Config.Rate.
	Rates func(src, dst int32) units.ByteRate
}

type pair struct {
	src, dst int32
	class    uint8
	over     bool      // it was abandoned
	answers  fabric.QP // the stream on which it answers RDMA Reads, plus 1
	pool     int32     // of its messages' receives, plus 1
	busy     sim.Time  // until when it sends
}

type pool struct {
	count, posted int
	timer         sim.Time
}

type message struct {
	begun        sim.Time
	acked, known bool
	asks         bool // its answer stands for its ACK
	delivered    bool
	dropped      bool
	due          int8 // events scheduled
	qp           fabric.QP
}

// Kinds of events. The argument is a message, or a queue pair whose messages look for receives again.
const (
	evDelivered uint16 = iota
	evAcked
	evAgain
)

// New returns a network on an engine that reports to sink.
func New(cfg Config, eng *sim.Engine, sink fabric.Sink) *Network {
	n := &Network{cfg: cfg, eng: eng, self: eng.NewComponent(), sink: sink, chosen: map[pair]fabric.QP{},
		held: map[fabric.QP][]int32{}}
	n.target = eng.AddHandler(n)
	return n
}

// Open implements nvmf.Fabric.
func (n *Network) Open(src, dst int32, class uint8) (fabric.QP, error) {
	switch {
	case min(src, dst) < 0 || max(src, dst) >= n.cfg.Nodes:
		return 0, fmt.Errorf("there are no nodes %d and %d; there are %d", src, dst, n.cfg.Nodes)
	case src == dst:
		return 0, fmt.Errorf("node %d cannot send to itself", src)
	case class == 0 || class >= fabric.MaxClasses:
		return 0, fmt.Errorf("traffic class %d is not possible; use 1 to %d", class, fabric.MaxClasses-1)
	}
	n.pairs = append(n.pairs, pair{src: src, dst: dst, class: class})
	return fabric.QP(len(n.pairs) - 1), nil
}

// Post implements nvmf.Fabric.
func (n *Network) Post(q fabric.QP, size units.Bytes) (int32, error) {
	if size < 1 {
		return 0, fmt.Errorf("a message of %v is not possible", size)
	}
	if q < 0 || int(q) >= len(n.pairs) || n.pairs[q].over {
		return 0, fmt.Errorf("no queue pair %d; there are %d", q, len(n.pairs))
	}
	p := &n.pairs[q]
	begun := max(n.eng.Now(), p.busy)
	rate := n.cfg.Rate
	if n.Rates != nil {
		rate = n.Rates(p.src, p.dst)
	}
	p.busy = begun + rate.TimeFor(size)
	m := int32(len(n.messages))
	if k := len(n.spare) - 1; k >= 0 {
		m, n.spare = n.spare[k], n.spare[:k]
	} else {
		n.messages = append(n.messages, message{})
	}
	n.messages[m] = message{begun: begun, known: true, qp: q}
	n.schedule(p.busy+n.cfg.Latency, evDelivered, m)
	return m, nil
}

// Respond implements nvmf.Reader. An answer does not delay other messages.
func (n *Network) Respond(out, back fabric.QP) (fabric.QP, error) {
	if last := fabric.QP(len(n.pairs) - 1); min(out, back) < 0 || max(out, back) > last {
		return 0, fmt.Errorf("there are no queue pairs %d and %d; there are %d", out, back, len(n.pairs))
	}
	o, b := n.pairs[out], n.pairs[back]
	if o.src != b.dst || o.dst != b.src {
		return 0, fmt.Errorf("queue pairs %d and %d are not two directions of one", out, back)
	}
	q, err := n.Open(o.src, o.dst, o.class)
	n.pairs[out].answers = q + 1
	return q, err
}

// Ask implements nvmf.Reader.
func (n *Network) Ask(q fabric.QP, size units.Bytes) (int32, error) {
	m, err := n.Post(q, size)
	if err == nil {
		n.messages[m].asks = true
	}
	return m, err
}

// Answer implements nvmf.Reader. The request is acknowledged when the answer's first byte has arrived.
func (n *Network) Answer(q fabric.QP, size units.Bytes, request int32) (int32, error) {
	m, err := n.Post(q, size)
	if err == nil {
		n.schedule(n.messages[m].begun+n.cfg.Latency, evAcked, request)
	}
	return m, err
}

// Send implements nvmf.Chooser.
func (n *Network) Send(src, dst int32, class uint8, size units.Bytes) (int32, error) {
	key := pair{src: src, dst: dst, class: class}
	q, ok := n.chosen[key]
	if !ok {
		var err error
		if q, err = n.Open(src, dst, class); err != nil {
			return 0, err
		}
		n.chosen[key] = q
	}
	return n.Post(q, size)
}

// Begun implements nvmf.Fabric. It panics if the message was forgotten.
func (n *Network) Begun(m int32) sim.Time {
	if !n.messages[m].known {
		panic(fmt.Sprintf("message %d was forgotten", m))
	}
	return n.messages[m].begun
}

// Forget implements nvmf.Fabric. It panics if it is called too early or twice.
func (n *Network) Forget(m int32) {
	x := &n.messages[m]
	if !x.known || !x.acked {
		panic(fmt.Sprintf("message %d cannot be forgotten: acknowledged %v, known %v", m, x.acked, x.known))
	}
	x.known = false
	n.spare = append(n.spare, m)
}

// Handle implements sim.Handler.
func (n *Network) Handle(e sim.Event) {
	if e.Kind == evAgain {
		n.again(fabric.QP(e.Arg))
		return
	}
	m := int32(e.Arg)
	x := &n.messages[m]
	if x.due--; x.dropped {
		if x.due == 0 {
			n.spare = append(n.spare, m)
		}
		return
	}
	p := &n.pairs[x.qp]
	if e.Kind == evDelivered {
		if n.Lost != nil && n.Lost(p.src, p.dst) {
			return
		}
		if p.pool > 0 && (len(n.held[x.qp]) > 0 || n.pools[p.pool-1].posted == 0) {
			n.hold(x.qp, m)
			return
		}
		n.deliver(m)
		return
	}
	if !x.delivered || n.Lost != nil && n.Lost(p.dst, p.src) {
		return
	}
	x.acked = true
	n.sink.Acked(m)
}

// deliver takes a receive for a message, if it needs one, and delivers it.
func (n *Network) deliver(m int32) {
	x := &n.messages[m]
	if pool := n.pairs[x.qp].pool; pool > 0 {
		n.pools[pool-1].posted--
	}
	if !x.asks {
		n.schedule(n.eng.Now()+n.cfg.Ack, evAcked, m)
	}
	x.delivered = true
	n.sink.Delivered(m)
}

// hold keeps a message back that found no receive, or that follows one.
func (n *Network) hold(q fabric.QP, m int32) {
	if n.held[q] = append(n.held[q], m); len(n.held[q]) == 1 {
		n.eng.Schedule(n.self, n.target, n.eng.Now()+n.pools[n.pairs[q].pool-1].timer, evAgain, uint32(q))
	}
}

// again delivers the messages of a queue pair that were held back, as far as there are receives.
func (n *Network) again(q fabric.QP) {
	held := n.held[q]
	n.held[q] = nil
	for _, m := range held {
		switch p := &n.pairs[q]; {
		case p.over:
			return
		case len(n.held[q]) > 0 || n.pools[p.pool-1].posted == 0:
			n.hold(q, m)
		default:
			n.deliver(m)
		}
	}
}

// Pool implements nvmf.Pooler. A message that finds no receive waits for the timer, and those behind it with it.
func (n *Network) Pool(count int, timer sim.Time) (int32, error) {
	if count < 1 || timer < 1 {
		return 0, fmt.Errorf("%d receives with a timer of %v are not possible", count, timer)
	}
	n.pools = append(n.pools, pool{count, count, timer})
	return int32(len(n.pools) - 1), nil
}

// Receives implements nvmf.Pooler.
func (n *Network) Receives(q fabric.QP, pool int32) error {
	if q < 0 || int(q) >= len(n.pairs) || n.pairs[q].over || pool < 0 || int(pool) >= len(n.pools) {
		return fmt.Errorf("no queue pair %d, or no pool %d", q, pool)
	}
	n.pairs[q].pool = pool + 1
	return nil
}

// Repost implements nvmf.Pooler. It panics if no receive of the pool is taken.
func (n *Network) Repost(pool int32) {
	p := &n.pools[pool]
	if p.posted++; p.posted > p.count {
		panic(fmt.Sprintf("%d of %d receives are posted", p.posted, p.count))
	}
}

// Posted implements nvmf.Pooler.
func (n *Network) Posted(pool int32) int { return n.pools[pool].posted }

func (n *Network) schedule(at sim.Time, kind uint16, m int32) {
	n.messages[m].due++
	n.eng.Schedule(n.self, n.target, at, kind, uint32(m))
}

// Abandon implements nvmf.Abandoner.
func (n *Network) Abandon(q fabric.QP, dropped func(m int32)) error {
	if q < 0 || int(q) >= len(n.pairs) || n.pairs[q].over {
		return fmt.Errorf("no queue pair %d; there are %d", q, len(n.pairs))
	}
	n.pairs[q].over = true
	answers := n.pairs[q].answers - 1
	for m := range n.messages {
		x := &n.messages[m]
		if x.qp != q && x.qp != answers || x.acked || !x.known {
			continue
		}
		dropped(int32(m))
		if x.known, x.dropped = false, true; x.due == 0 {
			n.spare = append(n.spare, int32(m))
		}
	}
	return nil
}

// Break makes the network report that a queue pair has given up, to a sink that is a fabric.Breaker.
func (n *Network) Break(q fabric.QP) {
	if b, ok := n.sink.(fabric.Breaker); ok {
		b.Broken(q)
	}
}
