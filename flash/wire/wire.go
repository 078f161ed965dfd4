// Package wire is the bytes of iWARP: MPA framing over a byte stream, DDP segments in
// it, RDMAP messages in those.
//
// A header is a named byte slice with a method a field (Tagged, Untagged, ReadRequest,
// AtomicRequest, Terminate, Startup and so on): reading a field is a load, nothing is
// copied. What writes one is a plain struct of its fields with a Put method. Framer puts
// segments into FPDUs with pad, CRC32C and markers; Deframer takes them out. None of
// them allocates, and none keeps what it was given.
//
// It follows RFC 5044 (MPA), RFC 6581 (enhanced connection setup), RFC 5041 (DDP),
// RFC 5040 (RDMAP) and RFC 7306 (atomics, immediate data). It checks what can be checked
// in one frame; what takes a connection's state (sequence numbers, STags, limits) is
// verbs'. It leaves out SCTP, and FPDUs found out of order by their markers.
package wire

import "fmt"

// Op is an RDMAP opcode (RFC 5040, figure 4; RFC 7306, figure 2).
type Op uint8

// The opcodes.
const (
	Write Op = iota
	ReadReq
	ReadResp
	Send
	SendInv
	SendSE
	SendSEInv
	Term
	Imm
	ImmSE
	AtomicReq
	AtomicResp
	ops
)

var opNames = [ops]string{"Write", "ReadRequest", "ReadResponse", "Send", "SendInv", "SendSE", "SendSEInv",
	"Terminate", "Immediate", "ImmediateSE", "AtomicRequest", "AtomicResponse"}

// String is the opcode's name, or its number if it has none.
func (o Op) String() string {
	if o < ops {
		return opNames[o]
	}
	return fmt.Sprintf("Op(%d)", uint8(o))
}

// Valid reports whether the opcode is one that an RFC names.
func (o Op) Valid() bool { return o < ops }

// Tagged reports whether messages of this opcode go to tagged buffers.
func (o Op) Tagged() bool { return o == Write || o == ReadResp }

// Invalidates reports whether the message carries an STag to invalidate.
func (o Op) Invalidates() bool { return o == SendInv || o == SendSEInv }

// Solicited reports whether the message asks for an event at the receiver.
func (o Op) Solicited() bool { return o == SendSE || o == SendSEInv || o == ImmSE }

// The DDP queues of untagged messages (RFC 5040, 4.1; RFC 7306, 10.2).
const (
	QueueSend = iota
	QueueRead
	QueueTerminate
	QueueAtomic
	Queues
)

// Queue is the number of the queue that untagged messages of this opcode go to.
func (o Op) Queue() uint32 {
	switch o {
	case ReadReq, AtomicReq:
		return QueueRead
	case Term:
		return QueueTerminate
	case AtomicResp:
		return QueueAtomic
	}
	return QueueSend
}

// Version is the value of both the DDP and the RDMAP version field.
const Version = 1
