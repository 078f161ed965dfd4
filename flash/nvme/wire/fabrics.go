package wire

import (
	"bytes"
	"strings"
)

// DiscoveryName is the well-known name of discovery subsystems (Base 3.1.2.3).
const DiscoveryName = "nqn.2014-08.org.nvmexpress.discovery"

// MaxName is the longest NVMe qualified name, in bytes (Base 4.5).
const MaxName = 223

// Offsets of controller properties (Base 3.1.3).
const (
	PropCAP  = 0x00
	PropVS   = 0x08
	PropCC   = 0x14
	PropCSTS = 0x1c
)

// Fields of CC and CSTS (Base 3.1.3.5, 3.1.3.6).
const (
	CCEnable       = 1 << 0
	CCShutdown     = 3 << 14
	CSTSReady      = 1 << 0
	CSTSFatal      = 1 << 1
	CSTSShutdown   = 3 << 2
	CSTSShutdownOK = 2 << 2
)

// CAP returns the capabilities of a controller with queues of up to entries entries: contiguous queues, ready within
// ten seconds, the NVM command set, pages of 4 KiB (Base 3.1.3.1).
func CAP(entries int) uint64 { return uint64(entries-1) | 1<<16 | 20<<24 | 1<<37 }

// Version14 is the version of the base specification, as VS and Identify give it: 1.4, because 2.0 adds CNS values that
// hosts may then ask for.
const Version14 = 0x00010400

// Connection are the fields of a Connect command (Base 6.3).
type Connection struct {
	Queue     uint16
	Size      uint16 // entries minus one
	Attribs   uint8
	KeepAlive uint32 // ms
	Format    uint16
}

// Connection decodes the command.
func (s SQE) Connection() Connection {
	return Connection{le.Uint16(s[42:]), le.Uint16(s[44:]), s[46], le.Uint32(s[48:]), le.Uint16(s[40:])}
}

// Words encodes the command's dwords 10 to 15.
func (c Connection) Words() [6]uint32 {
	return [6]uint32{uint32(c.Format) | uint32(c.Queue)<<16, uint32(c.Size) | uint32(c.Attribs)<<16, c.KeepAlive}
}

// Offsets of fields of Connect, in the command and in its data, for ConnectParameters.
const (
	ConnectQueueAt      = 42
	ConnectSizeAt       = 44
	ConnectControllerAt = 16
	ConnectSubsystemAt  = 256
	ConnectHostAt       = 512
)

// ConnectSize is the length of Connect's data, in bytes.
const ConnectSize = 1024

// ConnectProve is set in the result of a Connect if the host must prove who it is (AUTHREQ.ATR).
const ConnectProve = 1 << 17

// AnyController is the controller identifier of a Connect to the admin queue in the dynamic model.
const AnyController = 0xffff

// Identity are the data of Connect.
type Identity struct {
	HostID     [16]byte
	Controller uint16
	Subsystem  string
	Host       string
}

// Append appends the data's bytes.
func (i Identity) Append(b []byte) []byte {
	from := len(b)
	b = append(b, make([]byte, ConnectSize)...)
	p := b[from:]
	copy(p, i.HostID[:])
	le.PutUint16(p[ConnectControllerAt:], i.Controller)
	copy(p[ConnectSubsystemAt:][:MaxName], i.Subsystem)
	copy(p[ConnectHostAt:][:MaxName], i.Host)
	return b
}

// DecodeIdentity decodes the data of Connect. If they are invalid, at is the offset of the field.
func DecodeIdentity(b []byte) (i Identity, at int, ok bool) {
	_ = b[ConnectSize-1]
	copy(i.HostID[:], b)
	i.Controller = le.Uint16(b[ConnectControllerAt:])
	if i.Subsystem, ok = name(b[ConnectSubsystemAt:][:256]); !ok {
		return i, ConnectSubsystemAt, false
	}
	if i.Host, ok = name(b[ConnectHostAt:][:256]); !ok {
		return i, ConnectHostAt, false
	}
	return i, 0, true
}

// name decodes an NVMe qualified name, which ends with a zero byte. Control characters are refused, so that names can
// be printed.
func name(b []byte) (string, bool) {
	n := bytes.IndexByte(b, 0)
	if n < 0 || n > MaxName || !ValidName(string(b[:n])) {
		return "", false
	}
	return string(b[:n]), true
}

// ValidName reports whether a string is a well-formed NVMe qualified name: "nqn." and printable ASCII without spaces,
// at most MaxName bytes. It does not parse the date and domain.
func ValidName(s string) bool {
	return strings.HasPrefix(s, "nqn.") && len(s) > len("nqn.") && len(s) <= MaxName &&
		strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// Property are the fields of Property Get and Property Set (Base 6.5, 6.6).
type Property struct {
	Wide   bool // 8 bytes rather than 4
	Offset uint32
	Value  uint64
}

// Property decodes the command. Reserved sizes are reported as not ok.
func (s SQE) Property() (p Property, ok bool) {
	return Property{s[40]&7 == 1, s.Word(11), le.Uint64(s[48:])}, s[40]&7 <= 1
}

// Words encodes the command's dwords 10 to 15.
func (p Property) Words() [6]uint32 {
	w := [6]uint32{0, p.Offset, uint32(p.Value), uint32(p.Value >> 32)}
	if p.Wide {
		w[0] = 1
	}
	return w
}
