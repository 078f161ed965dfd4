package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net"
	"strings"

	"farflash/flash/cfs"
	"farflash/flash/ctl"
	"farflash/flash/meter"
	"farflash/flash/nbd"
	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
	"farflash/flash/verbs/stream"
	"farflash/internal/spelling"
)

// Files is the set of files to export. Implementations must be safe for concurrent use by the connections'
// goroutines. Errors that wrap fs.ErrNotExist, fs.ErrInvalid or fs.ErrPermission get a status of their own. Names are
// normalized by Name.
type Files interface {
	// Open opens a file and pins its location until Close. It grants at most these rights.
	Open(name string, rights verbs.Rights) (File, error)
	// List yields the names of all files. An error is the last element.
	List() iter.Seq2[string, error]
	// Drain marks a file as drained, or takes the mark away. Files opened from then on have it in File.Drained. It
	// outlives the server, unless brief says why not.
	Drain(name string, on bool) (brief, err error)
	// Drained returns the names of the drained files, sorted.
	Drained() []string
}

// Name normalizes an export's name, so that limits and use counts do not depend on its spelling: file systems treat
// d//f and /d/f/ as d/f.
func Name(path string) string {
	return strings.Join(strings.FieldsFunc(path, func(r rune) bool { return r == '/' }), "/")
}

// File is a pinned range of the pool.
type File struct {
	Base, Size uint64 // in bytes
	Rights     verbs.Rights
	Identity   string // as control.Export; empty: not known
	Number     uint32 // among all files, and not that of another file while it exists; 0: none
	Drained    bool
	Lasting    string // distinguishes it from files of other times, and outlives the server; empty: not known
	Close      func() error
	file       *cfs.File // nil: of another kind, which cannot grow
}

const change = verbs.RemoteWrite | verbs.RemoteAtomic

// Tree exports a file system with the credentials of one user.
func Tree(tree *cfs.FS, who cfs.Cred) Files { return files{tree, who} }

type files struct {
	tree *cfs.FS
	who  cfs.Cred
}

// Open implements Files. Atomics need both read and write permission.
func (t files) Open(name string, rights verbs.Rights) (File, error) {
	return t.open(cfs.Place{Path: name}, rights)
}

func (t files) open(at cfs.Place, rights verbs.Rights) (File, error) {
	may := verbs.Rights(0)
	for _, r := range []struct {
		need  cfs.Rights
		gives verbs.Rights
	}{{cfs.Read | cfs.Write, verbs.RemoteRead | change}, {cfs.Write, verbs.RemoteWrite}, {cfs.Read, verbs.RemoteRead}} {
		f, err := t.tree.OpenAt(t.who, at, r.need)
		if errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return File{}, named(err)
		}
		if may = r.gives & rights; may == 0 {
			return File{}, errors.Join(fs.ErrPermission, f.Close())
		}
		return pinned(f, may)
	}
	return File{}, fmt.Errorf("%s: %w", at.Path, fs.ErrPermission)
}

// pinned pins a file, or closes it.
func pinned(f *cfs.File, may verbs.Rights) (File, error) {
	base, size, err := f.Pin()
	if err != nil {
		return File{}, errors.Join(err, f.Close())
	}
	inode, made := f.Identity()
	return File{Base: base, Size: uint64(size), Rights: may, Identity: fmt.Sprintf("%d/%d", inode, made),
		Number: inode - 1, Drained: f.Drained(), Lasting: fmt.Sprintf("%d/%d", inode, f.Birth()), Close: f.Close,
		file: f}, nil
}

// named makes errors of a name those that Files promises: a name that no file can have is invalid, and a directory,
// or a path through a file, is no export.
func named(err error) error {
	switch {
	case errors.Is(err, cfs.ErrName):
		return fmt.Errorf("%w: %w", fs.ErrInvalid, err)
	case errors.Is(err, cfs.ErrNotDir), errors.Is(err, cfs.ErrIsDir):
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return err
}

// List implements Files.
func (t files) List() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		folders := []string{"/"}
		for len(folders) > 0 {
			at := folders[len(folders)-1]
			folders = folders[:len(folders)-1]
			all, err := t.tree.List(t.who, at)
			switch {
			case at != "/" && errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
				continue
			case err != nil:
				yield("", err)
				return
			}
			for _, i := range all {
				if i.Kind == cfs.Directory {
					folders = append(folders, i.Path)
				} else if !yield(Name(i.Path), nil) {
					return
				}
			}
		}
	}
}

