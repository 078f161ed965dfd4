package fabric

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// Carries is what a packet is for.
type Carries uint8

// What packets carry.
const (
	Payload    Carries = iota // a part of a message
	Answer                    // an ACK or a NACK
	Congestion                // a CNP
	Asking                    // a receiver's pull
	PauseFrame                // or its taking back
)

var carriesNames = [...]string{"data", "ack", "cnp", "pull", "pause frame"}

// String is it in words.
func (c Carries) String() string { return carriesNames[c] }

// Sending is a packet that a port puts on its wire, which is busy with it from Begin to End.
type Sending struct {
	Begin, End sim.Time
	Port       int32
	// QP is the packet's queue pair, -1 if it has none: a pause frame.
	QP QP
	// Message is the one that it is a part of, -1 if it is none or no longer known: one that is sent again although
	// all of its message had arrived.
	Message int32
	Size    units.Bytes // on the wire
	Carries Carries
	Class   uint8
}

// reportSend reports a packet to OnSend. It looks at the sender's side of the queue pair, which belongs to another
// goroutine where the network runs in parts, so who listens runs it in one piece.
func (n *Network) reportSend(pi int32, p *port, x *packet) {
	s := Sending{Begin: n.eng.Now(), End: p.free, Port: pi, QP: -1, Message: -1, Size: units.Bytes(x.size),
		Class: x.class}
	switch x.kind {
	case dataPacket:
		s.Message = n.messageOf(x)
	case ackPacket, nackPacket:
		s.Carries = Answer
	case cnpPacket:
		s.Carries = Congestion
	case pullPacket:
		s.Carries = Asking
	default:
		s.Carries = PauseFrame
	}
	if s.Carries != PauseFrame {
		s.QP = QP(x.qp & slotMask)
	}
	n.OnSend(s)
}

// messageOf is the message of a data packet, -1 if it is over.
func (n *Network) messageOf(x *packet) int32 {
	s := &n.senders[x.qp&slotMask]
	if s.tag != x.qp {
		return -1
	}
	for m := s.oldest; m >= 0; m = n.messages[m].next {
		msg := &n.messages[m]
		if before(x.psn, msg.first) {
			return -1
		}
		if before(x.psn, msg.first+msg.packets) {
			return m
		}
	}
	return -1
}
