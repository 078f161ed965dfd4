package wire

import (
	"fmt"

	"farflash/block/pdu"
)

// Sizes of a submission and a completion queue entry, in bytes (Base 3.3.3).
const (
	SQESize = pdu.Submission
	CQESize = pdu.Completion
)

// Opcode is a command's operation. Its two low bits are the direction of the data (Base 3.3.3.1).
type Opcode uint8

// Commands of the admin queue (Base 5, figure 138).
const (
	GetLogPage  Opcode = 0x02
	Identify    Opcode = 0x06
	Abort       Opcode = 0x08
	SetFeatures Opcode = 0x09
	GetFeatures Opcode = 0x0a
	AsyncEvent  Opcode = 0x0c
	KeepAlive   Opcode = 0x18
	Fabrics     Opcode = 0x7f // on any queue; its type is in byte 4
)

// Commands of I/O queues (NVM 3.1, figure 12).
const (
	Flush       Opcode = 0x00
	Write       Opcode = 0x01
	Read        Opcode = 0x02
	Compare     Opcode = 0x05
	WriteZeroes Opcode = 0x08
	Dataset     Opcode = 0x09
	Verify      Opcode = 0x0c
)

// FabricsType is the type of a Fabrics command (Base 6, figure 376).
type FabricsType uint8

// The types.
const (
	PropertySet FabricsType = 0x00
	Connect     FabricsType = 0x01
	PropertyGet FabricsType = 0x04
	AuthSend    FabricsType = 0x05
	AuthReceive FabricsType = 0x06
	Disconnect  FabricsType = 0x08
)

// authProtocol is SECP of Authentication Send and Receive, with SPSP0 and SPSP1 of 1 (Base 6.1, 6.2).
const authProtocol = 0xe9

// Proof reports whether an Authentication Send or Receive is of the one protocol that there is.
func (s SQE) Proof() bool { return s[41] == 1 && s[42] == 1 && s[43] == authProtocol }

// ProofWords are the dwords 10 to 15 of an Authentication Send or Receive with n bytes.
func ProofWords(n int) [6]uint32 { return [6]uint32{1<<8 | 1<<16 | authProtocol<<24, uint32(n)} }

// Flags of a command's data words.
const (
	FUA            = 1 << 30 // dword 12 of reads and writes (NVM 3.2.4, 3.2.6)
	Deallocate     = 1 << 25 // dword 12 of Write Zeroes: DEAC (NVM 3.2.8)
	DatasetDiscard = 1 << 2  // dword 11 of Dataset Management: AD (NVM 3.2.3)
	NoFlowControl  = 1 << 2  // CATTR of Connect (Base 6.3)
	RetainEvent    = 1 << 15 // dword 10 of Get Log Page: RAE (Base 5.16.1)
)

// SQE is a submission queue entry, of SQESize bytes (Base 3.3.3.1).
type SQE []byte

// Opcode, FabricsType, CID, NSID and Word are fields; Word counts dwords from 0.
func (s SQE) Opcode() Opcode           { return Opcode(s[0]) }
func (s SQE) FabricsType() FabricsType { return FabricsType(s[4]) }
func (s SQE) CID() uint16              { return le.Uint16(s[2:]) }
func (s SQE) NSID() uint32             { return le.Uint32(s[4:]) }
func (s SQE) Word(n int) uint32        { return le.Uint32(s[4*n:]) }

// Fused is the command's place in a fused operation, 0 if it has none.
func (s SQE) Fused() uint8 { return s[1] & 3 }

// Pointers reports whether the data are described by an SGL, as on all fabrics: PSDT is 01b.
func (s SQE) Pointers() bool { return s[1]>>6 == 1 }

// SLBA and Blocks are the range of a command of an I/O queue.
func (s SQE) SLBA() uint64   { return le.Uint64(s[40:]) }
func (s SQE) Blocks() uint64 { return uint64(s.Word(12)&0xffff) + 1 }

// SGL types with subtypes, in an SGL descriptor's last byte (Base 4.1.2). InCapsule is a data block with an offset:
// the data are in the capsule; Transport data come in PDUs of their own.
const (
	InCapsule uint8 = 0x01
	Transport uint8 = 0x5a
)

// SGL is the descriptor of a command's data.
type SGL struct {
	Address uint64
	Length  uint32
	Type    uint8
}

// SGL is the descriptor of the command's data, bytes 24 to 39.
func (s SQE) SGL() SGL { return SGL{le.Uint64(s[24:]), le.Uint32(s[32:]), s[39]} }

// Direction is a direction of data.
type Direction uint8

// The directions.
const (
	NoData Direction = iota
	ToController
	ToHost
)

// Direction is the direction that the opcode, or the type of a Fabrics command, gives.
func (s SQE) Direction() Direction {
	bits := s[0] & 3
	if s.Opcode() == Fabrics {
		bits = s[4] & 3
	}
	switch bits {
	case 1:
		return ToController
	case 2:
		return ToHost
	}
	return NoData
}

// Request is a command in its parts, for hosts.
type Request struct {
	Opcode  Opcode
	Fabrics FabricsType
	CID     uint16
	NSID    uint32
	SGL     SGL
	Words   [6]uint32 // dwords 10 to 15
}

