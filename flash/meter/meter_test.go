package meter

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

// TestCells verifies that each latency is in the cell whose native and decimal bucket hold it.
func TestCells(t *testing.T) {
	bounds, decimal := Bounds(), Decimal()
	rapid.Check(t, func(t *rapid.T) {
		nanos := rapid.Int64Range(0, math.MaxInt64>>rapid.IntRange(0, 62).Draw(t, "shift")).Draw(t, "nanoseconds")
		if i := rapid.IntRange(0, 2*len(bounds)).Draw(t, "bound"); i < len(bounds)-1 {
			nanos = bounds[i].Upper + rapid.Int64Range(-1, 1).Draw(t, "beside it")
		}
		b := bounds[cellOf(nanos)]
		want := 0
		for want < len(decimal) && nanos > decimal[want] {
			want++
		}
		if b.Decimal != want {
			t.Fatalf("%d ns are in decimal bucket %d, not %d", nanos, b.Decimal, want)
		}
		// Bounds are rounded down to nanoseconds.
		low, high := math.Exp2(float64(b.Native-1)/8)*1e9-1, math.Exp2(float64(b.Native)/8)*1e9
		if b.Native == First-1 {
			low = -1
		}
		if float64(nanos) <= low || float64(nanos) > high && b.Native != Last {
			t.Fatalf("%d ns are in native bucket %d of %v to %v ns", nanos, b.Native, low, high)
		}
	})
	if at := cellOf(-1); at != 0 {
		t.Errorf("a clock that went back: cell %d", at)
	}
}

// TestCounts verifies the sums over uses that were closed and others, with several connections at once.
func TestCounts(t *testing.T) {
	m := New(10)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			u := m.Open("disk", "nbd")
			defer u.Close()
			for range 1000 {
				at, _ := u.Begin(3)
				u.End(at, Read, 4096, Succeeded)
				u.End(at, Write, 512, IO)
				u.End(at, Trim, 1<<20, Succeeded)
			}
			at, _ := u.Begin(2)
			u.End(at, Flush, 0, Dropped)
		})
	}
	all.Wait()
	m.Open("disk", "iwarp").Close()
	samples, replaced := m.Samples()
	if len(samples) != 2 || replaced != 0 || samples[0].Protocol != "iwarp" {
		t.Fatalf("%d samples, %d replaced", len(samples), replaced)
	}
	s := samples[1]
	if s.Export != "disk" || s.Operations != [Kinds]int64{Read: 8000, Write: 8000, Trim: 8000} ||
		s.Bytes != [Kinds]int64{Read: 8000 * 4096, Trim: 8000 << 20} ||
		s.Failed[Write] != [Failures]int64{IO: 8000} || s.Failed[Read] != [Failures]int64{} || s.Outstanding != 8 {
		t.Errorf("%+v", s)
	}
	if n := s.Latency[Write].Count(); n != 8000 || s.Latency[Write].Nanos <= 0 || s.Latency[Flush].Count() != 0 {
		t.Errorf("%d writes in %d ns", n, s.Latency[Write].Nanos)
	}
	var none *Use
	none.End(begin(none), Read, 1, Succeeded)
	none.Close()
}

// TestShards verifies that connections that follow each other share a shard, and those at the same time do not.
func TestShards(t *testing.T) {
	m := New(10)
	m.wide = 3
	for range 5 {
		m.Open("disk", "nbd").Close()
	}
	x := m.all[[2]string{"disk", "nbd"}]
	if n := len(x.shards); n != 1 {
		t.Errorf("%d shards of one connection at a time", n)
	}
	for want := 1; want <= 3; want++ {
		if m.Open("disk", "nbd"); len(x.shards) != want {
			t.Errorf("%d connections have %d shards", want, len(x.shards))
		}
	}
	for range 4 {
		m.Open("disk", "nbd")
	}
	if n := len(x.shards); n != 3 || x.least().uses != 2 {
		t.Errorf("%d shards, the least with %d uses", n, x.least().uses)
	}
}

// TestShardsAreBounded verifies that exports that many connections used once do not keep a shard for each.
func TestShardsAreBounded(t *testing.T) {
	m := New(10)
	m.wide = 64
	for i := range 100 {
		var uses []*Use
		for range 64 {
			uses = append(uses, m.Open(fmt.Sprint(i), "nbd"))
		}
		for _, u := range uses {
			u.Close()
		}
		n := 0
		for _, x := range m.all {
			n += len(x.shards)
		}
		if n != m.shards || n > 2*10+10 {
			t.Fatalf("%d shards, %d counted", n, m.shards)
		}
	}
	if size := unsafe.Sizeof(shard{}); size > 8<<10 {
		t.Errorf("a shard has %d bytes", size)
	}
}

