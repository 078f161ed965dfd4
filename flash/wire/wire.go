// Package wire encodes and decodes iWARP: MPA framing over a byte stream, the DDP segments that the frames carry, and
// the RDMAP messages in the segments.
//
// A header is a named byte slice with one method per field (Tagged, Untagged, ReadRequest, AtomicRequest, Terminate,
// Startup and others), so reading a field is a load without a copy. To write a header, fill in its struct of plain
// fields and call Put. Framer wraps segments in FPDUs with pad, CRC32C and markers; Deframer unwraps them. None of
// these types allocates or retains its arguments.
//
// The package follows RFC 5044 (MPA), RFC 6581 (enhanced connection setup), RFC 5041 (DDP), RFC 5040 (RDMAP) and RFC
// 7306 (atomics, immediate data). It checks whatever a single frame suffices to check; checks that need connection
// state (sequence numbers, STags, limits) are left to package verbs. It supports neither SCTP nor locating FPDUs by
// their markers in an out-of-order stream.
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

// String is the opcode's name, or its number if it is unknown.
func (o Op) String() string {
	if o < ops {
		return opNames[o]
	}
	return fmt.Sprintf("Op(%d)", uint8(o))
}

// Valid reports whether an RFC defines the opcode.
func (o Op) Valid() bool { return o < ops }

// Tagged reports whether messages with this opcode target tagged buffers.
func (o Op) Tagged() bool { return o == Write || o == ReadResp }

// Invalidates reports whether the message carries an STag to invalidate.
func (o Op) Invalidates() bool { return o == SendInv || o == SendSEInv }

// Solicited reports whether the message requests an event at the receiver.
func (o Op) Solicited() bool { return o == SendSE || o == SendSEInv || o == ImmSE }

// DDP queues of untagged messages (RFC 5040, 4.1; RFC 7306, 10.2).
const (
	QueueSend = iota
	QueueRead
	QueueTerminate
	QueueAtomic
	Queues
)

// Queue is the DDP queue of untagged messages with this opcode.
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

// Version is the value of both the DDP and the RDMAP version fields.
const Version = 1
