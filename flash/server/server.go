// Package server is the daemon that exports a pool's files to the network: over iWARP, where clients read, write and
// modify files with one-sided operations; over NBD; over NVMe/TCP, where each file is a namespace; and what operators
// watch: /metrics, /healthz and /readyz.
//
// New checks a Config, Listen starts serving, and Drain stops: outstanding operations get bounded time to finish, and
// no more are accepted. Files is the set of files to export; Tree exports a file system of flash/cfs. Every connection
// has a protection domain of its own, whose STags no other connection can use.
//
// Only local clients are served unless TLS 1.3 is configured together with either client certificates or a token, which
// a client sends as MPA private data and only over TLS; New rejects any other configuration before a socket is opened.
// Connections, handshakes, open exports and memory are bounded: a connection cannot hold more
// than its share of the pool's pages.
//
// The package leaves out certificate management, per-client rights (all clients see the same Files) and formatting. Its
// threat model is that of RFC 5042; docs/flash/security.md names the test for each threat.
package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"farflash/flash/accept"
	"farflash/flash/cfs/requests"
	"farflash/flash/ctl"
	"farflash/flash/driver"
	"farflash/flash/halfopen"
	"farflash/flash/meter"
	"farflash/flash/nbd"
	nbdserver "farflash/flash/nbd/server"
	"farflash/flash/nvme/chap"
	"farflash/flash/otlp"
	"farflash/flash/qos"
	"farflash/flash/recorder"
	"farflash/flash/uring"
	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
	"farflash/flash/verbs/stream"
	"farflash/flash/wire"
	"farflash/policy/ratecontrol"
)

// Config configures a Server: the files and who may use them. DefaultConfig sets the limits.
type Config struct {
	Pool  *ctl.Pool
	Files Files
	// Requests, if set, executes the requests of iWARP clients to create, rename and remove files, in the file system
	// of Files.
	Requests *requests.Tree
	// Default is the file behind NBD's empty export name; empty: none.
	Default string
	// ReadOnly permits reads only.
	ReadOnly bool

	Address string      // iWARP listen address, HOST:PORT or unix:PATH; empty: not served
	NBD     string      // NBD listen address; empty: not served
	NVMe    []string    // NVMe/TCP listen addresses, HOST:PORT, each a path of its own for hosts
	Metrics string      // /metrics listen address, with TLS if other machines can reach it; empty: not served
	TLS     *tls.Config // server certificate, and ClientCAs if clients need one; nil: no TLS
	Token   []byte      // secret that clients must send, 16 to 256 bytes; nil: none

	Connections int // maximum number of iWARP connections
	// NBDConnections is the maximum number of NBD connections. 0: as many as an eighth of the pool's memory allows with
	// the memory that each needs for long reads (nbd.Window), up to 16.
	NBDConnections int
	// Subsystem is the name of the NVMe subsystem; empty: made from the pool's UUID.
	Subsystem string
	Hosts     []string // names of the NVMe hosts that may connect; empty: all
	// Keys are the secrets by which NVMe hosts prove who they are, by their names; nil: they need not. Only with keys
	// may other machines reach the addresses, and then through a tunnel only: the proof protects no data.
	Keys map[string]chap.Keys
	// Queues is the maximum number of I/O queues of an NVMe host; 0: up to 16, fewer if the pool's memory is small.
	Queues     int
	Handshakes int           // maximum number of unauthenticated connections of each protocol; see halfopen
	PerExport  int           // maximum number of simultaneous opens of an export
	Open       int           // maximum number of open exports per connection
	Reads      int           // maximum outstanding reads and atomics per connection (IRD)
	Handshake  time.Duration // time limit of TLS and of MPA startup, each
	Progress   time.Duration // time limit of one frame
	// Idle is the maximum time between iWARP frames; 0: unlimited. NBD clients have no such limit, because a device may
	// be quiet for days.
	Idle time.Duration
	// Loops, if set, do the I/O of connections without TLS and, ideally, of the pool's devices (pool.Options). The
	// caller closes them after the pool.
	Loops *uring.Loops
	// Limits are rate limits by export name, in any spelling; other exports are unlimited.
	Limits map[string]qos.Limit
	// Keeper keeps the limits of SetLimit; nil: they end with the server.
	Keeper Keeper
	// Depth is the number of bytes in outstanding accesses from which on exports of the latency class go first. 0:
	// qos.Depth.
	Depth int
	// RateControl divides each NBD and NVMe client's accesses to an export between reads and writes, by the rate at
	// which its network accepts read data (qos.Steer). iWARP fixes the order of answers to reads, and sends others
	// between them; there it only limits what the kernel holds of reads.
	RateControl ratecontrol.Kind
	// Log, if set, receives notable events, with the attributes protocol, export, peer and error where they
	// apply.
	Log *slog.Logger
	// Traces, if set, is the URL of a collector that gets traces of one request in TraceEvery, by OTLP over HTTP.
	Traces     string
	TraceEvery int
	// Recorder, if set, records all operations. The caller closes it after the server has ended.
	Recorder *recorder.Recorder
	// Version is the program's version for the metric farflash_build_info.
	Version string
}

