package stream_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"farflash/flash/uring"
	"farflash/flash/verbs"
	"farflash/flash/verbs/stream"
	"farflash/flash/verbs/verbstest"
	"farflash/flash/wire"
	"farflash/flash/wire/wiretest"
)

func domain(t testing.TB) *verbs.Domain {
	t.Helper()
	var key [16]byte
	if _, err := rand.Read(key[:]); err != nil {
		t.Fatal(err)
	}
	a, err := verbs.NewAdapter(key)
	if err != nil {
		t.Fatal(err)
	}
	return a.NewDomain(100)
}

// ways runs a test with connections driven by goroutines and, where available, by io_uring loops.
func ways(t *testing.T, test func(*testing.T)) {
	t.Run("goroutines", test)
	l, err := uring.Start(1, 4)
	if uring.Forbidden(err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	ok := l.Sockets()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if ok {
		t.Run("loops", test)
	}
}

// config returns the default configuration, with loops if the test's name asks for them.
func config(t testing.TB) stream.Config {
	t.Helper()
	c := stream.DefaultConfig()
	if !strings.Contains(t.Name(), "/loops") {
		return c
	}
	var err error
	if c.Loops, err = uring.Start(2, 4); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Loops.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// sockets returns the two ends of a loopback connection, or of a pipe.
func sockets(t testing.TB, pipe bool) (net.Conn, net.Conn) {
	t.Helper()
	if pipe {
		return net.Pipe()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return a, b
}

// connect starts MPA on both ends.
func connect(t testing.TB, a, b net.Conn, ca, cb stream.Config, server *verbs.Domain) (client, srv *stream.Conn) {
	t.Helper()
	var err error
	ended := make(chan error, 1)
	go func() {
		var err error
		srv, err = stream.Server(b, server, cb)
		ended <- err
	}()
	client, err = stream.Client(a, domain(t), ca)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return client, srv
}

// goroutines verifies that a test leaks no goroutines.
func goroutines(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for range 200 {
			if runtime.NumGoroutine() <= before {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		b := make([]byte, 1<<16)
		t.Errorf("%d goroutines are left, of %d before:\n%s", runtime.NumGoroutine(), before,
			b[:runtime.Stack(b, true)])
	})
}

// wait waits for one completion.
func wait(t testing.TB, c *stream.Conn) verbs.Completion {
	t.Helper()
	var out [1]verbs.Completion
	if c.Wait(out[:]) != 1 {
		t.Fatalf("no completion: %v", c.Err())
	}
	return out[0]
}

// TestConn reads, writes, sends and swaps over TCP and over a pipe, with and without goroutines at the client, on a
// store that calls back from other goroutines.
func TestConn(t *testing.T) { ways(t, testConn) }

func testConn(t *testing.T) {
	for _, pipe := range []bool{false, true} {
		for _, polled := range []bool{false, true} {
			if pipe && polled {
				continue // a pipe's writer blocks for its reader; one goroutine cannot be both
			}
			t.Run(fmt.Sprintf("pipe=%v,polled=%v", pipe, polled), func(t *testing.T) {
				goroutines(t)
				ca, cb := config(t), config(t)
				ca.Polled = polled
				cb.Accept = func(r wire.StartupFields) ([]byte,
					error) {
					return append([]byte("hello "), r.Private...), nil
				}
				ca.Verbs.Private = []byte("you")
				server := domain(t)
				a, b := sockets(t, pipe)
				client, srv := connect(t, a, b, ca, cb, server)
				if got := string(client.Reply().Private); got != "hello you" {
					t.Errorf("private data %q", got)
				}
				p := verbstest.NewPages(4<<20, 4096, 7)
				p.Hold = true
				stop := make(chan struct{})
				var worker sync.WaitGroup
				worker.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						p.Release(-1)
						runtime.Gosched()
					}
				})
				g, err := server.Register(verbs.RegionConfig{Store: p, Length: 4 << 20,
					Rights: verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic, Allowed: verbs.AllSemantics})
				if err != nil {
					t.Fatal(err)
				}
				data := make([]byte, 3<<20)
				for i := range data {
					data[i] = byte(i * 7 >> 3)
				}
				post := func(w ...verbs.Work) {
					t.Helper()
					if err := client.Post(w...); err != nil {
						t.Fatal(err)
					}
				}
				post(verbs.Work{ID: 1, Op: wire.Write, Local: data, STag: g.STag() | uint32(verbs.Sync), Offset: 5})
				got := make([]byte, len(data))
				post(verbs.Work{ID: 2, Op: wire.ReadReq, Local: got, STag: g.STag(), Offset: 5},
					verbs.Work{ID: 3, Op: wire.AtomicReq, Operand: wire.Operand{Data: 9}, STag: g.STag(),
						Offset: 4<<20 - 8})
				for i := range uint64(3) {
					if c := wait(t, client); c.ID != i+1 || c.Err != nil {
						t.Fatalf("%+v", c)
					}
				}
				if !bytes.Equal(got, data) {
					t.Error("what was written is not what is read")
				}
				if !bytes.Equal(p.Medium()[5:5+len(data)], data) {
					t.Error("a read behind a synchronous write has come back, and the write is not on the medium")
				}
				if err := srv.PostReceive(verbs.Receive{ID: 4, Local: make([]byte, 16)}); err != nil {
					t.Fatal(err)
				}
				post(verbs.Work{Op: wire.Send, Local: []byte("bye"), Quiet: true}, verbs.Work{Op: wire.ReadReq})
				wait(t, client)
				if c := wait(t, srv); c.ID != 4 || c.Length != 3 {
					t.Errorf("%+v", c)
				}
				client.Close()
				if n := srv.Wait(make([]verbs.Completion, 1)); n != 0 {
					t.Errorf("%d completions after the end", n)
				}
				<-srv.Done()
				if err := srv.Err(); !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
					t.Errorf("the server ends with %v", err)
				}
				close(stop)
				worker.Wait()
				if p.Out() != 0 {
					t.Errorf("%d accesses are left", p.Out())
				}
			})
		}
	}
}

