// Package cosim puts models together in one event loop and runs them.
//
// Its main type is Host: the machine that issues a workload to block devices, open
// loop (each request at its time) or closed loop (so many outstanding), and measures
// what comes back. A drive alone with its host is the smallest system there is.
//
// What it leaves out: the host's software and interrupt costs; they are the
// caller's, as a constant, where they matter.
package cosim

import (
	"fmt"
	"io"

	"farflash/block"
	"farflash/internal/slab"
	"farflash/model/ssd/blame"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/sim"
	"farflash/workload"
)

// Flow is one stream of requests from a host to one queue of a device.
type Flow struct {
	Name   string
	Source workload.Source
	// Outstanding is how many requests a closed loop keeps in flight; the source's
	// times are then ignored. 0 is an open loop.
	Outstanding int
	// Start is when a closed loop begins, or the time that an open loop's clock
	// counts from.
	Start sim.Time
	// Until ends the issuing of requests; those issued are waited for. 0 is never.
	Until sim.Time
	// Think is how long a closed loop pauses once ThinkEvery requests have been issued since its last pause and all
	// of them have completed. 0 is no pause.
	Think      sim.Time
	ThinkEvery int
	// Wave orders flows that begin when others have ended: those of wave 0 at once, those of the next when all
	// requests of the one before have completed, from where their Start and Until are counted.
	Wave      int
	Namespace uint8
	Queue     block.QueueConfig
	// Fold takes addresses beyond the namespace modulo its size less one sector;
	// otherwise they are errors.
	Fold bool
	// Loose lets requests begin before the namespace's first sector and reach beyond its last, for a device such as
	// MQSim's that accepts them. With Fold only requests that begin beyond the end are folded.
	Loose bool
	// Last is the last sector of the namespace that such a device uses without folding; 0 is the namespace's last.
	Last int64
	// FromSubmission measures latency from when the request entered the submission
	// queue, as a device does, not from its arrival, as a user does.
	FromSubmission bool
	// Placement and ForceUnit are given to every write.
	Placement uint8
	ForceUnit bool
}

// Measure is what a host measured of one operation.
type Measure struct {
	Latency stats.Histogram
	Bytes   int64
	Failed  uint64
}

func (m *Measure) add(c *block.Completion, latency sim.Time) {
	if c.Status != block.OK {
		m.Failed++
		return
	}
	m.Latency.Record(latency)
	m.Bytes += c.Length
}

// Sample is one finished request, for those who listen.
type Sample struct {
	Flow      int
	ID        uint64
	Volume    uint32
	Op        block.Op
	Failed    bool // it ended with an error
	Offset    int64
	Size      int64
	Arrival   sim.Time
	Submitted sim.Time
	Fetched   sim.Time
	Finished  sim.Time
	// Waited is how long of its time in the device that worked for others; 0 if it cannot tell.
	Waited sim.Time
	// Latency is how long it took, from its submission on if its flow measures so, else from its arrival.
	Latency sim.Time
	// Workload, Job and Tenant are numbers of what its flow is of, if whoever tells of the sample knows them.
	Workload, Job, Tenant int32
	// Stages and Blame are where its time went in a local drive, and what stood in its way, if that was asked for;
	// they hold until the next sample.
	Stages *blame.Times
	Blame  *blame.Blame
	// Trip is how it went, in a system; nil for a local drive. It holds until the next sample.
	Trip *Trip
}

// Host issues flows to one device and measures. It is a sim.Handler for its own
// arrivals and the device's sink of completions.
type Host struct {
	eng    *sim.Engine
	self   sim.Component
	target sim.Target
	dev    block.Device
	expect block.Expecter // the device, if it is one
	bell   inOrder        // the same, if a flow asks for it
	flows  []flow
	live   slab.Slab[issued]
	err    error
	issued uint64
	ended  uint64
	most   uint64 // requests that may have come and not completed
	wave   int    // whose flows run
	waves  int    // the last one

	total  measures
	zones  []plugs // by namespace; nil if none that a flow writes to is zoned
	sample Sample

	// OnSample and OnProgress are called after each completion if they are set, OnIdle
	// when every flow has ended and every request has completed.
	OnSample   sim.Probe[*Sample] // the sample holds until the next one
	OnProgress sim.Probe[uint64]
	OnIdle     sim.Probe[sim.Time]
}

