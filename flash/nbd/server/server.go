// Package server serves the Network Block Device protocol of flash/nbd over connections. It does the I/O of the
// negotiation, and has the listeners and limits.
//
// Server accepts connections and serves each until it ends; Config sets the exports, TLS and limits. A connection
// negotiates on a goroutine of its own; then package driver runs it. Replies are sent directly from the volume's
// memory, as vectors; over TLS they are gathered into a buffer first.
//
// Access control beyond TLS is left to Config.Exports, which is called for every connection with its TLS state.
package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"farflash/flash/accept"
	"farflash/flash/driver"
	"farflash/flash/halfopen"
	"farflash/flash/nbd"
)

// Loops are threads that do the I/O of connections.
type Loops = driver.Loops

// Config configures a Server. DefaultConfig returns the defaults.
type Config struct {
	// Exports returns the exports of a client. It is called with nil before TLS, and with the TLS state after it.
	Exports func(*tls.ConnectionState) (nbd.Exports, error)
	// TLS, if set, is offered to clients; version 1.3 is enforced. Without it, only local addresses can be served.
	TLS *tls.Config
	// Require makes TLS mandatory for every client. For clients on non-local addresses it always is.
	Require bool
	// Loops, if set, do the I/O of connections without TLS and, ideally, of the volume's device. The caller closes them
	// after the server.
	Loops *Loops
	// Limits are the limits of each connection.
	Limits nbd.Limits
	// Most is the maximum number of connections that have asked for an export; a client beyond it receives an error.
	Most int
	// Early is the maximum number of connections that have not asked for an export yet and may be unauthenticated. A
	// further one displaces the oldest of the host that has the most (package halfopen).
	Early int
	// Handshake bounds the duration of the negotiation, including TLS.
	Handshake time.Duration
	// Progress bounds the reception of a command, from its first byte to its last, plus one second per MiB of payload;
	// and each write to the connection.
	Progress time.Duration
	// Idle, if not zero, bounds the time between commands.
	Idle time.Duration
	// Hold is how long a client that does not read can hold memory of the volume.
	Hold time.Duration
	// Drain bounds how long Shutdown waits for outstanding commands.
	Drain time.Duration
	// Failed, if set, receives the reason why a connection ended, unless the client disconnected.
	Failed func(net.Addr, error)
	// Clock, if set, says in nanoseconds when commands waited for memory (nbd.Task).
	Clock func() int64
}

// DefaultConfig returns a configuration for 64 connections and 64 negotiations, with timeouts of ten seconds.
func DefaultConfig() Config {
	return Config{
		Limits: nbd.DefaultLimits(), Most: 64, Early: 64, Handshake: 10 * time.Second, Progress: 10 * time.Second,
		Hold: 50 * time.Millisecond, Drain: 10 * time.Second,
	}
}

// Fixed serves the same exports to all clients.
func Fixed(e nbd.Exports) func(*tls.ConnectionState) (nbd.Exports, error) {
	return func(*tls.ConnectionState) (nbd.Exports, error) { return e, nil }
}

// Server serves connections. It is safe for concurrent use.
type Server struct {
	cfg Config

	mu        sync.Mutex
	listeners map[net.Listener]bool
	conns     map[*conn]bool
	early     *halfopen.Table[*conn] // conns that have not asked for an export yet
	slots     chan struct{}          // one per negotiation in progress: of early, displaced and placed connections
	places    int                    // conns that have asked for an export
	closing   bool
	running   sync.WaitGroup
}

// New returns a server.
func New(cfg Config) (*Server, error) {
	if cfg.Exports == nil {
		return nil, errors.New("nbd: the server has no exports")
	}
	if cfg.Require && cfg.TLS == nil {
		return nil, errors.New("nbd: TLS is required, but there is no certificate")
	}
	if cfg.TLS != nil {
		c := cfg.TLS.Clone()
		c.MinVersion = tls.VersionTLS13
		cfg.TLS = c
	}
	return &Server{cfg: cfg, listeners: map[net.Listener]bool{}, conns: map[*conn]bool{},
		early: halfopen.New[*conn](cfg.Early), slots: make(chan struct{}, 2*max(cfg.Early, 1)+max(cfg.Most, 0))}, nil
}

