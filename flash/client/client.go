// Package client reads and writes what flash/server serves, with one-sided operations over iWARP.
//
// Dial connects, over TLS if there is a configuration for it; Client.Open opens an export, and File has its
// operations: ReadAt, WriteAt, WriteDurable, CompareSwap, FetchAdd. All may be called side by side; they share the
// connection.
//
// WriteAt returns when the bytes were handed to the network: nothing is known of the server then (RFC 5040, section
// 5.5, rules 9 and 14). WriteDurable asks for the data to be on flash and waits for an empty read behind them, which
// the server does not answer before they are (docs/flash/protocol.md). Operations of one connection are done in the
// order in which they were begun, but that a read may be answered after later writes; who needs the order waits.
//
// It leaves out reconnecting: an error ends the Client, and who dials again has to find out what was done.
package client

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"sync"

	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
	"farflash/flash/verbs/stream"
	"farflash/flash/wire"
)

// Config is how a connection is made. DefaultConfig has the defaults.
type Config struct {
	// TLS, if set, is used; it is of version 1.3 at least.
	TLS *tls.Config
	// Token is what the server may want. It is sent within TLS only.
	Token  []byte
	Stream stream.Config
}

// DefaultConfig is for a server on this machine.
func DefaultConfig() Config { return Config{Stream: stream.DefaultConfig()} }

// Client is a connection. Its methods may be called side by side.
type Client struct {
	conn    *stream.Conn
	free    chan int // slots
	slots   []slot
	control sync.Mutex // held during a request
	reply   [control.ReplyLength]byte
	got     chan verbs.Completion
	next    uint32
	over    chan struct{} // closed when no completion comes any more
}

// slot is an operation under way, or a place for one.
type slot struct {
	mu   sync.Mutex
	id   uint64 // of the work whose completion ends it
	done chan verbs.Completion
}

// message is the ID of control messages.
const message = 1 << 63

// Dial connects to a server.
func Dial(ctx context.Context, address string, cfg Config) (*Client, error) {
	if cfg.Token != nil && cfg.TLS == nil {
		return nil, errors.New("client: a token is sent within TLS only")
	}
	nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	if cfg.TLS != nil {
		t := cfg.TLS.Clone()
		t.MinVersion = tls.VersionTLS13
		if t.ServerName == "" && !t.InsecureSkipVerify {
			if t.ServerName, _, err = net.SplitHostPort(address); err != nil {
				return nil, errors.Join(fmt.Errorf("client: %w", err), nc.Close())
			}
		}
		secret := tls.Client(nc, t)
		if err := secret.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("client: %w", err), nc.Close())
		}
		nc = secret
	}
	var key [16]byte
	if _, err := rand.Read(key[:]); err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	adapter, err := verbs.NewAdapter(key)
	if err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	s := cfg.Stream
	s.Polled = false
	s.Verbs.Private = cfg.Token
	conn, err := stream.Client(nc, adapter.NewDomain(0), s)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	// An operation is two works at most, and a request of the control protocol is one.
	n := max(1, (s.Verbs.Sends-1)/2)
	c := &Client{conn: conn, free: make(chan int, n), slots: make([]slot, n), got: make(chan verbs.Completion, 1),
		over: make(chan struct{})}
	for i := range c.slots {
		c.slots[i].done = make(chan verbs.Completion, 1)
		c.slots[i].id = uint64(i)
		c.free <- i
	}
	go c.take()
	return c, nil
}

// take hands out completions.
func (c *Client) take() {
	defer close(c.over)
	var all [16]verbs.Completion
	for {
		n := c.conn.Wait(all[:])
		if n == 0 {
			return
		}
		for _, x := range all[:n] {
			if x.ID&message != 0 {
				select {
				case c.got <- x:
				default: // an error of a request that has ended
				}
				continue
			}
			s := &c.slots[x.ID%uint64(len(c.slots))]
			s.mu.Lock()
			if s.id == x.ID {
				s.id += uint64(len(c.slots)) // the next operation's; a second completion of this one finds nobody
				s.done <- x
			}
			s.mu.Unlock()
		}
	}
}

