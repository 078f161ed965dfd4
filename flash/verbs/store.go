package verbs

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"farflash/flash/wire"
)

// Store is memory that comes page by page and not at once: a file on flash. A queue pair
// asks it for ranges, from the goroutine that drives the queue pair; several may at the
// same time. Two Accesses to one page are given the same memory.
type Store interface {
	// Size is the length in bytes. It does not shrink while a region lies in the store.
	Size() uint64
	// PageSize is the length of a page, a power of two and at least 8.
	PageSize() int
	// Get asks for the pages that a's range touches, for reading or for writing as a says.
	// The store calls a.Ready once a page, in any order, now or later, on any goroutine;
	// or a.Fail. Of a page that is written from end to end the store need not know the content:
	// either all of a's range is changed or none.
	Get(a *Access)
	// Put gives back what Get gave, all of it, after the last Ready, or after Fail: until then
	// pages that were ready may be looked at. The store calls a.Done once: at once, or, if
	// a.Sync and a.Changed, when the changes are durable.
	Put(a *Access)
}

// Forgetter is a Store that is told of accesses from Get on of which nothing is wanted any more, as their connection
// has ended: what it has not begun it need not begin, but say by Fail. They are Put all the same, when all of them
// has come.
type Forgetter interface {
	Forget(a *Access)
}

// Reporter is a Store that changes may be lost in after their Done, if they were not Sync.
type Reporter interface {
	// Report has lost called as soon as a change that anybody made is lost, each time, on any goroutine, until stop
	// has returned, and perhaps once more.
	Report(lost func(error)) (stop func())
}

// report is a store that a queue pair has changed without waiting, and what ends its reports.
type report struct {
	store Store
	stop  func()
}

// watch sees to it that the connection ends when a change is lost that its peer makes in a region without waiting for
// it.
func (q *QueuePair) watch(r *Region) {
	q.watched = r
	s, ok := r.cfg.Store.(Reporter)
	if !ok || slices.ContainsFunc(q.reports, func(x report) bool { return x.store == r.cfg.Store }) {
		return
	}
	q.reports = append(q.reports,
		report{r.cfg.Store, s.Report(func(err error) { q.tell(event{kind: eventLost, err: err}) })})
}

// unwatch ends the reports, when the connection does.
func (q *QueuePair) unwatch() {
	for _, x := range q.reports {
		x.stop()
	}
	q.reports, q.watched = nil, nil
}

// Access is one use of a range of a Store: from Get to Done, or to Fail.
type Access struct {
	// Offset and Length are the range, in the store's bytes.
	Offset uint64
	Length int
	// Write: the bytes will be changed. Changed, from Put on: they were.
	Write, Changed bool
	// Sync: Done waits for the changes to be durable.
	Sync bool
	// Prefetch: what lies behind the range is likely to be asked for next.
	Prefetch bool
	// Alone: the connection has nothing else under way, and nothing else has come. The store
	// may have its caller wait for what it reads, if that is sooner.
	Alone bool
	// Lane is the connection's (Config).
	Lane uint8
	// Private is the store's own; it is kept when the Access is used again.
	Private any

	qp    *QueuePair
	size  uint64 // of a page
	pages [][]byte
	got   int // pages that are here
	ready int // those before the first that is not
	state accessState
	err   error
	// barrier: later work waits for Done. response, if set, does too.
	barrier  bool
	response *response
}

type accessState uint8

const (
	accessFree accessState = iota
	accessGetting
	accessHeld
	accessOrphan // getting, and nobody wants it any more
	accessPutting
	accessFailed
)

// Ready is called by the store with the part of the range that lies in one page, which
// begins at offset. It stays valid, and the store's, until Put.
func (a *Access) Ready(offset uint64, page []byte) {
	a.qp.tell(event{access: a, kind: eventReady, offset: offset, page: page})
}

// Fail is called by the store instead of any further Ready: the range cannot be had. What
// was given is Put as well.
func (a *Access) Fail(err error) { a.qp.tell(event{access: a, kind: eventFail, err: err}) }

// Done is called by the store at the end of a Put. An error means that changes are not
// durable, and may be lost.
func (a *Access) Done(err error) { a.qp.tell(event{access: a, kind: eventDone, err: err}) }

type eventKind uint8

const (
	eventReady eventKind = iota
	eventFail
	eventDone
	eventLost // a change that was Done
)

type event struct {
	access *Access
	kind   eventKind
	offset uint64
	page   []byte
	err    error
}

// inbox is where stores put their callbacks, from any goroutine. The one who drives the
// queue pair takes them out; it is woken if it is not at it.
type inbox struct {
	mu     sync.Mutex
	events []event
	spare  []event
	busy   bool
	there  atomic.Bool // events are
	at     bool        // busy, as who drives it knows without the lock
}

func (q *QueuePair) tell(e event) {
	in := &q.inbox
	in.mu.Lock()
	in.events = append(in.events, e)
	in.there.Store(true)
	wake := !in.busy && len(in.events) == 1
	in.mu.Unlock()
	if wake && q.cfg.Wake != nil {
		q.cfg.Wake()
	}
}

// drain takes in what stores have called back with, in that order: what handles one
// callback and causes another leaves it to the drain that is under way.
func (q *QueuePair) drain() {
	in := &q.inbox
	if q.draining || in.at && !in.there.Load() {
		return
	}
	q.draining = true
	defer func() { q.draining = false }()
	for {
		in.mu.Lock()
		in.busy, in.at = true, true
		in.there.Store(false)
		events := in.events
		in.events, in.spare = in.spare[:0], nil
		in.mu.Unlock()
		for i := range events {
			q.take(&events[i])
		}
		clear(events)
		in.mu.Lock()
		in.spare = events[:0]
		more := len(in.events) > 0
		in.mu.Unlock()
		if !more {
			return
		}
	}
}

