package nvmf_test

import (
	"errors"
	"testing"

	"farflash/block"
	"farflash/nvmf"
	"farflash/units"
)

// incast has two targets answer one initiator's reads of 44 KB and take another's writes of 23 KB, the sizes of SRC's first experiment
// (section IV-D), and returns what was done of each in ten milliseconds.
func incast(t *testing.T, reads int, change func(*nvmf.Config)) (k nvmf.Counters, done [2]int) {
	t.Helper()
	l := defaultLayout()
	l.initiators, l.targets = 2, 2
	change(&l.cfg)
	r := newRig(t, l)
	for target := range int32(2) {
		for range reads {
			r.ask(ask{initiator: 0, drive: target, req: block.Request{Op: block.Read, Length: 44_000 / 512 * 512}})
		}
		for range 8 {
			r.ask(ask{initiator: 1, drive: target, req: block.Request{Op: block.Write, Length: 23_000 / 512 * 512}})
		}
	}
	r.onEnded = func(d *nvmf.Done) {
		r.done = r.done[:0]
		done[d.Op]++
		r.sys.Submit(d.Initiator, d.Drive, block.Request{Op: d.Op, Length: d.Length})
	}
	r.eng.Run(10 * units.Millisecond)
	if err := errors.Join(r.sys.Err(), r.sys.Check(), r.net.Check()); err != nil {
		t.Fatal(err)
	}
	return r.sys.Counters, done
}

// TestTXQHoldsWrites: SRC's mechanism (section II). When two targets' reads meet at one initiator, congestion control stacks them in the targets' transmit queues.
// While these have room, another initiator's writes do not notice. Once they are full, "the entries in CQ are sequentially transferred into
// TXQ", so that a write's completion waits behind reads that find no room: writes of a network and drives that could take them collapse.
// With a transmit queue that holds everything nothing else may do that.
func TestTXQHoldsWrites(t *testing.T) {
	none, alone := incast(t, 0, func(*nvmf.Config) {})
	_, wide := incast(t, 100, func(*nvmf.Config) {})
	held, narrow := incast(t, 100, func(c *nvmf.Config) { c.TXQ = 512 * units.KiB })
	t.Logf("writes %d alone, %d beside reads, %d with full transmit queues; reads %d, %d", alone[1], wide[1], narrow[1], wide[0], narrow[0])
	if none.HeldAtTXQ > 0 || held.HeldAtTXQ == 0 {
		t.Errorf("%d and %d answers waited for room", none.HeldAtTXQ, held.HeldAtTXQ)
	}
	if float64(wide[1]) < 0.9*float64(alone[1]) {
		t.Errorf("%d writes beside reads with room for all, %d alone", wide[1], alone[1])
	}
	if float64(narrow[1]) > 0.5*float64(wide[1]) {
		t.Errorf("%d writes with full transmit queues, %d with room: SRC's collapse is missing", narrow[1], wide[1])
	}
	if float64(narrow[0]) < 0.9*float64(wide[0]) {
		t.Errorf("%d reads with full transmit queues, %d with room: the line is the bound of both", narrow[0], wide[0])
	}
}
