package ssd

import "farflash/sim"

// Activity is the work of a channel or a die.
type Activity uint8

// The activities. Those up to ReadData are a channel's, the others a die's.
const (
	// ReadCommand, ProgramData and EraseCommand are transfers to a chip: a command with its address and, for a program,
	// its data.
	ReadCommand Activity = iota
	ProgramData
	EraseCommand
	// ReadData is the transfer of a page's data from a chip.
	ReadData
	// Read, Program and Erase are operations of the array.
	Read
	Program
	Erase
	activities
)

// OnBus reports whether the activity is a channel's.
func (a Activity) OnBus() bool { return a <= ReadData }

var activityNames = [activities]string{"read command", "program data", "erase command", "read data", "read",
	"program", "erase"}

func (a Activity) String() string { return activityNames[a] }

// Cause is why a page is read or programmed.
type Cause uint8

const (
	ForHost       Cause = iota // a request's own page
	ForCache                   // data leaving the cache
	ForUpdate                  // sectors that a partial write leaves valid
	ForMapping                 // a page of the map
	ForCollection              // garbage collection or wear levelling
	causes
)

var _ = [1]struct{}{}[Cause(fromMove)-ForCollection] // causes are origins

var causeNames = [causes]string{"host", "cache", "update", "map", "GC"}

func (c Cause) String() string { return causeNames[c] }

// Work is an interval in which a channel or a die is busy, reported as soon as it is known, possibly before it starts,
// in order of time for each channel and each lane.
type Work struct {
	Begin, End sim.Time
	// Number is the channel's or the lane's: the number of a die over all channels, or of a chip if chips execute one
	// command at a time.
	Number   int32
	Pages    int32 // pages of the command, over all planes
	Bytes    int64 // Bytes on the bus.
	Activity Activity
	Cause    Cause // of the first page
	Stream   uint8 // placement stream of the first page
	Resumed  bool  // the remainder of a suspended operation
	// ForRequest is set if a host request waits for one of the pages; Tag is that of the first such request.
	ForRequest bool
	Tag        uint64
}

// Suspension ends a lane's current work early.
type Suspension struct {
	At     sim.Time
	Number int32
}

// Channels returns the number of channels.
func (d *Drive) Channels() int { return len(d.channels) }

// report sends the work of some transactions to OnWork.
func (d *Drive) report(w Work, txns []int32) {
	w.Pages, w.Cause = int32(len(txns)), Cause(min(d.txns.At(txns[0]).origin, fromMove))
	w.Stream = d.txns.At(txns[0]).stream
	for _, t := range txns {
		if i := d.requestOf(t); i != 0 {
			w.ForRequest, w.Tag = true, d.requests.At(i).done.Tag
			break
		}
	}
	d.OnWork(w)
}

// reportBus reports a command on a channel, starting now.
func (d *Drive) reportBus(l *lane, took sim.Time) {
	w := Work{Number: l.channel, Begin: d.eng.Now(), End: d.eng.Now() + took}
	switch l.op {
	case opProgram:
		w.Activity = ProgramData
		if l.phase == idle { // a copyback's data are already in the chip
			for _, t := range l.txns[:l.n] {
				w.Bytes += int64(d.bytesOf(t))
			}
		}
	case opErase:
		w.Activity = EraseCommand
	}
	d.report(w, l.txns[:l.n])
}

// reportData reports a read's data transfer on a channel, starting now.
//
//go:noinline
func (d *Drive) reportData(channel int32, until sim.Time, bytes, t int32) {
	d.report(Work{Activity: ReadData, Number: channel, Begin: d.eng.Now(), End: until, Bytes: int64(bytes)}, []int32{t})
}

// reportArray reports the operation of a lane's array.
func (d *Drive) reportArray(l *lane, took sim.Time, resumed bool) {
	w := Work{Activity: Read, Number: l.number, Begin: l.starts, End: l.starts + took, Resumed: resumed}
	switch l.op {
	case opProgram:
		w.Activity = Program
	case opErase:
		w.Activity = Erase
	}
	d.report(w, l.txns[:l.n])
}
