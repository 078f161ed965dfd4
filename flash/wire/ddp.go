package wire

import "encoding/binary"

var be = binary.BigEndian

// Lengths of DDP headers, in bytes (RFC 5041, 4.2 and 4.3).
const (
	TaggedLength   = 14
	UntaggedLength = 18
)

// The bits of a DDP control byte, and of an RDMAP control byte.
const (
	ddpTagged    = 0x80
	ddpLast      = 0x40
	ddpVersion   = 0x03
	rdmapVersion = 0xC0
	rdmapOp      = 0x0F
)

// Segment is a DDP segment of either kind: what an FPDU carries. Its methods need
// SegmentControl bytes; Whole says whether its header is all there.
type Segment []byte

// SegmentControl is the length of the control bytes that every segment begins with.
const SegmentControl = 2

// IsTagged reports whether the segment goes to a tagged buffer.
func (s Segment) IsTagged() bool { return s[0]&ddpTagged != 0 }

// Last reports whether the segment ends its message.
func (s Segment) Last() bool { return s[0]&ddpLast != 0 }

// DDPVersion is the version of DDP that the segment says it is of.
func (s Segment) DDPVersion() uint8 { return s[0] & ddpVersion }

// RDMAPVersion is the version of RDMAP that the segment says it is of.
func (s Segment) RDMAPVersion() uint8 { return s[1] >> 6 }

// Op is the RDMAP opcode.
func (s Segment) Op() Op { return Op(s[1] & rdmapOp) }

// HeaderLength is the length of the DDP header, in bytes.
func (s Segment) HeaderLength() int {
	if s.IsTagged() {
		return TaggedLength
	}
	return UntaggedLength
}

// Whole reports whether there is a whole DDP header.
func (s Segment) Whole() bool { return len(s) >= SegmentControl && len(s) >= s.HeaderLength() }

// Header is the DDP header alone.
func (s Segment) Header() []byte { return s[:s.HeaderLength()] }

// Payload is what follows the DDP header.
func (s Segment) Payload() []byte { return s[s.HeaderLength():] }

// Tagged is a DDP header for a tagged buffer, TaggedLength bytes (RFC 5041, 4.2).
type Tagged []byte

// STag names the buffer at the receiver.
func (h Tagged) STag() uint32 { return be.Uint32(h[2:]) }

// Offset is where in the buffer the payload goes, in bytes.
func (h Tagged) Offset() uint64 { return be.Uint64(h[6:]) }

// Untagged is a DDP header for an untagged buffer, UntaggedLength bytes (RFC 5041, 4.3).
type Untagged []byte

// Invalidate is the STag that a Send with Invalidate revokes; elsewhere it means nothing.
func (h Untagged) Invalidate() uint32 { return be.Uint32(h[2:]) }

// Queue is the number of the queue.
func (h Untagged) Queue() uint32 { return be.Uint32(h[6:]) }

// Sequence is the message's number in its queue, from 1.
func (h Untagged) Sequence() uint32 { return be.Uint32(h[10:]) }

// Offset is where in the message the payload belongs, in bytes.
func (h Untagged) Offset() uint32 { return be.Uint32(h[14:]) }

// TaggedFields are what a tagged header says.
type TaggedFields struct {
	Op     Op
	Last   bool
	STag   uint32
	Offset uint64
}

// Put writes the header into the first TaggedLength bytes.
func (f TaggedFields) Put(b []byte) {
	_ = b[TaggedLength-1]
	b[0] = ddpTagged | Version
	if f.Last {
		b[0] |= ddpLast
	}
	b[1] = Version<<6 | byte(f.Op)
	be.PutUint32(b[2:], f.STag)
	be.PutUint64(b[6:], f.Offset)
}

// UntaggedFields are what an untagged header says.
type UntaggedFields struct {
	Op         Op
	Last       bool
	Invalidate uint32
	Queue      uint32
	Sequence   uint32
	Offset     uint32
}

// Put writes the header into the first UntaggedLength bytes.
func (f UntaggedFields) Put(b []byte) {
	_ = b[UntaggedLength-1]
	b[0] = Version
	if f.Last {
		b[0] |= ddpLast
	}
	b[1] = Version<<6 | byte(f.Op)
	be.PutUint32(b[2:], f.Invalidate)
	be.PutUint32(b[6:], f.Queue)
	be.PutUint32(b[10:], f.Sequence)
	be.PutUint32(b[14:], f.Offset)
}
