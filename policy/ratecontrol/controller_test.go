package ratecontrol_test

import (
	"fmt"
	"math"
	"testing"

	"farflash/block"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"

	"pgregory.net/rapid"
)

// table predicts reads by weight ratio, from 1 on; the last entry applies beyond.
type table []float64

func (t table) Predict(_ *ratecontrol.Features, w int) (read, write float64) {
	return t[min(w, len(t))-1], 0
}

// steering returns that of a target with the given number of drives.
func steering(drives int) *ratecontrol.Steering {
	return &ratecontrol.Steering{Weights: make([]ratecontrol.Weights, drives), Depth: 128, TXQ: 1 << 20, Line: 5e9}
}

func newController(t *testing.T, change func(*ratecontrol.Config),
	predict ...ratecontrol.Predictor) ratecontrol.Controller {
	t.Helper()
	c := ratecontrol.DefaultConfig()
	change(&c)
	ctl, err := ratecontrol.New(c, predict)
	if err != nil {
		t.Fatal(err)
	}
	return ctl
}

// TestPredictWeightRatio checks both searches on tables with known answers.
func TestPredictWeightRatio(t *testing.T) {
	for _, x := range []struct {
		name    string
		table   table
		want    float64
		scan    int
		printed int
	}{
		{"already lower", table{5, 4, 3}, 6, 1, 1},
		{"falls steadily", table{10, 8, 6, 4, 2, 1}, 4.1, 4, 4},
		{"nearest from below", table{10, 8, 6, 4, 2, 1}, 4.9, 4, 4},
		{"two as near: the lesser", table{10, 6, 4}, 5, 2, 2},
		// A forest has the same leaf for neighbours: Algorithm 1 stops there.
		{"equal neighbours", table{10, 10, 10, 5, 2}, 2, 5, 1},
		{"a step below the tolerance", table{10, 9.5, 2}, 2, 3, 2},
		{"out of reach", table{10, 8}, 1, 2, 2},
	} {
		t.Run(x.name, func(t *testing.T) {
			for _, m := range []struct {
				mode ratecontrol.Search
				want int
			}{{ratecontrol.Scan, x.scan}, {ratecontrol.Paper, x.printed}} {
				c := newController(t, func(c *ratecontrol.Config) { c.Kind, c.Mode = ratecontrol.SRC, m.mode }, x.table)
				s := steering(1)
				c.Start(s)
				c.React(s, &ratecontrol.Signal{Event: ratecontrol.Demand, Now: units.Millisecond, Rate: x.want,
					Cut: true})
				if got := s.Weights[0]; got != (ratecontrol.Weights{Read: 1, Write: m.want}) {
					t.Errorf("%v: %+v, not 1 to %d", m.mode, got, m.want)
				}
			}
		})
	}
}

// TestOneDecisionAnInterval verifies that demands within an interval are applied at its end, using the last of them.
func TestOneDecisionAnInterval(t *testing.T) {
	c := newController(t, func(c *ratecontrol.Config) { c.Kind, c.MaxRatio = ratecontrol.SRC, 4 }, table{4, 3, 2, 1})
	s := steering(1)
	c.Start(s)
	at := 5 * units.Millisecond
	demand := func(now units.Duration, rate float64) {
		c.React(s, &ratecontrol.Signal{Event: ratecontrol.Demand, Now: now, Rate: rate})
	}
	demand(at, 1)
	if s.Weights[0].Write != 4 || s.Wake != units.Forever || s.Predictions != 4 {
		t.Fatalf("%+v", s)
	}
	demand(at+10*units.Microsecond, 2)
	demand(at+20*units.Microsecond, 3)
	if s.Weights[0].Write != 4 || s.Wake != at+units.Millisecond || s.Predictions != 4 {
		t.Fatalf("%+v", s)
	}
	s.Wake = units.Forever
	c.React(s, &ratecontrol.Signal{Event: ratecontrol.Timer, Now: at + units.Millisecond})
	if s.Weights[0].Write != 2 || s.Wake != units.Forever {
		t.Fatalf("%+v", s)
	}
}

