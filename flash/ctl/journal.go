package ctl

import (
	"fmt"

	"farflash/flash/ctl/media"
	"farflash/flash/ctl/table"
	"farflash/flash/device"
	"farflash/internal/fifo"
)

// journal makes changes of the mapping durable. Records go to pages of the log; a flush then covers those pages and all
// data written before them; a checkpoint truncates the log. Always durable <= next - len(records) <= next: a record is
// appended, sealed in a page, and then durable.
type journal struct {
	records []media.Record // not yet in a page
	next    uint64         // number of the next record
	durable uint64         // records below it are durable, together with the data they refer to
	waiting fifo.Ring[await]

	session  uint64
	number   uint64 // of the next page
	back     uint32 // checksum of the previous page
	base     uint64 // the oldest page that recovery needs
	pages    []logPage
	idleP    []int32
	writing  int    // pages in flight
	phase    phase  // of the flush cycle
	target   uint64 // the record number that durable advances to after the current flush
	flushing int    // devices whose flush is outstanding
	flushOps []device.Op
	flushErr error
	encoded  media.LogPage
	previous []media.Record // of the last page sealed in this session, which the next one repeats

	body       checkpoint
	generation uint64      // of the checkpoint in force
	coming     uint64      // of the next
	summaries  int         // writes of segment summaries in flight
	finished   func(error) // called after the final checkpoint
}

// phase is the state of the flush cycle.
type phase uint8

const (
	resting  phase = iota // the next waiter starts a cycle
	draining              // waiting for the pages in flight that the flush must cover; no new page starts
	flushing              // pages start again; this flush does not cover them
)

// await is a callback that waits for all records below seq.
type await struct {
	fn    func(error)
	inner bool // fn is the controller's own and is called directly
	seq   uint64
}

// logPage is the write of one log page in flight. buf is part of the arena; the device owns it until logDone.
type logPage struct {
	op       device.Op
	buf      []byte
	attempts int // repeats of the write so far
}

const (
	logPages  = 16              // in flight at once; recovery relies on this bound
	bodyChunk = media.Group + 1 // grains of a checkpoint written at once: a group and its parity
	logSlack  = 4               // pages of the log that users' writes leave free
)

// checkpoint is the checkpoint being written. It has operations of its own, because its flushes run concurrently with
// those of the flush cycle.
type checkpoint struct {
	op     device.Op
	buf    []byte
	old    []byte // a group of the checkpoint in force
	bare   []bool // by segment: the entries kept for the checkpoint lack checksums or owners that are not in memory
	body   media.Body
	header media.Header
	done   int64 // segments below it are encoded
	spare  [][]media.Entry
	kept   keeping
	versions
	at       int64 // grains of the body written
	attempts int
	active   bool
	flushOps []device.Op
	left     int  // devices whose flush is outstanding
	sealed   bool // the header is written; it takes effect once flushed
}

// init sets up the operations of log pages, flushes and checkpoints, which are reused.
func (j *journal) init(c *core) {
	j.pages = make([]logPage, logPages)
	for i := range j.pages {
		c.own(&j.pages[i].op, tokenLog|uint64(i))
		j.idleP = append(j.idleP, int32(i))
	}
	j.body.bare = make([]bool, len(c.segments))
	j.body.versions = newVersions(len(c.segments))
	j.body.kept = keeping{of: map[int64][]kept{}, covered: make([]uint64, (c.shape.Pages+63)/64)}
	j.flushOps = make([]device.Op, len(c.shape.Grains))
	j.body.flushOps = make([]device.Op, len(c.shape.Grains))
	for d := range j.flushOps {
		j.flushOps[d].Kind, j.body.flushOps[d].Kind = device.Flush, device.Flush
		c.own(&j.flushOps[d], tokenFlush|uint64(d))
		c.own(&j.body.flushOps[d], tokenCheckFlush|uint64(d))
	}
	c.own(&j.body.op, tokenBody)
}

// log appends a record.
func (c *core) log(r media.Record) {
	c.records = append(c.records, r)
	c.next++
}

// inUse returns the number of log pages that recovery needs.
func (c *core) inUse() uint64 { return c.number - c.base }

// logFull reports whether new operations that end in the log must wait until a checkpoint has freed log space, or the
// memory for the former entries of changed places.
func (c *core) logFull() bool { return c.inUse()+logSlack >= c.logLimit() || c.body.kept.full }

