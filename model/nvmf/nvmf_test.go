package nvmf_test

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"farflash/block"
	"farflash/block/blocktest"
	"farflash/model/fabric"
	"farflash/model/fabric/setting"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/sim"
)

const us = units.Microsecond

// Sizes on the wire without data: a command, a completion and an RDMA Read's request.
const (
	command  = 64
	response = 16
	pull     = 16
)

// TestUnloaded verifies that a lone request takes the sum of its steps, to the picosecond.
func TestUnloaded(t *testing.T) {
	for _, x := range []struct {
		name     string
		protocol nvmf.Protocol
		op       block.Op
		size     int64
		stages   func(l *layout) [nvmf.Stages]sim.Time
	}{
		{"read", nvmf.NVMeoF, block.Read, 32 << 10, func(l *layout) (s [nvmf.Stages]sim.Time) {
			s[nvmf.NetworkOut] = hops(l.network, l.delay, command)[0]
			s[nvmf.NetworkBack] = hops(l.network, l.delay, 32<<10, response)[1]
			return s
		}},
		{"write in the capsule", nvmf.NVMeoF, block.Write, 4096, func(l *layout) (s [nvmf.Stages]sim.Time) {
			s[nvmf.NetworkOut] = hops(l.network, l.delay, command+4096)[0]
			s[nvmf.NetworkBack] = hops(l.network, l.delay, response)[0]
			return s
		}},
		{"write that is fetched", nvmf.NVMeoF, block.Write, 4608, func(l *layout) (s [nvmf.Stages]sim.Time) {
			// The data stands for the request's ACK, so no ACK precedes it.
			s[nvmf.NetworkOut] = hops(l.network, l.delay, command)[0] + hops(l.network, l.delay, pull)[0] +
				hops(l.network, l.delay, 4608)[0]
			s[nvmf.NetworkBack] = hops(l.network, l.delay, response)[0]
			return s
		}},
		{"read over TCP", nvmf.NVMeTCP, block.Read, 8 << 10, func(l *layout) (s [nvmf.Stages]sim.Time) {
			s[nvmf.NetworkOut] = hops(l.network, l.delay, 72)[0]
			s[nvmf.NetworkBack] = hops(l.network, l.delay, 24+8<<10)[0] // no separate response
			return s
		}},
		{"write in the capsule over TCP", nvmf.NVMeTCP, block.Write, 4096, func(l *layout) (s [nvmf.Stages]sim.Time) {
			s[nvmf.NetworkOut] = hops(l.network, l.delay, 72+4096)[0]
			s[nvmf.NetworkBack] = hops(l.network, l.delay, 24)[0]
			return s
		}},
		{"write after an R2T over TCP", nvmf.NVMeTCP, block.Write, 10240, func(l *layout) (s [nvmf.Stages]sim.Time) {
			// The data is in units of 4 KiB, 4 KiB and 2 KiB. Software works once more at each end.
			s[nvmf.NetworkOut] = hops(l.network, l.delay, 72)[0] + hops(l.network, l.delay, 24)[0] +
				hops(l.network, l.delay, 3*24+10240)[0]
			s[nvmf.AtInitiator], s[nvmf.AtTarget] = l.cfg.Initiator.Command/2, l.cfg.Target.Command/2
			s[nvmf.NetworkBack] = hops(l.network, l.delay, 24)[0]
			return s
		}},
		{"flush", nvmf.NVMeoF, block.Flush, 0, func(l *layout) (s [nvmf.Stages]sim.Time) {
			s[nvmf.NetworkOut] = hops(l.network, l.delay, command)[0]
			s[nvmf.NetworkBack] = hops(l.network, l.delay, response)[0]
			return s
		}},
		{"read as a flow", nvmf.Flows, block.Read, 65536, func(l *layout) (s [nvmf.Stages]sim.Time) {
			s[nvmf.NetworkBack] = hops(l.network, l.delay, 65536)[0]
			return s
		}},
		{"write as a flow", nvmf.Flows, block.Write, 1000, func(l *layout) (s [nvmf.Stages]sim.Time) {
			s[nvmf.NetworkOut] = hops(l.network, l.delay, 1000)[0]
			return s
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			l := defaultLayout()
			l.protocol = x.protocol
			if x.protocol == nvmf.NVMeTCP {
				l.network = fabric.TCP(fabric.DefaultConfig())
				l.cfg.TCP.MaxHostData = 4096
			}
			if x.protocol == nvmf.Flows {
				l.own = false
				l.network.QueuePairs.Life = fabric.PerMessage
			}
			r := newRig(t, l)
			// Far enough apart not to overlap.
			for i := range 5 {
				r.ask(ask{at: sim.Time(i) * units.Millisecond,
					req: block.Request{Op: x.op, Offset: int64(i) << 20, Length: x.size}})
			}
			r.run(t)
			want := x.stages(&l)
			want[nvmf.Flash] = l.device.Latency[x.op]
			if x.protocol.Capsules() {
				// Half of each machine's work precedes the drive, half follows it.
				want[nvmf.AtInitiator] += l.cfg.Initiator.Command
				want[nvmf.AtTarget] += l.cfg.Target.Command / 2
				want[nvmf.TXQ] = l.cfg.Target.Command - l.cfg.Target.Command/2
			}
			for _, d := range r.done {
				if d.Stage != want {
					t.Fatalf("request %d: stages %v, want %v", d.Tag, d.Stage, want)
				}
				if x.protocol == nvmf.Flows {
					// A write's data leaves at once, and the write has arrived when its data has; a read's data leaves
					// when the drive has read it.
					in, came, out := d.Submitted, d.Submitted+want[nvmf.NetworkOut], d.Submitted+want[nvmf.NetworkOut]
					if x.op == block.Read {
						in, out = d.DriveOut, d.Ended
					}
					if d.NetIn != in || d.Arrived != came || d.NetOut != out || d.DriveIn != came {
						t.Fatalf("request %d: %+v", d.Tag, d)
					}
				}
				if d.DriveOut-d.DriveIn != l.device.Latency[x.op] {
					t.Fatalf("request %d: in the drive from %v to %v", d.Tag, d.DriveIn, d.DriveOut)
				}
			}
		})
	}
}

