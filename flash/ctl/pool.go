package ctl

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"farflash/flash/ctl/heat"
	"farflash/flash/ctl/media"
	"farflash/flash/ctl/remains"
	"farflash/flash/ctl/table"
	"farflash/flash/device"
	"farflash/policy/ftl"
)

// Pool is an open pool. All methods are safe for concurrent use and may be called from callbacks, except those that
// block (ReadAt, WriteAt, Discard, Sync, Close): a callback runs on the completion path and delays all other
// completions while it runs.
type Pool struct {
	mu      sync.Mutex // guards core
	core    *core
	table   *table.Table
	through bool // Config.PutThrough
	devices []device.Device
	arena   []byte
	closed  bool
	err     error // of Close
	found   Recovery
	user    *User       // for Flush, Sync and Close
	shut    atomic.Bool // closed, readable without mu

	inbox
}

// Open opens the pool on devices, given in any order, and recovers it if it was not closed cleanly. If the recovered
// state cannot be written back, the pool opens read-only and ReadOnly returns the reason. The pool owns the devices and
// closes them in Close; if Open fails, they remain the caller's.
func Open(cfg Config, devices ...device.Device) (*Pool, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	shape, sorted, err := remains.Arrange(devices)
	if err != nil {
		return nil, err
	}
	if cfg, err = cfg.divided(shape); err != nil {
		return nil, err
	}
	cfg.Trouble = named(cfg.Trouble, sorted)
	return begin(cfg, sorted, func(p *Pool) (err error) {
		if p.core, err = newCore(cfg, shape, p.completed, p.arrived); err == nil {
			p.found, err = p.core.recoverState(sorted)
		}
		return err
	})
}

// begin makes a pool of the core that find sets and fills.
func begin(cfg Config, sorted []device.Device, find func(*Pool) error) (*Pool, error) {
	p := &Pool{devices: sorted, through: cfg.PutThrough}
	err := find(p)
	if err != nil {
		return nil, err
	}
	p.table = p.core.table
	if p.arena, err = device.Arena(p.core.arenaPages() * Page); err != nil {
		return nil, err
	}
	// Recovery has run without p.mu and without the arena: no other goroutine has the pool yet, and its buffers are its
	// own.
	p.core.furnish(p.arena)
	for _, d := range sorted {
		if r, ok := d.(device.Registrar); ok {
			if err := r.Register(p.arena); err != nil {
				return nil, errors.Join(err, device.Release(p.arena))
			}
		}
	}
	p.user = p.User(0, ^uint64(0)) // which can begin a checkpoint, if the log was left long
	return p, nil
}

// Found returns the result of recovery.
func (p *Pool) Found() Recovery { return p.found }

// Shape returns the pool's layout.
func (p *Pool) Shape() media.Shape { return p.core.shape }

// carryOut copies a batch's pages, submits its operations, runs its callbacks, and returns it. The caller holds no
// lock.
func (p *Pool) carryOut(b *batch) {
	for i := range b.fills {
		p.fill(b, &b.fills[i])
	}
	if len(b.late) > 0 {
		p.lock()
		for _, at := range b.late {
			p.core.copied(at)
		}
		p.leave()
	}
	for i := 0; i < len(b.ops); {
		n := i + 1
		// One Submit for each run of operations on the same device.
		for n < len(b.ops) && b.to[n] == b.to[i] {
			n++
		}
		p.devices[b.to[i]].Submit(b.ops[i:n]...)
		i = n
	}
	for i := range b.calls {
		if k := &b.calls[i]; k.get != nil {
			k.get(k.ref, k.err)
		} else {
			k.done(k.err)
		}
	}
	clear(b.ops)
	clear(b.calls)
	clear(b.fills)
	b.ops, b.to, b.calls, b.fills = b.ops[:0], b.to[:0], b.calls[:0], b.fills[:0]
	clear(b.posts)
	b.failed, b.late, b.posts = b.failed[:0], b.late[:0], b.posts[:0]
	batches.Put(b)
}

