package resume

import (
	"cmp"
	"slices"
	"sync/atomic"
)

// Kind is how an operation is treated when its connection is lost before its outcome is known.
type Kind uint8

// The kinds. Reading: it is sent again. Writing: its caller waits for the server's answer and keeps the data meanwhile;
// it is sent again unless it is known that it was executed. Kept: a write of which the ledger has a copy, so that its
// caller need not wait. Once: an atomic, which is not sent again, because whether it was executed cannot be known.
const (
	Reading Kind = iota
	Writing
	Kept
	Once
)

// Fate is what becomes of an operation whose connection was lost.
type Fate uint8

// The fates. Idle: the slot has no operation. Again: it is sent again. Done: its caller need not wait any longer,
// because it was executed or the ledger sends it again. Unknown: it is not sent again, and may have been executed.
const (
	Idle Fate = iota
	Again
	Done
	Unknown
)

// Ledger knows the operations of a client whose outcome is not known: those that callers wait for, each in a slot, and
// the writes that were handed to a connection without an answer. The operations of a connection are executed in the
// order of their numbers, and an answer to one implies that all before it have been executed.
//
// F is what identifies a file. Calls must be serialised, except that Answered, End and Confirm are called by the
// goroutine that receives answers, for slots whose operation it has seen.
type Ledger[F any] struct {
	ops  []op
	last uint64 // number of the last operation
	// confirmed is the number up to which all operations have been executed.
	confirmed atomic.Uint64

	// link and messages count the messages on the connection in use.
	link     uint32
	messages uint64

	budget     int
	entries    []entry[F] // ring of kept writes
	head, tail uint64
	arena      []byte // their data: a ring, in which each is contiguous
	from, to   uint64 // positions in use
}

type op struct {
	number     uint64
	at         place
	kind       Kind
	live, sent bool
	executed   bool // a write of which that is known
}

// place is the connection and the number of the message, from 1, in which an operation was posted last.
type place struct {
	link    uint32
	message uint64
}

type entry[F any] struct {
	number  uint64
	at      place
	file    F
	offset  int64
	data    []byte
	end     uint64 // position after its data
	dropped bool
}

// entries bounds the number of kept writes, whatever their size.
const entries = 1024

// NewLedger returns a ledger for operations in a number of slots, which keeps writes of the given bytes in all.
func NewLedger[F any](slots, budget int) *Ledger[F] {
	return &Ledger[F]{ops: make([]op, slots), budget: budget}
}

// Connected reports the connection on which operations are sent from now on, by its number, from 1, and how many
// messages were posted on it before.
func (l *Ledger[F]) Connected(link uint32, messages uint64) { l.link, l.messages = link, messages }

// Posted reports that this many messages, which are no operation to send again, were posted.
func (l *Ledger[F]) Posted(messages int) { l.messages += uint64(messages) }

// Begin numbers an operation that is sent next, in the next messages.
func (l *Ledger[F]) Begin(slot int, k Kind) (number uint64) {
	l.last++
	l.ops[slot] = op{number: l.last, at: place{l.link, l.messages + 1}, kind: k, live: true, sent: true}
	return l.last
}

// Sent reports that an operation is sent again next.
func (l *Ledger[F]) Sent(x Step[F]) {
	at := place{l.link, l.messages + 1}
	if x.Slot < 0 {
		l.entries[x.entry%entries].at = at
		return
	}
	o := &l.ops[x.Slot]
	o.sent, o.at = true, at
}

// Executed reports that the server has executed this many messages of a connection, and will execute no more. These
// operations are not sent again, because others may have seen their data and changed them since.
func (l *Ledger[F]) Executed(link uint32, messages uint64) {
	if link == 0 {
		return
	}
	all := func(at place, number uint64) {
		if at.link == link && at.message <= messages {
			l.Confirm(number)
		}
	}
	for i := l.head; i < l.tail; i++ {
		all(l.entries[i%entries].at, l.entries[i%entries].number)
	}
	for i := range l.ops {
		o := &l.ops[i]
		all(o.at, o.number)
		o.executed = o.executed || o.kind == Writing && o.at.link == link && o.at.message <= messages
	}
}

// Unsent reports that the operation was not sent after all, because the connection has ended.
func (l *Ledger[F]) Unsent(slot int) { l.ops[slot].sent = false }

