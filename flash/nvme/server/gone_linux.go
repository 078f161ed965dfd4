package server

import "golang.org/x/sys/unix"

// established is the state of a TCP connection that neither side has closed.
const established = 1

// disconnected reports whether the peer has closed a TCP connection, even if bytes that it sent before are not read
// yet.
func disconnected(c *conn) bool {
	gone := false
	err := c.Control(func(fd uintptr) {
		i, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		gone = err != nil || i.State != established
	})
	return gone || err != nil
}
