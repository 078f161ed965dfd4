package nvmf_test

import (
	"slices"
	"testing"

	"farflash/block"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"
	"farflash/sim"
)

// valves is a controller with fixed settings and weights of 1.
type valves struct {
	readLimit, sendLimit int64
	sendRate, writeRate  float64
	overtake             bool
}

func (v *valves) Start(s *ratecontrol.Steering) {
	for d := range s.Weights {
		s.SetRatio(d, 1)
	}
}

func (v *valves) React(s *ratecontrol.Steering, _ *ratecontrol.Signal) {
	s.ReadLimit, s.SendLimit, s.SendRate, s.WriteRate, s.Overtake = v.readLimit, v.sendLimit, v.sendRate, v.writeRate,
		v.overtake
}

// TestOldestReadFirst verifies that the reads' shared limit goes to the oldest reads although one drive receives three
// times as many as the other.
func TestOldestReadFirst(t *testing.T) {
	l := defaultLayout()
	l.drives = 2
	l.steered = func() ratecontrol.Controller { return &valves{readLimit: 1} }
	r := newRig(t, l)
	const n = 40
	for i := range int64(n) {
		drive := int32(0)
		if i%4 == 3 {
			drive = 1
		}
		r.ask(ask{at: units.Duration(i) * us, drive: drive,
			req: block.Request{Op: block.Read, Offset: i << 20, Length: 4096}})
	}
	r.run(t)
	slices.SortFunc(r.done, func(a, b nvmf.Done) int { return int(a.DriveIn - b.DriveIn) })
	for i := range r.done {
		if i > 0 && r.done[i].Arrived < r.done[i-1].Arrived {
			t.Fatalf("the read that came at %v is fetched before that of %v", r.done[i-1].Arrived, r.done[i].Arrived)
		}
	}
	if len(r.done) != n {
		t.Errorf("%d of %d reads ended", len(r.done), n)
	}
}

// TestOvertake verifies that a write's response waits behind reads held by the send limit unless it may overtake them.
// All commands complete, and the laws hold.
func TestOvertake(t *testing.T) {
	took := func(overtake bool) sim.Time {
		l := defaultLayout()
		l.steered = func() ratecontrol.Controller { return &valves{sendLimit: 1, overtake: overtake} }
		r := newRig(t, l)
		for i := range int64(60) {
			r.ask(ask{req: block.Request{Op: block.Read, Offset: i << 20, Length: 100 * 512}})
		}
		r.ask(ask{at: 100 * us, req: block.Request{Op: block.Write, Offset: 1 << 30, Length: 4096}})
		r.run(t)
		for i := range r.done {
			if d := &r.done[i]; d.Op == block.Write {
				return d.Ended - d.Submitted
			}
		}
		t.Fatal("no write has ended")
		return 0
	}
	if behind, ahead := took(false), took(true); ahead > behind/3 {
		t.Errorf("a write takes %v where it overtakes reads, and %v behind them", ahead, behind)
	}
}

// TestSendRate verifies that reads are handed to the network at the controller's rate and no faster, however early
// drives have read them.
func TestSendRate(t *testing.T) {
	const n, size, rate = 100, 64 << 10, 1e9
	l := defaultLayout()
	l.steered = func() ratecontrol.Controller { return &valves{sendRate: rate} }
	r := newRig(t, l)
	for i := range int64(n) {
		r.ask(ask{req: block.Request{Op: block.Read, Offset: i << 20, Length: size}})
	}
	r.run(t)
	var in []sim.Time
	for i := range r.done {
		in = append(in, r.done[i].NetIn)
	}
	slices.Sort(in)
	// Except for what the slack allows at the start.
	for i := n / 2; i < n; i++ {
		if gap := in[i] - in[i-1]; gap < units.Seconds(size/rate)-1 {
			t.Fatalf("read %d is handed over %v after the one before", i, gap)
		}
	}
	span := (in[n-1] - in[0]).Seconds()
	if got := float64((n-1)*size) / span; got < rate || got > rate+rate*ratecontrol.Slack.Seconds()/span+size/span {
		t.Errorf("%.3g bytes a second, not %.3g", got, rate)
	}
}

// TestWriteRate verifies the same for the write data that is requested. Data that arrives with its command is not held.
func TestWriteRate(t *testing.T) {
	const n, size, rate = 100, 64 << 10, 1e9
	l := defaultLayout()
	l.steered = func() ratecontrol.Controller { return &valves{writeRate: rate} }
	r := newRig(t, l)
	// The controller is called for the first time when a command has arrived.
	r.ask(ask{req: block.Request{Op: block.Read, Offset: 1 << 31, Length: 4096}})
	for i := range int64(n) {
		r.ask(ask{at: 20 * us, req: block.Request{Op: block.Write, Offset: i << 20, Length: size}})
		r.ask(ask{at: 20 * us, req: block.Request{Op: block.Write, Offset: i<<20 + 1<<19, Length: 4096}})
	}
	r.run(t)
	var large, small []sim.Time
	for i := range r.done {
		switch d := &r.done[i]; {
		case d.Op == block.Write && d.Length == size:
			large = append(large, d.NetOut)
		case d.Op == block.Write:
			small = append(small, d.NetOut)
		}
	}
	slices.Sort(large)
	span := (large[n-1] - large[0]).Seconds()
	if got := float64((n-1)*size) / span; got < 0.98*rate ||
		got > rate+rate*ratecontrol.Slack.Seconds()/span+size/span {
		t.Errorf("%.3g bytes of data a second, not %.3g", got, rate)
	}
	if last := slices.Max(small); last > large[n/10] {
		t.Errorf("the last write whose data came with it is there after %v, a tenth of the others after %v", last,
			large[n/10])
	}
}
