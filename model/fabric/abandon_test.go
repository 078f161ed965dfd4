package fabric

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"farflash/model/fabric/setting"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/sim"

	"pgregory.net/rapid"
)

// Broken makes the rig hear of queue pairs that have given up.
func (r *rig) Broken(q QP) {
	r.broken = append(r.broken, q)
	if r.onBroken != nil {
		r.onBroken(q)
	}
}

// TestGivesUp computes when a queue pair gives up on a link that loses everything: after its timeouts, which double.
func TestGivesUp(t *testing.T) {
	const ms = units.Millisecond
	for _, c := range []struct {
		name   string
		change func(*Config)
		tcp    bool
		want   sim.Time
	}{
		{"three retries after 1 ms", func(c *Config) {
			c.Recovery.Timeout, c.Recovery.Retries = Timeout{Time: ms}, 3
		}, false, 15 * ms}, // 1 + 2 + 4 + 8
		{"one retry", func(c *Config) { c.Recovery.Timeout, c.Recovery.Retries = Timeout{Time: ms}, 1 }, false, 3 * ms},
		{"RoCE's timer and seven retries", func(*Config) {}, false, 191 * (4096 * units.Nanosecond << 14)},
		{"selective repeat", func(c *Config) {
			c.Recovery.Kind, c.Recovery.Timeout = SelectiveRepeat, Timeout{Time: 9 * ms}
			c.Recovery.ShortTimeout = 2 * ms // few packets are in flight
		}, false, 2 * 191 * ms}, // 1 + 2 + 4 + 8 + 16 + 32 + 64 + 64
		// ip-sysctl on tcp_retries2: "a hypothetical timeout of 924.6 seconds".
		{"TCP", func(*Config) {}, true, 924600 * ms},
		{"TCP with a timer of its own", func(c *Config) {
			c.Recovery.Timeout, c.Recovery.ShortTimeout = Timeout{Time: 40 * units.Second}, 40*units.Second
			c.Recovery.Retries = 3
		}, true, (40 + 80 + 120 + 120) * units.Second},
	} {
		cfg := plain()
		if c.tcp {
			cfg = TCP(DefaultConfig())
		}
		c.change(&cfg)
		g := star(t, 3, 10*units.Gbps, units.Microsecond)
		g.Links[1].Loss = 1 - 1e-12
		r := newRig(t, cfg, g, 1)
		at := sim.Time(0)
		r.onBroken = func(QP) { at = r.eng.Now() }
		m := r.mustSend(t, 0, 1, 1, 1000)
		other := r.mustSend(t, 0, 2, 1, units.MB)
		r.eng.Run(sim.Forever)
		q := r.net.Messages()[m].QP
		if at != c.want || len(r.broken) != 1 || r.broken[0] != q || r.net.Counters.Broken != 1 {
			t.Errorf("%s: %v gave up at %v, not %v", c.name, r.broken, at, c.want)
		}
		if r.net.Messages()[other].Acked == sim.Forever || !r.net.senders[q].broken {
			t.Errorf("%s: the other queue pair did not end, or this one did not give up", c.name)
		}
		if got := r.net.Endless(); got != (Endless{Broken: 1}) {
			t.Errorf("%s: %+v", c.name, got)
		}
		// Whatever is posted afterwards stays, too.
		if _, err := r.net.Post(q, 5000); err != nil {
			t.Fatal(err)
		}
		sent := r.net.Counters.Sent
		r.eng.Run(sim.Forever)
		if got := r.net.Endless(); got != (Endless{Broken: 2}) || r.net.Counters.Sent != sent {
			t.Errorf("%s: %+v, and %d bytes more were sent", c.name, got, r.net.Counters.Sent-sent)
		}
		r.check(t)
	}
}

// TestRetriesLimits checks both bounds of the retries.
func TestRetriesLimits(t *testing.T) {
	for n, ok := range map[int]bool{-1: false, 0: true, 254: true, 255: false} {
		c := DefaultConfig()
		c.Recovery.Retries = n
		if err := c.Validate(); (err == nil) != ok || err != nil && !strings.HasPrefix(err.Error(), "recovery.retries: ") {
			t.Errorf("%d: %v", n, err)
		}
	}
}