// fill copies a page into its chunk, so that its frame can be changed while the chunk is written, and checksums the
// copy. It makes the page resident and clean: a change from here on makes it dirty and leads to another write.
func (p *Pool) fill(b *batch, x *fill) {
	c := p.core
	k := &c.chunks[x.chunk]
	buf := k.buf[int(x.index)*Page:][:Page]
	if x.frame == noFrame {
		copy(buf, c.moves[x.move].buf)
	} else {
		copy(buf, c.buffers[x.frame])
		c.ledger.SetSum(k.first+ftl.PPA(x.index), media.Sum(c.seed, buf))
		if !x.slot.Swap(table.Coming(x.frame), table.Held(x.frame, 0, false)) {
			b.late = append(b.late, x.frame)
		}
	}
	dev, _ := c.at(k.first) // before the chunk can be another's
	if k.left.Add(-1) == 0 {
		b.one[0] = &k.op
		p.devices[dev].Submit(b.one[:]...) // at once: another thread may do what follows while this one copies on
	}
}

// batch is a set of lists being carried out.
type batch struct {
	ops    []*device.Op
	to     []int32
	calls  []call
	fills  []fill
	failed []int64 // segments to unpin
	posts  []post
	one    [1]*device.Op
	late   []int32 // frames whose page was marked as due while it was copied
}

var batches = sync.Pool{New: func() any { return new(batch) }}

// completed receives a completed operation, on the device's thread. If the device has another one to announce, that is
// time enough.
func (p *Pool) completed(op *device.Op) {
	p.core.inspect(op)
	more := op.More // the operation is another's once it was attended to
	p.post(op)
	if !more {
		p.attend()
	}
}

// Mode is the kind of access that a page is requested for.
type Mode uint8

// The modes. Whole promises to overwrite the entire page: its content is not read.
const (
	Reading Mode = iota
	Writing
	Whole
)

// Get requests a page by number (address divided by Page). It calls fn once, possibly before it returns, with the page
// or an error. All holders of a page share the same memory. Every page given out must be put back with Put, once. Pages
// are served in any order, except that requests that wait for memory are served first come, first served. A caller that
// needs several pages therefore makes progress if it requests all of them before it waits for any, and requests fewer
// than there are frames.
func (p *Pool) Get(page uint64, mode Mode, fn func(Ref, error)) { p.GetOn(0, page, mode, fn) }

// GetOn is Get for a thread that drives device I/O itself: a read goes to the I/O loop of that lane (device.Op), and
// shares no lock with those of other lanes.
func (p *Pool) GetOn(lane uint8, page uint64, mode Mode, fn func(Ref, error)) {
	if r, ok := p.tryGet(lane, page, mode); ok {
		fn(r, nil)
		return
	}
	if mode != Writing && len(p.miss(lane, []Want{{fn, page, mode}}, false)) == 0 {
		return
	}
	if page >= media.MaxLBA {
		fn(Ref{Page: page}, ErrRange)
		return
	}
	r := ask(lane, page, mode, fn)
	if p.try() {
		p.core.lane = lane
		p.get(r)
		p.leave()
		return
	}
	p.post(nil, post{kind: postGet, lane: lane, get: r})
	p.attend()
}

// tryGet is Get for a page that is in memory. It takes no lock, and reports false if the page is not in memory or
// cannot be given out immediately for another reason.
func (p *Pool) tryGet(lane uint8, page uint64, mode Mode) (Ref, bool) {
	if page >= media.MaxLBA {
		return Ref{}, false
	}
	slot := p.table.Slot(page)
	if slot == nil {
		return Ref{}, false
	}
	for {
		w := slot.Load()
		// The swap below fails if the word has changed since, and the loop decides again.
		next, ok := w.Get(mode != Reading)
		if !ok {
			return Ref{}, false
		}
		if slot.Swap(w, next) {
			if mode == Reading {
				slot.CountRead()
			}
			// The reference pins the frame: evict and place fail on a word with references.
			at := w.Frame()
			p.core.touch(at)
			p.core.hit(lane, at)
			return Ref{slot: slot, Page: page, frame: at, lane: lane, Data: p.core.buffers[at]}, true
		}
	}
}

