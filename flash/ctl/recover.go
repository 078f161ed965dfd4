package ctl

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"farflash/flash/ctl/heat"
	"farflash/flash/ctl/ledger"
	"farflash/flash/ctl/media"
	"farflash/flash/ctl/remains"
	"farflash/flash/ctl/table"
	"farflash/flash/device"
	"farflash/policy/ftl"
)

// Recovery describes the state in which a pool was found.
type Recovery struct {
	Clean   bool   // closed cleanly, with no log page after the last checkpoint
	Indexed bool   // the last checkpoint has an index, so its entries were not read
	Records int64  // log records applied
	Pages   int64  // log pages applied
	Checked int64  // pages whose content was verified, because no mark says that it was durable
	Dropped int64  // of these, pages whose content was missing: writes that were never reported durable
	Session uint64 // of the pool from now on
	Mapped  int64  // pages in use
	Lost    []Lost // pages of the pool's own records that were damaged and rebuilt from their second copies
}

// Lost is a page of a device that was found damaged and whose content was found elsewhere.
type Lost struct {
	What   string
	Name   string // of the device, if it has one
	Offset int64  // in bytes
	Device int
}

func (l Lost) String() string {
	return fmt.Sprintf("%s, at offset %d of %s", l.What, l.Offset, cmp.Or(l.Name, fmt.Sprint("device ", l.Device)))
}

// lost reports a damaged page that was rebuilt, once: without an index recovery reads the list of leaves again.
func (r *recovery) lost(device int, offset int64, what string) {
	l := Lost{Device: device, Offset: offset, What: what, Name: nameOf(r.devices, device)}
	if !slices.Contains(r.report.Lost, l) {
		r.report.Lost = append(r.report.Lost, l)
	}
}

// recovery rebuilds the state of a pool. It runs in Open, before the pool is shared, and waits for each of its
// operations.
type recovery struct {
	*core
	devices []device.Device
	mark    uint64 // records below it are durable with their data, which need not be verified
	report  Recovery
	content []byte
	// contents has the checksums of the places that verify has read.
	contents map[ftl.PPA]uint32
	plugged  map[int64]bool // segments that makeRoom wrote to
	// dropped has the pages whose last write was dropped: if its content was not lost in the crash, but damaged, they
	// are out of date.
	dropped map[uint64]bool
	// touched has the pages of stored leaves that records after the checkpoint name: whether they had a place in it.
	touched map[uint64]bool
	// indexed: the state of the checkpoint is that of its index; pins are the leaves that records change. listed: its
	// list of leaves was read.
	indexed, listed bool
	pins            []uint64
	// drops has the records that earlier recoveries dropped, and decided those that this one drops.
	drops, decided recordSpans
}

// recoverState fills a new core from the devices, and writes a checkpoint of the recovered state unless the pool was
// closed cleanly. Up to settleState it only reads, so a pool that is refused stays exactly as it was found.
func (c *core) recoverState(devices []device.Device) (Recovery, error) {
	r := newRecovery(c, devices)
	end, err := r.readState()
	if err != nil {
		return r.report, err
	}
	return r.report, r.settleState(end, false)
}

func newRecovery(c *core, devices []device.Device) *recovery {
	return &recovery{core: c, devices: devices, content: device.Aligned(Page), plugged: map[int64]bool{},
		dropped: map[uint64]bool{}}
}

// left returns the reader of what the devices have.
func (r *recovery) left() *remains.Pool { return &remains.Pool{Shape: r.shape, Devices: r.devices} }

// ending is where recovery found the state of a pool to end: what the next checkpoint and log page continue.
type ending struct {
	generation uint64 // of the checkpoint that the state was read from; the next one goes to the other place
	newest     uint64 // the highest generation seen: no other may be written again
	first      uint64 // log page after it
	number     uint64 // of the next log page
	back       uint32 // its Back
	crashed    bool   // the state is not that of a checkpoint in force
	goesOn     bool   // with the log as it is: nothing is damaged, and the log can say all that recovery decides
}