// DefaultConfig returns a configuration for 64 connections with 16 reads each and timeouts of seconds.
func DefaultConfig() Config {
	return Config{
		Default: "disk", Connections: 64, Handshakes: 32, PerExport: 1024, Open: 64, Reads: 16, TraceEvery: 1000,
		Handshake: 5 * time.Second, Progress: 10 * time.Second, Idle: 10 * time.Minute,
	}
}

// Fault is the error of a setting.
type Fault struct {
	Setting string // the name of its flag of farflash flash serve, and of its key in a config but for the underscores
	Index   int    // of a setting with several values: which of them
	Err     error
}

func (f *Fault) Error() string { return f.Err.Error() }

// Unwrap returns the error without the setting.
func (f *Fault) Unwrap() error { return f.Err }

// fault returns an error of a setting.
func fault(setting, format string, args ...any) error {
	return &Fault{Setting: setting, Err: fmt.Errorf(format, args...)}
}

// The settings that are addresses.
const (
	settingListen  = "listen"
	settingNBD     = "nbd"
	settingMetrics = "metrics"
	settingNVMe    = "nvme"
)

// settings are those of Server.at.
var settings = [...]string{settingListen, settingNBD, settingMetrics}

// unsent is what the kernel may hold unsent of a connection's output, in bytes; 0: no limit.
func (c *Config) unsent() int {
	if c.RateControl == ratecontrol.None {
		return 0
	}
	return mostUnsent
}

// mostUnsent keeps a network busy for the time in which more is handed to the kernel: 128 KiB are 1 ms of 1 Gbit/s.
const mostUnsent = 128 << 10

// nbdSecret reports whether NBD clients must use TLS.
func (c *Config) nbdSecret() bool { return c.TLS != nil }

// Check validates the network settings. It returns the error that New would, without needing a pool.
func (c *Config) Check() error {
	_, err := c.check()
	return err
}

// check validates the network settings and resolves the listen addresses.
func (c *Config) check() (addresses [3]net.Addr, err error) {
	if err := c.checkNVMe(); err != nil {
		return addresses, err
	}
	certified := c.TLS != nil && c.TLS.ClientCAs != nil
	for _, n := range []struct {
		setting, what string
		n             int
	}{{"connections", "connections", c.Connections}, {"", "handshakes", c.Handshakes},
		{"per-export", "uses per export", c.PerExport}, {"exports", "exports per connection", c.Open},
		{"reads", "reads in flight", c.Reads}} {
		if n.n < 1 || n.n > 1<<14 {
			return addresses, fault(n.setting, "%d %s; give 1 to %d", n.n, n.what, 1<<14)
		}
	}
	if err := qos.CheckSteering(c.RateControl); err != nil {
		return addresses, &Fault{Setting: "rate-control", Err: err}
	}
	if c.Traces != "" {
		if err := otlp.Check(c.Traces); err != nil {
			return addresses, &Fault{Setting: "traces", Err: err}
		}
		if c.TraceEvery < 1 {
			return addresses, fault("trace-every", "traces of one request in %d; give 1 or more", c.TraceEvery)
		}
	}
	switch {
	case c.NBDConnections < 0 || c.NBDConnections > 1<<14:
		return addresses, fault("nbd-connections", "%d NBD connections; give 1 to %d, or 0 for what the memory allows",
			c.NBDConnections, 1<<14)
	case c.Address == "" && c.NBD == "" && len(c.NVMe) == 0:
		return addresses, errors.New("no address to listen on")
	case c.Handshake <= 0:
		return addresses, fault("handshake", "%v is no deadline; give a time above 0", c.Handshake)
	case c.Progress <= 0:
		return addresses, fault("progress", "%v is no deadline; give a time above 0", c.Progress)
	case c.Idle < 0:
		return addresses, fault("idle", "%v is no deadline; give a time, or 0 for none", c.Idle)
	case c.Token != nil && c.TLS == nil:
		return addresses, fault("token-file", "a token needs TLS, or it could be read in transit; give a certificate")
	case c.Token != nil:
		if err := checkToken(c.Token); err != nil {
			return addresses, err
		}
	}
	for i, at := range []string{c.Address, c.NBD, c.Metrics} {
		if at == "" {
			continue
		}
		setting := settings[i]
		a, here, err := resolve(at)
		switch {
		case err != nil:
			return addresses, &Fault{Setting: setting, Err: err}
		case i == 1 && c.Token != nil && !certified:
			return addresses, fault(setting,
				"NBD cannot carry a token, so %s would admit clients without one; also give the authority of "+
					"clients' certificates, or serve NBD from a daemon without a token", at)
		case here:
		case c.TLS == nil:
			return addresses, fault(setting,
				"%s is reachable from other machines without TLS; give a certificate and the permitted clients, or "+
					"listen on 127.0.0.1", at)
		case i == 1 && !certified:
			return addresses, fault(setting,
				"%s is reachable from other machines, and NBD cannot carry a token; give the authority of clients' "+
					"certificates, or listen on 127.0.0.1", at)
		case !certified && c.Token == nil:
			return addresses, fault(setting,
				"%s is reachable from other machines without authentication; give the authority of clients' "+
					"certificates or a token, or listen on 127.0.0.1", at)
		}
		addresses[i] = a
	}
	return addresses, nil
}

