package ctl

import (
	"errors"
	"fmt"
	"syscall"

	"farflash/flash/ctl/heat"
	"farflash/flash/ctl/media"
	"farflash/flash/ctl/table"
	"farflash/flash/device"
	"farflash/internal/fifo"
	"farflash/policy/ftl"
)

// writer is what the controller has under way towards the segments.
type writer struct {
	chunks  []chunk
	idleC   []int32           // chunks
	open    []int32           // chunks that take more pages, at most one a segment
	backlog fifo.Ring[int32]  // dirty frames that wait for room
	failed  fifo.Ring[failed] // pages of chunks that failed and wait for room elsewhere

	late fifo.Ring[func(error)] // trims that are done, and whose callers are told when the log has taken them

	moves    []move
	idleM    []int32
	arrived  fifo.Ring[int32] // moves whose page was read and that wait for a chunk
	underWay int              // operations towards the segments, and reads of moves
	erasing  bool             // a segment waits for its new mapping to be durable
	urgent   bool             // somebody waits for a page in an open chunk
	failing  error            // of the last write to a segment that failed, since when that segment is left alone
}

// chunk is consecutive places of one segment, written by one operation.
type chunk struct {
	op    device.Op
	buf   []byte
	pages []write
	first ftl.PPA
	held  int // pages that failed and are not placed elsewhere yet
}

// write is one page on its way to a place.
type write struct {
	syncs    []waiter
	frame    int32 // whose content it is, or noFrame
	move     int32 // which move, if there is no frame
	sum      uint32
	attempts int
}

// failed is a page of a chunk whose write failed.
type failed struct {
	chunk, index int32
	cause        error
}

// move is a page that collection moves.
type move struct {
	op       device.Op
	buf      []byte
	from     ftl.PPA
	lpa      uint64
	sum      uint32
	attempts int
	bad      bool // it could not be read, or not as it was written, and stays so
}

// barrier is a Flush, which waits for the pages that were changed before it.
type barrier struct {
	fn    func(error)
	left  int
	user  *User
	since uint64 // the loss that he knew of when he asked: who asks twice at once is told twice
}

func (w *writer) init(c *core) {
	w.chunks = make([]chunk, c.cfg.Writes)
	for i := range w.chunks {
		c.own(&w.chunks[i].op, tokenChunk|uint64(i))
		w.idleC = append(w.idleC, int32(i))
	}
	w.moves = make([]move, c.cfg.Moves)
	for i := range w.moves {
		c.own(&w.moves[i].op, tokenMove|uint64(i))
		w.idleM = append(w.idleM, int32(i))
	}
}

// arenaPages is how many pages of memory a pool takes.
func (c *core) arenaPages() int {
	return len(c.frames) + len(c.chunks)*c.cfg.Chunk + len(c.moves) + len(c.pages) + bodyChunk
}

// furnish gives everything its memory.
func (c *core) furnish(arena []byte) {
	take := func(pages int) []byte {
		m := arena[: pages*Page : pages*Page]
		arena = arena[pages*Page:]
		return m
	}
	for i := range c.pages {
		c.pages[i].buf = take(1)
	}
	c.body.buf = take(bodyChunk)
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

// place begins to write a dirty frame that nobody has, and reports false if there is no room. Meanwhile the page is
// InFlight, so that nobody gets it past the lock and changes it while it is copied.
func (c *core) place(at int32) bool {
	f := &c.frames[at]
	w := f.slot.Load()
	if w.State() != table.Resident || w.Refs() > 0 || !w.Dirty() {
		return true // who has it will put it
	}
	switch {
	case c.readOnly != nil && f.writing > 0:
		return false // it is given up when what is under way has ended
	case c.readOnly == nil && (len(c.idleC) == 0 || c.logFull()):
		return false
	}
	if !f.slot.Swap(w, table.Coming(at)) {
		return true
	}
	if c.readOnly != nil {
		c.giveUp(at, c.readOnly)
		return true
	}
	page, stream := c.cfg.Heat.Written(heat.Page(f.slot.Heat()), &c.clock, c.used, f.origin)
	to, ok := c.ftl.Allocate(0, int(stream), c.tick())
	if !ok {
		f.slot.Store(table.Held(at, 0, false).Soil())
		return false
	}
	c.clock.Tick()
	f.slot.SetHeat(uint64(page))
	f.latest = to
	f.writing++
	c.stats.Puts++
	c.stats.Streams[stream]++
	c.add(to, stream, write{frame: at, syncs: f.syncs}, f.page, c.buffers[at])
	f.syncs = nil
	f.slot.Store(table.Held(at, 0, false))
	return true
}

// giveUp ends the wish to write a frame, which is InFlight and of which nothing is under way: the page is what the
// medium has, for everybody, as it would be after a crash, and who waits is told, as is each user whom it concerns.
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
	if f.place == ftl.NoPPA {
		c.used--
	}
	c.release(at)
	c.settleTrims(f)
}

