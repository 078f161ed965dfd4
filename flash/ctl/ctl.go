// Package ctl is the flash controller: it makes one or several devices a thin, byte-addressed space of 2^64 bytes
// that is written log-structured, never mixes two versions of a page, and says of a write that it is durable only
// when it is.
//
// The main types are Pool (the space: Get and Put of pages with callbacks, ReadAt, WriteAt, Trim, Flush, Check,
// Close), Config, and Report, what Check finds. Format makes a pool on empty devices, Open finds one, after a clean
// end or a crash.
//
// The policy is in state machines that know no goroutine, clock or I/O: package table (the states of a page), heat
// (streams), ftl (allocation and collection, the code that the simulated drive runs), media (what lies on the
// devices), and core here, which takes requests and completions one at a time and puts what is to be submitted and
// whom to call on lists. Pool is the shell around it: a lock, the lists carried out after it is released, and the way
// past it for pages that are in memory.
//
// What it leaves out: the network, names and permissions, encryption, replicas, snapshots; a device that is lost is a
// pool that is lost.
//
// It follows FlashNet (Trivedi et al., ACM TOS 14(4), 2018), sections 3.2 and 4.2; docs/adr/0016-flash-controller.md
// says where it differs and why, and has the argument for what survives a crash.
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

// Errors that callers may want to tell apart. What a device said is wrapped beside them.
var (
	ErrFull     = errors.New("the pool is full")
	ErrReadOnly = errors.New("the pool is read-only since a write or a flush failed")
	ErrDamaged  = errors.New("the content does not have the checksum that it was written with")
	ErrRange    = errors.New("beyond the address space")
	ErrClosed   = errors.New("the pool is closed")
	ErrBehind   = errors.New(
		"the devices are behind: more changes of addresses are under way than the log has room for")
)

// Config is how a pool is used. What it is laid out like is a Layout, and given once.
type Config struct {
	Frames int // pages of memory that devices and users share, at least 8
	Chunk  int // pages that are written at once, at least 1
	// writes that are filled or under way at once, at least 8: so many times Chunk is also what waits in memory
	// beside the frames
	Writes int
	// pages that collection has under way at once, at least 1; of several chunks, so that some are read while others
	// are written
	Moves   int
	Victim  ftl.Victim  // how the segment to collect is chosen
	Heat    heat.Policy // how pages are divided into streams
	Retries int         // how often a write that failed is tried elsewhere, or a log page again
	// PutThrough gives frames back as soon as they are written, as FlashNet's prototype does; without it they are
	// kept until they are needed.
	PutThrough bool
}

// DefaultConfig is 64 MiB of frames, writes of 128 KiB, 32 at once, three streams.
func DefaultConfig() Config {
	return Config{Frames: 16384, Chunk: 32, Writes: 32, Moves: 128, Victim: ftl.CostAge, Heat: heat.Default(),
		Retries: 3}
}

// leastWrites are one for each stream, and some that are under way meanwhile.
const leastWrites = int(heat.Streams) + 5

// Validate says what is wrong with c.
func (c Config) Validate() error {
	switch {
	case c.Frames < 8 || c.Frames > 1<<26:
		return fmt.Errorf("ctl: %d frames; use 8 to %d", c.Frames, 1<<26)
	case c.Chunk < 1 || c.Chunk > 1024:
		return fmt.Errorf("ctl: writes of %d pages; use 1 to 1024", c.Chunk)
	case c.Writes < leastWrites || c.Writes > 1024:
		return fmt.Errorf("ctl: %d writes at once; use %d to 1024", c.Writes, leastWrites)
	case c.Moves < 1 || c.Moves > 1024:
		return fmt.Errorf("ctl: %d moves at once; use 1 to 1024", c.Moves)
	case c.Retries < 0 || c.Retries > 100:
		return fmt.Errorf("ctl: %d retries; use 0 to 100", c.Retries)
	case !(c.Heat.Weight > 0 && c.Heat.Weight <= 1) || c.Heat.Hot < 0 || c.Heat.Warm < c.Heat.Hot:
		return fmt.Errorf("ctl: streams divided at %v and %v with a weight of %v", c.Heat.Hot, c.Heat.Warm,
			c.Heat.Weight)
	}
	return nil
}

