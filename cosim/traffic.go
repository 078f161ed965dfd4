package cosim

import (
	"errors"
	"fmt"
	"io"

	"farflash/fabric"
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
}

// NewTraffic makes traffic from a source whose hosts are numbered as in hosts, which has their
// nodes.
func NewTraffic(eng *sim.Engine, net *fabric.Network, src flows.Source, hosts []int32) *Traffic {
	t := &Traffic{eng: eng, net: net, src: src, hosts: hosts, self: eng.NewComponent()}
	t.target = eng.AddHandler(t)
	return t
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

// Ended reports whether the source has no more flows.
func (t *Traffic) Ended() bool { return t.ended }

// Handle is for the engine.
func (t *Traffic) Handle(sim.Event) {
	for {
		f := &t.next
		if _, err := t.net.Send(t.hosts[f.Src], t.hosts[f.Dst], f.Class, f.Size); err != nil {
			t.fail(fmt.Errorf("flow %d: %w", t.posted, err))
			return
		}
		t.posted++
		if !t.fetch() {
			return
		}
		if f.Start > t.eng.Now() {
			t.eng.Schedule(t.self, t.target, f.Start, 0, 0)
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
	switch f := &t.next; {
	case errors.Is(err, io.EOF):
		t.ended = true
		return false
	case err != nil:
		t.fail(err)
		return false
	case f.Start < before:
		t.fail(fmt.Errorf("flow %d starts at %v, before the one before it", t.posted, f.Start))
		return false
	case f.Src < 0 || int(f.Src) >= len(t.hosts) || f.Dst < 0 || int(f.Dst) >= len(t.hosts):
		t.fail(fmt.Errorf("flow %d goes from host %d to host %d; there are %d hosts", t.posted, f.Src, f.Dst, len(t.hosts)))
		return false
	}
	return true
}

func (t *Traffic) fail(err error) {
	t.err, t.ended = err, true
	t.eng.Stop()
}

// Planned posts flows that a part of a network has planned, each at its time.
type Planned struct {
	eng    *sim.Engine
	begin  func(flow int32) error
	flows  []int32 // by start
	starts []sim.Time
	self   sim.Component
	target sim.Target
	posted int
	err    error
}

// NewPlanned makes traffic of flows, in order of their starts.
func NewPlanned(eng *sim.Engine, flows []int32, starts []sim.Time, begin func(flow int32) error) *Planned {
	t := &Planned{eng: eng, begin: begin, flows: flows, starts: starts, self: eng.NewComponent()}
	t.target = eng.AddHandler(t)
	t.await()
	return t
}

// Err is what ended the traffic early, if anything did.
func (t *Planned) Err() error { return t.err }

// Posted is how many flows have been posted.
func (t *Planned) Posted() int { return t.posted }

func (t *Planned) await() {
	if t.posted < len(t.flows) {
		t.eng.Schedule(t.self, t.target, t.starts[t.posted], 0, 0)
	}
}

// Handle is for the engine.
func (t *Planned) Handle(sim.Event) {
	for t.posted < len(t.flows) && t.starts[t.posted] <= t.eng.Now() {
		if err := t.begin(t.flows[t.posted]); err != nil {
			t.err = fmt.Errorf("flow %d: %w", t.flows[t.posted], err)
			return
		}
		t.posted++
	}
	t.await()
}
