package driver_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"farflash/flash/driver"
	"farflash/flash/nbd/nbdtest"
)

// job is a task of an echo.
type job struct{ b byte }

// echo is a machine that answers each byte with itself, and an x with an error.
type echo struct {
	starts  []*job
	out     []byte
	active  int
	inputs  atomic.Int64
	failed  error
	silent  bool // it sends nothing after an error; its tasks are done before Start returns
	answers int  // length of an answer
}

var errByte = errors.New("a wrong byte")

func (e *echo) Input(b []byte) int {
	e.inputs.Add(1)
	for i, x := range b {
		if x == 'x' {
			e.failed = errByte
		}
		if e.failed != nil {
			return i
		}
		e.active++
		e.starts = append(e.starts, &job{x})
	}
	return len(b)
}

func (e *echo) Pending() int { return 0 }
func (e *echo) Sink() []byte { return nil }
func (e *echo) Sunk(int)     {}

func (e *echo) Starts(into []*job) []*job {
	into, e.starts = append(into, e.starts...), nil
	return into
}

func (e *echo) Finish(t *job) {
	e.active--
	e.out = append(e.out, bytes.Repeat([]byte{t.b}, e.answers)...)
}

func (e *echo) Vectors(into [][]byte, _ int) [][]byte {
	if len(e.out) == 0 || e.silent && e.failed != nil {
		return into
	}
	return append(into, e.out)
}

func (e *echo) Sent(n int)     { e.out = e.out[n:] }
func (e *echo) Detach()        {}
func (e *echo) Drained() bool  { return e.active == 0 && len(e.out) == 0 }
func (e *echo) Over() bool     { return false }
func (e *echo) Ready() bool    { return e.failed == nil }
func (e *echo) Err() error     { return e.failed }
func (e *echo) Fail(err error) { e.failed, e.out, e.starts = errors.Join(e.failed, err), nil, nil }

// pair returns the ends of a connection on the loopback interface.
func pair(t *testing.T) (client, server net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// ways runs a test with goroutines, with a loop, and over a connection without a descriptor.
func ways(t *testing.T, test func(t *testing.T, client, server net.Conn, cfg driver.Config[*job])) {
	for _, way := range []string{"goroutines", "loops", "pipe"} {
		t.Run(way, func(t *testing.T) {
			cfg := driver.Config[*job]{Buffer: 4096, Progress: 10 * time.Second, Hold: time.Millisecond}
			if way == "loops" {
				cfg.Loops = nbdtest.Loops(t)
			}
			client, server := net.Pipe()
			if way != "pipe" {
				client, server = pair(t)
			}
			defer client.Close()
			if err := client.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			test(t, client, server, cfg)
		})
	}
}

// run runs a connection of an echo. Its result follows when it has ended.
func run(e *echo, server net.Conn, cfg driver.Config[*job]) (*driver.Conn[*job], <-chan error) {
	var c *driver.Conn[*job]
	cfg.Start = func(tasks []*job, _ uint8) {
		for _, t := range tasks {
			if e.silent {
				c.Done(t)
			} else {
				go c.Done(t)
			}
		}
	}
	c = driver.New(server, e, cfg)
	ended := make(chan error, 1)
	go func() { ended <- c.Run() }()
	return c, ended
}

// TestEcho verifies that bytes received before, and those received later, are answered; that Turn follows Wake; that
// Leave, Close and the last words follow an error; and that it is the result.
func TestEcho(t *testing.T) {
	ways(t, func(t *testing.T, client, server net.Conn, cfg driver.Config[*job]) {
		turned := make(chan bool, 1)
		left, closed := 0, 0
		cfg.Received = []byte("a")
		cfg.Turn = func() { turned <- true }
		cfg.Leave = func() { left++ }
		cfg.Close = func() []byte { closed++; return []byte("bye") }
		c, ended := run(&echo{answers: 1}, server, cfg)
		b := make([]byte, 1)
		for _, x := range []byte("abcd") {
			if x != 'a' {
				client.Write([]byte{x})
			}
			if _, err := io.ReadFull(client, b); err != nil || b[0] != x {
				t.Fatalf("%q is answered with %q, %v", x, b, err)
			}
		}
		c.Wake()
		<-turned
		client.Write([]byte("x"))
		last, err := io.ReadAll(client)
		client.Close()
		if err != nil || string(last) != "bye" {
			t.Errorf("the last words are %q, %v", last, err)
		}
		if err := <-ended; !errors.Is(err, errByte) || left != 1 || closed != 1 {
			t.Errorf("%v, left %d times, closed %d times", err, left, closed)
		}
	})
}

// TestDeadlines verifies that a client is cut off that is idle for too long, or that is not known in time.
func TestDeadlines(t *testing.T) {
	for _, unknown := range []bool{false, true} {
		ways(t, func(t *testing.T, client, server net.Conn, cfg driver.Config[*job]) {
			if unknown {
				cfg.Handshake = 100 * time.Millisecond
				cfg.Enter = func() (bool, error) { return false, nil }
			} else {
				cfg.Idle = 100 * time.Millisecond
			}
			_, ended := run(&echo{answers: 1}, server, cfg)
			if _, err := io.ReadAll(client); err != nil {
				t.Error(err)
			}
			if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("unknown %v: %v", unknown, err)
			}
		})
	}
}

// TestFailedMachine has a client that does not read its answers send a wrong byte and much more: the rest is not read,
// nothing turns in circles, and the client is cut off.
func TestFailedMachine(t *testing.T) {
	for _, silent := range []bool{false, true} {
		ways(t, func(t *testing.T, client, server net.Conn, cfg driver.Config[*job]) {
			cfg.Progress, cfg.Hold = 500*time.Millisecond, 200*time.Millisecond
			e := &echo{answers: 16 << 20, silent: silent}
			_, ended := run(e, server, cfg)
			client.Write([]byte("a"))
			time.Sleep(100 * time.Millisecond)
			go client.Write(append([]byte("x"), make([]byte, 1<<20)...))
			if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, errByte) {
				t.Errorf("silent %v: %v", silent, err)
			}
			if n := e.inputs.Load(); n > 100 {
				t.Errorf("silent %v: Input was called %d times", silent, n)
			}
		})
	}
}

// TestDrain verifies that a drain ends an idle connection at once, and one whose client does not read in time.
func TestDrain(t *testing.T) {
	ways(t, func(t *testing.T, client, server net.Conn, cfg driver.Config[*job]) {
		c, ended := run(&echo{answers: 16 << 20}, server, cfg)
		client.Write([]byte("a"))
		time.Sleep(100 * time.Millisecond)
		c.Drain(time.Minute)
		c.Drain(100 * time.Millisecond)
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
	})
	ways(t, func(t *testing.T, client, server net.Conn, cfg driver.Config[*job]) {
		c, ended := run(&echo{answers: 1}, server, cfg)
		client.Write([]byte("a"))
		if _, err := io.ReadFull(client, make([]byte, 1)); err != nil {
			t.Error(err)
		}
		c.Drain(time.Minute)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