// Server is the daemon. It is safe for concurrent use.
type Server struct {
	cfg     Config
	at      [3]net.Addr
	proofs  atomic.Pointer[proofs]
	adapter *verbs.Adapter
	stream  stream.Config
	window  int
	memory  map[string]int // of an NBD or NVMe connection, in bytes
	log     *slog.Logger
	gates   *gates
	limits  *limits
	began   time.Time
	meter   *meter.Meter
	traces  *otlp.Exporter // nil: none
	uses    uses
	seats   seats

	listener net.Listener
	nbdAt    net.Listener
	blocks   *nbdserver.Server
	spaces   *spaces // nil: NVMe is not served
	metricsL net.Listener
	metrics  *http.Server

	mu      sync.Mutex
	conns   map[*stream.Conn]bool
	early   *halfopen.Table[net.Conn] // still in their handshakes
	slots   chan struct{}             // one per handshake in progress, displaced ones that end included
	places  int                       // of Connections, claimed or reserved
	ending  bool
	past    verbs.Counters // sum over connections that have ended
	running sync.WaitGroup
	closing sync.WaitGroup // files that are being closed

	accepted, refused, failed, denied atomic.Int64
}

// segment is the maximum number of pages that one segment of a write can touch.
const segment = wire.MaxULPDU/pageSize + 2

// window is the number of bytes of a read requested at a time, in a pool with this many frames. A connection holds one
// window per read, a second window for the read being sent, and one segment of a write. Three quarters of the pool's
// memory are divided among the maximum number of connections, so none of them ever waits for pages that another holds.
func (c *Config) window(frames int) (int, error) {
	if c.Address == "" { // no connections
		return pageSize, nil
	}
	share := frames * 3 / 4 / c.Connections
	window := ((share-segment)/(c.Reads+1) - 1) * pageSize
	if window < pageSize {
		return 0, fault("memory",
			"%d pages of memory are too few for %d connections with %d reads each; give %d, or fewer connections",
			frames, c.Connections, c.Reads, (2*(c.Reads+1)+segment)*c.Connections*4/3+4)
	}
	return window, nil
}

// blocks is the number of NBD connections, and the memory of each in bytes, in a pool with this many frames. NBD gets
// half of the quarter that iWARP's windows leave; the rest of that is the controller's own.
func (c *Config) blocks(frames int) (most, memory int, err error) {
	budget := frames * pageSize / 8
	most = c.NBDConnections
	switch {
	case most == 0:
		most = max(1, min(c.Connections, usualNBD, budget/nbd.Window))
	case most*nbd.Window > budget && c.NBD != "":
		return 0, 0, fault("memory",
			"%d pages of memory are too few for %d NBD connections; give %d, or fewer connections",
			frames, most, most*nbd.Window*8/pageSize)
	}
	return most, max(nbd.Window, min(nbd.DefaultLimits().Memory, budget/most)), nil
}

