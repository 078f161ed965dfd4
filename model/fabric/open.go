package fabric

import (
	"errors"
	"farflash/internal/window"
	"fmt"
	"math/bits"
	"slices"
	"sync/atomic"

	"farflash/model/fabric/cc"
	"farflash/model/fabric/ideal"
	"farflash/model/fabric/repair"
	"farflash/model/fabric/spread"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/sim"
)

// maxMessage keeps a message's packet numbers apart from earlier ones. maxQueuePairs keeps queue pair numbers within
// the index bits of packet.qp.
const (
	maxMessage    = 1 << 40
	maxQueuePairs = 1 << slotBits
	// kept is the number of first queue pairs whose indexes are never reused, so that they can be followed
	kept = 16
)

func (n *Network) checkHosts(src, dst int32) error {
	for _, h := range [...]int32{src, dst} {
		if h < 0 || int(h) >= len(n.graph.Nodes) {
			return fmt.Errorf("no node %d; there are %d", h, len(n.graph.Nodes))
		}
		if n.graph.Nodes[h].Kind != topo.Host {
			return fmt.Errorf("%s is a switch; only hosts send and receive", n.graph.Nodes[h].Name)
		}
	}
	if src == dst {
		return fmt.Errorf("%s cannot send to itself", n.graph.Nodes[src].Name)
	}
	return nil
}

// Open opens a queue pair between hosts' nodes with the traffic class of its data; class 0 is for answers.
func (n *Network) Open(src, dst int32, class uint8) (QP, error) {
	q, err := n.open(src, dst, class, n.eng.Now())
	if err == nil {
		s := &n.senders[q]
		s.planned = false
		n.introduce(int32(q), s)
	}
	return q, err
}

// open creates a queue pair for a time that is not in the past. The queue pair is introduced to its NIC at that time.
func (n *Network) open(src, dst int32, class uint8, at sim.Time) (QP, error) {
	if err := n.checkHosts(src, dst); err != nil {
		return 0, err
	}
	if class == 0 || int(class)+n.channels() > MaxClasses {
		return 0, fmt.Errorf("traffic class %d is not possible; use 1 to %d", class, MaxClasses-n.channels())
	}
	if err := n.Use(class); err != nil {
		return 0, err
	}
	if !n.intact.Reachable(src, dst) || !n.intact.Reachable(dst, src) {
		return 0, fmt.Errorf("%s cannot reach %s: no path", n.graph.Nodes[src].Name, n.graph.Nodes[dst].Name)
	}
	routes := n.known(src, dst)
	q, err := n.slot(src, at)
	if err != nil {
		return 0, err
	}
	// Timers and counters of the sending side belong to the part of the source.
	x := n.of(src)
	s, r, c := &n.senders[q], &n.receive[q], &n.control[q]
	was := *s
	// The tag counts the uses of the index, so that stray packets of an earlier one are recognised.
	tag := was.tag + 1<<slotBits
	*s = sender{src: src, dst: dst, class: class, oldest: -1, sending: -1, newest: -1, last: -1, ended: -1, twin: -1,
		tag: tag, planned: true, closed: -1, expire: was.expire, adjust: was.adjust,
		steered: was.steered, expires: was.expires}
	if r.patient {
		n.of(n.ports[r.port].node).eng.Release(r.patience)
	}
	*r = receiver{opening: -1, message: -1, begun: -1, asker: -1, answers: -1, tag: tag}
	*c = cc.Sender{Wake: sim.Forever}
	if n.wants.Pulls {
		n.pulling[q] = pulling{}
	}
	order := n.pairSeen[[2]int32{src, dst}]
	n.keys[q] = spread.KeyOf(src, dst, order)
	n.findPaths(q, routes)
	n.pairSeen[[2]int32{src, dst}] = order + 1
	if n.cfg.Recovery.Kind.Keeps() {
		s.repair, r.arrived = repair.New(n.cfg.Recovery.Kind == Sack, n.patience()), &window.Set{}
	}
	n.renewTimers(x, q, s, was.port)
	c.Line = n.ports[s.port].rate
	c.BaseRTT, c.BDP = n.longest, n.bdp
	if !n.cfg.RoundTrip.Longest {
		c.BaseRTT, c.BDP = n.roundTrip(routes, src, dst)
	}
	n.adapt(s, c.BaseRTT)
	c.MTU, c.Rate = n.cfg.Payload, c.Line
	c.Hops = int32(routes.Distance(src, dst) - 1)
	n.alg.Start(int32(q), c)
	return q, nil
}

