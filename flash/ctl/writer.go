package ctl

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"farflash/flash/ctl/heat"
	"farflash/flash/ctl/media"
	"farflash/flash/ctl/table"
	"farflash/flash/device"
	"farflash/internal/fifo"
	"farflash/policy/ftl"
)

// writer holds the controller's writes to the segments, open and in flight. A chunk is idle, open, in flight, and idle
// again; after a failed write it stays occupied until each of its pages is placed elsewhere. A move is idle, being
// read, arrived, in a chunk, and idle again.
type writer struct {
	chunks  []chunk
	idleC   []int32           // chunks
	open    []int32           // chunks that accept more pages, at most one per segment
	backlog fifo.Ring[int32]  // dirty frames that wait for space
	failed  fifo.Ring[failed] // pages of failed chunks that wait for space elsewhere

	late   fifo.Ring[func(error)] // callbacks of completed trims, deferred until the log has caught up
	parked fifo.Ring[func()]      // the rest of trims, likewise
	// trims that wait for leaves, for which a flush waits
	trimming []*trim

	moves    []move
	idleM    []int32
	arrived  fifo.Ring[int32] // moves whose page was read and that wait for a chunk
	underWay int              // in flight: writes to the segments and reads of moves
	// empty segments that wait for the mapping changes out of them to become durable, or for reads
	erasing int
	urgent  bool  // a waiter's page is in an open chunk
	failing error // the last error of a segment write; the segment is not written again
}

// chunk is a run of consecutive places of one segment, written by one operation. buf has a copy of each page in pages,
// in the same order.
type chunk struct {
	op    device.Op
	buf   []byte
	pages []write // pages[i] goes to place first+i
	first ftl.PPA
	held  int // failed pages not yet placed elsewhere
	busy  bool
	// pins are the leaves of the pages that collection has moved, until they are there; waits counts those that are
	// not.
	pins  []uint64
	waits int
	// left counts the pages not yet copied into buf, plus one while the chunk is open. Who takes it to 0 submits op.
	left atomic.Int32
}

// fill is a page to be copied into a chunk, without p.mu. A page in a frame is InFlight until then, so that it
// does not change.
type fill struct {
	slot         *table.Slot // of a page in a frame
	chunk, index int32
	frame, move  int32
}

// write is one page in a chunk.
type write struct {
	syncs    []waiter
	frame    int32 // the frame with the content, or noFrame
	move     int32 // the move with the content, if there is no frame
	attempts int
}

// failed is a page of a chunk whose write failed.
type failed struct {
	chunk, index int32
	cause        error
}

// move is a page being moved by collection.
type move struct {
	op       device.Op
	buf      []byte
	from     ftl.PPA
	lpa      uint64 // the page when its read started; Remap can rename it until the move is over
	sum      uint32 // of the content as first written
	read     uint32 // of the content as read
	attempts int
	known    bool // sum is
	bad      bool // unreadable, or its checksum did not match; it stays bad at the new place
}

// barrier is a Flush waiting for the pages changed before it.
type barrier struct {
	fn    func(error)
	left  int // pages not yet logged or lost, plus one until all are counted
	user  *User
	since uint64 // last loss known when it was requested: two concurrent flushes both report a later loss
}

// init sets up the operations of chunks and moves, which are reused.
func (w *writer) init(c *core) {
	w.chunks = make([]chunk, c.cfg.Writes)
	for i := range w.chunks {
		c.own(&w.chunks[i].op, tokenChunk|uint64(i))
		w.chunks[i].pages = make([]write, 0, c.cfg.Chunk)
		w.idleC = append(w.idleC, int32(i))
	}
	w.moves = make([]move, c.cfg.Moves)
	for i := range w.moves {
		c.own(&w.moves[i].op, tokenMove|uint64(i))
		w.idleM = append(w.idleM, int32(i))
	}
}

// arenaPages returns the number of pages of memory that the pool needs.
func (c *core) arenaPages() int {
	return len(c.frames) + len(c.chunks)*c.cfg.Chunk + len(c.moves) + len(c.pages) + 2*bodyChunk + len(c.loads)
}

