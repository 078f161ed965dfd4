//go:build !linux

package driver

// Loops are threads that do the I/O of connections. They are not available on this system.
type Loops struct{}

// Sockets reports that loops are not available.
func (*Loops) Sockets() bool { return false }

// driven is the state of a connection that a loop drives; empty on this system.
type driven[T any] struct{ socket interface{ Wake() } }

func (*driven[T]) control(func(fd uintptr)) error { return nil }

func (*driven[T]) try() (int, error) { return 0, nil }

func (*driven[T]) part([]byte) {}

func (*Conn[T]) drive() error { return nil }