// TestInstantDrive verifies that with drives that take no time, requests as flows take as long as the same messages on
// the network alone.
func TestInstantDrive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := defaultLayout()
		l.protocol, l.own = nvmf.Flows, false
		l.network.QueuePairs.Life = fabric.PerMessage
		l.initiators, l.targets = rapid.IntRange(1, 5).Draw(t, "initiators"), rapid.IntRange(1, 3).Draw(t, "targets")
		l.device.Latency = [block.Ops]sim.Time{}
		l.cfg.DriveDepth = 65535
		r, alone := newRig(t, l), newRig(t, l)
		drawAsks(t, r, &l, 200, block.Write)
		r.run(t)
		sent := make([]sim.Time, len(r.asks))
		o := &outlet{rig: alone, asks: r.asks, initiators: l.initiators}
		o.at = alone.eng.AddHandler(o)
		for i := range r.asks {
			alone.eng.Schedule(alone.self, o.at, r.asks[i].at, 0, uint32(i))
		}
		alone.eng.Run(sim.Forever)
		for k, i := range o.order {
			sent[i] = alone.net.Messages()[k].Delivered - r.asks[i].at
		}
		for _, d := range r.done {
			if d.Ended-d.Submitted != sent[d.Tag] {
				t.Fatalf("request %d took %v, its message alone %v", d.Tag, d.Ended-d.Submitted, sent[d.Tag])
			}
		}
	})
}

// outlet sends only the messages of requests.
type outlet struct {
	*rig
	asks       []ask
	initiators int
	at         sim.Target
	order      []int32 // requests, by message
}

func (o *outlet) Handle(e sim.Event) {
	a := &o.asks[e.Arg]
	src, dst := o.node(int(a.initiator)), o.node(o.initiators+int(a.drive))
	if a.req.Op == block.Read {
		src, dst = dst, src
	}
	if _, err := o.net.Send(src, dst, 3, units.Bytes(a.req.Length)); err != nil {
		panic(err)
	}
	o.order = append(o.order, int32(e.Arg))
}

