// Package initiator accesses the namespaces of an NVMe/TCP subsystem from Go, without the kernel's driver: those of
// flash/nvme/server, or of any other controller.
//
// Dial makes an Association, whose Namespaces have ReadAt, WriteAt, WriteDurable, Flush, Discard and WriteZeroes. All
// are safe for concurrent use. A call is one command, or several if the controller does not take as much data in one;
// commands are spread over the association's I/O queues, each a connection of its own, and as many are outstanding as
// there are calls, up to Config.Depth for each queue. The state machine of a queue is in flash/nvme/host.
//
// A status that the controller gives is an *Error. Everything else ends the association: a lost connection, an answer
// that violates the protocol, a keep-alive that is not answered. All calls then return the reason at once.
//
// The package leaves out connecting again and repeating commands, multipath, discovery, asynchronous events, TLS, and
// commands beside those of Namespace.
package initiator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"farflash/flash/nvme/chap"
	"farflash/flash/nvme/host"
	"farflash/flash/nvme/wire"
)

// Config configures an association. DefaultConfig returns the defaults.
type Config struct {
	Subsystem string // NVMe qualified name
	// Host is the host's name, and HostID its identifier. A zero identifier is replaced by a random one, and an empty
	// name by one made of the identifier.
	Host   string
	HostID [16]byte
	// Keys are for DH-HMAC-CHAP: the host's proves who it is, if the controller asks for that. With a key of the
	// controller, it must prove that it has that.
	Keys chap.Keys
	// Queues is the number of I/O queues; the controller may grant fewer. With 0, Dial asks for one and leaves its
	// connection to the caller, see NewQueue.
	Queues int
	// Depth is the maximum number of commands outstanding on a queue, as far as the controller takes them.
	Depth int
	// Digests are checksums of headers and data. The controller must agree.
	Digests wire.Digests
	// KeepAlive is the time without a command after which the controller ends the association. Half as often, it is
	// shown that the host is alive, and the controller must answer within KeepAlive. 0: neither, so that a silent
	// controller is not noticed.
	KeepAlive time.Duration
}

// DefaultConfig returns a configuration for two queues of 127 commands and a keep-alive of ten seconds.
func DefaultConfig() Config { return Config{Queues: 2, Depth: 127, KeepAlive: 10 * time.Second} }

const (
	adminDepth = 31
	longest    = 1 << 20 // bytes of data in a command, if the controller permits
)

// ErrClosed is returned by calls after Close, and by those that it interrupts.
var ErrClosed = errors.New("nvme: the association is closed")

// Association is a host's use of a controller. It is safe for concurrent use.
type Association struct {
	cfg     Config
	address string
	name    string // of the subsystem and address, for errors
	next    atomic.Uint32
	io      []*conn // does not change after Dial

	id         uint16 // of the controller
	controller wire.Controller
	most       int // bytes of data in a command
	zeroes     int // blocks of a Write Zeroes; 0 is as many as for data
	depth      int
	granted    int // I/O queues

	mu    sync.Mutex
	conns []*conn // the admin queue first
	why   error
	over  chan struct{} // closed when why is set
	tasks sync.WaitGroup
}

// Dial connects to a controller at a TCP address. The context limits this, and nothing afterwards.
func Dial(ctx context.Context, address string, cfg Config) (*Association, error) {
	if cfg.HostID == [16]byte{} {
		if _, err := rand.Read(cfg.HostID[:]); err != nil {
			return nil, err
		}
		cfg.HostID[6], cfg.HostID[8] = cfg.HostID[6]&0x0f|0x40, cfg.HostID[8]&0x3f|0x80
	}
	if u := cfg.HostID; cfg.Host == "" {
		cfg.Host = fmt.Sprintf("nqn.2014-08.org.nvmexpress:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
	}
	switch {
	case !wire.ValidName(cfg.Subsystem):
		return nil, fmt.Errorf("nvme: %q is no name of a subsystem; use nqn.YEAR-MONTH.DOMAIN:NAME", cfg.Subsystem)
	case !wire.ValidName(cfg.Host):
		return nil, fmt.Errorf("nvme: %q is no name of a host; use nqn.YEAR-MONTH.DOMAIN:NAME", cfg.Host)
	case cfg.Queues < 0 || cfg.Queues > 1024:
		return nil, fmt.Errorf("nvme: %d I/O queues; use 0 to 1024", cfg.Queues)
	case cfg.Depth < 1 || cfg.Depth > host.MaxDepth:
		return nil, fmt.Errorf("nvme: %d commands outstanding on a queue; use 1 to %d", cfg.Depth, host.MaxDepth)
	case cfg.KeepAlive < 0 || cfg.KeepAlive > time.Hour || cfg.KeepAlive > 0 && cfg.KeepAlive < 100*time.Millisecond:
		return nil, fmt.Errorf("nvme: keep-alive of %v; use 0s, or 100ms to 1h", cfg.KeepAlive)
	}
	a := &Association{cfg: cfg, address: address, name: cfg.Subsystem + " at " + address, over: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() { a.end(context.Cause(ctx)) })
	err := a.begin(ctx)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		a.end(err)
		a.wait()
		return nil, fmt.Errorf("nvme: connecting to %s: %w", a.name, err)
	}
	if cfg.KeepAlive > 0 {
		a.tasks.Add(1)
		go a.keepAlive()
	}
	return a, nil
}