type flow struct {
	Flow
	queue   block.QueueID
	next    workload.Record // read ahead, not yet issued
	have    bool
	waiting list  // arrived, while the submission queue is full
	size    int64 // of the namespace, bytes
	done    bool
	resting bool // it pauses, or will when what it has under way completes
	since   int  // issued since the last pause; counted where there are pauses
	under   int  // issued and not completed; likewise
	per     measures
	count   uint64 // issued
	zoned   bool   // its namespace is
}

// issued is a request that has not completed. Entries are named by index; 0 is none.
type issued struct {
	offset    int64
	length    int64
	arrival   sim.Time
	entered   sim.Time
	id        uint64
	number    uint64 // among its flow's, from 1
	volume    uint32
	next      int32
	flow      int32
	op        block.Op
	namespace uint8
	append    bool
}

type list struct{ head, tail int32 }

// NewHost returns a host on an engine. Its device is set with Attach, because the
// device needs the host as its sink.
func NewHost(eng *sim.Engine) *Host {
	h := &Host{eng: eng, self: eng.NewComponent(), most: mostOutstanding}
	h.target = eng.AddHandler(h)
	return h
}

// Attach opens a queue on the device for each flow.
func (h *Host) Attach(dev block.Device, flows []Flow) error {
	h.dev = dev
	h.expect, _ = dev.(block.Expecter)
	h.flows = make([]flow, len(flows))
	for i, f := range flows {
		q, err := dev.Open(f.Queue)
		if err != nil {
			return &FlowError{i, f.Name, err}
		}
		h.flows[i] = flow{Flow: f, queue: q, size: dev.Capacity(int(f.Namespace))}
		h.waves = max(h.waves, f.Wave)
		if x, ok := dev.(inOrder); ok && f.Loose {
			h.self, h.bell = x.Join(), x
			if f.Last > 0 {
				x.Bound(f.Namespace, f.Last)
			}
		}
		h.plug(&h.flows[i])
	}
	return nil
}

// inOrder is a device that shares one event order with its host (MQSim). Ties in time are broken in the order of
// scheduling across both. The host acknowledges each completion with a doorbell, after it has refilled the submission
// queue from its backlog and before a closed loop issues the next request. The device folds requests that reach
// beyond the namespace's last used sector.
type inOrder interface {
	Join() sim.Component
	Acknowledge(q block.QueueID)
	Bound(namespace uint8, last int64)
}

// Device is what the flows go to.
func (h *Host) Device() block.Device { return h.dev }

// Start schedules each flow's first arrival.
func (h *Host) Start() error {
	for i := range h.flows {
		if f := &h.flows[i]; h.read(f) && f.Wave == 0 {
			h.begin(i)
		}
	}
	h.nextWave(0)
	return h.err
}

// begin schedules a flow's first arrival.
func (h *Host) begin(i int) {
	f := &h.flows[i]
	at := f.Start
	if f.Outstanding == 0 {
		at += f.next.Time
	}
	h.eng.Schedule(h.self, h.target, at, 0, uint32(i))
}

// nextWave starts the flows that wait for those that have all ended.
func (h *Host) nextWave(now sim.Time) {
	for h.wave < h.waves && h.err == nil {
		for i := range h.flows {
			if f := &h.flows[i]; f.Wave <= h.wave && f.have {
				return
			}
		}
		if h.ended != h.issued {
			return
		}
		h.wave++
		for i := range h.flows {
			f := &h.flows[i]
			if f.Wave != h.wave || !f.have {
				continue
			}
			if f.Start > sim.Forever-now-f.next.Time || f.Until > sim.Forever-now {
				h.failOf(f, fmt.Errorf("it begins at %v and would run past the 106 days of the clock; use a shorter "+
					"workload", now))
				return
			}
			f.Start += now
			if f.Until > 0 {
				f.Until += now
			}
			h.begin(i)
		}
	}
}

// Err is what stopped the host, if anything did.
func (h *Host) Err() error { return h.err }

// Issued and Ended count requests.
func (h *Host) Issued() uint64 { return h.issued }

// Ended is how many requests have completed.
func (h *Host) Ended() uint64 { return h.ended }

// Measured returns what was measured of an operation over all flows.
func (h *Host) Measured(op block.Op) *Measure { return h.total.of(op) }

