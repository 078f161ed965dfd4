package fabric

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"farflash/internal/draws"
	"farflash/model/fabric/cc"
	"farflash/model/fabric/setting"
	"farflash/numeric/units"
	"farflash/sim"
)

// reads is a queue pair between the first two hosts of a rig, with both directions and the stream on which the first
// host answers.
type reads struct {
	*rig
	out, back, answers QP
}

func newReads(t failer, r *rig) *reads {
	t.Helper()
	x := &reads{rig: r}
	var err [3]error
	x.out, err[0] = r.net.Open(0, 1, 3)
	x.back, err[1] = r.net.Open(1, 0, 3)
	x.answers, err[2] = r.net.Respond(x.out, x.back)
	for _, e := range err {
		if e != nil {
			t.Fatal(e)
		}
	}
	return x
}

// answer answers each request with a message of the given size.
func (x *reads) answer(t failer, size func() units.Bytes) {
	x.onDelivered = func(m int32) {
		if msg := &x.net.messages[m]; msg.QP == x.back && msg.Size == 16 {
			if _, err := x.net.Answer(x.answers, size(), m); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (x *reads) ask(t failer) int32 {
	t.Helper()
	m, err := x.net.Ask(x.back, 16)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (x *reads) post(t failer, q QP, size units.Bytes) int32 {
	t.Helper()
	m, err := x.net.Post(q, size)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestReadAlone verifies that a read takes the sum of its two paths, and that neither its request nor
// its answer has an ACK.
func TestReadAlone(t *testing.T) {
	r := newRig(t, plain(), star(t, 2, 10*units.Gbps, units.Microsecond), 1)
	x := newReads(t, r)
	x.answer(t, func() units.Bytes { return 1024 })
	m := x.ask(t)
	r.run(t, 1e4)
	r.drained(t)
	c := &r.net.cfg
	wire := func(size units.Bytes) sim.Time { return 2*(10*units.Gbps).TimeFor(size) + 2*units.Microsecond }
	there := wire(16 + c.Header)
	back := there + wire(1024+c.Header)
	answer := r.net.Messages()[m+1]
	if got := r.net.Messages()[m]; got.Delivered != there || got.Acked != back || answer.Delivered != back {
		t.Errorf("the request came at %v and was acknowledged at %v, the answer came at %v; want %v, %v",
			got.Delivered, got.Acked, answer.Delivered, there, back)
	}
	if r.net.Counters.Acks != 0 {
		t.Errorf("%d ACKs", r.net.Counters.Acks)
	}
}

// TestAnswersAcknowledged verifies when the packets of an answer have ACKs: with recovery or congestion control that
// needs them, and where the settings say so.
func TestAnswersAcknowledged(t *testing.T) {
	for _, k := range []struct {
		name string
		set  func(c *Config)
		want uint64
	}{
		{"none", func(*Config) {}, 0},
		{"dcqcn", func(c *Config) { c.CongestionControl.Algorithm = cc.SchemeDCQCN }, 0},
		{"explicit", func(c *Config) { c.Acks.Answers = setting.AnswersExplicit }, 10},
		{"marks on ACKs", func(c *Config) {
			c.CongestionControl.Algorithm = cc.SchemeDCQCN
			c.CNP.Echo = true
		}, 10},
		{"window", func(c *Config) { c.CongestionControl.None.Window = cc.WindowBDP }, 10},
		{"hpcc", func(c *Config) { c.CongestionControl.Algorithm = cc.SchemeHPCC }, 10},
		{"selective repeat", func(c *Config) { c.Recovery.Kind = SelectiveRepeat }, 11},
	} {
		c := plain()
		k.set(&c)
		r := newRig(t, c, star(t, 2, 10*units.Gbps, units.Microsecond), 1)
		x := newReads(t, r)
		x.answer(t, func() units.Bytes { return 10 * c.Payload })
		x.ask(t)
		r.run(t, 1e4)
		r.drained(t)
		if got := r.net.Counters.Acks; got != k.want {
			t.Errorf("%s: %d ACKs, want %d", k.name, got, k.want)
		}
	}
}

// TestOneQueuePair verifies that an answer takes turns with its host's send queue, and that both together get the share
// of one queue pair when another competes.
func TestOneQueuePair(t *testing.T) {
	r := newRig(t, plain(), star(t, 3, 10*units.Gbps, units.Microsecond), 1)
	x := newReads(t, r)
	x.answer(t, func() units.Bytes { return 4 * units.MiB })
	other, err := r.net.Open(0, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	x.post(t, x.out, 4*units.MiB)
	x.post(t, other, 16*units.MiB)
	x.ask(t)
	r.eng.Run(4 * units.Millisecond)
	sent := func(q QP) float64 { return float64(r.net.senders[q].pos) }
	for _, c := range []struct {
		what string
		got  float64
	}{
		{"the answer beside the send queue", sent(x.answers) / sent(x.out)},
		{"the queue pair beside another", (sent(x.answers) + sent(x.out)) / sent(other)},
	} {
		if c.got < 0.98 || c.got > 1.02 {
			t.Errorf("%s: %.3f of its bytes, want 1", c.what, c.got)
		}
	}
	r.run(t, 1e7)
	r.drained(t)
}

// TestOneRate verifies that congestion signals of the answers affect the send queue too.
func TestOneRate(t *testing.T) {
	for _, scheme := range []cc.Scheme{cc.SchemeDCQCN, cc.SchemeDCTCP, cc.SchemeTimely, cc.SchemeHPCC} {
		t.Run(fmt.Sprint(scheme), func(t *testing.T) {
			c := DefaultConfig()
			c.CongestionControl.Algorithm = scheme
			c.ECN.Kmin, c.ECN.Kmax = 10*units.KB, 40*units.KB
			r := newRig(t, c, star(t, 3, 10*units.Gbps, units.Microsecond), 1)
			x := newReads(t, r)
			x.answer(t, func() units.Bytes { return 8 * units.MiB })
			other, err := r.net.Open(2, 1, 3)
			if err != nil {
				t.Fatal(err)
			}
			changes := 0
			r.net.OnRate = func(a RateChange) {
				if a.QP == x.answers {
					t.Fatal("the answers have a rate of their own")
				}
				if a.QP == x.out {
					changes++
				}
			}
			x.post(t, x.out, 1)
			x.post(t, other, 8*units.MiB)
			x.ask(t)
			r.eng.Run(5 * units.Millisecond)
			if changes == 0 || r.net.Rate(x.answers) != r.net.Rate(x.out) {
				t.Errorf("%d changes of the queue pair's rate, %v and %v", changes, r.net.Rate(x.answers),
					r.net.Rate(x.out))
			}
			x.post(t, x.out, units.MiB)
			r.run(t, 1e7)
			r.drained(t)
		})
	}
}

// TestReadsLost verifies that with losses everywhere each request is answered once and all data arrives in order,
// whatever the recovery.
func TestReadsLost(t *testing.T) {
	lost, timeouts := uint64(0), uint64(0)
	draws.Until(t, func() bool { return lost > 0 && timeouts > 0 }, func(t *rapid.T) {
		c := plain()
		c.PFC.Enabled = false
		c.Recovery.Kind = rapid.SampledFrom([]setting.RecoveryKind{GoBackN, SelectiveRepeat}).Draw(t, "recovery")
		c.Recovery.Retries = 0
		c.Acks.Every = rapid.SampledFrom([]int{1, 4}).Draw(t, "ack every")
		c.CongestionControl.Algorithm = rapid.SampledFrom([]cc.Scheme{cc.SchemeNone, cc.SchemeDCTCP,
			cc.SchemeHPCC}).Draw(t, "scheme")
		g := star(t, 2, 10*units.Gbps, units.Microsecond)
		for i := range g.Links {
			g.Links[i].Loss = rapid.SampledFrom([]float64{0, 0.001, 0.05}).Draw(t, "loss")
		}
		r := newRig(t, c, g, rapid.Uint64Max(1000).Draw(t, "seed"))
		x := newReads(t, r)
		x.answer(t, func() units.Bytes { return units.Bytes(rapid.IntRange(1, 30000).Draw(t, "answer")) })
		asked := 0
		for range rapid.IntRange(1, 40).Draw(t, "messages") {
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				x.ask(t)
				asked++
			case 1:
				x.post(t, x.out, units.Bytes(rapid.IntRange(20, 20000).Draw(t, "out")))
			default:
				x.post(t, x.back, units.Bytes(rapid.IntRange(20, 20000).Draw(t, "back")))
			}
			if rapid.Bool().Draw(t, "wait") {
				r.eng.Run(r.eng.Now() + sim.Time(rapid.Int64Range(0, int64(20*units.Microsecond)).Draw(t, "time")))
			}
		}
		r.run(t, 1e7)
		r.drained(t)
		answered := 0
		for _, m := range r.net.Messages() {
			if m.QP == x.answers {
				answered++
			}
		}
		if answered != asked {
			t.Fatalf("%d requests, %d answers", asked, answered)
		}
		lost += r.net.Counters.DropCount()
		timeouts += r.net.Counters.Timeouts
	})
}

// TestAnswerIsHeard verifies that a request's timer does not expire while its answer is arriving, however long the
// answer is.
func TestAnswerIsHeard(t *testing.T) {
	c := plain()
	c.Recovery.Timeout = Timeout{Time: 100 * units.Microsecond}
	r := newRig(t, c, star(t, 2, units.Gbps, units.Microsecond), 1)
	x := newReads(t, r)
	x.answer(t, func() units.Bytes { return 256 * units.KiB })
	x.ask(t)
	x.ask(t) // waits for the first answer's two milliseconds
	r.run(t, 1e6)
	r.drained(t)
	if r.net.Counters.Timeouts > 0 || r.net.Counters.Retransmits > 0 {
		t.Errorf("%d timers ended, %d packets were retransmitted", r.net.Counters.Timeouts, r.net.Counters.Retransmits)
	}
}

func TestRespondRefuses(t *testing.T) {
	r := newRig(t, plain(), star(t, 3, 10*units.Gbps, units.Microsecond), 1)
	x := newReads(t, r)
	other, err := r.net.Open(2, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	class, err := r.net.Open(1, 2, 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		out, back QP
		want      string
	}{
		{x.out, x.back, "queue pair 0 already answers RDMA Reads"},
		{other, x.back, "queue pairs 3 and 1 are not two directions of one"},
		{other, class, "queue pairs 3 and 4 are not two directions of one"},
		{-1, x.back, "no queue pair -1; there are 5"},
		{x.out, 5, "no queue pair 5; there are 5"},
	} {
		if _, err := r.net.Respond(c.out, c.back); fmt.Sprint(err) != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if _, err := r.net.Ask(x.back, 2000); err == nil {
		t.Error("a request of two packets is asked")
	}
	each := plain()
	each.QueuePairs.Life = PerMessage
	r = newRig(t, each, star(t, 2, 10*units.Gbps, units.Microsecond), 1)
	a, _ := r.net.Open(0, 1, 3)
	b, _ := r.net.Open(1, 0, 3)
	if _, err := r.net.Respond(a, b); err == nil {
		t.Error("queue pairs for one message answer RDMA Reads")
	}
}

// TestReadsRescued verifies that all answers arrive after a link failure, by the timers of both streams.
func TestReadsRescued(t *testing.T) {
	for _, kind := range []setting.RecoveryKind{GoBackN, SelectiveRepeat, Sack} {
		c := plain()
		c.Recovery.Kind = kind
		r := newRig(t, c, star(t, 2, 10*units.Gbps, units.Microsecond), 1)
		if err := r.net.Fail(0, 100*units.Microsecond, 5*units.Millisecond); err != nil {
			t.Fatal(err)
		}
		x := newReads(t, r)
		x.answer(t, func() units.Bytes { return 100 * units.KiB })
		for range 8 {
			x.ask(t)
			x.post(t, x.out, 50*units.KiB)
			x.post(t, x.back, 50*units.KiB)
		}
		r.run(t, 1e6)
		r.drained(t)
		if r.net.Counters.Timeouts == 0 {
			t.Errorf("%v: no timer expired", kind)
		}
	}
}

// TestUnreportedAnswers: where marks on answers cause nothing, they leave as without congestion control, at the same
// times, although each packet is marked; where they cause CNPs, the queue pair slows down. Other data of the queue pair
// is slowed either way.
func TestUnreportedAnswers(t *testing.T) {
	run := func(scheme cc.Scheme, to setting.Notices, echo, answers bool) (ends []sim.Time, acks uint64) {
		c := DefaultConfig()
		c.CongestionControl.Algorithm, c.CNP.Answers, c.CNP.Echo = scheme, to, echo
		c.ECN.Kmin, c.ECN.Kmax, c.ECN.Pmax = 0, 0, 1
		r := newRig(t, c, star(t, 3, 10*units.Gbps, units.Microsecond), 1)
		x := newReads(t, r)
		x.answer(t, func() units.Bytes { return 300 * units.KB })
		other, err := r.net.Open(2, 1, 3)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if answers {
				x.ask(t)
			} else {
				x.post(t, x.out, 300*units.KB)
			}
			x.post(t, other, 300*units.KB)
		}
		r.run(t, 1e6)
		r.drained(t)
		for _, m := range r.net.Messages() {
			if m.QP != other {
				ends = append(ends, m.Delivered)
			}
		}
		return ends, r.net.Counters.Acks
	}
	for _, echo := range []bool{false, true} {
		none, acks := run(cc.SchemeDCQCN, setting.NoticesNone, echo, true)
		told, more := run(cc.SchemeDCQCN, setting.NoticesCNP, echo, true)
		if none[5] >= told[5] || echo != (more > acks) {
			t.Errorf("echo %v: answers at %v without notices, and %d ACKs; %v and %d with", echo, none, acks, told, more)
		}
		a, _ := run(cc.SchemeDCQCN, setting.NoticesNone, echo, false)
		b, _ := run(cc.SchemeDCQCN, setting.NoticesCNP, echo, false)
		if fmt.Sprint(a) != fmt.Sprint(b) {
			t.Errorf("echo %v: other data of the queue pair ends at %v, and at %v with CNPs for answers", echo, a, b)
		}
	}
	// Alone, so that nothing else is slowed either.
	alone := func(scheme cc.Scheme, to setting.Notices) []sim.Time {
		c := DefaultConfig()
		c.CongestionControl.Algorithm, c.CNP.Answers = scheme, to
		c.ECN.Kmin, c.ECN.Kmax, c.ECN.Pmax = 0, 0, 1
		g := star(t, 3, 10*units.Gbps, units.Microsecond)
		r := newRig(t, c, g, 1)
		var ends []sim.Time
		for _, from := range []int32{0, 2} { // two hosts answer the third: a queue forms
			out, err := r.net.Open(from, 1, 3)
			if err != nil {
				t.Fatal(err)
			}
			back, err := r.net.Open(1, from, 3)
			if err != nil {
				t.Fatal(err)
			}
			answers, err := r.net.Respond(out, back)
			if err != nil {
				t.Fatal(err)
			}
			was := r.onDelivered
			r.onDelivered = func(m int32) {
				switch r.net.messages[m].QP {
				case back:
					if _, err := r.net.Answer(answers, 500*units.KB, m); err != nil {
						t.Fatal(err)
					}
				case answers:
					ends = append(ends, r.eng.Now())
				default:
					was(m)
				}
			}
			for range 4 {
				if _, err := r.net.Ask(back, 16); err != nil {
					t.Fatal(err)
				}
			}
		}
		r.run(t, 1e6)
		r.drained(t)
		return ends
	}
	free, unreported, told := alone(cc.SchemeNone, setting.NoticesCNP), alone(cc.SchemeDCQCN, setting.NoticesNone),
		alone(cc.SchemeDCQCN, setting.NoticesCNP)
	if fmt.Sprint(free) != fmt.Sprint(unreported) || fmt.Sprint(free) == fmt.Sprint(told) {
		t.Errorf("answers end at %v without congestion control, at %v without notices, and at %v with CNPs", free,
			unreported, told)
	}
}
