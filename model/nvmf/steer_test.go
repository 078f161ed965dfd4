package nvmf_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"farflash/block"
	"farflash/model/fabric/cc"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"
	"farflash/sim"

	"pgregory.net/rapid"
)

// controllers returns the controllers that need no model.
func controllers() map[string]func() ratecontrol.Controller {
	return map[string]func() ratecontrol.Controller{
		"static": func() ratecontrol.Controller { return controller(ratecontrol.Static, 4, 1, 1) },
		"aimd": func() ratecontrol.Controller {
			return controller(ratecontrol.AIMD, 32, 1, 1)
		},
		"reserve": func() ratecontrol.Controller { return controller(ratecontrol.Reserve, 1, 2, 1) },
		"yield":   func() ratecontrol.Controller { return controller(ratecontrol.Reserve, 1, 2, 0.06) },
		"pace":    func() ratecontrol.Controller { return controller(ratecontrol.Paced, 1, 2, 1) },
	}
}

// steer gives a rig's targets controllers.
func steer(t failer, r *rig, l *layout) {
	t.Helper()
	for i := range int32(r.sys.Targets()) {
		if err := r.sys.Steer(i, l.steered(), l.cfg.DriveDepth, nvmf.Link{Rate: rate, Share: 0.95, Ack: 0.08},
			l.given); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSteeredSystem verifies that with a controller, whatever its settings, every command completes once, the laws
// hold, and overlapping commands are executed in the order of their arrival at the target.
func TestSteeredSystem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := defaultLayout()
		l.initiators, l.targets, l.drives = rapid.IntRange(1, 2).Draw(t, "initiators"),
			rapid.IntRange(1, 2).Draw(t, "targets"), rapid.IntRange(1, 2).Draw(t, "drives")
		l.cfg.DriveDepth = rapid.IntRange(1, 16).Draw(t, "depth")
		l.cfg.TXQ = units.Bytes(rapid.SampledFrom([]int{1, 5000, 100_000, 1 << 25}).Draw(t, "txq"))
		if rapid.Bool().Draw(t, "tcp") {
			l.protocol = nvmf.NVMeTCP
		}
		l.device.Refuse = func(r block.Request) block.Status {
			if r.Offset%(37*512) == 0 {
				return block.WriteFault
			}
			return block.OK
		}
		l.steered = controllers()[rapid.SampledFrom([]string{"static", "aimd", "reserve", "yield", "pace"}).Draw(t,
			"controller")]
		r := newRig(t, l)
		for range rapid.IntRange(1, 60).Draw(t, "commands") {
			a := ask{at: units.Duration(rapid.IntRange(0, 300).Draw(t, "at")) * us,
				initiator: int32(rapid.IntRange(0, l.initiators-1).Draw(t, "initiator")),
				drive:     int32(rapid.IntRange(0, l.targets*l.drives-1).Draw(t, "drive")),
				req: block.Request{Op: rapid.SampledFrom([]block.Op{block.Read, block.Write,
					block.Flush}).Draw(t, "op")}}
			if a.req.Op != block.Flush {
				a.req.Offset, a.req.Length = rapid.Int64Range(0, 100).Draw(t, "offset")*512,
					rapid.Int64Range(1, 200).Draw(t, "length")*512
			}
			r.ask(a)
		}
		r.run(t)
	})
}

