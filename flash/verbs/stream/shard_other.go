//go:build !linux

package stream

// Loops are threads that do the I/O of connections. There are none here.
type Loops struct{}

// Sockets reports whether there are.
func (*Loops) Sockets() bool { return false }

// Lane is none.
func (*Loops) Lane() uint8 { return 0 }

// shard is what a connection has that a loop drives: none.
type shard struct{}

func (*shard) send([]byte) (int, error) { return 0, nil }

func (c *Conn) wake() {}

func (c *Conn) attach(uint8) error { return nil }
