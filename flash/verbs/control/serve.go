package control

import (
	"errors"
	"fmt"

	"farflash/flash/verbs"
	"farflash/flash/verbs/stream"
	"farflash/flash/wire"
)

// depth is how many requests of a client may be under way: so many receives are posted.
const depth = 4

// Server is the server's side of one connection, with what it receives into.
type Server struct {
	exports  Exports
	domain   *verbs.Domain
	most     int
	session  *Session
	requests []byte
	replies  []byte
}

// NewServer returns a server for one connection of the domain, which may have so many
// exports open.
func NewServer(e Exports, d *verbs.Domain, most int) *Server {
	return &Server{exports: e, domain: d, most: most, requests: make([]byte, depth*MaxRequest),
		replies: make([]byte, depth*ReplyLength)}
}

func (s *Server) request(id uint64) []byte { return s.requests[id*MaxRequest:][:MaxRequest:MaxRequest] }

// Prepare posts the receives. It is for stream.Config: a client may ask at once.
func (s *Server) Prepare(c *stream.Conn) error {
	s.session = NewSession(s.exports, s.domain, c.QueuePair(), s.most)
	for id := range uint64(depth) {
		if err := c.PostReceive(verbs.Receive{ID: id, Local: s.request(id)}); err != nil {
			return err
		}
	}
	return nil
}

// Serve answers requests on the connection that was prepared until it ends, and returns
// why it did. What was open is closed then. The connection is the caller's to close.
func (s *Server) Serve(c *stream.Conn) error {
	defer s.session.End()
	var got [depth]verbs.Completion
	for {
		n := c.Wait(got[:])
		if n == 0 {
			return c.Err()
		}
		for _, x := range got[:n] {
			if x.Err != nil || !x.Receive {
				continue // what was outstanding at the end
			}
			in := s.request(x.ID)
			reply, err := s.session.Handle(in[:x.Length], s.replies[x.ID*ReplyLength:][:0:ReplyLength])
			if err != nil {
				return err
			}
			if err := c.PostReceive(verbs.Receive{ID: x.ID, Local: in}); err != nil {
				return end(c, err)
			}
			if err := c.Post(verbs.Work{Op: wire.Send, Local: reply, Quiet: true}); err != nil {
				return end(c, err)
			}
		}
	}
}

// end is why a connection has ended, if that is why a call failed.
func end(c *stream.Conn, err error) error {
	if errors.Is(err, verbs.ErrClosed) && c.Err() != nil {
		return c.Err()
	}
	return err
}

// Client asks. No other work may be outstanding on its connection during a call.
type Client struct {
	conn *stream.Conn
	next uint32
	in   [ReplyLength]byte
	out  []byte
}

// NewClient returns the client's side of a connection, whose queues have room for a
// request and its reply.
func NewClient(c *stream.Conn) *Client {
	return &Client{conn: c, out: make([]byte, 0, MaxRequest)}
}

// Open opens an export with these rights, and returns how it is reached.
func (c *Client) Open(name string, rights verbs.Rights) (Reply, error) {
	return c.ask(Request{Op: Open, Name: name, Rights: rights})
}

// Stat returns how an export is.
func (c *Client) Stat(name string) (Reply, error) { return c.ask(Request{Op: Stat, Name: name}) }

// Close closes what Open has opened.
func (c *Client) Close(stag uint32) error {
	_, err := c.ask(Request{Op: Close, STag: stag})
	return err
}

func (c *Client) ask(r Request) (Reply, error) {
	if len(r.Name) > MaxName {
		return Reply{}, fmt.Errorf("a name of %d bytes is longer than %d", len(r.Name), MaxName)
	}
	c.next++
	r.ID = c.next
	c.out = r.Append(c.out[:0])
	if err := c.conn.PostReceive(verbs.Receive{Local: c.in[:]}); err != nil {
		return Reply{}, end(c.conn, err)
	}
	if err := c.conn.Post(verbs.Work{Op: wire.Send, Local: c.out, Quiet: true}); err != nil {
		return Reply{}, end(c.conn, err)
	}
	var x [1]verbs.Completion
	switch {
	case c.conn.Wait(x[:]) == 0:
		return Reply{}, c.conn.Err()
	case x[0].Err != nil:
		return Reply{}, x[0].Err
	case !x[0].Receive:
		return Reply{}, errors.New("other work is outstanding")
	}
	reply, err := ParseReply(c.in[:x[0].Length])
	switch {
	case err != nil:
		return Reply{}, err
	case reply.ID != r.ID || reply.Op != r.Op:
		return Reply{}, fmt.Errorf("the reply is to request %d, not to %d", reply.ID, r.ID)
	case reply.Status != OK:
		return reply, reply.Status
	}
	return reply, nil
}
