package nvmf

import (
	"farflash/block"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"
	"farflash/sim"
)

// Steps calls f for the stages that the command went through, in the order in which it did: they begin with its
// submission, each where the one before it ended, and end with its end. A write whose data the target fetches is
// on the network and at the target twice. Stages that took no time are left out.
func (d *Done) Steps(f func(k Stage, from, to sim.Time)) {
	at := d.Submitted
	step := func(k Stage, to sim.Time) {
		if to > at {
			f(k, at, to)
			at = to
		}
	}
	// The initiator works at both ends; what is behind the target's answer tells them apart.
	back := d.DriveOut + d.Stage[TXQ] + d.Stage[NetworkBack]
	step(AtInitiator, d.Submitted+d.Stage[AtInitiator]-(d.Ended-back))
	step(NetworkOut, d.Arrived)
	if d.Op == block.Write && d.NetOut > d.Arrived {
		step(AtTarget, d.NetOut-(d.Stage[NetworkOut]-(d.Arrived-d.sent())))
		step(NetworkOut, d.NetOut)
	}
	step(AtTarget, d.DriveIn)
	step(DriveWait, d.DriveIn+d.Stage[DriveWait])
	step(Flash, d.DriveOut)
	step(TXQ, d.DriveOut+d.Stage[TXQ])
	step(NetworkBack, back)
	step(AtInitiator, d.Ended)
}

// sent is when the command left the initiator.
func (d *Done) sent() sim.Time {
	back := d.DriveOut + d.Stage[TXQ] + d.Stage[NetworkBack]
	return d.Submitted + d.Stage[AtInitiator] - (d.Ended - back)
}

// Kind is what a message carries for a command.
type Kind uint8

// The kinds.
const (
	Capsule  Kind = iota // the command, with a write's data if they fit
	Pull                 // an RDMA Read's request or an R2T: the target fetches a write's data
	Pulled               // its answer: a write's data
	Data                 // a read's data, on TCP with the completion
	Response             // a completion
)

var kindNames = units.Names[Kind]{"capsule", "pull", "write data", "read data", "response"}

// String is the kind in words.
func (k Kind) String() string { return kindNames.Name(k) }

// toTarget reports which way it goes.
func (k Kind) toTarget() bool { return k == Capsule || k == Pulled }

// Message is a message that was posted for a command.
type Message struct {
	Number int32
	Kind   Kind
	Tag    uint64 // the command's, as its owner gave it
}

// Visit is a command's time in a drive, its queue included.
type Visit struct {
	In, Out sim.Time
	// Waited is how long of it the drive worked for others.
	Waited        sim.Time
	Size          units.Bytes
	Tag           uint64
	Target, Drive int32
	Initiator     int32
	Op            block.Op
}

// Level is how full something has become.
type Level struct {
	At     sim.Time
	Target int32
	// Drive is whose queue it is, in commands; -1 is the target's transmit queue, in bytes.
	Drive int32
	Value int64
}

// Steered is what a target's controller has been told, or has changed.
type Steered struct {
	At     sim.Time
	Target int32
	// Drive is whose weight ratio it is, by its number over all targets; -1 is the demand on the target, in bytes a
	// second.
	Drive int32
	Value float64
}

// reportDemand reports what a controller has been told.
func (s *System) reportDemand(t *transmitter) {
	if s.OnSteered != nil {
		s.OnSteered(Steered{At: s.eng.Now(), Target: s.drives[t.drives[0]].target, Drive: -1, Value: t.steered.told})
	}
}

// reportRatio reports a drive's new weights.
func (s *System) reportRatio(drive int32, w ratecontrol.Weights) {
	if s.OnSteered != nil {
		s.OnSteered(Steered{At: s.eng.Now(), Target: s.drives[drive].target, Drive: drive, Value: w.Ratio()})
	}
}

// Tag is what the owner called a command that is under way.
func (s *System) Tag(command uint64) uint64 { return s.commands.At(int32(command)).tag }

// reportQueue reports how many commands a drive has.
func (s *System) reportQueue(d int32) {
	if s.OnLevel != nil {
		x := &s.drives[d]
		s.OnLevel(Level{At: s.eng.Now(), Target: x.target, Drive: d, Value: int64(x.inside)})
	}
}

// reportTXQ reports what a transmit queue holds.
func (s *System) reportTXQ(target int32) {
	if s.OnLevel != nil {
		s.OnLevel(Level{At: s.eng.Now(), Target: target, Drive: -1, Value: int64(s.targets[target].used)})
	}
}
