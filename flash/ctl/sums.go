package ctl

import (
	"fmt"

	"farflash/flash/ctl/ledger"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
	"farflash/internal/fifo"
	"farflash/policy/ftl"
)

// loading reads checksums and owners of places that are not in memory from the checkpoint in force. It has those of
// every settled segment: one that was full, with all of its writes completed, when the checkpoint began. A segment's
// checksums do not change until it is erased, nor do its owners but by Remap, which the ledger remembers; so those of a
// settled one can be dropped. Checkpoints alternate between two slots, and the next one copies from the one in force
// the rest, so it is never all read at once.
type loading struct {
	source uint64 // generation of the checkpoint in force; 0 if there is none
	loads  []load
	idleL  []int32
	wanted fifo.Ring[want]
}

// load is the read of a strip of checksums. buf is part of the arena; the device owns it until loadDone.
type load struct {
	op    device.Op
	buf   []byte
	which want // the strip
	waits []want
	from  uint64 // generation of the checkpoint
	busy  bool
	group bool // the strip's grain is damaged, so its whole group is read
}

// want is a strip of a segment that is needed, and by whom.
type want struct {
	segment, strip int64
	who            consumer
	at             int32 // frame or move
}

type consumer uint8

const (
	nobody    consumer = iota // it will be needed soon
	aRead                     // a read into a frame, whose content has arrived
	aMove                     // a move, whose content has arrived
	aLeaf                     // a leaf that is to be stored
	mostLoads = 64
)

func (l *loading) init(c *core) {
	l.loads = make([]load, mostLoads)
	for i := range l.loads {
		c.own(&l.loads[i].op, tokenLoad|uint64(i))
		l.idleL = append(l.idleL, int32(i))
	}
}

// load begins to read the checksum of a place of a settled segment, and lets somebody wait for it.
func (c *core) load(p ftl.PPA, who consumer, at int32) {
	w := want{c.segmentOf(p), int64(p) / ledger.Strip, who, at}
	if !c.segments[w.segment].settled {
		if who == nobody {
			return
		}
		panic(fmt.Sprintf("ctl: the checksum of place %d is neither in memory nor in checkpoint %d", p, c.source))
	}
	for i := range c.loads {
		if l := &c.loads[i]; l.busy && l.which.segment == w.segment && l.which.strip == w.strip {
			if who != nobody {
				l.waits = append(l.waits, w)
			}
			return
		}
	}
	if len(c.idleL) == 0 {
		c.wanted.Push(w)
		return
	}
	i := c.idleL[len(c.idleL)-1]
	c.idleL = c.idleL[:len(c.idleL)-1]
	l := &c.loads[i]
	l.which, l.busy, l.waits = w, true, l.waits[:0]
	if who != nobody {
		l.waits = append(l.waits, w)
	}
	c.readStrip(l)
}

// sumOf returns the checksum of a place, or 0 if it is not in memory.
func (c *core) sumOf(p ftl.PPA) uint32 {
	sum, _ := c.ledger.SumAt(p)
	return sum
}

// matches reports whether a read has brought the right content, and whether that is known.
func (c *core) matches(x *read) (fine, known bool) {
	if sum, known := c.ledger.SumAt(x.place); known {
		return x.sum == sum, true
	}
	return c.table.Matches(x.sum, x.hint), x.hinted
}

// stripGrain returns the grain of a checkpoint's body that has a strip.
func (c *core) stripGrain(strip int64) int64 {
	return media.EntriesGrain(strip, int64(len(c.segments)))
}

// bodyOffset returns the byte offset of a grain of a checkpoint's body.
func (c *core) bodyOffset(generation uint64, grain int64) int64 {
	return (c.shape.CheckpointStart(int(generation&1)) + media.BodyGrain(grain)) * Page
}

func (c *core) readStrip(l *load) {
	l.from, l.group = c.source, false
	l.op.Kind, l.op.Buf, l.op.Err, l.op.Loop = device.Read, l.buf, nil, c.lane
	l.op.Offset = c.bodyOffset(l.from, c.stripGrain(l.which.strip))
	c.stats.Sums++
	c.submit(0, &l.op)
}

// groupOf returns the first of the grains of the body that share a parity with one, and their number.
func (c *core) groupOf(grain int64) (first, n int64) {
	first = grain / media.Group * media.Group
	return first, min(media.Group, media.BodyPages(int64(len(c.segments)), c.shape.Pages)-first)
}

