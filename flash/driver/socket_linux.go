package driver

import (
	"net"
	"syscall"
)

// notSentLowat is TCP_NOTSENT_LOWAT: the socket takes no more output while as much has not been sent.
const notSentLowat = 25

// LimitUnsent limits what the kernel holds unsent of a TCP connection, also under TLS. Without the limit, which a
// kernel may refuse, it holds more.
func LimitUnsent(nc net.Conn, bytes int) {
	if over, ok := nc.(interface{ NetConn() net.Conn }); ok {
		nc = over.NetConn()
	}
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return
	}
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, notSentLowat, bytes)
		})
	}
}
