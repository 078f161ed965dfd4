package ratecontrol_test

import (
	"math"
	"strings"
	"testing"

	"farflash/block"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/policy/forest"
	"farflash/policy/ratecontrol"
)

const us = units.Microsecond

// TestMonitorByHand compares the features of four requests with results by hand.
func TestMonitorByHand(t *testing.T) {
	m := ratecontrol.NewMonitor(100*us, 0)
	if f := m.Features(0); f.ReadShare != 0 || f.Of[block.Read].Speed != 0 || f.Of[block.Read].Interarrival != 100e-6 {
		t.Errorf("of nothing: %+v", f)
	}
	m.Arrived(10*us, block.Read, 1000)
	m.Arrived(20*us, block.Read, 3000)
	m.Arrived(25*us, block.Write, 500)
	m.Arrived(25*us, block.Trim, 1<<40)
	m.Arrived(50*us, block.Read, 2000)
	near := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12*math.Max(1, math.Abs(want)) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	f := m.Features(50 * us) // the window starts at the monitor's start
	r, w := f.Of[block.Read], f.Of[block.Write]
	near("read share", f.ReadShare, 0.75)
	near("size", r.Size, 2000)
	near("size SCV", r.SizeSCV, 2.0/3/4) // variance 2/3 of (1000 B)^2, mean 2
	near("inter-arrival", r.Interarrival, 20e-6)
	near("its SCV", r.InterarrivalSCV, 0.25) // 10 and 30
	near("speed", r.Speed, 6000/50e-6)
	near("writes' size", w.Size, 500)
	near("writes' size SCV", w.SizeSCV, 0)
	near("writes' inter-arrival", w.Interarrival, 100e-6)
	near("writes' speed", w.Speed, 500/50e-6)
	f = m.Features(115 * us) // the first has left, and its gap with it
	near("size", f.Of[block.Read].Size, 2500)
	near("inter-arrival", f.Of[block.Read].Interarrival, 30e-6)
	near("its SCV", f.Of[block.Read].InterarrivalSCV, 0)
	near("speed", f.Of[block.Read].Speed, 5000/100e-6)
	f = m.Features(1000 * us)
	if f != (ratecontrol.Features{Of: [2]ratecontrol.FlowFeatures{{Interarrival: 100e-6}, {Interarrival: 100e-6}}}) {
		t.Errorf("when all is gone: %+v", f)
	}
}

// TestMonitorWindow compares the sliding sums with sums computed from scratch, over gaps of any size, and verifies that
// the monitor does not allocate once it has grown.
func TestMonitorWindow(t *testing.T) {
	const window = 50 * us
	type request struct {
		at    units.Duration
		op    block.Op
		bytes int64
	}
	r := rng.NewStream(1, "monitor")
	m := ratecontrol.NewMonitor(window, 0)
	var all []request
	now := units.Duration(0)
	for range 3000 {
		if r.IntN(100) == 0 {
			now += 70 * us
		}
		now += units.Duration(r.IntN(int64(us)))
		q := request{now, block.Op(r.IntN(2)), 512 * (1 + r.IntN(1<<22))}
		all = append(all, q)
		m.Arrived(q.at, q.op, q.bytes)
		f := m.Features(now)
		for op := range 2 {
			var sizes, gaps []float64
			last := units.Duration(-1)
			for _, q := range all {
				if int(q.op) != op || q.at < now-window {
					continue
				}
				sizes = append(sizes, float64(q.bytes))
				if last >= 0 {
					gaps = append(gaps, (q.at - last).Seconds())
				}
				last = q.at
			}
			x := f.Of[op]
			size, sizeSCV := moments(sizes)
			gap, gapSCV := moments(gaps)
			if len(gaps) == 0 {
				gap = window.Seconds()
			}
			for i, p := range [][2]float64{{x.Size, size}, {x.SizeSCV, sizeSCV}, {x.Interarrival, gap},
				{x.InterarrivalSCV, gapSCV}, {x.Speed, size * float64(len(sizes)) / min(now, window).Seconds()}} {
				if math.Abs(p[0]-p[1]) > 1e-9*math.Max(1, p[1]) {
					t.Fatalf("at %v, %v, feature %d: %v, want %v", now, block.Op(op), i, p[0], p[1])
				}
			}
		}
	}
	if n := testing.AllocsPerRun(1000, func() {
		now += us
		m.Arrived(now, block.Read, 4096)
		m.Features(now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestMonitorEnds verifies that the window of Algorithm 1 includes both its ends, [t-delta, t].
func TestMonitorEnds(t *testing.T) {
	m := ratecontrol.NewMonitor(100*us, 0)
	m.Arrived(10*us, block.Read, 1000)
	m.Arrived(20*us, block.Read, 3000)
	for at, want := range map[units.Duration]float64{20 * us: 2000, 110 * us: 2000} {
		if f := m.Features(at); f.Of[block.Read].Size != want {
			t.Errorf("at %v: %+v", at, f)
		}
	}
	if f := m.Features(110*us + 1); f.Of[block.Read].Size != 3000 {
		t.Errorf("a picosecond later: %+v", f)
	}
	if f := m.Features(120 * us); f.Of[block.Read].Size != 3000 || f.ReadShare != 1 {
		t.Errorf("when the second is as old as the window is long: %+v", f)
	}
}

// TestMonitorWithoutWindow verifies that a window must have a positive length.
func TestMonitorWithoutWindow(t *testing.T) {
	for _, window := range []units.Duration{0, -1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("there is a monitor of %v", window)
				}
			}()
			ratecontrol.NewMonitor(window, 0)
		}()
	}
}

// moments returns the mean and the squared coefficient of variation.
func moments(x []float64) (mean, scv float64) {
	if len(x) == 0 {
		return 0, 0
	}
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		scv += (v - mean) * (v - mean) / float64(len(x)) / mean / mean
	}
	return mean, scv
}