// drawAsks draws reads and writes, and the given further operations.
func drawAsks(t *rapid.T, r *rig, l *layout, most int, more ...block.Op) {
	ops := append([]block.Op{block.Read, block.Write}, more...)
	gap := rapid.SampledFrom([]sim.Time{0, us / 2, 5 * us, 100 * us}).Draw(t, "gap")
	at := sim.Time(0)
	for range rapid.IntRange(1, most).Draw(t, "requests") {
		q := block.Request{Op: rapid.SampledFrom(ops).Draw(t, "op")}
		if q.Op != block.Flush {
			q.Offset = int64(rapid.IntRange(0, 1000).Draw(t, "offset")) * 4096
			q.Length = int64(rapid.SampledFrom([]int{1, 2, 8, 9, 64, 300}).Draw(t, "sectors")) * 512
		}
		r.ask(ask{at: at, initiator: int32(rapid.IntRange(0, l.initiators-1).Draw(t, "initiator")),
			drive: int32(rapid.IntRange(0, l.targets*l.drives-1).Draw(t, "drive")), req: q})
		if gap > 0 {
			at += sim.Time(rapid.Int64Range(0, int64(2*gap)).Draw(t, "wait"))
		}
	}
}

// TestLaws verifies that no command is lost and that stages add up, however small the queues, with switches that pause
// each other and drives that refuse requests.
func TestLaws(t *testing.T) {
	var pauses, held uint64
	var waited [2]uint64
	rapid.Check(t, func(t *rapid.T) {
		l := defaultLayout()
		l.protocol = rapid.SampledFrom([]nvmf.Protocol{nvmf.NVMeoF, nvmf.NVMeoF, nvmf.NVMeTCP, nvmf.Flows}).Draw(t,
			"protocol")
		l.own = l.protocol == nvmf.NVMeTCP || l.protocol == nvmf.NVMeoF && rapid.Bool().Draw(t, "own queue pairs")
		if l.protocol == nvmf.NVMeTCP {
			l.network = fabric.TCP(l.network)
			l.lossy = true
			l.cfg.TCP = nvmf.TCP{HeaderDigest: rapid.Bool().Draw(t, "header digest"),
				DataDigest:  rapid.Bool().Draw(t, "data digest"),
				MaxHostData: rapid.SampledFrom([]units.Bytes{4096, 131072}).Draw(t, "h2c"),
				SuccessFlag: rapid.Bool().Draw(t, "success")}
		}
		if !l.own {
			l.network.QueuePairs.Life = rapid.SampledFrom([]setting.Life{fabric.Persistent, fabric.PerMessage}).Draw(t,
				"life")
		}
		l.initiators, l.targets, l.drives = rapid.IntRange(1, 6).Draw(t, "initiators"),
			rapid.IntRange(1, 3).Draw(t, "targets"), rapid.IntRange(1, 3).Draw(t, "drives")
		c := &l.cfg
		c.QueuePairs = rapid.IntRange(1, 3).Draw(t, "queue pairs")
		c.QueueDepth = rapid.SampledFrom([]int{1, 2, 16, 128}).Draw(t, "queue depth")
		c.DriveDepth = rapid.SampledFrom([]int{1, 3, 1024}).Draw(t, "drive depth")
		c.TXQ = rapid.SampledFrom([]units.Bytes{1, 5000, 200 * units.KiB, 32 * units.MiB}).Draw(t, "txq")
		c.WriteBuffers = rapid.SampledFrom([]units.Bytes{1, 20000, units.MiB, 32 * units.MiB}).Draw(t, "write buffers")
		c.Reads = nvmf.Reads{Target: rapid.SampledFrom([]int{1, 2, 16}).Draw(t, "reads"), Initiator: 16}
		c.InCapsule = rapid.SampledFrom([]units.Bytes{0, 4096, units.MiB}).Draw(t, "in capsule")
		for _, s := range []*nvmf.Software{&c.Initiator, &c.Target} {
			s.Cores = rapid.IntRange(0, 3).Draw(t, "cores")
			s.Command = rapid.SampledFrom([]units.Duration{0, 1, 730 * units.Nanosecond, 20 * us}).Draw(t, "software")
			s.Latency = rapid.SampledFrom([]units.Duration{0, 0, 5 * us}).Draw(t, "latency")
			if s.Latency > 0 && rapid.Bool().Draw(t, "tail") {
				s.LatencyP99 = 3 * s.Latency
			}
			s.Scaling = rapid.SampledFrom([]units.Fraction{1, 0.6}).Draw(t, "scaling")
			s.Receive = rapid.SampledFrom([]units.ByteRate{0, units.GBPerSecond}).Draw(t, "receive")
			switch rapid.IntRange(0, 3).Draw(t, "learns") {
			case 0:
				s.Poll = 7 * us
			case 1:
				s.Interrupt = nvmf.Interrupt{Command: us, Events: 5, Delay: 30 * us}
			}
		}
		drawShared(t, &l)
		if rapid.Bool().Draw(t, "batches") {
			c.Batch = nvmf.Batch{Commands: 3, Delay: 11 * us, Send: us}
		}
		l.network.Buffer = rapid.SampledFrom([]units.Bytes{600 * units.KiB, 2 * units.MiB, l.network.Buffer}).Draw(t,
			"buffer")
		l.device.Refuse = func(q block.Request) block.Status {
			if q.Offset%(17*4096) == 0 {
				return block.OutOfRange
			}
			return block.OK
		}
		r := newRig(t, l)
		drawAsks(t, r, &l, 300, block.Flush)
		r.run(t)
		memory, largest := c.WriteBuffers, units.Bytes(300*512)
		if b := &c.Buffers; b.Count > 0 {
			memory, largest = units.Bytes(b.Count)*b.Size, (largest+b.Size-1)/b.Size*b.Size
		}
		if k := &r.sys.Counters; k.MostReads > int32(c.Reads.Target) && l.protocol == nvmf.NVMeoF ||
			k.MostBuffers > max(memory, largest) || k.MostTXQ > max(c.TXQ, 300*512+64) {
			t.Fatalf("%d RDMA Reads at once, %v for writes, %v in a transmit queue", k.MostReads, k.MostBuffers,
				k.MostTXQ)
		}
		waited[0] += r.sys.Counters.HeldForBuffers
		waited[1] += r.sys.Counters.HeldForReads
		pauses += r.net.Counters.Pauses
		held += r.sys.Counters.HeldAtTXQ
		refused := uint64(0)
		for i := range r.asks {
			if l.device.Refuse(r.asks[i].req) != block.OK {
				refused++
			}
		}
		if r.sys.Counters.Failed != refused {
			t.Fatalf("%d commands failed, %d were refused", r.sys.Counters.Failed, refused)
		}
	})
	// A draw may have none of these; tests with fixed loads cover each (points_test.go, TestTXQHoldsWrites).
	t.Logf("%d pauses, %d full transmit queues, %d writes waited for memory and %d for RDMA Reads", pauses, held,
		waited[0], waited[1])
}