// refuse tells a waiter that nothing will be durable. A barrier asks what was lost.
func (c *core) refuse(w waiter, err error) {
	if w.barrier == nil {
		c.tell(w.fn, err)
		return
	}
	c.arrive(w.barrier)
}

// granted has a waiter wait for what has been logged to be durable.
func (c *core) granted(w waiter) {
	if w.barrier == nil {
		c.await(w.fn)
		return
	}
	c.arrive(w.barrier)
}

func (c *core) arrive(b *barrier) {
	if b.left--; b.left > 0 {
		return
	}
	if err := c.told(b.user, b.since); err != nil && c.readOnly == nil {
		c.tell(b.fn, err)
		return
	}
	c.await(b.fn)
}

// add puts a page into the chunk that its place belongs to. There is an idle chunk.
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
		k.first, k.pages, k.held = to, k.pages[:0], 0
	}
	k := &c.chunks[at]
	if int64(to) != int64(k.first)+int64(len(k.pages)) {
		panic(fmt.Sprintf("ctl: place %d does not follow %d and %d more", to, k.first, len(k.pages)))
	}
	s := &c.segments[number]
	if !s.opened {
		*s = segment{opened: true, erases: s.erases, stream: uint8(stream), session: uint32(c.session), order: c.next}
		c.log(media.Record{Kind: media.Open, PPA: uint64(number), LBA: media.OpenedBy(uint8(stream), c.session),
			Sum: s.erases})
	}
	if s.written++; int(s.written) == c.shape.Pages {
		s.order = c.next
	}
	buf := k.buf[len(k.pages)*Page:][:Page]
	copy(buf, content)
	if w.frame != noFrame {
		w.sum = media.Sum(c.seed, buf)
	}
	c.owners[to], c.sums[to] = page, w.sum
	c.renamed[to>>6] &^= 1 << (to & 63)
	k.pages = append(k.pages, w)
	c.urgent = c.urgent || len(w.syncs) > 0 || w.frame != noFrame && len(c.frames[w.frame].passed) > 0
	if len(k.pages)*Page == len(k.buf) || int(s.written) == c.shape.Pages {
		c.kick(at)
	}
}

// kick submits an open chunk, kickAll all of them.
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
	c.submit(dev, &k.op)
}

// nudge submits what there is if nothing under way will free a frame or make room: else chunks are better filled
// meanwhile.
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

// chunkDone ends the write of a chunk.
func (c *core) chunkDone(at int32) {
	c.underWay--
	k := &c.chunks[at]
	if err := k.op.Err; err != nil {
		c.failing = err
		k.held = len(k.pages)
		for i := range k.pages {
			c.failed.Push(failed{at, int32(i), err})
		}
		c.failedFirst(k)
	} else {
		for i := range k.pages {
			c.written(k.first+ftl.PPA(i), &k.pages[i])
		}
		c.programmed(k)
		c.idleC = append(c.idleC, at)
	}
	c.advance()
}

// programmed counts a chunk's places as written; the last one of a segment has its summary written.
func (c *core) programmed(k *chunk) {
	i := c.segmentOf(k.first)
	s := &c.segments[i]
	if s.programmed += int32(len(k.pages)); int(s.programmed) == c.shape.Pages {
		c.summarise(i)
	}
}

// written makes a page that is on the medium what the mapping leads to, unless it was overtaken.
func (c *core) written(to ftl.PPA, w *write) {
	if w.frame == noFrame {
		c.movedTo(to, w)
		return
	}
	f := &c.frames[w.frame]
	f.writing--
	c.ftl.Programmed(to)
	newest := f.latest == to
	if newest {
		if f.place != ftl.NoPPA {
			c.kill(f.place)
			c.ftl.Invalidate(f.place, c.tick())
		}
		f.place = to
		c.enliven(to)
		c.rename(to, f.page)
		c.log(media.Record{Kind: media.Write, LBA: f.page, PPA: uint64(to), Sum: w.sum})
	} else {
		c.ftl.Invalidate(to, c.tick())
	}
	if newest {
		c.grantAll(f, w.syncs)
	} else {
		c.overtaken(f, w.syncs)
	}
	w.syncs = nil
	if c.cfg.PutThrough && f.slot != nil {
		c.evict(w.frame)
	}
}

