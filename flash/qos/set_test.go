package qos_test

import (
	"testing"

	"farflash/flash/qos"
	"farflash/numeric/rng"
)

// phase is a limit and when it was set.
type phase struct {
	limit qos.Limit
	at    int64
}

// allowed integrates a rate of the limits in force over a span; false if it was unlimited at some time in it.
func allowed(all []phase, rate func(qos.Limit) int64, from, to int64) (sum float64, ok bool) {
	for i, p := range all {
		begin, end := max(p.at, from), to
		if i+1 < len(all) {
			end = min(end, all[i+1].at)
		}
		if begin > end {
			continue
		}
		if rate(p.limit) == 0 {
			return 0, false
		}
		sum += float64(rate(p.limit)) * float64(end-begin) / 1e9
	}
	return sum, true
}

// TestSet changes the limits of a busy tenant at random and verifies that it is granted what the limits in force at
// each time allow, in every span of time; that after a change it has the new rate and no burst; and that no access
// begins later than a debt in bytes and operations, paid at the rates in force, demands: a higher rate helps at once.
func TestSet(t *testing.T) {
	rates := []func(qos.Limit) int64{func(l qos.Limit) int64 { return l.Bytes },
		func(l qos.Limit) int64 { return l.Operations }}
	for seed := uint64(1); seed <= 12; seed++ {
		draw := rng.NewStream(seed, "set")
		limit := func() (l qos.Limit) {
			if draw.IntN(5) > 0 {
				l.Bytes = 1 << (14 + draw.IntN(14))
			}
			if draw.IntN(3) > 0 {
				l.Operations = 1 << (3 + draw.IntN(11))
			}
			l.Class, l.Burst = qos.Class(draw.IntN(2)), draw.IntN(5_000_000)
			return l
		}
		s := qos.New[int64](1 << 60)
		all := []phase{{limit: limit()}}
		a, err := s.Add(all[0].limit)
		if err != nil {
			t.Fatal(err)
		}
		var grants []grant
		var debts [2]float64 // bytes and operations; negative is what a burst allows
		for i, rate := range rates {
			debts[i] = -float64(rate(all[0].limit)) * float64(all[0].limit.Burst) / 1e9
		}
		rounded := [2]float64{2, 2} // the sum of what each cost can be too high, in bytes and operations
		pay := func(from, to int64) {
			l := all[len(all)-1].limit
			for i, rate := range rates {
				if debts[i] -= float64(rate(l)) * float64(to-from) / 1e9; rate(l) == 0 {
					debts[i] = 0
				}
				debts[i] = max(debts[i], -float64(rate(l))*float64(l.Burst)/1e9)
			}
		}
		change := int64(5_000_000)
		for now := int64(0); len(grants) < 3000 && len(all) < 60; {
			for s.Waiting() < 2 {
				n := 1 + draw.IntN(64<<10)
				s.Offer(a, n, n)
			}
			for {
				n, ok := s.Next(now)
				if !ok {
					break
				}
				l := all[len(all)-1].limit
				for i, rate := range rates {
					if slack := 2 + 1e-9*2*float64(rate(l)); rate(l) > 0 && debts[i] > slack {
						t.Fatalf("seed %d: an access begins %v in debt of %d", seed, debts[i], i)
					}
				}
				grants = append(grants, grant{bytes: n, at: now})
				debts[0], debts[1] = debts[0]+float64(n), debts[1]+1
				rounded[0], rounded[1] = rounded[0]+1e-9*float64(l.Bytes), rounded[1]+1e-9*float64(l.Operations)
				if len(grants) >= 3000 || l.Bytes == 0 && l.Operations == 0 {
					break // for ever
				}
				for s.Waiting() < 2 {
					n := 1 + draw.IntN(64<<10)
					s.Offer(a, n, n)
				}
			}
			wait, ok := s.When(now)
			if !ok {
				t.Fatal("nothing will begin")
			}
			next := min(now+max(wait, 1), change)
			if l := all[len(all)-1].limit; wait > 0 && next > now+1 {
				// A nanosecond earlier it was too early. Each cost so far was rounded up to a nanosecond.
				late := true
				for i, rate := range rates {
					if rate(l) > 0 && debts[i]-float64(rate(l))*float64(next-1-now)/1e9 > -rounded[i]-
						1e-9*float64(rate(l)) {
						late = false
					}
				}
				if late {
					t.Fatalf("seed %d: %v ns to wait with debts %v under %+v", seed, wait, debts, l)
				}
			}
			pay(now, next)
			if now = next; now == change {
				l := limit()
				if err := s.Set(a, l, now); err != nil {
					t.Fatal(err)
				}
				old := all[len(all)-1].limit
				for i, rate := range rates {
					rounded[i] += 2
					if debts[i] = max(debts[i], 0); rate(old) == 0 {
						debts[i] = 0
					}
				}
				all = append(all, phase{l, now})
				change += 1 + draw.IntN(30_000_000)
			}
		}
		for i, rate := range rates {
			for from := range grants {
				sum := 0.0
				for to := from; to < min(len(grants), from+200); to++ {
					if most, ok := allowed(all, rate, grants[from].at, grants[to].at); ok {
						at := 0
						for at+1 < len(all) && all[at+1].at <= grants[from].at {
							at++
						}
						l := all[at].limit
						most += float64(rate(l))*float64(l.Burst)/1e9 + float64(2*len(all))
						if to > from && sum > most {
							t.Fatalf("seed %d: %v of %d from %d to %d, allowed are %v", seed, sum, i, grants[from].at,
								grants[to].at, most)
						}
					}
					if sum++; i == 0 {
						sum += float64(grants[to].bytes) - 1
					}
				}
			}
			for _, p := range all[1:] {
				sum := 0.0
				for _, g := range grants {
					if g.at < p.at {
						continue
					}
					if most, ok := allowed(all, rate, p.at, g.at); ok && sum > most+float64(2*len(all)) {
						t.Fatalf("seed %d: %v of %d until %d after the change at %d", seed, sum, i, g.at, p.at)
					}
					if sum++; i == 0 {
						sum += float64(g.bytes) - 1
					}
				}
			}
		}
	}
}

