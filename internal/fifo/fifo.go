// Package fifo has queues of values that are first in, first out, and allocate nothing once they have been at their
// fullest.
//
// Its main types are Ring, one queue with storage of its own, and Queue, one of many that share the chunks of a Pool:
// the memory of these is what waits at the worst moment, and not the sum of what each queue once held.
//
// What it leaves out: bounds, and use by several goroutines.
package fifo

// Ring is a first-in first-out queue that keeps its storage.
type Ring[T any] struct {
	Items []T    // a power of two
	Head  uint32 // where the first one is
	N     uint32 // how many there are
}

// Push adds one at the end.
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

// At is the k-th from the first, which is 0.
func (r *Ring[T]) At(k uint32) *T { return &r.Items[(r.Head+k)&uint32(len(r.Items)-1)] }

// First is the first one. There is one.
func (r *Ring[T]) First() *T { return &r.Items[r.Head&uint32(len(r.Items)-1)] }

// Pop removes the first one. There is one.
func (r *Ring[T]) Pop() T {
	x := r.Items[r.Head&uint32(len(r.Items)-1)]
	r.Head = (r.Head + 1) & uint32(len(r.Items)-1)
	r.N--
	return x
}

// Queue is a first-in first-out queue, in chunks of a pool that others share. What one queue gives back the next one
// takes, still warm, so memory is what waits at the worst moment, and not the sum of what each queue once held.
type Queue struct {
	head, tail uint32 // chunks
	N          uint32 // how many there are
	first      uint8  // index of the first one in head
	end        uint8  // behind the last one in tail
}

const (
	ChunkLen = 32  // of a queue
	slabLen  = 128 // chunks
)

// chunk is a part of a queue.
type chunk[T any] struct {
	items [ChunkLen]T
}

// Pool has the chunks. Chunk 0 is none.
type Pool[T any] struct {
	slabs []*[slabLen]chunk[T]
	next  []uint32 // of each chunk: the one behind it in its queue, or in the free list
	free  uint32
}

func (p *Pool[T]) at(c uint32) *chunk[T] { return &p.slabs[c/slabLen][c%slabLen] }

// take returns an unused chunk.
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

// Push adds one at the end.
func (p *Pool[T]) Push(q *Queue, x *T) {
	if q.N == 0 || q.end == ChunkLen {
		c := p.take()
		if q.N == 0 {
			q.head, q.first = c, 0
		} else {
			p.next[q.tail] = c
		}
		q.tail, q.end = c, 0
	}
	p.at(q.tail).items[q.end%ChunkLen] = *x
	q.end++
	q.N++
}

// Pop removes the first one. There is one.
func (p *Pool[T]) Pop(q *Queue) T {
	x := p.at(q.head).items[q.first%ChunkLen]
	q.first++
	q.N--
	if q.N == 0 || q.first == ChunkLen {
		c := q.head
		q.head, q.first = p.next[c], 0
		p.give(c)
	}
	return x
}

// Each calls f for all in order, until it returns false.
func (p *Pool[T]) Each(q *Queue, f func(*T) bool) {
	c, i := q.head, q.first
	for range q.N {
		if i == ChunkLen {
			c, i = p.next[c], 0
		}
		if !f(&p.at(c).items[i]) {
			return
		}
		i++
	}
}
