package system

import (
	"fmt"

	"farflash/block"
	"farflash/fabric"
	"farflash/nvmf"
	"farflash/result"
	"farflash/sim"
	"farflash/ssd"
)

// tap is a system as a network's sink. It counts how long the network had the system's messages, by the network's own stamps, and
// tells of messages which are not the system's.
type tap struct {
	*nvmf.System
	net       func() *fabric.Network
	out, back sim.Time // sums of all that have arrived
	arrived   []sim.Time
	ended     sim.Probe[int32]
	// forgot tells of a message of the system that is over: its number may be another's.
	forgot sim.Probe[int32]
}

// Delivered implements fabric.Sink.
func (t *tap) Delivered(m int32) {
	if t.Carries(m) {
		t.count(m)
	}
	t.System.Delivered(m)
}

// count adds what the network says of a message. An answer is on its way from its first packet on; a response that follows a read's data, from when they
// have arrived.
func (t *tap) count(m int32) {
	kind, command := t.Carried(m)
	x := &t.net().Messages()[m]
	for int(command) >= len(t.arrived) {
		t.arrived = append(t.arrived, 0)
	}
	before := &t.arrived[command]
	switch kind {
	case nvmf.Data:
		t.back += x.Delivered - x.Begun
		*before = x.Delivered
	case nvmf.Response:
		if *before == 0 {
			*before = x.Begun
		}
		t.back += x.Delivered - *before
		*before = 0
	default:
		t.out += x.Delivered - x.Posted
		*before = 0
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

// check holds what the targets and initiators say of commands against what their neighbours say: a command's time in the network against
// those of its messages, its time in a drive against the drive's.
func (t *tap) check(r *result.Result, drives []*ssd.Drive) {
	k := &t.Counters
	err := t.Check()
	detail := fmt.Sprintf("%d commands submitted, %d ended", k.Submitted, k.Ended)
	if err != nil {
		detail = err.Error()
	}
	r.Check("commands conserved, their stages add up", err == nil, detail)

	spent := t.Spent()
	r.Check("time in the network is its messages'", spent[nvmf.NetworkOut] == t.out && spent[nvmf.NetworkBack] == t.back,
		fmt.Sprintf("commands were on their way out for %v and back for %v; their messages took %v and %v", spent[nvmf.NetworkOut], spent[nvmf.NetworkBack], t.out, t.back))

	ok := true
	var ours, theirs sim.Time
	detail = ""
	for i, d := range drives {
		s := d.Stats()
		for op, visited := range t.Visited(int32(i)) {
			all := s.Breakdown[op].All
			ours, theirs = ours+visited, theirs+all
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