// grantAll grants waiters, and those that were passed on to the same write.
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

// overtaken has waiters of a write that has ended and is not the newest wait for the newest one. If that has failed
// before, and what it was to write is still in memory, they wait for that to be written after all: what they have
// waited for is not on the medium.
func (c *core) overtaken(f *frame, waiters []waiter) {
	switch {
	case f.writing > 0:
		f.passed = append(f.passed, waiters...)
		c.urgent = c.urgent || len(waiters) > 0
	case f.latest == ftl.NoPPA && f.slot != nil && f.slot.Load().Dirty():
		f.syncs = append(append(f.syncs, f.passed...), waiters...)
		clear(f.passed)
		f.passed = f.passed[:0]
	default:
		c.grantAll(f, waiters)
	}
}

// movedTo ends a move.
func (c *core) movedTo(to ftl.PPA, w *write) {
	m := &c.moves[w.move]
	c.idleM = append(c.idleM, w.move)
	live := c.isLive(m.from)
	if !c.ftl.Moved(m.from, to, c.tick()) {
		return
	}
	if !live {
		panic(fmt.Sprintf("ctl: page %d was moved from %d, where it was not", m.lpa, m.from))
	}
	page := c.owners[m.from] // which may have been moved since it was read
	c.kill(m.from)
	c.enliven(to)
	c.rename(to, page)
	kind := media.Write
	if m.bad {
		kind = media.Keep
	}
	c.log(media.Record{Kind: kind, LBA: page, PPA: uint64(to), Sum: m.sum})
}

// failedFirst tells the translation layer of the places of a chunk that were not written; pages are placed elsewhere
// by retry.
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

// retry places pages elsewhere whose write failed, and reports false if there is no room yet.
func (c *core) retry(x failed) bool {
	k := &c.chunks[x.chunk]
	w := k.pages[x.index]
	was := k.first + ftl.PPA(x.index)
	if w.frame == noFrame {
		m := &c.moves[w.move]
		switch {
		case c.readOnly != nil:
			c.idleM = append(c.idleM, w.move) // the segment stays as it is
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
		c.surrender(&w, was, x.cause)
		return true
	}
	if len(c.idleC) == 0 {
		return false
	}
	stream := heat.Stream(c.segments[c.segmentOf(was)].stream)
	to, ok := c.ftl.Allocate(0, int(stream), c.tick())
	if !ok {
		return false
	}
	w.attempts++
	f.latest = to
	c.stats.Rewritten++
	c.add(to, stream, w, f.page, k.buf[int(x.index)*Page:][:Page])
	return true
}

// surrender ends a user's write that failed, with an error unless a newer one makes it unnecessary.
func (c *core) surrender(w *write, was ftl.PPA, cause error) {
	f := &c.frames[w.frame]
	f.writing--
	if f.latest != was {
		c.overtaken(f, w.syncs)
		return
	}
	cause = fmt.Errorf("writing page %d: %w", f.page, cause)
	f.latest = f.place
	if f.writing > 0 { // older writes, which must not come back as the newest
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
	// The frame has what was to be written, and nobody has it on the medium. If nobody has it in memory either it is
	// forgotten, else whoever puts it last tries again.
	for {
		old := f.slot.Load()
		if old.State() != table.Resident {
			return
		}
		if old.Refs() > 0 || f.writing > 0 {
			if f.slot.Swap(old, old.Soil()) {
				c.settle(w.frame)
				return
			}
			continue
		}
		if old.Dirty() {
			return // a newer content waits for its turn
		}
		if f.slot.Swap(old, table.Coming(w.frame)) {
			if f.place == ftl.NoPPA {
				c.used--
			}
			c.release(w.frame)
			c.settleTrims(f)
			return
		}
	}
}

// advance does all that waited for something that has ended.
func (c *core) advance() {
	for c.failed.N > 0 && c.retry(*c.failed.First()) {
		c.unhold()
	}
	c.collect()
	for c.backlog.N > 0 {
		at := *c.backlog.First()
		f := &c.frames[at]
		if f.slot != nil && !c.place(at) {
			break
		}
		c.backlog.Pop()
		f.queued = false
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
		c.idleC = append(c.idleC, x.chunk)
	}
}

// unstick ends writes that wait for room when nothing is under way that could make any: so many segments have failed
// that what is left is full.
func (c *core) unstick() {
	if c.underWay > 0 || len(c.open) > 0 || c.erasing || c.summaries > 0 || c.checks > 0 ||
		len(c.idle) < len(c.slots) || c.logFull() || c.readOnly != nil {
		return
	}
	if c.failed.N > 0 {
		x := *c.failed.First()
		k := &c.chunks[x.chunk]
		if w := k.pages[x.index]; w.frame != noFrame {
			c.surrender(&w, k.first+ftl.PPA(x.index), x.cause)
			c.unhold()
			c.advance()
			return
		}
		c.fail(fmt.Errorf("moving what is in segments that fail: %w", x.cause))
		return
	}
	full := ErrFull
	if c.failing != nil {
		full = fmt.Errorf("%w, as segments are left alone to which writes have failed: %w", ErrFull, c.failing)
	}
	for c.backlog.N > 0 {
		at := c.backlog.Pop()
		f := &c.frames[at]
		f.queued = false
		if f.slot == nil {
			continue
		}
		if w := f.slot.Load(); w.State() == table.Resident && w.Refs() == 0 && w.Dirty() && f.writing == 0 &&
			f.slot.Swap(w, table.Coming(at)) {
			c.giveUp(at, full)
		}
	}
}

// collect has collection do what it can.
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
		m.from, m.lpa, m.sum, m.bad, m.attempts = a.Source, uint64(a.LPA), c.sums[a.Source], false, 0
		dev, offset := c.at(a.Source)
		m.op.Kind, m.op.Offset, m.op.Buf, m.op.Err = device.Read, offset, m.buf, nil
		c.underWay++
		c.submit(dev, &m.op)
	}
	if c.underWay == 0 && (c.backlog.N > 0 || c.ftl.Collecting(0)) {
		c.kickAll() // moves in open chunks hold up the segment that they come from
	}
}