// TestModel verifies that a forest predicts from the features in the order of their names, and that one with other
// names is rejected.
func TestModel(t *testing.T) {
	s := &forest.Samples{Inputs: ratecontrol.InputNames(), Outputs: ratecontrol.OutputNames()}
	if len(s.Inputs) != ratecontrol.Inputs || len(s.Outputs) != ratecontrol.Outputs {
		t.Fatalf("%d inputs and %d outputs have names", len(s.Inputs), len(s.Outputs))
	}
	// Reads depend on their flow speed over the weight ratio, writes on their size.
	at := func(i, k int) ratecontrol.Features {
		return ratecontrol.Features{ReadShare: 0.5,
			Of: [2]ratecontrol.FlowFeatures{{Speed: float64(100 * i)}, {Size: float64(10 * k)}}}
	}
	for i := range 4 {
		for k := range 4 {
			for w := 1; w < 4; w++ {
				f := at(i, k)
				x := f.Vector(w)
				s.Add(x[:], []float64{float64(100 * i / w), float64(k)}, i)
			}
		}
	}
	tree, err := forest.GrowTree(s, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ratecontrol.NewModel(tree)
	if err != nil {
		t.Fatal(err)
	}
	f := at(3, 2)
	for w, want := range map[int]float64{1: 300, 2: 150, 3: 100} {
		if read, write := m.Predict(&f, w); read != want || write != 2 {
			t.Errorf("weight ratio %d: %v and %v, want %v and 2", w, read, write, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { m.Predict(&f, 2) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	tree.Inputs = append([]string{"x"}, tree.Inputs[1:]...)
	if _, err := ratecontrol.NewModel(tree); err == nil {
		t.Error("a model of other inputs is taken")
	}
	tree.Inputs, tree.Outputs = ratecontrol.InputNames(), []string{"write.throughput", "read.throughput"}
	if _, err := ratecontrol.NewModel(tree); err == nil ||
		!strings.Contains(err.Error(), "the model has outputs [\"write.throughput\"") {
		t.Errorf("a model of other outputs: %v", err)
	}
}

func BenchmarkMonitor(b *testing.B) {
	m := ratecontrol.NewMonitor(10*units.Millisecond, 0)
	now := units.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		now += 5 * us
		m.Arrived(now, block.Op(now/us%2), 16384)
	}
}

// BenchmarkModel predicts with a forest as large as one from farflash predict train: 3,200 samples of a drive that
// shares its capacity by the weights when it is overloaded.
func BenchmarkModel(b *testing.B) {
	r := rng.NewStream(1, "model")
	s := &forest.Samples{Inputs: ratecontrol.InputNames(), Outputs: ratecontrol.OutputNames()}
	features := make([]ratecontrol.Features, 3200)
	for i := range features {
		ch := &features[i]
		ch.ReadShare = r.Float64()
		for k := range ch.Of {
			x := &ch.Of[k]
			*x = ratecontrol.FlowFeatures{Size: 8000 + 56000*r.Float64(), SizeSCV: 8 * r.Float64(),
				Interarrival: 8e-6 + 56e-6*r.Float64(), InterarrivalSCV: 8 * r.Float64()}
			x.Speed = x.Size / x.Interarrival
		}
		w := 1 + int(r.IntN(32))
		const can = 4e9
		read, write := ch.Of[0].Speed, ch.Of[1].Speed
		if read+write > can {
			read = min(read, max(can-write, can/float64(1+w)))
			write = min(write, can-read)
		}
		x := ch.Vector(w)
		s.Add(x[:], []float64{read, write}, i)
	}
	f, err := forest.Grow(s, forest.Config{Trees: 100, Try: 6, Leaf: 3, Seed: 1}, 0)
	if err != nil {
		b.Fatal(err)
	}
	m, err := ratecontrol.NewModel(f)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		m.Predict(&features[i%len(features)], 1+i%32)
		i++
	}
}
