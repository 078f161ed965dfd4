// Package remains reads the remains of the records of a flash controller's pool: pages of its log, checkpoints of
// which parts are damaged, and summaries of segments. It believes a page only if its checksum is right.
//
// Its main type is Pool, with the methods Log, Snapshot, Stream and Summaries. It only reads, and leaves out what to
// conclude from them (package ctl).
package remains

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"farflash/flash/ctl/heat"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
)

// Pool is a pool's devices, in the pool's order.
type Pool struct {
	Shape   media.Shape
	Devices []device.Device
}

// Page is a log page as read from the device.
type Page struct {
	media.LogPage
	Sum uint32 // the Back that the next page must have
}

// Run is the records of one log page, wherever they were found.
type Run struct {
	Records []media.Record
	Number  uint64 // of the page
	First   uint64 // number of the first record
	Mark    uint64
	Session uint64
	Sum     uint32 // the Back that the next page must have
}

// Span reads grains of device 0 from first on in large pieces. If a piece cannot be read, it is read grain by grain,
// and each receives nil for an unreadable grain.
func (p *Pool) Span(first, n int64, each func(i int64, grain []byte)) {
	most := min(256, n)
	buf := device.Aligned(int(most) * device.Grain)
	for i := int64(0); i < n; i += most {
		k := min(most, n-i)
		p.SpanInto(buf[:k*device.Grain], first+i, func(j int64, grain []byte) { each(i+j, grain) })
	}
}

// SpanInto is Span for one piece.
func (p *Pool) SpanInto(buf []byte, first int64, each func(i int64, grain []byte)) {
	whole := device.Do(p.Devices[0], device.Read, first*device.Grain, buf) == nil
	for j := range int64(len(buf) / device.Grain) {
		grain := buf[j*device.Grain:][:device.Grain]
		if !whole && device.Do(p.Devices[0], device.Read, (first+j)*device.Grain, grain) != nil {
			grain = nil
		}
		each(j, grain)
	}
}

// Log reads all valid log pages, by number, and returns the highest number and the highest mark. Among them are
// pages of earlier passes through the ring.
func (p *Pool) Log() (log map[uint64]Page, highest, mark uint64) {
	log = map[uint64]Page{}
	p.Span(p.Shape.LogStart(), p.Shape.LogPages, func(i int64, grain []byte) {
		page, sum, err := media.DecodeLogPage(grain, p.Shape.UUID)
		if err != nil || page.Number%uint64(p.Shape.LogPages) != uint64(i) {
			return // never written, torn or misplaced: the log ends where this page is needed
		}
		log[page.Number] = Page{page, sum}
		highest, mark = max(highest, page.Number), max(mark, page.Mark)
	})
	return log, highest, mark
}

// Snapshot is the readable part of a checkpoint.
type Snapshot struct {
	Header media.Header // only Generation, unless Headed
	Headed bool         // a copy of the header is left
	Body   media.Body
	Lost   map[int64]bool // grains of the body
	Blind  []bool         // by segment: its state is lost
	Parity []int64        // groups, by their first grain, whose parity is wrong
	// Rebuilt has the grains of the body that were rebuilt from their group and its parity. Err is the error of the
	// first that was not.
	Rebuilt []int64
	Err     error
	Slot    int
}

// Snapshot reads the checkpoint in a slot as far as it can, of which h is the header, or nil. It returns nil if that is
// nothing.
func (p *Pool) Snapshot(slot int, h *media.Header) *Snapshot {
	segments := p.Shape.AllSegments()
	s := &Snapshot{Slot: slot, Lost: map[int64]bool{}, Headed: h != nil, Blind: make([]bool, segments),
		Body: media.Body{Segments: make([]media.Segment, segments), Entries: make([][]media.Entry, segments),
			Pages: p.Shape.Pages}}
	if h != nil {
		s.Header = *h
	} else if s.Header.Generation = p.generation(slot); s.Header.Generation == 0 {
		return nil
	}
	all := media.BodyPages(segments, p.Shape.Pages)
	buf := device.Aligned((media.Group + 1) * device.Grain)
	first := media.EntriesGrain(0, segments)
	for i := int64(0); i < all; i += media.Group {
		if s.Body.Holds(i) { // the segments' groups come first, and say so
			n := min(media.Group, all-i)
			p.readGroup(s, i, buf[:(n+1)*device.Grain])
		}
		if i < first && i+media.Group >= first {
			for g := range s.Body.Segments { // also where entries are lost
				if s.Body.Segments[g].Use != media.Erased && s.Body.Entries[g] == nil {
					s.Body.Entries[g] = make([]media.Entry, s.Body.Pages)
				}
			}
		}
	}
	return s
}

