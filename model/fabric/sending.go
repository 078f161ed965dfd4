package fabric

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// Carries is a packet's purpose.
type Carries uint8

const (
	Payload    Carries = iota // a part of a message
	Answer                    // an ACK or a NACK
	Congestion                // a CNP
	Asking                    // a receiver's pull
	PauseFrame                // a pause or resume frame
)

var carriesNames = [...]string{"data", "ack", "cnp", "pull", "pause frame"}

func (c Carries) String() string { return carriesNames[c] }

// Sending is a packet on a port's wire, which it occupies from Begin to End.
type Sending struct {
	Begin, End sim.Time
	Port       int32
	QP         QP // QP is the packet's queue pair, -1 for a pause frame.
	// Message is the packet's message. It is -1 if the packet carries no part of a message, or if the message is over:
	// a packet can be retransmitted although its message had fully arrived.
	Message int32
	Size    units.Bytes // on the wire
	Carries Carries
	Class   uint8
}

// reportSend reports a packet to OnSend. It reads the sender's side of the queue pair, which belongs to another
// goroutine in a network that runs in parts, so a network with an OnSend probe must run in one piece.
func (n *Network) reportSend(pi int32, p *port, x *packet) {
	s := Sending{Begin: n.eng.Now(), End: p.free, Port: pi, QP: -1, Message: -1, Size: units.Bytes(x.size),
		Class: x.class}
	switch x.kind {
	case dataPacket:
		s.Message = n.messageOf(x)
	case ackPacket, nackPacket, rnrPacket:
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

// messageOf returns the message of a data packet, -1 if it is over.
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