// Number is the number of the operation in a slot.
func (l *Ledger[F]) Number(slot int) uint64 { return l.ops[slot].number }

// End reports that a slot's operation needs nothing any more, though it may not have been executed.
func (l *Ledger[F]) End(slot int) { l.ops[slot].live = false }

// Answered reports that the server has answered a slot's operation.
func (l *Ledger[F]) Answered(slot int) {
	l.Confirm(l.ops[slot].number)
	l.End(slot)
}

// Confirm reports that the operations up to this one have been executed.
func (l *Ledger[F]) Confirm(number uint64) {
	if number > l.confirmed.Load() { // there is one caller
		l.confirmed.Store(number)
	}
}

// Keep copies the data of the slot's write, which becomes Kept. It reports false if there is no space for it; the write
// is then sent such that it is answered.
func (l *Ledger[F]) Keep(slot int, file F, offset int64, b []byte) bool {
	if len(b) > l.budget/4 {
		return false
	}
	l.trim()
	if l.arena == nil {
		l.arena, l.entries = make([]byte, l.budget), make([]entry[F], entries)
	}
	size := uint64(len(l.arena))
	at, skip := l.to%size, uint64(0)
	if at+uint64(len(b)) > size {
		at, skip = 0, size-at
	}
	end := l.to + skip + uint64(len(b))
	if end-l.from > size || l.tail-l.head == entries {
		return false
	}
	l.to = end
	o := &l.ops[slot]
	o.kind = Kept
	e := &l.entries[l.tail%entries]
	*e = entry[F]{number: o.number, at: o.at, file: file, offset: offset, data: l.arena[at:][:len(b):len(b)], end: end}
	l.tail++
	copy(e.data, b)
	return true
}

// trim forgets the kept writes that have been executed.
func (l *Ledger[F]) trim() {
	for done := l.confirmed.Load(); l.head < l.tail && l.entries[l.head%entries].number <= done; l.head++ {
		l.from = l.entries[l.head%entries].end
	}
}

// Full reports that half of the space for kept writes is in use, so that it is time to ask for an answer.
func (l *Ledger[F]) Full() bool {
	return l.to-l.from > uint64(l.budget)/2 || l.tail-l.head > entries/2
}

// Kept is the number of writes that are kept.
func (l *Ledger[F]) Kept() int {
	l.trim()
	return int(l.tail - l.head)
}

// Fate returns what becomes of a slot's operation when its connection is lost. The caller ends those that are not sent
// again.
func (l *Ledger[F]) Fate(slot int) Fate {
	switch o := l.ops[slot]; {
	case !o.live:
		return Idle
	case o.kind == Kept, o.executed:
		return Done
	case o.kind == Once && o.sent:
		return Unknown
	}
	return Again
}

// Drop forgets the kept writes to files that are gone.
func (l *Ledger[F]) Drop(gone func(F) bool) {
	for i := l.head; i < l.tail; i++ {
		e := &l.entries[i%entries]
		e.dropped = e.dropped || gone(e.file)
	}
}

// Step is one operation to send again: that of a slot, or a kept write if Slot is negative.
type Step[F any] struct {
	Slot   int
	File   F
	Offset int64
	Data   []byte // valid until the next Keep

	number uint64
	entry  uint64
}

// Again appends the operations to repeat on a new connection to out, in the order in which to send it, before anything
// else: the order in which it was sent first. So an earlier write never lands after a later one.
func (l *Ledger[F]) Again(out []Step[F]) []Step[F] {
	l.trim()
	for i := l.head; i < l.tail; i++ {
		if e := &l.entries[i%entries]; !e.dropped {
			out = append(out, Step[F]{Slot: -1, File: e.file, Offset: e.offset, Data: e.data, number: e.number,
				entry: i})
		}
	}
	for i := range l.ops {
		if l.Fate(i) == Again {
			out = append(out, Step[F]{Slot: i, number: l.ops[i].number})
		}
	}
	slices.SortFunc(out, func(a, b Step[F]) int { return cmp.Compare(a.number, b.number) })
	return out
}

// Last is the number of the last operation.
func (l *Ledger[F]) Last() uint64 { return l.last }
