package qos_test

import (
	"testing"

	"farflash/flash/qos"
	"farflash/numeric/rng"
)

// grant is an access granted to a tenant, and its time.
type grant struct {
	tenant int
	bytes  int64
	at     int64
}

// run offers random accesses, completes them some time later, and returns the grants with their times. It advances time
// by When only.
func run(t *testing.T, seed uint64, limits []qos.Limit, depth int64, busy bool, span int64) []grant {
	t.Helper()
	draw := rng.NewStream(seed, "qos")
	s := qos.New[grant](depth)
	for _, l := range limits {
		if _, err := s.Add(l); err != nil {
			t.Fatal(err)
		}
	}
	queued := make([]int, len(limits))
	var out []grant
	type end struct{ at, bytes int64 }
	var ends []end
	under := int64(0)
	for now := int64(0); now < span; {
		for i := range limits {
			for n := int(draw.IntN(3)); busy && queued[i] < 20 || n > 0; n-- {
				g := grant{tenant: i, bytes: 1 + draw.IntN(64<<10)}
				s.Offer(i, g.bytes, g)
				queued[i]++
			}
		}
		for {
			g, ok := s.Next(now)
			if !ok {
				break
			}
			if under > 0 && under >= depth {
				t.Fatalf("seed %d: %d bytes are under way, and %d are begun", seed, under, g.bytes)
			}
			g.at = now
			queued[g.tenant]--
			under += g.bytes
			out = append(out, g)
			ends = append(ends, end{now + 1 + draw.IntN(200_000), g.bytes})
		}
		next := now + 1 + draw.IntN(500_000)
		if wait, ok := s.When(now); ok {
			if wait <= 0 {
				t.Fatalf("seed %d: something may begin at %d and does not", seed, now)
			}
			next = min(next, now+wait)
		}
		for _, e := range ends {
			next = min(next, e.at)
		}
		now = max(next, now+1)
		keep := ends[:0]
		for _, e := range ends {
			if e.at <= now {
				s.Done(e.bytes)
				under -= e.bytes
			} else {
				keep = append(keep, e)
			}
		}
		ends = keep
	}
	waiting := 0
	for _, n := range queued {
		waiting += n
	}
	if waiting != s.Waiting() {
		t.Errorf("seed %d: %d accesses wait, it says %d", seed, waiting, s.Waiting())
	}
	return out
}

// TestRates verifies that in any span of time a tenant gets at most its rate, a burst and one access.
func TestRates(t *testing.T) {
	for seed := uint64(1); seed <= 30; seed++ {
		draw := rng.NewStream(seed, "limits")
		var limits []qos.Limit
		for range 1 + draw.IntN(4) {
			limits = append(limits, qos.Limit{
				Class: qos.Class(draw.IntN(2)), Bytes: 1 + draw.IntN(200<<20), Operations: 1 + draw.IntN(20_000),
				Burst: draw.IntN(2_000_000),
			})
		}
		grants := run(t, seed, limits, 1<<20, seed%2 == 0, 50_000_000)
		for i, l := range limits {
			var mine []grant
			for _, g := range grants {
				if g.tenant == i {
					mine = append(mine, g)
				}
			}
			for a := range mine {
				bytes, operations := int64(0), int64(0)
				for b := a; b < len(mine); b++ {
					// All accesses before the last one were paid for within the span and the burst.
					time := float64(mine[b].at-mine[a].at+l.Burst) / 1e9
					if float64(bytes) > float64(l.Bytes)*time+1 || float64(operations) > float64(l.Operations)*time+1 {
						if b > a {
							t.Fatalf("seed %d: tenant %d of %+v has had %d bytes and %d accesses in %v s", seed, i, l,
								bytes, operations, time)
						}
					}
					bytes += mine[b].bytes
					operations++
				}
			}
		}
	}
}

