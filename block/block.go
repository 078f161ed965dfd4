// Package block is the interface between everything that issues block I/O and everything that serves it, simulated or
// real.
//
// Its main types are Op, Request, Completion, Device and Sink. Blocks here are logical blocks: an erase block of flash
// is nand.Block. The package has no behaviour and no clock: a simulated Device completes requests in simulated time, a
// real one in wall time, and the caller cannot tell them apart by type.
//
// It leaves out admin commands, the discovery of devices, vectored and fused commands, and rarely used parts of zones:
// the random write area, and read-only and offline zones.
//
// The vocabulary (queue, depth, priority class, namespace) follows the NVM Express Base Specification 2.0, sections 2
// and 3.4.4, and for zones the NVM Express Zoned Namespace Command Set Specification 1.1.
package block

import "farflash/numeric/units"

// Op is the operation of a request.
type Op uint8

// The operations. Trim is NVMe's Dataset Management with the deallocate attribute; Flush makes all completed writes
// durable.
const (
	Read Op = iota
	Write
	Trim
	Flush
	// The actions of Zone Management Send, on the zone that begins at Offset.
	Reset  // empties it
	Finish // makes it full, without writing the rest
	Open   // opens it explicitly, until it is closed
	Close  // closes it; it stays active
	Ops    // number of operations
)

var opNames = units.Names[Op]{"read", "write", "trim", "flush", "reset", "finish", "open", "close"}

// OfZone reports whether the operation acts on a whole zone.
func (o Op) OfZone() bool { return o >= Reset && o <= Close }

func (o Op) String() string { return opNames.Name(o) }

// Class is a queue's priority under weighted round robin with urgent class (NVMe 2.0, 3.4.4.2).
type Class uint8

// The classes, most urgent first. Urgent is strict; the others share by weight.
const (
	Urgent Class = iota
	High
	Medium
	Low
	Classes // number of classes
)

var classNames = units.Names[Class]{"urgent", "high", "medium", "low"}

func (c Class) String() string { return classNames.Name(c) }

func (c Class) MarshalText() ([]byte, error) { return classNames.Marshal(c) }

func (c *Class) UnmarshalText(text []byte) error { return classNames.Unmarshal(text, c) }

// Request is one command as the host sees it.
type Request struct {
	Tag       uint64 // for the caller's use; returned in the Completion
	Offset    int64  // bytes from the start of the namespace; a multiple of 512
	Length    int64  // bytes; a multiple of 512; 0 only for Flush and zone operations
	Volume    uint32 // the volume of an array; ignored by a single drive
	Namespace uint8  // index of the namespace; 0 is the first
	Op        Op
	// placement hint (write stream; FDP: the reclaim group times the namespace's handles, plus the placement handle); 0
	// is none
	Placement uint8
	ForceUnit bool // FUA: a write completes only once it is on flash
	Append    bool // Zone Append: write at the write pointer of the zone that begins at Offset
	// Data is the content of a Write, and the destination of a Read: buffers of Length bytes in total. The device owns
	// them from Submit until the completion; the caller must neither change nor read them in between. A model keeps no
	// content and ignores them; its callers pass nil. A device that keeps content completes a Read or Write whose
	// buffers do not total Length bytes as Invalid.
	Data [][]byte
}

// Status is the result of a request.
type Status uint8

const (
	OK               Status = iota
	OutOfRange              // beyond the namespace
	Invalid                 // zero or unaligned length or offset; no such namespace, operation or open queue
	WriteFault              // the medium has no page left to write to
	ReadFault               // the data cannot be read any more: NVMe's unrecovered read error
	ZoneBoundary            // a write beyond the capacity of its zone
	ZoneFull                // a write to a full zone
	ZoneInvalidWrite        // a write that does not start at the zone's write pointer
	TooManyActive           // one more active zone than allowed
	TooManyOpen             // one more open zone than allowed
	ZoneTransition          // the requested transition is invalid in the zone's state
	PathError               // the host has lost its paths to the device: NVMe's host path error
	StatusCounts            // number of statuses
)

