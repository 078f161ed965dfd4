// Package turns is the order in which the queue pairs of a network card send: those that are ready take turns, and
// those held back by their rate wait for their time.
//
// Its main types are Round, the ready queue pairs of a traffic class, and Paced, an element of the heap of the others.
// Turns go by a queue pair's number at the card, which increases, so a new queue pair need not wait for all others.
//
// It leaves out rates, windows and packets, which are package fabric's.
package turns

import (
	"farflash/internal/window"
	"farflash/sim"
)

// Round is a set of queue pairs that are ready to send, by number.
type Round struct {
	waiting window.Set
	last    uint32 // number that was served last
	top     uint32 // one past the greatest number
	N       int    // N is how many they are.
}

// Add adds a number that is not in the set.
func (t *Round) Add(number uint32) {
	t.waiting.Add(number)
	t.N++
	if int32(number-t.top) >= 0 { // numbers wrap
		t.top = number + 1
	}
}

// Remove removes a number that is in the set.
func (t *Round) Remove(number uint32) {
	t.waiting.Remove(number)
	t.N--
}

// Take removes and returns the next number in turn after the last one served. The set must not be empty.
func (t *Round) Take() uint32 {
	number, ok := t.waiting.Find(t.last+1, t.top)
	if !ok { // wrap around
		number, _ = t.waiting.Find(t.waiting.Base(), t.top)
	}
	t.last = number
	t.Remove(number)
	return number
}

// MoveTo drops the space of numbers before oldest, none of which is in the set or will be.
func (t *Round) MoveTo(oldest uint32) { t.waiting.MoveTo(oldest) }

// Size returns the number of bits allocated.
func (t *Round) Size() uint32 { return t.waiting.Size() }

// Paced is a queue pair and the time when its rate allows its next packet.
type Paced struct {
	At sim.Time
	QP int32
}

// Before orders by time, then by queue pair.
func (a *Paced) Before(b *Paced) bool { return a.At < b.At || a.At == b.At && a.QP < b.QP }
