// Package nbdtest supports tests of NBD servers: Client sends exactly the messages that a test asks for, valid or not;
// Pool and Serve provide a pool on a file with a server in front.
//
// Client does none of the work of a real client: it does not retry, match replies to requests, or reorder.
package nbdtest

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"farflash/flash/nbd"
)

// Client is one client connection.
type Client struct {
	net.Conn
	Structured bool
	Size       uint64
	Flags      uint16
	cookie     uint64
}

// NewClient reads the greeting and sends flags.
func NewClient(nc net.Conn, flags uint32) (*Client, error) {
	c := &Client{Conn: nc}
	b := make([]byte, 18)
	if _, err := io.ReadFull(nc, b); err != nil {
		return c, err
	}
	if string(b[:16]) != "NBDMAGICIHAVEOPT" {
		return c, fmt.Errorf("invalid greeting % x", b)
	}
	_, err := nc.Write(binary.BigEndian.AppendUint32(nil, flags))
	return c, err
}

// Secure upgrades the connection to TLS.
func (c *Client) Secure(cfg *tls.Config) error {
	all, err := c.Option(nbd.OptStartTLS, nil)
	if err != nil || all[len(all)-1].Reply != nbd.ReplyAck {
		return errors.Join(err, fmt.Errorf("STARTTLS: %v", all))
	}
	t := tls.Client(c.Conn, cfg)
	c.Conn = t
	return t.Handshake()
}

// Answer is one reply to an option.
type Answer struct {
	Reply   nbd.Reply
	Payload []byte
}

// Option sends an option and reads all its replies.
func (c *Client) Option(o nbd.Option, payload []byte) ([]Answer, error) {
	if _, err := c.Write(nbd.AppendOption(nil, o, payload)); err != nil {
		return nil, err
	}
	return c.answers(o)
}

// answers reads the replies to an option.
func (c *Client) answers(o nbd.Option) ([]Answer, error) {
	var all []Answer
	for {
		h := make(nbd.ReplyHeader, 20)
		if _, err := io.ReadFull(c.Conn, h); err != nil {
			return all, err
		}
		if h.Option() != o || h.Length() > 1<<20 {
			return all, fmt.Errorf("reply to option %d with %d bytes, want option %d", h.Option(), h.Length(), o)
		}
		p := make([]byte, h.Length())
		if _, err := io.ReadFull(c.Conn, p); err != nil {
			return all, err
		}
		all = append(all, Answer{h.Reply(), p})
		if h.Reply() == nbd.ReplyAck || h.Reply().Failed() {
			return all, nil
		}
	}
}

// Named is a payload of a name followed by rest.
func Named(name string, rest ...byte) []byte {
	return append(append(binary.BigEndian.AppendUint32(nil, uint32(len(name))), name...), rest...)
}

// contexts is the payload of an option about metadata contexts of an export.
func contexts(name string, queries ...string) []byte {
	p := binary.BigEndian.AppendUint32(Named(name), uint32(len(queries)))
	for _, q := range queries {
		p = append(p, Named(q)...)
	}
	return p
}

// Go selects an export, optionally with structured replies and base:allocation.
func (c *Client) Go(name string, structured bool) error {
	if structured {
		for o, p := range map[nbd.Option][]byte{nbd.OptStructuredReply: nil} {
			if a, err := c.Option(o, p); err != nil || a[len(a)-1].Reply != nbd.ReplyAck {
				return fmt.Errorf("option %d: %v, %w", o, a, err)
			}
		}
		if a, err := c.Option(nbd.OptSetMetaContext, contexts(name, "base:allocation")); err != nil || len(a) != 2 {
			return fmt.Errorf("base:allocation: %v, %w", a, err)
		}
		c.Structured = true
	}
	all, err := c.Option(nbd.OptGo, Named(name, 0, 0))
	if err != nil {
		return err
	}
	for _, a := range all {
		switch {
		case a.Reply.Failed():
			return fmt.Errorf("reply %#x: %s", uint32(a.Reply), a.Payload)
		case a.Reply == nbd.ReplyInfo && binary.BigEndian.Uint16(a.Payload) == nbd.InfoExport:
			c.Size, c.Flags = binary.BigEndian.Uint64(a.Payload[2:]), binary.BigEndian.Uint16(a.Payload[10:])
		}
	}
	return nil
}

// Send sends a command, and returns its cookie.
func (c *Client) Send(flags uint16, k nbd.Command, offset uint64, n uint32, payload []byte) (uint64, error) {
	c.cookie++
	_, err := c.Write(append(nbd.AppendRequest(nil, flags, k, c.cookie, offset, n), payload...))
	return c.cookie, err
}