// furnish carves the arena into buffers.
func (c *core) furnish(arena []byte) {
	take := func(pages int) []byte {
		m := arena[: pages*Page : pages*Page]
		arena = arena[pages*Page:]
		return m
	}
	for i := range c.pages {
		c.pages[i].buf = take(1)
	}
	c.body.buf, c.body.old = take(bodyChunk), take(bodyChunk)
	for i := range c.loads {
		c.loads[i].buf = take(1)
	}
	for range c.frames {
		c.buffers = append(c.buffers, take(1))
	}
	for i := range c.chunks {
		c.chunks[i].buf = take(c.cfg.Chunk)
	}
	for i := range c.moves {
		c.moves[i].buf = take(1)
	}
}

// place starts writing a dirty frame without references, and reports false if there is no space. Until its content is
// copied (Pool.fill), the page is InFlight, so that it does not change. The caller holds p.mu, as for all methods of
// core.
func (c *core) place(at int32) bool {
	f := &c.frames[at]
	slot, w, ok := c.inFrame(at)
	if !ok || w.State() != table.Resident || w.Refs() > 0 || !w.Dirty() {
		c.soil(at) // a holder's Put will bring it here again
		return true
	}
	switch {
	case c.readOnly != nil && f.writing > 0:
		return false // given up once the writes in flight have completed
	case c.readOnly == nil && (len(c.idleC) == 0 || c.logFull()):
		return false
	}
	// A lock-free Get since the load makes the swap fail; that holder's Put brings the page here again.
	if !slot.Swap(w, table.Coming(at)) {
		c.soil(at)
		return true
	}
	if c.readOnly != nil {
		c.giveUp(at, c.readOnly)
		return true
	}
	page, stream := c.cfg.Heat.Written(heat.Page(slot.Heat()), &c.clock, c.used, f.origin)
	to, ok := c.ftl.Allocate(0, int(stream), c.tick())
	if !ok {
		slot.Store(table.Held(at, 0, false).Soil())
		return false
	}
	c.clock.Tick()
	slot.SetHeat(uint64(page))
	// Only the write to latest becomes the mapping. An earlier one that completes later is invalidated in written.
	f.latest = to
	f.writing++
	c.stats.Puts++
	c.stats.Streams[stream]++
	c.add(to, stream, write{frame: at, syncs: f.syncs}, f.page, nil)
	f.syncs = nil
	return true
}

// giveUp abandons a dirty frame that is InFlight and has no write in flight. The page reverts to its content on the
// medium for everybody, as it would after a crash. Waiters get the error, and each user concerned gets it from Flush.
func (c *core) giveUp(at int32, err error) {
	f := &c.frames[at]
	c.lose(f.page, err)
	for _, s := range f.syncs {
		c.refuse(s, err)
	}
	for _, s := range f.passed {
		c.refuse(s, err)
	}
	f.syncs, f.passed = nil, nil
	// A page without a place had reserved space for its first write.
	if f.place == ftl.NoPPA {
		c.used--
	}
	c.release(at)
	c.settleTrims(f)
}

// refuse completes a waiter whose page was lost. A barrier gets its error from the recorded losses.
func (c *core) refuse(w waiter, err error) {
	if w.barrier == nil {
		c.notify(w.fn, err)
		return
	}
	c.arrive(w.barrier)
}

// granted lets a waiter wait until the records logged so far are durable.
func (c *core) granted(w waiter) {
	if w.barrier == nil {
		c.await(w.fn)
		return
	}
	c.arrive(w.barrier)
}

// arrive counts down a barrier. The last arrival reports the user's losses, or waits for the log to become durable.
func (c *core) arrive(b *barrier) {
	if b.left--; b.left > 0 {
		return
	}
	if err := c.reportLosses(b.user, b.since); err != nil && c.readOnly == nil {
		c.notify(b.fn, err)
		return
	}
	c.await(b.fn)
}

