// Package networktest supports tests of both sides of cluster.Network: an in-memory network, and a conformance test for
// networks.
//
// Its main parts are Network, which carries each message independently in a time that can be computed by hand, and
// Conform, which tests any Network, including the in-memory one, against the contract stated in package cluster.
//
// It leaves out topologies, queues and loss, and the behaviour of protocols on a network.
package networktest

import (
	"testing"

	"farflash/model/cluster"
	"farflash/model/cluster/internal/slab"
	"farflash/numeric/units"
	"farflash/sim"
)

// Network is an in-memory network: every message takes the transmission time of its bytes and a trip, independent of
// other traffic.
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

// New returns a network that reports arrivals to delivered.
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

// spell is an interval, start and end, in which a link carried one or more messages.
type spell [2]sim.Time

// add records a transmission. from must not be earlier than that of the previous one.
func add(links map[int32][]spell, node int32, from, ends sim.Time) {
	list := links[node]
	if k := len(list) - 1; k >= 0 && from <= list[k][1] {
		list[k][1] = max(list[k][1], ends)
		return
	}
	links[node] = append(list, spell{from, ends})
}

// until returns the total duration of the spells before a time.
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

// maxRate stands for an unlimited rate.
const maxRate = 1e6 * units.Gbps

// Trip implements cluster.Network.
func (n *Network) Trip(units.Bytes) sim.Time { return n.trip }

// Handle implements sim.Handler: a message has arrived.
func (n *Network) Handle(e sim.Event) {
	n.delivered(int32(e.Arg))
	n.under.Give(int32(e.Arg))
}

// Under returns the number of messages in flight.
func (n *Network) Under() int { return n.under.Used() }

// Subject is a network under test.
type Subject struct {
	Network cluster.Network
	// Nodes is the number of nodes, at least 4.
	Nodes int32
	// Rate is the rate of one of a node's links, and Trip is at most the minimum latency between two nodes: no message
	// arrives before their sum.
	Rate units.BitRate
	Trip sim.Time
	// Engine runs it.
	Engine *sim.Engine
}

// Conform tests that the networks that fresh makes fulfil the contract of cluster.Network. Each must be idle and report
// to delivered.
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
		{"links are busy with the data that they carry, and at most all of the time", (*session).carries},
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

// session is one network and the messages sent through it.
type session struct {
	Subject
	t       *testing.T
	under   map[int32]sent
	sending bool
	order   []sent        // in order of arrival
	busy    [][2]sim.Time // of each node, when it was last queried
	then    func(sent)
}

// sent is a message in flight.
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

// carries verifies that links are never busy for more than the elapsed time, and at least for the transmission time of
// a message.
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

// one verifies that messages of any size arrive.
func (s *session) one() {
	for _, size := range []units.Bytes{1, 100, 9000, 64 * units.KiB} {
		s.send(0, 1, size, size < 1000)
		s.Engine.Run(s.Engine.Now() + 10*units.Millisecond)
		if len(s.under) > 0 {
			s.t.Fatalf("%v have not arrived in 10 ms", size)
		}
	}
}

// once verifies that many messages between all nodes arrive, each exactly once.
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

// numbers verifies that concurrent messages of the same size between the same nodes have different numbers.
func (s *session) numbers() {
	for range 1000 {
		s.send(2, 3, 9000, false) // fails if the number is that of a message in flight
	}
}

// reply verifies that a node may send while a delivery is handled.
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

// control verifies that a control message sent behind much data does not arrive last.
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
