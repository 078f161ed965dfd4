// Package control is the protocol by which a client locates exports: requests and replies exchanged as Sends, before
// and between the one-sided operations.
//
// A FileRequest creates, renames, removes and lists files, where the server lets clients do so (Files).
//
// A Request opens, stats, flushes or closes an export, asks which one a name was meant to be, joins the connections of
// one client, or ends another client's; the Reply to an open carries STag, address, length and rights. Session is the
// server's side of one connection, a plain state machine from a request's bytes to a reply's; Server runs it on a
// connection, and Client is the other side. The layout is in docs/flash/protocol.md.
//
// Access control and the set of exports are left to Exports.
package control

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"farflash/flash/verbs"
)

// protocolVersion is the protocol version.
const protocolVersion = 1

// Lengths in bytes.
const (
	RequestLength = 16 // without the name
	MaxName       = 1024
	MaxRequest    = RequestLength + MaxName
	ReplyLength   = 32 // without the text
	MaxText       = 1024
	MaxReply      = ReplyLength + MaxText
	SecretLength  = 32 // of Join
	NameLength    = 16 // of a client's public name
)

// Op is the kind of a request.
type Op uint8

// The requests.
const (
	Open Op = 1 + iota
	Stat
	Close
	Hint   // what to open instead of a name that no export has
	Join   // ends the client's earlier connections; the first request, if at all
	Flush  // waits until everything written to an export before is on flash
	Whoami // the client's public name, after Join
	Fence  // ends another client for ever
	// Ask returns the Features of the server, in Reply.Length, and the longest reply to a file request in bytes, in
	// Reply.Address.
	Ask
)

// answer is the bit that marks the Op of a reply.
const answer = 0x80

// Status is the outcome of a request.
type Status uint16

// The statuses.
const (
	OK Status = iota
	Malformed
	NotFound
	Denied
	TooMany
	NotOpen
	Failed
	Stale
	Draining
	Alive
	Fenced
	Exists
	NotEmpty
	Busy
	NoSpace
	TooLong
	TooLarge
	IsDirectory
	NotDirectory
	Inside
	StaleFile
	ReadOnly
	Sequence
	statuses
)

var statusNames = [statuses]string{"ok", "malformed request", "no such export",
	"access to the export denied", "too many exports are open", "the export is not open", "server error",
	"the client has a later connection", "the export is being drained and takes no new clients",
	"the client is alive", "the client was fenced", "the name exists", "the directory is not empty",
	"the file is in use at its address, and cannot grow there", "no space is left", "the name is too long",
	"the file is too large", "it is a directory", "it is not a directory", "a directory cannot be moved into itself",
	"the file of the handle is gone", "the server or its pool is read-only", "the request is out of sequence"}

// Is makes statuses the errors of io/fs that they correspond to.
func (s Status) Is(target error) bool {
	switch target {
	case fs.ErrNotExist:
		return s == NotFound
	case fs.ErrPermission:
		return s == Denied
	case fs.ErrExist:
		return s == Exists
	}
	return false
}

// Error describes the status.
func (s Status) Error() string {
	if s < statuses {
		return statusNames[s]
	}
	return fmt.Sprintf("status %d", uint16(s))
}

// Request is a client's request.
type Request struct {
	Op     Op
	Rights verbs.Rights // Open: the rights wanted
	ID     uint32       // echoed in the reply
	// STag is that of Close and Flush; of Join, the connection's number, which is higher than those of earlier ones; of
	// Fence, the silence in milliseconds after which a client counts as dead, and 0 if it is to end in any case.
	STag uint32
	// Name is that of Open, Stat and Hint; of Join, the client's secret: 32 random hexadecimal digits; of Fence, the
	// public name of a client.
	Name string
}

// Fits returns an error if the request has a name that a server has no room to receive, which ends the connection.
func (r Request) Fits() error {
	if len(r.Name) > MaxName {
		return fmt.Errorf("the name has %d bytes; the maximum is %d", len(r.Name), MaxName)
	}
	return nil
}

var be = binary.BigEndian

// Append appends the encoded request to b.
func (r Request) Append(b []byte) []byte {
	b = append(b, protocolVersion, byte(r.Op), byte(r.Rights), 0)
	b = be.AppendUint32(b, r.ID)
	b = be.AppendUint32(b, r.STag)
	b = be.AppendUint16(b, uint16(len(r.Name)))
	b = append(b, 0, 0)
	return append(b, r.Name...)
}

