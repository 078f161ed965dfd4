package server

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

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
	fd     int
	watch  *time.Timer

	partial bool
	due     time.Time // deadline for the rest of a partially received command, or for the next one; zero: none
	full    bool      // the socket accepts no more bytes
	stuck   time.Time // since when
	copied  bool      // the unsent output has been copied out of the volume's memory
	gone    bool
}

// drive moves the connection to a loop, after the negotiation.
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

func (d *driven) loop() uint8 {
	if d == nil {
		return 0
	}
	return d.on
}

func (d *driven) wake() { d.socket.Wake() }

// Turn implements uring.Handler.
func (d *driven) Turn() {
	d.mu.Lock()
	d.resume()
	d.mu.Unlock()
}

// Received implements uring.Handler.
func (d *driven) Received(n int, err error) {
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
func (d *driven) Writable(error) { // the next send reports the error
	d.mu.Lock()
	d.full, d.copied = false, false
	d.resume()
	d.mu.Unlock()
}

// flush sends some of d.vec and reports whether it made progress. The caller holds d.mu. It runs on the loop's thread
// or, for results of the volume, on the goroutine of the callback.
func (d *driven) flush() bool {
	if d.full {
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
		d.session.Sent(n)
		return true
	}
	d.full, d.stuck = true, time.Now()
	d.watch.Reset(d.period())
	return false
}

// resume does all possible work and submits the connection's next receive or wait to the loop. It runs on the loop's
// thread; the caller holds d.mu.
func (d *driven) resume() {
	if d.gone {
		return
	}
	for !d.take() {
	}
	receiving, waiting := d.socket.Busy()
	switch {
	case d.over && (receiving || waiting):
		d.socket.Cancel(true)
	case d.over && d.working == 0:
		d.gone = true
		d.socket.Detach()
		d.watch.Stop()
		go d.release()
	case d.over:
	case receiving && d.draining:
		d.socket.Cancel(false)
	case !receiving && !d.draining && !d.session.Stalled() && !d.session.Leaving():
		into := d.space()
		// The deadline counts from the first part of a command; further parts do not extend it.
		if now := d.end > 0 || d.session.Pending() > 0; now != d.partial || !now {
			d.partial, d.due = now, d.limitOf(now)
		}
		d.socket.Receive(into)
	}
	if d.full && !waiting && !d.over {
		d.socket.AwaitWritable()
	}
}

// release closes the socket of a connection that has ended.
func (d *driven) release() {
	_ = syscall.Close(d.fd) // no data can be lost
	close(d.settled)
}

// period is the interval at which deadlines are checked, and thus the maximum delay in detecting a timeout.
func (d *driven) period() time.Duration {
	cfg := &d.server.cfg
	if d.full && !d.copied {
		return max(min(cfg.Hold, cfg.Progress), time.Millisecond)
	}
	period := cfg.Progress
	if cfg.Idle > 0 {
		period = min(period, cfg.Idle)
	}
	return max(period/8, time.Millisecond)
}

// look detaches or cuts off a client that is late.
func (d *driven) look() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone {
		return
	}
	cfg, now := &d.server.cfg, time.Now()
	switch {
	case d.over:
	case d.full && now.Sub(d.stuck) >= cfg.Progress,
		!d.draining && !d.due.IsZero() && now.After(d.due) && !d.session.Stalled() && !d.session.Leaving():
		d.fail(os.ErrDeadlineExceeded)
	case d.full && !d.copied && now.Sub(d.stuck) >= cfg.Hold:
		d.session.Detach()
		d.copied = true
	}
	d.watch.Reset(d.period())
}