// TestDemandIsDividedByReads verifies that a drive with three times as many reads gets three quarters of the demand.
func TestDemandIsDividedByReads(t *testing.T) {
	falling := table{8, 7, 6, 5, 4, 3, 2, 1}
	c := newController(t, func(c *ratecontrol.Config) { c.Kind = ratecontrol.SRC }, falling, falling)
	s := steering(2)
	c.Start(s)
	for i := range 8 {
		c.React(s, &ratecontrol.Signal{Event: ratecontrol.Arrived, Now: units.Millisecond, Drive: int32(min(i%4, 1)),
			Op: block.Read, Bytes: 4096})
		c.React(s, &ratecontrol.Signal{Event: ratecontrol.Arrived, Now: units.Millisecond, Drive: 0, Op: block.Write,
			Bytes: 65536})
	}
	c.React(s, &ratecontrol.Signal{Event: ratecontrol.Demand, Now: 2 * units.Millisecond, Rate: 8})
	if s.Weights[0].Write != 7 || s.Weights[1].Write != 3 {
		t.Errorf("%+v: predictions of 2 and 6 are those of 7 and 3", s.Weights)
	}
}

// TestAIMD verifies that the ratio doubles while reads are above the demand, decreases by one while they are below,
// stays within the dead band, and that the timer stops when all is idle.
func TestAIMD(t *testing.T) {
	c := newController(t, func(c *ratecontrol.Config) { c.Kind, c.MaxRatio = ratecontrol.AIMD, 16 })
	s := steering(1)
	c.Start(s)
	now := units.Duration(0)
	c.React(s, &ratecontrol.Signal{Event: ratecontrol.Arrived, Now: now, Op: block.Read, Bytes: 1})
	c.React(s, &ratecontrol.Signal{Event: ratecontrol.Demand, Now: now, Rate: 1e9}) // a megabyte a millisecond
	var got []int
	for _, read := range []int64{2e6, 2e6, 2e6, 2e6, 2e6, 1e6, 5e5, 5e5, 1.04e6, 1.05e6, 0.95e6, 0} {
		c.React(s, &ratecontrol.Signal{Event: ratecontrol.Ended, Now: now, Op: block.Read, Bytes: read})
		if now += units.Millisecond; s.Wake != now {
			t.Fatalf("it looks at %v, not %v", s.Wake, now)
		}
		s.Wake = units.Forever
		c.React(s, &ratecontrol.Signal{Event: ratecontrol.Timer, Now: now})
		got = append(got, s.Weights[0].Write)
	}
	if want := "[2 4 8 16 16 16 15 14 14 14 14 13]"; fmt.Sprint(got) != want {
		t.Errorf("%v, not %v", got, want)
	}
	for ratio := 12; s.Wake != units.Forever; ratio-- {
		if ratio < 1 {
			t.Fatal("it does not rest when weights are equal")
		}
		now, s.Wake = s.Wake, units.Forever
		c.React(s, &ratecontrol.Signal{Event: ratecontrol.Timer, Now: now})
	}
	if s.Weights[0].Write != 1 {
		t.Errorf("it rests at %+v", s.Weights)
	}
}

// plant models a drive with a fixed read time and unlimited parallelism, and a network with a rate; both handle whole
// reads of one size.
type plant struct {
	c    ratecontrol.Controller
	s    *ratecontrol.Steering
	size int64
	rate float64 // of the network, B/s
	took units.Duration
	way  units.Duration // from being sent until acknowledged
	free units.Duration // when the network is free
}

// run issues reads as the limit allows and returns the acknowledged bytes within a span, and the longest wait for the
// network in its second half.
func (p *plant) run(span units.Duration) (sent int64, longest units.Duration) {
	type read struct{ ended, acked units.Duration }
	var inDrive []units.Duration // when they end
	var onWay []read
	now := units.Duration(0)
	for now < span {
		for (p.s.ReadLimit == 0 || p.s.Reading < p.s.ReadLimit) && len(inDrive) < p.s.Depth {
			p.s.Reading += p.size
			inDrive = append(inDrive, now+p.took)
		}
		switch {
		case len(onWay) > 0 && (len(inDrive) == 0 || onWay[0].acked <= inDrive[0]):
			x := onWay[0]
			onWay = onWay[1:]
			now = x.acked
			p.s.Reading -= p.size
			sent += p.size
			p.c.React(p.s, &ratecontrol.Signal{Event: ratecontrol.Sent, Now: now, Bytes: p.size, Took: now - x.ended})
		default:
			now = inDrive[0]
			inDrive = inDrive[1:]
			begin := max(now, p.free)
			p.free = begin + units.Seconds(float64(p.size)/p.rate)
			if now > span/2 {
				longest = max(longest, begin-now)
			}
			onWay = append(onWay, read{now, p.free + p.way})
			p.c.React(p.s, &ratecontrol.Signal{Event: ratecontrol.Ended, Now: now, Op: block.Read, Bytes: p.size,
				Took: p.took})
		}
	}
	return sent, longest
}

