package remains

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"farflash/flash/ctl/media"
	"farflash/flash/device"
)

// ErrUnknown is the error for devices whose layout cannot be found without their superblocks.
var ErrUnknown = errors.New("the superblocks are lost, and the other records do not show the layout")

// superblock reads a device's superblock; the second copy serves if the first is damaged.
func superblock(d device.Device) (own media.Shape, index int, err error) {
	page := device.Aligned(device.Grain)
	for at := range int64(2) {
		if err = device.Do(d, device.Read, at*device.Grain, page); err == nil {
			own, index, err = media.DecodeSuperblock(page)
		}
		if err == nil {
			break
		}
	}
	return own, index, err
}

// Arrange reads the superblocks of a pool's devices, which can be given in any order, and returns the layout and the
// devices in the pool's order.
func Arrange(devices []device.Device) (media.Shape, []device.Device, error) {
	var shape media.Shape
	sorted := make([]device.Device, 0, len(devices))
	for i, d := range devices {
		own, index, err := superblock(d)
		switch {
		case err != nil:
			return shape, nil, fmt.Errorf("ctl: given device %d: %w", i, err)
		case i == 0:
			shape = own
			sorted = make([]device.Device, len(own.Grains))
		case own.UUID != shape.UUID:
			return shape, nil, fmt.Errorf("ctl: given device %d belongs to pool %v, but the first to pool %v", i,
				own.UUID, shape.UUID)
		}
		switch {
		case sorted[index] != nil:
			return shape, nil, fmt.Errorf("ctl: two of the given devices are number %d of pool %v", index, shape.UUID)
		case d.Size() < shape.Grains[index]*device.Grain:
			return shape, nil, fmt.Errorf("ctl: device %d of pool %v has shrunk to %d bytes from %d", index, shape.UUID,
				d.Size(), shape.Grains[index]*device.Grain)
		}
		sorted[index] = d
	}
	if missing := slices.Index(sorted, nil); len(devices) == 0 || missing >= 0 {
		return shape, nil, fmt.Errorf("ctl: pool %v has %d devices; number %d is missing", shape.UUID,
			len(shape.Grains), missing)
	}
	return shape, sorted, nil
}

// Rearrange is Arrange for devices of which one has lost its superblocks. The others have its place, and a pool of one
// device shows its layout by the positions of its records, as Guess finds it.
func Rearrange(devices []device.Device, over float64, logPages func(int64) int64) (media.Shape, []device.Device,
	error) {
	s, sorted, why := Arrange(devices)
	if !errors.Is(why, media.ErrForeign) {
		return s, sorted, why
	}
	if len(devices) == 1 {
		s, err := Guess(devices[0], over, logPages)
		if err != nil {
			return s, nil, errors.Join(why, fmt.Errorf("ctl: %w", err))
		}
		return s, devices, nil
	}
	lost := -1
	for i, d := range devices {
		own, _, err := superblock(d)
		switch {
		case err == nil:
			s = own
		case lost >= 0:
			return s, nil, why
		default:
			lost = i
		}
	}
	sorted = make([]device.Device, len(s.Grains))
	for _, d := range devices {
		if own, index, err := superblock(d); err == nil && own.UUID == s.UUID {
			sorted[index] = d
		}
	}
	index := slices.Index(sorted, nil)
	if index < 0 || devices[lost].Size() < s.Grains[index]*device.Grain {
		return s, nil, why
	}
	sorted[index] = devices[lost]
	if slices.Contains(sorted, nil) {
		return s, nil, why
	}
	// A repair will write to it, so it must be of the pool.
	if err := (&Pool{Shape: s, Devices: sorted}).Belongs(index); err != nil {
		return s, nil, errors.Join(why, fmt.Errorf("ctl: %w", err))
	}
	return s, sorted, nil
}

// clue is a record of a pool found on a device, with its evidence of the layout.
type clue struct {
	at       int64 // grain
	odd      bool  // of a checkpoint: of an odd generation, which is in the second slot
	from     int64 // of a checkpoint: grains from the start of its slot; 0 or 1 for a header
	log      uint64
	segment  int64
	pages    int // of a summary: places of the segment
	isLog    bool
	isCheck  bool
	isHeader bool
}

// Guess finds the layout of a pool on one device of which both superblocks are lost, from the positions of its other
// records. The capacity is not recorded elsewhere: it is the one that over gives as the share of over-provisioning.
func Guess(dev device.Device, over float64, logPages func(grains int64) int64) (media.Shape, error) {
	grains := dev.Size() / device.Grain
	p := &Pool{Shape: media.Shape{Grains: []int64{grains}}, Devices: []device.Device{dev}}
	clues := p.clues()
	if len(clues) == 0 {
		return p.Shape, ErrUnknown
	}
	var sizes []int
	for _, c := range clues {
		if c.pages > 0 {
			sizes = []int{c.pages}
			break
		}
	}
	for n := 8; len(sizes) < 14 && n <= 1<<16 && (len(sizes) == 0 || sizes[0] == 8); n *= 2 {
		sizes = append(sizes, n)
	}
	for _, n := range sizes {
		s := p.Shape
		s.Pages, s.Capacity, s.LogPages = n, 1, logPages(grains)
		for _, c := range clues {
			if c.pages > 0 {
				s.LogPages = c.at - c.segment*int64(n+s.SummaryGrains()) - int64(n) - s.LogStart()
				break
			}
		}
		if s.Check() != nil {
			continue
		}
		if slices.ContainsFunc(clues, func(c clue) bool { return !c.fits(&s) }) {
			continue
		}
		s.Capacity = max(1, min(int64(float64(s.AllSegments()*int64(s.Pages))/(1+over)), s.MostCapacity()))
		if (&Pool{Shape: s, Devices: p.Devices}).convincing() {
			return s, s.Check()
		}
	}
	return p.Shape, ErrUnknown
}

