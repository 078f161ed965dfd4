package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"farflash/flash/accept"
	"farflash/flash/nbd"
	"farflash/flash/sendv"
)

const (
	bufferSize = 256 << 10 // size of the read buffer
	gather     = 128 << 10 // bytes per write where vectors are not available
	direct     = 16 << 10  // outstanding payload, in bytes, from which it is read directly into its task
)

// conn is one client connection.
type conn struct {
	server    *Server
	base      net.Conn        // as accepted
	nc        net.Conn        // base, or TLS over it
	raw       syscall.RawConn // of nc, if it has a descriptor and no TLS
	placed    bool            // has asked for an export; guarded by the server's mu
	displaced bool            // closed during negotiation to admit another connection; guarded by the server's mu

	in         []byte // in[start:end] is received but not consumed
	start, end int

	mu       sync.Mutex // guards session and all fields below
	session  *nbd.Session
	volume   nbd.Volume
	leave    func()     // the export's Leave; may be nil
	ready    *sync.Cond // signals progress of a stalled session, or the end
	sending  bool       // a goroutine is sending
	over     bool
	draining bool
	err      error
	vec      [][]byte
	flat     []byte
	send     sendv.Sender
	starts   []*nbd.Task
	patience *time.Timer // timer that bounds a drain

	inbox struct {
		sync.Mutex
		tasks []*nbd.Task
		spare []*nbd.Task
		busy  bool // a goroutine will collect the tasks soon
	}
	kick    chan struct{}
	working int // tasks with the volume; guarded by mu
	settled chan struct{}
	sinking bool    // the pending read goes into a task's memory; guarded by mu
	driven  *driven // set if a loop does the I/O
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{server: s, base: nc, nc: nc, kick: make(chan struct{}, 1), settled: make(chan struct{})}
	c.ready = sync.NewCond(&c.mu)
	return c
}

// serve serves the connection until it ends.
func (c *conn) serve(require bool) error {
	h, err := c.negotiate(require)
	<-c.server.slots
	if h == nil || err != nil {
		if h != nil {
			h.Abandon()
		}
		return errors.Join(err, accept.Closed(c.nc.Close()))
	}
	e, _, _ := h.Chosen()
	defer h.Abandon()
	c.mu.Lock()
	c.session, c.volume, c.leave = nbd.NewSession(h, c.server.cfg.Limits, c.done), e.Volume, e.Leave
	draining := c.draining
	c.mu.Unlock()
	if draining {
		return c.nc.Close()
	}
	if s, ok := c.nc.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			c.raw = raw
			c.send.Prepare()
		}
	}
	if len(c.in) < bufferSize {
		in := make([]byte, bufferSize)
		c.end = copy(in, c.in[:c.end])
		c.in = in
	}
	if loops := c.server.cfg.Loops; c.raw != nil && loops != nil && loops.Sockets() {
		if err := c.drive(); err != nil {
			return errors.Join(err, accept.Closed(c.nc.Close()))
		}
	} else {
		go c.write()
		c.read()
	}
	<-c.settled
	c.mu.Lock()
	if c.patience != nil {
		c.patience.Stop()
	}
	c.mu.Unlock()
	return errors.Join(c.err, accept.Closed(c.nc.Close()))
}

// negotiate runs everything before transmission. It returns a nil handshake if the client leaves.
func (c *conn) negotiate(require bool) (*nbd.Handshake, error) {
	cfg := &c.server.cfg
	c.mu.Lock()
	draining, err := c.draining, c.nc.SetDeadline(time.Now().Add(cfg.Handshake))
	c.mu.Unlock()
	if draining || err != nil {
		return nil, err
	}
	exports, err := cfg.Exports(nil)
	if err != nil {
		return nil, err
	}
	mode := nbd.NoTLS
	if cfg.TLS != nil {
		mode = nbd.OfferTLS
	}
	if require {
		mode = nbd.RequireTLS
	}
	h := nbd.NewHandshake(admitted{exports, c}, mode)
	c.in = make([]byte, 4096)
	for {
		if out := h.Output(); len(out) > 0 {
			if _, err := c.nc.Write(out); err != nil {
				return h, err
			}
		}
		switch h.State() {
		case nbd.Ended:
			return nil, h.Err()
		case nbd.Upgrading:
			if err := c.secure(h); err != nil {
				return h, err
			}
			continue
		case nbd.Transmitting:
			return h, c.nc.SetDeadline(time.Time{})
		}
		n := h.Input(c.in[:c.end])
		c.end = copy(c.in, c.in[n:c.end])
		if n > 0 { // there may be output to send, and more input to process
			continue
		}
		if c.end == len(c.in) {
			in := make([]byte, min(2*len(c.in), h.Need()))
			c.end = copy(in, c.in[:c.end])
			c.in = in
		}
		n, err := c.nc.Read(c.in[c.end:])
		if err != nil {
			if c.end == 0 && (err == io.EOF || errors.Is(err, syscall.ECONNRESET)) {
				return nil, nil // port scanners and liveness probes
			}
			return h, err
		}
		c.end += n
	}
}

