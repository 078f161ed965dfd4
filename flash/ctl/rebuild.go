package ctl

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"farflash/flash/ctl/heat"
	"farflash/flash/ctl/media"
	"farflash/flash/ctl/remains"
	"farflash/flash/ctl/table"
	"farflash/flash/device"
	"farflash/policy/ftl"
)

// rebuild finds the state of a pool that readState refuses, from the remains of the checkpoints, the log and the
// segments' summaries, in the order of time. It only reads.
//
// Where records are missing, it distinguishes pages whose newest place is certain from doubtful ones. A page is certain
// if a record that lies after the last gap says where it is, because nothing after that record is missing. All others
// are doubtful: a missing record may have written, moved or trimmed them.
type rebuild struct {
	*recovery
	snaps     []*remains.Snapshot // newest first
	pieces    []remains.Run       // of the log, in order; there can be gaps between them
	summaries []*media.Summary    // by segment, or nil; read when they are needed
	doubt     []uint64            // a bit for each place whose mapping is doubtful
	missing   bool                // so is that pages without a place have none
	exact     bool                // there is no doubt, and the state is that at the number of the next record
	evicted   map[uint64]sighting // pages whose places were reused although no record says where they went
	gaps      []Gap
	base      *remains.Snapshot // the newest of those that the state is made of
	grey      bool              // the next moves may be part of it already
	highest   uint64            // log page
	newest    uint64            // generation
	// progress is called while places are read; an error that it returns ends the rebuilding.
	progress func(done, all int64) error
	ended    error
}

// sighting is content that a page had at some time.
type sighting struct {
	at   ftl.PPA
	sum  uint32
	when uint64 // estimated, as the number of a record
}

// Gap is a run of missing log records, each of which wrote, trimmed or moved pages.
type Gap struct {
	From, To uint64 // numbers; To is not part of it
}

// errNothing is the error for a pool of which only superblocks are left.
var errNothing = errors.New("neither a checkpoint nor a page of the log nor a summary of a segment is left")

// run fills the core with the newest state that there are records of, and returns its end.
func (b *rebuild) run() (ending, error) {
	headers, _ := b.headers()
	for slot := range 2 {
		var own *media.Header
		if i := slices.IndexFunc(headers, func(h media.Header) bool { return int(h.Generation&1) == slot }); i >= 0 {
			own = &headers[i]
		}
		if s := b.left().Snapshot(slot, own); s != nil {
			b.snaps = append(b.snaps, s)
			b.newest = max(b.newest, s.Header.Generation)
		}
	}
	slices.SortFunc(b.snaps,
		func(x, y *remains.Snapshot) int { return cmp.Compare(y.Header.Generation, x.Header.Generation) })
	left := b.left().Pieces(headers, logPages)
	b.pieces, b.highest, b.mark, b.session = left.Runs, left.Highest, left.Mark, left.Session
	b.doubt, b.evicted = make([]uint64, (b.ledger.Places()+63)/64), map[uint64]sighting{}
	var places []ftl.PPA
	for _, f := range b.pieces {
		places = b.unmarked(places, f.First, f.Records)
		b.drops.take(f.Records)
	}
	b.drops.sort()
	b.verify(places)
	b.replayAll()
	if b.ended != nil {
		return ending{}, b.ended
	}
	if len(b.snaps) == 0 && len(b.pieces) == 0 &&
		!slices.ContainsFunc(b.summaries, func(s *media.Summary) bool { return s != nil }) {
		return ending{}, fmt.Errorf("ctl: %w", errNothing)
	}
	b.finish()
	for _, f := range b.pieces {
		b.next = max(b.next, f.Upto())
	}
	b.next = max(b.next, b.mark, 1)
	var writes uint64
	at := ending{newest: b.newest, number: b.highest + 1, crashed: true}
	if len(b.snaps) > 0 {
		if b.base == nil {
			b.base = b.snaps[0]
		}
		at.generation = b.base.Header.Generation
		for _, s := range b.snaps {
			writes = max(writes, s.Header.Writes)
		}
	}
	b.clock = heat.NewClock(b.ledger.Places(), writes)
	return at, nil
}