// TestFairness verifies that backlogged tenants of a class get equal bytes, that none starves, and that latency gets
// its guaranteed share.
func TestFairness(t *testing.T) {
	const most = 64 << 10
	for seed := uint64(1); seed <= 10; seed++ {
		limits := []qos.Limit{{}, {}, {}, {Class: qos.Latency}, {Class: qos.Latency}}
		had := make([]int64, len(limits))
		for _, g := range run(t, seed, limits, 256<<10, true, 100_000_000) {
			had[g.tenant] += g.bytes
			for _, pair := range [][2]int{{0, 1}, {1, 2}, {3, 4}} {
				if d := had[pair[0]] - had[pair[1]]; d > 3*most || d < -3*most {
					t.Fatalf("seed %d: tenants %v have had %d and %d bytes", seed, pair, had[pair[0]], had[pair[1]])
				}
			}
			slow, fast := had[0]+had[1]+had[2], had[3]+had[4]
			if fast > qos.Share*slow+(qos.Share+2)*most || slow*qos.Share > fast+2*qos.Share*most {
				t.Fatalf("seed %d: latency has had %d bytes, throughput %d", seed, fast, slow)
			}
		}
		if had[0] == 0 || had[3] == 0 {
			t.Fatalf("seed %d: %v", seed, had)
		}
	}
}

// TestIdle verifies that a long idle time earns no more than one burst, and that a new tenant does not catch up with
// existing ones.
func TestIdle(t *testing.T) {
	s := qos.New[int](1 << 30)
	limited, err := s.Add(qos.Limit{Bytes: 1000, Burst: 1e9})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		s.Offer(limited, 500, 0)
	}
	n := 0
	for at := int64(3600e9); ; {
		_, ok := s.Next(at)
		if !ok {
			break
		}
		n++
	}
	if n != 3 { // a burst of 1000 bytes, plus the access that goes into debt
		t.Errorf("%d accesses of 500 bytes go at once at 1000 B/s with a burst of 1 s", n)
	}
	if wait, ok := s.When(3600e9); !ok || wait != 5e8 {
		t.Errorf("the next one waits %d ns", wait)
	}
	s.Open()
	for range 7 {
		if _, ok := s.Next(3600e9); !ok {
			t.Fatal("an access waits though nothing is limited any more")
		}
	}
	for _, l := range []qos.Limit{{Class: qos.Latency + 1}, {Class: 9}, {Bytes: -1}, {Operations: -1}, {Burst: -1}} {
		if _, err := s.Add(l); err == nil {
			t.Errorf("%+v is taken", l)
		}
	}
}

// TestWithdraw removes cancelled accesses from a queue: the others keep their order, and no tokens are spent on them.
func TestWithdraw(t *testing.T) {
	s := qos.New[int](1)
	a, err := s.Add(qos.Limit{Bytes: 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		s.Offer(a, 10, i)
	}
	if got := s.Withdraw(a, func(i int) bool { return i%2 == 0 }); len(got) != 10 || got[9] != 18 || s.Waiting() != 10 {
		t.Fatalf("%v are withdrawn, %d wait", got, s.Waiting())
	}
	now := int64(0)
	for want := 1; want < 20; want += 2 {
		if got, ok := s.Next(now); !ok || got != want {
			t.Fatalf("%d is next, %v, not %d", got, ok, want)
		}
		s.Done(10)
		if wait, ok := s.When(now); ok {
			now += wait
		}
	}
	if s.Waiting() != 0 || s.Granted(a) != 100 || now != 9e9 {
		t.Errorf("%d wait, %d bytes are granted in %d ns", s.Waiting(), s.Granted(a), now)
	}
}

// TestNothing verifies that zero-byte accesses are scheduled like others and leave the depth as they found it.
func TestNothing(t *testing.T) {
	s := qos.New[int](1)
	a, err := s.Add(qos.Limit{})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		s.Offer(a, 0, 0)
		s.Offer(a, 0, 0)
		for range 2 {
			if _, ok := s.Next(0); !ok {
				t.Fatal("nothing is under way, and an access waits")
			}
			if _, ok := s.Next(0); ok {
				t.Fatal("two accesses are under way where there is room for one")
			}
			s.Done(0)
		}
	}
}

