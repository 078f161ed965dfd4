package driver

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"farflash/flash/uring"
)

// Loops are threads that do the I/O of connections.
type Loops = uring.Loops

// driven is the state of a connection that a loop drives. The ring receives directly into the destination; the loop's
// thread sends with a non-blocking system call, directly from the memory where the output is.
type driven[T any] struct {
	*Conn[T]
	socket *uring.Socket
	watch  *time.Timer

	open   sync.Mutex // guards fd and closed; a leaf among locks
	fd     int
	closed bool

	full   bool      // the socket accepts no more bytes
	stuck  time.Time // since when
	copied bool      // the unsent output has been copied out of the memory that was lent for it
	gone   bool
}

// drive moves the connection to a loop.
func (c *Conn[T]) drive() error {
	loops := c.cfg.Loops
	c.lane = loops.Next()
	d := &driven[T]{Conn: c}
	var err error
	if d.fd, err = uring.Duplicate(c.raw); err != nil {
		return err
	}
	_ = c.nc.Close() // the runtime's poller would be woken for all input; the duplicate stays open
	if d.socket, err = loops.Attach(c.lane, d.fd, d); err != nil {
		return errors.Join(err, syscall.Close(d.fd))
	}
	c.mu.Lock()
	c.driven = d
	_ = c.limit(false) // only computed, since c.driven is set
	d.watch = time.AfterFunc(d.period(), d.look)
	c.mu.Unlock()
	d.socket.Begin()
	return nil
}

// control is Conn.Control.
func (d *driven[T]) control(f func(fd uintptr)) error {
	d.open.Lock()
	defer d.open.Unlock()
	if d.closed {
		return net.ErrClosed
	}
	f(uintptr(d.fd))
	return nil
}

// Turn implements uring.Handler.
func (d *driven[T]) Turn() {
	d.mu.Lock()
	d.resume()
	d.mu.Unlock()
}

// Received implements uring.Handler.
func (d *driven[T]) Received(n int, err error) {
	d.mu.Lock()
	switch {
	case errors.Is(err, syscall.ECANCELED), errors.Is(err, syscall.EINTR):
		err = nil
	case err == nil && n == 0:
		err = io.EOF
	}
	d.came(n, err)
	d.resume()
	d.mu.Unlock()
}

// Writable implements uring.Handler.
func (d *driven[T]) Writable(error) { // the next send reports the error
	d.mu.Lock()
	d.full, d.copied = false, false
	d.resume()
	d.mu.Unlock()
}

// try is Conn.try. It runs on the loop's thread or, for results of a volume, on the goroutine of the callback.
func (d *driven[T]) try() (int, error) {
	if d.full {
		return 0, nil
	}
	iov := d.send.Load(d.vec)
	n, err := d.socket.SendVectors(iov)
	clear(iov)
	if n == 0 && err == nil {
		d.full, d.stuck = true, time.Now()
		d.watch.Reset(d.period())
	}
	return n, err
}

// resume does all possible work and submits the connection's next receive or wait to the loop. It runs on the loop's
// thread; the caller holds d.mu.
func (d *driven[T]) resume() {
	if d.gone {
		return
	}
	d.take()
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
	case !receiving && !d.draining && d.machine.Ready():
		into, _ := d.space() // the deadline is only computed
		d.socket.Receive(into)
	}
	if d.full && !waiting && !d.over {
		d.socket.AwaitWritable()
	}
}

// part sends the last words, as far as the socket takes them, and closes it.
func (d *driven[T]) part(last []byte) {
	d.open.Lock()
	defer d.open.Unlock()
	if len(last) > 0 {
		if d.cfg.Reset {
			_ = syscall.SetsockoptLinger(d.fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{})
		}
		if _, err := syscall.Write(d.fd, last); err == nil {
			_ = syscall.Shutdown(d.fd, syscall.SHUT_WR) // the client may have closed it
		}
	}
	d.closed = true
	_ = syscall.Close(d.fd) // no data can be lost
}

// period is the interval at which deadlines are checked, and thus the maximum delay in detecting a timeout.
func (d *driven[T]) period() time.Duration {
	cfg := &d.cfg
	if d.full && !d.copied {
		return max(min(cfg.Hold, cfg.Progress), time.Millisecond)
	}
	period := cfg.Progress
	if cfg.Idle > 0 {
		period = min(period, cfg.Idle)
	}
	if !d.known {
		period = min(period, cfg.Handshake)
	}
	return max(period/8, time.Millisecond)
}

// look detaches or cuts off a client that is late.
func (d *driven[T]) look() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone {
		return
	}
	cfg, now := &d.cfg, time.Now()
	switch {
	case d.over:
	case d.full && now.Sub(d.stuck) >= cfg.Progress,
		!d.draining && !d.due.IsZero() && now.After(d.due) && d.machine.Ready():
		d.fail(os.ErrDeadlineExceeded)
	case d.full && !d.copied && now.Sub(d.stuck) >= cfg.Hold:
		d.machine.Detach()
		d.copied = true
	}
	d.watch.Reset(d.period())
}
