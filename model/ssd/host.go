package ssd

import (
	"fmt"
	"math"

	"farflash/block"
	rings "farflash/internal/fifo"
	"farflash/model/ssd/nand"
	"farflash/numeric/units"
	"farflash/sim"
)

// The host interface: queue pairs in host memory, doorbells, the PCIe link and the controller's fetching. The link is
// two independent directions, each of which carries one message at a time, first come, first served. The arrival time
// of a message is therefore known when it is sent, and messages without waiters cost no event.

// Sizes of the messages, in bytes (NVMe Base Specification 2.0, sections 3.3.3 and 4; the submission entry travels with
// its address words).
const (
	doorbellBytes   = 2
	submissionBytes = 72
	completionBytes = 16
)

// queuePair is a submission queue and its completion queue.
type queuePair struct {
	ring     []int32 // requests in the submission queue, by slot
	depth    uint32  // number of slots
	head     uint32  // next slot that the controller fetches
	bell     uint32  // tail as the controller knows it
	tail     uint32  // next slot that the host fills
	arrived  uint32  // entries that the controller has received
	reported uint32  // the same, as last reported to the host by a completion
	inFlight int32   // commands that the controller holds
	limit    int32   // limit on inFlight
	weight   int32
	credit   int32 // turns left in the arbitration round
	class    block.Class

	// Under Quirks.MessagesInTurn: unacknowledged completions, and requests that wait for a completion queue entry.
	posted uint32
	unsaid rings.Ring[int32]
}

// request is one host command. It takes three cache lines; the last is written only as the request completes.
type request struct {
	done      block.Completion
	offset    int64 // sectors from the start of the namespace
	cursor    int64 // next sector to process; equal to end when all have been
	end       int64
	accepted  sim.Time // when it reached the cache or the map
	served    sim.Time // when the drive had completed its part
	left      int32    // outstanding transactions and DRAM transfers, plus one while cursor < end
	next      int32
	reported  uint32
	number    uint32 // of the instant at which it was accepted
	ns        uint8
	class     block.Class // of its queue
	placement uint8
	force     bool
	append    bool
	spent
	_ [8]byte
}

// spent is the breakdown of a request's time so far.
type spent struct {
	mapping, wait, array, transfer, dram sim.Time
	processed                            sim.Time // in the controller's processors, queueing included
	// for a write: how long it waited for cache space; while it waits, since when
	roomless sim.Time
}

// Open creates a queue pair. It implements block.Device.
func (d *Drive) Open(c block.QueueConfig) (block.QueueID, error) {
	if d.closed {
		return 0, fmt.Errorf("ssd: the drive is closed")
	}
	if c.Depth == 0 {
		c.Depth = d.cfg.Host.SubmissionDepth
	}
	if c.Depth < 2 || c.Depth > 65536 {
		return 0, fmt.Errorf("ssd: submission queue of %d entries; use 2 to 65536", c.Depth)
	}
	if c.Class >= block.Classes {
		return 0, fmt.Errorf("ssd: no priority class %d", c.Class)
	}
	if c.Weight < 0 || c.Weight > maxWeight || c.InFlight < 0 || c.InFlight > math.MaxInt32 {
		return 0, fmt.Errorf("ssd: a queue of weight %d with %d commands in flight; use weights up to %d, 0 for 1, "+
			"and up to %d in flight, 0 for the drive's own limit", c.Weight, c.InFlight, maxWeight, math.MaxInt32)
	}
	d.rotates = d.rotates || d.cfg.Quirks.RotatesClasses && d.cfg.Scheduling.Classes && c.Class > block.High
	d.queues = append(d.queues, queuePair{ring: make([]int32, 16), depth: uint32(c.Depth), class: c.Class})
	q := block.QueueID(len(d.queues) - 1)
	d.Tune(q, c.Weight, c.InFlight)
	return q, nil
}

