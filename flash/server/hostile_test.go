package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"farflash/flash/client"
	"farflash/flash/nbd"
	"farflash/flash/nbd/nbdtest"
	"farflash/flash/server"
	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
	"farflash/flash/verbs/stream"
	"farflash/flash/wire"
	"farflash/numeric/rng"
)

// peer is a client without the checks of package client: a raw iWARP connection.
type peer struct {
	t testing.TB
	*stream.Conn
	control *control.Client
}

func (d *daemon) peer() *peer {
	d.t.Helper()
	nc, err := net.Dial("tcp", d.address())
	if err != nil {
		d.t.Fatal(err)
	}
	a, err := verbs.NewAdapter([16]byte{9})
	if err != nil {
		d.t.Fatal(err)
	}
	c, err := stream.Client(nc, a.NewDomain(0), stream.DefaultConfig())
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = c.Close() })
	return &peer{d.t, c, control.NewClient(c)}
}

func (p *peer) open(name string, rights verbs.Rights) control.Reply {
	p.t.Helper()
	r, err := p.control.Open(name, rights)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// ends posts work and verifies that the server ends the connection.
func (p *peer) ends(label string, work ...verbs.Work) {
	p.t.Helper()
	if err := p.Post(work...); err != nil {
		p.t.Fatal(err)
	}
	var out [1]verbs.Completion
	until := time.After(10 * time.Second)
	for p.Err() == nil {
		select {
		case <-p.Done():
		case <-until:
			p.t.Fatalf("%s: the connection goes on", label)
		default:
			if n := p.Poll(out[:]); n == 0 {
				time.Sleep(time.Millisecond)
			} else if out[0].Err == nil && (out[0].Op == wire.ReadReq || out[0].Op == wire.AtomicReq) {
				p.t.Fatalf("%s: %v is answered", label, out[0].Op)
			}
		}
	}
	var t verbs.Terminated
	if !errors.As(p.Err(), &t) || !t.Remote {
		p.t.Errorf("%s: %v", label, p.Err())
	}
}

// secret is data that no attacker may see.
var secret = bytes.Repeat([]byte("secret! "), 1024)

// TestAttackSTag (RFC 5042, 6.1.1, 6.2.1, 6.3.1): an STag is useless on another connection, even one that may open the
// same export; so are a guessed STag, its neighbour, a closed one, and one with flags that the region does not allow.
func TestAttackSTag(t *testing.T) { ways(t, testAttackSTag) }

func testAttackSTag(t *testing.T) {
	d := begin(t, nil)
	owner := d.open(d.dial(), "disk")
	if _, err := owner.WriteDurable(secret, 0); err != nil {
		t.Fatal(err)
	}
	stag, at := owner.Region()
	got := make([]byte, 64)
	read := func(stag uint32) verbs.Work { return verbs.Work{Op: wire.ReadReq, Local: got, STag: stag, Offset: at} }
	write := func(stag uint32) verbs.Work {
		return verbs.Work{Op: wire.Write, Local: []byte("overwritten"), STag: stag, Offset: at}
	}
	for label, x := range map[string]uint32{"another connection's": stag, "a neighbour": stag + 1<<8, "zero": 0,
		"all ones": 0xFFFFFFFF, "with unknown flags": stag | 0x80} {
		d.peer().ends(label+", read", read(x))
		d.peer().ends(label+", write", write(x))
		d.peer().ends(label+", atomic",
			verbs.Work{Op: wire.AtomicReq, Operand: wire.Operand{Data: 1}, STag: x, Offset: at})
		p := d.peer()
		p.open("disk", all)
		p.ends(label+", by who has the export open as well", read(x))
	}
	p := d.peer()
	r := p.open("disk", all)
	if err := p.control.Close(r.STag); err != nil {
		t.Fatal(err)
	}
	p.ends("one that was closed", read(r.STag))
	draw := rng.NewStream(1, "guesses")
	for range 20 {
		d.peer().ends("a guess", read(uint32(draw.Uint64())))
	}
	if !bytes.Equal(got, make([]byte, len(got))) {
		t.Error("an attacker has read something")
	}
	if _, err := owner.ReadAt(got, 0); err != nil || !bytes.Equal(got, secret[:64]) {
		t.Errorf("an attacker has changed something: %v", err)
	}
}

// TestAttackBounds (RFC 5042, 6.2.1, 6.3.1): no byte beyond an export is read or written, whatever the offset and
// length.
func TestAttackBounds(t *testing.T) { ways(t, testAttackBounds) }

func testAttackBounds(t *testing.T) {
	d := begin(t, nil)
	other := d.open(d.dial(), "other")
	if _, err := other.WriteDurable(secret, 0); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		at int64
		n  int
	}{{size, 1}, {size - 1, 2}, {size - 4096, 4097}, {-1, 1}, {-1, 2}, {1 << 40, 1}, {-size, 8}, {size + 4096, 4096},
		{0, size + 1}} {
		for _, op := range []wire.Op{wire.ReadReq, wire.Write} {
			p := d.peer()
			r := p.open("disk", all)
			p.ends(fmt.Sprintf("%v of %d at %d", op, x.n, x.at),
				verbs.Work{Op: op, Local: make([]byte, x.n), STag: r.STag, Offset: r.Address + uint64(x.at)})
		}
	}
	for _, at := range []int64{size, size - 4096 + 4096, 1 << 62} {
		p := d.peer()
		r := p.open("disk", all)
		p.ends("an atomic beyond the end",
			verbs.Work{Op: wire.AtomicReq, Operand: wire.Operand{Data: 1}, STag: r.STag,
				Offset: r.Address + uint64(at)})
	}
	got := make([]byte, len(secret))
	if _, err := other.ReadAt(got, 0); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("a neighbour was changed: %v", err)
	}
}