// Append appends the entry's bytes.
func (r Request) Append(b []byte) SQE {
	from := len(b)
	b = append(b, make([]byte, SQESize)...)
	s := b[from:]
	s[0], s[1] = byte(r.Opcode), 1<<6
	le.PutUint16(s[2:], r.CID)
	le.PutUint32(s[4:], r.NSID)
	if r.Opcode == Fabrics {
		s[4] = byte(r.Fabrics)
	}
	le.PutUint64(s[24:], r.SGL.Address)
	le.PutUint32(s[32:], r.SGL.Length)
	s[39] = r.SGL.Type
	for i, w := range r.Words {
		le.PutUint32(s[40+4*i:], w)
	}
	return b
}

// CQE is a completion queue entry (Base 3.3.3.2). The phase tag is not used on fabrics.
type CQE struct {
	Result uint64
	Head   uint16 // SQHD
	Queue  uint16
	CID    uint16
	Status Status
}

// Append appends the entry's bytes.
func (c CQE) Append(b []byte) []byte {
	b = le.AppendUint64(b, c.Result)
	b = le.AppendUint16(le.AppendUint16(b, c.Head), c.Queue)
	return le.AppendUint16(le.AppendUint16(b, c.CID), uint16(c.Status)<<1)
}

// DecodeCQE decodes CQESize bytes.
func DecodeCQE(b []byte) CQE {
	_ = b[CQESize-1]
	return CQE{le.Uint64(b), le.Uint16(b[8:]), le.Uint16(b[10:]), le.Uint16(b[12:]), Status(le.Uint16(b[14:]) >> 1)}
}

// Status is a status field without the phase tag: code in bits 0 to 7, code type in bits 8 to 10, and DNR (Base
// 3.3.3.2.1).
type Status uint16

// NoRetry is the DNR bit: the same command would fail again.
const NoRetry Status = 1 << 14

// The statuses in use. Generic ones are type 0, those of a command type 1, media errors type 2, path errors type 3.
const (
	Success           Status = 0x000
	InvalidOpcode     Status = 0x001
	InvalidField      Status = 0x002
	CommandConflict   Status = 0x003 // of identifiers
	TransferError     Status = 0x004
	InternalError     Status = 0x006
	Aborted           Status = 0x007 // by request
	QueueDeleted      Status = 0x008
	InvalidNamespace  Status = 0x00b
	SequenceError     Status = 0x00c
	WrongSGLCount     Status = 0x00d
	WrongSGLLength    Status = 0x00f
	WrongSGLType      Status = 0x011
	WrongSGLOffset    Status = 0x016
	WriteProtected    Status = 0x020
	TransientError    Status = 0x022 // of the transport
	OutOfRange        Status = 0x080 // LBA
	CapacityExceeded  Status = 0x081
	NamespaceNotReady Status = 0x082

	TooManyEvents     Status = 0x105
	InvalidLog        Status = 0x109
	NotSaveable       Status = 0x10d
	NotChangeable     Status = 0x10e
	ConnectFormat     Status = 0x180
	ControllerBusy    Status = 0x181
	ConnectParameters Status = 0x182
	ConnectRestart    Status = 0x183
	InvalidHost       Status = 0x184
	AuthRequired      Status = 0x191

	WriteFault      Status = 0x280
	UnrecoveredRead Status = 0x281
	CompareFailure  Status = 0x285

	PathLost         Status = 0x301 // persistently
	PathInaccessible Status = 0x302
	PathTransition   Status = 0x303
)

var statusNames = map[Status]string{
	Success: "success", InvalidOpcode: "invalid opcode", InvalidField: "invalid field in command",
	CommandConflict: "command identifier conflict", TransferError: "data transfer error",
	InternalError: "internal error", Aborted: "aborted by request", QueueDeleted: "aborted with its queue",
	InvalidNamespace: "invalid namespace or format", SequenceError: "command sequence error",
	WrongSGLCount: "invalid number of SGL descriptors", WrongSGLLength: "invalid data SGL length",
	WrongSGLType: "invalid SGL descriptor type", WrongSGLOffset: "invalid SGL offset",
	WriteProtected: "namespace is write protected", TransientError: "transient transport error",
	OutOfRange: "LBA out of range", CapacityExceeded: "capacity exceeded", NamespaceNotReady: "namespace not ready",
	TooManyEvents: "too many asynchronous event requests", InvalidLog: "invalid log page",
	NotSaveable: "feature is not saveable", NotChangeable: "feature is not changeable", ConnectFormat: "incompatible format of Connect",
	ControllerBusy: "controller busy", ConnectParameters: "invalid parameters of Connect",
	ConnectRestart: "restart discovery", InvalidHost: "host is not allowed", WriteFault: "write fault",
	UnrecoveredRead: "unrecovered read error", CompareFailure: "compare failure",
	PathLost: "namespace lost on this path", PathInaccessible: "namespace inaccessible on this path",
	PathTransition: "access to the namespace is in transition",
}

// Error describes the status.
func (s Status) Error() string {
	name, ok := statusNames[s&0x7ff]
	if !ok {
		name = fmt.Sprintf("status %#03x", uint16(s&0x7ff))
	}
	if s&NoRetry != 0 {
		name += ", do not retry"
	}
	return "nvme: " + name
}

// RangeSize is the size of a range of Dataset Management, in bytes (NVM 3.2.3).
const RangeSize = 16

// Range is a range of blocks.
type Range struct {
	Start  uint64
	Blocks uint32
}

// DecodeRange decodes RangeSize bytes.
func DecodeRange(b []byte) Range {
	_ = b[RangeSize-1]
	return Range{le.Uint64(b[8:]), le.Uint32(b[4:])}
}

// Append appends the range's bytes, without context attributes.
func (r Range) Append(b []byte) []byte {
	return le.AppendUint64(le.AppendUint32(le.AppendUint32(b, 0), r.Blocks), r.Start)
}
