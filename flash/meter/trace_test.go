package meter

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestDrawn verifies that of each `every` operations one is traced, and that a load that repeats does not always have
// the same one of its operations traced.
func TestDrawn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		every := rapid.IntRange(1, 3000).Draw(t, "every")
		m := New(1)
		m.Trace(every, rapid.Uint64().Draw(t, "key"), func(*Trace) {})
		u := m.Open("disk", "nbd")
		defer u.Close()
		const blocks = 4
		for block := range blocks {
			n := 0
			for at := range every {
				if u.Trace(int64(block*every+at)) != nil {
					n++
				}
			}
			if n != 1 {
				t.Fatalf("%d of %d operations are traced", n, every)
			}
		}
	})
	m := New(1)
	m.Trace(1000, 1, func(*Trace) {})
	u := m.Open("disk", "nbd")
	var by [4]int
	for at := range int64(4e6) {
		if u.Trace(at) != nil {
			by[at%4]++
		}
	}
	for i, n := range by {
		if n < 850 || n > 1150 { // 4,000 are traced; a quarter varies by 27 (binomial), this is more than 5 times that
			t.Errorf("%d operations are traced that are number %d of four", n, i)
		}
	}
}

// TestTrace verifies that a trace has the times that were noted, as times of the wall clock.
func TestTrace(t *testing.T) {
	var got []*Trace
	m := New(1)
	m.Trace(1, 0, func(x *Trace) { got = append(got, x) })
	u := m.Open("disk", "iwarp")
	u.Peer = "10.0.0.1:700"
	before := time.Now()
	stalled := m.Now()
	_, first := u.Begin(1)
	x := u.Trace(first)
	x.Reached(Stalled, stalled)
	x.Reached(Resumed, 0)
	x.Reach(Done)
	x.End(IO)
	after := time.Now()
	if len(got) != 1 || got[0].Export != "disk" || got[0].Protocol != "iwarp" || got[0].Peer != u.Peer ||
		got[0].Failure != IO {
		t.Fatalf("%+v", got)
	}
	last := before.Add(-time.Millisecond)
	for s := range Stages {
		at, ok := got[0].Time(s)
		if want := s == Stalled || s == Arrived || s == Done; ok != want {
			t.Errorf("stage %d reached: %t", s, ok)
		}
		if !ok {
			continue
		}
		if at.Before(last) || at.After(after.Add(time.Millisecond)) {
			t.Errorf("stage %d was reached at %v, after %v and before %v", s, at, last, after)
		}
		last = at
	}
}

// TestUntraced verifies that operations that are not traced allocate nothing and need no trace.
func TestUntraced(t *testing.T) {
	off, on := New(1), New(1)
	on.Trace(1<<40, 1, func(*Trace) { t.Error("traced") })
	var none *Use
	for _, u := range []*Use{off.Open("disk", "nbd"), on.Open("disk", "nbd"), none} {
		if n := testing.AllocsPerRun(1000, func() {
			at, first := u.Begin(1)
			x := u.Trace(first)
			x.Reach(Done)
			x.Reached(Resumed, 1)
			u.End(at, Read, 4096, Succeeded)
			x.End(Succeeded)
		}); n != 0 {
			t.Errorf("an operation allocates %v times", n)
		}
	}
}

// BenchmarkTrace is the cost of the choice of the operations to trace, without any and with one in a thousand.
func BenchmarkTrace(b *testing.B) {
	for name, every := range map[string]int{"off": 0, "on": 1000} {
		b.Run(name, func(b *testing.B) {
			m := New(1)
			if every > 0 {
				m.Trace(every, 1, func(*Trace) {})
			}
			u, number := m.Open("disk", "nbd"), int64(0)
			b.ReportAllocs()
			for b.Loop() {
				u.Trace(number)
				number++
			}
		})
	}
}