// replayAll applies checkpoints and the log in the order of time.
func (b *rebuild) replayAll() {
	run := len(b.pieces) // the first piece of the last run without a gap
	for run > 0 && (run == len(b.pieces) || b.pieces[run-1].Upto() == b.pieces[run].First) {
		run--
	}
	var headed []*remains.Snapshot // those whose time is known, oldest first
	var timeless *remains.Snapshot
	for i, s := range b.snaps {
		if !s.Headed {
			s.Header.Record = s.Position(b.pieces[run:])
		}
		switch {
		case s.Headed || s.Header.Record > 0:
			headed = append([]*remains.Snapshot{s}, headed...)
		case i == 0:
			timeless = s
		case len(b.pieces) == 0 || b.pieces[0].First > 1: // older: evidence for what the others lack
			b.overlay(s)
		}
	}
	// Nothing before a complete checkpoint matters.
	for i := len(headed) - 1; i >= 0; i-- {
		if len(headed[i].Lost) == 0 {
			headed = headed[i:]
			break
		}
	}
	at := uint64(1) // the number of the next record
	b.exact = len(b.pieces) > 0 && b.pieces[0].First == 1
	until := func(number uint64, rest int) {
		if at < number {
			b.gap(at, number, b.pieces[rest:])
		}
		at = max(at, number)
	}
	for i, f := range b.pieces {
		for len(headed) > 0 && headed[0].Header.Record <= f.First {
			b.reach(headed[0], &at, until, i)
			headed = headed[1:]
		}
		if len(headed) > 0 && len(headed[0].Lost) == 0 {
			continue // the checkpoint has it
		}
		until(f.First, i)
		if i == run && timeless != nil && !b.exact {
			b.timeless(timeless)
			timeless = nil
		}
		b.play(f)
		at = f.Upto()
	}
	for _, s := range headed {
		b.reach(s, &at, until, len(b.pieces))
	}
	if timeless != nil && !b.exact {
		b.gap(at, at, nil)
		b.timeless(timeless)
	}
	if len(b.snaps) == 0 && len(b.pieces) == 0 {
		b.gap(at, at, nil)
	}
}

// timeless applies a checkpoint whose time is not known.
func (b *rebuild) timeless(s *remains.Snapshot) {
	b.overlay(s)
	b.base, b.missing = s, true
	b.doubtAll()
}

// reach applies a checkpoint whose time is known.
func (b *rebuild) reach(s *remains.Snapshot, at *uint64, until func(uint64, int), rest int) {
	if len(s.Lost) > 0 {
		until(s.Header.Record, rest)
	}
	if len(s.Lost) == 0 || !b.exact {
		b.base = s
	}
	b.overlay(s)
	if len(s.Lost) == 0 {
		b.exact, b.missing, b.gaps = true, false, nil
		clear(b.doubt)
		clear(b.evicted)
	}
	*at, b.grey = s.Header.Record, !s.Headed
}

// overlay sets the places that a checkpoint has entries of to its state.
func (b *rebuild) overlay(s *remains.Snapshot) {
	for i, seg := range s.Body.Segments {
		switch {
		case !s.Blind[i]:
			b.segments[i] = segment{order: seg.Order, erases: seg.Erases, stream: min(seg.Stream, uint8(heat.Cold)),
				session: seg.Session, opened: seg.Use != media.Erased, written: int32(seg.Written)}
			if seg.Use == media.Filled {
				b.segments[i].written = int32(b.shape.Pages)
			}
		default:
			if is := &b.segments[i]; !is.opened {
				*is = segment{opened: true, written: int32(b.shape.Pages), stream: uint8(heat.Cold), erases: is.erases}
			}
			is := b.segments[i]
			s.Body.Segments[i] = media.Segment{Use: media.Filled, Stream: is.stream, Erases: is.erases,
				Session: is.session, Order: is.order}
		}
	}
	s.Each(false, func(at int64, e *media.Entry) {
		p := ftl.PPA(at)
		if e.Page == 0 {
			b.vacant(p)
		}
	})
	s.Each(false, func(at int64, e *media.Entry) {
		p := ftl.PPA(at)
		if e.Page == 0 {
			return
		}
		b.claim(e.Page-1, p, e.Sum, true)
		if e.Renamed {
			b.ledger.SetRenamed(p, true)
		}
	})
	// A doubtful page among lost entries counts only if its content is still there.
	var doubtful []ftl.PPA
	s.Each(true, func(at int64, _ *media.Entry) {
		p := ftl.PPA(at)
		if b.ledger.IsLive(p) && b.isDoubtful(p) {
			doubtful = append(doubtful, p)
		}
	})
	for p, sum := range b.readable(doubtful) {
		if sum != b.sum(p) {
			b.vacant(p)
		}
	}
	if len(s.Lost) == 0 {
		return
	}
	// The entries that are lost, as they are now known.
	s.Each(true, func(at int64, e *media.Entry) {
		p := ftl.PPA(at)
		if *e = (media.Entry{}); b.ledger.IsLive(p) {
			*e = media.Entry{Page: b.owner(p) + 1, Sum: b.sum(p), Renamed: b.ledger.IsRenamed(p)}
		}
	})
}

