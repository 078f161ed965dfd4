package nvmf_test

import (
	"fmt"
	"slices"
	"testing"

	"farflash/block"
	"farflash/block/blocktest"
	"farflash/model/fabric"
	"farflash/model/nvmf"
	"farflash/model/nvmf/nvmftest"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"
	"farflash/sim"

	"pgregory.net/rapid"
)

const ms = units.Millisecond

// outage is a system of one initiator and one target on a network whose times can be added up, which loses everything
// while down says so.
type outage struct {
	t    *testing.T
	cfg  nvmf.Config
	p    nvmf.Protocol
	net  *nvmftest.Network
	sys  *nvmf.System
	eng  *sim.Engine
	asks []ask
	done []nvmf.Done
	// onEnded may submit.
	onEnded func(*nvmf.Done)
	self    sim.Component
	own     sim.Target
}

func newOutage(t *testing.T, p nvmf.Protocol, change func(*nvmf.Config), down func(at sim.Time) bool) *outage {
	t.Helper()
	return newPaths(t, p, 1, change, func(at sim.Time, _ int32) bool { return down != nil && down(at) })
}

// newPaths is newOutage with paths: path k is from node 2k to node 2k+1.
func newPaths(t *testing.T, p nvmf.Protocol, paths int32, change func(*nvmf.Config),
	down func(at sim.Time, path int32) bool) *outage {
	t.Helper()
	o := &outage{t: t, cfg: nvmf.DefaultConfig(), p: p, eng: sim.New()}
	free(&o.cfg)
	o.cfg.Host = nvmf.Host{IOTimeout: 100 * ms, ReconnectDelay: 10 * ms, CtrlLoss: 1000 * units.Second, MaxRetries: 5}
	if change != nil {
		change(&o.cfg)
	}
	var err error
	if o.sys, err = nvmf.New(o.cfg, p, true, o.eng); err != nil {
		t.Fatal(err)
	}
	o.net = nvmftest.New(nvmftest.DefaultConfig(), o.eng, o.sys)
	o.net.Lost = func(src, _ int32) bool { return down != nil && down(o.eng.Now(), src/2) }
	var more [2][]int32
	for k := int32(1); k < paths; k++ {
		more[0], more[1] = append(more[0], 2*k), append(more[1], 2*k+1)
	}
	o.sys.AddInitiator(0, more[0]...)
	target := o.sys.AddTarget(1, more[1]...)
	d, err := blocktest.New(blocktest.DefaultConfig(), o.eng, o.sys.Complete)
	if err == nil {
		_, err = o.sys.AddDrive(target, d)
	}
	if err != nil {
		t.Fatal(err)
	}
	o.sys.Connect(o.net, o)
	o.self, o.own = o.eng.NewComponent(), o.eng.AddHandler(o)
	return o
}

// breakAt makes a queue pair give up at a time.
func (o *outage) breakAt(at sim.Time, q fabric.QP) {
	o.eng.Schedule(o.self, o.own, at, 1, uint32(q))
}

// Handle submits the request that is due.
func (o *outage) Handle(e sim.Event) {
	if e.Kind == 1 {
		o.net.Break(fabric.QP(e.Arg))
		return
	}
	a := &o.asks[e.Arg]
	a.req.Tag = uint64(e.Arg)
	o.sys.Submit(0, 0, a.req)
}

func (o *outage) Ended(d *nvmf.Done) {
	o.done = append(o.done, *d)
	if o.onEnded != nil {
		o.onEnded(d)
	}
}

// ask submits a request at a time.
func (o *outage) ask(at sim.Time, r block.Request) {
	o.asks = append(o.asks, ask{at: at, req: r})
	o.eng.Schedule(o.self, o.own, at, 0, uint32(len(o.asks)-1))
}