// add appends a page to the open chunk of its segment, or opens one. The caller ensures that a chunk is idle. to is the
// next place of its segment, because the translation layer allocates in order. content is that of a page that was
// written before and failed; any other page is copied by Pool.fill.
func (c *core) add(to ftl.PPA, stream heat.Stream, w write, page uint64, content []byte) {
	at := noFrame
	number := c.segmentOf(to)
	for _, i := range c.open {
		if k := &c.chunks[i]; c.segmentOf(k.first) == number {
			at = i
			break
		}
	}
	if at == noFrame {
		at = c.idleC[len(c.idleC)-1]
		c.idleC = c.idleC[:len(c.idleC)-1]
		c.open = append(c.open, at)
		k := &c.chunks[at]
		k.first, k.pages, k.held, k.busy = to, k.pages[:0], 0, true
		k.left.Store(1)
		// The thread that put the first page writes it, and does what follows, whoever comes to open the chunk.
		if k.op.Loop = c.lane; w.frame != noFrame {
			k.op.Loop = c.frames[w.frame].lane
		}
	}
	k := &c.chunks[at]
	if int64(to) != int64(k.first)+int64(len(k.pages)) {
		panic(fmt.Sprintf("ctl: place %d does not continue the chunk at place %d with %d pages", to, k.first,
			len(k.pages)))
	}
	s := &c.segments[number]
	// The Open record precedes the segment's Write records, because those are logged only when a write completes.
	if !s.opened {
		*s = segment{opened: true, erases: s.erases, stream: uint8(stream), session: uint32(c.session), order: c.next}
		c.change(number)
		c.log(media.Record{Kind: media.Open, PPA: uint64(number), LBA: media.OpenedBy(uint8(stream), c.session),
			Sum: s.erases})
	}
	if s.written++; int(s.written) == c.shape.Pages {
		s.order = c.next
	}
	// The place is not live yet: written or movedTo maps the page to it once the data are written.
	if !c.ledger.Whole(number) {
		c.ledger.Prepare(to)
	}
	c.ledger.SetOwner(to, page)
	// A moved page keeps the checksum that it was written with, so that a damaged copy stays detectable.
	if w.frame == noFrame {
		c.ledger.SetSum(to, c.moves[w.move].sum)
	}
	if content == nil {
		x := fill{chunk: at, index: int32(len(k.pages)), frame: w.frame, move: w.move}
		if w.frame != noFrame {
			x.slot = c.frames[w.frame].slot.Load()
		}
		k.left.Add(1)
		c.fills = append(c.fills, x)
	} else {
		buf := k.buf[len(k.pages)*Page:][:Page]
		copy(buf, content)
		c.ledger.SetSum(to, media.Sum(c.seed, buf))
	}
	c.ledger.SetRenamed(to, false)
	k.pages = append(k.pages, w)
	// persist submits open chunks at the end of this call if a waiter needs one of their pages.
	c.urgent = c.urgent || len(w.syncs) > 0 || w.frame != noFrame && len(c.frames[w.frame].passed) > 0
	if len(k.pages)*Page == len(k.buf) || int(s.written) == c.shape.Pages {
		c.kick(at)
	}
}

// copied ends the copying of a page whose word was marked as due meanwhile.
func (c *core) copied(at int32) {
	c.publish(at, 0)
	c.settle(at)
	c.collect()
	c.feed()
}

// kick submits an open chunk once its pages are copied, and kickAll all of them. The device owns k.buf until chunkDone;
// k.pages stays for the completion.
func (c *core) kick(at int32) {
	for i, o := range c.open {
		if o == at {
			c.open = append(c.open[:i], c.open[i+1:]...)
			break
		}
	}
	k := &c.chunks[at]
	dev, offset := c.at(k.first)
	k.op.Kind, k.op.Offset, k.op.Buf, k.op.Err = device.Write, offset, k.buf[:len(k.pages)*Page], nil
	c.underWay++
	if k.left.Add(-1) == 0 {
		c.submit(dev, &k.op)
	}
}

// nudge submits partly filled chunks if no operation in flight will free a frame or space. Otherwise it pays to let
// them fill up.
func (c *core) nudge() {
	if c.underWay == 0 {
		c.kickAll()
	}
}

func (c *core) kickAll() {
	for len(c.open) > 0 {
		c.kick(c.open[0])
	}
}

