package nvmf_test

import (
	"fmt"
	"slices"
	"testing"

	"farflash/block"
	"farflash/model/fabric"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/sim"

	"pgregory.net/rapid"
)

// totals returns the totals of all paths.
func totals(t *testing.T, s *nvmf.System) (out []nvmf.PathTotals) {
	t.Helper()
	for p := range s.Paths() {
		x, ok := s.PathTotals(p)
		if !ok {
			t.Fatal("there is only one path")
		}
		out = append(out, x)
	}
	return out
}

// took verifies the time from submission to end of each request.
func took(t *testing.T, what string, o *outage, want ...sim.Time) {
	t.Helper()
	if len(o.done) != len(want) {
		t.Fatalf("%s: %d of %d ended", what, len(o.done), len(want))
	}
	for i := range o.done {
		d := &o.done[i]
		if d.Ended-d.Submitted != want[d.Tag] || d.Status != block.OK {
			t.Errorf("%s: read %d took %v and ended with %v, and should take %v", what, d.Tag, d.Ended-d.Submitted,
				d.Status, want[d.Tag])
		}
	}
}

// connectingPaths is connecting with the log of paths' states: a header, 128 groups and 1024 namespaces.
func connectingPaths(p nvmf.Protocol, n sim.Time) sim.Time { return connecting(p, n) + logTime(p) }

func logTime(p nvmf.Protocol) sim.Time {
	if p == nvmf.NVMeTCP {
		return exchanged(72, 24+16+128*32+1024*4)
	}
	return exchanged(64, 16+128*32+1024*4+16)
}

// TestFailover loses the first of two paths from 1 ms to 1 s. The read of 2 ms is overdue at 102 ms, and moves with
// that of 50 ms to the second path at once. Attempts to connect begin at 112 ms and 3.122 s. Reads after the second use
// the first path again, which comes first.
func TestFailover(t *testing.T) {
	for _, p := range transports {
		o := newPaths(t, p, 2, func(c *nvmf.Config) { c.QueuePairs, c.Host.MaxRetries = 2, 0 },
			func(at sim.Time, path int32) bool { return path == 0 && at >= ms && at < units.Second })
		for _, at := range []sim.Time{0, 2 * ms, 50 * ms, 200 * ms, 2 * units.Second, 4 * units.Second} {
			o.ask(at, read4k)
		}
		o.run(10 * units.Second)
		one := readTime(p)
		took(t, p.String(), o, one, 100*ms+one, 52*ms+one, one, one, one)
		back := 102*ms + 10*ms + 3*units.Second + 10*ms + connectingPaths(p, 2)
		if f, want := o.sys.Counters.Failures, (nvmf.Failures{Timeouts: 1, Losses: 1, Attempts: 2, Connected: 1,
			Retries: 2, Without: back - 102*ms}); f != want {
			t.Errorf("%v: %+v, not %+v", p, f, want)
		}
		want := []nvmf.PathTotals{{Commands: 4, Failovers: 2, Losses: 1}, {Commands: 4}}
		if got := totals(t, o.sys); !slices.Equal(got, want) {
			t.Errorf("%v: %+v, not %+v", p, got, want)
		}
	}
}

// TestFailoverTimers compares what finds a lost path: a queue pair that gives up moves its commands at that moment, a
// keep-alive when it has been unanswered for its time.
func TestFailoverTimers(t *testing.T) {
	o := newPaths(t, nvmf.NVMeoF, 2, nil, nil)
	o.ask(0, read4k)
	o.breakAt(50*us, 0)
	o.run(units.Second)
	took(t, "given up", o, 50*us+readTime(nvmf.NVMeoF))

	// Both paths are asked after 20 ms without a completion and then each 20 ms; the one of 40 ms fails.
	for _, p := range transports {
		o := newPaths(t, p, 2, func(c *nvmf.Config) { c.Host.KeepAlive, c.Host.IOTimeout = 40*ms, 0 },
			func(at sim.Time, path int32) bool { return path == 0 && at >= 30*ms && at < 100*ms })
		o.ask(0, read4k)
		o.ask(35*ms, read4k)
		o.run(units.Second)
		took(t, "keep-alive of "+p.String(), o, readTime(p), 40*ms+40*ms-35*ms+readTime(p))
	}
}

