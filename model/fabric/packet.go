package fabric

import (
	"farflash/internal/fifo"
	"farflash/sim"
)

// kind is what a packet is for.
type kind uint8

const (
	dataPacket kind = iota
	ackPacket
	nackPacket // an ACK that also says: what follows psn is missing
	cnpPacket
	pullPacket // the receiver's asking for packets; psn is how often it has asked
	pauseFrame
	resumeFrame
)

// Flags of a packet.
const (
	ceMark  uint8 = 1 << iota // congestion experienced; on an ACK: the acknowledged packet had it
	lastOf                    // the last packet of its message
	answers                   // goes from the receiver to the sender
	sacked                    // the ACK also names one packet beyond psn, in sack
	asks                      // the request of an RDMA Read, whose answer stands for its ACK
	implied                   // the first of an answer: its request is acknowledged up to sack
	trimmed                   // the payload was cut off; on an answer: sack was
	drains                    // its sender has nothing behind it, where receivers pull
)

// packet is what a switch or NIC holds of a packet, 24 bytes and moved by value. A
// pause frame's class is the one that is to pause or go on.
type packet struct {
	qp    uint32 // its index, and above slotBits which of those that have had it
	psn   uint32 // number of a data packet; the next one expected, of an ACK
	note  uint32 // index of what is measured on the way, 0 if nothing is
	sack  uint32 // number of the packet that made the receiver send an ACK out of order
	size  uint16 // on the wire, bytes
	in    uint16 // the port of the switch it is in that it came through, times MaxClasses, and its class there
	kind  kind
	flags uint8
	hop   uint8 // switches passed
	class uint8
}

// slotBits hold a queue pair's index. Indexes are used again in life per-message, and what
// is late of an earlier one is known by the bits above.
const (
	slotBits = 24
	slotMask = 1<<slotBits - 1
)

// before reports whether packet number a comes before b; numbers wrap.
func before(a, b uint32) bool { return int32(a-b) < 0 }

// flight is a packet on a wire.
type flight struct {
	at sim.Time // when its last bit arrives
	x  packet
}

// The network's queues. A chunk of packets is 768 bytes.
type (
	ring[T any] = fifo.Ring[T]
	queue       = fifo.Queue
	chunks      = fifo.Pool[packet]
)