// Tune implements block.Tuner. The queue must be open.
func (d *Drive) Tune(q block.QueueID, weight, inFlight int) {
	if uint(q) >= uint(len(d.queues)) {
		panic(fmt.Sprintf("ssd: Tune of queue %d, which Open has not returned", q))
	}
	p := &d.queues[q]
	p.weight = int32(min(max(weight, 1), maxWeight))
	p.limit = int32(min(inFlight, math.MaxInt32))
	if inFlight <= 0 {
		p.limit = int32(d.cfg.Host.FetchSize)
	}
	p.credit = min(p.credit, p.weight)
}

// maxWeight bounds the weight of a queue, whose turns in a round are counted in 32 bits.
const maxWeight = 1 << 14

// Capacity implements block.Device.
func (d *Drive) Capacity(namespace int) int64 {
	if uint(namespace) >= uint(len(d.ns)) {
		return 0
	}
	return int64(d.ns[namespace].capacity())
}

// Close implements block.Device.
func (d *Drive) Close() error {
	if n := d.InFlight(); n > 0 {
		return fmt.Errorf("ssd: %d requests are outstanding", n)
	}
	d.closed = true
	for q := range d.queues {
		d.queues[q].depth = 1
	}
	return nil
}

// Submit implements block.Device.
func (d *Drive) Submit(q block.QueueID, r block.Request) bool {
	if uint(q) >= uint(len(d.queues)) || r.Op >= block.Ops {
		return d.refuse(q, &r)
	}
	p := &d.queues[q]
	// One slot stays free to tell a full ring from an empty one. reported is the head as the host knows it.
	if p.tail-p.reported >= p.depth-1 {
		return false
	}
	i := d.requests.Take()
	x := d.requests.At(i)
	now := d.eng.Now()
	// The slab reuses requests: fields that are not set here are set before they are read.
	x.done = block.Completion{Tag: r.Tag, Submitted: now, Length: r.Length, Queue: q, Op: r.Op}
	x.spent = spent{}
	x.ns, x.class, x.placement, x.force, x.append = r.Namespace, p.class, r.Placement, r.ForceUnit, r.Append
	x.offset = r.Offset >> sectorBits
	x.cursor, x.end = x.offset, (r.Offset+r.Length)>>sectorBits
	if uint32(len(p.ring)) <= p.tail-p.head {
		p.grow()
	}
	x.done.Status = d.check(&r)
	if !d.foretold {
		d.expect(r.Namespace, r.Offset) // late, but the prefetch still precedes the use by a few events
	}
	p.ring[p.tail&uint32(len(p.ring)-1)] = i
	p.tail++
	d.submitted[r.Op]++
	if d.errs != nil {
		d.patrol()
	}
	if d.turns != nil {
		d.pass(downward, d.bellTime, evDoorbell, uint32(q))
		return true
	}
	d.soon(d.send(&d.down, d.bellTime), evDoorbell, uint32(q))
	return true
}

// refuse completes a request as Invalid, at the present time but not inside Submit: it names no open queue, or an
// operation that does not exist. The drive's statistics leave it out.
//
//go:noinline
func (d *Drive) refuse(q block.QueueID, r *block.Request) bool {
	if d.closed {
		return false
	}
	now := d.eng.Now()
	d.refused.Push(block.Completion{Tag: r.Tag, Submitted: now, Fetched: now, Finished: now, Length: r.Length,
		Queue: q, Op: r.Op, Status: block.Invalid})
	d.schedule(now, evRefused, 0)
	return true
}

// completeRefused reports the first of the refused requests.
func (d *Drive) completeRefused() { d.sink.Complete(d.refused.Pop()) }

// Expect implements block.Expecter.
func (d *Drive) Expect(namespace uint8, offset int64) {
	d.foretold = true
	d.expect(namespace, offset)
}

// expect prefetches the map entry of a request's first page.
func (d *Drive) expect(namespace uint8, offset int64) {
	if int(namespace) >= len(d.ns) {
		return
	}
	n := &d.ns[namespace]
	page := uint64(d.pageOf(offset >> sectorBits))
	if page >= uint64(n.pages) {
		return
	}
	l := n.base + uint32(page)
	d.l2p.expect(l)
	if !d.cfg.Mapping.Ideal {
		d.tables[n.cmt].index.expect(l)
	}
	if n.cache != CacheOff {
		d.caches[n.cacheSet].index.expect(l)
	}
}

