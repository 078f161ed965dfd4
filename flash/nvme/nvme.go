// Package nvme implements the target's side of NVMe over TCP, so that every Linux host since 5.0 can use the exports of
// the real stack as block devices, with the kernel's own driver. It contains the protocol only, as plain state machines
// over byte slices; flash/nvme/wire has its bytes. A namespace is an nbd.Volume, the same storage that flash/nbd
// serves.
//
// Target is the subsystems, their namespaces and the associations of hosts: its methods are safe for concurrent use. A
// Queue is one connection, which carries the admin queue or an I/O queue of an association. It consumes bytes through
// Input, issues tasks through Starts, takes completed ones back through Finish in any order, and returns the output as
// Vectors: its own headers and, for reads, the volume's memory itself. Neither does I/O, has a goroutine or reads a
// clock; flash/driver and flash/nvme/server do. flash/nvme/chap authenticates hosts, whose side is flash/nvme/host.
//
// When an association ends, its tasks finish before its host is let in again: the host repeats the writes that were not
// answered, and an old one must not land after a newer one.
//
// The package follows the NVM Express Base Specification 2.0, the NVMe/TCP Transport Specification 1.0 and the NVM
// Command Set Specification 1.0, with the behaviour of Linux where these leave a choice. It leaves out TLS,
// reservations, metadata, fused operations and the other command sets.
package nvme

import (
	"errors"
	"fmt"
	"io"

	"farflash/flash/nbd"
	"farflash/flash/nvme/chap"
	"farflash/flash/nvme/wire"
	"farflash/flash/reply"
)

const (
	// Window is the maximum length of a task and of an R2T, in bytes. Longer commands are split, so that the memory of
	// one command is bounded whatever its length. It is also MAXH2CDATA.
	Window = nbd.Window
	// transfer is MDTS: 4 KiB << transfer is the longest command, 1 MiB.
	transfer    = 8
	maxTransfer = 4096 << transfer
	// MaxNamespace is the highest namespace identifier.
	MaxNamespace = 1024
	// page is the pool's unit of allocation and of atomic writes, in bytes.
	page = 4096
	// errorEntries is the length of a controller's error log.
	errorEntries = wire.ErrorEntries
)

// Namespace is an export as a namespace.
type Namespace struct {
	ID       uint32 // 1 to MaxNamespace; it names the same export for ever
	UUID     [16]byte
	Size     uint64 // bytes; those beyond the last whole block are not visible
	ReadOnly bool
	// Used returns the bytes that are allocated; may be nil, then all are.
	Used func() uint64
	// Inaccessible makes hosts wait with their commands, and complete those that were accepted. They learn it as the
	// state of an ANA group. The export is closed meanwhile.
	Inaccessible bool
	// Open opens the export for one association of a host. It may wait: a driver starts tasks that need it elsewhere,
	// see Task.Waits. The export's Leave and Close may be called on any thread and must not wait.
	Open func(host string) (nbd.Export, error)
}

// Subsystem is a set of namespaces.
type Subsystem struct {
	Name   string   // NVMe qualified name
	Serial string   // at most 20 bytes
	Hosts  []string // names of the hosts that may connect; empty: all
	// Keys are the secrets of the hosts that may connect, by their names; nil: no host must prove who it is.
	Keys       map[string]chap.Keys
	Namespaces []Namespace
}

// Port is an address that a driver listens on.
type Port struct {
	ID      uint16
	Address string // as hosts reach it, for discovery
	Service string
	IPv6    bool
}

// Limits bound the resources of a target's connections.
type Limits struct {
	Controllers int // associations
	Queues      int // I/O queues of an association
	Entries     int // commands outstanding on a queue, at most 1024
	InCapsule   int // bytes of data in a capsule of an I/O queue, a multiple of 16 up to 64 KiB
	Memory      int // bytes of outstanding reads and of R2Ts on a connection, at least Window
	// Queued means that the volumes queue reads and bound what those hold that they have begun: Memory is of R2Ts only.
	Queued bool
}

