// Package ctl is the flash controller: it presents one or more devices as a thin, byte-addressed space of 2^64 bytes.
// Writes are log-structured, a reader never sees a mix of two versions of a page, and a write is reported durable only
// once it is.
//
// The main types are Pool (the space: Get and Put of pages with callbacks, ReadAt, WriteAt, Trim, Flush, Check, Close),
// Config, and Report, the result of Check. Format creates a pool on empty devices; Open opens an existing one, after a
// clean shutdown or a crash.
//
// The policy lives in state machines that use no goroutine, clock or I/O: package table (the states of a page), heat
// (streams), ftl (allocation and collection, the same code that the simulated drive runs), media (the on-disk format),
// and core here, which handles requests and completions one at a time and queues the operations to submit and the
// callbacks to run. Pool is the shell around core: a lock, the execution of those lists after the lock is released, and
// a lock-free path for pages that are in memory.
//
// It leaves out the network, names and permissions, encryption, replicas and snapshots. Losing a device loses the pool.
//
// It follows FlashNet (Trivedi et al., ACM TOS 14(4), 2018), sections 3.2 and 4.2. docs/adr/0016-flash-controller.md
// records where it differs and why, and argues which writes survive a crash.
package ctl

import (
	"errors"
	"fmt"

	"farflash/flash/ctl/heat"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
	"farflash/policy/ftl"
)

// Page is the size of a page, in bytes.
const Page = media.Grain

// Errors that callers may want to distinguish. The device's own error is wrapped with them.
var (
	ErrFull     = errors.New("the pool is full")
	ErrReadOnly = errors.New("the pool is read-only because a write or a flush failed")
	ErrDamaged  = errors.New("the content does not match its checksum")
	ErrRange    = errors.New("beyond the address space")
	ErrClosed   = errors.New("the pool is closed")
	ErrLogFull  = errors.New(
		"the devices are behind: the log has no space for more outstanding address changes")
)

// Config holds a pool's run-time settings. The on-disk layout is a Layout and is fixed when the pool is formatted.
type Config struct {
	Frames int // pages of memory shared by devices and users, at least 8
	Chunk  int // pages per write, at least 1
	// writes being filled or in flight at once, at least 8. Besides the frames, up to Writes times Chunk pages of
	// memory buffer them.
	Writes int
	// pages that collection moves at once, at least 1. More than one chunk's worth lets reads overlap writes.
	Moves     int
	Victim    ftl.Victim  // how the segment to collect is chosen
	Heat      heat.Policy // how pages are assigned to streams
	Unflushed int         // changes of the mapping after which the devices are flushed though nobody waits, at least 1
	Retries   int         // attempts to place a failed write elsewhere, or to repeat a write of a log page
	// Trouble, if set, is called for each operation of a device that fails for good, and each page that is found
	// damaged, on the completion path: it must not block.
	Trouble func(Trouble)
	// LaneFrames are the frames that each lane (GetOn) keeps idle for the pages that it reads from the devices, at most
	// 1024, and fewer where many lanes share few frames; they are taken back when others run short. With 0, and when a
	// lane has none left, a read takes the pool's lock.
	LaneFrames int
	// Map is the memory, in bytes, for what can be kept in less: slots of pages in order, and checksums that are on the
	// devices too. 0 is no limit. Where both take more, they are folded and dropped; what cannot be stays.
	Map int64
	// Budget, if its Memory is set, is divided by Open, which sets Frames and Map.
	Budget Budget
	// PutThrough releases a frame as soon as it is written, as FlashNet's prototype does. Otherwise frames stay cached
	// until they are needed.
	PutThrough bool
}

// DefaultConfig returns 64 MiB of frames and up to 32 concurrent writes of 128 KiB, over three streams.
func DefaultConfig() Config {
	return Config{Frames: 16384, Chunk: 32, Writes: 32, Moves: 128, Victim: ftl.CostAge, Heat: heat.Default(),
		Unflushed: 16384, Retries: 3, LaneFrames: 64, Map: 256 << 20}
}

// mostFrames bounds a pool's memory to 256 GiB. A table.Word has bits for four times as many frames.
const mostFrames = 1 << 26

// leastWrites is one write for each stream plus a few in flight.
const leastWrites = int(heat.Streams) + 5

// Validate reports the first setting of c that is out of range.
func (c Config) Validate() error {
	switch {
	case c.Frames < 8 || c.Frames > mostFrames:
		return fmt.Errorf("ctl: %d frames; use 8 to %d", c.Frames, mostFrames)
	case c.Chunk < 1 || c.Chunk > 1024:
		return fmt.Errorf("ctl: writes of %d pages; use 1 to 1024", c.Chunk)
	case c.Writes < leastWrites || c.Writes > 1024:
		return fmt.Errorf("ctl: %d concurrent writes; use %d to 1024", c.Writes, leastWrites)
	case c.Moves < 1 || c.Moves > 1024:
		return fmt.Errorf("ctl: %d concurrent moves; use 1 to 1024", c.Moves)
	case c.Unflushed < 1:
		return fmt.Errorf("ctl: a flush after %d changes; use 1 or more", c.Unflushed)
	case c.LaneFrames < 0 || c.LaneFrames > 1024:
		return fmt.Errorf("ctl: %d frames a lane; use 0 to 1024", c.LaneFrames)
	case c.Map < 0:
		return fmt.Errorf("ctl: %d bytes for the map; use 0 for no limit, or more", c.Map)
	case c.Retries < 0 || c.Retries > 100:
		return fmt.Errorf("ctl: %d retries; use 0 to 100", c.Retries)
	case !(c.Heat.Weight > 0 && c.Heat.Weight <= 1) || c.Heat.Hot < 0 || c.Heat.Warm < c.Heat.Hot:
		return fmt.Errorf("ctl: streams divided at %v and %v with weight %v; use limits of 0 or more in increasing "+
			"order, and a weight above 0 and up to 1", c.Heat.Hot, c.Heat.Warm,
			c.Heat.Weight)
	}
	return nil
}