// introduce registers a queue pair with its NIC.
func (n *Network) introduce(q int32, s *sender) {
	if s.standing == idle {
		n.enrol(q, s)
	}
	n.steer(q, s, &n.control[q])
}

// Use declares that a class will carry packets and reserves its headroom, as Open does later.
func (n *Network) Use(class uint8) error {
	if int(class)+n.channels() > MaxClasses {
		return fmt.Errorf("traffic class %d is not possible; use 0 to %d", class, MaxClasses-n.channels())
	}
	if was := n.used; n.use(class) {
		if err := n.setPools(); err != nil {
			n.used = was
			return errors.Join(err, n.setPools())
		}
	}
	return nil
}

// slot returns a queue pair index that is free at the given time: that of a queue pair of the same host that finished
// long enough before, or a new one.
func (n *Network) slot(src int32, at sim.Time) (QP, error) {
	if spare := &n.nics[n.ports[n.nodes[src].first].nic].spare; spare.N > 0 &&
		n.senders[*spare.First()].closed+n.rest <= at {
		return QP(spare.Pop()), nil
	}
	q := len(n.senders)
	if q == maxQueuePairs {
		return 0, fmt.Errorf("%d queue pairs are open, the maximum", maxQueuePairs)
	}
	n.keys = append(n.keys, spread.Key{})
	n.senders = append(n.senders, sender{tag: uint32(q)})
	n.receive = append(n.receive, receiver{})
	n.control = append(n.control, cc.Sender{})
	if n.adapts {
		n.trips = append(n.trips, repair.Trip{})
	}
	if n.wants.Pulls {
		n.pulling = append(n.pulling, pulling{})
	}
	n.paths = append(n.paths, make([]int32, 2*n.hopLimit)...)
	return QP(q), nil
}

// setPatience computes how long stray packets of a finished queue pair are waited for. Parts of a network can be some
// link delays apart in time, and an event in one takes as long to become visible in all of them. The times do not
// depend on whether the network is divided.
func (n *Network) setPatience() {
	for i := range n.graph.Links {
		n.reach = max(n.reach, 2*n.graph.Links[i].Delay)
	}
	n.grace = n.reach + 10*units.Microsecond
	n.rest = n.grace + n.reach + 1
}

// vacate returns a queue pair's index to its host for reuse.
func (n *Network) vacate(q int32) {
	s := &n.senders[q]
	atomic.StoreInt64((*int64)(&s.closed), int64(n.eng.Now()))
	if q >= kept {
		n.nics[n.ports[n.nodes[s.src].first].nic].spare.Push(q)
	}
}

// buried reports whether a receiver's queue pair finished so long ago that its index may be reused. The sender may
// belong to another part, which runs concurrently; by that time its finish is visible here.
func (n *Network) buried(r *receiver) bool {
	if !r.done {
		return false
	}
	closed := sim.Time(atomic.LoadInt64((*int64)(&n.senders[r.tag&slotMask].closed)))
	return closed >= 0 && closed+n.grace <= n.eng.Now()
}

// Pair returns the persistent queue pair whose turn it is between two hosts, and opens it if need be.
func (n *Network) Pair(src, dst int32, class uint8) (QP, error) {
	q, err := n.pair(src, dst, class, n.eng.Now())
	if err == nil && n.senders[q].planned {
		n.senders[q].planned = false
		n.introduce(int32(q), &n.senders[q])
	}
	return q, err
}