// TestNoPathLeft: while both paths are lost, commands wait for the first that returns. With fast_io_fail they fail once
// it has expired on both, and without attempts left when both are given up.
func TestNoPathLeft(t *testing.T) {
	for _, p := range transports {
		bothDown := func(at sim.Time, path int32) bool { return at >= ms && at < (2+2*sim.Time(path))*units.Second }
		// The read of 2 ms is overdue on path 0 at 102 ms and on path 1 at 202 ms. Attempts to connect at 112 ms and
		// 212 ms fail after 3 s, and the next ones begin 10 ms later: path 0 is back by then.
		o := newPaths(t, p, 2, nil, bothDown)
		o.ask(2*ms, read4k)
		o.ask(300*ms, read4k)
		o.run(20 * units.Second)
		back := 102*ms + 10*ms + 3*units.Second + 10*ms + connectingPaths(p, 1)
		second := units.ByteRate(4_096_000_000).TimeFor(4096 + 16)
		if p == nvmf.NVMeTCP {
			second = units.ByteRate(4_096_000_000).TimeFor(4096 + 24)
		}
		took(t, p.String(), o, back-2*ms+readTime(p), back-300*ms+readTime(p)+second)
		if n := o.sys.Counters.HeldForPath; n != 2 {
			t.Errorf("%v: %d commands found no path", p, n)
		}

		o = newPaths(t, p, 2, func(c *nvmf.Config) { c.Host.FastIOFail = 500 * ms }, bothDown)
		o.ask(2*ms, read4k)
		o.run(20 * units.Second)
		if d := o.done[0]; d.Status != block.PathError || d.Ended != 202*ms+500*ms+us {
			t.Errorf("%v: failed with %v at %v", p, d.Status, d.Ended)
		}

		o = newPaths(t, p, 2, func(c *nvmf.Config) { c.Host.CtrlLoss = 25 * ms },
			func(at sim.Time, _ int32) bool { return at >= ms })
		o.ask(2*ms, read4k)
		o.ask(15*units.Second, read4k)
		o.run(20 * units.Second)
		given := 202*ms + 3*(10*ms+3*units.Second) + us
		a, b := o.done[0], o.done[1]
		if a.Status != block.PathError || a.Ended != given || b.Ended != 15*units.Second+us {
			t.Errorf("%v: failed at %v, not at %v; then at %v", p, a.Ended, given, b.Ended)
		}

		// Path 0 is given up 100 ms before path 1, and found again: at first only it.
		o = newPaths(t, p, 2, func(c *nvmf.Config) { c.Host.CtrlLoss, c.Host.Rediscovery = 25*ms, 60*units.Second },
			func(at sim.Time, path int32) bool { return at >= ms && (path == 1 || at < given) })
		o.ask(2*ms, read4k)
		o.ask(given+us, read4k)
		found := given - us - 100*ms + 3*units.Second + connectingPaths(p, 1)
		o.ask(found, read4k)
		o.run(30 * units.Second)
		for i, want := range []sim.Time{given, given + 2*us, found + readTime(p)} {
			if d := o.done[i]; d.Ended != want || (d.Status == block.OK) != (i == 2) {
				t.Errorf("%v: with rediscovery read %d ended at %v with %v, not at %v", p, d.Tag, d.Ended, d.Status, want)
			}
		}
	}
}

// TestPathsInTurn gives paths equal numbers of commands, also without one that is lost, and to each drive on its own.
func TestPathsInTurn(t *testing.T) {
	o := newPaths(t, nvmf.NVMeoF, 3, func(c *nvmf.Config) { c.Multipath.Policy = nvmf.TurnPaths }, nil)
	for i := range sim.Time(300) {
		o.ask(i*us, read4k)
	}
	o.run(10 * ms)
	for p, x := range totals(t, o.sys) {
		if x.Commands != 100 {
			t.Errorf("path %d has %d of 300", p, x.Commands)
		}
	}
	// Two non-optimized paths share what the inaccessible one leaves; the optimized one takes it all.
	for _, state := range []nvmf.PathState{nvmf.NonOptimized, nvmf.Optimized} {
		o = newPaths(t, nvmf.NVMeoF, 3, func(c *nvmf.Config) {
			c.Multipath = nvmf.Multipath{Policy: nvmf.TurnPaths, ANA: []nvmf.PathChange{
				{Path: 0, State: nvmf.NonOptimized}, {Path: 1, State: state}, {Path: 2, State: nvmf.Inaccessible}}}
		}, nil)
		for i := range sim.Time(300) {
			o.ask(us+i*us, read4k)
		}
		o.run(10 * ms)
		want := []uint64{150, 150, 0}
		if state == nvmf.Optimized {
			want = []uint64{0, 300, 0}
		}
		for p, x := range totals(t, o.sys) {
			if x.Commands != want[p] {
				t.Errorf("%v: path %d has %d of 300, not %d", state, p, x.Commands, want[p])
			}
		}
	}
}

