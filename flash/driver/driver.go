// Package driver drives the state machine of a connection's protocol, NBD or NVMe over TCP. It does the I/O, runs the
// goroutines and reads the clock, so that the machines need none of them. Conn is one connection; Machine is what it
// needs of the state machine, whose tasks have type T.
//
// A connection has two goroutines. One reads, starts the resulting tasks and sends, with one system call, the answers
// that are ready in the meantime; the other sends results that complete later. With Loops, one of their threads does
// this for many connections, together with the device operations that they request. Output is sent directly from the
// memory where it is, as vectors, and long payloads are received directly into the memory of their task; a connection
// without a descriptor, such as one of TLS, gathers its output into a buffer first. If a client does not read, the
// output lent by a volume is copied after Config.Hold, and the client is cut off after Config.Progress.
//
// It leaves out accepting connections (package accept), limits on their number (package halfopen), and what precedes
// the machine, such as NBD's negotiation. The connections of iWARP have a driver of their own in flash/verbs/stream,
// because their machine reads and writes memory itself instead of issuing tasks.
package driver

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"farflash/flash/accept"
	"farflash/flash/sendv"
)

const (
	gather = 128 << 10   // bytes per write where vectors are not available
	direct = 16 << 10    // outstanding payload, in bytes, from which it is read directly into its task
	linger = time.Second // how long a client may take to notice the last words
)

// past is a deadline that has expired.
var past = time.Unix(1, 0)

// Config is what a connection needs besides its machine.
type Config[T any] struct {
	Loops    *Loops // if set and able to, they do the I/O of connections that have a descriptor
	Buffer   int    // size of the read buffer, in bytes
	Received []byte // what was received before

	// Progress bounds the reception of a command or PDU, from its first byte to its last, plus one second per MiB of
	// payload; and each write to the connection.
	Progress time.Duration
	// Idle, if not zero, bounds the time between commands.
	Idle time.Duration
	// Hold is how long a client that does not read can hold memory that is lent for output.
	Hold time.Duration
	// Unsent, if not zero, limits what the kernel holds of the output and has not sent, in bytes (Linux).
	Unsent int
	// Reset has TCP reset the connection when it is closed, also by the end of the process, unless last words are sent.
	// Output that the kernel has not sent is lost.
	Reset bool
	// Handshake bounds the time until Enter reports that the client is known.
	Handshake time.Duration

	// Start starts tasks, which are passed to Done when they are done. Their device operations run best on the loop
	// of the lane, unless it is 0. It is called without a lock, and does not keep the slice.
	Start func(tasks []T, lane uint8)
	// Enter, if set, reports that the client is known, and an error if it is not admitted. It is called after each
	// progress until then. Without Enter, the client is known from the beginning.
	Enter func() (known bool, err error)
	// Turn follows Wake; nil if that is not called.
	Turn func()
	// Leave, if set, is called once, when the connection ends; tasks can be outstanding.
	Leave func()
	// Close, if set, is called once, after the last task, and returns what to send before the connection is closed.
	Close func() []byte
}

// Conn is one connection. Its methods are safe for concurrent use.
type Conn[T any] struct {
	cfg  Config[T]
	nc   net.Conn
	raw  syscall.RawConn // of nc, if it has a descriptor
	born time.Time

	in         []byte // in[start:end] is received but not consumed
	start, end int

	mu       sync.Mutex // guards machine and all fields below
	machine  Machine[T]
	ready    *sync.Cond // signals progress of a machine that was not ready, or the end
	known    bool       // the client is, see Enter
	sending  bool       // a goroutine is sending
	sinking  bool       // the pending read goes into a task's memory
	over     bool
	draining bool
	partial  bool      // a command or PDU is partially received
	due      time.Time // deadline for the rest of it, or for the next one; zero: none
	err      error
	vec      [][]byte
	flat     []byte
	send     sendv.Sender
	starts   []T
	working  int         // tasks started and not done
	patience *time.Timer // bounds a drain

	inbox struct {
		sync.Mutex
		tasks []T
		spare []T
		turn  bool // the machine's Turn is due
		busy  bool // a goroutine will collect the tasks soon
	}
	kick    chan struct{}
	settled chan struct{}
	lane    uint8
	driven  *driven[T] // set if a loop does the I/O
}

