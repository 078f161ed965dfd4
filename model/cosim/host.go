// Package cosim combines models in one event loop and runs them.
//
// Its main type is Host: the machine that issues a workload to block devices, open loop (each request at its own time)
// or closed loop (a fixed number of requests outstanding), and measures the completions. The smallest system is a
// single drive with its host.
//
// It leaves out the host's software and interrupt costs; where they matter the caller adds them as a constant.
package cosim

import (
	"errors"
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
	// Outstanding is the number of requests that a closed loop keeps in flight; the source's times are then ignored. 0
	// is an open loop.
	Outstanding int
	// Start is when a closed loop begins, or the origin of an open loop's times.
	Start sim.Time
	// Until ends the issuing of requests; outstanding ones still complete. 0 is never.
	Until sim.Time
	// Think is how long a closed loop pauses once ThinkEvery requests have been issued since its last pause and all of
	// them have completed. 0 is no pause.
	Think      sim.Time
	ThinkEvery int
	// Wave orders flows that start when others have ended: flows of wave 0 start at once, those of the next wave when
	// all requests of the previous one have completed. Their Start and Until count from then.
	Wave      int
	Namespace uint8
	Queue     block.QueueConfig
	// Fold takes addresses beyond the namespace modulo its size less one sector; otherwise they are errors.
	Fold bool
	// Loose permits requests to begin before the namespace's first sector and reach beyond its last, for a device such
	// as MQSim's that accepts them. With Fold only requests that begin beyond the end are folded.
	Loose bool
	// Last is the last sector of the namespace that such a device uses without folding; 0 is the namespace's last.
	Last int64
	// FromSubmission measures latency from when the request entered the submission queue, as a device does, rather than
	// from its arrival, as a user does.
	FromSubmission bool
	Placement      uint8 // Placement and ForceUnit apply to every write.
	ForceUnit      bool
}

// Measure is a host's measurement of one operation.
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

// Sample is one completed request, for probes.
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
	// Waited is how much of its time in the device was spent on other requests; 0 if the device cannot tell.
	Waited sim.Time
	// Latency is measured from its submission if its flow measures so, else from its arrival.
	Latency sim.Time
	// Workload, Job and Tenant are the numbers of those that its flow belongs to, if the reporter knows them.
	Workload, Job, Tenant int32
	// Stages and Blame are where its time went in a local drive, and what delayed it, if requested; they are valid
	// until the next sample.
	Stages *blame.Times
	Blame  *blame.Blame
	// Trip is its path in a system; nil for a local drive. It is valid until the next sample.
	Trip *Trip
}

// Host issues flows to one device, whose sink it is, and measures them.
type Host struct {
	eng     *sim.Engine
	self    sim.Component
	target  sim.Target
	dev     block.Device
	expect  block.Expecter // the device, if it implements this
	bell    inOrder        // likewise, if a flow requires it
	flows   []flow
	live    slab.Slab[issued]
	err     error
	issued  uint64
	ended   uint64
	most    uint64 // limit of outstanding requests
	wave    int    // the wave whose flows run
	waves   int    // the last wave
	started bool

	total  measures
	zones  []plugs // by namespace; nil if no flow writes to a zoned one
	sample Sample

	// OnSample and OnProgress are called after each completion if they are set, OnIdle when every flow has ended and
	// every request has completed.
	OnSample   sim.Probe[*Sample] // the sample is valid until the next one
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
	resting bool // it pauses, or will once its outstanding requests complete
	since   int  // issued since the last pause; counted only where there are pauses
	under   int  // issued and not completed; likewise
	per     measures
	count   uint64 // issued
	zoned   bool   // its namespace is
}

// issued is an outstanding request. Entries are identified by index; 0 is none.
type issued struct {
	offset    int64
	length    int64
	arrival   sim.Time
	entered   sim.Time
	id        uint64
	number    uint64 // its number within its flow, from 1
	volume    uint32
	next      int32
	flow      int32
	op        block.Op
	namespace uint8
	append    bool
}

type list struct{ head, tail int32 }

