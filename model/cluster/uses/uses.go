// Package uses has what a disk or a link of a cluster is used for, or why it is not (Use), for how long (Spent), and
// a Ledger that accounts for each moment once. It leaves out how it is known what something is used for.
package uses

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// Use is what a disk or a link is used for, or why it is not.
type Use uint8

// The uses.
const (
	// Work: a disk writes or reads a piece of a chunk, a link carries some of one.
	Work Use = iota
	// Repair: a disk reads or writes to make a piece again.
	Repair
	// Control: a link carries a control message.
	Control
	// Receiving: a disk waits for a piece that comes in just now.
	Receiving
	// Reserved: data has been promised to the target, or some of a piece has come, and nothing is sent to it just now.
	Reserved
	// Tentative: a target has offered itself, or bid, and nobody has answered.
	Tentative
	// Waiting: a link waits: a gateway's for answers while chunks are under way, a target's for what its disk reads.
	Waiting
	// Idle: nothing is asked of it.
	Idle
	// Down: the target has failed.
	Down

	// Count is how many uses there are.
	Count int = iota
)

var useNames = units.Names[Use]{"work", "repair", "control", "receiving", "reserved", "tentative", "waiting", "idle",
	"down"}

// String is the use's name in metrics.
func (u Use) String() string { return useNames.Name(u) }

// Spent is for how long something was used for what.
type Spent [Count]sim.Time

// All is the sum.
func (s *Spent) All() sim.Time {
	sum := sim.Time(0)
	for _, t := range s {
		sum += t
	}
	return sum
}

// Ledger accounts for the time of a disk or a link.
type Ledger struct {
	at       sim.Time // until when it is accounted for
	Now      Use      // since then
	From, To sim.Time // where links do not queue: when data comes in
	Spent    Spent
}

// Turn accounts for the time since the last turn, and notes what the use is from now on.
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