// lost is why the connection has ended.
func (c *Client) lost() error {
	if err := c.conn.Err(); err != nil {
		return fmt.Errorf("client: %w", err)
	}
	return fmt.Errorf("client: %w", net.ErrClosed)
}

// do does works, of which the last one's completion is the operation's; the others are quiet.
func (c *Client) do(works ...verbs.Work) (verbs.Completion, error) {
	var i int
	select {
	case i = <-c.free:
	case <-c.over:
		return verbs.Completion{}, c.lost()
	}
	s := &c.slots[i]
	s.mu.Lock()
	id := s.id
	s.mu.Unlock()
	for k := range works {
		works[k].ID, works[k].Quiet = id, k < len(works)-1
	}
	if err := c.conn.Post(works...); err != nil {
		c.free <- i
		if errors.Is(err, verbs.ErrClosed) {
			return verbs.Completion{}, c.lost()
		}
		return verbs.Completion{}, fmt.Errorf("client: %w", err)
	}
	var x verbs.Completion
	select {
	case x = <-s.done:
	case <-c.over:
		select {
		case x = <-s.done:
		default:
			return x, c.lost()
		}
	}
	c.free <- i
	if x.Err != nil {
		return x, fmt.Errorf("client: %w", x.Err)
	}
	return x, nil
}

// ask makes a request of the control protocol.
func (c *Client) ask(r control.Request) (control.Reply, error) {
	c.control.Lock()
	defer c.control.Unlock()
	c.next++
	r.ID = c.next
	if err := c.conn.PostReceive(verbs.Receive{ID: message, Local: c.reply[:]}); err != nil {
		return control.Reply{}, c.lost()
	}
	if err := c.conn.Post(verbs.Work{ID: message, Op: wire.Send, Local: r.Append(nil), Quiet: true}); err != nil {
		return control.Reply{}, c.lost()
	}
	var x verbs.Completion
	select {
	case x = <-c.got:
	case <-c.over:
		return control.Reply{}, c.lost()
	}
	if x.Err != nil {
		return control.Reply{}, fmt.Errorf("client: %w", x.Err)
	}
	reply, err := control.ParseReply(c.reply[:x.Length])
	switch {
	case err != nil:
		return reply, fmt.Errorf("client: %w", err)
	case reply.ID != r.ID || reply.Op != r.Op:
		return reply, fmt.Errorf("client: the reply is to request %d, not to %d", reply.ID, r.ID)
	case reply.Status == control.NotFound:
		return reply, fmt.Errorf("client: %s: %w", r.Name, fs.ErrNotExist)
	case reply.Status == control.Denied:
		return reply, fmt.Errorf("client: %s: %w", r.Name, fs.ErrPermission)
	case reply.Status != control.OK:
		return reply, fmt.Errorf("client: %s: %w", r.Name, reply.Status)
	}
	return reply, nil
}

// Open opens an export, for these rights; File.Rights says which were granted.
func (c *Client) Open(name string, rights verbs.Rights) (*File, error) {
	r, err := c.ask(control.Request{Op: control.Open, Name: name, Rights: rights})
	if err != nil {
		return nil, err
	}
	return &File{client: c, reply: r, name: name}, nil
}

// Stat is how long an export is, and what may be done with it at most.
func (c *Client) Stat(name string) (size uint64, rights verbs.Rights, err error) {
	r, err := c.ask(control.Request{Op: control.Stat, Name: name})
	return r.Length, r.Rights, err
}

// Close ends the connection. What is under way ends with an error.
func (c *Client) Close() error {
	err := c.conn.Close()
	<-c.over
	return err
}

// File is an open export.
type File struct {
	client *Client
	reply  control.Reply
	name   string
}

// Size is its length in bytes.
func (f *File) Size() uint64 { return f.reply.Length }