// convincing reports whether the content of places that the log wrote last is where the layout has them. Some may have
// been written again since.
func (p *Pool) convincing() bool {
	log, _, _ := p.Log()
	buf := device.Aligned(device.Grain)
	tried, right := 0, 0
	for _, n := range slices.Backward(slices.Sorted(maps.Keys(log))) {
		for _, r := range log[n].Records {
			if r.Kind != media.Write || tried >= 64 {
				continue
			}
			tried++
			d, at := p.Shape.Place(int64(r.PPA) / int64(p.Shape.Pages))
			if d < 0 {
				continue
			}
			at += int64(r.PPA) % int64(p.Shape.Pages) * device.Grain
			if device.Do(p.Devices[d], device.Read, at, buf) == nil && media.Sum(p.Shape.UUID.Seed(), buf) == r.Sum {
				right++
			}
		}
	}
	return right > tried/2
}

// fits reports whether a record lies where it does in this layout.
func (c *clue) fits(s *media.Shape) bool {
	switch {
	case c.isLog:
		return c.at == s.LogStart()+int64(c.log%uint64(s.LogPages))
	case c.isCheck:
		slot := 0
		if c.odd {
			slot = 1
		}
		first := s.CheckpointStart(slot)
		if c.at-c.from == first || c.isHeader && c.at-1 == first {
			return true
		}
		// A parity of an odd number of grains has a valid checksum too.
		all := media.BodyPages(s.AllSegments(), s.Pages)
		k := c.at - first - media.Headers
		return !c.isHeader && (k%(media.Group+1) == media.Group || k+media.Headers == media.BodyGrain(all-1)+1)
	}
	_, at := s.Place(c.segment)
	return at/device.Grain+int64(s.Pages) == c.at
}

// clues returns the records in the part of a device where its checkpoints, its log and its first segments are. They are
// of one pool: that of the first.
func (p *Pool) clues() (out []clue) {
	grains := p.Shape.Grains[0]
	upto := min(grains, max(grains/16, 1<<16))
	var u media.UUID
	enough := 0 // summaries
	p.Span(2, upto-2, func(i int64, page []byte) {
		if page == nil || enough > 4 {
			return
		}
		own := media.UUID(page[8:24])
		if len(out) > 0 && own != u {
			return
		}
		at := i + 2
		c, ok := p.clueOf(page, at, own)
		if !ok {
			return
		}
		if u, out = own, append(out, c); c.pages > 0 {
			enough++
		}
	})
	p.Shape.UUID = u
	return out
}

func (p *Pool) clueOf(page []byte, at int64, u media.UUID) (clue, bool) {
	le := binary.LittleEndian
	if l, _, err := media.DecodeLogPage(page, u); err == nil {
		return clue{at: at, isLog: true, log: l.Number}, true
	}
	if h, err := media.DecodeHeader(page, u); err == nil {
		return clue{at: at, isCheck: true, isHeader: true, odd: h.Generation&1 == 1}, true
	}
	index := int64(le.Uint64(page[32:]))
	if index >= 0 && index < 1<<40 {
		if g, err := media.Generation(page, index, u); err == nil {
			return clue{at: at, isCheck: true, odd: g&1 == 1, from: media.BodyGrain(index)}, true
		}
	}
	n := int(le.Uint32(page[60:]))
	s := media.Shape{Pages: n}
	if n < 8 || n > 1<<16 || at+int64(s.SummaryGrains()) > p.Shape.Grains[0] {
		return clue{}, false
	}
	buf := device.Aligned(s.SummaryGrains() * device.Grain)
	if !media.IsSummary(page) || device.Do(p.Devices[0], device.Read, at*device.Grain, buf) != nil {
		return clue{}, false
	}
	sum, err := media.DecodeSummary(buf, u, n)
	return clue{at: at, pages: n, segment: int64(sum.Segment)}, err == nil
}

// Belongs reports whether a device has a record of the pool: on the first device a checkpoint or a page of the log, on
// others a summary.
func (p *Pool) Belongs(index int) error {
	if index == 0 {
		log, _, _ := p.Log()
		if len(log) > 0 || p.Snapshot(0, nil) != nil || p.Snapshot(1, nil) != nil {
			return nil
		}
	}
	for i, s := range p.Summaries() {
		if d, _ := p.Shape.Place(int64(i)); s != nil && d == index {
			return nil
		}
	}
	return fmt.Errorf("device %d has neither a superblock nor any other record of pool %v", index, p.Shape.UUID)
}