// Change is what a holder did to the page that it puts.
type Change uint8

// The changes. Kept is no change; for a page with Fill it abandons the overwrite, and the previous content stays. A
// Changed page is written when its last holder puts it, and is durable after a Sync. Durable is Changed with fn called
// once the change is durable.
const (
	Kept Change = iota
	Changed
	Durable
)

// Put returns a page. fn, which may be nil, is called once, possibly before Put returns: for Durable when the change is
// durable or lost, otherwise immediately. from is the writer's hint about the data.
func (p *Pool) Put(r Ref, change Change, from heat.Origin, fn func(error)) {
	// The lock-free path, for puts that leave no work behind. A hint is stored in the frame, which requires the lock.
	if !r.Fill && change != Durable && from == heat.Auto {
		for {
			w := r.slot.Load()
			if w.State() != table.Resident || w.Frame() != r.frame {
				break // Remap moved the page
			}
			next := w.Put(change != Kept)
			if next.Refs() == 0 && (next.Dirty() || next.Due() || p.through) {
				break // the last reference leaves work: a write, a trim or an eviction
			}
			if change != Kept {
				p.core.soil(r.frame) // first, so that a flush after this call sees it
			}
			if r.slot.Swap(w, next) {
				// takeFrame sets frameWanted before it searches: either it finds this page idle, or this load sees
				// the flag.
				if next.Refs() == 0 && p.core.frameWanted.Load() {
					p.lock()
					p.core.feed()
					p.leave()
				}
				if fn != nil {
					fn(nil)
				}
				return
			}
		}
	}
	if p.try() {
		p.core.lane = r.lane
		p.core.put(r, change != Kept, change == Durable, from, fn)
		p.leave()
		return
	}
	p.post(nil, post{kind: postPut, lane: r.lane, put: r, changed: change != Kept, sync: change == Durable, from: from,
		fn: fn})
	p.attend()
}

// Trim discards the content of pages: they read as zeros and take no space. fn is called once the trim has taken effect
// and the log keeps up, or with sync once it is durable. That can be after Trim returns, for pages whose part of the
// map is not in memory: what is written to them meanwhile may be discarded too. Held pages are trimmed when the last
// holder puts them. A caller that keeps trimming without waiting for fn while the devices are slow eventually gets
// ErrLogFull.
func (p *Pool) Trim(first, count uint64, sync bool, fn func(error)) {
	if first >= media.MaxLBA || count > media.MaxLBA-first {
		fn(ErrRange)
		return
	}
	if count == 0 {
		fn(nil)
		return
	}
	p.lock()
	if p.closed {
		p.leave()
		fn(ErrClosed)
		return
	}
	p.core.trimPages(first, first+count-1, sync, fn)
	p.leave()
}

// Await calls fn once every completed trim and write-out is durable: an unheld page then reads after a crash as it does
// now, or as later content. Unlike Flush, it does not write out changed pages.
func (p *Pool) Await(fn func(error)) {
	p.lock()
	if p.closed {
		p.leave()
		fn(ErrClosed)
		return
	}
	p.core.await(fn)
	p.leave()
}

// Flush acts for a user of the whole pool since it was opened. All callers of this method share that user, so each loss
// is reported once, to the first caller.
func (p *Pool) Flush(fn func(error)) { p.user.Flush(fn) }

// wait returns a callback and a function that blocks until it is called.
func wait() (fn func(error), until func() error) {
	done := make(chan error, 1)
	return func(err error) { done <- err }, func() error { return <-done }
}

// Sync is Flush and waits for it.
func (p *Pool) Sync() error {
	fn, until := wait()
	p.Flush(fn)
	return until()
}

// spanned checks that n bytes from at on are within the address space.
func spanned(at uint64, n int) error {
	if uint64(n) > 0 && at > ^uint64(0)-uint64(n)+1 {
		return ErrRange
	}
	return nil
}

