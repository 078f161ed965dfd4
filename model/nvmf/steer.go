package nvmf

import (
	"errors"
	"fmt"
	"math"

	"farflash/block"
	"farflash/model/fabric"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"
	"farflash/sim"
)

// steered is the state of a target whose drives a controller divides (package ratecontrol). Commands enter separate
// submission queues and are fetched from these into the drive's single queue, up to its depth. They keep their places
// until their answers are in the transmit queue.
type steered struct {
	ctl      ratecontrol.Controller
	steering ratecontrol.Steering
	queues   []*ratecontrol.Queues // by drive of the target
	signal   ratecontrol.Signal
	timer    sim.Timer
	demand   units.BitRate // sum over its queue pairs
	line     units.BitRate
	payload  float64 // share of the bytes sent that is data
	told     float64 // the demand last passed to the controller
	sent     int64   // bytes of reads that initiators have acknowledged
	turn     int     // the drive that is served first when reads are resumed
	passed   []bool  // scratch: drives with no more reads to fetch
	given    bool    // demands are given explicitly; the network's are ignored

	// Paces of the reads handed to the network and of the write data requested, and the timers that resume those held
	// back.
	sends, writes       ratecontrol.Pace
	sendsDue, writesDue sim.Timer
}

// Link describes a target's network link to its controller.
type Link struct {
	Rate  units.BitRate
	Share float64 // Share is the part of the bytes sent that is data.
	// Ack is the number of bytes of acknowledgements in the other direction per byte of data.
	Ack float64
}

// Steer gives a target, with all of its drives, a controller. depth is the number of commands that each drive holds.
// The network's OnRate must be connected to Paced, unless there are Demands.
func (s *System) Steer(target int32, ctl ratecontrol.Controller, depth int, link Link, given bool) error {
	switch {
	case target < 0 || int(target) >= len(s.targets):
		return fmt.Errorf("nvmf: there is no target %d; there are %d", target, len(s.targets))
	case ctl == nil || depth < 1:
		return fmt.Errorf("nvmf: the controller is nil, or its depth of %d is below 1", depth)
	case link.Rate <= 0 || !(link.Share > 0 && link.Share <= 1) || !(link.Ack >= 0 && link.Ack <= math.MaxFloat64):
		return fmt.Errorf("nvmf: a link of %v, of which %v is data and %v times as much acknowledgements, is not "+
			"possible", link.Rate, link.Share, link.Ack)
	}
	if s.cfg.Buffers.Count > 0 {
		return errors.New("a controller paces writes in the list in which reads would wait for buffers; use buffers.count: 0")
	}
	t := &s.targets[target]
	if !s.protocol.Capsules() || !s.own {
		return errors.New("a controller needs persistent queue pairs")
	}
	if t.steered != nil || len(t.drives) == 0 {
		return fmt.Errorf("target %d already has a controller, or has no drives", target)
	}
	x := &steered{ctl: ctl, line: link.Rate, payload: link.Share, given: given,
		sends: ratecontrol.NewPace(ratecontrol.Slack), writes: ratecontrol.NewPace(ratecontrol.Slack)}
	x.timer = s.eng.NewTimer(s.self, s.target, evSteer, uint32(target))
	x.sendsDue = s.eng.NewTimer(s.self, s.target, evSendsDue, uint32(target))
	x.writesDue = s.eng.NewTimer(s.self, s.target, evWritesDue, uint32(target))
	for range t.drives {
		x.queues = append(x.queues, ratecontrol.NewQueues(min(depth, s.cfg.DriveDepth)))
	}
	x.steering = ratecontrol.Steering{Weights: make([]ratecontrol.Weights, len(t.drives)),
		Depth: min(depth, s.cfg.DriveDepth), TXQ: int64(s.cfg.TXQ), Line: x.data(link.Rate),
		Toll: link.Ack * link.Share, Wake: sim.Forever}
	x.told = x.steering.Line
	x.passed = make([]bool, len(t.drives))
	for k, d := range t.drives {
		if len(s.drives[d].queues) != 1 {
			return fmt.Errorf("drive %d has %d queues; a controller divides one", d, len(s.drives[d].queues))
		}
		s.drives[d].number = int32(k)
	}
	ctl.Start(&x.steering)
	for _, q := range x.queues {
		q.SetPartition(x.steering.Partition)
	}
	t.steered = x
	s.steers = true
	s.apply(t)
	s.awaken(x)
	return nil
}

