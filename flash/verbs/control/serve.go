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

// Serve answers requests on a connection until it ends, and returns why it did. The
// session is over then. The connection is the caller's to close.
func Serve(c *stream.Conn, s *Session) error {
	defer s.End()
	buffers := make([]byte, depth*MaxRequest)
	at := func(id uint64) []byte { return buffers[id*MaxRequest:][:MaxRequest:MaxRequest] }
	for id := range uint64(depth) {
		if err := c.PostReceive(verbs.Receive{ID: id, Local: at(id)}); err != nil {
			return end(c, err)
		}
	}
	replies := make([]byte, depth*ReplyLength)
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
			reply := replies[x.ID*ReplyLength:][:0:ReplyLength]
			reply, err := s.Handle(at(x.ID)[:x.Length], reply)
			if err != nil {
				return err
			}
			if err := c.PostReceive(verbs.Receive{ID: x.ID, Local: at(x.ID)}); err != nil {
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