// loadDone completes the read of a strip, or of its group.
func (c *core) loadDone(i int32) {
	l := &c.loads[i]
	grain := c.stripGrain(l.which.strip)
	page, err := l.op.Buf, l.op.Err
	switch first, n := c.groupOf(grain); {
	case l.from != c.source: // another checkpoint is in force, and the next one will overwrite this one
		c.readStrip(l)
		return
	case l.group:
		if err == nil {
			_, err = media.Mend(l.op.Buf, first, c.shape.UUID, c.generationOf(l.from, grain))
		}
		page = l.op.Buf[(grain-first)*Page:][:Page]
	default:
		if err == nil {
			err = media.VerifyPage(page, grain, c.shape.UUID, c.generationOf(l.from, grain))
		}
		if err != nil {
			c.trouble(0, &l.op, noPage, err)
			l.group = true
			l.op.Buf, l.op.Offset, l.op.Err = device.Aligned(int(n+1)*Page), c.bodyOffset(l.from, first), nil
			c.stats.Sums += n + 1
			c.submit(0, &l.op)
			return
		}
	}
	if err == nil {
		sums := media.Sums(page)
		c.ledger.Read(l.which.segment, l.which.strip, &sums)
		if c.segments[l.which.segment].moving > 0 && c.ledger.Away(l.which.segment) {
			var owners [ledger.Strip]uint64
			for k := range owners {
				owners[k] = media.EntryAt(page, k).Page - 1
			}
			c.ledger.ReadOwners(l.which.segment, l.which.strip, &owners)
		}
	}
	l.busy, l.op.Buf = false, nil
	c.idleL = append(c.idleL, i)
	waits := append([]want(nil), l.waits...)
	for c.wanted.N > 0 && len(c.idleL) > 0 {
		w := c.wanted.Pop()
		// Nothing is known of the place but its strip; any place of both will do.
		p := max(ftl.PPA(w.strip*ledger.Strip), ftl.PPA(w.segment*int64(c.shape.Pages)))
		_, known := c.ledger.SumAt(p)
		_, named := c.ledger.Owner(p)
		if known && (named || c.segments[w.segment].moving == 0) || !c.segments[w.segment].settled {
			waits = append(waits, w)
			continue
		}
		c.load(p, w.who, w.at)
	}
	for _, w := range waits {
		switch {
		case w.who == aRead && err != nil:
			c.deliver(w.at, false)
		case w.who == aRead:
			c.verifyRead(w.at)
		case w.who == aLeaf:
			c.storeRead()
		case w.who == aMove:
			m := &c.moves[w.at]
			_, named := c.ledger.Owner(m.from)
			switch {
			case err == nil:
			case !named && c.ledger.IsLive(m.from): // nothing in memory says whose page it is
				c.underWay--
				c.moveOver(w.at)
				c.fail(fmt.Errorf("reading a checkpoint: %w", err))
				continue
			default: // nothing says that the content is right, so it must not pass for it
				m.sum, m.known = ^m.read, true
			}
			c.moveRead(w.at)
		}
	}
	c.advance()
}

// verifyRead delivers the content of a read whose checksum was not in memory when it arrived.
func (c *core) verifyRead(at int32) {
	f := &c.frames[at]
	if f.place == ftl.NoPPA { // dropped meanwhile: its holders get a private page
		clear(c.buffers[at])
		c.deliver(at, true)
		return
	}
	// Not the place that it was read from: collection may have moved the page, with its checksum.
	if sum, known := c.ledger.SumAt(f.place); known {
		c.deliver(at, sum == c.reads[at].sum)
		return
	}
	c.load(f.place, aRead, at)
}

// settleSums records that a checkpoint has taken effect, which has all checksums and owners of the segments that it
// covers.
func (c *core) settleSums(generation uint64) {
	c.source = generation
	c.ledger.Thaw(func(p ftl.PPA) bool { return c.segments[c.segmentOf(p)].moving > 0 })
	for i := range c.segments {
		s := &c.segments[i]
		s.settled, s.settledAll = s.covered, s.coversAll
	}
}

// cover marks the segments that a checkpoint which begins now will have all checksums of.
func (c *core) cover() {
	c.ledger.Freeze()
	for i := range c.segments {
		s := &c.segments[i]
		s.covered = s.opened && int(s.programmed) == c.shape.Pages
		s.coversAll = s.covered
	}
}

// bare reports whether one of the segments from to to has entries for a checkpoint that lack checksums or owners.
func (c *core) bare(body *media.Body, from, to int64) bool {
	for s := from; s < to; s++ {
		if c.body.bare[s] && body.Entries[s] != nil {
			return true
		}
	}
	return false
}

