package ctl

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"farflash/flash/ctl/media"
	"farflash/flash/ctl/table"
	"farflash/flash/device"
	"farflash/policy/ftl"
)

// reading holds the reads of pages into frames. They share nothing between lanes: a lane takes a frame of its own,
// publishes it by a compare-and-swap of the page's word, and the read's completion makes the page resident by another,
// on the thread that collects it. Only what others want of the page meanwhile (a second reader, a trim, a move to
// another address) needs p.mu: they mark the word as due, which makes the second swap fail.
//
// A read pins its segment before it takes the page, so that a segment seen without pins after its last page was
// unmapped is not being read: a later pin is followed by a swap that fails.
type reading struct {
	reads   []read         // by frame
	pins    []atomic.Int32 // by segment: reads in flight, and those about to fail
	awaited atomic.Bool    // pinned is not empty
	pinned  []ftl.Block    // empty segments that reads in flight keep from being reused
	lanes   []lane
	top     atomic.Int32 // lanes that have had frames
	stopped atomic.Bool  // core.readOnly is set
}

// read is a read of a page into a frame. There is at most one for each frame.
type read struct {
	op     device.Op
	slot   *table.Slot
	fn     func(Ref, error)
	asked  uint64
	place  ftl.PPA
	sum    uint32 // of the content as read
	hint   uint32 // what the page's leaf has of it, if hinted
	hinted bool
	device int32
}

// lane is what one I/O loop, or all other goroutines, keep for their own misses.
type lane struct {
	mu     sync.Mutex // may be taken with p.mu held, not the reverse
	free   []int32    // frames
	dry    int        // misses that take p.mu before the next look for idle frames
	misses int64
	hits   atomic.Int64
	_      [72]byte // two cache lines for each lane
}

const (
	mostLanes = 256 // the values of a lane
	dryMisses = 32
)

func (x *reading) init(c *core, arrived func(*device.Op)) {
	x.reads = make([]read, c.cfg.Frames)
	for i := range x.reads {
		// No Owner: completions of different reads have nothing to do together.
		x.reads[i].op = device.Op{Kind: device.Read, Done: arrived, Token: uint64(i)}
	}
	x.pins, x.lanes = make([]atomic.Int32, len(c.segments)), make([]lane, mostLanes)
}

// laneFrames returns the number of frames that a lane holds in advance. All lanes together get a quarter at most.
func (c *core) laneFrames() int {
	return min(c.cfg.LaneFrames, c.cfg.Frames/(4*max(int(c.top.Load()), 1)))
}

// grant fills a lane's list with frames that are free or idle, unless requests wait for frames, or dirty pages for
// space: then idle frames are rare.
func (c *core) grant(i uint8) {
	l := &c.lanes[i]
	c.top.Store(max(c.top.Load(), int32(i)+1))
	l.mu.Lock()
	defer l.mu.Unlock()
	want := c.laneFrames()
	looks := 4 * want
	for len(l.free) < want && c.queue.N == 0 && c.backlog.N == 0 {
		var at int32
		if n := len(c.free); n > 0 {
			at, c.free = c.free[n-1], c.free[:n-1]
		} else if at = c.search(&looks); at == noFrame {
			return
		}
		l.free = append(l.free, at)
	}
}

// reclaim takes a frame back from a lane.
func (c *core) reclaim() int32 {
	for i := range c.top.Load() {
		if at := c.lanes[i].pop(); at != noFrame {
			return at
		}
	}
	return noFrame
}

func (l *lane) pop() int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.free)
	if n == 0 {
		return noFrame
	}
	at := l.free[n-1]
	l.free = l.free[:n-1]
	return at
}

// fetch publishes a free frame as that of a page on the medium, whose word is w, and prepares the read into it, which
// the caller submits. It reports false if the word has changed, and the caller then unpins the segment. The caller
// holds p.mu or its lane's lock.
func (c *core) fetch(at int32, slot *table.Slot, w table.Word, r request) bool {
	place := w.Place()
	segment := c.segmentOf(place)
	c.pins[segment].Add(1)
	f := &c.frames[at]
	f.page, f.place, f.latest = r.page, place, place
	f.slot.Store(slot)
	c.touch(at)
	x := &c.reads[at]
	x.slot, x.fn, x.asked, x.place = slot, r.fn, r.asked, place
	x.hint, x.hinted = c.table.Sum(r.page, place)
	x.device, x.op.Offset = c.at(place)
	x.op.Buf, x.op.Err, x.op.Loop, x.op.Lone = c.buffers[at], nil, r.lane, false
	if slot.Swap(w, table.Coming(at)) {
		return true
	}
	f.slot.Store(nil)
	return false
}

