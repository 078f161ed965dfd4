package server

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"farflash/flash/accept"
	"farflash/flash/nbd"
	"farflash/flash/nvme"
	"farflash/flash/sendv"
)

const (
	bufferSize = 128 << 10 // size of the read buffer
	direct     = 16 << 10  // outstanding data, in bytes, from which they are read directly into their task
)

// conn is one connection.
type conn struct {
	server    *Server
	nc        net.Conn
	raw       syscall.RawConn
	broken    error // why there is no raw
	placed    bool  // part of an association; guarded by the server's mu
	displaced bool  // closed to admit another connection; guarded by the server's mu

	in         []byte // in[start:end] is received but not consumed
	start, end int

	mu       sync.Mutex // guards queue and all fields below
	queue    *nvme.Queue
	known    bool
	sending  bool // a goroutine is sending
	sinking  bool // the pending read goes into a task's memory
	over     bool
	draining bool
	err      error
	vec      [][]byte
	send     sendv.Sender
	starts   []*nvme.Task
	batch    []*nbd.Task
	working  int         // tasks with volumes
	patience *time.Timer // bounds a drain
	born     time.Time

	inbox struct {
		sync.Mutex
		tasks []*nvme.Task
		spare []*nvme.Task
		turn  bool // the queue's Turn is due
		busy  bool // a goroutine will collect the tasks soon
	}
	kick    chan struct{}
	settled chan struct{}
	driven  *driven // set if a loop does the I/O
}

func newConn(s *Server, nc net.Conn, port uint16) *conn {
	c := &conn{server: s, nc: nc, kick: make(chan struct{}, 1), settled: make(chan struct{}),
		in: make([]byte, bufferSize), born: time.Now()}
	if x, ok := nc.(syscall.Conn); ok {
		c.raw, c.broken = x.SyscallConn()
	} else {
		c.broken = errors.New("nvme: the connection has no descriptor")
	}
	c.queue = s.cfg.Target.NewQueue(port, c, c.done)
	return c
}

// Wake implements nvme.Peer.
func (c *conn) Wake() {
	in := &c.inbox
	in.Lock()
	wake := !in.turn && !in.busy
	in.turn = true
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

// Gone implements nvme.Peer.
func (c *conn) Gone() bool {
	if c.driven != nil {
		return c.driven.disconnected()
	}
	return disconnected(c.raw)
}

// serve serves the connection until it ends.
func (c *conn) serve() error {
	if c.broken != nil {
		close(c.settled)
		return errors.Join(c.broken, c.nc.Close())
	}
	c.mu.Lock()
	c.send.Prepare()
	c.mu.Unlock()
	if loops := c.server.cfg.Loops; loops != nil && loops.Sockets() {
		if err := c.drive(); err != nil {
			close(c.settled)
			return errors.Join(err, accept.Closed(c.nc.Close()))
		}
	} else {
		c.mu.Lock()
		err := c.nc.SetDeadline(c.born.Add(c.server.cfg.Handshake))
		if err != nil || c.draining {
			c.fail(err)
		}
		c.mu.Unlock()
		go c.write()
		c.read()
	}
	<-c.settled
	c.mu.Lock()
	if c.patience != nil {
		c.patience.Stop()
	}
	last := c.queue.Last()
	c.queue.Close()
	c.mu.Unlock()
	if c.driven != nil {
		c.driven.part(last)
	} else {
		c.part(last)
	}
	if errors.Is(c.err, nvme.ErrEnded) {
		c.err = nil // the admin queue has its own reason
	}
	return errors.Join(c.err, accept.Closed(c.nc.Close()))
}

// linger bounds how long a host may take to notice the last words of a queue that has failed.
const linger = time.Second

// part sends the last words of a queue that has failed, and waits until the host has closed its side: closing a
// connection with unread bytes would discard them.
func (c *conn) part(last []byte) {
	if len(last) == 0 || c.nc.SetDeadline(time.Now().Add(linger)) != nil {
		return
	}
	if _, err := c.nc.Write(last); err != nil {
		return
	}
	if x, ok := c.nc.(*net.TCPConn); ok && x.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, x) // what the host still sends has no meaning
	}
}

