// Package fifo has first-in first-out queues of values that do not allocate once they have reached their maximum
// length.
//
// Its main types are Ring, one queue with its own storage, and Queue, one of many that share the chunks of a Pool: the
// pool's memory is bounded by the largest total length of its queues, not by the sum of their maxima.
//
// It leaves out bounds, and concurrent use.
package fifo

// Ring is a first-in first-out queue that keeps its storage.
type Ring[T any] struct {
	Items []T    // length is a power of two
	Head  uint32 // index of the first item, modulo the length
	N     uint32 // number of items
}

// Push appends an item.
func (r *Ring[T]) Push(x T) {
	if int(r.N) == len(r.Items) {
		r.grow()
	}
	r.Items[(r.Head+r.N)&uint32(len(r.Items)-1)] = x
	r.N++
}

func (r *Ring[T]) grow() {
	items := make([]T, max(8, 2*len(r.Items)))
	n := copy(items, r.Items[min(int(r.Head), len(r.Items)):])
	copy(items[n:], r.Items[:min(int(r.Head), len(r.Items))])
	r.Items, r.Head = items, 0
}

// At returns the k-th item, counted from 0.
func (r *Ring[T]) At(k uint32) *T { return &r.Items[(r.Head+k)&uint32(len(r.Items)-1)] }

// First returns the first item. The ring must not be empty.
func (r *Ring[T]) First() *T { return &r.Items[r.Head&uint32(len(r.Items)-1)] }

// Pop removes the first item. The ring must not be empty.
func (r *Ring[T]) Pop() T {
	x := r.Items[r.Head&uint32(len(r.Items)-1)]
	r.Head = (r.Head + 1) & uint32(len(r.Items)-1)
	r.N--
	return x
}

// Queue is a first-in first-out queue in chunks of a shared pool. A chunk that one queue frees is the next to be
// allocated, while it is still in the cache, and the pool's memory is bounded by the largest total length of its
// queues, not by the sum of their maxima.
type Queue struct {
	head, tail uint32 // chunks
	N          uint32 // number of items
	first      uint8  // index of the first item in head
	end        uint8  // index after the last item in tail
}

const (
	chunkLen = 32  // items in a chunk
	slabLen  = 128 // chunks in a slab
)

// chunk is a part of a queue.
type chunk[T any] struct {
	items [chunkLen]T
}

// Pool holds the chunks. Chunk 0 is not used: it means none.
type Pool[T any] struct {
	slabs []*[slabLen]chunk[T]
	next  []uint32 // by chunk: its successor in its queue, or in the free list
	free  uint32
}

func (p *Pool[T]) at(c uint32) *chunk[T] { return &p.slabs[c/slabLen][c%slabLen] }

// take allocates a chunk.
func (p *Pool[T]) take() uint32 {
	if c := p.free; c != 0 {
		p.free = p.next[c]
		return c
	}
	c := uint32(len(p.next))
	if c%slabLen == 0 {
		p.slabs = append(p.slabs, new([slabLen]chunk[T]))
		if c == 0 {
			p.next = append(p.next, 0)
			c = 1
		}
	}
	p.next = append(p.next, 0)
	return c
}

func (p *Pool[T]) give(c uint32) {
	p.next[c] = p.free
	p.free = c
}

// Push appends an item.
func (p *Pool[T]) Push(q *Queue, x *T) {
	if q.N == 0 || q.end == chunkLen {
		c := p.take()
		if q.N == 0 {
			q.head, q.first = c, 0
		} else {
			p.next[q.tail] = c
		}
		q.tail, q.end = c, 0
	}
	p.at(q.tail).items[q.end%chunkLen] = *x
	q.end++
	q.N++
}

// Pop removes the first item. The queue must not be empty.
func (p *Pool[T]) Pop(q *Queue) T {
	x := p.at(q.head).items[q.first%chunkLen]
	q.first++
	q.N--
	if q.N == 0 || q.first == chunkLen {
		c := q.head
		q.head, q.first = p.next[c], 0
		p.give(c)
	}
	return x
}

// Each calls f for the items in order, until it returns false.
func (p *Pool[T]) Each(q *Queue, f func(*T) bool) {
	c, i := q.head, q.first
	for range q.N {
		if i == chunkLen {
			c, i = p.next[c], 0
		}
		if !f(&p.at(c).items[i]) {
			return
		}
		i++
	}
}
