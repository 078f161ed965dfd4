package accept_test

import (
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"farflash/flash/accept"
)

// TestLoopPauses verifies the pauses after errors in a row: twice as long each time, up to a second, and a millisecond
// again after a connection.
func TestLoopPauses(t *testing.T) {
	const e = syscall.EMFILE
	for _, x := range []struct {
		results []error
		want    time.Duration
	}{
		{[]error{nil, nil}, 0},
		{[]error{e}, time.Millisecond},
		{[]error{e, e, e}, 7 * time.Millisecond},
		{[]error{e, e, nil, e}, 4 * time.Millisecond},
		{[]error{e, e, e, e, e, e, e, e, e, e, e, e}, 3023 * time.Millisecond}, // 1 to 512 ms, and twice a second
	} {
		synctest.Test(t, func(t *testing.T) {
			from := time.Now()
			err := accept.Loop(&listener{results: x.results}, func(net.Conn) {}, func() bool { return false },
				func(error) {})
			if d := time.Since(from); d != x.want || !errors.Is(err, net.ErrClosed) {
				t.Errorf("%v: %v, %v, want %v", x.results, d, err, x.want)
			}
		})
	}
}

// visitor is a connection that takes a place and leaves.
type visitor struct {
	door   *accept.Door[*visitor]
	placed *atomic.Int64
}

func (v *visitor) Abort() {}

func (v *visitor) Serve() error {
	if err := v.door.Place(v); err != nil {
		return err
	}
	v.placed.Add(1)
	return nil
}

// scripted is a listener with an address, and connections from there.
type scripted struct{ listener }

var home = &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 4420}

func (s *scripted) Addr() net.Addr { return home }
func (s *scripted) Close() error   { return nil }

func (s *scripted) Accept() (net.Conn, error) {
	if _, err := s.listener.Accept(); err != nil {
		return nil, err
	}
	synctest.Wait() // the one before has left
	return from{}, nil
}

type from struct{ net.Conn }

func (from) RemoteAddr() net.Addr { return home }

// TestDoorLetsGo verifies that many connections pass a door that has space for few at a time, each with a place, and
// that errors of its listener are reported with the listener's address.
func TestDoorLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		d := accept.NewDoor[*visitor](accept.Limits{Most: 1, Early: 1, Failed: func(a net.Addr, err error) {
			said = append(said, a.String()+": "+err.Error())
		}})
		l := &scripted{listener{results: []error{nil, nil, nil, nil, nil, syscall.EMFILE, nil, nil}}}
		var placed atomic.Int64
		err := d.Serve(l, func(net.Conn) *visitor { return &visitor{d, &placed} })
		d.Wait()
		if n := placed.Load(); n != 7 || !errors.Is(err, net.ErrClosed) {
			t.Errorf("%d of 7 had a place, %v", n, err)
		}
		if want := "10.0.0.7:4420: accepting: " + syscall.EMFILE.Error(); strings.Join(said, "; ") != want {
			t.Errorf("%q is reported, want %q", said, want)
		}
		if p, e, n := d.Count(); p != 0 || e != 0 || n != 0 {
			t.Errorf("%d are in place, %d not, %d were displaced", p, e, n)
		}
	})
}
