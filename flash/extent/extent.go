// Package extent exposes a range of a pool's bytes as memory that peers can access: a verbs.Store over flash/ctl.
//
// Extent is the store, and Gate, which may be nil, decides when an access may begin (flash/qos implements the policy).
// Creating an Extent touches no page, whatever its length.
//
// The pages of a read are requested together and become ready in any order. The pages of a write are requested one
// after the other in ascending order: a page that is overwritten entirely is invisible to others until it is put, so
// two writes of the same range that each held a page the other needs would deadlock. The caller bounds the number of
// pages held at once; a queue pair does so by its window and its reads in flight.
//
// It leaves out names, rights and STags; package verbs serialises atomics.
//
// It corresponds to the paper's get_LBA and put_LBA (Trivedi et al., ACM TOS 14(4), 2018, section 4.1).
package extent

import (
	"fmt"
	"sync"
	"sync/atomic"

	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/meter"
	"farflash/flash/verbs"
)

// Gate decides when accesses begin.
type Gate interface {
	// Enter calls begin once, now or later and on any goroutine, when an access of the given bytes may begin.
	Enter(bytes int, begin func())
	// Leave reports that an access has its pages, or has failed to get them. How long the pages are then held is not
	// the gate's concern.
	Leave(bytes int)
}

// Extent is the bytes [base, base+size) of a pool.
type Extent struct {
	pool *ctl.Pool
	base uint64
	size uint64
	gate Gate
	use  *meter.Use // nil: accesses are not counted
	why  func(error) meter.Failure
}

// New returns an extent. base must be page-aligned. gate may be nil.
func New(pool *ctl.Pool, base, size uint64, gate Gate) (*Extent, error) {
	if base%ctl.Page != 0 || size > 0 && size-1 > ^uint64(0)-base {
		return nil, fmt.Errorf("extent: %d bytes at %d are not a page-aligned range of the pool", size, base)
	}
	return &Extent{pool: pool, base: base, size: size, gate: gate}, nil
}

// Count has accesses counted, with their errors classified by why; use may be nil. It is called before the first Get. A
// read ends when its pages have arrived, and a write when it is put, or durable if it is Sync. An atomic counts as a
// write, and so does each segment of one.
func (e *Extent) Count(use *meter.Use, why func(error) meter.Failure) { e.use, e.why = use, why }

// Arrive counts an access that waits for something else before its Get.
func (e *Extent) Arrive(a *verbs.Access) {
	h := of(a)
	h.early = true
	h.count(e, a)
}

// Withdraw counts that there will be no Get of an access that has arrived.
func (e *Extent) Withdraw(a *verbs.Access) {
	h := of(a)
	h.early = false
	e.use.End(h.at, kind(a), 0, meter.Dropped)
	h.trace.End(meter.Dropped)
	h.trace = nil
}

// count counts the arrival of an access.
func (h *hold) count(e *Extent, a *verbs.Access) {
	at, number := e.use.Begin(1)
	h.at = at
	if h.trace = e.use.Trace(number); h.trace != nil {
		h.trace.Kind, h.trace.Offset, h.trace.Bytes = kind(a), a.Offset, a.Length
	}
}

func kind(a *verbs.Access) meter.Kind {
	if a.Write {
		return meter.Write
	}
	return meter.Read
}

// Size implements verbs.Store.
func (e *Extent) Size() uint64 { return e.size }

// PageSize implements verbs.Store.
func (e *Extent) PageSize() int { return ctl.Page }

// Report implements verbs.Reporter.
func (e *Extent) Report(lost func(error)) (stop func()) { return e.pool.Watch(e.base, e.size, lost) }

// hold is the state of an access from Get to Done.
type hold struct {
	extent *Extent
	access *verbs.Access
	first  uint64 // page number
	pages  []page
	wants  []ctl.Want
	next   int // of a write: the next page to request

	// left counts the remaining users of the hold. Until the pages have arrived, these are one callback per page plus
	// the caller of Put; afterwards, one callback per page put plus release itself. Failed pages are counted in
	// multiples of refusal in the same word, so that the last user sees them.
	left atomic.Int64
	// turn synchronises ask with the callback of the page that it requested: the second to arrive continues.
	turn atomic.Int32
	mu   sync.Mutex
	err  error // the first error

	at    int64        // when the access arrived
	early bool         // it was counted before Get
	ended bool         // the end of a write was counted
	trace *meter.Trace // nil: it is not traced

	begin func()
	got   func(ctl.Ref, error)
	done  func(error)
}

const refusal = 1 << 32

// page is a page of the access, once it was given.
type page struct {
	ref  ctl.Ref
	have bool
}

// of returns the state of an access, a new one for its first use.
func of(a *verbs.Access) *hold {
	h, ok := a.Private.(*hold)
	if !ok {
		h = &hold{}
		h.begin, h.got, h.done = h.start, h.arrived, h.durable
		a.Private = h
	}
	return h
}

// Get implements verbs.Store.
func (e *Extent) Get(a *verbs.Access) {
	h := of(a)
	if h.early {
		h.trace.Reach(meter.Admitted)
	} else {
		h.count(e, a)
	}
	h.early, h.ended = false, false
	h.extent, h.access, h.err, h.next = e, a, nil, 0
	h.first = (e.base + a.Offset) / ctl.Page
	n := int((e.base+a.Offset+uint64(a.Length)-1)/ctl.Page-h.first) + 1
	if cap(h.pages) < n {
		h.pages = make([]page, n)
	}
	h.pages = h.pages[:n]
	clear(h.pages)
	h.left.Store(int64(n) + 1)
	if e.gate == nil {
		h.start()
		return
	}
	e.gate.Enter(a.Length, h.begin)
}

