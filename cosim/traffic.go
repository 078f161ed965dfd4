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

// CheckFlow reports what is impossible about a flow, the number-th of a source, after one that started at a time, between so many hosts.
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
