// Package stream drives a queue pair over a net.Conn. It does the I/O, runs the goroutines and reads the clock, so that
// package verbs needs none of them.
//
// Client and Server perform MPA startup on a connection and return a Conn, to which work is posted and from which
// completions are polled or awaited. The goroutine that reads from the connection also processes the received data and
// writes the result, without a hand-over, as far as the connection accepts it without blocking; a second goroutine
// writes the remainder and processes store callbacks. With Loops, one thread does all this for many connections,
// together with the device reads that they request. A Polled Conn has no goroutines: the caller that waits for a
// completion does the I/O, and spins before it blocks.
//
// A slow or dead peer holds resources for a bounded time, set by Setup, Progress and Idle, and bounded memory, two
// buffers of Buffer bytes. The package leaves out TLS, which is just another net.Conn, and access control.
package stream

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"farflash/flash/verbs"
	"farflash/flash/wire"
)

// Config configures how a connection is driven. DefaultConfig returns the defaults.
type Config struct {
	// Verbs configures the queue pair; Initiator and Wake are overwritten.
	Verbs verbs.Config
	// Setup bounds MPA startup, from the first byte to the last.
	Setup time.Duration
	// Progress bounds the transfer of one frame, from first to last byte, in either direction. It cuts off a peer that
	// trickles data or stops reading.
	Progress time.Duration
	// Idle, if not zero, bounds the time between frames.
	Idle time.Duration
	// Settle is how long an initiator waits between the reply and its first message. siw of Linux misses a message that
	// arrives while it switches to FPDUs; 300 ms are enough for it.
	Settle time.Duration
	// Linger bounds the wait for the peer to close after a Terminate has been sent.
	Linger time.Duration
	// Buffer bounds the size of one read, in bytes; at least wire.MaxFPDU.
	Buffer int
	// Polled runs no goroutines: Poll and Wait do the I/O, so completions are not handed between goroutines. Spin is
	// the number of times that Wait polls before it blocks.
	Polled bool
	Spin   int
	// Loops, if set, are the threads that do the I/O of connections with a file descriptor, each for many connections,
	// in place of two goroutines per connection. Polled connections do not use them.
	Loops *Loops
	// Accept, on a server, decides about a request. It returns private data for the reply, or an error whose text is
	// sent in the rejection.
	Accept func(request wire.StartupFields) (private []byte, err error)
	// Prepare, if set, is called before any input except the startup frame is processed, to post receives for messages
	// that the peer may send immediately.
	Prepare func(*Conn) error
}

// DefaultConfig returns a configuration with CRCs and with deadlines of a few seconds.
func DefaultConfig() Config {
	return Config{
		Verbs: verbs.DefaultConfig(), Setup: 5 * time.Second, Progress: 10 * time.Second, Linger: time.Second,
		Buffer: 256 << 10, Spin: 50,
	}
}

// firstBuffer is the initial size of a connection's read buffer, in bytes.
const firstBuffer = 4 << 10

// outBuffers pools write buffers, each with space for two of the largest frames. A connection holds one only while it
// writes.
var outBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 2*wire.MaxFPDU); return &b }}

// Conn is one end of an iWARP connection. It is safe for concurrent use, except that Poll and Wait of a Polled
// connection must be serialized. While one goroutine waits, others may post work that is completed by the peer's
// response, which wakes the waiter, but not work that completes when it is sent.
type Conn struct {
	cfg    Config
	nc     net.Conn
	raw    syscall.RawConn // nil if the connection has no file descriptor
	reader *attempt
	writer *attempt
	qp     *verbs.QueuePair
	cq     *verbs.CompletionQueue

	mu      sync.Mutex
	in      []byte // in[start:end] is received but not consumed
	start   int
	end     int
	full    bool // the last read filled in
	out     *[]byte
	rest    []byte    // unwritten part of out
	writing bool      // rest belongs to the writer
	reading bool      // Polled only: a goroutine waits for the peer
	posting bool      // Polled only: the poster is writing rest
	stuck   time.Time // since when the socket has accepted no bytes
	closing bool
	// finishing: a goroutine is closing a Polled connection.
	finishing bool
	draining  bool      // stop reading
	deadline  bool      // a read deadline is set
	since     time.Time // when the first bytes of the frame at the front arrived
	resume    *sync.Cond
	kick      chan struct{}
	ready     chan struct{}
	done      chan struct{}
	running   sync.WaitGroup
	shard     *shard // nil if goroutines do the I/O
}

// Client starts MPA as the initiator.
func Client(nc net.Conn, d *verbs.Domain, cfg Config) (*Conn, error) { return start(nc, d, cfg, true) }