// LeastFrames returns the least number of frames for which CheckMemory finds no fault.
func (c *Config) LeastFrames() int {
	least := 1
	if c.Address != "" {
		least = ((2*(c.Reads+1)+segment)*c.Connections*4 + 2) / 3
	}
	if c.NBD != "" {
		least = max(least, c.NBDConnections*nbd.Window*8/pageSize)
	}
	for c.CheckMemory(least) != nil {
		least++
	}
	return least
}

// What a connection takes besides the pool's frames, in bytes: buffers for what arrives and is sent, and its state.
const (
	ofIWARP = 256 << 10
	ofNBD   = 128 << 10
	ofNVMe  = 64 << 10
)

// Memory returns an upper bound of what connections take besides the pool's frames, in bytes, where all have budget.
func (c *Config) Memory(budget int64) int64 {
	frames, n := int(budget/pageSize), int64(0)
	if c.Address != "" {
		n += int64(c.Connections+c.Handshakes) * ofIWARP
	}
	if most, _, err := c.blocks(frames); c.NBD != "" && err == nil {
		n += int64(most+c.Handshakes) * ofNBD
	}
	if len(c.NVMe) > 0 {
		_, connections, _ := c.queues(frames)
		n += int64(connections+c.Handshakes) * ofNVMe
	}
	return n
}

// CheckMemory validates c for a pool with this many frames. It returns the error that New would, without needing a
// pool.
func (c *Config) CheckMemory(frames int) error {
	if _, _, err := c.blocks(frames); err != nil {
		return err
	}
	_, err := c.window(frames)
	return err
}

// New validates a configuration. It does not listen yet.
func New(cfg Config) (*Server, error) {
	at, err := cfg.check()
	if err == nil && (cfg.Pool == nil || cfg.Files == nil) {
		err = errors.New("the server needs a pool and files")
	}
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if err := cfg.CheckMemory(cfg.Pool.Frames()); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	window, err := cfg.window(cfg.Pool.Frames())
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	cfg.Default = Name(cfg.Default)
	s := &Server{cfg: cfg, at: at, window: min(window, 1<<20), conns: map[*stream.Conn]bool{},
		early: halfopen.New[net.Conn](cfg.Handshakes), slots: make(chan struct{}, 2*cfg.Handshakes)}
	s.began = time.Now()
	s.meter, s.log = meter.New(mostSeries), cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	s.uses.all, s.seats.bySelf, s.seats.byName = map[string]*record{}, map[string]*seat{}, map[string]*seat{}
	var key [16]byte
	if _, err := rand.Read(key[:]); err != nil {
		return nil, err
	}
	if s.adapter, err = verbs.NewAdapter(key); err != nil {
		return nil, err
	}
	if cfg.Traces != "" {
		if s.traces, err = otlp.New(otlp.Config{URL: cfg.Traces, Version: cfg.Version,
			Instance: cfg.Pool.Shape().UUID.String(), Log: s.log}); err != nil {
			return nil, fmt.Errorf("server: %w", err)
		}
		if _, err := rand.Read(key[:]); err != nil {
			return nil, err
		}
		s.meter.Trace(cfg.TraceEvery, binary.LittleEndian.Uint64(key[:]), s.traces.Take)
	}
	if cfg.Recorder != nil {
		s.meter.Record(cfg.Recorder.Take)
	}
	s.proofs.Store(newProofs(Secrets{TLS: cfg.TLS, Token: cfg.Token}))
	_, ofNBD, err := cfg.blocks(cfg.Pool.Frames())
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	_, _, ofNVMe := cfg.queues(cfg.Pool.Frames())
	s.memory = map[string]int{"nbd": ofNBD, "nvme": ofNVMe}
	if s.gates, err = newGates(cfg.Limits, cfg.Depth); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if s.limits, err = newLimits(s.gates, cfg.Keeper, s.log); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	c := stream.DefaultConfig()
	c.Setup, c.Progress, c.Idle, c.Loops = cfg.Handshake, cfg.Progress, cfg.Idle, cfg.Loops
	c.Verbs.IRD, c.Verbs.ORD, c.Verbs.Window = cfg.Reads, 0, s.window
	c.Verbs.Sends, c.Verbs.Receives = 16, 8
	s.stream = c
	return s, nil
}