// TestServiceTime is a sequence by hand: of eight equal reads at once, a path of three times the throughput gets three
// after the other's one, and of ties it gets the command. Equal paths take turns.
func TestServiceTime(t *testing.T) {
	for _, x := range []struct {
		throughput []int
		want       []uint64 // commands of path 0 after each
	}{{[]int{3, 1}, []uint64{1, 2, 3, 3, 4, 5, 6, 6}}, {nil, []uint64{1, 1, 2, 2, 3, 3, 4, 4}}} {
		o := newPaths(t, nvmf.NVMeTCP, 2, func(c *nvmf.Config) {
			c.Multipath = nvmf.Multipath{Policy: nvmf.ServiceTime, Throughput: x.throughput}
		}, nil)
		for i, want := range x.want {
			o.sys.Submit(0, 0, read4k)
			if got := totals(t, o.sys)[0].Commands; got != want {
				t.Errorf("%v: %d of %d reads go to path 0, not %d", x.throughput, got, i+1, want)
			}
		}
		o.run(units.Second)
		// With nothing in flight, equal paths take turns, and the faster one has all.
		for range 4 {
			before := totals(t, o.sys)[0].Commands
			o.sys.Submit(0, 0, read4k)
			o.run(o.eng.Now() + ms)
			o.sys.Submit(0, 0, read4k)
			o.run(o.eng.Now() + ms)
			if n, want := totals(t, o.sys)[0].Commands-before, uint64(2); n != want && x.throughput != nil ||
				n != 1 && x.throughput == nil {
				t.Errorf("%v: %d of two idle reads go to path 0", x.throughput, n)
			}
		}
	}
}

// TestSlowPath: of two paths, one has a quarter of the other's rate. In turns, half of the reads take the slow one and
// the last ends when it has sent them: N/2 S/r. With the shorter queue both are busy to the end, N S/(r + 4r) and at
// most the queues that are left on the slow path. service-time with the rates as throughputs does as well.
func TestSlowPath(t *testing.T) {
	const n, deep, size = 4000, 16, 64 * 1024
	slow := units.ByteRate(1_000_000_000)
	run := func(m nvmf.Multipath) sim.Time {
		o := newPaths(t, nvmf.NVMeTCP, 2, func(c *nvmf.Config) { c.Multipath = m }, nil)
		o.net.Rates = func(src, _ int32) units.ByteRate {
			if src/2 == 1 {
				return slow
			}
			return 4 * slow
		}
		left := n - deep
		o.onEnded = func(*nvmf.Done) {
			if left--; left >= 0 {
				o.sys.Submit(0, 0, block.Request{Op: block.Read, Length: size})
			}
		}
		for range deep {
			o.sys.Submit(0, 0, block.Request{Op: block.Read, Length: size})
		}
		o.eng.Run(sim.Forever)
		if len(o.done) != n {
			t.Fatalf("%d of %d ended", len(o.done), n)
		}
		return o.done[n-1].Ended
	}
	one := slow.TimeFor(size + 24)
	turns := run(nvmf.Multipath{Policy: nvmf.TurnPaths})
	if least := n / 2 * one; turns < least || turns > least+least/50 {
		t.Errorf("in turns they take %v, and the slow path alone %v", turns, least)
	}
	for _, m := range []nvmf.Multipath{{Policy: nvmf.FewestCommands},
		{Policy: nvmf.ServiceTime, Throughput: []int{4, 1}}} {
		both := n * one / 5
		if got := run(m); got < both || got > both+deep*one {
			t.Errorf("%v: they take %v, and both paths at full rate %v", m.Policy, got, both)
		}
	}
}