// DefaultLimits returns limits of 64 associations with 16 queues of 128 commands, 8 KiB in a capsule and 8 MiB for a
// connection.
func DefaultLimits() Limits {
	return Limits{Controllers: 64, Queues: 16, Entries: 128, InCapsule: 8192, Memory: 8 << 20}
}

// Config configures a Target. DefaultConfig returns the defaults.
type Config struct {
	Subsystems      []Subsystem
	Ports           []Port
	Model, Firmware string
	// Block is the size of a block, 512 or 4096 bytes.
	Block int
	// First is the identifier of the first controller, from which the others count. Identifiers must be unique in a
	// subsystem, also if several processes serve it, so a driver draws it at random.
	First  uint16
	Limits Limits
	// Terminate sends a C2HTermReq before a connection is closed for an error of its host. Linux 6.1 can crash when an
	// established connection receives one, so it is off by default; then only connections without an association
	// receive it.
	Terminate bool
	// Health, if set, completes the SMART log, in which the commands and bytes have been counted.
	Health func(*wire.Health)
	// Grace is added to the keep-alive timeout of hosts, and bounds how long a Connect waits for the end of the host's
	// earlier association, in nanoseconds.
	Grace int64
	// Random is the source of challenges; it may be nil if no subsystem has keys.
	Random io.Reader
	// Clock, if set, says in nanoseconds when commands waited for memory (nbd.Task).
	Clock func() int64
}

// DefaultConfig returns a configuration without subsystems.
func DefaultConfig() Config {
	return Config{Model: "Farflash", Firmware: "1", Block: 512, First: 1, Limits: DefaultLimits(), Grace: 5e9}
}

// check completes and verifies a configuration.
func (c *Config) check() error {
	l := &c.Limits
	switch {
	case c.Block != 512 && c.Block != page:
		return fmt.Errorf("nvme: blocks of %d bytes; use 512 or 4096", c.Block)
	case l.InCapsule < 0 || l.InCapsule > 64<<10 || l.InCapsule%16 != 0:
		return fmt.Errorf("nvme: %d bytes in a capsule; use a multiple of 16 up to 65536", l.InCapsule)
	case l.Entries < 2 || l.Entries > 1024:
		return fmt.Errorf("nvme: queues of %d entries; use 2 to 1024", l.Entries)
	case l.Queues < 1 || l.Queues > 1024:
		return fmt.Errorf("nvme: %d I/O queues; use 1 to 1024", l.Queues)
	case len(c.Model) > 40 || len(c.Firmware) > 8:
		return fmt.Errorf("nvme: model %q or firmware %q is longer than 40 or 8 bytes", c.Model, c.Firmware)
	}
	l.Controllers, l.Memory = max(1, l.Controllers), max(Window, l.Memory)
	return nil
}

// checkSubsystem verifies a subsystem.
func (c *Config) checkSubsystem(s *Subsystem) error {
	if !wire.ValidName(s.Name) || s.Name == wire.DiscoveryName {
		return fmt.Errorf("nvme: %q is no name of a subsystem; use nqn.YEAR-MONTH.DOMAIN:NAME", s.Name)
	}
	if len(s.Serial) > 20 {
		return fmt.Errorf("nvme: serial number %q is longer than 20 bytes", s.Serial)
	}
	for _, h := range s.Hosts {
		if !wire.ValidName(h) {
			return fmt.Errorf("nvme: %q is no name of a host", h)
		}
	}
	for h, k := range s.Keys {
		if !wire.ValidName(h) || k.Host.Zero() {
			return fmt.Errorf("nvme: %q is no name of a host, or has no key", h)
		}
	}
	if s.Keys != nil && c.Random == nil {
		return fmt.Errorf("nvme: %s has keys, and there is no source of challenges", s.Name)
	}
	seen := map[uint32]bool{}
	names := map[[16]byte]bool{{}: true}
	for i := range s.Namespaces {
		n := &s.Namespaces[i]
		switch {
		case n.ID < 1 || n.ID > MaxNamespace || seen[n.ID]:
			return fmt.Errorf("nvme: namespace identifier %d of %s is not unique from 1 to %d", n.ID, s.Name,
				MaxNamespace)
		case names[n.UUID]:
			return fmt.Errorf("nvme: UUID %x of namespace %d of %s is zero or not unique", n.UUID, n.ID, s.Name)
		case n.Open == nil:
			return fmt.Errorf("nvme: namespace %d of %s cannot be opened", n.ID, s.Name)
		}
		seen[n.ID], names[n.UUID] = true, true
	}
	return nil
}