// moveRead ends the read of a page that is moved.
func (c *core) moveRead(i int32) {
	m := &c.moves[i]
	if m.op.Err != nil && m.attempts < c.cfg.Retries {
		m.attempts++
		dev, _ := c.at(m.from)
		c.submit(dev, &m.op)
		return
	}
	c.underWay--
	switch {
	case m.op.Err != nil:
		// What cannot be read is lost, and stays lost where it goes: zeros do not have the sum that is expected,
		// unless zeros it was.
		clear(m.buf)
		m.bad = media.Sum(c.seed, m.buf) != m.sum
	case media.Sum(c.seed, m.buf) != m.sum:
		m.bad = true
	}
	if m.bad {
		c.stats.Damaged++
	}
	c.arrived.Push(i)
	c.advance()
}

// relocate puts a page that is moved into a chunk. There is an idle one.
func (c *core) relocate(i int32, m *move) {
	known := heat.Page(0)
	if slot := c.table.Find(m.lpa); slot != nil {
		known = heat.Page(slot.Heat())
	}
	to, ok := c.ftl.RelocateTo(m.from, int(c.cfg.Heat.Survived(known, &c.clock, c.used)), c.tick())
	if !ok {
		c.idleM = append(c.idleM, i)
		return
	}
	stream := c.streamOf(to)
	c.stats.Moved++
	c.stats.Streams[stream]++
	c.add(to, stream, write{frame: noFrame, move: i, sum: m.sum}, m.lpa, m.buf)
}

// streamOf is the stream that a place which was just handed out belongs to.
func (c *core) streamOf(p ftl.PPA) heat.Stream {
	return heat.Stream(c.ftl.StreamOf(c.ftl.BlockOf(p)))
}

// erase gives an empty segment back once nothing that is durable leads into it: every record up to now must be.
func (c *core) erase(b ftl.Block) {
	c.erasing = true
	c.kickAll()
	c.awaitThen(func(err error) {
		c.erasing = false
		if err != nil {
			return // read-only: it is never used again
		}
		s := &c.segments[b]
		*s = segment{erases: s.erases + 1}
		c.ftl.Erased(b)
		c.advance()
	})
}

