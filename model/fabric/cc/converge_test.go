package cc

import (
	"container/heap"
	"testing"

	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// bottle is the smallest network that closes the loop: senders, a link that they share, and a return path without a
// queue.
type bottle struct {
	alg        Algorithm
	wants      Wants
	line, link units.BitRate
	rtt        sim.Time // of a packet that waits nowhere, without its time on the wire
	kmin, kmax units.Bytes
	pmax       float64
	cnpEvery   sim.Time // least time between CNPs; 0: the ACK of every marked packet is one
	from       sim.Time // when measuring begins

	flows   []flow
	events  agenda
	order   int
	now     sim.Time
	sent    uint64 // bytes the link has carried
	random  rng.Stream
	meter   Meter
	codec   *Codec
	queue   float64 // sum over packets
	packets int
	marks   int
	waiting []parcel // the packet on the link and those behind it, starting at head
	head    int
}

const (
	payload = 1000
	wire    = 1048
)

type flow struct {
	Sender
	next, acked uint64
	last, ready sim.Time
	pending     bool // a send event is in the agenda
	cnp         sim.Time
	goodput     uint64
}

type parcel struct {
	q      int32
	seq    uint64
	sent   sim.Time
	hop    Hop
	power  uint16
	marked bool
}

type event struct {
	at    sim.Time
	order int
	kind  int
	q     int32
	p     parcel
}

type agenda []event

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].order < a[j].order
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(event)) }
func (a *agenda) Pop() any {
	x := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return x
}

const (
	sendEvent = iota
	leaveEvent
	ackEvent
	wakeEvent
)

func (b *bottle) at(t sim.Time, kind int, q int32, p parcel) {
	b.order++
	heap.Push(&b.events, event{t, b.order, kind, q, p})
}

func (b *bottle) start(n int) {
	b.wants = b.alg.Wants()
	b.random = rng.NewStream(1, "bottle")
	b.codec, _ = NewCodec(1.05)
	b.flows = make([]flow, n)
	for q := range b.flows {
		f := &b.flows[q]
		f.Sender = Sender{Line: b.line, BaseRTT: b.rtt, BDP: units.Bytes(float64(b.line) / 8 * b.rtt.Seconds()),
			MTU: payload, Hops: 1}
		f.cnp = -units.Second
		b.alg.Start(int32(q), &f.Sender)
		f.pending = true
		b.at(sim.Time(q)*us, sendEvent, int32(q), parcel{})
	}
}

func (b *bottle) react(q int32, x *Signal) {
	f := &b.flows[q]
	before := f.Rate
	x.Now = b.now
	wake := f.Wake
	b.alg.React(q, &f.Sender, x)
	if f.Wake != wake && f.Wake != sim.Forever {
		b.at(f.Wake, wakeEvent, q, parcel{})
	}
	if b.wants.Repace && f.Rate != before {
		f.ready = f.last + f.Rate.TimeFor(wire)
	}
	b.arm(q)
}

// arm schedules q's next send.
func (b *bottle) arm(q int32) {
	f := &b.flows[q]
	if !f.pending && (f.Window == 0 || f.next-f.acked < uint64(f.Window)) {
		f.pending = true
		b.at(max(b.now, f.ready), sendEvent, q, parcel{})
	}
}