// TestANA is the sequence of a path that becomes inaccessible at 50 ms and optimized at 100 ms. The target's event and
// the log take their messages' times. A read that arrives in between is refused, and read again on the other path.
func TestANA(t *testing.T) {
	for _, p := range transports {
		answer := units.Bytes(16)
		command := units.Bytes(64)
		if p == nvmf.NVMeTCP {
			answer, command = 24, 72
		}
		known := trip(answer) + logTime(p) // after a change
		o := newPaths(t, p, 2, func(c *nvmf.Config) {
			c.Multipath.ANA = []nvmf.PathChange{{Path: 0, At: 50 * ms, State: nvmf.Inaccessible},
				{Path: 0, At: 100 * ms, State: nvmf.Optimized}}
		}, nil)
		o.ask(0, read4k)
		o.ask(50*ms-trip(command)-1, read4k) // arrives just before the change, and is served
		o.ask(50*ms-5*us, read4k)            // arrives after it
		o.ask(50*ms+known+1, read4k)         // does not go there
		o.ask(100*ms+known-1, read4k)        // still not
		o.ask(100*ms+known+1, read4k)        // does
		o.ask(200*ms, block.Request{Op: block.Write, Length: 65536})
		o.run(units.Second)
		one := readTime(p)
		write := o.done[6].Ended - 200*ms
		took(t, p.String(), o, one, one, trip(command)+trip(answer)+one, one, one, one, write)
		want := []nvmf.PathTotals{{Commands: 5, Refused: 1}, {Commands: 3}}
		if got := totals(t, o.sys); !slices.Equal(got, want) {
			t.Errorf("%v: %+v, not %+v", p, got, want)
		}
		if f := o.sys.Counters.Failures; f != (nvmf.Failures{Retries: 1}) {
			t.Errorf("%v: %+v", p, f)
		}
		if err := o.sys.Idle(); err != nil {
			t.Error(err)
		}

		// With one path, commands wait until the initiator knows that it is back; a write is refused before its data is
		// fetched.
		o = newPaths(t, p, 1, func(c *nvmf.Config) {
			c.Multipath.ANA = []nvmf.PathChange{{At: 50 * ms, State: nvmf.Inaccessible},
				{At: 100 * ms, State: nvmf.NonOptimized}}
		}, nil)
		o.ask(0, read4k)
		o.ask(50*ms, block.Request{Op: block.Write, Length: 65536})
		o.ask(60*ms, read4k)
		o.run(99 * ms)
		if n := o.sys.Stranded(); n != 2 || o.sys.Counters.Pulls != 0 || !o.sys.Reconnects() {
			t.Errorf("%v: %d commands wait, %d fetches", p, n, o.sys.Counters.Pulls)
		}
		o.run(units.Second)
		// The write's command precedes the read's, and its data delays nothing.
		for i := range o.done {
			if d := &o.done[i]; d.Tag == 1 {
				write = d.Ended - d.Submitted
			}
		}
		took(t, p.String(), o, one, write, 40*ms+known+trip(command)-10*us+one)
		if n := o.sys.Counters.HeldForPath; n != 2 || o.sys.Reconnects() {
			t.Errorf("%v: %d commands found no path", p, n)
		}
	}
}

// TestANAWhileConnecting: the log that connecting reads shows a change that the initiator could not learn of otherwise.
func TestANAWhileConnecting(t *testing.T) {
	for _, p := range transports {
		o := newPaths(t, p, 2, func(c *nvmf.Config) {
			c.Multipath.ANA = []nvmf.PathChange{{Path: 0, At: 110 * ms, State: nvmf.Inaccessible},
				{Path: 1, At: 5 * units.Second, State: nvmf.NonOptimized},
				{Path: 0, At: 6 * units.Second, State: nvmf.Optimized}}
		}, func(at sim.Time, path int32) bool { return path == 0 && at >= ms && at < units.Second })
		for _, at := range []sim.Time{2 * ms, 4 * units.Second, 5*units.Second + ms, 6*units.Second + ms} {
			o.ask(at, read4k)
		}
		o.run(10 * units.Second)
		one := readTime(p)
		took(t, p.String(), o, 100*ms+one, one, one, one)
		want := []nvmf.PathTotals{{Commands: 2, Failovers: 1, Losses: 1}, {Commands: 3}}
		if got := totals(t, o.sys); !slices.Equal(got, want) {
			t.Errorf("%v: %+v, not %+v", p, got, want)
		}
	}
}

