package ssd

import "farflash/sim"

// Activity is what a channel or a die does.
type Activity uint8

// The activities. Those up to OnBus are a channel's, the others a die's.
const (
	// ReadCommand, ProgramData and EraseCommand are a command with its address, and a program's data, on
	// their way to a chip.
	ReadCommand Activity = iota
	ProgramData
	EraseCommand
	// ReadData are a page's data on their way from a chip.
	ReadData
	// Read, Program and Erase are the array's.
	Read
	Program
	Erase
	activities
)

// OnBus reports whether it is a channel that does it.
func (a Activity) OnBus() bool { return a <= ReadData }

var activityNames = [activities]string{"read command", "program data", "erase command", "read data", "read",
	"program", "erase"}

// String is the activity in words.
func (a Activity) String() string { return activityNames[a] }

// Cause is why a page is read or programmed.
type Cause uint8

// The causes.
const (
	ForHost       Cause = iota // a request's own page
	ForCache                   // data that leaves the cache
	ForUpdate                  // what a write of a part of a page leaves standing
	ForMapping                 // a page of the map
	ForCollection              // garbage collection or wear levelling
	causes
)

var _ = [1]struct{}{}[Cause(fromMove)-ForCollection] // causes are origins

var causeNames = [causes]string{"host", "cache", "update", "map", "GC"}

// String is the cause in a word.
func (c Cause) String() string { return causeNames[c] }

// Work is what a channel or a die is busy with from Begin to End. It is reported when it is
// known, which may be before it begins: each channel's and each lane's in order of time. The sums of its spans,
// as far as they lie before a time, are ChannelBusy and LaneBusy of StatsAt that time.
type Work struct {
	Begin, End sim.Time
	// Number is the channel's, or the lane's: the die's over all channels, or the chip's where those take one
	// command at a time.
	Number int32
	Pages  int32 // that a command is about, planes together
	// Bytes on the bus.
	Bytes    int64
	Activity Activity
	Cause    Cause // of the first page
	Stream   uint8 // of the first page, the placement stream that it is of
	Resumed  bool  // it is the rest of what was suspended
	// ForRequest says that the first page that a host's request waits for is that of the one with Tag.
	ForRequest bool
	Tag        uint64
}

// Suspension ends early what a lane is busy with.
type Suspension struct {
	At     sim.Time
	Number int32
}

// Channels is how many channels there are.
func (d *Drive) Channels() int { return len(d.channels) }

// report gives OnWork the work of some transactions.
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

// reportBus reports a command that a channel carries to a lane from now on.
func (d *Drive) reportBus(l *lane, took sim.Time) {
	w := Work{Number: l.channel, Begin: d.eng.Now(), End: d.eng.Now() + took}
	switch l.op {
	case opProgram:
		w.Activity = ProgramData
		if l.phase == idle { // a copyback's data are in the chip already
			for _, t := range l.txns[:l.n] {
				w.Bytes += int64(d.bytesOf(t))
			}
		}
	case opErase:
		w.Activity = EraseCommand
	}
	d.report(w, l.txns[:l.n])
}

// reportData reports a read's data that a channel carries from now on.
//
//go:noinline
func (d *Drive) reportData(channel int32, until sim.Time, bytes, t int32) {
	d.report(Work{Activity: ReadData, Number: channel, Begin: d.eng.Now(), End: until, Bytes: int64(bytes)}, []int32{t})
}

// reportArray reports what a lane's array does.
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