// TestSteeredIncast verifies that where full transmit queues occupy places in drives, each controller achieves more
// writes than none, without loss for reads, which the network bounds.
func TestSteeredIncast(t *testing.T) {
	run := func(make func() ratecontrol.Controller, scheme cc.Scheme) (k nvmf.Counters, bytes [2]int64) {
		l := defaultLayout()
		l.initiators, l.targets = 2, 2
		l.cfg.TXQ, l.cfg.DriveDepth, l.cfg.QueueDepth = 512*units.KiB, 32, 1024
		l.network.CongestionControl.Algorithm = scheme
		l.steered = make
		r := newRig(t, l)
		for target := range int32(2) {
			for i := range int64(100) {
				r.ask(ask{initiator: 0, drive: target,
					req: block.Request{Op: block.Read, Offset: i << 20, Length: 44_000 / 512 * 512}})
				r.ask(ask{initiator: 1, drive: target,
					req: block.Request{Op: block.Write, Offset: i<<20 | 1<<19, Length: 23_000 / 512 * 512}})
			}
		}
		at := int64(1000)
		r.onEnded = func(d *nvmf.Done) {
			r.done = r.done[:0]
			bytes[d.Op] += d.Length
			at++
			r.sys.Submit(d.Initiator, d.Drive, block.Request{Op: d.Op, Offset: at % 1000 << 20, Length: d.Length})
		}
		r.eng.Run(10 * units.Millisecond)
		if err := errors.Join(r.sys.Err(), r.sys.Check(), r.net.Check()); err != nil {
			t.Fatal(err)
		}
		return r.sys.Counters, bytes
	}
	for _, scheme := range []cc.Scheme{cc.SchemeDCQCN, cc.SchemeHPCC, cc.SchemeSwift, cc.SchemeDCTCP} {
		_, none := run(nil, scheme)
		for name, make := range controllers() {
			_, with := run(make, scheme)
			t.Logf("%v: reads %d, writes %d with none, %d and %d with %s", scheme, none[0], none[1], with[0], with[1],
				name)
			if float64(with[1]) < 1.02*float64(none[1]) {
				t.Errorf("%v, %s: %d bytes written, %d without", scheme, name, with[1], none[1])
			}
			if (name == "reserve" || name == "yield" || name == "pace") && float64(with[0]) < 0.97*float64(none[0]) {
				t.Errorf("%v, %s: %d bytes read, %d without", scheme, name, with[0], none[0])
			}
		}
	}
}

// listener records its signals, and changes no setting.
type listener struct {
	told  []ratecontrol.Signal
	reads int64
}

func (l *listener) Start(s *ratecontrol.Steering) { s.SetRatio(0, 1) }

func (l *listener) React(s *ratecontrol.Steering, x *ratecontrol.Signal) {
	switch x.Event {
	case ratecontrol.Demand:
		l.told = append(l.told, *x)
	case ratecontrol.Sent:
		l.reads += x.Bytes
	}
}

// TestDemandIsHeard verifies that a target's controller receives the rate that its queue pairs may send at, under every
// congestion control that throttles them, as one sum that never exceeds the line.
func TestDemandIsHeard(t *testing.T) {
	for _, scheme := range []cc.Scheme{cc.SchemeDCQCN, cc.SchemeTimely, cc.SchemeHPCC, cc.SchemeSwift} {
		l := defaultLayout()
		l.initiators, l.targets = 1, 3
		l.network.CongestionControl.Algorithm = scheme // DCTCP's window is so small that this fills no queue
		var heard []*listener
		l.steered = func() ratecontrol.Controller {
			heard = append(heard, &listener{})
			return heard[len(heard)-1]
		}
		r := newRig(t, l)
		for target := range int32(3) {
			for i := range int64(100) {
				r.ask(ask{drive: target, req: block.Request{Op: block.Read, Offset: i << 20, Length: 65536}})
			}
		}
		r.run(t)
		for i, h := range heard {
			line := float64(rate) / 8 * 0.95
			cuts, last := 0, line
			for _, x := range h.told {
				if x.Rate <= 0 || x.Rate > line*1.0001 || x.Cut != (x.Rate < last) {
					t.Fatalf("%v: %+v after %v", scheme, x, last)
				}
				if last = x.Rate; x.Cut {
					cuts++
				}
			}
			if cuts == 0 {
				t.Errorf("%v: target %d is told nothing of congestion", scheme, i)
			}
			if want := int64(100 * (65536 + 16)); h.reads != want {
				t.Errorf("%v: %d bytes of reads were acknowledged, not %d", scheme, h.reads, want)
			}
		}
	}
}

// TestGivenDemands verifies that given demands apply at their times and the network's are ignored.
func TestGivenDemands(t *testing.T) {
	l := defaultLayout()
	h := &listener{}
	l.given, l.steered = true, func() ratecontrol.Controller { return h }
	r := newRig(t, l)
	r.sys.Demands([]ratecontrol.Demanded{{At: 10 * us, Rate: 8 * units.Gbps}, {At: 20 * us, Rate: 16 * units.Gbps},
		{At: 30 * us, Rate: 16 * units.Gbps}})
	r.ask(ask{at: 5 * us, req: block.Request{Op: block.Read, Length: 4096}})
	r.run(t)
	if got := fmt.Sprint(len(h.told), h.told[0].Now, h.told[0].Rate, h.told[0].Cut, h.told[1].Now, h.told[1].Rate,
		h.told[1].Cut); got != "2 10us 1e+09 true 20us 2e+09 false" {
		t.Error(got)
	}
}

