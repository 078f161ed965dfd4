package nbd

import (
	"encoding/binary"
	"fmt"
)

// Magic numbers.
const (
	magicServer     = 0x4e42444d41474943 // "NBDMAGIC"
	magicOption     = 0x49484156454F5054 // "IHAVEOPT"
	magicReply      = 0x3e889045565a9    // reply to an option
	magicRequest    = 0x25609513
	magicSimple     = 0x67446698
	magicStructured = 0x668e33ef
)

// Handshake flags, the same bits for the server (16 bits wide) and the client (32 bits).
const (
	FlagFixedNewstyle = 1 << 0
	FlagNoZeroes      = 1 << 1
)

// Option is a client's request before transmission.
type Option uint32

// The options.
const (
	OptExportName      Option = 1
	OptAbort           Option = 2
	OptList            Option = 3
	OptStartTLS        Option = 5
	OptInfo            Option = 6
	OptGo              Option = 7
	OptStructuredReply Option = 8
	OptListMetaContext Option = 9
	OptSetMetaContext  Option = 10
)

// Reply is the type of the server's reply to an option. Types with the highest bit set are errors.
type Reply uint32

// The replies.
const (
	ReplyAck         Reply = 1
	ReplyServer      Reply = 2
	ReplyInfo        Reply = 3
	ReplyMetaContext Reply = 4

	replyError       Reply = 1 << 31
	ReplyUnsupported Reply = replyError | 1
	ReplyPolicy      Reply = replyError | 2
	ReplyInvalid     Reply = replyError | 3
	ReplyTLSRequired Reply = replyError | 5
	ReplyUnknown     Reply = replyError | 6
	ReplyShutdown    Reply = replyError | 7
	ReplyTooBig      Reply = replyError | 9
)

// Failed reports whether the reply is an error.
func (r Reply) Failed() bool { return r&replyError != 0 }

// Types of information about an export.
const (
	InfoExport      = 0
	InfoName        = 1
	InfoDescription = 2
	InfoBlockSize   = 3
)

// Transmission flags of an export.
const (
	FlagHasFlags   = 1 << 0
	FlagReadOnly   = 1 << 1
	FlagFlush      = 1 << 2
	FlagFUA        = 1 << 3
	FlagTrim       = 1 << 5
	FlagZeroes     = 1 << 6
	FlagDF         = 1 << 7
	FlagMultiConn  = 1 << 8
	FlagCache      = 1 << 10
	FlagFastZeroes = 1 << 11
)

// Command is a client's request during transmission.
type Command uint16

// The commands.
const (
	CmdRead        Command = 0
	CmdWrite       Command = 1
	CmdDisconnect  Command = 2
	CmdFlush       Command = 3
	CmdTrim        Command = 4
	CmdCache       Command = 5
	CmdWriteZeroes Command = 6
	CmdBlockStatus Command = 7
)

// Command flags.
const (
	CmdFUA      = 1 << 0
	CmdNoHole   = 1 << 1
	CmdDF       = 1 << 2
	CmdOne      = 1 << 3
	CmdFastZero = 1 << 4
)

// Types of structured reply chunks, and their flag.
const (
	ChunkDone = 1 << 0

	ChunkNone        = 0
	ChunkData        = 1
	ChunkHole        = 2
	ChunkStatus      = 5
	ChunkError       = 1<<15 + 1
	ChunkErrorOffset = 1<<15 + 2
)

// Extent flags of base:allocation.
const (
	StateHole = 1 << 0
	StateZero = 1 << 1
)

// Errno is an error number of the protocol; 0 is success.
type Errno uint32

// The errors.
const (
	EPERM     Errno = 1
	EIO       Errno = 5
	ENOMEM    Errno = 12
	EINVAL    Errno = 22
	ENOSPC    Errno = 28
	EOVERFLOW Errno = 75
	ENOTSUP   Errno = 95
	ESHUTDOWN Errno = 108
)

var errnoNames = map[Errno]string{
	EPERM: "not permitted", EIO: "input/output error", ENOMEM: "out of memory", EINVAL: "invalid request",
	ENOSPC:    "no space left",
	EOVERFLOW: "too long", ENOTSUP: "not supported", ESHUTDOWN: "shutting down",
}

// Error describes the error, or gives its number if it is unknown.
func (e Errno) Error() string {
	if s, ok := errnoNames[e]; ok {
		return "nbd: " + s
	}
	return fmt.Sprintf("nbd: error %d", uint32(e))
}

// Sizes of headers, in bytes.
const (
	greetingSize   = 18
	optionSize     = 16
	replySize      = 20
	requestSize    = 28
	simpleSize     = 16
	structuredSize = 20
	exportSize     = 10  // size and flags that answer OptExportName
	exportPad      = 124 // zero padding after them, for clients that want it
)

