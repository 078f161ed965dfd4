package qos_test

import (
	"math"
	"testing"

	"farflash/flash/qos"
	"farflash/policy/ratecontrol"
)

// us is a microsecond in nanoseconds.
const us = 1000

// steered returns the state for a client whose reads may hold this many bytes.
func steered(t *testing.T, k ratecontrol.Kind, most int64) *qos.Steer[int32] {
	t.Helper()
	s, err := qos.NewSteer[int32](k, most)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// begin offers and begins one access.
func begin(t *testing.T, s *qos.Steer[int32], now int64, read bool, offset, length int64) int32 {
	t.Helper()
	id := s.Offer(now, read, offset, length, int32(offset>>20))
	if got, ok := s.Next(now); !ok || got != int32(offset>>20) {
		t.Fatalf("at %d access %d begins, %v, not %d", now, got, ok, offset>>20)
	}
	return id
}

// TestDemand verifies the rate of a network that takes reads of 64 KiB one at a time, each some time after the pool has
// read it and before the next: the bytes over the time that data waited, without the pauses, once a second window, of
// 20 ms and four reads at least, confirms it; and no rate where data waits for less than half of the time.
func TestDemand(t *testing.T) {
	const size = 64 << 10
	for _, x := range []struct {
		sends, pauses int64
		reads         int64 // in two windows
		want          float64
	}{
		{3000 * us, 2000 * us, 8, size / 3e-3},
		{5000 * us, 0, 8, size / 5e-3},
		{2600 * us, 2400 * us, 8, size / 2.6e-3},
		{2500 * us, 2500 * us, 1, 12.5e9}, // half of the time is not most of it
		{2400 * us, 2600 * us, 1, 12.5e9}, // the pool is the slower one
		{1000 * us, 0, 40, size / 1e-3},   // 20 reads in 20 ms
		{9000 * us, 1000 * us, 8, size / 9e-3},
	} {
		s := steered(t, ratecontrol.Reserve, 1<<20)
		now := int64(0)
		for n := int64(1); n <= 60; n++ {
			id := begin(t, s, now, true, n<<20, size)
			now += x.pauses
			s.Done(now, id, false)
			now += x.sends
			s.Sent(now, id)
			want := 12.5e9
			if n >= x.reads {
				want = x.want
			}
			if d := s.Demand(); math.Abs(d/want-1) > 1e-9 {
				t.Fatalf("%+v: after %d reads the demand is %v, want %v", x, n, d, want)
			}
		}
	}
}

// TestDemandNoise verifies that a rate which differs from the last by less than a quarter counts half, and another one
// whole, whichever is the greater.
func TestDemandNoise(t *testing.T) {
	const size = 64 << 10
	s := steered(t, ratecontrol.Reserve, 1<<20)
	now, n := int64(0), int64(0)
	window := func(sends int64) {
		for range 4 {
			n++
			id := begin(t, s, now, true, n<<20, size)
			s.Done(now, id, false)
			now += sends
			s.Sent(now, id)
		}
	}
	window(10_000 * us)
	for _, x := range []struct {
		sends int64
		want  float64
	}{
		{10_000 * us, size / 10e-3}, // the second
		{9_000 * us, (size/10e-3 + size/9e-3) / 2},
		{10_000 * us, ((size/10e-3+size/9e-3)/2 + size/10e-3) / 2},
		{16_000 * us, size / 16e-3},
		{20_000 * us, size / 20e-3}, // a quarter is another network
		{16_000 * us, size / 16e-3},
	} {
		window(x.sends)
		if d := s.Demand(); math.Abs(d/x.want-1) > 1e-9 {
			t.Errorf("after four reads in %d ns each the demand is %v, want %v", x.sends, d, x.want)
		}
	}
}

// TestDemandTogether verifies the rate of a network that takes two reads at once: the time in which both wait counts
// once.
func TestDemandTogether(t *testing.T) {
	s := steered(t, ratecontrol.Reserve, 1<<20)
	now := int64(0)
	for n := range int64(40) {
		a := begin(t, s, now, true, 2*n<<20, 32<<10)
		b := begin(t, s, now, true, (2*n+1)<<20, 32<<10)
		now += 1000 * us // the pool
		s.Done(now, a, false)
		now += 1000 * us
		s.Done(now, b, false)
		now += 1000 * us
		s.Sent(now, a)
		now += 1000 * us
		s.Sent(now, b)
	}
	if want := 64 << 10 / 3e-3; math.Abs(s.Demand()/want-1) > 1e-9 {
		t.Errorf("64 KiB in 3 ms are %v, want %v", s.Demand(), want)
	}
}

// TestReadLimit verifies the limit on reads after the first one by Little's law, with the pool's time from when the
// access began: the line's 12.5 GB/s for four times 100 us. A read that has failed changes nothing. While the network
// takes data at once the limit does not fall, however long the pool takes.
func TestReadLimit(t *testing.T) {
	const size, start = 1 << 20, 1_000_000 * us
	s := steered(t, ratecontrol.Reserve, 1<<40)
	failed := begin(t, s, start, true, 0, size)
	s.Done(start+5000*us, failed, true)
	if reading, limit := s.Reading(); reading != 0 || limit != 0 {
		t.Errorf("a read has failed, and %d bytes are read, the limit is %d", reading, limit)
	}
	const now = start + 5000*us
	var ids []int32
	for n := range int64(10) {
		id := s.Offer(now-50*us, true, n<<20, size, int32(n)) // it waits before it begins
		ids = append(ids, id)
	}
	for range ids {
		if _, ok := s.Next(now); !ok {
			t.Fatal("a read waits, and there is no limit yet")
		}
	}
	s.Done(now+100*us, ids[0], false)
	if reading, limit := s.Reading(); reading != 10*size || limit != 5_000_000 {
		t.Errorf("%d bytes are read, the limit is %d", reading, limit)
	}
	last := int64(5_000_000)
	for k, id := range ids[:4] {
		at := now + int64(110+3000*k)*us
		if k > 0 {
			s.Done(at-10*us, id, false)
		}
		s.Sent(at, id)
		if _, limit := s.Reading(); limit <= last {
			t.Errorf("read %d: the network takes it at once, and the limit goes from %d to %d", k, last, limit)
		} else {
			last = limit
		}
	}
	if _, ok := s.Next(now + 20_000*us); ok {
		t.Error("nothing waits, and something begins")
	}
	for n := range int64(20) {
		s.Offer(now+20_000*us, true, (20+n)<<20, size, int32(20+n))
	}
	began := 0
	for ; ; began++ {
		reading, limit := s.Reading()
		_, ok := s.Next(now + 20_000*us)
		if ok != (reading < limit) {
			t.Fatalf("a read begins, %v, with %d bytes being read and a limit of %d", ok, reading, limit)
		}
		if !ok {
			break
		}
	}
	s.Offer(now+20_000*us, false, 50<<20, size, 50)
	if n := s.Waiting(); n != 20-began+1 {
		t.Errorf("%d of %d reads and a write wait", n, 20-began)
	}
	if got, ok := s.Next(now + 20_000*us); !ok || got != 50 {
		t.Errorf("at the limit %d begins, %v, not the write", got, ok)
	}
	s.Open()
	if got, ok := s.Next(now + 20_000*us); !ok || got != int32(20+began) {
		t.Errorf("%d begins, %v, not the next read, after the client has gone", got, ok)
	}
	if n := s.Waiting(); n != 20-began-1 {
		t.Errorf("%d of %d reads wait", n, 20-began-1)
	}
}

// TestRatio verifies what aimd makes of a demand: where reads exceed it two writes begin for each read from the next
// decision on, and one after an interval without reads, whereupon the timer stops until the next access.
func TestRatio(t *testing.T) {
	const size = 64 << 10
	s := steered(t, ratecontrol.AIMD, 1<<40)
	if at, ok := s.When(); ok {
		t.Errorf("a client without accesses is due at %d", at)
	}
	now := int64(0)
	for n := range int64(16) { // 13 MB/s
		id := begin(t, s, now, true, n<<20, size)
		s.Done(now, id, false)
		now += 5000 * us
		s.Sent(now, id)
	}
	if d := s.Demand(); d != size/5e-3 {
		t.Fatalf("the demand is %v", d)
	}
	if at, ok := s.When(); !ok || at != 1000*us {
		t.Errorf("the decision is due at %d, %v, not 1 ms after the first access", at, ok)
	}
	for n := range int64(64) {
		s.Offer(now, n%2 == 0, (100+n)<<20, size, int32(n))
	}
	reads := func(n int) (reads int) {
		for range n {
			i, ok := s.Next(now)
			if !ok {
				t.Fatal("an access waits")
			}
			if i%2 == 0 {
				reads++
			}
		}
		return reads
	}
	if got := reads(12); got != 6 {
		t.Errorf("%d of 12 are reads before the decision", got)
	}
	s.Tick(now)
	if got := reads(12); got != 4 {
		t.Errorf("%d of 12 are reads while reads exceed the demand", got)
	}
	if at, ok := s.When(); !ok || at != now+1000*us {
		t.Errorf("the next decision is due at %d, %v, not 1 ms after %d", at, ok, now)
	}
	s.Tick(now + 1000*us - 1)
	if got := reads(6); got != 2 {
		t.Errorf("%d of 6 are reads before the next decision", got)
	}
	now += 1000 * us
	s.Tick(now)
	if got := reads(12); got != 6 {
		t.Errorf("%d of 12 are reads after an interval without any", got)
	}
	if at, ok := s.When(); ok {
		t.Errorf("a decision is due at %d, and nothing is read", at)
	}
	now += 7000 * us
	s.Offer(now, true, 1<<40, size, 0)
	if at, ok := s.When(); !ok || at != now+1000*us {
		t.Errorf("the decision is due at %d, %v, not 1 ms after %d", at, ok, now)
	}
}
