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
	"time"

	"farflash/flash/accept"
	"farflash/flash/driver"
	"farflash/flash/nbd"
)

// Loops are threads that do the I/O of connections.
type Loops = driver.Loops

// Config configures a Server. DefaultConfig returns the defaults.
type Config struct {
	// Exports returns the exports of a client at an address. It is called with nil before TLS, and with the TLS state
	// after it.
	Exports func(net.Addr, *tls.ConnectionState) (nbd.Exports, error)
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
	// Unsent, if not zero, limits what the kernel holds of a connection's output and has not sent, in bytes (Linux).
	Unsent int
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
func Fixed(e nbd.Exports) func(net.Addr, *tls.ConnectionState) (nbd.Exports, error) {
	return func(net.Addr, *tls.ConnectionState) (nbd.Exports, error) { return e, nil }
}

// Server serves connections. It is safe for concurrent use.
type Server struct {
	cfg  Config
	door *accept.Door[*conn]
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
	return &Server{cfg, accept.NewDoor[*conn](accept.Limits{Most: cfg.Most, Early: cfg.Early, Failed: cfg.Failed})}, nil
}

// Serve accepts connections until the server is shut down, which closes l. Without TLS, it refuses a non-local address.
func (s *Server) Serve(l net.Listener) error {
	far := !accept.Local(l.Addr())
	if far && s.cfg.TLS == nil {
		return errors.Join(fmt.Errorf("nbd: %v is reachable from other machines without TLS; give a certificate, or "+
			"listen on 127.0.0.1", l.Addr()), l.Close())
	}
	return s.door.Serve(l, func(nc net.Conn) *conn {
		return &conn{server: s, base: nc, nc: nc, require: far || s.cfg.Require}
	})
}

// admitted wraps the exports of a connection to claim one of Config.Most places at the first Open. Before a required
// TLS handshake, Open cannot be called.
type admitted struct {
	nbd.Exports
	conn *conn
}

// Open implements nbd.Exports.
func (a admitted) Open(name string) (nbd.Export, error) {
	if !a.conn.placed {
		if err := a.conn.server.door.Place(a.conn); err != nil {
			return nbd.Export{}, err
		}
		a.conn.placed = true
	}
	return a.Exports.Open(name)
}

// Connections is the number of connections that have asked for an export.
func (s *Server) Connections() int {
	placed, _, _ := s.door.Count()
	return placed
}

// Handshakes is the number of connections that have not asked for an export yet.
func (s *Server) Handshakes() int {
	_, early, _ := s.door.Count()
	return early
}

// Displaced is the number of connections that were closed during negotiation to admit others.
func (s *Server) Displaced() int64 {
	_, _, displaced := s.door.Count()
	return displaced
}

// Shutdown is Drain within Config.Drain.
func (s *Server) Shutdown() error { return s.Drain(s.cfg.Drain) }

// Drain stops the server: it accepts no more connections and reads no more commands, gives outstanding commands up to
// within to be answered, and closes all connections. It returns when no goroutine is left.
func (s *Server) Drain(within time.Duration) error {
	left, err := s.door.Close()
	for _, c := range left {
		c.drain(within)
	}
	s.door.Wait()
	return err
}