// late is a connection that is slow to set write deadlines and to report its end.
type late struct{ net.Conn }

func (l late) SetWriteDeadline(t time.Time) error {
	time.Sleep(20 * time.Millisecond)
	return l.Conn.SetWriteDeadline(t)
}

func (l late) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if err != nil {
		time.Sleep(60 * time.Millisecond)
	}
	return n, err
}

// TestClosedBetween verifies that a peer that closes between two frames is seen as io.EOF, even if it has closed by the
// time that a deadline is set after the last write.
func TestClosedBetween(t *testing.T) {
	a, b := net.Pipe()
	client, srv := connect(t, a, late{b}, config(t), config(t), domain(t))
	if err := client.Post(verbs.Work{Op: wire.ReadReq}); err != nil {
		t.Fatal(err)
	}
	wait(t, client)
	client.Close()
	<-srv.Done()
	if err := srv.Err(); !errors.Is(err, io.EOF) {
		t.Errorf("the server ends with %v", err)
	}
}

// TestBothWays verifies that two ends that write to each other as fast as they can do not deadlock.
func TestBothWays(t *testing.T) { ways(t, testBothWays) }

func testBothWays(t *testing.T) {
	goroutines(t)
	cfg := config(t)
	cfg.Verbs.PeerToPeer = true
	da, db := domain(t), domain(t)
	a, b := sockets(t, false)
	ended := make(chan *stream.Conn, 1)
	go func() {
		cfg := config(t)
		s, err := stream.Server(b, db, cfg)
		if err != nil {
			t.Error(err)
		}
		ended <- s
	}()
	client, err := stream.Client(a, da, cfg)
	if err != nil {
		t.Fatal(err)
	}
	srv := <-ended
	var both sync.WaitGroup
	for i, c := range []*stream.Conn{client, srv} {
		other := []*verbs.Domain{db, da}[i]
		g, err := other.Register(verbs.RegionConfig{Memory: make([]byte, 8<<20),
			Rights: verbs.RemoteWrite | verbs.RemoteRead})
		if err != nil {
			t.Fatal(err)
		}
		both.Go(func() {
			local := make([]byte, 8<<20)
			for range 6 {
				if err := c.Post(verbs.Work{Op: wire.Write, Local: local, STag: g.STag()},
					verbs.Work{Op: wire.ReadReq, Local: make([]byte, 8<<20), STag: g.STag()}); err != nil {
					t.Error(err)
				}
			}
			var out [4]verbs.Completion
			for n := 0; n < 12; {
				k := c.Wait(out[:])
				for _, x := range out[:k] {
					if x.Err != nil {
						t.Error(x.Err)
					}
				}
				if n += k; k == 0 {
					t.Error(c.Err())
					return
				}
			}
		})
	}
	both.Wait()
	client.Close()
	srv.Close()
}

