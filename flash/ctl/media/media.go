// Package media defines the on-disk format of a flash controller's pool: the superblock, the log of mapping changes,
// the checkpoint, and the segments with their summaries. It encodes and decodes, and does no I/O.
//
// Its main types are Shape (the layout, which the superblock stores), LogPage with Record, Header and Body (a
// checkpoint), and Summary. All integers are little-endian. Every structure carries the pool's UUID and a CRC-32C that
// is seeded with the UUID, so that a structure of another pool, of an earlier pool on the same device, or of another
// location is never accepted. A decoder trusts no field before the checksum matches, and takes no bound from the data.
//
// It leaves out when structures are written and how recovery interprets them (package ctl,
// docs/adr/0016-flash-controller.md).
package media

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Grain is the unit of all writes, in bytes.
const Grain = 4096

// UUID names a pool.
type UUID [16]byte

func (u UUID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// Limits of a Shape.
const (
	maxDevices  = 64
	maxPages    = 1 << 16 // data grains per segment
	maxSegments = 1 << 30
	MaxLBA      = 1 << 52 // grains of the logical space: 2^64 bytes
)

// ErrForeign is returned for a structure that is not a valid one of this pool: empty, torn, corrupt, or another pool's.
// Errors wrap it and name the case.
var ErrForeign = errors.New("damaged, or not part of this pool")

func foreign(what string, why string) error { return fmt.Errorf("%s: %s: %w", what, why, ErrForeign) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Seed is the CRC of the UUID, with which all checksums of the pool start.
func (u UUID) Seed() uint32 { return crc32.Checksum(u[:], castagnoli) }

// Sum returns the checksum of a grain's content in the pool with this seed.
func Sum(seed uint32, content []byte) uint32 { return crc32.Update(seed, castagnoli, content) }

// Shape is the layout of a pool. Device 0 has two superblocks, two checkpoint slots, the log and segments; the others
// have two superblocks and segments.
type Shape struct {
	UUID     UUID
	Grains   []int64 // of each device
	Pages    int     // data grains per segment; its summary follows them
	LogPages int64   // of the log, a ring
	Capacity int64   // pages that may be in use at once; the rest is over-provisioning
}

// SummaryGrains returns the size of a segment's summary, in grains.
func (s *Shape) SummaryGrains() int { return (summaryHeader + 12*s.Pages + Grain - 1) / Grain }

// segmentsAfter returns the number of segments that fit into a device's grains from start on.
func (s *Shape) segmentsAfter(grains, start int64) int64 {
	return max(0, grains-start) / int64(s.Pages+s.SummaryGrains())
}

// Start returns the first grain of a device's segments.
func (s *Shape) Start(device int) int64 {
	if device > 0 {
		return 2
	}
	return s.LogStart() + s.LogPages
}

// checkpointGrains returns the size of a checkpoint slot: for the most segments that the devices could have.
func (s *Shape) checkpointGrains() int64 {
	segments := int64(0)
	for _, n := range s.Grains {
		segments += s.segmentsAfter(n, 2)
	}
	return slotGrains(BodyPages(segments, s.Pages))
}

// CheckpointStart returns the first grain of one of the two checkpoint slots.
func (s *Shape) CheckpointStart(slot int) int64 { return 2 + int64(slot)*s.checkpointGrains() }

// LogStart returns the first grain of the log.
func (s *Shape) LogStart() int64 { return 2 + 2*s.checkpointGrains() }

// segments returns the number of segments on a device.
func (s *Shape) segments(device int) int64 {
	return s.segmentsAfter(s.Grains[device], s.Start(device))
}

// AllSegments returns the number of segments in the pool.
func (s *Shape) AllSegments() int64 {
	n := int64(0)
	for d := range s.Grains {
		n += s.segments(d)
	}
	return n
}

// Place returns the device and byte offset at which a segment begins.
func (s *Shape) Place(segment int64) (device int, offset int64) {
	for d := range s.Grains {
		n := s.segments(d)
		if segment < n {
			return d, (s.Start(d) + segment*int64(s.Pages+s.SummaryGrains())) * Grain
		}
		segment -= n
	}
	return -1, 0
}

// MostCapacity returns the highest valid Capacity. It holds back five segments: one for each stream, and two for
// collection.
func (s *Shape) MostCapacity() int64 { return (s.AllSegments() - 5) * int64(s.Pages) }

// Check reports the first invalid setting of a shape.
func (s *Shape) Check() error {
	switch {
	case len(s.Grains) < 1 || len(s.Grains) > maxDevices:
		return fmt.Errorf("%d devices; a pool has 1 to %d", len(s.Grains), maxDevices)
	case s.Pages < 8 || s.Pages > maxPages:
		return fmt.Errorf("segments of %d pages; use 8 to %d", s.Pages, maxPages)
	case s.LogPages < 8 || s.LogPages > 1<<32:
		return fmt.Errorf("log of %d pages; use 8 or more", s.LogPages)
	}
	for d, n := range s.Grains {
		if n < 4 || n > 1<<44 {
			return fmt.Errorf("device %d has %d grains; use 4 to %d", d, n, int64(1)<<44)
		}
	}
	if n := s.AllSegments(); n < 10 || n > maxSegments {
		return fmt.Errorf("the log and the checkpoints leave %d segments of %d pages; a pool needs 10 to %d", n,
			s.Pages, maxSegments)
	}
	if most := s.MostCapacity(); s.Capacity < 1 || s.Capacity > most {
		return fmt.Errorf("capacity of %d pages; use 1 to %d, which keeps five segments in reserve", s.Capacity, most)
	}
	return nil
}

// seal stores the checksum of one or more grains in their second word, and returns it.
func seal(seed uint32, page []byte) uint32 {
	binary.LittleEndian.PutUint32(page[4:], 0)
	sum := Sum(seed, page)
	binary.LittleEndian.PutUint32(page[4:], sum)
	return sum
}

// sealed reports whether the checksum in the second word matches. It does not modify page.
func sealed(seed uint32, page []byte) bool {
	var zero [4]byte
	sum := Sum(seed, page[:4])
	sum = Sum(sum, zero[:])
	return Sum(sum, page[8:]) == binary.LittleEndian.Uint32(page[4:])
}

// Magic numbers, the first word of every structure.
const (
	magicSuper      = 0x46465342 // FFSB
	magicLog        = 0x46464c47 // FFLG
	magicCheckpoint = 0x46464350 // FFCP
	magicBody       = 0x46464342 // FFCB
	magicSummary    = 0x46465355 // FFSU
	magicLeaves     = 0x46464c54 // FFLT
	magicIndex      = 0x46464958 // FFIX

	// Version is that of the layout of a pool. 2: log records can move pages; 3: log and checkpoints survive the loss
	// of a grain.
	Version = 3
)

var le = binary.LittleEndian

// EncodeSuperblock writes a device's superblock into a grain.
func (s *Shape) EncodeSuperblock(page []byte, device int) {
	clear(page)
	le.PutUint32(page, magicSuper)
	le.PutUint16(page[8:], Version)
	le.PutUint16(page[10:], uint16(device))
	le.PutUint16(page[12:], uint16(len(s.Grains)))
	copy(page[16:], s.UUID[:])
	le.PutUint64(page[32:], uint64(s.Pages))
	le.PutUint64(page[40:], uint64(s.LogPages))
	le.PutUint64(page[48:], uint64(s.Capacity))
	for d, n := range s.Grains {
		le.PutUint64(page[64+8*d:], uint64(n))
	}
	seal(s.UUID.Seed(), page[:Grain])
}

// DecodeSuperblock reads a superblock and returns the layout and the device's index.
func DecodeSuperblock(page []byte) (s Shape, device int, err error) {
	if len(page) != Grain || le.Uint32(page) != magicSuper {
		return s, 0, foreign("superblock", "missing")
	}
	copy(s.UUID[:], page[16:])
	if !sealed(s.UUID.Seed(), page) {
		return s, 0, foreign("superblock", "checksum mismatch")
	}
	if v := le.Uint16(page[8:]); v != Version {
		return s, 0, fmt.Errorf("superblock: layout %d; this program supports %d: copy the data with the program that "+
			"made the pool", v, Version)
	}
	device = int(le.Uint16(page[10:]))
	n := int(le.Uint16(page[12:]))
	if n < 1 || n > maxDevices || device >= n {
		return s, 0, fmt.Errorf("superblock: invalid device number %d of %d", device, n)
	}
	s.Pages, s.LogPages, s.Capacity = int(le.Uint64(page[32:])), int64(le.Uint64(page[40:])),
		int64(le.Uint64(page[48:]))
	for d := range n {
		s.Grains = append(s.Grains, int64(le.Uint64(page[64+8*d:])))
	}
	if err := s.Check(); err != nil {
		return s, 0, fmt.Errorf("superblock: %w", err)
	}
	return s, device, nil
}
