package control

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"farflash/flash/verbs"
)

// Lengths of file requests and their replies, in bytes.
const (
	FileRequestLength = 72 // without the names
	MaxFileRequest    = FileRequestLength + 2*MaxName
	FileReplyLength   = 80 // without the body
	MaxFileReply      = 8 << 10
	entryLength       = 50 // without the name
	usageLength       = 32
)

// The file requests that change nothing.
const (
	Lookup   Op = 16 + iota // the attributes of a place
	List                    // the names of a directory after another name
	Usage                   // of the whole file system
	Sync                    // makes everything durable
	OpenFile                // opens the file at a place as an export
	Temp                    // opens a new file without a name, which is removed when it is closed
	Extend                  // enlarges an export that is open
)

// The file requests that change the tree.
const (
	Create Op = 32 + iota
	Mkdir
	Unlink
	Rmdir
	Rename
	Truncate
	Allocate
	Set
	Name // of a file without one
	ops
)

// ofFiles reports whether o is a file request.
func ofFiles(o Op) bool { return o >= Lookup && o <= Extend || o >= Create && o < ops }

// Changes reports whether a request changes the tree, and so is not repeated without a sequence number.
func (o Op) Changes() bool { return o >= Create && o < ops }

// Features are a set of a server's abilities.
type Features uint64

// The features.
const (
	FilesRead   Features = 1 << iota // file requests that change nothing
	FilesChange                      // all of them
)

// Handle identifies a file or directory; see cfs.Handle. The zero Handle is the root.
type Handle struct {
	Inode   uint32
	Birth   uint8
	Opening uint32
	Made    uint32
}

// Kind of a file or directory.
type Kind uint8

// The kinds.
const (
	NoKind Kind = iota
	Regular
	Directory
)

// Attributes describe a file or directory.
type Attributes struct {
	Handle   Handle
	Kind     Kind
	Perm     uint16
	UID, GID uint32
	Size     uint64
	Time     uint32 // seconds since 1970
	Changed  uint64 // increases with every change, but those of the data
}

// Mask names attributes that Set changes.
type Mask uint16

// The attributes.
const (
	SetPerm Mask = 1 << iota
	SetUID
	SetGID
	SetTime
	allMask = 1<<iota - 1
)

// FileRequest is a request about files. A place is a path from a handle on, which can be empty.
type FileRequest struct {
	Op       Op
	Rights   verbs.Rights // OpenFile, Temp
	Keep     bool         // Rename, Name: an existing target is an error; Truncate: a larger file stays as it is
	ID       uint32
	Sequence uint32 // of a request that changes the tree, from 1 on; 0: it has none. See Files.Do
	At       Handle
	To       Handle // Rename, Name: the directory of Other
	Size     uint64 // Create, Truncate, Allocate, Extend: in bytes; Set: the time in seconds
	Perm     uint16 // Create, Mkdir, Temp, Set
	Mask     Mask   // Set
	UID, GID uint32 // Create, Mkdir, Temp: the owner; Set
	Count    uint32 // List: most bytes of names in the reply; Extend: the export's STag
	Path     string
	Other    string // Rename, Name: the new path; List: the name after which to begin
}

func appendHandle(b []byte, h Handle) []byte {
	b = be.AppendUint32(b, h.Inode)
	b = append(b, h.Birth, 0, 0, 0)
	b = be.AppendUint32(b, h.Opening)
	return be.AppendUint32(b, h.Made)
}

func parseHandle(b []byte) (h Handle, ok bool) {
	h = Handle{be.Uint32(b), b[4], be.Uint32(b[8:]), be.Uint32(b[12:])}
	return h, b[5]|b[6]|b[7] == 0 && (h.Inode != 0 || h == Handle{})
}

// Fits returns an error if the request has a name that a server has no room to receive.
func (r FileRequest) Fits() error {
	for _, name := range []string{r.Path, r.Other} {
		if len(name) > MaxName {
			return fmt.Errorf("a path of %d bytes, the maximum is %d: %w", len(name), MaxName, TooLong)
		}
	}
	return nil
}