// TestBackPressure verifies that a full transmit queue keeps completions in the drive's queue, and thereby throttles
// the drive.
func TestBackPressure(t *testing.T) {
	l := defaultLayout()
	l.cfg.TXQ = 128 * units.KiB
	l.cfg.DriveDepth = 4
	l.cfg.QueueDepth = 64
	l.initiators = 4
	l.device.Latency[block.Read] = 0
	r := newRig(t, l)
	for i := range 400 {
		r.ask(ask{initiator: int32(i % 4), req: block.Request{Op: block.Read, Length: 64 << 10}})
	}
	r.run(t)
	testLog(t, r)
	k := &r.sys.Counters
	if k.HeldAtTXQ == 0 || k.HeldAtTarget == 0 || k.HeldAtInitiator == 0 {
		t.Errorf("held %d at the transmit queue, %d at the target, %d at initiators; want some of each", k.HeldAtTXQ,
			k.HeldAtTarget, k.HeldAtInitiator)
	}
	if k.MostTXQ > l.cfg.TXQ {
		t.Errorf("%v in a transmit queue of %v", k.MostTXQ, l.cfg.TXQ)
	}
	// One command's data fits together with another's response, so the link is never idle and the run takes the time
	// that the link needs.
	var last sim.Time
	for _, d := range r.done {
		last = max(last, d.Ended)
	}
	packets := units.Bytes(64<<10) / l.network.Payload
	least := 400 * rate.TimeFor(64*units.KiB+packets*l.network.Header)
	if last < least {
		t.Errorf("400 reads of 64 KiB took %v, less than the %v that the link needs", last, least)
	}
}

