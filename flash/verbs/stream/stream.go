// Package stream drives a queue pair over a net.Conn: it is what does I/O, has
// goroutines and looks at the clock, so that verbs does not.
//
// Client and Server do MPA's startup on a connection and return a Conn, to which work is
// posted and from which completions are polled or waited for. Listener accepts as many
// connections as it may. A Conn reads, and what follows from that is done and written on
// the goroutine that has read, without a hand-over, as far as the connection takes it at
// once; a second goroutine writes what it does not, and takes in stores' callbacks. With
// Loops one thread does this for many connections, together with the reads of the device
// that they ask for. A Polled Conn has no goroutine at all: whoever waits for a completion
// does the I/O, and spins before it blocks.
//
// What a slow or dead peer can hold is bounded in time by Setup, Progress and Idle, and
// in memory by two buffers of Buffer bytes. It leaves out TLS, which is a net.Conn as
// another, and who may connect.
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

// Config is how a connection is driven. DefaultConfig has the defaults.
type Config struct {
	// Verbs is the queue pair's; Initiator and Wake are set here.
	Verbs verbs.Config
	// Setup bounds MPA's startup, from the first byte to the last.
	Setup time.Duration
	// Progress bounds a frame, from its first byte to its last, in either direction: a
	// peer that drips, or takes nothing, is cut off.
	Progress time.Duration
	// Idle, if not zero, bounds the time without a frame.
	Idle time.Duration
	// Settle is how long an initiator waits between the reply and its first message. Linux'
	// siw misses one that comes while it changes over to FPDUs; 300 ms are enough for it.
	Settle time.Duration
	// Linger bounds the wait for the peer to close, after a Terminate has been sent.
	Linger time.Duration
	// Buffer bounds what is read at once, in bytes; at least wire.MaxFPDU.
	Buffer int
	// Polled: no goroutines; Poll and Wait do the I/O, and no completion has to be handed
	// from one goroutine to another. Spin is how often Wait looks before it blocks.
	Polled bool
	Spin   int
	// Loops, if set, are the threads that do the I/O of connections that have a descriptor of their own, each of
	// many, instead of two goroutines a connection. It is not for a Polled connection.
	Loops *Loops
	// Accept, of a server, decides about a request: with private data for the reply, or
	// with an error, which goes into the reply as text.
	Accept func(request wire.StartupFields) (private []byte, err error)
	// Prepare, if set, is called before anything of the peer's but its startup frame is
	// looked at: to post receives for what it may send at once.
	Prepare func(*Conn) error
}

// DefaultConfig has CRCs, and deadlines of some seconds.
func DefaultConfig() Config {
	return Config{
		Verbs: verbs.DefaultConfig(), Setup: 5 * time.Second, Progress: 10 * time.Second, Linger: time.Second,
		Buffer: 256 << 10, Spin: 50,
	}
}

// firstBuffer is what a connection reads into until it needs more.
const firstBuffer = 4 << 10

// outBuffers are what is written from: room for the largest frame, and as much again. A
// connection has one only while it writes.
var outBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 2*wire.MaxFPDU); return &b }}

// Conn is one end of an iWARP connection. Its methods may be called from anywhere, but
// Poll and Wait of a Polled one by one goroutine at a time; others may post meanwhile what
// the peer's answer completes, which wakes who waits, but not what is complete when sent.
type Conn struct {
	cfg    Config
	nc     net.Conn
	raw    syscall.RawConn // nil if the connection has no descriptor of its own
	reader *attempt
	writer *attempt
	qp     *verbs.QueuePair
	cq     *verbs.CompletionQueue

	mu      sync.Mutex
	in      []byte // [start:end] has come and is not done with
	start   int
	end     int
	full    bool // in was filled by what came last
	out     *[]byte
	rest    []byte    // of what is being written
	writing bool      // rest is the writer's
	reading bool      // of a Polled connection: somebody waits for the peer
	posting bool      // likewise: rest is written by who posts
	stuck   time.Time // since when a Polled connection cannot write
	closing bool
	// finishing: a Polled connection is being closed by somebody.
	finishing bool
	draining  bool      // nothing more is read
	deadline  bool      // one is set for reading
	since     time.Time // when the frame at the front began to come
	resume    *sync.Cond
	kick      chan struct{}
	ready     chan struct{}
	done      chan struct{}
	running   sync.WaitGroup
	shard     *shard // nil if goroutines do the I/O
}

// Client starts MPA as the initiator.
func Client(nc net.Conn, d *verbs.Domain, cfg Config) (*Conn, error) { return start(nc, d, cfg, true) }

// Server starts MPA as the responder: it waits for a request, and answers it.
func Server(nc net.Conn, d *verbs.Domain, cfg Config) (*Conn, error) { return start(nc, d, cfg, false) }

