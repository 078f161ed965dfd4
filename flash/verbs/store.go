package verbs

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"farflash/flash/wire"
)

// Store is memory whose pages are not immediately available: a file on flash. A queue pair requests ranges from the
// goroutine that drives it; several queue pairs may do so concurrently. Two Accesses to the same page receive the same
// memory.
type Store interface {
	// Size is the length in bytes. It does not shrink while a region is registered in the store.
	Size() uint64
	// PageSize is the page length in bytes, a power of two and at least 8.
	PageSize() int
	// Get requests the pages of a's range, for reading or for writing. The store calls a.Ready once per page, in any
	// order, immediately or later, on any goroutine; or it calls a.Fail. A page to be overwritten entirely need not be
	// loaded: the queue pair changes all of a's range or none of it.
	Get(a *Access)
	// Put releases everything that Get provided. It is called after the last Ready, or after Fail; until then the queue
	// pair may read pages that are ready. The store calls a.Done once: immediately or, if a.Sync and a.Changed are set,
	// when the changes are durable.
	Put(a *Access)
}

// Forgetter is a Store that can be notified of pending Gets whose result is no longer needed because the connection has
// ended. The store need not start them; it may call Fail instead. The accesses are still Put, once their last Ready or
// their Fail has been called.
type Forgetter interface {
	Forget(a *Access)
}

// Reporter is a Store in which changes that were not Sync can be lost after their Done.
type Reporter interface {
	// Report registers lost, which is called on any goroutine whenever a change is lost, whoever made it. Calls stop
	// when stop returns, except for one that may already be in progress.
	Report(lost func(error)) (stop func())
}

// report is a subscription to the losses of a store that the queue pair has written asynchronously.
type report struct {
	store Store
	stop  func()
}

// watch subscribes to the losses of the region's store, so that the loss of an asynchronous change ends the connection.
func (q *QueuePair) watch(r *Region) {
	q.watched = r
	s, ok := r.cfg.Store.(Reporter)
	if !ok || slices.ContainsFunc(q.reports, func(x report) bool { return x.store == r.cfg.Store }) {
		return
	}
	q.reports = append(q.reports,
		report{r.cfg.Store, s.Report(func(err error) { q.tell(event{kind: eventLost, err: err}) })})
}

// unwatch cancels the subscriptions when the connection ends.
func (q *QueuePair) unwatch() {
	for _, x := range q.reports {
		x.stop()
	}
	q.reports, q.watched = nil, nil
}

// Access is one use of a range of a Store, from Get to Done.
type Access struct {
	// Offset and Length are the range, in bytes of the store.
	Offset uint64
	Length int
	// Write announces at Get that the bytes will be changed; Changed reports at Put that they were.
	Write, Changed bool
	// Sync delays Done until the changes are durable.
	Sync bool
	// Prefetch hints that the data after the range are likely to be requested next.
	Prefetch bool
	// Sole reports that the connection has no other access outstanding and no further input. The store may then block
	// its caller for a read, if that is faster.
	Sole bool
	// Loop is the connection's Config.Loop.
	Loop uint8
	// Private belongs to the store; it survives reuse of the Access.
	Private any

	qp    *QueuePair
	size  uint64 // page size
	pages [][]byte
	got   int // pages ready
	ready int // length of the ready prefix, in pages
	state accessState
	err   error
	// barrier blocks later work until Done; response, if set, waits as well.
	barrier  bool
	response *response
}

type accessState uint8

const (
	accessFree accessState = iota
	accessGetting
	accessHeld
	accessOrphan // still getting, but no longer wanted
	accessPutting
	accessFailed
)

// Ready is called by the store with the part of the range that lies in one page and starts at offset. The memory
// belongs to the store and stays valid until Put.
func (a *Access) Ready(offset uint64, page []byte) {
	a.qp.tell(event{access: a, kind: eventReady, offset: offset, page: page})
}

// Fail is called by the store instead of any further Ready: the range is unavailable. The access is still Put.
func (a *Access) Fail(err error) { a.qp.tell(event{access: a, kind: eventFail, err: err}) }

// Done is called by the store when a Put completes. An error means that changes are not durable and may be lost.
func (a *Access) Done(err error) { a.qp.tell(event{access: a, kind: eventDone, err: err}) }

