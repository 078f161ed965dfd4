package accept_test

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"farflash/flash/accept"
)

// guest is a connection that asks for its place with its first byte and ends with its second.
type guest struct {
	nc   net.Conn
	door *accept.Door[*guest]
}

func (g *guest) Abort() { _ = g.nc.Close() }

func (g *guest) Serve() error {
	defer func() { _ = g.nc.Close() }()
	b := make([]byte, 1)
	if _, err := io.ReadFull(g.nc, b); err != nil {
		return err
	}
	if err := g.door.Place(g); err != nil {
		return err
	}
	if _, err := g.nc.Write(b); err != nil {
		return err
	}
	_, err := io.ReadFull(g.nc, b)
	return err
}

// TestDoor verifies that connections get a place up to the maximum, that one too many without a place ends the oldest,
// that each end is reported once, and that a closed door waits for those that are inside.
func TestDoor(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	said := make(chan error, 100)
	d := accept.NewDoor[*guest](accept.Limits{Most: 2, Early: 3, Failed: func(_ net.Addr, err error) { said <- err }})
	served := make(chan error, 1)
	go func() { served <- d.Serve(l, func(nc net.Conn) *guest { return &guest{nc, d} }) }()
	come := func() net.Conn {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nc.Close() })
		return nc
	}
	send := func(nc net.Conn) error {
		b := []byte{1}
		_, err := nc.Write(b)
		if err == nil {
			err = nc.SetReadDeadline(time.Now().Add(10 * time.Second))
		}
		if err == nil {
			_, err = io.ReadFull(nc, b)
		}
		return err
	}
	counts := func(placed, early int, displaced int64) {
		t.Helper()
		for i := 0; ; i++ {
			p, e, n := d.Count()
			if p == placed && e == early && n == displaced {
				return
			}
			if i == 1000 {
				t.Fatalf("%d in place, %d others, %d displaced; want %d, %d and %d", p, e, n, placed, early, displaced)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	a, b, c := come(), come(), come()
	for i, nc := range []net.Conn{a, b} {
		if err := send(nc); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	if err := send(c); err == nil || !errors.Is(<-said, accept.ErrMany) {
		t.Errorf("a third has a place: %v", err)
	}
	counts(2, 0, 0)
	var all []net.Conn
	for range 20 {
		all = append(all, come())
	}
	counts(2, 3, 17)
	if err := <-said; err == nil {
		t.Error("nothing is said of the displaced")
	}
	if err := send(all[0]); err == nil {
		t.Error("a displaced connection has a place")
	}
	if _, err := a.Write([]byte{2}); err != nil {
		t.Fatal(err)
	}
	counts(1, 3, 17)
	if err := send(all[19]); err != nil {
		t.Errorf("there is room: %v", err)
	}
	left, err := d.Close()
	if err != nil || len(left) != 4 {
		t.Errorf("%d are left, %v", len(left), err)
	}
	for _, g := range left {
		g.Abort()
	}
	d.Wait()
	counts(0, 0, 17)
	if err := <-served; err != nil {
		t.Error(err)
	}
	if late, err := net.Listen("tcp", "127.0.0.1:0"); err != nil || d.Serve(late, nil) != nil {
		t.Errorf("a closed door: %v", err)
	}
}