// Layout is the on-disk layout that a pool is formatted with.
type Layout struct {
	UUID    media.UUID // names the pool; must be unique
	Segment int        // pages per segment
	// pages in all segments over pages that may be in use, minus 1. At least five segments are held back regardless.
	OverProvision float64
	LogPages      int64 // 0: 1/64 of the first device, at least 8 pages and at most 1 GiB
}

// DefaultLayout returns segments of 8 MiB and 12.5 % over-provisioning.
func DefaultLayout() Layout { return Layout{Segment: 2048, OverProvision: 0.125} }

// Shape returns the layout on devices of the given sizes in bytes.
func (l Layout) Shape(sizes ...int64) (media.Shape, error) {
	s := media.Shape{UUID: l.UUID, Pages: l.Segment, LogPages: l.LogPages, Capacity: 1}
	for _, n := range sizes {
		s.Grains = append(s.Grains, n/Page)
	}
	if s.LogPages == 0 && len(sizes) > 0 {
		s.LogPages = defaultLog(s.Grains[0])
	}
	if err := s.Check(); err != nil {
		return s, fmt.Errorf("ctl: %w", err)
	}
	if !(l.OverProvision >= 0 && l.OverProvision < 1000) {
		return s, fmt.Errorf("ctl: over-provisioning of %v; use 0.07 or more", l.OverProvision)
	}
	s.Capacity = min(int64(float64(s.AllSegments()*int64(s.Pages))/(1+l.OverProvision)), s.MostCapacity())
	if err := s.Check(); err != nil {
		return s, fmt.Errorf("ctl: %w", err)
	}
	return s, nil
}

// defaultLog returns the number of log pages of a pool whose first device has that many grains.
func defaultLog(grains int64) int64 { return min(max(grains/64, 8), 1<<18) }

// Format creates an empty pool. The devices' contents are lost.
func Format(shape media.Shape, devices ...device.Device) error {
	if err := shape.Check(); err != nil {
		return fmt.Errorf("ctl: %w", err)
	}
	if len(devices) != len(shape.Grains) {
		return fmt.Errorf("ctl: %d devices given; the pool has %d", len(devices), len(shape.Grains))
	}
	page := device.Aligned(Page)
	// Invalidate the checkpoints of a previous pool first: neither slot is valid until the new checkpoint is written.
	for slot := range 2 {
		for copy := range int64(media.Headers) {
			if err := device.Do(devices[0], device.Write, (shape.CheckpointStart(slot)+copy)*Page, page); err != nil {
				return fmt.Errorf("ctl: formatting: %w", err)
			}
		}
	}
	body := media.Body{
		Segments: make([]media.Segment, shape.AllSegments()), Pages: shape.Pages, // all erased: no entries
	}
	if err := writeCheckpoint(shape, devices, &body, nil, nil,
		media.Header{Generation: 1, Next: 1, Record: 1, Clean: true}); err != nil {
		return fmt.Errorf("ctl: formatting: %w", err)
	}
	// The superblocks are last, so that an interrupted Format leaves no pool that Open accepts.
	for d, dev := range devices {
		shape.EncodeSuperblock(page, d)
		for at := range int64(2) {
			if err := device.Do(dev, device.Write, at*Page, page); err != nil {
				return fmt.Errorf("ctl: formatting device %d: %w", d, err)
			}
		}
		if err := device.Do(dev, device.Flush, 0, nil); err != nil {
			return fmt.Errorf("ctl: formatting device %d: %w", d, err)
		}
	}
	return nil
}

// flushAll flushes the devices of a pool one after the other.
func flushAll(devices []device.Device) error {
	for d, dev := range devices {
		if err := device.Do(dev, device.Flush, 0, nil); err != nil {
			return fmt.Errorf("device %d: %w", d, err)
		}
	}
	return nil
}

// writeCheckpoint writes and flushes a checkpoint of a body whose entries it gets from entries, segment by segment.
// It waits for each step. All devices are flushed before the header is written, so that everything the checkpoint
// refers to is durable before it takes effect.
//
// complete is called before entries from grain i on are written, if it is set.
func writeCheckpoint(shape media.Shape, devices []device.Device, body *media.Body,
	entries func(segment int64, to []media.Entry), complete func(i, from, to int64) error, h media.Header) error {
	body.Entries = make([][]media.Entry, len(body.Segments))
	first := devices[0]
	at := shape.CheckpointStart(int(h.Generation & 1))
	n := media.BodyPages(int64(len(body.Segments)), shape.Pages)
	buf := device.Aligned(bodyChunk * Page)
	for i := int64(0); i < n; i += media.Group {
		if !body.Holds(i) {
			continue
		}
		from, to := body.Span(i)
		for s := from; s < to; s++ {
			if body.Entries[s] == nil && body.Segments[s].Use != media.Erased {
				body.Entries[s] = make([]media.Entry, shape.Pages)
				entries(s, body.Entries[s])
			}
		}
		clear(body.Entries[:from])
		if complete != nil {
			if err := complete(i, from, to); err != nil {
				return err
			}
		}
		group := encodeGroup(buf, body, i, n, shape.UUID, h.Generation)
		if err := device.Do(first, device.Write, (at+media.BodyGrain(i))*Page, group); err != nil {
			return err
		}
	}
	if err := flushAll(devices); err != nil {
		return err
	}
	if err := device.Do(first, device.Write, at*Page, encodeHeaders(buf, &h, shape.UUID)); err != nil {
		return err
	}
	return device.Do(first, device.Flush, 0, nil)
}