// TestProgressRestoresRetries: an acknowledgement makes all retries available again, and 0 is no limit.
func TestProgressRestoresRetries(t *testing.T) {
	cfg := plain()
	cfg.Recovery.Timeout, cfg.Recovery.Retries = Timeout{Time: 100 * units.Microsecond}, 1
	g := star(t, 2, 10*units.Gbps, units.Microsecond)
	g.Links[1].Loss = 0.2
	for _, retries := range []int{4, 0} {
		cfg.Recovery.Retries = retries
		r := newRig(t, cfg, g, 3)
		r.mustSend(t, 0, 1, 1, 300*units.KB)
		r.run(t, 1e7)
		r.completed(t)
		if n := r.net.Counters.Timeouts; n < 20 {
			t.Errorf("only %d timeouts", n)
		}
	}
}

// TestAbandonRefuses verifies that only the lead of a persistent queue pair can be abandoned.
func TestAbandonRefuses(t *testing.T) {
	g := star(t, 2, 10*units.Gbps, units.Microsecond)
	r := newRig(t, plain(), g, 1)
	out, _ := r.net.Open(0, 1, 1)
	back, _ := r.net.Open(1, 0, 1)
	answers, err := r.net.Respond(out, back)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(n *Network, q QP, want string) {
		t.Helper()
		if err := n.Abandon(q, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	refused(r.net, -1, "no queue pair -1")
	refused(r.net, 3, "there are 3")
	refused(r.net, answers, "abandon that")
	if err := r.net.Abandon(out, nil); err != nil {
		t.Fatal(err)
	}
	refused(r.net, out, "already")
	if _, err := r.net.Post(out, 1); err == nil || !strings.Contains(err.Error(), "was abandoned") {
		t.Error(err)
	}
	cfg := plain()
	cfg.QueuePairs.Life = PerMessage
	r = newRig(t, cfg, g, 1)
	m := r.mustSend(t, 0, 1, 1, 100)
	refused(r.net, r.net.Messages()[m].QP, "ends with its message")
}

// churn is a queue pair that TestAbandon posts on and abandons.
type churn struct {
	q        QP
	src, dst int32
	posted   map[int32]bool // outstanding messages
	sizes    map[int32]units.Bytes
}

// TestAbandon posts on queue pairs that are abandoned and opened again at random, with losses and full queues: a
// message is delivered and acknowledged once and in order, or dropped, and never again once dropped; numbers of
// messages and queue pairs are reused; no byte is lost from the accounts.
func TestAbandon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := DefaultConfig()
		cfg.Recovery.Kind = rapid.SampledFrom([]setting.RecoveryKind{GoBackN, SelectiveRepeat}).Draw(t, "recovery")
		cfg.Recovery.Timeout = Timeout{Time: 50 * units.Microsecond}
		cfg.Recovery.Retries = rapid.IntRange(0, 3).Draw(t, "retries")
		if rapid.Bool().Draw(t, "tcp") {
			cfg = TCP(cfg)
			cfg.Recovery.Timeout = Timeout{Time: units.Millisecond}
		}
		cfg.Acks.Every = rapid.IntRange(1, 4).Draw(t, "acks")
		cfg.PFC.Enabled = rapid.Bool().Draw(t, "pfc")
		if !cfg.PFC.Enabled {
			cfg.Buffer = 30 * units.KiB
		}
		g := build(t, topo.Config{LeafSpine: &topo.LeafSpine{Leaves: 2, Spines: 2, HostsPerLeaf: 2}}, 10*units.Gbps,
			10*units.Gbps, units.Microsecond)
		for i := range g.Links {
			g.Links[i].Loss = rapid.SampledFrom([]float64{0, 0, 0.01, 0.2}).Draw(t, "loss")
		}
		r := newRig(t, cfg, g, 1)
		var hosts []int32
		for i := range g.Nodes {
			if g.Nodes[i].Kind == topo.Host {
				hosts = append(hosts, int32(i))
			}
		}
		of := map[int32]*churn{} // by message
		r.onDelivered = func(m int32) {
			x := of[m]
			if x == nil || !x.posted[m] {
				t.Fatalf("message %d is delivered, and is not outstanding", m)
			}
			x.posted[m] = false
		}
		r.onAcked = func(m int32) {
			x := of[m]
			if x == nil || x.posted[m] || r.net.Messages()[m].Size != x.sizes[m] {
				t.Fatalf("message %d is acknowledged, and was not delivered", m)
			}
			delete(x.posted, m)
			delete(of, m)
			r.net.Forget(m)
		}
		list := make([]churn, rapid.IntRange(1, 24).Draw(t, "pairs"))
		open := func(x *churn) {
			x.src = rapid.SampledFrom(hosts).Draw(t, "src")
			x.dst = rapid.SampledFrom(hosts).Filter(func(h int32) bool { return h != x.src }).Draw(t, "dst")
			q, err := r.net.Open(x.src, x.dst, 3)
			if err != nil {
				t.Fatal(err)
			}
			x.q, x.posted, x.sizes = q, map[int32]bool{}, map[int32]units.Bytes{}
		}
		for i := range list {
			open(&list[i])
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			x := &list[rapid.IntRange(0, len(list)-1).Draw(t, "pair")]
			if rapid.IntRange(0, 3).Draw(t, "what") == 0 {
				if err := r.net.Abandon(x.q, func(m int32) {
					if _, ok := x.posted[m]; !ok || of[m] != x {
						t.Fatalf("message %d of another is dropped", m)
					}
					delete(x.posted, m)
					delete(of, m)
				}); err != nil {
					t.Fatal(err)
				}
				if len(x.posted) > 0 {
					t.Fatalf("%d messages were neither acknowledged nor dropped", len(x.posted))
				}
				open(x)
			} else {
				size := units.Bytes(rapid.SampledFrom([]int{1, 1000, 5000, 40000}).Draw(t, "size"))
				m, err := r.net.Post(x.q, size)
				if err != nil {
					t.Fatal(err)
				}
				if of[m] != nil {
					t.Fatalf("message number %d is in use", m)
				}
				of[m], x.posted[m], x.sizes[m] = x, true, size
			}
			wait := sim.Time(rapid.SampledFrom([]int{0, 1, 10, 60, 300}).Draw(t, "for"))
			r.eng.Run(r.eng.Now() + wait*units.Microsecond)
			r.check(t)
		}
		r.eng.Run(r.eng.Now() + 24*3600*units.Second)
		r.check(t)
		for i := range list {
			if x := &list[i]; len(x.posted) > 0 && !r.net.senders[x.q].broken {
				t.Fatalf("%d messages of queue pair %d never end", len(x.posted), x.q)
			}
		}
		if err := r.leftOver(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestAbandonReuses opens and abandons one queue pair after the other: their number stays bounded, and a queue pair
// that takes the number of another while packets of that wait for a paused port is not disturbed by them.
func TestAbandonReuses(t *testing.T) {
	g := star(t, 4, 10*units.Gbps, units.Microsecond)
	r := newRig(t, plain(), g, 1)
	// Hosts 1 and 2 fill the switch's queue to host 3.
	for range 30 {
		r.mustSend(t, 1, 3, 1, units.MB)
		r.mustSend(t, 2, 3, 1, units.MB)
	}
	var last QP
	for i := range 200 {
		dst := int32(3)
		if i%2 == 1 {
			dst = 1
		}
		q, err := r.net.Open(0, dst, 1)
		if err != nil {
			t.Fatal(err)
		}
		last = q
		if _, err := r.net.Post(q, 20*units.KB); err != nil {
			t.Fatal(err)
		}
		r.eng.Run(r.eng.Now() + 13*units.Microsecond)
		if i < 199 {
			if err := r.net.Abandon(q, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := r.net.Pairs(); n > kept+10 {
		t.Errorf("%d queue pairs for 200 that are abandoned at once", n)
	}
	r.run(t, 1e7)
	r.check(t)
	if got := r.net.Counters; got.Wasted == 0 {
		t.Error("no stray packet was discarded")
	}
	if m := r.net.Messages(); r.net.senders[last].una != r.net.senders[last].end || m[0].Acked == sim.Forever {
		t.Error("the queue pairs that remain did not end")
	}
	if err := r.leftOver(); err != nil {
		t.Error(err)
	}
}

// TestAbandonAnswers abandons both directions of a queue pair while RDMA Reads are asked for and answered.
func TestAbandonAnswers(t *testing.T) {
	for _, kind := range []setting.RecoveryKind{GoBackN, SelectiveRepeat} {
		for after := range sim.Time(60) {
			cfg := plain()
			cfg.Recovery.Kind = kind
			r := newRig(t, cfg, star(t, 2, 10*units.Gbps, units.Microsecond), 1)
			var out, back, answers QP
			connect := func() {
				out, _ = r.net.Open(0, 1, 1)
				back, _ = r.net.Open(1, 0, 1)
				var err error
				if answers, err = r.net.Respond(out, back); err != nil {
					t.Fatal(err)
				}
			}
			asked := map[int32]bool{}
			ended := 0
			r.onDelivered = func(m int32) {
				if asked[m] {
					if _, err := r.net.Answer(answers, 30*units.KB, m); err != nil {
						t.Fatal(err)
					}
				}
			}
			r.onAcked = func(m int32) {
				delete(asked, m)
				ended++
				r.net.Forget(m)
			}
			ask := func() {
				for range 3 {
					m, err := r.net.Ask(back, 16)
					if err != nil {
						t.Fatal(err)
					}
					asked[m] = true
					if _, err := r.net.Post(out, 10*units.KB); err != nil {
						t.Fatal(err)
					}
				}
			}
			connect()
			ask()
			r.eng.Run(after * 3 * units.Microsecond)
			clear := func(m int32) { delete(asked, m) }
			for _, q := range []QP{out, back} {
				if err := r.net.Abandon(q, clear); err != nil {
					t.Fatal(err)
				}
			}
			if len(asked) > 0 {
				t.Fatalf("%d requests are neither acknowledged nor dropped", len(asked))
			}
			before := ended
			connect()
			ask()
			r.run(t, 1e6)
			r.check(t)
			if ended != before+9 {
				t.Fatalf("%v, abandoned after %v: %d messages of 9 ended", kind, after*3*units.Microsecond, ended-before)
			}
		}
	}
}

// abandoner abandons a queue pair at a time, between the windows of a network in parts.
type abandoner struct {
	t   failer
	net *Network
	out string
}

func (a *abandoner) Handle(e sim.Event) {
	if err := a.net.Abandon(QP(e.Arg), func(m int32) { a.out += fmt.Sprint(m, " ") }); err != nil {
		a.t.Fatal(err)
	}
	a.out += fmt.Sprint("at ", e.At, "; ")
}

// TestAbandonInParts abandons queue pairs in an undivided network, and in one in parts, in turns and at the same time:
// all drop the same messages, and deliver the others at the same times.
func TestAbandonInParts(t *testing.T) {
	run := func(parts int, apart bool) string {
		cfg := plain()
		cfg.Recovery.Timeout, cfg.Recovery.Retries = Timeout{Time: 60 * units.Microsecond}, 2
		g := build(t, topo.Config{LeafSpine: &topo.LeafSpine{Leaves: 2, Spines: 1, HostsPerLeaf: 2}}, 10*units.Gbps,
			10*units.Gbps, units.Microsecond)
		for i := range g.Links {
			g.Links[i].Loss = 0.02
		}
		eng := sim.New()
		net, err := New(cfg, g, eng, nil, 7, "fabric")
		if err != nil {
			t.Fatal(err)
		}
		of := make([]int32, len(g.Nodes))
		for i := range of {
			of[i] = int32(i % parts)
		}
		a := &abandoner{t: t, net: net}
		self, to := eng.NewComponent(), eng.AddHandler(a)
		for q := range uint32(4) {
			eng.Schedule(self, to, sim.Time(41+13*q)*units.Microsecond, 0, q)
		}
		var flows []Flow
		for i := range sim.Time(60) {
			at := 2 * i
			if at > 30 {
				at += 100
			}
			src := int32(i % 4)
			flows = append(flows, Flow{Src: src, Dst: (src + 1) % 4, Class: 3, Size: 20 * units.KB,
				Start: at * units.Microsecond})
		}
		runParts(t, net, of, apart, flows)
		if err := net.Check(); err != nil {
			t.Fatal(err)
		}
		c := net.Counters
		c.Events = 0
		a.out += fmt.Sprintf("%+v", c)
		var lines []string // message numbers depend on the division
		for m := range net.Messages() {
			if x := &net.Messages()[m]; x.QP >= 0 {
				lines = append(lines, fmt.Sprintf("\n%d %v %v %v %v", x.QP, x.Posted, x.Begun, x.Delivered, x.Acked))
			}
		}
		slices.Sort(lines)
		return a.out + strings.Join(lines, "")
	}
	want := run(1, false)
	if !strings.Contains(want, "at 80us") || strings.HasPrefix(want, "at") {
		t.Errorf("nothing was dropped: %s", want)
	}
	for _, parts := range []int{2, 3} {
		for _, apart := range []bool{false, true} {
			if got := run(parts, apart); got != want {
				t.Errorf("%d parts, apart %v: %s\n, and whole %s", parts, apart, got, want)
			}
		}
	}
}
