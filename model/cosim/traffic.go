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

// Traffic posts flows on a network at their start times.
type Traffic struct {
	eng    *sim.Engine
	net    *fabric.Network
	src    flows.Source
	hosts  []int32 // their nodes
	self   sim.Component
	target sim.Target
	next   flows.Flow
	err    error
	ended  bool // the source is exhausted
	posted uint64
	begun  bool

	reactive []flows.Reactive // by group; nil if no flow waits for others
	of       []flows.Flow     // the flow of each outstanding message, if any flow waits for others
	due      heap.Heap[due, *due]
	order    uint64
	started  []flows.Flow // scratch

	// OnPosted is called for each flow as it is posted, with its message; it may be nil.
	OnPosted func(message int32, f *flows.Flow)
	// Enough is polled while many flows are posted at one instant, and stops the engine when it returns true. It may be
	// nil.
	Enough func() bool
}

// EnoughEvery is the number of posted flows between two polls of Enough.
const EnoughEvery = 1024

// NewTraffic returns a source's traffic; hosts are its hosts' nodes. Start reports a nil argument.
func NewTraffic(eng *sim.Engine, net *fabric.Network, src flows.Source, hosts []int32) *Traffic {
	t := &Traffic{eng: eng, net: net, src: src, hosts: hosts}
	if eng == nil || net == nil || src == nil {
		t.err, t.ended = errors.New("cosim: traffic needs an engine, a network and a source; one of them is nil"), true
		return t
	}
	t.self, t.target = eng.NewComponent(), eng.AddHandler(t)
	return t
}

// due is a flow to be started at a time. Flows of the same time keep the order in which their sources returned them.
type due struct {
	order uint64
	f     flows.Flow
}

// Before implements heap.Item.
func (a *due) Before(b *due) bool {
	return a.f.Start < b.f.Start || a.f.Start == b.f.Start && a.order < b.order
}

// React sets the sources that Delivered and Acked notify of their group's flows, and whose follow-up flows are posted.
// It must be called before Start.
func (t *Traffic) React(sources []flows.Reactive) { t.reactive = sources }

// Delivered reports that a message has fully arrived; it ignores others' messages.
func (t *Traffic) Delivered(m int32) { t.tell(m, false) }

// Acked reports a message's acknowledgement, after which its index may be reused; it ignores others' messages.
func (t *Traffic) Acked(m int32) { t.tell(m, true) }

// tell notifies a flow's source of its completion, and schedules the flows that it starts.
func (t *Traffic) tell(m int32, acked bool) {
	if uint(m) >= uint(len(t.of)) {
		return
	}
	f := t.of[m]
	r := t.reactive[f.Group]
	if r == nil {
		return
	}
	t.started = r.Ended(&f, acked, t.eng.Now(), t.started[:0])
	for _, g := range t.started {
		if g.Start == sim.Forever {
			t.fail(errors.New("a flow starts past the end of the clock"))
			return
		}
		if err := CheckFlow(&g, t.posted+uint64(t.due.Len()), t.eng.Now(), len(t.hosts)); err != nil {
			t.fail(err)
			return
		}
		g.Group = f.Group
		// An event is pending for the earliest due flow only; an earlier flow needs one more.
		if t.due.Len() == 0 || g.Start < t.due.First().f.Start {
			t.eng.Schedule(t.self, t.target, g.Start, followUp, 0)
		}
		t.due.Push(due{t.order, g})
		t.order++
	}
}

// followUp is the kind of events that post flows which waited for others.
const followUp = 1

// postDue posts the waiting flows that are due. An event whose flows were posted by an earlier one finds none due.
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

// post posts a flow, and reports success.
func (t *Traffic) post(f *flows.Flow) bool {
	if t.reactive != nil && uint(f.Group) >= uint(len(t.reactive)) {
		t.fail(fmt.Errorf("flow %d is of group %d; there are %d", t.posted, f.Group, len(t.reactive)))
		return false
	}
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

// Start schedules the first flow. It is called once.
func (t *Traffic) Start() error {
	if t.begun && t.err == nil {
		return errors.New("cosim: the traffic has started")
	}
	if t.begun = true; t.err != nil {
		return t.err
	}
	t.advance()
	return t.err
}

// Err returns the error that ended the traffic early, if any.
func (t *Traffic) Err() error { return t.err }

// Posted returns the number of flows posted.
func (t *Traffic) Posted() uint64 { return t.posted }

// Ended reports whether all flows are posted and none waits for others.
func (t *Traffic) Ended() bool {
	for _, r := range t.reactive {
		if r != nil && r.Left() > 0 {
			return false
		}
	}
	return t.ended && t.due.Len() == 0
}

// More reports whether more flows are to be posted.
func (t *Traffic) More() bool { return !t.ended || t.due.Len() > 0 }

func (t *Traffic) Handle(e sim.Event) {
	if e.Kind == followUp {
		t.postDue()
		return
	}
	// All flows of one instant are posted by one event.
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

// fetch reads the next flow from the source.
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

// CheckFlow reports an invalid flow: a source's number-th, after one that started at before.
func CheckFlow(f *flows.Flow, number uint64, before sim.Time, hosts int) error {
	switch {
	case f.Start < before:
		return fmt.Errorf("flow %d starts at %v, before the previous one", number, f.Start)
	case f.Src < 0 || int(f.Src) >= hosts || f.Dst < 0 || int(f.Dst) >= hosts:
		return fmt.Errorf("flow %d goes from host %d to host %d; there are %d hosts", number, f.Src, f.Dst, hosts)
	}
	return nil
}

// fail records the error and stops the engine.
func (t *Traffic) fail(err error) {
	t.err, t.ended = err, true
	t.eng.Stop()
}
