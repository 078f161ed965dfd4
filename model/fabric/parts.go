package fabric

import (
	"errors"
	"fmt"
	"slices"

	"farflash/model/fabric/notes"
	"farflash/numeric/units"
	"farflash/sim"
)

// A network can be divided by its nodes into parts that run on engines of their own, one window of time after another:
// in turns, so that the working set of a part stays in the processor's cache, or at the same time. A packet that
// crosses between parts takes at least the links' delay, so within a window of that length the events of one part
// cannot affect another. Simultaneous events are ordered by component, whose numbers do not depend on the division, so
// results are the same for any number of parts, one included.
//
// Between windows no part runs, and the network is handled as a whole: flows are planned, links fail and the watchdog
// looks, each before all other events of its time, as in an undivided network. Within a window each field of a queue
// pair belongs either to its sender's part or to its receiver's.

// Parts is a network in parts.
type Parts struct {
	base   *Network
	list   []*Network
	split  *split
	next   []sim.Time   // time of the next event of each part
	ends   []sim.Time   // the end of the present window for each part
	delays [][]sim.Time // see topo.Graph.Delays
	least  sim.Time     // the smallest of delays
	back   []sim.Time   // the shortest time in which an effect of a part can come back to it
	round  uint32       // number of windows
	shared share        // state last handed to the parts
}

// split is the state shared by the parts of a network.
type split struct {
	of    []int32 // part of each node
	parts []*Network
	// apart is whether parts run at the same time, and pass packets in lists. Otherwise they hand them over directly.
	apart bool
}

// share is the state that grows or is replaced between windows.
type share struct {
	senders  int
	hopLimit int
	failures uint64
}

// crossing is a packet on a wire between two parts.
type crossing struct {
	port int32
	f    flight
}

// crossings are the packets that a part has sent to another. Consecutive windows use the two lists alternately, so that
// the receiver can take the packets of the previous window concurrently.
type crossings [2]struct {
	packets []crossing
	notes   []notes.Record // telemetry of the packets that have it, in order
	least   sim.Time       // arrival of the first of them
}

// Flow is a message planned for a time.
type Flow struct {
	Src, Dst int32 // nodes
	Class    uint8
	Size     units.Bytes
	Start    sim.Time
}

// Divide divides a network without messages into the parts of, by node; sinks has an entry, perhaps nil, for each.
// apart: they may run at the same time.
func (n *Network) Divide(of []int32, sinks []Sink, apart bool) (*Parts, error) {
	switch {
	case len(of) != len(n.nodes):
		return nil, fmt.Errorf("parts of %d nodes; the network has %d", len(of), len(n.nodes))
	case slices.ContainsFunc(of, func(i int32) bool { return i < 0 || int(i) >= len(sinks) }):
		return nil, fmt.Errorf("a node is in none of the parts 0 to %d", len(sinks)-1)
	case n.split != nil:
		return nil, errors.New("the network is in parts already")
	case n.draws != nil:
		return nil, errors.New("ns-3's random numbers are one sequence for the whole network")
	case len(n.messages) > 0:
		return nil, errors.New("a network must be divided before messages are posted")
	}
	delays := n.graph.Delays(of, len(sinks))
	s := &split{of: of, apart: apart}
	p := &Parts{base: n, split: s, next: make([]sim.Time, len(sinks)), ends: make([]sim.Time, len(sinks)),
		delays: delays, back: make([]sim.Time, len(sinks))}
	for i := range delays {
		p.back[i] = sim.Forever
		for j, d := range delays[i] {
			if i == j {
				continue
			}
			if d <= 0 {
				return nil, errors.New("links between parts need a delay")
			}
			if d < sim.Forever && delays[j][i] < sim.Forever {
				p.back[i] = min(p.back[i], d+delays[j][i])
			}
		}
	}
	p.least = sim.Forever
	for i := range delays {
		for j, d := range delays[i] {
			if i != j {
				p.least = min(p.least, d)
			}
		}
	}
	n.split = s
	posters := make([]sim.Component, len(sinks))
	for i := range posters {
		posters[i] = n.eng.NewComponent()
	}
	for i := range sinks {
		x := *n
		part := &x
		x.eng = n.eng.Sibling()
		x.target = x.eng.AddHandler(part)
		x.poster = posters[i]
		x.sink = sinks[i]
		x.Counters = Counters{}
		x.spare = nil
		x.chunks = chunks{}
		x.notes = notes.New(x.wants)
		x.part, x.out = int32(i), make([]crossings, len(sinks))
		for j := range x.out {
			x.out[j][0].least, x.out[j][1].least = sim.Forever, sim.Forever
		}
		p.list = append(p.list, part)
	}
	s.parts = p.list
	for i := range n.ports {
		port := &n.ports[i]
		port.cross = of[port.node] != of[n.ports[port.peer].node]
	}
	return p, nil
}

