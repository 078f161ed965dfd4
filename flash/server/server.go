// Package server is the daemon that gives a pool's files to the network: iWARP connections whose peers read, write
// and change files with one-sided operations, the same files over NBD, and /metrics for who watches it.
//
// New checks a Config, Listen begins to serve, and Drain ends it: what was begun is finished within a bound, and
// nothing more is taken in. Files is what is served, and Tree a file system of flash/cfs as that. Every connection is
// a protection domain of its own, whose STags no other connection can use.
//
// Only this machine is served, unless there is TLS 1.3 with either certificates of clients or a token, which a client
// sends as MPA's private data and nowhere but within TLS; everything else is refused before a socket is opened.
// /metrics is for this machine only. Connections, handshakes, exports open and memory are bounded: a connection can
// hold no more than its share of the pool's pages, whatever it asks for.
//
// What it leaves out: who made the certificates, rights of single clients (all see what Files shows), and formatting.
// The threats that it meets are RFC 5042's; docs/flash/security.md names the test of each.
package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"farflash/flash/ctl"
	"farflash/flash/nbd"
	nbdserver "farflash/flash/nbd/server"
	"farflash/flash/qos"
	"farflash/flash/uring"
	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
	"farflash/flash/verbs/stream"
	"farflash/flash/wire"
)

// Config is what is served, and to whom. DefaultConfig has the limits.
type Config struct {
	Pool  *ctl.Pool
	Files Files
	// Default is the file that NBD's empty name is; empty: none.
	Default string
	// ReadOnly serves reads only.
	ReadOnly bool

	Address string      // of iWARP; empty: none
	NBD     string      // of NBD; empty: none
	Metrics string      // of /metrics; empty: none
	TLS     *tls.Config // the server's certificate, and ClientCAs if clients need one; nil: no TLS
	Token   []byte      // what clients need, at least 16 bytes, at most 256; nil: none

	Connections int           // of iWARP at once
	Handshakes  int           // connections that are not yet known, at once, of iWARP and of NBD each
	PerExport   int           // how often one export may be open
	Open        int           // exports of one connection
	Reads       int           // reads and atomics of one connection under way (IRD)
	Handshake   time.Duration // bounds TLS and MPA's startup, each
	Progress    time.Duration // bounds one frame
	// of iWARP, without a frame; 0: for ever. Clients of NBD, whose devices may be quiet for days, have no such limit
	Idle time.Duration
	// Loops, if set, do the I/O of connections without TLS, and that of the pool's devices (pool.Options) at best.
	// They are closed after the pool.
	Loops *uring.Loops
	// Limits are of exports, by name, in whatever spelling; others have none.
	Limits map[string]qos.Limit
	// Depth is how many bytes of accesses are under way at once before exports of the latency class go first. 0:
	// qos.Depth.
	Depth int
	// Notice, if set, is told what is worth a line in a log.
	Notice func(string)
}

// DefaultConfig is 64 connections of 16 reads, with deadlines of seconds.
func DefaultConfig() Config {
	return Config{
		Default: "disk", Connections: 64, Handshakes: 32, PerExport: 1024, Open: 64, Reads: 16,
		Handshake: 5 * time.Second, Progress: 10 * time.Second, Idle: 10 * time.Minute,
	}
}

// local reports whether an address is this machine's alone. The name is looked up once, and what is listened on is
// what was found.
func local(address string) (*net.TCPAddr, bool, error) {
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, false, err
	}
	return a, a.IP != nil && a.IP.IsLoopback(), nil
}

// nbdSecret reports whether NBD is for those with TLS only.
func (c *Config) nbdSecret() bool { return c.TLS != nil }

// Check says what is wrong with what c has to say of the network: what New would say, before there is a pool.
func (c *Config) Check() error {
	_, err := c.check()
	return err
}