// Server starts MPA as the responder: it waits for a request and answers it.
func Server(nc net.Conn, d *verbs.Domain, cfg Config) (*Conn, error) { return start(nc, d, cfg, false) }

// start takes ownership of nc: it is closed with the Conn, or on an error.
func start(nc net.Conn, d *verbs.Domain, cfg Config, initiator bool) (*Conn, error) {
	c := &Conn{cfg: cfg, nc: nc, in: make([]byte, firstBuffer), kick: make(chan struct{}, 1),
		ready: make(chan struct{}, 1), done: make(chan struct{})}
	if cfg.Buffer < wire.MaxFPDU {
		shut(nc)
		return nil, fmt.Errorf("the buffer has %d bytes, less than the largest frame's %d", cfg.Buffer, wire.MaxFPDU)
	}
	c.resume = sync.NewCond(&c.mu)
	if s, ok := nc.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			c.raw, c.reader, c.writer = raw, newAttempt(syscall.Read), newAttempt(syscall.Write)
		}
	}
	v := cfg.Verbs
	v.Initiator = initiator
	v.Wake = func() { signal(c.kick) }
	looped := cfg.Loops != nil && c.raw != nil && !cfg.Polled && cfg.Loops.Sockets()
	if looped {
		c.shard = &shard{}
		v.Loop, v.Wake = cfg.Loops.Next(), c.wake
	}
	c.cq = verbs.NewCompletionQueue(v.Sends+v.Receives, func() { signal(c.ready) })
	qp, err := verbs.NewQueuePair(d, v, c.cq, c.cq)
	if err != nil {
		shut(nc)
		return nil, err
	}
	c.qp = qp
	if err := c.setup(); err != nil {
		qp.Close()
		shut(nc)
		return nil, err
	}
	if cfg.Prepare != nil {
		if err := cfg.Prepare(c); err != nil {
			qp.Close()
			shut(nc)
			return nil, err
		}
	}
	if initiator && cfg.Settle > 0 {
		time.Sleep(cfg.Settle)
	}
	if looped {
		if err := c.attach(v.Loop); err != nil {
			return nil, err
		}
		return c, nil
	}
	if !cfg.Polled {
		c.running.Add(2)
		go c.read()
		go c.write()
	}
	c.mu.Lock()
	c.took(0)
	c.mu.Unlock()
	return c, nil
}

// shut closes a connection that is no longer needed, ignoring errors.
func shut(nc net.Conn) { _ = nc.Close() }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// setup exchanges the startup frames.
func (c *Conn) setup() error {
	if err := c.nc.SetDeadline(time.Now().Add(c.cfg.Setup)); err != nil {
		return err
	}
	for {
		if out := c.qp.Fill(make([]byte, 0, wire.MaxFPDU)); len(out) > 0 {
			if _, err := c.nc.Write(out); err != nil {
				return err
			}
			c.qp.Sent()
		}
		switch c.qp.State() {
		case verbs.Starting:
			// Read no more than needed, so that later input is read with all deadlines in place.
			n, err := c.nc.Read(c.in[c.end:c.qp.Need()])
			c.end += n
			c.end -= c.qp.Input(c.in[:c.end])
			if err != nil && c.qp.State() == verbs.Starting {
				return verbs.Lost{Err: err}
			}
		case verbs.Asked:
			var private []byte
			if c.cfg.Accept != nil {
				p, err := c.cfg.Accept(c.qp.Request())
				if err != nil {
					return c.reject(err)
				}
				private = p
			}
			if err := c.qp.Accept(private); err != nil {
				return err
			}
			if out := c.qp.Fill(make([]byte, 0, wire.StartupLength+wire.MaxPrivate)); len(out) > 0 {
				if _, err := c.nc.Write(out); err != nil {
					return err
				}
				c.qp.Sent()
			}
		case verbs.Running:
			return c.nc.SetDeadline(time.Time{})
		default:
			// The negotiation failed: send the Terminate to the peer.
			if out := c.qp.Fill(make([]byte, 0, wire.MaxFPDU)); len(out) > 0 {
				if _, err := c.nc.Write(out); err == nil {
					c.linger()
				}
			}
			return c.qp.Err()
		}
	}
}

func (c *Conn) reject(why error) error {
	text := []byte(why.Error())
	if err := c.qp.Reject(text[:min(len(text), 256)]); err != nil {
		return err
	}
	if _, err := c.nc.Write(c.qp.Fill(make([]byte, 0, wire.StartupLength+wire.MaxPrivate))); err != nil {
		return err
	}
	return why
}