// chunkDone completes the write of a chunk.
func (c *core) chunkDone(at int32) {
	k := &c.chunks[at]
	if k.op.Err == nil && !c.leavesOf(k, at) {
		return
	}
	c.underWay--
	if err := k.op.Err; err != nil {
		c.failing = err
		dev, _ := c.at(k.first)
		c.trouble(dev, &k.op, noPage, err)
		// The chunk stays occupied: its buffer has the only copy of pages that have changed in their frames since.
		k.held = len(k.pages)
		for i := range k.pages {
			c.failed.Push(failed{at, int32(i), err})
		}
		c.failedFirst(k)
	} else {
		for i := range k.pages {
			c.written(k.first+ftl.PPA(i), &k.pages[i])
		}
		c.unpinAll(&k.pins)
		c.programmed(k)
		c.idleC, k.busy = append(c.idleC, at), false
		// Requests wait for frames: those just written are the nearest, and a search among dirty ones costs more.
		for i := 0; i < len(k.pages) && int(c.queue.N) > len(c.free); i++ {
			if f := k.pages[i].frame; f != noFrame && len(c.frames[f].trims) == 0 {
				c.evict(f)
			}
		}
	}
	c.advance()
}

// programmed counts a chunk's places as written; the last one of a segment triggers the write of its summary. A segment
// with a failed chunk never reaches its full count, so it gets no summary.
func (c *core) programmed(k *chunk) {
	i := c.segmentOf(k.first)
	s := &c.segments[i]
	if s.programmed += int32(len(k.pages)); int(s.programmed) == c.shape.Pages {
		c.summarise(i)
		c.ledger.Seal(i)
	}
}

// written maps a page to its new place, unless a newer version or a trim overtook it. The data are written, so the
// record can be logged; the reverse order would let a durable record refer to missing data.
func (c *core) written(to ftl.PPA, w *write) {
	if w.frame == noFrame {
		c.movedTo(to, w)
		return
	}
	f := &c.frames[w.frame]
	f.writing--
	c.ftl.Programmed(to)
	// A page can have several writes in flight; only the newest may become its mapping.
	newest := f.latest == to
	// Waiters are granted after the record is logged, because await covers the records up to the current one.
	if newest {
		if f.place != ftl.NoPPA {
			c.clearLive(f.place)
			c.ftl.Invalidate(f.place, c.tick())
		}
		f.place = to
		c.setLive(to)
		c.rename(to, f.page)
		sum := c.sum(to)
		c.table.Note(f.page, to, sum)
		c.log(media.Record{Kind: media.Write, LBA: f.page, PPA: uint64(to), Sum: sum})
	} else {
		c.ftl.Invalidate(to, c.tick())
	}
	if newest {
		c.grantAll(f, w.syncs)
	} else {
		c.overtaken(w.frame, w.syncs)
	}
	w.syncs = nil
	if c.cfg.PutThrough {
		c.evict(w.frame)
	}
}

// grantAll grants waiters and the frame's passed waiters, which wait for the same write.
func (c *core) grantAll(f *frame, waiters []waiter) {
	for _, s := range waiters {
		c.granted(s)
	}
	for _, s := range f.passed {
		c.granted(s)
	}
	clear(f.passed)
	f.passed = f.passed[:0]
}

// overtaken transfers the waiters of a completed write that is not the newest to the newest one. If the newest has
// already failed and its content is still dirty in memory, they wait for that content to be written, because the
// version they wait for is not mapped.
func (c *core) overtaken(at int32, waiters []waiter) {
	f := &c.frames[at]
	switch {
	case f.writing > 0:
		f.passed = append(f.passed, waiters...)
		c.urgent = c.urgent || len(waiters) > 0
	case f.latest == ftl.NoPPA && c.dirty(at):
		f.syncs = append(append(f.syncs, f.passed...), waiters...)
		clear(f.passed)
		f.passed = f.passed[:0]
	default:
		c.grantAll(f, waiters)
	}
}

// dirty reports whether the page in a frame has changes that are not being written.
func (c *core) dirty(at int32) bool {
	_, w, ok := c.inFrame(at)
	return ok && w.Dirty()
}

// movedTo completes a move. The record of damaged content is a Keep, whose content recovery does not verify.
func (c *core) movedTo(to ftl.PPA, w *write) {
	m := &c.moves[w.move]
	defer c.moveOver(w.move)
	// Moved reports false if the page was overwritten or trimmed meanwhile, so that the copy is stale.
	live := c.ledger.IsLive(m.from)
	if !c.ftl.Moved(m.from, to, c.tick()) {
		return
	}
	if !live {
		panic(fmt.Sprintf("ctl: page %d was moved from place %d, which does not hold it", m.lpa, m.from))
	}
	page := c.owner(m.from) // Remap may have renamed it since it was read
	c.clearLive(m.from)
	c.setLive(to)
	c.rename(to, page)
	c.table.Note(page, to, m.sum)
	kind := media.Write
	if m.bad {
		kind = media.Keep
	}
	c.log(media.Record{Kind: kind, LBA: page, PPA: uint64(to), Sum: m.sum})
}

