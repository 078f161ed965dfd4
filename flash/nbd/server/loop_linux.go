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

// driven is what a connection has that a loop drives. What is received goes from the ring to where it belongs; what
// is sent goes by a system call that does not wait, from the loop's thread, which takes straight from the volume's
// memory.
type driven struct {
	*conn
	on     uint8 // the lane
	socket *uring.Socket
	fd     int
	watch  *time.Timer

	partial bool
	due     time.Time // when all of a command has to have come of which a part has, or the next one; zero: never
	full    bool      // the client takes nothing
	stuck   time.Time // since when
	copied  bool      // nothing of the volume is lent any more for what it has not taken
	gone    bool
}

// drive gives the connection to a loop, after the negotiation.
func (c *conn) drive() error {
	loops := c.server.cfg.Loops
	d := &driven{conn: c, on: loops.Lane()}
	var err error
	if d.fd, err = uring.Duplicate(c.raw); err != nil {
		return err
	}
	_ = c.nc.Close() // the runtime's poller would be woken for all that comes; the socket is open still
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

func (d *driven) lane() uint8 {
	if d == nil {
		return 0
	}
	return d.on
}

func (d *driven) wake() { d.socket.Wake() }

// Turn implements uring.Handler.
func (d *driven) Turn() {
	d.mu.Lock()
	d.goOn()
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
	d.goOn()
	d.mu.Unlock()
}

// Writable implements uring.Handler.
func (d *driven) Writable(error) { // an error comes again when something is sent
	d.mu.Lock()
	d.full, d.copied = false, false
	d.goOn()
	d.mu.Unlock()
}

// flush sends some of what is in vec, and reports whether it has; mu is held, on the loop's thread or, of what the
// volume has done, wherever its callbacks come from.
func (d *driven) flush() bool {
	if d.full {
		return false
	}
	d.send.load(d.vec)
	n, err := d.socket.SendVectors(d.send.iov)
	clear(d.send.iov)
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

// goOn does what can be done, and asks the loop for what the connection waits for next; mu is held, on the loop's
// thread.
func (d *driven) goOn() {
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
		go d.bury()
	case d.over:
	case receiving && d.draining:
		d.socket.Cancel(false)
	case !receiving && !d.draining && !d.session.Stalled() && !d.session.Leaving():
		into := d.space()
		// What a command owes is due from when its first part has come: what comes of it meanwhile does not move that.
		if now := d.end > 0 || d.session.Owed() > 0; now != d.partial || !now {
			d.partial, d.due = now, d.limitOf(now)
		}
		d.socket.Receive(into)
	}
	if d.full && !waiting && !d.over {
		d.socket.AwaitRoom()
	}
}

// bury closes the socket of a connection that has ended.
func (d *driven) bury() {
	_ = syscall.Close(d.fd) // nothing is lost with it
	close(d.settled)
}

// period is how soon deadlines are looked at: what is late is so by that at most.
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

// look sees to clients that are late.
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