// logLimit returns the number of pages of the log that may be in use. A checkpoint that began early frees little, so
// less may be used while it is written: at least a quarter of the log is free when it takes effect (loggable).
func (c *core) logLimit() uint64 {
	all := uint64(c.shape.LogPages)
	if !c.body.active {
		return all
	}
	return min(all, c.body.header.Next-c.base+all-all/4)
}

// logBusy reports whether the log is full or at least a page of records waits for it.
func (c *core) logBusy() bool { return c.logFull() || len(c.records) >= media.RecordsPerPage }

// loggable reports whether n records can be added by a caller that is not subject to back-pressure. All queued records,
// plus those of writes in flight, must fit in the part of the log that a checkpoint frees, because a checkpoint begins
// only once all of them are in the log.
func (c *core) loggable(n int) bool {
	return len(c.records)+n <= int(c.shape.LogPages/4)*media.RecordsPerPage
}

// await calls fn once everything logged so far is durable.
func (c *core) await(fn func(error)) { c.awaits(await{fn: fn, seq: c.next}) }

// awaitThen is await for the controller itself.
func (c *core) awaitThen(fn func(error)) { c.awaits(await{fn: fn, seq: c.next, inner: true}) }

// awaits queues a, or completes it if its records are durable already.
func (c *core) awaits(a await) {
	switch {
	case c.readOnly != nil:
		c.reach(a, c.readOnly)
	case a.seq <= c.durable:
		c.reach(a, nil)
	default:
		c.waiting.Push(a) // the entry point that took the request calls persist before it returns
	}
}

// reach completes an await. The controller's own callbacks run immediately, with the lock held.
func (c *core) reach(a await, err error) {
	if a.inner {
		a.fn(err)
		return
	}
	c.notify(a.fn, err)
}

// persist takes the next step towards durability.
func (c *core) persist() {
	if c.readOnly != nil {
		c.urgent = false
		c.kickAll() // the pages in open chunks are given up once their write was tried
		return
	}
	if c.urgent {
		c.urgent = false
		c.kickAll()
	}
	for len(c.records) >= media.RecordsPerPage && c.seal() {
	}
	// Group commit: one flush serves all waiters whose records are in pages by now.
	if c.phase == resting {
		for c.waiting.N > 0 && len(c.records) > 0 && c.seal() {
		}
		// Without waiters, a flush bounds what recovery has to read.
		sealed := c.next - uint64(len(c.records))
		if c.waiting.N > 0 && sealed >= c.waiting.First().seq || sealed-c.durable >= uint64(c.cfg.Unflushed) {
			c.phase, c.target = draining, sealed
		}
	}
	// All pages below target have completed and seal starts no more. A record is logged only after its data write
	// completed, so the flush covers the data too.
	if c.phase == draining && c.writing == 0 {
		c.phase, c.flushing, c.flushErr = flushing, len(c.flushOps), nil
		c.stats.Flushes++
		for d := range c.flushOps {
			c.submit(int32(d), &c.flushOps[d])
		}
	}
	// A checkpoint starts when half of the log is in use, when the map needs one, and before Close.
	if !c.body.active && (c.inUse() >= uint64(c.shape.LogPages)/2 || c.finished == nil && c.mapDue() ||
		c.finished != nil && c.quiet()) {
		c.begin()
	}
	c.unwait()
}

// quiet reports whether the controller is idle. The final checkpoint waits for this, because it is marked clean: no log
// page follows it.
func (c *core) quiet() bool {
	return c.underWay == 0 && len(c.open) == 0 && c.backlog.N == 0 && c.failed.N == 0 && c.arrived.N == 0 &&
		c.late.N == 0 && c.parked.N == 0 && c.waiting.N == 0 && c.writing == 0 &&
		c.phase == resting && c.summaries == 0 && len(c.faults) == 0
}