// readAtOnce is the number of places that are read between two calls of progress.
const readAtOnce = 1 << 12

// readable returns the checksums of places; those that cannot be read have one that their page does not have.
func (b *rebuild) readable(places []ftl.PPA) map[ftl.PPA]uint32 {
	out := make(map[ftl.PPA]uint32, len(places))
	slices.Sort(places)
	var alone []ftl.PPA
	for from := 0; from < len(places) && b.ended == nil; from += readAtOnce {
		upto := min(from+readAtOnce, len(places))
		b.sumPlaces(b.devices, places[from:upto], func(p ftl.PPA, sum uint32, err error) {
			if err != nil {
				alone = append(alone, p)
			}
			out[p] = sum
		})
		b.ended = b.progress(int64(upto), int64(len(places)))
	}
	for _, p := range alone { // one bad page fails the read of its neighbours
		sum, _ := b.ledger.SumAt(p)
		out[p] = ^sum
		dev, offset := b.at(p)
		if device.Do(b.devices[dev], device.Read, offset, b.content) == nil {
			out[p] = media.Sum(b.seed, b.content)
		}
	}
	return out
}

// doubtAll makes all pages that have a place doubtful, and no others.
func (b *rebuild) doubtAll() {
	clear(b.doubt)
	for i := range b.segments {
		for k := b.ledger.NextLive(int64(i), 0); k < b.shape.Pages; k = b.ledger.NextLive(int64(i), k+1) {
			at := i*b.shape.Pages + k
			b.doubt[at>>6] |= 1 << (at & 63)
		}
	}
}

func (b *rebuild) isDoubtful(p ftl.PPA) bool { return b.doubt[p>>6]>>(p&63)&1 != 0 }

// vacant unmaps the page at a place.
func (b *rebuild) vacant(p ftl.PPA) {
	if b.ledger.IsLive(p) {
		b.table.Make(b.owner(p)).Store(0)
		b.clearLive(p)
	}
	b.doubt[p>>6] &^= 1 << (p & 63)
}

// claim maps a page to a place, whatever either had before.
func (b *rebuild) claim(page uint64, p ftl.PPA, sum uint32, certain bool) {
	b.vacant(p)
	if b.mapTo(page, p, sum) == nil && !certain {
		b.doubt[p>>6] |= 1 << (p & 63)
	}
	delete(b.evicted, page)
}