type eventKind uint8

const (
	eventReady eventKind = iota
	eventFail
	eventDone
	eventLost // loss of a change after its Done
)

type event struct {
	access *Access
	kind   eventKind
	offset uint64
	page   []byte
	err    error
}

// inbox collects store callbacks from any goroutine. The driver of the queue pair drains it, and is woken if it is not
// already at work.
type inbox struct {
	mu     sync.Mutex
	events []event
	spare  []event
	busy   bool
	there  atomic.Bool // events is not empty
	at     bool        // the driver's own copy of busy, readable without the lock
}

// tell queues a callback. It is called on any goroutine and wakes an idle driver once, for the first of several.
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

// drain processes store callbacks in order. A callback triggered while one is being handled is left to the drain in
// progress.
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

// rest marks the end of a call: callbacks from now on wake the driver, and so do those that arrived since the last
// check.
func (q *QueuePair) rest() {
	q.inbox.mu.Lock()
	q.inbox.busy, q.inbox.at = false, false
	late := len(q.inbox.events) > 0
	q.inbox.mu.Unlock()
	if late && q.cfg.Wake != nil {
		q.cfg.Wake()
	}
}

// get starts an access; all of it may be ready when get returns. It returns nil if the connection has ended meanwhile,
// because a callback reported a loss: end cannot know of the access, so get returns it to the store.
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
	a.Loop = q.cfg.Loop
	a.Sole = !write && q.accesses == 0 && q.tail && a.Loop == 0 // a thread with a lane serves other connections too
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
	if q.state >= Terminating {
		q.put(r, a)
		return nil
	}
	return a
}

// put returns an access, whatever its state.
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
		if a.Write {
			q.putting++
		}
		r.cfg.Store.Put(a)
		q.drain()
	}
}

// orphan is an access that is no longer wanted; it is put once all its pages are ready.
type orphan struct {
	access *Access
	region *Region
}

// recycle makes a finished access available for reuse. The pages belong to the store again.
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
		if q.state < Terminating {
			q.localError(e.err, wire.TerminateFields{})
		}
		return
	}
	switch e.kind {
	case eventReady:
		if a.state != accessGetting && a.state != accessOrphan {
			panic("the store called Ready on an access that is not being fetched")
		}
		i := a.index(e.offset, e.page)
		if a.pages[i] != nil {
			panic("the store called Ready twice for a page")
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
			panic("the store called Done on an access that was not put")
		}
		if a.Write {
			q.putting--
		}
		q.finished(a, e.err)
		q.recycle(a)
	}
}

// adopt puts an orphan whose pages are ready, or that failed.
func (q *QueuePair) adopt(a *Access) {
	for i, o := range q.orphans {
		if o.access == a {
			q.orphans[i] = q.orphans[len(q.orphans)-1]
			q.orphans = q.orphans[:len(q.orphans)-1]
			a.state = accessPutting
			if a.Write {
				q.putting++
			}
			o.region.cfg.Store.Put(a)
			return
		}
	}
}

// index returns the index in the access of the page part that starts at a store offset, and verifies that it is all of
// the range in that page.
func (a *Access) index(offset uint64, page []byte) int {
	end := a.Offset + uint64(a.Length)
	at, n := offset, uint64(len(page))
	size := a.size
	first := a.Offset &^ (size - 1)
	i := int((at&^(size-1) - first) / size)
	from, to := max(first+uint64(i)*size, a.Offset), min(first+uint64(i+1)*size, end)
	if at < a.Offset || at >= end || at != from || n != to-from {
		panic(fmt.Sprintf("the store returned %d bytes at %d for a page of the range of %d bytes at %d", n, at,
			a.Length,
			a.Offset))
	}
	return i
}

// available is the number of ready bytes from the start of the range: those in pages before the first that is not
// ready.
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

// copyOut fills dst from the range, starting at byte from. All of that must be ready.
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

// copyIn copies src to the start of the range.
func (a *Access) copyIn(src []byte) {
	for _, p := range a.pages {
		k := copy(p, src)
		src = src[k:]
	}
	a.Changed = true
}
