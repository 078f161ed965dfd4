package control_test

import (
	"bytes"
	"errors"
	"io/fs"
	"reflect"
	"strings"
	"testing"

	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
	"farflash/flash/verbs/verbstest"
	"farflash/internal/patience"
)

// filing executes file requests: it echoes them, and opens one file, which it can enlarge once.
type filing struct {
	*exports
	last control.FileRequest
}

func (f *filing) Features() control.Features { return control.FilesRead }

func (f *filing) Do(r control.FileRequest) control.FileReply {
	f.last = r
	reply := control.FileReply{Status: control.OK, Tree: 9, File: attributes}
	if r.Op == control.List {
		reply.Body, _ = control.AppendEntry(nil, control.Entry{Name: "a", Attributes: attributes}, 1000)
	}
	return reply
}

func (f *filing) OpenFile(r control.FileRequest) (control.Export, control.FileReply) {
	f.last = r
	e, err := f.Open("file", r.Rights)
	if err != nil {
		return e, control.FileReply{Status: control.StatusOf(err)}
	}
	cfg := e.Region
	cfg.Length = 4096
	e.Region.Length = 4096
	e.Extend = func(size uint64) (verbs.RegionConfig, control.FileReply) {
		if size > 8192 {
			return cfg, control.FileReply{Status: control.Busy}
		}
		cfg.Length, cfg.Base = size, 5<<20
		return cfg, control.FileReply{Status: control.OK, File: attributes}
	}
	return e, control.FileReply{Status: control.OK, File: attributes}
}

var (
	handle     = control.Handle{Inode: 7, Birth: 3, Opening: 9, Made: 2}
	attributes = control.Attributes{Handle: handle, Kind: control.Regular, Perm: 0o640, UID: 5, GID: 6, Size: 1 << 40,
		Time: 1e9, Changed: 1 << 50}
)

// valid are requests of each kind with all the fields that they have.
var valid = []control.FileRequest{
	{Op: control.Lookup, At: handle, Path: "a/b"}, {Op: control.List, At: handle, Path: "d", Other: "m", Count: 900},
	{Op: control.Usage}, {Op: control.Sync}, {Op: control.OpenFile, Rights: verbs.RemoteRead, At: handle},
	{Op: control.Temp, Rights: verbs.RemoteRead | verbs.RemoteWrite, Perm: 0o600, UID: 1, GID: 2},
	{Op: control.Extend, Size: 8192, Count: 256},
	{Op: control.Create, Sequence: 1, At: handle, Path: "f", Perm: 0o644, UID: 3, GID: 4, Size: 99},
	{Op: control.Mkdir, Sequence: 2, Path: "d", Perm: 0o755, UID: 3}, {Op: control.Unlink, Path: "f"},
	{Op: control.Rmdir, Sequence: 1<<32 - 1, Path: "d"},
	{Op: control.Rename, Path: "f", To: handle, Other: "g", Keep: true}, {Op: control.Truncate, At: handle, Size: 7},
	{Op: control.Allocate, Path: "f", Size: 1 << 20}, {Op: control.Name, At: handle, To: handle, Other: "n"},
	{Op: control.Set, At: handle, Mask: control.SetPerm | control.SetTime, Perm: 0o777, Size: 1<<32 - 1},
}

