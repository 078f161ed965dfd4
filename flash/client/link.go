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
	"sync/atomic"

	"farflash/flash/client/resume"
	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
	"farflash/flash/verbs/stream"
	"farflash/flash/wire"
)

// IDs of work other than that of slots.
const (
	idMessage = 1<<63 + iota // a control message
	idAnswer                 // an empty read, which is answered when everything before it has been executed
	idAgain                  // a kept write that is sent again
)

// link is one connection.
type link struct {
	conn     *stream.Conn
	number   uint32
	instance string // of the server; empty: it knows no Join

	control sync.Mutex // held during a control request
	reply   [control.MaxFileReply]byte
	got     chan verbs.Completion
	next    uint32
	silent  atomic.Bool   // it was closed because the server does not answer
	over    chan struct{} // closed when it has ended and its last completion has been handled
	gone    chan struct{} // closed when it is no longer Client.link

	// Of the goroutine that handles completions.
	answered bool // the server has answered something
	again    bool // the last kept write that was sent again has been handed to the network

	// Guarded by Client.mu. asking is the number of the operation up to which an empty read in progress confirms all, 0
	// if there is none, and last the same for the control request in progress.
	asking, last uint64
}

// connect makes a connection, which ends the earlier ones at the server.
func (c *Client) connect(ctx context.Context) (*link, error) {
	address, cfg := c.address, c.cfg
	network, at := "tcp", address
	if path, is := strings.CutPrefix(address, "unix:"); is {
		network, at = "unix", path
	}
	nc, err := (&net.Dialer{}).DialContext(ctx, network, at)
	if err != nil {
		return nil, err
	}
	if cfg.TLS != nil {
		t := cfg.TLS.Clone()
		t.MinVersion = tls.VersionTLS13
		if t.ServerName == "" && !t.InsecureSkipVerify {
			if t.ServerName, _, err = net.SplitHostPort(address); err != nil {
				return nil, errors.Join(err, nc.Close())
			}
		}
		secret := tls.Client(nc, t)
		if err := secret.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, nc.Close())
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
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	conn, err := stream.Client(nc, adapter.NewDomain(0), s)
	if !stop() && err != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	l := &link{conn: conn, got: make(chan verbs.Completion, 1), over: make(chan struct{}), gone: make(chan struct{})}
	if cfg.Reconnect.Limit == 0 && !cfg.Named {
		return l, nil
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := c.join(l); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, errors.Join(err, conn.Close())
	}
	return l, nil
}

// join joins the client's connections and opens its exports again.
func (c *Client) join(l *link) error {
	ask := control.NewClient(l.conn)
	c.mu.Lock()
	c.number++
	l.number = c.number
	c.mu.Unlock()
	var err error
	l.instance, err = ask.Join(c.secret, l.number)
	switch {
	case errors.Is(err, control.Malformed) && l.number == 1 && !c.cfg.Named:
		l.instance = "" // a server without Join; the first loss of its connection is the end
		return nil
	case errors.Is(err, control.Malformed) && c.cfg.Named:
		return errOld
	case errors.Is(err, control.Fenced):
		return ErrFenced
	case err != nil:
		return err
	}
	if c.cfg.Named {
		if err := c.learn(ask); err != nil {
			return err
		}
	}
	c.mu.Lock()
	all := make([]*export, 0, len(c.files))
	for e := range c.files {
		all = append(all, e)
	}
	c.mu.Unlock()
	for _, e := range all {
		var r control.Reply
		if e.at == (control.Handle{}) {
			r, err = ask.Open(e.name, e.want)
		} else {
			r, err = e.reopen(ask)
		}
		var s control.Status
		switch isStatus := errors.As(err, &s); {
		case err == nil:
			err = e.differs(r, l.instance)
		case isStatus && (s == control.NotFound || s == control.Malformed):
			err = fmt.Errorf("%s: %w", e.name, fs.ErrNotExist)
		case isStatus && s == control.Denied:
			err = fmt.Errorf("%s: %w", e.name, fs.ErrPermission)
		case isStatus && s == control.Draining:
			err = fmt.Errorf("%s: %w", e.name, s) // the client's other exports go on
		default:
			return err // another attempt may succeed
		}
		c.mu.Lock()
		switch {
		case err != nil:
			e.err = fmt.Errorf("client: opened again after the connection was lost: %w", err)
			delete(c.files, e)
		default:
			e.lost = e.lost || e.dirty > 0 && e.instance != l.instance
			e.reply, e.instance = r, l.instance
		}
		c.mu.Unlock()
	}
	return nil
}

// errOld is the error of a named client at a server that knows no names.
var errOld = errors.New("the server is too old to name its clients")

