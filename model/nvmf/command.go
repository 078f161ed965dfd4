package nvmf

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"farflash/block"
	"farflash/numeric/units"
	"farflash/sim"
)

// Stage is a part of a command's time.
type Stage uint8

// From submission to completion a command is always in exactly one stage.
const (
	// AtInitiator: it waits for a place in a queue pair, or the initiator's software works on it or on its response.
	AtInitiator Stage = iota
	// NetworkOut: its capsule, and a write's data, are in flight.
	NetworkOut
	// AtTarget: the target's software works on it, or it waits for a place in a drive's queue.
	AtTarget
	// DriveWait: the drive has it and works for other commands.
	DriveWait
	// Flash: the drive works for it: link, memory, flash array and channel.
	Flash
	// TXQ: the drive has completed it; the target's software works on it, or it waits for space in the transmit queue
	// or for its first packet to be sent.
	TXQ
	// NetworkBack: its data and its response are in flight.
	NetworkBack
	Stages // number of stages
)

var stageNames = units.Names[Stage]{"initiator", "network_out", "target", "drive_wait", "flash", "txq", "network_back"}

func (k Stage) String() string { return stageNames.Name(k) }

// command is an outstanding command. Commands are identified by index; 0 is none.
type command struct {
	req       block.Request
	tag       uint64 // set by the owner
	submitted sim.Time
	mark      sim.Time // start of the current stage
	stage     [Stages]sim.Time
	// Timestamps for requests.parquet: arrival at the target, the drive's queue, the drive's completion, the data's
	// transfer.
	arrived, driveIn, driveOut, netIn, netOut sim.Time
	asked, supplied                           sim.Time // see Done
	begun                                     sim.Time // when the first packet of its answer was sent
	// where the drive has put an append's data; the response has space for it
	placed int64

	initiator, target, drive, conn int32
	next                           int32
	first                          int32 // the first message of its answer, until it is acknowledged
	ticket                         int32 // in the separate queues of its drive, if there are any
	receive                        int32 // the pool that its capsule's receive is to go back to, plus 1
	left                           int8  // messages of its answer that have not arrived
	onItsWay                       bool  // a part of its answer has arrived, and NetworkBack has begun
	status                         block.Status

	ghost   int32    // of an orphan whose target does not know: the number of the remains, plus 1
	since   sim.Time // when it got its place in a queue pair
	retries int32    // how often it was sent before
	at      phase
	placing bool // it has a place in its queue pair
	routed  bool // it is counted with its path
	parked  bool // no path could take it when it was submitted
	refused bool // the target has refused it because of its path's state
	orphan  bool // its connection has ended, and it ends at the target or by a pending event
}

// Done is a completed command.
type Done struct {
	Tag       uint64
	Op        block.Op
	Status    block.Status
	Length    int64
	Offset    int64 // of a successful append: where the drive has put its data
	Initiator int32
	Target    int32
	Drive     int32
	Submitted sim.Time
	Ended     sim.Time
	Stage     [Stages]sim.Time
	// Arrived is when it arrived at the target, not counting data that is fetched.
	Arrived sim.Time
	// DriveIn is when it entered the drive's queue, DriveOut when the drive completed it; NetIn is when its data was
	// handed to the network, NetOut when all of it had arrived.
	DriveIn, DriveOut, NetIn, NetOut sim.Time
	// Asked is when the request for a write's data arrived at the initiator, Supplied when that gave the data to the
	// network.
	Asked, Supplied sim.Time
}

// Since moves a command's submission back to at.
func (d *Done) Since(at sim.Time) {
	d.Stage[AtInitiator] += d.Submitted - at
	d.Submitted = at
}

// spent charges the time since the command's mark to a stage, and moves the mark.
func (s *System) spent(x *command, k Stage) {
	now := s.eng.Now()
	x.stage[k] += now - x.mark
	x.mark = now
}

// end completes a command: it updates the counters, frees the command and notifies the owner.
func (s *System) end(c int32) {
	x := s.commands.At(c)
	s.spent(x, AtInitiator)
	if x.refused {
		s.elsewhere(c)
		return
	}
	s.unroute(x)
	now := s.eng.Now()
	s.Counters.Ended++
	if x.status != block.OK {
		s.Counters.Failed++
	}
	for k, t := range x.stage {
		s.Counters.Time[k] += t
	}
	s.Counters.Latency += now - x.submitted
	s.done = Done{
		Tag: x.tag, Op: x.req.Op, Status: x.status, Length: x.req.Length, Offset: x.placed, Initiator: x.initiator,
		Target: x.target, Drive: x.drive,
		Submitted: x.submitted, Ended: now, Stage: x.stage, Arrived: x.arrived, DriveIn: x.driveIn,
		DriveOut: x.driveOut, NetIn: x.netIn, NetOut: x.netOut, Asked: x.asked, Supplied: x.supplied,
	}
	conn, placing := x.conn, x.placing
	s.commands.Give(c)
	if placing {
		s.leave(conn)
	}
	s.sink.Ended(&s.done)
}

