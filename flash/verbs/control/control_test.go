package control_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
	"farflash/flash/verbs/stream"
	"farflash/flash/verbs/verbstest"
	"farflash/flash/wire"
	"farflash/internal/patience"
)

// exports has one file, and one that is read-only.
type exports struct {
	store *verbstest.Pages
	mu    sync.Mutex
	open  int
}

func (e *exports) find(name string) (verbs.RegionConfig, error) {
	c := verbs.RegionConfig{Store: e.store, Offset: 4096, Length: 8192, Base: 1 << 20,
		Rights: verbs.RemoteRead | verbs.RemoteWrite, Allowed: verbs.Sync}
	switch name {
	case "file":
	case "frozen":
		c.Rights = verbs.RemoteRead
	case "broken":
		c.Length = 1 << 40
	case "..":
		return c, fs.ErrInvalid
	default:
		return c, fs.ErrNotExist
	}
	return c, nil
}

func (e *exports) Hint(name string) string {
	switch name {
	case "long":
		return strings.Repeat("x", control.MaxText+1)
	case "longest":
		return strings.Repeat("x", control.MaxText)
	case "lines":
		return "two\nlines"
	}
	return "did you mean file?"
}

func (e *exports) Stat(name string) (verbs.RegionConfig, error) { return e.find(name) }

func (e *exports) Join(_ string, number uint32) (string, error) {
	if number == 7 {
		return "", control.Stale
	}
	return "instance", nil
}

func (e *exports) Whoami() (string, control.Past, error) {
	return public, control.Past{Number: 3, Messages: 9}, nil
}

func (e *exports) Fence(name string, patience time.Duration) error {
	switch {
	case name == public:
		return control.Malformed
	case patience > time.Second:
		return control.Alive
	}
	return nil
}

const public = "0123456789abcdef"

func (e *exports) Open(name string, rights verbs.Rights) (control.Export, error) {
	c, err := e.find(name)
	if err == nil && rights&^c.Rights != 0 {
		err = fs.ErrPermission
	}
	if err != nil {
		return control.Export{}, err
	}
	count := func(n int) {
		e.mu.Lock()
		e.open += n
		e.mu.Unlock()
	}
	count(1)
	x := control.Export{Region: c, Identity: "identity", Close: sync.OnceFunc(func() { count(-1) })}
	if name == "frozen" {
		x.Flush = func() error { return fs.ErrPermission }
	}
	return x, nil
}