// TestSetHelpsAtOnce verifies that a debt of hours is paid in no time at a higher rate, that a limit that is taken away
// leaves none, and that a wrong limit changes nothing.
func TestSetHelpsAtOnce(t *testing.T) {
	s := qos.New[int](1 << 40)
	a, err := s.Add(qos.Limit{Bytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		s.Offer(a, 1<<20, 0)
	}
	next := func(now int64) bool { _, ok := s.Next(now); return ok }
	if !next(0) || next(1e9) {
		t.Fatal("two accesses of 1 MiB begin in a second at 1 B/s")
	}
	if err := s.Set(a, qos.Limit{Bytes: -1}, 1e9); err == nil {
		t.Error("a negative rate is taken")
	}
	if err := s.Set(a, qos.Limit{Bytes: 1 << 30}, 1e9); err != nil {
		t.Fatal(err)
	}
	if wait, ok := s.When(1e9); !ok || wait != 976_562 { // 2^20-1 bytes at 2^30 B/s
		t.Errorf("it waits for %d ns", wait)
	}
	if !next(1e9+976_562) || next(1e9+976_562) {
		t.Error("not one access begins then")
	}
	if err := s.Set(a, qos.Limit{Bytes: 1}, 2e9); err != nil || !next(2e9) || next(3e9) {
		t.Errorf("one access and no burst after a change: %v", err)
	}
	if err := s.Set(a, qos.Limit{}, 3e9); err != nil || !next(3e9) {
		t.Errorf("without a limit it still waits: %v", err)
	}
}

// TestSetClass verifies that a tenant whose class changes again and again shares its class fairly from then on.
func TestSetClass(t *testing.T) {
	const most = 64 << 10
	draw := rng.NewStream(1, "class")
	s := qos.New[grant](1 << 40)
	for _, c := range []qos.Class{qos.Throughput, qos.Latency, qos.Throughput} {
		if _, err := s.Add(qos.Limit{Class: c}); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 40 {
		class := qos.Class(round % 2)
		if err := s.Set(2, qos.Limit{Class: class}, int64(round)); err != nil {
			t.Fatal(err)
		}
		had := [3]int64{}
		for range 500 {
			for i := range had {
				n := 1 + draw.IntN(most)
				s.Offer(i, n, grant{tenant: i, bytes: n})
			}
			g, ok := s.Next(int64(round))
			if !ok {
				t.Fatal("nothing begins")
			}
			had[g.tenant] += g.bytes
			if d := had[class] - had[2]; d > 2*most || d < -2*most {
				t.Fatalf("round %d: %v bytes, class %d", round, had, class)
			}
		}
	}
}