// FlowMeasured returns what was measured of an operation in one flow.
func (h *Host) FlowMeasured(i int, op block.Op) *Measure {
	if len(h.flows) == 1 {
		return h.total.of(op) // a lone flow is measured once
	}
	return h.flows[i].per.of(op)
}

// read gets the flow's next request. It reports false at the end.
func (h *Host) read(f *flow) bool {
	f.have = false
	if f.done {
		return false
	}
	err := f.Source.Next(&f.next)
	if err != nil || uint64(f.next.Time) > uint64(sim.Forever-f.Start) ||
		f.Outstanding == 0 && f.ends(f.next.Time+f.Start) {
		h.end(f, err)
		return false
	}
	f.have = true
	if h.expect != nil {
		h.expect.Expect(f.Namespace, f.next.Offset)
	}
	return true
}

// end ends a flow whose next request is not issued: there is none, or it comes too late.
//
//go:noinline
func (h *Host) end(f *flow, err error) {
	f.done = true
	switch {
	case err == io.EOF:
	case err != nil:
		h.failOf(f, err)
	case f.Outstanding == 0 && f.next.Time >= 0 && f.ends(f.next.Time+min(f.Start, sim.Forever-f.next.Time)):
		// It is never issued, so the clock is not to run on to it.
	default:
		h.failOf(f, fmt.Errorf("request %d comes more than 106 days after the beginning, where the clock ends; use a "+
			"shorter workload, or until", h.issued+1))
	}
}

// ends reports whether nothing is issued any more at a time.
func (f *Flow) ends(at sim.Time) bool { return f.Until > 0 && at >= f.Until }

func (h *Host) fail(err error) {
	if h.err == nil {
		h.err = err
	}
	h.eng.Stop()
}

// Handle implements sim.Handler: requests of a flow arrive.
func (h *Host) Handle(ev sim.Event) {
	f := &h.flows[ev.Arg]
	now := h.eng.Now()
	f.resting = false
	if f.Outstanding > 0 {
		for range f.Outstanding {
			if !h.issueNext(f, int32(ev.Arg), now) {
				break
			}
		}
		if h.waves > 0 {
			h.nextWave(now)
		}
		return
	}
	for f.have && f.Start+f.next.Time <= now {
		if !h.issueNext(f, int32(ev.Arg), now) {
			if h.waves > 0 {
				h.nextWave(now)
			}
			return
		}
		if f.Loose {
			break // the next one has an event of its own, at the same time or later
		}
	}
	if f.have {
		h.eng.Schedule(h.self, h.target, f.Start+f.next.Time, 0, ev.Arg)
	}
}

// issueNext hands the flow's next request to the device and reads the one after.
//
// It stays apart, of what is inlined because a profile says so, what that calls is not.
//
//go:noinline
func (h *Host) issueNext(f *flow, i int32, now sim.Time) bool {
	if f.resting {
		return false
	}
	if !f.have || f.ends(now) {
		f.have, f.done = false, true
		return false
	}
	n := h.live.Take()
	x := h.live.At(n)
	f.count++
	x.arrival, x.flow, x.id, x.number = now, i, h.issued, f.count
	x.offset, x.length, x.volume, x.op, x.append = f.next.Offset, f.next.Size, f.next.Volume, f.next.Op, f.next.Append
	x.namespace = f.Namespace
	if !h.fit(f, x) {
		return false
	}
	if h.issued++; h.issued-h.ended > h.most {
		h.tooMany(f, now)
		return false
	}
	if f.Think > 0 {
		f.thinks()
	}
	h.read(f)
	if !f.zoned || h.enters(n) {
		h.send(f, n, x)
	}
	return true
}

// thinks counts a request that is issued by a flow which pauses after some of them.
//
//go:noinline
func (f *flow) thinks() {
	f.under++
	if f.since++; f.since >= f.ThinkEvery {
		f.since, f.resting = 0, true
	}
}

// thought has a flow go on a pause after the last of some requests has ended, if this one is.
//
//go:noinline
func (h *Host) thought(f *flow, i int32, now sim.Time) {
	if f.under--; f.under == 0 && f.resting && f.have {
		if f.ends(now + f.Think) {
			f.have, f.done = false, true
		} else {
			h.eng.Schedule(h.self, h.target, now+f.Think, 0, uint32(i))
		}
	}
}

