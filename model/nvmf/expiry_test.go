package nvmf_test

import (
	"testing"

	"farflash/block"
	"farflash/model/fabric"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/sim"
)

const sec = units.Second

// watched has targets with timers and initiators that state a second.
func watched(k nvmf.KeepAliveTimer) func(*nvmf.Config) {
	return func(c *nvmf.Config) {
		c.KeepAliveTimer, c.Host.KeepAlive, c.Host.IOTimeout = k, sec, 0
	}
}

func commandSize(p nvmf.Protocol) units.Bytes {
	if p == nvmf.NVMeTCP {
		return 72
	}
	return 64
}

// closingTime is that of a closing message.
func closingTime(p nvmf.Protocol) sim.Time {
	if p == nvmf.NVMeTCP {
		return trip(1)
	}
	return trip(256)
}

var write64k = block.Request{Op: block.Write, Length: 65536}

// holds verifies that the target holds a write's memory until a time and not afterwards.
func holds(t *testing.T, what string, o *outage, until sim.Time) {
	t.Helper()
	o.run(until - 1)
	if _, m := o.sys.Held(0); m != 65536 {
		t.Errorf("%s: it holds %v before %v", what, m, until)
	}
	o.run(until)
	if _, m := o.sys.Held(0); m != 0 {
		t.Errorf("%s: it holds %v at %v", what, m, until)
	}
}

// TestTargetExpires is the sequence of timers of a path that dies once a write's command has arrived, at 1.55 s. The
// keep-alive of 1.5 s was the last, so that the target's period ends a second after it, and as commands arrived in it,
// another a second later. The initiator asks at 2 s and gives up at 3 s; its closing message is lost.
func TestTargetExpires(t *testing.T) {
	for _, p := range transports {
		arrived := 1550*ms + trip(commandSize(p))
		o := newOutage(t, p, watched(nvmf.LinuxTimer), func(at sim.Time) bool { return at > arrived })
		o.ask(0, read4k)
		o.ask(1550*ms, write64k)
		o.run(3*sec - 1)
		if f := o.sys.Counters.Failures; f.Losses != 0 {
			t.Errorf("%v: lost before 3 s", p)
		}
		o.run(3 * sec)
		if f := o.sys.Counters.Failures; f.Losses != 1 || f.Unalive != 1 {
			t.Errorf("%v: not lost at 3 s: %+v", p, f)
		}
		holds(t, p.String(), o, 1500*ms+trip(commandSize(p))+2*sec)
		if n := o.sys.Counters.Expired; n != 1 {
			t.Errorf("%v: %d expired", p, n)
		}
	}
}

// TestClosingArrives: if only the way back is dead, the initiator's closing message ends what the target holds.
func TestClosingArrives(t *testing.T) {
	for _, p := range transports {
		o := newOutage(t, p, watched(nvmf.LinuxTimer), nil)
		o.net.Lost = func(src, _ int32) bool { return src == 1 && o.eng.Now() >= 1550*ms }
		o.ask(0, read4k)
		o.ask(1550*ms, write64k)
		o.run(3 * sec) // asked at 2 s
		if f := o.sys.Counters.Failures; f.Losses != 1 {
			t.Errorf("%v: %+v", p, f)
		}
		holds(t, p.String(), o, 3*sec+closingTime(p))
		if n := o.sys.Counters.Expired; n != 0 {
			t.Errorf("%v: %d expired", p, n)
		}
		// The initiator's timers alone do that without a target's.
		o = newOutage(t, p, watched(nvmf.NoTimer), nil)
		o.net.Lost = func(src, _ int32) bool { return src == 1 && o.eng.Now() >= 1550*ms }
		o.ask(0, read4k)
		o.ask(1550*ms, write64k)
		holds(t, p.String(), o, 3*sec)
	}
}