// data returns the bytes of data per second at a rate.
func (x *steered) data(r units.BitRate) float64 { return float64(r) / 8 * x.payload }

// Steering returns a controller's settings and its drives' queues, or nil.
func (s *System) Steering(target int32) (*ratecontrol.Steering, []*ratecontrol.Queues) {
	exists("target", target, len(s.targets))
	x := s.targets[target].steered
	if x == nil {
		return nil, nil
	}
	return &x.steering, x.queues
}

// Demanded returns the bytes per second that are asked of a target with a controller.
func (s *System) Demanded(target int32) float64 { return s.controlled(target).told }

// controlled returns the state of a target that must have a controller.
func (s *System) controlled(target int32) *steered {
	exists("target", target, len(s.targets))
	x := s.targets[target].steered
	if x == nil {
		panic(fmt.Sprintf("nvmf: target %d has no controller", target))
	}
	return x
}

// Received returns the acknowledged bytes of a controlled target's answers.
func (s *System) Received(target int32) int64 { return s.controlled(target).sent }

// InTXQ returns the fill level of a target's transmit queue.
func (s *System) InTXQ(target int32) units.Bytes {
	exists("target", target, len(s.targets))
	return s.targets[target].used
}

// Demands replaces the network's demands for controllers given them in Steer.
func (s *System) Demands(list []ratecontrol.Demanded) {
	for i := range list {
		if d := &list[i]; d.At < s.eng.Now() || i > 0 && d.At < list[i-1].At || d.Rate < 0 {
			s.fail(fmt.Errorf("nvmf: demand %d, %v at %v, is negative or before an earlier time", i, d.Rate, d.At))
			return
		}
	}
	s.demands = list
	if len(list) > 0 {
		s.eng.Schedule(s.self, s.target, list[0].At, evDemand, 0)
	}
}

// demanded applies a given demand that is due.
func (s *System) demanded(k int32) {
	for i := range s.targets {
		if t := &s.targets[i]; t.steered != nil && t.steered.given {
			s.demand(t, float64(s.demands[k].Rate)/8)
		}
	}
	if k++; int(k) < len(s.demands) {
		s.eng.Schedule(s.self, s.target, s.demands[k].At, evDemand, uint32(k))
	}
}

// follow adds a newly opened queue pair to its target's demand.
func (s *System) follow(q fabric.QP, target int32) {
	x := s.targets[target].steered
	if x == nil || x.given {
		return
	}
	for int(q) >= len(s.pace) {
		s.pace = append(s.pace, pace{target: -1})
	}
	s.pace[q] = pace{target, x.line}
	x.demand += x.line
	x.steering.Pairs++
}

// unfollow removes a queue pair that has ended from its target's demand.
func (s *System) unfollow(q fabric.QP) {
	if int(q) >= len(s.pace) || s.pace[q].target < 0 {
		return
	}
	t := &s.targets[s.pace[q].target]
	x := t.steered
	x.demand -= s.pace[q].rate
	x.steering.Pairs--
	s.pace[q] = pace{target: -1}
	s.demand(t, x.data(min(x.demand, x.line)))
}

// pace is a target's queue pair and the rate at which it may send.
type pace struct {
	target int32
	rate   units.BitRate
}

// Paced is for the network's OnRate.
func (s *System) Paced(c fabric.RateChange) {
	if uint(c.QP) >= uint(len(s.pace)) || s.pace[c.QP].target < 0 {
		return
	}
	p := &s.pace[c.QP]
	t := &s.targets[p.target]
	rate := c.Sender.Demand(c.RTT)
	t.steered.demand += rate - p.rate
	p.rate = rate
	// Several uncongested queue pairs may each have the full line rate, hence the bound.
	s.demand(t, t.steered.data(min(t.steered.demand, t.steered.line)))
}

