// Package networktest is for tests of what stands on either side of cluster.Network: a network in memory, and the
// test that every Network passes.
//
// Its main parts are Network, which carries each message by itself in a time that can be computed by hand, and
// Conform, which holds a Network of any kind, the one in memory included, to the contract that package cluster
// states.
//
// What it leaves out: shapes, queues and loss, and what protocols do with a network.
package networktest

import (
	"testing"

	"farflash/model/cluster"
	"farflash/model/cluster/internal/slab"
	"farflash/numeric/units"
	"farflash/sim"
)

// Network is one in memory: every message takes the time of its bytes at a rate, and a trip, whatever else is on its
// path.
type Network struct {
	rate units.BitRate
	trip sim.Time

	eng       *sim.Engine
	self      sim.Component
	here      sim.Target
	delivered func(m int32)
	sent, got map[int32][]spell // by node
	under     slab.Slab[struct{}]
}

// New returns a network that reports what has arrived.
func New(eng *sim.Engine, rate units.BitRate, trip sim.Time, delivered func(m int32)) *Network {
	n := &Network{rate: rate, trip: trip, eng: eng, self: eng.NewComponent(), delivered: delivered,
		sent: map[int32][]spell{}, got: map[int32][]spell{}}
	n.here = eng.AddHandler(n)
	return n
}

// Send implements cluster.Network.
func (n *Network) Send(from, to int32, size units.Bytes, _ bool) (int32, error) {
	m := n.under.Take()
	now, takes := n.eng.Now(), n.rate.TimeFor(size)
	add(n.sent, from, now, now+takes)
	add(n.got, to, now+n.trip, now+takes+n.trip)
	n.eng.Schedule(n.self, n.here, now+takes+n.trip, 0, uint32(m))
	return m, nil
}

// spell is a time, from and to, in which a link carried anything, of any number of messages at once.
type spell [2]sim.Time

// add has a link carry something; from is no earlier than that of what it was given before.
func add(links map[int32][]spell, node int32, from, ends sim.Time) {
	list := links[node]
	if k := len(list) - 1; k >= 0 && from <= list[k][1] {
		list[k][1] = max(list[k][1], ends)
		return
	}
	links[node] = append(list, spell{from, ends})
}

// until is how much of the spells is before a time.
func until(list []spell, at sim.Time) (sum sim.Time) {
	for _, s := range list {
		sum += min(at, s[1]) - min(at, s[0])
	}
	return sum
}

// Busy implements cluster.Network.
func (n *Network) Busy(node int32, at sim.Time) (sent, got sim.Time) {
	return until(n.sent[node], at), until(n.got[node], at)
}

// Rate implements cluster.Network: any number of messages pass at the same time.
func (n *Network) Rate(int32) units.BitRate { return maxRate }

// maxRate is what any number of links carry.
const maxRate = 1e6 * units.Gbps

// Trip implements cluster.Network.
func (n *Network) Trip(units.Bytes) sim.Time { return n.trip }

// Handle implements sim.Handler: a message has arrived.
func (n *Network) Handle(e sim.Event) {
	n.delivered(int32(e.Arg))
	n.under.Give(int32(e.Arg))
}

// Under is how many messages are on their path.
func (n *Network) Under() int { return n.under.Used() }

// Subject is a network under test.
type Subject struct {
	Network cluster.Network
	// Nodes is how many there are, at least 4.
	Nodes int32
	// Rate is that of one of a node's links, and Trip no longer than the shortest time between two nodes: nothing
	// arrives before both.
	Rate units.BitRate
	Trip sim.Time
	// Engine runs it.
	Engine *sim.Engine
}

// Conform tests that the networks that fresh makes keep the contract of cluster.Network. Each is idle and reports to
// delivered.
func Conform(t *testing.T, fresh func(t *testing.T, delivered func(m int32)) Subject) {
	for _, c := range []struct {
		name string
		test func(*session)
	}{
		{"one message", (*session).one},
		{"every message arrives once", (*session).once},
		{"a number belongs to one message under way", (*session).numbers},
		{"sending from a delivery", (*session).reply},
		{"control messages are not behind all data", (*session).control},
		{"links are busy with what they carry, and no longer than there is time", (*session).carries},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &session{t: t, under: map[int32]sent{}}
			s.Subject = fresh(t, s.arrived)
			c.test(s)
			s.Engine.Run(s.Engine.Now() + units.Second)
			if len(s.under) > 0 {
				t.Errorf("%d messages have not arrived in a second: %v", len(s.under), s.under)
			}
		})
	}
}

// session is one network and what was sent through it.
type session struct {
	Subject
	t       *testing.T
	under   map[int32]sent
	sending bool
	order   []sent        // as they arrived
	busy    [][2]sim.Time // of each node, when it was last asked
	then    func(sent)
}

