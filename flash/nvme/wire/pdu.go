// Package wire encodes and decodes the bytes of NVMe over TCP: PDUs and their digests, commands and completions, the
// data of Fabrics commands, Identify structures, log pages and ranges of Dataset Management.
//
// Header, IC, Transfer, SQE and CQE are the parts of PDUs. Decoders accept any bytes: they return a Fault or false for
// those that are invalid, and accessors expect a slice of the documented length. Encoders append to a slice of the
// caller, so that a connection needs no memory for each PDU.
//
// Sections are those of the NVM Express Base Specification 2.0 ("Base"), the NVMe/TCP Transport Specification 1.0
// ("TCP") and the NVM Command Set Specification 1.0 ("NVM"). All integers are little-endian. The package leaves out
// metadata, protection information, reservations, in-band authentication and everything about other transports.
package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"farflash/block/pdu"
)

var le = binary.LittleEndian

// castagnoli is the polynomial of both digests (TCP 3.3.1.1).
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Digest continues a digest over more bytes. The digest of no bytes is 0.
func Digest(sum uint32, b []byte) uint32 { return crc32.Update(sum, castagnoli, b) }

// Type is the type of a PDU (TCP 3.6.2).
type Type uint8

// The types.
const (
	ICReq       Type = 0x00
	ICResp      Type = 0x01
	H2CTermReq  Type = 0x02
	C2HTermReq  Type = 0x03
	CapsuleCmd  Type = 0x04
	CapsuleResp Type = 0x05
	H2CData     Type = 0x06
	C2HData     Type = 0x07
	R2T         Type = 0x09
)

// The flags of a PDU's header. Success is valid together with Last, in C2HData.
const (
	FlagHeaderDigest = 1 << 0
	FlagDataDigest   = 1 << 1
	FlagLast         = 1 << 2
	FlagSuccess      = 1 << 3
)

// Sizes in bytes. Longest is that of the longest header with its digest.
const (
	CommonSize  = pdu.Common
	DigestSize  = pdu.Digest
	ICSize      = 128
	TermSize    = 24
	DataSize    = pdu.Transfer // H2CData, C2HData, R2T and CapsuleResp
	CommandSize = pdu.Command
	Longest     = ICSize
	MaxTermData = 128 // bytes of the offending header in a TermReq
)

// AdminCapsule is the number of data bytes that a capsule of the admin queue or with a Fabrics command can always have,
// whatever IOCCSZ says (TCP 3.4).
const AdminCapsule = 8192

// shapes are the properties of the types: the header's length, whether the host sends them, and whether they can have
// digests and data. A length of 0 is an unassigned type.
var shapes = [...]struct {
	hlen                uint8
	host, digests, data bool
}{
	ICReq:       {hlen: ICSize, host: true},
	ICResp:      {hlen: ICSize},
	H2CTermReq:  {hlen: TermSize, host: true, data: true},
	C2HTermReq:  {hlen: TermSize, data: true},
	CapsuleCmd:  {hlen: CommandSize, host: true, digests: true, data: true},
	CapsuleResp: {hlen: DataSize, digests: true},
	H2CData:     {hlen: DataSize, host: true, digests: true, data: true},
	C2HData:     {hlen: DataSize, digests: true, data: true},
	R2T:         {hlen: DataSize, digests: true},
}

// Digests are the digests of a connection.
type Digests struct{ Header, Data bool }

// Fault is a fatal transport error, as a TermReq reports it (TCP 3.5, 3.6.2.4): the fatal error status, and its
// information, which is the offset of the wrong field in the header or the digest that was received. The zero value is
// no fault.
type Fault struct {
	Status uint16
	Field  uint32
}

// The fatal error statuses.
const (
	FaultHeader      = 1 // a field of the header is invalid
	FaultSequence    = 2
	FaultDigest      = 3 // of the header
	FaultRange       = 4 // data outside what was requested
	FaultLimit       = 5 // too much data, or too many R2Ts
	FaultUnsupported = 6 // a parameter is not supported
)

var faultNames = [...]string{"no error", "invalid PDU header field", "PDU sequence error", "header digest error",
	"data transfer out of range", "data transfer limit exceeded", "unsupported parameter"}

// Error describes the fault.
func (f Fault) Error() string {
	if int(f.Status) >= len(faultNames) {
		return fmt.Sprintf("nvme: fatal error status %d", f.Status)
	}
	if f.Status == FaultDigest {
		return fmt.Sprintf("nvme: %s: %#08x was received", faultNames[f.Status], f.Field)
	}
	return fmt.Sprintf("nvme: %s at byte %d of the header", faultNames[f.Status], f.Field)
}

// Header is the common header of all PDUs (TCP 3.6.1).
type Header struct {
	Type   Type
	Flags  uint8
	HLen   uint8  // of the header, without its digest
	Offset uint8  // PDO: where the data begin
	Length uint32 // of the PDU, with digests, padding and data
}

