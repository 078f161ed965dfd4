package sim

import (
	"farflash/numeric/rng"
	"fmt"
	"testing"
)

// mixes are the distributions of delays of the models, in picoseconds.
var mixes = []struct {
	name string
	draw func(s *rng.Stream, pending int) Time
}{
	{"drive", driveDelay},
	{"net", netDelay},
	{"exp", func(s *rng.Stream, pending int) Time { return Time(s.Exp() * 1000 * float64(pending)) }},
}

// driveDelay draws the delays of an SSD: bus cycles, firmware and DMA, page transfers, reads, programs, erases.
func driveDelay(s *rng.Stream, _ int) Time {
	const ns, us = 1000, 1000 * 1000
	switch x := s.IntN(100); {
	case x < 25:
		return 8*ns + Time(s.IntN(24))*4*ns
	case x < 55:
		return 100*ns + Time(s.IntN(2000))*ns
	case x < 75:
		return [3]Time{3413333, 6826666, 13653333}[s.IntN(3)] // 4, 8 and 16 KiB at 1.2 GB/s
	case x < 93:
		return [3]Time{45 * us, 60 * us, 75 * us}[s.IntN(3)]
	case x < 99:
		return [2]Time{400 * us, 700 * us}[s.IntN(2)]
	default:
		return 3500 * us
	}
}

// netDelay draws the delays of a fabric: whole packets on the wire, acknowledgements, propagation, congestion-control
// timers, retransmission timers. Times cluster on a 16 ns grid with little spread.
func netDelay(s *rng.Stream, _ int) Time {
	const ns, us = 1000, 1000 * 1000
	switch x := s.IntN(1000); {
	case x < 300:
		return 208 * ns // 1 KiB and headers at 40 Gbit/s, on the grid
	case x < 450:
		return 16 * ns * (1 + Time(s.IntN(13)))
	case x < 900:
		return 1*us + Time(s.IntN(13))*16*ns + Time(s.IntN(3))*ns
	case x < 980:
		return 4 * us
	case x < 999:
		return 55 * us
	default:
		return 300*us + Time(s.IntN(1200))*us
	}
}

// hold is a set of pending events, each of which is pushed again after a delay of the mix when it is popped.
type hold struct {
	set    pendingSet
	delays [1 << 14]uint64
	i      int
}

func newHold(set pendingSet, draw func(*rng.Stream, int) Time, pending int) *hold {
	h := &hold{set: set}
	s := rng.NewStream(1, "hold")
	for i := range h.delays {
		h.delays[i] = uint64(draw(&s, pending))
	}
	for i := range pending {
		at := uint64(s.Float64() * float64(h.delays[i%len(h.delays)]))
		set.push(entry{key: key{at, uint64(i) << counterBits}})
	}
	h.run(4*pending + 10000)
	return h
}

// step pops an event, pushes it again and returns it.
func (h *hold) step() entry {
	e := h.set.pop()
	again := e
	again.at += h.delays[h.i%len(h.delays)]
	again.order++
	h.i++
	h.set.push(again)
	return e
}

func (h *hold) run(n int) {
	for range n {
		h.step()
	}
}

// rivals are the queue and the alternatives measured, each up to the number of pending events that finishes in
// reasonable time.
var rivals = []struct {
	name string
	make func() pendingSet
	most int
}{
	{"queue", func() pendingSet { return newQueueSet() }, 1e6},
	{"sorted", func() pendingSet { return &sortedList{} }, 1000},
	{"heap2", func() pendingSet { return &binaryHeap{} }, 1e6},
	{"heap4", func() pendingSet { return &quadHeap{} }, 1e6},
	{"radix", func() pendingSet { return &radixHeap{} }, 1e6},
	{"wheel", func() pendingSet { return &slotWheel{} }, 1e6},
	{"ladder", func() pendingSet { return &ladder{} }, 1e6},
}

// BenchmarkHold reports the time of one pop and push at a constant number of pending events.
func BenchmarkHold(b *testing.B) {
	for _, m := range mixes {
		for _, r := range rivals {
			for _, n := range []int{10, 30, 100, 1e3, 1e4, 1e5, 1e6} {
				if n > r.most || testing.Short() && n > 1e4 {
					continue
				}
				b.Run(fmt.Sprintf("%s/%s/%d", m.name, r.name, n), func(b *testing.B) {
					h := newHold(r.make(), m.draw, n)
					b.ReportAllocs()
					b.ResetTimer()
					h.run(b.N)
				})
			}
		}
	}
}

// BenchmarkEngine reports the time of one event from Schedule to Handle, including the looper's own work.
func BenchmarkEngine(b *testing.B) {
	for _, m := range mixes {
		for _, n := range []int{5, 10, 20, 40, 100, 1000, 100000} {
			b.Run(fmt.Sprintf("%s/%d", m.name, n), func(b *testing.B) {
				l := newLooper(m.draw, n)
				l.run(4*n + 10000)
				b.ReportAllocs()
				b.ResetTimer()
				l.run(b.N)
			})
		}
	}
}

// BenchmarkTimer reports the time of an event that also moves a timer, as each packet moves its retransmission timer,
// including the dropped events.
func BenchmarkTimer(b *testing.B) {
	for _, ahead := range []Time{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("%dus", ahead), func(b *testing.B) {
			e := New()
			p := &packets{engine: e, self: e.NewComponent(), wait: ahead * 1e6}
			p.to = e.AddHandler(p)
			p.timer = e.NewTimer(p.self, p.to, 1, 0)
			e.Schedule(p.self, p.to, 0, 0, 0)
			p.left = 50000
			e.Run(Forever)
			e.Schedule(p.self, p.to, e.Now(), 0, 0)
			p.left = b.N
			b.ReportAllocs()
			b.ResetTimer()
			e.Run(Forever)
		})
	}
}

// packets arrive every 100 ns, and each moves a timer.
type packets struct {
	engine *Engine
	self   Component
	to     Target
	timer  Timer
	wait   Time
	left   int
}

func (p *packets) Handle(ev Event) {
	p.left--
	if p.left <= 0 {
		p.engine.Stop()
		return
	}
	p.engine.Arm(p.timer, ev.At+p.wait)
	p.engine.Schedule(p.self, p.to, ev.At+1e5, 0, 0)
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for range b.N {
		kept = New()
	}
}

var kept *Engine
