package wire

import "math/bits"

// Lengths of RDMAP headers, in bytes. RFC 7306's text gives 32 for an Atomic Response;
// its figure 6, the DDP segment in its appendix and every decoder have 12.
const (
	ReadRequestLength    = 28
	AtomicRequestLength  = 52
	AtomicResponseLength = 12
	ImmediateLength      = 8
)

// ReadRequest is what a Read Request carries (RFC 5040, 4.4).
type ReadRequest []byte

// SinkSTag names the requester's buffer.
func (h ReadRequest) SinkSTag() uint32 { return be.Uint32(h) }

// SinkOffset is where in it the first byte goes.
func (h ReadRequest) SinkOffset() uint64 { return be.Uint64(h[4:]) }

// Size is how many bytes are asked for.
func (h ReadRequest) Size() uint32 { return be.Uint32(h[12:]) }

// SourceSTag names the buffer that is read.
func (h ReadRequest) SourceSTag() uint32 { return be.Uint32(h[16:]) }

// SourceOffset is where in it the first byte is.
func (h ReadRequest) SourceOffset() uint64 { return be.Uint64(h[20:]) }

// Fields are all of it.
func (h ReadRequest) Fields() ReadRequestFields {
	return ReadRequestFields{h.SinkSTag(), h.SinkOffset(), h.Size(), h.SourceSTag(), h.SourceOffset()}
}

// ReadRequestFields are what a Read Request says.
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

// AtomicRequest is what an Atomic Request carries (RFC 7306, 5.2.1).
type AtomicRequest []byte

// Op is the operation.
func (h AtomicRequest) Op() AtomicOp { return AtomicOp(h[3] & 0x0F) }

// ID is the requester's name for the request.
func (h AtomicRequest) ID() uint32 { return be.Uint32(h[4:]) }

// STag names the buffer.
func (h AtomicRequest) STag() uint32 { return be.Uint32(h[8:]) }

// Offset is where in the buffer the 64 bits are.
func (h AtomicRequest) Offset() uint64 { return be.Uint64(h[12:]) }

// Operand is the data and masks.
func (h AtomicRequest) Operand() Operand {
	return Operand{be.Uint64(h[20:]), be.Uint64(h[28:]), be.Uint64(h[36:]), be.Uint64(h[44:])}
}

// Fields are all of it.
func (h AtomicRequest) Fields() AtomicRequestFields {
	return AtomicRequestFields{h.Op(), h.ID(), h.STag(), h.Offset(), h.Operand()}
}

// Operand is what an atomic operation works with: Data is added or swapped in, where
// Mask says; Compare is compared with memory, in the bits of CompareMask.
type Operand struct {
	Data, Mask           uint64
	Compare, CompareMask uint64
}

// Apply is the value that the operation leaves behind where it found old (RFC 7306,
// 5.1). Of FetchAdd, a bit of Mask is the highest of a field, beyond which nothing is
// carried.
func (o Operand) Apply(op AtomicOp, old uint64) uint64 {
	if op == CmpSwap {
		if (o.Compare^old)&o.CompareMask != 0 {
			return old
		}
		return old&^o.Mask | o.Data&o.Mask
	}
	var sum uint64
	for at := 0; at < 64; {
		// One field: up to and with the next bit of the mask.
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

// AtomicRequestFields are what an Atomic Request says.
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

// AtomicResponse is what an Atomic Response carries (RFC 7306, 5.2.2).
type AtomicResponse []byte

// ID is the request's.
func (h AtomicResponse) ID() uint32 { return be.Uint32(h) }

// Original is the value that the operation found.
func (h AtomicResponse) Original() uint64 { return be.Uint64(h[4:]) }

// AtomicResponseFields are what an Atomic Response says.
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
