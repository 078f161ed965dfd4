package ratecontrol_test

import (
	"math"
	"testing"

	"farflash/block"
	"farflash/internal/hostile"
	"farflash/internal/patience"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"
)

// TestArguments verifies that what queues, monitors, paces and controllers cannot be is an error or refused.
func TestArguments(t *testing.T) {
	refused := hostile.Check(t, "ratecontrol")
	config := func(change func(*ratecontrol.Config)) func() error {
		return func() error {
			c := ratecontrol.DefaultConfig()
			change(&c)
			_, err := ratecontrol.New(c, nil)
			return err
		}
	}
	refused("kind", config(func(c *ratecontrol.Config) { c.Kind = 99 }), "kind")
	refused("mode", config(func(c *ratecontrol.Config) { c.Mode = 99 }), "mode")
	refused("headroom", config(func(c *ratecontrol.Config) { c.Headroom = math.NaN() }), "headroom")
	refused("yield", config(func(c *ratecontrol.Config) { c.Yield = units.Fraction(math.Inf(1)) }), "yield")
	refused("tolerance", config(func(c *ratecontrol.Config) { c.Tolerance = units.Fraction(math.NaN()) }), "tolerance")
	refused("static", config(func(c *ratecontrol.Config) { c.Kind, c.WeightRatio = ratecontrol.Static, 0 }), "weight_ratio")
	refused("aimd", config(func(c *ratecontrol.Config) { c.Kind, c.Window = ratecontrol.AIMD, 0 }), "window")
	refused("no model", config(func(c *ratecontrol.Config) { c.Kind = ratecontrol.SRC }), "model")
	refused("nil model", func() error {
		c := ratecontrol.DefaultConfig()
		c.Kind = ratecontrol.SRC
		_, err := ratecontrol.New(c, []ratecontrol.Predictor{nil})
		return err
	}, "drive 0 is nil")
	refused("src without window", config(func(c *ratecontrol.Config) { c.Kind, c.Window = ratecontrol.SRC, 0 }), "window")
	refused("nil forest", func() error { _, err := ratecontrol.NewModel(nil); return err }, "forest is nil")
	q := ratecontrol.NewQueues(2)
	one, two := q.Push(1, block.Read, 0, 0, 512), q.Push(2, block.Read, 0, 4096, 512)
	q.Next()
	q.Done(one)
	var m = ratecontrol.NewMonitor(units.Second, 0)
	m.Arrived(5, block.Read, 1)
	var p ratecontrol.Pace
	s := ratecontrol.Steering{Weights: make([]ratecontrol.Weights, 1)}
	for _, c := range []struct {
		name string
		do   func()
		want string
	}{
		{"held", func() { q.Hold(2, true) }, "no such queue"},
		{"waiting", func() { q.Waiting(-1) }, "no such queue"},
		{"inside", func() { q.Inside(2) }, "no such queue"},
		{"first", func() { q.First(2) }, "no such queue"},
		{"done twice", func() { q.Done(one) }, "Done of ticket"},
		{"done before it is fetched", func() { q.Done(two) }, "Done of ticket"},
		{"no ticket", func() { q.Done(0) }, "Done of ticket 0"},
		{"unknown ticket", func() { q.Done(math.MaxInt32) }, "Done of ticket"},
		{"negative ticket", func() { q.Done(-1) }, "Done of ticket"},
		{"window", func() { ratecontrol.NewMonitor(0, 0) }, "monitor window"},
		{"size", func() { m.Arrived(6, block.Read, -1) }, "not within 0 to 2^40"},
		{"time", func() { m.Arrived(4, block.Read, 1) }, "before that of an earlier request"},
		{"slack", func() { ratecontrol.NewPace(-1) }, "negative slack"},
		{"bytes", func() { p.Take(0, -1) }, "fewer than 0 bytes"},
		{"ratio", func() { s.SetRatio(1, 1) }, "drive 1"},
	} {
		refused(c.name, func() error { c.do(); return nil }, c.want)
	}
	for _, rate := range []float64{math.NaN(), math.Inf(1), -1} {
		p.SetRate(0, 1)
		p.SetRate(0, rate)
		p.Take(0, 1<<40)
		if p.Due(0) != 0 || !p.Open(0) {
			t.Errorf("a rate of %v is a limit", rate)
		}
	}
	q = ratecontrol.NewQueues(math.MinInt)
	q.SetWeights(math.MaxInt, math.MinInt)
	if r, w := q.Weights(); r != math.MaxInt32 || w != 1 {
		t.Errorf("weights %d and %d", r, w)
	}
}

