package ctl

import (
	"fmt"
	"sync/atomic"

	"farflash/flash/ctl/heat"
	"farflash/flash/ctl/ledger"
	"farflash/flash/ctl/media"
	"farflash/flash/ctl/table"
	"farflash/flash/device"
	"farflash/internal/fifo"
	"farflash/policy/ftl"
)

// core is the controller as a state machine. Its methods are called one at a time, under Pool.mu. On return, the lists
// ops and calls hold the operations to submit and the callbacks to run; completions come back through complete.
type core struct {
	cfg   Config
	shape media.Shape
	seed  uint32 // of all checksums
	table *table.Table
	ftl   *ftl.FTL
	clock heat.Clock

	places   []place // by segment
	ledger   *ledger.Ledger
	used     int64 // pages that have a place or a reservation
	segments []segment
	last     [heat.Streams]uint64 // the segment that the stream filled last, plus 1

	frames []frame
	lately []atomic.Bool // by frame: used since the clock hand last passed
	changes
	buffers [][]byte // by frame
	free    []int32  // frames
	hand    int32    // the clock hand: where the search for an idle frame resumes
	// queue holds the requests that wait for a frame, first come, first served.
	queue       fifo.Ring[request]
	frameWanted atomic.Bool // a request waits for a frame
	checks      int         // segments that Check is reading; they must not be erased
	reading
	paging

	writer
	journal
	loading

	readOnly error // why writes are refused; nil while the pool is writable
	losses   losses

	done func(*device.Op) // of all operations
	// lane is that of the caller, or of the operation completed: its thread does what follows.
	lane uint8
	// The output of a call: pages to copy, operations to submit, and callbacks to run. Pool.leave carries them out
	// without the lock.
	fills []fill
	ops   []*device.Op
	to    []int32 // devices of ops
	calls []call
	stats Stats
}

// place is the start of a segment.
type place struct {
	device int32
	offset int64
}

// segment is the controller's own state of a segment, in addition to ftl's.
type segment struct {
	order      uint64 // record number when it was filled, or else opened
	written    int32  // places allocated
	programmed int32  // of these, places whose write completed
	erases     uint32
	session    uint32 // in which it was opened
	stream     uint8
	opened     bool  // since the last erase
	covered    bool  // the newest checkpoint has, or will have, all checksums
	settled    bool  // the checkpoint in force has all checksums
	coversAll  bool  // the newest checkpoint has, or will have, the owners that are in memory
	settledAll bool  // the checkpoint in force has them
	moving     int32 // pages that collection is moving
}

// frame is a page of memory. Only holders of a reference touch its buffer, or the controller while there are none.
//
// The fields belong to whoever has p.mu, except that a lane sets slot, page, place and latest of a frame of its own
// before it publishes the frame in the page's word. With p.mu, they are therefore valid if the word refers to the frame
// (inFrame).
type frame struct {
	slot    atomic.Pointer[table.Slot] // of its page; nil while the frame is free
	page    uint64
	place   ftl.PPA // the page's place on the medium, or NoPPA
	latest  ftl.PPA // the newest place being written; equals place if there is none, NoPPA after a trim
	waiters []request
	syncs   []waiter // puts that the next write-out makes durable
	passed  []waiter // puts that the newest write in flight makes durable
	trims   []*trim  // waiting for the last reference to be put
	writing int32    // writes in flight
	filler  bool     // InFlight: a holder is overwriting all of it
	queued  bool     // in the backlog
	lane    uint8    // of the last put
	visit   uint64   // the last one of unwritten
	origin  heat.Origin
}

// request is a pending Get of one page.
type request struct {
	fn    func(Ref, error)
	page  uint64
	asked uint64 // the page's number when it was requested
	write bool
	whole bool
	lane  uint8 // for the device's read, if one is needed
}

// ask returns the request of one page.
func ask(lane uint8, page uint64, mode Mode, fn func(Ref, error)) request {
	return request{fn: fn, page: page, asked: page, write: mode != Reading, whole: mode == Whole, lane: lane}
}

// Ref is a reference to a page, from Get until Put.
type Ref struct {
	slot *table.Slot
	Data []byte // the page; writable only if it was requested for writing
	Page uint64 // its number when it was requested; see Remap
	// Fill is set if the page was requested whole and its old content was not read. No other holder sees the page
	// before it is put, and Data is undefined until all of it is written.
	Fill  bool
	lane  uint8
	frame int32
}