// TestDepth verifies that a queue pair never has more commands outstanding than its depth, and that a core works on one
// at a time.
func TestDepth(t *testing.T) {
	l := defaultLayout()
	l.cfg.QueueDepth = 8
	free(&l.cfg)
	l.cfg.Initiator.Command, l.cfg.Initiator.Cores = 2*us, 1
	r := newRig(t, l)
	const n = 1000
	for i := range n {
		r.ask(ask{req: block.Request{Op: block.Read, Offset: int64(i) << 12, Length: 512}})
	}
	r.run(t)
	var last sim.Time
	for _, d := range r.done {
		last = max(last, d.Ended)
	}
	// With 8 outstanding and a round trip of way, throughput is 8 / way; the core alone could do one in 2 us.
	way := 2*us + hops(l.network, l.delay, command)[0] + l.device.Latency[block.Read] +
		hops(l.network, l.delay, 512, response)[1]
	if least := n / 8 * way; last < least || last > least+least/10 {
		t.Errorf("%d reads with 8 outstanding took %v, want %v and a little more", n, last, least)
	}
}

// TestReadsBesideWrites verifies that the capsules of small reads overtake the data of large writes with which
// initiators' NICs answer targets' RDMA Reads: a read waits for packets on the wire, not for messages.
func TestReadsBesideWrites(t *testing.T) {
	l := defaultLayout()
	free(&l.cfg)
	r := newRig(t, l)
	var reads, writes int
	var spent, last sim.Time
	const n = 400
	for i := range 33 {
		q := block.Request{Op: block.Write, Length: 128 << 10}
		if i == 0 {
			q = block.Request{Op: block.Read, Length: 4096}
		}
		r.ask(ask{req: q})
	}
	r.onEnded = func(d *nvmf.Done) {
		r.done = r.done[:0]
		if d.Op == block.Read {
			reads++
			spent += d.Ended - d.Submitted
		} else {
			writes++
		}
		last = d.Ended
		if reads < n {
			r.sys.Submit(0, 0, block.Request{Op: d.Op, Length: d.Length, Tag: d.Tag})
		}
	}
	r.eng.Run(sim.Forever)
	if err := errors.Join(r.sys.Err(), r.sys.Check(), r.net.Check()); err != nil {
		t.Fatal(err)
	}
	if most := r.sys.Counters.MostReads; most != 16 {
		t.Errorf("%d RDMA Reads at once, want 16", most)
	}
	alone := hops(l.network, l.delay, command)[0] + l.device.Latency[block.Read] +
		hops(l.network, l.delay, 4096, response)[1]
	packet := rate.TimeFor(l.network.Payload + l.network.Header)
	if mean := spent / sim.Time(reads); mean < alone || mean > alone+4*packet {
		t.Errorf("reads took %v in the mean beside writes, want %v and at most four packets of %v more", mean, alone,
			packet)
	}
	// Writes lose only the bandwidth of the reads' capsules.
	if share := float64(units.Bytes(writes)*128*units.KiB*8) / last.Seconds() / float64(rate); share < 0.85 {
		t.Errorf("writes had %.3f of the line", share)
	}
}

