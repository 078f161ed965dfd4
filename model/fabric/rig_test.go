package fabric

import (
	"fmt"

	"farflash/model/fabric/cc"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/sim"
)

// failer is the common part of testing.T, testing.B and rapid.T.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// rig is a network that a test drives.
type rig struct {
	eng   *sim.Engine
	net   *Network
	graph *topo.Graph
	posts []post
	self  sim.Component
	at    sim.Target

	onDelivered, onAcked func(m int32)
	delivered            []int32 // in order
	onBroken             func(q QP)
	broken               []QP // in order
}

// post is a message to be posted at a time.
type post struct {
	at       sim.Time
	src, dst int32
	class    uint8
	size     units.Bytes
}

// Delivered and Acked make the rig its network's sink.
func (r *rig) Delivered(m int32) {
	r.delivered = append(r.delivered, m)
	if r.onDelivered != nil {
		r.onDelivered(m)
	}
}

func (r *rig) Acked(m int32) {
	if r.onAcked != nil {
		r.onAcked(m)
	}
}

// Handle posts the message that is due.
func (r *rig) Handle(e sim.Event) {
	p := r.posts[e.Arg]
	if _, err := r.net.Send(p.src, p.dst, p.class, p.size); err != nil {
		panic(err)
	}
}

func newRig(t failer, cfg Config, g *topo.Graph, seed uint64) *rig {
	t.Helper()
	r := &rig{eng: sim.New(), graph: g}
	var err error
	if r.net, err = New(cfg, g, r.eng, r, seed, "fabric"); err != nil {
		t.Fatal(err)
	}
	r.self, r.at = r.eng.NewComponent(), r.eng.AddHandler(r)
	return r
}

// send posts a message at a time.
func (r *rig) send(p post) {
	r.posts = append(r.posts, p)
	r.eng.Schedule(r.self, r.at, p.at, 0, uint32(len(r.posts)-1))
}

// mustSend posts a message now.
func (r *rig) mustSend(t failer, src, dst int32, class uint8, size units.Bytes) int32 {
	t.Helper()
	m, err := r.net.Send(src, dst, class, size)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// build builds a shape, or fails.
func build(t failer, c topo.Config, host, up units.BitRate, delay sim.Time) *topo.Graph {
	t.Helper()
	g, err := topo.Build(c, host, up, delay)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func star(t failer, hosts int, rate units.BitRate, delay sim.Time) *topo.Graph {
	t.Helper()
	return build(t, topo.Config{Star: &topo.Star{Hosts: hosts}}, rate, rate, delay)
}

// plain returns a configuration in which only PFC and line rate act.
func plain() Config {
	c := DefaultConfig()
	c.CongestionControl.Algorithm = cc.SchemeNone
	c.ECN.Enabled = false
	return c
}

// check fails if a law of the network is violated.
func (r *rig) check(t failer) {
	t.Helper()
	if err := r.net.Check(); err != nil {
		t.Fatalf("at %v: %v", r.eng.Now(), err)
	}
}

// completed fails unless every message has been delivered and acknowledged.
func (r *rig) completed(t failer) {
	t.Helper()
	for i, m := range r.net.Messages() {
		if m.Delivered == sim.Forever || m.Acked == sim.Forever || m.Delivered > m.Acked || m.Delivered < m.Posted {
			s := &r.net.senders[m.QP]
			t.Fatalf("message %d of %v: posted %v, delivered %v, acknowledged %v; %d timeouts, sender una %d next %d "+
				"end %d standing %d, receiver expects %d; now %v",
				i, m.Size, m.Posted, m.Delivered, m.Acked, r.net.Counters.Timeouts, s.una, s.next, s.end, s.standing,
				r.net.receive[m.QP].expected, r.eng.Now())
		}
	}
}

// drained fails unless the network is empty and every message that was begun has completed.
func (r *rig) drained(t failer) {
	t.Helper()
	r.check(t)
	r.completed(t)
	n := r.net
	if err := r.leftOver(); err != nil {
		t.Fatal(err)
	}
	if n.notes.Taken != 0 {
		t.Fatalf("%d notes are still taken", n.notes.Taken)
	}
	x := &n.Counters
	if x.Pauses != x.Resumes || x.Paused != x.Unpaused {
		t.Fatalf("%d pauses and %d resumes were decided, %d and %d took effect", x.Pauses, x.Resumes, x.Paused,
			x.Unpaused)
	}
	if x.Posted != x.Completed || int(x.Posted) != len(r.delivered) {
		t.Fatalf("%d messages posted, %d delivered, %d completed", x.Posted, len(r.delivered), x.Completed)
	}
	if x.Received != x.PostedBytes {
		t.Fatalf("%d bytes posted, %d received", x.PostedBytes, x.Received)
	}
	last := make([]int32, len(n.senders))
	for i := range last {
		last[i] = -1
	}
	for _, m := range r.delivered {
		q := n.messages[m].QP
		if m < last[q] {
			t.Fatalf("message %d of queue pair %d was delivered after message %d", m, q, last[q])
		}
		last[q] = m
	}
}

// leftOver reports any packet or byte that is still in a queue or an account.
func (r *rig) leftOver() error {
	n := r.net
	for i := range n.ports {
		p := &n.ports[i]
		if p.wire.N > 0 || p.frames.N > 0 || p.paused != 0 || p.ready != 0 {
			return fmt.Errorf("%s: %d packets on the wire, %d frames waiting, classes %b paused, %b ready",
				n.PortName(int32(i)), p.wire.N, p.frames.N, p.paused, p.ready)
		}
		for c := range uint8(MaxClasses) {
			if l := n.lane(int32(i), c); l.out != 0 || l.in != 0 || l.head != 0 || l.off || l.waiting.N > 0 {
				return fmt.Errorf("%s class %d: %d bytes wait, %d and %d in the accounts, off %v",
					n.PortName(int32(i)), c, l.out, l.in, l.head, l.off)
			}
		}
	}
	for i := range n.nodes {
		if n.nodes[i].shared != 0 {
			return fmt.Errorf("%s: %d shared bytes are taken", n.nodeName(int32(i)), n.nodes[i].shared)
		}
	}
	for i := range n.nics {
		if n.nics[i].paced.Len() > 0 {
			return fmt.Errorf("NIC %d has %d paced queue pairs", i, n.nics[i].paced.Len())
		}
	}
	return nil
}

// run runs until the network is idle, and fails after most events.
func (r *rig) run(t failer, most int) {
	t.Helper()
	step := units.Millisecond
	for r.eng.Pending() > 0 {
		r.eng.Run(r.eng.Now() + step)
		if r.eng.Events() > uint64(most) {
			r.completed(t)
			t.Fatalf("%d events and no end at %v", r.eng.Events(), r.eng.Now())
		}
		step *= 2
	}
}