// ParseRequest decodes a request. For a malformed one, it returns the fields that could be decoded.
func ParseRequest(b []byte) (Request, error) {
	if len(b) < RequestLength {
		return Request{}, fmt.Errorf("%w: %d bytes, want at least %d", Malformed, len(b), RequestLength)
	}
	r := Request{Op: Op(b[1]), Rights: verbs.Rights(b[2]), ID: be.Uint32(b[4:]), STag: be.Uint32(b[8:])}
	name := b[RequestLength:]
	switch {
	case b[0] != protocolVersion:
		return r, fmt.Errorf("%w: version %d, want %d", Malformed, b[0], protocolVersion)
	case b[3] != 0 || b[14] != 0 || b[15] != 0:
		return r, fmt.Errorf("%w: reserved bytes are not zero", Malformed)
	case int(be.Uint16(b[12:])) != len(name) || len(name) > MaxName:
		return r, fmt.Errorf("%w: name of %d bytes with a length field of %d", Malformed, len(name),
			be.Uint16(b[12:]))
	case !utf8.Valid(name) || strings.ContainsRune(string(name), 0):
		return r, fmt.Errorf("%w: the name is not text", Malformed)
	}
	r.Name = string(name)
	named, tagged := r.Name != "", r.STag != 0
	switch r.Op {
	case Open:
		if !named || tagged || r.Rights == 0 || r.Rights&^(verbs.RemoteRead|verbs.RemoteWrite|verbs.RemoteAtomic) != 0 {
			return r, fmt.Errorf("%w: open needs a name and rights", Malformed)
		}
	case Stat, Hint:
		if !named || tagged || r.Rights != 0 {
			return r, fmt.Errorf("%w: stat and hint need a name", Malformed)
		}
	case Close, Flush:
		if named || !tagged || r.Rights != 0 {
			return r, fmt.Errorf("%w: close and flush need an STag", Malformed)
		}
	case Join:
		if !isHex(r.Name, SecretLength) || !tagged || r.Rights != 0 {
			return r, fmt.Errorf("%w: join needs a secret of %d hexadecimal digits and a number", Malformed,
				SecretLength)
		}
	case Whoami, Ask:
		if named || tagged || r.Rights != 0 {
			return r, fmt.Errorf("%w: request %d has no parameters", Malformed, r.Op)
		}
	case Fence:
		if !isHex(r.Name, NameLength) || r.Rights != 0 {
			return r, fmt.Errorf("%w: fence needs a client's name of %d hexadecimal digits", Malformed, NameLength)
		}
	default:
		return r, fmt.Errorf("%w: unknown request %d", Malformed, r.Op)
	}
	return r, nil
}

// isHex reports whether s consists of n lower-case hexadecimal digits.
func isHex(s string, n int) bool { return len(s) == n && strings.Trim(s, "0123456789abcdef") == "" }

// Reply is the server's reply.
type Reply struct {
	Op     Op
	Status Status
	ID     uint32
	// Open sets all fields, which describe how to access the export; Stat only Length, Rights and Allowed; Whoami, with
	// Address and Length, the Number and Messages of a Past.
	STag    uint32
	Rights  verbs.Rights
	Allowed verbs.Semantics
	Address uint64
	Length  uint64
	// Text is one line, which may be empty. Of Hint, what to open instead. Of Join, the server's instance: another one
	// may have lost what earlier ones did not flush. Of an Open after a Join, the file's identity; see Export. Of
	// Whoami, the client's public name.
	Text string
}

// Append appends the encoded reply to b.
func (r Reply) Append(b []byte) []byte {
	b = append(b, protocolVersion, byte(r.Op)|answer)
	b = be.AppendUint16(b, uint16(r.Status))
	b = be.AppendUint32(b, r.ID)
	b = be.AppendUint32(b, r.STag)
	b = append(b, byte(r.Rights), byte(r.Allowed), 0, 0)
	b = be.AppendUint64(b, r.Address)
	b = be.AppendUint64(b, r.Length)
	return append(b, r.Text...)
}

