package ssd

import (
	"farflash/block"
	rings "farflash/internal/fifo"
	"farflash/sim"
)

// The link of a peer (Quirks.MessagesInTurn). What waits for a direction of it begins its way when what is before it has been delivered, and has
// what follows from that done; only then it has its place among what happens at once at its own end.

// message is one on the link, and the event at its end: evNone if nobody waits for it.
type message struct {
	took sim.Time
	arg  uint32
	kind uint16
}

// linkTurns is a peer's link.
type linkTurns struct {
	queues [2]rings.Ring[message] // by direction: the message on its way and those behind it
	joined bool                   // the host acknowledges completions itself; see Join
}

// The directions.
const (
	downward = iota // from the host
	upward
)

// pass sends a message.
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

// passed ends the first message of a direction.
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

// Join is for a host whose events are to have one order with the drive's among what happens at once, those of the component that is returned, and that says when it rings the doorbell for a
// completion.
func (d *Drive) Join() sim.Component {
	if d.turns != nil {
		d.turns.joined = true
	}
	return d.self
}

// Bound says which sector of a namespace is the last that a host uses; requests that reach beyond it are folded.
func (d *Drive) Bound(namespace uint8, last int64) { d.ns[namespace].last = last }

// Acknowledge is the host's doorbell for a completion.
func (d *Drive) Acknowledge(q block.QueueID) {
	if d.turns != nil && d.turns.joined {
		d.pass(downward, d.bellTime, evAcknowledged, uint32(q))
	}
}

// post sends the completion of a request, if the completion queue, which is as long as the submission queue, has room for it.
func (d *Drive) post(i int32, p *queuePair) {
	if p.posted == p.depth-1 {
		p.unsaid.Push(i)
		return
	}
	p.posted++
	d.requests.At(i).reported = p.arrived
	d.pass(upward, d.completionTime, evCompleted, uint32(i))
}

// acknowledged: the host has taken a completion out of its queue.
func (d *Drive) acknowledged(p *queuePair) {
	if p.posted--; p.unsaid.N > 0 {
		d.post(p.unsaid.Pop(), p)
	}
}