// Drain implements Files.
func (t files) Drain(name string, on bool) (brief, err error) {
	brief, err = t.tree.Drain(t.who, name, on)
	return brief, named(err)
}

// Drained implements Files.
func (t files) Drained() []string {
	all := t.tree.Drained()
	for i, path := range all {
		all[i] = Name(path)
	}
	return all
}

// exports is a connection's view of the files, as control.Exports.
type exports struct {
	s    *Server
	peer string // address, or what else is known of the client
	conn *stream.Conn
	seat *seat // nil unless it has joined
}

// Open implements control.Exports.
func (e *exports) Open(name string, rights verbs.Rights) (x control.Export, err error) {
	if e.s.cfg.ReadOnly && rights&^verbs.RemoteRead != 0 {
		if rights &= verbs.RemoteRead; rights == 0 {
			return x, fs.ErrPermission
		}
	}
	name = Name(name)
	x, _, err = e.open(name, func() (File, error) { return e.s.cfg.Files.Open(name, rights) })
	return x, err
}

// open opens a file as an export with a name; empty: it has none.
func (e *exports) open(name string, open func() (File, error)) (x control.Export, f File, err error) {
	o, err := e.s.uses.take(name, User{"iwarp", e.peer}, e.s.cfg.PerExport)
	if err != nil {
		return x, f, err
	}
	f, err = open()
	if err == nil && f.Drained { // taken before this is looked at, so that whoever drains it knows of the use
		err = errors.Join(control.Draining, f.Close())
	}
	if err != nil {
		e.s.uses.give(o)
		return x, f, err
	}
	use := e.s.meter.Open(name, "iwarp")
	use.Peer = e.peer
	store, gate, err := e.s.store(name, f, use)
	if err != nil {
		use.Close()
		e.s.uses.give(o)
		return x, f, errors.Join(err, f.Close())
	}
	x.Region = region(f)
	x.Region.Store = store
	if f.Identity != "" {
		x.Identity = fmt.Sprintf("%v/%s", e.s.cfg.Pool.Shape().UUID, f.Identity)
	}
	user := e.s.cfg.Pool.User(f.Base, f.Size)
	x.Flush = func() error {
		at, number := use.Begin(1)
		trace := use.Trace(number)
		err := user.Sync()
		trace.Reach(meter.Done)
		use.End(at, meter.Flush, 0, reason(err))
		if trace != nil {
			trace.Kind = meter.Flush
			trace.End(reason(err))
		}
		return err
	}
	x.Extend = func(size uint64) (verbs.RegionConfig, control.FileReply) {
		at, reply := x.Region, control.FileReply{Status: control.Denied}
		if f.file == nil {
			return at, reply
		}
		reply = f.grow(size, user.Sync)
		other, behind, err := e.s.store(name, f, use)
		if err != nil { // the region keeps its store, at an address that may be another file's
			at.Length, reply.Status = 0, control.Failed
			return at, reply
		}
		gate.release()
		store, gate, user = other, behind, e.s.cfg.Pool.User(f.Base, f.Size)
		at.Store, at.Length = store, f.Size
		return at, reply
	}
	x.Close = func() {
		use.Close()
		gate.release()
		e.s.closed(o, f)
	}
	return x, f, nil
}

// closed releases one use of an export.
func (s *Server) closed(o *opening, f File) {
	s.shut(o, f)
	s.uses.give(o)
}

// shut closes the file of a use.
func (s *Server) shut(o *opening, f File) {
	if err := f.Close(); err != nil {
		s.log.Error("closing a file failed", "export", o.of.name, "error", err)
	}
}

// Stat implements control.Exports.
func (e *exports) Stat(name string) (verbs.RegionConfig, error) {
	rights := verbs.RemoteRead | change
	if e.s.cfg.ReadOnly {
		rights = verbs.RemoteRead
	}
	f, err := e.s.cfg.Files.Open(Name(name), rights)
	if err != nil {
		return verbs.RegionConfig{}, err
	}
	return region(f), f.Close()
}

