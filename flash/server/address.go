package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
)

// unixPrefix begins the address of a Unix socket, "unix:/run/farflash.sock".
const unixPrefix = "unix:"

// longestPath is what a Unix socket's address holds of a path on Linux (sun_path, without its last zero).
const longestPath = 107

// resolve resolves a listen address, HOST:PORT or unix:PATH, and reports whether only this machine can reach it. The
// server listens on the resolved address, so a later change of a host's name has no effect.
func resolve(address string) (at net.Addr, local bool, err error) {
	if path, is := strings.CutPrefix(address, unixPrefix); is {
		if path == "" {
			return nil, false, fmt.Errorf("%s: a path is missing; write for example unix:/run/farflash.sock", address)
		}
		if err := fits(path); err != nil {
			return nil, false, err
		}
		return &net.UnixAddr{Name: path, Net: "unix"}, true, nil
	}
	a, err := net.ResolveTCPAddr("tcp", address)
	if e := new(net.AddrError); errors.As(err, &e) {
		err = fmt.Errorf("%s: %s; give HOST:PORT, such as 127.0.0.1:9700", address, e.Err)
	}
	if err != nil {
		return nil, false, err
	}
	return a, a.IP != nil && a.IP.IsLoopback(), nil
}

func fits(path string) error {
	if len(path) > longestPath {
		return fmt.Errorf("%s: the path has %d bytes; a Unix socket's has at most %d", path, len(path), longestPath)
	}
	return nil
}

// listen opens a socket.
func listen(at net.Addr) (net.Listener, error) {
	if unix, is := at.(*net.UnixAddr); is {
		return ListenUnix(unix)
	}
	return net.Listen("tcp", at.String())
}

// ListenUnix opens a Unix socket. One that a killed daemon has left is replaced; one in use, or any other file, is not.
// The socket's file is removed when the listener is closed.
func ListenUnix(unix *net.UnixAddr) (*net.UnixListener, error) {
	if err := fits(unix.Name); err != nil {
		return nil, err
	}
	info, err := os.Lstat(unix.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSocket == 0:
		return nil, fmt.Errorf("%s is there and is not a socket; give another path", unix.Name)
	default:
		nc, err := net.DialUnix("unix", nil, unix)
		if err == nil {
			_ = nc.Close() // it only showed that somebody listens
			return nil, fmt.Errorf("%s: %w by another daemon", unix.Name, syscall.EADDRINUSE)
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, err
		}
		if err := os.Remove(unix.Name); err != nil {
			return nil, err
		}
	}
	return net.ListenUnix("unix", unix)
}

// written is an address as users write it.
func written(a net.Addr) string {
	if unix, is := a.(*net.UnixAddr); is {
		return unixPrefix + unix.Name
	}
	return a.String()
}