// start requests the pages. All of them may arrive, and the access may be put and reused, before the last call in it
// returns.
func (h *hold) start() {
	switch {
	case h.access.Write:
		h.ask()
	case len(h.pages) == 1 && h.access.Sole && h.extent.gate == nil:
		h.extent.pool.GetExclusive(h.first, h.got)
	case len(h.pages) == 1:
		h.extent.pool.GetOn(h.access.Loop, h.first, ctl.Reading, h.got)
	default:
		h.wants = h.wants[:0]
		for i := range h.pages {
			h.wants = append(h.wants, ctl.Want{Fn: h.got, Page: h.first + uint64(i), Mode: ctl.Reading})
		}
		h.extent.pool.GetAll(h.access.Loop, h.wants)
	}
}

// ask requests a write's next page, and further ones for as long as they arrive immediately.
func (h *hold) ask() {
	for {
		if h.left.Load() >= refusal {
			h.down(int64(len(h.pages) - h.next)) // skip the remaining pages
			return
		}
		i := h.next
		h.next++
		last := h.next == len(h.pages)
		mode := ctl.Writing
		if from, to := h.span(i); to-from == ctl.Page {
			mode = ctl.Whole
		}
		h.turn.Store(0)
		h.extent.pool.GetOn(h.access.Loop, h.first+uint64(i), mode, h.got)
		if last || h.turn.Add(1) == 1 {
			return
		}
	}
}

// span returns the bytes of page i, from its start, that the access covers.
func (h *hold) span(i int) (from, to uint64) {
	lead := (h.extent.base + h.access.Offset) % ctl.Page
	before := uint64(i) * ctl.Page
	if i == 0 {
		from = lead
	}
	return from, min(ctl.Page, lead+uint64(h.access.Length)-before)
}

// arrived handles a page or the error in its place.
func (h *hold) arrived(r ctl.Ref, err error) {
	i := int(r.Page - h.first)
	more := h.access.Write && i < len(h.pages)-1
	n := int64(1)
	if err != nil {
		h.note(err)
		n -= refusal
	} else {
		h.pages[i] = page{r, true}
		from, to := h.span(i)
		h.access.Ready(h.access.Offset+uint64(i)*ctl.Page+from-(h.extent.base+h.access.Offset)%ctl.Page,
			r.Data[from:to:to])
	}
	h.trace.Reach(meter.Done)
	h.down(n)
	if more && h.turn.Add(1) == 2 {
		h.ask()
	}
}

func (h *hold) note(err error) {
	h.mu.Lock()
	if h.err == nil {
		h.err = err
	}
	h.mu.Unlock()
}

// down counts n callbacks. After the last one, a failed access reports its error; after the last one and Put, the pages
// are released.
func (h *hold) down(n int64) {
	// Read first: the hold can be reused once left has been decremented.
	gate, use, bytes, at, isRead := h.extent.gate, h.extent.use, h.access.Length, h.at, !h.access.Write
	left := h.left.Add(-n)
	if left&(refusal-1) == 1 && gate != nil {
		gate.Leave(bytes)
	}
	if left == 1 && isRead {
		use.End(at, meter.Read, bytes, meter.Succeeded)
	}
	switch {
	case left&(refusal-1) == 0:
		h.release()
	case left&(refusal-1) == 1 && left >= refusal:
		h.mu.Lock()
		err := h.err
		h.err = nil
		h.mu.Unlock()
		if h.trace != nil {
			h.trace.Failure = h.extent.why(err)
		}
		if use != nil {
			h.ended = true
			use.End(at, kind(h.access), bytes, h.extent.why(err))
		}
		h.access.Fail(err)
	}
}

// Put implements verbs.Store.
func (e *Extent) Put(a *verbs.Access) { a.Private.(*hold).down(1) }

// release puts the pages back into the pool.
func (h *hold) release() {
	change := ctl.Kept
	switch a := h.access; {
	case a.Changed && a.Sync:
		change = ctl.Durable
	case a.Changed:
		change = ctl.Changed
	}
	h.left.Store(int64(len(h.pages)) + 1)
	n := int64(1)
	for i := range h.pages {
		switch p := &h.pages[i]; {
		case !p.have:
			n++
		case change == ctl.Durable:
			h.extent.pool.Put(p.ref, change, heat.Auto, h.done)
		default:
			h.extent.pool.Put(p.ref, change, heat.Auto, nil)
			n++
		}
	}
	h.end(n)
}

// durable handles the durability, or the loss, of one page's change.
func (h *hold) durable(err error) {
	if err != nil {
		h.note(err)
	}
	h.end(1)
}

func (h *hold) end(n int64) {
	if h.left.Add(-n) > 0 {
		return
	}
	a, err := h.access, h.err
	if use := h.extent.use; use != nil && a.Write && !h.ended {
		f := meter.Dropped // the connection ended before the bytes came
		if a.Changed {
			f = h.extent.why(err)
		}
		use.End(h.at, meter.Write, a.Length, f)
	}
	if t := h.trace; t != nil {
		h.trace = nil
		f := t.Failure
		switch {
		case f != meter.Succeeded:
		case !a.Write:
			t.Reach(meter.Sent)
		default:
			t.Reach(meter.Done)
			if f = meter.Dropped; a.Changed {
				f = h.extent.why(err)
			}
		}
		t.End(f)
	}
	clear(h.pages)
	a.Done(err)
}
