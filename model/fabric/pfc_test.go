package fabric

import (
	"fmt"
	"testing"

	"farflash/model/fabric/setting"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/sim"
)

// circleOf returns a ring of switches with two hosts each.
func circleOf(t failer, switches int) *topo.Graph {
	t.Helper()
	var links []topo.LinkSpec
	for i := range switches {
		s := fmt.Sprintf("s%d", i)
		links = append(links, topo.LinkSpec{A: s, B: fmt.Sprintf("s%d", (i+1)%switches)},
			topo.LinkSpec{A: fmt.Sprintf("h%d", 2*i), B: s}, topo.LinkSpec{A: fmt.Sprintf("h%d", 2*i+1), B: s})
	}
	return build(t, topo.Config{Links: links}, 40*units.Gbps, 40*units.Gbps, units.Microsecond)
}

// lockUp posts messages two hops around a ring of five, which have only one shortest path.
func lockUp(t *testing.T, quanta int, action setting.WatchdogAction, size units.Bytes) *rig {
	t.Helper()
	c := plain()
	c.PFC.Quanta = quanta
	c.Watchdog = setting.Watchdog{After: units.Millisecond, Action: action}
	c.Recovery.Timeout = Timeout{Time: 4 * units.Millisecond}
	c.Buffer = 250 * units.KiB
	const switches = 5
	r := newRig(t, c, circleOf(t, switches), 1)
	for i := range int32(switches) {
		for k := range int32(2) {
			r.mustSend(t, 2*i+k, 2*((i+2)%switches)+k, 1, size)
		}
	}
	return r
}

// TestDeadlock drives a ring into a deadlock, which the watchdog must name.
func TestDeadlock(t *testing.T) {
	for _, quanta := range []int{0, 65535, 500} {
		r := lockUp(t, quanta, WatchdogReport, 2*units.MB)
		var cycle []int32
		r.net.OnStuck = func(s Stuck) {
			if s.Cycle != nil && cycle == nil {
				cycle = s.Cycle
				if s.Cycle[0] != s.Port {
					t.Errorf("the cycle begins with port %d, not %d", s.Cycle[0], s.Port)
				}
			}
		}
		r.eng.Run(50 * units.Millisecond)
		r.check(t)
		if len(cycle) != 5 {
			t.Fatalf("quanta %d: cycle %s; %d completed, %d storms", quanta, r.net.CycleName(cycle),
				r.net.Counters.Completed, r.net.Counters.Storms)
		}
		for i, pi := range cycle {
			if next := cycle[(i+1)%len(cycle)]; r.net.ports[r.net.ports[pi].peer].node != r.net.ports[next].node {
				t.Errorf("%s does not lead to %s", r.net.PortName(pi), r.net.PortName(next))
			}
		}
		if r.net.Counters.Completed != 0 || r.net.Counters.Deadlocks != 1 {
			t.Errorf("%d messages completed, %d deadlocks counted, want one circle", r.net.Counters.Completed,
				r.net.Counters.Deadlocks)
		}
		if r.net.Counters.Drops[DropBuffer] > 0 {
			t.Errorf("%d packets lost, but a deadlock loses nothing", r.net.Counters.Drops[DropBuffer])
		}
	}
}

// TestDeadlockEnds verifies that a watchdog that ends pauses loses packets and lets all messages complete.
func TestDeadlockEnds(t *testing.T) {
	for _, quanta := range []int{0, 65535, 500} {
		r := lockUp(t, quanta, WatchdogIgnore, 300*units.KB)
		r.run(t, 2e7)
		r.drained(t)
		if r.net.Counters.Deadlocks == 0 || r.net.Counters.Drops[DropBuffer] == 0 {
			t.Errorf("quanta %d: %d deadlocks, %d drops", quanta, r.net.Counters.Deadlocks,
				r.net.Counters.Drops[DropBuffer])
		}
	}
}

// TestDeadlockProgress verifies that a watchdog that ends pauses lets go-back-N make progress, with the timer of a
// lossy network.
func TestDeadlockProgress(t *testing.T) {
	c := plain()
	c.Watchdog = setting.Watchdog{After: units.Millisecond, Action: WatchdogIgnore}
	c.Buffer = 250 * units.KiB
	r := newRig(t, c, circleOf(t, 5), 1)
	for i := range int32(5) {
		for k := range int32(2) {
			r.mustSend(t, 2*i+k, 2*((i+2)%5)+k, 1, 2*units.MB)
		}
	}
	was := uint64(0)
	for range 5 {
		r.eng.Run(r.eng.Now() + 20*units.Millisecond)
		if got := r.net.Counters.Received; got < was+500_000 {
			t.Errorf("at %v: %d bytes received, %d were 20 ms before", r.eng.Now(), got, was)
		}
		was = r.net.Counters.Received
	}
}