// readState fills the core from the newest checkpoint that is complete, together with the log after it. It only reads.
func (r *recovery) readState() (ending, error) {
	r.superblocks()
	headers, err := r.headers()
	if err != nil {
		return ending{}, err
	}
	log := r.left().Index()
	var problems []error
	for _, h := range headers {
		chain := r.follow(&log, h)
		// At most logPages log pages are in flight at once, so a page further ahead implies that everything before it
		// was durable; and records below any page's mark were durable. If either is missing from the chain, durable
		// state was lost. An older checkpoint must lead at least to the log position of the newest one, whose state was
		// durable.
		end, last := h.Next+uint64(len(chain)), h.Record
		if n := len(chain); n > 0 {
			last = chain[n-1].Upto()
		}
		if log.Highest >= end+logPages || log.Mark > last ||
			h.Generation < headers[0].Generation && end < headers[0].Next {
			problems = append(problems,
				fmt.Errorf("the log after checkpoint %d ends before page %d and record %d, but page %d exists, and "+
					"records below %d were durable: %w",
					h.Generation, end, last, log.Highest, log.Mark, ErrDamaged))
			continue
		}
		if err := r.readMap(h, chain, h.Generation == headers[0].Generation && r.cfg.Map > 0); err != nil {
			problems = append(problems, err)
			r.forgetAll()
			continue
		}
		if err := r.replay(h, chain); err != nil {
			return ending{}, err
		}
		at := ending{generation: h.Generation, newest: headers[0].Generation, first: h.Next, number: h.Next,
			back: h.Back, crashed: len(chain) > 0 || !h.Clean,
			goesOn: h.Generation == headers[0].Generation && (h.Leaves == 0 || r.listed)}
		// New log pages continue the chain after the last page found.
		if n := len(chain); n > 0 {
			at.number, at.back = chain[n-1].Number+1, chain[n-1].Sum
		}
		return at, nil
	}
	return ending{}, fmt.Errorf("ctl: no usable checkpoint: %w", errors.Join(problems...))
}

// superblocks reports the copies of the superblocks that are damaged. The others served.
func (r *recovery) superblocks() {
	for d, dev := range r.devices {
		for at := range int64(2) {
			err := device.Do(dev, device.Read, at*Page, r.content)
			if err == nil {
				_, _, err = media.DecodeSuperblock(r.content)
			}
			if err != nil {
				r.lost(d, at*Page, "a superblock")
			}
		}
	}
}

