package system

import (
	"fmt"

	"farflash/block"
	"farflash/model/fabric"
	"farflash/model/nvmf"
	"farflash/model/ssd"
	"farflash/numeric/units"
	"farflash/result"
	"farflash/sim"
)

// tap is a system in its role as the sink of the network and of the drives. It measures the time of the system's
// messages in the network, by the network's timestamps, and the time of commands in targets between network and drives,
// by the timestamps of both; and reports messages that do not belong to the system.
type tap struct {
	*nvmf.System
	net       func() *fabric.Network
	now       func() sim.Time
	capsules  bool
	out, back sim.Time // sums over all that have arrived
	// from a message with a command or its data to its drive, or to the message that requests the data
	target   sim.Time
	txq      sim.Time // from a drive to the first packet of the response
	commands []passage
	ended    sim.Probe[int32]
	// forgot fires for a completed message of the system, whose number may be reused.
	forgot sim.Probe[int32]
}

// passage is the progress of a command.
type passage struct {
	came  sim.Time // arrival of the latest message at its target
	ended sim.Time // completion in its drive
	data  sim.Time // arrival of its data at the initiator, if the response is still due
	early sim.Time // arrival of its response at the initiator, if the data are still due
	reads bool     // its data are still due
}

// door is a drive in its role as a target's device: it records the commands that the drive accepts.
type door struct {
	*ssd.Drive
	t   *tap
	eng *sim.Engine
}

// Submit implements block.Device. A request's tag is its command's number.
func (d door) Submit(q block.QueueID, r block.Request) bool {
	if !d.Drive.Submit(q, r) {
		return false
	}
	d.t.target += d.eng.Now() - d.t.passage(int32(r.Tag)).came
	return true
}

// Complete implements the drives' sink.
func (t *tap) Complete(c block.Completion) {
	p := t.passage(int32(c.Tag))
	p.ended, p.reads = c.Finished, c.Op == block.Read && c.Status == block.OK
	t.System.Complete(c)
}

// passage returns the progress of a command.
func (t *tap) passage(command int32) *passage {
	for int(command) >= len(t.commands) {
		t.commands = append(t.commands, passage{})
	}
	return &t.commands[command]
}

// Delivered implements fabric.Sink.
func (t *tap) Delivered(m int32) {
	if t.Carries(m) {
		t.count(m)
	}
	t.System.Delivered(m)
}

// count adds a message's time by the network's timestamps. A response is in flight from its first packet on; one that
// follows a read's data, from the arrival of the data. If each message has its own connection, as in ns3-rdma, a
// response may overtake the data: then the whole time counts for the data.
func (t *tap) count(m int32) {
	kind, command := t.Carried(m)
	if kind >= nvmf.Admin {
		return
	}
	x := &t.net().Messages()[m]
	p := t.passage(command)
	switch kind {
	case nvmf.Data:
		t.back += x.Delivered - x.Begun
		t.txq += x.Begun - p.ended
		p.data, p.reads, p.early = x.Delivered, false, 0
	case nvmf.Response:
		if p.reads {
			p.early = x.Delivered
			return
		}
		if p.data == 0 {
			p.data = x.Begun
			t.txq += x.Begun - p.ended
		}
		t.back += max(x.Delivered-p.data, 0)
		p.data = 0
	case nvmf.Pull:
		t.out += x.Delivered - x.Posted
		t.target += x.Posted - p.came
	default:
		t.out += x.Delivered - x.Posted
		*p = passage{came: x.Delivered}
	}
}

// refused accounts for a command that its target refuses, without the drive.
func (t *tap) refused(command int32) {
	p := t.passage(command)
	now := t.now()
	t.target += now - p.came
	p.ended, p.reads = now, false
}