// seal starts the write of a log page with as many records as fit. It reports false if no page can be started now.
// The slot of the new page in the ring must not hold a page that recovery still needs.
func (c *core) seal() bool {
	if c.phase == draining || len(c.idleP) == 0 || c.inUse() >= c.logLimit() {
		return false
	}
	i := c.idleP[len(c.idleP)-1]
	c.idleP = c.idleP[:len(c.idleP)-1]
	p := &c.pages[i]
	n := min(len(c.records), media.RecordsPerPage)
	for n < len(c.records) && c.records[n-1].Joined {
		n-- // an atomic group must not straddle pages
	}
	// Mark is the durable number at this moment. An outdated mark is safe: recovery only verifies more records.
	c.encoded = media.LogPage{
		Number: c.number, Session: c.session, Back: c.back, First: c.next - uint64(len(c.records)), Mark: c.durable,
		Records: c.records[:n], Again: c.previous,
	}
	// The chain of checksums lets recovery reject pages of an earlier pass through the ring.
	c.back = c.encoded.Encode(p.buf, c.shape.UUID)
	c.previous = append(c.previous[:0], c.records[:n]...)
	c.records = c.records[:copy(c.records, c.records[n:])]
	p.op.Kind, p.op.Buf, p.op.Err, p.attempts = device.Write, p.buf, nil, 0
	p.op.Offset = c.logOffset(c.number)
	c.number++
	c.writing++
	c.stats.Log++
	c.submit(0, &p.op)
	return true
}

// logDone completes the write of a log page.
func (c *core) logDone(i int32) {
	p := &c.pages[i]
	if p.op.Err != nil && p.attempts < c.cfg.Retries && c.readOnly == nil {
		p.attempts++
		c.stats.Log++
		// The same bytes again, so the chain of checksums is unchanged.
		c.submit(0, &p.op)
		return
	}
	c.writing--
	c.idleP = append(c.idleP, i)
	if p.op.Err != nil {
		c.trouble(0, &p.op, noPage, p.op.Err)
		c.fail(fmt.Errorf("writing the log: %w", p.op.Err))
		return
	}
	c.advance()
}

// flushDone completes a device's flush.
func (c *core) flushDone(d int32) {
	if err := c.flushOps[d].Err; err != nil {
		c.trouble(d, &c.flushOps[d], noPage, err)
		c.flushErr = fmt.Errorf("flushing device %d: %w", d, err)
	}
	if c.flushing--; c.flushing > 0 {
		return
	}
	c.phase = resting
	if c.flushErr != nil {
		// The device may have dropped writes that it had acknowledged and never report that again, so no later flush
		// can be trusted: what was not durable before this flush never will be.
		c.fail(c.flushErr)
		return
	}
	if c.readOnly != nil {
		return
	}
	// Everything sealed before the flush is durable, and so is the data, which was written earlier.
	c.durable = c.target
	for c.waiting.N > 0 && c.waiting.First().seq <= c.durable {
		c.reach(c.waiting.Pop(), nil)
	}
	c.advance()
}

// fail makes the pool read-only. It stays so until the next Open. Data already durable remain readable.
func (c *core) fail(cause error) {
	if c.readOnly != nil {
		return
	}
	c.readOnly = fmt.Errorf("%w: %w", ErrReadOnly, cause)
	c.stopped.Store(true)
	for c.waiting.N > 0 {
		c.reach(c.waiting.Pop(), c.readOnly)
	}
	if c.finished != nil && !c.body.active {
		c.notify(c.finished, c.readOnly)
		c.finished = nil
	}
	for len(c.open) > 0 { // their pages are given up
		c.kick(c.open[0])
	}
	c.advance()
}

// begin starts a checkpoint of everything logged so far. Later log pages follow it.
func (c *core) begin() {
	for len(c.records) > 0 {
		if !c.seal() {
			return // no free page buffer or log space; retried when either becomes available
		}
	}
	// With no records outside of pages, Next and Record name the same position: page Next starts with record Record.
	b := &c.body
	b.active, b.at, b.attempts = true, 0, 0
	b.header = media.Header{
		Generation: c.coming, Session: c.session, Next: c.number, Record: c.next, Back: c.back,
		Clean: c.finished != nil, Writes: c.clock.Writes(),
	}
	b.body.Pages, b.done = c.shape.Pages, 0
	b.body.Segments = c.recordSegments(b.body.Segments)
	c.setAges(b.header.Generation, b.body.Segments)
	c.cover()
	if b.body.Entries == nil {
		b.body.Entries = make([][]media.Entry, len(c.segments))
	}
	c.beginStore()
}

