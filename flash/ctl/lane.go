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
	top     int // lanes that have had frames
}

// read is a read of a page into a frame. There is at most one for each frame.
type read struct {
	op     device.Op
	slot   *table.Slot
	fn     func(Ref, error)
	asked  uint64
	place  ftl.PPA
	device int32
}

// lane is what one I/O loop, or all other goroutines, keep for their own misses.
type lane struct {
	mu     sync.Mutex // may be taken with p.mu held, not the reverse
	free   []int32    // frames
	misses int64
	_      [88]byte // two cache lines for each lane
}

// mostLanes is the number of values of a lane.
const mostLanes = 256

func (x *reading) init(c *core, arrived func(*device.Op)) {
	x.reads = make([]read, c.cfg.Frames)
	for i := range x.reads {
		// No Owner: completions of different reads have nothing to do together.
		x.reads[i].op = device.Op{Kind: device.Read, Done: arrived, Token: uint64(i)}
	}
	x.pins, x.lanes = make([]atomic.Int32, len(c.segments)), make([]lane, mostLanes)
}

// laneFrames returns the number of frames that a lane holds in advance. All lanes together get a quarter at most.
func (c *core) laneFrames() int { return min(c.cfg.LaneFrames, c.cfg.Frames/(4*max(c.top, 1))) }

// grant fills a lane's list with frames that are free or idle, unless requests wait for frames.
func (c *core) grant(i uint8) {
	l := &c.lanes[i]
	c.top = max(c.top, int(i)+1)
	l.mu.Lock()
	defer l.mu.Unlock()
	want := c.laneFrames()
	looks := 4 * want
	for len(l.free) < want && c.queue.N == 0 {
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
	for i := range c.top {
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
		c.erasing--
		c.ftl.Erased(b)
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
	waiters := f.waiters
	f.waiters = f.waiters[:0]
	if fine {
		slot := f.slot.Load() // not x.slot: Remap may have moved the page
		w := table.Held(at, 1+len(waiters), false)
		if len(f.trims) > 0 {
			w = w.Expect()
		}
		slot.Store(w)
		c.give(x.fn, c.ref(slot, x.asked, at), nil)
		for _, r := range waiters {
			c.give(r.fn, c.ref(slot, r.asked, at), nil)
		}
	} else {
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

// arrived completes a read into a frame, on the thread of the device.
func (p *Pool) arrived(op *device.Op) {
	c, at := p.core, int32(op.Token)
	x := &c.reads[at]
	fine := op.Err == nil && media.Sum(c.seed, op.Buf) == c.sums[x.place]
	if fine {
		// Copies, because the read is another page's as soon as the page was put and evicted.
		slot, fn, asked, segment := x.slot, x.fn, x.asked, c.segmentOf(x.place)
		if slot.Swap(table.Coming(at), table.Held(at, 1, false)) {
			p.unpin(segment)
			fn(c.ref(slot, asked, at), nil)
			return
		}
	}
	p.mu.Lock()
	c.deliver(at, fine)
	p.leave()
}

// unpin is core.unpin for a caller without p.mu.
func (p *Pool) unpin(segment int64) {
	c := p.core
	if c.pins[segment].Add(-1) == 0 && c.awaited.Load() {
		p.mu.Lock()
		c.reuse()
		p.leave()
	}
}

// miss begins the reads of those wanted pages that are on the medium and in no frame, without p.mu, and returns what is
// left of wants, which it reorders. It begins none if the lane lacks frames for all of them: a caller that held some
// while it waited for the rest could wait for another one that does the same.
func (p *Pool) miss(on uint8, wants []Want, lone bool) []Want {
	c := p.core
	l := &c.lanes[on]
	if c.cfg.LaneFrames == 0 || c.frameWanted.Load() || p.shut.Load() || !p.misses(wants) {
		return wants
	}
	l.mu.Lock()
	if len(l.free) < len(wants) {
		l.mu.Unlock()
		p.mu.Lock()
		c.grant(on)
		p.leave()
		l.mu.Lock()
	}
	if len(l.free) < len(wants) {
		l.mu.Unlock()
		return wants
	}
	b := batches.Get().(*batch)
	left := wants[:0]
	for _, x := range wants {
		slot := p.table.Find(x.Page)
		if x.Mode == Whole || slot == nil {
			left = append(left, x)
			continue
		}
		w := slot.Load()
		if w.State() != table.OnMedium {
			left = append(left, x)
			continue
		}
		n := len(l.free)
		at := l.free[n-1]
		if !c.fetch(at, slot, w, ask(on, x.Page, x.Mode, x.Fn)) {
			b.failed = append(b.failed, c.segmentOf(w.Place()))
			left = append(left, x)
			continue
		}
		l.free = l.free[:n-1]
		l.misses++
		if x.Mode == Reading {
			slot.CountRead()
		}
		r := &c.reads[at]
		r.op.Lone = lone
		b.ops, b.to = append(b.ops, &r.op), append(b.to, r.device)
	}
	l.mu.Unlock()
	for _, segment := range b.failed {
		p.unpin(segment)
	}
	p.carryOut(b)
	return left
}

// misses reports whether any of the wanted pages is on the medium and may be read without p.mu.
func (p *Pool) misses(wants []Want) bool {
	for i := range wants {
		if w := &wants[i]; w.Mode != Whole && w.Page < media.MaxLBA {
			if slot := p.table.Find(w.Page); slot != nil && slot.Load().State() == table.OnMedium {
				return true
			}
		}
	}
	return false
}
