package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"farflash/flash/accept"
	"farflash/flash/driver"
	"farflash/flash/nbd"
)

// bufferSize is the size of the read buffer.
const bufferSize = 256 << 10

// conn is one client connection.
type conn struct {
	server  *Server
	base    net.Conn // as accepted
	nc      net.Conn // base, or TLS over it
	require bool     // TLS
	placed  bool     // has asked for an export

	in  []byte // in[:end] is received but not consumed by the negotiation
	end int

	mu       sync.Mutex              // guards nc's deadline during the negotiation and all fields below
	driver   *driver.Conn[*nbd.Task] // set after the negotiation
	draining bool
}

// Abort implements accept.Conn.
func (c *conn) Abort() { _ = c.base.Close() } // Serve notices

// Serve implements accept.Conn.
func (c *conn) Serve() error {
	h, err := c.negotiate(c.require)
	if h == nil || err != nil {
		if h != nil {
			h.Abandon()
		}
		return errors.Join(err, accept.Closed(c.nc.Close()))
	}
	e, _, _ := h.Chosen()
	defer h.Abandon()
	cfg := &c.server.cfg
	session := nbd.NewSession(h, cfg.Limits, func(t *nbd.Task) { c.driver.Done(t) })
	session.Follow(c.nc.RemoteAddr(), cfg.Clock)
	c.mu.Lock()
	c.driver = driver.New(c.nc, session, driver.Config[*nbd.Task]{
		Loops: cfg.Loops, Buffer: bufferSize, Received: c.in[:c.end],
		Progress: cfg.Progress, Idle: cfg.Idle, Hold: cfg.Hold, Unsent: cfg.Unsent,
		Start: func(tasks []*nbd.Task, lane uint8) {
			for _, t := range tasks {
				t.Loop = lane
			}
			e.Volume.Start(tasks)
		},
		Leave: e.Leave,
	})
	c.in = nil
	draining := c.draining
	c.mu.Unlock()
	if draining {
		return c.nc.Close()
	}
	return c.driver.Run()
}

// drain ends the connection as soon as all received commands have been answered, at most after within; immediately if
// it is still negotiating.
func (c *conn) drain(within time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	if c.driver == nil {
		_ = c.nc.SetDeadline(time.Unix(1, 0)) // on failure the connection has already ended
		return
	}
	c.driver.Drain(within)
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
	exports, err := cfg.Exports(c.base.RemoteAddr(), nil)
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
	exports, err := c.server.cfg.Exports(c.base.RemoteAddr(), &state)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.nc = t
	c.mu.Unlock()
	h.Secured(admitted{exports, c})
	return nil
}