// failedFirst reports a failed chunk's places to the translation layer; retry then places its pages elsewhere. The
// segment is then failing, so that Allocate returns no further place in it.
func (c *core) failedFirst(k *chunk) {
	for i := range k.pages {
		w, to := &k.pages[i], k.first+ftl.PPA(i)
		if w.frame == noFrame {
			c.ftl.MoveFailed(c.moves[w.move].from, to, c.tick())
			continue
		}
		c.ftl.ProgramFailed(to, c.tick())
	}
}

// retry places a failed page elsewhere, and reports false if there is no space yet.
func (c *core) retry(x failed) bool {
	// The content of a user's page is taken from the chunk, because a holder may be changing the frame.
	k := &c.chunks[x.chunk]
	w := k.pages[x.index]
	was := k.first + ftl.PPA(x.index)
	if w.frame == noFrame {
		m := &c.moves[w.move]
		switch {
		case c.readOnly != nil:
			c.moveOver(w.move) // the source segment keeps its pages
		case len(c.idleC) == 0:
			return false
		default:
			c.relocate(w.move, m)
		}
		return true
	}
	f := &c.frames[w.frame]
	if f.latest != was || w.attempts >= c.cfg.Retries || c.readOnly != nil ||
		errors.Is(x.cause, syscall.ENOSPC) && c.ftl.Free(0) == 0 {
		// Superseded, out of attempts, or without a place to go.
		c.abandon(&w, was, x.cause)
		return true
	}
	if len(c.idleC) == 0 {
		return false
	}
	// The same stream as that of the failed write.
	stream := heat.Stream(c.segments[c.segmentOf(was)].stream)
	to, ok := c.ftl.Allocate(0, int(stream), c.tick())
	if !ok {
		return false
	}
	// f.writing still counts this write.
	w.attempts++
	f.latest = to
	c.stats.Rewritten++
	c.add(to, stream, w, f.page, k.buf[int(x.index)*Page:][:Page])
	return true
}

// abandon abandons a user's failed write, with an error unless a newer version supersedes it.
func (c *core) abandon(w *write, was ftl.PPA, cause error) {
	f := &c.frames[w.frame]
	f.writing--
	if f.latest != was {
		c.overtaken(w.frame, w.syncs)
		return
	}
	cause = fmt.Errorf("writing page %d: %w", f.page, cause)
	f.latest = f.place
	if f.writing > 0 { // older writes in flight must not be taken for the newest
		f.latest = ftl.NoPPA
	}
	c.lose(f.page, cause)
	for _, s := range w.syncs {
		c.refuse(s, cause)
	}
	if f.writing == 0 {
		for _, s := range f.passed {
			c.refuse(s, cause)
		}
		f.passed = nil
	}
	// The content exists only in the frame. If the frame has no holder, the content is discarded; otherwise the last
	// holder's Put tries again.
	for {
		slot, old, ok := c.inFrame(w.frame)
		if !ok || old.State() != table.Resident {
			return
		}
		if old.Refs() > 0 || f.writing > 0 {
			if slot.Swap(old, old.Soil()) {
				c.soil(w.frame)
				c.settle(w.frame)
				return
			}
			continue
		}
		if old.Dirty() {
			return // newer content is waiting to be written
		}
		if slot.Swap(old, table.Coming(w.frame)) {
			if f.place == ftl.NoPPA {
				c.used--
			}
			c.release(w.frame)
			c.settleTrims(f)
			return
		}
	}
}

// advance resumes everything that waited for the completion of an operation. Failed pages are first, because they
// occupy chunks that all other writes need. It can be re-entered: the callback of erase and unstick call it.
func (c *core) advance() {
	for c.failed.N > 0 && c.retry(*c.failed.First()) {
		c.unhold()
	}
	c.collect()
	for c.backlog.N > 0 {
		at := *c.backlog.First()
		if !c.place(at) {
			break
		}
		c.backlog.Pop()
		c.frames[at].queued = false
	}
	if c.backlog.N > 0 || c.queue.N > 0 {
		c.nudge()
	}
	c.unstick()
	c.feed()
	c.persist()
	c.caughtUp()
}

