// Package verbs is iWARP's connections as plain state machines, with what a program
// does with them: protection domains, memory regions, queue pairs, completion queues,
// one-sided reads, writes and atomics, sends and receives, immediate data.
//
// A QueuePair is one end of a connection, initiator or responder. It does no I/O and has
// no goroutine and no clock: bytes that arrived go into Input, bytes to be sent are taken
// from Fill, completions are polled from a CompletionQueue; flash/verbs/stream does that
// over a net.Conn. A Region is memory that the peer may reach by an STag: DRAM, or a
// range of a Store, which is what a file on flash is here: pages are asked for when an
// operation touches them (FlashNet's lazy pinning), arrive in any order, and are served
// in order. Registering costs the same for a page and for a petabyte.
//
// The low eight bits of an STag are the program's own: Sync, Async and Prefetch in them
// say how the peer's operation is to be done ("semantic STags").
//
// A completed write says nothing about the other side, least of all that data are
// durable: RFC 5040, 5.5. What can be known, and how, is in docs/flash/protocol.md.
//
// It follows RFC 5040, 5041, 5044, 6581, 7306, and 5042 for what a hostile peer may try;
// and Trivedi et al., FlashNet, ACM TOS 14(4), 2018, sections 3.4, 4.2 to 4.4. It leaves
// out shared receive queues, memory windows and bind, and encryption, which is the
// connection's below.
package verbs

import (
	"errors"
	"fmt"

	"farflash/flash/wire"
)

// Rights are what a peer may do with a region.
type Rights uint8

// The rights.
const (
	RemoteRead Rights = 1 << iota
	RemoteWrite
	RemoteAtomic
	RemoteInvalidate

	allRights = RemoteRead | RemoteWrite | RemoteAtomic | RemoteInvalidate
)

// Semantics are the flags in the low eight bits of an STag.
type Semantics uint8

// The flags. Sync: nothing that comes later on the connection is begun until what the
// operation wrote is on flash. Async: it is, as without flags. Prefetch: what lies behind
// the range will be wanted soon.
const (
	Sync Semantics = 1 << iota
	Async
	Prefetch

	AllSemantics = Sync | Async | Prefetch
)

// Work is one request for a send queue. Op says what it is: Send, SendSE, SendInv,
// SendSEInv, Imm, ImmSE, Write, ReadReq or AtomicReq. The queue pair keeps Local until
// the request completes; it must not change until then, and of a read not be looked at.
type Work struct {
	ID uint64 // comes back in the completion
	Op wire.Op
	// Local is what is sent or written, or where what is read goes. Its length is the
	// message's.
	Local []byte
	// STag and Offset are where at the peer: of Write, ReadReq and AtomicReq.
	STag   uint32
	Offset uint64
	// Atomic and its operand, of AtomicReq.
	Atomic  wire.AtomicOp
	Operand wire.Operand
	// Immediate is the eight bytes of Imm and ImmSE.
	Immediate uint64
	// Invalidate is the STag that SendInv and SendSEInv revoke at the peer.
	Invalidate uint32
	// Fence holds the request back until all reads and atomics before it have completed.
	Fence bool
	// Quiet wants no completion if all goes well.
	Quiet bool
}

// Receive is one buffer for a receive queue.
type Receive struct {
	ID    uint64
	Local []byte
}

// Completion is the end of a work request, or of a receive.
type Completion struct {
	ID uint64
	QP *QueuePair
	// Op is the work request's, or the opcode of the message that was received.
	Op      wire.Op
	Receive bool
	// Err is nil if it went well. Otherwise all that was outstanding has the same: what
	// ended the connection.
	Err error
	// Length is how many bytes were sent, written, read or received.
	Length uint32
	// Original is what an atomic found.
	Original uint64
	// Immediate is what Imm and ImmSE carry.
	Immediate uint64
	// Invalidated is the STag that the message received has revoked here, or zero.
	Invalidated uint32
}

// Terminated is the error of a connection that a Terminate message ended.
type Terminated struct {
	wire.Fault
	// Remote: the peer found the fault, in what was sent from here.
	Remote bool
}

// Error says who found what.
func (e Terminated) Error() string {
	if e.Remote {
		return "the peer ended the connection: " + e.Fault.Error()
	}
	return "this end has ended the connection: " + e.Fault.Error()
}

// Unwrap is the fault.
func (e Terminated) Unwrap() error { return e.Fault }

// Lost is the error of a connection that ended without a Terminate.
type Lost struct{ Err error }

// Error is what the connection below said.
func (e Lost) Error() string { return fmt.Sprintf("the connection was lost: %v", e.Err) }

// Unwrap is what the connection below said.
func (e Lost) Unwrap() error { return e.Err }

// Errors of calls.
var (
	// ErrFull is a queue without room.
	ErrFull = errors.New("the queue is full")
	// ErrClosed is a connection that was closed here.
	ErrClosed = errors.New("the connection is closed")
	// ErrRejected is a connection that the responder refused.
	ErrRejected = errors.New("the peer rejected the connection")
	// ErrState is a call that the state of the connection does not allow.
	ErrState = errors.New("not in this state of the connection")
)
