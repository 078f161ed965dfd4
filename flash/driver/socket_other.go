//go:build !linux

package driver

import "net"

// LimitUnsent does nothing: the kernel has no such limit.
func LimitUnsent(net.Conn, int) {}