// Message is a simple reply, or a chunk of a structured one.
type Message struct {
	Cookie  uint64
	Simple  bool
	Done    bool
	Type    uint16
	Err     nbd.Errno
	Payload []byte // of a chunk, complete
}

// Next reads a message. The data after a successful simple reply are left for the caller to read.
func (c *Client) Next() (Message, error) {
	b := make([]byte, 16)
	if _, err := io.ReadFull(c.Conn, b); err != nil {
		return Message{}, err
	}
	if h := nbd.SimpleHeader(b); h.Valid() {
		return Message{Cookie: h.Cookie(), Simple: true, Done: true, Err: h.Error()}, nil
	}
	h := nbd.ChunkHeader(append(b, 0, 0, 0, 0))
	if !h.Valid() {
		return Message{}, fmt.Errorf("invalid reply header % x", b)
	}
	if _, err := io.ReadFull(c.Conn, h[16:]); err != nil {
		return Message{}, err
	}
	m := Message{Cookie: h.Cookie(), Done: h.Flags()&nbd.ChunkDone != 0, Type: h.Type()}
	if h.Length() > nbd.MaxPayload+8 {
		return m, fmt.Errorf("chunk of %d bytes is too long", h.Length())
	}
	m.Payload = make([]byte, h.Length())
	if _, err := io.ReadFull(c.Conn, m.Payload); err != nil {
		return m, err
	}
	if m.Type == nbd.ChunkError || m.Type == nbd.ChunkErrorOffset {
		if len(m.Payload) < 6 {
			return m, errors.New("the error chunk is too short")
		}
		m.Err = nbd.Errno(binary.BigEndian.Uint32(m.Payload))
	}
	return m, nil
}

// Do sends a command and reads its reply. No other command may be outstanding.
func (c *Client) Do(flags uint16, k nbd.Command, offset uint64, n uint32, payload []byte) (nbd.Errno, error) {
	if _, err := c.Send(flags, k, offset, n, payload); err != nil {
		return 0, err
	}
	for {
		m, err := c.Next()
		if err != nil || m.Done {
			return m.Err, err
		}
	}
}

// Fetch reads data with either kind of reply; holes is the number of bytes received as holes.
func (c *Client) Fetch(flags uint16, offset uint64, n uint32) (data []byte, holes int, e nbd.Errno, err error) {
	if _, err = c.Send(flags, nbd.CmdRead, offset, n, nil); err != nil {
		return nil, 0, 0, err
	}
	data = make([]byte, n)
	got := 0
	for {
		m, err := c.Next()
		switch {
		case err != nil:
			return nil, 0, 0, err
		case m.Simple && m.Err == 0:
			_, err = io.ReadFull(c.Conn, data)
			return data, 0, 0, err
		case m.Err != 0:
			e = m.Err
		case m.Type == nbd.ChunkData:
			at := binary.BigEndian.Uint64(m.Payload) - offset
			if at > uint64(n) || uint64(len(m.Payload)-8) > uint64(n)-at {
				return nil, 0, 0, fmt.Errorf("%d bytes at %d lie outside the requested range", len(m.Payload)-8, at+offset)
			}
			got += copy(data[at:], m.Payload[8:])
		case m.Type == nbd.ChunkHole:
			at, k := binary.BigEndian.Uint64(m.Payload)-offset, binary.BigEndian.Uint32(m.Payload[8:])
			if at > uint64(n) || uint64(k) > uint64(n)-at {
				return nil, 0, 0, fmt.Errorf("hole of %d bytes at %d lies outside the requested range", k, at+offset)
			}
			clear(data[at:][:k])
			got += int(k)
			holes += int(k)
		}
		if m.Done {
			if e == 0 && got != int(n) {
				return nil, 0, 0, fmt.Errorf("received %d bytes of %d", got, n)
			}
			return data, holes, e, nil
		}
	}
}

// Extent is one extent of a block status reply.
type Extent struct {
	Length uint32
	Flags  uint32
}

// Status returns the allocation status of a range.
func (c *Client) Status(flags uint16, offset uint64, n uint32) (all []Extent, e nbd.Errno, err error) {
	if _, err = c.Send(flags, nbd.CmdBlockStatus, offset, n, nil); err != nil {
		return nil, 0, err
	}
	for {
		m, err := c.Next()
		if err != nil {
			return nil, 0, err
		}
		if m.Type == nbd.ChunkStatus {
			for p := m.Payload[4:]; len(p) >= 8; p = p[8:] {
				all = append(all, Extent{binary.BigEndian.Uint32(p), binary.BigEndian.Uint32(p[4:])})
			}
		}
		if m.Err != 0 {
			e = m.Err
		}
		if m.Done {
			return all, e, nil
		}
	}
}
