package wire

import "fmt"

// Layer is who found the error that a Terminate reports (RFC 5040, figure 9).
type Layer uint8

// The layers.
const (
	LayerRDMAP Layer = iota
	LayerDDP
	LayerMPA
)

// Fault is what a Terminate reports: the layer, its type of error, and its code
// (RFC 5040, 4.8; RFC 5041, 7.2; RFC 5044, 8; RFC 6581, 8). It is an error.
type Fault struct {
	Layer Layer
	Type  uint8
	Code  uint8
}

// The faults that RFCs define.
var (
	FaultLocal = Fault{LayerRDMAP, 0, 0}

	FaultReadSTag      = Fault{LayerRDMAP, 1, 0x00}
	FaultReadBounds    = Fault{LayerRDMAP, 1, 0x01}
	FaultReadRights    = Fault{LayerRDMAP, 1, 0x02}
	FaultReadDomain    = Fault{LayerRDMAP, 1, 0x03}
	FaultReadWrap      = Fault{LayerRDMAP, 1, 0x04}
	FaultInvalidate    = Fault{LayerRDMAP, 1, 0x09}
	FaultRDMAPVersion  = Fault{LayerRDMAP, 2, 0x05}
	FaultOpcode        = Fault{LayerRDMAP, 2, 0x06}
	FaultStream        = Fault{LayerRDMAP, 2, 0x07}
	FaultGlobal        = Fault{LayerRDMAP, 2, 0x08}
	FaultUnspecified   = Fault{LayerRDMAP, 2, 0xFF}
	FaultTaggedSTag    = Fault{LayerDDP, 1, 0x00}
	FaultTaggedBounds  = Fault{LayerDDP, 1, 0x01}
	FaultTaggedDomain  = Fault{LayerDDP, 1, 0x02}
	FaultTaggedWrap    = Fault{LayerDDP, 1, 0x03}
	FaultTaggedVersion = Fault{LayerDDP, 1, 0x04}
	FaultQueue         = Fault{LayerDDP, 2, 0x01}
	FaultNoBuffer      = Fault{LayerDDP, 2, 0x02}
	FaultSequence      = Fault{LayerDDP, 2, 0x03}
	FaultOffset        = Fault{LayerDDP, 2, 0x04}
	FaultTooLong       = Fault{LayerDDP, 2, 0x05}
	FaultVersion       = Fault{LayerDDP, 2, 0x06}

	FaultLost    = Fault{LayerMPA, 0, 0x01}
	FaultCRC     = Fault{LayerMPA, 0, 0x02}
	FaultMarker  = Fault{LayerMPA, 0, 0x03}
	FaultStartup = Fault{LayerMPA, 0, 0x04}
	FaultSetup   = Fault{LayerMPA, 0, 0x05}
	FaultIRD     = Fault{LayerMPA, 0, 0x06}
	FaultRTR     = Fault{LayerMPA, 0, 0x07}
)

var faultNames = map[Fault]string{
	FaultReadSTag: "invalid STag", FaultReadBounds: "base or bounds violation",
	FaultReadRights: "access rights violation",
	FaultReadDomain: "STag not associated with the stream", FaultReadWrap: "tagged offset wraps",
	FaultInvalidate:   "STag cannot be invalidated",
	FaultRDMAPVersion: "invalid RDMAP version", FaultOpcode: "unexpected opcode",
	FaultStream: "catastrophic error, localized to the stream",
	FaultGlobal: "catastrophic error, global", FaultUnspecified: "unspecified error",
	FaultTaggedSTag: "invalid STag", FaultTaggedBounds: "base or bounds violation",
	FaultTaggedDomain: "STag not associated with the stream",
	FaultTaggedWrap:   "tagged offset wraps", FaultTaggedVersion: "invalid DDP version",
	FaultQueue: "invalid queue number", FaultNoBuffer: "no buffer available",
	FaultSequence: "message sequence number out of range",
	FaultOffset:   "invalid message offset", FaultTooLong: "message too long for the buffer",
	FaultVersion: "invalid DDP version",
	FaultLost:    "connection lost", FaultCRC: "CRC does not match", FaultMarker: "marker does not point at the FPDU",
	FaultStartup: "invalid MPA request or reply", FaultSetup: "local error during setup",
	FaultIRD: "insufficient IRD resources", FaultRTR: "no matching RTR option",
}

