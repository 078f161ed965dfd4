// Package nbd implements the server side of the Network Block Device protocol, so that fio, qemu, libnbd's tools and
// every Linux kernel can be clients of the real stack. It contains the protocol only, as plain state machines over byte
// slices: Handshake (fixed newstyle, with its options) and Session (transmission: commands, simple and structured
// replies, in any order). A Volume is the storage being served.
//
// Neither machine does I/O, has a goroutine or reads a clock; flash/nbd/server drives the negotiation, and flash/driver
// the transmission. A Session consumes bytes through Input, issues the resulting tasks to its driver through Starts,
// takes completed tasks back through Finish in any order, and returns the output as Vectors: its own headers and, for
// reads, the volume's memory itself.
//
// The package follows the NBD project's protocol document (doc/proto.md, 2023). It leaves out oldstyle negotiation,
// resizing, extended headers (64-bit lengths) and metadata contexts other than base:allocation.
package nbd

import (
	"errors"
	"fmt"
	"iter"

	"farflash/flash/reply"
)

// Window is the maximum length of a task, in bytes. Longer commands are split, so that the memory of one command is
// bounded whatever its length.
const Window = 256 << 10

// MaxPayload is the longest read or write, in bytes; the protocol document recommends that clients rely on no more.
const MaxPayload = 32 << 20

// Volume is a range of bytes to serve. It is safe for concurrent use.
type Volume interface {
	// Size is the length in bytes. It does not change.
	Size() uint64
	// Start starts tasks. Each task's Done is called once, with Err set, on any goroutine, possibly before Start
	// returns.
	Start(tasks []*Task)
	// Release returns the memory lent by the Pieces of a successful read.
	Release(t *Task)
	// Extent reports whether the bytes at offset are allocated, and the length, up to n, over which that holds.
	Extent(offset, n uint64) (length uint64, allocated bool, err error)
}

// Kind is the operation of a Task.
type Kind uint8

// The kinds. Read sets Pieces. Trim may be ignored. Zero makes the bytes read as zeros; the space is freed unless
// NoHole is set, in which case it stays allocated. Cache prefetches bytes that will be read soon. Flush makes
// everything durable that completed before it started.
const (
	Read Kind = iota
	Write
	Flush
	Trim
	Zero
	Cache
)

// Piece is a part of a read's result: Data, lent until Release, or a run of Zeros bytes.
type Piece struct {
	Data  []byte
	Zeros int
}

// Task is one operation on a volume. It belongs to the volume from Start to Done.
type Task struct {
	Kind    Kind
	Durable bool // call Done only when the change is durable
	NoHole  bool // Zero: the space stays or becomes allocated
	Offset  uint64
	Length  uint32
	Sole    bool    // the session has no other command, so the starter may block for it
	Loop    uint8   // thread that starts it, as in flash/device; 0 is none
	Payload []byte  // Write: Length bytes
	Pieces  []Piece // Read: the result, in order; appended by the volume
	Err     Errno
	Done    func(*Task)
	Private any // owned by the volume; survives reuse of the task

	// Peer is the address of the client, nil if it is not known.
	Peer fmt.Stringer
	// Stalled is when the command began to wait for memory of its connection, and Resumed when it got that, by the
	// session's clock. They are 0 if it did not wait, and for all but its first task.
	Stalled, Resumed int64
	// Sent, if the volume sets it before Done, is called once after Done: when what the task has read, or the answer
	// that rests on it, is sent, or with false when it will not be. Of several tasks of a command without data, the
	// answer rests on the last. It is serialized with the session.
	Sent func(sent bool)

	command *command
	answer  reply.Output[Task]
}

// Recycle calls Sent, when nothing of the task is left to send.
func (t *Task) Recycle(sent bool) {
	if f := t.Sent; f != nil {
		t.Sent = nil
		f(sent)
	}
}

// Export is an export as opened for a client.
type Export struct {
	Name        string
	Description string
	Volume      Volume
	ReadOnly    bool
	// Leave is called once when the client's connection ends; may be nil. Tasks that have not started need not start,
	// but must be Done with an error.
	Leave func()
	Close func() // called once, after the client is finished and all tasks are done; may be nil
}

// Exports are the exports of a server.
type Exports interface {
	// List yields the names and descriptions that any client allowed to connect may see.
	List() iter.Seq[Export]
	// Open opens an export. The empty name is the default export. The text of an error is sent to the client, which
	// takes the export for absent unless the error is ErrPolicy.
	Open(name string) (Export, error)
}

// ErrPolicy is what an error of Exports is if the export exists and may not be opened.
var ErrPolicy = errors.New("nbd: not permitted")
