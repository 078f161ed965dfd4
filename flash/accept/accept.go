// Package accept is the part of a server that accepts connections, which iWARP, NBD and NVMe over TCP have in common:
// Loop, and the errors and addresses that their servers must distinguish. Door is the connections of NBD and NVMe, from
// their arrival to their end, with their limits.
//
// It leaves out the protocols.
package accept

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// longest is the longest pause after errors in a row.
const longest = time.Second

// Loop passes the connections of l to take, until l is closed. Other errors, such as running out of descriptors, pass
// when connections end: failed receives each of them, and a pause follows. The result is nil if ending reports that the
// server has closed l.
func Loop(l net.Listener, take func(net.Conn), ending func() bool, failed func(error)) error {
	for wait := time.Millisecond; ; {
		nc, err := l.Accept()
		switch {
		case err == nil:
			take(nc)
			wait = time.Millisecond
		case ending():
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			failed(err)
			time.Sleep(wait)
			wait = min(2*wait, longest)
		}
	}
}

// Local reports whether an address can be reached from this machine only.
func Local(a net.Addr) bool {
	switch a := a.(type) {
	case *net.UnixAddr:
		return true
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	}
	return false
}

// Closed suppresses the error of closing a connection that is already closed or broken, because the cause is known.
func Closed(err error) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}
