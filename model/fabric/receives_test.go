package fabric

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"farflash/internal/draws"
	"farflash/model/fabric/cc"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/sim"
)

// pooled is a rig some of whose queue pairs share receives, each of which is posted again a time after its message has
// arrived.
type pooled struct {
	*rig
	pool    int32
	hold    func(m int32) sim.Time
	arrived map[int32]sim.Time
	again   int // receives posted again
	due     sim.Target
	own     sim.Component
}

// Handle posts a receive again.
func (x *pooled) Handle(sim.Event) {
	x.net.Repost(x.pool)
	x.again++
}

func newPooled(t failer, r *rig, receives int, timer, hold sim.Time) *pooled {
	t.Helper()
	x := &pooled{rig: r, hold: func(int32) sim.Time { return hold }, arrived: map[int32]sim.Time{}}
	var err error
	if x.pool, err = r.net.Pool(receives, timer); err != nil {
		t.Fatal(err)
	}
	x.own, x.due = r.eng.NewComponent(), r.eng.AddHandler(x)
	r.onDelivered = func(m int32) {
		x.arrived[m] = r.eng.Now()
		r.eng.Schedule(x.own, x.due, r.eng.Now()+x.hold(m), 0, 0)
	}
	return x
}

// open opens a queue pair that takes from the pool.
func (x *pooled) open(t failer, src, dst int32) QP {
	t.Helper()
	q, err := x.net.Open(src, dst, 3)
	if err == nil {
		err = x.net.Receives(q, x.pool)
	}
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func (x *pooled) post(t failer, q QP, size units.Bytes) int32 {
	t.Helper()
	m, err := x.net.Post(q, size)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestRefusedTwo is worked out by hand: two hosts send two messages of a packet each at once to a third, which has
// three receives. A packet takes 116.8 ns on each wire and a link 1 us, so the messages arrive from 2233.6 ns on, 116.8
// ns apart, in turns. The fourth, at 2584 ns, finds no receive. Its NAK takes 68.8 ns on each wire and is back at
// 4721.6 ns; 10 us later the message leaves again, for 2233.6 ns. At 16955.2 ns there is still no receive: the first is
// posted 20 us after its message came, at 22233.6 ns. The next NAK is back at 16955.2 + 2137.6 = 19092.8 ns, and the
// message leaves at 29092.8 ns and arrives at 31326.4 ns.
func TestRefusedTwo(t *testing.T) {
	r := newRig(t, plain(), star(t, 3, 10*units.Gbps, units.Microsecond), 1)
	x := newPooled(t, r, 3, 10*units.Microsecond, 20*units.Microsecond)
	var left []sim.Time // when packets left the senders
	r.net.OnSend = func(s Sending) {
		if s.Carries == Payload && r.net.ports[s.Port].host {
			left = append(left, s.Begin)
		}
	}
	a, b := x.open(t, 0, 2), x.open(t, 1, 2)
	list := []int32{x.post(t, a, 64), x.post(t, b, 64), x.post(t, a, 64), x.post(t, b, 64)}
	r.run(t, 1e4)
	r.drained(t)
	for i, want := range []sim.Time{2233600, 2350400, 2467200, 31326400} {
		if got := x.arrived[list[i]]; got != want {
			t.Errorf("message %d arrived at %v, not %v", i, got, want)
		}
	}
	if want := []sim.Time{0, 0, 116800, 116800, 14721600, 29092800}; !slices.Equal(left, want) {
		t.Errorf("packets left at %v, not %v", left, want)
	}
	// An ACK each for four messages, two RNR NAKs, no NACK, and no timeout.
	k := &r.net.Counters
	if k.RNRs != 2 || k.Acks != 6 || k.Nacks != 0 || k.Timeouts != 0 || k.Retransmits != 2 || k.Wasted != 2*64 {
		t.Errorf("%d refused, %d ACKs, %d NACKs, %d timeouts, %d packets again, %d bytes of no use", k.RNRs, k.Acks,
			k.Nacks, k.Timeouts, k.Retransmits, k.Wasted)
	}
	if got := r.net.Posted(x.pool); got != 3 {
		t.Errorf("%d receives are posted at the end", got)
	}
}

// TestRefusedInTurn compares a sender's messages with a recursion: message j leaves behind the one before it, arrives
// after two wires and links, and takes a receive or is refused; then it and all behind it leave again after the NAK's
// way back and the timer.
func TestRefusedInTurn(t *testing.T) {
	const us = units.Microsecond
	all := uint64(0)
	for _, c := range []struct {
		receives, packets int
		timer, hold       sim.Time
	}{
		{1, 1, 10 * us, 3 * us}, {1, 1, 10 * us, 55 * us}, {2, 1, 10 * us, 40 * us}, {3, 4, 20 * us, 7 * us},
		{5, 2, 80 * us, 30 * us}, {20, 3, 10 * us, 500 * us}, {4, 1, 655360 * us, us},
	} {
		cfg := plain()
		r := newRig(t, cfg, star(t, 2, 10*units.Gbps, us), 1)
		x := newPooled(t, r, c.receives, c.timer, c.hold)
		q := x.open(t, 0, 1)
		const count = 20
		size := units.Bytes(c.packets) * cfg.Payload
		var list []int32
		for range count {
			list = append(list, x.post(t, q, size))
		}
		r.run(t, 1e5)
		r.drained(t)
		wire, nak := wireTime(cfg.Payload+cfg.Header, 10*units.Gbps), wireTime(cfg.Acks.Size, 10*units.Gbps)
		leaves, refused := sim.Time(0), uint64(0)
		var posted []sim.Time // when receives are posted again
		for i := range count {
			for {
				first := leaves + 2*wire + 2*us
				taken := i
				for _, at := range posted {
					if at <= first {
						taken--
					}
				}
				if taken < c.receives {
					break
				}
				refused++
				leaves = first + 2*nak + 2*us + c.timer
			}
			leaves += sim.Time(c.packets) * wire
			want := leaves + wire + 2*us
			posted = append(posted, want+c.hold)
			if got := x.arrived[list[i]]; got != want {
				t.Fatalf("%+v: message %d arrived at %v, not %v", c, i, got, want)
			}
		}
		if k := &r.net.Counters; k.RNRs != refused || k.Nacks > 0 || k.Timeouts > 0 {
			t.Errorf("%+v: %d refused, not %d; %d NACKs, %d timeouts", c, k.RNRs, refused, k.Nacks, k.Timeouts)
		}
		all += refused
	}
	if all < 50 {
		t.Errorf("%d were refused in all", all)
	}
}

// TestRefusalsAreNoRetries: a queue pair that gives up after one timeout outlives any number of refusals, each longer
// than its timeout.
func TestRefusalsAreNoRetries(t *testing.T) {
	c := plain()
	c.Recovery.Timeout, c.Recovery.Retries = Timeout{Time: 50 * units.Microsecond}, 1
	r := newRig(t, c, star(t, 2, 10*units.Gbps, units.Microsecond), 1)
	x := newPooled(t, r, 1, 640*units.Microsecond, 20*units.Millisecond)
	q := x.open(t, 0, 1)
	x.post(t, q, 64)
	x.post(t, q, 64)
	r.run(t, 1e5)
	r.drained(t)
	if k := &r.net.Counters; k.RNRs < 30 || k.Timeouts > 0 || k.Broken > 0 {
		t.Errorf("%d refusals, %d timeouts, %d queue pairs given up", k.RNRs, k.Timeouts, k.Broken)
	}
}

// TestLossBesideRefusal: of a refused message of three packets the first is lost when it is sent again. The second
// shows the gap: there is a NACK, since the NAK's timer has ended, and no timeout. The refusal of a message that comes
// alone is lost with its NAK: the sender's own timer recovers it.
func TestLossBesideRefusal(t *testing.T) {
	const us = units.Microsecond
	for _, alone := range []bool{false, true} {
		c := plain()
		c.PFC.Enabled = false
		c.Recovery.Timeout = Timeout{Time: units.Millisecond}
		r := newRig(t, c, star(t, 2, 10*units.Gbps, us), 1)
		x := newPooled(t, r, 1, 10*us, 12*us)
		q := x.open(t, 0, 1)
		x.post(t, q, 64)
		x.post(t, q, 3*c.Payload)
		// The second message's first packet arrives 116.8 + 2 x 884.8 + 2000 ns on, at 3886.4 ns; its NAK is back
		// 2137.6 ns later, at 6024 ns, and it leaves again at 16024 ns.
		link, at := r.net.PortOf(0, true), sim.Time(16024000)
		if alone {
			link, at = r.net.PortOf(1, true), 3886400-1
		}
		p := &r.net.ports[link]
		r.eng.Run(at)
		p.lossy, p.loss = true, 1
		r.eng.Run(at + us + 900*units.Nanosecond) // its first packet has arrived by then, and the second has not
		p.lossy, p.loss = false, 0
		r.run(t, 1e5)
		r.drained(t)
		k := &r.net.Counters
		if want := []uint64{1, 1, 0}; !alone && !slices.Equal([]uint64{k.RNRs, k.Nacks, k.Timeouts}, want) {
			t.Errorf("%d refused, %d NACKs, %d timeouts; not %v", k.RNRs, k.Nacks, k.Timeouts, want)
		}
		if want := []uint64{1, 0, 1}; alone && !slices.Equal([]uint64{k.RNRs, k.Nacks, k.Timeouts}, want) {
			t.Errorf("without the NAK: %d refused, %d NACKs, %d timeouts; not %v", k.RNRs, k.Nacks, k.Timeouts, want)
		}
	}
}

// TestReceivesConserved verifies on random loads, with and without losses, that every message arrives once and in
// order, that as many receives are taken as messages have arrived, or begun to, and were not posted again, and that all
// are posted at the end.
func TestReceivesConserved(t *testing.T) {
	refused, lost := uint64(0), uint64(0)
	draws.Until(t, func() bool { return refused > 0 && lost > 0 }, func(t *rapid.T) {
		c := plain()
		c.PFC.Enabled = rapid.Bool().Draw(t, "pfc")
		c.Recovery.Retries = 0
		c.Recovery.Timeout = rapid.SampledFrom([]Timeout{{Auto: true}, {Time: 30 * units.Microsecond}}).Draw(t, "timeout")
		c.Recovery.NackInterval = rapid.SampledFrom([]sim.Time{0, 500 * units.Microsecond}).Draw(t, "nack interval")
		c.Acks.Every = rapid.SampledFrom([]int{1, 4}).Draw(t, "ack every")
		c.CongestionControl.Algorithm = rapid.SampledFrom([]cc.Scheme{cc.SchemeNone, cc.SchemeDCTCP,
			cc.SchemeHPCC, cc.SchemeDCQCN}).Draw(t, "scheme")
		hosts := rapid.IntRange(2, 4).Draw(t, "hosts")
		g := star(t, hosts, 10*units.Gbps, units.Microsecond)
		for i := range g.Links {
			g.Links[i].Loss = rapid.SampledFrom([]float64{0, 0, 0.02}).Draw(t, "loss")
		}
		r := newRig(t, c, g, rapid.Uint64Max(1000).Draw(t, "seed"))
		most := rapid.IntRange(1, 5).Draw(t, "receives")
		x := newPooled(t, r, most, rapid.SampledFrom([]sim.Time{10, 20, 120}).Draw(t, "timer")*units.Microsecond, 0)
		holds := rapid.SampledFrom([]sim.Time{0, 500 * units.Nanosecond, 30 * units.Microsecond})
		x.hold = func(int32) sim.Time { return holds.Draw(t, "hold") }
		var qps []QP
		for i := 1; i < hosts; i++ {
			qps = append(qps, x.open(t, int32(i), 0))
		}
		for range rapid.IntRange(1, 40).Draw(t, "messages") {
			q := rapid.SampledFrom(qps).Draw(t, "queue pair")
			x.post(t, q, units.Bytes(rapid.SampledFrom([]int{64, 1024, 5000}).Draw(t, "size")))
			r.eng.Run(r.eng.Now() + sim.Time(rapid.IntRange(0, 5).Draw(t, "time"))*units.Microsecond)
			inside := 0
			for _, q := range qps {
				if !r.net.begins(&r.net.receive[q]) {
					inside++
				}
			}
			if got := r.net.Posted(x.pool); most-got != len(x.arrived)-x.again+inside {
				t.Fatalf("%d of %d receives are posted; %d messages have arrived and %d in part, %d posted again", got, most,
					len(x.arrived), inside, x.again)
			}
		}
		r.run(t, 1e7)
		r.drained(t)
		if got := r.net.Posted(x.pool); got != most {
			t.Fatalf("%d of %d receives are posted at the end", got, most)
		}
		refused += r.net.Counters.RNRs
		lost += r.net.Counters.DropCount()
	})
}

// TestAbandonRefused abandons queue pairs with messages that have arrived, have arrived in part, and wait for a
// receive: that of the second is posted again, and those of the first are the owner's to post.
func TestAbandonRefused(t *testing.T) {
	r := newRig(t, plain(), star(t, 3, 10*units.Gbps, units.Microsecond), 1)
	x := newPooled(t, r, 2, 20*units.Microsecond, sim.Forever/2)
	a, b := x.open(t, 0, 2), x.open(t, 1, 2)
	x.post(t, a, 64)
	x.post(t, a, 8*units.KiB)
	r.eng.Run(4 * units.Microsecond) // the second message has begun to arrive
	x.post(t, b, 64)
	r.eng.Run(9 * units.Microsecond)
	if k := &r.net.Counters; k.RNRs != 1 || r.net.Posted(x.pool) != 0 || len(r.delivered) != 1 {
		t.Fatalf("%d refused, %d posted, %d delivered", k.RNRs, r.net.Posted(x.pool), len(r.delivered))
	}
	if e := r.net.Endless(); e.Hung > 0 {
		t.Errorf("%d messages hang", e.Hung)
	}
	for _, q := range []QP{a, b} {
		if err := r.net.Abandon(q, nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.net.Posted(x.pool); got != 1 {
		t.Errorf("%d receives are posted, not that of the message that has arrived in part", got)
	}
	r.eng.Run(units.Second)
	if k := &r.net.Counters; k.RNRs != 1 || len(r.delivered) != 1 {
		t.Errorf("%d refused, %d delivered", k.RNRs, len(r.delivered))
	}
	c := x.open(t, 0, 2) // with the index of an abandoned queue pair or not
	x.post(t, c, 64)
	r.eng.Run(r.eng.Now() + units.Millisecond)
	if len(r.delivered) != 2 || r.net.Posted(x.pool) != 0 {
		t.Errorf("%d delivered, %d posted", len(r.delivered), r.net.Posted(x.pool))
	}
	r.check(t)
}

// poster posts the receives of a host's pool again, each some time after its message has arrived, in the host's part.
type poster struct {
	net  *Network
	eng  *sim.Engine
	self sim.Component
	at   sim.Target
	pool int32
}

func (x *poster) Delivered(int32) {
	x.eng.Schedule(x.self, x.at, x.eng.Now()+3*units.Microsecond, 0, 0)
}
func (x *poster) Acked(int32)      {}
func (x *poster) Handle(sim.Event) { x.net.Repost(x.pool) }

// TestReceivesInParts refuses messages in an undivided network, and in one in parts, in turns and at the same time: the
// same messages arrive at the same times.
func TestReceivesInParts(t *testing.T) {
	run := func(parts int, apart bool) string {
		g := build(t, topo.Config{LeafSpine: &topo.LeafSpine{Leaves: 2, Spines: 1, HostsPerLeaf: 2}}, 10*units.Gbps,
			10*units.Gbps, units.Microsecond)
		for i := range g.Links {
			g.Links[i].Loss = 0.01
		}
		eng := sim.New()
		cfg := plain()
		cfg.Recovery.Timeout = Timeout{Time: 60 * units.Microsecond}
		net, err := New(cfg, g, eng, nil, 7, "fabric")
		if err != nil {
			t.Fatal(err)
		}
		x := &poster{net: net, self: eng.NewComponent()}
		if x.pool, err = net.Pool(2, 20*units.Microsecond); err != nil {
			t.Fatal(err)
		}
		of := make([]int32, len(g.Nodes))
		for i := range of {
			of[i] = int32(i % parts)
		}
		var flows []Flow
		for i := range sim.Time(60) {
			flows = append(flows, Flow{Src: int32(i % 3), Dst: 3, Class: 3, Size: 3 * units.KB,
				Start: i * 700 * units.Nanosecond})
		}
		sinks := make([]Sink, parts)
		sinks[of[3]] = x
		runPartsTo(t, net, of, apart, flows, sinks, func(p *Parts) {
			x.eng = p.Engine(int(of[3]))
			x.at = x.eng.AddHandler(x)
			for src := range int32(3) {
				q, err := net.pair(src, 3, 3, 0)
				if err == nil {
					err = net.Receives(q, x.pool)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		})
		if err := net.Check(); err != nil {
			t.Fatal(err)
		}
		c := net.Counters
		c.Events = 0
		out := fmt.Sprintf("%+v, %d posted", c, net.Posted(x.pool))
		for m := range net.Messages() {
			y := &net.Messages()[m]
			out += fmt.Sprintf("\n%d %v %v %v %v", y.QP, y.Posted, y.Begun, y.Delivered, y.Acked)
		}
		return out
	}
	want := run(1, false)
	if !strings.Contains(want, "2 posted") || strings.Contains(want, "RNRs:0") {
		t.Errorf("nothing was refused: %s", want)
	}
	for _, parts := range []int{2, 3} {
		for _, apart := range []bool{false, true} {
			if got := run(parts, apart); got != want {
				t.Errorf("%d parts, apart %v: %s\n, and whole %s", parts, apart, got, want)
			}
		}
	}
}

func TestReceivesRefuses(t *testing.T) {
	r := newRig(t, plain(), star(t, 3, 10*units.Gbps, units.Microsecond), 1)
	x := newPooled(t, r, 1, 10*units.Microsecond, 0)
	q := x.open(t, 0, 2)
	other, _ := r.net.Open(1, 0, 3)
	busy, _ := r.net.Open(1, 2, 3)
	x.post(t, busy, 64)
	each, kept := plain(), plain()
	each.QueuePairs.Life, kept.Recovery.Kind = PerMessage, SelectiveRepeat
	of := func(c Config) *Network {
		n := newRig(t, c, star(t, 2, 10*units.Gbps, units.Microsecond), 1).net
		if _, err := n.Pool(1, 10*units.Microsecond); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Open(0, 1, 3); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, c := range []struct {
		net  *Network
		q    QP
		pool int32
		want string
	}{
		{r.net, -1, 0, "no queue pair -1 or no pool 0; there are 3 and 1"},
		{r.net, 1, 1, "no queue pair 1 or no pool 1; there are 3 and 1"},
		{r.net, q, 0, "queue pair 0 has messages that have not arrived, or a pool"},
		{r.net, busy, 0, "queue pair 2 has messages that have not arrived, or a pool"},
		{r.net, other, 0, "queue pair 1 leads to node 0, and those that share pool 0 to node 2"},
		{of(each), 0, 0, "queue pair 0 is for one message; shared receives need persistent queue pairs"},
		{of(kept), 0, 0, "selective-repeat keeps packets behind one that found no receive; use go-back-n"},
	} {
		if err := c.net.Receives(c.q, c.pool); fmt.Sprint(err) != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	for _, c := range []struct {
		count int
		timer sim.Time
	}{{0, 10 * units.Microsecond}, {1, 0}, {1, 50 * units.Microsecond}} {
		if n, err := r.net.Pool(c.count, c.timer); err == nil {
			t.Errorf("pool %d has %d receives and a timer of %v", n, c.count, c.timer)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a receive is posted that was not taken")
		}
	}()
	r.net.Repost(0)
}
