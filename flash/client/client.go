// Package client accesses the exports of flash/server with one-sided operations over iWARP.
//
// Dial connects, with TLS if configured; Client.Open opens an export, and the returned File has the operations: ReadAt,
// WriteAt, WriteDurable, Flush, CompareSwap and FetchAdd. All are safe for concurrent use and share the connection.
//
// WriteAt returns when the bytes have been handed to the network, which implies nothing about the server (RFC 5040,
// section 5.5, rules 9 and 14). WriteDurable asks for the data to be written to flash, and waits for an empty read that
// the server does not answer before that has happened; Flush waits for all earlier writes (docs/flash/protocol.md). The
// operations of a client are executed in the order in which they were started, except that a read may return the result
// of later writes; callers that need the order must wait.
//
// A lost connection is replaced by another one, on which the client opens its exports again and repeats the operations
// in progress, in their order, before it starts others. The server first ends the earlier connection, so nothing on its
// way there is executed afterwards. Not repeated are atomics that may have been executed, which return ErrUnknown, and
// what may have caused the loss: operations in progress when the server reports a fault. If the server was started
// again, writes that were not flushed may be lost; the next Flush then returns ErrLost. Config.Reconnect limits the
// time, and turns all this off. docs/adr/0031-reconnecting.md has the reasons.
//
// Clients that share a file, and take it over from each other, have names (Config.Named): Fence ends another client
// such that nothing it sent is executed any more.
package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"farflash/flash/client/resume"
	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
	"farflash/flash/verbs/stream"
)

// Config configures a client. DefaultConfig returns the defaults.
type Config struct {
	// TLS, if set, enables TLS, with version 1.3 as the minimum.
	TLS *tls.Config
	// Token is the secret that the server may require. It is sent over TLS only.
	Token     []byte
	Stream    stream.Config
	Reconnect Reconnect
	// Named makes the server give the client a name, by which others can fence it. The client then sends something
	// every second, returns at once when it has lost its connection, and ends with ErrFenced when it has been fenced or
	// the server knows it no more, as after a restart: its changes could fall on another client's by then.
	Named bool
}

// Reconnect configures what happens when a connection is lost. With a Limit of 0, which is the zero value, an error of
// the connection ends the Client.
type Reconnect struct {
	// Limit is how long an operation waits for a connection. It then returns the error of the last attempt, and the
	// Client ends.
	Limit time.Duration
	// First is the pause after the first failed attempt. It doubles with each one up to Cap; each is shortened by a
	// random part, which Seed determines. A Seed of 0 draws one.
	First, Cap time.Duration
	Seed       uint64
	// Attempt limits one attempt, that of Dial included.
	Attempt time.Duration
	// Silence is how long a connection on which an operation is in progress may be silent before it counts as lost. It
	// must exceed the time of a durable write on the slowest device. 0: for ever, or as long as TCP bears it.
	Silence time.Duration
	// Unanswered bounds the memory for copies of data that WriteAt has handed to the network and that the server may
	// not have, in bytes. Writes of more than a quarter of it wait for the server's answer instead.
	Unanswered int
}

// DefaultConfig returns a configuration for a server on the same machine, which reconnects for half a minute.
func DefaultConfig() Config {
	return Config{Stream: stream.DefaultConfig(), Reconnect: Reconnect{
		Limit: 30 * time.Second, First: 10 * time.Millisecond, Cap: time.Second, Attempt: 5 * time.Second,
		Silence: 15 * time.Second, Unanswered: 1 << 20}}
}

// Errors that callers may want to distinguish, in addition to fs.ErrNotExist and fs.ErrPermission.
var (
	// ErrUnknown: the connection was lost, and whether the operation was executed is not known. It is not executed
	// after a later operation of this client, so what a later read finds is final.
	ErrUnknown = errors.New("the operation's outcome is unknown, because the connection was lost")
	// ErrLost: writes since the last Flush may be lost.
	ErrLost = errors.New("writes that were not flushed may be lost")
	// ErrFenced: another client has fenced this one, or the server has given it up.
	ErrFenced = errors.New("the server has given this client up, and others may have taken over from it")
	// ErrAlive: the client was heard lately, and is not fenced.
	ErrAlive = errors.New("the client is alive")
	// ErrChanged: after a loss of the connection, the export's name belongs to another file, or the file is shorter.
	// The File cannot be used any more.
	ErrChanged = errors.New("is not the file that was opened")
)

// Client is a client of a server. It is safe for concurrent use.
type Client struct {
	address string
	cfg     Config
	secret  string // of all its connections; see control.Join
	began   time.Time
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc

	free  chan int // free slots
	slots []slot
	over  chan struct{} // closed when the client has ended
	want  chan struct{} // signals that somebody waits for a connection

	mu     sync.Mutex // guards the fields below; held while an operation is numbered and posted
	ledger *resume.Ledger[kept]
	link   *link // nil while there is none
	// on which operations are sent again, so their buffers are in use though there is no link; or nil
	sending *link
	up      chan struct{} // closed when there is a link, or the client has ended
	files   map[*export]struct{}
	number  uint32 // of the last connection
	name    string // public; empty unless Config.Named
	end     error  // why the client has ended

	requests *Files
}

