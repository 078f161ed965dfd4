package workload

import (
	"fmt"
	"math"
	"slices"

	"farflash/block"
	"farflash/numeric/units"
)

// zoned redirects the writes of a source to zones.
type zoned struct {
	src         Source
	z           block.Zones
	first       int64 // zone
	count       int64 // zones
	next        int64 // relative to first: where to look for the next zone to write
	append      bool
	positions   []writePosition
	turn        int
	ready, sent int // before[sent:] records precede write
	before      [3]Record
	clean       bool // the next zone has been reset
	write       Record
	err         error
}

// writePosition is a write position: the zone that it is filling.
type writePosition struct {
	zone int64
	at   int64 // bytes written to the zone
	open bool
}

// Zoned returns a Source whose writes are redirected to zones, whatever their offsets in src. They fill count zones
// starting at zone first, sequentially, rotating among atOnce open zones; a zone without space for a write is finished,
// unless it is full. The next zone to open, the least recently written one, is reset when the previous one is opened,
// so that no write waits for an erase, provided that count exceeds atOnce. With appends, the device chooses the
// position in the zone. Reads and flushes are passed through.
func Zoned(src Source, z block.Zones, first, count, atOnce int, appends bool) Source {
	switch {
	case src == nil:
		return failed{errNil}
	case z.Size <= 0 || z.Capacity <= 0 || z.Capacity > z.Size || z.Count <= 0 || int64(z.Count) > math.MaxInt64/z.Size:
		return failed{fmt.Errorf("workload: %d zones of %d bytes every %d bytes are not possible", z.Count, z.Capacity,
			z.Size)}
	case first < 0 || count < 1 || count > z.Count || first > z.Count-count:
		return failed{fmt.Errorf("workload: zones %d to %d are not possible; there are %d", first, first+count-1,
			z.Count)}
	case atOnce < 1 || atOnce > min(count, block.MostOpenZones):
		return failed{fmt.Errorf("workload: %d zones written at once are not possible; use 1 to %d", atOnce,
			min(count, block.MostOpenZones))}
	}
	return &zoned{src: src, z: z, first: int64(first), count: int64(count), append: appends,
		positions: make([]writePosition, atOnce)}
}

// Next implements Source.
func (s *zoned) Next(r *Record) error {
	if s.err != nil {
		return s.err
	}
	if s.sent == s.ready {
		s.sent, s.ready = 0, 0
		if s.err = s.src.Next(&s.write); s.err != nil {
			return s.err
		}
		if s.write.Op != block.Write {
			*r = s.write
			return nil
		}
		if s.err = s.lay(); s.err != nil {
			return s.err
		}
	}
	if s.sent++; s.sent <= s.ready-1 {
		*r = s.before[s.sent-1]
	} else {
		*r = s.write
	}
	return nil
}

// oldest is the next zone to write: the first one from next on that is not open. Because sizes differ, an open zone may
// lag behind the others.
func (s *zoned) oldest() int64 {
	for slices.ContainsFunc(s.positions, func(l writePosition) bool { return l.open && l.zone == s.first+s.next }) {
		s.next = (s.next + 1) % s.count
	}
	return s.first + s.next
}

// lay assigns the write its position and queues the records that must precede it.
func (s *zoned) lay() error {
	w := &s.write
	if w.Size < 0 {
		return fmt.Errorf("a write of %d bytes is not possible", w.Size)
	}
	if w.Size > s.z.Capacity {
		return fmt.Errorf("a write of %v exceeds the capacity of a zone, %v", units.Bytes(w.Size),
			units.Bytes(s.z.Capacity))
	}
	l := &s.positions[s.turn]
	if s.turn++; s.turn == len(s.positions) {
		s.turn = 0
	}
	about := func(op block.Op, zone int64) {
		s.before[s.ready] = Record{Time: w.Time, Response: NoResponse, Offset: zone * s.z.Size, Volume: w.Volume,
			Op: op}
		s.ready++
	}
	if l.open && w.Size > s.z.Capacity-l.at {
		if l.at < s.z.Capacity {
			about(block.Finish, l.zone)
		}
		l.open = false
	}
	if !l.open {
		*l = writePosition{zone: s.oldest(), open: true}
		if !s.clean {
			about(block.Reset, l.zone)
		}
		if s.clean = s.count > int64(len(s.positions)); s.clean {
			about(block.Reset, s.oldest())
		}
	}
	w.Offset = l.zone * s.z.Size
	if w.Append = s.append; !s.append {
		w.Offset += l.at
	}
	l.at += w.Size
	s.ready++
	return nil
}