// generation returns the generation of most grains that have segments in a slot, which every checkpoint writes, or if
// there are none, of most grains; or 0. A checkpoint that was being written over another has fewer grains, or all.
func (p *Pool) generation(slot int) (most uint64) {
	if most = p.generationOf(slot, media.EntriesGrain(0, p.Shape.AllSegments())); most == 0 {
		most = p.generationOf(slot, media.BodyPages(p.Shape.AllSegments(), p.Shape.Pages))
	}
	return most
}

// generationOf is generation for the first grains.
func (p *Pool) generationOf(slot int, all int64) (most uint64) {
	first := p.Shape.CheckpointStart(slot) + media.Headers
	found := map[uint64]int{}
	p.Span(first, media.BodyGrain(all-1)+1-media.Headers, func(k int64, grain []byte) {
		group, in := k/(media.Group+1), k%(media.Group+1)
		if i := group*media.Group + in; in < media.Group && i < all {
			if g, err := media.Generation(grain, i, p.Shape.UUID); err == nil && int(g&1) == slot {
				found[g]++
			}
		}
	})
	for _, g := range slices.Sorted(maps.Keys(found)) {
		if found[g] >= found[most] {
			most = g
		}
	}
	return most
}

// groupGeneration returns the generation of the group of grains that begins with grain i. If the state of a segment is
// lost by which the group could be younger, it is that of most of its grains that the checkpoint can have.
func (p *Pool) groupGeneration(s *Snapshot, i int64, buf []byte) uint64 {
	g := s.Body.Generation(i, s.Header.Generation)
	from, to := s.Body.Span(i)
	if i < media.EntriesGrain(0, int64(len(s.Body.Segments))) || !slices.Contains(s.Blind[from:to], true) {
		return g
	}
	found := map[uint64]int{}
	p.SpanInto(buf, p.Shape.CheckpointStart(s.Slot)+media.BodyGrain(i), func(k int64, grain []byte) {
		if k == int64(len(buf)/device.Grain)-1 || grain == nil {
			return
		}
		own, err := media.Generation(grain, i+k, p.Shape.UUID)
		if err == nil && own <= s.Header.Generation && int(own&1) == s.Slot {
			found[own]++
		}
	})
	for own, n := range found {
		if n > found[g] || n == found[g] && own > g {
			g = own
		}
	}
	return g
}

// readGroup reads the group of grains that begins with grain i of the body. buf has space for it and its parity.
func (p *Pool) readGroup(s *Snapshot, i int64, buf []byte) {
	n, generation := int64(len(buf)/device.Grain)-1, p.groupGeneration(s, i, buf)
	valid, good := make([]bool, n), int64(0)
	parity := true
	start := p.Shape.CheckpointStart(s.Slot)
	p.SpanInto(buf, start+media.BodyGrain(i), func(k int64, grain []byte) {
		switch {
		case grain == nil && k == n:
			parity = false
		case grain != nil && k < n && media.VerifyPage(grain, i+k, p.Shape.UUID, generation) == nil:
			valid[k] = true
			good++
		case grain != nil && k < n:
			// A later checkpoint is being written over this one, and its parity could make anything of the others.
			g, err := media.Generation(grain, i+k, p.Shape.UUID)
			parity = parity && (err != nil || g < generation)
		}
	})
	grain := func(k int64) []byte { return buf[k*device.Grain:][:device.Grain] }
	sum := make([]byte, device.Grain) // of all grains but the one to rebuild, and of the parity
	bad := int64(-1)
	for k := range n {
		if valid[k] {
			media.Parity(sum, grain(k))
		} else {
			bad = k
		}
	}
	if parity {
		media.Parity(sum, grain(n))
	}
	switch {
	case good == n:
		if !parity || slices.Max(sum) != 0 {
			s.Parity = append(s.Parity, i)
		}
	case good == n-1 && parity && media.VerifyPage(sum, i+bad, p.Shape.UUID, generation) == nil:
		copy(grain(bad), sum)
		valid[bad] = true
		s.Rebuilt = append(s.Rebuilt, i+bad)
	case good == 0 && i > 0 && !s.holds(i, n):
		return // of segments that may well be empty: there never was such a group
	}
	for k := range n {
		err := media.VerifyPage(grain(k), i+k, p.Shape.UUID, generation)
		if valid[k] {
			if err = s.Body.DecodePage(grain(k), i+k, p.Shape.UUID, generation); err == nil {
				continue
			}
		}
		if s.Lost[i+k] = true; s.Err == nil {
			s.Err = fmt.Errorf("grain %d: %w", i+k, cmp.Or(err, media.ErrForeign))
		}
		from, to, places := media.Covers(i+k, int64(len(s.Body.Segments)), s.Body.Pages)
		if places {
			continue
		}
		for g := from; g < to; g++ { // its entries can be read all the same
			s.Body.Segments[g] = media.Segment{Use: media.Filled, Stream: uint8(heat.Cold)}
			s.Body.Entries[g] = make([]media.Entry, s.Body.Pages)
			s.Blind[g] = true
		}
	}
}