// check says what is wrong, and where c listens.
func (c *Config) check() (addresses [3]*net.TCPAddr, err error) {
	certified := c.TLS != nil && c.TLS.ClientCAs != nil
	for _, n := range []struct {
		what string
		n    int
	}{{"connections", c.Connections}, {"handshakes", c.Handshakes}, {"uses of an export", c.PerExport},
		{"exports of a connection", c.Open}, {"reads under way", c.Reads}} {
		if n.n < 1 || n.n > 1<<14 {
			return addresses, fmt.Errorf("%d %s; give 1 to %d", n.n, n.what, 1<<14)
		}
	}
	switch {
	case c.Address == "" && c.NBD == "":
		return addresses, errors.New("nothing to listen on")
	case c.Handshake <= 0 || c.Progress <= 0 || c.Idle < 0:
		return addresses, errors.New("deadlines are to be more than nothing")
	case c.Token != nil && c.TLS == nil:
		return addresses, errors.New("a token without TLS could be read by anybody on the way; give a certificate")
	case c.Token != nil && (len(c.Token) < 16 || len(c.Token) > 256):
		return addresses, fmt.Errorf("a token of %d bytes; give 16 to 256 that cannot be guessed", len(c.Token))
	}
	for i, at := range []string{c.Address, c.NBD, c.Metrics} {
		if at == "" {
			continue
		}
		a, here, err := local(at)
		switch {
		case err != nil:
			return addresses, err
		case i == 1 && c.Token != nil && !certified:
			return addresses, fmt.Errorf(
				"NBD at %s has no place for a token, so it would let in whoever reaches it without one; give the "+
					"authority of clients' certificates as well, or serve NBD by a daemon without a token", at)
		case here:
		case i == 2:
			return addresses, fmt.Errorf(
				"%s can be reached from other machines, and /metrics is for this one only; use 127.0.0.1", at)
		case c.TLS == nil:
			return addresses, fmt.Errorf(
				"%s can be reached from other machines, and there is no TLS; give a certificate and who may connect, "+
					"or listen on 127.0.0.1", at)
		case i == 1 && !certified:
			return addresses, fmt.Errorf(
				"%s can be reached from other machines, and NBD has no place for a token; give the authority of "+
					"clients' certificates, or listen on 127.0.0.1", at)
		case !certified && c.Token == nil:
			return addresses, fmt.Errorf(
				"%s can be reached from other machines, and anybody could connect; give the authority of clients' "+
					"certificates or a token, or listen on 127.0.0.1", at)
		}
		addresses[i] = a
	}
	return addresses, nil
}

// Server serves. Its methods may be called from anywhere.
type Server struct {
	cfg     Config
	at      [3]*net.TCPAddr
	tls     *tls.Config
	token   [sha256.Size]byte
	adapter *verbs.Adapter
	stream  stream.Config
	window  int
	gates   *gates
	uses    uses

	listener net.Listener
	nbdAt    net.Listener
	blocks   *nbdserver.Server
	metricsL net.Listener
	metrics  *http.Server

	mu      sync.Mutex
	conns   map[*stream.Conn]bool
	early   map[net.Conn]bool // in their handshakes
	places  int               // of conns, taken or promised
	ending  bool
	past    verbs.Counters // of connections that have ended
	running sync.WaitGroup

	accepted, refused, failed, denied atomic.Int64
}

// segment is how many pages one segment of a write can touch.
const segment = wire.MaxULPDU/Page + 2

// window is how many bytes of a read are asked for at a time, in a pool of so many pages of memory. A connection
// holds a window for each of its reads, one more of the read that is being sent, and a segment of a write. Three
// quarters of the pool's memory are divided among the connections that there can be; so none waits for pages that
// another does not give back.
func (c *Config) window(frames int) (int, error) {
	share := frames * 3 / 4 / c.Connections
	window := ((share-segment)/(c.Reads+1) - 1) * Page
	if window < Page {
		return 0, fmt.Errorf(
			"%d pages of memory are too few for %d connections with %d reads each; give %d, or fewer connections",
			frames, c.Connections, c.Reads, (2*(c.Reads+1)+segment)*c.Connections*4/3+4)
	}
	return window, nil
}

// CheckMemory says what is wrong with c for a pool of so many pages of memory: what New would say, before there is a
// pool.
func (c *Config) CheckMemory(frames int) error {
	_, err := c.window(frames)
	return err
}