// Append appends the encoded request to b.
func (r FileRequest) Append(b []byte) []byte {
	keep := byte(0)
	if r.Keep {
		keep = 1
	}
	b = append(b, protocolVersion, byte(r.Op), byte(r.Rights), keep)
	b = be.AppendUint32(b, r.ID)
	b = be.AppendUint32(b, r.Sequence)
	b = be.AppendUint16(b, uint16(len(r.Path)))
	b = be.AppendUint16(b, uint16(len(r.Other)))
	b = appendHandle(appendHandle(b, r.At), r.To)
	b = be.AppendUint64(b, r.Size)
	b = be.AppendUint16(b, r.Perm)
	b = be.AppendUint16(b, uint16(r.Mask))
	b = be.AppendUint32(b, r.UID)
	b = be.AppendUint32(b, r.GID)
	b = be.AppendUint32(b, r.Count)
	return append(append(b, r.Path...), r.Other...)
}

// ParseFileRequest decodes a request. For a malformed one, it returns the fields that could be decoded.
func ParseFileRequest(b []byte) (FileRequest, error) {
	if len(b) < FileRequestLength {
		r := FileRequest{}
		if len(b) >= 8 {
			r.Op, r.ID = Op(b[1]), be.Uint32(b[4:])
		}
		return r, fmt.Errorf("%w: %d bytes, want at least %d", Malformed, len(b), FileRequestLength)
	}
	r := FileRequest{Op: Op(b[1]), Rights: verbs.Rights(b[2]), Keep: b[3] == 1, ID: be.Uint32(b[4:]),
		Sequence: be.Uint32(b[8:]), Size: be.Uint64(b[48:]), Perm: be.Uint16(b[56:]), Mask: Mask(be.Uint16(b[58:])),
		UID: be.Uint32(b[60:]), GID: be.Uint32(b[64:]), Count: be.Uint32(b[68:])}
	path, other, names := int(be.Uint16(b[12:])), int(be.Uint16(b[14:])), b[FileRequestLength:]
	at, okAt := parseHandle(b[16:])
	to, okTo := parseHandle(b[32:])
	r.At, r.To = at, to
	switch {
	case b[0] != protocolVersion:
		return r, fmt.Errorf("%w: version %d, want %d", Malformed, b[0], protocolVersion)
	case b[3] > 1 || !okAt || !okTo:
		return r, fmt.Errorf("%w: reserved bytes are not zero", Malformed)
	case path+other != len(names) || path > MaxName || other > MaxName:
		return r, fmt.Errorf("%w: %d bytes of names with lengths of %d and %d", Malformed, len(names), path, other)
	case !utf8.Valid(names[:path]) || !utf8.Valid(names[path:]) || strings.ContainsRune(string(names), 0):
		return r, fmt.Errorf("%w: the names are not text", Malformed)
	}
	r.Path, r.Other = string(names[:path]), string(names[path:])
	return r, r.check()
}

// needs says which fields each request has.
var needs = map[Op]struct{ rights, keep, to, size, perm, mask, owner, count, path, other bool }{
	Lookup: {path: true}, List: {path: true, other: true, count: true}, Usage: {}, Sync: {},
	OpenFile: {path: true, rights: true}, Temp: {rights: true, perm: true, owner: true},
	Extend: {size: true, count: true},
	Create: {path: true, perm: true, owner: true, size: true}, Mkdir: {path: true, perm: true, owner: true},
	Unlink: {path: true}, Rmdir: {path: true},
	Rename:   {path: true, other: true, to: true, keep: true},
	Truncate: {path: true, size: true, keep: true}, Allocate: {path: true, size: true},
	Set:  {path: true, mask: true, perm: true, owner: true, size: true},
	Name: {other: true, to: true, keep: true},
}

// check verifies that only fields of the request are set.
func (r FileRequest) check() error {
	n, known := needs[r.Op]
	all := verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic
	switch {
	case !known:
		return fmt.Errorf("%w: unknown request %d", Malformed, r.Op)
	case !r.Op.Changes() && r.Sequence != 0:
		return fmt.Errorf("%w: request %d has no sequence number", Malformed, r.Op)
	case n.rights && (r.Rights == 0 || r.Rights&^all != 0), !n.rights && r.Rights != 0:
		return fmt.Errorf("%w: rights %d", Malformed, r.Rights)
	case !n.keep && r.Keep, !n.to && r.To != Handle{}, !n.size && r.Size != 0, !n.perm && r.Perm != 0,
		!n.mask && r.Mask != 0, !n.owner && r.UID|r.GID != 0, !n.count && r.Count != 0, !n.path && r.Path != "",
		!n.other && r.Other != "", r.Mask&^allMask != 0, r.Perm&^0o777 != 0,
		r.Mask&SetTime != 0 && r.Size > 1<<32-1:
		return fmt.Errorf("%w: a field that request %d does not have", Malformed, r.Op)
	case (r.Op == Usage || r.Op == Sync || r.Op == Temp || r.Op == Extend) && r.At != Handle{}:
		return fmt.Errorf("%w: request %d has no place", Malformed, r.Op)
	}
	return nil
}