// Common decodes the CommonSize bytes that begin a PDU.
func Common(b []byte) Header {
	_ = b[CommonSize-1]
	return Header{Type: Type(b[0]), Flags: b[1], HLen: b[2], Offset: b[3], Length: le.Uint32(b[4:])}
}

// Append appends the header's bytes.
func (h Header) Append(b []byte) []byte {
	return le.AppendUint32(append(b, byte(h.Type), h.Flags, h.HLen, h.Offset), h.Length)
}

// Check verifies a header that was received, from the host or from the controller, on a connection with these digests.
// Data must be at most most bytes long and begin at a multiple of 4, the alignment of CPDA 0. TCP 3.6.1.
func (h Header) Check(host bool, d Digests, most int) (f Fault, ok bool) {
	if int(h.Type) >= len(shapes) || shapes[h.Type].hlen == 0 || shapes[h.Type].host != host {
		return Fault{FaultHeader, 0}, false
	}
	s := &shapes[h.Type]
	if h.HLen != s.hlen {
		return Fault{FaultHeader, 2}, false
	}
	if h.Flags&FlagHeaderDigest != 0 != (s.digests && d.Header) || !s.digests && h.Flags&FlagDataDigest != 0 {
		return Fault{FaultHeader, 1}, false
	}
	bare := uint32(h.start())
	switch {
	case h.Length < bare || !s.data && h.Length != bare:
		return Fault{FaultHeader, 4}, false
	case !s.digests && s.data: // a TermReq
		return Fault{FaultHeader, 4}, h.Length <= bare+MaxTermData
	case h.Length == bare:
		// Without data there is no data digest; PDO is reserved.
		return Fault{FaultHeader, 1}, h.Flags&FlagDataDigest == 0
	case h.Flags&FlagDataDigest != 0 != d.Data:
		return Fault{FaultHeader, 1}, false
	case uint32(h.Offset) < bare || h.Offset%4 != 0:
		return Fault{FaultHeader, 3}, false
	}
	end := uint32(h.Offset)
	if d.Data {
		end += DigestSize
	}
	return Fault{FaultHeader, 4}, h.Length > end && h.Length-end <= uint32(most)
}

// start is the length of the header with its digest.
func (h Header) start() int {
	if h.Flags&FlagHeaderDigest != 0 {
		return int(h.HLen) + DigestSize
	}
	return int(h.HLen)
}

// Parts returns the lengths of the parts of a PDU whose header has passed Check: the header with its digest, padding,
// and data. A data digest follows if its flag is set.
func (h Header) Parts() (head, pad, data int) {
	head = h.start()
	if int(h.Length) == head {
		return head, 0, 0
	}
	if h.Type == H2CTermReq || h.Type == C2HTermReq {
		return head, 0, int(h.Length) - head
	}
	data = int(h.Length) - int(h.Offset)
	if h.Flags&FlagDataDigest != 0 {
		data -= DigestSize
	}
	return head, int(h.Offset) - head, data
}

// Sound verifies the header digest of a header with its digest.
func (h Header) Sound(b []byte) (Fault, bool) {
	if h.Flags&FlagHeaderDigest == 0 {
		return Fault{}, true
	}
	got := le.Uint32(b[h.HLen:])
	return Fault{FaultDigest, got}, got == Digest(0, b[:h.HLen])
}

// seal appends the digest of a header that begins at from, if headers have one.
func seal(b []byte, from int, d Digests) []byte {
	if d.Header {
		b[from+1] |= FlagHeaderDigest
		b = le.AppendUint32(b, Digest(0, b[from:]))
	}
	return b
}

// length is the length of a PDU without data.
func length(hlen int, d Digests) uint32 {
	if d.Header {
		hlen += DigestSize
	}
	return uint32(hlen)
}

// IC are the parameters of a connection: an ICReq's or an ICResp's (TCP 3.6.2.2, 3.6.2.3).
type IC struct {
	Version uint16 // PFV, 0
	Align   uint8  // HPDA or CPDA: the receiver's data begin at multiples of 4*(Align+1) bytes; at most 31
	Digests Digests
	Limit   uint32 // ICReq: MAXR2T, R2Ts outstanding for a command, minus one; ICResp: MAXH2CDATA, bytes
}

// MaxAlign is the largest IC.Align.
const MaxAlign = 31

// Append appends the PDU.
func (c IC) Append(b []byte, t Type) []byte {
	from := len(b)
	b = Header{Type: t, HLen: ICSize, Length: ICSize}.Append(b)
	b = le.AppendUint16(b, c.Version)
	digests := byte(0)
	if c.Digests.Header {
		digests |= 1
	}
	if c.Digests.Data {
		digests |= 2
	}
	b = append(b, c.Align, digests)
	b = le.AppendUint32(b, c.Limit)
	for len(b) < from+ICSize {
		b = append(b, 0)
	}
	return b
}

