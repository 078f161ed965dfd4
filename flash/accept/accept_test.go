package accept_test

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"farflash/flash/accept"
)

// listener returns results one after the other, and net.ErrClosed after the last.
type listener struct {
	net.Listener
	results []error
}

func (l *listener) Accept() (net.Conn, error) {
	if len(l.results) == 0 {
		return nil, net.ErrClosed
	}
	err := l.results[0]
	l.results = l.results[1:]
	return nil, err
}

// TestLoop verifies that transient errors are reported and passed over, and when the end of the listener is an error.
func TestLoop(t *testing.T) {
	for _, ending := range []bool{false, true} {
		l := &listener{results: []error{nil, syscall.EMFILE, syscall.EMFILE, nil}}
		taken, failures := 0, 0
		err := accept.Loop(l, func(net.Conn) { taken++ }, func() bool { return ending && len(l.results) == 0 },
			func(err error) {
				if failures++; !errors.Is(err, syscall.EMFILE) {
					t.Error(err)
				}
			})
		if taken != 2 || failures != 2 || ending != (err == nil) || err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("ending %v: %d connections, %d failures, %v", ending, taken, failures, err)
		}
	}
}

// TestLocal verifies which addresses need no encryption.
func TestLocal(t *testing.T) {
	for _, x := range []struct {
		addr net.Addr
		want bool
	}{{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}, true}, {&net.TCPAddr{IP: net.IPv6loopback}, true},
		{&net.UnixAddr{Name: "x"}, true}, {&net.TCPAddr{IP: net.IPv4zero}, false},
		{&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}, false}, {&net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, false}} {
		if got := accept.Local(x.addr); got != x.want {
			t.Errorf("%v: %v", x.addr, got)
		}
	}
}