// gap accounts for missing records. Whatever there is may be out of date from here on. Pages that were written
// meanwhile are found by the summaries of the segments that were filled since; rest is the log after the gap.
func (b *rebuild) gap(from, to uint64, rest []remains.Run) {
	if from < to {
		b.gaps = append(b.gaps, Gap{from, to})
	}
	b.exact, b.missing = false, true
	b.doubtAll()
	if b.summaries == nil {
		b.summaries = b.left().Summaries()
	}
	later := make([]uint64, len(b.doubt)) // places that the rest of the log has records of
	for _, f := range rest {
		for _, rec := range f.Records {
			if (rec.Kind == media.Write || rec.Kind == media.Keep) && rec.PPA < uint64(b.ledger.Places()) {
				later[rec.PPA>>6] |= 1 << (rec.PPA & 63)
			}
		}
	}
	order := make([]int, 0, len(b.segments)) // segments, by the time at which they were filled
	for i := range b.segments {
		if b.summaries[i] != nil {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(b.summaries[x].Order, b.summaries[y].Order) })
	seen := map[uint64][]sighting{} // by page
	var all []ftl.PPA
	for _, i := range order {
		s, is := b.summaries[i], &b.segments[i]
		first := 0
		switch {
		case is.opened && s.Erases == is.erases && uint32(s.Session) == is.session:
			first = int(is.written) // the places before were written before the gap
		case is.opened && s.Erases <= is.erases && is.session != 0, !is.opened && s.Erases < is.erases:
			continue // of an earlier use of the segment
		case is.opened:
			b.evict(int64(i))
		}
		*is = segment{opened: true, written: int32(b.shape.Pages), stream: s.Stream, session: uint32(s.Session),
			erases: s.Erases, order: s.Order}
		for k := first; k < b.shape.Pages; k++ {
			p, e := ftl.PPA(i*b.shape.Pages+k), s.Entries[k]
			if e.Page == 0 || e.Page > media.MaxLBA || later[p>>6]>>(p&63)&1 != 0 || b.ledger.IsLive(p) {
				continue
			}
			seen[e.Page-1] = append(seen[e.Page-1], sighting{at: p, sum: e.Sum, when: remains.When(b.summaries, i, k)})
			all = append(all, p)
		}
	}
	is := b.readable(all)
	for _, page := range slices.Sorted(maps.Keys(seen)) {
		slices.SortStableFunc(seen[page], func(x, y sighting) int { return cmp.Compare(x.when, y.when) })
		var versions []uint32 // by the time at which they were first seen: a later copy of one is no newer
		if w, _ := b.table.Peek(page); w.State() == table.OnMedium {
			versions = append(versions, b.sum(w.Place()))
		}
		var best *sighting
		rank := -1
		for k := range seen[page] {
			x := &seen[page][k]
			if is[x.at] != x.sum {
				continue
			}
			v := slices.Index(versions, x.sum)
			if v < 0 {
				v, versions = len(versions), append(versions, x.sum)
			}
			if v >= rank {
				best, rank = x, v
			}
		}
		if best != nil && rank == len(versions)-1 {
			b.claim(page, best.at, best.sum, false)
		}
	}
}

// evict unmaps all pages of a segment that is written anew.
func (b *rebuild) evict(segment int64) {
	first := ftl.PPA(segment * int64(b.shape.Pages))
	for p := first; p < first+ftl.PPA(b.shape.Pages); p++ {
		if b.ledger.IsLive(p) {
			b.evicted[b.owner(p)] = sighting{at: p, sum: b.sum(p)}
			b.vacant(p)
		}
	}
}

// play applies the records of a log page. Unlike apply it takes what contradicts the state for a consequence of missing
// records, and the record for right.
func (b *rebuild) play(f remains.Run) {
	b.report.Pages++
	for i, rec := range f.Records {
		b.next = f.First + uint64(i)
		b.report.Records++
		switch {
		case rec.Kind == media.Write || rec.Kind == media.Keep:
			b.grey = false
			b.playWrite(rec, f.Session)
		case rec.Kind == media.Open && rec.PPA < uint64(len(b.segments)):
			stream, session := rec.Opener()
			b.evict(int64(rec.PPA))
			b.segments[rec.PPA] = segment{opened: true, stream: min(stream, uint8(heat.Cold)), session: session,
				erases: rec.Sum, order: b.next}
		case rec.LBA >= media.MaxLBA || uint64(rec.Count) > media.MaxLBA-rec.LBA || rec.Count == 0:
		case rec.Kind == media.Trim:
			b.empty(rec.LBA, uint64(rec.Count))
		case rec.Kind == media.Move:
			b.playMove(Step{From: rec.LBA, To: rec.PPA, Count: uint64(rec.Count)})
		}
	}
}

func (b *rebuild) playWrite(rec media.Record, session uint64) {
	if rec.PPA >= uint64(b.ledger.Places()) || rec.LBA >= media.MaxLBA {
		return
	}
	to := ftl.PPA(rec.PPA)
	g := b.segmentOf(to)
	s := &b.segments[g]
	// The record that the segment was opened again is missing if its summary has something else here.
	if b.summaries != nil && b.summaries[g] != nil && b.summaries[g].Erases == s.erases &&
		uint32(b.summaries[g].Session) == s.session &&
		b.summaries[g].Entries[int64(to)-g*int64(b.shape.Pages)].Sum != rec.Sum {
		b.evict(g)
		*s = segment{erases: s.erases + 1}
	}
	if !s.opened {
		*s = segment{opened: true, session: uint32(session), erases: s.erases, stream: uint8(heat.Cold), order: b.next}
	}
	s.written = max(s.written, int32(int64(to)-g*int64(b.shape.Pages))+1)
	if int(s.written) == b.shape.Pages {
		s.order = b.next
	}
	if rec.Kind == media.Write && b.drops.has(b.next) {
		return
	}
	if rec.Kind == media.Write && b.next >= b.mark && !b.holds(to, rec.Sum) {
		b.drop(rec)
		return
	}
	b.claim(rec.LBA, to, rec.Sum, true)
}