func (b *bottle) run(until sim.Time) {
	for len(b.events) > 0 && b.events[0].at <= until {
		e := heap.Pop(&b.events).(event)
		b.now = e.at
		f := &b.flows[e.q]
		switch e.kind {
		case sendEvent:
			f.pending = false
			if f.ready > b.now {
				b.arm(e.q)
				continue
			}
			if f.Window != 0 && f.next-f.acked >= uint64(f.Window) {
				continue
			}
			f.next += payload
			f.last = b.now
			f.ready = b.now + f.Rate.TimeFor(wire)
			p := parcel{q: e.q, seq: f.next, sent: b.now}
			b.waiting = append(b.waiting, p)
			if len(b.waiting)-b.head == 1 {
				b.at(b.now+b.link.TimeFor(wire), leaveEvent, 0, parcel{})
			}
			if b.wants.Sent {
				b.react(e.q, &Signal{Kind: Sent, Payload: payload})
			}
			b.arm(e.q)
		case leaveEvent:
			p := b.waiting[b.head]
			b.head++
			if b.head > 4096 {
				b.waiting = append(b.waiting[:0], b.waiting[b.head:]...)
				b.head = 0
			}
			queue := units.Bytes(len(b.waiting)-b.head) * wire
			switch {
			case queue >= b.kmax:
				p.marked = true
			case queue > b.kmin:
				p.marked = b.random.Float64() < b.pmax*float64(queue-b.kmin)/float64(b.kmax-b.kmin)
			}
			p.hop = Hop{Time: b.now, Bytes: b.sent, Queue: queue, Rate: b.link}
			if b.wants.PINT {
				p.power = b.meter.Update(b.now, wire, queue, b.link, b.rtt, b.codec, &b.random)
			}
			b.sent += wire
			if b.now >= b.from {
				b.queue += float64(queue)
				b.packets++
				if p.marked {
					b.marks++
				}
			}
			b.at(b.now+b.rtt, ackEvent, p.q, p)
			if len(b.waiting) > b.head {
				b.at(b.now+b.link.TimeFor(wire), leaveEvent, 0, parcel{})
			}
		case ackEvent:
			f.acked = e.p.seq
			if b.now >= b.from {
				f.goodput += wire
			}
			if b.wants.CNPs && e.p.marked && b.now-f.cnp >= b.cnpEvery {
				f.cnp = b.now
				b.react(e.q, &Signal{Kind: CNP})
			}
			if b.wants.Acks {
				b.react(e.q, &Signal{Kind: Ack, Marked: e.p.marked, Power: e.p.power, Acked: f.acked, Next: f.next,
					RTT: b.now - e.p.sent, Hops: []Hop{Quantise(e.p.hop, 1)}})
			}
			b.arm(e.q)
		case wakeEvent:
			if f.Wake == b.now {
				f.Wake = sim.Forever
				b.react(e.q, &Signal{Kind: Timer})
			}
		}
	}
}

// outcome returns the link's utilisation, Jain's index of fairness and the mean queue.
func (b *bottle) outcome(until sim.Time) (use, jain float64, queue units.Bytes) {
	var sum, squares float64
	for i := range b.flows {
		g := float64(b.flows[i].goodput)
		sum += g
		squares += g * g
	}
	use = sum * 8 / (until - b.from).Seconds() / float64(b.link)
	return use, sum * sum / squares / float64(len(b.flows)), units.Bytes(b.queue / float64(b.packets))
}