// Listen opens the sockets and starts serving. After an error no socket is open.
func (s *Server) Listen() (err error) {
	defer func() {
		if err != nil {
			for _, l := range []net.Listener{s.listener, s.nbdAt, s.metricsL} {
				if l != nil {
					err = errors.Join(err, l.Close())
				}
			}
			if s.blocks != nil {
				err = errors.Join(err, s.blocks.Drain(0))
			}
		}
	}()
	for i, to := range []*net.Listener{&s.listener, &s.nbdAt, &s.metricsL} {
		if s.at[i] != nil {
			l, err := listen(s.at[i])
			if err != nil {
				return &Fault{Setting: settings[i], Err: err}
			}
			*to = l
		}
	}
	if s.nbdAt != nil {
		c := nbdserver.DefaultConfig()
		c.Exports, c.TLS, c.Require, c.Handshake, c.Progress, c.Loops = s.nbdExports, s.secret(), s.cfg.nbdSecret(),
			s.cfg.Handshake, s.cfg.Progress, s.cfg.Loops
		c.Early, c.Unsent, c.Clock = s.cfg.Handshakes, s.cfg.unsent(), s.meter.Now
		if c.Most, c.Limits.Memory, err = s.cfg.blocks(s.cfg.Pool.Frames()); err != nil {
			return err
		}
		c.Limits.Queued = s.cfg.RateControl != ratecontrol.None
		c.Failed = func(a net.Addr, err error) {
			s.log.Warn("connection ended", "protocol", "nbd", "peer", a.String(), "error", explained(err))
		}
		if s.blocks, err = nbdserver.New(c); err != nil {
			return err
		}
		s.running.Add(1)
		go func() {
			defer s.running.Done()
			if err := s.blocks.Serve(s.nbdAt); err != nil {
				s.log.Error("no more connections are accepted", "protocol", "nbd", "error", err)
			}
		}()
	}
	if len(s.cfg.NVMe) > 0 {
		if s.spaces, err = s.listenNVMe(); err != nil {
			return err
		}
	}
	if s.metricsL != nil {
		s.metrics = &http.Server{Handler: s.handler(), ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second,
			IdleTimeout: 30 * time.Second, MaxHeaderBytes: 8 << 10,
			ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)}
		l := s.metricsL
		if s.farMetrics() {
			l = tls.NewListener(l, s.secret())
		}
		s.running.Add(1)
		go func() {
			defer s.running.Done()
			if err := s.metrics.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				s.log.Error("metrics are no longer served", "error", err)
			}
		}()
	}
	if s.listener != nil {
		s.running.Add(1)
		go s.accept()
	}
	return nil
}

// Addresses returns the addresses of iWARP, NBD and /metrics, empty where not served.
func (s *Server) Addresses() (iwarp, nbd, metrics string) {
	return text(s.listener), text(s.nbdAt), text(s.metricsL)
}

// text is the address of a listener, "" without one.
func text(l net.Listener) string {
	if l == nil {
		return ""
	}
	return written(l.Addr())
}

// Connections is the number of iWARP connections being served.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// accept accepts connections until the listener is closed.
func (s *Server) accept() {
	defer s.running.Done()
	isEnding := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.ending
	}
	log := s.log.With("protocol", "iwarp")
	failing := func(err error) { log.Warn("a connection could not be accepted", "error", err) }
	if err := accept.Loop(s.listener, s.take, isEnding, failing); err != nil {
		log.Error("no more connections are accepted", "error", err)
	}
}

// take serves a connection. If there are too many handshakes it closes another one.
func (s *Server) take(nc net.Conn) {
	s.slots <- struct{}{} // displaced handshakes end soon, since their connections are closed
	s.mu.Lock()
	if s.ending {
		s.mu.Unlock()
		<-s.slots
		_ = nc.Close() // the server is draining
		return
	}
	oldest, full, report := s.early.Enter(halfopen.Source(nc.RemoteAddr()), nc, time.Now())
	s.running.Add(1)
	s.mu.Unlock()
	go s.serve(nc)
	if full {
		_ = oldest.Close() // its goroutine notices
	}
	if report > 0 {
		s.log.Warn("connections were closed in their handshakes to admit others; this is the last", "protocol", "iwarp",
			"peer", oldest.RemoteAddr().String(), "closed", report, "most", s.cfg.Handshakes)
	}
}

// errMany is the error for clients beyond Config.Connections.
var errMany = errors.New("too many connections")