func (n *Network) pair(src, dst int32, class uint8, at sim.Time) (QP, error) {
	key := pair{src, dst, class}
	first, ok := n.pairs[key]
	if !ok {
		q, err := n.open(src, dst, class, at)
		if err == nil {
			n.pairs[key] = q
		}
		return q, err
	}
	if n.cfg.QueuePairs.PerPeer == 1 {
		return first, nil
	}
	p := n.peerings[key]
	if p == nil {
		p = &peering{qps: []QP{first}}
		n.peerings[key] = p
	}
	if len(p.qps) < n.cfg.QueuePairs.PerPeer {
		q, err := n.open(src, dst, class, at)
		if err != nil {
			return 0, err
		}
		p.qps = append(p.qps, q)
		return q, nil
	}
	q := p.qps[p.turn]
	p.turn = (p.turn + 1) % len(p.qps)
	return q, nil
}

// Reserve preallocates for messages to come.
func (n *Network) Reserve(messages int) {
	const most = 1 << 22
	messages = min(max(messages, 0), most)
	n.messages = slices.Grow(n.messages, messages)
	if n.cfg.QueuePairs.Life == PerMessage {
		return // which reuses indexes
	}
	hosts := len(n.nics)
	pairs := min(messages, hosts*(hosts-1)*n.cfg.QueuePairs.PerPeer)
	n.keys = slices.Grow(n.keys, pairs)
	n.senders = slices.Grow(n.senders, pairs)
	n.receive = slices.Grow(n.receive, pairs)
	n.control = slices.Grow(n.control, pairs)
	n.paths = slices.Grow(n.paths, 2*n.hopLimit*pairs)
}

// Send posts a message on a queue pair of its own or a shared one, as configured.
func (n *Network) Send(src, dst int32, class uint8, size units.Bytes) (int32, error) {
	open := n.Pair
	if n.cfg.QueuePairs.Life == PerMessage {
		open = n.Open
	}
	q, err := open(src, dst, class)
	if err != nil {
		return 0, err
	}
	return n.Post(q, size)
}

// Post gives a queue pair a message to send and returns its index in Messages.
func (n *Network) Post(q QP, size units.Bytes) (int32, error) {
	m, err := n.plan(q, size)
	if err == nil {
		err = n.begin(m)
	}
	return m, err
}

// plan creates a message that is not yet posted.
func (n *Network) plan(q QP, size units.Bytes) (int32, error) {
	if size <= 0 || size > maxMessage {
		return 0, fmt.Errorf("a message of %v is not possible; use 1B to 1TiB", size)
	}
	if q < 0 || int(q) >= len(n.senders) {
		return 0, fmt.Errorf("no queue pair %d; there are %d", q, len(n.senders))
	}
	s := &n.senders[q]
	if s.standing == finished {
		return 0, fmt.Errorf("queue pair %d has sent its one message (queue_pairs.life: per-message), or was abandoned",
			q)
	}
	if count := uint64((size + n.cfg.Payload - 1) / n.cfg.Payload); uint64(s.end-s.una)+count >= 1<<31 {
		return 0, fmt.Errorf("queue pair %d has more than %d packets to send", q, 1<<31-1)
	}
	m := int32(len(n.messages))
	if k := len(n.spare) - 1; k >= 0 {
		m, n.spare = n.spare[k], n.spare[:k]
	} else {
		n.messages = append(n.messages, Message{})
	}
	n.messages[m] = Message{QP: q, Src: s.src, Dst: s.dst, Port: n.keys[q].From, Size: size,
		Posted: sim.Forever, Begun: sim.Forever, Delivered: sim.Forever, Acked: sim.Forever, next: -1}
	if r := &n.receive[q]; r.opening < 0 {
		r.opening = m
	}
	return m, nil
}

