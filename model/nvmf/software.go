package nvmf

import (
	"math"

	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// Software is the work of a machine's processors for commands, and the time that software adds without working. The two
// are separate: the first bounds commands per second, the second only delays.
type Software struct {
	// Stack sets the other keys' defaults. With protocol: nvme-tcp it is linux-tcp, for targets spdk-tcp, by default.
	Stack Stack
	// Command is a core's time for a command, half when it is sent or arrives at the target, and half when its result
	// is sent or arrives. On TCP the request for a write's data, and that data, take half as much again. One core
	// handles the commands of a queue pair one after another.
	Command units.Duration
	// Receive is the rate at which a core moves data out of a socket, and Send that into one; 0B/s: another part of the
	// machine does it, as with RDMA.
	Receive units.ByteRate
	Send    units.ByteRate // see Receive
	// Digest is the rate at which a core computes TCP's digests; 0B/s: hardware does it.
	Digest units.ByteRate
	// Latency is the mean time from a message's arrival to its effect, beyond Command and without occupying a core:
	// interrupts, wake-ups, the NIC.
	Latency units.Duration
	// LatencyP99 is the 99th percentile of Latency, which then is lognormal; 0s: it is constant.
	LatencyP99 units.Duration
	Cores      int // Cores is the number of cores that share a machine's queue pairs; 0 is one each.
	// Scaling is the loss to what cores share: n cores that work at the same time do n^scaling times the work of one.
	// 100% is no loss.
	Scaling units.Fraction
	// Poll is the period in which an idle core looks for messages and completions; 0s: it finds them at once.
	Poll units.Duration
	// Interrupt is how an idle core learns of messages and completions. A busy one goes on with them without another
	// interrupt.
	Interrupt Interrupt
}

// Interrupt is the cost and the coalescing of interrupts.
type Interrupt struct {
	Command units.Duration // Command is a core's time for an interrupt.
	// Events is the number of events after which one is raised, Delay the longest time that the first of them waits.
	// With 1, every event raises one.
	Events int
	Delay  units.Duration // see Events
}

// Batch is how an initiator gathers the commands of a queue pair and hands them to the network together (Hwang et al.,
// i10, NSDI 2020).
type Batch struct {
	Commands int            // Commands is the number that are sent together; 1: each is sent at once.
	Delay    units.Duration // Delay is the longest time that the first of them waits.
	Send     units.Duration // Send is a core's time to hand a batch to the network.
}

func (s *Software) validate() error {
	var bad units.Faults
	bad.Hold(s.Command >= 0 && s.Command <= units.Second, "command", "%v is not possible; use 0s to 1s", s.Command)
	bad.Hold(s.Receive >= 0, "receive", "%v is not possible; use a rate such as 5GB/s, or 0B/s", s.Receive)
	bad.Hold(s.Send >= 0, "send", "%v is not possible; use a rate such as 5GB/s, or 0B/s", s.Send)
	bad.Hold(s.Digest >= 0, "digest", "%v is not possible; use a rate such as 3GB/s, or 0B/s", s.Digest)
	bad.Hold(s.Latency >= 0 && s.Latency <= units.Second, "latency", "%v is not possible; use 0s to 1s", s.Latency)
	_, ok := lognormal(s.Latency, s.LatencyP99)
	bad.Hold(s.LatencyP99 == 0 || ok, "latency_p99", "no lognormal time has a mean of %v and a 99th percentile of %v; "+
		"use above the mean and up to 14 times as much, or 0s", s.Latency, s.LatencyP99)
	bad.Hold(s.Cores >= 0 && s.Cores <= 4096, "cores", "%d is not possible; use 1 to 4096, or 0 for one per queue pair",
		s.Cores)
	bad.Hold(s.Scaling > 0 && s.Scaling <= 1, "scaling", "%v is not possible; use above 0%% up to 100%%", s.Scaling)
	bad.Hold(s.Poll >= 0 && s.Poll <= units.Second, "poll", "%v is not possible; use 0s to 1s", s.Poll)
	i := &s.Interrupt
	bad.Hold(i.Command >= 0 && i.Command <= units.Second, "interrupt.command", "%v is not possible; use 0s to 1s",
		i.Command)
	bad.Hold(i.Events >= 1 && i.Events <= 65536, "interrupt.events", "%d is not possible; use 1 to 65536", i.Events)
	bad.Hold(i.Delay >= 0 && i.Delay <= units.Second, "interrupt.delay", "%v is not possible; use 0s to 1s", i.Delay)
	bad.Hold(i.Events == 1 || i.Delay > 0, "interrupt.delay",
		"%d events may never come; use a time such as 20us, or 1 event", i.Events)
	bad.Hold(i.Events > 1 || i.Delay == 0, "interrupt.delay", "one event waits for no other; use 0s, or more events")
	bad.Hold(s.Poll == 0 || *i == Interrupt{Events: 1}, "interrupt", "a core that polls has none; use poll: 0s")
	return bad.Err()
}

func (b *Batch) validate() error {
	var bad units.Faults
	bad.Hold(b.Commands >= 1 && b.Commands <= 65536, "commands", "%d is not possible; use 1 to 65536", b.Commands)
	bad.Hold(b.Delay >= 0 && b.Delay <= units.Second, "delay", "%v is not possible; use 0s to 1s", b.Delay)
	bad.Hold(b.Commands == 1 || b.Delay > 0, "delay",
		"%d commands may never come; use a time such as 50us, or 1 command", b.Commands)
	bad.Hold(b.Send >= 0 && b.Send <= units.Second, "send", "%v is not possible; use 0s to 1s", b.Send)
	bad.Hold(b.Commands > 1 || b.Send == 0, "send", "without batches it is part of command; use 0s")
	return bad.Err()
}

// before and after are the halves of a command's core time, before the drive's work and after it.
func (s *Software) before() sim.Time { return s.Command / 2 }

func (s *Software) after() sim.Time { return s.Command - s.Command/2 }

// moved returns a core's time for n bytes of data at a rate, with their digest.
func (s *System) moved(side *Software, rate units.ByteRate, n units.Bytes) sim.Time {
	if n == 0 {
		return 0
	}
	t := sim.Time(0)
	if rate > 0 {
		t = rate.TimeFor(n)
	}
	if s.protocol == NVMeTCP && s.cfg.TCP.DataDigest && side.Digest > 0 {
		t += side.Digest.TimeFor(n)
	}
	return t
}

// z99 is the 99th percentile of the standard normal distribution.
const z99 = 2.3263478740408408

// shape is that of a lognormal time: its logarithm, in picoseconds, has this mean and standard deviation.
type shape struct{ mu, sigma float64 }

// lognormal returns the lognormal distribution with a mean and a 99th percentile. Of the two, take the narrow one: the
// ratio of percentile to mean, exp(z sigma - sigma^2/2), is greatest at sigma = z.
func lognormal(mean, p99 units.Duration) (shape, bool) {
	if mean <= 0 || p99 <= mean {
		return shape{}, false
	}
	r := float64(2 * rng.Log(float64(p99)/float64(mean)))
	if r > float64(z99*z99) {
		return shape{}, false
	}
	sigma := z99 - math.Sqrt(float64(z99*z99)-r)
	return shape{rng.Log(float64(mean)) - float64(float64(sigma*sigma)/2), sigma}, true
}

// side is the software of initiators or of targets while it runs.
type side struct {
	*Software
	tail    shape     // of Latency
	factors []float64 // of the work of a core, by the number of cores at work
}

// makeSide prepares software for machines of n cores.
func makeSide(s *Software, n int32) side {
	x := side{Software: s}
	x.tail, _ = lognormal(s.Latency, s.LatencyP99)
	if s.Scaling < 1 {
		for k := range n + 1 {
			x.factors = append(x.factors, rng.Pow(float64(max(k, 1)), 1-float64(s.Scaling)))
		}
	}
	return x
}

// machine is a node with processor cores.
type machine struct {
	node        int32
	more        []int32 // nodes of its other network cards
	first, many int32   // its cores in System.cores
}

// core is a processor core.
type core struct {
	until   sim.Time // it is busy
	pending []task   // wait for an interrupt
	timer   sim.Timer
	machine int32
	target  bool // whether that is a target
	armed   bool // the timer exists
}

// task is a core's work for a command, after which kind is handled.
type task struct {
	cost, latency sim.Time
	command       int32
	kind          uint16
}

// makeCores allocates a machine's cores, at most one per queue pair.
func (s *System) makeCores(m *machine, number int32, target bool, cores, pairs int) {
	if cores == 0 || cores > pairs {
		cores = pairs
	}
	m.first, m.many = int32(len(s.cores)), int32(cores)
	for range cores {
		s.cores = append(s.cores, core{machine: number, target: target})
	}
}

// byInitiator occupies an initiator's core for a command, and then handles kind.
func (s *System) byInitiator(x *command, cost sim.Time, kind uint16, c int32) {
	m := &s.initiators[x.initiator]
	s.run(m, &s.initiating, s.coreOf(m, s.conns[x.conn].core), 0, task{cost, 0, c, kind})
}

// toInitiator is byInitiator for work that a message causes.
func (s *System) toInitiator(x *command, cost sim.Time, kind uint16, c int32) {
	m := &s.initiators[x.initiator]
	s.notice(m, &s.initiating, s.coreOf(m, s.conns[x.conn].core), task{cost, s.delay(&s.initiating), c, kind})
}

// toTarget is toInitiator at the target. latency is that of a message, 0 for a drive's completion.
func (s *System) toTarget(x *command, cost, latency sim.Time, kind uint16, c int32) {
	m := &s.targets[x.target].machine
	s.notice(m, &s.serving, s.coreOf(m, s.conns[x.conn].targetCore), task{cost, latency, c, kind})
}

// coreOf returns the index of the core that serves a queue pair, by its number at the machine.
func (s *System) coreOf(m *machine, number int32) int32 { return m.first + number%m.many }

// delay draws the latency of a message.
func (s *System) delay(x *side) sim.Time {
	if x.tail.sigma == 0 {
		return x.Latency
	}
	return sim.Time(min(rng.Exp(x.tail.mu+float64(x.tail.sigma*s.draws.Norm())), float64(units.Second)))
}

// notice gives a core work of which it must learn first.
func (s *System) notice(m *machine, x *side, n int32, t task) {
	k := &s.cores[n]
	switch i := &x.Interrupt; {
	case k.until > s.eng.Now() && len(k.pending) == 0:
		s.run(m, x, n, 0, t) // found after the core's current work
	case x.Poll > 0:
		s.run(m, x, n, sim.Time(float64(x.Poll)*s.draws.Float64()), t)
	case i.Events > 1:
		k.pending = append(k.pending, t)
		if len(k.pending) >= i.Events {
			s.interrupt(n)
			return
		}
		if len(k.pending) == 1 {
			if !k.armed {
				k.timer, k.armed = s.eng.NewTimer(s.self, s.target, evInterrupt, uint32(n)), true
			}
			s.eng.Arm(k.timer, s.eng.Now()+i.Delay)
		}
	default:
		t.cost += i.Command
		s.run(m, x, n, 0, t)
	}
}

// interrupt gives a core the work that waits for one.
func (s *System) interrupt(n int32) {
	k := &s.cores[n]
	x, m := &s.serving, (*machine)(nil)
	if k.target {
		m = &s.targets[k.machine].machine
	} else {
		x, m = &s.initiating, &s.initiators[k.machine]
	}
	s.eng.Disarm(k.timer)
	k.pending[0].cost += x.Interrupt.Command
	// Handling may cause further work for the core, but not from inside.
	tasks := k.pending
	k.pending = nil
	for _, t := range tasks {
		s.run(m, x, n, 0, t)
	}
	if k.pending == nil {
		k.pending = tasks[:0]
	}
}

// run gives a core work that begins after a wait. What follows it is handled at once if the work takes no time.
func (s *System) run(m *machine, x *side, n int32, wait sim.Time, t task) {
	now := s.eng.Now()
	k := &s.cores[n]
	if x.factors != nil && t.cost > 0 {
		busy := 1
		for i := m.first; i < m.first+m.many; i++ {
			if i != n && s.cores[i].until > now {
				busy++
			}
		}
		t.cost = sim.Time(float64(t.cost) * x.factors[busy])
	}
	k.until = max(k.until, now+wait) + t.cost
	if at := k.until + t.latency; at > now {
		s.eng.Schedule(s.self, s.target, at, t.kind, uint32(t.command))
		return
	}
	s.Handle(sim.Event{At: now, Kind: t.kind, Arg: uint32(t.command)})
}

// gather adds a command to the batch of its queue pair.
func (s *System) gather(c int32) {
	x := s.commands.At(c)
	q := &s.conns[x.conn]
	b := &s.cfg.Batch
	if !q.timed {
		q.timer, q.timed = s.eng.NewTimer(s.self, s.target, evBatchDue, uint32(x.conn)), true
	}
	x.at = batched
	if s.push(&q.batch, c); !q.sending && (q.batch.n == 1 || q.batch.n >= int32(b.Commands)) {
		s.fillBatch(x.conn)
	}
}

// fillBatch sends a queue pair's batch if it is full, and else waits for more commands.
func (s *System) fillBatch(conn int32) {
	q := &s.conns[conn]
	b := &s.cfg.Batch
	if q.batch.n >= int32(b.Commands) {
		s.sendBatch(conn)
	} else if q.batch.n > 0 {
		s.eng.Arm(q.timer, s.eng.Now()+b.Delay)
	}
}

// sendBatch starts the sending of a queue pair's batch.
func (s *System) sendBatch(conn int32) {
	q := &s.conns[conn]
	q.sending = true
	s.eng.Disarm(q.timer)
	x := s.commands.At(q.batch.head)
	s.byInitiator(x, s.cfg.Batch.Send, evBatchSent, conn)
}

// batchSent sends the commands of a batch.
func (s *System) batchSent(conn int32) {
	q := &s.conns[conn]
	q.sending = false
	for range min(q.batch.n, int32(s.cfg.Batch.Commands)) {
		s.sendCapsule(s.pop(&q.batch))
	}
	s.fillBatch(conn)
}