// done is every task's Done.
func (c *conn) done(t *nvme.Task) {
	in := &c.inbox
	in.Lock()
	in.tasks = append(in.tasks, t)
	wake := !in.busy && len(in.tasks) == 1
	in.Unlock()
	if wake {
		c.nudge()
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// collect passes completed tasks and wakes to the queue, and reports whether there were any. The caller holds c.mu.
func (c *conn) collect() bool {
	in := &c.inbox
	in.Lock()
	did := false
	for len(in.tasks) > 0 || in.turn {
		did = true
		tasks, turn := in.tasks, in.turn
		in.tasks, in.spare, in.turn = in.spare[:0], nil, false
		in.Unlock()
		for i, t := range tasks {
			c.queue.Finish(t)
			tasks[i] = nil
		}
		c.working -= len(tasks)
		if turn {
			c.queue.Turn()
		}
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
	late := !yes && (len(in.tasks) > 0 || in.turn)
	in.Unlock()
	if late {
		c.nudge()
	}
}

// begin starts the tasks that the queue has issued. The caller holds c.mu, which is released meanwhile.
func (c *conn) begin() bool {
	tasks := c.queue.Starts(c.starts[:0])
	if len(tasks) == 0 {
		return false
	}
	batch := c.batch
	c.starts, c.batch = nil, nil // the other goroutine may get here in the meantime
	c.working += len(tasks)
	lane := c.driven.lane()
	for _, t := range tasks {
		t.Loop = lane
	}
	c.mu.Unlock()
	batch = nvme.Start(tasks, batch)
	clear(tasks)
	c.mu.Lock()
	c.starts, c.batch = tasks, batch
	return true
}

// proceed does all work that is possible. With wait set, it may block for the host. The caller holds c.mu.
func (c *conn) proceed(wait bool) {
	for c.collect() || c.begin() || !c.sending && c.flush(wait) {
	}
	if !c.known && c.queue.Known() {
		c.known = true
		err := c.server.place(c)
		if err == nil && !c.draining && !c.over && c.driven == nil {
			err = c.nc.SetDeadline(time.Time{})
		}
		if err != nil {
			c.fail(err)
		}
	}
	if c.queue.Over() || c.draining && c.queue.Idle() {
		c.fail(nil)
	}
}

// fail ends the connection. The caller holds c.mu.
func (c *conn) fail(err error) {
	if !c.over {
		c.over, c.err = true, err
		_ = c.nc.SetDeadline(time.Unix(1, 0)) // wakes a blocked reader or writer; if this fails, it gets its own error
		c.nudge()
	}
	if !c.sending && !c.sinking {
		c.queue.Fail(net.ErrClosed)
	}
}

// flush sends pending output and reports whether it made progress. The caller holds c.mu.
func (c *conn) flush(wait bool) bool {
	c.vec = c.queue.Vectors(c.vec[:0], sendv.Most)
	if err := c.queue.Err(); c.over || err != nil && len(c.vec) == 0 {
		c.fail(err)
		return false
	}
	if len(c.vec) == 0 {
		return false
	}
	if c.driven != nil {
		return c.driven.flush()
	}
	n, err := c.send.Try(c.raw, c.vec)
	switch {
	case err != nil:
		c.fail(err)
		return false
	case n > 0:
		c.queue.Sent(n)
		return true
	case c.queue.Err() != nil: // the rest is not worth waiting for
		c.fail(c.queue.Err())
		return false
	case !wait:
		signal(c.kick) // the writer blocks for the host
		return false
	}
	return c.wait()
}

// wait sends some of c.vec, blocking for the host. After Hold, it copies what the host has not taken, so that no memory
// of a volume stays lent. The caller holds c.mu, which is released while waiting.
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
		c.queue.Sent(n)
		if err == nil && !c.over {
			return true
		}
		if limit == cfg.Progress || c.over || !errors.Is(err, os.ErrDeadlineExceeded) {
			c.fail(err)
			return false
		}
		c.queue.Detach()
		c.vec = c.queue.Vectors(c.vec[:0], sendv.Most)
	}
	return false
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

// cut ends the connection at once.
func (c *conn) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail(nil)
}

// administers reports that the connection carries the admin queue of an association.
func (c *conn) administers() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queue.Administers()
}

// drain ends the connection as soon as all received commands have been answered, at most after within; immediately if
// it is not part of an association.
func (c *conn) drain(within time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	if !c.known {
		c.fail(nil)
		return
	}
	_ = c.nc.SetReadDeadline(time.Unix(1, 0)) // if this fails, the connection has ended
	c.patience = time.AfterFunc(within, func() {
		c.mu.Lock()
		c.fail(os.ErrDeadlineExceeded)
		c.mu.Unlock()
	})
	c.nudge()
}

// space returns where to read into: the memory of the task being filled, if enough data are outstanding, otherwise the
// buffer. The caller holds c.mu.
func (c *conn) space() []byte {
	c.end = copy(c.in, c.in[c.start:c.end])
	c.start = 0
	if c.end == 0 && c.queue.Pending() >= direct {
		if sink := c.queue.Sink(); sink != nil {
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
		if !c.over {
			c.queue.Sunk(n)
		}
	} else {
		c.end += n
	}
	switch {
	case err == nil && !c.over:
	case err == io.EOF && c.queue.Idle() && c.end == 0:
		c.fail(nil) // port scanners and liveness probes, and hosts that have shut down
	default:
		c.fail(err)
	}
}

// limit sets the read deadline for the rest of a PDU, or none between PDUs: keep-alives bound that. The caller holds
// c.mu.
func (c *conn) limit(partial bool) error {
	if c.draining || !c.known {
		return nil
	}
	if partial {
		return c.nc.SetReadDeadline(time.Now().Add(c.server.cfg.Progress))
	}
	return c.nc.SetReadDeadline(time.Time{})
}

// advance passes received bytes to the queue and executes the result. The caller holds c.mu.
func (c *conn) advance() {
	c.start += c.queue.Input(c.in[c.start:c.end])
	c.attend(true)
	c.proceed(false)
	c.attend(false)
}

// read is the reader goroutine.
func (c *conn) read() {
	c.mu.Lock()
	defer signal(c.kick)
	defer c.mu.Unlock()
	partial := false // the read deadline is for a partially received PDU
	for !c.over {
		if c.advance(); c.over {
			return
		}
		into := c.space()
		// The deadline counts from the first part of a PDU; further parts do not extend it.
		if now := c.end > 0 || c.queue.Partial(); now != partial {
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
			return // the writer ends the connection once everything received is answered
		}
		c.came(n, err)
	}
}