// TestConvergence lets four hosts of 40G share a link of 40G under each algorithm.
func TestConvergence(t *testing.T) {
	const line = 40 * units.Gbps
	scaled := MellanoxDCQCN(line)
	scaled.Window = WindowScaled
	ai := defaultHPCC()
	ai.RateAI = 200 * units.Mbps
	ai.MaxStage = 0
	multi := ai
	multi.MultiRate = true
	pint := defaultPINT()
	pint.RateAI, pint.MaxStage = ai.RateAI, 0
	sampled := pint
	sampled.Probability = 1.0 / 16
	timelyHere := DefaultTimely()
	timelyHere.RateAI, timelyHere.RateHAI = 40*units.Mbps, 200*units.Mbps
	for _, c := range []struct {
		name      string
		alg       Algorithm
		cnpEvery  sim.Time
		step      bool // all packets are marked from 120 KB on
		use, jain float64
		queue     units.Bytes
	}{
		{"dcqcn/paper", must(newDCQCN(DefaultDCQCN(), 100*units.Mbps)), 50 * us, false, 0.97, 0.95, 300 * units.KB},
		{"dcqcn/mellanox", must(newDCQCN(MellanoxDCQCN(line), 100*units.Mbps)), 0, false, 0.95, 0.95, 300 * units.KB},
		{"dcqcn/mellanox with a window", must(newDCQCN(scaled, 100*units.Mbps)), 0, false, 0.95, 0.95, 300 * units.KB},
		{"dcqcn/ns3-rdma", must(newDCQCN(NS3RDMADCQCN(), 100*units.Mbps)), 50 * us, false, 0.95, 0.9, 300 * units.KB},
		{"dctcp", must(newDCTCP(defaultDCTCP(), 100*units.Mbps)), 0, true, 0.97, 0.95, 200 * units.KB},
		{"timely", must(newTimely(timelyHere, 100*units.Mbps)), 0, false, 0.7, 0.9, 400 * units.KB},
		{"hpcc", must(newHPCC(ai, 100*units.Mbps)), 0, false, 0.9, 0.8, 20 * units.KB},
		{"hpcc/a rate per hop", must(newHPCC(multi, 100*units.Mbps)), 0, false, 0.9, 0.8, 20 * units.KB},
		{"hpcc-pint", must(newPINT(pint, 100*units.Mbps, 1)), 0, false, 0.85, 0.9, 20 * units.KB},
		{"hpcc-pint, sampled", must(newPINT(sampled, 100*units.Mbps, 1)), 0, false, 0.8, 0.9, 40 * units.KB},
		{"swift", must(newSwift(defaultSwift())), 0, false, 0.97, 0.95, 600 * units.KB},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bottle{alg: c.alg, line: line, link: line, rtt: 8 * us, kmin: 160 * units.KB, kmax: 640 * units.KB,
				pmax: 0.2, cnpEvery: c.cnpEvery, from: 10 * units.Millisecond}
			if c.step {
				b.kmin, b.kmax = 120*units.KB, 120*units.KB
			}
			b.start(4)
			const until = 25 * units.Millisecond
			b.run(until)
			use, jain, queue := b.outcome(until)
			t.Logf("use %.3f, Jain %.4f, queue %v, marks %.4f", use, jain, queue, float64(b.marks)/float64(b.packets))
			if use < c.use || use > 1.001 || jain < c.jain || queue > c.queue {
				t.Errorf("use %.3f, Jain %.4f, queue %v; want at least %v, %v and at most %v", use, jain, queue,
					c.use, c.jain, c.queue)
			}
		})
	}
}

// TestFixedPointIsMet compares the fluid model with packets where the model predicts a stable fixed point.
func TestFixedPointIsMet(t *testing.T) {
	c := DefaultDCQCN()
	for _, n := range []int{2, 4, 8} {
		link := Bottleneck{Flows: n, Capacity: 40 * units.Gbps, Packet: wire, CNPInterval: 50 * us,
			KMin: 5 * units.KB, KMax: 1000 * units.KB, PMax: 1}
		want, err := FixedPoint(c, link)
		if err != nil {
			t.Fatal(err)
		}
		b := bottle{alg: must(newDCQCN(c, units.Mbps)), line: 40 * units.Gbps, link: link.Capacity, rtt: 4 * us,
			kmin: link.KMin, kmax: link.KMax, pmax: 1, cnpEvery: link.CNPInterval, from: 30 * units.Millisecond}
		b.start(n)
		const until = 60 * units.Millisecond
		b.run(until)
		use, _, queue := b.outcome(until)
		p := float64(b.marks) / float64(b.packets)
		t.Logf("%d flows: queue %v, model %v; marks %.5f, model %.5f; use %.3f", n, queue, want.Queue, p, want.P, use)
		if r := float64(queue) / float64(want.Queue); r < 0.6 || r > 1.6 {
			t.Errorf("%d flows: queue %v, the fluid model says %v", n, queue, want.Queue)
		}
	}
}
