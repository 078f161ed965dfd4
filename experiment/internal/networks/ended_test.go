package networks

import (
	"math"
	"runtime"
	"testing"

	"farflash/numeric/units"
	"farflash/sim"
)

// flowOf generates flows by number: sizes over five powers of two, slowdowns and times over three decades.
func flowOf(i int) (start, fct sim.Time, size units.Bytes, slowdown float64) {
	k := uint32(i) * 2654435761
	slowdown = 1 + math.Pow(10, float64(k>>8%3000)/1000)/8
	size = units.Bytes(1000 + k>>20%30000)
	return sim.Time(i) * units.Microsecond, sim.Time(slowdown * float64(size) * 80), size, slowdown
}

// TestManyFlows verifies that beyond the limit no figure moves by more than a histogram bucket, that counts, sums and
// maxima are exact, and that the number of parts of the network has no effect.
func TestManyFlows(t *testing.T) {
	const n, warm = 40000, 5000
	run := func(limit int64, parts int) *census {
		shared := &shelf{limit: limit}
		var list []*ledger
		for range parts {
			list = append(list, &ledger{warm: warm * units.Microsecond, shared: shared})
		}
		for i := range n {
			list[i*i%97%parts].add(flowOf(i))
		}
		return take(list, false)
	}
	exact, one, three := run(n, 1), run(n/2, 1), run(n/2, 3)
	if exact.coarse || !one.coarse || !three.coarse {
		t.Fatal("the limit does not decide what is kept")
	}
	if exact.count != n-warm || one.count != exact.count || one.bytes != exact.bytes || three.bytes != exact.bytes ||
		one.sizes() != exact.sizes() {
		t.Errorf("%d, %d and %d flows of %d, %d and %d bytes", exact.count, one.count, three.count, exact.bytes,
			one.bytes, three.bytes)
	}
	compare := func(what string, a, b, c found) {
		t.Helper()
		if a.count() != b.count() || a.count() != c.count() || a.count() == 0 {
			t.Errorf("%s: %d, %d and %d flows", what, a.count(), b.count(), c.count())
		}
		if x, y := a.mean(), b.mean(); math.Abs(x/y-1) > 1e-6 || y != c.mean() {
			t.Errorf("%s: mean %g, in histograms %g and %g", what, x, y, c.mean())
		}
		if x, y := a.most(), b.most(); math.Abs(x/y-1) > 1e-6 || y != c.most() {
			t.Errorf("%s: most %g, in histograms %g and %g", what, x, y, c.most())
		}
		for _, q := range []float64{0.01, 0.5, 0.95, 0.99, 0.999} {
			if x, y := a.quantile(q), b.quantile(q); math.Abs(x/y-1) > 1.0/64 || y != c.quantile(q) {
				t.Errorf("%s: quantile %g is %g, in histograms %g and %g", what, q, x, y, c.quantile(q))
			}
		}
	}
	for k, has := range exact.sizes() {
		if has {
			compare("slowdown by size", exact.slowdowns(k), one.slowdowns(k), three.slowdowns(k))
		}
	}
	compare("slowdown", exact.slowdowns(-1), one.slowdowns(-1), three.slowdowns(-1))
	a, h := exact.times()
	b, _ := one.times()
	c, _ := three.times()
	compare("completion time", a, b, c)
	if h.Count() != n-warm {
		t.Errorf("%d flows in the histogram", h.Count())
	}
}

// TestEndedFlowsMemory measures the memory for completed flows: 17 bytes each up to the limit, and none beyond it.
func TestEndedFlowsMemory(t *testing.T) {
	const limit = 1 << 17
	l := &ledger{shared: &shelf{limit: limit}}
	allocated := func(from, to int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := from; i < to; i++ {
			l.add(flowOf(i))
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if got := allocated(0, limit); got > limit*19 {
		t.Errorf("%d flows take %d bytes, %.1f each", limit, got, float64(got)/limit)
	}
	allocated(limit, 2*limit) // histograms
	if got := allocated(2*limit, 8*limit); got > 64<<10 {
		t.Errorf("%d flows above the limit take %d bytes", 6*limit, got)
	}
	if l.pieces != nil {
		t.Error("flows above the limit are kept")
	}
}
