// Package server serves the protocol of package resp over connections: it is a Redis server whose databases are
// key-value stores of package kv. It does the I/O, has the listeners and limits, and is a client of the stores.
//
// Server accepts connections and executes the commands of each one after the other; those of a command on several keys
// up to Parallel at a time. A change that may have been made, or not, is answered by an error that begins with UNKNOWN,
// and is never repeated. A store whose connection has ended for good is opened again by the next command for it.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"farflash/flash/accept"
	"farflash/flash/kv"
	"farflash/flash/kv/resp"
)

// Opener opens a store, by a client of its own. The function closes both.
type Opener func(ctx context.Context) (*kv.Store, func() error, error)

// Config configures a Server. DefaultConfig returns the defaults.
type Config struct {
	Stores []Opener // of the databases, from 0 on
	// Clients is the number of clients of each store, which connections use in turn.
	Clients int
	// Password, if set, is asked of every client.
	Password []byte
	// TLS, if set, is used on all addresses but Unix sockets; version 1.3 is enforced.
	TLS     *tls.Config
	Limits  resp.Limits
	Version string
	Most    int // connections whose clients are known
	Early   int // others; a further one displaces one of them (package halfopen)
	// Parallel is the number of keys of a command that are worked on at a time.
	Parallel int
	// Handshake bounds the time until a client is known, with TLS; Progress that of each write to it.
	Handshake, Progress time.Duration
	// Opening bounds how long a command waits for a store to be opened. It is answered by LOADING then.
	Opening time.Duration
	// Drain bounds how long Shutdown waits for commands.
	Drain time.Duration
	// Failed, if set, receives the reason why a connection ended, and why a store was lost.
	Failed func(net.Addr, error)
}

// DefaultConfig returns a configuration for 1024 connections.
func DefaultConfig() Config {
	return Config{Clients: 2, Limits: resp.DefaultLimits(), Most: 1024, Early: 64, Parallel: 16,
		Handshake: 10 * time.Second, Progress: 10 * time.Second, Opening: 10 * time.Second, Drain: 10 * time.Second}
}

// Server serves connections. It is safe for concurrent use.
type Server struct {
	cfg      Config
	session  resp.Config
	door     *accept.Door[*conn]
	ctx      context.Context
	cancel   context.CancelFunc
	stores   []*database
	began    time.Time
	numbers  atomic.Uint64 // of connections
	commands atomic.Uint64

	mu    sync.Mutex
	conns map[*conn]string // lines of CLIENT LIST
}

// New returns a server. Open it, Serve listeners, then Shutdown.
func New(cfg Config) (*Server, error) {
	switch {
	case len(cfg.Stores) == 0:
		return nil, errors.New("resp: no store to serve")
	case cfg.Clients < 1 || cfg.Clients > kv.Members:
		return nil, fmt.Errorf("resp: %d clients of each store; use 1 to %d", cfg.Clients, kv.Members)
	case cfg.Most < 1 || cfg.Early < 1 || cfg.Parallel < 1:
		return nil, errors.New("resp: limits of connections and keys must be positive")
	}
	if cfg.TLS != nil {
		cfg.TLS = cfg.TLS.Clone()
		cfg.TLS.MinVersion = tls.VersionTLS13
	}
	s := &Server{cfg: cfg, began: time.Now(), conns: map[*conn]string{}, session: resp.Config{Limits: cfg.Limits,
		Password: cfg.Password, Databases: len(cfg.Stores), Most: cfg.Most}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.door = accept.NewDoor[*conn](accept.Limits{Most: cfg.Most, Early: cfg.Early, Failed: cfg.Failed})
	for _, open := range cfg.Stores {
		d := &database{}
		for range cfg.Clients {
			d.seats = append(d.seats, &seat{open: open})
		}
		s.stores = append(s.stores, d)
	}
	return s, nil
}

// ErrExposed is the error of an address from which anyone could use the stores.
var ErrExposed = errors.New("other machines can reach it; that needs TLS, and a password or the authority of the " +
	"clients' certificates")

// Allows returns an error if an address may not be served with these settings.
func (c *Config) Allows(a net.Addr) error {
	proof := len(c.Password) > 0 || c.TLS != nil && c.TLS.ClientCAs != nil
	if !accept.Local(a) && (c.TLS == nil || !proof) {
		return fmt.Errorf("%v: %w", a, ErrExposed)
	}
	return nil
}

// Open opens each store once, so that its faults show before a client comes.
func (s *Server) Open(ctx context.Context) error {
	for i, d := range s.stores {
		if _, err := d.seats[0].get(ctx, s.ctx); err != nil {
			return fmt.Errorf("database %d: %w", i, err)
		}
	}
	return nil
}

// Serve accepts connections of a listener until Shutdown.
func (s *Server) Serve(l net.Listener) error {
	if err := s.cfg.Allows(l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	secure := s.cfg.TLS
	if l.Addr().Network() == "unix" {
		secure = nil
	}
	return s.door.Serve(l, func(nc net.Conn) *conn { return newConn(s, nc, secure) })
}

// Shutdown accepts no more connections, answers the commands that have begun, and closes the stores.
func (s *Server) Shutdown() error {
	left, err := s.door.Close()
	for _, c := range left {
		c.drain()
	}
	over := time.AfterFunc(s.cfg.Drain, func() {
		s.cancel()
		for _, c := range left {
			c.Abort()
		}
	})
	s.door.Wait()
	over.Stop()
	s.cancel()
	for _, d := range s.stores {
		for _, x := range d.seats {
			err = errors.Join(err, x.close())
		}
	}
	return err
}

// lines is the answer to CLIENT LIST.
func (s *Server) lines() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, line := range s.conns {
		all = append(all, line)
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

// describe sets a connection's line; empty: it has ended.
func (s *Server) describe(c *conn, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns[c] = line; line == "" {
		delete(s.conns, c)
	}
}

// info answers INFO.
func (s *Server) info(ctx context.Context) (string, error) {
	var b strings.Builder
	placed, _, _ := s.door.Count()
	up := int(time.Since(s.began).Seconds())
	fmt.Fprintf(&b, "# Server\r\nredis_version:%s\r\nredis_mode:standalone\r\nserver_name:farflash\r\n"+
		"farflash_version:%s\r\nuptime_in_seconds:%d\r\nuptime_in_days:%d\r\n\r\n"+
		"# Clients\r\nconnected_clients:%d\r\nmaxclients:%d\r\n\r\n"+
		"# Stats\r\ntotal_connections_received:%d\r\ntotal_commands_processed:%d\r\n\r\n"+
		"# Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n# Keyspace\r\n",
		resp.Redis, s.cfg.Version, up, up/86400, placed, s.cfg.Most, s.numbers.Load(), s.commands.Load())
	for i, d := range s.stores {
		n, err := s.keys(ctx, d)
		if err != nil {
			return "", fmt.Errorf("database %d: %w", i, err)
		}
		if n > 0 {
			fmt.Fprintf(&b, "db%d:keys=%d,expires=0,avg_ttl=0\r\n", i, n)
		}
	}
	return b.String(), nil
}