// unpin ends a read of a segment.
func (c *core) unpin(segment int64) {
	if c.pins[segment].Add(-1) == 0 && c.awaited.Load() {
		c.reuse()
	}
}

// reuse frees the empty segments that are no longer being read.
func (c *core) reuse() {
	c.awaited.Store(true) // before the pins are looked at, as unpin looks at it after
	free := false
	c.pinned = slices.DeleteFunc(c.pinned, func(b ftl.Block) bool {
		if c.pins[b].Load() > 0 {
			return false
		}
		s := &c.segments[b]
		*s = segment{erases: s.erases + 1}
		c.ledger.Erase(int64(b))
		c.change(int64(b))
		c.erasing--
		c.stats.Erased++
		c.ftl.Erased(b)
		if c.wanting { // before users' writes take the space
			c.addStore()
		}
		free = true
		return true
	})
	c.awaited.Store(len(c.pinned) > 0)
	if free {
		c.advance()
	}
}

// deliver completes a read into a frame whose word was marked as due, or that failed. fine reports whether the content
// is right.
func (c *core) deliver(at int32, fine bool) {
	x, f := &c.reads[at], &c.frames[at]
	if fine {
		// Not x.slot: Remap may have moved the page.
		c.give(x.fn, c.ref(f.slot.Load(), request{asked: x.asked, lane: x.op.Loop}, at), nil)
		c.publish(at, 1)
	} else {
		waiters := f.waiters
		f.waiters = f.waiters[:0]
		err := cmp.Or(x.op.Err, ErrDamaged)
		c.stats.Damaged++
		c.trouble(x.device, &x.op, f.page, err)
		if f.page == noPage {
			c.used-- // its place was already unmapped
		}
		c.give(x.fn, Ref{Page: x.asked}, fmt.Errorf("page %d: %w", f.page, err))
		for _, r := range waiters {
			c.give(r.fn, Ref{Page: r.asked}, fmt.Errorf("page %d: %w", r.page, err))
		}
		c.release(at)
		c.settleTrims(f)
	}
	c.unpin(c.segmentOf(x.place))
	c.collect()
	c.feed()
}

// publish makes an InFlight page resident, with refs references and those of its waiters.
func (c *core) publish(at int32, refs int) {
	f := &c.frames[at]
	slot, waiters := f.slot.Load(), f.waiters
	f.waiters = f.waiters[:0]
	w := table.Held(at, refs+len(waiters), false)
	if len(f.trims) > 0 {
		w = w.Expect()
	}
	slot.Store(w)
	for _, r := range waiters {
		c.give(r.fn, c.ref(slot, r, at), nil)
	}
}

// arrived completes a read into a frame, on the thread of the device.
func (p *Pool) arrived(op *device.Op) {
	c, at := p.core, int32(op.Token)
	x := &c.reads[at]
	if op.Err == nil {
		x.sum = media.Sum(c.seed, op.Buf)
	}
	fine, known := c.matches(x)
	fine = fine && known && op.Err == nil
	if fine {
		// Copies, because the read is another page's as soon as the page was put and evicted.
		slot, fn, segment := x.slot, x.fn, c.segmentOf(x.place)
		ref := c.ref(slot, request{asked: x.asked, lane: op.Loop}, at)
		if slot.Swap(table.Coming(at), table.Held(at, 1, false)) {
			p.unpin(segment)
			fn(ref, nil)
			return
		}
	}
	p.lock()
	c.lane = op.Loop
	if known || op.Err != nil {
		c.deliver(at, fine)
	} else {
		c.verifyRead(at)
	}
	p.leave()
}

// unpin is core.unpin for a caller without p.mu.
func (p *Pool) unpin(segment int64) {
	c := p.core
	if c.pins[segment].Add(-1) == 0 && c.awaited.Load() {
		p.lock()
		c.reuse()
		p.leave()
	}
}