var layerNames = [...]string{"RDMAP", "DDP", "MPA"}

// Error is the layer and what the code means, with the three numbers.
func (f Fault) Error() string {
	layer := fmt.Sprintf("layer %d", f.Layer)
	if int(f.Layer) < len(layerNames) {
		layer = layerNames[f.Layer]
	}
	name, ok := faultNames[f]
	switch {
	case ok:
	case f.Type == 0 && f.Layer != LayerMPA:
		name = "local catastrophic error"
	default:
		name = "unknown error"
	}
	return fmt.Sprintf("%s: %s (%d/%d/%#02x)", layer, name, f.Layer, f.Type, f.Code)
}

// Terminate is what a Terminate message carries (RFC 5040, 4.8).
type Terminate []byte

// TerminateControl is the least length of a Terminate: its control and reserved bits.
const TerminateControl = 4

// MaxTerminate is the longest: both headers of a Read Request included.
const MaxTerminate = TerminateControl + 2 + UntaggedLength + ReadRequestLength

const (
	terminateLength = 0x80
	terminateDDP    = 0x40
	terminateRDMAP  = 0x20
)

// littleEndian reports whether the sender laid its bit fields out from the other end, as
// Linux' siw does on little-endian machines: then the header bits, of which at least one
// is set, are in the low end of their byte and the nibbles of the first byte change places.
// Without a header bit the two forms cannot be told apart, and it is taken as the RFC's.
func (t Terminate) littleEndian() bool { return t[2]&0xE0 == 0 && t[2]&0x07 != 0 }

// Fault is what is reported.
func (t Terminate) Fault() Fault {
	if t.littleEndian() {
		return Fault{Layer(t[0] & 0x0F), t[0] >> 4, t[1]}
	}
	return Fault{Layer(t[0] >> 4), t[0] & 0x0F, t[1]}
}

func (t Terminate) flags() byte {
	if !t.littleEndian() {
		return t[2]
	}
	var f byte
	for i, bit := range []byte{terminateLength, terminateDDP, terminateRDMAP} {
		if t[2]&(1<<i) != 0 {
			f |= bit
		}
	}
	return f
}

// Segment is the DDP header of the segment that was in error, the RDMAP header that
// follows it if there is one, and the segment's length in bytes; nil where the sender
// left them out or they are cut.
func (t Terminate) Segment() (header Segment, request ReadRequest, length int) {
	f, rest := t.flags(), t[TerminateControl:]
	if f&terminateDDP == 0 || len(rest) < 2+SegmentControl {
		return nil, nil, 0
	}
	if f&terminateLength != 0 {
		length = int(be.Uint16(rest))
	}
	header, rest = Segment(rest[2:]), rest[2:]
	if !header.Whole() {
		return nil, nil, length
	}
	n := header.HeaderLength()
	header, rest = header[:n], rest[n:]
	if f&terminateRDMAP != 0 && len(rest) >= ReadRequestLength {
		request = ReadRequest(rest[:ReadRequestLength])
	}
	return header, request, length
}

// TerminateFields are what a Terminate says. Header is the DDP header of the segment in
// error, or nothing; Length that segment's length in bytes; Request the RDMAP header of
// a Read Request, or nothing.
type TerminateFields struct {
	Fault
	Header  []byte
	Length  uint16
	Request []byte
}

// Put writes the message into b, which has room for MaxTerminate bytes, and returns its
// length.
func (f TerminateFields) Put(b []byte) int {
	b[0], b[1], b[2], b[3] = byte(f.Layer)<<4|f.Type&0x0F, f.Code, 0, 0
	n := TerminateControl
	if len(f.Header) == 0 {
		return n
	}
	b[2] |= terminateLength | terminateDDP
	be.PutUint16(b[n:], f.Length)
	n += 2
	n += copy(b[n:], f.Header)
	if len(f.Request) > 0 {
		b[2] |= terminateRDMAP
		n += copy(b[n:], f.Request)
	}
	return n
}
