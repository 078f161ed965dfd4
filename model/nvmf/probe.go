package nvmf

import (
	"farflash/block"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"
	"farflash/sim"
)

// Steps calls f for each stage of the command in chronological order, without those that took no time. A write whose
// data the target fetches is on the network three times and at the target twice.
func (d *Done) Steps(f func(k Stage, from, to sim.Time)) {
	at := d.Submitted
	step := func(k Stage, to sim.Time) {
		if to > at {
			f(k, at, to)
			at = to
		}
	}
	// The initiator works at both ends. The time after the target's answer separates its two parts.
	back := d.DriveOut + d.Stage[TXQ] + d.Stage[NetworkBack]
	sent := d.sent()
	step(AtInitiator, sent)
	step(NetworkOut, d.Arrived)
	if d.Op == block.Write && d.NetOut > d.Arrived {
		step(AtTarget, d.Asked-(d.Stage[NetworkOut]-(d.Arrived-sent)-(d.NetOut-d.Supplied)))
		step(NetworkOut, d.Asked)
		step(AtInitiator, d.Supplied)
		step(NetworkOut, d.NetOut)
	}
	step(AtTarget, d.DriveIn)
	step(DriveWait, d.DriveIn+d.Stage[DriveWait])
	step(Flash, d.DriveOut)
	step(TXQ, d.DriveOut+d.Stage[TXQ])
	step(NetworkBack, back)
	step(AtInitiator, d.Ended)
}

// sent returns when the command left the initiator.
func (d *Done) sent() sim.Time {
	back := d.DriveOut + d.Stage[TXQ] + d.Stage[NetworkBack]
	return d.Submitted + d.Stage[AtInitiator] - (d.Ended - back) - (d.Supplied - d.Asked)
}

// Kind is the content of a message.
type Kind uint8

const (
	Capsule    Kind = iota // the command, with a write's data if it fits
	Pull                   // an RDMA Read's request or an R2T: the target fetches a write's data
	Pulled                 // the answer to a Pull: a write's data
	Data                   // a read's data; on TCP with the completion
	Response               // a completion
	Admin                  // to a controller: a part of connecting, or a keep-alive
	AdminReply             // its answer
	Event                  // a controller's, that a path's state has changed
	LogRequest             // for the log of these states
	LogReply               // which this is
	Closing                // to a target: the initiator has ended the connection
	Closed                 // to an initiator: the target has
)

var kindNames = units.Names[Kind]{"capsule", "pull", "write data", "read data", "response", "admin", "admin reply",
	"event", "log request", "log", "closing", "closed"}

func (k Kind) String() string { return kindNames.Name(k) }

// toTarget reports whether messages of the kind go to the target.
func (k Kind) toTarget() bool { return k == Capsule || k == Pulled || k == Admin || k == LogRequest }

// Message is a message that was posted for a command.
type Message struct {
	Number int32
	Kind   Kind
	Tag    uint64 // the command's tag, as its owner set it
}

// Visit is a command's stay in a drive, its queue included.
type Visit struct {
	In, Out sim.Time
	// Waited is the part of it during which the drive worked for other commands.
	Waited        sim.Time
	Size          units.Bytes
	Tag           uint64
	Target, Drive int32
	Initiator     int32
	Op            block.Op
}

// Level is a new fill level of a queue.
type Level struct {
	At     sim.Time
	Target int32
	// Drive is the drive whose queue it is, in commands; -1 is the target's transmit queue, in bytes.
	Drive int32
	Value int64
}

// Steered is an input to a target's controller, or a change that it made.
type Steered struct {
	At     sim.Time
	Target int32
	// Drive is the drive whose weight ratio changed, by its number over all targets; -1 is the demand on the target, in
	// bytes per second.
	Drive int32
	Value float64
}

// reportDemand reports the demand passed to a controller.
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

// Tag returns the owner's tag of an outstanding command.
func (s *System) Tag(command uint64) uint64 { return s.commands.At(int32(command)).tag }

// reportQueue reports how many commands a drive has.
func (s *System) reportQueue(d int32) {
	if s.OnLevel != nil {
		x := &s.drives[d]
		s.OnLevel(Level{At: s.eng.Now(), Target: x.target, Drive: d, Value: int64(x.inside)})
	}
}

// reportTXQ reports the fill level of a transmit queue.
func (s *System) reportTXQ(target int32) {
	if s.OnLevel != nil {
		s.OnLevel(Level{At: s.eng.Now(), Target: target, Drive: -1, Value: int64(s.targets[target].used)})
	}
}