// dropped accounts for a message that ended with its connection. A request for data that has not arrived has ended its
// command's time at the target.
func (t *tap) dropped(m int32) {
	x := &t.net().Messages()[m]
	if kind, command := t.Carried(m); kind == nvmf.Pull && x.Delivered == sim.Forever {
		t.target += x.Posted - t.passage(command).came
	}
	if t.forgot != nil {
		t.forgot(m)
	}
}

// Acked implements fabric.Sink.
func (t *tap) Acked(m int32) {
	own := t.Carries(m)
	t.System.Acked(m)
	switch {
	case own && t.forgot != nil:
		t.forgot(m)
	case !own && t.ended != nil:
		t.ended(m)
	}
}

// check compares the times of commands recorded by targets and initiators with those of their neighbours: a command's
// time in the network with its messages' times, its time in a drive with the drive's, and its time in a target on
// either side of the drive with the interval between network and drive. The rest of its latency is the initiator's.
func (t *tap) check(r *result.Result, drives []*ssd.Drive) {
	k := &t.Counters
	err := t.Check()
	detail := fmt.Sprintf("%d commands submitted, %d ended", k.Submitted, k.Ended)
	if err != nil {
		detail = err.Error()
	}
	r.Check("commands conserved, their stages add up", err == nil, detail)

	spent := t.Spent()
	back, txq := t.overtaken()
	back, txq = back+t.back, txq+t.txq
	r.Check("time in the network is its messages'", spent[nvmf.NetworkOut] == t.out && spent[nvmf.NetworkBack] == back,
		fmt.Sprintf("commands were on their way out for %v and back for %v; their messages took %v and %v",
			spent[nvmf.NetworkOut], spent[nvmf.NetworkBack], t.out, back))

	r.Check("time before answers is between drives and network", spent[nvmf.TXQ] == txq,
		fmt.Sprintf("commands were in transmit queues and before them for %v; from drives to the first packets it "+
			"was %v", spent[nvmf.TXQ], txq))
	if t.capsules {
		target := t.target + t.asked()
		r.Check("time at targets is between network and drives", spent[nvmf.AtTarget] == target,
			fmt.Sprintf("commands were at targets for %v; from the network to drives, and to what asked for their "+
				"data, it was %v", spent[nvmf.AtTarget], target))
	}

	ok := true
	var ours, theirs units.Total
	detail = ""
	for i, d := range drives {
		s := d.Stats()
		for op, visited := range t.Visited(int32(i)) {
			all := s.Breakdown[op].All
			ours, theirs = ours.Plus(visited), theirs.Plus(all)
			if visited != all && ok {
				ok = false
				detail = fmt.Sprintf("%ss were in drive %d for %v, it says %v", block.Op(op), i, visited, all)
			}
		}
	}
	if ok {
		detail = fmt.Sprintf("commands that ended well were in drives for %v, and drives had them for %v", ours, theirs)
	}
	r.Check("time in drives is what they say", ok, detail)
}

// overtaken accounts for commands whose response has arrived before their data: they are in the network from the first
// packet of the data until the response, if the data were sent before it.
func (t *tap) overtaken() (back, txq sim.Time) {
	messages := t.net().Messages()
	for m := range messages {
		if x := &messages[m]; x.Delivered == sim.Forever && t.Carries(int32(m)) {
			if kind, command := t.Carried(int32(m)); kind == nvmf.Data && t.commands[command].early >= x.Begun {
				p := t.commands[command]
				back += p.early - x.Begun
				txq += x.Begun - p.ended
			}
		}
	}
	return back, txq
}

// asked is the time in their targets of commands whose data have been requested by messages that have not arrived.
func (t *tap) asked() sim.Time {
	sum := sim.Time(0)
	messages := t.net().Messages()
	for m := range messages {
		if x := &messages[m]; x.Delivered == sim.Forever && t.Carries(int32(m)) {
			if kind, command := t.Carried(int32(m)); kind == nvmf.Pull {
				sum += x.Posted - t.commands[command].came
			}
		}
	}
	return sum
}
