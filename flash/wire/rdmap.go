package wire

import "math/bits"

// Lengths of RDMAP headers, in bytes. The text of RFC 7306 gives 32 for an Atomic Response; its figure 6, the DDP
// segment in its appendix and every decoder use 12.
const (
	ReadRequestLength    = 28
	AtomicRequestLength  = 52
	AtomicResponseLength = 12
	ImmediateLength      = 8
)

// ReadRequest is the RDMAP header of a Read Request (RFC 5040, 4.4).
type ReadRequest []byte

// SinkSTag names the requester's buffer.
func (h ReadRequest) SinkSTag() uint32 { return be.Uint32(h) }

// SinkOffset is the offset in the requester's buffer at which the data are placed.
func (h ReadRequest) SinkOffset() uint64 { return be.Uint64(h[4:]) }

// Size is the number of bytes requested.
func (h ReadRequest) Size() uint32 { return be.Uint32(h[12:]) }

// SourceSTag names the responder's buffer.
func (h ReadRequest) SourceSTag() uint32 { return be.Uint32(h[16:]) }

// SourceOffset is the offset in the responder's buffer of the first byte to read.
func (h ReadRequest) SourceOffset() uint64 { return be.Uint64(h[20:]) }

// Fields decodes the whole header.
func (h ReadRequest) Fields() ReadRequestFields {
	return ReadRequestFields{h.SinkSTag(), h.SinkOffset(), h.Size(), h.SourceSTag(), h.SourceOffset()}
}

// ReadRequestFields are the fields of a Read Request.
type ReadRequestFields struct {
	SinkSTag     uint32
	SinkOffset   uint64
	Size         uint32
	SourceSTag   uint32
	SourceOffset uint64
}

// Put writes the header into the first ReadRequestLength bytes.
func (f ReadRequestFields) Put(b []byte) {
	_ = b[ReadRequestLength-1]
	be.PutUint32(b, f.SinkSTag)
	be.PutUint64(b[4:], f.SinkOffset)
	be.PutUint32(b[12:], f.Size)
	be.PutUint32(b[16:], f.SourceSTag)
	be.PutUint64(b[20:], f.SourceOffset)
}

// AtomicOp is an atomic operation's code (RFC 7306, figure 5).
type AtomicOp uint8

// The atomic operations. 1 is reserved.
const (
	FetchAdd AtomicOp = 0
	CmpSwap  AtomicOp = 2
)

// Valid reports whether RFC 7306 defines the operation.
func (o AtomicOp) Valid() bool { return o == FetchAdd || o == CmpSwap }

// AtomicRequest is the RDMAP header of an Atomic Request (RFC 7306, 5.2.1).
type AtomicRequest []byte

// Op is the operation.
func (h AtomicRequest) Op() AtomicOp { return AtomicOp(h[3] & 0x0F) }

// ID is the requester's identifier, which the response echoes.
func (h AtomicRequest) ID() uint32 { return be.Uint32(h[4:]) }

// STag names the buffer.
func (h AtomicRequest) STag() uint32 { return be.Uint32(h[8:]) }

// Offset is the offset in the buffer of the 64-bit word.
func (h AtomicRequest) Offset() uint64 { return be.Uint64(h[12:]) }

// Operand is the request's data and masks.
func (h AtomicRequest) Operand() Operand {
	return Operand{be.Uint64(h[20:]), be.Uint64(h[28:]), be.Uint64(h[36:]), be.Uint64(h[44:])}
}

// Fields decodes the whole header.
func (h AtomicRequest) Fields() AtomicRequestFields {
	return AtomicRequestFields{h.Op(), h.ID(), h.STag(), h.Offset(), h.Operand()}
}

// Operand holds the arguments of an atomic operation. Data is added, or swapped in under Mask. CmpSwap first compares
// Compare with memory under CompareMask.
type Operand struct {
	Data, Mask           uint64
	Compare, CompareMask uint64
}

// Apply returns the value that the operation stores if memory holds old (RFC 7306, 5.1). For FetchAdd, each set bit of
// Mask is the top bit of a field; carries do not propagate beyond it.
func (o Operand) Apply(op AtomicOp, old uint64) uint64 {
	if op == CmpSwap {
		if (o.Compare^old)&o.CompareMask != 0 {
			return old
		}
		return old&^o.Mask | o.Data&o.Mask
	}
	var sum uint64
	for at := 0; at < 64; {
		// One field: up to and including the next set bit of the mask.
		width := bits.TrailingZeros64(o.Mask>>at) + 1
		if at+width > 64 {
			width = 64 - at
		}
		field := ^uint64(0) >> (64 - width)
		sum |= ((old>>at + o.Data>>at) & field) << at
		at += width
	}
	return sum
}

// AtomicRequestFields are the fields of an Atomic Request.
type AtomicRequestFields struct {
	Op     AtomicOp
	ID     uint32
	STag   uint32
	Offset uint64
	Operand
}

// Put writes the header into the first AtomicRequestLength bytes.
func (f AtomicRequestFields) Put(b []byte) {
	_ = b[AtomicRequestLength-1]
	be.PutUint32(b, uint32(f.Op))
	be.PutUint32(b[4:], f.ID)
	be.PutUint32(b[8:], f.STag)
	be.PutUint64(b[12:], f.Offset)
	be.PutUint64(b[20:], f.Data)
	be.PutUint64(b[28:], f.Mask)
	be.PutUint64(b[36:], f.Compare)
	be.PutUint64(b[44:], f.CompareMask)
}

// AtomicResponse is the RDMAP header of an Atomic Response (RFC 7306, 5.2.2).
type AtomicResponse []byte

// ID is the identifier of the request.
func (h AtomicResponse) ID() uint32 { return be.Uint32(h) }

// Original is the value before the operation.
func (h AtomicResponse) Original() uint64 { return be.Uint64(h[4:]) }

// AtomicResponseFields are the fields of an Atomic Response.
type AtomicResponseFields struct {
	ID       uint32
	Original uint64
}

// Put writes the header into the first AtomicResponseLength bytes.
func (f AtomicResponseFields) Put(b []byte) {
	_ = b[AtomicResponseLength-1]
	be.PutUint32(b, f.ID)
	be.PutUint64(b[4:], f.Original)
}