// TestReserveKeepsTheNetworkBusy verifies that for any network and drive, and any ratio of the demand to the truth,
// throughput is that of the slower of both, and reads wait for the network no longer than a few times the drive's read
// time.
func TestReserveKeepsTheNetworkBusy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &plant{
			s: steering(1), size: int64(rapid.SampledFrom([]int{4096, 44032, 131072}).Draw(t, "size")),
			rate: 1e8 * float64(rapid.IntRange(1, 100).Draw(t, "rate")),
			took: units.Duration(rapid.IntRange(20, 500).Draw(t, "took")) * units.Microsecond,
			way:  units.Duration(rapid.IntRange(2, 50).Draw(t, "way")) * units.Microsecond,
		}
		p.c = controller(ratecontrol.Reserve, 1, 1, 1)
		p.c.Start(p.s)
		p.c.React(p.s, &ratecontrol.Signal{Event: ratecontrol.Demand,
			Rate: p.rate * rapid.SampledFrom([]float64{0.7, 1, 2}).Draw(t, "told")})
		const span = units.Second / 4
		sent, longest := p.run(span)
		drive := float64(p.s.Depth) * float64(p.size) / p.took.Seconds()
		possible := min(p.rate, drive) * span.Seconds()
		if float64(sent) < 0.95*possible {
			t.Fatalf("%d bytes sent, of %.0f that are possible", sent, possible)
		}
		one := units.Seconds(float64(p.size) / p.rate)
		if limit := 4*p.took + 4*one; drive > 1.5*p.rate && longest > limit {
			t.Fatalf("reads wait for up to %v, where a drive reads in %v and the network takes one in %v", longest,
				p.took, one)
		}
	})
}

// TestControllersAllocateNothing verifies that controllers do not allocate once they have seen a window.
func TestControllersAllocateNothing(t *testing.T) {
	for _, k := range []ratecontrol.Kind{ratecontrol.Static, ratecontrol.AIMD, ratecontrol.SRC, ratecontrol.Reserve,
		ratecontrol.Paced} {
		c := newController(t, func(c *ratecontrol.Config) { c.Kind, c.Window = k, units.Millisecond },
			table{4, 3, 2, 1}, table{4, 3, 2, 1})
		s := steering(2)
		c.Start(s)
		now := units.Duration(0)
		var x ratecontrol.Signal
		run := func() {
			for i := range int32(2000) {
				now += units.Microsecond
				for e := ratecontrol.Arrived; e <= ratecontrol.Demand; e++ {
					x = ratecontrol.Signal{Event: e, Op: block.Op(i & 1), Drive: i & 1, Now: now, Bytes: 4096,
						Took: 80 * units.Microsecond, Rate: float64(1 + i%5)}
					c.React(s, &x)
				}
				if s.Wake <= now {
					s.Wake = units.Forever
					x = ratecontrol.Signal{Event: ratecontrol.Timer, Now: now}
					c.React(s, &x)
				}
			}
		}
		run()
		if n := testing.AllocsPerRun(5, run); n != 0 {
			t.Errorf("%v: %v allocations", k, n)
		}
	}
}