// New checks a configuration. Nothing is listened on yet.
func New(cfg Config) (*Server, error) {
	at, err := cfg.check()
	if err == nil && (cfg.Pool == nil || cfg.Files == nil) {
		err = errors.New("a server without a pool or files")
	}
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	window, err := cfg.window(cfg.Pool.Frames())
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	cfg.Default = Name(cfg.Default)
	s := &Server{cfg: cfg, at: at, window: min(window, 1<<20), conns: map[*stream.Conn]bool{},
		early: map[net.Conn]bool{}}
	s.uses.open = map[string]int{}
	var key [16]byte
	if _, err := rand.Read(key[:]); err != nil {
		return nil, err
	}
	if s.adapter, err = verbs.NewAdapter(key); err != nil {
		return nil, err
	}
	if cfg.TLS != nil {
		s.tls = cfg.TLS.Clone()
		s.tls.MinVersion = tls.VersionTLS13
		if s.tls.ClientCAs != nil {
			s.tls.ClientAuth = tls.RequireAndVerifyClientCert
		}
	}
	if cfg.Token != nil {
		s.token = sha256.Sum256(cfg.Token)
	}
	if s.gates, err = newGates(cfg.Limits, cfg.Depth); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	c := stream.DefaultConfig()
	c.Setup, c.Progress, c.Idle, c.Loops = cfg.Handshake, cfg.Progress, cfg.Idle, cfg.Loops
	c.Verbs.IRD, c.Verbs.ORD, c.Verbs.Window = cfg.Reads, 0, s.window
	c.Verbs.Sends, c.Verbs.Receives = 16, 8
	c.Verbs.Notice = func(err error) { s.notice("a connection ends: %v", err) }
	s.stream = c
	return s, nil
}

func (s *Server) notice(format string, args ...any) {
	if s.cfg.Notice != nil {
		s.cfg.Notice(fmt.Sprintf(format, args...))
	}
}

// errToken is all that a client with a wrong token is told.
var errToken = errors.New("not allowed")

// admit looks at a client's token.
func (s *Server) admit(request wire.StartupFields) error {
	if s.cfg.Token == nil {
		return nil
	}
	given := sha256.Sum256(request.Private)
	if subtle.ConstantTimeCompare(given[:], s.token[:]) != 1 {
		s.denied.Add(1)
		return errToken
	}
	return nil
}

// Listen opens the sockets and begins to serve. After an error nothing is open.
func (s *Server) Listen() (err error) {
	defer func() {
		if err != nil {
			for _, l := range []net.Listener{s.listener, s.nbdAt, s.metricsL} {
				if l != nil {
					err = errors.Join(err, l.Close())
				}
			}
		}
	}()
	for i, to := range []*net.Listener{&s.listener, &s.nbdAt, &s.metricsL} {
		if s.at[i] != nil {
			l, err := net.ListenTCP("tcp", s.at[i])
			if err != nil {
				return err
			}
			*to = l
		}
	}
	if s.nbdAt != nil {
		c := nbdserver.DefaultConfig()
		c.Exports, c.TLS, c.Require, c.Handshake, c.Progress, c.Loops = s.nbdExports, s.tls, s.cfg.nbdSecret(),
			s.cfg.Handshake, s.cfg.Progress, s.cfg.Loops
		c.Early = s.cfg.Handshakes
		// NBD has the last quarter of the memory, less what the controller needs itself.
		budget := s.cfg.Pool.Frames() * Page / 8
		c.Most = max(1, min(s.cfg.Connections, mostNBD, budget/nbd.Window))
		c.Limits.Memory = max(nbd.Window, min(c.Limits.Memory, budget/c.Most))
		c.Failed = func(a net.Addr, err error) { s.notice("NBD, %v: %v", a, err) }
		if s.blocks, err = nbdserver.New(c); err != nil {
			return err
		}
		s.running.Add(1)
		go func() {
			defer s.running.Done()
			if err := s.blocks.Serve(s.nbdAt); err != nil {
				s.notice("NBD: %v", err)
			}
		}()
	}
	if s.metricsL != nil {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /metrics", s.serveMetrics)
		s.metrics = &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second,
			IdleTimeout: 30 * time.Second, MaxHeaderBytes: 8 << 10}
		s.running.Add(1)
		go func() {
			defer s.running.Done()
			if err := s.metrics.Serve(s.metricsL); !errors.Is(err, http.ErrServerClosed) {
				s.notice("/metrics: %v", err)
			}
		}()
	}
	if s.listener != nil {
		s.running.Add(1)
		go s.accept()
	}
	return nil
}

// Addresses are where iWARP, NBD and /metrics are, empty for what is not served.
func (s *Server) Addresses() (iwarp, nbd, metrics string) {
	text := func(l net.Listener) string {
		if l == nil {
			return ""
		}
		return l.Addr().String()
	}
	return text(s.listener), text(s.nbdAt), text(s.metricsL)
}