// sent is a message under way.
type sent struct {
	from, to int32
	size     units.Bytes
	control  bool
	at       sim.Time
}

func (s *session) send(from, to int32, size units.Bytes, control bool) {
	s.t.Helper()
	s.sending = true
	m, err := s.Network.Send(from, to, size, control)
	s.sending = false
	if err != nil {
		s.t.Fatalf("from %d to %d: %v", from, to, err)
	}
	if x, there := s.under[m]; there || m < 0 {
		s.t.Fatalf("number %d is given to a second message; the first, %+v, is under way", m, x)
	}
	s.under[m] = sent{from, to, size, control, s.Engine.Now()}
}

func (s *session) arrived(m int32) {
	x, there := s.under[m]
	now := s.Engine.Now()
	switch {
	case s.sending:
		s.t.Fatalf("number %d arrives before Send has returned", m)
	case !there:
		s.t.Fatalf("number %d arrives, which is not under way", m)
	case now < x.at+max(s.Rate.TimeFor(x.size)+s.Trip, s.Network.Rate(x.from).TimeFor(x.size)+s.Network.Trip(x.size)):
		s.t.Fatalf("%+v arrives at %v, sooner than the link and the trip allow", x, now)
	}
	delete(s.under, m)
	s.order = append(s.order, x)
	if s.then != nil {
		s.then(x)
	}
}

// carries: links are busy at most all of the time, and with a message at least as long as its bytes take.
func (s *session) carries() {
	s.busy = make([][2]sim.Time, s.Nodes)
	most := [2]sim.Time{}
	for range 50 {
		s.send(0, 1, 64*units.KiB, false)
		s.send(2, 1, 9000, false)
		s.send(0, 3, 100, true)
	}
	for _, step := range []sim.Time{1, units.Nanosecond, 3*units.Microsecond + 1, 100 * units.Microsecond,
		100 * units.Millisecond} {
		from := s.Engine.Now()
		s.Engine.Run(from + step)
		for node := range s.Nodes {
			sent, got := s.Network.Busy(node, from+step)
			for k, now := range [2]sim.Time{sent, got} {
				if more := now - s.busy[node][k]; more < 0 || more > step {
					s.t.Errorf("of the %v from %v on the link of node %d was busy for %v (sending, receiving: %d)",
						step, from, node, more, k)
				}
				most[k] = max(most[k], now)
			}
			s.busy[node] = [2]sim.Time{sent, got}
		}
	}
	if least := s.Rate.TimeFor(64 * units.KiB); most[0] < least || most[1] < least {
		s.t.Errorf("links were busy for %v with sending and %v with receiving; a message of 64 KiB alone takes %v",
			most[0], most[1], least)
	}
}

// one: a message arrives, whatever its size.
func (s *session) one() {
	for _, size := range []units.Bytes{1, 100, 9000, 64 * units.KiB} {
		s.send(0, 1, size, size < 1000)
		s.Engine.Run(s.Engine.Now() + 10*units.Millisecond)
		if len(s.under) > 0 {
			s.t.Fatalf("%v have not arrived in 10 ms", size)
		}
	}
}

// once: many messages between all nodes arrive, each once.
func (s *session) once() {
	const rounds = 20
	n := 0
	for round := range rounds {
		for from := range s.Nodes {
			for to := range s.Nodes {
				if from != to {
					s.send(from, to, units.Bytes(100+900*(round%10)), round%3 == 0)
					n++
				}
			}
		}
		s.Engine.Run(s.Engine.Now() + units.Microsecond)
	}
	s.Engine.Run(s.Engine.Now() + units.Second)
	if len(s.order) != n {
		s.t.Errorf("%d of %d have arrived", len(s.order), n)
	}
}

// numbers: messages of the same size between the same nodes have different numbers.
func (s *session) numbers() {
	for range 1000 {
		s.send(2, 3, 9000, false) // which fails if a number is that of one under way
	}
}

// reply: whoever hears of a message may send.
func (s *session) reply() {
	left := 100
	s.then = func(x sent) {
		if left--; left > 0 {
			s.send(x.to, x.from, 500, !x.control)
		}
	}
	s.send(0, 1, 500, false)
	s.Engine.Run(s.Engine.Now() + units.Second)
	if left > 0 {
		s.t.Errorf("%d replies are missing", left)
	}
}

// control: a control message that is sent when much data waits does not come last.
func (s *session) control() {
	for range 50 {
		s.send(0, 1, 64*units.KiB, false)
	}
	s.send(0, 1, 100, true)
	s.Engine.Run(s.Engine.Now() + units.Second)
	if n := len(s.order); n != 51 || s.order[n-1].control {
		s.t.Errorf("%d have arrived, a control message last", n)
	}
}
