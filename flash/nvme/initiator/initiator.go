// Package initiator accesses the namespaces of an NVMe/TCP subsystem from Go, without the kernel's driver: those of
// flash/nvme/server, or of any other controller.
//
// Dial makes an Association, whose Namespaces have ReadAt, WriteAt, WriteDurable, Flush, Discard and WriteZeroes. All
// are safe for concurrent use. A call is one command, or several if the controller does not take as much data in one;
// commands are spread over the association's I/O queues, each a connection of its own, and as many are outstanding as
// there are calls, up to Config.Depth for each queue. The state machine of a queue is in flash/nvme/host.
//
// A status that the controller gives is an *Error. Everything else ends the association: a lost connection, an answer
// that violates the protocol, a keep-alive that is not answered. Unless Config.Reconnect turns it off, another one
// follows, on which the calls in progress repeat their commands: reading, writing, zeroing, discarding and flushing
// twice has the same effect as once, NVMe orders no two commands that are outstanding at the same time, and a
// controller of flash/nvme/server ends all that an association has begun before it lets its host in again. Not
// repeated is what an answer that violates the protocol interrupts. A change whose outcome is not known returns
// ErrUnknown. If the controller was powered on again since, writes that were not flushed may be lost; the next Flush of
// their Namespace then returns ErrLost. docs/adr/0031-reconnecting.md has the reasons.
//
// The package leaves out multipath, discovery, asynchronous events, TLS, and commands beside those of Namespace.
package initiator

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
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
	Reconnect Reconnect
}

// Reconnect configures what happens when a connection is lost. With a Limit of 0, which is the zero value, that ends
// the Association.
type Reconnect struct {
	// Limit is how long a call waits for a connection. It then returns the error of the last attempt, and the
	// Association ends.
	Limit time.Duration
	// First is the pause after the first failed attempt. It doubles with each one up to Cap; each is shortened by a
	// random part, which Seed determines. A Seed of 0 draws one.
	First, Cap time.Duration
	Seed       uint64
	// Attempt limits one attempt.
	Attempt time.Duration
}

// DefaultConfig returns a configuration for two queues of 127 commands and a keep-alive of ten seconds, which
// reconnects for half a minute.
func DefaultConfig() Config {
	return Config{Queues: 2, Depth: 127, KeepAlive: 10 * time.Second, Reconnect: Reconnect{
		Limit: 30 * time.Second, First: 10 * time.Millisecond, Cap: time.Second, Attempt: 5 * time.Second}}
}

// Errors of calls that a lost connection has interrupted.
var (
	// ErrClosed is returned by calls after Close, and by those that it interrupts.
	ErrClosed = errors.New("nvme: the association is closed")
	// ErrUnknown: the connection was lost, and whether the command was executed is not known. It is not executed after
	// the Association has connected again.
	ErrUnknown = errors.New("the command's outcome is unknown, because the connection was lost")
	// ErrLost: writes since the last Flush may be lost.
	ErrLost = errors.New("writes that were not flushed may be lost")
	// ErrChanged: after a loss of the connection, the identifier belongs to another namespace, or it is smaller. The
	// Namespace cannot be used any more.
	ErrChanged = errors.New("is not the namespace that it was")
)

// Association is a host's use of a controller. It is safe for concurrent use.
type Association struct {
	cfg     Config
	address string
	began   time.Time
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	want    chan struct{} // signals that somebody waits for a session
	over    chan struct{} // closed when there will be no other session

	now  atomic.Pointer[session] // nil while there is none
	mu   sync.Mutex              // guards the fields below, and changes of now
	last *session
	up   chan struct{} // closed when there is a session, or will be none
	end  error         // why there will be none
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
	r := &cfg.Reconnect
	if r.Limit < 0 || r.Limit > 0 && (r.First <= 0 || r.First > r.Cap || r.Attempt <= 0) {
		return nil, fmt.Errorf("nvme: reconnecting for %v, with pauses from %v to %v and %v for each attempt; use "+
			"positive times, the first pause not the longer one", r.Limit, r.First, r.Cap, r.Attempt)
	}
	if r.Seed == 0 {
		var b [8]byte
		if _, err := rand.Read(b[:]); err != nil {
			return nil, err
		}
		r.Seed = binary.LittleEndian.Uint64(b[:])
	}
	s, err := newSession(ctx, address, cfg)
	if err != nil {
		return nil, err
	}
	a := &Association{cfg: cfg, address: address, began: time.Now(), last: s, want: make(chan struct{}, 1),
		over: make(chan struct{}), up: make(chan struct{})}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	a.now.Store(s)
	close(a.up)
	go a.run(s)
	return a, nil
}

// NewQueue returns the state of an I/O queue, by its number from 1, for a caller that does the I/O itself: over a new
// connection to the controller, it submits connect, waits for it, and then has the queue for its own commands. The
// queue ends when its connection does, and at the latest with the association; another association has others.
func (a *Association) NewQueue(number int) (q *host.Queue, connect *host.Command, err error) {
	s := a.latest()
	if number < 1 || number > s.granted {
		return nil, nil, fmt.Errorf("nvme: I/O queue %d; the controller has granted 1 to %d", number, s.granted)
	}
	return s.seat(uint16(number))
}

// Close ends the association in the way that controllers expect, and returns when all is released. Calls that are in
// progress return ErrClosed; their commands may have been executed.
func (a *Association) Close() error {
	a.mu.Lock()
	a.cancel()
	s := a.now.Load()
	a.mu.Unlock()
	if s != nil {
		s.close()
	}
	<-a.over
	return nil
}

// latest returns the session, or the last one.
func (a *Association) latest() *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}

// Err returns why the association has ended, or nil.
func (a *Association) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.end == nil && a.cfg.Reconnect.Limit == 0 {
		return a.last.reason()
	}
	return a.end
}

// Controller describes the controller.
func (a *Association) Controller() wire.Controller { return a.latest().controller }

// Queues is the number of I/O queues that the controller granted.
func (a *Association) Queues() int { return len(a.latest().io) }