// headers returns the valid checkpoint headers, newest first.
func (r *recovery) headers() ([]media.Header, error) {
	var out []media.Header
	var problems []error
	for slot := range 2 {
		var own []media.Header
		for at := range int64(media.Headers) {
			err := device.Do(r.devices[0], device.Read, (r.shape.CheckpointStart(slot)+at)*Page, r.content)
			var h media.Header
			if err == nil {
				h, err = media.DecodeHeader(r.content, r.shape.UUID)
			}
			// A misdirected write: generations alternate between the slots.
			if err == nil && int(h.Generation&1) != slot {
				err = fmt.Errorf("checkpoint %d is in the wrong slot: %w", h.Generation, ErrDamaged)
			}
			if err != nil {
				problems = append(problems,
					fmt.Errorf("at offset %d: %w", (r.shape.CheckpointStart(slot)+at)*Page, err))
				continue
			}
			own = append(own, h)
		}
		// The copies differ if the write of the newer was cut in two. Its body was durable before it began.
		if len(own) > 0 {
			out = append(out, slices.MaxFunc(own,
				func(a, b media.Header) int { return int(a.Generation - b.Generation) }))
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("ctl: no checkpoint: %w", errors.Join(problems...))
	}
	slices.SortFunc(out, func(a, b media.Header) int { return int(int64(b.Generation - a.Generation)) })
	return out, nil
}

// follow returns the chain of log pages after a checkpoint, each the successor of the one before. A page that is
// missing is taken from its successor, which repeats it.
//
// A page of an earlier session than the checkpoint's is no successor, even if all else fits: that session's recovery
// found the log to end before it, and has decided so. It can be there all the same, because the recovery found it
// torn and a write to the same place, torn in its turn, completed it.
func (r *recovery) follow(log *remains.Index, h media.Header) []remains.Link {
	var chain []remains.Link
	var missing []int // pages of chain that were taken from the page after them
	back, record, session := h.Back, h.Record, h.Session
	add := func(f *remains.Outline, records uint16, number uint64) {
		chain = append(chain, remains.Link{Records: records, Number: number, From: f.Number, First: record,
			Mark: f.Mark, Session: f.Session, Sum: f.Sum})
		back, record, session = f.Sum, record+uint64(records), f.Session
	}
	for n := h.Next; ; n++ {
		f, ok := log.Page(n)
		if ok && f.Back == back && f.First == record && f.Session >= session {
			add(f, f.Records, n)
			continue
		}
		next, ok := log.Page(n + 1)
		if !ok || next.Session < session || next.First-uint64(next.Again) != record {
			break
		}
		missing = append(missing, len(chain))
		add(next, next.Again, n)
		n++
		add(next, next.Records, n)
	}
	// A page that was durable is damaged; another one may only have been in flight.
	mark := uint64(0)
	for _, f := range chain {
		mark = max(mark, f.Mark)
	}
	for _, i := range missing {
		if f := chain[i]; f.Upto() <= mark {
			r.lost(0, r.logOffset(f.Number), fmt.Sprintf("page %d of the log", f.Number))
		}
	}
	return chain
}

// logOffset returns the byte offset of a log page.
func (c *core) logOffset(number uint64) int64 {
	return (c.shape.LogStart() + int64(number%uint64(c.shape.LogPages))) * Page
}

// readMap sets the state to that of a checkpoint: by its index and the leaves that it lists if both are there, else by
// its entries, and those leaves if it is the newest.
func (r *recovery) readMap(h media.Header, chain []remains.Link, newest bool) error {
	if r.indexed = newest && r.mayIndex(h, chain); r.indexed {
		err := r.readList(h, chain)
		if err == nil && (h.Leaves == 0 || r.listed) && r.readIndex(h, chain) {
			r.report.Indexed = true
			return nil
		}
		r.forgetAll()
	}
	if newest {
		if err := r.readList(h, chain); err != nil {
			return err
		}
	}
	return r.readBody(h)
}

// readBody applies the body of a checkpoint to an empty state. It returns the first error, unless the damaged grain
// could be rebuilt from the others of its group and their parity.
func (r *recovery) readBody(h media.Header) error {
	s := r.left().Stream(h, false, r.applySegment)
	if err := r.streamed(h, s); err != nil {
		return err
	}
	for page, had := range r.touched {
		if !had { // a leaf may have what a record did
			r.table.Change(page, ftl.NoPPA, 0)
		}
	}
	return nil
}

// streamed records the generation and the ages of a checkpoint that was read, and its rebuilt grains.
func (r *recovery) streamed(h media.Header, s *remains.Streamed) error {
	if s.Err != nil {
		return fmt.Errorf("checkpoint %d: %w", h.Generation, s.Err)
	}
	// A checkpoint that was begun before the crash may have used the next generation.
	r.source, r.generation, r.coming = h.Generation, h.Generation, h.Generation+3
	r.body.read(h.Generation, s.Segments)
	r.body.unchanged(h.Generation, s.Segments)
	for _, i := range s.Rebuilt {
		at := r.shape.CheckpointStart(int(h.Generation&1)) + media.BodyGrain(i)
		r.lost(0, at*Page, fmt.Sprintf("grain %d of checkpoint %d", i, h.Generation))
	}
	return nil
}

// forgetAll undoes readBody.
func (r *recovery) forgetAll() {
	r.table, r.ledger, r.source = newTable(r.shape), ledger.New(int64(len(r.segments)), r.shape.Pages), 0
	r.touched, r.stores, r.list, r.homes = nil, nil, nil, newHomes(r.ledger.Places())
	r.body.versions = newVersions(len(r.segments))
	r.indexed, r.listed, r.pins = false, false, nil
	clear(r.keep)
	clear(r.segments)
}

// setSegment sets the state of a segment to that of a checkpoint.
func (r *recovery) setSegment(i int64, s media.Segment) error {
	r.segments[i] = segment{order: s.Order, erases: s.Erases, stream: s.Stream, session: s.Session,
		opened: s.Use != media.Erased, written: int32(s.Written)}
	if s.Use == media.Filled {
		x := &r.segments[i]
		x.written, x.settled, x.settledAll = int32(r.shape.Pages), true, true
	}
	if s.Stream >= uint8(heat.Streams) {
		return fmt.Errorf("segment %d of stream %d: %w", i, s.Stream, ErrDamaged)
	}
	return nil
}

// applySegment sets the state of a segment and its places to that of a checkpoint.
func (r *recovery) applySegment(i int64, s media.Segment, entries media.Entries) error {
	if err := r.setSegment(i, s); err != nil || s.Use == media.Erased {
		return err
	}
	bare := s.Use == media.Filled && r.bareAll()
	if bare {
		r.ledger.Fill(i, entries)
	}
	for k := 0; k < entries.Len(); {
		e, n := entries.Run(k)
		if e.Page != 0 {
			if e.Page-1+uint64(n) > media.MaxLBA {
				return fmt.Errorf("%d pages from %d on, at place %d of segment %d: %w", n, e.Page-1, k, i, ErrDamaged)
			}
			if err := r.mapRun(i, k, n, entries, bare); err != nil {
				return err
			}
		}
		k += n
	}
	if s.Use == media.Filled {
		r.ledger.Seal(i)
	}
	r.fitAll()
	return nil
}

// leastRun is the number of pages in order that are mapped together.
const leastRun = 32

// mapRun maps the consecutive pages of n entries of a segment from k on to their places. Those of stored leaves are
// mapped there already, but for those that records name. If bare, the ledger has all of the segment.
func (r *recovery) mapRun(segment int64, k, n int, entries media.Entries, bare bool) error {
	base := ftl.PPA(segment * int64(r.shape.Pages))
	for end := k + n; k < end; k += n {
		page := entries.At(k).Page - 1
		if n = end - k; r.homes.n > 0 {
			n = min(n, int(table.FirstOf(table.LeafOf(page)+1)-page))
		}
		away := r.homes.n > 0 && r.table.IsAway(table.LeafOf(page))
		together := !away && n >= leastRun
		if together {
			for range r.table.Words(page, page+uint64(n)-1) {
				together = false // some of them were mapped before
				break
			}
		}
		if together {
			r.table.Put(page, base+ftl.PPA(k), n, func(p ftl.PPA) uint32 { return entries.At(int(p - base)).Sum })
		}
		for j := k; j < k+n && (!together || !bare); j++ {
			p, e := base+ftl.PPA(j), entries.At(j)
			switch {
			case together:
			case away:
				if _, ok := r.touched[e.Page-1]; ok {
					r.touched[e.Page-1] = true
					r.table.Change(e.Page-1, p, e.Sum)
				}
			default:
				r.point(e.Page-1, p, e.Sum)
			}
			if !bare {
				r.setPlace(p, e.Page-1, e.Sum)
				r.ledger.SetRenamed(p, e.Renamed)
			}
		}
	}
	return nil
}

// fitAll keeps the memory of the map within Config.Map while a pool is recovered.
func (r *recovery) fitAll() {
	for r.over() && r.table.Fold() {
	}
	if r.over() {
		r.dropSums(2 * len(r.segments))
	}
}

// replay applies the chain of log pages after a checkpoint.
func (r *recovery) replay(h media.Header, chain []remains.Link) error {
	r.clock = heat.NewClock(r.ledger.Places(), h.Writes)
	r.next, r.session = h.Record, h.Session
	r.report.Clean = h.Clean && len(chain) == 0
	if err := r.readDrops(h.Session, chain); err != nil {
		return err
	}
	// The highest mark of the chain applies to all of it: a later page proves that earlier records were durable.
	for _, f := range chain {
		r.mark = max(r.mark, f.Mark)
	}
	r.mark = max(r.mark, h.Record)
	open := slices.IndexFunc(chain, func(f remains.Link) bool { return f.Upto() > r.mark })
	if open < 0 {
		open = len(chain)
	}
	var places []ftl.PPA
	err := r.left().Records(chain[open:], func(f *remains.Link, records []media.Record) error {
		places = r.unmarked(places, f.First, records)
		return nil
	})
	if err != nil {
		return err
	}
	r.verify(places)
	return r.left().Records(chain, func(f *remains.Link, records []media.Record) error {
		// A session without records counts too: announce logged an empty page.
		r.session = max(r.session, f.Session)
		r.previous = append(r.previous[:0], records...)
		r.report.Pages++
		for _, rec := range records {
			if err := r.apply(rec); err != nil {
				return fmt.Errorf("ctl: log page %d, record %d: %w", f.Number, r.next, err)
			}
			r.next++
			r.report.Records++
		}
		for range foldsAPage {
			if !r.over() || !r.table.Fold() {
				break
			}
		}
		r.economise()
		return nil
	})
}

// foldsAPage bounds the folding of what a log page changes.
const foldsAPage = 32

// mapTo maps a page to a place. The translation layer is not involved: restoreSegments gives it the final state.
func (r *recovery) mapTo(page uint64, to ftl.PPA, sum uint32) error {
	if page >= media.MaxLBA || to < 0 || int64(to) >= r.ledger.Places() {
		return fmt.Errorf("page %d at place %d of %d: %w", page, to, r.ledger.Places(), ErrDamaged)
	}
	if r.ledger.IsLive(to) {
		return fmt.Errorf("page %d and another are both at place %d: %w", page, to, ErrDamaged)
	}
	r.point(page, to, sum)
	delete(r.dropped, page)
	if err := r.unsettle(r.segmentOf(to)); err != nil {
		return err
	}
	r.setPlace(to, page, sum)
	return nil
}

// point lets a page refer to a place, in place of the one before.
func (r *recovery) point(page uint64, to ftl.PPA, sum uint32) {
	if w, _ := r.table.Peek(page); w.State() == table.OnMedium {
		r.clearLive(w.Place())
	}
	if r.table.Away(page) {
		r.table.Change(page, to, sum)
		return
	}
	r.table.Make(page).Store(table.At(to))
	r.table.Note(page, to, sum)
}

// setPlace records the owner and the checksum of a place.
func (r *recovery) setPlace(to ftl.PPA, page uint64, sum uint32) {
	if !r.ledger.Whole(r.segmentOf(to)) {
		r.ledger.Prepare(to)
	}
	r.ledger.SetOwner(to, page)
	r.ledger.SetSum(to, sum)
	r.ledger.SetRenamed(to, false)
	r.setLive(to)
}

// apply replays one record. A Write that no mark covers counts only if its place has the recorded content, because a
// log page can reach the medium before the data that it describes.
func (r *recovery) apply(rec media.Record) error {
	switch rec.Kind {
	case media.Write, media.Keep:
		if rec.PPA >= uint64(r.ledger.Places()) {
			return fmt.Errorf("write to place %d of %d: %w", rec.PPA, r.ledger.Places(), ErrDamaged)
		}
		to := ftl.PPA(rec.PPA)
		s := &r.segments[r.segmentOf(to)]
		if !s.opened {
			return fmt.Errorf("write to place %d of a segment that is not open: %w", to, ErrDamaged)
		}
		// Chunks of a segment can complete in any order, hence the maximum. A dropped write counts as well: its place
		// may have been programmed, and is not written again before the segment is erased.
		s.written = max(s.written, int32(int64(to)-r.segmentOf(to)*int64(r.shape.Pages))+1)
		// The number of the record that fills a segment orders it by age for collection.
		if int(s.written) == r.shape.Pages {
			s.order = r.next
		}
		if rec.Kind == media.Write && r.drops.has(r.next) {
			return nil
		}
		if rec.Kind == media.Write && r.next >= r.mark && !r.holds(to, rec.Sum) {
			r.drop(rec)
			return nil
		}
		return r.mapTo(rec.LBA, to, rec.Sum)
	case media.Trim:
		if rec.LBA >= media.MaxLBA || uint64(rec.Count) > media.MaxLBA-rec.LBA || rec.Count == 0 {
			return fmt.Errorf("trim of %d pages from %d on: %w", rec.Count, rec.LBA, ErrDamaged)
		}
		// Pages written again after the trim have later records.
		r.empty(rec.LBA, uint64(rec.Count))
	case media.Move:
		return r.shifted(rec)
	case media.Open:
		stream, session := rec.Opener()
		if rec.PPA >= uint64(len(r.segments)) || stream >= uint8(heat.Streams) {
			return fmt.Errorf("segment %d opened for stream %d: %w", rec.PPA, stream, ErrDamaged)
		}
		if k := r.ledger.NextLive(int64(rec.PPA), 0); k < r.shape.Pages {
			// a segment is erased only when no durable mapping refers to it
			return fmt.Errorf("segment %d was opened, but holds a page at place %d: %w", rec.PPA, k, ErrDamaged)
		}
		r.change(int64(rec.PPA))
		r.ledger.Erase(int64(rec.PPA))
		r.segments[rec.PPA] = segment{opened: true, stream: stream, session: session, erases: rec.Sum, order: r.next}
	}
	return nil
}

// drop accounts for a write whose content is missing and that nothing says was durable.
func (r *recovery) drop(rec media.Record) {
	r.report.Dropped++
	r.dropped[rec.LBA] = true
	r.decided.add(r.next)
}

// empty unmaps count pages from first on.
func (r *recovery) empty(first, count uint64) {
	for _, slot := range r.table.Used(first, first+count-1) {
		if w := slot.Load(); w.State() == table.OnMedium {
			r.clearLive(w.Place())
			slot.Store(0)
		}
	}
}

// settleState hands the segments to the translation layer and makes the recovered state durable, so that the fate of
// writes that were in flight is decided only once. The log goes on where it ended: after a crash it says which of its
// records were dropped. If it has no space for that, if pages were moved or if something is damaged, a checkpoint of
// the recovered state is written instead; with both, to both places, so that nothing damaged is left in use.
func (r *recovery) settleState(at ending, both bool) error {
	r.unpinAll(&r.pins)
	crashed := at.crashed || both
	if crashed && r.readOnly == nil {
		r.orReadOnly(r.prepare())
	}
	if err := r.restoreSegments(); err != nil {
		return err
	}
	// A session number is used once. Summaries and Open records carry it.
	r.session++
	// No page is in a frame, so there are no reservations: the pages in use are those with a place.
	r.used, r.report.Mapped, r.report.Session = r.ledger.Lives(), r.ledger.Lives(), r.session
	// A generation is used once too: grains of two checkpoints of one generation could be taken for one of them.
	for r.generation = at.generation; r.generation+1 <= at.newest; {
		r.generation += 2
	}
	r.durable, r.number, r.base, r.back = r.next, at.number, at.number, at.back
	if r.readOnly == nil {
		r.orReadOnly(r.writeState(at, crashed, both))
	}
	return nil
}

// writeState makes the decisions of recovery durable.
func (r *recovery) writeState(at ending, crashed, both bool) error {
	switch {
	case !crashed:
		r.base, r.coming = at.first, r.generation+1
		if r.generation == at.newest {
			r.readOther(r.generation)
		}
		return r.announce(r.next, nil)
	case at.goesOn && !both && len(r.plugged) == 0 && r.mayResume(at.number-at.first):
		r.base = at.first
		return r.resume()
	}
	if r.coming > 0 {
		r.generation = max(r.generation, r.coming-1)
	}
	err := r.writeDown(both)
	r.coming = r.generation + 1
	return err
}

// readOther reads the ages of the checkpoint that is not in force, so that the next needs not be written in full. A
// pool that was closed cleanly has not begun to write over it.
func (r *recovery) readOther(inForce uint64) {
	headers, err := r.headers()
	if err != nil || len(headers) < 2 || headers[1].Generation == inForce {
		return
	}
	generation := headers[1].Generation
	body := media.Body{Segments: make([]media.Segment, len(r.segments)), Pages: r.shape.Pages}
	for i := range media.EntriesGrain(0, int64(len(r.segments))) {
		err := device.Do(r.devices[0], device.Read, r.bodyOffset(generation, i), r.content)
		if err != nil || body.DecodePage(r.content, i, r.shape.UUID, generation) != nil {
			return
		}
	}
	r.body.read(generation, body.Segments)
}

// announce writes the next log page, which claims the new session number, and waits until it is durable. Otherwise, if
// this session crashed before any of its log was durable, the next session would get the same number and could mistake
// a summary of this one for its own.
func (r *recovery) announce(mark uint64, records []media.Record) error {
	if err := r.logPage(mark, records); err != nil {
		return err
	}
	return flushAll(r.devices)
}

func (r *recovery) logPage(mark uint64, records []media.Record) error {
	page := media.LogPage{Number: r.number, Session: r.session, Back: r.back, First: r.next, Mark: mark,
		Records: records, Again: r.previous}
	r.back = page.Encode(r.content, r.shape.UUID)
	if err := device.Do(r.devices[0], device.Write, r.logOffset(r.number), r.content); err != nil {
		return err
	}
	r.number, r.next, r.previous = r.number+1, r.next+uint64(len(records)), records
	return nil
}

// orReadOnly makes the pool read-only if the recovered state could not be written back. Durable data is unaffected and
// remains readable.
func (r *recovery) orReadOnly(err error) {
	if err != nil {
		r.stopped.Store(true)
		r.readOnly = fmt.Errorf(
			"%w: cannot write the recovered state: %w; the pool is readable, and the next open repeats the recovery",
			ErrReadOnly, err)
	}
}

// prepare readies the devices for writing after a crash. Its writes become durable with the flush before the
// checkpoint's header (writeCheckpoint).
func (r *recovery) prepare() error {
	// If only the process died, the state that recovery trusts may still be in the devices' volatile caches. It must be
	// durable before a place that only an older state refers to is overwritten, and before anything is reported
	// durable.
	if err := flushAll(r.devices); err != nil {
		return err
	}
	if err := r.makeRoom(); err != nil {
		return err
	}
	return r.wipeSummaries()
}

// writeDown makes the recovered state durable with one checkpoint, or with two if recovery made decisions that no
// record holds: dropped writes, and pages that makeRoom moved. A later recovery that can read only the older checkpoint
// would replay the records before the newer one and, because of the marks of later log pages, take the dropped writes
// for durable. Two checkpoints put the decisions into both slots.
func (r *recovery) writeDown(both bool) error {
	body := media.Body{Pages: r.shape.Pages, Segments: r.recordSegments(nil)}
	n := 1
	if both || r.report.Dropped > 0 || len(r.plugged) > 0 {
		n = 2
	}
	for range n {
		r.generation++
		r.cover()
		r.body.header = media.Header{
			Generation: r.generation, Session: r.session, Next: r.number, Record: r.next, Back: r.back,
			Writes: r.clock.Writes(),
		}
		if err := r.listDown(); err != nil {
			return fmt.Errorf("writing where the map is: %w", err)
		}
		err := writeCheckpoint(r.shape, r.devices, &body, r.recordEntries, r.complete(&body), r.body.header)
		if err != nil {
			return fmt.Errorf("writing a checkpoint: %w", err)
		}
		r.wroteAll(r.generation)
		r.settleSums(r.generation)
		r.settleLeaves()
	}
	return nil
}

// complete returns a function that reads the checksums that a group of entries lacks from the checkpoint in force.
func (r *recovery) complete(body *media.Body) func(i, from, to int64) error {
	var buf []byte
	return func(i, from, to int64) error {
		if !r.bare(body, from, to) {
			return nil
		}
		if buf == nil {
			buf = device.Aligned(bodyChunk * Page)
		}
		_, n := r.groupOf(i)
		group := buf[:(n+1)*Page]
		if err := device.Do(r.devices[0], device.Read, r.bodyOffset(r.source, i), group); err != nil {
			return err
		}
		return r.inherit(body, i, group)
	}
}

// roomAfterCrash is the number of empty segments at startup: one for users and one for collection to work with.
const roomAfterCrash = 2

// makeRoom ensures that there are empty segments. Each crash can leave a partly filled segment behind; after several in
// a row, none may be left to move pages to. Because no durable mapping refers to an unused place, the pages of the
// emptiest segment can be written to unused places of other segments in place. After the next checkpoint they are
// mapped there; until then the old checkpoint still maps them to their old places.
func (r *recovery) makeRoom() error {
	pages := int64(r.shape.Pages)
	valid := make([]int64, len(r.segments)) // live pages, by segment
	empty := 0
	for i := range r.segments {
		if valid[i] = int64(r.ledger.LivesOf(int64(i))); valid[i] == 0 && r.storeOf(int64(i)) == nil {
			empty++
		}
	}
	for hole := ftl.PPA(0); empty < roomAfterCrash; empty++ {
		least := -1
		for i := range r.segments {
			if valid[i] > 0 && !r.plugged[int64(i)] && (least < 0 || valid[i] < valid[least]) {
				least = i
			}
		}
		if least < 0 {
			return nil
		}
		for k := range pages {
			from := ftl.PPA(int64(least)*pages + k)
			if !r.ledger.IsLive(from) {
				continue
			}
			// A hole is a dead place in another segment that keeps live pages; empty segments must stay empty.
			for r.ledger.IsLive(hole) || r.segmentOf(hole) == int64(least) || valid[r.segmentOf(hole)] == 0 {
				if hole++; int64(hole) == r.ledger.Places() {
					return fmt.Errorf("no free place to move the page at %d to: %w", from, ErrFull)
				}
			}
			if err := r.plug(from, hole); err != nil {
				return err
			}
			valid[r.segmentOf(hole)]++
		}
		valid[least] = 0
		hole = 0
	}
	return nil
}

// plug copies a page to an unused place verbatim: damaged content stays damaged.
func (r *recovery) plug(from, to ftl.PPA) error {
	dev, offset := r.at(from)
	if err := device.Do(r.devices[dev], device.Read, offset, r.content); err != nil {
		// Zeros do not match the recorded checksum, unless the page was zeros.
		clear(r.content)
	}
	dev, offset = r.at(to)
	if err := device.Do(r.devices[dev], device.Write, offset, r.content); err != nil {
		return fmt.Errorf("moving a page: %w", err)
	}
	r.plugged[r.segmentOf(to)] = true
	// The place may be beyond those allocated so far, which must then be counted as used.
	s := &r.segments[r.segmentOf(to)]
	s.written = max(s.written, int32(int64(to)-r.segmentOf(to)*int64(r.shape.Pages))+1)
	if err := r.unsettle(r.segmentOf(from)); err != nil {
		return err
	}
	page := r.owner(from)
	if r.table.Away(page) {
		r.table.Change(page, from, r.sum(from))
	}
	return r.mapTo(page, to, r.sum(from))
}

// wipeSummaries overwrites the summaries of segments that are not full. Such a summary describes a fill whose end was
// lost, and the remaining places will be written anew. The checkpoint's flush makes the zeros durable. A summary that
// already reads as zeros may be a hole in a sparse file and is not written.
func (r *recovery) wipeSummaries() error {
	is, zeros := device.Aligned(r.shape.SummaryGrains()*Page), device.Aligned(r.shape.SummaryGrains()*Page)
	for i := range r.segments {
		s := &r.segments[i]
		if !s.opened || int(s.written) == r.shape.Pages && !r.plugged[int64(i)] {
			continue
		}
		p := r.places[i]
		at := p.offset + int64(r.shape.Pages)*Page
		if device.Do(r.devices[p.device], device.Read, at, is) == nil && bytes.Equal(is, zeros) {
			continue
		}
		if err := device.Do(r.devices[p.device], device.Write, at, zeros); err != nil {
			return fmt.Errorf("wiping the summary of segment %d: %w", i, err)
		}
	}
	return nil
}

// restoreSegments describes every segment to the translation layer, in the order in which they were filled.
// RestoreBlock requires that order, and at most one open segment for each stream.
func (r *recovery) restoreSegments() error {
	for i := range r.stores {
		own := r.stores[i].segment
		s := &r.segments[own]
		switch {
		case r.ledger.LivesOf(own) > 0:
			return fmt.Errorf("ctl: segment %d has pages beside the map: %w", own, ErrDamaged)
		case s.opened: // it was emptied and given away while the checkpoint was written
			*s = segment{erases: s.erases + 1}
			r.ledger.Erase(own)
		}
		if err := r.ftl.RestoreBlock(ftl.Block(own),
			ftl.Restored{Use: ftl.Given, Erases: int(min(s.erases, 1<<24-1))}); err != nil {
			return fmt.Errorf("ctl: segment %d: %w", own, err)
		}
	}
	order := make([]int64, 0, len(r.segments))
	var newest [heat.Streams]int64 // the newest open segment of each stream, plus 1
	for i := range r.segments {
		s := &r.segments[i]
		if !s.opened {
			continue
		}
		order = append(order, int64(i))
		if int(s.written) < r.shape.Pages {
			// Earlier crashes can have left several partly filled segments of a stream. It continues the newest.
			if was := newest[s.stream]; was == 0 || r.segments[was-1].order < s.order {
				newest[s.stream] = int64(i) + 1
			}
		}
	}
	slices.SortFunc(order, func(a, b int64) int { return int(int64(r.segments[a].order - r.segments[b].order)) })
	// A full segment is ordered by the record number at which it was filled, another by that at which it was opened.
	words := (r.shape.Pages + 63) / 64
	valid := make([]uint64, words)
	for rank, i := range order {
		s := &r.segments[i]
		r.ledger.Bits(i, false, valid)
		live := r.ledger.LivesOf(i) > 0
		d := ftl.Restored{Use: ftl.Full, Stream: int(s.stream), Valid: valid, Erases: int(min(s.erases, 1<<24-1)),
			Age: len(order) - rank} // as if each segment filled since took an erase
		s.programmed = s.written
		// an open segment without live pages is restored as full, and collection frees it; makeRoom counted it as empty
		if newest[s.stream] == i+1 && live {
			d.Use, d.Written, d.Age = ftl.Open, int(s.written), 0
		} else {
			// A segment that was closed by a failure or was still being filled: its unwritten places stay unused until
			// it is collected.
			s.written, s.programmed = int32(r.shape.Pages), int32(r.shape.Pages)
			r.ledger.Seal(i)
		}
		if err := r.ftl.RestoreBlock(ftl.Block(i), d); err != nil {
			return fmt.Errorf("ctl: segment %d: %w", i, err)
		}
	}
	for i := range r.segments {
		if s := &r.segments[i]; !s.opened && s.erases > 0 && r.storeOf(int64(i)) == nil {
			if err := r.ftl.RestoreBlock(ftl.Block(i), ftl.Restored{Erases: int(min(s.erases, 1<<24-1))}); err != nil {
				return fmt.Errorf("ctl: segment %d: %w", i, err)
			}
		}
	}
	return nil
}
