package wire

import "encoding/binary"

var be = binary.BigEndian

// Lengths of DDP headers, in bytes (RFC 5041, 4.2 and 4.3).
const (
	TaggedLength   = 14
	UntaggedLength = 18
)

// Bit masks of the DDP and RDMAP control bytes.
const (
	ddpTagged    = 0x80
	ddpLast      = 0x40
	ddpVersion   = 0x03
	rdmapVersion = 0xC0
	rdmapOp      = 0x0F
)

// Segment is a DDP segment of either kind: the ULPDU of an FPDU. Its methods need the SegmentControl bytes; Whole
// reports whether the header is complete.
type Segment []byte

// SegmentControl is the length in bytes of the control field that starts every segment.
const SegmentControl = 2

// IsTagged reports whether the segment goes to a tagged buffer.
func (s Segment) IsTagged() bool { return s[0]&ddpTagged != 0 }

// Last reports whether this is the last segment of its message.
func (s Segment) Last() bool { return s[0]&ddpLast != 0 }

// DDPVersion is the DDP version field.
func (s Segment) DDPVersion() uint8 { return s[0] & ddpVersion }

// RDMAPVersion is the RDMAP version field.
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

// Whole reports whether the segment holds a complete DDP header.
func (s Segment) Whole() bool { return len(s) >= SegmentControl && len(s) >= s.HeaderLength() }

// Header is the DDP header, without the payload.
func (s Segment) Header() []byte { return s[:s.HeaderLength()] }

// Payload is everything after the DDP header.
func (s Segment) Payload() []byte { return s[s.HeaderLength():] }

// Tagged is a DDP header for a tagged buffer, TaggedLength bytes (RFC 5041, 4.2).
type Tagged []byte

// STag names the buffer at the receiver.
func (h Tagged) STag() uint32 { return be.Uint32(h[2:]) }

// Offset is the payload's offset in the buffer, in bytes.
func (h Tagged) Offset() uint64 { return be.Uint64(h[6:]) }

// Untagged is a DDP header for an untagged buffer, UntaggedLength bytes (RFC 5041, 4.3).
type Untagged []byte

// Invalidate is the STag that a Send with Invalidate revokes; it is reserved in other messages.
func (h Untagged) Invalidate() uint32 { return be.Uint32(h[2:]) }

// Queue is the DDP queue number.
func (h Untagged) Queue() uint32 { return be.Uint32(h[6:]) }

// Sequence is the message sequence number (MSN) in its queue, starting at 1.
func (h Untagged) Sequence() uint32 { return be.Uint32(h[10:]) }

// Offset is the payload's offset in the message, in bytes.
func (h Untagged) Offset() uint32 { return be.Uint32(h[14:]) }

// TaggedFields are the fields of a tagged header.
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

// UntaggedFields are the fields of an untagged header.
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