// QueuePair returns the queue pair, for use as the Scope of regions. The caller must not call its methods.
func (c *Conn) QueuePair() *verbs.QueuePair { return c.qp }

// Reply returns the peer's startup frame, on a client.
func (c *Conn) Reply() wire.StartupFields { return c.qp.Reply() }

// Counters returns the connection's counters so far.
func (c *Conn) Counters() verbs.Counters {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.qp.Counters()
}

// Err returns the reason why the connection ended, or nil.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.qp.Err()
}

// Done is closed when the connection and its goroutines have ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Post posts requests and sends as much as possible. It stops at the first that cannot be posted.
func (c *Conn) Post(work ...verbs.Work) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range work {
		if err := c.qp.Post(w); err != nil {
			return err
		}
	}
	c.took(0)
	// The reader is blocked, so the poster itself writes what the connection did not accept immediately.
	for c.reading && c.writing && !c.posting {
		c.posting = true
		c.mu.Unlock()
		c.writeRest()
		c.mu.Lock()
		c.posting = false
		c.took(0)
	}
	return nil
}

// Blocked reports whether outgoing data are waiting for space in the connection. On a Polled connection, Poll continues
// writing them.
func (c *Conn) Blocked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writing
}

// PostReceive posts a buffer for a message from the peer.
func (c *Conn) PostReceive(r verbs.Receive) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.qp.PostReceive(r)
}

// Poll moves completions to out and returns their number, without waiting.
func (c *Conn) Poll(out []verbs.Completion) int {
	if n := c.cq.Poll(out); n > 0 || !c.cfg.Polled {
		return n
	}
	c.progress(false)
	return c.cq.Poll(out)
}

// Wait is Poll, but waits for at least one completion. It returns 0 when the connection has ended and all completions
// have been polled.
func (c *Conn) Wait(out []verbs.Completion) int {
	for spin := 0; ; spin++ {
		if n := c.cq.Poll(out); n > 0 {
			return n
		}
		if c.cfg.Polled {
			if !c.progress(spin >= c.cfg.Spin) {
				return c.cq.Poll(out)
			}
			continue
		}
		if c.cq.Arm(false) {
			continue
		}
		select {
		case <-c.ready:
		case <-c.done:
			return c.cq.Poll(out)
		}
	}
}

// Close ends the connection. It returns when all store accesses have been returned and no goroutine is left.
func (c *Conn) Close() error {
	c.mu.Lock()
	c.qp.Close()
	c.ended()
	c.mu.Unlock()
	if c.cfg.Polled {
		c.finish()
	}
	<-c.done
	return nil
}

// Drain is a graceful Close. It stops reading, gives operations already received up to within to be executed, answered
// and, where requested, made durable, and then closes. The peer sees the connection close between two frames. It must
// not be used on a Polled connection.
func (c *Conn) Drain(within time.Duration) error {
	until := time.Now().Add(within)
	c.mu.Lock()
	c.draining = true
	c.mu.Unlock()
	if err := c.interrupt(); err != nil {
		return c.Close()
	}
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for time.Now().Before(until) {
		c.mu.Lock()
		over := c.closing || !c.writing && c.qp.Quiet()
		c.mu.Unlock()
		if over {
			break
		}
		select {
		case <-look.C:
		case <-c.done:
		}
	}
	return c.Close()
}

// flush sends what the queue pair has to send. What the connection does not accept immediately is left to the writer.
// The caller holds c.mu.
func (c *Conn) flush() {
	for !c.writing {
		if c.out == nil {
			c.out = outBuffers.Get().(*[]byte)
		}
		b := c.qp.Fill((*c.out)[:0])
		if len(b) == 0 {
			break
		}
		n, err := c.tryWrite(b)
		if err != nil {
			c.qp.Lost(err)
			break
		}
		if n == len(b) {
			c.qp.Sent()
			if cap(b)-n >= wire.MaxFPDU { // space was left for another frame, so there is none
				break
			}
			if c.shard != nil { // let the loop submit new device reads and serve other connections
				c.wake()
				break
			}
			continue
		}
		c.rest, c.writing = b[n:], true
		switch {
		case c.shard != nil:
			c.stuck = time.Now()
			c.wake()
		default:
			signal(c.kick)
		}
	}
	if !c.writing && c.out != nil {
		outBuffers.Put(c.out)
		c.out = nil
	}
	if c.qp.State() == verbs.Closed {
		c.ended()
	}
}

// attempt is a non-blocking system call. It is kept together with its closure, so that a call does not allocate.
type attempt struct {
	b    []byte
	n    int
	err  error
	call func(fd uintptr) bool
}

