// Package uses defines the uses of a disk or a link of a cluster, including the reasons for being idle (Use), the time
// spent in each (Spent), and a Ledger that accounts for each moment exactly once. It leaves out how the current use is
// determined.
package uses

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// Use is the use of a disk or a link, or the reason that it is idle.
type Use uint8

// The uses.
const (
	// Work: a disk writes or reads a piece of a chunk, or a link carries data of one.
	Work Use = iota
	// Repair: a disk reads or writes to rebuild a piece.
	Repair
	// Control: a link carries a control message.
	Control
	// Receiving: a disk waits for a piece that is currently arriving.
	Receiving
	// Reserved: data has been promised to the target, or a piece has arrived in part, but none is currently arriving.
	Reserved
	// Tentative: the target has an unanswered offer or bid.
	Tentative
	// Waiting: a link waits: a gateway's for answers while chunks are in flight, a target's for its disk to read.
	Waiting
	// Idle: there is no work.
	Idle
	// Down: the target has failed.
	Down

	// Count is the number of uses.
	Count int = iota
)

var useNames = units.Names[Use]{"work", "repair", "control", "receiving", "reserved", "tentative", "waiting", "idle",
	"down"}

// String returns the use's name in metrics.
func (u Use) String() string { return useNames.Name(u) }

// Spent is the time spent in each use.
type Spent [Count]sim.Time

// All returns the total.
func (s *Spent) All() sim.Time {
	sum := sim.Time(0)
	for _, t := range s {
		sum += t
	}
	return sum
}

// Ledger accounts for the time of a disk or a link.
type Ledger struct {
	at       sim.Time // time up to which it is accounted
	Now      Use      // use since then
	From, To sim.Time // where links do not queue: interval in which data arrives
	Spent    Spent
}

// Turn accounts for the time since the last turn, and sets the use from now on.
func (l *Ledger) Turn(now sim.Time, next Use) {
	left := now - l.at
	if l.To > l.at && l.Now > Repair {
		if got := min(l.To, now) - max(l.From, l.at); got > 0 {
			l.Spent[Receiving] += got
			left -= got
		}
	}
	l.Spent[l.Now] += left
	l.at, l.Now = now, next
}