// tooMany stops the host for requests that come faster than they end.
//
//go:noinline
func (h *Host) tooMany(f *flow, now sim.Time) {
	h.failOf(f, fmt.Errorf("more than %d requests are outstanding at %v: they come faster than they are served and "+
		"would fill the memory; use fewer, or a closed loop, or end the run earlier with measure.until",
		h.most, now))
}

// send submits a request, or has it wait for a place in its flow's queue.
func (h *Host) send(f *flow, n int32, x *issued) {
	if f.waiting.head != 0 || !h.submit(f, n, x) {
		h.queue(&f.waiting, n)
	}
}

func (h *Host) queue(l *list, n int32) {
	h.live.At(n).next = 0
	if l.head == 0 {
		l.head = n
	} else {
		h.live.At(l.tail).next = n
	}
	l.tail = n
}

// mostOutstanding bounds the requests that have come and not completed, and with them memory.
const mostOutstanding = 1 << 24

// FlowError is what went wrong with one of the flows of a host.
type FlowError struct {
	Flow int    // its number among those that were attached
	Name string // its name
	Err  error
}

func (e *FlowError) Error() string { return e.Name + ": " + e.Err.Error() }

// Unwrap returns what went wrong.
func (e *FlowError) Unwrap() error { return e.Err }

// failOf ends the run for what went wrong with a flow.
func (h *Host) failOf(f *flow, err error) {
	for i := range h.flows {
		if &h.flows[i] == f {
			h.fail(&FlowError{i, f.Name, err})
		}
	}
}

// RangeError is a request for addresses that its namespace does not have.
type RangeError struct {
	Request        uint64 // counted from 1
	Offset, Length int64
	Size           int64 // the namespace's
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("request %d is for bytes %d to %d, but the namespace ends at %d; fold addresses or use a "+
		"larger drive",
		e.Request, e.Offset, e.Offset+e.Length, e.Size)
}

// fit makes a request lie within its namespace, or stops the host.
func (h *Host) fit(f *flow, x *issued) bool {
	if x.offset <= f.size-x.length && x.offset >= 0 && (x.length > 0 || x.offset < f.size) || x.op == block.Flush {
		return true
	}
	return h.fold(f, x)
}

// fold makes a request that lies beyond the namespace's end lie within it, if its flow's are to be, or stops the host.
//
//go:noinline
func (h *Host) fold(f *flow, x *issued) bool {
	size := f.size
	if f.Loose {
		if f.Fold && x.offset >= size {
			x.offset %= max(size-512, 512)
		}
		return true
	}
	if !f.Fold {
		h.failOf(f, &RangeError{Request: h.issued + 1, Offset: x.offset, Length: x.length, Size: size})
		return false
	}
	if x.length > size {
		h.failOf(f, fmt.Errorf("request %d is for %v, more than the namespace's %v", h.issued+1,
			units.Bytes(x.length), units.Bytes(size)))
		return false
	}
	// One sector less than the size is MQSim's modulus; a trace's addresses have no truth here that another would
	// keep better.
	x.offset %= max(size-512, 512)
	x.offset -= x.offset % 512
	if x.offset+x.length > size {
		x.offset = size - x.length
	}
	return true
}

func (h *Host) submit(f *flow, n int32, x *issued) bool {
	x.entered = h.eng.Now()
	return h.dev.Submit(f.queue, block.Request{
		Tag: uint64(n), Op: x.op, Offset: x.offset, Length: x.length, Volume: x.volume, Namespace: x.namespace,
		Placement: f.Placement, ForceUnit: f.ForceUnit && x.op == block.Write, Append: x.append,
	})
}