func newAttempt(do func(fd int, b []byte) (int, error)) *attempt {
	t := &attempt{}
	t.call = func(fd uintptr) bool {
		for {
			t.n, t.err = do(int(fd), t.b)
			if t.err != syscall.EINTR {
				return true
			}
		}
	}
	return t
}

// run makes the call through RawConn's Read or Write. It returns 0 and no error if the call would block.
func (t *attempt) run(through func(func(uintptr) bool) error, b []byte) (int, error) {
	t.b = b
	outer := through(t.call)
	t.b = nil
	switch {
	case outer != nil:
		return 0, outer
	case t.err == syscall.EAGAIN:
		return 0, nil
	case t.err != nil:
		return 0, t.err
	}
	return t.n, nil
}

// tryWrite writes what the connection accepts without blocking; 0 bytes if it has no descriptor.
func (c *Conn) tryWrite(b []byte) (int, error) {
	if c.shard != nil {
		return c.shard.send(b)
	}
	if c.raw == nil {
		return 0, nil
	}
	return c.writer.run(c.raw.Write, b)
}

// tryRead reads the available bytes without blocking.
func (c *Conn) tryRead(b []byte) (int, error) {
	n, err := c.reader.run(c.raw.Read, b)
	if n == 0 && err == nil && c.reader.err == nil {
		return 0, io.EOF
	}
	return n, err
}

// ended records that the queue pair has ended. The reader, if there is one, closes the underlying connection. The
// caller holds c.mu.
func (c *Conn) ended() {
	if c.closing {
		return
	}
	c.closing = true
	_ = c.interrupt() // on failure the reader gets an error of its own
	c.resume.Broadcast()
	signal(c.kick)
}

// interrupt makes the reader, or the loop, check the connection's state.
func (c *Conn) interrupt() error {
	if c.shard != nil {
		c.wake()
		return nil
	}
	return c.nc.SetReadDeadline(time.Unix(1, 0))
}

// room returns buffer space for the next read, compacting and growing the buffer as needed. The caller holds c.mu.
func (c *Conn) room() []byte {
	if c.start > 0 {
		c.end = copy(c.in, c.in[c.start:c.end])
		c.start = 0
	}
	want := max(c.qp.Need(), firstBuffer)
	if c.end == len(c.in) || c.full {
		want = max(want, 2*len(c.in))
		c.full = false
	}
	if want = min(want, max(c.cfg.Buffer, c.qp.Need())); want > len(c.in) {
		in := make([]byte, want)
		copy(in, c.in[:c.end])
		c.in = in
	}
	return c.in[c.end:]
}

// took passes n more received bytes to the queue pair and sends the results. It repeats while store callbacks arrive,
// because they may unblock input or output. The caller holds c.mu.
func (c *Conn) took(n int) {
	c.end += n
	c.full = c.full || n > 0 && c.end == len(c.in) // more may be waiting; grow so that one call reads it
	for again := true; again; again = c.qp.Fresh() {
		for c.start < c.end {
			k := c.qp.Input(c.in[c.start:c.end])
			if k == 0 {
				break
			}
			c.start += k
			c.since = time.Time{}
		}
		c.flush()
	}
	if !c.qp.Stalled() {
		c.resume.Broadcast()
	}
}

// limit updates the read deadline if it has to change. The caller holds c.mu.
func (c *Conn) limit() error {
	var at time.Time
	switch {
	case c.start < c.end:
		if c.since.IsZero() {
			c.since = time.Now()
		}
		at = c.since.Add(c.cfg.Progress)
	case c.cfg.Idle > 0:
		at = time.Now().Add(c.cfg.Idle)
	}
	if c.draining || at.IsZero() && !c.deadline {
		return nil
	}
	c.deadline = !at.IsZero()
	return unlessGone(c.nc.SetReadDeadline(at))
}

// unlessGone returns an error of setting a deadline, except the one of a net.Pipe whose other end has closed: the next
// read or write reports that, and whether it happened between two frames.
func unlessGone(err error) error {
	if errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}

// read is the reader goroutine.
func (c *Conn) read() {
	defer c.running.Done()
	c.mu.Lock()
	for {
		for (c.qp.Stalled() || c.draining) && !c.closing {
			c.resume.Wait()
		}
		if c.closing {
			break
		}
		b := c.room()
		if err := c.limit(); err != nil {
			c.qp.Lost(err)
			break
		}
		c.mu.Unlock()
		n, err := c.nc.Read(b)
		c.mu.Lock()
		c.took(n)
		if err != nil && c.draining && errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		if err != nil && !c.closing {
			c.qp.Lost(err)
			break
		}
	}
	c.ended()
	terminated := errors.As(c.qp.Err(), new(verbs.Terminated))
	c.mu.Unlock()
	if terminated {
		c.linger()
	}
	shut(c.nc)
}