// waiter waits for durability: either a callback of its own or a barrier shared with others.
type waiter struct {
	fn      func(error)
	barrier *barrier
}

// call is a callback to run once the lock is released.
type call struct {
	get  func(Ref, error)
	done func(error)
	ref  Ref
	err  error
}

// Stats counts events since the pool was opened. Sizes are in pages.
type Stats struct {
	Puts         int64 // changed pages written for users: the denominator of write amplification
	Moved        int64 // written by collection
	Log          int64 // pages of the log written
	Checkpoint   int64 // pages of checkpoints written
	Summaries    int64 // pages of segment summaries written
	Rewritten    int64 // rewritten elsewhere after a write failed
	Hits, Misses int64 // gets of pages that were in memory, and of those that had to be read from a device
	LaneMisses   int64 // of Misses, those that took no lock of the pool
	Flushes      int64 // of the devices
	Checkpoints  int64
	Damaged      int64               // pages found damaged or unreadable
	Erased       int64               // segments that became empty
	Sums         int64               // pages of checkpoints read for checksums and owners that were not in memory
	MapReads     int64               // pages of the map read because they were not in memory
	MapWrites    int64               // pages of the map written so that they need not be in memory
	Streams      [heat.Streams]int64 // pages written to each stream, for users and by collection
}

// WAF returns the write amplification: all pages written, including log, checkpoints, map and summaries, over pages
// written for users.
func (s Stats) WAF() float64 {
	if s.Puts == 0 {
		return 1
	}
	return float64(s.Puts+s.Moved+s.Log+s.Checkpoint+s.Summaries+s.Rewritten+s.MapWrites) / float64(s.Puts)
}

// Sub returns the counts accumulated between o and s.
func (s Stats) Sub(o Stats) Stats {
	d := Stats{
		s.Puts - o.Puts, s.Moved - o.Moved, s.Log - o.Log, s.Checkpoint - o.Checkpoint, s.Summaries - o.Summaries,
		s.Rewritten - o.Rewritten,
		s.Hits - o.Hits, s.Misses - o.Misses, s.LaneMisses - o.LaneMisses, s.Flushes - o.Flushes,
		s.Checkpoints - o.Checkpoints,
		s.Damaged - o.Damaged, s.Erased - o.Erased, s.Sums - o.Sums, s.MapReads - o.MapReads, s.MapWrites - o.MapWrites,
		s.Streams,
	}
	for i := range d.Streams {
		d.Streams[i] -= o.Streams[i]
	}
	return d
}

// A token identifies an operation: a kind and an index.
const (
	tokenMove = iota << 32
	tokenChunk
	tokenLog
	tokenFlush
	tokenBody
	tokenHeader
	tokenSummary
	tokenCheckFlush
	tokenOld
	tokenLoad
	tokenFault
	tokenStore
	tokenMask = 0xff << 32
)

const noFrame int32 = -1

// newCore returns the state machine of an empty pool, which recoverState then fills. arrived receives the completions
// of reads into frames, done all others.
func newCore(cfg Config, shape media.Shape, done, arrived func(*device.Op)) (*core, error) {
	segments := shape.AllSegments()
	c := &core{
		cfg: cfg, shape: shape, seed: shape.UUID.Seed(), table: newTable(shape), done: done,
		ledger:   ledger.New(segments, shape.Pages),
		segments: make([]segment, segments), frames: make([]frame, cfg.Frames), lately: make([]atomic.Bool, cfg.Frames),
	}
	for s := range segments {
		d, offset := shape.Place(s)
		c.places = append(c.places, place{int32(d), offset})
	}
	config := ftl.DefaultConfig()
	config.BlocksPerPool, config.PagesPerBlock = int(segments), shape.Pages
	config.Streams, config.Survivors = int(heat.Streams), []int{int(heat.Warm), int(heat.Cold), int(heat.Cold)}
	if cfg.Heat.Single {
		config.Survivors = ftl.Mixed(int(heat.Streams))
	}
	config.Victim, config.DynamicWear, config.Counts = cfg.Victim, false, true
	var err error
	if c.ftl, err = ftl.New(config, c, nil); err != nil {
		return nil, fmt.Errorf("ctl: %w", err)
	}
	for i := range c.frames {
		c.free = append(c.free, int32(len(c.frames)-1-i))
	}
	c.changes.init(c)
	c.reading.init(c, arrived)
	c.writer.init(c)
	c.journal.init(c)
	c.loading.init(c)
	c.paging.init(c)
	return c, nil
}

