package server

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"

	"farflash/flash/driver"
	"farflash/flash/nvme"
)

// bufferSize is the size of the read buffer.
const bufferSize = 128 << 10

// conn is one connection.
type conn struct {
	*driver.Conn[*nvme.Task]
	server  *Server
	nc      net.Conn
	queue   *nvme.Queue   // guarded by the driver
	admin   atomic.Bool   // carries the admin queue of an association
	settled chan struct{} // closed when all tasks are finished
}

func newConn(s *Server, nc net.Conn, port uint16) *conn {
	cfg := &s.cfg
	c := &conn{server: s, nc: nc, settled: make(chan struct{})}
	c.queue = cfg.Target.NewQueue(port, c, func(t *nvme.Task) { c.Done(t) })
	c.Conn = driver.New(nc, c.queue, driver.Config[*nvme.Task]{
		Loops: cfg.Loops, Buffer: bufferSize, Progress: cfg.Progress, Hold: cfg.Hold, Unsent: cfg.Unsent,
		Handshake: cfg.Handshake,
		// After an end of data, Linux 6.12 has sent a command and then finds the connection closed: the process on
		// whose behalf it sends gets SIGPIPE. A reset is an error of the connection, which reconnects.
		Reset: true,
		Start: c.start, Enter: c.enter, Turn: c.queue.Turn, Close: c.close,
	})
	return c
}

// start starts tasks. A computation gets a goroutine, and so does one whose namespace must be opened first, because it
// would hold up the other connections of a loop, and perhaps the device that it waits for.
func (c *conn) start(tasks []*nvme.Task, lane uint8) {
	volumes := tasks[:0]
	for _, t := range tasks {
		switch {
		case t.Computes():
			go t.Compute()
		case t.Waits():
			go c.queue.Start([]*nvme.Task{t}, 0)
		default:
			volumes = append(volumes, t)
		}
	}
	c.queue.Start(volumes, lane)
}

// enter reports that the connection is part of an association, and takes its place.
func (c *conn) enter() (known bool, err error) {
	if !c.queue.Known() {
		return false, nil
	}
	c.admin.Store(c.queue.Administers())
	return true, c.server.door.Place(c)
}

// close ends the queue.
func (c *conn) close() (last []byte) {
	c.queue.Close()
	close(c.settled)
	return c.queue.Last()
}

// Gone implements nvme.Peer.
func (c *conn) Gone() bool { return disconnected(c) }

// String implements nvme.Peer.
func (c *conn) String() string { return c.nc.RemoteAddr().String() }

// Abort implements accept.Conn.
func (c *conn) Abort() { c.Cut(nil) }

// Serve implements accept.Conn.
func (c *conn) Serve() error {
	if _, ok := c.nc.(syscall.Conn); !ok {
		c.Cut(errors.New("nvme: the connection has no descriptor"))
	}
	err := c.Run()
	if errors.Is(err, nvme.ErrEnded) {
		return nil // the admin queue has its own reason
	}
	return err
}