// serve handles one connection from start to end.
func (s *Server) serve(nc net.Conn) {
	defer s.running.Done()
	placed := false
	view := &exports{s: s, peer: peer(nc.RemoteAddr())}
	log := s.log.With("protocol", "iwarp", "peer", nc.RemoteAddr().String())
	c, server, err := s.begin(nc, view, &placed)
	<-s.slots
	defer func() {
		if placed {
			s.mu.Lock()
			s.places--
			s.mu.Unlock()
		}
	}()
	s.mu.Lock()
	known := s.early.Leave(nc)
	if err == nil && s.ending {
		err = errors.New("the server is shutting down")
	}
	if err == nil {
		s.conns[c] = true
	}
	s.mu.Unlock()
	if err != nil {
		if known { // otherwise it was displaced, and is counted and reported as that
			s.failed.Add(1)
			log.Warn("connection failed", "error", explained(err))
		}
		if c != nil {
			_ = c.Close() // never fails
		}
		return
	}
	s.accepted.Add(1)
	err = server.Serve(c)
	_ = c.Close() // never fails
	s.seats.leave(view.seat)
	s.mu.Lock()
	delete(s.conns, c)
	add(&s.past, c.Counters())
	s.mu.Unlock()
	if t := new(verbs.Terminated); errors.As(err, t) {
		log.Warn("connection ended", "error", err)
	}
}

// begin performs the handshakes.
func (s *Server) begin(nc net.Conn, view *exports, placed *bool) (*stream.Conn, *control.Server, error) {
	if n := s.cfg.unsent(); n > 0 { // what the kernel holds of reads goes before the answers to flushes
		driver.LimitUnsent(nc, n)
	}
	if x := s.proofs.Load().tls; x != nil {
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Handshake)
		defer cancel()
		secret := tls.Server(nc, x)
		if err := secret.HandshakeContext(ctx); err != nil {
			return nil, nil, errors.Join(err, nc.Close())
		}
		nc = secret
	}
	domain := s.adapter.NewDomain(s.cfg.Open)
	server := control.NewServer(view, view, domain, s.cfg.Open)
	if s.cfg.Requests != nil {
		server.Files = view
	}
	cfg := s.stream
	peer := nc.RemoteAddr().String()
	cfg.Verbs.Notice = func(err error) {
		s.log.Warn("connection closed", "protocol", "iwarp", "peer", peer, "error", err)
	}
	cfg.Prepare = func(c *stream.Conn) error {
		view.conn = c
		return server.Prepare(c)
	}
	cfg.Accept = func(r wire.StartupFields) ([]byte, error) {
		if err := s.admit(r); err != nil {
			return nil, err
		}
		// The client is authenticated only now, so unauthenticated clients never claim a place.
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

// Drain stops the server: it accepts no more connections, gives operations already started up to within to finish, and
// closes all connections. The caller flushes and closes the pool. Drain returns when none of the server's goroutines is
// left.
func (s *Server) Drain(within time.Duration) error {
	until := time.Now().Add(within)
	s.mu.Lock()
	s.ending = true
	var errs []error
	if s.listener != nil {
		errs = append(errs, s.listener.Close())
	}
	s.early.Each(func(nc net.Conn) { _ = nc.Close() }) // aborts its handshake
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
	var blocks, spaces error
	if s.blocks != nil {
		all.Go(func() { blocks = s.blocks.Drain(within) })
	}
	if s.spaces != nil {
		all.Go(func() { spaces = s.spaces.drain(within) })
	}
	all.Wait()
	s.closing.Wait()
	errs = append(errs, blocks, spaces)
	if s.metrics != nil {
		errs = append(errs, s.metrics.Close())
	}
	s.running.Wait()
	s.gates.close()
	if s.traces != nil {
		s.traces.Close(time.Until(until))
	}
	if n := s.adapter.Regions(); n != 0 {
		errs = append(errs, fmt.Errorf("server: %d regions are still registered", n))
	}
	return errors.Join(errs...)
}

// usualNBD bounds the number of NBD connections where Config leaves it open.
const usualNBD = 16

// explained adds to the error of a handshake what its text leaves out. GnuTLS 3.7.9 (qemu, libnbd and nbdkit of Debian
// 12) takes the key types of a TLS 1.3 CertificateRequest from its signature algorithms, counts rsa_pss_rsae among the
// RSA-PSS keys, and so finds RSA keys only in rsa_pkcs1, which RFC 8446 (section 4.2.3) keeps out of handshakes and
// crypto/tls does not list. It then sends no certificate.
func explained(err error) error {
	if err != nil && strings.Contains(err.Error(), noCertificate) {
		return fmt.Errorf("%w; qemu and libnbd with GnuTLS 3.7 send none over TLS 1.3 that has an RSA key: use one "+
			"with "+
			"an ECDSA or Ed25519 key", err)
	}
	return err
}

// noCertificate is part of the error of crypto/tls for a client without the required certificate.
const noCertificate = "client didn't provide a certificate"
