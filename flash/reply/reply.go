// Package reply has what protocols that answer with a volume's own memory have in common, NBD and NVMe over TCP: Output
// is what a task sends, Queue the outputs of a connection in order, and Buffer the memory for a payload that arrives or
// for output that must not stay lent.
//
// It is a plain state machine. It leaves out the protocols' headers, and sending (package sendv).
package reply

import (
	"sync"

	"farflash/internal/fifo"
)

// Buffer is pooled memory.
type Buffer struct{ B []byte }

// pools have Buffers by size class. The largest holds the output of a task of 256 KiB, with its headers.
var pools = [...]struct {
	size int
	pool sync.Pool
}{{size: 4 << 10}, {size: 16 << 10}, {size: 64 << 10}, {size: 256 << 10}, {size: 260 << 10}}

// Get returns a buffer of at least n bytes.
func Get(n int) *Buffer {
	for i := range pools {
		if n <= pools[i].size {
			if b, ok := pools[i].pool.Get().(*Buffer); ok {
				return b
			}
			return &Buffer{make([]byte, pools[i].size)}
		}
	}
	return &Buffer{make([]byte, n)}
}

// Put gives a buffer back.
func (b *Buffer) Put() {
	for i := range pools {
		if len(b.B) == pools[i].size {
			pools[i].pool.Put(b)
		}
	}
}

// Output is what a task of type T sends.
type Output[T any] struct {
	Task *T
	Head []byte   // the protocol's own bytes
	Vec  [][]byte // the output, at least one slice when it is queued
	Lent bool     // Vec has memory of a volume
	Last bool     // a command is answered with it

	at     int // slices before it are sent
	buffer *Buffer
}

// Begin makes the output empty.
func (o *Output[T]) Begin() {
	o.Head, o.Vec, o.at, o.Lent, o.Last = o.Head[:0], o.Vec[:0], 0, false, false
}

// Memory returns n bytes that the output keeps until Free or Clear.
func (o *Output[T]) Memory(n int) []byte {
	o.buffer = Get(n)
	return o.buffer.B[:n]
}

// Free gives its memory back.
func (o *Output[T]) Free() {
	if o.buffer != nil {
		o.buffer.Put()
		o.buffer = nil
	}
}

// Clear gives its memory back and keeps only storage for the task's next output.
func (o *Output[T]) Clear() {
	o.Free()
	clear(o.Vec)
	o.Vec = o.Vec[:0]
}

// Detach copies the rest of the output, if a volume's memory is lent for it, and calls release, which returns that.
func (o *Output[T]) Detach(release func(*T)) {
	if !o.Lent {
		return
	}
	n := 0
	for _, v := range o.Vec[o.at:] {
		n += len(v)
	}
	b := o.Memory(n)[:0]
	for _, v := range o.Vec[o.at:] {
		b = append(b, v...)
	}
	clear(o.Vec)
	o.Vec, o.at, o.Lent = append(o.Vec[:0], b), 0, false
	release(o.Task)
}

// Queue is the outputs to send.
type Queue[T any] struct{ fifo.Ring[*Output[T]] }

// Vectors appends the output, at most `most` slices.
func (q *Queue[T]) Vectors(into [][]byte, most int) [][]byte {
	for i := range q.N {
		o := *q.At(i)
		for _, v := range o.Vec[o.at:] {
			if len(into) >= most {
				return into
			}
			into = append(into, v)
		}
	}
	return into
}

// Sent removes n bytes, and calls sent with each task whose output is complete.
func (q *Queue[T]) Sent(n int, sent func(*T)) {
	for q.N > 0 {
		o := *q.First()
		v := o.Vec[o.at]
		if n < len(v) {
			o.Vec[o.at] = v[n:]
			return
		}
		n -= len(v)
		if o.at++; o.at == len(o.Vec) {
			q.Pop()
			sent(o.Task)
		}
	}
}

// Detach copies all output for which a volume's memory is lent, and calls release, which returns that.
func (q *Queue[T]) Detach(release func(*T)) {
	for i := range q.N {
		(*q.At(i)).Detach(release)
	}
}
