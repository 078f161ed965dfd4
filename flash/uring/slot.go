package uring

import (
	"syscall"
	"unsafe"

	"farflash/flash/device"
	"farflash/internal/fifo"
)

// slot is what is under way as one entry of the ring: an operation, or reads that follow each other in the queue and
// on the device, which are one to the kernel. A page costs it some microseconds if it is read by itself, so a read of
// many pages is mostly that.
type slot struct {
	first  task
	more   []task
	vector []syscall.Iovec // their memory, if there are more; the kernel looks at it while it takes the entry
}

// together is how many operations are one at most: 128 KiB of pages, so that of a large read the first pages are on
// their way while others are read.
const together = 32

// fill takes the first operation of a queue, and those that it can be one with.
func (s *slot) fill(q *fifo.Ring[task]) {
	last := q.Pop()
	s.first, s.more, s.vector = last, s.more[:0], s.vector[:0]
	for q.N > 0 && len(s.more) < together-1 && follows(last, *q.First()) {
		if len(s.more) == 0 {
			s.add(last)
		}
		last = q.Pop()
		s.more = append(s.more, last)
		s.add(last)
	}
}

func (s *slot) add(t task) {
	s.vector = append(s.vector, syscall.Iovec{Base: unsafe.SliceData(t.op.Buf), Len: uint64(len(t.op.Buf))})
}

// follows reports whether b reads what lies right behind what a reads.
func follows(a, b task) bool {
	return a.op.Kind == device.Read && b.op.Kind == device.Read && a.dev == b.dev &&
		a.op.Offset+int64(len(a.op.Buf)) == b.op.Offset
}

// divide ends a slot of several reads of which so many bytes were read, or none if that is negative: those that have
// all of theirs are over, and the others are to be done again, each by itself.
func (s *slot) divide(got int, over, again []task) (o, a []task) {
	for i := range len(s.more) + 1 {
		t := s.first
		if i > 0 {
			t = s.more[i-1]
		}
		if got -= len(t.op.Buf); got >= 0 {
			t.op.Err = nil
			over = append(over, t)
		} else {
			again = append(again, t)
		}
	}
	clear(s.more)
	clear(s.vector)
	s.first, s.more, s.vector = task{}, s.more[:0], s.vector[:0]
	return over, again
}