// secure upgrades the connection to TLS.
func (c *conn) secure(h *nbd.Handshake) error {
	t := tls.Server(c.nc, c.server.cfg.TLS)
	if err := t.Handshake(); err != nil {
		return err
	}
	state := t.ConnectionState()
	exports, err := c.server.cfg.Exports(&state)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.nc = t
	c.mu.Unlock()
	h.Secured(admitted{exports, c})
	return nil
}

// done is every task's Done.
func (c *conn) done(t *nbd.Task) {
	in := &c.inbox
	in.Lock()
	in.tasks = append(in.tasks, t)
	wake := !in.busy && len(in.tasks) == 1
	in.Unlock()
	if wake {
		c.nudge()
	}
}

// nudge wakes the connection's loop or writer.
func (c *conn) nudge() {
	if c.driven != nil {
		c.driven.wake()
		return
	}
	signal(c.kick)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// collect passes completed tasks to the session and reports whether there were any. The caller holds c.mu.
func (c *conn) collect() bool {
	in := &c.inbox
	in.Lock()
	did := false
	for len(in.tasks) > 0 {
		did = true
		tasks := in.tasks
		in.tasks, in.spare = in.spare[:0], nil
		in.Unlock()
		for i, t := range tasks {
			c.session.Finish(t)
			tasks[i] = nil
		}
		c.working -= len(tasks)
		in.Lock()
		in.spare = tasks[:0]
	}
	in.Unlock()
	return did
}

// attend sets whether a goroutine is at work, so that callbacks need not wake one.
func (c *conn) attend(yes bool) {
	in := &c.inbox
	in.Lock()
	in.busy = yes
	late := !yes && len(in.tasks) > 0
	in.Unlock()
	if late {
		c.nudge()
	}
}

// begin starts the tasks that the session has issued. The caller holds c.mu, which is released during Start.
func (c *conn) begin() bool {
	tasks := c.session.Starts(c.starts[:0])
	if len(tasks) == 0 {
		return false
	}
	c.starts = nil // the other goroutine may get here in the meantime
	c.working += len(tasks)
	for _, t := range tasks {
		t.Loop = c.driven.loop()
	}
	c.mu.Unlock()
	c.volume.Start(tasks)
	clear(tasks)
	c.mu.Lock()
	c.starts = tasks
	return true
}

// proceed does all work that is possible and reports whether there was any. With wait set, it may block for the client.
// The caller holds c.mu.
func (c *conn) proceed(wait bool) bool {
	did := false
	for c.collect() || c.begin() || !c.sending && c.flush(wait) {
		did = true
	}
	if c.session.Over() || c.draining && c.session.Drained() {
		c.fail(nil)
	}
	if did || c.over {
		c.ready.Broadcast()
	}
	return did
}

// fail ends the connection. The caller holds c.mu.
func (c *conn) fail(err error) {
	if !c.over {
		c.over, c.err = true, err
		if c.leave != nil {
			c.leave()
		}
		_ = c.nc.SetDeadline(time.Unix(1, 0)) // wakes a blocked reader or writer; if this fails, it gets its own error
		c.nudge()
	}
	if !c.sending && !c.sinking {
		c.session.Fail(net.ErrClosed)
	}
}

// flush sends pending output and reports whether it made progress. The caller holds c.mu.
func (c *conn) flush(wait bool) bool {
	if err := c.session.Err(); err != nil || c.over {
		c.fail(err)
		return false
	}
	c.vec = c.session.Vectors(c.vec[:0], sendv.Most)
	if len(c.vec) == 0 {
		return false
	}
	if c.driven != nil {
		return c.driven.flush()
	}
	if c.raw == nil {
		if wait {
			return c.gather()
		}
		signal(c.kick)
		return false
	}
	n, err := c.send.Try(c.raw, c.vec)
	switch {
	case err != nil:
		c.fail(err)
		return false
	case n > 0:
		c.session.Sent(n)
		return true
	case !wait:
		signal(c.kick) // the writer blocks for the client
		return false
	}
	return c.wait()
}

// wait sends some of c.vec, blocking for the client. After Hold, it copies what the client has not taken, so that no
// memory of the volume stays lent. The caller holds c.mu, which is released while waiting.
func (c *conn) wait() bool {
	cfg := &c.server.cfg
	for _, limit := range []time.Duration{min(cfg.Hold, cfg.Progress), cfg.Progress} {
		c.sending = true
		n, err := 0, c.nc.SetWriteDeadline(time.Now().Add(limit)) // under c.mu: a concurrent fail must win
		c.mu.Unlock()
		if err == nil {
			n, err = c.send.Wait(c.raw, c.vec)
		}
		if err == nil {
			err = c.nc.SetWriteDeadline(time.Time{})
		}
		c.mu.Lock()
		c.sending = false
		c.session.Sent(n)
		if err == nil {
			return true
		}
		if limit == cfg.Progress || c.over || !errors.Is(err, os.ErrDeadlineExceeded) {
			c.fail(err)
			return false
		}
		c.session.Detach()
		c.vec = c.session.Vectors(c.vec[:0], sendv.Most)
	}
	return false
}

// gather sends some of c.vec over a connection that does not take vectors. The caller holds c.mu, which is released
// while writing.
func (c *conn) gather() bool {
	if c.flat == nil {
		c.flat = make([]byte, gather)
	}
	n := 0
	for _, v := range c.vec {
		n += copy(c.flat[n:], v)
	}
	c.session.Sent(n)
	c.sending = true
	// Set while c.mu is held, so that it cannot override the deadline of a concurrent fail.
	err := c.nc.SetWriteDeadline(time.Now().Add(c.server.cfg.Progress))
	c.mu.Unlock()
	if err == nil {
		_, err = c.nc.Write(c.flat[:n])
	}
	c.mu.Lock()
	c.sending = false
	if err != nil {
		c.fail(err)
	}
	return err == nil
}

// write is the writer goroutine. It sends what the reader does not.
func (c *conn) write() {
	for range c.kick {
		c.mu.Lock()
		c.attend(true)
		c.proceed(true)
		c.attend(false)
		done := c.over && c.working == 0
		c.mu.Unlock()
		if done {
			break
		}
	}
	close(c.settled)
}

// drain ends the connection as soon as all received commands have been answered, at most after within; immediately if
// it is still negotiating.
func (c *conn) drain(within time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	past := time.Unix(1, 0)
	if c.session == nil {
		_ = c.nc.SetDeadline(past) // on failure the connection has already ended
		return
	}
	_ = c.nc.SetReadDeadline(past)
	c.patience = time.AfterFunc(within, func() {
		c.mu.Lock()
		c.fail(os.ErrDeadlineExceeded)
		c.mu.Unlock()
	})
	c.nudge()
}

// limitOf returns the deadline for the rest of a partially received command, or for the next command; zero is no
// deadline. The caller holds c.mu.
func (c *conn) limitOf(partial bool) time.Time {
	cfg := &c.server.cfg
	switch {
	case partial:
		return time.Now().Add(cfg.Progress + time.Duration(c.session.Pending()>>20)*time.Second)
	case cfg.Idle > 0:
		return time.Now().Add(cfg.Idle)
	}
	return time.Time{}
}

// limit sets the read deadline, unless the connection is draining. The caller holds c.mu.
func (c *conn) limit(partial bool) error {
	if c.draining {
		return nil
	}
	return c.nc.SetReadDeadline(c.limitOf(partial))
}

// space returns where to read into: the memory of the task being filled, if enough payload is outstanding, otherwise
// the buffer. The caller holds c.mu.
func (c *conn) space() []byte {
	c.end = copy(c.in, c.in[c.start:c.end])
	c.start = 0
	if c.end == 0 && c.session.Pending() >= direct {
		if sink := c.session.Sink(); sink != nil {
			c.sinking = true
			return sink
		}
	}
	return c.in[c.end:]
}

// came records the result of a read. The caller holds c.mu.
func (c *conn) came(n int, err error) {
	if c.sinking {
		c.sinking = false
		c.session.Sunk(n)
	} else {
		c.end += n
	}
	switch {
	case err == nil && !c.over:
	case err == io.EOF && c.session.Idle() && c.end == 0:
		c.fail(nil)
	default:
		c.fail(err)
	}
}

// take passes received bytes to the session and executes the result. It reports whether all work is done until more
// input or a completion arrives. The caller holds c.mu.
func (c *conn) take() bool {
	c.start += c.session.Input(c.in[c.start:c.end])
	c.attend(true)
	did := c.proceed(false)
	c.attend(false)
	return c.over || !c.session.Stalled() || !did
}

// read is the reader goroutine.
func (c *conn) read() {
	c.mu.Lock()
	defer signal(c.kick)
	defer c.mu.Unlock()
	partial := false // the read deadline is for a partially received command
	for !c.over {
		done := c.take()
		switch {
		case c.over:
			return
		case !done:
			continue
		case c.session.Stalled() || c.session.Leaving():
			c.ready.Wait()
			continue
		}
		into := c.space()
		// The deadline counts from the first part of a command; further parts do not extend it.
		if now := c.end > 0 || c.session.Pending() > 0; now != partial || !now && c.server.cfg.Idle > 0 {
			partial = now
			if err := c.limit(partial); err != nil {
				c.sinking = false
				c.fail(err)
				return
			}
		}
		c.mu.Unlock()
		n, err := c.nc.Read(into)
		c.mu.Lock()
		if c.draining && !c.over && errors.Is(err, os.ErrDeadlineExceeded) {
			c.came(n, nil)
			for !c.over { // the writer ends the connection once everything received is answered
				c.ready.Wait()
			}
			return
		}
		c.came(n, err)
	}
}
