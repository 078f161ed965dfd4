// Package nbd serves volumes over the Network Block Device protocol, so that fio, qemu, libnbd's tools and every
// Linux kernel are clients of the real stack. Here is the protocol, as plain state machines over byte slices:
// Handshake (fixed newstyle, with its options) and Session (transmission: commands, simple and structured replies, in
// any order). Volume is what is served.
//
// Neither machine does I/O, has a goroutine or looks at a clock; flash/nbd/server drives them over connections. A
// Session takes bytes by Input, gives the tasks that follow from them to whoever begins them, takes tasks back by
// Finish in any order, and says by Vectors what is to be sent: headers of its own and, of reads, the volume's memory
// itself.
//
// It follows the NBD project's protocol document (doc/proto.md, 2023). It leaves out the old style, export lists by
// the old peek, resizing, extended headers (64-bit lengths) and contexts other than base:allocation.
package nbd

import "iter"

// Window is how many bytes a task has at most: longer commands are cut into several, so that what one command holds
// of memory is bounded whatever its length.
const Window = 256 << 10

// MaxPayload is the longest read or write, in bytes; the protocol recommends that no client counts on more.
const MaxPayload = 32 << 20

// Volume is a range of bytes that is served. Its methods may be called side by side.
type Volume interface {
	// Size is its length in bytes, which does not change.
	Size() uint64
	// Start begins tasks. Each one's Done is called once, with Err set, on any goroutine, perhaps before Start returns.
	Start(tasks []*Task)
	// Release gives back what Pieces of a read that went well lend.
	Release(t *Task)
	// Extent says whether the bytes from offset on are allocated, and how many are alike, at most n.
	Extent(offset, n uint64) (length uint64, allocated bool, err error)
}

// Kind is what a Task does.
type Kind uint8

// The kinds. Read sets Pieces. Trim may do nothing; Zero has bytes read as zeros, without room if NoHole is not set
// and with room if it is. Cache makes bytes that will be read soon ready. Flush makes everything durable that was
// done before it was begun.
const (
	Read Kind = iota
	Write
	Flush
	Trim
	Zero
	Cache
)

// Piece is a part of what was read: Data, lent until Release, or so many Zeros.
type Piece struct {
	Data  []byte
	Zeros int
}

// Task is one thing to be done on a volume. It belongs to the volume from Start to Done.
type Task struct {
	Kind    Kind
	Durable bool // Done means that the change is durable
	NoHole  bool // Zero: the room stays, or becomes, taken
	Offset  uint64
	Length  uint32
	Alone   bool    // its session has nothing else under way, so whoever starts it may wait for it
	Lane    uint8   // whose thread begins it, as devices have it (flash/device); 0 is none
	Payload []byte  // Write: Length bytes
	Pieces  []Piece // Read: what there is, in order; the volume appends to it
	Err     Errno
	Done    func(*Task)
	Private any // the volume's own, kept when the task is used again

	command *command
	buffer  *buffer
	answer  answer
}

// Export is what a client is given for a name.
type Export struct {
	Name        string
	Description string
	Volume      Volume
	ReadOnly    bool
	// called once when the client's connection ends: tasks that were not begun need not be, but Done with an error;
	// may be nil
	Leave func()
	Close func() // called once when the client has done with it and all tasks are done; may be nil
}

// Exports is what a server has.
type Exports interface {
	// List is names and descriptions of what may be told to anybody who may connect, one after the other, as far as
	// they are taken.
	List() iter.Seq[Export]
	// Open finds an export. The empty name is the default one. An error's text is told to the client.
	Open(name string) (Export, error)
}