// TestFileRequests sends each kind of request, with names of all lengths, through both codecs.
func TestFileRequests(t *testing.T) {
	e := &filing{exports: &exports{store: verbstest.NewPages(65536, 4096, 1)}}
	s := control.NewSession(e, e, adapter(t).NewDomain(9), nil, 9)
	s.Files = e
	defer s.End()
	for id, r := range valid {
		r.ID = uint32(id)
		out, err := s.Handle(r.Append(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := control.ParseFileReply(out)
		if err != nil || reply.ID != r.ID || reply.Op != r.Op {
			t.Fatalf("%+v: %+v, %v", r, reply, err)
		}
		if r.Op == control.Extend {
			if reply.Status != control.NotOpen {
				t.Errorf("extending nothing: %v", reply.Status)
			}
			continue
		}
		if e.last != r || reply.File != attributes || reply.Status != control.OK {
			t.Errorf("%+v arrived as %+v and was answered by %+v", r, e.last, reply)
		}
	}
	long := strings.Repeat("x", control.MaxName)
	r := control.FileRequest{Op: control.Rename, Path: long, Other: long}
	if got, err := control.ParseFileRequest(r.Append(nil)); err != nil || got != r || r.Fits() != nil {
		t.Error(err, r.Fits())
	}
	r.Other += "x"
	if _, err := control.ParseFileRequest(r.Append(nil)); !errors.Is(err, control.Malformed) ||
		!errors.Is(r.Fits(), control.TooLong) {
		t.Error(err, r.Fits())
	}
	out, err := s.Handle(control.Request{Op: control.Ask}.Append(nil), nil)
	if reply, failed := control.ParseReply(out); err != nil || failed != nil ||
		reply.Length != uint64(control.FilesRead) || reply.Address != control.MaxFileReply {
		t.Errorf("%+v, %v, %v", reply, err, failed)
	}
}

// TestFileRequestFields sets each field of each request to something that it cannot have.
func TestFileRequestFields(t *testing.T) {
	bad := 0
	for _, r := range valid {
		for field, change := range map[string]func(*control.FileRequest){
			"rights": func(x *control.FileRequest) { x.Rights ^= 3 }, "keep": func(x *control.FileRequest) { x.Keep = true },
			"to":       func(x *control.FileRequest) { x.To = handle },
			"at":       func(x *control.FileRequest) { x.At = handle },
			"size":     func(x *control.FileRequest) { x.Size = 1 << 33 },
			"perm":     func(x *control.FileRequest) { x.Perm = 0o1000 },
			"mask":     func(x *control.FileRequest) { x.Mask |= 1 << 4 },
			"owner":    func(x *control.FileRequest) { x.UID = 1 << 31 },
			"count":    func(x *control.FileRequest) { x.Count = 77 },
			"path":     func(x *control.FileRequest) { x.Path = "p" },
			"other":    func(x *control.FileRequest) { x.Other = "o" },
			"sequence": func(x *control.FileRequest) { x.Sequence = 8 }, "op": func(x *control.FileRequest) { x.Op += 30 },
			"zeros": func(x *control.FileRequest) { x.Path = "a\x00" }, "text": func(x *control.FileRequest) { x.Other = "\xff" },
		} {
			x := r
			change(&x)
			got, err := control.ParseFileRequest(x.Append(nil))
			switch {
			case err == nil && got != x:
				t.Errorf("%s of %d: %+v", field, r.Op, got)
			case err != nil && !errors.Is(err, control.Malformed):
				t.Error(err)
			case err != nil:
				bad++
			case field == "perm" || field == "mask" || field == "op" || field == "zeros" || field == "text":
				t.Errorf("%s of %d is not noticed", field, r.Op)
			}
		}
	}
	if bad < 120 {
		t.Errorf("%d of %d changes are noticed", bad, 15*len(valid))
	}
}

// TestExtend enlarges an export, which then has another STag, and fails to enlarge it more, after which it has another
// one still.
func TestExtend(t *testing.T) {
	e := &filing{exports: &exports{store: verbstest.NewPages(65536, 4096, 1)}}
	d := adapter(t).NewDomain(9)
	s := control.NewSession(e, e, d, nil, 9)
	s.Files = e
	ask := func(r control.FileRequest) (control.FileReply, control.Reply) {
		t.Helper()
		out, err := s.Handle(r.Append(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := control.ParseFileReply(out)
		if err != nil {
			t.Fatal(err)
		}
		x, err := reply.Opened()
		if err != nil {
			t.Fatal(err)
		}
		return reply, x
	}
	_, first := ask(control.FileRequest{Op: control.OpenFile, Path: "f", Rights: verbs.RemoteRead | verbs.RemoteWrite})
	_, second := ask(control.FileRequest{Op: control.Extend, Count: first.STag, Size: 8192})
	busy, third := ask(control.FileRequest{Op: control.Extend, Count: second.STag, Size: 8193})
	if first.Length != 4096 || second.Length != 8192 || third.Length != 8192 || busy.Status != control.Busy ||
		first.STag == second.STag || second.STag == third.STag || third.Rights != first.Rights || d.Regions() != 1 {
		t.Errorf("%+v\n%+v\n%+v\n%v, %d regions", first, second, third, busy.Status, d.Regions())
	}
	if s.End(); d.Regions() != 0 || e.open != 0 {
		t.Errorf("%d regions, %d open", d.Regions(), e.open)
	}
}

// TestEntries verifies that a list ends where its reply does, and that only names in order come back from one.
func TestEntries(t *testing.T) {
	var body []byte
	var all []control.Entry
	for i := range 26 {
		e := control.Entry{Name: strings.Repeat(string(rune('a'+i)), 1+i), Attributes: attributes}
		next, ok := control.AppendEntry(body, e, 300)
		if len(next) > 300 || !ok && len(next) != len(body) {
			t.Fatalf("%d bytes, %v", len(next), ok)
		}
		if body = next; !ok {
			break
		}
		all = append(all, e)
	}
	got, err := control.FileReply{Body: body}.Entries()
	if err != nil || !reflect.DeepEqual(got, all) || len(all) != 5 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, name := range []string{"", ".", "..", "a/b", "a\x00", "A"} {
		bad, _ := control.AppendEntry(bytes.Clone(body), control.Entry{Name: name, Attributes: attributes}, 1000)
		if got, err := (control.FileReply{Body: bad}).Entries(); err == nil {
			t.Errorf("%q: %+v", name, got)
		}
	}
	space := control.Space{Used: 1, Capacity: 2, Files: 3, Directories: 4}
	if got, err := (control.FileReply{Body: control.AppendSpace(nil, space)}).Space(); got != space || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if !errors.Is(control.Exists, fs.ErrExist) || !errors.Is(control.NotFound, fs.ErrNotExist) ||
		!errors.Is(control.Denied, fs.ErrPermission) || errors.Is(control.Busy, fs.ErrExist) {
		t.Error("statuses are not the errors of io/fs")
	}
}

// FuzzFileRequest feeds a server an arbitrary file request: the reply must parse and match the request, which must
// round-trip unless it is malformed.
func FuzzFileRequest(f *testing.F) {
	for _, r := range valid {
		f.Add(r.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer patience.Limit()()
		if len(b) < control.RequestLength || b[0] != 1 || b[1] < byte(control.Lookup) || b[1] > byte(control.Name) ||
			b[1] > byte(control.Extend) && b[1] < byte(control.Create) {
			return // not a file request
		}
		e := &filing{exports: &exports{store: verbstest.NewPages(16384, 4096, 0)}}
		d := adapter(t).NewDomain(2)
		s := control.NewSession(e, e, d, nil, 1)
		s.Files = e
		out, err := s.Handle(b, nil)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := control.ParseFileReply(out)
		if err != nil {
			t.Fatal(err)
		}
		r, err := control.ParseFileRequest(b)
		if reply.ID != r.ID || reply.Op != r.Op || (err != nil) != (reply.Status == control.Malformed) {
			t.Fatalf("%+v to %+v, %v", reply, r, err)
		}
		if err == nil && !bytes.Equal(r.Append(nil), b) {
			t.Fatalf("%x comes back as %x", b, r.Append(nil))
		}
		if s.End(); d.Regions() != 0 || e.open != 0 {
			t.Fatal("something is left open")
		}
	})
}

// FuzzFileReply verifies that arbitrary bytes are rejected as a reply or round-trip, with what their bodies hold.
func FuzzFileReply(f *testing.F) {
	body, _ := control.AppendEntry(nil, control.Entry{Name: "a", Attributes: attributes}, 1000)
	f.Add(control.FileReply{Op: control.List, ID: 3, Tree: 9, Directory: 8, File: attributes, Body: body}.Append(nil))
	f.Add(control.FileReply{Op: control.Usage, Body: control.AppendSpace(nil, control.Space{Used: 4})}.Append(nil))
	f.Add(control.FileReply{Op: control.Create, Status: control.Exists}.Append(nil))
	opened := control.Reply{Op: control.Open, STag: 256, Length: 4096}.Append(nil)
	f.Add(control.FileReply{Op: control.Extend, Status: control.Busy, Body: opened}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer patience.Limit()()
		r, err := control.ParseFileReply(b)
		if err != nil {
			return
		}
		if !bytes.Equal(r.Append(nil), b) {
			t.Fatalf("%x comes back as %x", b, r.Append(nil))
		}
		if all, err := r.Entries(); err == nil {
			var again []byte
			for _, e := range all {
				again, _ = control.AppendEntry(again, e, len(r.Body))
			}
			if !bytes.Equal(again, r.Body) {
				t.Fatalf("%x comes back as %x", r.Body, again)
			}
		}
		if x, err := r.Space(); err == nil && !bytes.Equal(control.AppendSpace(nil, x), r.Body) {
			t.Fatalf("%+v of %x", x, r.Body)
		}
		_, _ = r.Opened()
	})
}
