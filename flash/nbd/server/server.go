// Package server drives the Network Block Device protocol of flash/nbd over connections: it does I/O, has goroutines
// and looks at the clock, so that nbd does not.
//
// Server accepts connections and serves each until its end; Config says with what exports, TLS and limits. A
// connection has two goroutines: one reads, begins what follows and sends what is answered meanwhile with one system
// call; the other sends what volumes have done later. With Loops one of their threads does this for many connections,
// together with the devices' operations that they ask for. Replies go out straight from the volume's memory, as
// vectors; over TLS they are gathered first. A client that takes nothing has what it was lent copied after
// Config.Hold, and is cut off after Config.Progress.
//
// It leaves out who may connect beyond TLS: Config.Exports is asked for every connection, with its state of TLS.
package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"farflash/flash/nbd"
)

// Config is how a Server serves. DefaultConfig has the defaults.
type Config struct {
	// Exports is what a client is given. It is called with nil before TLS, and with its state after.
	Exports func(*tls.ConnectionState) (nbd.Exports, error)
	// TLS, if set, is offered: of version 1.3, whatever it says. Without it only addresses of this machine itself are
	// served.
	TLS *tls.Config
	// Require has every client begin TLS, from whatever address; beyond this machine every client has to anyway.
	Require bool
	// Loops, if set, do the I/O of connections without TLS, and that of the volume's devices at best. They are closed
	// after the server.
	Loops *Loops
	// Limits are those of one connection.
	Limits nbd.Limits
	// Most is how many connections there may be at once that have asked for an export; one that is too many is told so.
	Most int
	// Early is how many there may be at once that have not yet: who they are may not be known. More are closed as
	// they come.
	Early int
	// Handshake bounds the negotiation, TLS included.
	Handshake time.Duration
	// Progress bounds a command from its first byte to its last (with a second more for each MiB of its payload), and
	// a write to the connection.
	Progress time.Duration
	// Idle, if not zero, bounds the time between commands.
	Idle time.Duration
	// Hold is how long a client that takes nothing keeps what it was lent of the volume's memory.
	Hold time.Duration
	// Drain bounds the wait of Shutdown for commands under way.
	Drain time.Duration
	// Failed, if set, is told why a connection ended, unless the client said so.
	Failed func(net.Addr, error)
}

// DefaultConfig is 64 connections and as many that negotiate, ten seconds for everything.
func DefaultConfig() Config {
	return Config{
		Limits: nbd.DefaultLimits(), Most: 64, Early: 64, Handshake: 10 * time.Second, Progress: 10 * time.Second,
		Hold: 50 * time.Millisecond, Drain: 10 * time.Second,
	}
}

// Fixed serves the same exports to everybody.
func Fixed(e nbd.Exports) func(*tls.ConnectionState) (nbd.Exports, error) {
	return func(*tls.ConnectionState) (nbd.Exports, error) { return e, nil }
}

// Server serves connections. Its methods may be called from anywhere.
type Server struct {
	cfg Config

	mu        sync.Mutex
	listeners map[net.Listener]bool
	conns     map[*conn]bool
	places    int // of conns that have asked for an export
	closing   bool
	running   sync.WaitGroup
}

// New returns a server.
func New(cfg Config) (*Server, error) {
	if cfg.Exports == nil {
		return nil, errors.New("nbd: a server without exports")
	}
	if cfg.Require && cfg.TLS == nil {
		return nil, errors.New("nbd: TLS is required and there is no certificate")
	}
	if cfg.TLS != nil {
		c := cfg.TLS.Clone()
		c.MinVersion = tls.VersionTLS13
		cfg.TLS = c
	}
	return &Server{cfg: cfg, listeners: map[net.Listener]bool{}, conns: map[*conn]bool{}}, nil
}

// local reports whether an address is reached from this machine only.
func local(a net.Addr) bool {
	switch a := a.(type) {
	case *net.UnixAddr:
		return true
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	}
	return false
}

// Serve accepts connections until the server is closed, which closes l. An address beyond this machine is refused if
// there is no TLS.
func (s *Server) Serve(l net.Listener) error {
	if !local(l.Addr()) && s.cfg.TLS == nil {
		return errors.Join(fmt.Errorf("nbd: %v can be reached from other machines, and there is no TLS; give a "+
			"certificate, or listen on 127.0.0.1", l.Addr()), l.Close())
	}
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return l.Close()
	}
	s.listeners[l] = true
	s.mu.Unlock()
	for wait := time.Millisecond; ; {
		nc, err := l.Accept()
		if err == nil {
			s.take(nc, !local(l.Addr()))
			wait = time.Millisecond
			continue
		}
		s.mu.Lock()
		closing := s.closing
		if closing || errors.Is(err, net.ErrClosed) {
			delete(s.listeners, l)
			s.mu.Unlock()
			if closing {
				return nil
			}
			return errors.Join(err, l.Close())
		}
		s.mu.Unlock()
		// Out of descriptors, say: they come back when connections end.
		if s.cfg.Failed != nil {
			s.cfg.Failed(l.Addr(), fmt.Errorf("accepting: %w", err))
		}
		time.Sleep(wait)
		wait = min(2*wait, time.Second)
	}
}

// take serves a connection if there is room for one more.
func (s *Server) take(nc net.Conn, far bool) {
	c := newConn(s, nc)
	s.mu.Lock()
	if s.closing || len(s.conns)-s.places >= s.cfg.Early {
		s.mu.Unlock()
		_ = nc.Close() // its client sees why: nothing was sent
		return
	}
	s.conns[c] = true
	s.running.Add(1)
	s.mu.Unlock()
	go func() {
		defer s.running.Done()
		err := c.serve(far || s.cfg.Require)
		s.mu.Lock()
		delete(s.conns, c)
		if c.placed {
			s.places--
		}
		s.mu.Unlock()
		if err != nil && s.cfg.Failed != nil {
			s.cfg.Failed(nc.RemoteAddr(), err)
		}
	}()
}

// errMany is what a client is told for whom there is no place.
var errMany = errors.New("too many connections")

// admitted is exports of which the first one that is asked for takes a place: before TLS, where that is needed, none
// can be.
type admitted struct {
	nbd.Exports
	conn *conn
}

// Open implements nbd.Exports.
func (a admitted) Open(name string) (nbd.Export, error) {
	s := a.conn.server
	s.mu.Lock()
	full := !a.conn.placed && s.places >= s.cfg.Most
	if !full && !a.conn.placed {
		a.conn.placed = true
		s.places++
	}
	s.mu.Unlock()
	if full {
		return nbd.Export{}, errMany
	}
	return a.Exports.Open(name)
}

// Connections is how many there are that have asked for an export.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places
}

// Handshakes is how many there are that have not asked for one yet.
func (s *Server) Handshakes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns) - s.places
}

// Shutdown is Drain within Config.Drain.
func (s *Server) Shutdown() error { return s.Drain(s.cfg.Drain) }

// Drain ends the server: nothing more is accepted or taken in, what is under way is answered for so long at most, and
// all connections are closed. It returns when no goroutine is left.
func (s *Server) Drain(within time.Duration) error {
	s.mu.Lock()
	s.closing = true
	var errs []error
	for l := range s.listeners {
		errs = append(errs, l.Close())
	}
	for c := range s.conns {
		c.drain(within)
	}
	s.mu.Unlock()
	s.running.Wait()
	return errors.Join(errs...)
}