func (s *System) demand(t *transmitter, rate float64) {
	x := t.steered
	if rate == x.told {
		return
	}
	x.signal = ratecontrol.Signal{Event: ratecontrol.Demand, Now: s.eng.Now(), Rate: rate, Cut: rate < x.told}
	x.told = rate
	s.reportDemand(t)
	s.react(t)
}

// react passes a target's signal to its controller and applies the resulting settings.
func (s *System) react(t *transmitter) {
	x := t.steered
	limit, sends, writes := x.steering.ReadLimit, x.steering.SendRate, x.steering.WriteRate
	x.ctl.React(&x.steering, &x.signal)
	if changed := s.apply(t); changed || x.steering.ReadLimit == 0 && limit > 0 || x.steering.ReadLimit > limit {
		s.admitAll(t)
	}
	if x.steering.SendRate != sends {
		x.sends.SetRate(s.eng.Now(), x.steering.SendRate)
		s.answerAll(t)
	}
	if x.steering.WriteRate != writes {
		x.writes.SetRate(s.eng.Now(), x.steering.WriteRate)
		s.fetchAll(t)
	}
	s.awaken(x)
}

// apply sets the requested weights, and reports whether any changed.
func (s *System) apply(t *transmitter) (changed bool) {
	x := t.steered
	for k, q := range x.queues {
		w := x.steering.Weights[k]
		if r, wr := q.Weights(); r != w.Read || wr != w.Write {
			q.SetWeights(w.Read, w.Write)
			s.reportRatio(t.drives[k], w)
			changed = true
		}
	}
	return changed
}

// awaken sets the timer that the controller requested.
func (s *System) awaken(x *steered) {
	switch wake := x.steering.Wake; {
	case wake == sim.Forever:
		s.eng.Disarm(x.timer)
	default:
		s.eng.Arm(x.timer, max(wake, s.eng.Now()))
	}
}

// woken handles a controller's timer.
func (s *System) woken(target int32) {
	t := &s.targets[target]
	t.steered.steering.Wake = sim.Forever
	t.steered.signal = ratecontrol.Signal{Event: ratecontrol.Timer, Now: s.eng.Now()}
	s.react(t)
}

// queue adds a command to the separate queues of its drive.
func (s *System) queue(c int32) {
	x := s.commands.At(c)
	d := &s.drives[x.drive]
	t := &s.targets[x.target]
	q := t.steered.queues[d.number]
	waited := q.Waiting(ratecontrol.ReadQueue) + q.Waiting(ratecontrol.WriteQueue)
	x.ticket = q.Push(c, x.req.Op, x.req.Namespace, x.req.Offset, x.req.Length)
	if x.req.Op <= block.Write {
		t.steered.signal = ratecontrol.Signal{Event: ratecontrol.Arrived, Op: x.req.Op, Drive: d.number,
			Now: s.eng.Now(), Bytes: x.req.Length}
		s.react(t)
	}
	s.admit(x.drive)
	if n := q.Waiting(ratecontrol.ReadQueue) + q.Waiting(ratecontrol.WriteQueue); n > waited {
		s.Counters.HeldAtTarget++
		s.Counters.MostAtTarget = max(s.Counters.MostAtTarget, int32(n))
	}
}

// admit fetches commands from a drive's separate queues while they have any for it.
func (s *System) admit(drive int32) {
	for s.admitOne(drive) {
	}
}

// admitOne fetches one command from a drive's separate queues, if they have one for it.
func (s *System) admitOne(drive int32) bool {
	d := &s.drives[drive]
	t := &s.targets[d.target]
	x := t.steered
	q := x.queues[d.number]
	q.Hold(ratecontrol.ReadQueue, x.holdsReads())
	c, _, ok := q.Next()
	if !ok {
		return false
	}
	y := s.commands.At(c)
	if y.req.Op == block.Read {
		x.steering.Reading += s.readBytes(y)
	}
	if !s.enter(d, &d.queues[0], c) {
		s.fail(fmt.Errorf("drive %d refuses a command with %d of %d outstanding", drive, d.inside, x.steering.Depth))
		return false
	}
	return true
}