// Layout is how a pool is laid out when it is formatted.
type Layout struct {
	UUID    media.UUID // names the pool; two must not have the same
	Segment int        // pages of a segment
	// segments' pages over pages that may be in use, less 1; at least five segments are kept back whatever it says
	OverProvision float64
	LogPages      int64 // 0: a 64th of the first device, 16 MiB at most 1 GiB
}

// DefaultLayout is segments of 8 MiB and 12.5 % of over-provisioning.
func DefaultLayout() Layout { return Layout{Segment: 2048, OverProvision: 0.125} }

// Shape is the layout on devices of so many bytes.
func (l Layout) Shape(sizes ...int64) (media.Shape, error) {
	s := media.Shape{UUID: l.UUID, Pages: l.Segment, LogPages: l.LogPages, Capacity: 1}
	for _, n := range sizes {
		s.Grains = append(s.Grains, n/Page)
	}
	if s.LogPages == 0 && len(sizes) > 0 {
		s.LogPages = min(max(s.Grains[0]/64, 8), 1<<18)
	}
	if err := s.Check(); err != nil {
		return s, fmt.Errorf("ctl: %w", err)
	}
	if !(l.OverProvision >= 0 && l.OverProvision < 1000) {
		return s, fmt.Errorf("ctl: an over-provisioning of %v; use 0.07 or more", l.OverProvision)
	}
	s.Capacity = min(int64(float64(s.AllSegments()*int64(s.Pages))/(1+l.OverProvision)), s.MostCapacity())
	if err := s.Check(); err != nil {
		return s, fmt.Errorf("ctl: %w", err)
	}
	return s, nil
}

// Format makes an empty pool. What was on the devices is gone.
func Format(shape media.Shape, devices ...device.Device) error {
	if err := shape.Check(); err != nil {
		return fmt.Errorf("ctl: %w", err)
	}
	if len(devices) != len(shape.Grains) {
		return fmt.Errorf("ctl: %d devices for a pool of %d", len(devices), len(shape.Grains))
	}
	page := device.Aligned(Page)
	// What another pool left is made unrecognisable first: neither checkpoint is one until the new one is.
	for slot := range 2 {
		if err := device.Do(devices[0], device.Write, shape.CheckpointStart(slot)*Page, page); err != nil {
			return fmt.Errorf("ctl: formatting: %w", err)
		}
	}
	body := media.Body{
		Segments: make([]media.Segment, shape.AllSegments()),
		Entries:  make([]media.Entry, shape.AllSegments()*int64(shape.Pages)), Pages: shape.Pages,
	}
	if err := writeCheckpoint(shape, devices, &body,
		media.Header{Generation: 1, Next: 1, Record: 1, Clean: true}); err != nil {
		return fmt.Errorf("ctl: formatting: %w", err)
	}
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

// flushAll flushes the devices of a pool, one after the other.
func flushAll(devices []device.Device) error {
	for d, dev := range devices {
		if err := device.Do(dev, device.Flush, 0, nil); err != nil {
			return fmt.Errorf("device %d: %w", d, err)
		}
	}
	return nil
}

// writeCheckpoint writes and flushes a checkpoint, waiting for each step. What it leads to is on all devices: they
// are flushed before it is in force.
func writeCheckpoint(shape media.Shape, devices []device.Device, body *media.Body, h media.Header) error {
	first := devices[0]
	at := shape.CheckpointStart(int(h.Generation & 1))
	n := media.BodyPages(int64(len(body.Segments)), shape.Pages)
	const most = 64
	buf := device.Aligned(most * Page)
	for i := int64(0); i < n; {
		k := min(most, n-i)
		for j := range k {
			body.EncodePage(buf[j*Page:][:Page], i+j, shape.UUID, h.Generation)
		}
		if err := device.Do(first, device.Write, (at+1+i)*Page, buf[:k*Page]); err != nil {
			return err
		}
		i += k
	}
	if err := flushAll(devices); err != nil {
		return err
	}
	h.Encode(buf[:Page], shape.UUID)
	if err := device.Do(first, device.Write, at*Page, buf[:Page]); err != nil {
		return err
	}
	return device.Do(first, device.Flush, 0, nil)
}