// kept is the destination of a kept write.
type kept struct {
	*export
	flags verbs.Semantics
}

// slot holds one operation in progress.
type slot struct {
	done chan verbs.Completion
	// Set by the caller before the operation is posted, and cleared when it has ended.
	file    *export
	off     int64
	flags   verbs.Semantics
	works   [2]verbs.Work
	n       int
	since   time.Duration // when its connection was lost first; 0: never
	leaving error         // the caller wants to leave with this error as soon as its buffer is not in use
}

// Dial connects to a server at HOST:PORT or, without TLS, unix:PATH. ctx limits only this.
func Dial(ctx context.Context, address string, cfg Config) (*Client, error) {
	if cfg.Token != nil && cfg.TLS == nil {
		return nil, errors.New("client: a token needs TLS")
	}
	r := &cfg.Reconnect
	switch {
	case r.Limit < 0 || r.Silence < 0 || r.Unanswered < 0:
		return nil, errors.New("client: limits of reconnecting must not be negative")
	case r.Limit > 0 && (r.First <= 0 || r.First > r.Cap || r.Attempt <= 0):
		return nil, fmt.Errorf(
			"client: pauses between attempts from %v to %v, and %v for each; all must be positive, and "+
				"the first not the longer one", r.First, r.Cap, r.Attempt)
	}
	var random [control.SecretLength/2 + 8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, err
	}
	if r.Seed == 0 {
		r.Seed = binary.LittleEndian.Uint64(random[control.SecretLength/2:])
	}
	// An operation posts up to two work requests; a control request one, and so does a request for an answer.
	n := max(1, (cfg.Stream.Verbs.Sends-2)/2)
	c := &Client{address: address, cfg: cfg, secret: hex.EncodeToString(random[:control.SecretLength/2]),
		began: time.Now(), free: make(chan int, n), slots: make([]slot, n), over: make(chan struct{}),
		want: make(chan struct{}, 1), up: make(chan struct{}), files: map[*export]struct{}{},
		ledger: resume.NewLedger[kept](n, r.Unanswered)}
	c.requests = &Files{client: c, turn: make(chan struct{}, 1)}
	for i := range c.slots {
		c.slots[i].done = make(chan verbs.Completion, 1)
		c.free <- i
	}
	if r.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Attempt)
		defer cancel()
	}
	l, err := c.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.link = l
	c.ledger.Connected(l.number, l.conn.Counters().Posted)
	close(c.up)
	go c.run(l)
	if c.resumes(l) && r.Silence > 0 {
		go c.guard()
	}
	if cfg.Named {
		go c.beat()
	}
	return c, nil
}

// Name is the client's name, for Fence; empty unless Config.Named is set.
func (c *Client) Name() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.name
}

// Fence ends another client by its name, for ever: when it returns nil, nothing that the other has sent is executed any
// more. If patience is not 0 and the server may have heard it within that time, it returns ErrAlive instead; ask again
// then, because silence is only measured from the first question on. Of a name that the server does not know nothing is
// executed either.
func (c *Client) Fence(ctx context.Context, name string, patience time.Duration) error {
	ms := min(max((patience+time.Millisecond-1)/time.Millisecond, 0), math.MaxUint32)
	_, _, err := c.ask(ctx, nil, control.Request{Op: control.Fence, Name: name, STag: uint32(ms)})
	if errors.Is(err, control.Alive) {
		return ErrAlive
	}
	return err
}

// now is the time on the client's clock.
func (c *Client) now() time.Duration { return time.Since(c.began) }

// Open opens an export with the requested rights; File.Rights returns the granted ones.
func (c *Client) Open(name string, rights verbs.Rights) (*File, error) {
	for {
		r, l, err := c.ask(context.Background(), nil,
			control.Request{Op: control.Open, Name: name, Rights: rights})
		if err != nil {
			return nil, err
		}
		e := &export{name: name, want: rights, reply: r, instance: l.instance}
		c.mu.Lock()
		there := c.link == l
		if there {
			c.files[e] = struct{}{}
		}
		c.mu.Unlock()
		if there || !c.resumes(l) {
			return &File{c, e, context.Background()}, nil
		}
	}
}

// Stat returns the size of an export and the maximum rights on it.
func (c *Client) Stat(name string) (size uint64, rights verbs.Rights, err error) {
	r, _, err := c.ask(context.Background(), nil, control.Request{Op: control.Stat, Name: name})
	return r.Length, r.Rights, err
}

// Close ends the connection. Outstanding operations return an error. What WriteAt has written may not reach the server
// unless Flush or another operation that waits for it has returned.
func (c *Client) Close() error {
	c.cancel()
	c.mu.Lock()
	l := cmp.Or(c.link, c.sending)
	c.mu.Unlock()
	if l != nil {
		_ = l.conn.Close() // never fails
	}
	<-c.over
	return nil
}