// Spent returns all commands' total time by stage, with that of attempts that were lost; of an unfinished stage, the
// part up to a message's arrival.
func (s *System) Spent() [Stages]sim.Time {
	sum := s.Counters.Time
	for k, t := range s.lost {
		sum[k] += t
	}
	s.commands.Each(func(_ int32, x *command) {
		for k, t := range x.stage {
			sum[k] += t
		}
	})
	return sum
}

// Between counts an initiator's outstanding commands at a target.
type Between struct {
	Initiator, Target int32
	Count             int
	Since             sim.Time // when the first of them was submitted
}

// Outstanding lists initiators and targets with outstanding commands, sorted.
func (s *System) Outstanding() []Between {
	var list []Between
	s.commands.Each(func(_ int32, x *command) {
		if !x.orphan {
			list = append(list, Between{x.initiator, x.target, 1, x.submitted})
		}
	})
	slices.SortFunc(list, func(a, b Between) int {
		return cmp.Or(cmp.Compare(a.Initiator, b.Initiator), cmp.Compare(a.Target, b.Target),
			cmp.Compare(a.Since, b.Since))
	})
	out := list[:0]
	for _, x := range list {
		if n := len(out); n > 0 && out[n-1].Initiator == x.Initiator && out[n-1].Target == x.Target {
			out[n-1].Count++
		} else {
			out = append(out, x)
		}
	}
	return out
}

// Visited returns the total time of successful reads, and of writes, in a drive.
func (s *System) Visited(drive int32) [2]units.Total {
	exists("drive", drive, len(s.drives))
	return s.drives[drive].visited
}

// Carried returns a message's content and its command's index, 0 for others'.
func (s *System) Carried(m int32) (Kind, int32) {
	if !s.Carries(m) {
		return 0, 0
	}
	return s.posted[m].kind, s.posted[m].command
}

// Check reports the first violation of a conservation law or invariant.
func (s *System) Check() error {
	var inside uint64
	s.commands.Each(func(_ int32, x *command) {
		if !x.orphan {
			inside++
		}
	})
	k := &s.Counters
	if k.Submitted != k.Ended+inside {
		return fmt.Errorf("%d commands submitted, but %d ended and %d under way", k.Submitted, k.Ended, inside)
	}
	sum := sim.Time(0)
	for _, t := range k.Time {
		sum += t
	}
	if sum != k.Latency {
		return fmt.Errorf("the stages of ended commands took %v, their latencies are %v", sum, k.Latency)
	}
	for i := range s.drives {
		d := &s.drives[i]
		n := int32(0)
		for k := range d.queues {
			q := &d.queues[k]
			n += q.inside
			if q.inside < 0 || int(q.inside) > s.cfg.DriveDepth || q.waiting.n > 0 && q.inside == 0 {
				return fmt.Errorf("drive %d, queue %d: %d commands in a depth of %d, %d wait", i, k, q.inside,
					s.cfg.DriveDepth, q.waiting.n)
			}
		}
		if n != d.inside {
			return fmt.Errorf("drive %d: %d commands in its queues, %d are counted", i, n, d.inside)
		}
	}
	for i := range s.targets {
		t := &s.targets[i]
		if t.used < 0 || t.used > max(s.cfg.TXQ, t.alone) {
			return fmt.Errorf("target %d: %v in a transmit queue of %v", i, t.used, s.cfg.TXQ)
		}
		if err := s.checkMemory(t); err != nil {
			return fmt.Errorf("target %d: %w", i, err)
		}
		if t.steered == nil {
			continue
		}
		if err := s.checkSteered(t); err != nil {
			return fmt.Errorf("target %d: %w", i, err)
		}
	}
	if err := errors.Join(s.checkPaths(), s.checkReceives()); err != nil {
		return err
	}
	for i := range s.conns {
		if q := &s.conns[i]; q.reading < 0 || s.protocol == NVMeoF && q.reading > s.cfg.Reads.limit() ||
			q.unread.n > 0 && q.reading == 0 {
			return fmt.Errorf("connection %d: %d RDMA Reads of at most %d, %d wait", i, q.reading,
				s.cfg.Reads.limit(), q.unread.n)
		}
	}
	return nil
}

// push appends a command to a list.
func (s *System) push(l *list, c int32) {
	s.commands.At(c).next = 0
	if l.n == 0 {
		l.head = c
	} else {
		s.commands.At(l.tail).next = c
	}
	l.tail = c
	l.n++
}

// pop removes and returns a list's first command.
func (s *System) pop(l *list) int32 {
	c := l.head
	l.head = s.commands.At(c).next
	l.n--
	return c
}