// check returns the error status of a request, or OK.
func (d *Drive) check(r *block.Request) block.Status {
	if int(r.Namespace) >= len(d.ns) || r.Op >= block.Ops {
		return block.Invalid
	}
	if r.Op == block.Flush {
		return block.OK
	}
	if d.zones != nil || r.Append || r.Op.OfZone() {
		if s := d.checkOfZone(r); s != block.OK || r.Op.OfZone() {
			return s
		}
	}
	if r.Offset < 0 && !d.cfg.Quirks.CutAcross || r.Length <= 0 || (r.Offset|r.Length)%nand.SectorSize != 0 {
		return block.Invalid
	}
	if r.Offset > d.Capacity(int(r.Namespace))-r.Length && !d.cfg.Quirks.CutAcross {
		return block.OutOfRange
	}
	return block.OK
}

// checkOfZone returns the error status of a request as far as zones are concerned.
//
//go:noinline
func (d *Drive) checkOfZone(r *block.Request) block.Status {
	if r.Offset < 0 || r.Length < 0 || r.Offset > d.Capacity(int(r.Namespace))-max(r.Length, nand.SectorSize) {
		return block.OutOfRange
	}
	return d.checkZoned(&d.ns[r.Namespace], r)
}

// sectorBits is log2 of the sector size in bytes.
const sectorBits = 9

var _ [0]struct{} = [nand.SectorSize - 1<<sectorBits]struct{}{}

// grow doubles a queue's ring. Slots are allocated as they are needed, because most queues stay far below their depth.
func (p *queuePair) grow() {
	bigger := make([]int32, 2*len(p.ring))
	for i := p.head; i != p.tail; i++ {
		bigger[i&uint32(len(bigger)-1)] = p.ring[i&uint32(len(p.ring)-1)]
	}
	p.ring = bigger
}

// line carries one message at a time, first come, first served: a direction of the link, or the DRAM channel.
type line struct {
	free sim.Time // when it has carried everything given to it
	busy sim.Time // total busy time, scheduled time included
}

// busyUntil returns how long the line was busy up to a time at, which must not be before the present. From the present
// on, the line is busy without a gap until it is free.
func (l *line) busyUntil(at sim.Time) sim.Time { return l.busy - max(0, l.free-at) }

// send occupies a line and returns the arrival time of the message.
func (d *Drive) send(l *line, took sim.Time) sim.Time {
	l.busy += took
	l.free = max(l.free, d.eng.Now()) + took
	return l.free
}

// linkTime returns how long a message with the given payload occupies the link.
func (d *Drive) linkTime(bytes int64) sim.Time {
	if bytes != d.lastPayload {
		d.computeLink(bytes)
	}
	return d.lastLink
}

// computeLink is linkTime for another payload than the last: a TLP header for each MaxPayload bytes.
//
//go:noinline
func (d *Drive) computeLink(bytes int64) {
	h := &d.cfg.Host
	wire := bytes / int64(h.MaxPayload) * int64(h.MaxPayload+h.PacketBytes)
	if rest := bytes % int64(h.MaxPayload); rest != 0 {
		wire += rest + int64(h.PacketBytes)
	}
	d.lastPayload, d.lastLink = bytes, d.wireTime(wire)
}

// wireTime returns how long the given bytes, striped over the lanes, occupy the link.
func (d *Drive) wireTime(wire int64) sim.Time {
	h := &d.cfg.Host
	lanes := int64(h.Lanes)
	t := h.LaneRate.TimeFor(units.Bytes((wire + lanes - 1) / lanes))
	if d.cfg.Quirks.WholeNanoseconds {
		t -= t % units.Nanosecond
	}
	return t
}

