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
	"unsafe"

	"farflash/flash/nbd"
)

const (
	bufferSize = 256 << 10 // what is read at once
	vectors    = 512       // what is sent at once; the kernel takes 1024 at most
	gather     = 128 << 10 // bytes that are sent at once where there are no vectors
	direct     = 16 << 10  // bytes of a payload from which on they are read to where they belong
)

// conn is one client.
type conn struct {
	server *Server
	nc     net.Conn
	raw    syscall.RawConn // of nc, if it has a descriptor and no TLS
	placed bool            // it has asked for an export; held by the server's mu

	in         []byte // [start:end] has come and is not done with
	start, end int

	mu       sync.Mutex // held to use session, and what follows
	session  *nbd.Session
	volume   nbd.Volume
	leave    func()     // of the export; may be nil
	ready    *sync.Cond // the session is no longer stalled, or over
	sending  bool       // somebody is at it
	over     bool
	draining bool
	err      error
	vec      [][]byte
	flat     []byte
	send     sender
	starts   []*nbd.Task
	patience *time.Timer // of a drain

	inbox struct {
		sync.Mutex
		tasks []*nbd.Task
		spare []*nbd.Task
		busy  bool // somebody takes them out soon
	}
	kick    chan struct{}
	working int // tasks that the volume has, held by mu
	settled chan struct{}
	sinking bool    // what comes is read into a task's own memory, held by mu
	driven  *driven // if a loop does the I/O
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{server: s, nc: nc, kick: make(chan struct{}, 1), settled: make(chan struct{})}
	c.ready = sync.NewCond(&c.mu)
	return c
}

// serve serves the connection until its end.
func (c *conn) serve(require bool) error {
	h, err := c.negotiate(require)
	if h == nil || err != nil {
		if h != nil {
			h.Abandon()
		}
		return errors.Join(err, closed(c.nc.Close()))
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
			c.send.prepare()
		}
	}
	if len(c.in) < bufferSize {
		in := make([]byte, bufferSize)
		c.end = copy(in, c.in[:c.end])
		c.in = in
	}
	if loops := c.server.cfg.Loops; c.raw != nil && loops != nil && loops.Sockets() {
		if err := c.drive(); err != nil {
			return errors.Join(err, closed(c.nc.Close()))
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
	return errors.Join(c.err, closed(c.nc.Close()))
}

// closed drops the error of closing what is closed already, or broken: the cause is known.
func closed(err error) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// negotiate is everything before transmission. It returns nothing if the client goes.
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
		if n > 0 { // there may be something to be sent, and more that has come
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
				return nil, nil // scanners and those who only wanted to know whether somebody is there
			}
			return h, err
		}
		c.end += n
	}
}

// secure begins TLS.
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

// nudge has the connection looked at: by its loop, or by the writer.
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

// collect gives the session what volumes have done, and reports whether that was anything; c.mu is held.
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

// attend says whether callbacks need to wake somebody.
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

// begin begins what the session wants begun; c.mu is held and released meanwhile.
func (c *conn) begin() bool {
	tasks := c.session.Starts(c.starts[:0])
	if len(tasks) == 0 {
		return false
	}
	c.starts = nil // the other goroutine may be here meanwhile
	c.working += len(tasks)
	for _, t := range tasks {
		t.Lane = c.driven.lane()
	}
	c.mu.Unlock()
	c.volume.Start(tasks)
	clear(tasks)
	c.mu.Lock()
	c.starts = tasks
	return true
}

// proceed does all that can be done, and reports whether that was anything; c.mu is held. wait says that it may wait
// for the client.
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

// fail ends the connection; c.mu is held.
func (c *conn) fail(err error) {
	if !c.over {
		c.over, c.err = true, err
		if c.leave != nil {
			c.leave()
		}
		_ = c.nc.SetDeadline(time.Unix(1, 0)) // wakes who waits for the client; if it cannot be, he has his own error
		c.nudge()
	}
	if !c.sending && !c.sinking {
		c.session.Fail(net.ErrClosed)
	}
}

// flush sends what there is, and reports whether it has sent anything; c.mu is held.
func (c *conn) flush(wait bool) bool {
	if err := c.session.Err(); err != nil || c.over {
		c.fail(err)
		return false
	}
	c.vec = c.session.Vectors(c.vec[:0], vectors)
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
	n, err := c.send.try(c.raw, c.vec)
	switch {
	case err != nil:
		c.fail(err)
		return false
	case n > 0:
		c.session.Sent(n)
		return true
	case !wait:
		signal(c.kick) // the writer waits for the client
		return false
	}
	return c.wait()
}