var statusNames = units.Names[Status]{"ok", "address out of range", "invalid field", "write fault",
	"unrecovered read error",
	"zone boundary error", "zone is full", "zone invalid write", "too many active zones", "too many open zones",
	"invalid zone state transition", "host path error"}

func (s Status) String() string { return statusNames.Name(s) }

// Completion is the result of a request, with times on the device's own clock: only differences are meaningful.
type Completion struct {
	Tag       uint64
	Submitted units.Duration // when Submit was called
	Fetched   units.Duration // when the device had fetched the command
	Finished  units.Duration // when the completion entry had reached the host
	// time between Submitted and Finished during which the device served other requests; 0 if unknown
	Waited units.Duration
	Length int64 // bytes
	Offset int64 // of a successful Append: where its data was written
	Queue  QueueID
	Op     Op
	Status Status
}

// QueueID identifies an open queue pair of one device.
type QueueID int32

// QueueConfig describes a submission/completion queue pair.
type QueueConfig struct {
	Depth    int   // entries in the submission queue; at least 2
	Class    Class // priority class
	Weight   int   // share within weighted round robin; 0 is 1
	InFlight int   // commands that the device may hold from this queue at once; 0 is the device's own limit
}

// Device is the interface to which an initiator's or a target's driver submits I/O.
//
// Open must be called before the first request. Submit may be called at any time of the device's clock and never
// blocks: it returns false if the submission queue is full, and the caller retries after a completion on that queue.
// Every submitted request completes exactly once, through the Sink with which the device was made, never from inside
// Submit. A request that the device cannot serve completes with the status that names the reason, Invalid or
// OutOfRange. One that names no open queue completes as Invalid on that queue, or Submit returns false. The capacity of
// a namespace that does not exist is 0.
//
// Close releases the device's resources. It fails without effect while requests are outstanding. After Close, Open
// returns an error, Submit returns false, and further calls of Close have no effect.
//
// Threads: a model belongs, with all its queues and its Sink, to the goroutine that runs its engine. A real device may
// be used by several: calls of Open, Close and Capacity must be serialised, and so must calls on the same queue;
// different queues may be used concurrently.
type Device interface {
	Open(QueueConfig) (QueueID, error)
	Submit(QueueID, Request) bool
	Capacity(namespace int) int64 // bytes
	Close() error
}

// Expecter is a Device that prefetches its state of a request that will be submitted. This affects only the speed of
// the program. The offset need not be valid.
type Expecter interface {
	Expect(namespace uint8, offset int64)
}

// Tuner is a Device whose queues can change their weights and limits while in use. Tune may be called at any time by
// the user of the queue, and takes effect from the next arbitration; an inFlight of 0 is the device's own limit.
type Tuner interface {
	Tune(q QueueID, weight, inFlight int)
}

// MostOpenZones bounds the zones that a host writes at the same time: more than any drive lets be open.
const MostOpenZones = 1 << 16

// Zones divides a namespace into equal zones, written in order and reset as a whole.
type Zones struct {
	Size      int64 // bytes from the start of one zone to the next
	Capacity  int64 // writable bytes of a zone
	Count     int   // number of zones
	MaxOpen   int   // zones that may be open at once; 0 is no limit
	MaxActive int   // zones that may be open or closed at once; 0 is no limit
	MaxAppend int64 // most bytes of an Append; 0 is no limit
}

// Zoned is a Device that may have zoned namespaces. For a namespace that is not zoned it returns the zero Zones.
//
// A caller that writes to a zone without Append must keep its writes in order: commands of one queue can overtake each
// other on the path to a device.
type Zoned interface {
	Zones(namespace int) Zones
}

// Sink receives every completion. Complete is called in the device's time, on the goroutine that uses the completion's
// queue, one call at a time and in the order in which the queue's requests finish. It may call Submit and Tune for any
// queue of that goroutine; it must not block.
type Sink interface {
	Complete(Completion)
}