// overwrite publishes a free frame as that of a page on the medium that is to be overwritten whole. It reports false if
// the word has changed. The caller holds its lane's lock.
func (c *core) overwrite(at int32, slot *table.Slot, w table.Word, page uint64) bool {
	f := &c.frames[at]
	f.page, f.place, f.latest, f.filler = page, w.Place(), w.Place(), true
	f.slot.Store(slot)
	c.touch(at)
	if slot.Swap(w, table.Coming(at)) {
		return true
	}
	f.filler = false
	f.slot.Store(nil)
	return false
}

// miss begins the reads of those wanted pages that are on the medium and in no frame, without p.mu, and gives out
// frames for those of them that are to be overwritten whole. It returns the remaining wants, which it reorders. It
// begins nothing if the lane lacks frames for all of them: a caller that held some while it waited for the rest could
// wait for another one that does the same.
func (p *Pool) miss(on uint8, wants []Want, lone bool) []Want {
	c := p.core
	l := &c.lanes[on]
	if c.cfg.LaneFrames == 0 || c.frameWanted.Load() {
		return wants
	}
	l.mu.Lock()
	if p.shut.Load() { // under the lock, which Close takes once before it releases the frames
		l.mu.Unlock()
		return wants
	}
	if len(l.free) < len(wants) {
		wait := l.dry > 0
		l.dry = max(0, l.dry-1)
		l.mu.Unlock()
		if wait || !p.misses(wants) {
			return wants
		}
		if !p.try() {
			p.post(nil, post{kind: postGrant, lane: on}) // for the next time
			return wants
		}
		c.grant(on)
		p.leave()
		l.mu.Lock()
	}
	if len(l.free) < len(wants) {
		l.dry = dryMisses
		l.mu.Unlock()
		return wants
	}
	b := batches.Get().(*batch)
	left := wants[:0]
	for _, x := range wants {
		slot, w, ok := p.onMedium(&x)
		if !ok {
			left = append(left, x)
			continue
		}
		n := len(l.free)
		at := l.free[n-1]
		if x.Mode == Whole {
			if !c.overwrite(at, slot, w, x.Page) {
				left = append(left, x)
				continue
			}
			l.free = l.free[:n-1]
			r := c.ref(slot, request{asked: x.Page, lane: on}, at)
			r.Fill = true
			b.calls = append(b.calls, call{get: x.Fn, ref: r})
			continue
		}
		if !c.fetch(at, slot, w, ask(on, x.Page, x.Mode, x.Fn)) {
			b.failed = append(b.failed, c.segmentOf(w.Place()))
			left = append(left, x)
			continue
		}
		l.free = l.free[:n-1]
		l.misses++
		slot.CountRead()
		r := &c.reads[at]
		r.op.Lone = lone
		b.ops, b.to = append(b.ops, &r.op), append(b.to, r.device)
		if _, known := c.matches(r); !known {
			b.posts = append(b.posts, post{kind: postSum, lane: on, place: r.place})
		}
	}
	l.mu.Unlock()
	unknown := len(b.posts) > 0
	if unknown {
		p.post(nil, b.posts...)
	}
	for _, segment := range b.failed {
		p.unpin(segment)
	}
	p.carryOut(b)
	if unknown {
		p.attend()
	}
	return left
}

// misses reports whether miss can do anything for the wanted pages.
func (p *Pool) misses(wants []Want) bool {
	for i := range wants {
		if p.canMiss(&wants[i]) {
			return true
		}
	}
	return false
}

// onMedium returns the slot and the word of a wanted page, and reports whether it is on the medium, in no frame, and
// can be brought into one without p.mu. Partial overwrites, which are rare, cannot.
func (p *Pool) onMedium(x *Want) (*table.Slot, table.Word, bool) {
	if !p.canMiss(x) {
		return nil, 0, false
	}
	slot := p.table.Find(x.Page)
	if slot == nil {
		return nil, 0, false
	}
	w := slot.Load()
	return slot, w, w.State() == table.OnMedium
}

// canMiss is onMedium without the slot.
func (p *Pool) canMiss(x *Want) bool {
	if x.Mode == Writing || x.Mode == Whole && p.core.stopped.Load() || x.Page >= media.MaxLBA {
		return false
	}
	w, _ := p.table.Peek(x.Page)
	return w.State() == table.OnMedium
}
