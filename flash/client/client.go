// Package client accesses the exports of flash/server with one-sided operations over iWARP.
//
// Dial connects, with TLS if configured; Client.Open opens an export, and the returned File has the operations: ReadAt,
// WriteAt, WriteDurable, CompareSwap and FetchAdd. All are safe for concurrent use and share the connection.
//
// WriteAt returns when the bytes have been handed to the network, which implies nothing about the server (RFC 5040,
// section 5.5, rules 9 and 14). WriteDurable asks for the data to be written to flash, and waits for an empty read that
// the server does not answer before that has happened (docs/flash/protocol.md). The operations of a connection are
// executed in the order in which they were started, except that a read may return the result of later writes; callers
// that need the order must wait.
//
// The package does not reconnect: an error ends the Client, and a caller that dials again has to find out which
// operations were executed.
package client

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"sync"

	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
	"farflash/flash/verbs/stream"
	"farflash/flash/wire"
)

// Config configures a connection. DefaultConfig returns the defaults.
type Config struct {
	// TLS, if set, enables TLS, with version 1.3 as the minimum.
	TLS *tls.Config
	// Token is the secret that the server may require. It is sent over TLS only.
	Token  []byte
	Stream stream.Config
}

// DefaultConfig returns a configuration for a server on the same machine.
func DefaultConfig() Config { return Config{Stream: stream.DefaultConfig()} }

// Client is a connection. It is safe for concurrent use.
type Client struct {
	conn    *stream.Conn
	free    chan int // free slots
	slots   []slot
	control sync.Mutex // held during a control request
	reply   [control.MaxReply]byte
	got     chan verbs.Completion
	next    uint32
	over    chan struct{} // closed after the last completion
}

// slot holds one outstanding operation.
type slot struct {
	mu   sync.Mutex
	id   uint64 // ID of the work whose completion finishes it
	done chan verbs.Completion
}

// message is the work ID of control messages.
const message = 1 << 63

// Dial connects to a server at HOST:PORT or, without TLS, unix:PATH.
func Dial(ctx context.Context, address string, cfg Config) (*Client, error) {
	if cfg.Token != nil && cfg.TLS == nil {
		return nil, errors.New("client: a token needs TLS")
	}
	network, at := "tcp", address
	if path, is := strings.CutPrefix(address, "unix:"); is {
		network, at = "unix", path
	}
	nc, err := (&net.Dialer{}).DialContext(ctx, network, at)
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
	// An operation posts up to two work requests, and a control request one.
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

// take dispatches completions.
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
				default: // error of a request that has already returned
				}
				continue
			}
			s := &c.slots[x.ID%uint64(len(c.slots))]
			s.mu.Lock()
			if s.id == x.ID {
				s.id += uint64(len(c.slots)) // for the next operation; a second completion of this one is dropped
				s.done <- x
			}
			s.mu.Unlock()
		}
	}
}

// lost returns the reason why the connection ended.
func (c *Client) lost() error {
	if err := c.conn.Err(); err != nil {
		return fmt.Errorf("client: %w", err)
	}
	return fmt.Errorf("client: %w", net.ErrClosed)
}

// do posts works and waits for the last one's completion; the others are quiet.
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

// ask sends a control request and waits for its reply.
func (c *Client) ask(r control.Request) (control.Reply, error) {
	if err := r.Fits(); err != nil {
		return control.Reply{}, fmt.Errorf("client: %w", err)
	}
	c.control.Lock()
	defer c.control.Unlock()
	reply, err := c.exchange(r)
	switch {
	case err != nil:
		return reply, err
	case reply.Status == control.NotFound:
		err := fmt.Errorf("client: %s: %w", r.Name, fs.ErrNotExist)
		// An older server does not know the request. Whatever becomes of it, the name was not found.
		hint, failed := c.exchange(control.Request{Op: control.Hint, Name: r.Name})
		if failed == nil && hint.Text != "" {
			err = fmt.Errorf("%w; %s", err, hint.Text)
		}
		return reply, err
	case reply.Status == control.Denied:
		return reply, fmt.Errorf("client: %s: %w", r.Name, fs.ErrPermission)
	case reply.Status != control.OK:
		return reply, fmt.Errorf("client: %s: %w", r.Name, reply.Status)
	}
	return reply, nil
}

// exchange is ask for the reply as it is. c.control is locked.
func (c *Client) exchange(r control.Request) (control.Reply, error) {
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
		return reply, fmt.Errorf("client: reply to request %d, want %d", reply.ID, r.ID)
	}
	return reply, nil
}

// Open opens an export with the requested rights; File.Rights returns the granted ones.
func (c *Client) Open(name string, rights verbs.Rights) (*File, error) {
	r, err := c.ask(control.Request{Op: control.Open, Name: name, Rights: rights})
	if err != nil {
		return nil, err
	}
	return &File{client: c, reply: r, name: name}, nil
}

// Stat returns the size of an export and the maximum rights on it.
func (c *Client) Stat(name string) (size uint64, rights verbs.Rights, err error) {
	r, err := c.ask(control.Request{Op: control.Stat, Name: name})
	return r.Length, r.Rights, err
}

// Close ends the connection. Outstanding operations return an error.
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

// Size is the length in bytes.
func (f *File) Size() uint64 { return f.reply.Length }

// Rights are the granted rights.
func (f *File) Rights() verbs.Rights { return f.reply.Rights }

// Region returns the export's STag, without semantics flags, and the address of its first byte, for callers that post
// work themselves.
func (f *File) Region() (stag uint32, address uint64) { return f.reply.STag, f.reply.Address }

// Close closes the export.
func (f *File) Close() error {
	_, err := f.client.ask(control.Request{Op: control.Close, STag: f.reply.STag})
	return err
}

// at returns the address of n bytes at an offset. It rejects invalid ranges, for which the server would end the
// connection.
func (f *File) at(off int64, n int, need verbs.Rights) (uint64, error) {
	switch {
	case off < 0 || uint64(off) > f.reply.Length || uint64(n) > f.reply.Length-uint64(off):
		return 0, fmt.Errorf("client: %d bytes at %d exceed the %d bytes of %s", n, off, f.reply.Length, f.name)
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

// WriteAt writes b. When it returns, b can be reused, but whether the server has the data is unknown. If the connection
// ends before a later durable operation completes, the server may execute the write after writes to the same range from
// another connection.
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

// WriteDurable writes b and returns when it is on flash.
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

// CompareSwap replaces the eight bytes at off, little-endian, with value if they equal old, and returns the previous
// value. With durable set, it returns when the new value is on flash.
func (f *File) CompareSwap(off int64, old, value uint64, durable bool) (uint64, error) {
	return f.atomic(off, wire.CmpSwap,
		wire.Operand{Data: value, Mask: ^uint64(0), Compare: old, CompareMask: ^uint64(0)}, durable)
}

// FetchAdd adds n to the eight bytes at off, little-endian, and returns the previous value. With durable set, it
// returns when the sum is on flash.
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
