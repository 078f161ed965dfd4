package nvmf_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"farflash/block"
	"farflash/model/fabric"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/sim"
)

// loop keeps depth requests outstanding until span, with a drive that takes no time, and returns the latencies of all
// after the first depth, in order.
func loop(t *testing.T, l layout, q block.Request, depth int, span sim.Time) []sim.Time {
	t.Helper()
	l.device.Latency = [block.Ops]sim.Time{}
	l.cfg.QueueDepth, l.cfg.DriveDepth = 4096, 4096
	r := newRig(t, l)
	for range depth {
		r.ask(ask{req: q})
	}
	var out []sim.Time
	r.onEnded = func(d *nvmf.Done) {
		r.done = r.done[:0]
		out = append(out, d.Ended-d.Submitted)
		r.sys.Submit(0, 0, q)
	}
	r.eng.Run(span)
	if err := errors.Join(r.sys.Err(), r.sys.Check(), r.net.Check()); err != nil {
		t.Fatal(err)
	}
	return out[depth:]
}

// rateOf is the number of requests a second that loop completes.
func rateOf(t *testing.T, l layout, q block.Request, depth int) float64 {
	const span = 200 * units.Millisecond
	return float64(len(loop(t, l, q, depth, span))+depth) / span.Seconds()
}

// meanOf is the mean latency at depth 1.
func meanOf(t *testing.T, l layout, q block.Request) sim.Time {
	sum := sim.Time(0)
	all := loop(t, l, q, 1, 50*units.Millisecond)
	for _, x := range all {
		sum += x
	}
	return sum / sim.Time(len(all))
}

func tcpLayout() layout {
	l := defaultLayout()
	l.protocol = nvmf.NVMeTCP
	l.network = fabric.TCP(fabric.DefaultConfig())
	free(&l.cfg)
	return l
}

// busy gives software some core time, so that no command meets the acknowledgement of the one before.
func busy(c *nvmf.Config) { c.Initiator.Command, c.Target.Command = 2*us, 2*us }

var sector = block.Request{Op: block.Read, Length: 512}

// TestCoresScale: n cores do n^scaling times the work of one.
func TestCoresScale(t *testing.T) {
	for _, scaling := range []float64{1, 0.73, 0.5} {
		l := tcpLayout()
		l.cfg.QueuePairs = 16
		s := &l.cfg.Initiator
		s.Command, s.Scaling = 10*us, units.Fraction(scaling)
		for _, cores := range []int{1, 2, 4, 16} {
			s.Cores = cores
			want := 1e5 * math.Pow(float64(cores), scaling)
			if got := rateOf(t, l, sector, 256); math.Abs(got/want-1) > 0.02 {
				t.Errorf("%d cores that scale by %v complete %.0f requests a second, not %.0f", cores, scaling, got,
					want)
			}
		}
	}
}

// TestDataTakesTime: what a core moves, and its digest, takes core time at the end that works; a second for as many
// bytes as the rate says.
func TestDataTakesTime(t *testing.T) {
	const size = 1 << 17
	large := block.Request{Op: block.Read, Length: size}
	write := block.Request{Op: block.Write, Length: size}
	inside := block.Request{Op: block.Write, Length: 4096}
	const giga = units.GBPerSecond
	for _, x := range []struct {
		name string
		set  func(c *nvmf.Config)
		q    block.Request
		want sim.Time
	}{
		{"nothing", func(*nvmf.Config) {}, large, 0},
		{"reads received", func(c *nvmf.Config) { c.Initiator.Receive = giga }, large, giga.TimeFor(size)},
		{"reads are not sent by initiators", func(c *nvmf.Config) { c.Initiator.Send = giga }, large, 0},
		{"reads sent", func(c *nvmf.Config) { c.Target.Send = 2 * giga }, large, (2 * giga).TimeFor(size)},
		{"reads are not received by targets", func(c *nvmf.Config) { c.Target.Receive = giga }, large, 0},
		{"writes sent", func(c *nvmf.Config) { c.Initiator.Send = giga }, write, giga.TimeFor(size)},
		{"writes received", func(c *nvmf.Config) { c.Target.Receive = giga }, write, giga.TimeFor(size)},
		{"in capsules", func(c *nvmf.Config) { c.Initiator.Send, c.Target.Receive = giga, 2*giga }, inside,
			giga.TimeFor(4096) + (2 * giga).TimeFor(4096)},
		{"digests of reads", func(c *nvmf.Config) {
			c.TCP.DataDigest, c.Target.Digest, c.Initiator.Digest = true, giga, 2*giga
		}, large, giga.TimeFor(size) + (2 * giga).TimeFor(size)},
		{"digests that nobody wants", func(c *nvmf.Config) { c.Target.Digest = giga }, large, 0},
		{"a request for data", func(c *nvmf.Config) { c.Initiator.Command, c.Target.Command = 4*us, 6*us }, write,
			3*us + 6*us},
		{"a command", func(c *nvmf.Config) { c.Initiator.Command, c.Target.Command = 4*us, 6*us }, inside, 6 * us},
		{"a latency for each message", func(c *nvmf.Config) { c.Initiator.Latency, c.Target.Latency = 3*us, 5*us },
			large, 8 * us},
		{"also for a request for data", func(c *nvmf.Config) { c.Initiator.Latency, c.Target.Latency = 3*us, 5*us },
			write, 16 * us},
		{"an interrupt", func(c *nvmf.Config) { c.Initiator.Interrupt.Command = 3 * us }, large, 3 * us},
		{"interrupts by messages and drives", func(c *nvmf.Config) { c.Target.Interrupt.Command = 3 * us }, large,
			6 * us},
		{"interrupts that wait", func(c *nvmf.Config) {
			c.Initiator.Interrupt = nvmf.Interrupt{Command: 3 * us, Events: 4, Delay: 20 * us}
		}, large, 23 * us},
		{"batches that wait", func(c *nvmf.Config) {
			c.Batch = nvmf.Batch{Commands: 4, Delay: 30 * us, Send: 2 * us}
		}, large, 32 * us},
	} {
		l := tcpLayout()
		busy(&l.cfg)
		digests := nvmf.Config{}
		x.set(&digests)
		l.cfg.TCP.DataDigest = digests.TCP.DataDigest
		bare := meanOf(t, l, x.q)
		x.set(&l.cfg)
		if got := meanOf(t, l, x.q) - bare; got != x.want {
			t.Errorf("%s: %v longer, not %v", x.name, got, x.want)
		}
	}
}