// ReadAt reads len(b) bytes from any address. Bytes never written, or trimmed, are zero.
func (p *Pool) ReadAt(b []byte, at uint64) error {
	if err := spanned(at, len(b)); err != nil {
		return err
	}
	return p.each(at, len(b), func(page uint64) (Mode, Change) { return Reading, Kept },
		func(r Ref, in, from, n int) { copy(b[from:from+n], r.Data[in:]) })
}

// WriteAt writes b at any address; with sync the bytes are durable when it returns. After an error any part of them may
// have been written.
func (p *Pool) WriteAt(b []byte, at uint64, sync bool) error {
	return p.WriteFrom(b, at, sync, heat.Auto)
}

// WriteFrom is WriteAt with a hint about the data.
func (p *Pool) WriteFrom(b []byte, at uint64, sync bool, from heat.Origin) error {
	if err := spanned(at, len(b)); err != nil {
		return err
	}
	change := Changed
	if sync {
		change = Durable
	}
	end := at + uint64(len(b))
	return p.eachFrom(at, len(b), from, func(page uint64) (Mode, Change) {
		if page*Page >= at && (page+1)*Page-1 <= end-1 {
			return Whole, change
		}
		return Writing, change
	}, func(r Ref, in, from, n int) { copy(r.Data[in:], b[from:from+n]) })
}

// each is eachFrom without a hint.
func (p *Pool) each(at uint64, n int, what func(uint64) (Mode, Change), do func(r Ref, in, from, n int)) error {
	return p.eachFrom(at, n, heat.Auto, what, do)
}

// eachFrom calls do for every page of a range, in the order in which they become available. It works in parts, so that
// no range needs more frames than there are.
func (p *Pool) eachFrom(at uint64, n int, origin heat.Origin, what func(uint64) (Mode, Change),
	do func(r Ref, in, from, n int)) error {
	// A part has up to 64 pages (256 KiB), or a quarter of the frames if there are few.
	most := max(1, min(64, p.core.cfg.Frames/4))
	for from := 0; from < n; {
		part := min(n-from, most*Page-int((at+uint64(from))%Page))
		if err := p.part(at, from, part, origin, what, do); err != nil {
			return err
		}
		from += part
	}
	return nil
}

// part requests all pages of a part before it waits for any, as Get requires.
func (p *Pool) part(at uint64, from, n int, origin heat.Origin, what func(uint64) (Mode, Change),
	do func(r Ref, in, from, n int)) error {
	first, last := (at+uint64(from))/Page, (at+uint64(from)+uint64(n)-1)/Page
	// The channel has space for all results, because callbacks run on the completion path and must not block.
	results := make(chan error, last-first+1)
	for page := first; ; page++ {
		mode, change := what(page)
		p.Get(page, mode, func(r Ref, err error) {
			if err != nil {
				results <- err
				return
			}
			begin := max(page*Page, at+uint64(from))
			left := at + uint64(from) + uint64(n) - begin // wraps back where the range ends with the address space
			size := int(min(left, Page-begin%Page))
			do(r, int(begin%Page), int(begin-at), size)
			p.Put(r, change, origin, func(err error) { results <- err })
		})
		if page == last {
			break
		}
	}
	// Wait for every page even after an error: the callbacks use the caller's buffer.
	var first1 error
	for range last - first + 1 {
		if err := <-results; err != nil && first1 == nil {
			first1 = err
		}
	}
	return first1
}

// Discard makes n bytes from at on read as zeros. Whole pages among them are trimmed and take no space.
func (p *Pool) Discard(at, n uint64, sync bool) error {
	if n == 0 {
		return nil
	}
	if at > ^uint64(0)-n+1 {
		return ErrRange
	}
	// The first page that starts within the range, and the page with its last byte. Sums may wrap to 0 at the end of
	// the space, but none does here: at+n-1 is in range, and first is at most one page beyond the last.
	first, last := at/Page, (at+n-1)/Page
	if at%Page != 0 {
		first++
	}
	whole := last + 1
	if (at+n)%Page != 0 {
		whole = last
	}
	// The pages that are only partly in the range are zeroed by writes. If last < first, the range lies within one
	// page, and the first write covers it.
	zeros := make([]byte, Page)
	if at%Page != 0 {
		if err := p.WriteAt(zeros[:min(n, Page-at%Page)], at, sync); err != nil {
			return err
		}
	}
	if whole >= first && (at+n)%Page != 0 && last >= first {
		if err := p.WriteAt(zeros[:(at+n)%Page], last*Page, sync); err != nil {
			return err
		}
	}
	if whole <= first {
		return nil
	}
	fn, until := wait()
	p.Trim(first, whole-first, sync, fn)
	return until()
}

