//go:build !linux

package server

// disconnected reports whether a connection is closed on this side; the peer's side is not known on this system.
func disconnected(c *conn) bool { return c.Control(func(uintptr) {}) != nil }