// Engine returns the engine of a part.
func (p *Parts) Engine(i int) *sim.Engine { return p.part(i).eng }

// part returns part i, which must exist.
func (p *Parts) part(i int) *Network {
	if uint(i) >= uint(len(p.list)) {
		panic(noSuch("part", int32(i), len(p.list)))
	}
	return p.list[i]
}

// Forget is Network.Forget for a message that part i has sent.
func (p *Parts) Forget(i int, m int32) { p.part(i).Forget(m) }

// OnPause registers f for the pauses of a part's ports.
func (p *Parts) OnPause(i int, f sim.Probe[Pause]) { p.part(i).OnPause = f }

// Plan schedules a flow, in order of starts, later than all past events and no further ahead than Horizon.
func (p *Parts) Plan(f Flow) (int32, error) {
	n := p.base
	var q QP
	err := n.checkHosts(f.Src, f.Dst)
	if err == nil {
		err = p.list[p.split.of[f.Src]].plannable(f.Start)
	}
	if err != nil {
		return 0, err
	}
	if n.cfg.QueuePairs.Life == PerMessage {
		q, err = n.open(f.Src, f.Dst, f.Class, f.Start)
	} else {
		q, err = n.pair(f.Src, f.Dst, f.Class, f.Start)
	}
	if err != nil {
		return 0, err
	}
	if len(n.spare) == 0 {
		for _, x := range p.list {
			n.spare = append(n.spare, x.spare...)
			x.spare = x.spare[:0]
		}
	}
	m, err := n.plan(q, f.Size)
	if err != nil {
		return 0, err
	}
	x := p.list[p.split.of[f.Src]]
	x.planned.Push(planned{f.Start, m})
	if x.planned.N == 1 {
		x.eng.Schedule(x.poster, x.target, f.Start, postPlanned, 0)
	}
	return m, nil
}

// plannable reports whether a message cannot be planned for a time: it is past, or before that of a planned one.
func (n *Network) plannable(at sim.Time) error {
	if last := n.planned.N; at < n.eng.Now() || last > 0 && at < n.planned.At(last-1).at {
		return fmt.Errorf("a flow cannot start at %v, in the past or before an earlier flow", at)
	}
	return nil
}

// planned is a message to be posted.
type planned struct {
	at sim.Time
	m  int32
}

// postDue posts the part's planned messages that are due.
func (n *Network) postDue() error {
	for n.planned.N > 0 && n.planned.First().at <= n.eng.Now() {
		m := n.planned.Pop().m
		q := n.messages[m].QP
		if s := &n.senders[q]; s.planned {
			s.planned = false
			n.introduce(int32(q), s)
		}
		if err := n.begin(m); err != nil {
			return err
		}
	}
	if n.planned.N > 0 {
		n.eng.Schedule(n.poster, n.target, n.planned.First().at, postPlanned, 0)
	}
	return nil
}

// First returns the time of the next event, sim.Forever if there is none.
func (p *Parts) First() sim.Time {
	first := p.base.eng.Next()
	for i, x := range p.list {
		at := x.eng.Next()
		if p.split.apart {
			for _, o := range p.list {
				at = min(at, o.out[i][p.round%2].least)
			}
		}
		p.next[i] = at
		first = min(first, at)
	}
	return first
}

// Horizon returns the time up to which flows must be planned for a window from first.
func (p *Parts) Horizon(first sim.Time) sim.Time {
	to := sim.Forever
	if first < sim.Forever-p.base.reach {
		to = first + p.base.reach
	}
	if at := p.base.eng.Next(); at > first {
		to = min(to, at-1)
	}
	return to
}

// Whole runs the whole network's events at first, unless a part's are earlier, and reports whether there were any.
func (p *Parts) Whole(first sim.Time) bool {
	n := p.base
	if n.eng.Next() > first {
		return false
	}
	p.join()
	p.hand()
	for _, x := range p.list {
		x.eng.Wait(first)
	}
	n.Counters = Counters{}
	n.eng.Run(first)
	p.list[0].Counters.Add(&n.Counters)
	p.hand()
	return true
}

// hand gives the parts the slices that have grown or were replaced.
func (p *Parts) hand() {
	n := p.base
	now := share{len(n.senders), n.hopLimit, n.rerouted}
	for _, x := range p.list {
		// Unlike the rest, messages also grow when no queue pair is opened, so they are handed over every time.
		x.messages, x.receives = n.messages, n.receives
		if now != p.shared {
			x.senders, x.control, x.receive, x.keys = n.senders, n.control, n.receive, n.keys
			x.pulling, x.trips = n.pulling, n.trips
			x.paths, x.hopLimit, x.routes, x.failed = n.paths, n.hopLimit, n.routes, n.failed
		}
	}
	p.shared = now
}

