package reserve

import (
	"testing"

	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// put makes and decides the bids of one chunk and eight concurrent others at one target: most bids are canceled.
func put(q bidQueue, d *Durations, now sim.Time, chunk uint64) {
	for i := range uint64(9) {
		q.Request(now+sim.Time(i)*6*units.Microsecond, chunk+i, int32(i), 0, 0, nil)
	}
	for i := range uint64(9) {
		at := now + 60*units.Microsecond + sim.Time(i)*units.Microsecond
		if b, _ := q.Find(chunk + i); i%3 == 0 {
			q.Accept(at, chunk+i, Window{b.Window.Left, b.Window.Left + d.Needed})
		} else {
			q.Cancel(at, chunk+i)
		}
	}
	for i := range uint64(9) {
		q.Done(chunk + i)
		q.Cancel(now+100*units.Microsecond, chunk+i)
	}
}

func BenchmarkBids(b *testing.B) {
	for _, k := range queueKinds {
		b.Run(k.name, func(b *testing.B) {
			d := mustNew(b, k.config())
			q := k.make(d)
			b.ReportAllocs()
			now, chunk := sim.Time(0), uint64(0)
			for b.Loop() {
				put(q, d, now, chunk)
				now += units.Millisecond
				chunk += 9
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/9, "ns/bid")
		})
	}
}

func BenchmarkIntersect(b *testing.B) {
	d := mustNew(b, DefaultConfig())
	o := NewOffers(d)
	picks := make([]Pick, 0, 9)
	rnd := rng.NewStream(1, "ties")
	b.ReportAllocs()
	for b.Loop() {
		o.Reset()
		for i := range int32(9) {
			left := sim.Time(i*7919%9) * 30 * units.Microsecond
			o.Add(i, Window{left, left + d.Window}, &rnd)
		}
		picks, _ = d.Intersect(0, o, 3, picks[:0])
	}
}

func BenchmarkSequence(b *testing.B) {
	d := mustNew(b, HybridConfig())
	o := NewOffers(d)
	s := newSequence(d)
	picks := make([]Pick, 0, 9)
	b.ReportAllocs()
	for b.Loop() {
		o.Reset()
		for i := range int32(9) {
			left := sim.Time(i*7919%9) * 30 * units.Microsecond
			o.Add(i, Window{left, left + d.Window}, nil)
		}
		s.Start()
		picks = s.Choose(0, o, 3, picks[:0])
		s.More(0, picks)
	}
}

func BenchmarkProxy(b *testing.B) {
	d := mustNew(b, ProxyConfig())
	p := NewProxy(d)
	picks := make([]Pick, 0, 9)
	rnd := rng.NewStream(1, "proxy")
	b.ReportAllocs()
	now, chunk := sim.Time(0), uint64(0)
	for b.Loop() {
		picks = p.Assign(now, chunk, &rnd, picks[:0])
		for _, k := range picks {
			p.Done(k.Server, chunk, k.Window.Right)
		}
		now += 200 * units.Microsecond
		chunk++
	}
}

// TestNoAllocation verifies that no call allocates once slices have grown.
func TestNoAllocation(t *testing.T) {
	check := func(name string, f func()) {
		t.Helper()
		f()
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
	rnd := rng.NewStream(1, "all")
	picks := make([]Pick, 0, 9)
	for _, k := range queueKinds {
		d := mustNew(t, k.config())
		q := k.make(d)
		now, chunk := sim.Time(0), uint64(0)
		check(k.name, func() {
			put(q, d, now, chunk)
			q.Expire(now, 0)
			now += units.Millisecond
			chunk += 9
		})
	}
	for _, c := range []Config{DefaultConfig(), headHybrid(), surge(HybridConfig(), units.MiB)} {
		d := mustNew(t, c)
		o, s, y := NewOffers(d), newSequence(d), NewChoosy(d)
		check("choosing", func() {
			o.Reset()
			for i := range int32(9) {
				o.Add(i, Window{sim.Time(i) * 1000, sim.Time(i)*1000 + d.Window}, &rnd)
			}
			picks, _ = d.Intersect(0, o, 3, picks[:0])
			picks = s.Choose(0, o, 3, picks[:0])
			s.More(0, picks)
			y.Start()
			picks = y.Choose(0, o, 3, picks[:0])
		})
	}
	d := mustNew(t, ProxyConfig())
	p := NewProxy(d)
	now := sim.Time(0)
	check("proxy", func() {
		picks = p.Assign(now, 1, &rnd, picks[:0])
		for _, k := range picks {
			p.Done(k.Server, 1, now)
		}
		now += units.Millisecond
	})
	u := mustNew(t, UnicastConfig())
	s, g := NewShare(u, DivideEqually), NewDinger(u)
	l, a := NewLeaky(u, u.Effective), NewAIMD(u)
	rates := make([]Rate, 0, 16)
	ids := make([]uint64, 0, 16)
	frames := []Arrival{{1, 0}, {2, 1}, {1, 2}}
	check("rates", func() {
		s.Admit(1, units.MiB)
		rates = s.Divide(rates[:0])
		s.Received(1, 5)
		s.Remove(1)
		g.Admit(1, units.MiB)
		ids = g.Look(now, frames, units.Second, ids[:0])
		g.Remove(1)
		l.Use(now, 100)
		a.Use(now, 100)
		a.Ding(now)
		now += units.Millisecond
	})
}
