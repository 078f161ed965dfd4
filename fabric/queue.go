package fabric

// queue is a first-in first-out queue of packets, in chunks of a pool that all queues of a
// network share. What one queue gives back the next one takes, still warm, so memory is what
// waits at the worst moment, and not the sum of what each queue once held.
type queue struct {
	head, tail uint32 // chunks
	n          uint32
	first      uint8 // index of the first packet in head
	end        uint8 // behind the last one in tail
}

const (
	chunkLen = 32  // packets, 768 bytes
	slabLen  = 128 // chunks
)

// chunk is a part of a queue.
type chunk struct {
	packets [chunkLen]packet
}

// chunks is the pool. Chunk 0 is none.
type chunks struct {
	slabs []*[slabLen]chunk
	next  []uint32 // of each chunk: the one behind it in its queue, or in the free list
	free  uint32
}

func (p *chunks) at(c uint32) *chunk { return &p.slabs[c/slabLen][c%slabLen] }

// take returns an unused chunk.
func (p *chunks) take() uint32 {
	if c := p.free; c != 0 {
		p.free = p.next[c]
		return c
	}
	c := uint32(len(p.next))
	if c%slabLen == 0 {
		p.slabs = append(p.slabs, new([slabLen]chunk))
		if c == 0 {
			p.next = append(p.next, 0)
			c = 1
		}
	}
	p.next = append(p.next, 0)
	return c
}

func (p *chunks) give(c uint32) {
	p.next[c] = p.free
	p.free = c
}

// push adds a packet at the end.
func (p *chunks) push(q *queue, x *packet) {
	if q.n == 0 || q.end == chunkLen {
		c := p.take()
		if q.n == 0 {
			q.head, q.first = c, 0
		} else {
			p.next[q.tail] = c
		}
		q.tail, q.end = c, 0
	}
	p.at(q.tail).packets[q.end%chunkLen] = *x
	q.end++
	q.n++
}

// pop removes the first packet. There is one.
func (p *chunks) pop(q *queue) packet {
	x := p.at(q.head).packets[q.first%chunkLen]
	q.first++
	q.n--
	if q.n == 0 || q.first == chunkLen {
		c := q.head
		q.head, q.first = p.next[c], 0
		p.give(c)
	}
	return x
}

// each calls f for the packets in order, until it returns false.
func (p *chunks) each(q *queue, f func(*packet) bool) {
	c, i := q.head, q.first
	for range q.n {
		if i == chunkLen {
			c, i = p.next[c], 0
		}
		if !f(&p.at(c).packets[i]) {
			return
		}
		i++
	}
}