// Connections is how many of iWARP are served.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// accept takes connections in. One that is too many is closed at once.
func (s *Server) accept() {
	defer s.running.Done()
	for wait := time.Millisecond; ; {
		nc, err := s.listener.Accept()
		s.mu.Lock()
		ending := s.ending
		if err == nil && !ending && len(s.early) < s.cfg.Handshakes {
			s.early[nc] = true
			s.running.Add(1)
			s.mu.Unlock()
			wait = time.Millisecond
			go s.serve(nc)
			continue
		}
		s.mu.Unlock()
		switch {
		case ending:
			if err == nil {
				_ = nc.Close() // it came too late
			}
			return
		case err == nil:
			s.refused.Add(1)
			_ = nc.Close() // whoever it is sees that it is closed
		case errors.Is(err, net.ErrClosed):
			s.notice("nothing more is accepted: %v", err)
			return
		default:
			// Out of descriptors, say: they come back when connections end.
			s.notice("accepting: %v", err)
			time.Sleep(wait)
			wait = min(2*wait, time.Second)
		}
	}
}

// errMany is what a client is told for whom there is no place.
var errMany = errors.New("too many connections")

// serve takes one connection from its first byte to its last.
func (s *Server) serve(nc net.Conn) {
	defer s.running.Done()
	placed := false
	c, server, err := s.begin(nc, &placed)
	defer func() {
		if placed {
			s.mu.Lock()
			s.places--
			s.mu.Unlock()
		}
	}()
	s.mu.Lock()
	delete(s.early, nc)
	if err == nil && s.ending {
		err = errors.New("the server ends")
	}
	if err == nil {
		s.conns[c] = true
	}
	s.mu.Unlock()
	if err != nil {
		s.failed.Add(1)
		s.notice("%v: no connection: %v", nc.RemoteAddr(), err)
		if c != nil {
			_ = c.Close() // never fails
		}
		return
	}
	s.accepted.Add(1)
	err = server.Serve(c)
	_ = c.Close() // never fails
	s.mu.Lock()
	delete(s.conns, c)
	add(&s.past, c.Counters())
	s.mu.Unlock()
	if t := new(verbs.Terminated); errors.As(err, t) {
		s.notice("%v: %v", nc.RemoteAddr(), err)
	}
}

// begin does the handshakes.
func (s *Server) begin(nc net.Conn, placed *bool) (*stream.Conn, *control.Server, error) {
	if s.tls != nil {
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Handshake)
		defer cancel()
		secret := tls.Server(nc, s.tls)
		if err := secret.HandshakeContext(ctx); err != nil {
			return nil, nil, errors.Join(err, nc.Close())
		}
		nc = secret
	}
	domain := s.adapter.NewDomain(s.cfg.Open)
	server := control.NewServer(exports{s}, domain, s.cfg.Open)
	cfg := s.stream
	cfg.Prepare = server.Prepare
	cfg.Accept = func(r wire.StartupFields) ([]byte, error) {
		if err := s.admit(r); err != nil {
			return nil, err
		}
		// Only now is it known to be somebody who may; those who may not never take a place.
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.places >= s.cfg.Connections {
			s.refused.Add(1)
			return nil, errMany
		}
		s.places++
		*placed = true
		return nil, nil
	}
	c, err := stream.Server(nc, domain, cfg)
	return c, server, err
}

// Drain ends the server: nothing more is accepted, what connections have begun is finished, within a time, and they
// are closed. The pool is the caller's to flush and close. It returns when no goroutine of the server's is left.
func (s *Server) Drain(within time.Duration) error {
	s.mu.Lock()
	s.ending = true
	var errs []error
	if s.listener != nil {
		errs = append(errs, s.listener.Close())
	}
	for nc := range s.early {
		_ = nc.Close() // ends its handshake
	}
	var all sync.WaitGroup
	for c := range s.conns {
		all.Add(1)
		go func() {
			defer all.Done()
			_ = c.Drain(within) // never fails
		}()
	}
	s.mu.Unlock()
	s.gates.open()
	if s.blocks != nil {
		errs = append(errs, s.blocks.Drain(within))
	}
	all.Wait()
	if s.metrics != nil {
		errs = append(errs, s.metrics.Close())
	}
	s.running.Wait()
	s.gates.close()
	if n := s.adapter.Regions(); n != 0 {
		errs = append(errs, fmt.Errorf("server: %d regions are left", n))
	}
	return errors.Join(errs...)
}

// mostNBD bounds NBD's connections, so that each has memory for reads of some length.
const mostNBD = 16
