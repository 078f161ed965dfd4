//go:build !linux

package server

import "syscall"

// disconnected reports whether a connection is closed on this side; the peer's side is not known on this system.
func disconnected(raw syscall.RawConn) bool { return raw.Control(func(uintptr) {}) != nil }