// gate is a controller that limits the outstanding bytes of reads, and changes the limit at a given time.
type gate struct {
	limit, then int64
	at          sim.Time
}

func (g *gate) Start(s *ratecontrol.Steering) {
	s.SetRatio(0, 1)
	s.ReadLimit, s.Wake = g.limit, g.at
}

func (g *gate) React(s *ratecontrol.Steering, x *ratecontrol.Signal) {
	if x.Event == ratecontrol.Timer {
		s.ReadLimit = g.then
	}
}

// TestReadLimit verifies that no read is fetched while the outstanding reads have reached their limit, to the byte, and
// that all permitted ones are fetched at once when the limit rises or reads complete. A drive that serves one command
// at a time holds the others, which are counted.
func TestReadLimit(t *testing.T) {
	const n = 6
	run := func(g *gate, depth int) (fetched []sim.Time, r *rig) {
		l := defaultLayout()
		l.cfg.DriveDepth = depth
		l.steered = func() ratecontrol.Controller { return g }
		r = newRig(t, l)
		for i := range int64(n) {
			r.ask(ask{req: block.Request{Op: block.Read, Offset: i << 20, Length: 4096}})
		}
		r.run(t)
		if len(r.done) != n {
			t.Fatalf("%d of %d reads ended", len(r.done), n)
		}
		for i := range r.done {
			fetched = append(fetched, r.done[i].DriveIn)
		}
		return fetched, r
	}
	free, _ := run(&gate{at: sim.Forever}, 64)
	within := func(at []sim.Time) sim.Time { return slices.Max(at) - slices.Min(at) }
	// A limit of one byte admits one read at a time, and so does a read's own size: each waits until the previous one
	// is acknowledged.
	for _, limit := range []int64{1, 4096} {
		at, r := run(&gate{limit: limit, at: sim.Forever}, 64)
		for k := 1; k < n; k++ {
			if at[k]-at[k-1] < r.done[k].Stage[nvmf.Flash] {
				t.Errorf("at most %d bytes: read %d is fetched %v after the one before", limit, k, at[k]-at[k-1])
			}
		}
		if k := r.sys.Counters; k.HeldAtTarget != n-1 || k.MostAtTarget != n-1 {
			t.Errorf("at most %d bytes: %d reads are held, at most %d", limit, k.HeldAtTarget, k.MostAtTarget)
		}
	}
	// From a time on there is no limit, or one that fits all: the held reads are fetched then.
	const opens = 30 * us
	for _, then := range []int64{0, 1 << 20} {
		at, _ := run(&gate{limit: 1, then: then, at: opens}, 64)
		for k := 1; k < n; k++ {
			if at[k] != opens {
				t.Errorf("from %v on %d bytes: read %d is fetched at %v", opens, then, k, at[k])
			}
		}
	}
	if within(free) >= 5*us {
		t.Errorf("without a limit reads are fetched within %v", within(free))
	}
	_, r := run(&gate{at: sim.Forever}, 1)
	if k := r.sys.Counters; k.HeldAtTarget != n-1 || k.MostAtTarget != n-1 {
		t.Errorf("of %d reads for a drive of one %d are held, at most %d", n, k.HeldAtTarget, k.MostAtTarget)
	}
}

// TestSteerErrors verifies that a target accepts one controller, and only if it has drives.
func TestSteerErrors(t *testing.T) {
	l := defaultLayout()
	l.targets, l.drives = 2, 1
	l.steered = func() ratecontrol.Controller { return &listener{} }
	r := newRig(t, l)
	if err := r.sys.Steer(0, &listener{}, 8, nvmf.Link{Rate: rate, Share: 1}, false); err == nil ||
		err.Error() != "target 0 already has a controller, or has no drives" {
		t.Errorf("a second controller: %v", err)
	}
	bare := r.sys.AddTarget(r.node(0))
	if err := r.sys.Steer(bare, &listener{}, 8, nvmf.Link{Rate: rate, Share: 1}, false); err == nil ||
		err.Error() != fmt.Sprintf("target %d already has a controller, or has no drives", bare) {
		t.Errorf("no drives: %v", err)
	}
}

