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

const (
	adminDepth = 31
	longest    = 1 << 20 // bytes of data in a command, if the controller permits
)

// session is an association, from connecting to the loss of a connection or the end. It is safe for concurrent use.
type session struct {
	cfg     Config
	address string
	name    string // of the subsystem and address, for errors
	next    atomic.Uint32
	io      []*conn // does not change after begin

	id         uint16 // of the controller
	controller wire.Controller
	most       int // bytes of data in a command
	zeroes     int // blocks of a Write Zeroes; 0 is as many as for data
	depth      int
	granted    int // I/O queues
	cycles     uint64
	counts     bool        // cycles is known
	answered   atomic.Bool // a command after those of begin

	mu    sync.Mutex
	conns []*conn // the admin queue first
	why   error
	over  chan struct{} // closed when why is set
	tasks sync.WaitGroup
}

// newSession connects. The context limits this, and nothing afterwards.
func newSession(ctx context.Context, address string, cfg Config) (*session, error) {
	a := &session{cfg: cfg, address: address, name: cfg.Subsystem + " at " + address, over: make(chan struct{})}
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
func (a *session) begin(ctx context.Context) error {
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
		q, connect, err := a.seat(uint16(i + 1))
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
	if a.cfg.Reconnect.Limit > 0 {
		err = a.count(admin)
	}
	return err
}

// count learns how often the controller was powered on. One that was since may have lost writes.
func (a *session) count(admin *conn) error {
	b := make([]byte, wire.HealthSize)
	_, err := a.run(admin, &host.Command{Request: wire.Request{Opcode: wire.GetLogPage, NSID: 0xffffffff,
		Words: wire.LogRequest{Log: wire.LogHealth, Length: wire.HealthSize, Retain: true}.Words()}, In: b})
	var s wire.Status
	if errors.As(err, &s) {
		return nil // it has no such log
	}
	a.cycles, a.counts = wire.DecodeHealth(b).PowerCycles, err == nil
	return err
}

// attach makes the connection of a queue.
func (a *session) attach(ctx context.Context, name string, q *host.Queue) (*conn, error) {
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
func (a *session) seat(number uint16) (*host.Queue, *host.Command, error) {
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

// prove proves who the host is, and demands it of the controller if there is a key for it.
func (a *session) prove(admin *conn) error {
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
func (a *session) enable(ctx context.Context, admin *conn) error {
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

func (a *session) learn(admin *conn, caps uint64) error {
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
func (a *session) end(why error) {
	for _, c := range a.mark(why) {
		c.cut(why)
	}
}

// mark sets the reason for the end, and returns the connections to cut; none if another reason was first.
func (a *session) mark(why error) []*conn {
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
func (a *session) reason() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.why
}

// wait waits until all goroutines have ended.
func (a *session) wait() {
	a.mu.Lock()
	conns := a.conns
	a.mu.Unlock()
	for _, c := range conns {
		<-c.ended
	}
	a.tasks.Wait()
}

// close ends the association in the way that controllers expect, and returns when all is released.
func (a *session) close() {
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
}

// keepAlive shows the controller that the host is alive, and ends the association if the controller is not.
func (a *session) keepAlive() {
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
		a.answered.Store(true)
	}
}