// unhold takes the first failed page off its list.
func (c *core) unhold() {
	x := c.failed.Pop()
	k := &c.chunks[x.chunk]
	if k.held--; k.held == 0 {
		c.idleC, k.busy = append(c.idleC, x.chunk), false
	}
}

// unstick fails the writes that wait for space when no operation in flight can free any: enough segments have failed
// that the remaining ones are full. Each condition of the first test names an event that will free space or retry
// later: an operation in flight, an open chunk, an erase that waits for the log, a segment pinned by a summary, Check
// or a read, or a checkpoint that frees log space.
func (c *core) unstick() {
	if c.underWay > 0 || len(c.open) > 0 || c.erasing > 0 || c.summaries > 0 || c.checks > 0 || c.logFull() ||
		c.readOnly != nil {
		return
	}
	if c.failed.N > 0 {
		x := *c.failed.First()
		k := &c.chunks[x.chunk]
		if w := k.pages[x.index]; w.frame != noFrame {
			c.abandon(&w, k.first+ftl.PPA(x.index), x.cause)
			c.unhold()
			c.advance()
			return
		}
		c.fail(fmt.Errorf("moving pages out of failing segments: %w", x.cause))
		return
	}
	full := ErrFull
	if c.failing != nil {
		full = fmt.Errorf("%w, because segments with failed writes are not written again: %w", ErrFull, c.failing)
	}
	for c.backlog.N > 0 {
		at := c.backlog.Pop()
		f := &c.frames[at]
		f.queued = false
		if slot, w, ok := c.inFrame(at); ok && w.State() == table.Resident && w.Refs() == 0 && w.Dirty() &&
			f.writing == 0 && slot.Swap(w, table.Coming(at)) {
			c.giveUp(at, full)
		}
	}
}

// collect advances garbage collection as far as it can go now. Moves end in the log, so none starts while it is full;
// nor does any during the final checkpoint, which requires a quiet core.
func (c *core) collect() {
	if c.readOnly != nil {
		return
	}
	for c.arrived.N > 0 && len(c.idleC) > 0 && !c.logFull() {
		i := c.arrived.Pop()
		c.relocate(i, &c.moves[i])
	}
	for len(c.idleM) > 0 && !c.logFull() && c.finished == nil {
		a, ok := c.ftl.Next(0)
		if !ok {
			break
		}
		if a.Kind == ftl.Erase {
			c.erase(a.Block)
			continue
		}
		i := c.idleM[len(c.idleM)-1]
		c.idleM = c.idleM[:len(c.idleM)-1]
		m := &c.moves[i]
		m.from, m.lpa, m.bad, m.attempts = a.Source, uint64(a.LPA), false, 0
		c.segments[a.Block].moving++
		_, named := c.ledger.Owner(a.Source)
		if m.sum, m.known = c.ledger.SumAt(a.Source); !m.known || !named {
			c.load(a.Source, nobody, 0)
		}
		dev, offset := c.at(a.Source)
		m.op.Kind, m.op.Offset, m.op.Buf, m.op.Err, m.op.Loop = device.Read, offset, m.buf, nil, c.lane
		c.underWay++
		c.submit(dev, &m.op)
	}
	if c.underWay == 0 && (c.backlog.N > 0 || c.ftl.Collecting(0)) {
		c.kickAll() // moves in open chunks pin the segment that they come from
	}
}

// inspect computes the checksum of a page read to be moved. It needs no lock: until moveRead, only this read uses the
// move.
func (c *core) inspect(op *device.Op) {
	if op.Token&tokenMask == tokenMove && op.Err == nil {
		c.moves[int32(op.Token)].read = media.Sum(c.seed, op.Buf)
	}
}