// begin posts a planned message.
func (n *Network) begin(m int32) error {
	msg := &n.messages[m]
	q := msg.QP
	s := &n.senders[q]
	msg.packets = uint32((msg.Size + n.cfg.Payload - 1) / n.cfg.Payload)
	if uint64(s.end-s.una)+uint64(msg.packets) >= 1<<31 {
		return fmt.Errorf("queue pair %d has more than %d packets to send", q, 1<<31-1)
	}
	msg.Posted, msg.first = n.eng.Now(), s.end
	if s.newest >= 0 {
		last := &n.messages[s.newest]
		last.next = m
		msg.from = last.from + uint64(last.Size)
	} else {
		// An acknowledged message stays linked, because the receiver follows next from the last one delivered.
		if s.last >= 0 {
			n.messages[s.last].next = m
		}
		msg.from = s.acked
		s.oldest = m
	}
	if s.sending < 0 {
		s.sending = m
	}
	s.newest, s.last = m, m
	s.end += msg.packets
	n.bound(s)
	n.Counters.Posted++
	n.Counters.PostedBytes += uint64(msg.Size)
	if lead, l := n.lead(int32(q), s); l.standing == idle {
		if n.cfg.QueuePairs.Life == PerMessage {
			l.avail = n.eng.Now()
		}
		n.offer(lead, l)
	}
	return nil
}

// Forget releases an acknowledged message, once; its index is reused later. Others are kept for ever.
func (n *Network) Forget(m int32) {
	if uint(m) >= uint(len(n.messages)) || n.messages[m].over&forgotten != 0 {
		panic(noSuch("message that is not forgotten,", m, len(n.messages)))
	}
	n.note(m, forgotten)
}

// Known reports whether an index belongs to a message that was not forgotten.
func (n *Network) Known(m int32) bool {
	return uint(m) < uint(len(n.messages)) && n.messages[m].over&forgotten == 0
}

// note adds to the ending of a message, and frees its index once that is complete.
func (n *Network) note(m int32, what ending) {
	x := &n.messages[m]
	if x.over |= what; x.over == forgotten|superseded {
		x.QP = -1
		n.spare = append(n.spare, m)
	}
}

// Messages returns the messages posted and not forgotten. The caller must not change the slice.
func (n *Network) Messages() []Message { return n.messages }

// Begun returns when a message's first packet was sent, or sim.Forever.
func (n *Network) Begun(m int32) sim.Time {
	if uint(m) >= uint(len(n.messages)) {
		panic(noSuch("message", m, len(n.messages)))
	}
	return n.messages[m].Begun
}

// Ideal returns a message's time to its ACK if it had the network to itself. It is exact on a single path, and up to
// two packet times low where switches choose for each packet.
func (n *Network) Ideal(m int32) sim.Time {
	if uint(m) >= uint(len(n.messages)) || n.messages[m].QP < 0 {
		panic(noSuch("message", m, len(n.messages)))
	}
	msg := &n.messages[m]
	if msg.ideal > 0 {
		return msg.ideal
	}
	s := &n.senders[msg.QP]
	full := uint16(n.cfg.Payload + n.cfg.Header + n.cfg.Telemetry.Size)
	last := uint16(msg.Size-units.Bytes(msg.packets-1)*n.cfg.Payload) + uint16(n.cfg.Header+n.cfg.Telemetry.Size)
	ack := uint16(n.cfg.Acks.Size + n.cfg.Telemetry.AckSize)
	there, back := int(msg.QP)*2, int(msg.QP)*2+1
	var parallel ideal.Links
	if n.chooser != nil && !n.chooser.Flowlets() {
		n.along(s.port, there, func(p *port) { parallel.Link(0, n.choices(p, s.dst)) })
		n.along(n.receive[msg.QP].port, back, func(p *port) { parallel.Link(1, n.choices(p, s.src)) })
	}
	alone, link := ideal.Message{Packets: msg.packets, Every: uint32(n.cfg.Acks.Every)}, 0
	n.along(s.port, there, func(p *port) {
		alone.Forward(n.time(p, full), n.time(p, last), p.delay, parallel.Abreast(link))
		link++
	})
	n.along(n.receive[msg.QP].port, back, func(p *port) { alone.Backward(n.time(p, ack), p.delay) })
	return alone.Takes()
}