// newTable returns an empty table.
func newTable(shape media.Shape) *table.Table {
	return table.New(media.PlaceBits(shape.AllSegments() * int64(shape.Pages)))
}

// own makes op the controller's own: its completion comes back through complete with this token.
func (c *core) own(op *device.Op, token uint64) {
	op.Done, op.Owner, op.Token = c.done, c, token
}

// byPlace is added to a place to name the page that it holds, where that page's number is not in memory.
const byPlace = 1 << 60

// Lookup implements ftl.Map.
func (c *core) Lookup(lpa ftl.LPA) ftl.PPA {
	if lpa >= byPlace { // or the page's leaf is away
		if p := ftl.PPA(lpa - byPlace); c.ledger.IsLive(p) {
			return p
		}
		return ftl.NoPPA
	}
	switch w, _ := c.table.Peek(uint64(lpa)); w.State() {
	case table.OnMedium:
		return w.Place()
	case table.InFlight, table.Resident:
		if at := w.Frame(); int(at) < len(c.frames) { // Check reports it otherwise
			return c.frames[at].place
		}
	}
	return ftl.NoPPA
}

// CompareAndSwap implements ftl.Map. The page's leaf is not away, unless it is lost. The word of a page in a frame
// stays the same; only the place that it is evicted to changes.
func (c *core) CompareAndSwap(lpa ftl.LPA, from, to ftl.PPA) bool {
	if lpa >= byPlace {
		return false
	}
	slot := c.table.Find(uint64(lpa))
	if slot == nil {
		return false
	}
	for {
		switch w := slot.Load(); w.State() {
		case table.OnMedium:
			if w != table.At(from) {
				return false
			}
			if !slot.Swap(w, table.At(to)) {
				continue // a lane has begun to read it
			}
			return true
		case table.InFlight, table.Resident:
			f := &c.frames[w.Frame()]
			if f.place != from {
				return false
			}
			if f.latest == from {
				f.latest = to
			}
			f.place = to
			return true
		}
		return false
	}
}

// Owner implements ftl.Map.
func (c *core) Owner(ppa ftl.PPA) ftl.LPA {
	if page, known := c.ledger.Owner(ppa); known {
		if w, _ := c.table.Peek(page); !w.Away() {
			return ftl.LPA(page)
		}
	}
	return byPlace + ftl.LPA(ppa)
}

// owner returns the page that a live place holds, which is in memory.
func (c *core) owner(p ftl.PPA) uint64 {
	page, known := c.ledger.Owner(p)
	if !known {
		panic(fmt.Sprintf("ctl: the page of place %d is not in memory", p))
	}
	return page
}

// sum returns the checksum of a place's content, which is in memory.
func (c *core) sum(p ftl.PPA) uint32 {
	sum, known := c.ledger.SumAt(p)
	if !known {
		panic(fmt.Sprintf("ctl: the checksum of place %d is not in memory", p))
	}
	return sum
}

// NextValid implements ftl.Validity.
func (c *core) NextValid(b ftl.Block, page int) int { return c.ledger.NextLive(int64(b), page) }

// setLive and clearLive record that the mapping refers to a place, or no longer does.
func (c *core) setLive(p ftl.PPA) {
	c.preserve(p)
	c.ledger.SetLive(p, true)
}

func (c *core) clearLive(p ftl.PPA) {
	c.preserve(p)
	c.ledger.SetLive(p, false)
}

// segmentOf returns the segment of a place. Segments are the translation layer's blocks.
func (c *core) segmentOf(p ftl.PPA) int64 { return int64(c.ftl.BlockOf(p)) }

// at returns the device and byte offset of a place.
func (c *core) at(p ftl.PPA) (int32, int64) {
	s := c.segmentOf(p)
	return c.places[s].device, c.places[s].offset + (int64(p)-s*int64(c.shape.Pages))*Page
}

// tick returns the time by which ftl measures ages: it counts writes.
func (c *core) tick() ftl.Tick { return ftl.Tick(c.clock.Writes()) }