// New returns a connection, which begins with Run.
func New[T any](nc net.Conn, m Machine[T], cfg Config[T]) *Conn[T] {
	c := &Conn[T]{cfg: cfg, nc: nc, machine: m, born: time.Now(), known: cfg.Enter == nil, kick: make(chan struct{}, 1),
		settled: make(chan struct{})}
	c.ready = sync.NewCond(&c.mu)
	if cfg.Unsent > 0 {
		LimitUnsent(nc, cfg.Unsent)
	}
	if cfg.Reset {
		setReset(nc, true)
	}
	if x, ok := nc.(syscall.Conn); ok {
		if raw, err := x.SyscallConn(); err == nil {
			c.raw = raw
			c.send.Prepare()
		}
	}
	return c
}

// Run serves the connection until it ends, and closes it.
func (c *Conn[T]) Run() error {
	c.in = make([]byte, max(c.cfg.Buffer, len(c.cfg.Received)))
	c.end, c.cfg.Received = copy(c.in, c.cfg.Received), nil
	if loops := c.cfg.Loops; c.raw != nil && loops != nil && loops.Sockets() {
		if err := c.drive(); err != nil {
			c.Cut(err)
			close(c.settled)
		}
	} else {
		go c.write()
		c.read()
	}
	<-c.settled
	var last []byte
	c.mu.Lock()
	err := c.err
	if c.patience != nil {
		c.patience.Stop()
	}
	if c.cfg.Close != nil {
		last = c.cfg.Close()
	}
	c.mu.Unlock()
	if c.driven != nil {
		c.driven.part(last)
	} else {
		c.part(last)
	}
	return errors.Join(err, accept.Closed(c.nc.Close()))
}

// setReset sets whether closing a TCP connection resets it.
func setReset(nc net.Conn, on bool) {
	seconds := -1
	if on {
		seconds = 0
	}
	if tcp, ok := nc.(*net.TCPConn); ok {
		_ = tcp.SetLinger(seconds) // otherwise it ends as others do
	}
}

// part sends the last words, and waits until the client has closed its side: closing a connection with unread bytes
// would discard them.
func (c *Conn[T]) part(last []byte) {
	if len(last) == 0 || c.nc.SetDeadline(time.Now().Add(linger)) != nil {
		return
	}
	if c.cfg.Reset {
		setReset(c.nc, false)
	}
	if _, err := c.nc.Write(last); err != nil {
		return
	}
	if x, ok := c.nc.(*net.TCPConn); ok && x.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, x) // what the client still sends has no meaning
	}
}

// Control calls f with the connection's descriptor, which stays open meanwhile, or returns an error if there is none.
func (c *Conn[T]) Control(f func(fd uintptr)) error {
	switch {
	case c.driven != nil:
		return c.driven.control(f)
	case c.raw != nil:
		return c.raw.Control(f)
	}
	return errors.ErrUnsupported
}

// Done takes back a task that is done, on any goroutine.
func (c *Conn[T]) Done(t T) {
	in := &c.inbox
	in.Lock()
	in.tasks = append(in.tasks, t)
	wake := !in.busy && len(in.tasks) == 1
	in.Unlock()
	if wake {
		c.nudge()
	}
}

// Wake makes Turn be called soon, from any goroutine.
func (c *Conn[T]) Wake() {
	in := &c.inbox
	in.Lock()
	wake := !in.busy && !in.turn
	in.turn = true
	in.Unlock()
	if wake {
		c.nudge()
	}
}

// Cut ends the connection at once. err is its reason, or nil.
func (c *Conn[T]) Cut(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail(err)
}

// Drain ends the connection as soon as all received commands have been answered, at most after within; immediately if
// the client is not known.
func (c *Conn[T]) Drain(within time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	if !c.known || c.over {
		c.fail(nil)
		return
	}
	_ = c.nc.SetReadDeadline(past) // if this fails, the connection has ended
	if c.patience != nil {
		c.patience.Stop()
	}
	c.patience = time.AfterFunc(within, func() { c.Cut(os.ErrDeadlineExceeded) })
	c.nudge()
}

