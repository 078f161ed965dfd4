package server_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"farflash/flash/client"
	"farflash/flash/ctl"
	"farflash/flash/server"
	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
	"farflash/flash/verbs/stream"
	"farflash/flash/wire"
)

// raw is an iWARP connection without package client.
type raw struct {
	t    *testing.T
	conn *stream.Conn
	ask  *control.Client
	file control.Reply
}

// connect makes a connection over nc, joins if number is not 0, and opens disk.
func connect(t *testing.T, nc net.Conn, secret string, number uint32) (*raw, error) {
	t.Helper()
	var key [16]byte
	if _, err := rand.Read(key[:]); err != nil {
		t.Fatal(err)
	}
	a, err := verbs.NewAdapter(key)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := stream.Client(nc, a.NewDomain(0), stream.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	r := &raw{t: t, conn: conn, ask: control.NewClient(conn)}
	if number > 0 {
		if _, err := r.ask.Join(secret, number); err != nil {
			return nil, err
		}
	}
	if r.file, err = r.ask.Open("disk", all); err != nil {
		t.Fatal(err)
	}
	return r, nil
}

func (r *raw) write(b []byte) {
	r.t.Helper()
	err := r.conn.Post(verbs.Work{Op: wire.Write, Local: b, STag: r.file.STag | uint32(verbs.Sync),
		Offset: r.file.Address,
		Quiet:  true}, verbs.Work{Op: wire.ReadReq})
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *raw) wait() error {
	var x [1]verbs.Completion
	if r.conn.Wait(x[:]) == 0 {
		return r.conn.Err()
	}
	return x[0].Err
}

// held forwards connections, and stops forwarding to the server while it is closed.
type held struct {
	to   string
	gate chan struct{}
}

func (h held) dial(t *testing.T) net.Conn {
	t.Helper()
	near, far := net.Pipe()
	nc, err := net.Dial("tcp", h.to)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = io.Copy(far, nc)
		_ = far.Close()
	}()
	go func() {
		b := make([]byte, 64<<10)
		for {
			n, err := far.Read(b)
			h.gate <- struct{}{}
			if _, failed := nc.Write(b[:n]); err != nil || failed != nil {
				<-h.gate
				_ = nc.Close()
				return
			}
			<-h.gate
		}
	}()
	return near
}

// TestEarlierConnectionEnds: what a client sent on a connection that it gave up, and that reaches the server only after
// it has written the same place on another connection, is not executed if the client's connections have joined. That it
// is executed if they have not shows that the test can see it.
func TestEarlierConnectionEnds(t *testing.T) { ways(t, testEarlierConnectionEnds) }

func testEarlierConnectionEnds(t *testing.T) {
	for _, joined := range []bool{false, true} {
		d := begin(t, nil)
		secret := hex.EncodeToString(bytes.Repeat([]byte{0xab}, control.SecretLength/2))
		number := uint32(0)
		if joined {
			number = 1
		}
		h := held{d.address(), make(chan struct{}, 1)}
		first, err := connect(t, h.dial(t), secret, number)
		if err != nil {
			t.Fatal(err)
		}
		h.gate <- struct{}{} // from here on the network keeps what the client sends
		old, fresh := bytes.Repeat([]byte{1}, ctl.Page), bytes.Repeat([]byte{2}, ctl.Page)
		first.write(old)

		if joined {
			number = 2
		}
		nc, err := net.Dial("tcp", d.address())
		if err != nil {
			t.Fatal(err)
		}
		second, err := connect(t, nc, secret, number)
		if err != nil {
			t.Fatal(err)
		}
		second.write(fresh)
		if err := second.wait(); err != nil {
			t.Fatal(err)
		}
		<-h.gate // and now it delivers that
		if err := first.wait(); (err == nil) == joined {
			t.Errorf("joined %v: the late write: %v", joined, err)
		}
		if joined { // the server did not wait for anything, so give it time to do it wrong
			time.Sleep(50 * time.Millisecond)
		}
		third := d.open(d.dial(), "disk")
		got := make([]byte, ctl.Page)
		if _, err := third.ReadAt(got, 0); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]byte{false: 1, true: 2}[joined]; got[0] != want {
			t.Errorf("joined %v: the page begins with %d, want %d", joined, got[0], want)
		}
		if joined { // a connection that was made earlier and comes late ends nothing
			nc, err := net.Dial("tcp", d.address())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := connect(t, nc, secret, 1); !errors.Is(err, control.Stale) {
				t.Errorf("a late connection: %v", err)
			}
			second.write(old)
			if err := second.wait(); err != nil {
				t.Errorf("after a late connection: %v", err)
			}
			other := hex.EncodeToString(bytes.Repeat([]byte{0xcd}, control.SecretLength/2))
			if nc, err = net.Dial("tcp", d.address()); err != nil {
				t.Fatal(err)
			}
			if _, err := connect(t, nc, other, 9); err != nil {
				t.Errorf("another client: %v", err)
			}
			second.write(old)
			if err := second.wait(); err != nil {
				t.Errorf("after another client: %v", err)
			}
		}
		_, _ = first.conn.Close(), second.conn.Close()
		d.end()
	}
}

// TestNextServer: a client with TLS and a token goes on with the next server at its address. As long as that has the
// same opening of the pool, nothing is lost, and Flush says so.
func TestNextServer(t *testing.T) { ways(t, testNextServer) }

func testNextServer(t *testing.T) {
	a := newAuthority(t)
	var cfg server.Config
	d := begin(t, func(c *server.Config) {
		c.TLS = &tls.Config{Certificates: []tls.Certificate{a.issue(t, false)}, ClientCAs: a.pool}
		c.Token = token
		cfg = *c
	})
	mine := client.DefaultConfig()
	mine.Token = token
	mine.TLS = &tls.Config{RootCAs: a.pool, Certificates: []tls.Certificate{a.issue(t, false)}}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := client.Dial(ctx, d.address(), mine)
	if err != nil {
		t.Fatal(err)
	}
	f := d.open(c, "disk")
	cfg.Address = d.address()
	for i := range 3 {
		b, got := bytes.Repeat([]byte{byte(i + 1)}, 100_000), make([]byte, 100_000)
		if _, err := f.WriteAt(b, 1000); err != nil {
			t.Fatal(err)
		}
		if err := d.s.Drain(time.Second); err != nil {
			t.Fatal(err)
		}
		if d.s, err = server.New(cfg); err == nil {
			err = d.s.Listen()
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadAt(got, 1000); err != nil || !bytes.Equal(got, b) {
			t.Errorf("restart %d: read %d: %v", i, got[0], err)
		}
		if err := f.Flush(); err != nil {
			t.Errorf("restart %d: flush: %v", i, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	d.end()
}