// TestPathsAnywhere breaks connections and changes states of paths at each microsecond of a mixed load: all commands
// end well, once, and nothing that they held remains held.
func TestPathsAnywhere(t *testing.T) {
	policies := []nvmf.PathPolicy{nvmf.NUMA, nvmf.TurnPaths, nvmf.FewestCommands, nvmf.ServiceTime}
	for _, p := range transports {
		for when := range sim.Time(160) {
			o := newPaths(t, p, 2, func(c *nvmf.Config) {
				if when%2 == 0 {
					c.Initiator, c.Target = nvmf.LinuxTCP.Initiator(), nvmf.LinuxTCP.Target()
					c.Initiator.LatencyP99 = 0
				}
				c.Multipath.Policy = policies[when%4]
				for i := range sim.Time(6) {
					c.Multipath.ANA = append(c.Multipath.ANA, nvmf.PathChange{Path: int(i+when/4) % 2,
						At: (when + 13*i) * us, State: nvmf.PathState(i * 5 % 3)})
				}
				c.Multipath.ANA = append(c.Multipath.ANA, nvmf.PathChange{Path: 1, At: ms}, nvmf.PathChange{At: 2 * ms})
				c.QueuePairs, c.QueueDepth, c.DriveDepth = 2, 8, 3
				c.Reads = nvmf.Reads{Target: 2, Initiator: 2}
				c.TXQ, c.WriteBuffers = 20*units.KiB, 40*units.KiB
				c.Host.MaxRetries = 0
			}, nil)
			for i := range sim.Time(60) {
				o.ask(i*us, block.Request{Op: block.Op(i % 2), Length: []int64{4096, 8192, 16384}[i%3]})
			}
			o.breakAt(when*us, 0)
			o.breakAt(when*us+30*us, 8)
			for q := range fabric.QP(60) {
				o.breakAt(10*ms+when*us*3, q)
			}
			o.run(10 * units.Second)
			o.eachOnce(t, 60, fmt.Sprintf("%v, %v", p, when))
		}
	}
}

// TestNoCommandEnds stops a run in which no command can end in its time, which Linux would repeat for ever.
func TestNoCommandEnds(t *testing.T) {
	o := newPaths(t, nvmf.NVMeTCP, 2, func(c *nvmf.Config) { c.Host.IOTimeout, c.Host.ReconnectDelay = 50*us, us }, nil)
	o.ask(0, read4k) // takes more than 100 us
	o.eng.Run(sim.Forever)
	if err := o.sys.Err(); err == nil || o.sys.Counters.Retries != 200 || len(units.FieldErrors(err)) != 1 ||
		units.FieldErrors(err)[0].Path != "host.io_timeout" {
		t.Errorf("%v after %d repetitions", o.sys.Err(), o.sys.Counters.Retries)
	}
}

// TestPathPairs: paths are different pairs of network cards, in the order of both sides, and cover all pairs if there
// are as many.
func TestPathPairs(t *testing.T) {
	for a := range int32(4) {
		for b := range int32(4) {
			cfg := nvmf.DefaultConfig()
			cfg.Multipath.Paths = int((a + 1) * (b + 1))
			o := newOutage(t, nvmf.NVMeTCP, func(c *nvmf.Config) { c.Multipath = cfg.Multipath }, nil)
			s, err := nvmf.New(o.cfg, nvmf.NVMeTCP, true, o.eng)
			if err != nil {
				t.Fatal(err)
			}
			nodes := func(first, n int32) (out []int32) {
				for k := range n {
					out = append(out, first+1+k)
				}
				return out
			}
			s.AddInitiator(0, nodes(0, a)...)
			s.AddTarget(4, nodes(4, b)...)
			s.Connect(o.net, o)
			s.Settle()
			seen := map[string]bool{}
			for k := range s.Paths() {
				from, to := s.PathNodes(0, 0, k)
				if m := min(a, b) + 1; int32(k) < m && (from != int32(k) || to != 4+int32(k)) {
					t.Errorf("%d and %d: path %d is from %d to %d", a+1, b+1, k, from, to)
				}
				seen[fmt.Sprint(from, to)] = true
			}
			if err := s.Err(); err != nil || len(seen) != int((a+1)*(b+1)) {
				t.Errorf("%d and %d: %d pairs; %v", a+1, b+1, len(seen), err)
			}
		}
	}
}