// DecodeIC decodes the ICSize bytes of an ICReq or ICResp.
func DecodeIC(b []byte, t Type) (c IC, f Fault, ok bool) {
	h := Common(b)
	switch {
	case h.Type != t:
		return c, Fault{FaultSequence, 0}, false
	case h.HLen != ICSize:
		return c, Fault{FaultHeader, 2}, false
	case h.Length != ICSize:
		return c, Fault{FaultHeader, 4}, false
	}
	c = IC{Version: le.Uint16(b[8:]), Align: b[10], Digests: Digests{b[11]&1 != 0, b[11]&2 != 0},
		Limit: le.Uint32(b[12:])}
	switch {
	case c.Version != 0:
		return c, Fault{FaultUnsupported, 8}, false
	case c.Align > MaxAlign:
		return c, Fault{FaultHeader, 10}, false
	case b[11]&^3 != 0:
		return c, Fault{FaultHeader, 11}, false
	case t == ICResp && (c.Limit < 4096 || c.Limit%4 != 0):
		return c, Fault{FaultHeader, 12}, false
	}
	return c, Fault{}, true
}

// AppendTerm appends a TermReq with the start of the header that is at fault (TCP 3.6.2.4, 3.6.2.5).
func AppendTerm(b []byte, t Type, f Fault, header []byte) []byte {
	header = header[:min(len(header), MaxTermData)]
	b = Header{Type: t, HLen: TermSize, Length: uint32(TermSize + len(header))}.Append(b)
	b = le.AppendUint16(b, f.Status)
	b = le.AppendUint32(b, f.Field)
	b = append(b, make([]byte, TermSize-14)...)
	return append(b, header...)
}

// Term decodes the TermSize bytes of a TermReq.
func Term(b []byte) Fault { return Fault{le.Uint16(b[8:]), le.Uint32(b[10:])} }

// AppendCommand appends a CapsuleCmd up to its data, which are n bytes (TCP 3.6.2.6). With data digests, the digest of
// the data must follow these.
func AppendCommand(b []byte, d Digests, s SQE, n int) []byte {
	from := len(b)
	h := Header{Type: CapsuleCmd, HLen: CommandSize, Length: length(CommandSize, d)}
	if n > 0 {
		h.Offset = uint8(h.Length)
		h.Length += uint32(n)
		if d.Data {
			h.Flags |= FlagDataDigest
			h.Length += DigestSize
		}
	}
	return seal(append(h.Append(b), s[:SQESize]...), from, d)
}

// AppendResponse appends a CapsuleResp (TCP 3.6.2.7).
func AppendResponse(b []byte, d Digests, c CQE) []byte {
	from := len(b)
	b = Header{Type: CapsuleResp, HLen: DataSize, Length: length(DataSize, d)}.Append(b)
	return seal(c.Append(b), from, d)
}

// Transfer are the fields of H2CData, C2HData and R2T after the common header (TCP 3.6.2.8 to 3.6.2.10).
type Transfer struct {
	Command uint16 // CCCID, the command's identifier
	Tag     uint16 // TTAG: the controller's name for the R2T; not in C2HData
	Offset  uint32 // of the data in the command's data
	Length  uint32
}

// DecodeTransfer decodes the DataSize bytes of an H2CData, C2HData or R2T.
func DecodeTransfer(b []byte) Transfer {
	_ = b[DataSize-1]
	return Transfer{le.Uint16(b[8:]), le.Uint16(b[10:]), le.Uint32(b[12:]), le.Uint32(b[16:])}
}

// append appends the fields.
func (t Transfer) append(b []byte) []byte {
	b = le.AppendUint16(le.AppendUint16(b, t.Command), t.Tag)
	b = le.AppendUint32(le.AppendUint32(b, t.Offset), t.Length)
	return append(b, 0, 0, 0, 0)
}

// AppendR2T appends an R2T.
func AppendR2T(b []byte, d Digests, t Transfer) []byte {
	from := len(b)
	return seal(t.append(Header{Type: R2T, HLen: DataSize, Length: length(DataSize, d)}.Append(b)), from, d)
}

// AppendData appends an H2CData or C2HData up to its data, which begin at a multiple of 4*(align+1) bytes. With data
// digests, the digest of the data must follow these. flags are Last and Success.
func AppendData(b []byte, k Type, d Digests, flags, align uint8, t Transfer) []byte {
	from := len(b)
	unit := 4 * (uint32(align) + 1)
	start := (length(DataSize, d) + unit - 1) / unit * unit
	h := Header{Type: k, Flags: flags, HLen: DataSize, Offset: uint8(start), Length: start + t.Length}
	if d.Data {
		h.Flags |= FlagDataDigest
		h.Length += DigestSize
	}
	b = seal(t.append(h.Append(b)), from, d)
	for len(b) < from+int(start) {
		b = append(b, 0)
	}
	return b
}