// Hints are from the first hintNames files only, so that a wrong name is compared with few others, and list up to
// hintListed. A directory is still read whole.
const (
	hintNames  = 1000
	hintListed = 10
)

// Hint says which of the exports a name that none has was probably meant to be, or which there are if they are few. It
// is "" if it has nothing to say.
func Hint(name string, all []string) string {
	switch best := spelling.Nearest(name, all); {
	case best != "":
		return "did you mean " + best + "?"
	case len(all) > 0 && len(all) <= hintListed:
		return "the exports are " + strings.Join(all, ", ")
	}
	return ""
}

// Hint implements control.Exports.
func (e *exports) Hint(name string) string {
	var all []string
	for known, err := range e.s.cfg.Files.List() {
		if err != nil || len(all) == hintNames {
			break
		}
		all = append(all, known)
	}
	return Hint(Name(name), all)
}

// region describes a file as memory, without its store.
func region(f File) verbs.RegionConfig {
	return verbs.RegionConfig{Length: f.Size, Rights: f.Rights, Allowed: verbs.AllSemantics}
}

// volumes exports the files over NBD. The empty name is the default export.
type volumes struct {
	s      *Server
	peer   string
	listed bool
}

// List implements nbd.Exports.
func (v volumes) List() iter.Seq[nbd.Export] {
	return func(yield func(nbd.Export) bool) {
		if !v.listed {
			return
		}
		for name, err := range v.s.cfg.Files.List() {
			if err != nil {
				v.s.log.Error("listing files failed", "error", err)
				return
			}
			if !yield(nbd.Export{Name: name}) {
				return
			}
		}
	}
}

// Open implements nbd.Exports.
func (v volumes) Open(name string) (nbd.Export, error) {
	if name = Name(name); name == "" {
		if name = v.s.cfg.Default; name == "" {
			return nbd.Export{}, errors.New("no default export; give a name")
		}
	}
	x, err := v.s.export(name, User{"nbd", v.peer}, "")
	if errors.Is(err, control.Draining) {
		err = notNow{err}
	}
	return x, err
}

// notNow is an error that NBD's clients do not take for the absence of an export.
type notNow struct{ error }

// Is makes it an nbd.ErrPolicy.
func (notNow) Is(x error) bool { return x == nbd.ErrPolicy }

// readable opens a file that can be read, with all the rights that the server grants.
func (s *Server) readable(name string) (File, error) {
	want := verbs.RemoteRead | change
	if s.cfg.ReadOnly {
		want = verbs.RemoteRead
	}
	f, err := s.cfg.Files.Open(name, want)
	if err == nil && f.Rights&verbs.RemoteRead == 0 {
		err = errors.Join(fs.ErrPermission, f.Close())
	}
	return f, err
}

// export opens a file as a volume for a user. If identity is not empty, it must be that file's.
func (s *Server) export(name string, by User, identity string) (nbd.Export, error) {
	o, err := s.uses.take(name, by, s.cfg.PerExport)
	if err != nil {
		return nbd.Export{}, err
	}
	f, err := s.readable(name)
	switch {
	case err != nil:
	case identity != "" && f.Identity != identity:
		err = errors.Join(fs.ErrNotExist, f.Close())
	case f.Drained:
		err = errors.Join(control.Draining, f.Close())
	}
	if err != nil {
		s.uses.give(o)
		return nbd.Export{}, err
	}
	v, err := s.volume(name, by.Protocol, f)
	if err != nil {
		s.uses.give(o)
		return nbd.Export{}, errors.Join(err, f.Close())
	}
	return nbd.Export{Name: name, Volume: v, Leave: v.leave, ReadOnly: f.Rights&verbs.RemoteWrite == 0,
		Close: func() {
			v.close()
			// It may be called on a loop, which the file system's mutex must not hold up: its holder may wait for the
			// loop.
			s.uses.give(o)
			s.closing.Go(func() { s.shut(o, f) })
		}}, nil
}

// nbdExports returns the exports of an NBD client. Where TLS is required, names are listed only after TLS.
func (s *Server) nbdExports(from net.Addr, state *tls.ConnectionState) (nbd.Exports, error) {
	return volumes{s, peer(from), state != nil || !s.cfg.nbdSecret()}, nil
}

// pageSize is the page size of the controller.
const pageSize = ctl.Page