// Complete implements the device's sink.
func (h *Host) Complete(c block.Completion) {
	n := int32(c.Tag)
	x := h.live.At(n)
	i := x.flow
	f := &h.flows[i]
	now := h.eng.Now()
	from := x.arrival
	if f.FromSubmission {
		from = x.entered
	}
	latency := now - from
	h.total.in(c.Op).add(&c, latency)
	if len(h.flows) > 1 {
		f.measure(&c, latency)
	}
	if f.zoned {
		h.leaves(x)
	}
	if c.Status != block.OK && c.Status != block.ReadFault {
		// data that are lost are the user's misfortune, and the run goes on
		h.refused(f, x, &c)
	}
	if h.OnSample != nil {
		s := &h.sample
		s.Flow, s.ID, s.Volume, s.Op, s.Failed, s.Offset, s.Size = int(i), x.id, x.volume, c.Op, c.Status != block.OK,
			x.offset, c.Length
		s.Arrival, s.Submitted, s.Fetched, s.Finished, s.Waited, s.Latency = x.arrival, x.entered, c.Fetched, now,
			c.Waited, latency
		if s.Blame != nil { // of the last one; who listens sets them
			s.Stages, s.Blame = nil, nil
		}
		h.OnSample(s)
	}
	h.live.Give(n)
	h.ended++
	h.OnProgress.Fire(h.ended)
	if f.waiting.head != 0 {
		h.submitWaiting(f)
	}
	if h.bell != nil {
		h.bell.Acknowledge(c.Queue)
	}
	if f.Think > 0 {
		h.thought(f, i, now)
	}
	if f.Outstanding > 0 {
		h.issueNext(f, i, now)
	}
	if h.ended == h.issued {
		h.drained(now)
	}
}

// measure notes a request of a flow that is not the only one.
//
//go:noinline
func (f *flow) measure(c *block.Completion, latency sim.Time) { f.per.in(c.Op).add(c, latency) }

// submitWaiting submits what waits for room in a flow's queue, as far as there is.
//
//go:noinline
func (h *Host) submitWaiting(f *flow) {
	for f.waiting.head != 0 {
		x := h.live.At(f.waiting.head)
		if !h.submit(f, f.waiting.head, x) {
			return
		}
		f.waiting.head = x.next
	}
}

// refused stops the host for a request that the device refused.
//
//go:noinline
func (h *Host) refused(f *flow, x *issued, c *block.Completion) {
	h.failOf(f, &RefusedError{Request: x.id + 1, Number: x.number, Op: c.Op, Append: x.append, Offset: x.offset,
		Length: c.Length, Status: c.Status, Zones: h.zonesOf(f)})
}

// drained is told that all that was issued has completed.
//
//go:noinline
func (h *Host) drained(now sim.Time) {
	if h.waves > 0 {
		h.nextWave(now)
	}
	if h.ended == h.issued && h.OnIdle != nil && h.allEnded() {
		h.OnIdle(now)
	}
}

// allEnded reports whether no flow has a request left to issue.
func (h *Host) allEnded() bool {
	for i := range h.flows {
		if h.flows[i].have {
			return false
		}
	}
	return true
}

// ID is the number of the request that the host has submitted with a tag and that has not completed.
func (h *Host) ID(tag uint64) uint64 { return h.live.At(int32(tag)).id }

// Expects reports whether requests are due that do not wait for others to complete.
func (h *Host) Expects() bool {
	for i := range h.flows {
		if f := &h.flows[i]; f.have && f.Wave <= h.wave &&
			(f.Outstanding == 0 || f.count == 0 || f.resting && f.under == 0) {
			return true
		}
	}
	return false
}

// Left counts the outstanding requests of a flow.
type Left struct {
	Flow    string
	Count   int
	Number  uint64 // of the first, among its flow's
	Op      block.Op
	Arrival sim.Time
}

// Left lists the flows with requests that have arrived and not completed.
func (h *Host) Left() (list []Left) {
	by := make([]Left, len(h.flows))
	h.live.Each(func(_ int32, x *issued) {
		l := &by[x.flow]
		if l.Count++; l.Count == 1 || x.number < l.Number {
			l.Number, l.Op, l.Arrival = x.number, x.op, x.arrival
		}
	})
	for i := range by {
		if by[i].Count > 0 {
			by[i].Flow = h.flows[i].Name
			list = append(list, by[i])
		}
	}
	return list
}

// Waiting counts the requests that wait for room in a submission queue.
func (h *Host) Waiting() uint64 {
	n := uint64(0)
	for i := range h.flows {
		for r := h.flows[i].waiting.head; r != 0; r = h.live.At(r).next {
			n++
		}
	}
	n += h.plugged()
	if d, ok := h.dev.(*Divided); ok {
		n += uint64(d.Waiting())
	}
	return n
}