// choices returns how many ports a switch can choose from for a packet that leaves through p; 1 for a host.
func (n *Network) choices(p *port, dst int32) int {
	if n.graph.Nodes[p.node].Kind != topo.Switch {
		return 1
	}
	return len(n.routes.Next(p.node, dst))
}

// along calls f for each sending port of a path, starting with the host's port pi.
func (n *Network) along(pi int32, path int, f func(*port)) {
	for hop := 0; ; hop++ {
		p := &n.ports[pi]
		f(p)
		if n.ports[p.peer].host {
			return
		}
		pi = n.paths[path*n.hopLimit+hop] & stepPort
	}
}

// roundTrip returns the round trip of a packet that waits nowhere, and its bandwidth-delay product: the payload that
// the path's slowest link carries in that time.
func (n *Network) roundTrip(routes *topo.Routes, src, dst int32) (sim.Time, units.Bytes) {
	p, _ := routes.Path(src, dst)
	data, back := n.cfg.Payload+n.cfg.Header, n.cfg.Acks.Size
	if n.cfg.RoundTrip.PayloadOnly {
		data, back = n.cfg.Payload, 0
	}
	unit := units.Picosecond
	if n.cfg.Rounding == WholeNanoseconds {
		unit = units.Nanosecond
	}
	t := 2*p.Delay + 2*sim.Time(p.Hops-1)*n.cfg.SwitchLatency + routes.Serialisation(src, dst, data, unit) +
		routes.Serialisation(src, dst, back, unit)
	hi, lo := bits.Mul64(uint64(t), uint64(p.Rate))
	bdp, _ := bits.Div64(hi, lo, 8*uint64(units.Second))
	return t, units.Bytes(bdp)
}

// unlike returns a set of hosts that represents all: of the hosts with a single link of the same rate and delay to the
// same switch it has only two.
func (n *Network) unlike() []int32 {
	type place struct {
		at    int32
		rate  units.BitRate
		delay sim.Time
	}
	seen := map[place]int{}
	var hosts []int32
	for i := range n.nodes {
		if n.graph.Nodes[i].Kind != topo.Host {
			continue
		}
		if p := &n.ports[n.nodes[i].first]; n.nodes[i].ports == 1 {
			at := place{n.ports[p.peer].node, p.rate, p.delay}
			if seen[at]++; seen[at] > 2 {
				continue
			}
		}
		hosts = append(hosts, int32(i))
	}
	return hosts
}

// slowest returns the rate of the slowest link.
func (n *Network) slowest() units.BitRate {
	rate := n.ports[0].rate
	for i := range n.ports {
		rate = min(rate, n.ports[i].rate)
	}
	return rate
}

// setTimes computes the timeout and the longest round trip, which depend on the network as a whole.
func (n *Network) setTimes() {
	r := &n.cfg.Recovery
	n.timeout, n.adapts, n.short = r.Timeout.Time, r.Timeout.Auto, r.ShortTimeout
	if r.Timeout.Auto {
		switch {
		case n.wants.Pulls:
			n.timeout = 5 * units.Millisecond
		case r.Kind.Keeps():
			// IRN's two times are for links of 40 Gbit/s, on which the longer one is what a queue of 1.6 MB takes.
			n.timeout = 320 * units.Microsecond
			if rate := n.slowest(); rate < 40*units.Gbps {
				n.timeout = rate.TimeFor(1600 * units.KB)
				n.short = sim.Time(float64(r.ShortTimeout) * (float64(n.timeout) / 320e6))
			}
		case n.cfg.PFC.Enabled && (n.cfg.Watchdog.Action == WatchdogReport || n.cfg.Watchdog.After == 0):
			n.timeout = 4096 * units.Nanosecond << 14
		default:
			n.timeout = 4 * units.Millisecond
		}
	}
	if n.cfg.RoundTrip.Longest || n.wants.PINT {
		hosts := n.unlike()
		for _, a := range hosts {
			for _, b := range hosts {
				if a != b {
					t, bdp := n.roundTrip(n.routes, a, b)
					n.longest, n.bdp = max(n.longest, t), max(n.bdp, bdp)
				}
			}
		}
	}
}
