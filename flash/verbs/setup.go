package verbs

import (
	"slices"

	"farflash/flash/wire"
)

// request builds the initiator's startup frame. It follows RFC 5044, 7.1.1, with the header of RFC 6581, 9, for
// revision 2.
func (q *QueuePair) request() {
	f := wire.StartupFields{Markers: q.cfg.Markers, CRC: q.cfg.CRC, Revision: q.cfg.Revision, Private: q.cfg.Private}
	if q.cfg.Revision >= 2 {
		f.Enhanced, f.PeerToPeer, f.IRD, f.ORD = true, q.cfg.PeerToPeer, uint16(q.cfg.IRD), uint16(q.cfg.ORD)
		if f.PeerToPeer {
			f.RTR = q.cfg.RTR
		}
	}
	q.frame = make([]byte, f.Length())
	f.Put(q.frame)
}

// startup consumes the peer's startup frame and returns its length, or 0 if it is incomplete.
func (q *QueuePair) startup(b []byte) int {
	n, err := wire.CheckStartup(b, q.cfg.Initiator)
	if err != nil {
		// RFC 5044, 8, code 4: close immediately, without a Terminate.
		q.end(Terminated{Fault: wire.FaultStartup})
		return len(b)
	}
	if q.need = n; len(b) < n {
		return 0
	}
	// b belongs to the driver, so the frame is copied below.
	f := wire.Startup(b[:n])
	if q.cfg.Initiator {
		q.reply = slices.Clone(b[:n])
		q.replied(f.Fields())
	} else {
		q.asked = slices.Clone(b[:n])
		q.state = Asked
	}
	return n
}

// Request is the initiator's startup frame. It is valid once a responder is in state Asked, and aliases the queue
// pair's memory.
func (q *QueuePair) Request() wire.StartupFields { return wire.Startup(q.asked).Fields() }

// Reply is the responder's startup frame. It is the zero value until an initiator has received it, and aliases the
// queue pair's memory.
func (q *QueuePair) Reply() wire.StartupFields {
	if q.reply == nil {
		return wire.StartupFields{}
	}
	return wire.Startup(q.reply).Fields()
}

// Accept accepts the connection request that a responder has received, with private data for the reply.
func (q *QueuePair) Accept(private []byte) error {
	if q.state != Asked {
		return errState
	}
	if len(private) > wire.MaxPrivate-wire.EnhancedLength {
		return ErrFull
	}
	r := q.Request()
	f := wire.StartupFields{Reply: true, Markers: q.cfg.Markers, CRC: q.cfg.CRC || r.CRC, Revision: r.Revision,
		Enhanced: r.Enhanced, Private: private}
	if r.Enhanced {
		// RFC 6581, 9.1: the responder's ORD is limited to the initiator's IRD. Its own IRD is the number of entries it
		// has. A value left unnegotiated keeps the local setting.
		f.IRD, f.ORD = wire.Unnegotiated, wire.Unnegotiated
		if r.ORD != wire.Unnegotiated {
			if r.PeerToPeer && q.ird == 0 && r.RTR&wire.RTRRead != 0 {
				q.ird = 1 // for the RTR message
			}
			f.IRD = uint16(q.ird)
		}
		if r.IRD != wire.Unnegotiated {
			q.ord = min(q.ord, int(r.IRD))
			f.ORD = uint16(q.ord)
		}
		if r.PeerToPeer {
			f.PeerToPeer = true
			if f.RTR = q.cfg.RTR & r.RTR; f.RTR == 0 {
				f.RTR = q.cfg.RTR
			}
		}
	}
	q.frame = make([]byte, f.Length())
	f.Put(q.frame)
	q.run(r.Markers, f.CRC)
	q.rtr = f.PeerToPeer
	return nil
}

// Reject refuses the connection request that a responder has received. After the driver has sent the reply, the
// underlying connection belongs to the program again.
func (q *QueuePair) Reject(private []byte) error {
	if q.state != Asked {
		return errState
	}
	if len(private) > wire.MaxPrivate-wire.EnhancedLength {
		return ErrFull
	}
	r := q.Request()
	f := wire.StartupFields{Reply: true, Reject: true, CRC: q.cfg.CRC, Revision: r.Revision, Enhanced: r.Enhanced,
		Private: private}
	if f.Enhanced {
		f.IRD, f.ORD = uint16(q.ird), uint16(q.ord)
	}
	q.frame = make([]byte, f.Length())
	f.Put(q.frame)
	q.end(ErrRejected)
	return nil
}

// replied continues setup with the responder's reply.
func (q *QueuePair) replied(r wire.StartupFields) {
	switch {
	case r.Reject:
		q.end(ErrRejected)
		return
	case r.Revision > q.cfg.Revision || r.Enhanced && q.cfg.Revision < 2:
		q.end(Terminated{Fault: wire.FaultStartup})
		return
	}
	q.run(r.Markers, q.cfg.CRC || r.CRC)
	q.heard = true // only a responder waits for the first FPDU
	// RFC 6581, 9.1: this end sends no more than the responder's IRD, and a responder that wants to send more than this
	// end's IRD is refused.
	if r.Enhanced {
		if r.IRD != wire.Unnegotiated {
			q.ord = min(q.ord, int(r.IRD))
		}
		if r.ORD != wire.Unnegotiated && int(r.ORD) > q.ird {
			q.fail(wire.FaultIRD, nil)
			return
		}
	}
	if !q.cfg.PeerToPeer {
		return
	}
	options := r.RTR & q.cfg.RTR
	if !r.PeerToPeer {
		// Some responders omit the flag. An empty Write is harmless to any of them.
		options = wire.RTRWrite & q.cfg.RTR
	}
	var w Work
	switch {
	case options&wire.RTRWrite != 0:
		w.Op = wire.Write
	case options&wire.RTRSend != 0:
		w.Op = wire.Send
	case options&wire.RTRRead != 0 && (!r.Enhanced || r.IRD > 0):
		w.Op = wire.ReadReq
		q.ord = max(q.ord, 1)
	case !r.PeerToPeer:
		return
	default:
		q.fail(wire.FaultRTR, nil)
		return
	}
	w.Quiet = true
	// It precedes anything already posted, using the entry that Post leaves free.
	for i := q.sqTail; i > q.sqHead; i-- {
		q.sq[i%uint64(len(q.sq))] = q.sq[(i-1)%uint64(len(q.sq))]
	}
	q.sq[q.sqHead%uint64(len(q.sq))] = work{Work: w, internal: true}
	q.sqTail++
}

// run enters full operation, the phase of FPDUs. irq has as many entries as the peer may have requests outstanding.
func (q *QueuePair) run(markers, crc bool) {
	q.framer = wire.Framer{CRC: crc, Markers: markers}
	q.deframer = wire.Deframer{CRC: crc, Markers: q.cfg.Markers}
	q.irq = make([]response, q.ird)
	q.state = Running
}