// Serve accepts connections until the server is shut down, which closes l. Without TLS, it refuses a non-local address.
func (s *Server) Serve(l net.Listener) error {
	if !accept.Local(l.Addr()) && s.cfg.TLS == nil {
		return errors.Join(fmt.Errorf("nbd: %v is reachable from other machines without TLS; give a certificate, or listen on 127.0.0.1", l.Addr()), l.Close())
	}
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return l.Close()
	}
	s.listeners[l] = true
	s.mu.Unlock()
	err := accept.Loop(l, func(nc net.Conn) { s.take(nc, !accept.Local(l.Addr())) }, s.ending, func(err error) {
		if s.cfg.Failed != nil {
			s.cfg.Failed(l.Addr(), fmt.Errorf("accepting: %w", err))
		}
	})
	s.mu.Lock()
	delete(s.listeners, l)
	s.mu.Unlock()
	if err != nil {
		err = errors.Join(err, l.Close())
	}
	return err
}

// ending reports whether the server has begun to shut down.
func (s *Server) ending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// take serves a connection. If there are too many handshakes it closes another one, which takes no part in them any
// more from then on.
func (s *Server) take(nc net.Conn, far bool) {
	c := newConn(s, nc)
	s.slots <- struct{}{} // displaced negotiations end soon, since their connections are closed
	s.mu.Lock()
	if s.closing {
		<-s.slots
		s.mu.Unlock()
		_ = nc.Close() // the client sees a close before the greeting
		return
	}
	s.conns[c] = true
	oldest, full, report := s.early.Enter(halfopen.Source(nc.RemoteAddr()), c, time.Now())
	if full {
		oldest.displaced = true
	}
	s.running.Add(1)
	s.mu.Unlock()
	if full {
		_ = oldest.base.Close() // its goroutine notices
	}
	if report > 0 && s.cfg.Failed != nil {
		s.cfg.Failed(oldest.base.RemoteAddr(), fmt.Errorf("%d connections closed during negotiation to admit others "+
			"(at most %d negotiate); this is the last", report, s.cfg.Early))
	}
	go func() {
		defer s.running.Done()
		err := c.serve(far || s.cfg.Require)
		s.mu.Lock()
		delete(s.conns, c)
		if c.placed {
			s.places--
		} else {
			s.early.Leave(c)
		}
		if c.displaced {
			err = nil // reported, together with others
		}
		s.mu.Unlock()
		if err != nil && s.cfg.Failed != nil {
			s.cfg.Failed(nc.RemoteAddr(), err)
		}
	}()
}

// errMany is the error for clients beyond Config.Most, and for one that was displaced while it asked for an export.
var errMany = errors.New("too many connections")

// admitted wraps the exports of a connection to claim one of Config.Most places at the first Open. Before a required
// TLS handshake, Open cannot be called.
type admitted struct {
	nbd.Exports
	conn *conn
}

// Open implements nbd.Exports.
func (a admitted) Open(name string) (nbd.Export, error) {
	s := a.conn.server
	s.mu.Lock()
	full := !a.conn.placed && (s.places >= s.cfg.Most || !s.early.Leave(a.conn))
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

// Connections is the number of connections that have asked for an export.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places
}

// Handshakes is the number of connections that have not asked for an export yet.
func (s *Server) Handshakes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.early.Len()
}

// Displaced is the number of connections that were closed during negotiation to admit others.
func (s *Server) Displaced() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.early.Displaced()
}

// Shutdown is Drain within Config.Drain.
func (s *Server) Shutdown() error { return s.Drain(s.cfg.Drain) }

// Drain stops the server: it accepts no more connections and reads no more commands, gives outstanding commands up to
// within to be answered, and closes all connections. It returns when no goroutine is left.
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
