// Package server serves the NVMe/TCP target of flash/nvme over connections. It has the listeners and limits, and gives
// the target the time.
//
// Server accepts connections on any number of listeners, each a port of the target, and package driver runs each
// connection until it ends. Data are sent directly from the volume's memory and received directly into the memory of
// their task.
//
// Without encryption, which package nvme leaves out, only local addresses are served unless Config.Far is set.
package server

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"farflash/flash/accept"
	"farflash/flash/driver"
	"farflash/flash/halfopen"
	"farflash/flash/nvme"
)

// Loops are threads that do the I/O of connections.
type Loops = driver.Loops

// Config configures a Server. DefaultConfig returns the defaults.
type Config struct {
	Target *nvme.Target
	// Loops, if set, do the I/O of connections and, ideally, of the volumes' device. The caller closes them after the
	// server.
	Loops *Loops
	// Far permits addresses that other machines can reach. Data can be read and changed on the way,
	// unless it goes through a tunnel.
	Far bool
	// Most is the maximum number of connections that are part of an association.
	Most int
	// Early is the maximum number of connections that are not part of an association yet. A further one displaces the
	// oldest of the host that has the most (package halfopen).
	Early int
	// Handshake bounds the time until a connection is part of an association. It is longer than the target's Grace, for
	// which a Connect may wait.
	Handshake time.Duration
	// Progress bounds the reception of a PDU, from its first byte to its last; and each write to the connection.
	Progress time.Duration
	// Hold is how long a host that does not read can hold memory of a volume.
	Hold time.Duration
	// Drain bounds how long Shutdown waits for outstanding commands.
	Drain time.Duration
	// Failed, if set, receives the reason why a connection ended, unless the host closed it between commands.
	Failed func(net.Addr, error)
}

// DefaultConfig returns a configuration for 1088 connections of associations, which is 64 with 16 I/O queues, and 64
// others, with timeouts of ten seconds.
func DefaultConfig() Config {
	return Config{Most: 1088, Early: 64, Handshake: 10 * time.Second, Progress: 10 * time.Second,
		Hold: 50 * time.Millisecond, Drain: 10 * time.Second}
}

// Server serves connections. It is safe for concurrent use.
type Server struct {
	cfg Config

	mu        sync.Mutex
	listeners map[net.Listener]bool
	conns     map[*conn]bool
	early     *halfopen.Table[*conn] // conns that are not part of an association
	places    int                    // conns that are
	closing   bool
	running   sync.WaitGroup
	stop      chan struct{} // ends the ticker
}

// tick is how often the target looks at the time.
const tick = 250 * time.Millisecond

// New returns a server. It runs until Drain or Shutdown.
func New(cfg Config) (*Server, error) {
	if cfg.Target == nil {
		return nil, errors.New("nvme: the server has no target")
	}
	s := &Server{cfg: cfg, listeners: map[net.Listener]bool{}, conns: map[*conn]bool{},
		early: halfopen.New[*conn](cfg.Early), stop: make(chan struct{})}
	go s.clock()
	return s, nil
}

// clock gives the target the time.
func (s *Server) clock() {
	start := time.Now()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.cfg.Target.Tick(int64(time.Since(start)))
		case <-s.stop:
			return
		}
	}
}

// Serve accepts connections on a port until the server is shut down, which closes l.
func (s *Server) Serve(l net.Listener, port uint16) error {
	if _, is := l.Addr().(*net.TCPAddr); !is || !s.cfg.Far && !accept.Local(l.Addr()) { // Gone needs TCP
		return errors.Join(fmt.Errorf("nvme: %v is reachable from other machines without encryption; listen on "+
			"127.0.0.1 "+
			"and give hosts a tunnel to it", l.Addr()), l.Close())
	}
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return l.Close()
	}
	s.listeners[l] = true
	s.mu.Unlock()
	err := accept.Loop(l, func(nc net.Conn) { s.take(nc, port) }, s.ending, func(err error) {
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

// take serves a connection.
func (s *Server) take(nc net.Conn, port uint16) {
	c := newConn(s, nc, port)
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		_ = nc.Close() // a host that connects while the server ends
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
		oldest.Cut(nil)
	}
	if report > 0 && s.cfg.Failed != nil {
		s.cfg.Failed(oldest.nc.RemoteAddr(),
			fmt.Errorf("%d connections closed before they had connected to a controller, "+
				"to admit others (at most %d are waited for); this is the last", report, s.cfg.Early))
	}
	go func() {
		defer s.running.Done()
		err := c.serve()
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

// errMany is the error of connections beyond Config.Most, and of those that were displaced while they connected.
var errMany = errors.New("nvme: too many connections")

// place counts a connection that has become part of an association.
func (s *Server) place(c *conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places >= s.cfg.Most || !s.early.Leave(c) {
		return errMany
	}
	c.placed, c.admin = true, c.queue.Administers()
	s.places++
	return nil
}

// administers reports that a connection carries the admin queue of an association.
func (s *Server) administers(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.admin
}

// Connections is the number of connections that are part of an association, and of those that are not yet.
func (s *Server) Connections() (known, early int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places, s.early.Len()
}

// Displaced is the number of connections that were closed to admit others.
func (s *Server) Displaced() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.early.Displaced()
}

// Shutdown is Drain within Config.Drain.
func (s *Server) Shutdown() error { return s.Drain(s.cfg.Drain) }

// Drain stops the server: it accepts no more connections and reads no more commands, gives outstanding commands up to
// within to be answered, and closes all connections. It returns when no goroutine is left. Hosts try to connect again
// from then on.
func (s *Server) Drain(within time.Duration) error {
	s.mu.Lock()
	first := !s.closing
	s.closing = true
	var errs []error
	for l := range s.listeners {
		errs = append(errs, l.Close())
	}
	all := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	// Without s.mu, which connections take while they hold their own lock. An association ends with its admin queue, so
	// these come last.
	for _, admin := range []bool{false, true} {
		for _, c := range all {
			if s.administers(c) == admin {
				c.Drain(within)
			}
		}
		for _, c := range all {
			if s.administers(c) == admin {
				<-c.settled
			}
		}
	}
	s.running.Wait()
	if first {
		close(s.stop)
	}
	return errors.Join(errs...)
}