// TestAttackRights (RFC 5042, 6.3.4, 6.3.5): an export opened with one right does not permit other operations.
func TestAttackRights(t *testing.T) { ways(t, testAttackRights) }

func testAttackRights(t *testing.T) {
	d := begin(t, nil)
	for label, x := range map[string]struct {
		rights verbs.Rights
		op     wire.Op
	}{
		"write with the right to read":   {verbs.RemoteRead, wire.Write},
		"read with the right to write":   {verbs.RemoteWrite, wire.ReadReq},
		"atomic with the right to write": {verbs.RemoteWrite, wire.AtomicReq},
		"atomic with the right to read":  {verbs.RemoteRead, wire.AtomicReq},
	} {
		p := d.peer()
		r := p.open("disk", x.rights)
		w := verbs.Work{Op: x.op, STag: r.STag, Offset: r.Address}
		if x.op != wire.AtomicReq {
			w.Local = make([]byte, 8)
		}
		p.ends(label, w)
	}
	p := d.peer()
	r := p.open("locked", all)
	p.ends("write to a file that may only be read",
		verbs.Work{Op: wire.Write, Local: []byte{1}, STag: r.STag, Offset: r.Address})
	p = d.peer()
	r = p.open("disk", all)
	p.ends("revoking the server's region", verbs.Work{Op: wire.SendInv, Local: make([]byte, 16), Invalidate: r.STag})
}

// TestAttackExports (RFC 5042, 6.4.1): the number of open exports is bounded per connection and in total; a
// connection's exports are released when it ends.
func TestAttackExports(t *testing.T) { ways(t, testAttackExports) }

