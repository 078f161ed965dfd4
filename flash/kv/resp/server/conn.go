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
	"farflash/flash/kv/resp"
)

// bufferSize is the size of the read buffer.
const bufferSize = 32 << 10

// conn is one client connection.
type conn struct {
	server  *Server
	base    net.Conn // as accepted
	nc      net.Conn // base, or TLS over it
	number  uint64
	session *resp.Session
	placed  bool

	mu       sync.Mutex // guards the deadline for reading
	draining bool
}

func newConn(s *Server, nc net.Conn, secure *tls.Config) *conn {
	c := &conn{server: s, base: nc, nc: nc, number: s.numbers.Add(1)}
	if secure != nil {
		c.nc = tls.Server(nc, secure)
	}
	c.session = resp.NewSession(&s.session, c.number)
	return c
}

// Abort implements accept.Conn.
func (c *conn) Abort() { _ = c.base.Close() } // Serve notices

// drain ends the connection when the commands that have arrived are answered.
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	_ = c.nc.SetReadDeadline(time.Unix(1, 0)) // on failure the connection has already ended
}

// await sets the deadline for reading, unless the connection drains.
func (c *conn) await(until time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining {
		return os.ErrDeadlineExceeded
	}
	return c.nc.SetReadDeadline(until)
}

// Serve implements accept.Conn.
func (c *conn) Serve() error {
	defer c.server.describe(c, "")
	err := c.serve()
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, net.ErrClosed) {
		err = nil // the client has left, or Abort ended it
	}
	c.mu.Lock()
	if c.draining && errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	c.mu.Unlock()
	return errors.Join(err, accept.Closed(c.nc.Close()))
}

func (c *conn) serve() error {
	if err := c.await(time.Now().Add(c.server.cfg.Handshake)); err != nil {
		return err
	}
	if t, ok := c.nc.(*tls.Conn); ok {
		if err := t.Handshake(); err != nil {
			return err
		}
	}
	b := make([]byte, bufferSize)
	for {
		if !c.placed && c.session.Known() {
			if err := c.place(); err != nil {
				return err
			}
		}
		n, err := c.nc.Read(b)
		if over, failed := c.input(b[:n]); over || failed != nil {
			return failed
		}
		if err != nil {
			return err
		}
	}
}

// place gives the connection its place, and all the time that it wants.
func (c *conn) place() error {
	if err := c.server.door.Place(c); err != nil {
		_ = c.write([]byte("-ERR max number of clients reached\r\n")) // best effort: the client may have stopped reading
		return err
	}
	c.placed = true
	return c.await(time.Time{})
}

// input executes what has arrived. over: the client has asked for the end.
func (c *conn) input(b []byte) (over bool, err error) {
	s := c.session
	for len(b) > 0 {
		n, command := s.Input(b)
		b = b[n:]
		if command != nil {
			o := c.server.run(c.server.ctx, c.number, command)
			s.Answer(command, &o)
		}
		if s.Changed() {
			c.server.describe(c, s.Describe(c.nc.RemoteAddr().String()))
		}
		if over, err = s.Over(); len(s.Output()) > 0 && (over || len(b) == 0 || len(s.Output()) >= bufferSize) {
			failed := c.write(s.Output())
			s.Sent()
			err = errors.Join(err, failed)
		}
		if over || err != nil {
			return over, err
		}
	}
	return false, nil
}

func (c *conn) write(b []byte) error {
	if err := c.nc.SetWriteDeadline(time.Now().Add(c.server.cfg.Progress)); err != nil {
		return err
	}
	_, err := c.nc.Write(b)
	return err
}