// doorbell handles the arrival of a doorbell: the controller learns of a new entry.
//
//go:noinline
func (d *Drive) doorbell(q block.QueueID) {
	if len(d.rest.states) > 0 && d.wakes(q) {
		return
	}
	p := &d.queues[q]
	p.bell++
	if p.inFlight < p.limit && d.roomForCommand() {
		i := d.fetch(p)
		if d.turns != nil {
			d.pass(upward, d.readRequestTime, evFetchAsked, uint32(i))
		} else if asked := d.send(&d.up, d.readRequestTime); d.eng.Advance(asked) {
			// No other event comes first: take the next step without a trip through the queue.
			d.fetchAsked(i)
		} else {
			d.schedule(asked, evFetchAsked, uint32(i))
		}
	}
}

// wakes reports whether the drive must first leave a power state to receive the doorbell.
//
//go:noinline
func (d *Drive) wakes(q block.QueueID) bool {
	at := d.rouse()
	if at <= d.eng.Now() {
		return false
	}
	d.schedule(at, evDoorbell, uint32(q))
	return true
}

// roomForCommand reports whether the limit on the commands in the controller allows another.
func (d *Drive) roomForCommand() bool {
	return d.cfg.Host.Commands == 0 || d.held < int32(d.cfg.Host.Commands)
}

// fetch takes the next entry of a queue, to be requested from the host by the caller, and returns its request.
func (d *Drive) fetch(p *queuePair) (i int32) {
	i = p.ring[p.head&uint32(len(p.ring)-1)]
	p.head++
	p.inFlight++
	d.held++
	d.begunCommand()
	return i
}

// ask requests a submission queue entry from the host.
func (d *Drive) ask(i int32) {
	if d.turns != nil {
		d.pass(upward, d.readRequestTime, evFetchAsked, uint32(i))
		return
	}
	d.schedule(d.send(&d.up, d.readRequestTime), evFetchAsked, uint32(i))
}

// refill fetches again after a command of a queue has completed. If the limit on all commands together applies,
// arbitration chooses the queue.
func (d *Drive) refill(p *queuePair) {
	if d.cfg.Host.Commands > 0 {
		d.refillAny()
		return
	}
	if p.head != p.bell && p.inFlight < p.limit {
		d.ask(d.fetch(p))
	}
}

// refillAny is refill with a limit on the commands of all queues together.
//
//go:noinline
func (d *Drive) refillAny() {
	for d.roomForCommand() {
		q, ok := d.arbitrate()
		if !ok {
			return
		}
		d.ask(d.fetch(&d.queues[q]))
	}
}

// arbitrate chooses the queue to fetch from: urgent queues strictly first, the others by weighted round robin among the
// classes and, within a class, by the queues' weights, in bursts (NVMe Base Specification 2.0, section 3.4.4).
func (d *Drive) arbitrate() (block.QueueID, bool) {
	have := uint8(0)
	for i := range d.queues {
		p := &d.queues[i]
		if p.head != p.bell && p.inFlight < p.limit {
			have |= 1 << p.class
		}
	}
	if have == 0 {
		return 0, false
	}
	class := block.Urgent
	if have&1 == 0 {
		class = d.nextClass(have)
	}
	for {
		for range d.queues {
			q := d.turn[class] % len(d.queues)
			p := &d.queues[q]
			if p.class == class && p.head != p.bell && p.inFlight < p.limit && p.credit > 0 {
				if p.credit--; p.credit == 0 {
					d.turn[class] = q + 1
				}
				return block.QueueID(q), true
			}
			d.turn[class] = q + 1
		}
		// All queues of the class are out of credit: start a new round.
		for i := range d.queues {
			if p := &d.queues[i]; p.class == class {
				p.credit = p.weight * int32(d.cfg.Host.Burst)
			}
		}
	}
}

// nextClass chooses among high, medium and low by their weights.
func (d *Drive) nextClass(have uint8) block.Class {
	for {
		for k := range d.classCredit {
			if have&(2<<k) != 0 && d.classCredit[k] > 0 {
				d.classCredit[k]--
				return block.Class(k + 1)
			}
		}
		for k := range d.classCredit {
			d.classCredit[k] = int32(d.cfg.Host.Weights[k] * d.cfg.Host.Burst)
		}
	}
}