// start takes nc over: it is closed when the Conn is, or at an error.
func start(nc net.Conn, d *verbs.Domain, cfg Config, initiator bool) (*Conn, error) {
	c := &Conn{cfg: cfg, nc: nc, in: make([]byte, firstBuffer), kick: make(chan struct{}, 1),
		ready: make(chan struct{}, 1), done: make(chan struct{})}
	if cfg.Buffer < wire.MaxFPDU {
		shut(nc)
		return nil, fmt.Errorf("a buffer of %d bytes is less than the largest frame's %d", cfg.Buffer, wire.MaxFPDU)
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
		v.Lane, v.Wake = cfg.Loops.Lane(), c.wake
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
		if err := c.attach(v.Lane); err != nil {
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

// shut closes a connection that is of no use any more, whatever comes of it.
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
			// No more than is needed: what is behind is read with all deadlines in place.
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
			// What was agreed on cannot be: the peer is told.
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

// QueuePair is the queue pair, for regions that only it may use. It must not be called.
func (c *Conn) QueuePair() *verbs.QueuePair { return c.qp }

// Request and Reply are the peer's startup frame, of a server and of a client.
func (c *Conn) Request() wire.StartupFields { return c.qp.Request() }

// Reply is the peer's startup frame, of a client.
func (c *Conn) Reply() wire.StartupFields { return c.qp.Reply() }

// Limits are how many reads and atomics may be under way: the peer's, and to the peer.
func (c *Conn) Limits() (ird, ord int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.qp.Limits()
}

// Counters are what the connection has done so far.
func (c *Conn) Counters() verbs.Counters {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.qp.Counters()
}

// Err is why the connection has ended, or nil.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.qp.Err()
}

// Done is closed when the connection has ended, and its goroutines have.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Post posts requests, and sends what can be. It stops at the first that cannot be posted.
func (c *Conn) Post(work ...verbs.Work) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range work {
		if err := c.qp.Post(w); err != nil {
			return err
		}
	}
	c.took(0)
	// Who reads cannot write what the connection did not take at once.
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

// Blocked reports whether what is to be sent waits for the connection to take more. Of a Polled one Poll goes on with
// it.
func (c *Conn) Blocked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writing
}

// PostReceive posts a buffer for a message of the peer.
func (c *Conn) PostReceive(r verbs.Receive) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.qp.PostReceive(r)
}

// Poll moves completions to out, and returns how many; it does not wait.
func (c *Conn) Poll(out []verbs.Completion) int {
	if n := c.cq.Poll(out); n > 0 || !c.cfg.Polled {
		return n
	}
	c.progress(false)
	return c.cq.Poll(out)
}

// Wait is Poll that waits for at least one completion. It returns none when the connection
// has ended and all have been polled.
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

// Close ends the connection. It returns when no store has anything of it any more, and no
// goroutine is left.
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

// Drain is Close that first finishes what the peer has begun: nothing more is read, and what was read is done,
// answered and, where that is due, durable, within a time. The peer sees the connection close between two frames. It
// is not for a Polled connection.
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

// flush sends what the queue pair has to send; c.mu is held. What the connection does not
// take at once is left to the writer.
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
			if cap(b)-n >= wire.MaxFPDU { // there was room for more, so there is no more
				break
			}
			if c.shard != nil { // the loop begins what was asked for meanwhile, and others have their turns
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

// attempt is one system call that does not wait. It is kept with its function, so that a
// call allocates nothing.
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

// run makes the call: through is RawConn's Read or Write. Nothing done is no error.
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

// tryWrite writes what the connection takes without waiting; of a connection without a
// descriptor, nothing.
func (c *Conn) tryWrite(b []byte) (int, error) {
	if c.shard != nil {
		return c.shard.send(b)
	}
	if c.raw == nil {
		return 0, nil
	}
	return c.writer.run(c.raw.Write, b)
}

// tryRead reads what is there without waiting.
func (c *Conn) tryRead(b []byte) (int, error) {
	n, err := c.reader.run(c.raw.Read, b)
	if n == 0 && err == nil && c.reader.err == nil {
		return 0, io.EOF
	}
	return n, err
}

// ended notes that the queue pair has ended; c.mu is held. The reader, if there is one,
// closes the connection below.
func (c *Conn) ended() {
	if c.closing {
		return
	}
	c.closing = true
	_ = c.interrupt() // if the reader cannot be woken it has its own error
	c.resume.Broadcast()
	signal(c.kick)
}

// interrupt has the reader, or the loop, look at what is to be done.
func (c *Conn) interrupt() error {
	if c.shard != nil {
		c.wake()
		return nil
	}
	return c.nc.SetReadDeadline(time.Unix(1, 0))
}

// room makes room for reading; c.mu is held. It returns nil while input is to wait.
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

// took gives the queue pair n bytes more, and sends what follows from it; c.mu is held. A
// store that calls back meanwhile may let more of either go on.
func (c *Conn) took(n int) {
	c.end += n
	c.full = c.full || n > 0 && c.end == len(c.in) // there was more, and one call is to take it
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

// limit sets the deadline for reading, if another is due than is set; c.mu is held.
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

// unlessGone is the error of setting a deadline, but for that of a net.Pipe whose other end has closed: whoever reads
// or writes it next learns that, and whether it came between two frames.
func unlessGone(err error) error {
	if errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}

// read is the goroutine that reads.
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

// linger lets the peer read our Terminate: it closes our half, and waits for the peer's.
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

// write is the goroutine that writes what the reader and Post could not, and takes in
// what stores call back with.
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

// writeRest writes what is the writer's, waiting for the connection to take it.
func (c *Conn) writeRest() {
	err := c.nc.SetWriteDeadline(time.Now().Add(c.cfg.Progress))
	if err == nil {
		_, err = c.nc.Write(c.rest)
	}
	if err == nil {
		err = unlessGone(c.nc.SetWriteDeadline(time.Time{})) // one that is past would end attempts that do not wait
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

// progress does I/O for a Polled connection, and reports whether it goes on. If it may
// wait, it does for the peer or for a store.
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

// writeMore writes more of the rest, without waiting if it can be: whoever waits here does
// not read, and the peer may be waiting for that. c.mu is held.
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

// finish ends a Polled connection. Whoever comes second waits for the first.
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