// Rights are what was granted.
func (f *File) Rights() verbs.Rights { return f.reply.Rights }

// Region is the export's STag, without semantics, and the address of its first byte: for who posts work himself.
func (f *File) Region() (stag uint32, address uint64) { return f.reply.STag, f.reply.Address }

// Close closes the export.
func (f *File) Close() error {
	_, err := f.client.ask(control.Request{Op: control.Close, STag: f.reply.STag})
	return err
}

// at is where n bytes at an offset are. What is not there is refused here: the server would end the connection.
func (f *File) at(off int64, n int, need verbs.Rights) (uint64, error) {
	switch {
	case off < 0 || uint64(off) > f.reply.Length || uint64(n) > f.reply.Length-uint64(off):
		return 0, fmt.Errorf("client: %d bytes at %d are not within the %d of %s", n, off, f.reply.Length, f.name)
	case f.reply.Rights&need != need:
		return 0, fmt.Errorf("client: %s: %w", f.name, fs.ErrPermission)
	}
	return f.reply.Address + uint64(off), nil
}

// ReadAt reads all of b.
func (f *File) ReadAt(b []byte, off int64) (int, error) {
	at, err := f.at(off, len(b), verbs.RemoteRead)
	if err != nil || len(b) == 0 {
		return 0, err
	}
	if _, err := f.client.do(verbs.Work{Op: wire.ReadReq, Local: b, STag: f.reply.STag, Offset: at}); err != nil {
		return 0, err
	}
	return len(b), nil
}

// WriteAt writes b. When it returns b may be used again; whether the server has it is not known. If the connection
// ends before anything durable has followed, the server may come to it later than to what another connection brings
// to the same place.
func (f *File) WriteAt(b []byte, off int64) (int, error) {
	at, err := f.at(off, len(b), verbs.RemoteWrite)
	if err != nil || len(b) == 0 {
		return 0, err
	}
	if _, err := f.client.do(verbs.Work{Op: wire.Write, Local: b, STag: f.reply.STag | uint32(verbs.Async),
		Offset: at}); err != nil {
		return 0, err
	}
	return len(b), nil
}

// WriteDurable writes b, and returns when it is on flash.
func (f *File) WriteDurable(b []byte, off int64) (int, error) {
	at, err := f.at(off, len(b), verbs.RemoteWrite)
	if err != nil || len(b) == 0 {
		return 0, err
	}
	if _, err := f.client.do(verbs.Work{Op: wire.Write, Local: b, STag: f.reply.STag | uint32(verbs.Sync),
		Offset: at}, verbs.Work{Op: wire.ReadReq}); err != nil {
		return 0, err
	}
	return len(b), nil
}

// CompareSwap replaces the eight bytes at off, little-endian, if they are old, and returns what they were. With
// durable it returns when the new value is on flash.
func (f *File) CompareSwap(off int64, old, value uint64, durable bool) (uint64, error) {
	return f.atomic(off, wire.CmpSwap,
		wire.Operand{Data: value, Mask: ^uint64(0), Compare: old, CompareMask: ^uint64(0)}, durable)
}

// FetchAdd adds to the eight bytes at off, little-endian, and returns what they were. With durable it returns when
// the sum is on flash.
func (f *File) FetchAdd(off int64, n uint64, durable bool) (uint64, error) {
	return f.atomic(off, wire.FetchAdd, wire.Operand{Data: n}, durable)
}

func (f *File) atomic(off int64, op wire.AtomicOp, o wire.Operand, durable bool) (uint64, error) {
	at, err := f.at(off, 8, verbs.RemoteAtomic)
	if err != nil {
		return 0, err
	}
	stag := f.reply.STag | uint32(verbs.Async)
	if durable {
		stag = f.reply.STag | uint32(verbs.Sync)
	}
	x, err := f.client.do(verbs.Work{Op: wire.AtomicReq, Atomic: op, Operand: o, STag: stag, Offset: at})
	return x.Original, err
}