// TestNoAllocations verifies that a system, once it has been at its fullest, allocates no memory per command.
func TestNoAllocations(t *testing.T) {
	l := defaultLayout()
	l.initiators = 2
	r := newRig(t, l)
	q := block.Request{Op: block.Read, Length: 8192}
	left := 0
	r.onEnded = func(d *nvmf.Done) {
		r.done = r.done[:0]
		if left--; left > 0 {
			q.Op = block.Op(left % 2) // reads and writes
			r.sys.Submit(d.Initiator, 0, q)
		}
	}
	work := func(n int) {
		left = n
		for i := range 32 {
			r.sys.Submit(int32(i%2), 0, q)
		}
		r.eng.Run(sim.Forever)
	}
	const n = 20000
	work(n)
	per := testing.AllocsPerRun(1, func() { work(n) }) / n
	// Messages are kept in growing slices: a few allocations in all.
	if per > 0.01 {
		t.Errorf("%.3f allocations a command", per)
	}
}

func BenchmarkSystem(b *testing.B) {
	l := defaultLayout()
	l.initiators = 4
	r := newRig(failNow{b}, l)
	left := b.N
	q := block.Request{Op: block.Read, Length: 4096}
	r.onEnded = func(d *nvmf.Done) {
		r.done = r.done[:0]
		if left--; left > 0 {
			r.sys.Submit(d.Initiator, 0, q)
		}
	}
	b.ReportAllocs()
	for i := range min(b.N, 128) {
		r.sys.Submit(int32(i%4), 0, q)
	}
	r.eng.Run(sim.Forever)
	b.ReportMetric(float64(r.eng.Events())/float64(b.N), "events/op")
}

// failNow adapts a benchmark to failer.
type failNow struct{ testing.TB }

func TestConfig(t *testing.T) {
	for _, x := range []struct {
		change func(*nvmf.Config)
		want   string
	}{
		{func(c *nvmf.Config) { c.QueuePairs = 0 }, "queue_pairs: 0 is not possible; use 1 to 128"},
		{func(c *nvmf.Config) { c.QueueDepth = 1 << 20 }, "queue_depth: 1048576 is not possible; use 1 to 65536"},
		{func(c *nvmf.Config) { c.InCapsule = -1 }, "in_capsule: -1B is not possible; use 0B to 16MiB"},
		{func(c *nvmf.Config) { c.MaxTransfer = 1000 },
			"max_transfer: 1KB is not possible; use a multiple of 512B up to 1GiB"},
		{func(c *nvmf.Config) { c.TXQ = 0 }, "txq: 0B is not possible; use a size such as 16MiB"},
		{func(c *nvmf.Config) { c.WriteBuffers = 0 }, "write_buffers: 0B is not possible; use a size such as 16MiB"},
		{func(c *nvmf.Config) { c.Reads.Target = 0 }, "reads.target: 0 is not possible; use 1 to 65535"},
		{func(c *nvmf.Config) { c.Reads.Initiator = 70000 }, "reads.initiator: 70000 is not possible; use 1 to 65535"},
		{func(c *nvmf.Config) { c.DriveDepth = 70000 }, "drive_depth: 70000 is not possible; use 1 to 65535"},
		{func(c *nvmf.Config) { c.Class = 0 }, "class: 0 is not possible; use 1 to 7 (0 is for control traffic)"},
		{func(c *nvmf.Config) { c.Target.Command = -1 }, "target.command: -1ps is not possible; use 0s to 1s"},
		{func(c *nvmf.Config) { c.Target.Receive = -1 },
			"target.receive: -1B/s is not possible; use a rate such as 5GB/s, or 0B/s"},
		{func(c *nvmf.Config) { c.Initiator.Scaling = 0 },
			"initiator.scaling: 0% is not possible; use above 0% up to 100%"},
		{func(c *nvmf.Config) { c.Initiator.Latency, c.Initiator.LatencyP99 = us, us },
			"initiator.latency_p99: no lognormal time has a mean of 1us and a 99th percentile of 1us; use above the " +
				"mean and up to 14 times as much, or 0s"},
		{func(c *nvmf.Config) { c.Initiator.Latency, c.Initiator.LatencyP99 = us, 15*us },
			"initiator.latency_p99: no lognormal time has a mean of 1us and a 99th percentile of 15us; use above the " +
				"mean and up to 14 times as much, or 0s"},
		{func(c *nvmf.Config) { c.Initiator.Interrupt.Events = 4 },
			"initiator.interrupt.delay: 4 events may never come; use a time such as 20us, or 1 event"},
		{func(c *nvmf.Config) { c.Initiator.Interrupt.Delay = us },
			"initiator.interrupt.delay: one event waits for no other; use 0s, or more events"},
		{func(c *nvmf.Config) { c.Target.Interrupt.Command, c.Target.Poll = us, us },
			"target.interrupt: a core that polls has none; use poll: 0s"},
		{func(c *nvmf.Config) { c.Batch.Commands = 4 },
			"batch.delay: 4 commands may never come; use a time such as 50us, or 1 command"},
		{func(c *nvmf.Config) { c.Batch.Send = us },
			"batch.send: without batches it is part of command; use 0s"},
		{func(c *nvmf.Config) { c.Initiator.Cores = -1 },
			"initiator.cores: -1 is not possible; use 1 to 4096, or 0 for one per queue pair"},
	} {
		c := nvmf.DefaultConfig()
		x.change(&c)
		if err := c.Validate(); fmt.Sprint(err) != x.want {
			t.Errorf("%v, want %s", err, x.want)
		}
	}
}