// TestRDMAMovesData: the network card moves data and serves requests for a write's.
func TestRDMAMovesData(t *testing.T) {
	l := defaultLayout()
	busy(&l.cfg)
	write := block.Request{Op: block.Write, Length: 1 << 17}
	bare := meanOf(t, l, write)
	l.cfg.Initiator.Latency, l.cfg.Target.Latency, l.cfg.Target.Digest = 3*us, 5*us, units.GBPerSecond
	l.cfg.TCP.DataDigest = true
	if got := meanOf(t, l, write) - bare; got != 8*us {
		t.Errorf("%v longer, not 8us", got)
	}
}

// TestPolls: an idle core that looks once a period finds a message after half of one on average, and after less than
// one.
func TestPolls(t *testing.T) {
	l := tcpLayout()
	bare := meanOf(t, l, sector)
	l.cfg.Initiator.Poll, l.cfg.Target.Poll = 10*us, 20*us
	all := loop(t, l, sector, 1, 200*units.Millisecond)
	var sum sim.Time
	for _, x := range all {
		if sum += x - bare; x < bare || x >= bare+50*us {
			t.Fatalf("%v; %v without polling", x, bare)
		}
	}
	// The target finds the command and the drive's completion. The standard error of the mean is below 0.2 us.
	if got := (sum / sim.Time(len(all))).Seconds() * 1e6; math.Abs(got-25) > 0.8 {
		t.Errorf("%.2f us longer on average, not 25", got)
	}
}

// TestLognormal: latencies have the mean and the 99th percentile asked for.
func TestLognormal(t *testing.T) {
	l := tcpLayout()
	bare := meanOf(t, l, sector)
	for _, p99 := range []sim.Time{12 * us, 40 * us, 140 * us} {
		l.cfg.Initiator.Latency, l.cfg.Initiator.LatencyP99 = 10*us, p99
		all := loop(t, l, sector, 1, 600*units.Millisecond)
		sum := sim.Time(0)
		for i := range all {
			all[i] -= bare
			sum += all[i]
		}
		slices.Sort(all)
		mean, high := (sum/sim.Time(len(all))).Seconds()*1e6, all[len(all)*99/100].Seconds()
		if math.Abs(mean/10-1) > 0.1 || math.Abs(high/p99.Seconds()-1) > 0.15 {
			t.Errorf("of %d: mean %.2f us, 99th percentile %.1f us, not 10us and %v", len(all), mean, 1e6*high, p99)
		}
	}
}

// TestInterruptsTogether: with many requests outstanding a core takes one interrupt for several, or none while it is
// busy.
func TestInterruptsTogether(t *testing.T) {
	l := tcpLayout()
	s := &l.cfg.Initiator
	s.Cores, s.Command = 1, 4*us
	s.Interrupt = nvmf.Interrupt{Command: 40 * us, Events: 8, Delay: units.Millisecond}
	if got := rateOf(t, l, sector, 256); math.Abs(got/250e3-1) > 0.02 {
		t.Errorf("a busy core completes %.0f requests a second, not 250000", got)
	}
	// Eight requests, of which none is waited for, come back together.
	s.Command = 0
	all := loop(t, l, sector, 8, 20*units.Millisecond)
	for _, x := range all {
		if x < 40*us || x > 60*us {
			t.Fatalf("%v: not an interrupt of 40us and the network", x)
		}
	}
}

// TestBatches: with full batches a core spends a batch's time once for all of its commands.
func TestBatches(t *testing.T) {
	l := tcpLayout()
	s := &l.cfg.Initiator
	s.Cores, s.Command = 1, 3*us
	l.cfg.Batch = nvmf.Batch{Commands: 16, Delay: units.Millisecond, Send: 32 * us}
	if got := rateOf(t, l, sector, 256); math.Abs(got/200e3-1) > 0.03 { // 3 us and a sixteenth of 32 us
		t.Errorf("%.0f requests a second, not 200000", got)
	}
}

// TestStacks: every stack is a valid configuration, and knows its name.
func TestStacks(t *testing.T) {
	for k := nvmf.SPDKRDMA; k <= nvmf.DPUTCP; k++ {
		c := nvmf.DefaultConfig()
		c.Initiator, c.Target, c.Batch = k.Initiator(), k.Target(), k.Batch()
		if err := c.Validate(); err != nil {
			t.Errorf("%v: %v", k, err)
		}
		if c.Initiator.Stack != k || c.Target.Stack != k {
			t.Errorf("%v: initiators have %v, targets %v", k, c.Initiator.Stack, c.Target.Stack)
		}
	}
	for p, want := range []nvmf.Stack{nvmf.SPDKRDMA, nvmf.SPDKRDMA, nvmf.LinuxTCP} {
		if got, _ := nvmf.Protocol(p).Stacks(); got != want {
			t.Errorf("%v: initiators have %v, not %v", nvmf.Protocol(p), got, want)
		}
	}
}
