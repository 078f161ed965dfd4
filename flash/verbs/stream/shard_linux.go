package stream

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"farflash/flash/uring"
	"farflash/flash/verbs"
)

// Loops are threads that do the I/O of many connections.
type Loops = uring.Loops

// shard is the state of a connection that a loop drives. The ring receives into the connection's buffer; the loop's
// thread sends with a non-blocking system call, because the number of bytes accepted is then known immediately and the
// buffer can be reused.
type shard struct {
	socket *uring.Socket // nil until Attach and after the end
	fd     int
	watch  *time.Timer
	frames uint64    // SegmentsIn at the last check of the watch
	moved  time.Time // when frames last changed
	gone   bool
}

// attach moves the connection from the runtime's poller, which would be woken for every frame, to its loop.
func (c *Conn) attach(lane uint8) error {
	fd, err := uring.Duplicate(c.raw)
	shut(c.nc)
	if err == nil {
		c.shard.fd = fd
		c.shard.socket, err = c.cfg.Loops.Attach(lane, fd, (*driven)(c))
		if err != nil {
			err = errors.Join(err, syscall.Close(fd))
		}
	}
	if err != nil {
		c.qp.Close()
		return err
	}
	c.mu.Lock()
	c.shard.moved = time.Now()
	c.shard.watch = time.AfterFunc(c.period(), c.look)
	c.mu.Unlock()
	c.shard.socket.Begin()
	return nil
}

// wake makes the loop give the connection a turn.
func (c *Conn) wake() {
	if s := c.shard.socket; s != nil {
		s.Wake()
	}
}

func (s *shard) send(b []byte) (int, error) {
	if s.socket == nil { // the loop's first turn sends it
		return 0, nil
	}
	return s.socket.Send(b)
}

// driven is the view that a loop has of a connection.
type driven Conn

// Turn implements uring.Handler.
func (d *driven) Turn() {
	c := (*Conn)(d)
	c.mu.Lock()
	c.qp.Step()
	c.took(0)
	c.goOn()
	c.mu.Unlock()
}

// Received implements uring.Handler.
func (d *driven) Received(n int, err error) {
	c := (*Conn)(d)
	c.mu.Lock()
	switch {
	case errors.Is(err, syscall.ECANCELED), errors.Is(err, syscall.EINTR):
	case err != nil:
		c.qp.Lost(err)
	case n == 0:
		c.qp.Lost(io.EOF)
	}
	c.took(n)
	c.goOn()
	c.mu.Unlock()
}

// Writable implements uring.Handler.
func (d *driven) Writable(error) { // the next send reports the error
	c := (*Conn)(d)
	c.mu.Lock()
	if c.writing {
		c.sendRest()
		c.took(0)
	}
	c.goOn()
	c.mu.Unlock()
}

// sendRest sends more of c.rest. The caller holds c.mu.
func (c *Conn) sendRest() {
	n, err := c.shard.send(c.rest)
	if c.rest = c.rest[n:]; err == nil && len(c.rest) > 0 {
		return
	}
	c.rest, c.writing = nil, false
	if err != nil {
		c.qp.Lost(err)
	} else {
		c.qp.Sent()
	}
}

// goOn submits the connection's next receive or wait to the loop. It runs on the loop's thread; the caller holds c.mu.
func (c *Conn) goOn() {
	if c.shard.gone {
		return
	}
	socket := c.shard.socket
	receiving, waiting := socket.Busy()
	switch {
	case c.closing && (receiving || waiting && !c.writing), c.draining && receiving:
		socket.Cancel(!c.writing)
	case c.closing && !c.writing && !waiting:
		if c.qp.Settled() {
			c.shard.gone = true
			socket.Detach()
			c.shard.watch.Stop()
			go c.bury()
		}
		return
	case !c.closing && !c.draining && !receiving && !c.qp.Stalled():
		b := c.room()
		if c.start < c.end && c.since.IsZero() {
			c.since = time.Now()
		}
		socket.Receive(b)
	}
	if c.writing && !waiting {
		socket.AwaitWritable()
	}
}

// bury closes the socket of a connection that has ended.
func (c *Conn) bury() {
	f := os.NewFile(uintptr(c.shard.fd), "")
	c.mu.Lock()
	terminated := errors.As(c.qp.Err(), new(verbs.Terminated))
	c.mu.Unlock()
	if terminated {
		if nc, err := net.FileConn(f); err == nil {
			c.nc = nc
			c.linger()
			shut(nc)
		}
	}
	_ = f.Close() // no data can be lost
	close(c.done)
}

// period is the interval at which deadlines are checked, and thus the maximum delay in detecting a timeout.
func (c *Conn) period() time.Duration {
	d := c.cfg.Progress
	if c.cfg.Idle > 0 {
		d = min(d, c.cfg.Idle)
	}
	return max(d/8, time.Millisecond)
}

// look ends the connection if a deadline has passed.
func (c *Conn) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shard.gone {
		return
	}
	now := time.Now()
	if n := c.qp.Counters().SegmentsIn; n != c.shard.frames {
		c.shard.frames, c.shard.moved = n, now
	}
	late := func(since time.Time, d time.Duration) bool { return !since.IsZero() && d > 0 && now.Sub(since) > d }
	stalled := c.qp.Stalled()
	switch {
	case c.writing && late(c.stuck, c.cfg.Progress):
		c.rest, c.writing = nil, false
		fallthrough
	case !stalled && late(c.since, c.cfg.Progress), !stalled && !c.draining && late(c.shard.moved, c.cfg.Idle):
		c.qp.Lost(os.ErrDeadlineExceeded)
		c.ended()
		c.wake()
	}
	c.shard.watch.Reset(c.period())
}
