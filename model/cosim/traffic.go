package cosim

import (
	"errors"
	"fmt"
	"io"

	"farflash/internal/heap"
	"farflash/model/fabric"
	"farflash/sim"
	"farflash/workload/flows"
)

// Traffic posts flows on a network, each at its time.
type Traffic struct {
	eng    *sim.Engine
	net    *fabric.Network
	src    flows.Source
	hosts  []int32 // their nodes
	self   sim.Component
	target sim.Target
	next   flows.Flow
	err    error
	ended  bool // the source has
	posted uint64

	reactive []flows.Reactive // by group; nil is that no flow waits for others
	of       []flows.Flow     // each message's that is under way, if any is
	due      heap.Heap[due, *due]
	order    uint64
	started  []flows.Flow // room

	// OnPosted is told of each flow as it is posted, with its message; nil is nobody.
	OnPosted func(message int32, f *flows.Flow)
	// Enough is polled while many flows are posted at one instant, and stops the engine when it returns true. nil
	// never does.
	Enough func() bool
}

// EnoughEvery is the number of flows posted in a row between two polls of Enough.
const EnoughEvery = 1024

// NewTraffic makes traffic from a source whose hosts are numbered as in hosts, which has their
// nodes.
func NewTraffic(eng *sim.Engine, net *fabric.Network, src flows.Source, hosts []int32) *Traffic {
	t := &Traffic{eng: eng, net: net, src: src, hosts: hosts, self: eng.NewComponent()}
	t.target = eng.AddHandler(t)
	return t
}

// due is a flow that begins at a time, in the order in which they were named.
type due struct {
	order uint64
	f     flows.Flow
}

// Before implements heap.Item.
func (a *due) Before(b *due) bool {
	return a.f.Start < b.f.Start || a.f.Start == b.f.Start && a.order < b.order
}

// React has the sources of groups of flows be told of the ends of their flows, through Delivered and Acked, and post
// those that begin because of them. It is called before Start.
func (t *Traffic) React(sources []flows.Reactive) { t.reactive = sources }

// Delivered is told that all of a message has come.
func (t *Traffic) Delivered(m int32) { t.tell(m, false) }

// Acked is told that a message's sender knows so. Its index may be another's from now on.
func (t *Traffic) Acked(m int32) { t.tell(m, true) }

// tell tells a flow's source of its end.
func (t *Traffic) tell(m int32, acked bool) {
	f := t.of[m]
	r := t.reactive[f.Group]
	if r == nil {
		return
	}
	t.started = r.Ended(&f, acked, t.eng.Now(), t.started[:0])
	for _, g := range t.started {
		if g.Start == sim.Forever {
			t.fail(errors.New("a flow begins behind the end of time"))
			return
		}
		g.Group = f.Group
		if t.due.Len() == 0 || g.Start < t.due.First().f.Start {
			t.eng.Schedule(t.self, t.target, g.Start, followUp, 0)
		}
		t.due.Push(due{t.order, g})
		t.order++
	}
}

// followUp is the kind of the events that post flows which have waited for others.
const followUp = 1

// postDue posts those whose time has come.
func (t *Traffic) postDue() {
	for t.due.Len() > 0 && t.due.First().f.Start <= t.eng.Now() {
		d := t.due.Pop()
		if !t.post(&d.f) {
			return
		}
		if t.due.Len() > 0 && t.due.First().f.Start > t.eng.Now() {
			t.eng.Schedule(t.self, t.target, t.due.First().f.Start, followUp, 0)
		}
	}
}

// post posts a flow, and reports whether that could be done.
func (t *Traffic) post(f *flows.Flow) bool {
	m, err := t.net.Send(t.hosts[f.Src], t.hosts[f.Dst], f.Class, f.Size)
	if err != nil {
		t.fail(fmt.Errorf("flow %d: %w", t.posted, err))
		return false
	}
	t.posted++
	if t.reactive != nil {
		for int(m) >= len(t.of) {
			t.of = append(t.of, flows.Flow{})
		}
		t.of[m] = *f
	}
	if t.OnPosted != nil {
		t.OnPosted(m, f)
	}
	return true
}

// Start schedules the first flow.
func (t *Traffic) Start() error {
	t.advance()
	return t.err
}

// Err is what ended the traffic early, if anything did.
func (t *Traffic) Err() error { return t.err }

// Posted is how many flows have been posted, Ended whether all have.
func (t *Traffic) Posted() uint64 { return t.posted }

// Ended reports whether there are no more flows, nor any that wait for others.
func (t *Traffic) Ended() bool {
	for _, r := range t.reactive {
		if r != nil && r.Left() > 0 {
			return false
		}
	}
	return t.ended && t.due.Len() == 0
}

// More reports whether flows are still to be posted.
func (t *Traffic) More() bool { return !t.ended || t.due.Len() > 0 }

// Handle is for the engine.
func (t *Traffic) Handle(e sim.Event) {
	if e.Kind == followUp {
		t.postDue()
		return
	}
	for {
		if !t.post(&t.next) || !t.fetch() {
			return
		}
		if f := &t.next; f.Start > t.eng.Now() {
			t.eng.Schedule(t.self, t.target, f.Start, 0, 0)
			return
		}
		if t.posted%EnoughEvery == 0 && t.Enough != nil && t.Enough() {
			t.eng.Stop()
			return
		}
	}
}

func (t *Traffic) advance() {
	if t.fetch() {
		t.eng.Schedule(t.self, t.target, t.next.Start, 0, 0)
	}
}

// fetch gets the next flow from the source.
func (t *Traffic) fetch() bool {
	before := t.next.Start
	err := t.src.Next(&t.next)
	if errors.Is(err, io.EOF) {
		t.ended = true
		return false
	}
	if err == nil {
		err = CheckFlow(&t.next, t.posted, before, len(t.hosts))
	}
	if err != nil {
		t.fail(err)
		return false
	}
	return true
}

// CheckFlow reports what is impossible about a flow, the number-th of a source, after one that started at a time,
// between so many hosts.
func CheckFlow(f *flows.Flow, number uint64, before sim.Time, hosts int) error {
	switch {
	case f.Start < before:
		return fmt.Errorf("flow %d starts at %v, before the one before it", number, f.Start)
	case f.Src < 0 || int(f.Src) >= hosts || f.Dst < 0 || int(f.Dst) >= hosts:
		return fmt.Errorf("flow %d goes from host %d to host %d; there are %d hosts", number, f.Src, f.Dst, hosts)
	}
	return nil
}

func (t *Traffic) fail(err error) {
	t.err, t.ended = err, true
	t.eng.Stop()
}
