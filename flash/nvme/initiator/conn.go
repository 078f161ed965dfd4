package initiator

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"syscall"
	"time"

	"farflash/flash/nvme/host"
	"farflash/flash/sendv"
)

const (
	bufferSize = 128 << 10
	direct     = 16 << 10 // outstanding data, in bytes, from which they are read directly into their place
	lastWords  = 100 * time.Millisecond
)

// past is a deadline that has expired.
var past = time.Unix(1, 0)

// conn is the connection of a queue. A goroutine that submits a command sends it at once, with all others that are
// queued, unless another is sending; what that leaves is sent by a goroutine of the connection. A third one receives.
type conn struct {
	name  string // for errors
	nc    *net.TCPConn
	raw   syscall.RawConn
	lost  func(error)   // called once, on a goroutine of its own
	ended chan struct{} // closed when both goroutines have ended
	kick  chan struct{}

	mu      sync.Mutex // guards all below
	queue   *host.Queue
	vec     [][]byte
	send    sendv.Sender
	sending bool // vec and the memory behind it are in use
	sinking bool // memory of a command is being read into
	over    error
	settled bool
}

// attach drives a queue over a connection until that ends. lost is called with the reason.
func attach(nc *net.TCPConn, name string, q *host.Queue, lost func(error)) (*conn, error) {
	raw, err := nc.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	c := &conn{name: name, nc: nc, raw: raw, queue: q, lost: lost, ended: make(chan struct{}),
		kick: make(chan struct{}, 1), vec: make([][]byte, 0, sendv.Most)}
	c.send.Prepare()
	var running sync.WaitGroup
	running.Go(c.read)
	running.Go(c.write)
	go func() {
		running.Wait()
		close(c.ended)
	}()
	return c, nil
}

// submit begins a command.
func (c *conn) submit(x *host.Command) {
	c.mu.Lock()
	c.queue.Submit(x)
	c.flush(true)
	c.mu.Unlock()
}

// flush sends the queued output by one call, which may wait for the controller if wait is set. The caller holds c.mu,
// which is released meanwhile.
func (c *conn) flush(wait bool) {
	if c.sending || c.over != nil {
		return
	}
	c.sending = true
	if wait && c.queue.Outstanding() > 1 {
		// Answers that arrived together have woken several goroutines, whose next commands one call can send: this
		// halves the time of reads by 32 goroutines.
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
	}
	if c.vec = c.queue.Vectors(c.vec[:0], sendv.Most); c.over == nil && len(c.vec) > 0 {
		c.transmit(wait)
	}
	c.sending = false
	c.settle()
	if c.vec = c.queue.Vectors(c.vec[:0], 1); len(c.vec) > 0 {
		c.nudge() // for the goroutine that waits until the controller takes more
	}
}

// transmit sends c.vec, or a part. The caller holds c.mu, which is released meanwhile.
func (c *conn) transmit(wait bool) {
	c.mu.Unlock()
	send := c.send.Try
	if wait {
		send = c.send.Wait
	}
	n, err := send(c.raw, c.vec)
	c.mu.Lock()
	clear(c.vec)
	c.queue.Sent(n)
	if err != nil {
		c.fail(err)
	}
}

func (c *conn) nudge() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// write is the goroutine that sends what others leave.
func (c *conn) write() {
	for range c.kick {
		c.mu.Lock()
		c.flush(true)
		done := c.over != nil
		c.mu.Unlock()
		if done {
			return
		}
	}
}

// read is the goroutine that receives.
func (c *conn) read() {
	in := make([]byte, bufferSize)
	start, end := 0, 0
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.over == nil {
		start += c.queue.Input(in[start:end])
		if err := c.queue.Err(); err != nil {
			c.fail(&fault{err})
			break
		}
		c.flush(false)
		if c.over != nil {
			break
		}
		end = copy(in, in[start:end])
		start = 0
		into := in[end:]
		if end == 0 && c.queue.Pending() >= direct {
			if sink := c.queue.Sink(); sink != nil {
				c.sinking, into = true, sink
			}
		}
		c.mu.Unlock()
		n, err := c.nc.Read(into)
		c.mu.Lock()
		if c.sinking {
			c.queue.Sunk(n)
		} else {
			end += n
		}
		c.sinking = false
		if err == io.EOF {
			err = io.ErrUnexpectedEOF // not the end of a namespace
		}
		if err != nil {
			c.fail(err)
		}
	}
	c.settle()
}

// fail ends the connection. The caller holds c.mu.
func (c *conn) fail(err error) {
	if c.over != nil {
		return
	}
	c.over = fmt.Errorf("%s: %w", c.name, err)
	_ = c.nc.SetDeadline(past) // wakes a blocked reader or writer; if this fails, it gets its own error
	c.nudge()
	go c.lost(c.over)
	c.settle()
}

// cut is fail for other goroutines.
func (c *conn) cut(err error) {
	c.mu.Lock()
	c.fail(err)
	c.mu.Unlock()
}

// settle gives all commands back and closes the connection, as soon as nothing uses their memory. The caller holds
// c.mu.
func (c *conn) settle() {
	if c.over == nil || c.settled || c.sending || c.sinking {
		return
	}
	c.settled = true
	last := c.queue.Last()
	c.queue.Fail(c.over)
	if len(last) > 0 && c.nc.SetWriteDeadline(time.Now().Add(lastWords)) == nil {
		_, _ = c.nc.Write(last) // the connection ends anyway
	}
	_ = c.nc.Close()
}