// FuzzAPI calls queues, a monitor, a pace and a controller as the input says. Each command is fetched once, never more
// than the depth at a time, and an overlapping one never before those in front of it.
func FuzzAPI(f *testing.F) {
	f.Add([]byte{4, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 1, 0, 0, 2, 2, 3, 0, 4, 1, 1, 5, 2, 9, 6, 100, 7, 3, 9, 9, 9})
	f.Add([]byte{1, 1, 0, 0, 0, 200, 1, 200, 2, 1, 1, 200, 3, 2, 200, 4, 3, 200, 5, 4, 200, 6, 5, 200, 7, 6, 200, 8})
	f.Add([]byte("commands are pushed and fetched and done, and done that never were, at any weights"))
	f.Fuzz(func(t *testing.T, in []byte) {
		defer patience.Limit()()
		code := hostile.Code(in)
		depth := int(code.Int())
		q := ratecontrol.NewQueues(depth)
		cfg := ratecontrol.DefaultConfig()
		code.Change(&cfg, 4)
		ctl, err := ratecontrol.New(cfg, nil)
		steering := ratecontrol.Steering{Weights: make([]ratecontrol.Weights, 2), Depth: 4, Line: 1e9,
			Wake: units.Forever}
		if err == nil && ctl != nil {
			ctl.Start(&steering)
		} else {
			ctl = nil
		}
		m := ratecontrol.NewMonitor(units.Second, 0)
		pace := ratecontrol.NewPace(units.Millisecond)
		now := units.Duration(0)
		waiting, inside, ticket := map[int32]bool{}, map[int32]bool{}, map[int32]int32{}
		id := int32(0)
		for range 400 {
			if !code.More() {
				break
			}
			hostile.Refused(t, "ratecontrol", func() {
				switch code.Below(9) {
				case 0, 1:
					id++
					waiting[id] = true
					ticket[id] = q.Push(id, block.Op(code.Byte()%10), code.Byte(), code.Int()*4096, code.Int()*512)
				case 2:
					n, _, ok := q.Next()
					if !ok {
						break
					}
					if !waiting[n] {
						t.Errorf("command %d is fetched, and does not wait", n)
					}
					delete(waiting, n)
					if inside[n] = true; len(inside) > max(depth, 1) {
						t.Errorf("%d commands are inside, of %d", len(inside), depth)
					}
				case 3:
					for n := range min(id, 64) {
						if inside[n+1] {
							delete(inside, n+1)
							q.Done(ticket[n+1])
							break
						}
					}
				case 4:
					q.SetWeights(int(code.Int()), int(code.Int()))
				case 5:
					q.Hold(int(code.Int()), code.Below(2) == 1)
				case 6:
					q.First(int(code.Int()))
				case 7:
					now += units.Duration(code.Byte()) * units.Microsecond
					pace.SetRate(now, code.Float())
					m.Arrived(now, block.Op(code.Below(10)), code.Int())
					pace.Take(now, code.Int())
					if pace.Due(now) < now {
						t.Errorf("due at %v, before %v", pace.Due(now), now)
					}
					for i, x := range m.Features(now).Of {
						if x.Size < 0 || x.SizeSCV < 0 || x.InterarrivalSCV < 0 || x.Speed < 0 {
							t.Errorf("features %d: %+v", i, x)
						}
					}
				default:
					if ctl != nil {
						ctl.React(&steering, &ratecontrol.Signal{Event: ratecontrol.Event(code.Below(6)),
							Op: block.Op(code.Below(2)), Drive: int32(code.Below(2)), Now: now,
							Bytes: int64(code.Byte()) * 512,
							Took:  units.Duration(code.Byte()), Rate: float64(code.Byte()) * 1e6,
							Cut: code.Below(2) == 1})
					}
				}
				if err := q.Check(); err != nil {
					t.Error(err)
				}
			})
		}
		if n := q.Waiting(ratecontrol.ReadQueue) + q.Waiting(ratecontrol.WriteQueue); n != len(waiting) {
			t.Errorf("%d commands wait, not %d", n, len(waiting))
		}
		if n := q.Inside(ratecontrol.ReadQueue) + q.Inside(ratecontrol.WriteQueue); n != len(inside) {
			t.Errorf("%d commands are inside, not %d", n, len(inside))
		}
	})
}