// run runs until a time, and checks the laws.
func (o *outage) run(until sim.Time) {
	o.t.Helper()
	o.eng.Run(until)
	if err := o.sys.Err(); err != nil {
		o.t.Fatal(err)
	}
	if err := o.sys.Check(); err != nil {
		o.t.Fatal(err)
	}
	for i := range o.done {
		d := &o.done[i]
		at := d.Submitted
		d.Steps(func(_ nvmf.Stage, from, to sim.Time) {
			if from != at || to <= from {
				o.t.Fatalf("request %d: a step from %v to %v, after one that ended at %v", d.Tag, from, to, at)
			}
			at = to
		})
		if at != d.Ended {
			o.t.Fatalf("request %d: steps until %v of %v", d.Tag, at, d.Ended)
		}
	}
}

// eachOnce fails unless n requests have ended, each once and without an error, and left nothing behind.
func (o *outage) eachOnce(t *testing.T, n int, what string) {
	t.Helper()
	tags := map[uint64]bool{}
	for _, d := range o.done {
		tags[d.Tag] = true
	}
	if len(o.done) != n || len(tags) != n || o.sys.Counters.Failed > 0 {
		t.Fatalf("%s: %d of %d ended, %d of them different, %d failed", what, len(o.done), n, len(tags),
			o.sys.Counters.Failed)
	}
	if err := o.sys.Idle(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// trip is the time of a message of a size: 4096 bytes a microsecond, and 10 us.
func trip(size units.Bytes) sim.Time { return units.ByteRate(4_096_000_000).TimeFor(size) + 10*us }

// exchanged is the time of messages and their answers, one after the other.
func exchanged(sizes ...units.Bytes) sim.Time {
	sum := sim.Time(0)
	for _, x := range sizes {
		sum += trip(x)
	}
	return sum
}

// connecting is the time to connect n I/O queues: for TCP a handshake, ICReq and Connect each, for RDMA the connection
// manager's and Connect; between the admin queue's and theirs six commands, of which Identify returns 4 KiB.
func connecting(p nvmf.Protocol, n sim.Time) sim.Time {
	if p == nvmf.NVMeTCP {
		queue := exchanged(1, 1, 128, 128, 72+1024, 24)
		return queue + 5*exchanged(72, 24) + exchanged(72, 24+4096) + n*queue // c2h_success: no response after the data
	}
	queue := exchanged(256, 256, 64+1024, 16)
	return queue + 5*exchanged(64, 16) + exchanged(64, 4096+16) + n*queue
}

var read4k = block.Request{Op: block.Read, Length: 4096}

// readTime is that of a read of 4 KiB that nothing delays: command, 80 us, data.
func readTime(p nvmf.Protocol) sim.Time {
	if p == nvmf.NVMeTCP {
		return trip(72) + 80*us + trip(24+4096)
	}
	return trip(64) + 80*us + trip(4096) + units.ByteRate(4_096_000_000).TimeFor(16)
}

var transports = []nvmf.Protocol{nvmf.NVMeoF, nvmf.NVMeTCP}

// TestOutage is the sequence of timers of a path that is down from 1 ms to 1 s. The read of 2 ms is overdue at 102 ms.
// Attempts to connect begin at 112 ms and, after 3 s without an answer and the delay, at 3.122 s. Then the read is
// repeated, and the write that was submitted in between is sent.
func TestOutage(t *testing.T) {
	for _, p := range transports {
		o := newOutage(t, p, func(c *nvmf.Config) { c.QueuePairs = 2 },
			func(at sim.Time) bool { return at >= ms && at < units.Second })
		o.ask(0, read4k)
		o.ask(2*ms, read4k)
		o.ask(50*ms, read4k)
		o.ask(2*units.Second, read4k)
		o.run(10 * units.Second)
		back := 102*ms + 10*ms + 3*units.Second + 10*ms + connecting(p, 2)
		// Two queue pairs take turns: the second and the fourth read are on one, and the third on the other.
		want := []sim.Time{readTime(p), back + readTime(p) - 2*ms, back + readTime(p) - 50*ms}
		for i, w := range want {
			if d := o.done[i]; d.Ended-d.Submitted != w || d.Status != block.OK || int(d.Tag) != i {
				t.Errorf("%v: read %d took %v, and should take %v", p, d.Tag, d.Ended-d.Submitted, w)
			}
		}
		// It follows the repeated one on its queue pair, whose data is sent before.
		if d := o.done[3]; d.Tag != 3 || d.Ended < back+readTime(p) || d.Ended > back+readTime(p)+2*us {
			t.Errorf("%v: the read that waited ended at %v, the others at %v", p, d.Ended, back+readTime(p))
		}
		f := o.sys.Counters.Failures
		if want := (nvmf.Failures{Timeouts: 1, Losses: 1, Attempts: 2, Connected: 1, Retries: 2,
			Without: back - 102*ms}); f != want {
			t.Errorf("%v: %+v, not %+v", p, f, want)
		}
		if got := o.sys.Unreachable(); got != f.Without || o.sys.Reconnects() {
			t.Errorf("%v: unreachable for %v of %v", p, got, f.Without)
		}
	}
}

// TestKeepAlive finds a lost controller without a command: it is asked after half of the time without a completion, and
// lost when the time has passed since. Completions in between put it off.
func TestKeepAlive(t *testing.T) {
	for _, p := range transports {
		for _, x := range []struct {
			more []sim.Time // reads
			down sim.Time
			lost sim.Time
		}{
			{nil, 10 * ms, 20*ms + 20*ms + 40*ms}, // 0-20 ms: the first read; 40 ms: asked
			{[]sim.Time{25 * ms}, 30 * ms, 60*ms + 40*ms},
			{nil, 50 * ms, 60*ms + 40*ms}, // answered at 40 ms
		} {
			o := newOutage(t, p, func(c *nvmf.Config) { c.Host.KeepAlive, c.Host.IOTimeout = 40*ms, 0 },
				func(at sim.Time) bool { return at >= x.down })
			o.ask(0, read4k)
			for _, at := range x.more {
				o.ask(at, read4k)
			}
			o.run(x.lost - 1)
			if n := o.sys.Counters.Losses; n != 0 {
				t.Errorf("%v, down at %v: lost before %v", p, x.down, x.lost)
			}
			o.run(x.lost)
			if f := o.sys.Counters.Failures; f.Losses != 1 || f.Unalive != 1 {
				t.Errorf("%v, down at %v: not lost at %v: %+v", p, x.down, x.lost, f)
			}
		}
		// A controller that answers is never lost, and one that is lost is connected again.
		o := newOutage(t, p, func(c *nvmf.Config) { c.Host.KeepAlive, c.Host.IOTimeout = 40*ms, 0 },
			func(at sim.Time) bool { return at >= 200*ms && at < 275*ms })
		o.ask(0, read4k)
		// Asked at 200 ms, lost at 240 ms, an attempt at 250 ms that fails after 3 s, and one 10 ms later.
		o.run(5 * units.Second)
		if f := o.sys.Counters.Failures; f.Losses != 1 || f.Connected != 1 ||
			f.Without != 20*ms+3*units.Second+connecting(p, 1) {
			t.Errorf("%v: %+v", p, f)
		}
	}
}

// TestBroken ends the connections of a queue pair that the network reports, while it is live, while it connects, and
// otherwise not at all.
func TestBroken(t *testing.T) {
	o := newOutage(t, nvmf.NVMeoF, nil, nil)
	o.ask(0, read4k)
	o.breakAt(50*us, 0)
	o.breakAt(60*us, 99)
	o.breakAt(10*ms+50*us+25*us, 3) // the admin queue's, during an attempt
	o.run(units.Second)
	want := 50*us + 10*ms + 25*us + 10*ms + connecting(nvmf.NVMeoF, 1) + readTime(nvmf.NVMeoF)
	if d := o.done[0]; d.Ended != want {
		t.Errorf("ended at %v, not %v; %+v", d.Ended, want, o.sys.Counters.Failures)
	}
	if f := o.sys.Counters.Failures; f.Losses != 1 || f.Attempts != 2 || f.Connected != 1 || f.Timeouts != 0 {
		t.Errorf("%+v", f)
	}
}

// TestFailFast fails the commands that wait for a controller after a time, and those that come later at once: after a
// microsecond of software. Once the controller is back, commands end well.
func TestFailFast(t *testing.T) {
	o := newOutage(t, nvmf.NVMeTCP, func(c *nvmf.Config) { c.Host.FastIOFail, c.QueueDepth = 500*ms, 1 },
		func(at sim.Time) bool { return at < 2*units.Second })
	for _, at := range []sim.Time{0, ms, 300 * ms, 800 * ms, 3500 * ms} {
		o.ask(at, read4k)
	}
	o.run(10 * units.Second)
	failed := 100*ms + 500*ms
	want := []sim.Time{failed + us, failed + 2*us, failed + 3*us, 800*ms + us, 3500*ms + readTime(nvmf.NVMeTCP)}
	for i := range want {
		d := &o.done[i]
		if ok := i == 4; d.Ended != want[d.Tag] || (d.Status == block.OK) != ok || !ok && d.Status != block.PathError {
			t.Errorf("read %d ended at %v with %v, not at %v", d.Tag, d.Ended, d.Status, want[d.Tag])
		}
	}
	if f := o.sys.Counters.Failures; f.Pathless != 4 || o.sys.Counters.Failed != 4 || f.Connected != 1 ||
		f.Retries != 1 {
		t.Errorf("%+v", f)
	}
}

// TestRemoved gives a controller up after as many attempts as ctrl_loss has delays, each 3 s long.
func TestRemoved(t *testing.T) {
	for _, x := range []struct {
		loss     units.Duration
		attempts sim.Time
	}{{0, 0}, {ms, 1}, {25 * ms, 3}, {30 * ms, 3}} {
		o := newOutage(t, nvmf.NVMeTCP, func(c *nvmf.Config) { c.Host.CtrlLoss = x.loss },
			func(sim.Time) bool { return true })
		o.ask(0, read4k)
		n := 0
		o.onEnded = func(*nvmf.Done) { // a closed loop fails on, and time passes
			if n++; n < 1000 {
				o.sys.Submit(0, 0, read4k)
			}
		}
		o.eng.Run(sim.Forever)
		o.run(sim.Forever)
		want := 100*ms + x.attempts*(10*ms+3*units.Second) + us
		if d := o.done[0]; d.Ended != want || d.Status != block.PathError {
			t.Errorf("%v: the read ends at %v with %v, not at %v", x.loss, d.Ended, d.Status, want)
		}
		if last := o.done[len(o.done)-1]; len(o.done) != 1000 || last.Ended != want+999*us {
			t.Errorf("%v: %d reads ended, the last at %v", x.loss, len(o.done), last.Ended)
		}
		f := o.sys.Counters.Failures
		if f.Removed != 1 || f.Attempts != uint64(x.attempts) || f.Pathless != 1000 || o.sys.Reconnects() {
			t.Errorf("%v: %+v", x.loss, f)
		}
		o.sys.Removed(func(initiator, target int32, lost sim.Time) {
			if initiator != 0 || target != 0 || lost != 100*ms {
				t.Errorf("%d lost %d at %v", initiator, target, lost)
			}
		})
	}
}

// TestRediscovery: a controller is given up at 9.132 s, after three attempts of 3 s. A discovery client tries it after
// 3 s, twice, and then once a period; an attempt without an answer takes 3 s. Commands fail at once until it is
// connected, also during an attempt. Lost again, it has its three attempts again.
func TestRediscovery(t *testing.T) {
	const sec = units.Second
	given := 102*ms + 3*(10*ms+3*sec)
	for _, p := range transports {
		for _, x := range []struct{ period, until, begun sim.Time }{
			{60 * sec, given, given + 3*sec},
			{60 * sec, given + 4*sec, given + 9*sec},
			{60 * sec, given + 10*sec, given + 72*sec},
			{60 * sec, given + 73*sec, given + 135*sec},
			{sec, given + 10*sec, given + 13*sec},
			{0, given, given + 3*sec}, // never
		} {
			down := func(at sim.Time) bool { return at >= ms && at < x.until }
			o := newOutage(t, p, func(c *nvmf.Config) {
				c.Host.CtrlLoss, c.Host.Rediscovery = 25*ms, x.period
			}, func(at sim.Time) bool { return down(at) || at >= 200*sec && at < 201*sec })
			back := x.begun + connecting(p, 1)
			o.ask(2*ms, read4k)
			o.ask(given+sec, read4k)
			o.ask(back-us, read4k)
			o.ask(back, read4k)
			o.ask(200*sec, read4k)
			o.run(300 * sec)
			ends := []sim.Time{given + us, given + sec + us, back, back + us, 200*sec + us}
			if x.period > 0 {
				ends[3] = back + readTime(p)
				ends[4] = 200*sec + 110*ms + 3*sec + 10*ms + connecting(p, 1) + readTime(p)
			}
			for i, want := range ends {
				d := &o.done[i]
				if ok := i > 2 && x.period > 0; d.Ended != want || (d.Status == block.OK) != ok {
					t.Errorf("%v, %v, down until %v: read %d ended at %v with %v, not at %v", p, x.period, x.until,
						d.Tag, d.Ended, d.Status, want)
				}
			}
			gone := 0
			o.sys.Removed(func(int32, int32, sim.Time) { gone++ })
			f := o.sys.Counters.Failures
			if lasts := x.period == 0; f.Removed != 1 || (gone == 1) != lasts || (f.Connected == 2) == lasts {
				t.Errorf("%v, %v, down until %v: %+v, %d gone", p, x.period, x.until, f, gone)
			}
		}
	}
}

// TestMostRetries fails a command that was repeated as often as it may be. Only commands are lost: connecting is always
// possible.
func TestMostRetries(t *testing.T) {
	for _, most := range []int{0, 2, 5} {
		o := newOutage(t, nvmf.NVMeTCP, func(c *nvmf.Config) { c.Host.MaxRetries = most }, nil)
		o.sys.OnMessage = func(nvmf.Message) { // a command: only these are reported
			arrives := o.eng.Now() + trip(72)
			o.net.Lost = func(int32, int32) bool { return o.eng.Now() == arrives }
		}
		o.ask(0, read4k)
		o.run(10 * units.Second)
		n := sim.Time(most)
		want := (n+1)*100*ms + n*(10*ms+connecting(nvmf.NVMeTCP, 1)) + us
		if d := o.done[0]; d.Ended != want || d.Status != block.PathError {
			t.Errorf("%d: ended at %v with %v, not at %v", most, d.Ended, d.Status, want)
		}
		if f := o.sys.Counters.Failures; f.Timeouts != uint64(most+1) || f.Retries != uint64(most) || f.Pathless != 1 {
			t.Errorf("%d: %+v", most, f)
		}
	}
}

// TestLostAnywhere breaks a connection at each microsecond of a mixed load, with transport, queue and memory limits
// that make commands wait everywhere: all of them end well, once, and nothing that they held remains held.
func TestLostAnywhere(t *testing.T) {
	for _, p := range transports {
		for _, stack := range []nvmf.Stack{nvmf.SPDKRDMA, nvmf.LinuxTCP} {
			for when := range sim.Time(160) {
				o := newOutage(t, p, func(c *nvmf.Config) {
					c.Initiator, c.Target = stack.Initiator(), stack.Target()
					c.Initiator.LatencyP99 = 0
					if when%3 == 0 {
						c.Batch = nvmf.Batch{Commands: 4, Delay: 30 * us, Send: us}
					}
					c.QueuePairs, c.QueueDepth, c.DriveDepth = 2, 8, 3
					c.Reads = nvmf.Reads{Target: 2, Initiator: 2}
					c.TXQ, c.WriteBuffers = 20*units.KiB, 40*units.KiB
					if when%5 == 0 {
						c.Buffers = nvmf.Buffers{Count: 5, Size: 8 * units.KiB}
					}
					if p == nvmf.NVMeoF {
						c.Receives = nvmf.Receives{Shared: []int{0, 1, 3, 9}[when%4], RNRTimer: 10 * us}
					}
				}, nil)
				for i := range sim.Time(60) {
					r := block.Request{Op: block.Op(i % 2), Length: []int64{4096, 8192, 16384}[i%3]}
					o.ask(i*us, r)
				}
				o.breakAt(when*us, 0)
				o.breakAt(10*ms+when*us*3, 6) // an admin queue's, while it connects
				for q := range fabric.QP(40) {
					o.breakAt(20*ms+when*us*4, q) // and the repetitions
				}
				o.run(10 * units.Second)
				o.eachOnce(t, 60, fmt.Sprintf("%v, %v", p, when))
			}
		}
	}
}

// TestTimersThatDoNotFire: with and without limits the same commands end at the same times, in the same order.
func TestTimersThatDoNotFire(t *testing.T) {
	run := func(h nvmf.Host) (out []string) {
		l := defaultLayout()
		l.initiators, l.targets, l.drives = 2, 2, 2
		l.cfg.Host = h
		r := newRig(t, l)
		for i := range 400 {
			r.ask(ask{at: sim.Time(i) * 700 * units.Nanosecond, initiator: int32(i % 2), drive: int32(i % 4),
				req: block.Request{Op: block.Op(i % 3 % 2), Length: int64(1+i%5) * 4096}})
		}
		r.run(t)
		for _, d := range r.done {
			out = append(out, fmt.Sprintf("%+v", d))
		}
		return append(out, fmt.Sprint(r.eng.Now(), r.eng.Events()))
	}
	with := nvmf.DefaultConfig().Host
	without := with
	without.IOTimeout = 0
	if a, b := run(with), run(without); !slices.Equal(a, b) {
		t.Error("a limit that no command reaches changes the results")
	}
	if with.IOTimeout != 30*units.Second || with.KeepAlive != 0 {
		t.Errorf("%+v", with)
	}
}

// staticControl makes controllers without a timer, so that runs end.
func staticControl(t failer) func() ratecontrol.Controller {
	return func() ratecontrol.Controller {
		c := ratecontrol.DefaultConfig()
		c.Kind = ratecontrol.Static
		ctl, err := ratecontrol.New(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		return ctl
	}
}

// TestLostLinks takes the links of initiators and targets of a simulated network down at random, with short limits for
// commands: all of them end, once, and nothing that they held remains held.
func TestLostLinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := defaultLayout()
		l.initiators, l.targets, l.drives, l.lossy = 2, 2, 2, true
		l.network.Recovery.Timeout = fabric.Timeout{Time: 2 * ms}
		if rapid.Bool().Draw(t, "tcp") {
			l.protocol, l.network = nvmf.NVMeTCP, fabric.TCP(fabric.DefaultConfig())
		}
		if l.protocol == nvmf.NVMeoF && rapid.Bool().Draw(t, "steered") {
			l.steered = staticControl(t)
		}
		l.cfg.QueuePairs = rapid.IntRange(1, 3).Draw(t, "queue pairs")
		l.cfg.QueueDepth = rapid.IntRange(1, 16).Draw(t, "depth")
		drawShared(t, &l)
		l.cfg.TXQ = units.Bytes(rapid.IntRange(4, 64).Draw(t, "txq")) * units.KiB
		l.cfg.Host = nvmf.Host{IOTimeout: sim.Time(rapid.IntRange(1, 20).Draw(t, "limit")) * ms, ReconnectDelay: ms,
			CtrlLoss: sim.Time(rapid.IntRange(0, 60).Draw(t, "loss")) * ms, MaxRetries: 2}
		l.cfg.Host.FastIOFail = min(l.cfg.Host.CtrlLoss, sim.Time(rapid.IntRange(0, 9).Draw(t, "fast"))*ms)
		r := newRig(t, l)
		for range rapid.IntRange(1, 6).Draw(t, "failures") {
			at := sim.Time(rapid.IntRange(0, 20000).Draw(t, "at")) * us
			until := at + sim.Time(rapid.IntRange(1, 40000).Draw(t, "for"))*us
			if err := r.net.Fail(int32(rapid.IntRange(0, 3).Draw(t, "link")), at, until); err != nil {
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
		r.run(t)
		if err := r.sys.Idle(); err != nil {
			t.Fatal(err)
		}
	})
}
