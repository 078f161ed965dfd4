package ratecontrol

import (
	"fmt"

	"farflash/block"
	"farflash/numeric/units"
)

// Controller divides the drives of one target between reads and writes. Its owner calls Start once, then React on every
// event, in order of time, and applies Steering after each call. A controller has no clock or goroutine of its own and
// does not allocate once its state is largest, so the same one steers a simulated target and a real one.
type Controller interface {
	// Start sets the initial Steering; the fields marked as inputs are already set.
	Start(*Steering)
	// React processes a signal and may change Steering.
	React(*Steering, *Signal)
}

// Steering has a controller's inputs from the target, and its settings for it.
type Steering struct {
	Weights []Weights // Weights are the weights of each drive's queues.
	// Partition is when the queues' shares of a drive's depth bind. It is read once, after Start.
	Partition Partition
	// ReadLimit is the limit on bytes of reads between their fetch and their acknowledgement by the initiators, over
	// all drives of the target. At or above it no read is fetched, so a single read may exceed it. 0 means no limit.
	ReadLimit int64
	// SendRate is the rate, in bytes of reads per second, at which the target hands data to the network; it catches up
	// on at most Slack of unused time. Reads that drives have completed in excess of it wait as if the transmit queue
	// were full. 0 means no limit.
	SendRate float64
	// WriteRate is the rate, in bytes per second, at which the target requests write data from initiators, with the
	// same slack. In-capsule data is not limited. 0 means no limit.
	WriteRate float64
	// SendLimit is the limit on unacknowledged bytes that the target has handed to the network, if that is less than
	// the capacity of the transmit queue; a single response may exceed it. Completed reads in excess of it wait as if
	// the queue were full. 0 means no limit.
	SendLimit int64
	// Overtake lets responses without data, those to writes, enter the transmit queue ahead of reads that wait for
	// space or for SendLimit. Otherwise commands leave their drives in order of completion, as in SRC.
	Overtake bool
	// Wake is the time at which React must be called with Timer; units.Forever means never.
	Wake        units.Duration
	Predictions uint64 // Predictions counts the predictions of a drive's throughput.

	// Reading is the number of bytes of reads that count towards ReadLimit, as of after the event of the call. Input.
	Reading int64
	Depth   int     // Depth is the number of commands that a drive holds at once. Input.
	TXQ     int64   // TXQ is the capacity of the target's transmit queue in bytes. Input.
	Pairs   int     // Pairs is the number of queue pairs of the target. Input.
	Line    float64 // Line is the rate of the target's link in bytes of data per second. Input.
	// Toll is the number of bytes of data that the acknowledgements of one written byte displace on the path to the
	// initiators. Input.
	Toll float64
}

// Slack is the unused time on which SendRate and WriteRate may catch up.
const Slack = units.Millisecond

// Weights are those of a drive's read and write queue, each at least 1.
type Weights struct{ Read, Write int }

// Ratio is the write's weight over the read's.
func (w Weights) Ratio() float64 { return float64(w.Write) / float64(w.Read) }

// SetRatio sets a drive's weight ratio, with a read weight of 1.
func (s *Steering) SetRatio(drive, w int) {
	if uint(drive) >= uint(len(s.Weights)) {
		panic(fmt.Sprintf("ratecontrol: SetRatio of drive %d; there are %d", drive, len(s.Weights)))
	}
	s.Weights[drive] = Weights{Read: 1, Write: max(w, 1)}
}

// Event is the cause of a call to React.
type Event uint8

const (
	// Arrived: a command arrived in one of the drives' queues.
	Arrived Event = iota
	// Ended: a drive completed a command.
	Ended
	// Sent: the network's other end acknowledged the response to a read.
	Sent
	// Demand: the network demands another rate, because of a congestion notification or of its recovery.
	Demand
	// Timer: the time in Steering.Wake has been reached. Wake is units.Forever during the call.
	Timer
)

// Signal is an event with its parameters.
type Signal struct {
	Event Event
	Op    block.Op // of Arrived and Ended
	// Cut means that the demanded rate is lower than before (a pause event of SRC); otherwise it is higher (a retrieval
	// event).
	Cut   bool
	Drive int32 // Drive is the drive's index at the target (Arrived, Ended).
	Now   units.Duration
	// Bytes is the size of the command (Arrived, Ended), or of the response that left the transmit queue (Sent).
	Bytes int64
	// Took is the time that the command spent in the drive (Ended), or the time from there until the read's
	// acknowledgement (Sent).
	Took units.Duration
	// Rate is the network's demand in bytes of data per second, over all queue pairs of the target (Demand).
	Rate float64
}

// shares tracks the reads of each drive, by which a target's demand is divided among them.
type shares struct {
	window     units.Duration
	end        units.Duration // of the present window
	last, this []int64        // bytes of arrived reads, by drive
}

func (s *shares) start(drives int, window units.Duration) {
	*s = shares{window: window, end: window, last: make([]int64, drives), this: make([]int64, drives)}
}

// turn starts a new window if the present one has ended.
func (s *shares) turn(now units.Duration) {
	if now < s.end {
		return
	}
	if now-s.end >= s.window { // no reads in the whole previous window
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

// of is a drive's part of the total over this window and the last.
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