// submit queues an operation for a device.
func (c *core) submit(dev int32, op *device.Op) {
	c.ops, c.to = append(c.ops, op), append(c.to, dev)
}

// notify queues a callback, so that it runs without the lock and can call the pool again.
func (c *core) notify(fn func(error), err error) {
	if fn != nil {
		c.calls = append(c.calls, call{done: fn, err: err})
	}
}

// give queues the callback of a Get.
func (c *core) give(fn func(Ref, error), r Ref, err error) {
	c.calls = append(c.calls, call{get: fn, ref: r, err: err})
}

// ref returns the reference that a request gets to its page in a frame.
func (c *core) ref(slot *table.Slot, r request, frame int32) Ref {
	return Ref{slot: slot, Page: r.asked, lane: r.lane, frame: frame, Data: c.buffers[frame]}
}

// get serves a request, immediately or when its page is available.
func (c *core) get(r request) {
	if c.queue.N > 0 {
		// First come, first served: at most one requester of several pages then holds some while it waits for more, so
		// there is no deadlock. Whatever frees a frame feeds the queue.
		c.queue.Push(r)
		return
	}
	if !c.tryGet(r) {
		c.queue.Push(r)
		c.nudge()
	}
}

// feed serves the requests that wait for frames.
func (c *core) feed() {
	for c.queue.N > 0 && c.tryGet(*c.queue.First()) {
		c.queue.Pop()
	}
	if c.queue.N > 0 {
		c.frameWanted.Store(true)
		c.nudge()
	}
}

// tryGet reports false if no frame is available for the page.
func (c *core) tryGet(r request) bool {
	if r.write && c.readOnly != nil {
		c.give(r.fn, Ref{Page: r.asked}, c.readOnly)
		return true
	}
	if r.page == noPage {
		return c.bringNone(r)
	}
	if c.table.Away(r.page) {
		// The frame is taken first, so that requests get frames in the order in which they came, as get says.
		at := c.takeFrame()
		if at != noFrame {
			c.whenPresent(table.LeafOf(r.page), faulting{request: r, frame: at})
		}
		return at != noFrame
	}
	slot := c.table.Make(r.page)
	// Lock-free gets and puts can change the word until a swap succeeds.
	for {
		w := slot.Load()
		switch w.State() {
		case table.Resident:
			// Reserve the space before the page can be changed, so that its write-out cannot exceed the capacity.
			if r.write && w.Blank() {
				if c.used >= c.shape.Capacity {
					c.give(r.fn, Ref{Page: r.asked}, ErrFull)
					return true
				}
				if !slot.Swap(w, w.Reserved()) {
					continue
				}
				c.used++
				continue
			}
			next, ok := w.Get(r.write)
			if !ok {
				c.give(r.fn, Ref{Page: r.asked}, fmt.Errorf("page %d has %d holders: %w", r.page, w.Refs(), ErrFull))
				return true
			}
			if !slot.Swap(w, next) {
				continue
			}
			c.stats.Hits++
			c.touch(w.Frame())
			c.give(r.fn, c.ref(slot, r, w.Frame()), nil)
			return true
		case table.InFlight:
			// The request takes no reference yet: publish or putWhole gives one to every waiter.
			if !slot.Swap(w, w.Expect()) {
				continue // the read has just completed, without the lock
			}
			f := &c.frames[w.Frame()]
			f.waiters = append(f.waiters, r)
			return true
		}
		if r.write && w.State() == table.Invalid && c.used >= c.shape.Capacity {
			c.give(r.fn, Ref{Page: r.asked}, ErrFull)
			return true
		}
		return c.bring(r, slot, w)
	}
}

