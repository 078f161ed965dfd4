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
	"net"
	"sync"
	"time"

	"farflash/flash/accept"
	"farflash/flash/driver"
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
	// Unsent, if not zero, limits what the kernel holds of a connection's output and has not sent, in bytes (Linux).
	Unsent int
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
	cfg  Config
	door *accept.Door[*conn]
	stop chan struct{} // ends the ticker
	once sync.Once
}

// tick is how often the target looks at the time.
const tick = 250 * time.Millisecond

// New returns a server. It runs until Drain or Shutdown.
func New(cfg Config) (*Server, error) {
	if cfg.Target == nil {
		return nil, errors.New("nvme: the server has no target")
	}
	s := &Server{cfg: cfg, stop: make(chan struct{}),
		door: accept.NewDoor[*conn](accept.Limits{Most: cfg.Most, Early: cfg.Early, Failed: cfg.Failed})}
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
	return s.door.Serve(l, func(nc net.Conn) *conn { return newConn(s, nc, port) })
}

// Connections is the number of connections that are part of an association, and of those that are not yet.
func (s *Server) Connections() (known, early int) {
	known, early, _ = s.door.Count()
	return known, early
}

// Displaced is the number of connections that were closed to admit others.
func (s *Server) Displaced() int64 {
	_, _, displaced := s.door.Count()
	return displaced
}

// Shutdown is Drain within Config.Drain.
func (s *Server) Shutdown() error { return s.Drain(s.cfg.Drain) }

// Drain stops the server: it accepts no more connections and reads no more commands, gives outstanding commands up to
// within to be answered, and closes all connections. It returns when no goroutine is left. Hosts try to connect again
// from then on.
func (s *Server) Drain(within time.Duration) error {
	all, err := s.door.Close()
	// An association ends with its admin queue, so these come last.
	for _, admin := range []bool{false, true} {
		for _, c := range all {
			if c.admin.Load() == admin {
				c.Drain(within)
			}
		}
		for _, c := range all {
			if c.admin.Load() == admin {
				<-c.settled
			}
		}
	}
	s.door.Wait()
	s.once.Do(func() { close(s.stop) })
	return err
}