// learn asks for the client's name, which is the same for all its connections unless the server has given it up, and
// for what was executed of the connection before.
func (c *Client) learn(ask *control.Client) error {
	name, past, err := ask.Whoami()
	if errors.Is(err, control.Malformed) {
		return errOld
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.name != "" && c.name != name {
		return ErrFenced
	}
	c.name = name
	c.ledger.Executed(past.Number, past.Messages)
	for i := range c.slots {
		if c.ledger.Fate(i) == resume.Done {
			c.ledger.End(i)
			c.slots[i].done <- verbs.Completion{}
		}
	}
	return nil
}

// why returns the reason why the connection ended.
func (l *link) why() error {
	if l.silent.Load() {
		return errSilent
	}
	if err := l.conn.Err(); err != nil {
		return err
	}
	return net.ErrClosed
}

// take handles completions until the connection has ended.
func (c *Client) take(l *link) {
	var all [16]verbs.Completion
	for {
		n := l.conn.Wait(all[:])
		if n == 0 {
			break
		}
		for _, x := range all[:n] {
			c.dispatch(l, x)
		}
	}
	close(l.over)
}

// dispatch handles one completion. It leaves errors, which report the end of the connection, to lost.
func (c *Client) dispatch(l *link, x verbs.Completion) {
	if x.Err != nil {
		return
	}
	switch x.ID {
	case idMessage:
		l.answered = true
		c.mu.Lock()
		c.ledger.Confirm(l.last)
		c.mu.Unlock()
		select {
		case l.got <- x:
		default: // its caller has left
		}
	case idAnswer:
		l.answered = true
		c.mu.Lock()
		c.ledger.Confirm(l.asking)
		l.asking = 0
		c.mu.Unlock()
	case idAgain:
		l.again = true
	default:
		i := int(x.ID)
		if x.Op == wire.ReadReq || x.Op == wire.AtomicReq {
			l.answered = true
			c.ledger.Answered(i)
		} else {
			c.ledger.End(i)
		}
		c.slots[i].done <- x
	}
}

// current waits for a link.
func (c *Client) current(ctx context.Context) (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.link == nil {
		if err := c.missing(ctx); err != nil {
			return nil, err
		}
	}
	return c.link, nil
}

// missing waits until there is a link again, or returns the reason why there is none. c.mu is locked.
func (c *Client) missing(ctx context.Context) error {
	if c.end != nil {
		return c.end
	}
	up := c.up
	signal(c.want)
	c.mu.Unlock()
	defer c.mu.Lock()
	select {
	case <-up:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("client: there is no connection: %w", context.Cause(ctx))
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// ask sends a control request, concerning an export if e is not nil, and waits for its reply. It returns the link on
// which it was answered.
func (c *Client) ask(ctx context.Context, e *export, r control.Request) (reply control.Reply, l *link, err error) {
	if err := r.Fits(); err != nil {
		return reply, nil, fmt.Errorf("client: %w", err)
	}
	for {
		if l, err = c.current(ctx); err != nil {
			return reply, l, err
		}
		reply, err = c.exchange(l, e, r)
		if !errors.Is(err, errLink) {
			break
		}
		<-l.gone
	}
	switch {
	case err != nil:
		return reply, l, err
	case reply.Status == control.NotFound:
		err := fmt.Errorf("client: %s: %w", r.Name, fs.ErrNotExist)
		// An older server does not know the request. Whatever becomes of it, the name was not found.
		hint, failed := c.exchange(l, nil, control.Request{Op: control.Hint, Name: r.Name})
		if failed == nil && hint.Text != "" {
			err = fmt.Errorf("%w; %s", err, hint.Text)
		}
		return reply, l, err
	case reply.Status == control.Denied:
		return reply, l, fmt.Errorf("client: %s: %w", r.Name, fs.ErrPermission)
	case reply.Status != control.OK:
		return reply, l, fmt.Errorf("client: %s: %w", r.Name, reply.Status)
	}
	return reply, l, nil
}

// errLink is the error of exchange when the connection has ended.
var errLink = errors.New("the connection has ended")

// exchange is ask on one link, for the reply as it is.
func (c *Client) exchange(l *link, e *export, r control.Request) (reply control.Reply, err error) {
	err = c.message(l, e, func(id, stag uint32) []byte {
		r.ID = id
		if e != nil {
			r.STag = stag
		}
		return r.Append(nil)
	}, func(b []byte) error {
		if reply, err = control.ParseReply(b); err != nil {
			return err
		}
		if reply.ID != r.ID || reply.Op != r.Op {
			return fmt.Errorf("reply to request %d, want %d", reply.ID, r.ID)
		}
		return nil
	})
	return reply, err
}

// message sends a control message, encoded for a number and the STag of an export if there is one, and calls take with
// the answer's bytes.
func (c *Client) message(l *link, e *export, encode func(id, stag uint32) []byte, take func([]byte) error) error {
	l.control.Lock()
	defer l.control.Unlock()
	l.next++
	if err := c.request(l, e, encode); err != nil {
		return err
	}
	var x verbs.Completion
	select {
	case x = <-l.got:
	case <-l.over:
		select {
		case x = <-l.got:
		default:
			return errLink
		}
	}
	if err := take(l.reply[:x.Length]); err != nil {
		return fmt.Errorf("client: %w", err)
	}
	return nil
}

// request sends a control message.
func (c *Client) request(l *link, e *export, encode func(id, stag uint32) []byte) error {
	stag := uint32(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.link != l:
		return errLink
	case e != nil && e.err != nil:
		return e.err
	case e != nil:
		stag = e.reply.STag
	}
	l.last = c.ledger.Last()
	c.ledger.Posted(1)
	if l.conn.PostReceive(verbs.Receive{ID: idMessage, Local: l.reply[:]}) != nil ||
		l.conn.Post(verbs.Work{ID: idMessage, Op: wire.Send, Local: encode(l.next, stag), Quiet: true}) != nil {
		return errLink
	}
	return nil
}