// TestTargetExpiresFirst: with reads each 100 ms until a path is dead at 1.96 s the target's periods end with the
// second. That of 3 s saw nothing, and the target ends the controller. The initiator asked at 2.5 s, and would give up
// at 3.5 s. If the path is back at 2.9 s the target's closing message says so earlier; then the initiator connects
// again and repeats the read of 2.7 s.
func TestTargetExpiresFirst(t *testing.T) {
	for _, p := range transports {
		for _, back := range []sim.Time{2900 * ms, 3400 * ms} {
			o := newOutage(t, p, watched(nvmf.LinuxTimer), func(at sim.Time) bool { return at >= 1960*ms && at < back })
			for at := sim.Time(0); at < 1960*ms; at += 100 * ms {
				o.ask(at, read4k)
			}
			o.ask(2700*ms, read4k)
			o.ask(3050*ms, read4k) // is lost without a message, or waits
			o.run(20 * sec)
			lost := 3*sec + closingTime(p)
			if back > 3*sec {
				lost = 3500 * ms
			}
			want := lost + 10*ms + connecting(p, 1) + readTime(p)
			if d := o.done[20]; d.Ended != want || d.Status != block.OK {
				t.Errorf("%v, back at %v: the read ended at %v with %v, not at %v", p, back, d.Ended, d.Status, want)
			}
			if f := o.sys.Counters.Failures; f.Expired != 1 || f.Losses != 1 || f.Connected != 1 || len(o.done) != 22 {
				t.Errorf("%v, back at %v: %+v, %d of 22 ended", p, back, f, len(o.done))
			}
			if err := o.sys.Idle(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestSPDKsTimer looks each 10 s for the last keep-alive, which initiators send each half second whatever the load:
// after a path's end at 11 s, the look at 20 s finds it 9.5 s old, and that at 30 s ends the controller.
func TestSPDKsTimer(t *testing.T) {
	for _, p := range transports {
		arrived := 11*sec + trip(commandSize(p))
		o := newOutage(t, p, watched(nvmf.SPDKTimer), func(at sim.Time) bool { return at > arrived })
		for at := sim.Time(0); at < 11*sec; at += 100 * ms {
			o.ask(at, read4k)
		}
		o.ask(11*sec, write64k)
		holds(t, p.String(), o, 30*sec)
		if n := o.sys.Counters.Expired; n != 1 {
			t.Errorf("%v: %d expired", p, n)
		}
		// A target that hears its keep-alives never ends a controller, with load and without.
		for _, k := range []nvmf.KeepAliveTimer{nvmf.LinuxTimer, nvmf.SPDKTimer} {
			o = newOutage(t, p, watched(k), nil)
			for at := 20 * sec; at < 60*sec; at += 70 * ms {
				o.ask(at, read4k)
			}
			o.ask(0, read4k)
			o.run(100 * sec)
			if f := o.sys.Counters.Failures; f != (nvmf.Failures{}) {
				t.Errorf("%v, %v: %+v", p, k, f)
			}
		}
	}
}

// TestRemainsBlock: two reads whose answers a dead path cannot take fill the transmit queue. Their repetitions by the
// other path wait for that until the target's timer expires: the second period, which ends at 2 s, has no command.
func TestRemainsBlock(t *testing.T) {
	for _, p := range transports {
		for _, k := range []nvmf.KeepAliveTimer{nvmf.NoTimer, nvmf.LinuxTimer} {
			arrived := 50*ms + 2*trip(commandSize(p)) - 10*us
			o := newPaths(t, p, 2, func(c *nvmf.Config) {
				watched(k)(c)
				c.Host.IOTimeout, c.TXQ = 100*ms, 2*(4096+24)
			}, func(at sim.Time, path int32) bool { return path == 0 && at > arrived })
			o.ask(0, read4k)
			o.ask(50*ms, read4k)
			o.ask(50*ms, read4k)
			o.run(10 * sec)
			want := 150*ms + readTime(p)
			if k == nvmf.LinuxTimer {
				want = 2*sec + readTime(p) - trip(commandSize(p)) - 80*us
			}
			if d := o.done[1]; d.Ended != want {
				t.Errorf("%v, %v: the first ended at %v, not at %v", p, k, d.Ended, want)
			}
			if len(o.done) != 3 {
				t.Errorf("%v, %v: %d ended", p, k, len(o.done))
			}
			if q, m := o.sys.Held(0); q != 0 || m != 0 {
				t.Errorf("%v, %v: %v and %v are held", p, k, q, m)
			}
		}
	}
}

// TestExpiresAnywhere breaks connections and takes the network away for more than a period, from each microsecond of a
// mixed load on: all commands end well, once, and nothing that they held remains held.
func TestExpiresAnywhere(t *testing.T) {
	for _, p := range transports {
		for when := range sim.Time(160) {
			for _, k := range []nvmf.KeepAliveTimer{nvmf.LinuxTimer, nvmf.SPDKTimer} {
				paths := int32(1 + when%2)
				o := newPaths(t, p, paths, func(c *nvmf.Config) {
					watched(k)(c)
					c.Host.IOTimeout, c.Host.MaxRetries = []units.Duration{100 * ms, 25 * sec}[when/2%2], 255
					c.Multipath.Policy = nvmf.TurnPaths
					c.QueuePairs, c.QueueDepth, c.DriveDepth = 2, 8, 3
					c.Reads = nvmf.Reads{Target: 2, Initiator: 2}
					c.TXQ, c.WriteBuffers = 20*units.KiB, 40*units.KiB
					if when%5 < 2 {
						c.Buffers = nvmf.Buffers{Count: 5, Size: 8 * units.KiB}
					}
					if p == nvmf.NVMeoF {
						c.Receives = nvmf.Receives{Shared: []int{0, 2, 5}[when%3], RNRTimer: 15360 * us}
					}
				}, func(at sim.Time, path int32) bool {
					return at >= when*us && at < when*us+sim.Time(path+1)*17*sec || at >= 40*sec && at < 43*sec
				})
				for i := range sim.Time(60) {
					r := block.Request{Op: block.Op(i % 2), Length: []int64{4096, 8192, 16384}[i%3]}
					o.ask(i*us, r)
					o.ask(40*sec-30*us+i*us, r)
				}
				if when%3 == 0 {
					o.breakAt(when*us+5*us, 0)
					o.breakAt(40*sec, fabric.QP(when))
				}
				o.run(400 * sec)
				if len(o.done) != 120 || o.sys.Counters.Failed > 0 {
					t.Fatalf("%v, %v, %v: %d of 120 ended, %d failed; %+v", p, k, when, len(o.done), o.sys.Counters.Failed,
						o.sys.Counters.Failures)
				}
				tags := map[uint64]bool{}
				for _, d := range o.done {
					tags[d.Tag] = true
				}
				if len(tags) != 120 {
					t.Fatalf("%v, %v, %v: only %d different requests ended", p, k, when, len(tags))
				}
				if err := o.sys.Idle(); err != nil {
					t.Fatalf("%v, %v, %v: %v", p, k, when, err)
				}
			}
		}
	}
}