// fetchAsked handles a fetch request that has reached host memory, which sends the entry.
func (d *Drive) fetchAsked(i int32) {
	if d.turns != nil {
		d.pass(downward, d.submissionTime, evCommandArrived, uint32(i))
	} else if at := d.send(&d.down, d.submissionTime); d.eng.Advance(at) {
		d.commandArrived(i)
	} else {
		d.schedule(at, evCommandArrived, uint32(i))
	}
}

// commandArrived handles the arrival of an entry at the controller.
func (d *Drive) commandArrived(i int32) {
	r := d.requests.At(i)
	r.done.Fetched = d.eng.Now()
	d.queues[r.done.Queue].arrived++
	if c := d.cfg.Controller; c != nil && c.Command > 0 { // zero time needs no queueing
		d.processed(i, r, c.Command, evCommandTaken)
		return
	}
	d.commandTaken(i, r)
}

// commandTaken starts the execution of a decoded command.
func (d *Drive) commandTaken(i int32, r *request) {
	if d.zones != nil && r.done.Status == block.OK {
		d.takenForZone(r)
	}
	if r.done.Status != block.OK {
		r.cursor = r.end
		d.served(i, r)
		return
	}
	if r.done.Op == block.Write {
		if d.turns != nil {
			d.pass(upward, d.readRequestTime, evDataAsked, uint32(i))
		} else if at := d.send(&d.up, d.readRequestTime); d.eng.Advance(at) {
			d.dataAsked(i, r)
		} else {
			d.schedule(at, evDataAsked, uint32(i))
		}
		return
	}
	d.accept(i, r)
}

// takenForZone applies a decoded command to its zone, if it belongs to one.
//
//go:noinline
func (d *Drive) takenForZone(r *request) {
	if d.ns[r.ns].zones != nil && (r.done.Op == block.Write || r.done.Op.OfZone()) {
		r.force = false // cached data of a zoned namespace are protected
		r.done.Status = d.toZone(r)
	}
}

// dataAsked handles a data request that has reached host memory, which sends the data of the write.
func (d *Drive) dataAsked(i int32, r *request) {
	if d.turns != nil {
		d.pass(downward, d.linkTime(r.done.Length), evDataArrived, uint32(i))
	} else if at := d.send(&d.down, d.linkTime(r.done.Length)); d.eng.Advance(at) {
		d.accept(i, r)
	} else {
		d.schedule(at, evDataArrived, uint32(i))
	}
}

// served handles a request whose part in the drive is complete.
func (d *Drive) served(i int32, r *request) {
	r.served = d.eng.Now()
	if c := d.cfg.Controller; c != nil && c.Completion > 0 {
		d.processed(i, r, c.Completion, evServed)
		return
	}
	d.answer(i, r)
}

// answer sends the completion of a served request to the host.
func (d *Drive) answer(i int32, r *request) {
	p := &d.queues[r.done.Queue]
	p.inFlight--
	d.held--
	d.rest.since = d.eng.Now()
	if d.held == 0 {
		d.endedCommands()
	}
	// The data precede the completion on the same direction of the link.
	if r.done.Op == block.Read && r.done.Status == block.OK {
		if d.turns != nil {
			d.pass(upward, d.linkTime(r.done.Length), evNone, 0)
		} else {
			d.send(&d.up, d.linkTime(r.done.Length))
		}
	}
	d.refill(p)
	if d.turns != nil {
		d.post(i, p)
		return
	}
	r.reported = p.arrived
	d.soon(d.send(&d.up, d.completionTime), evCompleted, uint32(i))
}

// complete handles the arrival of the completion entry at the host.
func (d *Drive) complete(i int32) {
	r := d.requests.At(i)
	r.done.Finished = d.eng.Now()
	// The completion reports the submission queue head, which returns slots to the host.
	d.queues[r.done.Queue].reported = r.reported
	d.account(i, r)
	switch { // the completion queue's head doorbell
	case d.turns == nil:
		d.send(&d.down, d.bellTime)
	case !d.turns.joined: // else the host acknowledges it
		d.pass(downward, d.bellTime, evAcknowledged, uint32(r.done.Queue))
	}
	d.requests.Give(i)
	d.sink.Complete(r.done) // a copy, because the request's slot has been released above
}