// moveRead completes the read of a page that collection moves.
func (c *core) moveRead(i int32) {
	m := &c.moves[i]
	if m.op.Err != nil && m.attempts < c.cfg.Retries {
		m.attempts++
		dev, _ := c.at(m.from)
		c.submit(dev, &m.op)
		return
	}
	if !m.known {
		m.sum, m.known = c.ledger.SumAt(m.from)
	}
	switch page, named := c.ledger.Owner(m.from); {
	case m.known && named:
		m.lpa = page
	case !c.ledger.IsLive(m.from): // superseded, and perhaps not in the checkpoint
		m.sum, m.known = m.read, true
	default:
		c.load(m.from, aMove, i)
		return
	}
	c.underWay--
	switch {
	case m.op.Err != nil:
		// An unreadable page is lost and must stay detectably lost at its new place: zeros do not match the expected
		// checksum, unless the page was zeros.
		clear(m.buf)
		m.bad = media.Sum(c.seed, m.buf) != m.sum
	case m.read != m.sum:
		m.bad = true
	}
	if m.bad {
		c.stats.Damaged++
		dev, _ := c.at(m.from)
		c.trouble(dev, &m.op, m.lpa, cmp.Or(m.op.Err, ErrDamaged))
	}
	c.arrived.Push(i)
	c.advance()
}

// moveOver makes a move idle.
func (c *core) moveOver(i int32) {
	c.segments[c.segmentOf(c.moves[i].from)].moving--
	c.idleM = append(c.idleM, i)
}

// relocate adds a moved page to a chunk. The caller ensures that a chunk is idle.
func (c *core) relocate(i int32, m *move) {
	_, known := c.table.Peek(m.lpa)
	to, ok := c.ftl.RelocateTo(m.from, int(c.cfg.Heat.Survived(heat.Page(known), &c.clock, c.used)), c.tick())
	// The page was superseded since it was read, or there is no destination; Next then offers it again.
	if !ok {
		c.moveOver(i)
		return
	}
	stream := c.streamOf(to)
	c.stats.Moved++
	c.stats.Streams[stream]++
	c.add(to, stream, write{frame: noFrame, move: i}, m.lpa, nil)
}

// streamOf returns the stream of a newly allocated place.
func (c *core) streamOf(p ftl.PPA) heat.Stream {
	return heat.Stream(c.ftl.StreamOf(c.ftl.BlockOf(p)))
}

// erase frees an empty segment once every record logged so far is durable, so that no durable mapping refers to it,
// and no read of it is in flight. It sends no operation to the device: the places are overwritten when the segment is
// opened again.
func (c *core) erase(b ftl.Block) {
	c.erasing++
	c.kickAll()
	// The changes that emptied the segment are all logged by now, so the wait covers them.
	c.awaitThen(func(err error) {
		if err != nil {
			c.erasing-- // read-only: the segment is never reused
			return
		}
		// The old mapping is durably gone, so the places can be reused.
		c.pinned = append(c.pinned, b)
		c.reuse()
	})
}

// summarise writes the summary of a filled segment in the background. The segment is not reused until that write
// completes. ReadStarted pins it meanwhile.
func (c *core) summarise(i int64) {
	s := &c.segments[i]
	sum := media.Summary{
		Segment: uint64(i), Session: uint64(s.session), Erases: s.erases, Stream: s.stream, Back: c.last[s.stream],
		Order:   s.order,
		Entries: make([]media.Entry, c.shape.Pages),
	}
	c.last[s.stream] = uint64(i) + 1
	first := ftl.PPA(i * int64(c.shape.Pages))
	for k := range sum.Entries {
		at := first + ftl.PPA(k)
		sum.Entries[k] = media.Entry{Page: c.owner(at) + 1, Sum: c.sum(at)}
		if c.ledger.IsRenamed(at) {
			sum.Entries[k].Page = 0 // the record of the move can be lost in a crash that the summary survives
		}
	}
	buf := device.Aligned(c.shape.SummaryGrains() * Page)
	sum.Encode(buf, c.shape.UUID)
	c.ftl.ReadStarted(first)
	c.stats.Summaries += int64(c.shape.SummaryGrains())
	c.summaries++
	p := c.places[i]
	op := &device.Op{Kind: device.Write, Buf: buf, Offset: p.offset + int64(c.shape.Pages)*Page}
	c.own(op, tokenSummary|uint64(i))
	c.submit(p.device, op)
}

// summaryDone completes the write of a summary. If it failed, the segment is marked failed and not written again.
func (c *core) summaryDone(i int64, err error) {
	c.summaries--
	c.ftl.ReadDone(ftl.PPA(i * int64(c.shape.Pages)))
	if err != nil {
		c.ftl.Fail(ftl.Block(i))
	}
	c.advance()
}