// FileReply is the reply to a file request.
type FileReply struct {
	Op        Op
	Status    Status
	ID        uint32
	Tree      uint64     // counts changes of the tree
	Directory uint64     // Changed of the directory in which the name is
	File      Attributes // of what the request is about, if it exists
	// Body is that of List, entries; of Usage; and of OpenFile, Temp and Extend, an encoded Reply. Extend has one after
	// an error too.
	Body []byte
}

func appendAttributes(b []byte, x Attributes) []byte {
	b = appendHandle(b, x.Handle)
	b = append(b, byte(x.Kind), 0)
	b = be.AppendUint16(b, x.Perm)
	b = be.AppendUint32(b, x.UID)
	b = be.AppendUint32(b, x.GID)
	b = be.AppendUint64(b, x.Size)
	b = be.AppendUint32(b, x.Time)
	return be.AppendUint64(b, x.Changed)
}

// attributesLength is that of encoded Attributes.
const attributesLength = 48

func parseAttributes(b []byte) (x Attributes, ok bool) {
	x.Handle, ok = parseHandle(b)
	x.Kind, x.Perm, x.UID, x.GID = Kind(b[16]), be.Uint16(b[18:]), be.Uint32(b[20:]), be.Uint32(b[24:])
	x.Size, x.Time, x.Changed = be.Uint64(b[28:]), be.Uint32(b[36:]), be.Uint64(b[40:])
	return x, ok && b[17] == 0 && x.Kind <= Directory && x.Perm&^0o777 == 0
}

// Append appends the encoded reply to b.
func (r FileReply) Append(b []byte) []byte {
	b = append(b, protocolVersion, byte(r.Op)|answer)
	b = be.AppendUint16(b, uint16(r.Status))
	b = be.AppendUint32(b, r.ID)
	b = be.AppendUint64(b, r.Tree)
	b = be.AppendUint64(b, r.Directory)
	b = appendAttributes(append(b, 0, 0, 0, 0, 0, 0, 0, 0), r.File)
	return append(b, r.Body...)
}

// errFileReply is the error for bytes that are no reply.
var errFileReply = errors.New("the bytes are not a reply to a file request")

// ParseFileReply decodes a reply. Body is a part of b.
func ParseFileReply(b []byte) (FileReply, error) {
	if len(b) < FileReplyLength || len(b) > MaxFileReply || b[0] != protocolVersion || b[1]&answer == 0 ||
		be.Uint64(b[24:]) != 0 {
		return FileReply{}, errFileReply
	}
	r := FileReply{Op: Op(b[1] &^ answer), Status: Status(be.Uint16(b[2:])), ID: be.Uint32(b[4:]),
		Tree: be.Uint64(b[8:]), Directory: be.Uint64(b[16:]), Body: b[FileReplyLength:]}
	ok := false
	r.File, ok = parseAttributes(b[32:])
	bodies := r.Status == OK && (r.Op == List || r.Op == Usage || r.Op == OpenFile || r.Op == Temp) || r.Op == Extend
	if !ok || len(r.Body) > 0 && !bodies || !ofFiles(r.Op) {
		return FileReply{}, errFileReply
	}
	return r, nil
}

// Opened returns the export of a reply to OpenFile, Temp or Extend.
func (r FileReply) Opened() (Reply, error) {
	x, err := ParseReply(r.Body)
	if err == nil && (x.Op != Open || x.Status != OK) {
		err = errFileReply
	}
	return x, err
}

// Entry is a name in a directory.
type Entry struct {
	Name string
	Attributes
}

// AppendEntry appends an entry of a List to a body unless it then has more than most bytes.
func AppendEntry(b []byte, e Entry, most int) (_ []byte, ok bool) {
	if len(b)+entryLength+len(e.Name) > most {
		return b, false
	}
	b = appendAttributes(b, e.Attributes)
	return append(be.AppendUint16(b, uint16(len(e.Name))), e.Name...), true
}