// TestSmallestLimits verifies that the smallest rates are enforced, and that an access larger than any rate pays within
// the representable time.
func TestSmallestLimits(t *testing.T) {
	for _, l := range []qos.Limit{{Bytes: 1}, {Operations: 1}} {
		s := qos.New[int](1 << 62)
		a, err := s.Add(l)
		if err != nil {
			t.Fatal(err)
		}
		s.Offer(a, 1, 0)
		s.Offer(a, 1, 0)
		if _, ok := s.Next(0); !ok {
			t.Fatalf("%+v: the first access waits", l)
		}
		if _, ok := s.Next(999_999_999); ok {
			t.Errorf("%+v: two accesses begin within a second", l)
		}
		if wait, ok := s.When(0); !ok || wait != 1e9 {
			t.Errorf("%+v: the next one waits %d ns, %v", l, wait, ok)
		}
	}
	for _, bytes := range []int64{18_446_744_073, 18_446_744_074, 20_000_000_000, 1 << 50} {
		// that many seconds exceed 64 bits of nanoseconds
		s := qos.New[int](1 << 62)
		a, err := s.Add(qos.Limit{Bytes: 1})
		if err != nil {
			t.Fatal(err)
		}
		s.Offer(a, bytes, 0)
		s.Offer(a, 1, 0)
		if _, ok := s.Next(0); !ok {
			t.Fatal("the first access waits")
		}
		if wait, ok := s.When(0); !ok || wait < 1<<59 {
			t.Errorf("after %d bytes at 1 B/s the next one waits %d ns", bytes, wait)
		}
	}
}

// TestLatencyFirst verifies that of two eligible accesses the latency class goes first, whatever the tenants' numbers.
func TestLatencyFirst(t *testing.T) {
	for first := range 2 {
		s := qos.New[qos.Class](1 << 30)
		for i := range 2 {
			class := qos.Class(i ^ first)
			a, err := s.Add(qos.Limit{Class: class})
			if err != nil {
				t.Fatal(err)
			}
			s.Offer(a, 4096, class)
		}
		if got, ok := s.Next(0); !ok || got != qos.Latency {
			t.Errorf("class %d goes first, %v", got, ok)
		}
	}
}

// TestNewcomer verifies that a tenant that was idle while others worked has no credit: from its arrival on all get the
// same, also after a pause.
func TestNewcomer(t *testing.T) {
	s := qos.New[int](1 << 30)
	for range 2 {
		if _, err := s.Add(qos.Limit{}); err != nil {
			t.Fatal(err)
		}
	}
	had := [2]int{}
	serve := func(n int, fill ...int) {
		for range n {
			for _, i := range fill {
				s.Offer(i, 4096, i)
			}
			i, ok := s.Next(0)
			if !ok {
				t.Fatal("an access waits")
			}
			had[i]++
		}
	}
	for range 3 {
		serve(500, 0) // one works alone
		before := had
		serve(40, 0, 1)
		if d := had[1] - before[1]; d < 19 || d > 21 {
			t.Errorf("who has come has %d of 40 accesses", d)
		}
		for s.Waiting() > 0 {
			serve(1)
		}
	}
}

// TestShare verifies that exactly Share latency bytes pass a waiting throughput byte, and that bytes which passed one
// that was withdrawn do not count for the next.
func TestShare(t *testing.T) {
	s := qos.New[string](1 << 30)
	var tenants [2]int
	for i, c := range []qos.Class{qos.Latency, qos.Throughput} {
		var err error
		if tenants[i], err = s.Add(qos.Limit{Class: c}); err != nil {
			t.Fatal(err)
		}
	}
	order := func(n int) (out string) {
		for range n {
			what, ok := s.Next(0)
			if !ok {
				t.Fatalf("nothing begins after %s", out)
			}
			out += what
		}
		return out
	}
	for range 40 {
		s.Offer(tenants[0], 1, "l")
	}
	s.Offer(tenants[1], 1, "t")
	if got := order(10); got != "lllllllltl" {
		t.Errorf("the order is %s", got)
	}
	s.Offer(tenants[1], 1, "t")
	if got := order(5); got != "lllll" {
		t.Errorf("the order is %s", got)
	}
	s.Withdraw(tenants[1], func(string) bool { return true })
	if got := order(1); got != "l" {
		t.Errorf("the order is %s", got)
	}
	s.Offer(tenants[1], 1, "t")
	if got := order(10); got != "lllllllltl" {
		t.Errorf("after one has been withdrawn the order is %s", got)
	}
}