// Window begins a window up to at most to, after First, and returns how many parts have events in it.
func (p *Parts) Window(to sim.Time) (busy int) {
	p.hand()
	if at := p.base.eng.Next(); at <= to {
		to = at - 1
	}
	if after := p.base.cfg.Watchdog.After; after > 0 {
		// A port that is paused in a part makes the watchdog look at the next multiple of its time.
		if k := slices.Min(p.next) / after; k < sim.Forever/after {
			to = min(to, (k+1)*after-1)
		}
	}
	if first := slices.Min(p.next); len(p.list) > eachPair && first < sim.Forever-p.least {
		to = min(to, first+p.least-1)
	}
	for i := range p.list {
		end := to
		if len(p.list) <= eachPair {
			end = min(end, p.heard(i))
		}
		p.ends[i] = end
		if p.next[i] <= end {
			busy++
		}
	}
	p.round++
	return busy
}

// eachPair is the largest number of parts for which each pair's own delay is used. Beyond it the quadratic cost exceeds
// the gain.
const eachPair = 32

// heard returns the last time before any future event of another part, or an echo of its own, can reach part i.
func (p *Parts) heard(i int) sim.Time {
	end := sim.Forever
	if at := p.next[i]; at < sim.Forever-p.back[i] {
		end = at + p.back[i] - 1
	}
	for j, at := range p.next {
		if d := p.delays[j][i]; j != i && at < sim.Forever-d {
			end = min(end, at+d-1)
		}
	}
	return end
}

// Run runs a part to the end of its window; parts that are apart, concurrently.
func (p *Parts) Run(i int) {
	n := p.part(i)
	if p.split.apart {
		n.takeIn(p.list, p.round+1)
		n.round = p.round % 2
	}
	if p.next[i] <= p.ends[i] {
		n.eng.Run(p.ends[i])
	}
}

// Watch schedules the watchdog if a part requested it, after each window.
func (p *Parts) Watch() {
	for _, x := range p.list {
		if x.dog.looking {
			x.dog.looking = false
			p.base.dog.at(p.base, x.dog.when)
		}
	}
}

// takeIn puts the packets that other parts have sent to this one, in the window before, on its wires.
func (n *Network) takeIn(list []*Network, round uint32) {
	for _, o := range list {
		in := &o.out[n.part][round%2]
		k := 0
		for j := range in.packets {
			x := &in.packets[j]
			if x.f.x.note != 0 {
				x.f.x.note = n.notes.Restore(&in.notes[k])
				k++
			}
			n.fly(x.port, x.f.at, x.f.x)
		}
		in.packets, in.notes, in.least = in.packets[:0], in.notes[:0], sim.Forever
	}
}

// join moves all crossing packets to where the whole network can see them. It must be called while no part runs.
func (p *Parts) join() {
	for _, x := range p.list {
		x.takeIn(p.list, 0)
		x.takeIn(p.list, 1)
	}
}

// Settle sums the parts' figures up to a time that all have reached.
func (p *Parts) Settle() {
	p.join()
	n := p.base
	n.Counters = Counters{}
	n.notes.Taken = 0
	for _, x := range p.list {
		n.Counters.Add(&x.Counters)
		n.notes.Taken += x.notes.Taken
	}
}

// Err returns the error that stopped a part early, if any.
func (p *Parts) Err() error {
	for _, x := range p.list {
		if x.failure != nil {
			return x.failure
		}
	}
	return nil
}

// Events returns the number of events that the parts have run.
func (p *Parts) Events() uint64 {
	sum := p.base.eng.Events()
	for _, x := range p.list {
		sum += x.eng.Events()
	}
	return sum
}

// Now returns the time of the last event.
func (p *Parts) Now() sim.Time {
	at := p.base.eng.Now()
	for _, x := range p.list {
		at = max(at, x.eng.Now())
	}
	return at
}

// cross sends a packet over a wire to another part.
func (n *Network) cross(pi int32, at sim.Time, x packet) {
	part := n.split.of[n.ports[n.ports[pi].peer].node]
	if !n.split.apart {
		o := n.split.parts[part]
		if x.note != 0 {
			r := n.notes.Record(x.note)
			n.notes.Give(x.note)
			x.note = o.notes.Restore(&r)
		}
		o.fly(pi, at, x)
		return
	}
	to := &n.out[part][n.round]
	if x.note != 0 {
		to.notes = append(to.notes, n.notes.Record(x.note))
		n.notes.Give(x.note)
	}
	to.packets = append(to.packets, crossing{pi, flight{at, x}})
	to.least = min(to.least, at)
}

// now returns the time that figures are taken at.
func (n *Network) now() sim.Time { return max(n.at, n.eng.Now()) }

// of returns the network, or its part, that owns a node.
func (n *Network) of(node int32) *Network {
	if n.split == nil {
		return n
	}
	return n.split.parts[n.split.of[node]]
}

// pool returns the storage of a node's queues.
func (n *Network) pool(node int32) *chunks { return &n.of(node).chunks }