// TestPathsOnLostLinks takes links of network cards down at random on a simulated network: all commands end, once, and
// nothing that they held remains held. Targets have keep-alive timers or not.
func TestPathsOnLostLinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := defaultLayout()
		l.initiators, l.targets, l.drives, l.lossy, l.nics = 2, 2, 2, true, 2
		l.network.Recovery.Timeout = fabric.Timeout{Time: 2 * ms}
		if rapid.Bool().Draw(t, "tcp") {
			l.protocol, l.network = nvmf.NVMeTCP, fabric.TCP(fabric.DefaultConfig())
		}
		if l.protocol == nvmf.NVMeoF && rapid.Bool().Draw(t, "steered") {
			l.steered = staticControl(t)
		}
		l.cfg.Multipath.Policy = nvmf.PathPolicy(rapid.IntRange(0, 3).Draw(t, "policy"))
		l.cfg.Multipath.Paths = rapid.IntRange(1, 4).Draw(t, "paths")
		l.cfg.QueuePairs = rapid.IntRange(1, 3).Draw(t, "queue pairs")
		l.cfg.QueueDepth = rapid.IntRange(1, 16).Draw(t, "depth")
		drawShared(t, &l)
		l.cfg.TXQ = units.Bytes(rapid.IntRange(4, 64).Draw(t, "txq")) * units.KiB
		l.cfg.Host = nvmf.Host{IOTimeout: sim.Time(rapid.IntRange(1, 20).Draw(t, "limit")) * ms, ReconnectDelay: ms,
			CtrlLoss: sim.Time(rapid.IntRange(0, 60).Draw(t, "loss")) * ms}
		l.cfg.Host.FastIOFail = min(l.cfg.Host.CtrlLoss, sim.Time(rapid.IntRange(0, 9).Draw(t, "fast"))*ms)
		l.cfg.Host.Rediscovery = sim.Time(rapid.IntRange(0, 2).Draw(t, "rediscovery")) * 7 * ms
		for range rapid.IntRange(0, 5).Draw(t, "changes") {
			l.cfg.Multipath.ANA = append(l.cfg.Multipath.ANA, nvmf.PathChange{
				Path:  rapid.IntRange(0, l.cfg.Multipath.Paths-1).Draw(t, "path"),
				At:    sim.Time(rapid.IntRange(0, 30).Draw(t, "at")) * ms,
				State: nvmf.PathState(rapid.IntRange(0, 2).Draw(t, "state"))})
		}
		watches := rapid.Bool().Draw(t, "timers")
		if watches {
			l.cfg.Host.KeepAlive = sec
			l.cfg.KeepAliveTimer = nvmf.KeepAliveTimer(rapid.IntRange(1, 2).Draw(t, "timer"))
		}
		for p := range l.cfg.Multipath.Paths {
			l.cfg.Multipath.ANA = append(l.cfg.Multipath.ANA, nvmf.PathChange{Path: p, At: 100 * ms})
		}
		r := newRig(t, l)
		for range rapid.IntRange(1, 6).Draw(t, "failures") {
			at := sim.Time(rapid.IntRange(0, 20000).Draw(t, "at")) * us
			until := at + sim.Time(rapid.IntRange(1, 40000).Draw(t, "for"))*us
			if err := r.net.Fail(int32(rapid.IntRange(0, 7).Draw(t, "link")), at, until); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 150).Draw(t, "requests") {
			r.ask(ask{at: sim.Time(rapid.IntRange(0, 30000).Draw(t, "at")) * us,
				initiator: int32(rapid.IntRange(0, 1).Draw(t, "initiator")),
				drive:     int32(rapid.IntRange(0, 3).Draw(t, "drive")),
				req: block.Request{Op: block.Op(rapid.IntRange(0, 1).Draw(t, "op")),
					Length: 4096 * int64(rapid.IntRange(1, 9).Draw(t, "pages"))}})
		}
		if watches {
			r.runUntil(t, 60*sec+250*ms) // between keep-alives
		} else {
			r.run(t)
		}
		if err := r.sys.Idle(); err != nil {
			t.Fatal(err)
		}
	})
}