// begin makes the queues.
func (a *Association) begin(ctx context.Context) error {
	q, connect, err := a.seat(0)
	if err != nil {
		return err
	}
	admin, err := a.attach(ctx, "the admin queue", q)
	if err != nil {
		return err
	}
	result, err := a.run(admin, connect)
	if err != nil {
		return fmt.Errorf("connecting to the subsystem: %w", err)
	}
	a.id = uint16(result)
	if result&wire.ConnectProve != 0 {
		err = a.prove(admin)
	} else if !a.cfg.Keys.Controller.Zero() {
		err = errors.New("the controller does not prove who it is, because it has no keys")
	}
	if err != nil {
		return err
	}
	if err := a.enable(ctx, admin); err != nil {
		return err
	}
	granted, err := a.run(admin, &host.Command{Request: wire.Request{Opcode: wire.SetFeatures,
		Words: [6]uint32{uint32(wire.FeatureQueues), wire.Queues(max(1, a.cfg.Queues))}}})
	if err != nil {
		return fmt.Errorf("asking for I/O queues: %w", err)
	}
	a.granted = min(max(1, a.cfg.Queues), wire.DecodeQueues(uint32(granted)))
	for i := range min(a.cfg.Queues, a.granted) {
		q, connect, err := a.NewQueue(i + 1)
		if err != nil {
			return err
		}
		c, err := a.attach(ctx, fmt.Sprintf("I/O queue %d", i+1), q)
		if err == nil {
			_, err = a.run(c, connect)
		}
		if err != nil {
			return fmt.Errorf("I/O queue %d: %w", i+1, err)
		}
		a.io = append(a.io, c)
	}
	return nil
}

// attach makes the connection of a queue.
func (a *Association) attach(ctx context.Context, name string, q *host.Queue) (*conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", a.address)
	if err != nil {
		return nil, err
	}
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%v is no TCP address", nc.RemoteAddr()), nc.Close())
	}
	c, err := attach(tcp, name, q, a.end)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.conns = append(a.conns, c)
	why := a.why
	a.mu.Unlock()
	if why != nil {
		c.cut(why)
		return nil, why
	}
	return c, nil
}

// seat returns the state of a queue and its Connect, which is to be submitted first.
func (a *Association) seat(number uint16) (*host.Queue, *host.Command, error) {
	cfg := host.Config{Digests: a.cfg.Digests, Depth: adminDepth, InCapsule: wire.AdminCapsule}
	// A queue with an entry for every command needs no flow control. Without it, the controller may answer reads by the
	// flag of their last data.
	x := wire.Connection{Queue: number, KeepAlive: uint32(a.cfg.KeepAlive.Milliseconds()), Attribs: wire.NoFlowControl}
	i := wire.Identity{HostID: a.cfg.HostID, Controller: wire.AnyController, Subsystem: a.cfg.Subsystem,
		Host: a.cfg.Host}
	if number > 0 {
		cfg.Depth, cfg.InCapsule = a.depth, a.controller.InCapsule
		x.KeepAlive, i.Controller = 0, a.id
	}
	x.Size = uint16(cfg.Depth) // entries minus one: one stays empty
	q, err := host.New(cfg)
	return q, &host.Command{Request: wire.Request{Opcode: wire.Fabrics, Fabrics: wire.Connect, Words: x.Words()},
		Out: i.Append(nil)}, err
}

// NewQueue returns the state of an I/O queue, by its number from 1, for a caller that does the I/O itself: over a new
// connection to the controller, it submits connect, waits for it, and then has the queue for its own commands. The
// queue ends when its connection does, and at the latest with the association.
func (a *Association) NewQueue(number int) (q *host.Queue, connect *host.Command, err error) {
	if number < 1 || number > a.granted {
		return nil, nil, fmt.Errorf("nvme: I/O queue %d; the controller has granted 1 to %d", number, a.granted)
	}
	return a.seat(uint16(number))
}

// prove proves who the host is, and demands it of the controller if there is a key for it.
func (a *Association) prove(admin *conn) error {
	if a.cfg.Keys.Host.Zero() {
		return errors.New("the controller asks for a proof, and there is no key")
	}
	h := chap.NewHost(a.cfg.Keys, chap.Names{Host: a.cfg.Host, Subsystem: a.cfg.Subsystem}, 1, rand.Reader)
	for {
		if b := h.Send(); b != nil {
			if _, err := a.run(admin, &host.Command{Request: wire.Request{Opcode: wire.Fabrics, Fabrics: wire.AuthSend,
				Words: wire.ProofWords(len(b))}, Out: b}); err != nil && h.Err() == nil {
				return fmt.Errorf("proving who the host is: %w", err)
			}
		}
		if h.Err() != nil {
			return fmt.Errorf("proving who the host is: %w", h.Err())
		}
		if h.Done() {
			return nil
		}
		in := make([]byte, 4096)
		if _, err := a.run(admin, &host.Command{Request: wire.Request{Opcode: wire.Fabrics, Fabrics: wire.AuthReceive,
			Words: wire.ProofWords(len(in))}, In: in}); err != nil {
			return fmt.Errorf("proving who the host is: %w", err)
		}
		h.Receive(in)
	}
}