// playMove applies a Move. If there is doubt, a page that has content stays where a page without content moves to: the
// move may have been made already in the state that the page is taken from.
func (b *rebuild) playMove(s Step) {
	if s.check() != nil {
		return
	}
	for page, slot := range b.table.Used(s.To, s.To+s.Count-1) {
		w := slot.Load()
		if w.State() != table.OnMedium {
			continue
		}
		from, _ := b.table.Peek(page - s.To + s.From)
		if b.exact && !b.grey || from.State() == table.OnMedium {
			b.vacant(w.Place())
			continue
		}
		b.doubt[w.Place()>>6] |= 1 << (w.Place() & 63)
	}
	b.shift(s)
	for _, slot := range b.table.Used(s.To, s.To+s.Count-1) {
		if w := slot.Load(); b.grey && w.State() == table.OnMedium {
			b.doubt[w.Place()>>6] |= 1 << (w.Place() & 63)
			b.missing = true
		}
	}
}

// finish restores pages that lost their place to another without a record of where they went, if their content is
// still there, and makes the segments' states agree with the pages.
func (b *rebuild) finish() {
	var places []ftl.PPA
	for page, x := range b.evicted {
		if w, _ := b.table.Peek(page); w.State() == table.Invalid && !b.ledger.IsLive(x.at) {
			places = append(places, x.at)
		}
	}
	is := b.readable(places)
	for _, page := range slices.Sorted(maps.Keys(b.evicted)) {
		if x := b.evicted[page]; is[x.at] == x.sum && slices.Contains(places, x.at) {
			b.claim(page, x.at, x.sum, false)
			b.segments[b.segmentOf(x.at)].session = 0 // its summary does not have the page
		}
	}
	for i := range b.segments {
		s := &b.segments[i]
		used := int32(0)
		for k := range b.shape.Pages {
			if b.ledger.IsLive(ftl.PPA(i*b.shape.Pages + k)) {
				used = int32(k) + 1
			}
		}
		switch {
		case used > 0 && !s.opened:
			*s = segment{opened: true, written: int32(b.shape.Pages), erases: s.erases, stream: uint8(heat.Cold)}
		case s.opened && (!b.exact || used > s.written):
			s.written = int32(b.shape.Pages) // what was written after the last record is not known
		}
	}
	b.report.Mapped = b.ledger.Lives()
}

// unowned returns the number of places that have content, but neither a page nor a record or summary that says whose it
// was. Only segments that were still open have such places.
func (b *rebuild) unowned() (n int64) {
	recorded := map[ftl.PPA]bool{}
	for _, f := range b.pieces {
		for _, rec := range f.Records {
			if rec.Kind == media.Write || rec.Kind == media.Keep {
				recorded[ftl.PPA(rec.PPA)] = true
			}
		}
	}
	var places []ftl.PPA
	for i := range b.segments {
		s := &b.segments[i]
		if x := b.summaries[i]; !s.opened || x != nil && x.Erases == s.erases && uint32(x.Session) == s.session {
			continue
		}
		for k := range b.shape.Pages {
			if p := ftl.PPA(i*b.shape.Pages + k); !b.ledger.IsLive(p) && !recorded[p] {
				places = append(places, p)
			}
		}
	}
	zeros := media.Sum(b.seed, make([]byte, Page))
	for _, sum := range b.readable(places) {
		if sum != zeros {
			n++
		}
	}
	return n
}

// doubtful returns the number of pages whose newest place is not certain.
func (b *rebuild) doubtful() (n int64) {
	for i, word := range b.doubt {
		for ; word != 0; word &= word - 1 {
			if b.ledger.IsLive(ftl.PPA(i<<6 + bits.TrailingZeros64(word))) {
				n++
			}
		}
	}
	return n
}