// holdsReads reports whether the outstanding reads have reached their limit in bytes.
func (x *steered) holdsReads() bool {
	return x.steering.ReadLimit > 0 && x.steering.Reading >= x.steering.ReadLimit
}

// admitAll fetches for all of a target's drives. The reads' shared limit goes to the oldest reads first, whichever
// drives they are on: otherwise the reads of a busier drive would wait longer, and the slowest of all with them.
func (s *System) admitAll(t *transmitter) {
	x := t.steered
	n := len(t.drives)
	if n > 1 && x.steering.ReadLimit > 0 {
		clear(x.passed)
		for !x.holdsReads() {
			k := s.oldestRead(x)
			if k < 0 {
				break
			}
			x.passed[k] = !s.admitOne(t.drives[k])
		}
	}
	x.turn++
	for i := range n {
		s.admit(t.drives[(x.turn+i)%n])
	}
}

// oldestRead returns the drive, among those not passed over, whose read queue has the oldest command; -1 if there is
// none.
func (s *System) oldestRead(x *steered) int {
	oldest, since := -1, sim.Forever
	for k, q := range x.queues {
		if c, ok := q.First(ratecontrol.ReadQueue); ok && !x.passed[k] && s.commands.At(c).arrived < since {
			oldest, since = k, s.commands.At(c).arrived
		}
	}
	return oldest
}

// readBytes returns the transmit queue space of a read that succeeds.
func (s *System) readBytes(x *command) int64 {
	if s.protocol == NVMeTCP {
		return int64(s.cfg.TCP.answer(units.Bytes(x.req.Length)))
	}
	return x.req.Length + int64(responseSize)
}

// noteEnded reports a command that a drive has completed to the controller.
func (s *System) noteEnded(x *command) {
	t := &s.targets[x.target]
	if x.req.Op > block.Write {
		return
	}
	limit, held := t.steered.steering.ReadLimit, t.steered.holdsReads()
	if x.req.Op == block.Read && !x.reads() {
		t.steered.steering.Reading -= s.readBytes(x) - int64(s.answerSize(x)) // it has failed, and returns no data
	}
	t.steered.signal = ratecontrol.Signal{Event: ratecontrol.Ended, Op: x.req.Op, Drive: s.drives[x.drive].number,
		Now: s.eng.Now(), Bytes: x.req.Length, Took: s.eng.Now() - x.driveIn}
	s.react(t)
	s.resumeReads(t, held, limit)
}

// resumeReads fetches for all of a target's drives if outstanding reads had reached a limit in bytes and are now below
// it. Reads of other drives than the one that released the bytes wait for it as well.
func (s *System) resumeReads(t *transmitter, held bool, limit int64) {
	if held && t.steered.steering.Reading < limit {
		s.admitAll(t)
	}
}

// noteSent records that bytes of reads' answers were acknowledged.
func (s *System) noteSent(t *transmitter, bytes int64, ended sim.Time) {
	x := t.steered
	limit, held := x.steering.ReadLimit, x.holdsReads()
	x.steering.Reading -= bytes
	x.sent += bytes
	x.signal = ratecontrol.Signal{Event: ratecontrol.Sent, Now: s.eng.Now(), Bytes: bytes, Took: s.eng.Now() - ended}
	s.react(t)
	s.resumeReads(t, held, limit)
}

// checkSteered reports an inconsistent state of a target's controller.
func (s *System) checkSteered(t *transmitter) error {
	x := t.steered
	for k, d := range t.drives {
		q := x.queues[k]
		if err := q.Check(); err != nil {
			return fmt.Errorf("drive %d: %w", d, err)
		}
		if n := q.Inside(ratecontrol.ReadQueue) + q.Inside(ratecontrol.WriteQueue); n != int(s.drives[d].inside) {
			return fmt.Errorf("drive %d: %d commands in it, of which its separate queues know %d", d,
				s.drives[d].inside, n)
		}
	}
	if x.steering.Reading < 0 {
		return fmt.Errorf("reads have %d bytes under way", x.steering.Reading)
	}
	return nil
}