// summarise writes the summary of a segment that was filled, without anybody waiting for it. The segment is not used
// again meanwhile.
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
		sum.Entries[k] = media.Entry{Page: c.owners[at] + 1, Sum: c.sums[at]}
		if c.isRenamed(at) {
			sum.Entries[k].Page = 0 // what moved the page may be lost in a crash that the summary survives
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

// summaryDone ends the write of a summary. Where it could not be written the segment is not to be trusted with data.
func (c *core) summaryDone(i int64, err error) {
	c.summaries--
	c.ftl.ReadDone(ftl.PPA(i * int64(c.shape.Pages)))
	if err != nil {
		c.ftl.Fail(ftl.Block(i))
	}
	c.advance()
}

// trim is a Trim that waits for pages that somebody has.
type trim struct {
	fn   func(error)
	left int
	sync bool
}

// trimPages has pages first to last hold nothing.
func (c *core) trimPages(first, last uint64, sync bool, fn func(error)) {
	if c.readOnly != nil {
		c.tell(fn, c.readOnly)
		return
	}
	if !c.loggable(1) {
		c.tell(fn, ErrBehind)
		return
	}
	t := &trim{fn: fn, left: 1, sync: sync}
	var from, to uint64 // a record's: from the first page that is in use to the last one, which may be far behind
	any := false
	record := func() {
		if any {
			c.log(media.Record{Kind: media.Trim, LBA: from, Count: uint32(to - from + 1)})
		}
	}
	for page, slot := range c.table.Used(first, last) {
		w := slot.Load()
		if w.State() == table.Invalid {
			continue
		}
		if !any || page-from >= media.MaxCount {
			record()
			from, any = page, true
		}
		to = page
		if w.State() == table.OnMedium {
			c.unmap(w.Place())
			slot.Store(0)
			c.used--
			continue
		}
		f := &c.frames[w.Frame()]
		t.left++
		f.trims = append(f.trims, t)
		for w.State() == table.Resident && !slot.Swap(w, w.Expect()) {
			w = slot.Load()
		}
		if w.State() == table.Resident && w.Refs() == 0 {
			c.settleTrims(f)
		}
	}
	record()
	c.trimmed(t)
	c.advance()
}

func (c *core) unmap(p ftl.PPA) {
	c.kill(p)
	c.ftl.Invalidate(p, c.tick())
}

// trimmed counts a page of a trim as done.
func (c *core) trimmed(t *trim) {
	if t.left--; t.left > 0 {
		return
	}
	switch {
	case t.sync:
		c.await(t.fn)
	case t.fn != nil && c.readOnly == nil && c.logBusy():
		c.late.Push(t.fn) // a trim needs nothing else that could hold up who does one after the other
	default:
		c.tell(t.fn, nil)
	}
}

// caughtUp tells of trims that the log has taken.
func (c *core) caughtUp() {
	for c.late.N > 0 && (c.readOnly != nil || !c.logBusy()) {
		c.tell(c.late.Pop(), nil)
	}
}

// settleTrims trims a page that nobody has and that trims wait for.
func (c *core) settleTrims(f *frame) {
	if len(f.trims) == 0 {
		return
	}
	trims := f.trims
	f.trims = nil
	defer func() {
		for _, t := range trims {
			c.trimmed(t)
		}
	}()
	slot, page := f.slot, f.page
	if slot == nil && page == nowhere {
		return
	}
	if slot == nil { // it could not be read, or was given up: it is in no frame
		slot = c.table.Make(page)
		if w := slot.Load(); w.State() == table.OnMedium {
			c.unmap(w.Place())
			slot.Store(0)
			c.used--
			c.log(media.Record{Kind: media.Trim, LBA: page, Count: 1})
		}
		return
	}
	for {
		w := slot.Load()
		if w.State() != table.Resident {
			return // giveUp and release see to it
		}
		if w.Refs() > 0 {
			f.trims, trims = trims, nil // the last one to put it comes here again
			return
		}
		if !slot.Swap(w, table.Coming(w.Frame())) {
			continue
		}
		if f.place != ftl.NoPPA {
			c.unmap(f.place)
			c.log(media.Record{Kind: media.Trim, LBA: page, Count: 1})
		}
		if !w.Blank() {
			c.used--
		}
		f.place, f.latest = ftl.NoPPA, ftl.NoPPA
		for _, s := range f.syncs {
			c.granted(s)
		}
		f.syncs = nil
		clear(c.buffers[w.Frame()])
		slot.Store(table.Held(w.Frame(), 0, true))
		return
	}
}