// maxString is the maximum length of names and messages, in bytes.
const maxString = 4096

// optionHeader is the header of a client's option.
type optionHeader []byte

// magic, option and length are its fields.
func (h optionHeader) magic() uint64  { return binary.BigEndian.Uint64(h) }
func (h optionHeader) option() Option { return Option(binary.BigEndian.Uint32(h[8:])) }
func (h optionHeader) length() uint32 { return binary.BigEndian.Uint32(h[12:]) }

// AppendOption appends an option with its payload.
func AppendOption(b []byte, o Option, payload []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, magicOption)
	b = binary.BigEndian.AppendUint32(b, uint32(o))
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// ReplyHeader is the header of the server's reply to an option.
type ReplyHeader []byte

// Magic, Option, Reply and Length are its fields.
func (h ReplyHeader) Magic() uint64  { return binary.BigEndian.Uint64(h) }
func (h ReplyHeader) Option() Option { return Option(binary.BigEndian.Uint32(h[8:])) }
func (h ReplyHeader) Reply() Reply   { return Reply(binary.BigEndian.Uint32(h[12:])) }
func (h ReplyHeader) Length() uint32 { return binary.BigEndian.Uint32(h[16:]) }

// appendReply appends a reply to an option.
func appendReply(b []byte, o Option, r Reply, payload []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, magicReply)
	b = binary.BigEndian.AppendUint32(b, uint32(o))
	b = binary.BigEndian.AppendUint32(b, uint32(r))
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// requestHeader is the header of a command.
type requestHeader []byte

// magic, flags, command, cookie, offset and length are its fields.
func (h requestHeader) magic() uint32    { return binary.BigEndian.Uint32(h) }
func (h requestHeader) flags() uint16    { return binary.BigEndian.Uint16(h[4:]) }
func (h requestHeader) command() Command { return Command(binary.BigEndian.Uint16(h[6:])) }
func (h requestHeader) cookie() uint64   { return binary.BigEndian.Uint64(h[8:]) }
func (h requestHeader) offset() uint64   { return binary.BigEndian.Uint64(h[16:]) }
func (h requestHeader) length() uint32   { return binary.BigEndian.Uint32(h[24:]) }

// AppendRequest appends the header of a command.
func AppendRequest(b []byte, flags uint16, c Command, cookie, offset uint64, length uint32) []byte {
	b = binary.BigEndian.AppendUint32(b, magicRequest)
	b = binary.BigEndian.AppendUint16(b, flags)
	b = binary.BigEndian.AppendUint16(b, uint16(c))
	b = binary.BigEndian.AppendUint64(b, cookie)
	b = binary.BigEndian.AppendUint64(b, offset)
	return binary.BigEndian.AppendUint32(b, length)
}

// SimpleHeader is a simple reply; the data of a read follow it.
type SimpleHeader []byte

// Valid reports whether the magic number matches. Error and Cookie are its fields.
func (h SimpleHeader) Valid() bool    { return binary.BigEndian.Uint32(h) == magicSimple }
func (h SimpleHeader) Error() Errno   { return Errno(binary.BigEndian.Uint32(h[4:])) }
func (h SimpleHeader) Cookie() uint64 { return binary.BigEndian.Uint64(h[8:]) }

func appendSimple(b []byte, e Errno, cookie uint64) []byte {
	b = binary.BigEndian.AppendUint32(b, magicSimple)
	b = binary.BigEndian.AppendUint32(b, uint32(e))
	return binary.BigEndian.AppendUint64(b, cookie)
}

// ChunkHeader is the header of a chunk of a structured reply.
type ChunkHeader []byte

// Valid reports whether the magic number matches. Flags, Type, Cookie and Length are its fields.
func (h ChunkHeader) Valid() bool    { return binary.BigEndian.Uint32(h) == magicStructured }
func (h ChunkHeader) Flags() uint16  { return binary.BigEndian.Uint16(h[4:]) }
func (h ChunkHeader) Type() uint16   { return binary.BigEndian.Uint16(h[6:]) }
func (h ChunkHeader) Cookie() uint64 { return binary.BigEndian.Uint64(h[8:]) }
func (h ChunkHeader) Length() uint32 { return binary.BigEndian.Uint32(h[16:]) }

func appendChunk(b []byte, flags, kind uint16, cookie uint64, length uint32) []byte {
	b = binary.BigEndian.AppendUint32(b, magicStructured)
	b = binary.BigEndian.AppendUint16(b, flags)
	b = binary.BigEndian.AppendUint16(b, kind)
	b = binary.BigEndian.AppendUint64(b, cookie)
	return binary.BigEndian.AppendUint32(b, length)
}