// TestTerminate verifies that the Terminate reaches both ends as the error, although the connection is closed right
// after it.
func TestTerminate(t *testing.T) { ways(t, testTerminate) }

func testTerminate(t *testing.T) {
	goroutines(t)
	a, b := sockets(t, false)
	client, srv := connect(t, a, b, config(t), config(t), domain(t))
	if err := client.Post(verbs.Work{Op: wire.ReadReq, Local: make([]byte, 8), STag: 0x100}); err != nil {
		t.Fatal(err)
	}
	if c := wait(t, client); c.Err != error(verbs.Terminated{Fault: wire.FaultReadSTag, Remote: true}) {
		t.Errorf("%v", c.Err)
	}
	<-client.Done()
	<-srv.Done()
	if err := srv.Err(); err != error(verbs.Terminated{Fault: wire.FaultReadSTag}) {
		t.Error(err)
	}
	client.Close()
	srv.Close()
}

// TestSlowPeers verifies that a peer that connects and stays silent, trickles bytes, stops within a frame, or does not
// read is cut off.
func TestSlowPeers(t *testing.T) { ways(t, testSlowPeers) }

func testSlowPeers(t *testing.T) {
	request := make([]byte, wire.StartupLength)
	wire.StartupFields{CRC: true, Revision: 1}.Put(request)
	cfg := config(t)
	cfg.Setup, cfg.Progress, cfg.Linger = 80*time.Millisecond, 80*time.Millisecond, 20*time.Millisecond
	drip := func(b []byte) func(net.Conn) {
		return func(c net.Conn) {
			for _, x := range b {
				if _, err := c.Write([]byte{x}); err != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
	for name, peer := range map[string]func(net.Conn){
		"silent":        func(net.Conn) {},
		"not MPA":       func(c net.Conn) { fmt.Fprint(c, "GET / HTTP/1.1\r\n\r\n") },
		"half a frame":  func(c net.Conn) { c.Write(request[:10]) },
		"drips":         drip(request),
		"drips FPDUs":   func(c net.Conn) { c.Write(request); drip(make([]byte, 100))(c) },
		"huge and gone": func(c net.Conn) { c.Write(append(bytes.Clone(request), 0xFF, 0xFF, 0)) },
	} {
		t.Run(name, func(t *testing.T) {
			goroutines(t)
			a, b := sockets(t, false)
			defer a.Close()
			go peer(a)
			began := time.Now()
			srv, err := stream.Server(b, domain(t), cfg)
			if err == nil {
				<-srv.Done()
				err = srv.Err()
				srv.Close()
			}
			if err == nil || time.Since(began) > 5*time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		})
	}
	t.Run("takes nothing", func(t *testing.T) {
		goroutines(t)
		a, b := sockets(t, false)
		d := domain(t)
		g, err := d.Register(verbs.RegionConfig{Memory: make([]byte, 64<<20), Rights: verbs.RemoteRead})
		if err != nil {
			t.Fatal(err)
		}
		go a.Write(request)
		srv, err := stream.Server(b, d, cfg)
		if err != nil {
			t.Fatal(err)
		}
		f := wire.Framer{CRC: true}
		s := make([]byte, wire.UntaggedLength+wire.ReadRequestLength)
		wire.UntaggedFields{Op: wire.ReadReq, Last: true, Queue: 1, Sequence: 1}.Put(s)
		wire.ReadRequestFields{Size: 64 << 20, SourceSTag: g.STag()}.Put(s[wire.UntaggedLength:])
		out := f.Begin(make([]byte, 0, 100), len(s))
		copy(out[2:], s)
		a.Write(f.End(out))
		select {
		case <-srv.Done():
		case <-time.After(5 * time.Second):
			t.Error("it still waits for a peer that takes nothing")
		}
		srv.Close()
		a.Close()
	})
}

// TestDisconnects cuts the connection at various byte counts of an exchange: both ends get an error and no resource
// leaks.
func TestDisconnects(t *testing.T) { ways(t, testDisconnects) }

func testDisconnects(t *testing.T) {
	goroutines(t)
	for cut := 1; cut < 400; cut += 13 {
		for from := range 2 {
			a, b := sockets(t, false)
			limited := [2]net.Conn{a, b}
			limited[from] = &cutter{Conn: limited[from], left: cut}
			d := domain(t)
			p := verbstest.NewPages(1<<16, 4096, uint64(cut))
			g, err := d.Register(verbs.RegionConfig{Store: p, Length: 1 << 16,
				Rights: verbs.RemoteRead | verbs.RemoteWrite, Allowed: verbs.AllSemantics})
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				if s, err := stream.Server(limited[1], d, config(t)); err == nil {
					<-s.Done()
					s.Close()
				}
			}()
			if c, err := stream.Client(limited[0], domain(t), config(t)); err == nil {
				works := []verbs.Work{{Op: wire.Write, Local: make([]byte, 100), STag: g.STag() | 1},
					{Op: wire.ReadReq}, {Op: wire.ReadReq, Local: make([]byte, 100), STag: g.STag()}}
				if err := c.Post(works...); err == nil {
					for range works {
						if k := c.Wait(make([]verbs.Completion, 1)); k == 0 {
							t.Errorf("cut %d of %d: a request has not completed", cut, from)
						}
					}
				}
				c.Close()
			}
			<-ended
			if p.Out() != 0 {
				t.Errorf("cut %d of %d: accesses are left", cut, from)
			}
		}
	}
}

// cutter is a connection that breaks after left bytes have been written.
type cutter struct {
	net.Conn
	mu   sync.Mutex
	left int
}

func (c *cutter) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(b) > c.left {
		n, _ := c.Conn.Write(b[:c.left])
		c.left = 0
		c.Close()
		return n, io.ErrClosedPipe
	}
	c.left -= len(b)
	return c.Conn.Write(b)
}

// TestReject verifies that a rejection arrives with its reason.
func TestReject(t *testing.T) { ways(t, testReject) }

func testReject(t *testing.T) {
	goroutines(t)
	a, b := sockets(t, false)
	cfg := config(t)
	cfg.Accept = func(wire.StartupFields) ([]byte, error) { return nil, errors.New("full") }
	ended := make(chan error, 1)
	go func() {
		_, err := stream.Server(b, domain(t), cfg)
		ended <- err
	}()
	if _, err := stream.Client(a, domain(t), config(t)); !errors.Is(err, verbs.ErrRejected) {
		t.Errorf("%v", err)
	}
	if err := <-ended; err == nil || err.Error() != "full" {
		t.Errorf("%v", err)
	}
}

// recorder writes a connection's traffic to a capture. With markers, each FPDU is its own packet, because Wireshark
// does not find them otherwise.
type recorder struct {
	net.Conn
	capture *wiretest.Capture
	mu      *sync.Mutex
	side    int
	markers *wire.Deframer
	started bool
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	if rest := bytes.Clone(b); r.markers == nil || !r.started {
		r.capture.Add(r.side, b, 1448)
	} else {
		for len(rest) > 0 {
			raw := bytes.Clone(rest)
			_, n, err := r.markers.Next(rest)
			if err != nil {
				panic(err)
			}
			r.capture.Add(r.side, raw[:n], 4096)
			rest = rest[n:]
		}
	}
	r.started = true
	r.mu.Unlock()
	return r.Conn.Write(b)
}

// TestTshark verifies that Wireshark finds a valid CRC in every FPDU of ours and no malformed packet: for every
// operation, with and without markers, and for a connection that ends with a Terminate.
func TestTshark(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	for _, markers := range []bool{false, true} {
		t.Run(fmt.Sprintf("markers=%v", markers), func(t *testing.T) {
			capture, mu := wiretest.NewCapture(), new(sync.Mutex)
			a, b := sockets(t, false)
			ca, cb := stream.DefaultConfig(), stream.DefaultConfig()
			ca.Verbs.Markers, cb.Verbs.Markers = markers, markers
			ca.Verbs.MaxSegment, cb.Verbs.MaxSegment = 20_000, 1442
			if markers {
				ca.Verbs.MaxSegment = 1000
			}
			d := domain(t)
			ra, rb := &recorder{Conn: a, capture: capture, mu: mu},
				&recorder{Conn: b, capture: capture, mu: mu, side: 1}
			if markers {
				ra.markers, rb.markers = &wire.Deframer{CRC: true, Markers: true},
					&wire.Deframer{CRC: true, Markers: true}
			}
			client, srv := connect(t, ra, rb, ca, cb, d)
			g, err := d.Register(verbs.RegionConfig{Memory: bytes.Repeat([]byte("farflash"), 10_000),
				Rights: verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic | verbs.RemoteInvalidate})
			if err != nil {
				t.Fatal(err)
			}
			for range 6 {
				if err := srv.PostReceive(verbs.Receive{Local: make([]byte, 64)}); err != nil {
					t.Fatal(err)
				}
			}
			ops := []verbs.Work{
				{Op: wire.Write, Local: make([]byte, 50_000), STag: g.STag()},
				{Op: wire.ReadReq, Local: make([]byte, 50_000), STag: g.STag()},
				{Op: wire.ReadReq},
				{Op: wire.AtomicReq, Atomic: wire.FetchAdd, Operand: wire.Operand{Data: 1}, STag: g.STag()},
				{Op: wire.AtomicReq, Atomic: wire.CmpSwap, Operand: wire.Operand{Data: 1}, STag: g.STag()},
				{Op: wire.Send, Local: []byte("odd")},
				{Op: wire.SendSE, Local: []byte("even")},
				{Op: wire.Imm, Immediate: 1},
				{Op: wire.ImmSE, Immediate: 2},
				{Op: wire.SendInv, Local: []byte("x"), Invalidate: g.STag(), Fence: true},
				{Op: wire.SendSEInv, Invalidate: g.STag()}, // already revoked
			}
			if err := client.Post(ops...); err != nil {
				t.Fatal(err)
			}
			for range ops {
				wait(t, client)
			}
			<-client.Done()
			<-srv.Done()
			client.Close()
			srv.Close()
			path := filepath.Join(t.TempDir(), "ours.pcap")
			if err := os.WriteFile(path, capture.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			if keep := os.Getenv("FARFLASH_KEEP"); keep != "" {
				if err := os.WriteFile(filepath.Join(keep, fmt.Sprintf("markers-%v.pcap", markers)), capture.Bytes(),
					0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command(tshark, "-r", path, "-V", "--disable-protocol", "smb_direct", "--disable-protocol",
				"iser", "--disable-protocol", "rpcordma")
			text, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			out := string(text)
			good, bad := strings.Count(out, "(Good CRC32)"), strings.Count(out, "(Bad CRC32")
			fpdus := strings.Count(out, "ULPDU length:")
			if good == 0 || bad != 0 || good != fpdus || strings.Contains(out, "Malformed") {
				t.Errorf("%d FPDUs, %d good CRCs, %d bad, malformed: %v", fpdus, good, bad,
					strings.Contains(out, "Malformed"))
			}
			t.Logf("%d FPDUs with good CRCs", good)
			for _, op := range []string{"Write", "Read Request", "Read Response", "Send", "Atomic Request",
				"Atomic Response", "Terminate"} {
				if !strings.Contains(out, "OpCode: "+op) {
					t.Errorf("tshark sees no %s", op)
				}
			}
		})
	}
}

func BenchmarkRead4KiB(b *testing.B) {
	for _, polled := range []bool{false, true} {
		for _, depth := range []int{1, 16} {
			b.Run(fmt.Sprintf("polled=%v/depth=%d", polled, depth), func(b *testing.B) {
				x, y := sockets(b, false)
				ca := stream.DefaultConfig()
				ca.Polled = polled
				d := domain(b)
				client, srv := connect(b, x, y, ca, stream.DefaultConfig(), d)
				defer srv.Close()
				defer client.Close()
				g, err := d.Register(verbs.RegionConfig{Memory: make([]byte, 1<<20), Rights: verbs.RemoteRead})
				if err != nil {
					b.Fatal(err)
				}
				w := verbs.Work{Op: wire.ReadReq, Local: make([]byte, 4096), STag: g.STag(), Offset: 4096}
				out := make([]verbs.Completion, depth)
				b.ReportAllocs()
				b.SetBytes(4096)
				for range depth - 1 {
					if err := client.Post(w); err != nil {
						b.Fatal(err)
					}
				}
				for n := 0; n < b.N; {
					if err := client.Post(w); err != nil {
						b.Fatal(err)
					}
					k := client.Wait(out[:1])
					if k == 0 || out[0].Err != nil {
						b.Fatal(client.Err())
					}
					n += k
				}
			})
		}
	}
}

// TestNoAllocations verifies that a read over loopback does not allocate at either end.
func TestNoAllocations(t *testing.T) { ways(t, testNoAllocations) }

func testNoAllocations(t *testing.T) {
	if testing.Short() {
		t.Skip("short tests run under the race detector, which has pools forget what they hold")
	}
	for _, polled := range []bool{false, true} {
		a, b := sockets(t, false)
		cfg := stream.DefaultConfig()
		cfg.Polled = polled
		d := domain(t)
		client, srv := connect(t, a, b, cfg, config(t), d)
		g, err := d.Register(verbs.RegionConfig{Memory: make([]byte, 8192), Rights: verbs.RemoteRead})
		if err != nil {
			t.Fatal(err)
		}
		w := []verbs.Work{{Op: wire.ReadReq, Local: make([]byte, 4096), STag: g.STag(), Offset: 100}}
		out := make([]verbs.Completion, 1)
		read := func() {
			if err := client.Post(w...); err != nil {
				t.Fatal(err)
			}
			if client.Wait(out) != 1 || out[0].Err != nil {
				t.Fatal(client.Err())
			}
		}
		for range 50 {
			read()
		}
		if n := testing.AllocsPerRun(500, read); n != 0 {
			t.Errorf("polled %v: %v allocations a read", polled, n)
		}
		client.Close()
		srv.Close()
	}
}

// counted counts the reads from a connection.
type counted struct {
	*net.TCPConn
	reads *atomic.Int64
}

func (c counted) Read(b []byte) (int, error) {
	c.reads.Add(1)
	return c.TCPConn.Read(b)
}

// TestBufferGrows verifies that the read buffer grows when responses fill it, so that later ones are received with
// fewer reads.
func TestBufferGrows(t *testing.T) {
	a, b := sockets(t, false)
	var reads atomic.Int64
	cfg := stream.DefaultConfig()
	d := domain(t)
	client, srv := connect(t, counted{a.(*net.TCPConn), &reads}, b, cfg, cfg, d)
	defer client.Close()
	defer srv.Close()
	g, err := d.Register(verbs.RegionConfig{Memory: make([]byte, 4096), Rights: verbs.RemoteRead})
	if err != nil {
		t.Fatal(err)
	}
	var works []verbs.Work
	for range 16 {
		works = append(works, verbs.Work{Op: wire.ReadReq, Local: make([]byte, 4096), STag: g.STag()})
	}
	const rounds = 50
	for range rounds {
		if err := client.Post(works...); err != nil {
			t.Fatal(err)
		}
		for range works {
			wait(t, client)
		}
	}
	if n, all := reads.Load(), int64(rounds*len(works)); n > all/2 {
		t.Errorf("%d reads for %d answers of 4 KiB", n, all)
	}
}
