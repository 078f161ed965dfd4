// Package verbs implements iWARP connections as plain state machines, with the objects that a program uses them
// through: protection domains, memory regions, queue pairs, completion queues, one-sided reads, writes and atomics,
// sends and receives, and immediate data.
//
// A QueuePair is one end of a connection, initiator or responder. It does no I/O and has neither a goroutine nor a
// clock: received bytes go into Input, bytes to send come out of Fill, and completions are polled from a
// CompletionQueue; flash/verbs/stream connects these to a net.Conn. A Region is memory that the peer can reach by an
// STag: DRAM, or a range of a Store, which here is a file on flash. Pages are requested when an operation touches them
// (FlashNet's lazy pinning), may become ready in any order, and are served in order. Registration costs the same for a
// page and for a petabyte.
//
// The low eight bits of an STag are the program's key. Here they carry the flags Sync, Async and Prefetch, which select
// how the peer's operation is performed ("semantic STags").
//
// Completion of a write implies nothing about the remote side, least of all that the data are durable (RFC 5040, 5.5).
// docs/flash/protocol.md describes what a client can find out, and how.
//
// The package follows RFC 5040, 5041, 5044, 6581 and 7306, RFC 5042 for hostile peers, and Trivedi et al., FlashNet,
// ACM TOS 14(4), 2018, sections 3.4 and 4.2 to 4.4. It leaves out shared receive queues, memory windows and bind.
// Encryption is left to the connection underneath.
package verbs

import (
	"errors"
	"fmt"

	"farflash/flash/wire"
)

// Rights are the operations that a peer may perform on a region.
type Rights uint8

// The rights.
const (
	RemoteRead Rights = 1 << iota
	RemoteWrite
	RemoteAtomic
	RemoteInvalidate

	allRights = RemoteRead | RemoteWrite | RemoteAtomic | RemoteInvalidate
)

// Semantics are flags in the low eight bits of an STag.
type Semantics uint8

// The flags. Sync: no later operation on the connection starts until the data that this one wrote are on flash. Async:
// do not wait, which is also the behaviour without flags. Prefetch: the data after the range will be wanted soon.
const (
	Sync Semantics = 1 << iota
	Async
	Prefetch

	AllSemantics = Sync | Async | Prefetch
)

// Work is a work request for the send queue. Op is one of Send, SendSE, SendInv, SendSEInv, Imm, ImmSE, Write, ReadReq
// and AtomicReq. The queue pair retains Local until the request completes; until then the caller must not modify it,
// nor inspect the buffer of a read.
type Work struct {
	ID uint64 // returned in the completion
	Op wire.Op
	// Local is the data to send or write, or the buffer to read into. Its length is the message length.
	Local []byte
	// STag and Offset address the peer's memory; for Write, ReadReq and AtomicReq.
	STag   uint32
	Offset uint64
	// Atomic is the operation of an AtomicReq, Operand its arguments.
	Atomic  wire.AtomicOp
	Operand wire.Operand
	// Immediate is the eight-byte value of Imm and ImmSE.
	Immediate uint64
	// Invalidate is the STag of the peer that SendInv and SendSEInv revoke.
	Invalidate uint32
	// Fence holds the request back until all preceding reads and atomics have completed.
	Fence bool
	// Quiet suppresses the completion if the request succeeds.
	Quiet bool
}

// Receive is one buffer for a receive queue.
type Receive struct {
	ID    uint64
	Local []byte
}

// Completion reports the end of a work request or of a receive.
type Completion struct {
	ID uint64
	QP *QueuePair
	// Op is the opcode of the work request, or of the received message.
	Op      wire.Op
	Receive bool
	// Err is nil on success. When the connection ends, all outstanding requests complete with the same error, the one
	// that ended it.
	Err error
	// Length is the number of bytes sent, written, read or received.
	Length uint32
	// Original is the value that an atomic found.
	Original uint64
	// Immediate is the value received with Imm or ImmSE.
	Immediate uint64
	// Invalidated is the local STag that the received message revoked, or zero.
	Invalidated uint32
}

// Terminated is the error of a connection that ended with a Terminate message.
type Terminated struct {
	wire.Fault
	// Remote reports that the peer detected the fault, in data sent from this end.
	Remote bool
}

// Error names the end that detected the fault, and the fault.
func (e Terminated) Error() string {
	if e.Remote {
		return "the peer terminated the connection: " + e.Fault.Error()
	}
	return "this end terminated the connection: " + e.Fault.Error()
}

// Unwrap returns the fault.
func (e Terminated) Unwrap() error { return e.Fault }

// Lost is the error of a connection that ended without a Terminate.
type Lost struct{ Err error }

// Error includes the error of the underlying connection.
func (e Lost) Error() string { return fmt.Sprintf("the connection was lost: %v", e.Err) }

// Unwrap returns the error of the underlying connection.
func (e Lost) Unwrap() error { return e.Err }

// Errors returned by methods.
var (
	// ErrFull reports a full queue.
	ErrFull = errors.New("the queue is full")
	// ErrClosed reports a connection that was closed locally.
	ErrClosed = errors.New("the connection is closed")
	// ErrRejected reports a connection that the responder refused.
	ErrRejected = errors.New("the peer rejected the connection")
	// errState reports a call that is invalid in the connection's current state.
	errState = errors.New("not possible in this state of the connection")
)
