package fabric

import (
	"farflash/internal/fifo"
	"farflash/sim"
)

// kind is a packet's purpose.
type kind uint8

const (
	dataPacket kind = iota
	ackPacket
	nackPacket // an ACK that also reports packet psn missing
	rnrPacket  // an ACK that also reports that packet psn found no receive
	cnpPacket
	pullPacket // a receiver's request for packets; psn is the number of packets requested so far
	pauseFrame
	resumeFrame
)

// Flags of a packet.
const (
	ceMark  uint8 = 1 << iota // congestion experienced; on an ACK: the acknowledged packet carried the mark
	lastOf                    // the last packet of its message
	answers                   // travels from the receiver to the sender
	sacked                    // an out-of-order ACK: sack names the packet that caused it
	asks                      // the request of an RDMA Read, which is acknowledged by its answer
	implied                   // the first packet of an answer: it acknowledges the requests before sack
	trimmed                   // the payload was cut off; on an ACK: that of packet sack was
	drains                    // the sender has no packet behind it, where receivers pull
)

// packet is the state of a packet in a switch or NIC, 24 bytes and moved by value. A pause frame's class is the one it
// pauses or resumes.
type packet struct {
	qp    uint32 // index of the queue pair; the bits above slotBits count the index's uses
	psn   uint32 // of data, its number; of an ACK, the next number expected
	note  uint32 // index of its telemetry record, 0 if it has none
	sack  uint32 // number of the packet that caused an out-of-order ACK
	size  uint16 // on the wire, bytes
	in    uint16 // input port at the current switch, times MaxClasses, plus its class there
	kind  kind
	flags uint8
	hop   uint8 // switches passed so far
	class uint8
}

// slotBits is the width of a queue pair's index. With one queue pair per message indexes are reused, and the bits above
// distinguish stray packets of an earlier use.
const (
	slotBits = 24
	slotMask = 1<<slotBits - 1
)

// before reports whether packet number a precedes b. Numbers wrap.
func before(a, b uint32) bool { return int32(a-b) < 0 }

// flight is a packet on a wire.
type flight struct {
	at sim.Time // when its last bit arrives
	x  packet
}

// The network's queues. A chunk holds 32 packets, 768 bytes.
type (
	ring[T any] = fifo.Ring[T]
	queue       = fifo.Queue
	chunks      = fifo.Pool[packet]
)
