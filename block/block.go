// Package block is the seam between everything that issues block I/O and
// everything that serves it, simulated or real.
//
// Its main types are Op, Request, Completion and Device. The package is about
// logical blocks: an erase block of flash is nand.Block. It holds no behaviour
// and no clock: a simulated Device completes requests in simulated time, a real
// one in wall time, and the caller cannot tell them apart by type.
//
// The vocabulary (queue, depth, priority class, namespace) follows the NVM
// Express Base Specification 2.0, sections 2 and 3.4.4.
package block

import "farflash/units"

// Op is what a request does.
type Op uint8

// The operations. Trim is NVMe's Dataset Management with the deallocate
// attribute; Flush makes all completed writes durable.
const (
	Read Op = iota
	Write
	Trim
	Flush
	Ops // how many there are
)

var opNames = units.Names[Op]{"read", "write", "trim", "flush"}

// String is the lower-case name used in scenarios, traces and metrics.
func (o Op) String() string { return opNames.Name(o) }

// Class is a submission queue's priority class under weighted round robin with
// urgent priority class (NVMe Base Specification 2.0, section 3.4.4.2).
type Class uint8

// The classes, most urgent first. Urgent is strict; the others share by weight.
const (
	Urgent Class = iota
	High
	Medium
	Low
	Classes // how many there are
)

var classNames = units.Names[Class]{"urgent", "high", "medium", "low"}

// String is the lower-case name used in scenarios.
func (c Class) String() string { return classNames.Name(c) }

// MarshalText writes the class's name.
func (c Class) MarshalText() ([]byte, error) { return classNames.Marshal(c) }

// UnmarshalText reads a class's name.
func (c *Class) UnmarshalText(text []byte) error { return classNames.Unmarshal(text, c) }

// Request is one command as the host sees it.
type Request struct {
	Tag       uint64 // the caller's own; returned in the Completion
	Offset    int64  // bytes from the start of the namespace; a multiple of 512
	Length    int64  // bytes; a multiple of 512; 0 only for Flush
	Volume    uint32 // which of an array's volumes; a single drive has one, whatever this says
	Namespace uint8  // which namespace; 0 is the first
	Op        Op
	Placement uint8 // placement hint (write stream, FDP placement handle); 0 is none
	ForceUnit bool  // FUA: a write completes only once it is on flash
}

// Status is how a request ended.
type Status uint8

// The statuses.
const (
	OK           Status = iota
	OutOfRange          // beyond the namespace
	Invalid             // zero or unaligned length or offset
	WriteFault          // the medium has no page left to write to
	StatusCounts        // how many there are
)

var statusNames = units.Names[Status]{"ok", "address out of range", "invalid field", "write fault"}

// String is the status in words.
func (s Status) String() string { return statusNames.Name(s) }

// Completion tells how and when a request ended. Times are in the device's
// clock, in picoseconds.
type Completion struct {
	Tag       uint64
	Submitted int64 // when Submit was called
	Fetched   int64 // when the device had fetched the command
	Finished  int64 // when the completion entry had reached the host
	Waited    int64 // how long of the time from Submitted to Finished the device worked for others; 0 if it cannot tell
	Length    int64 // bytes
	Queue     QueueID
	Op        Op
	Status    Status
}

// QueueID names an open queue pair of one device.
type QueueID int32

// QueueConfig describes a submission/completion queue pair.
type QueueConfig struct {
	Depth    int   // entries in the submission queue; at least 2
	Class    Class // priority class
	Weight   int   // share within weighted round robin; at least 1
	InFlight int   // commands the device may hold from this queue at once; 0 is the device's own limit
}

// Device is what an initiator's or a target's driver talks to.
//
// Open is called before the first request. Submit may be called at any time of
// the device's clock; it never blocks: a full submission queue makes it report
// false and the caller tries again after a completion on that queue. Tune may be
// called at any time and holds from the next arbitration on. Every submitted
// request completes exactly once, through the function that the device was made
// with, never from inside Submit.
type Device interface {
	Open(QueueConfig) (QueueID, error)
	Submit(QueueID, Request) bool
	Tune(q QueueID, weight, inFlight int)
	Capacity(namespace int) int64 // bytes
}