// inherit takes over the checksums and owners that entries lack from the group of grains, read from the checkpoint in
// force, that begins with grain i.
func (c *core) inherit(body *media.Body, i int64, group []byte) error {
	if _, err := media.Mend(group, i, c.shape.UUID, c.generationOf(c.source, i)); err != nil {
		return fmt.Errorf("entries in checkpoint %d: %w", c.source, err)
	}
	segments, pages := int64(len(c.segments)), int64(c.shape.Pages)
	for k := range int64(len(group)/Page) - 1 {
		from, to, places := media.Covers(i+k, segments, c.shape.Pages)
		if !places {
			continue
		}
		page := group[k*Page:][:Page]
		for at := from; at < to; at++ {
			s := at / pages
			if !c.body.bare[s] || body.Entries[s] == nil {
				continue
			}
			e := &body.Entries[s][at%pages]
			if e.Page == 0 {
				continue
			}
			was := media.EntryAt(page, int(at-from))
			if e.Sum = was.Sum; e.Page == someone {
				e.Page = was.Page
			}
		}
	}
	return nil
}

// readEntries reads the entries of a settled segment from a checkpoint, and waits for it. Those that are lost are zero,
// and the error says why. of returns the generation of a grain of the checkpoint.
func readEntries(shape *media.Shape, dev device.Device, generation uint64, of func(grain int64) uint64,
	segment int64) ([]media.Entry, error) {
	segments, pages := shape.AllSegments(), int64(shape.Pages)
	out := make([]media.Entry, pages)
	page := device.Aligned(Page)
	start := shape.CheckpointStart(int(generation & 1))
	var lost error
	for strip := segment * pages / ledger.Strip; strip*ledger.Strip < (segment+1)*pages; strip++ {
		grain := media.EntriesGrain(strip, segments)
		err := device.Do(dev, device.Read, (start+media.BodyGrain(grain))*Page, page)
		if err == nil {
			err = media.VerifyPage(page, grain, shape.UUID, of(grain))
		}
		if err != nil {
			first := grain / media.Group * media.Group
			n := min(media.Group, media.BodyPages(segments, shape.Pages)-first)
			group := device.Aligned(int(n+1) * Page)
			if err = device.Do(dev, device.Read, (start+media.BodyGrain(first))*Page, group); err == nil {
				_, err = media.Mend(group, first, shape.UUID, of(grain))
			}
			copy(page, group[(grain-first)*Page:][:Page])
		}
		if err != nil {
			lost = fmt.Errorf("entries of segment %d: %w", segment, err)
			continue
		}
		for k := range ledger.Strip {
			if at := strip*ledger.Strip + int64(k) - segment*pages; at >= 0 && at < pages {
				out[at] = media.EntryAt(page, k)
			}
		}
	}
	return out, lost
}

// entriesOf returns the entries of a segment's live places. The segment is pinned; p.mu is not held.
func (p *Pool) entriesOf(segment int64) ([]media.Entry, error) {
	c := p.core
	take := func(entries []media.Entry, sums []uint32) {
		for k := range entries {
			at := ftl.PPA(segment*int64(c.shape.Pages) + int64(k))
			if !c.ledger.IsLive(at) {
				entries[k] = media.Entry{}
				continue
			}
			if sums != nil {
				entries[k].Sum = sums[k]
			}
			if page, known := c.ledger.Owner(at); known {
				entries[k].Page = page + 1
			}
		}
	}
	for {
		p.lock()
		whole, source := c.ledger.WholeOf(segment), c.source
		of := c.generations(source, segment)
		if whole != nil && !c.ledger.Away(segment) {
			entries := make([]media.Entry, c.shape.Pages)
			take(entries, whole)
			p.leave()
			return entries, nil
		}
		p.leave()
		entries, err := readEntries(&c.shape, p.devices[0], source, of, segment)
		p.lock()
		same := c.source == source
		take(entries, whole)
		p.leave()
		if same {
			return entries, err
		}
	}
}

// unsettle brings all checksums and owners of a segment into memory before others are added to it.
func (r *recovery) unsettle(segment int64) error {
	if !r.segments[segment].settled {
		return nil
	}
	s := &r.segments[segment]
	s.settled, s.covered, s.settledAll, s.coversAll = false, false, false, false
	if r.ledger.Whole(segment) && !r.ledger.Away(segment) {
		return nil
	}
	entries, err := readEntries(&r.shape, r.devices[0], r.source, r.generations(r.source, segment), segment)
	if err != nil {
		return err
	}
	first := ftl.PPA(segment * int64(r.shape.Pages))
	if !r.ledger.Whole(segment) {
		r.ledger.Prepare(first)
		for k := range entries {
			r.ledger.SetSum(first+ftl.PPA(k), entries[k].Sum)
		}
	}
	owners := make([]uint64, len(entries))
	for k := range entries {
		owners[k] = entries[k].Page - 1
	}
	r.ledger.Return(segment, owners)
	return nil
}