// Close makes everything durable, writes a checkpoint from which the next Open starts without replay, and closes the
// devices. No page may be held. If it returns an error, the pool is closed nevertheless, and the next Open recovers it
// as after a crash.
func (p *Pool) Close() error {
	p.lock()
	if p.closed {
		p.leave()
		return p.err
	}
	held := p.core.held()
	p.leave()
	if held > 0 {
		return fmt.Errorf("ctl: %d pages are still held", held)
	}
	err := p.Sync()
	p.lock()
	// From here on, requests that need the core are refused.
	p.closed = true
	p.shut.Store(true)
	if p.core.readOnly == nil {
		// persist starts the final checkpoint once the core is quiet, and its completion calls fn.
		fn, until := wait()
		p.core.finished = fn
		p.core.advance()
		p.leave()
		err = errors.Join(err, until())
	} else {
		p.leave()
	}
	return p.release(err)
}

// release closes the devices and frees the memory of a pool that is closed.
func (p *Pool) release(err error) error {
	// A device owns the buffers of operations in flight, so all devices are closed before the arena is unmapped.
	for _, d := range slices.Backward(p.devices) {
		err = errors.Join(err, d.Close())
	}
	for i := range p.core.lanes { // a lane that did not see shut has published its frames
		p.core.lanes[i].mu.Lock()
		p.core.lanes[i].mu.Unlock() //nolint:staticcheck // only waits
	}
	p.lock()
	p.core.forget()
	p.err = errors.Join(err, device.Release(p.arena))
	p.arena = nil
	p.leave()
	return p.err
}

// forget detaches every frame from its page, so that no lock-free Get returns memory that has been released.
func (c *core) forget() {
	for i := range c.frames {
		if _, _, ok := c.inFrame(int32(i)); ok {
			c.release(int32(i))
		}
	}
}

// held returns the number of pages that have holders.
func (c *core) held() int {
	n := 0
	for i := range c.frames {
		_, w, ok := c.inFrame(int32(i))
		// A page with a filler is InFlight, but has a holder, which is overwriting it.
		if ok && (w.State() == table.Resident && w.Refs() > 0 || c.frames[i].filler) {
			n++
		}
	}
	return n
}

// Stats returns the counters since the pool was opened.
func (p *Pool) Stats() Stats {
	p.lock()
	defer p.leave()
	s := p.core.stats
	for i := range p.core.lanes {
		l := &p.core.lanes[i]
		l.mu.Lock()
		s.LaneMisses += l.misses
		l.mu.Unlock()
		s.Hits += l.hits.Load()
	}
	s.Misses += s.LaneMisses
	return s
}

// Use returns the number of pages in use and the capacity.
func (p *Pool) Use() (used, capacity int64) {
	p.lock()
	defer p.leave()
	return p.core.used, p.core.shape.Capacity
}

// Segments returns the number of segments without data, and of all.
func (p *Pool) Segments() (empty, all int64) {
	p.lock()
	defer p.leave()
	return int64(p.core.ftl.Free(0)), int64(len(p.core.segments))
}

// Heat returns a page's number of reads and the estimated number of writes to the pool between two writes of this page.
func (p *Pool) Heat(page uint64) (reads uint32, interval float64) {
	if slot := p.table.Slot(page); slot != nil {
		reads = slot.Reads()
	}
	_, h := p.table.Peek(page)
	p.lock()
	defer p.leave()
	return reads, heat.Page(h).Interval(&p.core.clock)
}

// ReadOnly returns the reason why writes are refused, or nil.
func (p *Pool) ReadOnly() error {
	p.lock()
	defer p.leave()
	return p.core.readOnly
}