// CC: enabled, with entries of 64 and 16 bytes; and with a normal shutdown.
const (
	ccEnable   = 4<<20 | 6<<16 | wire.CCEnable
	ccShutdown = ccEnable | 1<<14
)

// enable makes the controller ready and learns its limits.
func (a *Association) enable(ctx context.Context, admin *conn) error {
	caps, err := a.property(admin, wire.PropertyGet, wire.Property{Wide: true, Offset: wire.PropCAP})
	if err != nil {
		return err
	}
	if _, err := a.property(admin, wire.PropertySet, wire.Property{Offset: wire.PropCC, Value: ccEnable}); err != nil {
		return err
	}
	for until := time.Now().Add(time.Duration(max(1, caps>>24&0xff)) * 500 * time.Millisecond); ; {
		v, err := a.property(admin, wire.PropertyGet, wire.Property{Offset: wire.PropCSTS})
		switch {
		case err != nil:
			return err
		case v&wire.CSTSFatal != 0:
			return errors.New("the controller reports a fatal error")
		case v&wire.CSTSReady != 0:
			return a.learn(admin, caps)
		case time.Now().After(until):
			return errors.New("the controller does not become ready")
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (a *Association) learn(admin *conn, caps uint64) error {
	b, err := a.identify(admin, wire.CNSController, 0)
	if err != nil {
		return err
	}
	a.controller = wire.DecodeController(b)
	a.depth = min(a.cfg.Depth, max(1, int(caps&0xffff)))
	a.most = longest
	if unit, n := 12+int(caps>>48&15), int(a.controller.Transfer); n > 0 && unit+n < 20 {
		a.most = 1 << (unit + n)
	}
	if b, err = a.identify(admin, wire.CNSSetController, 0); err == nil { // optional
		if a.zeroes = 1 << 30; wire.DecodeSetLimits(b).Zeroes > 0 {
			a.zeroes = 4096 << min(18, wire.DecodeSetLimits(b).Zeroes)
		}
	} else if a.reason() == nil {
		err = nil
	}
	return err
}

// end ends the association: all calls return the reason.
func (a *Association) end(why error) {
	for _, c := range a.mark(why) {
		c.cut(why)
	}
}

// mark sets the reason for the end, and returns the connections to cut; none if another reason was first.
func (a *Association) mark(why error) []*conn {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.why != nil {
		return nil
	}
	a.why = why
	close(a.over)
	return a.conns
}

// reason is why the association has ended, or nil.
func (a *Association) reason() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.why
}

// wait waits until all goroutines have ended.
func (a *Association) wait() {
	a.mu.Lock()
	conns := a.conns
	a.mu.Unlock()
	for _, c := range conns {
		<-c.ended
	}
	a.tasks.Wait()
}

// Close ends the association in the way that controllers expect, and returns when all is released. Calls that are in
// progress return ErrClosed; their commands may have been executed.
func (a *Association) Close() error {
	if conns := a.mark(ErrClosed); len(conns) > 0 {
		for _, c := range conns[1:] {
			c.cut(ErrClosed)
		}
		// A controller that does not answer soon loses the connection instead.
		t := time.AfterFunc(time.Second, func() { conns[0].cut(ErrClosed) })
		_, _ = a.property(conns[0], wire.PropertySet, wire.Property{Offset: wire.PropCC, Value: ccShutdown})
		t.Stop()
		conns[0].cut(ErrClosed)
	}
	a.wait()
	return nil
}

// Err returns why the association has ended, or nil.
func (a *Association) Err() error { return a.reason() }

// Controller describes the controller.
func (a *Association) Controller() wire.Controller { return a.controller }

// Queues is the number of I/O queues that the controller granted.
func (a *Association) Queues() int { return len(a.io) }

// keepAlive shows the controller that the host is alive, and ends the association if the controller is not.
func (a *Association) keepAlive() {
	defer a.tasks.Done()
	ticker := time.NewTicker(a.cfg.KeepAlive / 2)
	defer ticker.Stop()
	for {
		select {
		case <-a.over:
			return
		case <-ticker.C:
		}
		silence := time.AfterFunc(a.cfg.KeepAlive, func() {
			a.end(fmt.Errorf("nvme: %s has not answered a keep-alive within %v", a.name, a.cfg.KeepAlive))
		})
		_, err := a.run(a.conns[0], &host.Command{Request: wire.Request{Opcode: wire.KeepAlive}})
		silence.Stop()
		if err != nil {
			a.end(fmt.Errorf("nvme: keep-alive of %s: %w", a.name, err))
			return
		}
	}
}