// rest ends a call: whoever calls back from now on wakes the driver, and so does what came
// since the last look.
func (q *QueuePair) rest() {
	q.inbox.mu.Lock()
	q.inbox.busy, q.inbox.at = false, false
	late := len(q.inbox.events) > 0
	q.inbox.mu.Unlock()
	if late && q.cfg.Wake != nil {
		q.cfg.Wake()
	}
}

// get starts an access; it may be all there when get returns.
func (q *QueuePair) get(r *Region, offset uint64, n int, write bool, s Semantics) *Access {
	var a *Access
	if k := len(q.free); k > 0 {
		a, q.free = q.free[k-1], q.free[:k-1]
	} else {
		a = &Access{qp: q}
	}
	a.Offset, a.Length = r.cfg.Offset+offset, n
	a.Write, a.Changed, a.Sync, a.Prefetch = write, false, write && s&Sync != 0, s&Prefetch != 0
	a.got, a.ready, a.err, a.state = 0, 0, nil, accessGetting
	a.Lane = q.cfg.Lane
	a.Alone = !write && q.accesses == 0 && q.tail && a.Lane == 0 // a thread that has a lane has other connections
	a.barrier, a.response = false, nil
	size := uint64(r.cfg.Store.PageSize())
	a.size = size
	pages := int((a.Offset+uint64(n)-1)/size-a.Offset/size) + 1
	if cap(a.pages) < pages {
		a.pages = make([][]byte, pages)
	}
	a.pages = a.pages[:pages]
	if write && !a.Sync && q.watched != r {
		q.watch(r)
	}
	q.accesses++
	r.cfg.Store.Get(a)
	q.drain()
	return a
}

// put gives an access back, whatever state it is in.
func (q *QueuePair) put(r *Region, a *Access) {
	switch a.state {
	case accessGetting:
		a.state = accessOrphan
		q.orphans = append(q.orphans, orphan{a, r})
		if s, ok := r.cfg.Store.(Forgetter); ok {
			s.Forget(a)
		}
	case accessHeld, accessFailed:
		a.state = accessPutting
		r.cfg.Store.Put(a)
		q.drain()
	}
}

// orphan is an access that nobody waits for; its pages go back when they have come.
type orphan struct {
	access *Access
	region *Region
}

func (q *QueuePair) recycle(a *Access) {
	clear(a.pages)
	a.state = accessFree
	q.accesses--
	q.free = append(q.free, a)
}

// take handles one callback.
func (q *QueuePair) take(e *event) {
	q.fresh = true
	a := e.access
	if e.kind == eventLost {
		if q.state < Ending {
			q.trouble(e.err, wire.TerminateFields{})
		}
		return
	}
	switch e.kind {
	case eventReady:
		if a.state != accessGetting && a.state != accessOrphan {
			panic("a store has called Ready on an access that it was not asked for")
		}
		i := a.index(e.offset, e.page)
		if a.pages[i] != nil {
			panic("a store has called Ready twice for a page")
		}
		a.pages[i] = e.page
		a.got++
		for a.ready < len(a.pages) && a.pages[a.ready] != nil {
			a.ready++
		}
		if a.got < len(a.pages) {
			return
		}
		if a.state == accessOrphan {
			q.adopt(a)
			return
		}
		a.state = accessHeld
	case eventFail:
		if a.state == accessOrphan {
			q.adopt(a)
			return
		}
		a.state, a.err = accessFailed, e.err
	case eventDone:
		if a.state != accessPutting {
			panic("a store has called Done on an access that was not put")
		}
		q.finished(a, e.err)
		q.recycle(a)
	}
}

// adopt ends an orphan.
func (q *QueuePair) adopt(a *Access) {
	for i, o := range q.orphans {
		if o.access == a {
			q.orphans[i] = q.orphans[len(q.orphans)-1]
			q.orphans = q.orphans[:len(q.orphans)-1]
			a.state = accessPutting
			o.region.cfg.Store.Put(a)
			return
		}
	}
}

// index is which page of the access begins at an offset of the store, all of the range
// that lies in it.
func (a *Access) index(offset uint64, page []byte) int {
	end := a.Offset + uint64(a.Length)
	at, n := offset, uint64(len(page))
	size := a.size
	first := a.Offset &^ (size - 1)
	i := int((at&^(size-1) - first) / size)
	from, to := max(first+uint64(i)*size, a.Offset), min(first+uint64(i+1)*size, end)
	if at < a.Offset || at >= end || at != from || n != to-from {
		panic(fmt.Sprintf("a store gives %d bytes at %d for a page of the range of %d at %d", n, at, a.Length,
			a.Offset))
	}
	return i
}

// available is how many bytes from the range's beginning are ready: what lies in pages
// before the first that has not come.
func (a *Access) available() int {
	if a.ready == len(a.pages) {
		return a.Length
	}
	if a.ready == 0 {
		return 0
	}
	size := a.size
	return int((a.Offset&^(size-1) + uint64(a.ready)*size) - a.Offset)
}

// copyOut fills dst from the range, beginning at its byte from; all of that is ready.
func (a *Access) copyOut(dst []byte, from int) {
	size := int(a.size)
	lead := int(a.Offset) & (size - 1)
	for len(dst) > 0 {
		i := (lead + from) / size
		p := a.pages[i]
		start := from
		if i > 0 {
			start = lead + from - i*size
		}
		k := copy(dst, p[start:])
		dst, from = dst[k:], from+k
	}
}

// copyIn writes src into the range, from its beginning.
func (a *Access) copyIn(src []byte) {
	for _, p := range a.pages {
		k := copy(p, src)
		src = src[k:]
	}
	a.Changed = true
}
