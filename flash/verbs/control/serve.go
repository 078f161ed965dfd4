package control

import (
	"errors"
	"fmt"

	"farflash/flash/verbs"
	"farflash/flash/verbs/stream"
	"farflash/flash/wire"
)

// depth is the number of requests that a client can have outstanding, and of receives posted for them.
const depth = 4

// Server is the server's side of one connection, with its buffers.
type Server struct {
	Files    Files // nil: there are no file requests; set before Prepare
	exports  Exports
	clients  Clients
	domain   *verbs.Domain
	most     int
	session  *Session
	requests []byte
	replies  []byte
	reply    int // length of each
}

// NewServer returns a server for one connection in domain d, which can have up to most exports open.
func NewServer(e Exports, c Clients, d *verbs.Domain, most int) *Server {
	return &Server{exports: e, clients: c, domain: d, most: most, requests: make([]byte, depth*MaxFileRequest)}
}

func (s *Server) request(id uint64) []byte {
	return s.requests[id*MaxFileRequest:][:MaxFileRequest:MaxFileRequest]
}

// Prepare posts the receives. Use it as stream.Config.Prepare, because a client may send a request immediately.
func (s *Server) Prepare(c *stream.Conn) error {
	s.session = NewSession(s.exports, s.clients, s.domain, c.QueuePair(), s.most)
	s.session.Files = s.Files
	if s.reply = MaxReply; s.Files != nil {
		s.reply = MaxFileReply
	}
	s.replies = make([]byte, depth*s.reply)
	for id := range uint64(depth) {
		if err := c.PostReceive(verbs.Receive{ID: id, Local: s.request(id)}); err != nil {
			return err
		}
	}
	return nil
}

// Serve answers requests on a prepared connection until the connection ends, and returns the reason. It then closes all
// open exports. The caller closes the connection.
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
				continue // flushed at the end of the connection, or a Send
			}
			in := s.request(x.ID)
			reply, err := s.session.Handle(in[:x.Length], s.replies[int(x.ID)*s.reply:][:0:s.reply])
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

// end returns the connection's error if err only reports that the connection has ended, and err otherwise.
func end(c *stream.Conn, err error) error {
	if errors.Is(err, verbs.ErrClosed) && c.Err() != nil {
		return c.Err()
	}
	return err
}

// Client sends requests. No other work may be outstanding on the connection during a call.
type Client struct {
	conn *stream.Conn
	next uint32
	in   [MaxFileReply]byte
	out  []byte
}

// NewClient returns a client on a connection whose queues have space for a request and its reply.
func NewClient(c *stream.Conn) *Client {
	return &Client{conn: c, out: make([]byte, 0, MaxRequest)}
}

// Open opens an export with these rights and returns how to access it.
func (c *Client) Open(name string, rights verbs.Rights) (Reply, error) {
	return c.ask(Request{Op: Open, Name: name, Rights: rights})
}

// Stat returns the properties of an export.
func (c *Client) Stat(name string) (Reply, error) { return c.ask(Request{Op: Stat, Name: name}) }

// Hint returns what the server says to open instead of a name that no export has, if anything.
func (c *Client) Hint(name string) (string, error) {
	r, err := c.ask(Request{Op: Hint, Name: name})
	return r.Text, err
}

// Join ends the client's earlier connections, those with lower numbers, and returns the server's instance. It must be
// the first request.
func (c *Client) Join(secret string, number uint32) (instance string, err error) {
	r, err := c.ask(Request{Op: Join, Name: secret, STag: number})
	return r.Text, err
}

// Whoami returns the client's public name, and what the server executed of its last connection. It must have joined.
func (c *Client) Whoami() (name string, past Past, err error) {
	r, err := c.ask(Request{Op: Whoami})
	return r.Text, Past{Number: uint32(r.Address), Messages: r.Length}, err
}

// Close closes an export by the STag that Open returned.
func (c *Client) Close(stag uint32) error {
	_, err := c.ask(Request{Op: Close, STag: stag})
	return err
}

func (c *Client) ask(r Request) (Reply, error) {
	if err := r.Fits(); err != nil {
		return Reply{}, err
	}
	c.next++
	r.ID = c.next
	b, err := c.transfer(r.Append(c.out[:0]))
	if err != nil {
		return Reply{}, err
	}
	reply, err := ParseReply(b)
	switch {
	case err != nil:
		return Reply{}, err
	case reply.ID != r.ID || reply.Op != r.Op:
		return Reply{}, fmt.Errorf("reply to request %d, want %d", reply.ID, r.ID)
	case reply.Status != OK:
		return reply, reply.Status
	}
	return reply, nil
}

// File sends a file request. The reply's body is valid until the next request.
func (c *Client) File(r FileRequest) (FileReply, error) {
	if err := r.Fits(); err != nil {
		return FileReply{}, err
	}
	c.next++
	r.ID = c.next
	b, err := c.transfer(r.Append(c.out[:0]))
	if err != nil {
		return FileReply{}, err
	}
	reply, err := ParseFileReply(b)
	switch {
	case err != nil:
		return FileReply{}, err
	case reply.ID != r.ID || reply.Op != r.Op:
		return FileReply{}, fmt.Errorf("reply to request %d, want %d", reply.ID, r.ID)
	case reply.Status != OK:
		return reply, reply.Status
	}
	return reply, nil
}

// transfer sends a request and returns its reply.
func (c *Client) transfer(request []byte) ([]byte, error) {
	c.out = request
	if err := c.conn.PostReceive(verbs.Receive{Local: c.in[:]}); err != nil {
		return nil, end(c.conn, err)
	}
	if err := c.conn.Post(verbs.Work{Op: wire.Send, Local: c.out, Quiet: true}); err != nil {
		return nil, end(c.conn, err)
	}
	var x [1]verbs.Completion
	switch {
	case c.conn.Wait(x[:]) == 0:
		return nil, c.conn.Err()
	case x[0].Err != nil:
		return nil, x[0].Err
	case !x[0].Receive:
		return nil, errors.New("other work is outstanding")
	}
	return c.in[:x[0].Length], nil
}