// recordSegments returns the state of the segments as a checkpoint records it, in to if that is large enough.
func (c *core) recordSegments(to []media.Segment) []media.Segment {
	if to == nil {
		to = make([]media.Segment, len(c.segments))
	}
	for i := range c.segments {
		s := &c.segments[i]
		to[i] = media.Segment{Erases: s.erases}
		if s.opened {
			to[i] = media.Segment{Use: media.Opened, Stream: s.stream, Written: uint32(s.written), Erases: s.erases,
				Session: s.session, Order: s.order}
			if int(s.written) == c.shape.Pages {
				to[i].Use = media.Filled
			}
		}
	}
	return to
}

// someone is in place of the owner in entries kept for a checkpoint while it is not in memory.
const someone = media.MaxLBA + 1

// writeBody writes the next group of a checkpoint's grains, or flushes after the last. The generation's parity selects
// the slot, so the checkpoint in force is not touched.
func (c *core) writeBody() {
	b := &c.body
	all := media.BodyPages(int64(len(b.body.Segments)), c.shape.Pages)
	for b.at < all && (!b.body.Holds(b.at) || b.body.Generation(b.at, b.header.Generation) < b.header.Generation) {
		b.at += media.Group
	}
	if b.at >= all {
		c.forgetBelow(int64(len(c.segments)))
		b.sealed = false
		c.beginList()
		return
	}
	from, to := b.body.Span(b.at)
	c.forgetBelow(from)
	for s := from; s < to; s++ {
		c.record(s)
	}
	if c.bare(&b.body, from, to) {
		_, n := c.groupOf(b.at)
		b.op.Token, b.op.Kind, b.op.Err, b.op.Buf = tokenOld, device.Read, nil, b.old[:(n+1)*Page]
		b.op.Offset = c.bodyOffset(c.source, b.at)
		c.stats.Sums += n + 1
		c.submit(0, &b.op)
		return
	}
	c.writeGroup()
}

// oldRead completes the read of the group of the checkpoint in force that has checksums which the next group needs.
func (c *core) oldRead() {
	b := &c.body
	switch {
	case c.readOnly != nil:
		c.abandonCheckpoint(c.readOnly)
	case b.op.Err != nil && b.attempts < c.cfg.Retries:
		b.attempts++
		c.submit(0, &b.op)
	default:
		err := b.op.Err
		if err == nil {
			err = c.inherit(&b.body, b.at, b.op.Buf)
		}
		if err != nil {
			c.trouble(0, &b.op, noPage, err)
			c.abandonCheckpoint(fmt.Errorf("reading a checkpoint: %w", err))
			return
		}
		b.attempts = 0
		c.writeGroup()
	}
}

// writeGroup writes the next group of a checkpoint's grains, all of whose entries are there.
func (c *core) writeGroup() {
	b := &c.body
	all := media.BodyPages(int64(len(b.body.Segments)), c.shape.Pages)
	b.op.Token, b.op.Kind, b.op.Err = tokenBody, device.Write, nil
	b.op.Buf = encodeGroup(b.buf, &b.body, b.at, all, c.shape.UUID, b.header.Generation)
	b.op.Offset = (c.shape.CheckpointStart(int(b.header.Generation&1)) + media.BodyGrain(b.at)) * Page
	c.stats.Checkpoint += int64(len(b.op.Buf) / Page)
	c.submit(0, &b.op)
}

// encodeGroup encodes the group of a body's grains that begins with grain i, of all, and their parity.
func encodeGroup(buf []byte, body *media.Body, i, all int64, u media.UUID, generation uint64) []byte {
	n := min(media.Group, all-i)
	parity := buf[n*Page:][:Page]
	clear(parity)
	for k := range n {
		grain := buf[k*Page:][:Page]
		body.EncodePage(grain, i+k, u, generation)
		media.Parity(parity, grain)
	}
	return buf[:(n+1)*Page]
}

// encodeHeaders encodes both copies of a checkpoint's header.
func encodeHeaders(buf []byte, h *media.Header, u media.UUID) []byte {
	for k := range media.Headers {
		h.Encode(buf[k*Page:][:Page], u)
	}
	return buf[:media.Headers*Page]
}

// flushBody flushes all devices, because the checkpoint's mapping refers to data on all of them.
func (c *core) flushBody() {
	b := &c.body
	b.left = len(b.flushOps)
	c.stats.Flushes++
	for d := range b.flushOps {
		c.submit(int32(d), &b.flushOps[d])
	}
}