// bring loads a page that is in no frame.
func (c *core) bring(r request, slot *table.Slot, w table.Word) bool {
	at := c.takeFrame()
	if at == noFrame {
		return false
	}
	if w.State() == table.OnMedium && !(r.write && r.whole) {
		// A lane may be bringing the page without the lock.
		if !c.fetch(at, slot, w, r) {
			c.free = append(c.free, at)
			c.unpin(c.segmentOf(w.Place()))
			return c.tryGet(r)
		}
		c.stats.Misses++
		c.submit(c.reads[at].device, &c.reads[at].op)
		if _, known := c.matches(&c.reads[at]); !known {
			c.load(w.Place(), nobody, 0)
		}
		return true
	}
	f := &c.frames[at]
	f.page, f.place = r.page, ftl.NoPPA
	if w.State() == table.OnMedium {
		f.place = w.Place()
	}
	f.latest = f.place
	f.slot.Store(slot)
	next := table.Coming(at)
	if !r.whole || !r.write {
		clear(c.buffers[at])
		next = table.Held(at, 1, !r.write)
	}
	if !slot.Swap(w, next) { // as above
		f.slot.Store(nil)
		c.free = append(c.free, at)
		return c.tryGet(r)
	}
	c.touch(at)
	switch {
	// The page stays InFlight until it is put: the frame has undefined content until then.
	case r.write && r.whole:
		// putWhole returns the reservation if the overwrite is abandoned.
		if f.place == ftl.NoPPA {
			c.used++
		}
		f.filler = true
		ref := c.ref(slot, r, at)
		ref.Fill = true
		c.give(r.fn, ref, nil)
	default:
		if r.write {
			c.used++
		}
		c.give(r.fn, c.ref(slot, r, at), nil)
	}
	return true
}

// bringNone serves a request whose page was dropped while it waited: it gets private zeros. Like a page that is dropped
// while held, the frame is discarded when it is put.
func (c *core) bringNone(r request) bool {
	at := c.takeFrame()
	if at == noFrame {
		return false
	}
	f := &c.frames[at]
	slot := new(table.Slot)
	f.page, f.place, f.latest = noPage, ftl.NoPPA, ftl.NoPPA
	f.trims = append(f.trims, &trim{left: 1})
	clear(c.buffers[at])
	slot.Store(table.Held(at, 1, true).Expect())
	f.slot.Store(slot)
	c.give(r.fn, c.ref(slot, r, at), nil)
	return true
}

// takeFrame allocates a frame: a free one, or that of an idle page, which falls back to its place on the medium (the
// CLOCK algorithm).
func (c *core) takeFrame() int32 {
	if n := len(c.free); n > 0 {
		at := c.free[n-1]
		c.free = c.free[:n-1]
		return at
	}
	// From here on, a lock-free put sees that a frame is wanted and calls feed. Pages put earlier are found idle below.
	c.frameWanted.Store(true)
	looks := 2 * len(c.frames) // the first round clears marks, the second finds any idle frame
	if c.underWay > 0 {
		looks = min(looks, 128) // the completion of an operation in flight triggers another search
	}
	at := c.search(&looks)
	if at == noFrame {
		at = c.reclaim()
	}
	if at != noFrame {
		c.frameWanted.Store(c.queue.N > 0)
	}
	return at
}

// search evicts an idle page within the given number of frames, which it counts down, and returns its frame or noFrame.
func (c *core) search(looks *int) int32 {
	for ; *looks > 0; *looks-- {
		c.hand++
		if int(c.hand) >= len(c.frames) {
			c.hand = 0
		}
		f := &c.frames[c.hand]
		if f.slot.Load() == nil || f.writing > 0 || len(f.trims) > 0 {
			continue
		}
		if c.lately[c.hand].Load() {
			c.lately[c.hand].Store(false)
			continue
		}
		// An evicted frame is on top of the free list, from which it is taken here.
		if c.evict(c.hand) {
			c.free = c.free[:len(c.free)-1]
			return c.hand
		}
	}
	return noFrame
}

// inFrame returns the slot and the word of the page in a frame. It reports false if the frame is free, or is being
// filled by a lane that has not published it yet.
func (c *core) inFrame(at int32) (*table.Slot, table.Word, bool) {
	slot := c.frames[at].slot.Load()
	if slot == nil {
		return nil, 0, false
	}
	w := slot.Load()
	return slot, w, w.State() >= table.InFlight && w.Frame() == at
}

// touch marks a frame as used. Most frames are marked already, and a load costs less than a store.
func (c *core) touch(at int32) {
	if !c.lately[at].Load() {
		c.lately[at].Store(true)
	}
}

// hit counts a get of a page in memory. Goroutines that all have lane 0 share the counters of the last lanes, by the
// page's frame.
func (c *core) hit(lane uint8, at int32) {
	if lane == 0 {
		lane = mostLanes/2 | uint8(at)
	}
	c.lanes[lane].hits.Add(1)
}