// ParseReply decodes a reply.
func ParseReply(b []byte) (Reply, error) {
	if len(b) < ReplyLength || b[0] != protocolVersion || b[1]&answer == 0 || b[14] != 0 || b[15] != 0 {
		return Reply{}, fmt.Errorf("%d bytes are not a reply of version %d", len(b), protocolVersion)
	}
	r := Reply{Op: Op(b[1] &^ answer), Status: Status(be.Uint16(b[2:])), ID: be.Uint32(b[4:]), STag: be.Uint32(b[8:]),
		Rights: verbs.Rights(b[12]), Allowed: verbs.Semantics(b[13]), Address: be.Uint64(b[16:]),
		Length: be.Uint64(b[24:]), Text: string(b[ReplyLength:])}
	texts := r.Op == Hint || r.Op == Join || r.Op == Open || r.Op == Whoami
	if r.Text != "" && (!texts || r.Status != OK || !isLine(r.Text)) {
		return Reply{}, fmt.Errorf("the reply has %d bytes of a text that it cannot have", len(r.Text))
	}
	if r.Address+r.Length < r.Address || r.STag&0xFF != 0 {
		return Reply{}, errors.New("the reply describes an invalid export")
	}
	return r, nil
}

// isLine reports whether a text can be in a reply, and be shown to a user as it is.
func isLine(text string) bool {
	return len(text) <= MaxText && utf8.ValidString(text) &&
		!strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Exports are the exports of a server. Implementations must be safe for concurrent use by the goroutines of all
// connections. Errors that wrap fs.ErrNotExist, fs.ErrInvalid or fs.ErrPermission get a status of their own, and errors
// that wrap a Status that one.
type Exports interface {
	// Open is called before an export is registered for a connection that wants these rights. The returned
	// configuration grants at most those.
	Open(name string, rights verbs.Rights) (Export, error)
	// Stat returns the configuration of an export with all the rights it can grant.
	Stat(name string) (verbs.RegionConfig, error)
	// Hint says what to open instead of a name that no export has, such as "did you mean disk?", or "".
	Hint(name string) string
}

// Clients are those of a server that have joined. Like Exports, they are used by all connections at once.
type Clients interface {
	// Join is called at most once for a connection, before anything is opened. When it returns, nothing that was sent
	// on the connections with the same secret and lower numbers is executed any more; if there is a higher number, it
	// returns Stale. It returns the server's instance.
	Join(secret string, number uint32) (instance string, err error)
	// Whoami returns the public name of the client that has joined: NameLength hexadecimal digits, which are as hard to
	// guess as a secret, and the same for all its connections; and what the server did for it before. It is called
	// after Join.
	Whoami() (name string, past Past, err error)
	// Fence ends the client with a public name: when it returns nil, nothing that it sent is executed any more, and it
	// cannot join again. If patience is not 0, a client that was heard within that time gets Alive instead. A client
	// of which nothing is known has ended. A client cannot fence itself: Malformed.
	Fence(name string, patience time.Duration) error
}

// Past says how many messages of an earlier connection a server executed, in the order in which the client posted them.
// It is the last one on which something followed the answer to Whoami. The client must not send those messages again,
// because others may have seen and changed the data since.
type Past struct {
	Number   uint32 // of the connection, as in Join; 0: there is none
	Messages uint64
}

// Export is an open export.
type Export struct {
	Region verbs.RegionConfig
	// Identity distinguishes files that have had the same name. Its last part, from a slash on, distinguishes them
	// within an instance of the server only. It may be empty.
	Identity string
	// Flush waits until all that was written to the export is on flash. nil: always.
	Flush func() error
	// Extend enlarges the export to at least size bytes, which may move it: nothing is accessed through the earlier
	// store any more. It returns the new one with its length; after an error, which is in the reply, the same. nil: it
	// cannot be enlarged.
	Extend func(size uint64) (verbs.RegionConfig, FileReply)
	// Close is called once, when the export is no longer registered; the name may belong to another one by then.
	Close func()
}

// Session is the server's side of one connection.
type Session struct {
	exports Exports
	Files   Files // nil: there are no file requests
	clients Clients
	domain  *verbs.Domain
	scope   *verbs.QueuePair
	most    int
	open    []opened
	asked   bool // there was a request
	joined  bool
}

type opened struct {
	Export
	region *verbs.Region
}

// NewSession returns the session of a connection. Regions are registered in domain d, scoped to this queue pair, up to
// most at a time.
func NewSession(e Exports, c Clients, d *verbs.Domain, scope *verbs.QueuePair, most int) *Session {
	return &Session{exports: e, clients: c, domain: d, scope: scope, most: most}
}

// Handle processes a request and appends the reply to out. After an error, the connection must be closed.
func (s *Session) Handle(request, out []byte) ([]byte, error) {
	if len(request) < RequestLength {
		return out, fmt.Errorf("%w: %d bytes", Malformed, len(request))
	}
	if s.Files != nil && request[0] == protocolVersion && ofFiles(Op(request[1])) {
		return s.handleFiles(request, out), nil
	}
	r, err := ParseRequest(request)
	reply := Reply{Op: r.Op &^ answer, ID: r.ID}
	if err == nil {
		reply, err = s.do(r, reply)
	}
	if err != nil {
		reply.Status = StatusOf(err)
	}
	return reply.Append(out), nil
}

func (s *Session) do(r Request, reply Reply) (Reply, error) {
	first := !s.asked
	s.asked = s.asked || r.Op != Ask
	switch r.Op {
	case Stat:
		c, err := s.exports.Stat(r.Name)
		if err != nil {
			return reply, err
		}
		reply.Length, reply.Rights, reply.Allowed = length(c), c.Rights, c.Allowed
	case Open:
		if len(s.open) >= s.most {
			return reply, TooMany
		}
		e, err := s.exports.Open(r.Name, r.Rights)
		if err != nil {
			return reply, err
		}
		x, err := s.register(e, r.Rights)
		if err != nil {
			return reply, err
		}
		x.ID = reply.ID
		return x, nil
	case Ask:
		if reply.Address = MaxFileReply; s.Files != nil {
			reply.Length = uint64(s.Files.Features())
		}
	case Hint:
		if text := s.exports.Hint(r.Name); isLine(text) {
			reply.Text = text
		}
	case Join:
		if !first {
			return reply, fmt.Errorf("%w: join is not the first request", Malformed)
		}
		instance, err := s.clients.Join(r.Name, r.STag)
		if err != nil {
			return reply, err
		}
		s.joined = true
		reply.Text = instance
	case Whoami:
		if !s.joined {
			return reply, fmt.Errorf("%w: a client without join has no name", Malformed)
		}
		name, past, err := s.clients.Whoami()
		if err != nil {
			return reply, err
		}
		reply.Text, reply.Address, reply.Length = name, uint64(past.Number), past.Messages
	case Fence:
		return reply, s.clients.Fence(r.Name, time.Duration(r.STag)*time.Millisecond)
	case Flush:
		i := s.find(r.STag)
		switch {
		case i < 0:
			return reply, NotOpen
		case s.open[i].Flush != nil:
			return reply, s.open[i].Flush()
		}
	case Close:
		i := s.find(r.STag)
		if i < 0 {
			return reply, NotOpen
		}
		s.open[i].end()
		s.open[i] = s.open[len(s.open)-1]
		s.open = s.open[:len(s.open)-1]
	}
	return reply, nil
}

// register makes an export accessible with the rights wanted, and returns the reply to its Open. It closes the export
// if that fails.
func (s *Session) register(e Export, want verbs.Rights) (reply Reply, err error) {
	e.Region.Rights &= want
	e.Region.Scope = s.scope
	g, err := s.domain.Register(e.Region)
	if err != nil {
		e.Close()
		return reply, err
	}
	s.open = append(s.open, opened{e, g})
	reply = Reply{Op: Open, STag: g.STag(), Address: g.Base(), Length: g.Length(), Rights: g.Rights(),
		Allowed: g.Allowed()}
	if s.joined && isLine(e.Identity) {
		reply.Text = e.Identity
	}
	return reply, nil
}

// find returns the index of an open export, or -1.
func (s *Session) find(stag uint32) int {
	return slices.IndexFunc(s.open, func(o opened) bool { return o.region.STag() == stag })
}

func (o opened) end() {
	o.region.Deregister()
	o.Close()
}

// length returns the length of the region that Register would create.
func length(c verbs.RegionConfig) uint64 {
	if c.Memory != nil {
		return uint64(len(c.Memory))
	}
	return c.Length
}

// End deregisters and closes all open exports.
func (s *Session) End() {
	for _, o := range s.open {
		o.end()
	}
	s.open = nil
}