// nudge wakes the connection's loop or writer.
func (c *Conn[T]) nudge() {
	if c.driven != nil {
		c.driven.socket.Wake()
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

// collect passes tasks that are done and wakes to the machine, and reports whether there were any. The caller holds
// c.mu.
func (c *Conn[T]) collect() bool {
	in := &c.inbox
	in.Lock()
	did := false
	for len(in.tasks) > 0 || in.turn {
		did = true
		tasks, turn := in.tasks, in.turn
		in.tasks, in.spare, in.turn = in.spare[:0], nil, false
		in.Unlock()
		for _, t := range tasks {
			c.machine.Finish(t)
		}
		clear(tasks)
		c.working -= len(tasks)
		if turn {
			c.cfg.Turn()
		}
		in.Lock()
		in.spare = tasks[:0]
	}
	in.Unlock()
	return did
}

// attend sets whether a goroutine is at work, so that callbacks need not wake one.
func (c *Conn[T]) attend(yes bool) {
	in := &c.inbox
	in.Lock()
	in.busy = yes
	late := !yes && (len(in.tasks) > 0 || in.turn)
	in.Unlock()
	if late {
		c.nudge()
	}
}

// begin starts the tasks that the machine has issued. The caller holds c.mu, which is released meanwhile.
func (c *Conn[T]) begin() bool {
	tasks := c.machine.Starts(c.starts[:0])
	if len(tasks) == 0 {
		return false
	}
	c.starts = nil // the other goroutine may get here in the meantime
	c.working += len(tasks)
	c.mu.Unlock()
	c.cfg.Start(tasks, c.lane)
	clear(tasks)
	c.mu.Lock()
	c.starts = tasks
	return true
}

// proceed does all work that is possible and reports whether there was any. With wait set, it may block for the client.
// The caller holds c.mu.
func (c *Conn[T]) proceed(wait bool) bool {
	did := false
	for c.collect() || c.begin() || !c.sending && c.flush(wait) {
		did = true
	}
	if !c.known && !c.over {
		var err error
		if c.known, err = c.cfg.Enter(); c.known && err == nil {
			err = c.limit(c.partial)
		}
		if err != nil {
			c.fail(err)
		}
	}
	if c.machine.Over() || c.draining && c.machine.Drained() {
		c.fail(nil)
	}
	if did || c.over {
		c.ready.Broadcast()
	}
	return did
}

// fail ends the connection. The caller holds c.mu.
func (c *Conn[T]) fail(err error) {
	if !c.over {
		c.over, c.err = true, err
		if c.cfg.Leave != nil {
			c.cfg.Leave()
		}
		_ = c.nc.SetDeadline(past) // wakes a blocked reader or writer; if this fails, it gets its own error
		c.nudge()
	}
	if !c.sending && !c.sinking {
		c.machine.Fail(net.ErrClosed)
	}
}

// flush sends pending output and reports whether it made progress. The caller holds c.mu.
func (c *Conn[T]) flush(wait bool) bool {
	c.vec = c.machine.Vectors(c.vec[:0], sendv.Most)
	if err := c.machine.Err(); c.over || err != nil && len(c.vec) == 0 {
		c.fail(err)
		return false
	}
	if len(c.vec) == 0 {
		return false
	}
	n, err := c.try()
	switch {
	case err != nil:
		c.fail(err)
	case n > 0:
		c.machine.Sent(n)
		return true
	case c.machine.Err() != nil:
		c.fail(c.machine.Err()) // the rest is not worth waiting for
	case c.driven != nil: // the loop waits for the client
	case !wait:
		signal(c.kick) // the writer blocks for the client
	case c.raw == nil:
		return c.gather()
	default:
		return c.wait()
	}
	return false
}

// try sends as much of c.vec as the connection takes without blocking, possibly 0 bytes. The caller holds c.mu.
func (c *Conn[T]) try() (int, error) {
	switch {
	case c.driven != nil:
		return c.driven.try()
	case c.raw != nil:
		return c.send.Try(c.raw, c.vec)
	}
	return 0, nil
}

// wait sends some of c.vec, blocking for the client. After Hold, it copies what the client has not taken, so that no
// memory of a volume stays lent. The caller holds c.mu, which is released while waiting.
func (c *Conn[T]) wait() bool {
	cfg := &c.cfg
	for _, limit := range [...]time.Duration{min(cfg.Hold, cfg.Progress), cfg.Progress} {
		n, err := c.block(limit, func() (int, error) { return c.send.Wait(c.raw, c.vec) })
		if err == nil {
			err = c.nc.SetWriteDeadline(time.Time{})
		}
		c.machine.Sent(n)
		if err == nil && !c.over {
			return true
		}
		if limit == cfg.Progress || c.over || !errors.Is(err, os.ErrDeadlineExceeded) {
			c.fail(err)
			return false
		}
		c.machine.Detach()
		if c.vec = c.machine.Vectors(c.vec[:0], sendv.Most); len(c.vec) == 0 {
			return true // it has failed meanwhile, which flush notices
		}
	}
	return false
}

// block calls send, which waits for the client up to limit. The caller holds c.mu, which is released meanwhile.
func (c *Conn[T]) block(limit time.Duration, send func() (int, error)) (int, error) {
	c.sending = true
	n, err := 0, c.nc.SetWriteDeadline(time.Now().Add(limit)) // under c.mu: a concurrent fail must win
	c.mu.Unlock()
	if err == nil {
		n, err = send()
	}
	c.mu.Lock()
	c.sending = false
	return n, err
}

// gather sends some of c.vec over a connection that does not take vectors. The caller holds c.mu, which is released
// while writing.
func (c *Conn[T]) gather() bool {
	if c.flat == nil {
		c.flat = make([]byte, gather)
	}
	n := 0
	for _, v := range c.vec {
		n += copy(c.flat[n:], v)
	}
	c.machine.Sent(n)
	_, err := c.block(c.cfg.Progress, func() (int, error) { return c.nc.Write(c.flat[:n]) })
	if err != nil {
		c.fail(err)
	}
	return err == nil
}

// write is the writer goroutine. It sends what the reader does not.
func (c *Conn[T]) write() {
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

// limit computes the deadline of the next read: for the rest of a partially received command or PDU, or for the next
// one. It also sets it, unless the connection is draining or a loop reads. The caller holds c.mu.
func (c *Conn[T]) limit(partial bool) error {
	now := time.Now()
	c.partial, c.due = partial, time.Time{}
	switch {
	case partial:
		c.due = now.Add(c.cfg.Progress + time.Duration(c.machine.Pending()>>20)*time.Second)
	case c.cfg.Idle > 0:
		c.due = now.Add(c.cfg.Idle)
	}
	if most := c.born.Add(c.cfg.Handshake); !c.known && (c.due.IsZero() || most.Before(c.due)) {
		c.due = most
	}
	if c.draining || c.driven != nil {
		return nil
	}
	return c.nc.SetReadDeadline(c.due)
}

// space returns where to read into: the memory of the task being filled, if enough payload is outstanding, otherwise
// the buffer. The deadline counts from the first part of a command or PDU; further parts do not extend it. The caller
// holds c.mu.
func (c *Conn[T]) space() ([]byte, error) {
	c.end = copy(c.in, c.in[c.start:c.end])
	c.start = 0
	into, pending := c.in[c.end:], c.machine.Pending()
	if partial := c.end > 0 || pending > 0; partial != c.partial || !partial && c.cfg.Idle > 0 {
		if err := c.limit(partial); err != nil {
			return nil, err
		}
	}
	if c.end == 0 && pending >= direct {
		if sink := c.machine.Sink(); sink != nil {
			c.sinking, into = true, sink
		}
	}
	return into, nil
}

// came records the result of a read. The caller holds c.mu.
func (c *Conn[T]) came(n int, err error) {
	switch {
	case !c.sinking:
		c.end += n
	case !c.over:
		c.machine.Sunk(n)
	}
	c.sinking = false
	switch {
	case err == nil && !c.over:
	case err == io.EOF && c.machine.Drained() && c.machine.Pending() == 0 && c.end == 0:
		c.fail(nil) // port scanners and liveness probes, and clients that have shut down
	default:
		c.fail(err)
	}
}

// take passes received bytes to the machine and executes the result, until all work is done that is possible before
// more input or a completion. The caller holds c.mu.
func (c *Conn[T]) take() {
	for {
		c.start += c.machine.Input(c.in[c.start:c.end])
		c.attend(true)
		did := c.proceed(false)
		c.attend(false)
		if c.over || c.machine.Ready() || !did {
			return
		}
	}
}

// read is the reader goroutine.
func (c *Conn[T]) read() {
	c.mu.Lock()
	defer signal(c.kick)
	defer c.mu.Unlock()
	if !c.over {
		if err := c.limit(false); err != nil {
			c.fail(err)
		}
	}
	for !c.over {
		c.take()
		switch {
		case c.over:
			return
		case !c.machine.Ready():
			c.ready.Wait()
			continue
		}
		into, err := c.space()
		if err != nil {
			c.fail(err)
			return
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
