//go:build !linux

package stream

// Loops are threads that do the I/O of many connections. They are not available on this system.
type Loops struct{}

// Sockets reports that loops are not available.
func (*Loops) Sockets() bool { return false }

// Lane returns 0, no loop.
func (*Loops) Lane() uint8 { return 0 }

// shard is the state of a connection that a loop drives; empty on this system.
type shard struct{}

func (*shard) send([]byte) (int, error) { return 0, nil }

func (c *Conn) wake() {}

func (c *Conn) attach(uint8) error { return nil }