// Peer is the driver's side of a connection. Its methods must not block, and are called on any goroutine.
type Peer interface {
	// Wake makes the driver call Turn soon.
	Wake()
	// Gone reports whether the host has closed the connection, even if bytes that it sent before are not read yet.
	Gone() bool
	// String returns the host's address.
	String() string
}

// Task is one operation on a volume. It belongs to the volume from its start to Done.
type Task struct {
	nbd.Task
	space   *space
	command *command
	charge  int
	answer  reply.Output[Task]
	compute func()      // if it is not of a volume: what to compute for the answer
	said    []byte      // the result
	refused wire.Status // why it was not started
}

// Computes reports that the task is not for a volume: it computes an answer, which can take tens of milliseconds. The
// driver calls Compute, not Start.
func (t *Task) Computes() bool { return t.compute != nil }

// Compute executes such a task, up to its Done.
func (t *Task) Compute() {
	t.compute()
	t.Done(&t.Task)
}

// Waits reports that the start of a task can wait, because the export of its namespace is to be opened. The driver then
// starts it where it may.
func (t *Task) Waits() bool { return t.space != nil && !t.space.settled.Load() }

// Start starts tasks of the queue on a thread as in nbd.Task.Loop, those of one volume together. Unlike other calls, it
// need not be serialized.
func (q *Queue) Start(tasks []*Task, loop uint8) {
	batch := q.batch.Swap(nil)
	if batch == nil {
		batch = new([]*nbd.Task)
	}
	for len(tasks) > 0 {
		space, b := tasks[0].space, (*batch)[:0]
		for len(b) < len(tasks) && tasks[len(b)].space == space {
			t := &tasks[len(b)].Task
			t.Loop = loop
			b = append(b, t)
		}
		err := space.open()
		if err != nil {
			for _, t := range tasks[:len(b)] {
				if t.refused = wire.NamespaceNotReady; errors.Is(err, errRemoved) {
					t.refused = wire.InvalidNamespace | wire.NoRetry
				}
				t.Err = nbd.ESHUTDOWN
				t.Done(&t.Task)
			}
		} else {
			space.export.Volume.Start(b)
		}
		tasks = tasks[len(b):]
		clear(b)
		*batch = b
	}
	q.batch.Store(batch)
}

// zeros is the source of zero bytes.
var zeros = make([]byte, 64<<10)

// status converts the error of a task. A loss of data is reported to one Flush only, so it must not be repeated.
func status(t *Task) wire.Status {
	if t.refused != 0 {
		return t.refused
	}
	switch t.Err {
	case 0:
		return wire.Success
	case nbd.ENOSPC:
		return wire.CapacityExceeded | wire.NoRetry
	case nbd.EPERM:
		return wire.WriteProtected | wire.NoRetry
	case nbd.EINVAL:
		return wire.InvalidField | wire.NoRetry
	case nbd.ESHUTDOWN, nbd.ENOMEM:
		return wire.InternalError
	}
	if t.Kind == nbd.Read || t.Kind == nbd.Cache {
		return wire.UnrecoveredRead | wire.NoRetry
	}
	return wire.WriteFault | wire.NoRetry
}