// holds reports whether a segment that n grains from i on have entries of is known to be in use.
func (s *Snapshot) holds(i, n int64) bool {
	for k := i; k < i+n; k++ {
		from, to, places := media.Covers(k, int64(len(s.Body.Segments)), s.Body.Pages)
		if !places {
			return true
		}
		for g := from / int64(s.Body.Pages); g <= (to-1)/int64(s.Body.Pages); g++ {
			if s.Body.Segments[g].Use != media.Erased && !s.Blind[g] {
				return true
			}
		}
	}
	return false
}

// Each calls fn for all places whose entries are left, or with lost for those whose entries are lost.
func (s *Snapshot) Each(lost bool, fn func(place int64, e *media.Entry)) {
	segments := int64(len(s.Body.Segments))
	for i := range media.BodyPages(segments, s.Body.Pages) {
		from, to, places := media.Covers(i, segments, s.Body.Pages)
		if !places || s.Lost[i] != lost {
			continue
		}
		for at := from; at < to; at++ {
			if g := at / int64(s.Body.Pages); s.Body.Entries[g] != nil {
				fn(at, &s.Body.Entries[g][at%int64(s.Body.Pages)])
			} else if !lost {
				fn(at, &media.Entry{})
			}
		}
	}
}

// Position returns the number of the record at which a checkpoint without a header was made: after those writes of the
// run that it has, and the moves of their pages to where it has them. It may have been made up to the next write later.
// Without such writes it returns 0.
func (s *Snapshot) Position(run []Run) uint64 {
	has := map[uint64]uint64{} // the pages of the places that both have
	entry := func(rec media.Record) (e media.Entry) {
		if (rec.Kind == media.Write || rec.Kind == media.Keep) && rec.PPA < uint64(len(s.Body.Entries)*s.Body.Pages) {
			if all := s.Body.Entries[rec.PPA/uint64(s.Body.Pages)]; all != nil {
				e = all[rec.PPA%uint64(s.Body.Pages)]
			}
		}
		return e
	}
	for _, f := range run {
		for _, rec := range f.Records {
			if e := entry(rec); e.Page > 0 && e.Sum == rec.Sum {
				has[rec.PPA] = e.Page - 1
			}
		}
	}
	at, right := map[uint64]uint64{}, 0 // where pages are, and how many are as in the checkpoint
	move := func(from, to uint64) {
		p, ok := at[from]
		if !ok {
			return
		}
		if delete(at, from); has[p] == from {
			right--
		}
		if at[to] = p; has[p] == to {
			right++
		}
	}
	for _, f := range run {
		for _, rec := range f.Records {
			switch e := entry(rec); {
			case e.Page > 0 && e.Sum == rec.Sum:
				if p, ok := at[rec.LBA]; ok && has[p] == rec.LBA {
					right--
				}
				at[rec.LBA] = rec.PPA
				if has[rec.PPA] == rec.LBA {
					right++
				}
			case rec.Kind != media.Move:
			case rec.Count == 1:
				move(rec.LBA, rec.PPA)
			default:
				for _, page := range slices.Sorted(maps.Keys(at)) {
					if page >= rec.LBA && page-rec.LBA < uint64(rec.Count) {
						move(page, page-rec.LBA+rec.PPA)
					}
				}
			}
		}
		if len(has) > 0 && right == len(has) {
			return f.Upto()
		}
	}
	return 0
}