// TestDragonfly puts a dragonfly's virtual channels under heavy load, without deadlock or loss.
func TestDragonfly(t *testing.T) {
	g := build(t, topo.Config{Dragonfly: &topo.Dragonfly{Groups: 5, Routers: 4, HostsPerRouter: 2, GlobalLinks: 1}},
		40*units.Gbps, 40*units.Gbps, units.Microsecond)
	for _, acks := range []int{0, 3, 6} {
		c := plain()
		c.Acks.Class, c.Acks.HostClass = acks, acks
		c.Watchdog.After = units.Millisecond
		c.Buffer = 700 * units.KiB
		r := newRig(t, c, g, 1)
		r.net.OnStuck = func(s Stuck) {
			if s.Cycle != nil {
				t.Errorf("deadlock: %s", r.net.CycleName(s.Cycle))
			}
		}
		hosts := int32(g.Hosts())
		for i := range hosts {
			for k := range int32(3) {
				r.mustSend(t, i, (i+hosts/2+k*7+1)%hosts, 6, 200*units.KB)
			}
		}
		r.run(t, 3e7)
		r.drained(t)
		if r.net.Counters.DropCount() > 0 || r.net.Counters.Pauses == 0 {
			t.Errorf("acks in class %d: %d drops, %d pauses", acks, r.net.Counters.DropCount(), r.net.Counters.Pauses)
		}
		for i := range r.net.lanes {
			if l := &r.net.lanes[i]; l.most > 0 && i%MaxClasses > 7 {
				t.Errorf("lane %d", i)
			}
		}
	}
}

// TestRefresh verifies that a pause outlasts its quanta while it is needed, and that it expires when the switch stops
// refreshing it.
func TestRefresh(t *testing.T) {
	c := plain()
	c.PFC.Quanta = c.leastQuanta()
	c.PFC.Threshold = Threshold{Size: 20 * units.KB}
	r := newRig(t, c, star(t, 9, 10*units.Gbps, units.Microsecond), 1)
	for i := range int32(8) {
		r.mustSend(t, i+1, 0, 1, 500*units.KB)
	}
	r.run(t, 1e7)
	r.drained(t)
	if r.net.Counters.Refreshes == 0 || r.net.Counters.DropCount() > 0 {
		t.Errorf("%d refreshes, %d drops", r.net.Counters.Refreshes, r.net.Counters.DropCount())
	}
	// A pause without a sender that refreshes it expires.
	n := r.net
	n.paused(0, &n.ports[0], packet{kind: pauseFrame, class: 1})
	before := r.eng.Now()
	r.run(t, 1e7)
	if n.ports[0].paused != 0 || r.eng.Now()-before < n.lasts(&n.ports[0]) {
		t.Errorf("classes %b are paused after %v", n.ports[0].paused, r.eng.Now()-before)
	}
}

// TestFramesCoalesce verifies that a class has at most one frame waiting, and that its latest state counts.
func TestFramesCoalesce(t *testing.T) {
	r := newRig(t, plain(), star(t, 2, units.Gbps, units.Microsecond), 1)
	n := r.net
	pi := n.PortOf(0, false) // the switch's port towards h0
	p := &n.ports[pi]
	n.transmit(pi, p, packet{kind: cnpPacket, flags: answers, size: 1000}) // occupies the wire
	p.wire.Pop()
	for range 5 {
		n.pause(pi, p, n.lane(pi, 1), 1)
		n.resume(pi, p, n.lane(pi, 1), 1)
	}
	n.pause(pi, p, n.lane(pi, 2), 2)
	if p.frames.N != 2 || p.frames.First().kind != resumeFrame {
		t.Errorf("%d frames wait, the first is %d", p.frames.N, p.frames.First().kind)
	}
}

// TestClassesShare verifies the shares that the schedulers give two classes, at a sender's NIC and in a switch.
func TestClassesShare(t *testing.T) {
	for _, x := range []struct {
		scheduler setting.Scheduler
		weights   []int
		share     float64 // of class 1 while both send
	}{{DWRR, nil, .5}, {DWRR, []int{1, 3, 1}, .75}, {Strict, nil, 1}} {
		c := plain()
		c.Scheduler, c.Weights = x.scheduler, x.weights
		r := newRig(t, c, star(t, 3, 10*units.Gbps, units.Microsecond), 1)
		// Class 2 has been alone for a while, which must not be charged to it.
		r.send(post{0, 1, 0, 2, 4 * units.MB})
		at := 2 * units.Millisecond
		r.send(post{at, 1, 0, 1, units.MB})
		r.run(t, 1e7)
		r.drained(t)
		var first *Message
		for i := range r.net.Messages() {
			if m := &r.net.Messages()[i]; m.Size == units.MB {
				first = m
			}
		}
		alone := wireTime(units.MB*1106/1024, 10*units.Gbps)
		got := float64(alone) / float64(first.Delivered-at)
		if got < x.share*.98-.01 || got > x.share*1.02+.01 {
			t.Errorf("%v %v: class 1 had %.3f of the link, want %.3f", x.scheduler, x.weights, got, x.share)
		}
	}
}

// TestLateClass opens a second class while the first fills the buffer.
func TestLateClass(t *testing.T) {
	c := plain()
	c.PFC.Alpha = 8
	c.Buffer = 400 * units.KiB
	r := newRig(t, c, star(t, 9, 10*units.Gbps, units.Microsecond), 1)
	for i := range int32(8) {
		r.send(post{0, i + 1, 0, 1, 300 * units.KB})
		r.send(post{sim.Time(i+1) * 100 * units.Microsecond, i + 1, 0, 2, 300 * units.KB})
	}
	for at := sim.Time(0); at < 3*units.Millisecond; at += 20 * units.Microsecond {
		r.eng.Run(at)
		r.check(t)
	}
	r.run(t, 1e7)
	r.drained(t)
	if r.net.Counters.DropCount() > 0 || r.net.Counters.Pauses == 0 {
		t.Errorf("%d drops, %d pauses", r.net.Counters.DropCount(), r.net.Counters.Pauses)
	}
}
