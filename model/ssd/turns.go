package ssd

import (
	"fmt"

	"farflash/block"
	rings "farflash/internal/fifo"
	"farflash/sim"
)

// MQSim's link (Quirks.MessagesInTurn). A queued message starts when the previous one has been delivered and its
// effects are done. Only then is its own delivery scheduled, which decides the order of simultaneous events.

// message is a transfer and the event triggered by its delivery; evNone triggers none.
type message struct {
	took sim.Time
	arg  uint32
	kind uint16
}

// linkTurns is the state of MQSim's link.
type linkTurns struct {
	queues [2]rings.Ring[message] // by direction; the head is being transferred
	joined bool                   // the host acknowledges completions itself; see Join
}

const (
	downward = iota // from the host
	upward
)

// pass queues a message on the link.
func (d *Drive) pass(direction uint32, took sim.Time, kind uint16, arg uint32) {
	l := &d.down
	if direction == upward {
		l = &d.up
	}
	d.send(l, took)
	q := &d.turns.queues[direction]
	if q.Push(message{took, arg, kind}); q.N == 1 {
		d.schedule(d.eng.Now()+took, evPassed, direction)
	}
}

// passed delivers the message at the head of a direction.
func (d *Drive) passed(direction uint32) {
	q := &d.turns.queues[direction]
	m := *q.First()
	switch m.kind {
	case evDoorbell:
		d.doorbell(block.QueueID(m.arg))
	case evFetchAsked:
		d.fetchAsked(int32(m.arg))
	case evCommandArrived:
		d.commandArrived(int32(m.arg))
	case evDataAsked:
		d.dataAsked(int32(m.arg), d.requests.At(int32(m.arg)))
	case evDataArrived:
		d.accept(int32(m.arg), d.requests.At(int32(m.arg)))
	case evCompleted:
		d.complete(int32(m.arg))
	case evAcknowledged:
		d.acknowledged(&d.queues[m.arg])
	}
	if q.Pop(); q.N > 0 {
		d.schedule(d.eng.Now()+q.First().took, evPassed, direction)
	}
}

// Join orders a host's events with the drive's; the host then acknowledges completions.
func (d *Drive) Join() sim.Component {
	if d.turns != nil {
		d.turns.joined = true
	}
	return d.self
}

// Bound sets the last sector of a namespace, beyond which requests are folded.
func (d *Drive) Bound(namespace uint8, last int64) {
	if int(namespace) >= len(d.ns) {
		panic(fmt.Sprintf("ssd: Bound of namespace %d; there are %d", namespace, len(d.ns)))
	}
	d.ns[namespace].last = last
}

// Acknowledge is the host's doorbell for a completion on an open queue.
func (d *Drive) Acknowledge(q block.QueueID) {
	if uint(q) >= uint(len(d.queues)) {
		panic(fmt.Sprintf("ssd: Acknowledge on queue %d, which Open has not returned", q))
	}
	if d.turns != nil && d.turns.joined {
		d.pass(downward, d.bellTime, evAcknowledged, uint32(q))
	}
}

// post sends the completion of a request, or queues it until the completion queue, which has the size of the submission
// queue, has a free entry.
func (d *Drive) post(i int32, p *queuePair) {
	if p.posted == p.depth-1 {
		p.unsaid.Push(i)
		return
	}
	p.posted++
	d.requests.At(i).reported = p.arrived
	d.pass(upward, d.completionTime, evCompleted, uint32(i))
}

// acknowledged frees a completion queue entry.
func (d *Drive) acknowledged(p *queuePair) {
	if p.posted--; p.unsaid.N > 0 {
		d.post(p.unsaid.Pop(), p)
	}
}