// TestBound verifies that exports that come and go cannot use up the memory, and that no operation is lost while all
// are in use.
func TestBound(t *testing.T) {
	m := New(3)
	first := m.Open("a", "nbd")
	for i := range 100 {
		u := m.Open(fmt.Sprint("file", i), "nbd")
		u.End(begin(u), Read, 1, Succeeded)
		u.Close()
	}
	samples, replaced := m.Samples()
	if len(samples) != 3 || replaced != 98 || samples[0].Export != "a" || samples[1].Export != "file98" ||
		samples[2].Export != "file99" {
		t.Errorf("%d replaced: %+v", replaced, samples)
	}
	held := []*Use{first, m.Open("b", "nbd"), m.Open("c", "nbd")}
	for i := range 100 {
		u := m.Open(fmt.Sprint("more", i), "nbd")
		u.End(begin(u), Read, 1, Succeeded)
		held = append(held, u)
	}
	samples, _ = m.Samples()
	if len(samples) != 4 || samples[0].Export != "" || samples[0].Operations[Read] != 100 {
		t.Errorf("%d samples: %+v", len(samples), samples[0])
	}
	for _, u := range held {
		u.Close()
	}
}

// TestFree verifies that counting allocates nothing.
func TestFree(t *testing.T) {
	u := New(1).Open("disk", "nbd")
	if n := testing.AllocsPerRun(1000, func() { u.End(begin(u), Read, 4096, Succeeded) }); n != 0 {
		t.Errorf("%v allocations an operation", n)
	}
}

// BenchmarkOperation counts operations of one connection, and of a connection for each processor.
func BenchmarkOperation(b *testing.B) {
	b.Run("one", func(b *testing.B) {
		u := New(1).Open("disk", "nbd")
		b.ReportAllocs()
		for b.Loop() {
			u.End(begin(u), Read, 4096, Succeeded)
		}
	})
	b.Run("all", func(b *testing.B) {
		m := New(1)
		b.ReportAllocs()
		b.RunParallel(func(p *testing.PB) {
			u := m.Open("disk", "nbd")
			defer u.Close()
			for p.Next() {
				u.End(begin(u), Read, 4096, Succeeded)
			}
		})
	})
	b.Run("samples", func(b *testing.B) {
		m := New(1000)
		for i := range 1000 {
			m.Open(fmt.Sprint(i), "nbd").Close()
		}
		for b.Loop() {
			m.Samples()
		}
	})
}

// TestQuantile compares quantiles with those of the latencies themselves: they are never less, and at most 9.1 % more.
func TestQuantile(t *testing.T) {
	m := New(1)
	u := m.Open("a", "b")
	var all []int64
	for i := range int64(1000) {
		nanos := (i*i*i + 1) * 7 % 3_000_000_000
		all = append(all, nanos)
		u.shard.end(Read, 1, Succeeded, nanos)
	}
	slices.Sort(all)
	s, _ := m.Samples()
	l := &s[0].Latency[Read]
	for _, q := range []float64{0.01, 0.1, 0.5, 0.99, 1} {
		exact := all[int(math.Ceil(q*1000))-1]
		if got := int64(l.Quantile(q)); got < exact || float64(got) > 1.091*float64(exact)+1 {
			t.Errorf("the quantile %v is %d, which is %d", q, got, exact)
		}
	}
	if got := s[0].Latency[Flush].Quantile(0.5); got != 0 || s[0].Uses != 1 {
		t.Errorf("%v without operations; %d uses", got, s[0].Uses)
	}
}

// begin counts one operation and returns when it arrived.
func begin(u *Use) int64 {
	at, _ := u.Begin(1)
	return at
}

// TestOrder verifies that samples are ordered by name and protocol, and that a meter holds at least one.
func TestOrder(t *testing.T) {
	m := New(100)
	for _, name := range []string{"c", "a", "d", "b"} {
		for _, protocol := range []string{"nvme", "iwarp", "nbd"} {
			m.Open(name, protocol).Close()
		}
	}
	var got []string
	samples, _ := m.Samples()
	for _, s := range samples {
		got = append(got, s.Export+" "+s.Protocol)
	}
	if len(got) != 12 || !slices.IsSorted(got) {
		t.Errorf("%q", got)
	}
	m = New(-1)
	m.Open("a", "nbd").Close()
	m.Open("b", "nbd").Close()
	if samples, replaced := m.Samples(); len(samples) != 1 || samples[0].Export != "b" || replaced != 1 {
		t.Errorf("%d samples, %d replaced", len(samples), replaced)
	}
}

// TestLatency verifies that an operation's latency lies between the time that it surely took and the time around it,
// however old the meter is, and that the bound of what counts as zero is that of the first cell.
func TestLatency(t *testing.T) {
	m := New(1)
	m.began = m.began.Add(-time.Hour)
	u := m.Open("a", "nbd")
	defer u.Close()
	before := time.Now()
	at, _ := u.Begin(1)
	inner := time.Now()
	for time.Since(inner) < time.Millisecond {
	}
	least := time.Since(inner)
	u.End(at, Read, 1, Succeeded)
	most := time.Since(before)
	samples, _ := m.Samples()
	l := &samples[0].Latency[Read]
	if l.Count() != 1 || l.Nanos < int64(least) || l.Nanos > int64(most) {
		t.Errorf("%d operations took %d ns, of %d to %d", l.Count(), l.Nanos, least, most)
	}
	if upper := Bounds()[0].Upper; upper != int64(math.Floor(Least*1e9)) {
		t.Errorf("%v s counts as zero, and %d ns", Least, upper)
	}
}
