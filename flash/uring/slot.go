package uring

import (
	"syscall"
	"unsafe"

	"farflash/flash/device"
	"farflash/internal/fifo"
)

// slot is one ring entry in flight: a single operation, or consecutive queued reads that are adjacent on the device and
// merged into one vectored read. The kernel spends some microseconds per entry, which would dominate a large read split
// into pages.
type slot struct {
	first  task
	more   []task
	vector []syscall.Iovec // buffers of merged reads; the kernel copies it when it accepts the entry
}

// together is the most operations in one entry: 128 KiB of pages, so that the first pages of a large read can be sent
// while later ones are read.
const together = 32

// fill takes the first operation of a queue and those that can be merged with it.
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

// follows reports whether b reads the range directly after a's on the same device.
func follows(a, b task) bool {
	return a.op.Kind == device.Read && b.op.Kind == device.Read && a.dev == b.dev &&
		a.op.Offset+int64(len(a.op.Buf)) == b.op.Offset
}

// divide completes a slot of merged reads for which got bytes were read, negative for an error. Fully read operations
// are appended to over; the others are appended to again, to be repeated one by one. So an error or a short read
// reaches only the operations that it concerns.
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