// TestTune verifies that with separate queues writes can be limited to one at a time without limiting reads.
func TestTune(t *testing.T) {
	l := defaultLayout()
	l.drives = 0
	r := newRig(t, l)
	d, err := blocktest.New(l.device, r.eng, r.sys.Complete)
	if err != nil {
		t.Fatal(err)
	}
	n, err := r.sys.AddDriveQueues(0, d, l.cfg.ReadAndWrite())
	if err != nil {
		t.Fatal(err)
	}
	if !r.sys.Tune(n, 1, 1, 1) {
		t.Fatal("the drive cannot be tuned")
	}
	const each = 8
	for i := range 2 * each {
		r.ask(ask{req: block.Request{Op: block.Op(i % 2), Offset: int64(i) << 12, Length: 512}})
	}
	r.run(t)
	most := [2]int{}
	for _, a := range r.done {
		n := 0
		for _, b := range r.done {
			// A drive takes as long for each command as for a lone one: later ones waited.
			if start := b.DriveOut - l.device.Latency[b.Op]; b.Op == a.Op &&
				start <= a.DriveOut-l.device.Latency[a.Op] && a.DriveOut-l.device.Latency[a.Op] < b.DriveOut {
				n++
			}
		}
		most[a.Op] = max(most[a.Op], n)
	}
	if most != [2]int{each, 1} {
		t.Errorf("%d reads and %d writes at once, want %d and 1", most[0], most[1], each)
	}
	for op := range block.Ops {
		bad := l.cfg.OneQueue()
		bad.Use(op, 1)
		if _, err := r.sys.AddDriveQueues(0, d, bad); err == nil {
			t.Errorf("%ss go to a queue that there is not", op)
		}
	}
}

// TestLargerThanQueue verifies that an answer larger than the transmit queue, or a write larger than the memory for
// writes, gets it to itself, and that the laws hold throughout.
func TestLargerThanQueue(t *testing.T) {
	l := defaultLayout()
	l.cfg.TXQ, l.cfg.WriteBuffers = 4*units.KiB, 4*units.KiB
	r := newRig(t, l)
	for i, size := range []int64{4096, 512, 65536, 512, 8192} {
		r.ask(ask{req: block.Request{Op: block.Read, Length: size}})
		r.ask(ask{at: sim.Time(i), req: block.Request{Op: block.Write, Length: size * 3}})
	}
	for at := sim.Time(0); r.eng.Pending() > 0; at += us / 4 {
		r.eng.Run(at)
		if err := r.sys.Check(); err != nil {
			t.Fatalf("at %v: %v", at, err)
		}
	}
	r.run(t)
	if k := &r.sys.Counters; k.MostTXQ != 65536+response || k.MostBuffers != 3*65536 {
		t.Errorf("at most %v in a transmit queue and %v for writes", k.MostTXQ, k.MostBuffers)
	}
}

// free makes software free.
func free(c *nvmf.Config) {
	for _, s := range []*nvmf.Software{&c.Initiator, &c.Target} {
		s.Command, s.Cores = 0, 0
	}
}