// TestWhen verifies for how long to wait: not at all where an access may begin, until the bucket lets the first of all
// tenants begin, and in no case where the depth is used.
func TestWhen(t *testing.T) {
	s := qos.New[int](30)
	var tenants [3]int
	for i, l := range []qos.Limit{{Bytes: 10}, {Operations: 4}, {}} {
		var err error
		if tenants[i], err = s.Add(l); err != nil {
			t.Fatal(err)
		}
	}
	when := func(now, want int64, ok bool) {
		t.Helper()
		if wait, can := s.When(now); wait != want || can != ok {
			t.Errorf("at %d it waits for %d ns, %v; want %d, %v", now, wait, can, want, ok)
		}
	}
	when(5, 0, false)
	s.Offer(tenants[0], 10, 0)
	when(5, 0, true)
	if _, ok := s.Next(5); !ok {
		t.Fatal("the first access waits")
	}
	s.Offer(tenants[0], 10, 0)
	when(5, 1e9, true) // ten bytes at ten bytes a second
	when(1e9+4, 1, true)
	when(1e9+5, 0, true)
	when(2e9, 0, true)
	s.Offer(tenants[1], 10, 1)
	when(6, 0, true)
	if got, ok := s.Next(6); !ok || got != 1 {
		t.Fatal("the access of a tenant without a debt waits")
	}
	s.Offer(tenants[1], 10, 1)
	when(6, 25e7, true) // one of four in a second, before the other
	s.Offer(tenants[2], 10, 2)
	when(6, 0, true)
	if got, ok := s.Next(6); !ok || got != 2 {
		t.Fatal("the access of a tenant without a limit waits")
	}
	when(9e9, 0, false) // 30 bytes are in flight
	s.Done(10)
	when(9e9, 0, true)
}

// TestCost verifies the exact times, rounded up, of an access at a rate, where the arithmetic exceeds 64 bits too, and
// that a debt takes the exact time at another rate.
func TestCost(t *testing.T) {
	for _, x := range []struct{ bytes, rate, wait, set, at, then int64 }{
		{1, 3, 333_333_334, 0, 0, 0},
		{3, 3, 1e9, 6, 0, 5e8},
		{10, 1e9, 10, 1, 9, 1e9}, // the last nanosecond is a byte, which is a second
		{1 << 40, 1 << 30, 1024e9, 1 << 20, 24e9, 1000 * 1024e9},
		{18_446_744_073, 1e9, 18_446_744_073, 0, 0, 0}, // times 1e9 that is just below 2^64
		{18_446_744_074, 1e9, 18_446_744_074, 0, 0, 0}, // just above
		// A debt of 2^64-616 billionths of a byte.
		{18_446_744_074, 1000, 18_446_744_074_000_000, 1e9, 290_449, 18_446_744_074},
	} {
		s := qos.New[int](1 << 62)
		a, err := s.Add(qos.Limit{Bytes: x.rate})
		if err != nil {
			t.Fatal(err)
		}
		s.Offer(a, x.bytes, 0)
		s.Offer(a, 1, 0)
		if _, ok := s.Next(0); !ok {
			t.Fatal("the first access waits")
		}
		if wait, ok := s.When(0); !ok || wait != x.wait {
			t.Errorf("%d bytes at %d B/s take %d ns, want %d", x.bytes, x.rate, wait, x.wait)
		}
		if x.set == 0 {
			continue
		}
		if err := s.Set(a, qos.Limit{Bytes: x.set}, x.at); err != nil {
			t.Fatal(err)
		}
		if wait, ok := s.When(x.at); !ok || wait != x.then {
			t.Errorf("%d bytes at %d B/s, after %d ns at %d, take %d ns, want %d", x.bytes, x.rate, x.at, x.set, wait,
				x.then)
		}
	}
}