func TestConfigFaults(t *testing.T) {
	for _, x := range []struct {
		change func(*ratecontrol.Config)
		want   string
	}{
		{func(c *ratecontrol.Config) { c.WeightRatio = 0 }, "weight_ratio: 0 is not possible; use 1 to 10000"},
		{func(c *ratecontrol.Config) { c.Headroom = 0 }, "headroom: 0 is not possible; use more than 0, up to 1000"},
		{func(c *ratecontrol.Config) { c.Yield = 0 }, "yield: 0% is not possible; use more than 0%, up to 100%"},
		{func(c *ratecontrol.Config) { c.Demands = []ratecontrol.Demanded{{At: 2, Rate: 1}, {At: 1, Rate: 1}} },
			"demands[1].at: 1ps is not possible; times must increase"},
		{func(c *ratecontrol.Config) { c.Demands = []ratecontrol.Demanded{{At: 2}} },
			"demands[0].rate: 0bps is not possible; use a rate such as 6Gbps"},
	} {
		c := ratecontrol.DefaultConfig()
		x.change(&c)
		if err := c.Validate(); err == nil || err.Error() != x.want {
			t.Errorf("%v, not %s", err, x.want)
		}
	}
	c := ratecontrol.DefaultConfig()
	if c.Kind = ratecontrol.SRC; true {
		if _, err := ratecontrol.New(c, nil); err == nil {
			t.Error("src without a model")
		}
	}
}

// TestCorrected verifies that a drive that deviates from its model converges to the demand, as closely as ratios allow,
// and that it does not with the model alone.
func TestCorrected(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var flat table // the model: reads hardly fall
		for w := range 32 {
			flat = append(flat, 1e9-4e6*float64(w))
		}
		fall := rapid.Float64Range(0.3, 1).Draw(t, "fall")
		reads := func(w int) float64 { return 1e9 * math.Pow(float64(w), -fall) }
		want := rapid.Float64Range(1.2*reads(32), 1e9).Draw(t, "want")
		cfg := ratecontrol.DefaultConfig()
		cfg.Kind, cfg.Mode = ratecontrol.SRC, ratecontrol.Corrected
		c, err := ratecontrol.New(cfg, []ratecontrol.Predictor{flat})
		if err != nil {
			t.Fatal(err)
		}
		s := steering(1)
		c.Start(s)
		c.React(s, &ratecontrol.Signal{Event: ratecontrol.Demand, Rate: want})
		first := s.Weights[0].Write
		for range 20 {
			now := s.Wake
			if now == units.Forever {
				t.Fatal("it looks no more")
			}
			c.React(s, &ratecontrol.Signal{Event: ratecontrol.Ended, Now: now, Op: block.Read,
				Bytes: int64(reads(s.Weights[0].Write) * cfg.Window.Seconds())})
			s.Wake = units.Forever
			c.React(s, &ratecontrol.Signal{Event: ratecontrol.Timer, Now: now})
		}
		w := s.Weights[0].Write
		if off := reads(w)/want - 1; math.Abs(off) > 0.05 && (reads(max(w-1, 1)) < want || reads(min(w+1, 32)) > want) {
			t.Errorf("weight ratio %d, at first %d: %.3g read, %.3g wanted", w, first, reads(w), want)
		}
		// It rests when there are no reads.
		now := s.Wake
		s.Wake = units.Forever
		c.React(s, &ratecontrol.Signal{Event: ratecontrol.Timer, Now: now})
		if s.Wake != units.Forever || s.Weights[0].Write != w {
			t.Errorf("with nothing read: %+v", s)
		}
	})
}

// TestCorrectedUnasked verifies that a drive with less load than it may read causes no correction, for any length of
// time; when the load rises, the model decides again.
func TestCorrectedUnasked(t *testing.T) {
	c := newController(t, func(c *ratecontrol.Config) { c.Kind, c.Mode = ratecontrol.SRC, ratecontrol.Corrected },
		table{10e9, 5e9, 2e9})
	s := steering(1)
	c.Start(s)
	c.React(s, &ratecontrol.Signal{Event: ratecontrol.Demand, Rate: 20e9})
	for range 5 {
		now := s.Wake
		s.Wake = units.Forever
		c.React(s, &ratecontrol.Signal{Event: ratecontrol.Ended, Now: now, Op: block.Read, Bytes: 1e6})
		c.React(s, &ratecontrol.Signal{Event: ratecontrol.Timer, Now: now})
	}
	c.React(s, &ratecontrol.Signal{Event: ratecontrol.Demand, Now: 60 * units.Millisecond, Rate: 5e9})
	if s.Weights[0].Write != 2 {
		t.Errorf("%+v, not the model's 2", s.Weights)
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