// wait sends some of what is in vec, waiting for the client; c.mu is held, and released meanwhile. After Hold nothing
// of the volume is lent any more.
func (c *conn) wait() bool {
	cfg := &c.server.cfg
	for _, limit := range []time.Duration{min(cfg.Hold, cfg.Progress), cfg.Progress} {
		c.sending = true
		n, err := 0, c.nc.SetWriteDeadline(time.Now().Add(limit)) // before another's fail has a chance to shorten it
		c.mu.Unlock()
		if err == nil {
			n, err = c.send.wait(c.raw, c.vec)
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
		c.vec = c.session.Vectors(c.vec[:0], vectors)
	}
	return false
}

// gather sends some of what is in vec over a connection that takes no vectors; c.mu is held, and released meanwhile.
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
	// before another's fail has a chance to shorten it
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

// write is the goroutine that sends what the reader does not.
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

// drain has the connection end as soon as what has come is answered, or within a time; at once if it still negotiates.
func (c *conn) drain(within time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	past := time.Unix(1, 0)
	if c.session == nil {
		_ = c.nc.SetDeadline(past) // if it cannot be set the connection has ended
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

// limitOf is until when all of a command has to have come of which a part has, or else the next one; zero: there is
// no limit. c.mu is held.
func (c *conn) limitOf(partial bool) time.Time {
	cfg := &c.server.cfg
	switch {
	case partial:
		return time.Now().Add(cfg.Progress + time.Duration(c.session.Owed()>>20)*time.Second)
	case cfg.Idle > 0:
		return time.Now().Add(cfg.Idle)
	}
	return time.Time{}
}

// limit sets the deadline for reading, of a connection that is not being drained; c.mu is held.
func (c *conn) limit(partial bool) error {
	if c.draining {
		return nil
	}
	return c.nc.SetReadDeadline(c.limitOf(partial))
}

// space is where what comes next is read to: a task's own memory, if that is worth it, or else the buffer; c.mu is
// held.
func (c *conn) space() []byte {
	c.end = copy(c.in, c.in[c.start:c.end])
	c.start = 0
	if c.end == 0 && c.session.Owed() >= direct {
		if sink := c.session.Sink(); sink != nil {
			c.sinking = true
			return sink
		}
	}
	return c.in[c.end:]
}

// came takes in what was read, or why nothing was; c.mu is held.
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

// take gives the session what has come and does what follows; c.mu is held. It reports whether there is nothing more
// to be done until something comes.
func (c *conn) take() bool {
	c.start += c.session.Input(c.in[c.start:c.end])
	c.attend(true)
	did := c.proceed(false)
	c.attend(false)
	return c.over || !c.session.Stalled() || !did
}

// read is the goroutine that reads.
func (c *conn) read() {
	c.mu.Lock()
	defer signal(c.kick)
	defer c.mu.Unlock()
	partial := false // there is a deadline for a command of which a part has come
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
		// What a command owes is due from when its first part has come: what comes of it meanwhile does not move the
		// deadline.
		if now := c.end > 0 || c.session.Owed() > 0; now != partial || !now && c.server.cfg.Idle > 0 {
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
			for !c.over { // the writer ends it when what has come is answered
				c.ready.Wait()
			}
			return
		}
		c.came(n, err)
	}
}

// sender writes vectors with one system call. It is kept with its functions, so that a call allocates nothing.
type sender struct {
	iov  []syscall.Iovec
	n    int
	err  error
	once func(fd uintptr) bool
	full func(fd uintptr) bool
}

func (s *sender) prepare() {
	s.iov = make([]syscall.Iovec, vectors)
	s.once = func(fd uintptr) bool { s.call(fd); return true }
	s.full = func(fd uintptr) bool { s.call(fd); return s.err != syscall.EAGAIN }
}

func (s *sender) call(fd uintptr) {
	for {
		n, _, no := syscall.Syscall(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&s.iov[0])), uintptr(len(s.iov)))
		if no == syscall.EINTR {
			continue
		}
		s.n, s.err = int(n), nil
		if no != 0 {
			s.n, s.err = 0, no
		}
		return
	}
}

func (s *sender) load(vec [][]byte) {
	s.iov = s.iov[:len(vec)]
	for i, v := range vec {
		s.iov[i].Base = unsafe.SliceData(v)
		s.iov[i].SetLen(len(v))
	}
}

// try writes what the connection takes without waiting: perhaps nothing.
func (s *sender) try(raw syscall.RawConn, vec [][]byte) (int, error) {
	s.load(vec)
	outer := raw.Write(s.once)
	clear(s.iov)
	switch {
	case outer != nil:
		return 0, outer
	case s.err == syscall.EAGAIN:
		return 0, nil
	}
	return s.n, s.err
}

// wait writes, waiting until the connection takes something or the deadline is over.
func (s *sender) wait(raw syscall.RawConn, vec [][]byte) (int, error) {
	s.load(vec)
	outer := raw.Write(s.full)
	clear(s.iov)
	if outer != nil {
		return 0, outer
	}
	return s.n, s.err
}