// TestSteeringIsReported verifies that each demand passed to a controller is reported, once.
func TestSteeringIsReported(t *testing.T) {
	l := defaultLayout()
	h := &listener{}
	l.given, l.steered = true, func() ratecontrol.Controller { return h }
	r := newRig(t, l)
	var said []string
	r.sys.OnSteered = func(x nvmf.Steered) {
		if x.Drive < 0 {
			said = append(said, fmt.Sprint(x.Target, " ", x.At, " ", x.Value))
		}
	}
	r.sys.Demands([]ratecontrol.Demanded{{At: 10 * us, Rate: 8 * units.Gbps}, {At: 20 * us, Rate: 16 * units.Gbps},
		{At: 30 * us, Rate: 16 * units.Gbps}})
	r.ask(ask{at: 5 * us, req: block.Request{Op: block.Read, Length: 4096}})
	r.run(t)
	if got := strings.Join(said, ", "); got != "0 10us 1e+09, 0 20us 2e+09" {
		t.Error(got)
	}
}

// ears counts the commands that a controller is notified of.
type ears struct {
	listener
	came, ended map[block.Op]int
	bytes       map[block.Op]int64
}

func (e *ears) React(_ *ratecontrol.Steering, x *ratecontrol.Signal) {
	switch x.Event {
	case ratecontrol.Arrived:
		e.came[x.Op]++
		e.bytes[x.Op] += x.Bytes
	case ratecontrol.Ended:
		e.ended[x.Op]++
	}
}

// TestArrivalsAreHeard verifies that a controller is notified of each read and write, with its size, and of their
// completions, and of no command without data.
func TestArrivalsAreHeard(t *testing.T) {
	l := defaultLayout()
	e := &ears{came: map[block.Op]int{}, ended: map[block.Op]int{}, bytes: map[block.Op]int64{}}
	l.steered = func() ratecontrol.Controller { return e }
	r := newRig(t, l)
	for i := range int64(5) {
		r.ask(ask{at: units.Duration(i) * us, req: block.Request{Op: block.Read, Offset: i << 20, Length: 4096}})
	}
	for i := range int64(3) {
		r.ask(ask{at: units.Duration(i) * us, req: block.Request{Op: block.Write, Offset: i<<20 | 1<<19, Length: 8192}})
	}
	r.ask(ask{at: 9 * us, req: block.Request{Op: block.Flush}})
	r.run(t)
	if e.came[block.Read] != 5 || e.came[block.Write] != 3 || e.bytes[block.Read] != 5*4096 ||
		e.bytes[block.Write] != 3*8192 || e.came[block.Flush] != 0 {
		t.Errorf("%v commands of %v bytes came", e.came, e.bytes)
	}
	if e.ended[block.Read] != 5 || e.ended[block.Write] != 3 {
		t.Errorf("%v ended", e.ended)
	}
}

// TestHeldAtInitiator verifies that on a queue pair with a depth of one each command is held until the previous one has
// completed, and that this time, plus the initiator's work, is the time of its stage.
func TestHeldAtInitiator(t *testing.T) {
	l := defaultLayout()
	l.cfg.QueueDepth = 1
	r := newRig(t, l)
	for i := range int64(4) {
		r.ask(ask{at: units.Duration(i) * us, req: block.Request{Op: block.Read, Offset: i << 20, Length: 4096}})
	}
	r.run(t)
	for k := range r.done {
		want := l.cfg.Initiator.Command // its own work, before it sends and when the answer has arrived
		if k > 0 {
			want += r.done[k-1].Ended - r.done[k].Submitted
		}
		if got := r.done[k].Stage[nvmf.AtInitiator]; got != want {
			t.Errorf("command %d of %d was held for %v, the one before it ended after %v", k, len(r.done), got, want)
		}
	}
}

// controller returns a controller of a kind: ratio is a constant weight ratio, or its limit.
func controller(kind ratecontrol.Kind, ratio int, headroom, yield float64) ratecontrol.Controller {
	c := ratecontrol.DefaultConfig()
	c.Kind, c.WeightRatio, c.MaxRatio, c.Headroom, c.Yield = kind, ratio, ratio, headroom, units.Fraction(yield)
	x, err := ratecontrol.New(c, nil)
	if err != nil {
		panic(err)
	}
	return x
}