// bodyDone completes the write of part of a checkpoint.
func (c *core) bodyDone() {
	b := &c.body
	switch {
	case b.op.Err != nil && b.attempts < c.cfg.Retries && c.readOnly == nil:
		b.attempts++
		c.submit(0, &b.op)
	case b.op.Err != nil:
		c.trouble(0, &b.op, noPage, b.op.Err)
		c.abandonCheckpoint(fmt.Errorf("writing a checkpoint: %w", b.op.Err))
	case c.readOnly != nil:
		c.abandonCheckpoint(c.readOnly)
	case b.op.Token == tokenHeader:
		b.sealed = true
		c.flushBody()
	default:
		b.at += media.Group
		b.attempts = 0
		full := b.kept.full
		if c.writeBody(); full && !b.kept.full {
			c.advance()
		}
	}
}

// bodyFlushed completes a device's flush for a checkpoint. The header is written after the flush of the body, and the
// checkpoint takes effect after the flush of the header.
func (c *core) bodyFlushed(d int32) {
	b := &c.body
	if err := b.flushOps[d].Err; err != nil {
		c.trouble(d, &b.flushOps[d], noPage, err)
		c.fail(fmt.Errorf("flushing device %d: %w", d, err))
	}
	if b.left--; b.left > 0 {
		return
	}
	switch {
	case c.readOnly != nil:
		c.abandonCheckpoint(c.readOnly)
	case !b.sealed:
		c.waitForStored()
	default:
		b.active = false
		// The checkpoint is in force, so the log before it can be overwritten.
		c.generation, c.coming, c.base = b.header.Generation, b.header.Generation+1, b.header.Next
		c.settleSums(b.header.Generation)
		c.settleLeaves()
		c.stats.Checkpoints++
		if b.header.Clean {
			c.notify(c.finished, nil)
			c.finished = nil
			return
		}
		c.advance()
	}
}

// writeHeader writes the header of a checkpoint, all of which is durable otherwise.
func (c *core) writeHeader() {
	b := &c.body
	b.op.Token, b.op.Kind, b.op.Err = tokenHeader, device.Write, nil
	b.op.Offset = c.shape.CheckpointStart(int(b.header.Generation&1)) * Page
	b.op.Buf = encodeHeaders(b.buf, &b.header, c.shape.UUID)
	c.stats.Checkpoint += media.Headers
	c.submit(0, &b.op)
}

// abandonCheckpoint handles a checkpoint that could not be written. The previous one stays in force and still needs the
// log after it, so the pool becomes read-only.
func (c *core) abandonCheckpoint(err error) {
	c.forgetBelow(int64(len(c.segments)))
	c.body.active = false
	c.fail(err)
	if c.finished != nil {
		c.notify(c.finished, c.readOnly)
		c.finished = nil
	}
}

// flush calls fn once every earlier put, trim and write is durable, with an error if some of the user's were lost.
func (c *core) flush(u *User, fn func(error)) {
	// left starts at one for the scan itself, so that the barrier cannot complete before all frames are counted.
	b := &barrier{fn: fn, left: 1, user: u, since: u.seen}
	c.unwritten(func(at int32) {
		f := &c.frames[at]
		switch _, w, ok := c.inFrame(at); {
		case ok && w.State() == table.Resident && w.Dirty():
			b.left++
			f.syncs = append(f.syncs, waiter{barrier: b})
		// Clean, but the write that made it clean has not completed.
		case f.writing > 0:
			b.left++
			f.passed = append(f.passed, waiter{barrier: b})
		}
	})
	for _, t := range c.trimming {
		b.left++
		t.barriers = append(t.barriers, b)
	}
	c.arrive(b)
	c.kickAll()
	c.advance()
}

// complete dispatches an operation that a device has completed. The caller holds p.mu.
func (c *core) complete(op *device.Op) {
	i := int32(op.Token)
	switch op.Token & tokenMask {
	case tokenMove:
		c.moveRead(i)
	case tokenChunk:
		c.chunkDone(i)
	case tokenLog:
		c.logDone(i)
	case tokenFlush:
		c.flushDone(i)
	case tokenBody, tokenHeader:
		c.bodyDone()
	case tokenOld:
		c.oldRead()
	case tokenLoad:
		c.loadDone(i)
	case tokenCheckFlush:
		c.bodyFlushed(i)
	case tokenFault:
		c.faultDone(i)
	case tokenStore:
		c.storeWritten()
	case tokenSummary:
		c.summaryDone(int64(i), op.Err)
	}
}
