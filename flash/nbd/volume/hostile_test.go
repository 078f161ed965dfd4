package volume_test

import (
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"farflash/flash/nbd"
	"farflash/flash/nbd/nbdtest"
	"farflash/flash/nbd/server"
	"farflash/flash/nbd/volume"
)

// short sets deadlines short enough for a test to wait for.
func short(c *server.Config, _ *nbd.Export) {
	c.Handshake, c.Progress, c.Hold, c.Most = 300*time.Millisecond, 300*time.Millisecond, 20*time.Millisecond, 8
}

// gone reports whether the server closes a connection in time.
func gone(nc net.Conn) bool {
	_ = nc.SetDeadline(time.Now().Add(10 * time.Second))
	_, err := io.Copy(io.Discard, nc)
	ne, ok := err.(net.Error)
	return !ok || !ne.Timeout()
}

// TestHostile has clients that send no bytes, too few, too many, or garbage: each is cut off, and others are served all
// the while.
func TestHostile(t *testing.T) { both(t, testHostile) }

func testHostile(t *testing.T) {
	before := runtime.NumGoroutine()
	s, addr := serve(t, short)
	good := nbdtest.Dial(t, addr)
	if err := good.Go("disk", true); err != nil {
		t.Fatal(err)
	}
	option := func(c *nbdtest.Client, o uint32, n uint32) {
		b := binary.BigEndian.AppendUint64(nil, 0x49484156454F5054)
		b = binary.BigEndian.AppendUint32(b, o)
		c.Write(binary.BigEndian.AppendUint32(b, n))
	}
	for name, f := range map[string]func(*nbdtest.Client){
		"says nothing":            func(*nbdtest.Client) {},
		"announces a huge option": func(c *nbdtest.Client) { option(c, 3, 0xffffffff) },
		"announces and drips":     func(c *nbdtest.Client) { option(c, 7, 60000); c.Write([]byte{1}) },
		"asks a thousand times": func(c *nbdtest.Client) {
			go c.Write([]byte(strings.Repeat(string(nbd.AppendOption(nil, nbd.OptList, nil)), 1000)))
		},
		"speaks another protocol": func(c *nbdtest.Client) {
			c.Write([]byte(strings.Repeat("GET / HTTP/1.1\r\n",
				100)))
		},
		"writes, and stops halfway": func(c *nbdtest.Client) {
			c.Go("disk", false)
			c.Send(0, nbd.CmdWrite, 0, 1<<20,
				make([]byte, 1000))
		},
		"writes more than there may be": func(c *nbdtest.Client) {
			c.Go("disk", false)
			c.Send(0, nbd.CmdWrite, 0, 0xffffffff, nil)
		},
		"sends no command": func(c *nbdtest.Client) { c.Go("disk", true); c.Write(make([]byte, 64)) },
		"sends a part of a command": func(c *nbdtest.Client) {
			c.Go("disk", true)
			c.Write(nbd.AppendRequest(nil, 0, nbd.CmdRead, 1, 0, 4096)[:20])
		},
		"goes at once": func(c *nbdtest.Client) {
			c.Go("disk", true)
			c.Send(0, nbd.CmdRead, 0, 1<<20,
				nil)
			c.Close()
		},
	} {
		c := nbdtest.Dial(t, addr)
		f(c)
		if !gone(c.Conn) {
			t.Errorf("a client that %s is served for ever", name)
		}
		if e, err := good.Do(0, nbd.CmdWrite, 0, 4096, make([]byte, 4096)); e != 0 || err != nil {
			t.Fatalf("after a client that %s: %v, %v", name, e, err)
		}
	}
	// Connections beyond the limit are closed, and freed places are reused.
	var crowd []net.Conn
	for range 30 {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		crowd = append(crowd, nc)
	}
	for range 100 {
		if s.Connections() <= 8 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n := s.Connections(); n > 8 {
		t.Errorf("%d connections, where 8 may be", n)
	}
	for _, nc := range crowd {
		if !gone(nc) {
			t.Error("one of the crowd is served for ever")
		}
		nc.Close()
	}
	good.Send(0, nbd.CmdDisconnect, 0, 0, nil)
	if !gone(good.Conn) {
		t.Error("a good client's end is not heard")
	}
	for range 200 {
		if s.Connections() == 0 && runtime.NumGoroutine() <= before+8 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d connections and %d goroutines are left of %d", s.Connections(), runtime.NumGoroutine(), before)
}

// lazy is a client that requests far more than it reads.
func lazy(t *testing.T, addr string) *nbdtest.Client {
	c := nbdtest.Dial(t, addr)
	if err := c.Conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	if err := c.Go("disk", true); err != nil {
		t.Fatal(err)
	}
	for range 64 {
		if _, err := c.Send(0, nbd.CmdRead, 0, size, nil); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// TestTakesNothing has clients request more pages than there are frames and read none: they do not hold frames, so
// other clients proceed, and they are cut off in time.
func TestTakesNothing(t *testing.T) { both(t, testTakesNothing) }

func testTakesNothing(t *testing.T) {
	for _, progress := range []time.Duration{time.Minute, 300 * time.Millisecond} {
		s, addr := serve(t, func(c *server.Config, e *nbd.Export) {
			c.Progress, c.Drain, c.Hold = progress, 300*time.Millisecond, 10*time.Millisecond
		})
		good := nbdtest.Dial(t, addr)
		if err := good.Go("disk", true); err != nil {
			t.Fatal(err)
		}
		if e, err := good.Do(0, nbd.CmdWrite, 0, size, make([]byte, size)); e != 0 || err != nil {
			t.Fatal(e, err)
		}
		for range 4 {
			lazy(t, addr)
		}
		for i := range 200 {
			if _, _, e, err := good.Fetch(0, uint64(i)*40960, 8192); e != 0 || err != nil {
				t.Fatal(e, err)
			}
		}
		if n := s.Connections(); progress == time.Minute && n != 5 {
			t.Errorf("%d connections are left of 5", n)
		}
		for progress < time.Minute && s.Connections() > 1 { // until the test's own deadline
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// TestShutdown verifies that received commands are answered and no more are accepted.
func TestShutdown(t *testing.T) { both(t, testShutdown) }

func testShutdown(t *testing.T) {
	loops := threads(t)
	p := nbdtest.Pool(t, loops, "", 48<<20, 512)
	v, err := volume.New(p, 0, size)
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan bool, 1)
	cfg := server.DefaultConfig()
	cfg.Loops = loops
	cfg.Exports = server.Fixed(nbdtest.One{Export: nbd.Export{Name: "disk", Volume: v, Close: func() {
		select {
		case closed <- true:
		default:
		}
	}}})
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	c := nbdtest.Dial(t, l.Addr().String())
	if err := c.Go("disk", true); err != nil {
		t.Fatal(err)
	}
	waits := nbdtest.Dial(t, l.Addr().String())
	if e, err := c.Do(nbd.CmdFUA, nbd.CmdWrite, 0, 4<<20, make([]byte, 4<<20)); e != 0 || err != nil {
		t.Fatal(e, err)
	}
	if err := s.Shutdown(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if !gone(c.Conn) || !gone(waits.Conn) {
		t.Error("a connection is left")
	}
	if !<-closed {
		t.Error("the export was not closed")
	}
}

// TestBeyondThisMachine verifies that listening on a non-local address without TLS is refused.
func TestBeyondThisMachine(t *testing.T) {
	s, err := server.New(server.Config{Exports: server.Fixed(nbdtest.One{})})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(l); err == nil || !strings.Contains(err.Error(), "without TLS") {
		t.Errorf("%v", err)
	}
	if _, err := l.Accept(); err == nil || err == syscall.EAGAIN {
		t.Error("it still listens")
	}
}

// BenchmarkRead measures the data path without a network: 32 reads of 4 KiB in, their replies out, without allocation.
func BenchmarkRead(b *testing.B) {
	p := nbdtest.Pool(b, nil, "", 48<<20, 8192)
	v, err := volume.New(p, 0, size)
	if err != nil {
		b.Fatal(err)
	}
	if err := p.WriteAt(make([]byte, size), 0, false); err != nil {
		b.Fatal(err)
	}
	step := path(b, v)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		step()
	}
}

// path returns a function that runs 32 reads through a session.
func path(t testing.TB, v nbd.Volume) func() {
	h := nbd.NewHandshake(nbdtest.One{Export: nbd.Export{Name: "disk", Volume: v}}, nbd.NoTLS)
	h.Input(nbd.AppendOption(nbd.AppendOption([]byte{0, 0, 0, 3}, nbd.OptStructuredReply, nil), nbd.OptGo,
		nbdtest.Named("disk", 0, 0)))
	var s *nbd.Session
	s = nbd.NewSession(h, nbd.DefaultLimits(), func(t *nbd.Task) { s.Finish(t) })
	var in []byte
	for i := range 32 {
		in = nbd.AppendRequest(in, 0, nbd.CmdRead, uint64(i), uint64(i)*8192, 4096)
	}
	var tasks []*nbd.Task
	var vec [][]byte
	return func() {
		if s.Input(in) != len(in) {
			t.Fatal("the session did not take what it was given")
		}
		tasks = s.Starts(tasks[:0])
		v.Start(tasks)
		vec = s.Vectors(vec[:0], 512)
		n := 0
		for _, x := range vec {
			n += len(x)
		}
		if n != 32*(4096+28) {
			t.Fatalf("%d bytes are to be sent", n)
		}
		s.Sent(n)
	}
}

// TestAllocations verifies that the data path does not allocate.
func TestAllocations(t *testing.T) {
	if testing.Short() {
		t.Skip("pools of memory are leaky under the race detector")
	}
	p := nbdtest.Pool(t, nil, "", 48<<20, 8192)
	v, err := volume.New(p, 0, size)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.WriteAt(make([]byte, size), 0, false); err != nil {
		t.Fatal(err)
	}
	if err := p.Sync(); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, path(t, v)); n >= 1 {
		t.Errorf("32 reads allocate %v times", n)
	}
}
