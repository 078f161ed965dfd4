package wire

import "fmt"

// Layer is the layer that detected the error in a Terminate (RFC 5040, figure 9).
type Layer uint8

// The layers.
const (
	LayerRDMAP Layer = iota
	LayerDDP
	LayerMPA
)

// Fault is the error that a Terminate reports: layer, error type and code (RFC 5040, 4.8; RFC 5041, 7.2; RFC 5044, 8;
// RFC 6581, 8). It implements error.
type Fault struct {
	Layer Layer
	Type  uint8
	Code  uint8
}

// The faults that the RFCs define.
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

// Error names the layer and the fault, followed by the three numbers.
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

// Terminate is the payload of a Terminate message (RFC 5040, 4.8).
type Terminate []byte

// TerminateControl is the minimum length of a Terminate: its control and reserved bits.
const TerminateControl = 4

// MaxTerminate is the maximum length of a Terminate, with the DDP and RDMAP headers of a Read Request.
const MaxTerminate = TerminateControl + 2 + UntaggedLength + ReadRequestLength

const (
	terminateLength = 0x80
	terminateDDP    = 0x40
	terminateRDMAP  = 0x20
)

// littleEndian reports whether the sender laid out its bit fields in little-endian order, as siw of Linux does on
// little-endian machines. The header bits, at least one of which is set, are then in the low bits of their byte, and
// the nibbles of the first byte are swapped. Without a header bit the two layouts cannot be distinguished, and the
// RFC's is assumed.
func (t Terminate) littleEndian() bool { return t[2]&0xE0 == 0 && t[2]&0x07 != 0 }

// Fault is the reported error.
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

// Segment returns the DDP header of the segment in error, its RDMAP header if it was a Read Request, and the segment's
// length in bytes. A header that the sender omitted or truncated is nil.
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

// TerminateFields are the fields of a Terminate. Header is the DDP header of the segment in error, empty to omit it;
// Length is that segment's length in bytes; Request is the RDMAP header of a Read Request, empty for other messages.
type TerminateFields struct {
	Fault
	Header  []byte
	Length  uint16
	Request []byte
}

// Put writes the message into b, which must hold MaxTerminate bytes, and returns its length.
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