func testAttackExports(t *testing.T) {
	d := begin(t, func(c *server.Config) { c.Open, c.PerExport = 4, 6 })
	a, b := d.peer(), d.peer()
	for range 4 {
		a.open("disk", all)
	}
	if _, err := a.control.Open("disk", all); !errors.Is(err, control.TooMany) {
		t.Errorf("a fifth export: %v", err)
	}
	b.open("disk", all)
	b.open("/disk", all)
	if _, err := b.control.Open("//disk/", all); !errors.Is(err, control.TooMany) {
		t.Errorf("a seventh use of the export: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	for i := 0; ; i++ { // the server notices the end a little later
		if _, err := b.control.Open("disk", all); err == nil {
			break
		} else if i == 1000 {
			t.Fatalf("what ended connections had open is not free again: %v", err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestAttackControl sends malformed control requests: the server answers or ends the connection, and continues to serve
// others.
func TestAttackControl(t *testing.T) { ways(t, testAttackControl) }

func testAttackControl(t *testing.T) {
	// Requests that are only refused leave their connection open.
	d := begin(t, func(c *server.Config) { c.Connections = 32 })
	draw := rng.NewStream(1, "requests")
	for i := range 60 {
		p := d.peer()
		b := make([]byte, int(draw.IntN(64)))
		for k := range b {
			b[k] = byte(draw.Uint64())
		}
		if i%3 == 0 {
			b = control.Request{Op: control.Open, Rights: all, Name: "../../etc/passwd\xff"}.Append(nil)
		}
		if i%7 == 0 {
			b = make([]byte, control.MaxRequest+1+i)
		}
		if err := p.Post(verbs.Work{Op: wire.Send, Local: b}); err != nil {
			t.Fatal(err)
		}
		for range int(draw.IntN(3)) {
			_ = p.Post(verbs.Work{Op: wire.Imm, Immediate: draw.Uint64()}) // the server decides how to react
		}
	}
	if _, err := d.open(d.dial(), "disk").WriteDurable([]byte{1}, 0); err != nil {
		t.Errorf("others are not served any more: %v", err)
	}
}

// TestAttackBytes sends bytes that are not MPA, truncated startup frames, and random bytes after a valid startup.
func TestAttackBytes(t *testing.T) { ways(t, testAttackBytes) }

func testAttackBytes(t *testing.T) {
	d := begin(t, nil)
	draw := rng.NewStream(1, "bytes")
	for i := range 60 {
		nc, err := net.Dial("tcp", d.address())
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, int(draw.IntN(3000)))
		for k := range b {
			b[k] = byte(draw.Uint64())
		}
		if i%2 == 0 {
			f := wire.StartupFields{CRC: i%4 == 0, Revision: 1}
			start := make([]byte, f.Length())
			f.Put(start)
			b = append(start, b...)
		}
		_, _ = nc.Write(b) // the server may have closed already
		if i%3 == 0 {
			_ = nc.(*net.TCPConn).SetLinger(0) // a reset
		}
		if err := nc.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; ; i++ { // the server may need a moment to notice that the last of them has closed
		c, err := dial(t, d.address(), client.DefaultConfig())
		if err == nil {
			if _, err := d.open(c, "disk").WriteDurable([]byte{1}, 0); err != nil {
				t.Errorf("others are not served any more: %v", err)
			}
			_ = c.Close()
			return
		} else if i == 1000 {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestAttackFlood (RFC 5042, 6.4.1): silent or trickling connections are bounded in number and time, claim no place of
// authenticated clients, and are closed at the deadline.
func TestAttackFlood(t *testing.T) { ways(t, testAttackFlood) }

func testAttackFlood(t *testing.T) {
	d := begin(t, func(c *server.Config) { c.Handshakes, c.Handshake = 8, 300*time.Millisecond })
	f := d.open(d.dial(), "disk")
	before := runtime.NumGoroutine()
	var all []net.Conn
	for i := range 100 {
		nc, err := net.Dial("tcp", d.address())
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			_, _ = nc.Write([]byte("MPA ID Req")) // and no more; it may be closed already
		}
		all = append(all, nc)
	}
	if n := runtime.NumGoroutine() - before; n > 2*2*8+4 { // 8 handshakes, 8 that end, two goroutines each
		t.Errorf("%d goroutines for a flood of connections", n)
	}
	if _, err := f.WriteDurable([]byte{1}, 0); err != nil {
		t.Errorf("who was there before is not served any more: %v", err)
	}
	for i, nc := range all {
		_ = nc.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := nc.Read(make([]byte, 1)); err == nil || errors.Is(err, io.ErrNoProgress) {
			t.Errorf("connection %d is answered", i)
		} else if e := net.Error(nil); errors.As(err, &e) && e.Timeout() {
			t.Errorf("connection %d is still open", i)
		}
		_ = nc.Close()
	}
	if _, err := d.open(d.dial(), "disk").WriteDurable([]byte{1}, 0); err != nil {
		t.Errorf("nobody is served after a flood: %v", err)
	}
}

// TestFloodFromOneHost verifies that a host with silent connections displaces its own and not those of a client of
// another host, nor one of its own that proceeds, though no deadline passes.
func TestFloodFromOneHost(t *testing.T) { ways(t, testFloodFromOneHost) }

func testFloodFromOneHost(t *testing.T) {
	const most = 8
	d := begin(t, func(c *server.Config) {
		c.NBD, c.Metrics, c.Handshakes, c.Handshake = "127.0.0.1:0", "127.0.0.1:0", most, time.Minute
	})
	silent := func(from string, n int) {
		t.Helper()
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		for _, at := range []string{d.address(), d.nbdAddress()} {
			for range n {
				nc, err := dialer.Dial("tcp", at)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = nc.Close() })
			}
		}
	}
	silent("127.0.0.2", 3*most)
	for range 10 {
		p, err := dial(t, d.address(), client.DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.open(p, "disk").WriteDurable([]byte{1}, 0); err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		c := nbdtest.Dial(t, d.nbdAddress()) // completes the greeting
		silent("127.0.0.2", most)
		if err := c.Go("disk", true); err != nil {
			t.Fatalf("from another host: %v", err)
		}
		_ = c.Close() // the server sees the end
		d.until("farflash_nbd_connections 0\n")
	}
	c := nbdtest.Dial(t, d.nbdAddress())
	silent("127.0.0.1", most/2-1) // half of the places are this host's share, with c
	if err := c.Go("disk", true); err != nil {
		t.Errorf("from the same host: %v", err)
	}
	silent("127.0.0.1", most)
	d.until(fmt.Sprintf("farflash_handshakes %d\n", 2*most))
	if text := d.metrics(); strings.Contains(text, "handshakes_displaced_total 0\n") ||
		!strings.Contains(text, "farflash_handshakes_failed_total 0\n") {
		t.Errorf("displaced connections are not counted as such:\n%s", text)
	}
}

// TestPlacedInNegotiation verifies that NBD clients which have claimed a place and then stay silent in the negotiation
// do not keep others from it.
func TestPlacedInNegotiation(t *testing.T) { ways(t, testPlacedInNegotiation) }

func testPlacedInNegotiation(t *testing.T) {
	d := begin(t, func(c *server.Config) {
		c.NBD, c.Metrics, c.Handshakes, c.Handshake = "127.0.0.1:0", "127.0.0.1:0", 1, time.Minute
		c.NBDConnections = 4
	})
	for range 3 {
		c := nbdtest.Dial(t, d.nbdAddress())
		if _, err := c.Option(nbd.OptInfo, nbdtest.Named("disk", 0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	d.until("farflash_nbd_connections 3\n")
	c := nbdtest.Dial(t, d.nbdAddress())
	if err := c.Go("disk", true); err != nil {
		t.Fatal(err)
	}
}

// TestAttackPlaces verifies the maximum number of connections, and that one that ends frees a place.
func TestAttackPlaces(t *testing.T) { ways(t, testAttackPlaces) }

func testAttackPlaces(t *testing.T) {
	d := begin(t, func(c *server.Config) { c.Connections = 2 })
	a := d.dial()
	d.dial()
	if c, err := dial(t, d.address(), client.DefaultConfig()); !errors.Is(err, verbs.ErrRejected) {
		t.Errorf("a third connection: %v", err)
		if err == nil {
			_ = c.Close()
		}
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	for i := 0; ; i++ {
		c, err := dial(t, d.address(), client.DefaultConfig())
		if err == nil {
			_ = c.Close()
			return
		}
		if i == 1000 {
			t.Fatalf("an ended connection keeps its place: %v", err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestAttackDrip (RFC 5042, 6.4.1): a frame that trickles in byte by byte ends its connection after Progress.
func TestAttackDrip(t *testing.T) { ways(t, testAttackDrip) }

func testAttackDrip(t *testing.T) {
	d := begin(t, func(c *server.Config) { c.Progress = 300 * time.Millisecond })
	nc, err := net.Dial("tcp", d.address())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	f := wire.StartupFields{Revision: 1}
	start := make([]byte, f.Length())
	f.Put(start)
	_, err = nc.Write(start)
	_ = nc.SetDeadline(time.Now().Add(20 * time.Second))
	if err == nil {
		_, err = io.ReadFull(nc, make([]byte, 20))
	}
	if err != nil {
		t.Fatal(err)
	}
	from := time.Now()
	for err == nil && time.Since(from) < 15*time.Second {
		_, err = nc.Write([]byte{0xFF})
		time.Sleep(20 * time.Millisecond)
	}
	if err == nil {
		t.Error("a frame may take for ever")
	}
}

// TestAttackMemory (RFC 5042, 6.4.3.3, 6.4.4): clients that request as much as they can and do not read hold no more
// than their share of the pool's memory, so that others are served, and are cut off after Progress.
func TestAttackMemory(t *testing.T) { ways(t, testAttackMemory) }

func testAttackMemory(t *testing.T) {
	d := begin(t, func(c *server.Config) { c.Progress = time.Second })
	f := d.open(d.dial(), "disk")
	b := bytes.Repeat([]byte{5}, size)
	if _, err := f.WriteDurable(b, 0); err != nil {
		t.Fatal(err)
	}
	var greedy []net.Conn
	for range 6 {
		nc, err := net.Dial("tcp", d.address())
		if err != nil {
			t.Fatal(err)
		}
		_ = nc.(*net.TCPConn).SetReadBuffer(4096)
		greedy = append(greedy, nc)
		a, err := verbs.NewAdapter([16]byte{9})
		if err != nil {
			t.Fatal(err)
		}
		cfg := stream.DefaultConfig()
		cfg.Polled = true // reads only when polled
		c, err := stream.Client(nc, a.NewDomain(0), cfg)
		if err != nil {
			t.Fatal(err)
		}
		r, err := control.NewClient(c).Open("disk", all)
		if err != nil {
			t.Fatal(err)
		}
		for range 16 {
			if err := c.Post(verbs.Work{Op: wire.ReadReq, Local: make([]byte, size), STag: r.STag,
				Offset: r.Address}); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := make([]byte, 4096)
	for i := range 200 {
		if _, err := f.ReadAt(got, int64(i)*4096); err != nil || got[0] != 5 {
			t.Fatalf("others are not served: %v", err)
		}
		if _, err := f.WriteAt(got, int64(i+300)*4096); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.WriteDurable(got, 0); err != nil {
		t.Fatalf("others are not served: %v", err)
	}
	for i := 0; ; i++ {
		if n := d.s.Connections(); n == 1 {
			break
		} else if i == 2000 {
			t.Fatalf("%d connections are left", n)
		}
		time.Sleep(5 * time.Millisecond)
	}
	for _, nc := range greedy {
		_ = nc.Close()
	}
}
