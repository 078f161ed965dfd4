//go:build !linux

package server

// Loops are threads that do the I/O of connections. They are not available on this system.
type Loops struct{}

// Sockets reports that loops are not available.
func (*Loops) Sockets() bool { return false }

// driven is the state of a connection that a loop drives; empty on this system.
type driven struct{}

func (*driven) lane() uint8 { return 0 }

func (*driven) wake() {}

func (*driven) flush() bool { return false }

func (*driven) disconnected() bool { return false }

func (*driven) part([]byte) {}

func (*conn) drive() error { return nil }
