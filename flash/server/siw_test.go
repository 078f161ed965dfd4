package server_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"farflash/flash/client"
	"farflash/flash/extent"
	"farflash/flash/pool"
	"farflash/flash/server"
	"farflash/flash/verbs"
	"farflash/flash/verbs/siwtest"
	"farflash/flash/verbs/stream"
	"farflash/flash/wire"
)

// TestSiwDaemon has an unmodified Linux kernel open an export of the daemon, write to it durably, and read it back,
// with a small program over its verbs (.ci/siw.c). Our client then finds the data.
func TestSiwDaemon(t *testing.T) {
	d := begin(t, func(c *server.Config) { c.Handshake, c.Progress = siwtest.Deadline, siwtest.Deadline })
	_, port, err := net.SplitHostPort(d.address())
	if err != nil {
		t.Fatal(err)
	}
	lines := siwtest.Guest(t, "", fmt.Sprintf("remote %s %s disk", siwtest.Host, port))
	siwtest.Until(t, lines, "begins: ")
	siwtest.Until(t, lines, fmt.Sprintf("open: %d bytes, rights 3", size))
	siwtest.Until(t, lines, "1048576 bytes at 24582 are durable, and come back")
	siwtest.Until(t, lines, "closed")
	if end := siwtest.Until(t, lines, "ends: "); end != "0" {
		t.Fatalf("it ends with %s", end)
	}
	c, err := dial(t, d.address(), client.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f, err := c.Open("disk", verbs.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	got, want := make([]byte, 1<<20), make([]byte, 1<<20)
	if _, err := f.ReadAt(got, 6*4097); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		want[i] = byte((6*4097+i)*31 + 6)
	}
	if !bytes.Equal(got, want) {
		t.Error("what the kernel wrote is not what we read")
	}
}

// noticed is a store that signals when its contents change.
type noticed struct {
	verbs.Store
	changed chan struct{}
}

func (n noticed) Put(a *verbs.Access) {
	changed := a.Changed
	n.Store.Put(a)
	if changed {
		n.changed <- struct{}{}
	}
}

// perftest is the other side of the Linux perftest tools with -R: one connection on which the two sides exchange
// versions, sizes and keys, each message answered by one of the same kind, and a second one for the data.
type perftest struct {
	t      *testing.T
	pool   *extent.Extent
	region *verbs.Region
	domain *verbs.Domain
	store  noticed
	read   func(b []byte, at uint64) error
	l      *net.TCPListener
	// The server's buffer, once it has been announced.
	stag    uint32
	address uint64
}

// Layout of the message with the keys: 56 bytes, big-endian, at these offsets.
const (
	perftestKeys    = 56
	perftestSTag    = 16
	perftestAddress = 24

	perftestRounds = 60
	perftestSize   = 4096
)

func newPerftest(t *testing.T) *perftest {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pool")
	o := pool.DefaultOptions()
	o.Pool.Frames = 1024
	if _, err := pool.Format(o, 8<<20, path); err != nil {
		t.Fatal(err)
	}
	flash, _, err := pool.Open(o, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := flash.Close(); err != nil {
			t.Error(err)
		}
	})
	p := &perftest{t: t, read: flash.ReadAt}
	if p.pool, err = extent.New(flash, 0, 1<<20, nil); err != nil {
		t.Fatal(err)
	}
	p.store = noticed{p.pool, make(chan struct{}, 1<<12)}
	adapter, err := verbs.NewAdapter([16]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	p.domain = adapter.NewDomain(1)
	p.region, err = p.domain.Register(verbs.RegionConfig{Store: p.store, Length: p.pool.Size(), Base: 1 << 20,
		Rights: verbs.RemoteRead | verbs.RemoteWrite, Allowed: verbs.AllSemantics})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p.l = l.(*net.TCPListener)
	return p
}

func (p *perftest) accept(prepare func(*stream.Conn) error) *stream.Conn {
	p.t.Helper()
	if err := p.l.SetDeadline(time.Now().Add(siwtest.Patience)); err != nil {
		p.t.Fatal(err)
	}
	nc, err := p.l.Accept()
	if err != nil {
		p.t.Fatal(err)
	}
	cfg := stream.DefaultConfig()
	cfg.Setup, cfg.Progress, cfg.Prepare = siwtest.Deadline, siwtest.Deadline, prepare
	c, err := stream.Server(nc, p.domain, cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// run starts a perftest client in the machine and serves it.
func (p *perftest) run(command string) {
	p.t.Helper()
	lines := siwtest.Guest(p.t, "",
		fmt.Sprintf("%s -R -F -n %d -s %d -p %d %s", command, perftestRounds, perftestSize,
			p.l.Addr().(*net.TCPAddr).Port, siwtest.Host))
	siwtest.Until(p.t, lines, "begins: ")
	var in [8][256]byte
	tell := p.accept(func(c *stream.Conn) error {
		for i := range in {
			if err := c.PostReceive(verbs.Receive{ID: uint64(i), Local: in[i][:]}); err != nil {
				return err
			}
		}
		return nil
	})
	defer tell.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var x [1]verbs.Completion
		for tell.Wait(x[:]) > 0 {
			if x[0].Err != nil {
				return // the end of the connection
			}
			b := in[x[0].ID][:]
			reply := bytes.Clone(b[:x[0].Length])
			if stag := binary.BigEndian.Uint32(b[perftestSTag:]); len(reply) == perftestKeys && stag != 0 {
				binary.BigEndian.PutUint32(reply[perftestSTag:], p.region.STag())
				binary.BigEndian.PutUint64(reply[perftestAddress:], p.region.Base())
			}
			if tell.PostReceive(verbs.Receive{ID: x[0].ID, Local: b}) != nil ||
				tell.Post(verbs.Work{Op: wire.Send, Local: reply, Quiet: true}) != nil {
				return
			}
		}
	}()
	conn := p.accept(nil)
	result := siwtest.Until(p.t, lines, "4096 ")
	if end := siwtest.Until(p.t, lines, "ends: "); end != "0" {
		p.t.Errorf("%s ends with %s", command, end)
	}
	if err := tell.Close(); err != nil {
		p.t.Error(err)
	}
	<-ended
	c := conn.Counters()
	p.t.Logf("%s: %s; %d bytes read, %d written by the kernel", command, result, c.ReadBytes, c.WriteBytes)
	if err := conn.Close(); err != nil {
		p.t.Error(err)
	}
	// The table starts with the number of rounds, followed by times.
	if !regexp.MustCompile(fmt.Sprintf(`^\s*%d\s+[0-9.]+`, perftestRounds)).MatchString(result) {
		p.t.Errorf("%s: %q", command, result)
	}
}

// TestSiwReadLatency serves a kernel's ib_read_lat with reads of flash.
func TestSiwReadLatency(t *testing.T) { newPerftest(t).run("ib_read_lat") }

// TestSiwWriteLatency is a client of a kernel's ib_write_lat: each side writes to the other's memory when it sees the
// other's write, detected by the last byte. Our memory is flash. The opposite roles are impossible: the server would
// write first, which MPA forbids a responder to do before it has received from the initiator (RFC 5044, 7.1.2, rule 4),
// and ours obeys that.
func TestSiwWriteLatency(t *testing.T) {
	p := newPerftest(t)
	page := make([]byte, perftestSize)
	p.ask("ib_write_lat", false, func(c *stream.Conn) {
		for count := byte(1); count <= perftestRounds; count++ {
			// A write arrives in several segments; the last one has the last byte.
			for clear(page); page[len(page)-1] != count; {
				<-p.store.changed
				if err := p.read(page, 0); err != nil || page[len(page)-1] != count && page[len(page)-1] != count-1 {
					t.Fatalf("the kernel's write %d ends with %d (%v)", count, page[len(page)-1], err)
				}
			}
			if err := c.Post(verbs.Work{Op: wire.Write, Local: page, STag: p.stag, Offset: p.address}); err != nil {
				t.Fatal(err)
			}
			var x [1]verbs.Completion
			if c.Wait(x[:]) != 1 || x[0].Err != nil {
				t.Fatalf("write %d: %v", count, x[0].Err)
			}
		}
	})
}

// TestSiwReads is a client of a kernel's ib_read_lat: we read its memory.
func TestSiwReads(t *testing.T) {
	p := newPerftest(t)
	p.ask("ib_read_lat", true, func(c *stream.Conn) {
		for i := range perftestRounds {
			if err := c.Post(verbs.Work{Op: wire.ReadReq, Local: make([]byte, perftestSize), STag: p.stag,
				Offset: p.address}); err != nil {
				t.Fatal(err)
			}
			var x [1]verbs.Completion
			if c.Wait(x[:]) != 1 || x[0].Err != nil {
				t.Fatalf("read %d: %v", i, x[0].Err)
			}
		}
	})
}

// ask starts a perftest server in the machine and acts as its client: it exchanges the messages of perftest's client,
// dials the data connection, and runs data. With over set, the server does not see the data operations and is sent a
// message at the end.
func (p *perftest) ask(command string, over bool, data func(*stream.Conn)) {
	p.t.Helper()
	port := p.l.Addr().(*net.TCPAddr).Port
	if err := p.l.Close(); err != nil {
		p.t.Fatal(err)
	}
	lines := siwtest.Guest(p.t, fmt.Sprintf(",hostfwd=tcp:127.0.0.1:%d-:7174", port),
		fmt.Sprintf("%s -R -F -n %d -s %d -p 7174", command, perftestRounds, perftestSize))
	siwtest.Until(p.t, lines, "begins: ")
	dial := func(tries int) *stream.Conn {
		cfg := stream.DefaultConfig()
		// After its reply, siw misses messages that arrive before it has switched to FPDUs.
		cfg.Setup, cfg.Progress, cfg.Settle = siwtest.Deadline, siwtest.Deadline, time.Second
		for try := 0; ; try++ {
			nc, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err == nil {
				var c *stream.Conn
				if c, err = stream.Client(nc, p.domain, cfg); err == nil {
					// until it listens, qemu accepts the connection and drops it
					p.t.Cleanup(func() { c.Close() })
					return c
				}
			}
			if try == tries {
				p.t.Fatal(err)
			}
			time.Sleep(500 * time.Millisecond)
		}
	}
	tell := dial(60)
	in := make([]byte, 256)
	say := func(b []byte) []byte {
		p.t.Helper()
		if err := tell.PostReceive(verbs.Receive{Local: in}); err != nil {
			p.t.Fatal(err)
		}
		if err := tell.Post(verbs.Work{Op: wire.Send, Local: b, Quiet: true}); err != nil {
			p.t.Fatal(err)
		}
		var x [1]verbs.Completion
		if tell.Wait(x[:]) != 1 || x[0].Err != nil || !x[0].Receive {
			p.t.Fatalf("%+v, %v", x[0], tell.Err())
		}
		return in[:x[0].Length]
	}
	// perftest's version, page size, cache line size, and MTU code.
	for _, text := range []string{"6.06" + strings.Repeat("\x00", 12), "\x00\x00\x10\x00", "\x00\x00\x00\x40",
		"3\x00\x00\x40"} {
		say([]byte(text))
	}
	nothing, keys := make([]byte, perftestKeys), make([]byte, perftestKeys)
	binary.BigEndian.PutUint32(keys[4:], 16)
	binary.BigEndian.PutUint32(keys[8:], 2)
	binary.BigEndian.PutUint32(keys[perftestSTag:], p.region.STag())
	binary.BigEndian.PutUint64(keys[perftestAddress:], p.region.Base())
	say(nothing)
	conn := dial(3)
	say(nothing)
	for range 4 {
		theirs := say(keys)
		p.stag, p.address = binary.BigEndian.Uint32(theirs[perftestSTag:]),
			binary.BigEndian.Uint64(theirs[perftestAddress:])
	}
	data(conn)
	if over {
		say(keys)
	}
	c := conn.Counters()
	for _, c := range []*stream.Conn{conn, tell} {
		select { // let it close first: perftest fails if it has no connection to disconnect
		case <-c.Done():
		case <-time.After(siwtest.Deadline):
		}
		if err := c.Close(); err != nil {
			p.t.Error(err)
		}
	}
	if end := siwtest.Until(p.t, lines, "ends: "); end != "0" {
		p.t.Errorf("%s ends with %s", command, end)
	}
	p.t.Logf("%s: %d bytes read, %d written by the kernel", command, c.ReadBytes, c.WriteBytes)
}