// linger gives the peer time to read our Terminate: it closes our half and waits for the peer to close its own.
func (c *Conn) linger() {
	h, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || c.nc.SetReadDeadline(time.Now().Add(c.cfg.Linger)) != nil || h.CloseWrite() != nil {
		return
	}
	var sink [4096]byte
	for range 1 << 10 {
		if _, err := c.nc.Read(sink[:]); err != nil {
			return
		}
	}
}

// write is the writer goroutine. It writes what the reader and Post could not, and processes store callbacks.
func (c *Conn) write() {
	for range c.kick {
		c.mu.Lock()
		c.qp.Step()
		if c.writing {
			c.mu.Unlock()
			c.writeRest()
			c.mu.Lock()
		}
		c.took(0)
		over := c.closing && !c.writing && c.qp.Settled()
		c.mu.Unlock()
		if over {
			break
		}
	}
	c.running.Done()
	c.running.Wait()
	close(c.done)
}

// writeRest writes c.rest, blocking until the connection accepts it.
func (c *Conn) writeRest() {
	err := c.nc.SetWriteDeadline(time.Now().Add(c.cfg.Progress))
	if err == nil {
		_, err = c.nc.Write(c.rest)
	}
	if err == nil {
		err = unlessGone(c.nc.SetWriteDeadline(time.Time{})) // an expired deadline would fail non-blocking writes
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest, c.writing = nil, false
	if err != nil {
		c.qp.Lost(err)
		return
	}
	c.qp.Sent()
}

// progress does I/O for a Polled connection and reports whether the connection is still alive. With wait set, it may
// block for the peer or for a store.
func (c *Conn) progress(wait bool) bool {
	select {
	case <-c.kick:
	default:
	}
	c.mu.Lock()
	c.qp.Step()
	if c.writing && !c.posting {
		c.writeMore()
		wait = wait && !c.writing
	}
	c.took(0)
	if c.closing {
		c.mu.Unlock()
		c.finish()
		return false
	}
	if c.qp.Stalled() || !c.qp.Settled() && wait {
		c.mu.Unlock()
		if wait {
			<-c.kick
			signal(c.kick)
		} else {
			runtime.Gosched()
		}
		return true
	}
	b := c.room()
	n, err := 0, error(nil)
	if wait || c.raw == nil {
		if err = c.limit(); err == nil {
			c.reading = true
			c.mu.Unlock()
			n, err = c.nc.Read(b)
			c.mu.Lock()
			c.reading = false
		}
	} else if n, err = c.tryRead(b); n == 0 && err == nil {
		c.mu.Unlock()
		runtime.Gosched()
		return true
	}
	c.took(n)
	if err != nil {
		c.qp.Lost(err)
	}
	c.mu.Unlock()
	if err != nil {
		c.finish()
		return false
	}
	return true
}

// writeMore writes more of c.rest, if possible without blocking: a caller that blocks here does not read, and the peer
// may be waiting for it to read. The caller holds c.mu.
func (c *Conn) writeMore() {
	if c.raw == nil {
		c.mu.Unlock()
		c.writeRest()
		c.mu.Lock()
		return
	}
	n, err := c.tryWrite(c.rest)
	switch c.rest = c.rest[n:]; {
	case n > 0:
		c.stuck = time.Time{}
	case c.stuck.IsZero():
		c.stuck = time.Now()
	case err == nil && time.Since(c.stuck) > c.cfg.Progress:
		err = os.ErrDeadlineExceeded
	}
	if err != nil {
		c.writing = false
		c.qp.Lost(err)
	} else if len(c.rest) == 0 {
		c.writing = false
		c.qp.Sent()
	}
}

// finish closes a Polled connection. A second caller waits for the first.
func (c *Conn) finish() {
	c.mu.Lock()
	if c.finishing {
		c.mu.Unlock()
		<-c.done
		return
	}
	c.finishing, c.closing = true, true
	rest := c.writing && !c.posting
	c.mu.Unlock()
	if rest {
		c.writeRest()
	}
	if errors.As(c.qp.Err(), new(verbs.Terminated)) {
		c.linger()
	}
	shut(c.nc)
	for {
		c.mu.Lock()
		c.qp.Step()
		settled := c.qp.Settled()
		c.mu.Unlock()
		if settled {
			break
		}
		<-c.kick
	}
	close(c.done)
}
