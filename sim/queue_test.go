package sim

import (
	"encoding/binary"
	"farflash/internal/patience"
	"farflash/numeric/rng"
	"fmt"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

// queueSet is the engine's queue as a pendingSet.
type queueSet struct{ queue }

func newQueueSet() *queueSet {
	q := &queueSet{}
	q.init()
	return q
}

func (q *queueSet) pop() entry {
	q.ready(Forever)
	return q.take()
}

// check verifies every invariant of the queue's parts.
func (q *queue) check() error {
	for i := range q.n {
		x, after := q.front[(q.head+i)%frontLen].key, q.front[(q.head+i+1)%frontLen].key
		if !x.less(after) {
			return fmt.Errorf("front[%d] %v is not before %v", i, x, after)
		}
		if q.last.less(x) {
			return fmt.Errorf("front[%d] %v is after last %v", i, x, q.last)
		}
	}
	if tail := q.front[(q.head+q.n)%frontLen].key; tail != endless() {
		return fmt.Errorf("the front ends with %v", tail)
	}
	w := &q.wheel
	filed, chunks := 0, 0
	for l := range uint(levels) {
		if (w.words[l] != 0) != (w.occupied>>l&1 == 1) {
			return fmt.Errorf("level %d: occupied is %b, words are %b", l, w.occupied, w.words[l])
		}
		for s := range uint(radix) {
			end := w.ends[l][s]
			if (end != 0) != (w.slots[l][s/64]>>(s%64)&1 == 1) || end != 0 && w.words[l]>>(s/64)&1 == 0 {
				return fmt.Errorf("slot %d.%d ends at %d, its bits say else", l, s, end)
			}
			first, last := w.span(l, s)
			for end != 0 {
				c, entries := w.chunk(end)
				for _, x := range entries {
					if pl, ps := w.place(x.key); pl != l || ps != s {
						return fmt.Errorf("%v is filed at %d.%d, not %d.%d", x.key, l, s, pl, ps)
					}
					if x.less(first) || last.less(x.key) || x.less(w.cursor) || !q.last.less(x.key) {
						return fmt.Errorf("%v in slot %v to %v, cursor %v, last %v", x.key, first, last, w.cursor,
							q.last)
					}
				}
				filed += len(entries)
				chunks++
				end = w.links[c]
				if end != 0 && end%chunkLen != 0 {
					return fmt.Errorf("slot %d.%d has a chunk that is neither first nor full", l, s)
				}
			}
		}
	}
	for end := w.free; end != 0; end = w.links[(end-1)/chunkLen] {
		chunks++
	}
	switch {
	case filed != w.n:
		return fmt.Errorf("%d entries filed, n is %d", filed, w.n)
	case chunks != len(w.links) || chunks*chunkLen != len(w.entries):
		return fmt.Errorf("%d chunks found of %d", chunks, len(w.links))
	case w.n == 0 && q.n == 0 && q.last != endless():
		return fmt.Errorf("empty, but last is %v", q.last)
	}
	return nil
}

// twin is the queue and the reference, with the same contents.
type twin struct {
	queue  queueSet
	heap   binaryHeap
	counts [64]uint64
	now    uint64
}

func newTwin() *twin {
	w := &twin{}
	w.queue.init()
	return w
}

// push pushes an event of one of 64 components.
func (w *twin) push(component uint8, at uint64) {
	c := component % 64
	w.counts[c]++
	k := key{at, uint64(c)<<counterBits | w.counts[c]}
	x := entry{k, k.at*31 + k.order}
	w.queue.push(x)
	w.heap.push(x)
}

func (w *twin) pop() error {
	if w.queue.len() != w.heap.len() {
		return fmt.Errorf("%d pending, want %d", w.queue.len(), w.heap.len())
	}
	if w.heap.len() == 0 {
		if w.queue.ready(Forever) {
			return fmt.Errorf("an empty queue is ready")
		}
		return nil
	}
	want := w.heap.pop()
	if want.at > 0 && w.queue.ready(Time(want.at-1)) {
		return fmt.Errorf("ready before %v", want.key)
	}
	if !w.queue.ready(Time(want.at)) {
		return fmt.Errorf("not ready at %v", want.key)
	}
	if got := w.queue.take(); got != want {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	w.now = want.at
	return nil
}

func (w *twin) drain() error {
	for w.heap.len() > 0 {
		if err := w.pop(); err != nil {
			return err
		}
	}
	return w.queue.check()
}

func TestQueueAgainstHeap(t *testing.T) {
	const far = uint64(Forever)
	cases := []struct {
		name string
		draw func(s *rng.Stream) uint64 // the delay
	}{
		{"drive", func(s *rng.Stream) uint64 { return uint64(driveDelay(s, 0)) }},
		{"net", func(s *rng.Stream) uint64 { return uint64(netDelay(s, 0)) }},
		{"all now", func(*rng.Stream) uint64 { return 0 }},
		{"two times", func(s *rng.Stream) uint64 { return uint64(s.IntN(2)) * 1000 }},
		{"one tick", func(s *rng.Stream) uint64 { return uint64(s.IntN(3)) }},
		{"steps of 16 ns", func(s *rng.Stream) uint64 { return uint64(s.IntN(8)) * 16000 }},
		{"every scale", func(s *rng.Stream) uint64 { return s.Uint64() >> (1 + s.IntN(63)) }},
		{"hours of nothing", func(s *rng.Stream) uint64 { return uint64(s.IntN(2)*4*3600*1e12 + s.IntN(5)) }},
		{"forever", func(s *rng.Stream) uint64 { return [4]uint64{0, 1000, far - 1, far}[s.IntN(4)] }},
	}
	for _, c := range cases {
		for _, pending := range []int{1, 3, 40, 63, 64, 65, 100, 1000, 30000} {
			t.Run(fmt.Sprintf("%s/%d", c.name, pending), func(t *testing.T) {
				if testing.Short() && pending > 1000 {
					t.Skip("slow")
				}
				s := rng.NewStream(7, t.Name())
				w := newTwin()
				push := func() {
					w.push(uint8(s.IntN(64)), min(w.now+c.draw(&s), far))
				}
				// The number pending rises to the target, fluctuates around it in bursts, falls to zero, and rises
				// half-way again.
				for range pending {
					push()
				}
				for i := range 3 * pending {
					for range 1 + s.IntN(4) {
						if err := w.pop(); err != nil {
							t.Fatalf("pop %d: %v", i, err)
						}
					}
					for w.heap.len() < pending-int(s.IntN(int64(pending/8+2))) {
						push()
					}
				}
				if err := w.queue.check(); err != nil {
					t.Fatal(err)
				}
				if err := w.drain(); err != nil {
					t.Fatal(err)
				}
				for range pending / 2 {
					push()
				}
				if err := w.drain(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// After a stopped run, a caller may schedule many events earlier than those that the queue has already examined.
func TestQueuePushBeforeWhatIsOpen(t *testing.T) {
	for _, filed := range []int{40, 100, 5000} {
		for _, early := range []int{1, 62, 63, 64, 200, 3000} {
			t.Run(fmt.Sprintf("%d before %d", early, filed), func(t *testing.T) {
				s := rng.NewStream(1, "early")
				w := newTwin()
				for range filed {
					w.push(uint8(s.IntN(64)), 1e15+uint64(s.IntN(1e9)))
				}
				w.queue.ready(Forever)
				for range early {
					w.push(uint8(s.IntN(64)), uint64(s.IntN(1e9)))
					if err := w.queue.check(); err != nil {
						t.Fatal(err)
					}
				}
				for range early / 2 {
					if err := w.pop(); err != nil {
						t.Fatal(err)
					}
				}
				for range early {
					w.push(uint8(s.IntN(64)), w.now)
				}
				if err := w.drain(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// A run can end inside a slot, before its first event. Later pushes into the slot, or before it, must be ordered
// correctly.
func TestQueueReadyInsideASlot(t *testing.T) {
	for bit := 10; bit < 60; bit++ {
		w := newTwin()
		start := uint64(1) << bit
		for i := range uint64(200) {
			w.push(uint8(i), i)
			w.push(uint8(i), start+start/2+i)
		}
		for range 200 { // the front runs empty, and the wheel does not
			if err := w.pop(); err != nil {
				t.Fatal(err)
			}
		}
		for i := range uint64(200) {
			if w.queue.ready(Time(start+i)) != (i > 0) {
				t.Fatalf("wrong about %d", start+i)
			}
			w.push(uint8(i), start+start/4+200-i)
			w.push(uint8(i), start-1-i)
			if err := w.queue.check(); err != nil {
				t.Fatalf("bit %d: %v", bit, err)
			}
		}
		if err := w.drain(); err != nil {
			t.Fatalf("bit %d: %v", bit, err)
		}
	}
}

func TestQueueMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTwin()
		scale := rapid.SampledFrom([]uint64{0, 3, 300, 20e3, 5e6, 1e9, 1e13, 1 << 62})
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				most := scale.Draw(t, "scale")
				for range rapid.IntRange(1, 100).Draw(t, "count") {
					delay := rapid.Uint64Range(0, most).Draw(t, "delay")
					w.push(rapid.Uint8().Draw(t, "component"), min(w.now+delay, uint64(Forever)))
				}
			},
			"pop": func(t *rapid.T) {
				for range rapid.IntRange(1, 120).Draw(t, "count") {
					if err := w.pop(); err != nil {
						t.Fatal(err)
					}
				}
			},
			"look": func(t *rapid.T) {
				until := w.now + rapid.Uint64Range(0, scale.Draw(t, "scale")).Draw(t, "ahead")
				ready := w.queue.ready(Time(min(until, uint64(Forever))))
				if want := w.heap.len() > 0 && w.heap.events[0].at <= min(until, uint64(Forever)); ready != want {
					t.Fatalf("ready(%d) is %v, want %v", until, ready, want)
				}
			},
			"": func(t *rapid.T) {
				if err := w.queue.check(); err != nil {
					t.Fatal(err)
				}
			},
		})
		if err := w.drain(); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzQueue reads three bytes per operation: the operation and the component, then a delay of twelve bits scaled by
// four.
func FuzzQueue(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x80\x00\x00"))
	f.Add([]byte("push, push, pop and push again"))
	crowd := []byte{}
	for i := range 300 {
		crowd = append(crowd, byte(i%64), byte(i), byte(i%5)<<4)
	}
	f.Add(crowd)
	f.Fuzz(func(t *testing.T, ops []byte) {
		defer patience.Limit()()
		w := newTwin()
		for len(ops) >= 3 {
			what, delay := ops[0], uint64(binary.LittleEndian.Uint16(ops[1:]))
			ops = ops[3:]
			delay = (delay & 0xfff) << (delay >> 12 * 4)
			switch what >> 6 {
			case 0:
				w.push(what, min(w.now+delay, uint64(Forever)))
			case 1:
				for range what % 64 {
					w.push(what*37+byte(len(ops)), min(w.now+delay, uint64(Forever)))
					delay += uint64(what)
				}
			case 2:
				for range what % 64 {
					if err := w.pop(); err != nil {
						t.Fatal(err)
					}
				}
			default:
				w.queue.ready(Time(min(w.now+delay, uint64(Forever))))
			}
		}
		if err := w.queue.check(); err != nil {
			t.Fatal(err)
		}
		if err := w.drain(); err != nil {
			t.Fatal(err)
		}
	})
}

// The rivals in the benchmark must be correct, or their figures are meaningless.
func TestRivalsAgainstHeap(t *testing.T) {
	for _, r := range rivals {
		for _, m := range mixes {
			t.Run(r.name+"/"+m.name, func(t *testing.T) {
				got, want := newHold(r.make(), m.draw, 500), newHold(&binaryHeap{}, m.draw, 500)
				for i := range 20000 {
					if g, w := got.step(), want.step(); g != w {
						t.Fatalf("event %d is %v, want %v", i, g, w)
					}
				}
			})
		}
	}
}

func TestQueueSteadyStateAllocatesNothing(t *testing.T) {
	for _, m := range mixes {
		for _, n := range []int{10, 100, 5000} {
			t.Run(fmt.Sprintf("%s/%d", m.name, n), func(t *testing.T) {
				h := newHold(newQueueSet(), m.draw, n)
				h.run(100 * n)
				if a := testing.AllocsPerRun(10, func() { h.run(10000) }); a != 0 {
					t.Errorf("%v allocations in 10000 events", a)
				}
			})
		}
	}
}

func TestQueueMemory(t *testing.T) {
	held := func(q *queueSet) uintptr {
		return unsafe.Sizeof(queue{}) + uintptr(cap(q.wheel.entries))*unsafe.Sizeof(entry{}) +
			uintptr(cap(q.wheel.links))*4
	}
	for n, most := range map[int]uintptr{40: 20 << 10, 100: 64 << 10} {
		q := newHold(newQueueSet(), driveDelay, n).set.(*queueSet)
		if b := held(q); b > most {
			t.Errorf("the queue of a drive with %d events holds %d B, want at most %d", n, b, most)
		}
	}
	// A network's mix may double the slices, and leaves chunks half full.
	const n = 200000
	q := newHold(newQueueSet(), netDelay, n).set.(*queueSet)
	b := held(q) / n
	t.Logf("a network's queue holds %d B an event", b)
	if b > 4*unsafe.Sizeof(entry{}) {
		t.Errorf("that is more than four times what one takes")
	}
}

// An idle gap has a constant cost, however long it is.
func TestQueueIdleGaps(t *testing.T) {
	q := newQueueSet()
	start := time.Now()
	for i := range uint64(1000) { // gaps of 8000 s, and enough events to use the wheel
		for j := range uint64(200) {
			q.push(entry{key: key{i * 8e15, j}})
		}
		for q.ready(Time(i * 8e15)) {
			q.take()
		}
	}
	if d := time.Since(start); d > 2*time.Second {
		t.Errorf("1000 gaps took %v", d)
	}
	if q.len() != 0 {
		t.Errorf("%d left", q.len())
	}
}
