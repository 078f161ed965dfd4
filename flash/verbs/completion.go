package verbs

import (
	"errors"
	"sync"
	"sync/atomic"
)

// CompletionQueue holds completions until they are polled. It cannot overflow: a queue pair reserves an entry for
// everything that can be posted to it, and a posted request counts until its completion has been polled (RFC 5042,
// 6.4.3.2). It is safe for concurrent use. mu guards the fields; always tail - head <= reserved <= len(ring).
type CompletionQueue struct {
	mu       sync.Mutex
	ring     []Completion
	head     uint64
	tail     uint64
	reserved int
	armed    arm
	event    func()
}

type arm uint8

const (
	armNone arm = iota
	armSolicited
	armAny
)

// NewCompletionQueue returns a queue of n entries. event, which may be nil, is called when a completion arrives for
// which the queue was armed; it must not call the queue pair.
func NewCompletionQueue(n int, event func()) *CompletionQueue {
	return &CompletionQueue{ring: make([]Completion, n), event: event}
}

// Poll moves completions to out, oldest first, and returns their number.
func (c *CompletionQueue) Poll(out []Completion) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for n < len(out) && c.head < c.tail {
		at := &c.ring[c.head%uint64(len(c.ring))]
		out[n], *at = *at, Completion{}
		c.head++
		out[n].QP.polled(c, out[n].Receive)
		n++
	}
	return n
}

// Arm requests one event: at the next completion or, if solicited is set, at the next one that is solicited or
// failed. It reports whether completions are already queued; those trigger no event.
func (c *CompletionQueue) Arm(solicited bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed = armAny
	if solicited {
		c.armed = armSolicited
	}
	return c.head < c.tail
}

// reserve sets n entries aside for a queue pair, or reports that there are too few.
func (c *CompletionQueue) reserve(n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > len(c.ring)-c.reserved {
		return errors.New("the completion queue has too few entries for the work that can be posted")
	}
	c.reserved += n
	return nil
}

// polled returns one entry to the queue pair and, after the last one of a closed queue pair, its reservation to c. The
// caller holds c.mu.
func (q *QueuePair) polled(c *CompletionQueue, receive bool) {
	h := &q.send
	if receive {
		h = &q.receive
	}
	if h.held.Add(-1) == 0 && h.over.Load() {
		c.release(h)
	}
}

// release returns a reservation, once. The caller holds c.mu.
func (c *CompletionQueue) release(h *holding) {
	if h.released.CompareAndSwap(false, true) {
		c.reserved -= h.depth
	}
}

// leave declares that the queue pair posts no more.
func (c *CompletionQueue) leave(h *holding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.over.Store(true)
	if h.held.Load() == 0 {
		c.release(h)
	}
}

// holding is the reservation of one of a queue pair's two queues in its completion queue.
type holding struct {
	depth    int
	held     atomic.Int32 // posted and not yet polled
	over     atomic.Bool
	released atomic.Bool
}

// add appends a completion, for which an entry is reserved. event runs on the caller's goroutine, without the lock.
func (c *CompletionQueue) add(x Completion) {
	c.mu.Lock()
	c.ring[c.tail%uint64(len(c.ring))] = x
	c.tail++
	due := c.armed == armAny || c.armed == armSolicited && (x.Err != nil || x.Receive && x.Op.Solicited())
	if due {
		c.armed = armNone
	}
	c.mu.Unlock()
	if due && c.event != nil {
		c.event()
	}
}