// evict takes the frame of an idle page, and reports false if the page is in use.
func (c *core) evict(at int32) bool {
	f := &c.frames[at]
	slot, w, ok := c.inFrame(at)
	if !ok || w.State() != table.Resident || !w.Idle() || f.writing > 0 {
		return false
	}
	next := table.Word(0)
	if f.place != ftl.NoPPA {
		next = table.At(f.place)
	}
	// The swap fails if a lock-free Get has taken a reference since the load.
	if !slot.Swap(w, next) {
		return false
	}
	if f.place == ftl.NoPPA && !w.Blank() {
		c.used-- // an unused reservation
	}
	c.drop(at)
	return true
}

// release takes the frame of an InFlight page.
func (c *core) release(at int32) {
	f := &c.frames[at]
	if f.place != ftl.NoPPA {
		f.slot.Load().Store(table.At(f.place))
	} else {
		f.slot.Load().Store(0)
	}
	c.drop(at)
}

// drop puts a frame on the free list. Its page's word no longer refers to it.
func (c *core) drop(at int32) {
	f := &c.frames[at]
	f.slot.Store(nil)
	f.filler, f.origin = false, heat.Auto
	c.free = append(c.free, at)
}

// put returns a page on the slow path: pages overwritten whole, sync, and pages that the last reference leaves dirty.
func (c *core) put(r Ref, changed, sync bool, from heat.Origin, fn func(error)) {
	f := &c.frames[r.frame]
	f.lane = r.lane
	if from != heat.Auto {
		f.origin = from
	}
	if r.Fill {
		c.putWhole(r, changed, sync, fn)
		return
	}
	for { // use the frame's slot, because Remap may have moved the page since it was given out
		slot := f.slot.Load()
		w := slot.Load()
		next := w.Put(changed)
		if !slot.Swap(w, next) {
			continue
		}
		if next.Dirty() && next.Refs() > 0 {
			c.soil(r.frame)
		}
		switch {
		case next.Dirty() && sync:
			f.syncs = append(f.syncs, waiter{fn: fn})
		// A write in flight has the current content; the put becomes durable with it.
		case f.writing > 0 && sync:
			f.passed = append(f.passed, waiter{fn: fn})
		case sync:
			c.await(fn)
		default:
			c.notify(fn, nil)
		}
		break
	}
	c.settle(r.frame)
	if sync {
		c.kickAll()
	}
	c.collect()
	c.unstick()
	c.feed()
}

// putWhole completes the overwriting of a whole page.
func (c *core) putWhole(r Ref, changed, sync bool, fn func(error)) {
	f := &c.frames[r.frame]
	waiters := f.waiters
	f.waiters = nil
	if !changed { // given up: the previous content is in force again
		if f.place == ftl.NoPPA {
			c.used--
		}
		c.release(r.frame)
		c.notify(fn, nil)
		c.settleTrims(f) // before the frame serves another page
		for _, w := range waiters {
			c.get(w)
		}
		c.feed()
		return
	}
	f.filler = false
	// One store publishes the page with the references of all waiters. No other goroutine changes the word while the
	// page is InFlight.
	slot := f.slot.Load()
	slot.Store(table.Held(r.frame, len(waiters), false).Soil())
	c.soil(r.frame)
	for _, w := range waiters {
		c.give(w.fn, c.ref(slot, w, r.frame), nil)
	}
	f.waiters = waiters[:0]
	if sync {
		f.syncs = append(f.syncs, waiter{fn: fn})
	} else {
		c.notify(fn, nil)
	}
	c.settle(r.frame)
	if sync {
		c.kickAll()
	}
	c.collect()
	c.unstick()
	c.feed()
}

// settle trims, writes out or evicts a page without references, whichever is due.
func (c *core) settle(at int32) {
	f := &c.frames[at]
	_, w, ok := c.inFrame(at)
	if !ok || w.State() != table.Resident || w.Refs() > 0 {
		return
	}
	if len(f.trims) > 0 {
		c.settleTrims(f)
		return
	}
	switch {
	case w.Dirty() && !f.queued:
		// Pages are written out in the order in which they became due, so a backlog is not overtaken.
		if c.backlog.N > 0 || !c.place(at) {
			f.queued = true
			c.backlog.Push(at)
		}
	case !w.Dirty() && c.cfg.PutThrough:
		c.evict(at)
	}
}