// NewHost returns a host; Attach sets its device. Both Attach and Start report a nil engine.
func NewHost(eng *sim.Engine) *Host {
	h := &Host{eng: eng, most: mostOutstanding}
	if eng == nil {
		h.err = errors.New("cosim: the host's engine is nil; use sim.New")
		return h
	}
	h.self, h.target = eng.NewComponent(), eng.AddHandler(h)
	return h
}

// Attach opens a queue on the device for each flow. A host has one device.
func (h *Host) Attach(dev block.Device, flows []Flow) error {
	switch {
	case h.err != nil:
		return h.err
	case h.dev != nil:
		return errors.New("cosim: the host has a device; use another host")
	case dev == nil:
		return errors.New("cosim: the host's device is nil")
	}
	for i := range flows {
		if err := flows[i].check(dev); err != nil {
			return &FlowError{i, flows[i].Name, err}
		}
	}
	if err := h.open(dev, flows); err != nil {
		h.dev, h.expect, h.bell, h.flows, h.zones = nil, nil, nil, nil, nil
		return err
	}
	return nil
}

// open opens the queues of checked flows.
func (h *Host) open(dev block.Device, flows []Flow) error {
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

// Start schedules each flow's first arrival, once and after Attach.
func (h *Host) Start() error {
	switch {
	case h.err != nil:
		return h.err
	case h.dev == nil:
		return errors.New("cosim: the host has no device; use Attach")
	case h.started:
		return errors.New("cosim: the host has started")
	}
	h.started = true
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

// nextWave starts the flows of the next wave once all earlier flows have ended and all their requests have completed.
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
				h.failOf(f, fmt.Errorf("it starts at %v and would run past the 106 days of the clock; use a shorter "+
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

// Err returns the error that stopped the host, if any.
func (h *Host) Err() error { return h.err }

// Issued returns the number of requests issued.
func (h *Host) Issued() uint64 { return h.issued }

// Ended returns the number of requests completed.
func (h *Host) Ended() uint64 { return h.ended }

// Measured returns the measurement of an operation over all flows.
func (h *Host) Measured(op block.Op) *Measure { return h.total.of(op) }

// FlowMeasured returns the measurement of an operation in one flow.
func (h *Host) FlowMeasured(i int, op block.Op) *Measure {
	if uint(i) >= uint(len(h.flows)) {
		return new(Measure)
	}
	if len(h.flows) == 1 {
		return h.total.of(op) // a lone flow is measured once, in total
	}
	return h.flows[i].per.of(op)
}

// read reads the flow's next request. It reports false at the end.
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

// end ends a flow whose next request will not be issued: there is none, or it would be too late.
//
//go:noinline
func (h *Host) end(f *flow, err error) {
	f.done = true
	switch {
	case err == io.EOF:
	case err != nil:
		h.failOf(f, err)
	case f.Outstanding == 0 && f.next.Time >= 0 && f.ends(f.next.Time+min(f.Start, sim.Forever-f.next.Time)):
		// It is never issued, so the clock must not run on to it.
	default:
		h.failOf(f, fmt.Errorf("request %d arrives more than 106 days after the start, where the clock ends; use a "+
			"shorter workload, or until", h.issued+1))
	}
}

// ends reports whether the flow no longer issues requests at a time.
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
			break // the next one has its own event, at the same time or later
		}
	}
	if f.have {
		// Source times that go back are the present.
		h.eng.Schedule(h.self, h.target, max(f.Start+f.next.Time, now), 0, ev.Arg)
	}
}

// issueNext passes the flow's next request to the device and reads the one after.
//
// It stays out of line because the compiler does not inline the callees of a function that it inlines because of a
// profile.
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

// thinks counts a request issued by a flow that pauses.
//
//go:noinline
func (f *flow) thinks() {
	f.under++
	if f.since++; f.since >= f.ThinkEvery {
		f.since, f.resting = 0, true
	}
}

// thought schedules the end of a flow's pause when the last of the requests before it has completed.
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

// tooMany stops the host because requests arrive faster than they complete.
//
//go:noinline
func (h *Host) tooMany(f *flow, now sim.Time) {
	h.failOf(f, fmt.Errorf("more than %d requests are outstanding at %v: they arrive faster than they are served and "+
		"would fill the memory; use fewer, or a closed loop, or end the run earlier with measure.until",
		h.most, now))
}

// send submits a request, or queues it for a place in its flow's submission queue.
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

// mostOutstanding bounds the outstanding requests, and with them memory.
const mostOutstanding = 1 << 24

// FlowError is an error of one of a host's flows.
type FlowError struct {
	Flow int    // its index among the attached flows
	Name string // its name
	err  error
}

func (e *FlowError) Error() string { return e.Name + ": " + e.err.Error() }

func (e *FlowError) Unwrap() error { return e.err }

// failOf stops the run because of an error of a flow.
func (h *Host) failOf(f *flow, err error) {
	for i := range h.flows {
		if &h.flows[i] == f {
			h.fail(&FlowError{i, f.Name, err})
		}
	}
}

// RangeError reports a request for addresses outside its namespace.
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

// fit moves a request into its namespace if necessary, or stops the host.
func (h *Host) fit(f *flow, x *issued) bool {
	if x.op < block.Ops && (x.offset <= f.size-x.length && x.offset >= 0 && (x.length > 0 || x.offset < f.size) ||
		x.op == block.Flush) {
		return true
	}
	return h.fold(f, x)
}

// fold folds a request that lies beyond the namespace's end into it, if its flow folds, or stops the host.
//
//go:noinline
func (h *Host) fold(f *flow, x *issued) bool {
	size := f.size
	if x.op >= block.Ops {
		h.failOf(f, fmt.Errorf("request %d has the operation %v, which does not exist", h.issued+1, x.op))
		return false
	}
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
	// One sector less than the size is MQSim's modulus. Any other modulus would preserve a trace's addresses no better.
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
	if c.Tag == 0 || c.Tag >= uint64(h.live.Bound()) {
		panic(h.unknown(c.Tag))
	}
	x := h.live.At(n)
	i := x.flow
	if uint(i) >= uint(len(h.flows)) {
		panic(h.unknown(c.Tag))
	}
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
	if c.Status != block.OK && c.Status != block.ReadFault && c.Status != block.PathError {
		// lost data and lost paths do not stop the run
		h.refused(f, x, &c)
	}
	if h.OnSample != nil {
		s := &h.sample
		s.Flow, s.ID, s.Volume, s.Op, s.Failed, s.Offset, s.Size = int(i), x.id, x.volume, c.Op, c.Status != block.OK,
			x.offset, c.Length
		s.Arrival, s.Submitted, s.Fetched, s.Finished, s.Waited, s.Latency = x.arrival, x.entered, c.Fetched, now,
			c.Waited, latency
		if s.Blame != nil { // left from the previous sample; the probe sets them
			s.Stages, s.Blame = nil, nil
		}
		h.OnSample(s)
	}
	x.flow = none
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

// none is the flow of a request that is not outstanding.
const none = -1

// unknown is the refusal of a completion.
//
//go:noinline
func (h *Host) unknown(tag uint64) string {
	return fmt.Sprintf("cosim: Complete of the request with tag %d, which is not outstanding; a device completes each "+
		"request once", tag)
}

// measure records a request of one of several flows.
//
//go:noinline
func (f *flow) measure(c *block.Completion, latency sim.Time) { f.per.in(c.Op).add(c, latency) }

// submitWaiting submits a flow's waiting requests while the queue has places.
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

// refused stops the host because of a request that the device refused.
//
//go:noinline
func (h *Host) refused(f *flow, x *issued, c *block.Completion) {
	h.failOf(f, &RefusedError{request: x.id + 1, Number: x.number, op: c.Op, append: x.append, offset: x.offset,
		length: c.Length, status: c.Status, zones: h.zonesOf(f)})
}

// drained handles the moment when all issued requests have completed.
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

// ID returns an outstanding request's number by its tag; 0 for an unused tag.
func (h *Host) ID(tag uint64) uint64 {
	if tag >= uint64(h.live.Bound()) {
		return 0
	}
	return h.live.At(int32(tag)).id
}

// Expects reports whether requests are due regardless of completions.
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
	Number  uint64 // of the first one, within its flow
	Op      block.Op
	Arrival sim.Time
}

// Left lists the flows with outstanding requests.
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

// Waiting returns the number of requests not yet in the drive.
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
