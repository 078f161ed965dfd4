package ratecontrol

import (
	"farflash/block"
	"farflash/numeric/units"
)

// Controller divides the drives of one target between reads and writes. Its owner calls Start once, before anything
// else, and React whenever something happens, in order of time, and reads what Steering says after each call. It is
// told the time and never asks for it, and neither starts anything of its own nor allocates once it has seen as much
// as it ever will; so the same controller steers a simulated target and a real one.
type Controller interface {
	// Start sets what a target's drives begin with; what Steering says is given is.
	Start(*Steering)
	// React takes note of a signal and may change what Steering says.
	React(*Steering, *Signal)
}

// Steering is what a controller knows of its target and wants of it.
type Steering struct {
	// Weights of each drive's queues.
	Weights []Weights
	// ReadLimit is how many bytes reads may have between being fetched and being acknowledged by their initiators, on
	// all drives of the target together. While they have as many or more no read is fetched; one read may pass it. 0
	// is no limit.
	ReadLimit int64
	// SendRate is how many bytes of reads a second the target hands to the network, and no more than Slack of it is
	// made good later. What drives have ended beyond waits as if the transmit queue were full. 0 is no limit.
	SendRate float64
	// WriteRate is how many bytes of writes' data a second the target asks initiators for, with the same slack. What
	// comes with its command is not held. 0 is no limit.
	WriteRate float64
	// SendLimit is how many bytes the target hands to the network that are not acknowledged, if that is less than the
	// transmit queue holds; one answer may pass it. What drives have ended beyond waits as if the queue were full. 0
	// is no limit.
	SendLimit int64
	// Overtake has answers without data, those to writes, go to the transmit queue before reads that wait for room or
	// for SendLimit. Without it commands leave their drives in the order in which these have ended them, as SRC's do.
	Overtake bool
	// Wake is when React is to be called with Timer; units.Forever is not at all.
	Wake units.Duration
	// Predictions is how often a drive's throughput has been predicted.
	Predictions uint64

	// Reading is how many bytes reads have that count for ReadLimit. It is given, and stands after what React is
	// called for.
	Reading int64
	// Depth is how many commands a drive holds at once. It is given.
	Depth int
	// TXQ is how many bytes the target's transmit queue holds. It is given.
	TXQ int64
	// Pairs is how many queue pairs the target has. It is given.
	Pairs int
	// Line is the rate of the target's link in bytes of data a second. It is given.
	Line float64
	// Toll is for how many bytes of data a byte that is written takes room on the way to the initiators, by its
	// acknowledgements. It is given.
	Toll float64
}

// Slack is for how long SendRate and WriteRate may be caught up on.
const Slack = units.Millisecond

// Weights are those of a drive's read and write submission queue, 1 at least.
type Weights struct{ Read, Write int }

// Ratio is the write's weight over the read's.
func (w Weights) Ratio() float64 { return float64(w.Write) / float64(w.Read) }

// SetRatio gives a drive a weight ratio, the read's weight being 1.
func (s *Steering) SetRatio(drive, w int) { s.Weights[drive] = Weights{Read: 1, Write: max(w, 1)} }

// Event is what a controller is called for.
type Event uint8

// The events.
const (
	// Arrived: a command has come to one of the drives' queues.
	Arrived Event = iota
	// Ended: a drive has ended a command.
	Ended
	// Sent: the answer to a read has been acknowledged by the network's other end.
	Sent
	// Demand: the network demands another rate, by a congestion notification or because it recovers.
	Demand
	// Timer: the time in Steering.Wake has come, which is units.Forever when React is called.
	Timer
)

// Signal is something that has happened.
type Signal struct {
	Event Event
	Op    block.Op // of Arrived and Ended
	// Cut: the demanded rate is lower than the one before (a pause event of SRC), otherwise higher (a retrieval event).
	Cut bool
	// Drive is its number at the target (Arrived, Ended).
	Drive int32
	Now   units.Duration
	// Bytes are the command's (Arrived, Ended), or those that have left the transmit queue (Sent).
	Bytes int64
	// Took is how long the drive had the command (Ended), or how long after its end there the read was acknowledged
	// (Sent).
	Took units.Duration
	// Rate is what the network demands, in bytes of data a second over all queue pairs of the target (Demand).
	Rate float64
}

// shares keeps what drives read, so that a target's demand is divided among them as they read.
type shares struct {
	window     units.Duration
	end        units.Duration // of the present window
	last, this []int64        // bytes of reads that came, by drive
}

func (s *shares) start(drives int, window units.Duration) {
	*s = shares{window: window, end: window, last: make([]int64, drives), this: make([]int64, drives)}
}

// turn begins a new window when the present one has ended.
func (s *shares) turn(now units.Duration) {
	if now < s.end {
		return
	}
	if now-s.end >= s.window { // nothing came in all of the last one
		clear(s.this)
	}
	s.last, s.this = s.this, s.last
	clear(s.this)
	s.end += (1 + (now-s.end)/s.window) * s.window
}

func (s *shares) arrived(x *Signal) {
	s.turn(x.Now)
	if x.Op == block.Read {
		s.this[x.Drive] += x.Bytes
	}
}

// of is a drive's part of the whole, of what came in this window and the last.
func (s *shares) of(drive int, now units.Duration) float64 {
	s.turn(now)
	all, own := int64(0), s.last[drive]+s.this[drive]
	for i := range s.this {
		all += s.last[i] + s.this[i]
	}
	if all == 0 {
		return 1 / float64(len(s.this))
	}
	return float64(own) / float64(all)
}
