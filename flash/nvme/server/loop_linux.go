package server

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"farflash/flash/uring"
)

// Loops are threads that do the I/O of connections.
type Loops = uring.Loops

// driven is the state of a connection that a loop drives. The ring receives directly into the destination; the loop's
// thread sends with a non-blocking system call, directly from the volume's memory.
type driven struct {
	*conn
	on     uint8 // index of the loop
	socket *uring.Socket
	watch  *time.Timer

	mu     sync.Mutex // guards open; a leaf among locks
	fd     int
	closed bool

	partial bool
	due     time.Time // deadline for the rest of a partially received PDU; zero: none
	full    bool      // the socket accepts no more bytes
	stuck   time.Time // since when
	copied  bool      // the unsent output has been copied out of the volumes' memory
	gone    bool
}

// drive moves the connection to a loop.
func (c *conn) drive() error {
	loops := c.server.cfg.Loops
	d := &driven{conn: c, on: loops.Next()}
	var err error
	if d.fd, err = uring.Duplicate(c.raw); err != nil {
		return err
	}
	_ = c.nc.Close() // the runtime's poller would be woken for all input; the duplicate stays open
	if d.socket, err = loops.Attach(d.on, d.fd, d); err != nil {
		return errors.Join(err, syscall.Close(d.fd))
	}
	c.mu.Lock()
	c.driven = d
	d.watch = time.AfterFunc(d.period(), d.look)
	c.mu.Unlock()
	d.socket.Begin()
	return nil
}

// lane is the loop for the connection's tasks.
func (d *driven) lane() uint8 {
	if d == nil {
		return 0
	}
	return d.on
}

func (d *driven) wake() { d.socket.Wake() }

// disconnected reports whether the peer has closed the connection.
func (d *driven) disconnected() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return true
	}
	i, err := unix.GetsockoptTCPInfo(d.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	return err != nil || i.State != established
}

// Turn implements uring.Handler.
func (d *driven) Turn() {
	d.conn.mu.Lock()
	d.resume()
	d.conn.mu.Unlock()
}

// Received implements uring.Handler.
func (d *driven) Received(n int, err error) {
	d.conn.mu.Lock()
	switch {
	case errors.Is(err, syscall.ECANCELED), errors.Is(err, syscall.EINTR):
		err = nil
	case err == nil && n == 0:
		err = io.EOF
	}
	d.came(n, err)
	d.resume()
	d.conn.mu.Unlock()
}

// Writable implements uring.Handler.
func (d *driven) Writable(error) { // the next send reports the error
	d.conn.mu.Lock()
	d.full, d.copied = false, false
	d.resume()
	d.conn.mu.Unlock()
}

// flush sends some of d.vec and reports whether it made progress. The caller holds the connection's lock. It runs on
// the loop's thread or, for results of a volume, on the goroutine of the callback.
func (d *driven) flush() bool {
	if d.full {
		if err := d.queue.Err(); err != nil {
			d.fail(err) // the rest is not worth waiting for
		}
		return false
	}
	iov := d.send.Load(d.vec)
	n, err := d.socket.SendVectors(iov)
	clear(iov)
	switch {
	case err != nil:
		d.fail(err)
		return false
	case n > 0:
		d.queue.Sent(n)
		return true
	}
	d.full, d.stuck = true, time.Now()
	d.watch.Reset(d.period())
	return false
}

// resume does all possible work and submits the connection's next receive or wait to the loop. It runs on the loop's
// thread; the caller holds the connection's lock.
func (d *driven) resume() {
	if d.gone {
		return
	}
	d.advance()
	receiving, waiting := d.socket.Busy()
	switch {
	case d.over && (receiving || waiting):
		d.socket.Cancel(true)
	case d.over && d.working == 0:
		d.gone = true
		d.socket.Detach()
		d.watch.Stop()
		close(d.settled)
	case d.over:
	case receiving && d.draining:
		d.socket.Cancel(false)
	case !receiving && !d.draining:
		into := d.space()
		// The deadline counts from the first part of a PDU; further parts do not extend it.
		if now := d.end > 0 || d.queue.Partial(); now != d.partial {
			d.partial, d.due = now, time.Time{}
			if now {
				d.due = time.Now().Add(d.server.cfg.Progress)
			}
		}
		d.socket.Receive(into)
	}
	if d.full && !waiting && !d.over {
		d.socket.AwaitWritable()
	}
}

// part sends the last words of a queue that has failed, as far as the socket takes them, and closes it.
func (d *driven) part(last []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(last) > 0 {
		if _, err := syscall.Write(d.fd, last); err == nil {
			_ = syscall.Shutdown(d.fd, syscall.SHUT_WR) // the host may have closed it
		}
	}
	d.closed = true
	_ = syscall.Close(d.fd) // no data can be lost
}

// period is the interval at which deadlines are checked, and thus the maximum delay in detecting a timeout.
func (d *driven) period() time.Duration {
	cfg := &d.server.cfg
	if d.full && !d.copied {
		return max(min(cfg.Hold, cfg.Progress), time.Millisecond)
	}
	return max(min(cfg.Progress, cfg.Handshake)/8, time.Millisecond)
}

// look detaches or cuts off a host that is late.
func (d *driven) look() {
	d.conn.mu.Lock()
	defer d.conn.mu.Unlock()
	if d.gone {
		return
	}
	cfg, now := &d.server.cfg, time.Now()
	switch {
	case d.over:
	case d.full && now.Sub(d.stuck) >= cfg.Progress,
		!d.known && now.Sub(d.born) >= cfg.Handshake,
		!d.draining && !d.due.IsZero() && now.After(d.due):
		d.fail(os.ErrDeadlineExceeded)
	case d.full && !d.copied && now.Sub(d.stuck) >= cfg.Hold:
		d.queue.Detach()
		d.copied = true
	}
	d.watch.Reset(d.period())
}
