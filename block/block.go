// Package block is the seam between everything that issues block I/O and
// everything that serves it, simulated or real.
//
// Its main types are Op, Request, Completion, Device and Sink. The package is about
// logical blocks: an erase block of flash is nand.Block. It holds no behaviour
// and no clock: a simulated Device completes requests in simulated time, a real
// one in wall time, and the caller cannot tell them apart by type.
//
// What it leaves out: admin commands, the discovery of devices, vectored or
// fused commands, and of zones what few hosts use: the random write area, and read-only and offline zones.
//
// The vocabulary (queue, depth, priority class, namespace) follows the NVM
// Express Base Specification 2.0, sections 2 and 3.4.4; that of zones the NVM Express
// Zoned Namespace Command Set Specification 1.1.
package block

import "farflash/numeric/units"

// Op is what a request does.
type Op uint8

// The operations. Trim is NVMe's Dataset Management with the deallocate
// attribute; Flush makes all completed writes durable.
const (
	Read Op = iota
	Write
	Trim
	Flush
	// The actions of Zone Management Send, for the zone that begins at Offset.
	Reset  // it is empty again
	Finish // it is full, as it is
	Open   // it is open until it is closed
	Close  // it is closed, and stays active
	Ops    // how many there are
)

var opNames = units.Names[Op]{"read", "write", "trim", "flush", "reset", "finish", "open", "close"}

// OfZone reports whether an operation is about a zone as a whole.
func (o Op) OfZone() bool { return o >= Reset && o <= Close }

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
	Length    int64  // bytes; a multiple of 512; 0 only for Flush and what is about a zone
	Volume    uint32 // which of an array's volumes; a single drive has one, whatever this says
	Namespace uint8  // which namespace; 0 is the first
	Op        Op
	// placement hint (write stream; FDP: the reclaim group times the namespace's handles, and the placement handle);
	// 0 is none
	Placement uint8
	ForceUnit bool // FUA: a write completes only once it is on flash
	Append    bool // Zone Append: a write to the zone that begins at Offset, which goes where the zone's data end
	// Data is what a Write takes and where a Read puts what it finds: buffers of
	// Length bytes in all. The device has them from Submit until the completion; the
	// caller neither changes nor reads them meanwhile. A model keeps no content and leaves
	// them alone; its callers pass nil. A device that keeps content refuses a
	// Read or Write whose buffers are not Length bytes as Invalid.
	Data [][]byte
}

// Status is how a request ended.
type Status uint8

// The statuses.
const (
	OK               Status = iota
	OutOfRange              // beyond the namespace
	Invalid                 // zero or unaligned length or offset
	WriteFault              // the medium has no page left to write to
	ReadFault               // the medium no longer says what was written: NVMe's unrecovered read error
	ZoneBoundary            // a write goes beyond the capacity of its zone
	ZoneFull                // a write to a zone that is full
	ZoneInvalidWrite        // a write that does not begin where the data of its zone end
	TooManyActive           // a zone more would be active than may be
	TooManyOpen             // a zone more would be open than may be
	ZoneTransition          // a zone cannot go from the state that it is in to the one that was asked for
	StatusCounts            // how many there are
)

var statusNames = units.Names[Status]{"ok", "address out of range", "invalid field", "write fault",
	"unrecovered read error",
	"zone boundary error", "zone is full", "zone invalid write", "too many active zones", "too many open zones",
	"invalid zone state transition"}

// String is the status in words.
func (s Status) String() string { return statusNames.Name(s) }

// Completion tells how and when a request ended. Times are the device's clock,
// whose origin is the device's own: only differences mean something.
type Completion struct {
	Tag       uint64
	Submitted units.Duration // when Submit was called
	Fetched   units.Duration // when the device had fetched the command
	Finished  units.Duration // when the completion entry had reached the host
	// how long of the time from Submitted to Finished the device worked for others; 0 if it cannot tell
	Waited units.Duration
	Length int64 // bytes
	Offset int64 // of an Append that went well: where its data are
	Queue  QueueID
	Op     Op
	Status Status
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
// false and the caller tries again after a completion on that queue. Every submitted
// request completes exactly once, through the Sink that the device was made
// with, never from inside Submit.
//
// Close gives up what the device holds. It is an error while requests are under way, and
// nothing changes then. Afterwards Open is an error, Submit reports false, and
// Close again does nothing.
//
// Threads: a model belongs, with all its queues and its Sink, to the goroutine that runs
// its engine. A real device is used by several: Open, Close and Capacity by one
// at a time, each queue by one at a time, different queues side by side.
type Device interface {
	Open(QueueConfig) (QueueID, error)
	Submit(QueueID, Request) bool
	Capacity(namespace int) int64 // bytes
	Close() error
}

// Expecter is a Device that may be told of a request some time before it is submitted, so that what the device will
// look up is at hand by then. Nothing but the speed of the program depends on it. The offset need not be one that the
// namespace has.
type Expecter interface {
	Expect(namespace uint8, offset int64)
}

// Tuner is a Device whose queues can be given other weights and limits while they work. Tune
// may be called at any time, by whoever uses the queue, and holds from the next arbitration
// on; an inFlight of 0 is the device's own limit.
type Tuner interface {
	Tune(q QueueID, weight, inFlight int)
}

// Zones are how a namespace is divided into zones, which are written in order and reset as a whole. All have one size.
type Zones struct {
	Size      int64 // bytes from one zone's beginning to the next one's
	Capacity  int64 // bytes of a zone that can be written
	Count     int   // zones
	MaxOpen   int   // that may be open at once; 0 is no limit
	MaxActive int   // that may be open or closed at once; 0 is no limit
	MaxAppend int64 // bytes of an Append; 0 is no limit
}

// Zoned is a Device that may have zoned namespaces. Zones of a namespace that is not zoned are none.
//
// Whoever writes to a zone without Append sees to it that writes arrive in order: commands of one queue may pass each
// other on the way to a device.
type Zoned interface {
	Zones(namespace int) Zones
}

// Sink gets every completion. Complete is called in the device's time, on the
// goroutine that uses the completion's queue, one at a time and in the order in which requests
// of the queue finish. It may call Submit and Tune, of any queue of its own; it must not block.
type Sink interface {
	Complete(Completion)
}