// Entries decodes the body of a List.
func (r FileReply) Entries() (all []Entry, err error) {
	for b := r.Body; len(b) > 0; {
		if len(b) < entryLength || int(be.Uint16(b[attributesLength:])) > len(b)-entryLength {
			return nil, errFileReply
		}
		x, ok := parseAttributes(b)
		name := string(b[entryLength:][:be.Uint16(b[attributesLength:])])
		if !ok || name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") ||
			len(all) > 0 && name <= all[len(all)-1].Name {
			return nil, errFileReply
		}
		all = append(all, Entry{name, x})
		b = b[entryLength+len(name):]
	}
	return all, nil
}

// Space is that of a file system, in bytes, and its numbers of files and directories.
type Space struct{ Used, Capacity, Files, Directories uint64 }

// AppendSpace appends the body of a Usage.
func AppendSpace(b []byte, x Space) []byte {
	for _, n := range []uint64{x.Used, x.Capacity, x.Files, x.Directories} {
		b = be.AppendUint64(b, n)
	}
	return b
}

// Space decodes the body of a Usage.
func (r FileReply) Space() (x Space, err error) {
	if len(r.Body) != usageLength {
		return x, errFileReply
	}
	b := r.Body
	return Space{be.Uint64(b), be.Uint64(b[8:]), be.Uint64(b[16:]), be.Uint64(b[24:])}, nil
}

// Files executes the file requests of a connection.
type Files interface {
	// Features says which requests are executed.
	Features() Features
	// Do executes a request other than OpenFile, Temp and Extend. One with a sequence number is executed once, also if
	// the client sends it again on its next connection, and then has the reply that it had: a client numbers its
	// requests and sends none before the one before has been answered.
	Do(r FileRequest) FileReply
	// OpenFile executes OpenFile and Temp. The returned configuration grants at most the rights of the request.
	OpenFile(r FileRequest) (Export, FileReply)
}

// handleFiles processes a file request and appends the reply to out.
func (s *Session) handleFiles(request, out []byte) []byte {
	r, err := ParseFileRequest(request)
	reply := FileReply{Status: Malformed}
	switch s.asked = true; {
	case err != nil:
	case r.Op == Extend:
		reply = s.extend(r)
	case r.Op == OpenFile || r.Op == Temp:
		reply = s.openFile(r)
	default:
		reply = s.Files.Do(r)
	}
	reply.Op, reply.ID = r.Op&^answer, r.ID
	return reply.Append(out)
}

func (s *Session) openFile(r FileRequest) FileReply {
	if len(s.open) >= s.most {
		return FileReply{Status: TooMany}
	}
	e, reply := s.Files.OpenFile(r)
	if reply.Status != OK {
		return reply
	}
	x, err := s.register(e, r.Rights)
	if err != nil {
		return FileReply{Status: StatusOf(err)}
	}
	reply.Body = x.Append(nil)
	return reply
}

// extend enlarges an export, which is registered anew, because it may be moved.
func (s *Session) extend(r FileRequest) FileReply {
	i := s.find(r.Count)
	switch {
	case i < 0:
		return FileReply{Status: NotOpen}
	case s.open[i].Extend == nil || s.open[i].Region.Rights&verbs.RemoteWrite == 0:
		return FileReply{Status: Denied}
	}
	e := s.open[i]
	e.region.Deregister() // no access is in progress at the address that it may leave
	s.open[i] = s.open[len(s.open)-1]
	s.open = s.open[:len(s.open)-1]
	cfg, reply := e.Extend(r.Size)
	e.Region.Store, e.Region.Length = cfg.Store, cfg.Length
	x, err := s.register(e.Export, e.Region.Rights)
	if err != nil {
		return FileReply{Status: StatusOf(err)}
	}
	reply.Body = x.Append(nil)
	return reply
}

// StatusOf is the status of an error of Exports.
func StatusOf(err error) (s Status) {
	switch {
	case errors.As(err, &s):
	case errors.Is(err, fs.ErrNotExist):
		s = NotFound
	case errors.Is(err, fs.ErrInvalid):
		s = Malformed
	case errors.Is(err, fs.ErrPermission):
		s = Denied
	case errors.Is(err, verbs.ErrFull):
		s = TooMany
	default:
		s = Failed
	}
	return s
}
