//go:build !linux

package server

// Loops are threads that do the I/O of connections. There are none here.
type Loops struct{}

// Sockets reports whether there are.
func (*Loops) Sockets() bool { return false }

// driven is what a connection has that a loop drives: there is none.
type driven struct{}

func (*driven) lane() uint8 { return 0 }

func (*driven) wake() {}

func (*driven) flush() bool { return false }

func (*conn) drive() error { return nil }