func adapter(t testing.TB) *verbs.Adapter {
	t.Helper()
	var key [16]byte
	if _, err := rand.Read(key[:]); err != nil {
		t.Fatal(err)
	}
	a, err := verbs.NewAdapter(key)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// serve runs a server for one connection in a domain and returns a client and a function that stops both.
func serve(t testing.TB, e *exports, d *verbs.Domain) (*stream.Conn, func() error) {
	t.Helper()
	x, y := net.Pipe()
	ended := make(chan error, 1)
	go func() {
		server := control.NewServer(e, e, d, 3)
		cfg := stream.DefaultConfig()
		cfg.Prepare = server.Prepare
		c, err := stream.Server(y, d, cfg)
		if err != nil {
			ended <- err
			return
		}
		err = server.Serve(c)
		c.Close()
		ended <- err
	}()
	c, err := stream.Client(x, adapter(t).NewDomain(1), stream.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return c, func() error { c.Close(); return <-ended }
}

// TestSession opens, reads, writes and closes exports, and verifies that forbidden operations are refused.
func TestSession(t *testing.T) {
	e := &exports{store: verbstest.NewPages(65536, 4096, 1)}
	copy(e.store.Bytes()[4096:], "what the file holds")
	a := adapter(t)
	conn, stop := serve(t, e, a.NewDomain(8))
	c := control.NewClient(conn)
	s, err := c.Stat("frozen")
	if err != nil || s.Length != 8192 || s.Rights != verbs.RemoteRead || s.Allowed != verbs.Sync || s.STag != 0 ||
		s.Address != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	f, err := c.Open("file", verbs.RemoteRead|verbs.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 19)
	works := []verbs.Work{{Op: wire.ReadReq, Local: got, STag: f.STag, Offset: f.Address},
		{Op: wire.Write, Local: []byte("WHAT"), STag: f.STag | uint32(verbs.Sync), Offset: f.Address, Fence: true},
		{Op: wire.ReadReq}}
	if err := conn.Post(works...); err != nil {
		t.Fatal(err)
	}
	for range works {
		x := make([]verbs.Completion, 1)
		if conn.Wait(x) != 1 || x[0].Err != nil {
			t.Fatal(x[0].Err, conn.Err())
		}
	}
	if string(got) != "what the file holds" || !bytes.HasPrefix(e.store.Medium()[4096:], []byte("WHAT")) {
		t.Errorf("%q, %q", got, e.store.Medium()[4096:4104])
	}
	for _, x := range []struct {
		name   string
		rights verbs.Rights
		want   error
	}{
		{"nothing", verbs.RemoteRead, control.NotFound}, {"frozen", verbs.RemoteWrite, control.Denied},
		{"broken", verbs.RemoteRead, control.Failed}, {"..", verbs.RemoteRead, control.Malformed},
		{"file", 0, control.Malformed}, {"", verbs.RemoteRead, control.Malformed},
		{"a\x00b", verbs.RemoteRead, control.Malformed},
	} {
		if _, err := c.Open(x.name, x.rights); err != x.want {
			t.Errorf("opening %q with rights %d: %v, want %v", x.name, x.rights, err, x.want)
		}
	}
	for i := range 3 {
		if _, err := c.Open("frozen", verbs.RemoteRead); (err == nil) != (i < 2) || i == 2 && err != control.TooMany {
			t.Errorf("open %d: %v", i, err)
		}
	}
	if err := c.Close(f.STag); err != nil {
		t.Error(err)
	}
	if err := c.Close(f.STag); err != control.NotOpen {
		t.Errorf("closing twice: %v", err)
	}
	if e.open != 2 {
		t.Errorf("%d are open", e.open)
	}
	if err := stop(); err == nil || e.open != 0 || a.Regions() != 0 {
		t.Errorf("%v, %d open, %d regions", err, e.open, a.Regions())
	}
}

// secret is one that a client can have.
const secret = "0123456789abcdef0123456789abcdef"

// TestJoin verifies that only the first request can join, that files have their identities in replies to those who
// joined only, and how a flush is answered.
func TestJoin(t *testing.T) {
	e := &exports{store: verbstest.NewPages(65536, 4096, 1)}
	session := control.NewSession(e, e, adapter(t).NewDomain(9), nil, 9)
	ask := func(s *control.Session, r control.Request) control.Reply {
		t.Helper()
		out, err := s.Handle(r.Append(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := control.ParseReply(out)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	join := control.Request{Op: control.Join, Name: secret, STag: 1}
	open := control.Request{Op: control.Open, Name: "file", Rights: verbs.RemoteRead}
	if r := ask(session, join); r.Status != control.OK || r.Text != "instance" {
		t.Errorf("join: %+v", r)
	}
	if r := ask(session, join); r.Status != control.Malformed {
		t.Errorf("joining twice: %+v", r)
	}
	if r := ask(session, control.Request{Op: control.Whoami}); r.Status != control.OK || r.Text != public ||
		r.Address != 3 || r.Length != 9 {
		t.Errorf("whoami: %+v", r)
	}
	for patience, want := range map[uint32]control.Status{0: control.OK, 1000: control.OK, 1001: control.Alive} {
		r := ask(session, control.Request{Op: control.Fence, Name: strings.Repeat("0", 16), STag: patience})
		if r.Status != want {
			t.Errorf("fence after %d ms: %v, want %v", patience, r.Status, want)
		}
	}
	file := ask(session, open)
	if file.Text != "identity" {
		t.Errorf("open: %+v", file)
	}
	open.Name = "frozen"
	frozen := ask(session, open)
	for stag, want := range map[uint32]control.Status{file.STag: control.OK, frozen.STag: control.Denied,
		frozen.STag + 256: control.NotOpen} {
		if r := ask(session, control.Request{Op: control.Flush, STag: stag}); r.Status != want {
			t.Errorf("flush: %v, want %v", r.Status, want)
		}
	}
	session.End()

	late := control.NewSession(e, e, adapter(t).NewDomain(9), nil, 9)
	if r := ask(late, open); r.Status != control.OK || r.Text != "" {
		t.Errorf("open without join: %+v", r)
	}
	if r := ask(late, control.Request{Op: control.Whoami}); r.Status != control.Malformed {
		t.Errorf("whoami without join: %+v", r)
	}
	if r := ask(late, join); r.Status != control.Malformed {
		t.Errorf("joining after the first request: %+v", r)
	}
	late.End()
	join.STag = 7
	if r := ask(control.NewSession(e, e, adapter(t).NewDomain(9), nil, 9), join); r.Status != control.Stale {
		t.Errorf("a late connection: %+v", r)
	}
	if e.open != 0 {
		t.Errorf("%d are open", e.open)
	}
}

// TestRightsAsked verifies that a client gets only the rights it asked for, though the export allows more.
func TestRightsAsked(t *testing.T) {
	e := &exports{store: verbstest.NewPages(65536, 4096, 1)}
	a := adapter(t)
	conn, stop := serve(t, e, a.NewDomain(8))
	f, err := control.NewClient(conn).Open("file", verbs.RemoteRead)
	if err != nil || f.Rights != verbs.RemoteRead {
		t.Fatalf("%+v, %v", f, err)
	}
	if err := conn.Post(verbs.Work{Op: wire.Write, Local: []byte("x"), STag: f.STag, Offset: f.Address, Quiet: true},
		verbs.Work{Op: wire.ReadReq}); err != nil {
		t.Fatal(err)
	}
	for x := make([]verbs.Completion, 1); conn.Wait(x) == 1; {
		if x[0].Err == nil && x[0].Op == wire.ReadReq {
			t.Error("who asked to read has written")
		}
	}
	if err := stop(); !errors.Is(err, wire.FaultTaggedSTag) || e.store.Bytes()[4096] != 0 {
		t.Errorf("%v, and the file begins with %d", err, e.store.Bytes()[4096])
	}
}

// TestLongNames verifies that a name of maximum length works, and that a longer one is refused before it is sent.
func TestLongNames(t *testing.T) {
	e := &exports{store: verbstest.NewPages(65536, 4096, 1)}
	conn, stop := serve(t, e, adapter(t).NewDomain(8))
	c := control.NewClient(conn)
	if _, err := c.Stat(strings.Repeat("n", control.MaxName)); err != control.NotFound {
		t.Error(err)
	}
	if _, err := c.Stat(strings.Repeat("n", control.MaxName+1)); err == nil || errors.Is(err, control.Malformed) {
		t.Error(err)
	}
	if _, err := c.Stat("file"); err != nil {
		t.Errorf("after a name that was refused: %v", err)
	}
	stop()
}

// TestHint verifies that hints are a line of text of bounded length, which no other reply has.
func TestHint(t *testing.T) {
	e := &exports{store: verbstest.NewPages(65536, 4096, 1)}
	conn, stop := serve(t, e, adapter(t).NewDomain(8))
	c := control.NewClient(conn)
	for name, want := range map[string]string{"fiel": "did you mean file?", "long": "", "lines": "",
		"longest": strings.Repeat("x", control.MaxText)} {
		if got, err := c.Hint(name); got != want || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	_ = stop()
	for _, r := range []control.Reply{{Op: control.Stat, Text: "x"}, {Op: control.Hint, Text: "x\x1b[2J"},
		{Op: control.Hint, Text: "\xff"}, {Op: control.Hint, Status: control.Malformed, Text: "x"},
		{Op: control.Hint, Text: strings.Repeat("x", control.MaxText+1)}} {
		if got, err := control.ParseReply(r.Append(nil)); err == nil {
			t.Errorf("%+v", got)
		}
	}
}

// TestStatuses verifies that each status has its own text, and an unknown one its number.
func TestStatuses(t *testing.T) {
	said := map[string]control.Status{}
	for s := control.Malformed; s <= control.Sequence; s++ {
		text := s.Error()
		if was, twice := said[text]; twice || text == "" || strings.Contains(text, fmt.Sprint(uint16(s))) {
			t.Errorf("status %d says %q, as does %d", s, text, was)
		}
		said[text] = s
	}
	if got := (control.Sequence + 1).Error(); !strings.Contains(got, fmt.Sprint(uint16(control.Sequence+1))) {
		t.Errorf("%q", got)
	}
}

// TestSTagOfAnother verifies that an export opened by one connection is unusable by another, whether or not they share
// a domain.
func TestSTagOfAnother(t *testing.T) {
	for _, shared := range []bool{false, true} {
		e := &exports{store: verbstest.NewPages(65536, 4096, 1)}
		a := adapter(t)
		first := a.NewDomain(8)
		second := first
		if !shared {
			second = a.NewDomain(8)
		}
		one, stopOne := serve(t, e, first)
		two, stopTwo := serve(t, e, second)
		f, err := control.NewClient(one).Open("file", verbs.RemoteRead)
		if err != nil {
			t.Fatal(err)
		}
		if err := two.Post(verbs.Work{Op: wire.ReadReq, Local: make([]byte, 8), STag: f.STag,
			Offset: f.Address}); err != nil {
			t.Fatal(err)
		}
		x := make([]verbs.Completion, 1)
		if two.Wait(x); !errors.Is(x[0].Err, wire.FaultReadDomain) {
			t.Errorf("shared %v: %v", shared, x[0].Err)
		}
		if err := stopTwo(); !errors.Is(err, wire.FaultReadDomain) {
			t.Errorf("shared %v: %v", shared, err)
		}
		if _, err := control.NewClient(one).Stat("file"); err != nil {
			t.Errorf("shared %v: the first connection: %v", shared, err)
		}
		if err := stopOne(); err == nil || a.Regions() != 0 {
			t.Errorf("shared %v: %v, %d regions are left", shared, err, a.Regions())
		}
	}
}

// TestMalformed changes every byte that has a fixed meaning in requests and replies, and their lengths.
func TestMalformed(t *testing.T) {
	open := control.Request{Op: control.Open, Name: "file", Rights: verbs.RemoteRead, ID: 7}.Append(nil)
	for _, at := range []int{0, 3, 8, 11, 12, 13, 14, 15} {
		b := bytes.Clone(open)
		b[at] ^= 0x40
		if r, err := control.ParseRequest(b); !errors.Is(err, control.Malformed) || r.ID != 7 {
			t.Errorf("byte %d: %+v, %v", at, r, err)
		}
	}
	for name, want := range map[string]bool{strings.Repeat("x", control.MaxName): true,
		strings.Repeat("x", control.MaxName+1): false} {
		if _, err := control.ParseRequest(control.Request{Op: control.Stat, Name: name}.Append(nil)); (err == nil) !=
			want {
			t.Errorf("a name of %d bytes: %v", len(name), err)
		}
	}
	a := adapter(t)
	e := &exports{store: verbstest.NewPages(16384, 4096, 0)}
	s := control.NewSession(e, e, a.NewDomain(1), nil, 1)
	for n := range control.RequestLength {
		if out, err := s.Handle(open[:n], nil); !errors.Is(err, control.Malformed) || len(out) > 0 {
			t.Errorf("%d bytes: %x, %v", n, out, err)
		}
	}
	reply := control.Reply{Op: control.Open, ID: 7, STag: 0xABCDEF00, Rights: verbs.RemoteRead, Address: 4096,
		Length: 4096}.Append(nil)
	for _, at := range []int{0, 1, 14, 15} {
		b := bytes.Clone(reply)
		b[at] ^= 0x80
		if r, err := control.ParseReply(b); err == nil {
			t.Errorf("byte %d: %+v", at, r)
		}
	}
	for _, b := range [][]byte{reply[:len(reply)-1], append(bytes.Clone(reply), 0)} {
		if r, err := control.ParseReply(b); err == nil {
			t.Errorf("%d bytes: %+v", len(b), r)
		}
	}
}

// TestSideBySide sends several requests before any reply, as many as there are receives, in several rounds; each reply
// must match its request.
func TestSideBySide(t *testing.T) {
	e := &exports{store: verbstest.NewPages(65536, 4096, 1)}
	conn, stop := serve(t, e, adapter(t).NewDomain(8))
	const under, rounds = 4, 3
	var in [under][control.ReplyLength]byte
	for round := range rounds {
		for i := range under {
			name := []string{"file", "frozen", "nothing", "file"}[i]
			r := control.Request{Op: control.Stat, Name: name, ID: uint32(round*under + i)}
			if err := errors.Join(conn.PostReceive(verbs.Receive{ID: uint64(i), Local: in[i][:]}),
				conn.Post(verbs.Work{Op: wire.Send, Local: r.Append(nil), Quiet: true})); err != nil {
				t.Fatal(err)
			}
		}
		for range under {
			var x [1]verbs.Completion
			if conn.Wait(x[:]) != 1 || x[0].Err != nil {
				t.Fatal(x[0].Err, conn.Err())
			}
			i := int(x[0].ID)
			r, err := control.ParseReply(in[i][:])
			want := []control.Status{control.OK, control.OK, control.NotFound, control.OK}[i]
			if err != nil || r.ID != uint32(round*under+i) || r.Status != want ||
				r.Status == control.OK && (r.Rights == verbs.RemoteRead) != (i == 1) {
				t.Errorf("request %d of round %d: %+v, %v", i, round, r, err)
			}
		}
	}
	_ = stop()
}

// FuzzSession feeds a server an arbitrary request: the reply must parse, match the request, and grant no more than was
// asked for.
func FuzzSession(f *testing.F) {
	f.Add(control.Request{Op: control.Open, Name: "file", Rights: 3, ID: 7}.Append(nil))
	f.Add(control.Request{Op: control.Stat, Name: "frozen"}.Append(nil))
	f.Add(control.Request{Op: control.Stat, Name: ".."}.Append(nil))
	f.Add(control.Request{Op: control.Hint, Name: "lines"}.Append(nil))
	f.Add(control.Request{Op: control.Close, STag: 256}.Append(nil))
	f.Add(control.Request{Op: control.Flush, STag: 256}.Append(nil))
	f.Add(control.Request{Op: control.Join, STag: 1, Name: secret}.Append(nil))
	f.Add(control.Request{Op: control.Whoami}.Append(nil))
	f.Add(control.Request{Op: control.Fence, STag: 5000, Name: "fedcba9876543210"}.Append(nil))
	f.Add(control.Request{Op: control.Open, Name: strings.Repeat("x", control.MaxName+1), Rights: 1}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer patience.Limit()()
		e := &exports{store: verbstest.NewPages(16384, 4096, 0)}
		a := adapter(t)
		d := a.NewDomain(2)
		s := control.NewSession(e, e, d, nil, 1)
		for i := range 2 {
			out, err := s.Handle(b, nil)
			if err != nil {
				if len(b) >= control.RequestLength {
					t.Fatal(err)
				}
				return
			}
			reply, err := control.ParseReply(out)
			if err != nil {
				t.Fatal(err)
			}
			r, err := control.ParseRequest(b)
			bad := err != nil || r.Op != control.Hint && r.Name == ".." || r.Op == control.Join && i > 0 ||
				r.Op == control.Whoami || r.Op == control.Fence && r.Name == public
			if reply.ID != r.ID || bad != (reply.Status == control.Malformed) {
				t.Fatalf("%+v to %+v, %v", reply, r, err)
			}
			if err == nil && !bytes.Equal(r.Append(nil), b) {
				t.Fatalf("%x comes back as %x", b, r.Append(nil))
			}
			if reply.Status == control.OK && r.Op == control.Open &&
				(reply.Rights&^r.Rights != 0 || reply.Length != 8192) {
				t.Fatalf("%+v to %+v", reply, r)
			}
		}
		if d.Regions() > 1 || e.open != d.Regions() {
			t.Fatalf("%d regions, %d open", d.Regions(), e.open)
		}
		if s.End(); d.Regions() != 0 || e.open != 0 {
			t.Fatal("something is left open")
		}
	})
}

// FuzzReply verifies that arbitrary bytes are rejected as a reply or round-trip.
func FuzzReply(f *testing.F) {
	f.Add(control.Reply{Op: control.Open, STag: 256, Rights: 1, Address: 4096, Length: 8192}.Append(nil))
	f.Add(control.Reply{Op: control.Hint, Text: "did you mean disk?"}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer patience.Limit()()
		r, err := control.ParseReply(b)
		if err == nil && !bytes.Equal(r.Append(nil), b) {
			t.Fatalf("%x comes back as %x", b, r.Append(nil))
		}
	})
}

func Example() {
	request := control.Request{Op: control.Open, Name: "file", Rights: verbs.RemoteRead, ID: 7}.Append(nil)
	fmt.Printf("%x\n", request)
	reply := control.Reply{Op: control.Open, ID: 7, STag: 0xABCDEF00, Rights: verbs.RemoteRead, Allowed: verbs.Sync,
		Address: 0, Length: 4096}.Append(nil)
	fmt.Printf("%x\n", reply)
	// Output:
	// 0101010000000007000000000004000066696c65
	// 0181000000000007abcdef000101000000000000000000000000000000001000
}

// TestRequestsAsTheyMayBe verifies that each request must have exactly the fields of its kind.
func TestRequestsAsTheyMayBe(t *testing.T) {
	for _, x := range []struct {
		request control.Request
		ok      bool
	}{
		{control.Request{Op: control.Open, Name: "n", Rights: verbs.RemoteRead}, true},
		{control.Request{Op: control.Open, Name: "n", Rights: verbs.RemoteRead, STag: 256}, false},
		{control.Request{Op: control.Open, Name: "n"}, false},
		{control.Request{Op: control.Open, Name: "n", Rights: verbs.RemoteInvalidate}, false},
		{control.Request{Op: control.Open, Rights: verbs.RemoteRead}, false},
		{control.Request{Op: control.Stat, Name: "n"}, true},
		{control.Request{Op: control.Stat}, false},
		{control.Request{Op: control.Stat, Name: "n", Rights: verbs.RemoteRead}, false},
		{control.Request{Op: control.Stat, Name: "n", STag: 256}, false},
		{control.Request{Op: control.Close, STag: 256}, true},
		{control.Request{Op: control.Close}, false},
		{control.Request{Op: control.Close, STag: 256, Name: "n"}, false},
		{control.Request{Op: control.Close, STag: 256, Rights: verbs.RemoteRead}, false},
		{control.Request{Op: 0, Name: "n"}, false},
		{control.Request{Op: control.Hint, Name: "n"}, true},
		{control.Request{Op: control.Hint}, false},
		{control.Request{Op: control.Hint, Name: "n", Rights: verbs.RemoteRead}, false},
		{control.Request{Op: control.Join, Name: secret, STag: 1}, true},
		{control.Request{Op: control.Join, Name: secret}, false},
		{control.Request{Op: control.Join, Name: secret[1:], STag: 1}, false},
		{control.Request{Op: control.Join, Name: "A" + secret[1:], STag: 1}, false},
		{control.Request{Op: control.Join, Name: secret, STag: 1, Rights: verbs.RemoteRead}, false},
		{control.Request{Op: control.Flush, STag: 256}, true},
		{control.Request{Op: control.Flush}, false},
		{control.Request{Op: control.Flush, STag: 256, Name: "n"}, false},
		{control.Request{Op: control.Whoami}, true},
		{control.Request{Op: control.Whoami, STag: 1}, false},
		{control.Request{Op: control.Whoami, Name: "n"}, false},
		{control.Request{Op: control.Whoami, Rights: verbs.RemoteRead}, false},
		{control.Request{Op: control.Fence, Name: public}, true},
		{control.Request{Op: control.Fence, Name: public, STag: 1}, true},
		{control.Request{Op: control.Fence, Name: public[1:]}, false},
		{control.Request{Op: control.Fence, Name: "A" + public[1:]}, false},
		{control.Request{Op: control.Fence, Name: public, Rights: verbs.RemoteRead}, false},
		{control.Request{Op: control.Fence + 1, Name: public}, false},
	} {
		got, err := control.ParseRequest(x.request.Append(nil))
		if (err == nil) != x.ok || err != nil && !errors.Is(err, control.Malformed) || x.ok && got != x.request {
			t.Errorf("%+v is read as %+v, %v", x.request, got, err)
		}
	}
}

// TestRepliesOfOthers verifies that a client rejects a reply to another request.
func TestRepliesOfOthers(t *testing.T) {
	for _, change := range []func(*control.Reply){
		func(r *control.Reply) {}, func(r *control.Reply) { r.ID++ }, func(r *control.Reply) { r.Op = control.Open },
		func(r *control.Reply) { r.ID, r.Op = 0, control.Open },
	} {
		x, y := net.Pipe()
		ended := make(chan error, 1)
		in := make([]byte, control.MaxRequest)
		var right, sent control.Reply
		go func() {
			cfg := stream.DefaultConfig()
			cfg.Prepare = func(c *stream.Conn) error { return c.PostReceive(verbs.Receive{Local: in}) }
			c, err := stream.Server(y, adapter(t).NewDomain(1), cfg)
			if err != nil {
				ended <- err
				return
			}
			var got [1]verbs.Completion
			if c.Wait(got[:]) == 1 && got[0].Err == nil {
				var q control.Request
				if q, err = control.ParseRequest(in[:got[0].Length]); err == nil {
					right = control.Reply{Op: q.Op, ID: q.ID, Length: 4096, Rights: verbs.RemoteRead}
					sent = right
					change(&sent)
					err = c.Post(verbs.Work{Op: wire.Send, Local: sent.Append(nil), Quiet: true})
				}
			}
			ended <- err
			for c.Wait(got[:]) > 0 {
			}
			_ = c.Close()
		}()
		conn, err := stream.Client(x, adapter(t).NewDomain(1), stream.DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		reply, err := control.NewClient(conn).Stat("file")
		if serving := <-ended; serving != nil {
			t.Fatal(serving)
		}
		if (err == nil) != (sent == right) {
			t.Errorf("a reply of %+v where one of %+v is due is taken: %v, %+v", sent, right, err == nil, reply)
		}
		conn.Close()
	}
}