// Pieces is the readable part of the log.
type Pieces struct {
	Runs    []Run  // in order; records can be missing between them
	Highest uint64 // number of a page
	Mark    uint64 // records below it were durable, with their data
	Session uint64 // the newest
}

// Upto returns the number of the record after the last.
func (r *Run) Upto() uint64 { return r.First + uint64(len(r.Records)) }

// Pieces returns the log records that are left. A page that is missing is taken from its successor, which repeats it.
// Pages that a session found not to be durable, and began to write again, are left out: their numbers are not below
// those of a later session. As in a recovery, the log ends before a gap unless a mark, or the number of a page that is
// at least ahead further on, shows that the records of the gap were durable.
func (p *Pool) Pieces(headers []media.Header, ahead uint64) Pieces {
	log, highest, mark := p.Log()
	out := Pieces{Highest: highest, Mark: mark}
	begin := map[uint64]uint64{} // the first page known of each session
	note := func(session, number uint64) {
		if first, ok := begin[session]; !ok || number < first {
			begin[session] = number
		}
		out.Session = max(out.Session, session)
	}
	for n, f := range log {
		note(f.Session, n)
	}
	for _, h := range headers {
		note(h.Session, h.Next)
		out.Highest, out.Mark = max(out.Highest, h.Next-min(h.Next, 1)), max(out.Mark, h.Record)
	}
	numbers, sessions := slices.Sorted(maps.Keys(log)), slices.Sorted(maps.Keys(begin))
	kept := map[uint64]bool{}
	for _, n := range numbers {
		kept[n] = !slices.ContainsFunc(sessions, func(s uint64) bool { return s > log[n].Session && begin[s] <= n })
	}
	end := uint64(0)
	add := func(f Page, records []media.Record, number, first uint64) {
		if first < end && len(records) > 0 || len(out.Runs) > 0 && number <= out.Runs[len(out.Runs)-1].Number {
			return
		}
		out.Runs = append(out.Runs, Run{Records: records, Number: number, First: first, Mark: f.Mark,
			Session: f.Session, Sum: f.Sum})
		end = max(end, first+uint64(len(records)))
	}
	for _, n := range numbers {
		f := log[n]
		if !kept[n] {
			continue
		}
		if n > 1 && !kept[n-1] {
			add(f, f.Again, n-1, f.First-uint64(len(f.Again)))
		}
		add(f, f.Records, n, f.First)
	}
	for i := 1; i < len(out.Runs); i++ {
		last := &out.Runs[i-1]
		if last.Upto() < out.Runs[i].First && out.Mark <= last.Upto() && out.Highest < last.Number+1+ahead {
			out.Runs = out.Runs[:i]
			break
		}
	}
	return out
}

// Summaries returns the valid summaries, by segment, and nil for the others. It reads many at a time.
func (p *Pool) Summaries() []*media.Summary {
	const reads = 32
	out := make([]*media.Summary, p.Shape.AllSegments())
	free := make(chan *device.Op, reads)
	// finished takes a completed read into the results, and returns the operation for the next one.
	finished := func() *device.Op {
		op := <-free
		if op.Err == nil {
			s, err := media.DecodeSummary(op.Buf, p.Shape.UUID, p.Shape.Pages)
			if err == nil && s.Segment == op.Token && s.Stream < uint8(heat.Streams) {
				out[op.Token] = &s
			}
		}
		return op
	}
	for range reads {
		free <- &device.Op{Buf: device.Aligned(p.Shape.SummaryGrains() * device.Grain),
			Done: func(op *device.Op) { free <- op }}
	}
	for i := range out {
		d, at := p.Shape.Place(int64(i))
		op := finished()
		op.Kind, op.Offset, op.Token, op.Err = device.Read, at+int64(p.Shape.Pages)*device.Grain, uint64(i), nil
		p.Devices[d].Submit(op)
	}
	for range reads {
		finished()
	}
	return out
}

// When estimates the time at which place k of a segment was written, as the number of a record. A stream fills one
// segment after the other, each at about an even rate.
func When(summaries []*media.Summary, segment, k int) uint64 {
	s := summaries[segment]
	begin := s.Order - min(s.Order, uint64(len(s.Entries)))
	if i := s.Back; i > 0 && i <= uint64(len(summaries)) && summaries[i-1] != nil &&
		summaries[i-1].Stream == s.Stream && summaries[i-1].Order < s.Order {
		begin = summaries[i-1].Order
	}
	return begin + (s.Order-begin)*uint64(k)/uint64(len(s.Entries))
}
